"""One example of every strategy in every variant, for tests that apply to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq import java_strings as java
from strategies import MessageQueue, RocketMQError, RoomOfName, RoomPart, Strategy, get_strategy
from strategies.by_config import ConfigByClient
from tests.support import strategy_generators

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONFIGURED = [MessageQueue("TopicTest", "broker-a", 1)] * 2 + [
    MessageQueue("%RETRY%G", "@b", 0),
    MessageQueue("Elsewhere", "broker-a", 0),
]


@dataclass(frozen=True)
class Listed:
    """Some queues of one topic on one broker."""

    topic: str
    broker_name: str
    queue_ids: Sequence[int]


LISTS = {
    client_id: [
        *(
            Listed("TopicTest", broker, [at % 3, at % 5, at % 3])
            for broker in strategy_generators.BROKERS[at % 2 :: 2]
        ),
        Listed("%RETRY%G", strategy_generators.BROKERS[at % 3], range(at % 4)),
        Listed("Elsewhere", "broker-a", [0]),
    ]
    for at, client_id in enumerate(
        [*(f"10.0.0.{number}@{number}" for number in range(9)), "room1-c0", "room3-c1"]
    )
}
"""Lists for most clients, with repeats, queues in two lists, and queues that no topic has."""

EVERY_QUEUE = [
    MessageQueue(topic, broker, number)
    for topic in ("TopicTest", "%RETRY%G")
    for broker in strategy_generators.BROKERS
    for number in range(6)
]
PREVIOUS = {queue: f"10.0.0.{at % 5}@{at % 5}" for at, queue in enumerate(EVERY_QUEUE) if at % 7}
LAG_COUNT = {queue: at * at % 101 for at, queue in enumerate(EVERY_QUEUE)}


def room_of_queue(queue: MessageQueue) -> str | None:
    """Return the room of a queue: most brokers have rooms, one has none, and one raises an error."""
    if queue.broker_name == "room1@b@":
        raise RocketMQError("IllegalStateException", "no room for broker")
    return None if queue.broker_name == "@" else f"room{1 + queue.queue_id % 2}"


def room_of_client(client_id: str) -> str | None:
    return f"room{1 + len(client_id) % 3}"


def nearby(inner: Callable[[], Strategy], language: str = "JAVA") -> Strategy:
    return get_strategy(
        "MACHINE_ROOM_NEARBY",
        client_language=language,
        inner=inner(),
        broker_room=room_of_queue,
        consumer_room=room_of_client,
    )


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "average": partial(get_strategy, "AVG"),
    "circle": partial(get_strategy, "AVG_BY_CIRCLE"),
    "config": partial(get_strategy, "CONFIG", message_queues=CONFIGURED),
    "config null": partial(get_strategy, "CONFIG", message_queues=None),
    "config by client": lambda: ConfigByClient(LISTS),
    "hash": partial(get_strategy, "CONSISTENT_HASH"),
    "hash empty ring": partial(get_strategy, "CONSISTENT_HASH", virtual_node_count=0),
    "hash of a negative number": partial(get_strategy, "CONSISTENT_HASH", hash_function=java.hash_code),
    "hash with collisions": partial(get_strategy, "CONSISTENT_HASH", hash_function=len),
    "hash in Latin-1": partial(
        get_strategy, "CONSISTENT_HASH", client_version="4.9.7", platform_charset="iso-8859-1"
    ),
    "hash in Go": partial(get_strategy, "CONSISTENT_HASH", client_language="GO", virtual_node_count=3),
    "hash in Go, empty ring": partial(
        get_strategy, "CONSISTENT_HASH", client_language="GO", virtual_node_count=0
    ),
    "room": partial(get_strategy, "MACHINE_ROOM", consumer_idcs={"room1", "", "@"}),
    "room null": partial(get_strategy, "MACHINE_ROOM", consumer_idcs=None),
    "room 4.7.1": partial(get_strategy, "MACHINE_ROOM", client_version="4.7.1", consumer_idcs={"room1", ""}),
    "room in Go": partial(
        get_strategy, "MACHINE_ROOM", client_language="GO", consumer_idcs=["room1"] * 3 + [""]
    ),
    "nearby average": lambda: nearby(partial(get_strategy, "AVG")),
    "nearby hash": lambda: nearby(partial(get_strategy, "CONSISTENT_HASH")),
    "nearby config": lambda: nearby(partial(get_strategy, "CONFIG", message_queues=CONFIGURED)),
    "nearby config null": lambda: nearby(partial(get_strategy, "CONFIG", message_queues=None)),
    "nearby room null": lambda: nearby(partial(get_strategy, "MACHINE_ROOM", consumer_idcs=None)),
    "nearby nearby": lambda: nearby(lambda: nearby(partial(get_strategy, "AVG_BY_CIRCLE"))),
    "nearby by parts of names": lambda: get_strategy(
        "MACHINE_ROOM_NEARBY",
        inner=get_strategy("AVG"),
        broker_room=RoomPart("@"),
        consumer_room=RoomPart("-"),
    ),
    "nearby by functions of names": lambda: get_strategy(
        "MACHINE_ROOM_NEARBY",
        inner=get_strategy("AVG_BY_CIRCLE"),
        broker_room=RoomOfName(lambda name: f"room{1 + len(name) % 2}" if name else None),
        consumer_room=RoomOfName(room_of_client),
    ),
    "nearby with clients without a room": lambda: get_strategy(
        "MACHINE_ROOM_NEARBY",
        inner=get_strategy("AVG_BY_CIRCLE"),
        broker_room=RoomOfName(lambda _: "room"),
        consumer_room=lambda client_id: "room" if len(client_id) % 3 else None,
    ),
    "nearby in Go": lambda: nearby(partial(get_strategy, "AVG"), "GO"),
    "sticky": partial(get_strategy, "STICKY", previous=PREVIOUS),
    "bounded load": partial(get_strategy, "BOUNDED_LOAD_HASH", virtual_node_count=3),
    "tightly bounded load": partial(get_strategy, "BOUNDED_LOAD_HASH", load_factor=1),
    "lag": partial(get_strategy, "LAG_WEIGHTED", lag_count=LAG_COUNT),
    "lag partly unknown": partial(get_strategy, "LAG_WEIGHTED", lag_count=dict(list(LAG_COUNT.items())[9:])),
    "cross topic": partial(get_strategy, "CROSS_TOPIC_FAIR", queue_counts={"%RETRY%G": 5, "TopicTest": 9}),
    "canary": partial(get_strategy, "CANARY", is_canary=lambda client_id: len(client_id) % 2 == 0, share=0.3),
}
