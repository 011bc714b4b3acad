"""The offsets with which a broadcasting client starts, from its offset file and its `.bak` file.

Belongs here: which file counts, and what follows when neither can be read. Does not belong here: the offset that a client
takes where none is stored, which depends on its settings and on the broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.offset_files.outcome import (
    Empty,
    NoTable,
    OffsetKey,
    Offsets,
    Outcome,
    Refused,
    Undecided,
)
from rebalance_ledger.rocketmq.offset_files.reading import read_as
from rebalance_ledger.rocketmq.offset_files.releases import Layout, offset_format

if TYPE_CHECKING:
    from collections.abc import Mapping

REFUSED_MESSAGE: Final = "readLocalOffset Exception, maybe fastjson version too low"
"""How the message of the `MQClientException` begins, with which a Java client does not start."""


class Verdict(Enum):
    """Result of a start."""

    STORED = "the client goes on from stored offsets"
    DEFAULT = "the client has no stored offset, and begins where its settings say"
    FAILS = "the client does not start"
    UNDECIDED = "more than the files decides"


class Source(Enum):
    """The file that the client uses."""

    MAIN = "main"
    BAK = "bak"


@dataclass(frozen=True, slots=True)
class StartUp:
    """The result of a start, and its reason.

    Attributes:
        verdict: What comes of it.
        source: The file that the verdict rests on; None where neither has anything.
        reason: One sentence, for people.
        main: What `offsets.json` (Go: `offset.json`) is to the client; None if it is missing.
        bak: What the `.bak` file would be to it, whether it is looked at or not; None if it is missing.
        table: The stored offsets; a queue that is not among them begins where the settings say.
    """

    verdict: Verdict
    source: Source | None
    reason: str
    main: Outcome | None
    bak: Outcome | None
    table: Mapping[OffsetKey, int] = field(default_factory=dict)


def start_up(
    main: bytes | None,
    bak: bytes | None,
    *,
    client_version: str,
    client_language: str = "JAVA",
    platform_charset: str = "UTF-8",
) -> StartUp:
    """Return the offsets that a client loads when it starts: `LocalFileOffsetStore.load` of every release from 4.1.0 to 5.5.0.

    A main file that is missing, empty or refused sends the client to the `.bak` file; one that holds no table does not.
    A `.bak` file that is refused as well stops the start. Go's client (2.1.2) never finds its `.bak` file, and begins
    where its settings say when it cannot read its file.

    Args:
        main: The bytes of the file; None if it is missing, or the client may not read it.
        bak: The bytes of the file beside it, or None.
        client_version: See `read_offset_file`.
        client_language: See `read_offset_file`.
        platform_charset: See `read_offset_file`.

    Raises:
        UnknownNameError: The language or the release is unknown.
        ValueError: The language or the charset is one that is not known here.
    """
    file_format = offset_format(client_version, client_language, platform_charset)
    main_outcome = None if main is None else read_as(main, file_format)
    bak_outcome = None if bak is None else read_as(bak, file_format)
    if file_format.layout is Layout.GO:
        return _go_start(main_outcome, bak_outcome)
    if isinstance(main_outcome, (Offsets, NoTable, Undecided)):
        return _start_from(Source.MAIN, main_outcome, main_outcome, bak_outcome)
    if isinstance(bak_outcome, (Offsets, NoTable, Undecided)):
        return _start_from(Source.BAK, bak_outcome, main_outcome, bak_outcome)
    if isinstance(bak_outcome, Refused):
        reason = f"{_shortcoming(main_outcome, 'offsets.json')}, and offsets.json.bak cannot be read: {bak_outcome.reason}"
        return StartUp(Verdict.FAILS, Source.BAK, reason, main_outcome, bak_outcome)
    reason = (
        f"{_shortcoming(main_outcome, 'offsets.json')}, and {_shortcoming(bak_outcome, 'offsets.json.bak')}"
    )
    return StartUp(Verdict.DEFAULT, None, reason, main_outcome, bak_outcome)


def _start_from(
    source: Source,
    outcome: Offsets | NoTable | Undecided,
    main: Outcome | None,
    bak: Outcome | None,
) -> StartUp:
    name = "offsets.json" if source is Source.MAIN else "offsets.json.bak"
    before = (
        ""
        if source is Source.MAIN
        else f"{_shortcoming(main, 'offsets.json')}, so the client takes the other: "
    )
    if isinstance(outcome, Offsets):
        reason = f"{before}{name} holds {len(outcome.table)} offsets"
        verdict = Verdict.STORED if outcome.table else Verdict.DEFAULT
        return StartUp(verdict, source, reason, main, bak, outcome.table)
    if isinstance(outcome, NoTable):
        return StartUp(Verdict.DEFAULT, source, f"{before}{name} holds no table", main, bak)
    return StartUp(Verdict.UNDECIDED, source, f"{before}in {name}, {outcome.doubt.value}", main, bak)


def _go_start(main: Outcome | None, bak: Outcome | None) -> StartUp:
    if isinstance(main, Offsets):
        verdict = Verdict.STORED if main.table else Verdict.DEFAULT
        return StartUp(
            verdict, Source.MAIN, f"offset.json holds {len(main.table)} offsets", main, bak, main.table
        )
    if isinstance(main, Undecided):
        return StartUp(Verdict.UNDECIDED, Source.MAIN, f"in offset.json, {main.doubt.value}", main, bak)
    return StartUp(Verdict.DEFAULT, None, _shortcoming(main, "offset.json"), main, bak)


def _shortcoming(outcome: Outcome | None, name: str) -> str:
    if outcome is None:
        return f"{name} is missing"
    if isinstance(outcome, Empty):
        return f"{name} is empty"
    return f"{name} cannot be read" + (f" ({outcome.reason})" if isinstance(outcome, Refused) else "")
