"""Answers of several sources about one cluster, before they become the lines of an export.

Belongs here: the choice between several answers to one question, and notices. Does not belong here: the origin of answers
(`mqadmin_answers`, `broker_folders`), and files on disk (`rebalance_ledger.exports.writer`).
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.contract import UNKNOWN_BROKER

if TYPE_CHECKING:
    from datetime import date, datetime

    from rebalance_ledger.exports.writer import ExportWriter

UNREADABLE: Final = "UnreadableText"
"""Error type: a text or file does not have the expected format."""

INCOMPLETE: Final = "IncompleteSource"
"""Error type: the source lacks information that the line requires."""

NOT_GIVEN: Final = "SourceNotGiven"
"""Error type: no source has the answer."""

_MAX_PLACE_COUNT: Final = 3
"""Number of places that a notice lists; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A line of the export.

    Attributes:
        kind: Kind of the line.
        request: Fields that identify the request.
        captured_at: Time of the capture.
        payload: The payload; None for an error.
        error: Type and message of the error.
        is_preferred: Whether it takes precedence over another answer to the same question.
    """

    kind: str
    request: dict[str, str]
    captured_at: datetime
    payload: str | None = None
    error: tuple[str, str] = ("", "")
    is_preferred: bool = True

    @property
    def subject(self) -> tuple[str, ...]:
        """Key of the line, unique in an export; a broker is identified by its name, not its address."""
        return (self.kind, *(value for key, value in sorted(self.request.items()) if key != "broker_addr"))

    @property
    def weight(self) -> tuple[bool, bool, datetime]:
        """Sort key for answers to one question: a payload wins over an error, then the preferred source, then the later one."""
        return self.payload is not None, self.is_preferred, self.captured_at


@dataclass(slots=True)
class Brokers:
    """Names and addresses of brokers, as far as sources contain them.

    Attributes:
        names: Names by address.
        addresses: Addresses by name, then by broker id.
        all_names: Names of all brokers of the cluster; None if no source has them.
    """

    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    addresses: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    all_names: set[str] | None = None

    def add(self, name: str, broker_id: int, address: str) -> None:
        """Add one broker."""
        self.names[address].add(name)
        self.addresses[name].setdefault(broker_id, address)

    def by_name(self, name: str) -> dict[str, str]:
        """Return the fields of a line about a broker, with the address of its master if a source has it."""
        of_broker = self.addresses.get(name)
        address = of_broker[min(of_broker)] if of_broker else UNKNOWN_BROKER
        return {"broker": name, "broker_addr": address}

    def by_address(self, address: str) -> dict[str, str] | None:
        """Return the same by address; None if no broker or several brokers have it."""
        names = self.names.get(address, set())
        return {"broker": next(iter(names)), "broker_addr": address} if len(names) == 1 else None


class AnswerSet:
    """All answers of one cluster and day.

    Attributes:
        ds: The UTC day.
        brokers: The known brokers.
        problems: Problems that prevent an export, one sentence each.
    """

    def __init__(self, ds: date) -> None:
        self.ds = ds
        self.brokers = Brokers()
        self.problems: list[str] = []
        self._answers: dict[tuple[str, ...], SourceAnswer] = {}
        self._notes: dict[str, list[str]] = {}
        self._other_days: list[SourceAnswer] = []

    def add(self, answer: SourceAnswer) -> None:
        """Add an answer, unless the set has a better one to the same question."""
        if answer.captured_at.date() != self.ds:
            self._other_days.append(answer)
        other = self._answers.get(answer.subject)
        if other is None:
            self._answers[answer.subject] = answer
            return
        if other.weight[:2] == answer.weight[:2] and (other.payload, other.error) != (
            answer.payload,
            answer.error,
        ):
            self.note(" ".join(answer.subject), "has two different answers; the later one is used")
        self._answers[answer.subject] = max(other, answer, key=lambda each: each.weight)

    def drop(self, answer: SourceAnswer, reason: str) -> None:
        """Remove an answer and note the reason."""
        del self._answers[answer.subject]
        self.note(" ".join(answer.subject), reason)

    def takes_name(self, name: str) -> bool:
        """Return whether the name of a file or folder is UTF-8; if not, add the problem, because no export can have the name."""
        raw = os.fsencode(name)
        try:
            raw.decode()
        except UnicodeDecodeError:
            shown = raw.decode(errors="backslashreplace")
            self.problems.append(f"the name {shown} is not UTF-8; rename it, or leave it out")
            return False
        return True

    def note(self, place: str, notice: str) -> None:
        """Add a notice; equal notices of several places are joined."""
        self._notes.setdefault(notice, []).append(place)

    def lines(self, kind: str | None = None) -> list[SourceAnswer]:
        """Return the lines of a kind, or of all kinds, sorted by subject."""
        return [
            answer
            for _, answer in sorted(self._answers.items(), key=lambda item: item[0])
            if kind in {None, answer.kind}
        ]

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices, one sentence each, with the first places that each concerns."""
        return tuple(
            f"{', '.join(places[:_MAX_PLACE_COUNT])}"
            f"{f' and {len(places) - _MAX_PLACE_COUNT} more' if len(places) > _MAX_PLACE_COUNT else ''}: {notice}"
            for notice, places in self._notes.items()
        )

    def refusals(self) -> list[str]:
        """Return the problems, plus one for all answers captured on other days."""
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
        for answer in self.lines():
            if answer.payload is not None:
                writer.payload(answer.kind, answer.captured_at, answer.payload, **answer.request)
            else:
                writer.error(answer.kind, answer.captured_at, *answer.error, **answer.request)
        last = max(answer.captured_at for answer in self.lines())
        for notice in self.notices:
            writer.event(last, notice)
