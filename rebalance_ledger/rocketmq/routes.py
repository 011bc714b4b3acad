"""Which queues of a topic its consumers divide, and which its producers write to, read from the route.

Belongs here: the two lists that a client makes of `TopicRouteData`, static (logical) topics included.
Does not belong here: parsing of routes (`rebalance_ledger.exports.payloads`), and the assignment of queues.

Source: `MQClientInstance.topicRouteData2TopicSubscribeInfo` and `...2TopicPublishInfo`,
`ClientMetadata.topicRouteData2EndpointsForStaticTopic` (5.0.0 and later).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import RocketMQError, null_pointer
from rebalance_ledger.rocketmq.message_queue import MessageQueue, sort_queues
from rebalance_ledger.rocketmq.versions import DEFAULT_VERSION, Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PERM_READ: Final = 4
PERM_WRITE: Final = 2

MASTER_ID: Final = 0
DEFAULT_TOPIC_QUEUE_NUMS: Final = 4

MOCK_BROKER_PREFIX: Final = "__syslo__"
_GLOBAL_SCOPE: Final = "__global__"
NO_ENDPOINT: Final = "__syslo__none__"


@dataclass(frozen=True, slots=True)
class QueueData:
    """The queues of a topic on one broker, and their permissions.

    Attributes:
        broker_name: The broker.
        perm: Bits: 4 read, 2 write.
        read_queue_nums: Queues 0 to this minus one can be consumed.
        write_queue_nums: Queues 0 to this minus one can be written.
    """

    broker_name: str
    perm: int
    read_queue_nums: int
    write_queue_nums: int

    def is_readable(self) -> bool:
        """Return whether consumers may read."""
        return bool(self.perm & PERM_READ)

    def is_writable(self) -> bool:
        """Return whether producers may write."""
        return bool(self.perm & PERM_WRITE)


@dataclass(frozen=True, slots=True)
class BrokerData:
    """The addresses of a broker's replicas.

    Attributes:
        broker_name: The broker.
        broker_addrs: Broker id -> address; id 0 is the master.
    """

    broker_name: str
    broker_addrs: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class TopicQueueMapping:
    """The logical queues of a static topic that one broker serves (`TopicQueueMappingInfo`).

    Attributes:
        bname: The broker that serves them.
        scope: The name space of the logical queue ids.
        total_queues: Number of logical queues in the scope, according to this broker.
        epoch: The greater epoch is the newer knowledge.
        curr_id_map: Logical queue id -> physical queue id.
    """

    bname: str
    scope: str | None
    total_queues: int
    epoch: int
    curr_id_map: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Route:
    """The route of one topic (`TopicRouteData`).

    Attributes:
        queue_datas: Queue counts of the brokers; `None` if the name server's answer lacks them.
        broker_datas: Addresses of the brokers; `None` if the name server's answer lacks them.
        order_topic_conf: `broker:count;broker:count`, which a name server adds for an ordered topic.
        topic_queue_mapping_by_broker: Broker -> its logical queues; only of static topics, from 5.0.0 on.
    """

    queue_datas: Sequence[QueueData] | None
    broker_datas: Sequence[BrokerData] | None
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: Mapping[str, TopicQueueMapping] | None = None


@dataclass(frozen=True, slots=True)
class PublishList:
    """A producer's view of a topic (`TopicPublishInfo`).

    Attributes:
        queues: The queues to write to, in the order of the round robin, possibly with repeats.
        order_topic: Whether the list comes from an order configuration.
    """

    queues: tuple[MessageQueue, ...]
    order_topic: bool

    @property
    def is_ok(self) -> bool:
        """Whether there is any queue to write to."""
        return bool(self.queues)


def subscribe_queues(
    topic: str, route: Route, *, client_version: str = DEFAULT_VERSION
) -> list[MessageQueue]:
    """Return the queues that the topic's consumers divide, sorted, each once.

    An order configuration does not matter here, nor whether the brokers have addresses or masters.

    Raises:
        RocketMQError: `NullPointerException` before 5.0.0 when the route has no list of queue counts.
        UnknownNameError: There are no rules for the version.
    """
    route = _as_read_by(Client.parse(client_version=client_version), route)
    if route.topic_queue_mapping_by_broker:
        return sort_queues(static_endpoints(topic, route))
    queues = {
        MessageQueue(topic, data.broker_name, number)
        for data in _queue_datas(route)
        if data.is_readable()
        for number in range(data.read_queue_nums)
    }
    return sort_queues(queues)


def publish_queues(topic: str, route: Route, *, client_version: str = DEFAULT_VERSION) -> PublishList:
    """Return the queues that producers write to, in their order.

    With a static topic of several scopes, Java orders queues of equal ids as its hash map happens to; here
    they are ordered by scope.

    Raises:
        RocketMQError: A bad order configuration; a missing list in a route before 5.0.0.
        UnknownNameError: There are no rules for the version.
    """
    route = _as_read_by(Client.parse(client_version=client_version), route)
    if route.order_topic_conf:
        return PublishList(tuple(_ordered_queues(topic, route.order_topic_conf)), order_topic=True)
    if route.order_topic_conf is None and route.topic_queue_mapping_by_broker:
        logical = sort_queues(static_endpoints(topic, route))
        return PublishList(tuple(sorted(logical, key=lambda queue: queue.queue_id)), order_topic=False)
    return PublishList(tuple(_writable_queues(topic, route)), order_topic=False)


def longest_list(route: Route) -> int:
    """Return how many queues the longer of a client's two lists has at most, without building the lists.

    A client creates an object for each, without a limit. Check untrusted routes here first.
    """
    queue_datas = route.queue_datas or ()
    of_scopes: dict[str | None, int] = {}
    for mapping in (route.topic_queue_mapping_by_broker or {}).values():
        of_scopes[mapping.scope] = max(of_scopes.get(mapping.scope, 0), mapping.total_queues)
    return max(
        sum(max(data.read_queue_nums, 0) for data in queue_datas if data.is_readable()),
        sum(max(data.write_queue_nums, 0) for data in queue_datas if data.is_writable()),
        sum(count for _, count in _ordered_brokers_until_java_throws(route.order_topic_conf or "")),
        sum(of_scopes.values()),
    )


def static_endpoints(topic: str, route: Route) -> dict[MessageQueue, str]:
    """Return the logical queues of a static topic, each with the broker that serves it, `NO_ENDPOINT` for none.

    Of two brokers that claim a queue in the same epoch, Java takes the one that its hash map gives last;
    that is the order here too.
    """
    scopes: dict[str, dict[str, TopicQueueMapping]] = {}
    by_broker = route.topic_queue_mapping_by_broker or {}
    for broker_name in java.hash_map_order(by_broker):
        mapping = by_broker[broker_name]
        if mapping.scope is not None:
            scopes.setdefault(mapping.scope, {})[broker_name] = mapping
    endpoints = {}
    for scope, by_broker_of_scope in scopes.items():
        # Java fills a map for each scope, which may be smaller than the one of all brokers and so in another order.
        mappings = [
            by_broker_of_scope[broker_name] for broker_name in java.hash_map_order(by_broker_of_scope)
        ]
        broker_of: dict[int, str] = {}
        for mapping in sorted(mappings, key=lambda mapping: mapping.epoch):
            broker_of.update(dict.fromkeys(mapping.curr_id_map, mapping.bname))
        for number in range(max(mapping.total_queues for mapping in mappings)):
            queue = MessageQueue(topic, _mock_broker_name(scope), number)
            endpoints[queue] = broker_of.get(number, NO_ENDPOINT)
    return endpoints


def route_of_new_topic(route: Route, default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS) -> Route:
    """Derive a producer's route from the default topic's route, for a topic without its own.

    Source: `MQClientInstance.updateTopicRouteInfoFromNameServer` for the topic `TBW102`.

    Args:
        route: The route of the default topic.
        default_topic_queue_nums: The producer's setting; no broker gets more queues than this.
    """

    def limited(data: QueueData) -> QueueData:
        count = min(default_topic_queue_nums, data.read_queue_nums)
        return replace(data, read_queue_nums=count, write_queue_nums=count)

    return replace(route, queue_datas=[limited(data) for data in _queue_datas(route)])


def _as_read_by(client: Client, route: Route) -> Route:
    if client.before(5, 0, 0):
        return replace(route, topic_queue_mapping_by_broker=None)
    return replace(route, queue_datas=route.queue_datas or (), broker_datas=route.broker_datas or ())


def _queue_datas(route: Route) -> Sequence[QueueData]:
    if route.queue_datas is None:
        raise null_pointer("the route has no queueDatas")
    return route.queue_datas


def _ordered_queues(topic: str, order_topic_conf: str) -> Iterator[MessageQueue]:
    for broker_name, queue_count in _ordered_brokers(order_topic_conf):
        for number in range(queue_count):
            yield MessageQueue(topic, broker_name, number)


def _ordered_brokers(order_topic_conf: str) -> Iterator[tuple[str, int]]:
    for item in java.split(order_topic_conf, ";"):
        parts = java.split(item, ":")
        if len(parts) < 2:  # noqa: PLR2004  a name and a count
            raise RocketMQError(
                "ArrayIndexOutOfBoundsException", f"{item!r} in the order configuration has no count"
            )
        yield parts[0], java.parse_int(parts[1])


def _ordered_brokers_until_java_throws(order_topic_conf: str) -> Iterator[tuple[str, int]]:
    with suppress(RocketMQError):
        for broker_name, queue_count in _ordered_brokers(order_topic_conf):
            yield broker_name, max(queue_count, 0)


def _writable_queues(topic: str, route: Route) -> Iterator[MessageQueue]:
    for data in sorted(_queue_datas(route), key=lambda data: java.order_key(data.broker_name)):
        if not data.is_writable():
            continue
        if route.broker_datas is None:
            raise null_pointer("the route has no brokerDatas")
        # Only the first entry of a name counts, even when a later one has the master.
        named = (broker for broker in route.broker_datas if broker.broker_name == data.broker_name)
        broker = next(named, None)
        if broker is not None and MASTER_ID in broker.broker_addrs:
            for number in range(data.write_queue_nums):
                yield MessageQueue(topic, data.broker_name, number)


def _mock_broker_name(scope: str) -> str:
    return MOCK_BROKER_PREFIX + (scope[2:] if scope == _GLOBAL_SCOPE else scope)
