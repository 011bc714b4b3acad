"""`MessageQueue`: one queue of one topic on one broker.

Belongs here: identity, order, hash and text of a queue, and the sorted lists of queues and client ids.
Does not belong here: who owns a queue.
Source: `org.apache.rocketmq.common.message.MessageQueue`, the same from 4.1.0 to 5.5.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq import java_strings as java
from rebalance_ledger.rocketmq.errors import null_pointer
from rebalance_ledger.rocketmq.versions import Language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class MessageQueue:
    """One queue. Equal to another queue when all three fields are; `None` stands for Java's null.

    Attributes:
        topic: The topic's name.
        broker_name: The broker's name, shared by a master and its slaves.
        queue_id: The number of the queue on the broker, a 32-bit integer; -1 means "all of this broker" in
            POP assignments.
    """

    topic: str | None
    broker_name: str | None
    queue_id: int

    def __str__(self) -> str:
        return queue_text(self.topic, self.broker_name, self.queue_id)

    def __lt__(self, other: MessageQueue) -> bool:
        return self.compare_to(other) < 0

    def __le__(self, other: MessageQueue) -> bool:
        return self.compare_to(other) <= 0

    def __gt__(self, other: MessageQueue) -> bool:
        return self.compare_to(other) > 0

    def __ge__(self, other: MessageQueue) -> bool:
        return self.compare_to(other) >= 0

    def compare_to(self, other: MessageQueue) -> int:
        """`compareTo`: negative, zero or positive, by topic, broker name, then queue id.

        Java subtracts the ids in 32 bits, so ids that are more than 2^31 apart compare the wrong way round.

        Raises:
            RocketMQError: `NullPointerException` when a name that decides is null.
        """
        return (
            _compare_names(self.topic, other.topic)
            or _compare_names(self.broker_name, other.broker_name)
            or java.to_int(self.queue_id - other.queue_id)
        )

    def hash_code(self) -> int:
        """`hashCode`, a 32-bit integer."""
        result = 1
        for part in (_name_hash(self.broker_name), self.queue_id, _name_hash(self.topic)):
            result = 31 * result + part
        return java.to_int(result)


def queue_text(topic: str | None, broker_name: str | None, queue_id: int) -> str:
    """`MessageQueue.toString`, which CONSISTENT_HASH hashes."""
    return queue_text_stem(topic, broker_name) + queue_text_tail(queue_id)


def queue_text_stem(topic: str | None, broker_name: str | None) -> str:
    """Return the part of `queue_text` that the queues of a topic on a broker share."""
    topic_text = "null" if topic is None else topic
    broker_text = "null" if broker_name is None else broker_name
    return f"MessageQueue [topic={topic_text}, brokerName={broker_text}, queueId="


def queue_text_tail(queue_id: int) -> str:
    """Return the rest of `queue_text`."""
    return f"{queue_id}]"


def _compare_names(one: str | None, other: str | None) -> int:
    if one is None or other is None:
        raise null_pointer("a topic or broker name to compare is null")
    one_key, other_key = java.order_key(one), java.order_key(other)
    return (one_key > other_key) - (one_key < other_key)


def _name_hash(name: str | None) -> int:
    return 0 if name is None else java.hash_code(name)


def sort_queues(queues: Iterable[MessageQueue], client_language: str = "JAVA") -> list[MessageQueue]:
    """Return the queues in the order in which a client hands them to its strategy.

    Args:
        queues: Queues in any order; equal ones are kept.
        client_language: `JAVA` compares names by UTF-16 code unit, `GO` and `CPP` by UTF-8 byte.

    Raises:
        RocketMQError: `NullPointerException` when one of several queues has a null name.
        UnknownNameError: The language is not one of those.
    """
    items = list(queues)
    key = _name_key(client_language)
    if len(items) < 2:  # noqa: PLR2004  a single queue is never compared, so its names may be null
        return items
    ids = [queue.queue_id for queue in items]
    if key is java.order_key and max(ids) - min(ids) > java.INT_MAX:
        # Only here the wrapped subtraction can matter, and no key expresses it.
        return sorted(items, key=cmp_to_key(MessageQueue.compare_to))
    # Sorting by distinct names once is what makes a large cluster cheap: names repeat, queues do not.
    names = {name for queue in items for name in (queue.topic, queue.broker_name)}
    if None in names:
        raise null_pointer("a topic or broker name to compare is null")
    keys = {name: key(name) for name in names if name is not None}
    return sorted(
        items,
        key=lambda queue: (keys[queue.topic or ""], keys[queue.broker_name or ""], queue.queue_id),
    )


def sort_client_ids(client_ids: Iterable[str], client_language: str = "JAVA") -> list[str]:
    """Return the client ids in the order in which a client hands them to its strategy; duplicates are kept.

    Raises:
        UnknownNameError: The language is not `JAVA`, `GO` or `CPP`.
    """
    key = _name_key(client_language)
    items = list(client_ids)
    # ASCII has one order under every key, and sorting 5,000 ids without keys takes a third of the time.
    return sorted(items) if all(map(str.isascii, items)) else sorted(items, key=key)


def _name_key(client_language: str) -> Callable[[str], bytes]:
    return java.order_key if Language.parse(client_language) is Language.JAVA else java.byte_order_key
