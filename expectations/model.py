"""What an expectation is, and how rows that break it become one number and a few examples.

What belongs here: the shapes that every suite uses, and the SQL around them. What does not: any single expectation.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from expectations.thresholds import MOST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rebalance_ledger.settings import Severity
    from rebalance_ledger.tables import Table

SUBJECT_COLUMNS: Final = ("consumer_group", "topic", "broker_name")
"""What an offender may concern: what rules of groups and waivers go by. Null where it concerns none in particular."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One thing that must hold, and the range in which its number must be.

    Attributes:
        table: the table judged.
        rule: the rule's name; with the table's it is the expectation's stable id.
        sentence: what must hold, in one sentence.
        severity: what a failure does; None for an expectation that is judged only where settings ask for it.
        threshold_min: least number allowed; None for no lower limit.
        threshold_max: greatest number allowed; None for no upper limit. Mostly 0: the number counts violations.
        is_each_limited: whether what is measured is a number of each subject, for which settings have limits of groups;
            the number judged is then the count of the subjects above theirs.
        is_of_two_days: whether the day is compared with an earlier one; without one there is nothing to judge.
        judges: columns in which a wrong value breaks it, `column` of its own table or `table.column`. Not what it reads to know
            what is right, and not a wrong value that it may or may not see.
    """

    table: Table
    rule: str
    sentence: str
    severity: Severity | None = "block"
    threshold_min: float | None = None
    threshold_max: float | None = 0.0
    is_each_limited: bool = False
    is_of_two_days: bool = False
    judges: tuple[str, ...] = ()

    @property
    def judged_columns(self) -> tuple[str, ...]:
        """What it judges, each as `table.column`."""
        return tuple(name if "." in name else f"{self.table.name}.{name}" for name in self.judges)

    @property
    def expectation_id(self) -> str:
        """The stable id, for example `queue_assignment.one_owner`."""
        return f"{self.table.name}.{self.rule}"

    @property
    def has_limit(self) -> bool:
        """Whether its limit is a matter of degree, and not just that there be no violation."""
        return bool(self.threshold_min or self.threshold_max)


@dataclass(frozen=True, slots=True)
class Violation:
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


def subject_columns(known: Collection[str] = ()) -> str:
    """SQL columns of what an offender concerns: those that the relation knows, and null for the others."""
    return ", ".join(name if name in known else f"CAST(NULL AS STRING) AS {name}" for name in SUBJECT_COLUMNS)


def violations_in(relation: str, violations: Iterable[Violation], subject: Collection[str] = ()) -> str:
    """A query over `relation` with one row per violation: expectation_id, amount, example, and `SUBJECT_COLUMNS`.

    All violations of a relation are seen in one pass over it.

    Args:
        relation: what is looked at.
        violations: what may be wrong with one of its rows.
        subject: those of `SUBJECT_COLUMNS` that it has and that say whom a violation concerns.
    """
    seen = ",\n    ".join(
        f"IF({violation.when}, named_struct('expectation_id', {quoted(violation.expectation.expectation_id)}, "
        f"'amount', CAST({violation.count} AS DOUBLE), 'example', {violation.example}), NULL)"
        for violation in violations
    )
    return f"""SELECT violation.*, {subject_columns(subject)}
FROM {relation}
LATERAL VIEW explode(array_compact(array(
    {seen}))) AS violation"""


_MOST_EXAMPLES_OF_SUBJECTS: Final = 1000
"""Examples that are kept for one expectation, over all that it concerns."""

METRIC_SCHEMA: Final = (
    "expectation_id string, observed double, examples array<string>, offenders array<struct<"
    "consumer_group: string, topic: string, broker_name: string, amount: double, examples: array<string>>>"
)
"""The columns of every statement's result, as Spark DDL."""


def metric_statement(expectations: Iterable[Expectation], queries: Iterable[str], common_tables: str) -> str:
    """One statement that gives every expectation its number, its first examples, and whom it concerns.

    The number is the sum of the amounts that the queries give, mostly 1 for each violation, and 0 without any. Whom it
    concerns is complete: each subject once, with its part of the number and its own first examples. Memory
    is bounded whatever is wrong with the data: examples are cut to the first few by a running row number before they
    are collected, and to the first thousand of an expectation.

    Args:
        expectations: what is measured.
        queries: queries with the columns of `violations_in`, in that order.
        common_tables: `name AS (…), …` that the queries use.

    Returns:
        Spark SQL with the columns of `METRIC_SCHEMA`.
    """
    ids = ", ".join(quoted(expectation.expectation_id) for expectation in expectations)
    union = "\nUNION ALL\n".join(queries)
    subject = ", ".join(SUBJECT_COLUMNS)
    return f"""
WITH {common_tables},
seen AS (
SELECT *, TRUE AS is_offender FROM (
{union}
)
UNION ALL
SELECT explode(array({ids})), 0D, CAST(NULL AS STRING), {subject_columns()}, FALSE
),
placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY expectation_id ORDER BY example NULLS LAST) AS place,
    row_number() OVER (PARTITION BY expectation_id, {subject} ORDER BY example NULLS LAST) AS place_of_subject
  FROM seen
),
of_subject AS (
  SELECT
    expectation_id, {subject}, bool_or(is_offender) AS is_offender, sum(amount) AS amount,
    collect_list(example) FILTER (WHERE place <= {MOST_EXAMPLES}) AS first_examples,
    array_sort(collect_list(example) FILTER (
      WHERE place_of_subject <= {MOST_EXAMPLES} AND place <= {_MOST_EXAMPLES_OF_SUBJECTS}
    )) AS examples
  FROM placed
  GROUP BY expectation_id, {subject}
)
SELECT
  expectation_id,
  sum(amount) AS observed,
  array_sort(flatten(collect_list(first_examples))) AS examples,
  array_sort(collect_list(struct({subject}, amount, examples)) FILTER (WHERE is_offender)) AS offenders
FROM of_subject
GROUP BY expectation_id
"""
