"""Parsing of payloads to typed facts, one per silver row.

Belongs here: the mapping from fields of RocketMQ classes to columns. Does not belong here: files and envelopes (`contract`), the JSON
dialect (`rebalance_ledger.rocketmq.json`), comparisons between records.

The classes are those of `org.apache.rocketmq.remoting.protocol` (4.9.7, 5.3.3 and 5.5.0). A field that newer versions added
is optional. A field that every version writes is required: without it the record is rejected, because a missing number must
not become zero.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rebalance_ledger.rocketmq.json import ObjectMap, RocketMQJsonError, loads
from rebalance_ledger.rocketmq.routes import (
    MASTER_ID,
    MOCK_BROKER_PREFIX,
    BrokerData,
    QueueData,
    Route,
    TopicQueueMapping,
    longest_list,
    publish_queues,
    subscribe_queues,
)
from rebalance_ledger.tables import SILVER_TABLES
from strategies import RocketMQError, strategy_of_class_name, version_of_ordinal
from strategies.producer import broker_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rebalance_ledger.exports.contract import Envelope


class Fact(NamedTuple):
    """One row of one silver table.

    Attributes:
        table: Name of the table.
        row: Column -> value; timestamps as ISO 8601 text in UTC; absent columns are null.
    """

    table: str
    row: dict[str, Any]


class PayloadError(ValueError):
    """The payload cannot be parsed. `str()` is one sentence with the position and the reason."""


MAX_QUEUES_OF_TOPIC: Final = 100_000
"""Limit of the number of queues in a route. RocketMQ has none, but every client of the topic holds the list in memory."""

_CONSUMER_NOT_ONLINE = 206
"""`ResponseCode.CONSUMER_NOT_ONLINE`: the broker has no members of the group."""

CODES_THAT_ANSWER: Final = (17, 26, 206, 213)
"""Response codes that answer the question: no route for the topic, no such group, group not online, group without progress."""

NOT_ONLINE: Final = "> not online"
"""Part of an exception's message which states that a client is not connected."""

_LITE_PULL = "defaultLitePullConsumerImpl"
"""A field of `DefaultLitePullConsumer` in the properties of its running info."""

