"""Fewer calls to the JVM, with the same results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import functions as F  # noqa: N812  # the name in PySpark's documentation

from spark_jobs.session import java

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the commands that Py4J sends, without those that release objects."""
    sent: list[str] = []
    original: Callable[..., Any] = ClientServerConnection.send_command

    def send_command(self: ClientServerConnection, command: str) -> Any:
        if not command.startswith("m\n"):
            sent.append(command)
        return original(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", send_command)
    return sent


def test_the_columns_of_a_selection_cost_one_call_for_ten(spark: SparkSession, calls: list[str]) -> None:
    names = [f"c{number}" for number in range(25)]
    rows = spark.range(1).select(*(F.lit(number).alias(name) for number, name in enumerate(names)))
    rows.select(*names)
    calls.clear()

    selected = rows.select(*names)

    # Three parts, a list, two parts added to it, its conversion and the selection.
    assert len(calls) == 8
    assert selected.first() == tuple(range(25))


def test_equal_values_of_other_types_are_other_literals(spark: SparkSession) -> None:
    values = [1, True, 1.0, "1", None, 0.0, -0.0, "true", 2**40, False, 0]

    row = spark.range(1).select(*(F.lit(value).alias(f"c{n}") for n, value in enumerate(values))).first()

    assert row is not None
    assert [repr(value) for value in row] == [repr(value) for value in values]


@pytest.mark.parametrize("count", [1, 2, 10, 11, 20, 21])
def test_lists_keep_their_elements_and_order(spark: SparkSession, count: int) -> None:
    words = [f"w{number}" for number in range(count)]

    row = spark.range(1).select(F.array(*map(F.lit, words)).alias("words"), F.lit("w0").isin(words)).first()

    assert row == (words, True)
    assert list(java(spark).java.util.ArrayList(words)) == words


def test_a_list_with_a_missing_value(spark: SparkSession) -> None:
    assert list(java(spark).java.util.ArrayList(["a", None, 1])) == ["a", None, 1]
