"""Build findings: `finding_when` defines one kind, `collect_findings` turns the kinds that a row shows into rows.

If another kind explains a kind, an `Explanation` in `explanations.py` matches the two by columns of `finding`. If these columns
are not sufficient, the kind sets `cause_sources`: the brokers, and causes of `source_failed`, whose own findings
(`broker_missing_on_nameserver`, `source_failed`) fully explain this one.

Does not belong here: the kinds.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from rebalance_ledger.tables import FINDING
from rebalance_ledger.tables.finding_advice import ADVICE, ADVICE_BY_CAUSE
from spark_jobs.day_key import DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rebalance_ledger.tables.model import Column as TableColumn

SUBJECT: Final = ("consumer_group", "topic", "broker_name", "client_id")
"""The columns that identify the subject of a finding, within a cluster's day."""

CAUSE_SOURCES: Final = "cause_sources"
"""A column that is not part of `finding` and is not published; see the module docstring."""

ID_COLUMNS: Final = ("finding_id", "parent_finding_id", "root_finding_id")
"""The columns that `explanations.py` adds."""

CAUSE_SOURCES_TYPE: Final = "array<struct<broker_name: string, likely_cause: string>>"

_EXAMPLE_COUNT = 5

_CASE_COLUMNS: Final = tuple(
    column for column in FINDING.columns if column.name not in {*SUBJECT, *ID_COLUMNS}
)


def collect_findings(rows: DataFrame, subject: tuple[str, ...], *cases: Column) -> DataFrame:
    """Return the findings of all cases for each row.

    Args:
        rows: Rows with `DAY`.
        subject: Columns of `SUBJECT` that identify the findings' subject; the others are null.
        *cases: See `finding_when`.

    Returns:
        `DAY`; the columns of `finding` without `ID_COLUMNS`; cause_sources.
    """
    absent = {name: F.lit(None).cast("string") for name in SUBJECT if name not in subject}
    return rows.select(*DAY, *subject, F.inline(F.array_compact(F.array(*cases)))).withColumns(absent)


def finding_when(
    kind: str,
    *,
    when: Column,
    severity: Column | str,
    evidence: tuple[Column | str, ...],
    advice: Column | str | None = None,
    cause_sources: Column | None = None,
    **columns: Column,
) -> Column:
    """Build one kind of finding: a struct of all columns but the subject if `when` holds, else null.

    Args:
        kind: Name of the kind.
        when: Whether the row has this problem.
        severity: Severity of the finding.
        evidence: Parts of the evidence sentence: columns, and strings as literal text.
        advice: Advice; None for the advice of the kind.
        cause_sources: Array of `CAUSE_SOURCES_TYPE`, see the module docstring; null or empty for none.
        **columns: Other columns of `finding`, with the evidence in numbers and lists.

    Raises:
        ValueError: `finding` has no such column.
    """
    remaining: dict[str, Column | str] = {
        "severity": severity,
        "kind": kind,
        "evidence": F.concat(*(F.lit(part) if isinstance(part, str) else part for part in evidence)),
        "advice": ADVICE[kind] if advice is None else advice,
        "page": f"docs/findings/{kind}.md",
        **columns,
    }
    values = {column: remaining.pop(column.name, None) for column in _CASE_COLUMNS}
    if remaining:
        raise ValueError(f"finding has no column {', '.join(remaining)}")
    return F.when(
        when,
        F.struct(
            *(_null(column) if value is None else _typed(value, column) for column, value in values.items()),
            (F.lit(None) if cause_sources is None else cause_sources)
            .cast(CAUSE_SOURCES_TYPE)
            .alias(CAUSE_SOURCES),
        ),
    )


def _typed(value: Column | str, column: TableColumn) -> Column:
    return _literal(value, column) if isinstance(value, str) else value.cast(column.type).alias(column.name)


@cache
def _literal(value: str, column: TableColumn) -> Column:
    return F.lit(value).cast(column.type).alias(column.name)


@cache
def _null(column: TableColumn) -> Column:
    """Return a typed null. It is cached, because most columns of most kinds are null and each function call goes to the JVM."""
    return F.expr(f"CAST(NULL AS {column.type}) AS {column.name}")


def first_n(values: Column) -> Column:
    """Return the first `_EXAMPLE_COUNT` of a set of strings, sorted."""
    return F.slice(F.array_sort(values), 1, _EXAMPLE_COUNT)


def join_first_n(values: Column) -> Column:
    """Return the first `_EXAMPLE_COUNT` of a set of strings, sorted and joined; append the total if there are more."""
    total = F.size(values)
    cut = F.concat(F.lit(f" ({_EXAMPLE_COUNT} of "), total.cast("string"), F.lit(")"))
    return F.concat(F.array_join(first_n(values), ", "), F.when(total > _EXAMPLE_COUNT, cut).otherwise(""))


def counted(number: Column, singular: str, plural: str) -> Column:
    """Return a number with its noun or verb in singular or plural, `1 queue has` or `2 queues have`; without a number, only the plural."""
    return F.concat_ws(" ", number.cast("string"), F.when(number == 1, singular).otherwise(plural))


def queue_name() -> Column:
    """Return the name of a row's queue in findings: `<broker_name>/<queue_id>`."""
    return F.concat_ws("/", "broker_name", "queue_id")


def sources(brokers: Column, likely_cause: str | None = None) -> Column:
    """Build `cause_sources` from an array of brokers, with one cause for all."""
    cause = F.lit(likely_cause).cast("string")
    return F.transform(
        brokers, lambda broker: F.struct(broker.alias("broker_name"), cause.alias("likely_cause"))
    )


def text(number: str) -> Column:
    """Return a numeric column as text for a sentence."""
    return F.col(number).cast("string")


def advice_for(kind: str, cause: Column) -> Column:
    """Return the advice for a cause; if the cause has none, that of the kind."""
    by_cause = F.create_map(*(F.lit(word) for pair in ADVICE_BY_CAUSE.items() for word in pair))
    return F.coalesce(F.try_element_at(by_cause, cause), F.lit(ADVICE[kind]))
