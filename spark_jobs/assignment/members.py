"""Column expressions over `member_ids` and `variants`, the members in a row of `subscriptions.subscriptions`.

Belongs here: expressions over one row. Does not belong here: the choice of the member list (`subscriptions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column


def ids_where(condition: Callable[[Column], Column]) -> Column:
    """Return the ids of the members for which the condition holds, each once; null where the members are not known."""
    return F.array_distinct(
        F.transform(F.filter("variants", condition), lambda member: F.get("member_ids", member["slot"]))
    )


def unsubscribed_ids() -> Column:
    """Return the ids of the members that could read the topic and do not subscribe to it; gRPC clients subscribe to no more than they read."""
    return ids_where(lambda member: ~member["is_subscribed"] & ~member["is_grpc"])


def shared_client_ids() -> Column:
    """Return the client ids behind which several processes are: array<struct<client_id, process_count>>.

    Only processes that answered when they were asked themselves are counted. Connections are no proof of processes: one that
    died unnoticed stays on a broker's list for up to two minutes.
    """
    return _ids_with(lambda member: member["process_count"] > 1, "process_count")


def repeated_ids() -> Column:
    """Return the client ids of which it is open how many processes they have: array<struct<client_id, connection_count>>.

    Every broker that lists such an id lists it more than once, and no process was asked itself: there are several, or one with
    connections that died. Where some broker lists the id once there is one process, for each connects to every broker.
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
    """Count the distinct values other than null that the members have in a field of `variants`."""
    return F.size(F.array_compact(F.array_distinct(F.transform("variants", lambda member: member[field]))))
