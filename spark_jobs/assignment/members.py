"""Column expressions over `member_ids` and `variants`, the members in a row of `subscriptions.subscriptions`.

Belongs here: expressions over one row. Does not belong here: the choice of the member list (`subscriptions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.assignment.request_modes import BETWEEN_STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column


def ids_where(condition: Callable[[Column], Column]) -> Column:
    """Return the distinct ids of the members for which the condition holds; null if the members are unknown."""
    return F.array_distinct(
        F.transform(F.filter("variants", condition), lambda member: F.get("member_ids", member["slot"]))
    )


def strategies_where(condition: Callable[[Column], Column]) -> Column:
    """Return the distinct strategies that members report for which the condition holds, in order; null if the members are unknown.

    A client id that reports several strategies has each of them.
    """
    reported = F.filter("variants", lambda member: condition(member) & member["strategy"].isNotNull())
    names = F.transform(reported, lambda member: F.split(member["strategy"], BETWEEN_STRATEGIES))
    return F.array_sort(F.array_distinct(F.flatten(names)))


def unsubscribed_ids() -> Column:
    """Return the ids of the members without a subscription to the topic; gRPC clients, which subscribe only to what they read, are excluded."""
    return ids_where(lambda member: ~member["is_subscribed"] & ~member["is_grpc"])


def shared_client_ids() -> Column:
    """Return the client ids that several processes share: array<struct<client_id, process_count>>.

    Only processes that answered directly are counted. Connections prove no process: a broker lists a dead connection for up to two
    minutes.
    """
    return _ids_with(lambda member: member["process_count"] > 1, "process_count")


def repeated_ids() -> Column:
    """Return the client ids with an unknown number of processes: array<struct<client_id, connection_count>>.

    Every broker that lists such an id lists it more than once, and no process answered directly. There are several processes, or one
    with dead connections. If a broker lists the id once, there is one process, because each process connects to every broker.
    """
    return _ids_with(
        lambda member: (member["process_count"] == 0) & (member["least_connection_count"] > 1),
        "least_connection_count",
    )


def _ids_with(condition: Callable[[Column], Column], count: str) -> Column:
    name = "process_count" if count == "process_count" else "connection_count"
    return F.array_distinct(
        F.transform(
            F.filter("variants", condition),
            lambda member: F.struct(
                F.get("member_ids", member["slot"]).alias("client_id"), member[count].alias(name)
            ),
        )
    )


def distinct_count(field: str) -> Column:
    """Count the distinct non-null values of a field of `variants`."""
    return F.size(F.array_compact(F.array_distinct(F.transform("variants", lambda member: member[field]))))
