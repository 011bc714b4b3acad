"""The messages that wait in queues without an owner are counted only where it is known at which one the group starts."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from spark_jobs.findings.ownership import of_queues

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

DAY = ("shop", date(2026, 11, 16))
DAY_COLUMNS = "cluster string, ds date"
FIRST, LAST = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET"
PUSH, PULL = "CONSUME_PASSIVELY", "CONSUME_ACTIVELY"
UNKNOWN = " How many messages wait there is unknown."

# Committed offsets of queues 0, 1, … (None: not reported), their oldest and next message, and the settings at brokers.
CASES: dict[
    str, tuple[list[int | None], tuple[int, int] | None, list[tuple[str | None, str]], int | None, str]
] = {
    "committed": ([4990], (1000, 5000), [(LAST, PUSH)], 10, " 10 messages wait there."),
    "committed_and_removed": ([5], (1000, 5000), [(LAST, PUSH)], 4000, " 4000 messages wait there."),
    "never_committed": ([0], (1000, 5000), [(LAST, PUSH)], None, UNKNOWN),
    "never_committed_to_a_static_topic": ([-1], (1000, 5000), [(LAST, PUSH)], None, UNKNOWN),
    # The broker answers 0 if the message is in memory, which is not reported.
    "never_committed_since_the_first_message": ([0], (0, 5000), [(LAST, PUSH)], None, UNKNOWN),
    "one_of_two_committed": (
        [4990, 0],
        (1000, 5000),
        [(LAST, PUSH)],
        10,
        " At least 10 messages wait there.",
    ),
    "starts_at_the_first": ([0], (1000, 5000), [(FIRST, PUSH)] * 2, 4000, " 4000 messages wait there."),
    "not_reported": ([None], (1000, 5000), [(FIRST, PUSH)], None, UNKNOWN),
    "settings_differ": ([0], (1000, 5000), [(FIRST, PUSH), (LAST, PUSH)], None, UNKNOWN),
    "setting_unknown": ([0], (1000, 5000), [(FIRST, PUSH), (None, PUSH)], None, UNKNOWN),
    "pulled": ([0], (1000, 5000), [(FIRST, PULL)], None, UNKNOWN),
    "empty": ([0], (1000, 1000), [(LAST, PUSH)], 0, " 0 messages wait there."),
    "no_offsets": ([0], None, [(FIRST, PUSH)], None, UNKNOWN),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Row]:
    queues = [
        (name, queue_id, offset, limits)
        for name, (offsets, limits, _, _, _) in CASES.items()
        for queue_id, offset in enumerate(offsets)
    ]
    drift = spark.createDataFrame(
        [(*DAY, name, name, "a", queue, "unowned", "online", 2) for name, queue, _, _ in queues],
        f"{DAY_COLUMNS}, consumer_group string, topic string, broker_name string, queue_id int, state string, group_state string, "
        "client_count int",
    ).selectExpr(
        "*",
        "CAST(NULL AS STRING) AS likely_cause",
        "CAST(NULL AS STRING) AS expected_reason",
        "CAST(array() AS ARRAY<STRING>) AS observed_client_ids",
    )
    progress = spark.createDataFrame(
        [
            (*DAY, name, name, "a", queue, 5000, offset)
            for name, queue, offset, _ in queues
            if offset is not None
        ],
        f"{DAY_COLUMNS}, consumer_group string, topic string, broker_name string, queue_id int, broker_offset bigint, "
        "consumer_offset bigint",
    )
    offsets = spark.createDataFrame(
        [(*DAY, name, "a", queue, *limits) for name, queue, _, limits in queues if limits is not None],
        f"{DAY_COLUMNS}, topic string, broker_name string, queue_id int, min_offset bigint, max_offset bigint",
    )
    presence = spark.createDataFrame(
        [(*DAY, name, "online", *setting) for name, case in CASES.items() for setting in case[2]]
        + [(*DAY, "starts_at_the_first", "offline", None, None)],
        f"{DAY_COLUMNS}, consumer_group string, state string, consume_from_where string, consume_type string",
    )
    return {row["consumer_group"]: row for row in of_queues(drift, progress, offsets, presence).collect()}


@pytest.mark.parametrize("name", CASES)
def test_messages_are_counted_only_if_it_is_known_where_the_group_starts(
    found: dict[str, Row], name: str
) -> None:
    *_, count, words = CASES[name]

    assert found[name]["waiting_message_count"] == count
    assert found[name]["evidence"].endswith(f".{words}")
