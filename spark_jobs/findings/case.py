"""The shape of a finding: what every kind gives, and how the kinds that one relation shows become rows.

What does not belong here: any single kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tables import FINDING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

SUBJECT: Final = ("consumer_group", "topic", "broker_name", "client_id")
"""The columns that say whom a finding is about. No kind is about a single queue, so `queue_id` is null so far."""

_EXAMPLE_COUNT = 5

ADVICE_BY_CAUSE: Final[Mapping[str, str]] = {
    "mixed_strategies": "Give every client of the group the same allocateMessageQueueStrategy; restart the odd ones.",
    "mixed_clients": "Bring all clients of the group to one language and release: these divide by different rules.",
    "old_machine_room": "Take clients of 4.8.0 or later: older ones, and Go, cut MACHINE_ROOM's runs from the whole list.",
    "duplicate_client_id": "If several processes run under the id, give each an instanceName of its own: all take one share, "
    "and the others are nobody's. A connection that died goes within two minutes.",
    "subscriptions_differ": "Let every member subscribe to the same topics, or put those that differ in another group.",
    "route_views_differ": "Compare mqadmin topicRoute by name server, and mend the broker or name server that is odd.",
    "room_without_clients": "Add the broker's room to the group's consumeridcs, or use MACHINE_ROOM_NEARBY.",
    "config_list_gap": "Put the queue in one client's list; retry queues are in nobody's list unless they are listed.",
    "config_list_overlap": "Take the queue out of all lists but one.",
    "member_lists_differ": "Compare mqadmin consumerConnection by broker; a dead connection goes within two minutes.",
    "route_vanished": "Bring the broker back or unsubscribe: without a route clients keep the queues that they hold.",
    "parameters_differ": "Give every client of the group the same parameters; ownership_drift.deviating_client_id names the odd one.",
    "not_yet_rebalanced": "Look again after a minute: a client has just started or is giving the queue up.",
}
"""One line for each cause of `ownership_drift` that an owner's mistake can have."""


def found(rows: DataFrame, subject: tuple[str, ...], *cases: Column) -> DataFrame:
    """The findings that the cases see in each row; `subject` names the columns that say whom they are about."""
    absent = {name: F.lit(None).cast("string") for name in SUBJECT if name not in subject}
    return (
        rows.select(*subject, F.inline(F.array_compact(F.array(*cases))))
        .withColumns(absent | {"queue_id": F.lit(None).cast("int")})
        .select(*(column.name for column in FINDING.columns))
    )


def case(
    kind: str,
    *,
    when: Column,
    severity: Column | str,
    evidence: tuple[Column | str, ...],
    advice: Column | str,
    **columns: Column,
) -> Column:
    """One kind of finding: a struct of all columns but the subject where `when` holds, else null.

    Args:
        kind: the kind's name.
        when: whether the row shows it.
        severity: how bad it is.
        evidence: the parts of the sentence; texts stand for themselves.
        advice: what to do.
        **columns: the evidence, as columns of `finding`.
    """
    given: dict[str, Column | str] = {
        "severity": severity,
        "kind": kind,
        "evidence": F.concat(*(F.lit(part) if isinstance(part, str) else part for part in evidence)),
        "advice": advice,
        "page": f"docs/findings/{kind}.md",
        **columns,
    }
    values = {
        column: given.pop(column.name, None) for column in FINDING.columns if column.name not in SUBJECT
    }
    if given:
        raise ValueError(f"finding has no column {', '.join(given)}")
    return F.when(
        when,
        F.struct(
            *(
                (value if isinstance(value, Column) else F.lit(value)).cast(column.type).alias(column.name)
                for column, value in values.items()
                if column.name != "queue_id"
            )
        ),
    )


def few(values: Column) -> Column:
    """The first few of a set of texts, in order."""
    return F.slice(F.array_sort(values), 1, _EXAMPLE_COUNT)


def listed(values: Column) -> Column:
    """The first few of a set of texts as one text."""
    return F.array_join(few(values), ", ")


def text(number: str) -> Column:
    """A column with a number, for a sentence."""
    return F.col(number).cast("string")


def advice_for(cause: Column, otherwise: str) -> Column:
    """What to do about a cause; `otherwise` where none is known."""
    by_cause = F.create_map(*(F.lit(word) for pair in ADVICE_BY_CAUSE.items() for word in pair))
    return F.coalesce(F.try_element_at(by_cause, cause), F.lit(otherwise))
