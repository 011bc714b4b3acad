"""Answers of earlier attempts of a day, so that a further attempt repeats only failed questions.

Belongs here: the line of a sealed export that answers a question, and whether to repeat the question. Does not belong here: calls
(`live`) and replacing the export (`rebalance_ledger.exports.writer`).

Memory holds only the location of each line, about 100 bytes each; payloads stay on disk.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.collectors.admin import Answer, Question
from rebalance_ledger.collectors.tally import is_failure
from rebalance_ledger.exports.contract import KIND_BY_NAME, Envelope, parse_envelope
from rebalance_ledger.exports.payloads import error_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest

_Key = tuple[str, ...]

# A member's answer does not depend on the broker that forwards the request.
_KEYS: Final = {
    "consumer_running_info": ("group", "client_id"),
    "consumer_status": ("group", "client_id", "topic"),
}
_ALL_KEYS: Final = ("nameserver", "broker", "broker_addr", "proxy", "group", "topic", "client_id")
_NOT_OF_SOURCES: Final = frozenset({"event", "capture_attempt", "offset_file", "broker_file"})


@dataclass(frozen=True, slots=True)
class Line:
    """A question and its answer: the content of one line of an export.

    Attributes:
        question: The question.
        answer: The answer.
        at: Time of the answer.
        attempt: Number of the attempt, from 1; None if the day has a single attempt.
    """

    question: Question
    answer: Answer
    at: datetime
    attempt: int | None


class _Location(NamedTuple):
    kind: str
    offset: int
    size: int


class EarlierAnswers:
    """The lines of one sealed export, by question; thread-safe.

    Attributes:
        directory: Directory of the export.
        attempt_count: Number of attempts in the export.
        asks_everything: Whether to repeat every question, and use an earlier answer only where the new one fails.
    """

    def __init__(self, directory: Path, manifest: Manifest, *, asks_everything: bool) -> None:
        """Index the lines of the export.

        Raises:
            OSError: A file cannot be read.
        """
        self.attempt_count = max((attempt.attempt for attempt in manifest.attempts), default=1)
        self.asks_everything = asks_everything
        self.directory = directory
        self._lock = threading.Lock()
        self._locations: dict[_Key, _Location] = {}
        self._others: list[_Location] = []
        self._groups_again: set[str] = set()
        for file in manifest.envelope_files:
            if file.kind not in _NOT_OF_SOURCES:
                self._index(file.kind)

    def find(self, question: Question) -> Line | None:
        """Return the line with the answer or the failure of a question; None if there is no such line."""
        location = self._locations.get(_key(question))
        return None if location is None else _line_of(self._read(location))

    def is_asked_again(self, question: Question) -> bool:
        """Return whether to repeat a question that has a line: it failed, or another question of its group failed."""
        if self.asks_everything or question.group in self._groups_again:
            return True
        line = self.find(question)
        return line is None or is_failure(question.kind, line.answer)

    def replaced(self, question: Question) -> None:
        """Remove a question from `rest`, because the new export has a line for it."""
        with self._lock:
            self._locations.pop(_key(question), None)

    def rest(self) -> Iterator[tuple[Line, bytes]]:
        """Yield the lines that this attempt has not replaced, except those of groups that it has asked again as a whole."""
        for location in [*self._locations.values(), *self._others]:
            line = self._line(location)
            envelope = parse_envelope(line, location.kind)
            is_of_group_again = envelope.group is not None and (
                self.asks_everything or envelope.group in self._groups_again
            )
            if not is_of_group_again:
                yield _line_of(envelope), line

    def lines_of(self, kind: str) -> Iterator[bytes]:
        """Yield the unchanged lines of a kind that does not come from a server."""
        path = self.directory / KIND_BY_NAME[kind].file_name
        if path.is_file():
            with path.open("rb") as file:
                yield from file

    def _index(self, kind: str) -> None:
        with (self.directory / KIND_BY_NAME[kind].file_name).open("rb") as file:
            offset = 0
            for line in file:
                envelope = parse_envelope(line, kind)
                location = _Location(kind, offset, len(line))
                offset += len(line)
                if envelope.process is not None:
                    self._others.append(location)
                    continue
                earlier = _line_of(envelope)
                self._locations[_key(earlier.question)] = location
                if envelope.group is not None and is_failure(kind, earlier.answer):
                    self._groups_again.add(envelope.group)

    def _line(self, location: _Location) -> bytes:
        with (self.directory / KIND_BY_NAME[location.kind].file_name).open("rb") as file:
            file.seek(location.offset)
            return file.read(location.size)

    def _read(self, location: _Location) -> Envelope:
        return parse_envelope(self._line(location), location.kind)


def _key(question: Question) -> _Key:
    names = _KEYS.get(question.kind, _ALL_KEYS)
    return (question.kind, *(getattr(question, name) for name in names))


def _line_of(envelope: Envelope) -> Line:
    question = Question(kind=envelope.kind, **{name: getattr(envelope, name) or "" for name in _ALL_KEYS})
    if envelope.error is None:
        answer = Answer(payload=(envelope.payload or "").encode(), response_code=0)
    else:
        answer = Answer(
            error_type=envelope.error.type,
            error_message=envelope.error.message,
            response_code=error_code(envelope.error.message),
        )
    return Line(question, answer, envelope.captured_at, envelope.attempt or 1)
