"""The brokers, topics, groups and clients of a simulated cluster, and the queues that each client holds.

Belongs here: sizes, names, subscriptions. One seed determines every choice. Does not belong here: texts of
payloads (`answers`), rules of RocketMQ (`strategies`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.settings import (
    ClusterSettings,
    ConfigStrategy,
    ConfiguredQueues,
    ConsistentHashStrategy,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    PlainStrategy,
    RoomRule,
)
from rebalance_ledger.settings.model import ConsistentHashGroup, MachineRoomGroup, MachineRoomNearbyGroup
from strategies import (
    MessageQueue,
    Strategy,
    SubscriptionBatch,
    get_strategy,
    retry_topic,
    sort_client_ids,
    sort_queues,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebalance_ledger.settings import GroupSettings

ROOMS: Final = ("hz", "sh", "sz")
BROADCASTING: Final = "BROADCASTING"
POP: Final = "POP"

_ROOM_OF_PREFIX: Final = {f"10.{number}.": room for number, room in enumerate(ROOMS, start=1)}
DOMAINS: Final = (
    "order",
    "payment",
    "member",
    "stock",
    "coupon",
    "delivery",
    "invoice",
    "price",
    "search",
    "risk",
)
EVENTS: Final = ("paid", "created", "changed", "closed", "synced", "expired", "refunded", "notified")
_FEWEST_BROKERS: Final = 4
_MOST_BROKERS: Final = 16
_EVERYWHERE: Final = 100
"""One topic in this many is on all brokers."""
_QUEUES_ON_BROKER: Final = (4, 8, 8, 16)
_MOST_TOPICS: Final = 5
_VIRTUAL_NODES: Final = (10, 20, 50, 100, 200, 500)
_UNEVEN: Final = 2.0
"""From this multiple of the mean on, the load of a client is unfair."""

# The strategies of a hundred consecutive groups. Few use CONFIG, because no operator writes lists for thousands of queues.
_SHARING: Final = (
    (
        ("AVG",) * 9
        + ("AVG_BY_CIRCLE",) * 2
        + ("CONSISTENT_HASH",) * 2
        + (BROADCASTING, POP, "MACHINE_ROOM_NEARBY")
    )
    * 6
    + ("MACHINE_ROOM",) * 3
    + ("CONFIG",)
)
_LAST_4: Final = 3
"""One in this many groups, except POP groups, still runs the older client."""


class Size(NamedTuple):
    """The size of a cluster.

    Attributes:
        broker_count: masters; each has a slave.
        topic_count: application topics, without retry topics and RocketMQ's own topics.
        group_count: consumer groups.
        clients_per_group: on average, if the topics have enough queues.
    """

    broker_count: int
    topic_count: int
    group_count: int
    clients_per_group: int = 8


class Release(NamedTuple):
    """A release of the Java client: its version, and the number by which clients report it."""

    version: str
    ordinal: int

    @property
    def constant(self) -> str:
        """The name of the constant in `MQVersion.Version`."""
        return "V" + self.version.replace(".", "_")


RELEASE_4: Final = Release("4.9.8", 409)
RELEASE_5: Final = Release("5.3.3", 479)


@dataclass(frozen=True, slots=True)
class Broker:
    """A master and its slave."""

    name: str
    address: str
    slave_address: str


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A topic and its brokers: each has the same number of read queues and write queues.

    Attributes:
        name: the topic.
        brokers: sorted by name.
        queues_on_broker: on each of them.
        perm: 4 to read, 2 to write, 1 to inherit.
        has_messages: whether it has messages. Retry topics and the brokers' own topics have none here.
    """

    name: str
    brokers: tuple[Broker, ...]
    queues_on_broker: int
    perm: int = 6
    has_messages: bool = False

    @property
    def queue_count(self) -> int:
        """The number of queues on all brokers."""
        return len(self.brokers) * self.queues_on_broker

    def queues(self) -> list[MessageQueue]:
        """Return all queues in the order that clients use for the assignment."""
        return sort_queues(
            MessageQueue(self.name, broker.name, queue_id)
            for broker in self.brokers
            for queue_id in range(self.queues_on_broker)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A consumer group whose clients all subscribe to the same topics.

    Attributes:
        name: the group.
        topics: the topics that it subscribes to, without its retry topic.
        retry: its retry topic, with one queue on each broker that its clients are connected to.
        sharing: the name of a strategy, `BROADCASTING` or `POP`.
        client_ids: in the order that clients use for the assignment.
        release: the release of all clients.
        settings: the group's settings for the ledger, or None.
    """

    name: str
    topics: tuple[Topic, ...]
    retry: Topic
    sharing: str
    client_ids: tuple[str, ...]
    release: Release
    settings: GroupSettings | None = None

    @property
    def strategy(self) -> str:
        """The strategy that the clients report, which is the default for clients that do not use one."""
        return "AVG" if self.sharing in {BROADCASTING, POP} else self.sharing

    @property
    def subscribed(self) -> tuple[Topic, ...]:
        """All topics that its clients subscribe to. Broadcasting clients have no retry topic."""
        return self.topics if self.sharing == BROADCASTING else (*self.topics, self.retry)

    def owners(self) -> dict[str, list[MessageQueue]]:
        """Return client id -> the queues in its process table, without those that the client pops."""
        held: dict[str, list[MessageQueue]] = {client_id: [] for client_id in self.client_ids}
        if self.sharing == BROADCASTING:
            everything = [queue for topic in self.topics for queue in topic.queues()]
            return dict.fromkeys(held, everything)
        if isinstance(self.settings, ConfigStrategy):
            return {
                client_id: [
                    MessageQueue(some.topic, some.broker_name, queue_id)
                    for some in listed
                    for queue_id in some.queue_ids
                ]
                for client_id, listed in self.settings.clients.items()
            }
        divided = (self.retry,) if self.sharing == POP else self.subscribed
        queues = [topic.queues() for topic in divided]
        batch = SubscriptionBatch.of((of_topic, self.client_ids) for of_topic in queues)
        owners = _strategy_of(self).allocate_batch(batch)
        for topic, queue, client in zip(
            owners.subscription_index.tolist(),
            owners.queue_index.tolist(),
            owners.client_index.tolist(),
            strict=True,
        ):
            held[self.client_ids[client]].append(queues[topic][queue])
        return held


class Layout:
    """A healthy cluster: every queue has the owner that its group's strategy assigns, and no client has too many queues.

    Attributes:
        cluster: the name of the cluster.
        size: the requested size.
        nameservers: addresses.
        brokers: all brokers.
        topics: the topics that consumers can subscribe to.
        system_topics: the topics that brokers create for themselves.
        groups: all groups.
    """

    def __init__(self, cluster: str, size: Size, seed: int = 20261116, nameserver_count: int = 2) -> None:
        self.cluster = cluster
        self.size = size
        self.nameservers = tuple(f"10.0.0.{number}:9876" for number in range(1, nameserver_count + 1))
        self.brokers = tuple(_broker(number) for number in range(size.broker_count))
        self.topics = _topics(random.Random(f"{seed} topics"), size.topic_count, self.brokers)  # noqa: S311  no secret
        self.system_topics = _system_topics(cluster, self.brokers)
        self._draw = random.Random(f"{seed} groups")  # noqa: S311  no secret
        self._client_count = 0
        self.groups = tuple(self._group(number) for number in range(size.group_count))

    @cached_property
    def all_topics(self) -> tuple[Topic, ...]:
        """All topics, including retry topics and system topics."""
        return (*self.topics, *(group.retry for group in self.groups), *self.system_topics)

    @property
    def settings(self) -> ClusterSettings:
        """The settings of the groups, which are in no export."""
        return ClusterSettings(groups={group.name: group.settings for group in self.groups if group.settings})

    def _group(self, number: int) -> Group:
        draw = self._draw
        name = f"{DOMAINS[number % len(DOMAINS)]}-service-{number:05}"
        topics = tuple(draw.sample(self.topics, min(draw.randint(1, _MOST_TOPICS), len(self.topics))))
        connected = {broker.name: broker for topic in topics for broker in topic.brokers}
        retry = Topic(retry_topic(name), tuple(connected[broker] for broker in sorted(connected)), 1)
        wanted = self.size.clients_per_group
        client_count = min(
            draw.randint((wanted + 1) // 2, wanted + wanted // 2), *(topic.queue_count for topic in topics)
        )
        sharing = _SHARING[number * 7 % len(_SHARING)]
        is_old = sharing != POP and draw.randrange(_LAST_4) == 0
        ids = sort_client_ids(self._client_ids(max(client_count, 1), sharing))
        group = Group(name, topics, retry, sharing, tuple(ids), RELEASE_4 if is_old else RELEASE_5)
        return _configured(group)

    def _client_ids(self, count: int, sharing: str) -> list[str]:
        """Create ids as RocketMQ does: only ids of broadcasting clients and of named instances survive a restart."""
        ids = []
        for _ in range(count):
            number, self._client_count = self._client_count, self._client_count + 1
            address = f"10.{1 + number % len(ROOMS)}.{number // 250 % 250}.{1 + number % 250}"
            if sharing == BROADCASTING:
                ids.append(f"{address}@DEFAULT")
            elif sharing == "CONFIG":
                ids.append(f"{address}@worker-{number}")
            else:
                ids.append(
                    f"{address}@{self._draw.randrange(1, 60_000)}#{self._draw.randrange(10**14, 10**15)}"
                )
        return ids


def _broker(number: int) -> Broker:
    room = number % len(ROOMS)
    host = f"10.{101 + room}.{number // 100}"
    return Broker(
        f"{ROOMS[room]}@broker-{number:03}",
        f"{host}.{1 + number % 100}:10911",
        f"{host}.{101 + number % 100}:10911",
    )


def _topics(draw: random.Random, count: int, brokers: tuple[Broker, ...]) -> tuple[Topic, ...]:
    topics = []
    for number in range(count):
        name = f"{DOMAINS[number % len(DOMAINS)]}-{EVENTS[number // 10 % len(EVENTS)]}-{number:05}"
        if number % _EVERYWHERE == 0:
            topics.append(Topic(name, brokers, _FEWEST_BROKERS, has_messages=True))
            continue
        on = min(draw.randint(_FEWEST_BROKERS, _MOST_BROKERS), len(brokers))
        # Spread the brokers over the rooms evenly. Otherwise clients in some rooms would be idle under MACHINE_ROOM_NEARBY.
        by_room = [
            draw.sample(brokers[room :: len(ROOMS)], len(brokers[room :: len(ROOMS)]))
            for room in range(len(ROOMS))
        ]
        in_turn = [
            of_room[place] for place in range(len(brokers)) for of_room in by_room if place < len(of_room)
        ]
        chosen = tuple(sorted(in_turn[:on], key=lambda broker: broker.name))
        topics.append(Topic(name, chosen, draw.choice(_QUEUES_ON_BROKER), has_messages=True))
    return tuple(topics)


def _system_topics(cluster: str, brokers: tuple[Broker, ...]) -> tuple[Topic, ...]:
    on_all = {
        "BenchmarkTest": (1024, 6),
        "OFFSET_MOVED_EVENT": (1, 6),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "SELF_TEST_TOPIC": (1, 6),
        cluster: (16, 7),
        f"{cluster}_REPLY_TOPIC": (1, 6),
        f"rmq_sys_REVIVE_LOG_{cluster}": (8, 6),
    }
    shared = tuple(Topic(name, brokers, count, perm) for name, (count, perm) in on_all.items())
    own = tuple(Topic(broker.name, (broker,), 1, 7) for broker in brokers)
    members = tuple(Topic(f"rmq_sys_SYNC_BROKER_MEMBER_{broker.name}", (broker,), 1, 1) for broker in brokers)
    return shared + own + members


def _configured(group: Group) -> Group:
    """Return the group with parameters for its strategy, or with AVG if no parameters keep it healthy."""
    for settings in _possible_settings(group):
        configured = _with(group, group.sharing, settings)
        if _is_even(configured):
            return configured
    return _with(group, "AVG", None)


def _possible_settings(group: Group) -> Sequence[GroupSettings | None]:
    match group.sharing:
        case "CONSISTENT_HASH":
            return [
                ConsistentHashGroup(strategy="CONSISTENT_HASH", virtual_node_count=count)
                for count in _VIRTUAL_NODES
            ]
        case "MACHINE_ROOM":
            return [MachineRoomGroup(strategy="MACHINE_ROOM", consumer_idcs=list(ROOMS))]
        case "MACHINE_ROOM_NEARBY":
            return [
                MachineRoomNearbyGroup(
                    strategy="MACHINE_ROOM_NEARBY",
                    inner=PlainStrategy(strategy="AVG"),
                    broker_room=RoomRule(separator="@"),
                    consumer_room=RoomRule(prefixes=_ROOM_OF_PREFIX),
                )
            ]
        case "CONFIG":
            return [_lists(group)]
        case _:
            return [None]


def _lists(group: Group) -> ConfigStrategy:
    """Create a list for each client: the queues that AVG would assign, so that every queue is consumed."""
    lists: dict[str, list[ConfiguredQueues]] = {}
    for client_id, queues in _with(group, "AVG", None).owners().items():
        ids: dict[tuple[str, str], list[int]] = {}
        for queue in queues:
            ids.setdefault((str(queue.topic), str(queue.broker_name)), []).append(queue.queue_id)
        lists[client_id] = [
            ConfiguredQueues(topic=topic, broker_name=broker, queue_ids=listed)
            for (topic, broker), listed in ids.items()
        ]
    return ConfigStrategy(strategy="CONFIG", clients=lists)


def _with(group: Group, sharing: str, settings: GroupSettings | None) -> Group:
    return Group(group.name, group.topics, group.retry, sharing, group.client_ids, group.release, settings)


def _is_even(group: Group) -> bool:
    """Return whether each client has a fair share of each topic, except the retry topic, which has too few queues."""
    if group.sharing not in {"CONSISTENT_HASH", "MACHINE_ROOM_NEARBY"}:
        return True
    counts = {topic.name: dict.fromkeys(group.client_ids, 0) for topic in group.subscribed}
    for client_id, queues in group.owners().items():
        for queue in queues:
            counts[str(queue.topic)][client_id] += 1
    of_topics = [list(counts[topic.name].values()) for topic in group.topics]
    return all(min(shares) > 0 and max(shares) < _UNEVEN * sum(shares) / len(shares) for shares in of_topics)


def _strategy_of(group: Group) -> Strategy:
    version = group.release.version
    match group.settings:
        case ConsistentHashStrategy(virtual_node_count=count):
            return get_strategy("CONSISTENT_HASH", client_version=version, virtual_node_count=count)
        case MachineRoomStrategy(consumer_idcs=rooms):
            return get_strategy("MACHINE_ROOM", client_version=version, consumer_idcs=set(rooms))
        case MachineRoomNearbyStrategy() as nearby:
            return get_strategy(
                "MACHINE_ROOM_NEARBY",
                client_version=version,
                inner=get_strategy(nearby.inner.strategy, client_version=version),
                broker_room=lambda queue: nearby.broker_room.room(str(queue.broker_name)),
                consumer_room=nearby.consumer_room.room,
            )
        case _:
            return get_strategy(group.strategy, client_version=version)
