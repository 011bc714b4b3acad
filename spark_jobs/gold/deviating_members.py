"""Find the member of a group that uses other strategy parameters than the rest: cause `parameters_differ` of `ownership_drift`.

Clients do not report the parameters of their strategy, but the queues that they hold can prove them: all members but one hold
exactly the queues that the strategy gives them with the group's parameters, and that one holds exactly the queues that the
strategy gives it with other parameters.

Belongs here: which member that is. Does not belong here: whether another cause has evidence (`ownership_drift`).
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from spark_jobs.day_key import DAY
from strategies import MessageQueue, RocketMQError, UnknownNameError, get_strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

_SUBSCRIPTION: Final = (*DAY, "consumer_group", "topic")

_STRATEGIES: Final = ("MACHINE_ROOM", "CONSISTENT_HASH")
"""Those with parameters of which few values are likely, so that they can be tried."""

_MOST_ROOMS: Final = 8
_MOST_NODES: Final = 200_000
"""Of a ring that is tried: members times virtual nodes."""

_VIRTUAL_NODE_COUNTS: Final = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 24, 25, 30, 32, 40, 50, 60, 64, 80, 100, 120, 128, 150, 160, 200, 250,
    256, 300, 400, 500, 512, 1000, 1024, 2000, 2048,
)  # fmt: skip
"""Values that people choose."""

_MOST_CHANCE: Final = 0.1
"""How likely it may be that a table that has nothing to do with the strategy is among those that were tried."""


class Deviation(NamedTuple):
    """A member that shares by other parameters, as `client_id` and a text such as `consumeridcs = hz`."""

    client_id: str
    parameters: str


Queue = tuple[str, int]
"""Broker name and queue id."""

_EXPLAINED_DDL: Final = (
    "cluster string, ds date, consumer_group string, topic string, "
    "deviation struct<client_id: string, parameters: string>"
)


def deviating_members(subscriptions: DataFrame, assignments: DataFrame, held: DataFrame) -> DataFrame:
    """Return the members that share by other parameters.

    Columns: `DAY`, consumer_group, topic, deviation struct<client_id, parameters>.

    Args:
        subscriptions: see `subscriptions.subscriptions`.
        assignments: `queue_assignment`.
        held: `DAY`, consumer_group, topic, broker_name, queue_id, holder_id: who has which queue.
    """
    queue = F.struct("broker_name", "queue_id")
    chosen = assignments.where(F.col("is_effective") & F.col("strategy").isin(*_STRATEGIES)).where(
        "client_id is not null"
    )
    strategies = chosen.groupBy(*_SUBSCRIPTION).agg(F.max("strategy").alias("strategy"))
    sides = chosen.select(
        *_SUBSCRIPTION, "client_id", queue.alias("queue"), F.lit(col=True).alias("is_expected")
    ).unionByName(
        held.join(strategies, list(_SUBSCRIPTION), "left_semi").select(
            *_SUBSCRIPTION,
            F.col("holder_id").alias("client_id"),
            queue.alias("queue"),
            F.lit(col=False).alias("is_expected"),
        )
    )

    def side(*, is_expected: bool) -> Column:
        is_of_side = F.col("is_expected") == F.lit(is_expected)
        return F.array_sort(F.collect_set(F.when(is_of_side, F.col("queue"))))

    tables = (
        sides.groupBy(*_SUBSCRIPTION, "client_id")
        .agg(side(is_expected=True).alias("expected"), side(is_expected=False).alias("held"))
        .withColumn("fits", F.col("expected") == F.col("held"))
        .groupBy(*_SUBSCRIPTION)
        .agg(
            F.count_if("fits").alias("fitting_count"),
            F.collect_list(F.when(~F.col("fits"), F.struct("client_id", "expected", "held"))).alias("others"),
        )
        # One member alone deviates, and another one at least shows which parameters the group has.
        .where((F.size("others") == 1) & (F.col("fitting_count") > 0))
        .select(*_SUBSCRIPTION, F.inline("others"))
    )
    own = F.get(
        F.filter(
            "variants",
            lambda member: F.get("member_ids", member["slot"]) == F.col("client_id"),
        ),
        F.lit(0),
    )
    queues = F.flatten(
        F.transform(
            F.filter("brokers", lambda broker: broker["queue_count"] > 0),
            lambda broker: F.transform(
                F.sequence(F.lit(0), broker["queue_count"].cast("int") - 1),
                lambda queue_id: F.struct(
                    broker["broker_name"].alias("broker_name"), queue_id.alias("queue_id")
                ),
            ),
        )
    )
    questions = tables.join(strategies, list(_SUBSCRIPTION)).join(
        subscriptions.select(*_SUBSCRIPTION, "brokers", "member_ids", "variants"), list(_SUBSCRIPTION)
    )
    return questions.select(
        *_SUBSCRIPTION,
        "strategy",
        "client_id",
        own["client_language"].alias("language"),
        own["client_version"].alias("version"),
        queues.alias("queues"),
        "member_ids",
        "expected",
        "held",
    ).mapInArrow(_explained, _EXPLAINED_DDL)


def _explained(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the members of each batch whose tables other parameters explain, in the columns of `_EXPLAINED_DDL`."""
    schema = pa.schema(
        [
            ("cluster", pa.string()),
            ("ds", pa.date32()),
            ("consumer_group", pa.string()),
            ("topic", pa.string()),
            ("deviation", pa.struct([("client_id", pa.string()), ("parameters", pa.string())])),
        ]
    )
    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            deviating = deviation(
                row["strategy"],
                row["client_id"],
                (row["language"], row["version"]),
                row["topic"],
                _plain(row["queues"]),
                row["member_ids"],
                frozenset(_plain(row["expected"])),
                frozenset(_plain(row["held"])),
            )
            if deviating is not None:
                subject = {name: row[name] for name in _SUBSCRIPTION}
                rows.append(subject | {"deviation": deviating._asdict()})
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _plain(queues: Sequence[dict[str, Any]]) -> list[Queue]:
    return [(queue["broker_name"], queue["queue_id"]) for queue in queues]


