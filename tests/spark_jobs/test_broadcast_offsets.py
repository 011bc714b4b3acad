"""Broadcasting clients in every state that the sample does not have: what their offset files say, and what a restart would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.identity import RunIdentity
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import read_build
from tests.support.broadcasting_cluster import CLIENT, CLUSTER, EARLIER, HOST, Hosts, table, write_exports
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
    "timed": ("missing", "default", None),
    "unreadable": ("unknown", None, None),
    "asleep": ("ok", "stored", "main"),
    "elsewhere": ("unknown", None, None),
}


@pytest.mark.parametrize("group", FILE_STATES)
def test_files_are_in_the_state_that_they_were_put_in(
    group: str, rows: Mapping[str, list[dict[str, Any]]]
) -> None:
    found = [
        (row["state"], row["start_outcome"], row["start_from"])
        for row in rows["broadcast_offset_file"]
        # A client whose folder is of an old process is itself there without files.
        if row["consumer_group"] == group and (group != "old_process" or "#" in row["client_id"])
    ]

    assert found == [FILE_STATES[group]]


def test_connections_of_one_id_are_no_proof_of_processes_that_share_a_file(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [file] = [row for row in rows["broadcast_offset_file"] if row["consumer_group"] == "listed_twice"]
    kinds = {row["kind"] for row in rows["finding"] if row["consumer_group"] == "listed_twice"}

    assert (file["is_online"], file["process_count"]) == (True, None)
    assert "duplicate_client_id" in kinds
    assert "offset_file_shared" not in kinds


# State, restart reason, restart offset, skipped, repeated.
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
    "broker_untold": ("unknown", "unknown", None, None, None),
}


@pytest.mark.parametrize("group", QUEUES)
def test_a_queue_has_its_state_and_a_restart_its_place(
    group: str, rows: Mapping[str, list[dict[str, Any]]]
) -> None:
    names = ("state", "restart_reason", "restart_offset", "skipped_message_count", "repeated_message_count")
    found = [
        tuple(row[name] for name in names)
        for row in rows["broadcast_offset"]
        if row["consumer_group"] == group
    ]

    assert found == [QUEUES[group]]


def test_a_queue_that_no_route_has_stands_beside_the_one_that_nothing_is_stored_of(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["queue_id"]: (row["state"], row["restart_reason"])
        for row in rows["broadcast_offset"]
        if row["consumer_group"] == "queue_gone"
    }

    assert found == {7: ("orphan_queue", None), 0: ("no_offset", "default_last")}


def test_without_the_brokers_word_lag_and_losses_are_null_and_not_zero(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [row] = [row for row in rows["broadcast_offset"] if row["consumer_group"] == "broker_untold"]

    assert (row["stored_offset"], row["lag_message_count"], row["lost_message_count"]) == (90, None, None)


def test_the_offset_in_memory_stands_beside_the_stored_one_where_the_client_told_it(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["consumer_group"]: (row["stored_offset"], row["memory_offset"])
        for row in rows["broadcast_offset"]
        if row["consumer_group"] in {"not_written", "stuck", "well"}
    }

    assert found == {"not_written": (90, 97), "stuck": (90, 90), "well": (90, None)}


def test_a_client_that_reads_on_is_not_called_stuck_though_its_file_stands_still(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    stuck = {row["consumer_group"] for row in rows["finding"] if row["kind"] == "broadcast_client_stuck"}

    assert stuck == {"stuck"}


def test_a_folder_that_went_with_its_process_is_not_missed(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    found = {row["client_id"] for row in rows["broadcast_offset_file"] if row["consumer_group"] == "tidied"}

    assert found == {CLIENT}


def test_the_release_that_reads_is_the_clients_own_or_assumed_and_said_to_be(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    sources = {row["consumer_group"]: row["client_version_source"] for row in rows["broadcast_offset_file"]}

    assert (sources["well"], sources["asleep"]) == ("client", "assumed")


def test_what_is_missing_now_says_when_it_was_last_there(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    [row] = [row for row in rows["broadcast_offset_file"] if row["consumer_group"] == "removed"]

    assert (row["previous_ds"], row["previous_start_outcome"]) == (EARLIER, "stored")


def test_a_file_of_which_nobody_knows_what_a_client_makes_is_a_finding(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [finding] = [row for row in rows["finding"] if row["kind"] == "offset_file_undecided"]

    assert (finding["consumer_group"], finding["client_id"], finding["severity"]) == (
        "nested",
        CLIENT,
        "warning",
    )
    assert finding["evidence"] == (
        f"Whether the client can read its file is not known. On {HOST}: "
        "in offsets.json, the text nests so deep that the client's stack decides."
    )


def test_findings_tell_of_lost_messages_with_their_number(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    [finding] = [row for row in rows["finding"] if row["kind"] == "broadcast_messages_lost"]

    assert finding["consumer_group"] == "behind"
    assert "6 messages" in finding["evidence"]


def test_the_earlier_export_is_part_of_what_the_day_was_computed_from(broadcasting: Day) -> None:
    build = read_build(newest(broadcasting))
    alone = RunIdentity(build.manifest_sha256, build.settings_sha256, build.code_version)

    assert build.run_id != alone.run_id


def test_a_file_that_is_not_what_was_sealed_stops_the_build(
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
