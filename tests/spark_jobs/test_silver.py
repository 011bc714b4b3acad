"""Records that cannot be read are kept with their text, and nothing is made of a half of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from computed_days import newest, staged_rows
from odd_cluster import OddCluster

from spark_jobs.silver import read_silver
from topology.contract import KIND_BY_NAME
from topology.manifest import export_directory, load_manifest
from warehouse.layout import Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ledger.stages import Day

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stage(staged_odd_day: Day) -> Stage:
    return newest(staged_odd_day)


def where(rows: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(row["file"], row["line_number"]) for row in rows}


def is_bomb(row: dict[str, Any]) -> bool:
    return (row["file"], row["text"]) in OddCluster().bombs


def test_each_broken_record_is_kept_with_its_line_its_reason_and_its_text(stage: Stage) -> None:
    rejected = staged_rows(stage, "rejected_record")

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


def test_a_bomb_is_kept_as_it_is_with_the_reason_why_it_was_not_read(stage: Stage) -> None:
    reasons = [
        (row["kind"], row["reason"].partition(": ")[2] or row["reason"])
        for row in staged_rows(stage, "rejected_record")
        if is_bomb(row)
    ]

    assert sorted(reasons) == [
        ("consume_stats", "objects and arrays nest deeper than 512 levels"),
        ("nameserver_route", "references make the text stand for more than 10000000 values"),
        ("nameserver_route", "the payload tells of 2147483647 queues; a topic has at most 100000 here"),
    ]


def test_the_line_of_a_broken_record_says_what_was_asked(stage: Stage) -> None:
    records = [row for row in staged_rows(stage, "export_record") if row["state"] == "rejected"]

    assert where(records) == OddCluster().broken_lines
    assert ("consumer_connection", "a", "g-torn-members") in {
        (row["kind"], row["broker_name"], row["consumer_group"]) for row in records
    }


def test_nothing_is_made_of_a_broken_record(stage: Stage) -> None:
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


def test_broken_records_are_a_finding_for_each_subject(stage: Stage) -> None:
    """Two kinds of record of one broker are one finding: a subject stands in it once."""
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
    }
    assert found["a", None, None, None].startswith(
        "2 records of kind broker_subscription_group, broker_topic_config could not be read: "
    )


def test_of_two_masters_of_one_broker_the_one_counts_that_answered_more(stage: Stage) -> None:
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


def test_of_two_masters_each_counts_for_the_members_that_it_alone_reached(stage: Stage) -> None:
    offsets = {
        row["client_id"]: row["memory_offset"]
        for row in staged_rows(stage, "memory_offset")
        if row["consumer_group"] == "g-two-masters"
    }

    assert offsets == {"c1": 5, "c2": 7}


def test_every_line_of_the_export_is_accounted_for(staged_odd_day: Day, stage: Stage) -> None:
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
    spark: SparkSession, staged_odd_day: Day, stage: Stage, tmp_path: Path
) -> None:
    """Held whole it filled the heap, and every table went through all of it."""
    landed = export_directory(staged_odd_day.exports, staged_odd_day.cluster, staged_odd_day.ds)
    read = shutil.copytree(landed, tmp_path / "export")
    parts = Stage(str(tmp_path), "parts")

    silver = read_silver(spark, str(read), load_manifest(read), parts)
    shutil.rmtree(read)
    for part in Path(parts.work("parsed_line")).rglob("*.parquet"):
        # The records are asked which lines count where a broker was asked at two addresses.
        if part.parent.name not in {"table_name=topic_route", "table_name=export_record"}:
            part.write_bytes(b"not what a table of routes reads")

    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
    routes = {tuple(row) for row in silver["topic_route"].collect()}
    assert routes == {tuple(row.values()) for row in staged_rows(stage, "topic_route")}


def test_lines_have_the_same_numbers_when_files_are_read_in_many_parts(
    spark: SparkSession, staged_odd_day: Day, stage: Stage, tmp_path: Path
) -> None:
    day = staged_odd_day
    directory = export_directory(day.exports, day.cluster, day.ds)
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    spark.conf.set(names[0], "3000b")
    spark.conf.set(names[1], "0b")
    try:
        parts = Stage(str(tmp_path), "parts")
        silver = read_silver(spark, str(directory), load_manifest(directory), parts)
        read = [row.asDict() for row in silver["export_record"].collect()]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

    # Each task that reads lines writes their records to a file of its own.
    written = Path(parts.work("parsed_line")) / "table_name=export_record"
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
