"""Findings on groups by their members' subscriptions and by the brokers' configuration."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from spark_jobs.findings.groups import of_disabled_groups, of_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

DAY = ("shop", date(2026, 11, 16))
DAY_COLUMNS = "cluster string, ds date, consumer_group string"
MEMBERS = "array<struct<slot: int, is_subscribed: boolean, is_grpc: boolean>>"

Expression = tuple[str | None, str | None]
"""Type and text."""


def tags(text: str | None) -> Expression:
    return ("TAG", text)


EQUAL: dict[str, tuple[Expression, ...]] = {
    "order and spaces": (tags("A||B"), tags("B || A"), tags("\tA || B||A|| ||")),
    "everything": (tags("*"), tags(""), tags(None), (None, "*"), ("", "")),
    "another type": (("SQL92", "a > 1"), ("SQL92", "a > 1")),
}
DIFFERENT: dict[str, tuple[tuple[Expression, ...], list[str]]] = {
    "tags": ((tags("A||B"), tags("A")), ["A", "A || B"]),
    "case": ((tags("a"), tags("A")), ["A", "a"]),
    "a tag and everything": ((tags("*"), tags("*||A")), ["*", "* || A"]),
    # With a space, it is not SUB_ALL but a tag.
    "a tag named like everything": ((tags("*"), tags("* ")), ["*", "*"]),
    "types": ((tags("a"), ("SQL92", "a")), ["SQL92 a", "a"]),
    "spaces in another type": ((("SQL92", "a > 1"), ("SQL92", "a>1")), ["SQL92 a > 1", "SQL92 a>1"]),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Row]:
    """Return the name of each case with a finding -> the finding."""
    cases = EQUAL | {name: expressions for name, (expressions, _) in DIFFERENT.items()}
    groups = [
        (*DAY, name, "t", "online", [f"c{slot}" for slot in range(len(expressions))], [])
        for name, expressions in cases.items()
    ]
    rows = [
        (*DAY, name, f"c{slot}", "t", *expression)
        for name, expressions in cases.items()
        for slot, expression in enumerate(expressions)
    ]
    subscriptions = spark.createDataFrame(
        groups,
        f"{DAY_COLUMNS}, topic string, group_state string, member_ids array<string>, variants {MEMBERS}",
    )
    client_subscription = spark.createDataFrame(
        rows, f"{DAY_COLUMNS}, client_id string, topic string, expression_type string, expression string"
    )
    return {
        row["consumer_group"]: row for row in of_subscriptions(subscriptions, client_subscription).collect()
    }


def test_expressions_that_filter_alike_are_no_finding(found: dict[str, Row]) -> None:
    assert found.keys() == DIFFERENT.keys()


@pytest.mark.parametrize("name", DIFFERENT)
def test_expressions_that_filter_differently_are_named(found: dict[str, Row], name: str) -> None:
    assert found[name]["seen_values"] == DIFFERENT[name][1]
    assert found[name]["value_count"] == 2
    assert found[name]["evidence"] == (
        f"The 2 members subscribe to the topic with 2 filter expressions: {', '.join(DIFFERENT[name][1])}."
    )


PUSH, PULL = "CONSUME_PASSIVELY", "CONSUME_ACTIVELY"
NO_BROADCAST = "consumeBroadcastEnable=false"
NO_CONSUMPTION = "consumeEnable=false"

# Pairs of consumeEnable and consumeBroadcastEnable by broker, the group's state, and how its members consume.
CONFIGURED: dict[str, tuple[list[tuple[bool | None, bool | None]], str, str]] = {
    "everywhere": ([(False, True), (False, True)], "online", PUSH),
    "at_one": ([(True, True), (False, True)], "online", PUSH),
    "unknown_at_one": ([(None, None), (False, True)], "online", PUSH),
    "broadcasting": ([(True, False), (False, False)], "broadcasting", PUSH),
    "allowed": ([(True, True)], "online", PUSH),
    "not_reported": ([(None, None)], "broadcasting", PUSH),
    "clustering": ([(True, False)], "online", PUSH),
    "lite_pull": ([(True, False)], "broadcasting", PULL),
    "without_members": ([(False, True)], "offline", PUSH),
}
REFUSED = {
    "everywhere": ("critical", ["b0", "b1"], [NO_CONSUMPTION], "All"),
    "at_one": ("warning", ["b1"], [NO_CONSUMPTION], "Some"),
    "unknown_at_one": ("warning", ["b1"], [NO_CONSUMPTION], "Some"),
    "broadcasting": ("critical", ["b0", "b1"], [NO_BROADCAST, NO_CONSUMPTION], "All"),
}
"""Group -> severity, brokers, settings and the first word of the evidence."""


def test_groups_that_brokers_refuse_are_findings(spark: SparkSession) -> None:
    subscriptions = spark.createDataFrame(
        [(*DAY, name, topic, state) for name, (_, state, _) in CONFIGURED.items() for topic in ("t", "u")],
        f"{DAY_COLUMNS}, topic string, group_state string",
    )
    brokers = [
        (name, f"b{number}", *enabled, state, consume_type)
        for name, (configurations, state, consume_type) in CONFIGURED.items()
        for number, enabled in enumerate(configurations)
    ]
    groups = spark.createDataFrame(
        [(*DAY, *row[:4]) for row in brokers],
        f"{DAY_COLUMNS}, broker_name string, is_consume_enabled boolean, is_broadcast_enabled boolean",
    )
    models = {"online": "CLUSTERING", "broadcasting": "BROADCASTING", "offline": None}
    presence = spark.createDataFrame(
        [
            (*DAY, name, broker, "offline" if state == "offline" else "online", models[state], consume_type)
            for name, broker, _, _, state, consume_type in brokers
        ],
        f"{DAY_COLUMNS}, broker_name string, state string, message_model string, consume_type string",
    )
    found = {
        row["consumer_group"]: row for row in of_disabled_groups(subscriptions, groups, presence).collect()
    }

    assert {
        name: (row["severity"], row["examples"], row["seen_values"], row["evidence"].split()[0])
        for name, row in found.items()
    } == REFUSED
    assert {name: row["value_count"] for name, row in found.items()} == {
        name: len(brokers) for name, (_, brokers, _, _) in REFUSED.items()
    }
    assert found["broadcasting"]["evidence"] == (
        "All brokers that have its configuration give its members no messages (consumeBroadcastEnable=false, consumeEnable=false): "
        "b0, b1."
    )