_CODE = re.compile(r"CODE: (\d{1,9})\b", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last instant of a timestamp column."""


def error_code(message: str) -> int | None:
    """Return the response code in the message of a RocketMQ exception (`CODE: 206  DESC: …`), if any."""
    match = _CODE.match(message)
    return int(match[1]) if match else None


def facts(envelope: Envelope) -> Iterator[Fact]:
    """Yield the silver rows of one envelope, except `export_record`.

    An error yields facts too if it describes the subject: a group that is not online, a client that does not answer.

    Raises:
        PayloadError: The payload cannot be parsed.
    """
    if envelope.kind == "offset_file":
        yield _offset_file(envelope)
        return
    if envelope.kind == "broker_config":
        yield from _deduplicate(_broker_settings(envelope))
        return
    read = _READERS.get(envelope.kind)
    if read is None:
        return
    if envelope.payload is None:
        yield from _facts_of_error(envelope)
        return
    try:
        document = loads(envelope.payload)
    except RocketMQJsonError as error:
        raise PayloadError(str(error)) from error
    yield from _deduplicate(read(envelope, _Node(document, "the payload")))


_KEYS: Final = {table.name: table.key for table in SILVER_TABLES}
_TABLES_OF_SETS: Final = frozenset({"consumer_connection", "proxy_connection", "client_subscription"})
"""Tables whose rows are elements of sets; the rows of other tables are entries of maps."""


def _deduplicate(rows: Iterator[Fact]) -> Iterator[Fact]:
    """Yield the rows of one payload, each key of a table once.

    Of repeated keys of a map Java keeps the last entry. Contradictory elements of a set have no correct value.

    Raises:
        PayloadError: Two elements of a set with the same key differ.
    """
    by_key: dict[tuple[Any, ...], Fact] = {}
    for fact in rows:
        names = _KEYS[fact.table]
        key = (fact.table, *map(fact.row.get, names))
        other = by_key.get(key)
        if other is not None and other != fact and fact.table in _TABLES_OF_SETS:
            key_text = ", ".join(f"{name} {_shown(fact.row.get(name))}" for name in names)
            raise PayloadError(f"the payload says two different things of {key_text}")
        by_key[key] = fact
    yield from by_key.values()


def facts_of_unreadable(envelope: Envelope) -> Iterator[Fact]:
    """Yield the silver rows of an envelope for which `facts` raises: the state of its subject is unknown."""
    if envelope.kind in _PRESENCE_TABLES:
        yield _presence(envelope, "unknown")
    elif envelope.kind in _CLIENT_TABLES:
        yield _client_state(envelope, "unknown")


def _facts_of_error(envelope: Envelope) -> Iterator[Fact]:
    message = "" if envelope.error is None else envelope.error.message
    is_offline = error_code(message) == _CONSUMER_NOT_ONLINE
    if envelope.kind in _PRESENCE_TABLES:
        yield _presence(envelope, "offline" if is_offline else "unknown")
    elif envelope.kind == "consumer_running_info":
        is_offline = is_offline or NOT_ONLINE in message.partition("\n")[0]
        yield _client_state(envelope, "offline" if is_offline else "unknown")
    elif envelope.kind == "process_assignment":
        yield _client_state(envelope, "unknown")


def _presence(envelope: Envelope, state: str) -> Fact:
    return Fact(_PRESENCE_TABLES[envelope.kind], _member_list_subject(envelope) | {"state": state})


def _member_list_subject(envelope: Envelope) -> dict[str, Any]:
    """Return the key columns of a list of members: the group, and the broker or proxy."""
    group = {"consumer_group": envelope.group}
    if envelope.kind == "proxy_consumer_connection":
        return group | {"proxy": envelope.proxy}
    return group | {"broker_name": envelope.broker}


def _client_state(envelope: Envelope, state: str) -> Fact:
    capture_time = {"captured_at": envelope.captured_at.isoformat()}
    return Fact(_CLIENT_TABLES[envelope.kind], _client(envelope) | {"state": state} | capture_time)


def _client(envelope: Envelope) -> dict[str, Any]:
    """Return the key columns of a running info: a client, or one of its processes."""
    subject = {"consumer_group": envelope.group, "client_id": envelope.client_id}
    return subject if envelope.kind == "consumer_running_info" else subject | {"process": envelope.process}


_PRESENCE_TABLES = {"consumer_connection": "group_presence", "proxy_consumer_connection": "proxy_presence"}
_CONNECTION_TABLES = {
    "consumer_connection": "consumer_connection",
    "proxy_consumer_connection": "proxy_connection",
}
_SUBSCRIPTION_TABLES = {
    "consumer_connection": "subscription",
    "proxy_consumer_connection": "proxy_subscription",
}
_CLIENT_TABLES = {"consumer_running_info": "consumer_client", "process_assignment": "client_process"}
_OWNER_TABLES = {"consumer_running_info": "observed_owner", "process_assignment": "process_owner"}


class _Node:
    """A value of a payload and where it is, for error messages."""

    __slots__ = ("_parts", "_template", "value")

    def __init__(self, value: Any, template: str, *parts: object) -> None:  # noqa: ANN401 - the payload may hold anything
        """Name a value.

        Args:
            value: The value.
            template: Of its path, with `{}` for each part.
            parts: Nodes, which stand for their paths, and keys.
        """
        self.value = value
        self._template = template
        self._parts = parts

    @property
    def path(self) -> str:
        """Where the value is. Written when an error needs it: a day has millions of values and few errors."""
        return self._template.format(
            *(part.path if isinstance(part, _Node) else _shown(part) for part in self._parts)
        )

    def _field(self, key: str) -> Any:  # noqa: ANN401 - as above
        if not isinstance(self.value, dict):
            raise PayloadError(f"{self.path} is {_kind(self.value)} where an object is expected")
        return self.value.get(key)

    def _typed(self, key: str, expected_type: type, name: str, *, required: bool) -> Any:  # noqa: ANN401 - as above
        value = self._field(key)
        if value is None and not required:
            return None
        if not isinstance(value, expected_type) or (isinstance(value, bool) and expected_type is int):
            problem = "missing" if value is None else f"{_kind(value)} where {name} is expected"
            raise PayloadError(f"{self.path}.{key} is {problem}")
        return value

    def has(self, key: str) -> bool:
        """Return whether the object has the field with a value other than null."""
        return self._field(key) is not None

    def text(self, key: str) -> str:
        """Return a required string."""
        return str(self._typed(key, str, "a string", required=True))

    def own_text(self) -> str:
        """Return the value itself, a string."""
        if not isinstance(self.value, str):
            raise PayloadError(f"{self.path} is {_kind(self.value)} where a string is expected")
        return self.value

    def own_integer(self, *, bits: int = 32) -> int:
        """Return the value itself, a Java int (or long, with 64 bits)."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise PayloadError(f"{self.path} is {_kind(self.value)} where an integer is expected")
        return self.value if _fits(self.value, bits) else _java_integer(self.value, bits, self.path)

    def text_or_none(self, key: str) -> str | None:
        """Return an optional string."""
        value = self._typed(key, str, "a string", required=False)
        return None if value is None else str(value)

    def integer(self, key: str, *, bits: int = 32) -> int:
        """Return a required Java int (or long, with 64 bits)."""
        value = int(self._typed(key, int, "an integer", required=True))
        return value if _fits(value, bits) else _java_integer(value, bits, f"{self.path}.{key}")

    def offset(self, key: str, *, least: int = 0) -> int:
        """Return a required offset of a queue."""
        value = self.integer(key, bits=64)
        if value < least:
            raise PayloadError(f"{self.path}.{key} is {value}, which is no offset of a queue")
        return value

    def offset_or_none(self, key: str, *, least: int = 0) -> int | None:
        """Return an optional offset of a queue."""
        return None if self._field(key) is None else self.offset(key, least=least)

    def integer_entries(self, key: str, *, required: bool = True) -> Iterator[tuple[int, _Node]]:
        """Yield the entries of a map whose keys are Java longs, written as numbers or text."""
        for entry_key, node in self.entries(key, required=required):
            if not re.fullmatch(r"-?\d{1,19}", str(entry_key), re.ASCII):
                raise PayloadError(f"{self.path}.{key} has the key {_shown(entry_key)}, which is no integer")
            yield _java_integer(int(str(entry_key)), 64, f"a key of {self.path}.{key}"), node

    def integer_or_none(self, key: str, *, bits: int = 32) -> int | None:
        """Return an optional Java int (or long, with 64 bits)."""
        return None if self._field(key) is None else self.integer(key, bits=bits)

    def boolean_or_none(self, key: str) -> bool | None:
        """Return an optional boolean."""
        value = self._typed(key, bool, "true or false", required=False)
        return None if value is None else bool(value)

    def instant_or_none(self, key: str) -> str | None:
        """Return an optional time in epoch milliseconds, as ISO text in UTC; 0 and negative values mean never, so None."""
        return _instant(self.integer_or_none(key, bits=64))

    def items(self, key: str, *, required: bool = True) -> Iterator[_Node]:
        """Yield the elements of a list."""
        values = self._typed(key, list, "a list", required=required)
        for index, value in enumerate(values or ()):
            yield _Node(value, "{}.{}[{}]", self, key, index)

    def entries(self, key: str, *, required: bool = True) -> Iterator[tuple[Any, _Node]]:
        """Yield the entries of a map: its unchanged keys (text, integer or object) and its values as nodes."""
        value = self._field(key)
        if value is None and not required:
            return
        if not isinstance(value, (dict, ObjectMap)):
            problem = "missing" if value is None else f"{_kind(value)} where a map is expected"
            raise PayloadError(f"{self.path}.{key} is {problem}")
        for entry_key, entry_value in value.items():
            yield entry_key, _Node(entry_value, "{}.{}[{}]", self, key, entry_key)

    def queue_entries(self, key: str, *, required: bool = True) -> Iterator[tuple[_Node, _Node]]:
        """Yield the entries of a map whose keys are message queues."""
        for entry_key, node in self.entries(key, required=required):
            yield _Node(entry_key, "a key of {}.{}", self, key), node

    def node(self, key: str) -> _Node:
        """Return a required object."""
        return _Node(self._typed(key, dict, "an object", required=True), "{}.{}", self, key)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def _fits(value: int, bits: int) -> bool:
    """Return whether a Java integer of so many bits can be a value."""
    return -1 << (bits - 1) <= value < 1 << (bits - 1)


def _java_integer(value: int, bits: int, path: str) -> int:
    if not _fits(value, bits):
        raise PayloadError(f"{path} is {_shown(value)}, which no Java integer of {bits} bits holds")
    return value


def _shown(key: object) -> str:
    text = str(key)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - enough to identify it in a log


def _instant(epoch_ms: int | None) -> str | None:
    if epoch_ms is None or epoch_ms <= 0 or epoch_ms > _LAST_YEAR_MS:
        return None
    return (_EPOCH + timedelta(milliseconds=epoch_ms)).isoformat()


def _cluster_info(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the brokers of `ClusterInfo.brokerAddrTable`."""
    for broker_name, broker in payload.entries("brokerAddrTable"):
        for broker_id, address in broker.integer_entries("brokerAddrs"):
            yield Fact(
                "broker",
                {
                    "nameserver": envelope.nameserver,
                    "broker_cluster_name": broker.text_or_none("cluster"),
                    "broker_name": str(broker_name),
                    "broker_id": broker_id,
                    "broker_addr": address.own_text(),
                },
            )


def _route(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the rows of a `TopicRouteData`; `rebalance_ledger.rocketmq.routes` determines consumer and producer queues."""
    broker_datas = [
        BrokerData(
            broker_name=broker.text("brokerName"),
            broker_addrs={
                broker_id: address.own_text() for broker_id, address in broker.integer_entries("brokerAddrs")
            },
        )
        for broker in payload.items("brokerDatas", required=False)
    ]
    queue_datas = [
        QueueData(
            broker_name=queue_data.text("brokerName"),
            perm=queue_data.integer("perm"),
            read_queue_nums=queue_data.integer("readQueueNums"),
            write_queue_nums=queue_data.integer("writeQueueNums"),
        )
        for queue_data in payload.items("queueDatas", required=False)
    ]
    order_topic_conf = payload.text_or_none("orderTopicConf")
    route = Route(queue_datas, broker_datas, order_topic_conf, _static_mapping(payload))
    queue_count = longest_list(route)
    if queue_count > MAX_QUEUES_OF_TOPIC:
        raise PayloadError(
            f"the payload has {queue_count} queues; a topic has at most {MAX_QUEUES_OF_TOPIC} here"
        )
    readable = subscribe_queues(str(envelope.topic), route)
    counts = Counter(str(queue.broker_name) for queue in readable)
    readable_ids = frozenset((queue.broker_name, queue.queue_id) for queue in readable)
    publish_columns = _publish_side(str(envelope.topic), route, readable_ids)
    subject = {
        "nameserver": envelope.nameserver,
        "topic": envelope.topic,
        "order_topic_conf": order_topic_conf,
    }
    # Of several entries with one broker name the publish side uses the first, and so does this.
    masters: dict[str, bool] = {}
    for addresses in broker_datas:
        masters.setdefault(addresses.broker_name, MASTER_ID in addresses.broker_addrs)
    physical: defaultdict[str, list[QueueData]] = defaultdict(list)
    for queue_data in queue_datas:
        physical[queue_data.broker_name].append(queue_data)
    for broker_name, of_broker in physical.items():
        yield Fact(
            "topic_route",
            subject
            | {
                "broker_name": broker_name,
                "is_in_route": True,
                "subscribe_queue_count": counts[broker_name],
                "has_master": masters.get(broker_name, False),
            }
            | _queue_data(of_broker)
            | publish_columns[broker_name],
        )
    for logical_name in counts.keys() - physical.keys():
        yield Fact(
            "topic_route",
            subject
            | {
                "broker_name": logical_name,
                "is_in_route": True,
                "subscribe_queue_count": counts[logical_name],
            }
            | publish_columns[logical_name],
        )
    for ordered_name in publish_columns.keys() - physical.keys() - counts.keys():
        yield Fact(
            "topic_route",
            subject
            | {
                "broker_name": ordered_name,
                "is_in_route": False,
                "subscribe_queue_count": 0,
                "has_master": masters.get(ordered_name, False),
            }
            | publish_columns[ordered_name],
        )


def _queue_data(of_broker: list[QueueData]) -> dict[str, int]:
    """Return the columns of `topic_route` for a broker's entries in `queueDatas`; routes of name servers have one entry.

    A client uses all entries (`MQClientInstance`, 4.7.1 to 5.5.0): consumers take each queue once, producers once per entry.
    """
    if len(of_broker) == 1:
        [entry] = of_broker
        read, write = entry.read_queue_nums, entry.write_queue_nums
    else:
        readable = [entry for entry in of_broker if entry.is_readable()]
        writable = [entry for entry in of_broker if entry.is_writable()]
        read = max(entry.read_queue_nums for entry in readable or of_broker)
        write = (
            sum(max(entry.write_queue_nums, 0) for entry in writable)
            if writable
            else max(entry.write_queue_nums for entry in of_broker)
        )
    return {
        "queue_data_count": len(of_broker),
        "perm": reduce(or_, (entry.perm for entry in of_broker)),
        "read_queue_count": read,
        "write_queue_count": write,
    }


def _publish_side(
    topic: str, route: Route, readable: frozenset[tuple[str | None, int]]
) -> defaultdict[str, dict[str, int]]:
    """Return the publish columns of `topic_route` by broker; none if the producer would throw an exception."""
    try:
        queues = publish_queues(topic, route).queues
    except RocketMQError:
        return defaultdict(dict)
    unread = Counter(
        str(queue.broker_name) for queue in queues if (queue.broker_name, queue.queue_id) not in readable
    )
    columns: defaultdict[str, dict[str, int]] = defaultdict(
        lambda: {"publish_queue_count": 0, "publish_run_count": 0, "publish_unread_count": 0}
    )
    for broker_name, places in broker_places(queues).items():
        columns[broker_name] = {
            "publish_queue_count": places.place_count,
            "publish_run_count": places.run_count,
            "publish_unread_count": unread[broker_name],
        }
    return columns


def _static_mapping(payload: _Node) -> dict[str, TopicQueueMapping] | None:
    """Return `topicQueueMappingByBroker` of a static (logical) topic, 5.x only; None for other topics."""
    mapping = {
        str(broker_name): TopicQueueMapping(
            bname=info.text("bname"),
            scope=info.text_or_none("scope"),
            total_queues=info.integer("totalQueues"),
            epoch=info.integer("epoch", bits=64),
            curr_id_map={
                logical_id: physical_id.own_integer()
                for logical_id, physical_id in info.integer_entries("currIdMap", required=False)
            },
        )
        for broker_name, info in payload.entries("topicQueueMappingByBroker", required=False)
    }
    return mapping or None


def _topic_config(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the topics of `TopicConfigSerializeWrapper.topicConfigTable`."""
    for topic, config in payload.entries("topicConfigTable"):
        yield Fact(
            "topic_config",
            {
                "broker_name": envelope.broker,
                "topic": str(topic),
                "perm": config.integer("perm"),
                "read_queue_count": config.integer("readQueueNums"),
                "write_queue_count": config.integer("writeQueueNums"),
                "is_order": config.boolean_or_none("order"),
            },
        )


def _subscription_group(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the groups of `SubscriptionGroupWrapper.subscriptionGroupTable`."""
    for group, config in payload.entries("subscriptionGroupTable"):
        yield Fact(
            "subscription_group",
            {
                "broker_name": envelope.broker,
                "consumer_group": str(group),
                "is_consume_enabled": config.boolean_or_none("consumeEnable"),
                "is_broadcast_enabled": config.boolean_or_none("consumeBroadcastEnable"),
                "retry_queue_count": config.integer_or_none("retryQueueNums"),
                "retry_max_count": config.integer_or_none("retryMaxTimes"),
            },
        )


def _consumer_connection(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the rows of a `ConsumerConnection`: a group's connections to one broker or proxy, and its subscriptions there."""
    subject = _member_list_subject(envelope)
    connections = list(payload.items("connectionSet"))
    is_online = bool(connections)
    presence: dict[str, Any] = {
        "state": "online" if is_online else "offline",
        "message_model": payload.text_or_none("messageModel") if is_online else None,
        "consume_type": payload.text_or_none("consumeType") if is_online else None,
    }
    if envelope.kind == "consumer_connection":
        presence["consume_from_where"] = payload.text_or_none("consumeFromWhere") if is_online else None
    yield Fact(_PRESENCE_TABLES[envelope.kind], subject | presence)
    for connection in connections:
        ordinal = connection.integer_or_none("version")
        yield Fact(
            _CONNECTION_TABLES[envelope.kind],
            subject
            | {
                "client_id": connection.text("clientId"),
                "client_addr": connection.text("clientAddr"),
                "client_language": connection.text_or_none("language"),
                "client_version_ordinal": ordinal,
                "client_version": None if ordinal is None else version_of_ordinal(ordinal),
            },
        )
    for topic, subscription in payload.entries("subscriptionTable", required=False):
        yield Fact(
            _SUBSCRIPTION_TABLES[envelope.kind], subject | {"topic": str(topic)} | _expression(subscription)
        )


def _expression(subscription: _Node) -> dict[str, Any]:
    return {
        "expression_type": subscription.text_or_none("expressionType"),
        "expression": subscription.text_or_none("subString"),
    }


def _running_info(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the rows of a `ConsumerRunningInfo`: the client's own state; `mqTable` has the queues that it owns."""
    subject = _client(envelope)
    properties = payload.node("properties")
    _check_group(envelope, properties)
    strategy_object = properties.text_or_none("allocateMessageQueueStrategy")
    version = properties.text_or_none("PROP_CLIENT_VERSION")
    consume_type = properties.text_or_none("PROP_CONSUME_TYPE")
    queues = list(payload.queue_entries("mqTable"))
    subscriptions = list(payload.items("subscriptionSet", required=False))
    yield Fact(
        _CLIENT_TABLES[envelope.kind],
        subject
        | {
            "state": "online",
            "captured_at": envelope.captured_at.isoformat(),
            # `toString()` of the object: the class, `@` and a meaningless identity hash.
            "strategy_class": None if strategy_object is None else strategy_object.partition("@")[0],
            "strategy": None if strategy_object is None else strategy_of_class_name(strategy_object),
            "message_model": properties.text_or_none("messageModel"),
            "consume_type": consume_type,
            "consume_from_where": properties.text_or_none("consumeFromWhere"),
            # `DefaultMQPullConsumerImpl.consumerRunningInfo` never fills mqTable; that of lite pull and of push does.
            "reports_queues": bool(queues)
            or consume_type != "CONSUME_ACTIVELY"
            or properties.text_or_none(_LITE_PULL) is not None,
            "subscription_count": len(subscriptions) if payload.has("subscriptionSet") else None,
            "is_orderly": _java_boolean(properties.text_or_none("PROP_CONSUMEORDERLY")),
            "is_client_rebalance": _java_boolean(properties.text_or_none("clientRebalance")),
            "client_version": _release(version),
            "started_at": _started_at(properties),
        },
    )
    # Only queues are reported per process; subscriptions are reported per client id.
    if envelope.kind == "consumer_running_info":
        for subscription in subscriptions:
            yield Fact(
                "client_subscription",
                subject | {"topic": subscription.text("topic")} | _expression(subscription),
            )
    owned_queues: set[tuple[Any, ...]] = set()
    for queue, process_queue in queues:
        is_dropped = _is_dropped(process_queue)
        name = _queue(queue)
        if not is_dropped:
            owned_queues.add(tuple(name.values()))
        yield Fact(
            _OWNER_TABLES[envelope.kind],
            subject
            | name
            | {
                "is_dropped": is_dropped,
                "is_pop": False,
                "commit_offset": process_queue.integer_or_none("commitOffset", bits=64),
                "last_pull_at": process_queue.instant_or_none("lastPullTimestamp"),
                "last_consumed_at": process_queue.instant_or_none("lastConsumeTimestamp"),
            },
        )
    for queue, process_queue in payload.queue_entries("mqPopTable", required=False):
        name = _queue(queue)
        if tuple(name.values()) in owned_queues:
            continue  # A client that changes its mode has a queue in both tables for a while.
        yield Fact(
            _OWNER_TABLES[envelope.kind],
            subject
            | name
            | {
                "is_dropped": _is_dropped(process_queue),
                "is_pop": True,
                "last_pull_at": process_queue.instant_or_none("lastPopTimestamp"),
            },
        )


def _check_group(envelope: Envelope, properties: _Node) -> None:
    """Check that an answer is of the requested group; either name may lack its namespace."""
    group, expected_group = properties.text_or_none("consumerGroup"), str(envelope.group)
    if (
        group
        and group != expected_group
        and not expected_group.endswith(f"%{group}")
        and not group.endswith(f"%{expected_group}")
    ):
        raise PayloadError(
            f"{properties.path}.consumerGroup is {_shown(group)}, and {_shown(expected_group)} was requested"
        )


def _is_dropped(process_queue: _Node) -> bool | None:
    """Return whether the client has dropped the queue; Java misspells the field as `droped`, Go does not."""
    java_value = process_queue.boolean_or_none("droped")
    return process_queue.boolean_or_none("dropped") if java_value is None else java_value


def _queue(queue: _Node) -> dict[str, Any]:
    return {
        "topic": queue.text("topic"),
        "broker_name": queue.text("brokerName"),
        "queue_id": queue.integer("queueId"),
    }


def _queue_of_broker(envelope: Envelope, queue: _Node) -> dict[str, Any]:
    """Return the queue columns of a broker's answer about its own queues and those of its static topics.

    Answers merged from several brokers have no broker, so they are not checked.

    Raises:
        PayloadError: The queue belongs to another broker than the envelope's.
    """
    name = _queue(queue)
    is_of_another = envelope.broker is not None and name["broker_name"] != envelope.broker
    if is_of_another and not name["broker_name"].startswith(MOCK_BROKER_PREFIX):
        raise PayloadError(
            f"{queue.path} is of broker {_shown(name['broker_name'])}, and {_shown(envelope.broker)} was requested"
        )
    return name


def _java_boolean(text: str | None) -> bool | None:
    return None if text is None else text.lower() == "true"


def _release(version: str | None) -> str | None:
    """Return the release of a version text: 5.3.3 of `V5_3_3`; None for other text."""
    match = re.fullmatch(r"V(\d+)_(\d+)_(\d+)(?:_SNAPSHOT)?", version or "", re.ASCII)
    return ".".join(match.groups()) if match else None


def _started_at(properties: _Node) -> str | None:
    text = properties.text_or_none("PROP_CONSUMER_START_TIMESTAMP")
    return _instant(int(text)) if text and re.fullmatch(r"\d{1,18}", text, re.ASCII) else None


def _consume_stats(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the queues of one broker's `ConsumeStats.offsetTable`."""
    for queue, offsets in payload.queue_entries("offsetTable"):
        yield Fact(
            "consume_progress",
            {"consumer_group": envelope.group}
            | _queue_of_broker(envelope, queue)
            | {
                "broker_offset": offsets.offset_or_none("brokerOffset"),
                # A broker returns -1 if no offset is committed.
                "consumer_offset": offsets.offset_or_none("consumerOffset", least=-1),
                "pull_offset": offsets.offset_or_none("pullOffset", least=-1),
                "last_consumed_at": offsets.instant_or_none("lastTimestamp"),
            },
        )


def _topic_stats(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the queues of a topic on one broker, of `TopicStatsTable.offsetTable`."""
    for queue, offsets in payload.queue_entries("offsetTable"):
        name = _queue_of_broker(envelope, queue)
        if name["topic"] != envelope.topic:
            raise PayloadError(
                f"{queue.path} is of topic {_shown(name['topic'])}, and {_shown(envelope.topic)} was requested"
            )
        min_offset, max_offset = offsets.offset("minOffset"), offsets.offset("maxOffset")
        if min_offset > max_offset:
            raise PayloadError(f"{offsets.path} has minOffset {min_offset} above maxOffset {max_offset}")
        yield Fact(
            "queue_offset",
            name
            | {
                "min_offset": min_offset,
                "max_offset": max_offset,
                "last_stored_at": offsets.instant_or_none("lastUpdateTimestamp"),
                "captured_at": envelope.captured_at.isoformat(),
            },
        )


def _consumer_status(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the rows of `GetConsumerStatusBody.consumerTable`: client id -> queue -> offset in memory."""
    for key, queues in payload.entries("consumerTable"):
        client_id = _Node(key, "a key of {}.consumerTable", payload).own_text()
        if envelope.client_id not in {None, client_id}:
            raise PayloadError(
                f"{payload.path} is of client {_shown(client_id)}, and {_shown(envelope.client_id)} was requested"
            )
        for queue, offset in _Node({"queues": queues.value}, "{}", queues).queue_entries("queues"):
            yield Fact(
                "memory_offset",
                {"consumer_group": envelope.group, "client_id": client_id}
                | _queue(queue)
                | {
                    "memory_offset": offset.own_integer(bits=64),
                    "captured_at": envelope.captured_at.isoformat(),
                },
            )


def _offset_file(envelope: Envelope) -> Fact:
    """Return the row of an index line of offset files, without opening the file.

    Raises:
        PayloadError: The index of the snapshot exceeds the column's type.
    """
    row: dict[str, Any] = {
        "moment": _java_integer(envelope.moment or 0, 32, "moment"),
        "host": envelope.host,
        "client_id": envelope.client_id,
        "consumer_group": envelope.group,
        "captured_at": envelope.captured_at.isoformat(),
    }
    if envelope.file is None:
        message = None if envelope.error is None else envelope.error.message
        return Fact("offset_file", row | {"state": "failed", "error_message": message})
    return Fact(
        "offset_file",
        row
        | {
            "state": "landed",
            "path": envelope.file.path,
            "size_bytes": envelope.file.size_bytes,
            "modified_at": envelope.file.mtime.isoformat(),
            "sha256": envelope.file.sha256,
        },
    )


READ_BROKER_SETTINGS: Final = (
    "defaultMessageRequestMode",
    "defaultPopShareQueueNum",
    "enableRetryTopicV2",
    "popConsumerKVServiceEnable",
    "serverLoadBalancerEnable",
)
"""Broker settings that become rows; others may be secrets, or are not needed."""

_MAX_SETTING_LENGTH: Final = 100
"""Maximum length of a value; longer ones are not valid for these settings."""


def _broker_settings(envelope: Envelope) -> Iterator[Fact]:
    """Yield the selected settings of the `name=value` lines of `MixAll.properties2String`."""
    for line in (envelope.payload or "").splitlines():
        name, sign, value = line.partition("=")
        if sign and name.strip() in READ_BROKER_SETTINGS and len(value) <= _MAX_SETTING_LENGTH:
            yield Fact(
                "broker_setting",
                {"broker_name": envelope.broker, "setting": name.strip(), "value": value.strip()},
            )


def _message_request_mode(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the rows of `MessageRequestModeSerializeWrapper.messageRequestModeMap`: topic -> group -> mode."""
    for topic, groups in payload.entries("messageRequestModeMap", required=False):
        for group, mode in _Node({"groups": groups.value}, "{}", groups).entries("groups"):
            yield Fact(
                "message_request_mode",
                {
                    "broker_name": envelope.broker,
                    "consumer_group": str(group),
                    "topic": str(topic),
                    "mode": mode.text_or_none("mode"),
                    "pop_share_queue_count": mode.integer_or_none("popShareQueueNum"),
                },
            )


def _consumer_order_info(envelope: Envelope, payload: _Node) -> Iterator[Fact]:
    """Yield the rows of `ConsumerOrderInfoManager.table`: `topic@group` -> queue id -> `OrderInfo` (5.5.0: `QueueLevelConsumerManager`)."""
    for key, queues in payload.entries("table"):
        topic, _, group = str(key).partition("@")
        if not topic or not group or "@" in group:
            continue  # The broker ignores such a key too (`decodeKey`).
        by_queue = _Node({"queues": queues.value}, "{}", queues)
        for queue_id, info in by_queue.integer_entries("queues"):
            yield Fact(
                "queue_order_lock",
                {
                    "consumer_group": group,
                    "topic": topic,
                    "broker_name": envelope.broker,
                    "queue_id": _java_integer(queue_id, 32, f"a key of {queues.path}"),
                    "captured_at": envelope.captured_at.isoformat(),
                }
                | _order_lock(info),
            )


def _order_lock(info: _Node) -> dict[str, Any]:
    """Return the columns of an `OrderInfo`: its `needBlock` blocks the queue until the last unacknowledged message is visible again."""
    pop_time_ms = info.integer("popTime", bits=64)
    invisible_ms = info.integer_or_none("i", bits=64)
    visible_at_ms = {
        offset: at.own_integer(bits=64) for offset, at in info.integer_entries("ot", required=False)
    }
    redelivery_counts = {
        offset: count.own_integer() for offset, count in info.integer_entries("oc", required=False)
    }
    # The first number is an offset, the others are relative to it.
    numbers = [number.own_integer(bits=64) for number in info.items("o", required=False)]
    offsets = [
        _java_integer(number + (numbers[0] if index else 0), 64, f"{info.path}.o[{index}]")
        for index, number in enumerate(numbers)
    ]
    acknowledged_bits = info.integer("cm", bits=64)
    # Java shifts a long by its lowest six bits.
    in_flight_offsets = [
        offset for index, offset in enumerate(offsets) if not acknowledged_bits >> index % 64 & 1
    ]
    # Without an invisible time, that of the next request applies, which is unknown.
    lease_ends = (
        [visible_at_ms.get(offset, pop_time_ms + invisible_ms) for offset in in_flight_offsets]
        if invisible_ms is not None and invisible_ms > 0
        else []
    )
    return {
        "popped_at": _instant(pop_time_ms),
        "invisible_ms": invisible_ms,
        "in_flight_count": len(in_flight_offsets),
        "head_offset": in_flight_offsets[0] if in_flight_offsets else None,
        "last_offset": offsets[-1] if offsets else None,
        "redelivery_count": redelivery_counts.get(in_flight_offsets[0], 0) if in_flight_offsets else None,
        "next_visible_at": _instant(min(lease_ends, default=None)),
        "blocked_until": _instant(max(lease_ends, default=None)),
    }


_READERS: dict[str, Callable[[Envelope, _Node], Iterator[Fact]]] = {
    "nameserver_cluster_info": _cluster_info,
    "nameserver_route": _route,
    "broker_topic_config": _topic_config,
    "broker_subscription_group": _subscription_group,
    "broker_message_request_mode": _message_request_mode,
    "consumer_order_info": _consumer_order_info,
    "broker_topic_stats": _topic_stats,
    "consumer_connection": _consumer_connection,
    "proxy_consumer_connection": _consumer_connection,
    "consumer_running_info": _running_info,
    "process_assignment": _running_info,
    "consumer_status": _consumer_status,
    "consume_stats": _consume_stats,
}
"""Parser by kind. Other kinds remain in the export and are counted in `export_record`."""
