"""Unreadable records are stored with their text, and a partly parsed record produces no row."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from rebalance_ledger.exports.contract import KIND_BY_NAME
from rebalance_ledger.exports.manifest import export_directory, load_manifest
from rebalance_ledger.tables import SILVER_TABLES
from rebalance_ledger.warehouse.layout import StagingArea
from spark_jobs.silver.day_export import DayExport
from spark_jobs.silver.reader import stage_silver
from tests.support.computed_days import SAMPLE_EXPORTS, newest, staged_rows
from tests.support.edge_case_cluster import OddCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rebalance_ledger.pipeline.day import Day

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage(staged_odd_day: Day) -> StagingArea:
    return newest(staged_odd_day)


def where(rows: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(row["file"], row["line_number"]) for row in rows}


def is_contradicted(row: dict[str, Any]) -> bool:
    return (row["file"], row["line_number"]) in OddCluster().contradicting_lines


def is_bomb(row: dict[str, Any]) -> bool:
    return (row["file"], row["text"]) in OddCluster().bombs


def test_each_broken_record_is_kept_with_its_line_its_reason_and_its_text(stage: StagingArea) -> None:
    rejected = [row for row in staged_rows(stage, "rejected_record") if not is_contradicted(row)]

    assert where(rejected) == OddCluster().broken_lines
    assert {
        row["kind"]: row["reason"]
        for row in rejected
        if row["kind"] not in {"consumer_connection", "consume_stats"} and not is_bomb(row)
    } == {
        "broker_topic_config": "the payload.topicConfigTable[orders].readQueueNums is missing",
        "broker_subscription_group": "the payload.subscriptionGroupTable is a list where a map is expected",
        "nameserver_route": "the payload.queueDatas[0].readQueueNums is missing",
        "consumer_running_info": (
            "the payload.properties.allocateMessageQueueStrategy is an integer where a string is expected"
        ),
    }
    [torn] = [row for row in rejected if row["kind"] == "consumer_connection"]
    assert torn["text"] == '{"connectionSet":[{"clientId":"c1"'


def test_a_json_bomb_is_kept_unchanged_with_the_reason(stage: StagingArea) -> None:
    reasons = [
        (row["kind"], row["reason"].partition(": ")[2] or row["reason"])
        for row in staged_rows(stage, "rejected_record")
        if is_bomb(row)
    ]

    assert sorted(reasons) == [
        ("consume_stats", "objects and arrays nest deeper than 512 levels"),
        ("nameserver_route", "references make the text stand for more than 10000000 values"),
        ("nameserver_route", "the payload has 2147483647 queues; a topic has at most 100000 here"),
    ]


def test_the_line_of_a_broken_record_has_its_request(stage: StagingArea) -> None:
    records = [row for row in staged_rows(stage, "export_record") if row["state"] == "rejected"]

    assert where(records) == OddCluster().broken_lines | OddCluster().contradicting_lines
    assert ("consumer_connection", "a", "g-torn-members") in {
        (row["kind"], row["broker_name"], row["consumer_group"]) for row in records
    }


def test_a_broken_record_gives_no_rows(stage: StagingArea) -> None:
    assert [row for row in staged_rows(stage, "topic_route") if row["topic"] == "no-read-count"] == []
    assert staged_rows(stage, "topic_config") == []
    assert staged_rows(stage, "subscription_group") == []
    assert [
        (row["broker_name"], row["state"])
        for row in staged_rows(stage, "group_presence")
        if row["consumer_group"] == "g-torn-members"
    ] == [("a", "unknown"), ("b", "offline")]
    assert [
        (row["client_id"], row["state"])
        for row in staged_rows(stage, "consumer_client")
        if row["consumer_group"] == "g-torn-client"
    ] == [("c1", "online"), ("c2", "unknown")]


def test_broken_records_are_a_finding_for_each_subject(stage: StagingArea) -> None:
    """Two kinds of records of one broker produce one finding, which lists each subject once."""
    found = {
        (row["broker_name"], row["consumer_group"], row["topic"], row["client_id"]): row["evidence"]
        for row in staged_rows(stage, "finding")
        if row["kind"] == "record_rejected"
    }

    assert set(found) == {
        ("a", None, None, None),
        ("a", "g-torn-members", None, None),
        (None, None, "no-read-count", None),
        (None, "g-torn-client", None, "c2"),
        (None, None, "bomb", None),
        ("a", "g-bomb", None, None),
        ("a", "g-contradicted", None, None),
        (None, None, "route-contradicted", None),
        (None, None, "only-contradicted", None),
    }
    assert found["a", None, None, None].startswith(
        "2 records of kind broker_subscription_group, broker_topic_config could not be read: "
        "broker_subscription_groups.jsonl line 1: the payload.subscriptionGroupTable is a list"
    )


def repeats(stage: StagingArea) -> list[dict[str, Any]]:
    return [row for row in staged_rows(stage, "export_record") if row["counted_line"] is not None]


def test_a_repeated_record_counts_once(stage: StagingArea) -> None:
    twice = [row for row in repeats(stage) if row["is_repeat"]]
    kinds = Counter(row["kind"] for row in twice)

    assert kinds == {
        "nameserver_route": 2,
        "consumer_connection": 3,
        "consumer_running_info": 2,
        "consume_stats": 1,
    }
    assert all(row["counted_line"] < row["line_number"] for row in twice)
    assert len([row for row in staged_rows(stage, "topic_route") if row["topic"] == "repeated"]) == 4
    connected = staged_rows(stage, "consumer_connection")
    assert Counter(row["broker_name"] for row in connected if row["consumer_group"] == "g-repeated") == {
        "a": 2,
        "b": 2,
    }


def test_the_newest_answer_to_a_request_counts_and_a_failure_never_does(stage: StagingArea) -> None:
    again = [row for row in repeats(stage) if row["consumer_group"] == "g-asked-again"]

    assert [
        (row["state"], row["is_repeat"]) for row in sorted(again, key=lambda row: row["line_number"])
    ] == [
        ("error", False),
        ("payload", False),
    ]
    assert [
        row["client_id"]
        for row in staged_rows(stage, "consumer_connection")
        if row["consumer_group"] == "g-asked-again"
    ] == ["c1", "c2"]


def test_contradictory_answers_of_one_instant_are_ignored_and_named(stage: StagingArea) -> None:
    contradicting = [row for row in staged_rows(stage, "rejected_record") if is_contradicted(row)]

    assert where(contradicting) == OddCluster().contradicting_lines
    asked: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
    for row in staged_rows(stage, "export_record"):
        if is_contradicted(row):
            asked[row["topic"], row["consumer_group"]].append(row["line_number"])
    expected = {
        f"lines {', '.join(map(str, sorted(lines)))} answer one question at one instant and differ, so none of them counts"
        for lines in asked.values()
    }
    assert len(expected) == 3
    assert {row["reason"] for row in contradicting} == expected
    for row in contradicting:
        assert row["text"].startswith("{")
    assert {
        (row["broker_name"], row["state"])
        for row in staged_rows(stage, "group_presence")
        if row["consumer_group"] == "g-contradicted"
    } == {("a", "unknown"), ("b", "online")}
    routes = [row for row in staged_rows(stage, "topic_route") if str(row["topic"]).endswith("-contradicted")]
    assert [(row["topic"], row["nameserver"], row["read_queue_count"]) for row in routes] == [
        ("route-contradicted", "ns-2:9876", 3)
    ]


def test_ignored_lines_are_named_in_a_finding(stage: StagingArea) -> None:
    """Repeated lines are informational. Answers that changed between two captures are a warning."""
    found = {
        (row["broker_name"], row["consumer_group"], row["topic"], row["client_id"]): row
        for row in staged_rows(stage, "finding")
        if row["kind"] == "record_repeated"
    }
    again = sorted(row["line_number"] for row in repeats(stage) if row["consumer_group"] == "g-asked-again")

    assert set(found) == {
        (None, None, "repeated", None),
        *((broker, "g-repeated", None, None) for broker in "abc"),
        *((None, "g-repeated", None, client) for client in ("c1", "c2")),
        ("a", "g-asked-again", None, None),
    }
    asked_again = found["a", "g-asked-again", None, None]
    assert asked_again["severity"] == "warning"
    assert asked_again["evidence"] == (
        "2 records of kind consumer_connection do not count beside another answer to the same question: "
        f"consumer_connections.jsonl line {again[0]} contradicts line {again[-1] + 1}"
    )
    assert asked_again["examples"] == [f"consumer_connections.jsonl line {number}" for number in again]
    of_client = found[None, "g-repeated", None, "c1"]
    assert (of_client["severity"], of_client["record_count"]) == ("info", 1)
    assert " equals line " in of_client["evidence"]


def test_odd_values_are_read_as_rocketmq_reads_them(stage: StagingArea) -> None:
    routes = {
        row["topic"]: row for row in staged_rows(stage, "topic_route") if row["nameserver"] == "ns-1:9876"
    }
    counts = ("queue_data_count", "read_queue_count", "subscribe_queue_count", "publish_queue_count")

    assert [routes["two-entries"][name] for name in counts] == [2, 2, 2, 4]
    assert [routes["negative-counts"][name] for name in counts] == [1, -2, 0, 0]
    drift = staged_rows(stage, "ownership_drift")
    # Names are case-sensitive.
    assert {
        (row["consumer_group"], client)
        for row in drift
        if row["consumer_group"].lower() == "g-case"
        for client in row["expected_client_ids"]
    } == {(group, f"{group}-{number}") for group in ("g-case", "G-CASE") for number in (1, 2)}
    assert [
        row["state"]
        for row in drift
        if row["consumer_group"] == "g-listed-twice" and row["observed_client_ids"]
    ] == ["unknown"]
    # The group does not assign a queue that is in no route.
    assert {
        (row["topic"], row["broker_name"], row["queue_id"]): (row["state"], row["unknown_reason"])
        for row in drift
        if row["consumer_group"] == "g-nowhere" and row["observed_client_ids"]
    } == {
        ("orders", "a", 0): ("match", None),
        ("orders", "a", 99): ("unexpected_owner", None),
        ("orders", "nowhere", 0): ("unexpected_owner", None),
        ("nowhere", "a", 0): ("unknown", "route_unknown"),
    }


def test_an_order_configuration_that_producers_cannot_read_is_a_finding(stage: StagingArea) -> None:
    assert [
        (row["topic"], row["severity"], row["evidence"])
        for row in staged_rows(stage, "finding")
        if row["kind"] == "order_conf_unreadable"
    ] == [
        (
            "torn-order",
            "warning",
            "Producers cannot read the order configuration: ns-1:9876 a:2;b, ns-2:9876 a:2;b.",
        )
    ]


def test_of_two_masters_of_one_broker_the_one_with_more_answers_counts(stage: StagingArea) -> None:
    connected = [
        (row["consumer_group"], row["client_id"])
        for row in staged_rows(stage, "consumer_connection")
        if row["broker_name"] == "d"
    ]
    presence = [
        (row["consumer_group"], row["state"])
        for row in staged_rows(stage, "group_presence")
        if row["broker_name"] == "d"
    ]

    assert sorted(connected) == [
        ("g-old-master-down", "c1"),
        ("g-two-masters", "c1"),
        ("g-two-masters", "c2"),
    ]
    assert sorted(presence) == [("g-old-master-down", "online"), ("g-two-masters", "online")]


def test_of_two_masters_each_counts_for_members_that_only_it_reached(stage: StagingArea) -> None:
    offsets = {
        row["client_id"]: row["memory_offset"]
        for row in staged_rows(stage, "memory_offset")
        if row["consumer_group"] == "g-two-masters"
    }

    assert offsets == {"c1": 5, "c2": 7}


def test_an_offset_in_memory_counts_once_whichever_brokers_forwarded_the_request(stage: StagingArea) -> None:
    offsets = [
        (row["client_id"], row["memory_offset"])
        for row in staged_rows(stage, "memory_offset")
        if row["consumer_group"] == "g-broadcast"
    ]

    assert offsets == [("c1", 3)]


def test_every_line_of_the_export_is_accounted_for(staged_odd_day: Day, stage: StagingArea) -> None:
    manifest = load_manifest(
        export_directory(staged_odd_day.exports, staged_odd_day.cluster, staged_odd_day.ds)
    )

    records = staged_rows(stage, "export_record")

    assert where(records) == {
        (file.path, line_number)
        for file in manifest.envelope_files
        for line_number in range(1, (file.line_count or 0) + 1)
    }
    assert len(records) == len(where(records))
    assert {row["kind"] for row in records} <= set(KIND_BY_NAME)


def test_an_export_is_read_once_and_never_held_in_memory_whatever_its_size(
    spark: SparkSession, staged_odd_day: Day, stage: StagingArea, tmp_path: Path
) -> None:
    """A cached export filled the heap, and each table scanned all of it."""
    landed = export_directory(staged_odd_day.exports, staged_odd_day.cluster, staged_odd_day.ds)
    read = shutil.copytree(landed, tmp_path / "export")
    parts = StagingArea(str(tmp_path), "parts")
    day = DayExport(read, load_manifest(read))
    # Delta caches the states of the tables that this session has read.
    held = set(spark.sparkContext._jsc.getPersistentRDDs())

    silver = stage_silver(spark, [day], {day.key: parts})
    shutil.rmtree(read)
    for part in Path(parts.root).rglob("*.parquet"):
        if part.parent.name not in {"topic_route", "silver.topic_route"}:
            part.write_bytes(b"not what a table of routes reads")

    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= held
    routes = {tuple(row) for row in silver["topic_route"].collect()}
    assert routes == {tuple(row.values()) for row in staged_rows(stage, "topic_route")}


def test_lines_have_the_same_numbers_when_files_are_read_in_many_parts(
    spark: SparkSession, staged_odd_day: Day, stage: StagingArea, tmp_path: Path
) -> None:
    day = staged_odd_day
    directory = export_directory(day.exports, day.cluster, day.ds)
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    spark.conf.set(names[0], "3000b")
    spark.conf.set(names[1], "0b")
    try:
        parts = StagingArea(str(tmp_path), "parts")
        written = Path(parts.work("parsed_line")) / "export_record"
        written.mkdir(parents=True)
        (written / "part-of-a-killed-task.parquet").write_bytes(b"half a file")
        export = DayExport(directory, load_manifest(directory))
        silver = stage_silver(spark, [export], {export.key: parts})
        read = [row.asDict() for row in silver["export_record"].collect()]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

    # Each task that reads lines writes their records to a separate file.
    assert len(list(written.glob("*.parquet"))) > len(list(directory.glob("*.jsonl")))

    def key(row: dict[str, Any]) -> tuple[str, int]:
        return row["file"], row["line_number"]

    def asked(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        names = (
            "file",
            "line_number",
            "nameserver",
            "topic",
            "broker_name",
            "consumer_group",
            "client_id",
            "state",
        )
        return [tuple(row[name] for name in names) for row in sorted(rows, key=key)]

    assert asked(read) == asked(staged_rows(stage, "export_record"))


def test_small_and_large_exports_have_the_same_silver_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark writes the tables of a large export; those of a small one are the files of its parsed lines."""
    directory = export_directory(SAMPLE_EXPORTS, "shop-prod", date(2026, 11, 16))
    export = DayExport(directory, load_manifest(directory))
    small, large = StagingArea(str(tmp_path), "small"), StagingArea(str(tmp_path), "large")

    stage_silver(spark, [export], {export.key: small})
    monkeypatch.setattr("spark_jobs.silver.reader.LARGE_EXPORT_BYTES", 0)
    stage_silver(spark, [export], {export.key: large})

    for table in SILVER_TABLES:
        by_copy, by_spark = (pq.read_table(stage.table(table)) for stage in (small, large))
        order = [(name, "ascending") for name in by_copy.schema.names]
        assert by_copy.schema.remove_metadata() == by_spark.schema.remove_metadata(), table.name
        assert by_copy.sort_by(order).equals(by_spark.sort_by(order)), table.name
