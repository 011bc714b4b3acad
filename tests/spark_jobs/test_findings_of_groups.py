"""Filter expressions that let the same messages through are no difference."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from spark_jobs.findings.groups import of_subscriptions

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
