"""What an expectation is, and how rows that break it become one number and a few examples.

What belongs here: the shapes that every suite uses, and the SQL around them. What does not: any single expectation.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from expectations.thresholds import MOST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tables import Table

Severity = Literal["block", "warn"]
"""`block`: a failure keeps the day from being published; `warn`: it is published and reported."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One thing that must hold, and the range in which its number must be.

    Attributes:
        table: the table judged.
        rule: the rule's name; with the table's it is the expectation's stable id.
        sentence: what must hold, in one sentence.
        severity: what a failure does.
        threshold_min: least number allowed; None for no lower limit.
        threshold_max: greatest number allowed; None for no upper limit. Mostly 0: the number counts violations.
    """

    table: Table
    rule: str
    sentence: str
    severity: Severity = "block"
    threshold_min: float | None = None
    threshold_max: float | None = 0.0

    @property
    def expectation_id(self) -> str:
        """The stable id, for example `queue_assignment.one_owner`."""
        return f"{self.table.name}.{self.rule}"


@dataclass(frozen=True, slots=True)
class Breach:
    """How to see, in a row of some relation, that an expectation is broken.

    Attributes:
        expectation: what is broken.
        when: SQL boolean over the relation's row; null counts as false.
        example: SQL string that names the offender.
        count: SQL number of violations that the row stands for.
    """

    expectation: Expectation
    when: str
    example: str
    count: str = "1"


@dataclass(frozen=True, slots=True)
class Suite:
    """The expectations that are judged and shown together.

    Attributes:
        name: the name of the page in Data Docs.
        expectations: what must hold.
    """

    name: str
    expectations: tuple[Expectation, ...]


def quoted(text: str) -> str:
    """A text as a Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted_list(texts: Iterable[str]) -> str:
    """Texts as a parenthesised list for `IN`."""
    return f"({', '.join(map(quoted, texts))})"


def text_or_null(value: str) -> str:
    """SQL for any value as text, with the word `null` for a null."""
    return f"coalesce(CAST({value} AS STRING), 'null')"


def breaches_in(relation: str, breaches: Iterable[Breach]) -> str:
    """A query over `relation` with one row per breach: expectation_id, amount, example.

    All breaches of a relation are seen in one pass over it.
    """
    seen = ",\n    ".join(
        f"IF({breach.when}, named_struct('expectation_id', {quoted(breach.expectation.expectation_id)}, "
        f"'amount', CAST({breach.count} AS DOUBLE), 'example', {breach.example}), NULL)"
        for breach in breaches
    )
    return f"SELECT inline(array_compact(array(\n    {seen})))\nFROM {relation}"


def measure_statement(expectations: Iterable[Expectation], queries: Iterable[str], common_tables: str) -> str:
    """One statement that gives every expectation its number and its first examples.

    The number is the sum of the amounts that the queries give, mostly 1 for each breach, and 0 without any. Memory
    is bounded whatever is wrong with the data: examples are cut to the first few by a running row number before they
    are collected.

    Args:
        expectations: what is measured.
        queries: queries with the columns expectation_id string, amount double, example string; see `breaches_in`.
        common_tables: `name AS (…), …` that the queries use.

    Returns:
        Spark SQL with the columns expectation_id string, observed double, examples array<string>.
    """
    ids = ", ".join(quoted(expectation.expectation_id) for expectation in expectations)
    union = "\nUNION ALL\n".join(queries)
    return f"""
WITH {common_tables},
seen AS (
{union}
UNION ALL
SELECT explode(array({ids})) AS expectation_id, 0D AS amount, CAST(NULL AS STRING) AS example
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY expectation_id ORDER BY example NULLS LAST) AS place FROM seen
)
SELECT
  expectation_id,
  sum(amount) AS observed,
  array_sort(collect_list(example) FILTER (WHERE place <= {MOST_EXAMPLES})) AS examples
FROM placed
GROUP BY expectation_id
"""
