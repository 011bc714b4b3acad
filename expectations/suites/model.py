"""The types of expectations, and the SQL that reduces violations to one number and a few examples.

Belongs here: the types that every suite uses, and the SQL around them. Does not belong here: any single expectation.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from expectations.suites.thresholds import MOST_EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rebalance_ledger.settings import Severity
    from rebalance_ledger.tables import Table

SUBJECT_COLUMNS: Final = ("consumer_group", "topic", "broker_name")
"""The subject columns of a violation, by which group rules and waivers select; null where no subject is known."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition on a table, and the range that its number must be in.

    Attributes:
        table: Table to judge.
        rule: Name of the rule; with the table name it is the stable id.
        sentence: The condition in one sentence.
        severity: Effect of a failure; None for an expectation that is judged only if the settings enable it.
        threshold_min: Minimum number allowed; None for no lower limit.
        threshold_max: Maximum number allowed; None for no upper limit. Mostly 0: the number counts violations.
        is_each_limited: Whether the metric is a number per subject with limits per group in the settings; the judged number
            is then the count of subjects above their limit.
        is_of_two_days: Whether the day is compared with a baseline; without one the expectation is not judged.
        judges: Columns in which every wrong value violates it, `column` of its own table or `table.column`; without the columns
            that it only reads for comparison, and those in which it detects only some wrong values.
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
        """The judged columns, each as `table.column`."""
        return tuple(name if "." in name else f"{self.table.name}.{name}" for name in self.judges)

    @property
    def expectation_id(self) -> str:
        """The stable id, for example `queue_assignment.one_owner`."""
        return f"{self.table.name}.{self.rule}"

    @property
    def has_limit(self) -> bool:
        """Whether it has a limit other than zero violations."""
        return bool(self.threshold_min or self.threshold_max)


@dataclass(frozen=True, slots=True)
class Violation:
    """A condition on the rows of a relation that detects violations of an expectation.

    Attributes:
        expectation: Violated expectation.
        when: SQL boolean over the relation's row; null counts as false.
        example: SQL string that describes the violation.
        count: SQL number of violations that the row represents.
    """

    expectation: Expectation
    when: str
    example: str
    count: str = "1"


@dataclass(frozen=True, slots=True)
class Suite:
    """A set of expectations that are judged and shown together.

    Attributes:
        name: Name of the page in Data Docs.
        expectations: Expectations of the suite.
    """

    name: str
    expectations: tuple[Expectation, ...]


def quoted(text: str) -> str:
    """Return a text as a Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted_list(texts: Iterable[str]) -> str:
    """Return texts as a parenthesised list for `IN`."""
    return f"({', '.join(map(quoted, texts))})"


def text_or_null(value: str) -> str:
    """Return SQL for a value as text, with `null` for a null."""
    return f"coalesce(CAST({value} AS STRING), 'null')"


def subject_columns(known: Collection[str] = ()) -> str:
    """Return the SQL subject columns: those that the relation has, and null for the others."""
    return ", ".join(name if name in known else f"CAST(NULL AS STRING) AS {name}" for name in SUBJECT_COLUMNS)


def violations_in(relation: str, violations: Iterable[Violation], subject: Collection[str] = ()) -> str:
    """Return a query over `relation` with one row per violation: expectation_id, amount, example, `SUBJECT_COLUMNS`.

    The query detects all violations in one pass over the relation.

    Args:
        relation: Relation to check.
        violations: Conditions on its rows.
        subject: The `SUBJECT_COLUMNS` of the relation that identify the affected subject.
    """
    structs = ",\n    ".join(
        f"IF({violation.when}, named_struct('expectation_id', {quoted(violation.expectation.expectation_id)}, "
        f"'amount', CAST({violation.count} AS DOUBLE), 'example', {violation.example}), NULL)"
        for violation in violations
    )
    return f"""SELECT violation.*, {subject_columns(subject)}
FROM {relation}
LATERAL VIEW explode(array_compact(array(
    {structs}))) AS violation"""


_MOST_EXAMPLES_OF_SUBJECTS: Final = 1000
"""Maximum number of examples that are kept for one expectation, over all subjects."""


def metric_statement(expectations: Iterable[Expectation], queries: Iterable[str], common_tables: str) -> str:
    """Return one statement that computes number, first examples and affected subjects of every expectation.

    The number is the sum of the amounts that the queries return, mostly 1 for each violation, and 0 without any. The list
    of subjects is complete: each subject once, with its part of the number and its own first examples. Memory is bounded
    for any data: before they are collected, examples are limited by a running row number to the first few, and to the
    first thousand of an expectation.

    Args:
        expectations: Expectations to measure.
        queries: Queries with the columns of `violations_in`, in that order.
        common_tables: Common table expressions of the queries, `name AS (…), …`.

    Returns:
        Spark SQL with the columns of `measurement.METRIC_SCHEMA`.
    """
    ids = ", ".join(quoted(expectation.expectation_id) for expectation in expectations)
    union = "\nUNION ALL\n".join(queries)
    subject = ", ".join(SUBJECT_COLUMNS)
    return f"""
WITH {common_tables},
seen AS (
SELECT *, TRUE AS is_affected FROM (
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
    expectation_id, {subject}, bool_or(is_affected) AS is_affected, sum(amount) AS amount,
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
  array_sort(collect_list(struct({subject}, amount, examples)) FILTER (WHERE is_affected)) AS affected_subjects
FROM of_subject
GROUP BY expectation_id
"""
