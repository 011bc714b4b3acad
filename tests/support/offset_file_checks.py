"""Checks of the readers of offset files against the answers of RocketMQ's classes.

Belongs here: outcomes in the format of the golden family `offsets_file`, and the comparison of a start. Does not belong
here: generating files.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from rebalance_ledger.rocketmq.offset_files import (
    Empty,
    NoTable,
    Offsets,
    Outcome,
    Refused,
    StartUp,
    Undecided,
    Verdict,
    start_up,
)
from rebalance_ledger.rocketmq.offset_files.start_up import REFUSED_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rebalance_ledger.rocketmq.offset_files import OffsetKey

REFUSED = "refused"


def content(field: str | dict[str, str] | None) -> bytes | None:
    """Return the bytes of an offset file that is stored in a golden file."""
    if field is None:
        return None
    return field.encode() if isinstance(field, str) else base64.b64decode(field["base64"])


def rows(table: Mapping[OffsetKey, int]) -> list[list[Any]]:
    """Return a table in the format of the golden files."""
    return in_order([*key, offset] for key, offset in table.items())


def in_order(entries: Iterable[list[Any]]) -> list[list[Any]]:
    """Sort by topic, broker and queue id, with null names first."""
    return sorted(entries, key=lambda row: [(text is not None, text or "") for text in row[:2]] + row[2:])


def form(outcome: Outcome | None) -> Any:
    """Return an outcome in the format of `parse_main`; an exception of the reader is `REFUSED`."""
    if outcome is None:
        return "missing"
    if isinstance(outcome, Offsets):
        return rows(outcome.table)
    if isinstance(outcome, NoTable):
        return "null_table" if outcome.has_object else "null"
    assert isinstance(outcome, (Empty, Refused)), outcome
    return "empty" if isinstance(outcome, Empty) else REFUSED


def java_form(parsed: Any) -> Any:
    """Return the classes' result for a file in the same format."""
    if isinstance(parsed, dict):
        return REFUSED
    return in_order(parsed) if isinstance(parsed, list) else parsed


def check_start(case: dict[str, Any], version: str, answer: dict[str, Any]) -> StartUp:
    """Check one case of the golden family for one release; raise AssertionError at the first difference."""
    started = start_up(content(case["main"]), content(case["bak"]), client_version=version)
    for name, outcome in (("parse_main", started.main), ("parse_bak", started.bak)):
        if not isinstance(outcome, Undecided):
            assert form(outcome) == java_form(answer[name]), (version, name, outcome, answer[name])
    if started.verdict is not Verdict.UNDECIDED:
        expected = _expected(answer)
        assert (started.verdict, rows(started.table)) == expected, (version, started, expected)
    return started


def _expected(answer: dict[str, Any]) -> tuple[Verdict, list[list[Any]]]:
    stored = answer["store"]
    loaded = answer.get("load", [] if stored in ("none", "null_table") else stored)
    if isinstance(loaded, dict):
        error = loaded["error"]
        assert error["type"] == "MQClientException", error
        assert error["message"].startswith(REFUSED_MESSAGE), error
        return Verdict.FAILS, []
    assert isinstance(loaded, list), loaded
    return (Verdict.STORED if loaded else Verdict.DEFAULT), in_order(loaded)
