"""Broadcasting clients in the states that the sample lacks: the content of their offset files, and the effect of a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.identity import RunIdentity
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import read_build
from tests.support.broadcasting_cluster import (
    CLIENT,
    CLUSTER,
    EARLIER,
    HOST,
    JAVA_LONG_MAX,
    PORT_CLIENT,
    Hosts,
    table,
    write_exports,
)
from tests.support.computed_days import newest, staged_rows
from tests.support.export_builder import DS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.small_days import SmallDays


pytestmark = [pytest.mark.spark, pytest.mark.small_days.with_args(write_exports)]


@pytest.fixture(scope="module")
def broadcasting(small_days: SmallDays) -> Day:
    [computed] = small_days.of(write_exports)
    steps.gate(computed)
    steps.publish(computed)
    return computed


@pytest.fixture(scope="module")
def rows(broadcasting: Day) -> Mapping[str, list[dict[str, Any]]]:
    stage = newest(broadcasting)
    names = ("broadcast_offset_file", "broadcast_offset", "finding")
    return {name: staged_rows(stage, name) for name in names}


FILE_STATES = {
    "well": ("ok", "stored", "main"),
    "went_back": ("ok", "stored", "main"),
    "not_written": ("ok", "stored", "main"),
    "listed_twice": ("ok", "stored", "main"),
    "on_one_host": ("shared_file", "stored", "main"),
    "on_two_hosts": ("unknown", None, "main"),
    "nowhere_listed": ("unknown", None, "main"),
    "in_cpp": ("unknown", None, None),
    "in_no_language": ("missing", "default", None),
    "removed": ("missing", "default", None),
    "emptied": ("empty", "default", None),
    "cut_without_bak": ("empty", "default", None),
    "cut_twice": ("corrupt_both", "fails_to_start", "bak"),
    "recovered": ("recovered_from_bak", "stored", "bak"),
    "zeroed": ("recovered_from_bak", "stored", "bak"),
    "nested": ("unknown", None, "main"),
    "negative": ("ok", "stored", "main"),
    "silent_writer": ("stale", "stored", "main"),
    "moved_to_clustering": ("clustering_group_with_file", None, "main"),
    "old_process": ("orphan_dir", "stored", "main"),
    "old_spring": ("orphan_dir", "stored", "main"),
    # Files that stop a client are reported whatever its id looks like, unless their age proves that it is not used.
    "torn_process": ("corrupt_both", "fails_to_start", "bak"),
    "torn_port": ("corrupt_both", "fails_to_start", "bak"),
    "torn_long_ago": ("orphan_dir", "fails_to_start", "bak"),
    "port": ("ok", "stored", "main"),
    "timed": ("missing", "default", None),
    "broken_setting": ("missing", "default", None),
    "past_64_bits": ("ok", "stored", "main"),
    "unreadable": ("unknown", None, None),
    "asleep": ("ok", "stored", "main"),
    "elsewhere": ("unknown", None, None),
}


OF_OTHERS = {"old_process", "old_spring", "torn_process", "torn_port", "torn_long_ago", "port"}
"""Groups with the files of a client that is not connected."""


@pytest.mark.parametrize("group", FILE_STATES)
def test_files_have_the_prepared_state(group: str, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    found = [
        (row["state"], row["start_outcome"], row["start_from"])
        for row in rows["broadcast_offset_file"]
        # A group whose files belong to another client has an additional row of the connected one, without files.
        if row["consumer_group"] == group and (group not in OF_OTHERS or row["client_id"] != CLIENT)
    ]

    assert found == [FILE_STATES[group]]


def test_connections_with_one_client_id_do_not_prove_that_processes_share_a_file(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [file] = [row for row in rows["broadcast_offset_file"] if row["consumer_group"] == "listed_twice"]
    kinds = {row["kind"] for row in rows["finding"] if row["consumer_group"] == "listed_twice"}

    assert (file["is_online"], file["process_count"]) == (True, None)
    assert "duplicate_client_id" in kinds
    assert "offset_file_shared" not in kinds


def test_an_unknown_state_has_its_reason(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    reasons = {row["consumer_group"]: row["reason"] for row in rows["broadcast_offset_file"]}
    kinds = {
        group: {row["kind"] for row in rows["finding"] if row["consumer_group"] == group} for group in reasons
    }

    assert reasons["on_two_hosts"] == (
        "the client id is connected from 2 addresses, which are more than the hosts with its files: "
        "whether processes share a file is not known"
    )
    assert reasons["nowhere_listed"] == (
        "no broker and no proxy lists an address of the client id: whether processes share a file is not known"
    )
    assert reasons["in_cpp"] == (
        "the client reports the language CPP, and only files of Java and Go clients are collected"
    )
    assert "offset_file_shared" in kinds["on_one_host"]
    assert "offset_file_shared" not in kinds["on_two_hosts"] | kinds["nowhere_listed"]
    assert "offset_file_lost" not in kinds["in_cpp"]


# State, restart reason, restart offset, skipped messages, repeated messages.
QUEUES = {
    "well": ("ok", "stored", 90, 0, 0),
    "went_back": ("regressed", "stored", 90, 0, 5),
    "stuck": ("stale", "stored", 90, 0, 0),
    "not_written": ("ok", "stored", 90, 0, 7),
    "behind": ("behind_min", "corrected_by_broker_to_min", 10, 6, 0),
    "ahead": ("ahead_of_max", "corrected_by_broker_to_max", 100, None, None),
    "removed": ("no_offset", "default_first", 10, 0, 80),
    "emptied": ("no_offset", "default_last", 100, 10, 0),
    "cut_twice": ("no_offset", "fails_to_start", None, None, None),
    "timed": ("no_offset", "default_timestamp", None, None, None),
    "recovered": ("ok", "stored", 90, 0, 0),
    "negative": ("no_offset", "queue_skipped", None, None, None),
    "moved_to_clustering": ("unused", None, None, None, None),
    "broken_setting": ("no_offset", "unknown", None, None, None),
    "broker_untold": ("unknown", "unknown", None, None, None),
}


@pytest.mark.parametrize("group", QUEUES)
def test_each_queue_has_its_state_and_restart_offset(
    group: str, rows: Mapping[str, list[dict[str, Any]]]
) -> None:
    names = ("state", "restart_reason", "restart_offset", "skipped_message_count", "repeated_message_count")
    found = [
        tuple(row[name] for name in names)
        for row in rows["broadcast_offset"]
        if row["consumer_group"] == group
    ]

    assert found == [QUEUES[group]]


def test_queues_without_a_route_and_queues_without_a_stored_offset_are_both_listed(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["queue_id"]: (row["state"], row["restart_reason"])
        for row in rows["broadcast_offset"]
        if row["consumer_group"] == "queue_gone"
    }

    assert found == {7: ("orphan_queue", None), 0: ("no_offset", "default_last")}


@pytest.mark.parametrize(
    ("group", "setting", "reason", "offset"),
    [
        ("queue_gone", "CONSUME_FROM_LAST_OFFSET", "default_last", 100),
        ("brokers_differ", None, "unknown", None),
        ("client_knows", "CONSUME_FROM_FIRST_OFFSET", "default_first", 10),
        ("processes_differ", None, "unknown", None),
        ("pulls", "CONSUME_FROM_LAST_OFFSET", "unknown", None),
        ("pulls_lite", "CONSUME_FROM_LAST_OFFSET", "default_last", 100),
    ],
)
def test_a_queue_without_an_offset_starts_where_the_client_itself_would_start(
    group: str, setting: str | None, reason: str, offset: int | None, rows: Mapping[str, list[dict[str, Any]]]
) -> None:
    found = [
        (row["consume_from_where"], row["restart_reason"], row["restart_offset"])
        for row in rows["broadcast_offset"]
        if (row["consumer_group"], row["queue_id"]) == (group, 0)
    ]

    assert found == [(setting, reason, offset)]


def test_without_the_brokers_offsets_lag_and_losses_are_null_and_not_zero(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [row] = [row for row in rows["broadcast_offset"] if row["consumer_group"] == "broker_untold"]

    assert (row["stored_offset"], row["lag_message_count"], row["lost_message_count"]) == (90, None, None)


def test_the_in_memory_offset_is_shown_if_the_client_reported_it(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["consumer_group"]: (row["stored_offset"], row["memory_offset"])
        for row in rows["broadcast_offset"]
        if row["consumer_group"] in {"not_written", "stuck", "well"}
    }

    assert found == {"not_written": (90, 97), "stuck": (90, 90), "well": (90, None)}


def test_a_client_that_makes_progress_is_not_stuck_if_its_file_does_not_change(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    stuck = {row["consumer_group"] for row in rows["finding"] if row["kind"] == "broadcast_client_stuck"}

    assert stuck == {"stuck"}


def test_a_folder_removed_with_its_process_is_not_reported_as_missing(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {row["client_id"] for row in rows["broadcast_offset_file"] if row["consumer_group"] == "tidied"}

    assert found == {CLIENT}


def test_a_removed_folder_of_a_chosen_name_is_reported_as_missing(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["client_id"]: row["state"]
        for row in rows["broadcast_offset_file"]
        if row["consumer_group"] == "port_removed"
    }

    assert found == {CLIENT: "ok", PORT_CLIENT: "missing"}


def test_the_release_that_reads_a_file_is_the_clients_own_or_marked_as_assumed(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    sources = {row["consumer_group"]: row["client_version_source"] for row in rows["broadcast_offset_file"]}

    assert (sources["well"], sources["asleep"]) == ("client", "assumed")


def test_a_missing_file_has_the_time_when_it_was_last_present(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [row] = [row for row in rows["broadcast_offset_file"] if row["consumer_group"] == "removed"]

    assert (row["previous_ds"], row["previous_start_outcome"]) == (EARLIER, "stored")


def test_a_file_with_an_undecidable_reading_is_a_finding(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [finding] = [
        row
        for row in rows["finding"]
        if row["kind"] == "offset_file_undecided" and row["consumer_group"] == "nested"
    ]

    assert (finding["consumer_group"], finding["client_id"], finding["severity"]) == (
        "nested",
        CLIENT,
        "warning",
    )
    assert finding["evidence"] == (
        f"Whether the client can read its file is not known. On {HOST}: "
        "in offsets.json, the text nests so deep that the client's stack decides."
    )


def test_findings_report_the_number_of_lost_messages(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    [finding] = [row for row in rows["finding"] if row["kind"] == "broadcast_messages_lost"]

    assert finding["consumer_group"] == "behind"
    assert "6 messages" in finding["evidence"]


def test_offsets_that_add_up_beyond_64_bits_are_one_finding(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    [finding] = [
        row
        for row in rows["finding"]
        if (row["consumer_group"], row["kind"]) == ("past_64_bits", "broadcast_offset_ahead")
    ]

    assert f"by {2 * (JAVA_LONG_MAX - 100)} messages, in 2 queues" in finding["evidence"]


def test_the_earlier_export_is_part_of_the_input_of_the_day(broadcasting: Day) -> None:
    build = read_build(newest(broadcasting))
    alone = RunIdentity(build.manifest_sha256, build.settings_sha256, build.code_version)

    assert build.run_id != alone.run_id


def test_a_file_changed_after_sealing_fails_the_build(
    spark: SparkSession, broadcasting: Day, tmp_path: Path
) -> None:
    hosts = Hosts(DS)
    hosts.reader("well", table("well", 90))
    directory = hosts.seal(tmp_path / "exports")
    changed = Day(CLUSTER, DS, tmp_path / "exports", Warehouse.at(str(tmp_path / "warehouse")), None)
    path = directory / next(iter(hosts.files))

    def spoil_after_verification() -> None:
        path.write_bytes(path.read_bytes() + b" ")

    from spark_jobs.build import build

    spoil_after_verification()
    with pytest.raises(
        Exception, match=r"has changed since the export was sealed: its SHA-256 differs from the index"
    ):
        build(
            spark,
            exports=changed.exports,
            warehouse=changed.warehouse,
            settings=changed.settings,
            cluster=changed.cluster,
            ds=changed.ds,
        )
