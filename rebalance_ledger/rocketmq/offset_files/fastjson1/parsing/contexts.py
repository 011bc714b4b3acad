"""Contexts and references of fastjson 1: `ParseContext` and `ResolveTask`, and what `DefaultJSONParser` does with them.

Belongs here: where a parser is, what references lead to, and when they are followed. Does not belong here: how a reference
stands in a text (`object_parser`, `deserializers.bean`, `deserializers.table`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from rebalance_ledger.rocketmq.offset_files.fastjson1.values import (
    AnyValue,
    Container,
    Special,
    Table,
    Wrapper,
    contains_cycle,
    has_containers_as_names,
)
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

# A search goes through every object so far: more of them than anybody writes would take a file's length squared.
_MOST_SEARCHES: Final = 16


@dataclass(eq=False, slots=True)
class Context:
    """`ParseContext`: an object that is being read, and where it is. References are paths of these."""

    parent: Context | None
    object: AnyValue
    name: str | int | None
    level: int = 0

    def path(self) -> str:
        """`toString`."""
        steps = []
        context = self
        while context.parent is not None:
            name = "null" if context.name is None else context.name
            steps.append(f"[{name}]" if isinstance(name, int) else f".{name}")
            context = context.parent
        return "$" + "".join(reversed(steps))

    def root(self) -> Context:
        """Return the outermost context, which `$` leads to."""
        context = self
        while context.parent is not None:
            context = context.parent
        return context


class _ResolveTask(NamedTuple):
    """`ResolveTask`: a reference to something that was not there yet, and whose place it is to take."""

    path: str
    owner: Table | Wrapper | None


class Contexts:
    """The contexts and the references of one `DefaultJSONParser`.

    Attributes:
        current: The context of what is being read.
        awaits_reference: `resolveStatus`: whether the last reference has no owner yet.
        has_inner_reference: Whether a reference has led to a container in an ignored value.
        has_reference_as_name: Whether a reference has stood for a name.
    """

    def __init__(self) -> None:
        self.current: Context | None = None
        self.awaits_reference = False
        self.has_inner_reference = False
        self.has_reference_as_name = False
        self._contexts: list[Context] = []
        self._tasks: list[_ResolveTask] = []
        self._search_count = 0

    def enter(self, parent: Context | None, value: AnyValue, name: str | int | None) -> Context:
        """`setContext(ParseContext, Object, Object)`."""
        self.current = Context(parent, value, name, 0 if parent is None else parent.level + 1)
        self._contexts.append(self.current)
        return self.current

    def leave(self) -> None:
        """`popContext`."""
        if self.current is not None:
            self.current = self.current.parent
            self._contexts.pop()

    def find(self, path: str) -> AnyValue:
        """`getObject` and `resolveReference`."""
        self._count_search()
        return next((context.object for context in self._contexts if context.path() == path), None)

    def await_reference(self, path: str) -> None:
        """`addResolveTask`."""
        self._tasks.append(_ResolveTask(path, None))
        self.awaits_reference = True

    def give_reference_to(self, owner: Table | Wrapper | None) -> None:
        """`checkMapResolve` and its kin: the last reference is to take a place in this owner."""
        if self.awaits_reference:
            self._tasks[-1] = self._tasks[-1]._replace(owner=owner)
            self.awaits_reference = False

    def resolve(self) -> None:
        """`handleResovleTask`. In ignored values, a reference has no effect."""
        if self.has_inner_reference:
            self._refuse_to_mix_references()
        for path, owner in self._tasks:
            if owner is None:
                continue
            target = self.find(path) if path.startswith("$") else None
            if target is None:
                raise UndecidedError(Doubt.REFERENCE)
            if isinstance(owner, Table):
                owner.is_foreign = True
            elif isinstance(target, Table):
                owner.offsetTable = target
            else:
                raise RefusedError("a reference leads to another class")

    def check_hash(self, value: object) -> None:
        """`hashCode` goes through all that a value holds: where that leads back, the stack overflows, and the file is refused."""
        start = value.target if isinstance(value, Special) else value
        if not self.has_inner_reference or not isinstance(start, Container):
            return
        self._count_search()
        if contains_cycle(start):
            self._refuse_to_mix_references()
            if self.has_reference_as_name or has_containers_as_names(start):
                raise UndecidedError(Doubt.REFERENCE)
            raise RefusedError("what stands for a name or in a set contains itself")

    def _count_search(self) -> None:
        self._search_count += 1
        if self._search_count > _MOST_SEARCHES:
            raise UndecidedError(Doubt.REFERENCE)

    def _refuse_to_mix_references(self) -> None:
        """Raise `UndecidedError` if references wait for the end while others lead inside: the stack decides what is ever looked at."""
        if self._tasks:
            raise UndecidedError(Doubt.REFERENCE)


def remove_backslashes(path: str) -> str:
    """Return the path of a reference without the backslashes that escape its characters."""
    plain = re.sub(r"\\(.)", r"\1", path, flags=re.DOTALL)
    if len(path) - len(path.rstrip("\\")) & 1:
        raise RefusedError("a reference ends in a backslash")
    return plain