def deviation(
    strategy: str,
    client_id: str,
    client: tuple[str | None, str | None],
    topic: str,
    queues: Sequence[Queue],
    member_ids: Sequence[str],
    expected: frozenset[Queue],
    held: frozenset[Queue],
) -> Deviation | None:
    """Return how the one member that does not hold its share divides, if other parameters explain what it holds.

    None if nothing explains it, if a stale list of members or queues explains it as well, or if so many parameters were tried
    for so few queues that one of them was likely to fit.

    Args:
        strategy: RocketMQ's name.
        client_id: the member that deviates.
        client: its language and release.
        topic: the topic, whose name a ring hashes.
        queues: of the topic, in Java's order.
        member_ids: in Java's order, an id once for each connection.
        expected: what the strategy gives it with the group's parameters.
        held: what it holds.
    """
    if not held or held == expected:
        return None
    shares = {
        text: share
        for text, parameters in _candidates(strategy, queues, member_ids)
        if (share := _share(strategy, parameters, client_id, client, topic, queues, member_ids)) is not None
    }
    fitting = [text for text, share in shares.items() if share == held]
    own = [text for text, share in shares.items() if share == expected]
    if not fitting or not own:
        return None
    tried = {share for share in shares.values() if len(share) == len(held)}
    if len(tried) / comb(len(queues), len(held)) > _MOST_CHANCE:
        return None
    by_text = dict(_candidates(strategy, queues, member_ids))
    for text in own:
        for fewer_queues, fewer_members in _stale_views(client_id, queues, member_ids):
            if _share(strategy, by_text[text], client_id, client, topic, fewer_queues, fewer_members) == held:
                return None
    return Deviation(client_id, fitting[0] if len(fitting) == 1 else f"{fitting[0]} (or others)")


def _candidates(
    strategy: str, queues: Sequence[Queue], member_ids: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parameters that are tried, each with its text."""
    if strategy == "CONSISTENT_HASH":
        for count in _VIRTUAL_NODE_COUNTS:
            if count * len(member_ids) <= _MOST_NODES:
                yield f"virtualNodeCnt = {count}", {"virtual_node_count": count}
        return
    parts = {broker: broker.split("@") for broker, _ in queues}
    rooms = sorted({split[0] for split in parts.values() if len(split) == 2})  # noqa: PLR2004 - room@name
    if len(rooms) > _MOST_ROOMS:
        return
    for count in range(1, len(rooms) + 1):
        for chosen in combinations(rooms, count):
            yield f"consumeridcs = {', '.join(chosen)}", {"consumer_idcs": set(chosen)}


def _share(
    strategy: str,
    parameters: dict[str, Any],
    client_id: str,
    client: tuple[str | None, str | None],
    topic: str,
    queues: Sequence[Queue],
    member_ids: Sequence[str],
) -> frozenset[Queue] | None:
    language, version = client
    who = {"client_language": language, "client_version": version}
    try:
        rule = get_strategy(
            strategy, **{name: value for name, value in who.items() if value is not None}, **parameters
        )
        own = rule.allocate(
            "group",
            client_id,
            [MessageQueue(topic, broker, queue_id) for broker, queue_id in queues],
            list(member_ids),
        )
    except (RocketMQError, UnknownNameError):
        return None
    return frozenset((str(queue.broker_name), queue.queue_id) for queue in own or ())


def _stale_views(
    client_id: str, queues: Sequence[Queue], member_ids: Sequence[str]
) -> Iterator[tuple[list[Queue], list[str]]]:
    """Yield what a client divides that does not know of one member or of one broker."""
    for other in dict.fromkeys(member_ids):
        if other != client_id:
            yield list(queues), [member for member in member_ids if member != other]
    for broker in dict.fromkeys(broker for broker, _ in queues):
        yield [queue for queue in queues if queue[0] != broker], list(member_ids)
