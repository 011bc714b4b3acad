"""The result of fastjson 1 for an offset file: a wrapper with its table and queues, and ignored values (those of other fields).

Belongs here: the values, and what one holds of another. Does not belong here: how a text becomes one (`parsing`
and `deserializers`), and conversions between them (`deserializers.casts`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rebalance_ledger.rocketmq.offset_files.java_values import BigDecimal, joined
from rebalance_ledger.rocketmq.offset_files.outcome import OffsetKey


@dataclass(eq=False, slots=True)
class Queue:
    """A `MessageQueue`. Fields are what a reader has set."""

    topic: str | None = None
    brokerName: str | None = None  # noqa: N815  # As the file names them.
    queueId: int = 0  # noqa: N815

    def key(self) -> OffsetKey:
        """Return the queue as a key of the result's table."""
        topic, broker = (None if name is None else joined(name) for name in (self.topic, self.brokerName))
        return OffsetKey(topic, broker, self.queueId)


@dataclass(eq=False, slots=True)
class Table:
    """The `ConcurrentHashMap` of a wrapper.

    Generics let a reference put something else than a queue or an offset into it. Whether the client notices depends on
    what it does with the table: `is_foreign` then, and nobody can say what comes of it.
    """

    offsets: dict[OffsetKey, int] = field(default_factory=dict)
    is_foreign: bool = False


@dataclass(eq=False, slots=True)
class Wrapper:
    """An `OffsetSerializeWrapper`."""

    offsetTable: Table | None = field(default_factory=Table)  # noqa: N815  # As the file names it.


class Number(NamedTuple):
    """An ignored number: `value` is an int, a BigDecimal, or None for a float."""

    kind: str
    value: int | BigDecimal | None


@dataclass(eq=False, slots=True)
class Container:
    """A `JSONObject`, `JSONArray` or set in an ignored value.

    Attributes:
        kind: Which.
        entries: An object's, by name; a name that is an object or array is that.
        elements: An array's or set's, those that hold others; `count` is the number of all.
        count: See there.
    """

    kind: str
    entries: dict[object, Value] = field(default_factory=dict)
    elements: list[Value] = field(default_factory=list)
    count: int = 0

    def inner(self) -> list[Container]:
        """Return the containers in it, and those that references in it lead to."""
        held = (*self.entries, *self.entries.values(), *self.elements)
        targets = (each.target if isinstance(each, Special) else each for each in held)
        return [each for each in targets if isinstance(each, Container)]


@dataclass(frozen=True, slots=True)
class Special:
    """A date, bytes, or a reference, which may lead to a `target`."""

    kind: str
    target: Container | None = None


Value: TypeAlias = "str | bool | Number | Container | Special | None"
"""An ignored value, or a value within one."""

Bean: TypeAlias = "Queue | Wrapper"
"""An object of a class that fastjson has generated a reader for."""

AnyValue: TypeAlias = "Value | Bean | Table"
"""Whatever a reference may lead to."""


def has_containers_as_names(start: Container) -> bool:
    """Return whether `start` or what it holds has a set, or an object for a name: then when each hash was asked decides."""
    visited: dict[int, Container] = {}
    stack = [start]
    while stack:
        container = stack.pop()
        if id(container) in visited:
            continue
        visited[id(container)] = container
        if container.kind == "set" or any(isinstance(key, Container) for key in container.entries):
            return True
        stack += container.inner()
    return False


def contains_cycle(start: Container) -> bool:
    """Return whether some container below `start`, or itself, holds itself."""
    path: dict[int, list[Container]] = {id(start): start.inner()}
    done: set[int] = set()
    while path:
        container_id, stack = next(reversed(path.items()))
        if not stack:
            del path[container_id]
            done.add(container_id)
            continue
        inner = stack.pop()
        if id(inner) in path:
            return True
        if id(inner) not in done:
            path[id(inner)] = inner.inner()
    return False
