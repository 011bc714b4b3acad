"""The result of reading one offset file.

Belongs here: the values that the readers give back, and the exceptions between their parts. Does not belong here: which
of two files a client starts from (`start_up`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


class OffsetKey(NamedTuple):
    """The three fields of a `MessageQueue` in a file; a missing name is None.

    Names may hold half a surrogate pair, which neither UTF-8 nor Arrow can carry.
    """

    topic: str | None
    broker_name: str | None
    queue_id: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """The file contains a table.

    Attributes:
        table: Queue -> offset, in the order of the file; of a queue that stands twice the last offset.
    """

    table: Mapping[OffsetKey, int]


@dataclass(frozen=True, slots=True)
class NoTable:
    """The client reads the file, which contains no table: `null`, or a `null` table.

    A client that reads this in `offsets.json` does not look at the `.bak` file: it has no stored offset.

    Attributes:
        has_object: Whether there is an object around the `null` table. Since 5.2.0 (and in 4.9.8) a client
            throws `NullPointerException` when it persists onto such a file, so the file stays as it is.
    """

    has_object: bool


@dataclass(frozen=True, slots=True)
class Empty:
    """The file has no characters; the client treats it as missing."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The client's reader throws an exception.

    Attributes:
        reason: What is wrong with the text, in a few words.
    """

    reason: str


class Doubt(Enum):
    """Why the bytes and the release do not determine what a client reads. RocketMQ never writes such a file."""

    NESTING = "the text nests so deep that the client's stack decides"
    TYPE_NAME = "a type name stands where the client's class path decides"
    REFERENCE = "a reference leads somewhere that only the library can find"
    DATE = "an offset is a date, which the client's time zone decides"
    OBJECT = "an object, an array or a fraction stands where a name or a number should"
    LOCALE = "a number is a text, which the client's locale decides"
    BUFFER = "a long string holds U+001A, and what the client read before decides"


@dataclass(frozen=True, slots=True)
class Undecided:
    """The result depends on more than the file and the release.

    Attributes:
        doubt: What it depends on.
    """

    doubt: Doubt


Outcome: TypeAlias = Offsets | NoTable | Empty | Refused | Undecided

OUTCOME_NAMES: Final[dict[type[Outcome], str]] = {
    Offsets: "offsets",
    NoTable: "no_table",
    Empty: "empty",
    Refused: "refused",
    Undecided: "undecided",
}
"""What outcomes are called in tables."""


class RefusedError(Exception):
    """Internal to the readers: the client's reader throws an exception here."""


class UndecidedError(Exception):
    """Internal to the readers: from here on, the result depends on more than the text.

    Attributes:
        doubt: What decides.
    """

    def __init__(self, doubt: Doubt) -> None:
        super().__init__(doubt.value)
        self.doubt = doubt
