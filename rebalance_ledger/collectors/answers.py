"""What several sources say of a cluster, on its way to become the lines of an export.

What belongs here: which of several answers to one question is taken, and what is reported. What does not: where an
answer comes from (`mqadmin_answers`, `broker_folders`) and the disk (`export_writer`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import date, datetime

    from rebalance_ledger.exports.writer import ExportWriter

UNKNOWN_BROKER: Final = "(unknown)"
"""Stands for the broker, or its address, where a source does not say which one it is."""

UNREADABLE: Final = "UnreadableText"
"""Error type: a text or file is not what its name says."""

INCOMPLETE: Final = "IncompleteSource"
"""Error type: the source leaves out what the line would have to say."""

NOT_GIVEN: Final = "SourceNotGiven"
"""Error type: no source says it."""

_MAX_PLACE_COUNT: Final = 3
"""Places that a notice names; the others are counted."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A line of the export.

    Attributes:
        kind: Its kind.
        asked: What was asked.
        captured_at: When.
        payload: What came back; None for an error.
        error: Its type and message.
        is_preferred: Whether it is taken before another answer to the same question.
    """

    kind: str
    asked: dict[str, str]
    captured_at: datetime
    payload: str | None = None
    error: tuple[str, str] = ("", "")
    is_preferred: bool = True

    @property
    def subject(self) -> tuple[str, ...]:
        """What an export states once; a broker is identified by its name."""
        return (self.kind, *(value for key, value in sorted(self.asked.items()) if key != "broker_addr"))

    @property
    def weight(self) -> tuple[bool, bool, datetime]:
        """Orders the answers to one question: any answer before a failure, then the better source, then the later."""
        return self.payload is not None, self.is_preferred, self.captured_at


@dataclass(slots=True)
class Brokers:
    """The brokers of which some source says the name and the address.

    Attributes:
        names: By address.
        addresses: By name, then by broker id.
        all_names: All brokers that there are; None if no source says that.
    """

    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    addresses: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    all_names: set[str] | None = None

    def add(self, name: str, broker_id: int, address: str) -> None:
        """Learns one broker."""
        self.names[address].add(name)
        self.addresses[name].setdefault(broker_id, address)

    def named(self, name: str) -> dict[str, str]:
        """Return the fields of a line about a broker; its address is that of the master, if any source says it."""
        of_broker = self.addresses.get(name)
        address = of_broker[min(of_broker)] if of_broker else UNKNOWN_BROKER
        return {"broker": name, "broker_addr": address}

    def at(self, address: str) -> dict[str, str] | None:
        """Return the same by address; None if no source, or several that differ, say whose it is."""
        names = self.names.get(address, set())
        return {"broker": next(iter(names)), "broker_addr": address} if len(names) == 1 else None


class AnswerSet:
    """All that is said of one cluster on one day.

    Attributes:
        ds: The day.
        brokers: The brokers that are known.
        problems: Why there can be no export; one sentence each.
    """

    def __init__(self, ds: date) -> None:
        self.ds = ds
        self.brokers = Brokers()
        self.problems: list[str] = []
        self._said: dict[tuple[str, ...], SourceAnswer] = {}
        self._notes: dict[str, list[str]] = {}
        self._other_days: list[SourceAnswer] = []

    def add(self, said: SourceAnswer) -> None:
        """Take an answer, unless a better one to the same question is there."""
        if said.captured_at.date() != self.ds:
            self._other_days.append(said)
        other = self._said.get(said.subject)
        if other is None:
            self._said[said.subject] = said
            return
        if other.weight[:2] == said.weight[:2] and (other.payload, other.error) != (said.payload, said.error):
            self.note(
                " ".join(said.subject), "was asked twice, with different answers; the later one is taken"
            )
        self._said[said.subject] = max(other, said, key=lambda each: each.weight)

    def drop(self, said: SourceAnswer, why: str) -> None:
        """Take an answer out again, and note why."""
        del self._said[said.subject]
        self.note(" ".join(said.subject), why)

    def note(self, place: str, what: str) -> None:
        """Remembers what people must know; equal sentences of many places become one."""
        self._notes.setdefault(what, []).append(place)

    def lines(self, kind: str | None = None) -> list[SourceAnswer]:
        """Return the lines of a kind, or all, in the order of their subjects."""
        return [
            said
            for _, said in sorted(self._said.items(), key=lambda item: item[0])
            if kind in {None, said.kind}
        ]

    @property
    def notices(self) -> tuple[str, ...]:
        """One sentence for each thing that people must know, however many places it concerns."""
        return tuple(
            f"{', '.join(places[:_MAX_PLACE_COUNT])}"
            f"{f' and {len(places) - _MAX_PLACE_COUNT} more' if len(places) > _MAX_PLACE_COUNT else ''}: {what}"
            for what, places in self._notes.items()
        )

    def refusals(self) -> list[str]:
        """Return the problems, with one for all that was captured on other days."""
        if not self._other_days:
            return self.problems
        first = self._other_days[0]
        problem = (
            f"{len(self._other_days)} answers are not of {self.ds} UTC; the first, {' '.join(first.subject)}, was captured at "
            f"{first.captured_at:%Y-%m-%dT%H:%M:%SZ}: give the sources of that day, or say with --captured-at when they "
            "were captured"
        )
        return [problem, *self.problems]

    def write(self, writer: ExportWriter) -> None:
        """Write the lines, and the notices as events."""
        for said in self.lines():
            if said.payload is not None:
                writer.payload(said.kind, said.captured_at, said.payload, **said.asked)
            else:
                writer.error(said.kind, said.captured_at, *said.error, **said.asked)
        last = max(said.captured_at for said in self.lines())
        for notice in self.notices:
            writer.event(last, notice)
