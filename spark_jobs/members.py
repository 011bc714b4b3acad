"""What can be asked of `member_ids` and `variants`, the members in a row of `subscriptions.subscriptions`.

What belongs here: expressions over one row. What does not: which list of members is taken (`subscriptions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column


def ids_where(condition: Callable[[Column], Column]) -> Column:
    """The ids of the members for which the condition holds, each once; null where the members are not known."""
    return F.array_distinct(
        F.transform(F.filter("variants", condition), lambda member: F.get("member_ids", member["slot"]))
    )


def twins() -> Column:
    """The client ids behind which several processes are: array<struct<client_id, process_count>>.

    Processes that answered when they were asked themselves are counted. Else an id counts that every broker which lists
    it lists more than once: twice on some brokers only is the mark of a connection that died unnoticed.
    """

    def process_count(member: Column) -> Column:
        has_answered = member["process_count"] > 0
        return F.when(has_answered, member["process_count"]).otherwise(member["least_connection_count"])

    return F.array_distinct(
        F.transform(
            F.filter("variants", lambda member: process_count(member) > 1),
            lambda member: F.struct(
                F.get("member_ids", member["slot"]).alias("client_id"),
                process_count(member).alias("process_count"),
            ),
        )
    )


def distinct_count(field: str) -> Column:
    """How many different values, null not counted, the members have in a field of `variants`."""
    return F.size(F.array_compact(F.array_distinct(F.transform("variants", lambda member: member[field]))))
