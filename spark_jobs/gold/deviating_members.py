"""Find the member of a group that uses other strategy parameters than the rest: cause `parameters_differ` of `ownership_drift`.

Clients do not report the parameters of their strategy, but the queues that they hold are evidence. All members but one hold exactly
the queues that the strategy assigns to them with the group's parameters. The remaining member holds exactly the queues that the
strategy assigns to it with other parameters.

Belongs here: the choice of the member. Does not belong here: whether another cause has evidence (`ownership_drift`).
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
"""Strategies whose parameters have few likely values, all of which can be tried."""

_MOST_ROOMS: Final = 8
_MOST_NODES: Final = 200_000
"""Largest ring that is tried, in virtual nodes of all members."""

_VIRTUAL_NODE_COUNTS: Final = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 24, 25, 30, 32, 40, 50, 60, 64, 80, 100, 120, 128, 150, 160, 200, 250,
    256, 300, 400, 500, 512, 1000, 1024, 2000, 2048,
)  # fmt: skip
"""Values that are likely to be configured."""

_MOST_CHANCE: Final = 0.1
"""Largest accepted probability that an unrelated set of queues equals the result of one of the tried parameters."""


class Deviation(NamedTuple):
    """A member with other parameters.

    Attributes:
        client_id: Its client id.
        parameters: The parameters as text, such as `consumeridcs = hz`.
    """

    client_id: str
    parameters: str


Queue = tuple[str, int]
"""Broker name and queue id."""

_DEVIATION_DDL: Final = (
    "cluster string, ds date, consumer_group string, topic string, "
    "deviation struct<client_id: string, parameters: string>"
)


def deviating_members(subscriptions: DataFrame, assignments: DataFrame, held: DataFrame) -> DataFrame:
    """Return the members that use other parameters than their group.

    Args:
        subscriptions: See `subscriptions.subscriptions`.
        assignments: `queue_assignment`.
        held: The held queues: `DAY`; consumer_group, topic, broker_name, queue_id, holder_id.

    Returns:
        `DAY`; consumer_group, topic; deviation: struct<client_id, parameters>.
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
        .withColumn("is_as_expected", F.col("expected") == F.col("held"))
        .groupBy(*_SUBSCRIPTION)
        .agg(
            F.count_if("is_as_expected").alias("as_expected_count"),
            F.collect_list(F.when(~F.col("is_as_expected"), F.struct("client_id", "expected", "held"))).alias(
                "others"
            ),
        )
        # Only one member deviates, and at least one other member confirms the group's parameters.
        .where((F.size("others") == 1) & (F.col("as_expected_count") > 0))
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
    # Of a topic without a route, members keep their queues, and nothing is divided.
    routed = subscriptions.where("brokers is not null")
    candidates = tables.join(strategies, list(_SUBSCRIPTION)).join(
        routed.select(*_SUBSCRIPTION, "brokers", "member_ids", "variants"), list(_SUBSCRIPTION)
    )
    return candidates.select(
        *_SUBSCRIPTION,
        "strategy",
        "client_id",
        own["client_language"].alias("language"),
        own["client_version"].alias("version"),
        queues.alias("queues"),
        "member_ids",
        "expected",
        "held",
    ).mapInArrow(_deviation_batches, _DEVIATION_DDL)


def _deviation_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the deviating members of each batch, in the columns of `_DEVIATION_DDL`."""
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
                _queues(row["queues"]),
                row["member_ids"],
                frozenset(_queues(row["expected"])),
                frozenset(_queues(row["held"])),
            )
            if deviating is not None:
                subject = {name: row[name] for name in _SUBSCRIPTION}
                rows.append(subject | {"deviation": deviating._asdict()})
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _queues(structs: Sequence[dict[str, Any]]) -> list[Queue]:
    return [(struct["broker_name"], struct["queue_id"]) for struct in structs]


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
    """Return the parameters of a member that does not hold its expected queues, if other parameters explain the held ones.

    Args:
        strategy: RocketMQ's name of the strategy.
        client_id: The deviating member.
        client: Its language and release.
        topic: The topic; CONSISTENT_HASH hashes its name.
        queues: Queues of the topic, in Java's order.
        member_ids: Client ids in Java's order, an id once per connection.
        expected: Queues that the strategy assigns to the member with the group's parameters.
        held: Queues that the member holds.

    Returns:
        The deviation. None if no parameters explain the held queues, if a stale list of members or queues explains them too, or if so
        many parameters were tried for so few queues that one of them was likely to match.
    """
    if not held or held == expected:
        return None
    parameters_by_text = dict(_candidates(strategy, queues, member_ids))
    assigned = {
        text: result
        for text, parameters in parameters_by_text.items()
        if (result := _allocate(strategy, parameters, client_id, client, topic, queues, member_ids))
        is not None
    }
    explaining = [text for text, result in assigned.items() if result == held]
    of_group = [text for text, result in assigned.items() if result == expected]
    if not explaining or not of_group:
        return None
    tried = {result for result in assigned.values() if len(result) == len(held)}
    if len(tried) / comb(len(queues), len(held)) > _MOST_CHANCE:
        return None
    for text in of_group:
        parameters = parameters_by_text[text]
        for fewer_queues, fewer_members in _stale_views(client_id, queues, member_ids):
            stale = _allocate(strategy, parameters, client_id, client, topic, fewer_queues, fewer_members)
            if stale == held:
                return None
    return Deviation(client_id, explaining[0] if len(explaining) == 1 else f"{explaining[0]} (or others)")


def _candidates(
    strategy: str, queues: Sequence[Queue], member_ids: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parameters to try, each with its text."""
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


def _allocate(
    strategy: str,
    parameters: dict[str, Any],
    client_id: str,
    client: tuple[str | None, str | None],
    topic: str,
    queues: Sequence[Queue],
    member_ids: Sequence[str],
) -> frozenset[Queue] | None:
    """Return the queues that a member gets with these parameters; None if the strategy throws or the client has no such rule."""
    language, version = client
    release = {"client_language": language, "client_version": version}
    try:
        rule = get_strategy(
            strategy, **{name: value for name, value in release.items() if value is not None}, **parameters
        )
        allocated = rule.allocate(
            "group",
            client_id,
            [MessageQueue(topic, broker, queue_id) for broker, queue_id in queues],
            list(member_ids),
        )
    except (RocketMQError, UnknownNameError):
        return None
    return frozenset((str(queue.broker_name), queue.queue_id) for queue in allocated or ())


def _stale_views(
    client_id: str, queues: Sequence[Queue], member_ids: Sequence[str]
) -> Iterator[tuple[list[Queue], list[str]]]:
    """Yield the queues and members that a client sees if one other member or one broker is missing from its view."""
    for other in dict.fromkeys(member_ids):
        if other != client_id:
            yield list(queues), [member for member in member_ids if member != other]
    for broker in dict.fromkeys(broker for broker, _ in queues):
        yield [queue for queue in queues if queue[0] != broker], list(member_ids)
