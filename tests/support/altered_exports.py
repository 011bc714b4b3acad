"""Exports whose lines and payloads are altered at random.

Belongs here: alterations after which an export is still complete by its manifest, so that a build must accept it. Does not belong here:
damage to envelopes and manifests, because such a day is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from rebalance_ledger.exports.contract import KIND_BY_NAME, Content
from rebalance_ledger.exports.sealing import seal

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from pathlib import Path
    from random import Random

    Line = dict[str, Any]

_KEY = r'"(?:[^"\\]|\\.)*"\s*:\s*'
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(?!\s*:)')
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"(?=\s*:)')
_NUMBER = re.compile(r"(?<=[:,\[\s])-?\d+(?:\.\d+)?(?=[,\]}\s])")
_SIMPLE_FIELD = re.compile(_KEY + r'(?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null)')
_GROUP = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]")

NUMBERS = (
    "0",
    "-1",
    "1",
    "7",
    "8",
    "2147483647",
    "2147483648",
    "-9223372036854775808",
    "9223372036854775807",
)
NUMBERS_OF_OTHER_TYPES = ("1.5", "1e3", "92233720368547758070", "null", "true", '"1"', "[]", "{}", "NaN")
STRINGS = (
    '""',
    "null",
    "0",
    "[]",
    "{}",
    '"%RETRY%x"',
    '"a b"',
    '"\'); drop table x; --"',
    '"<b>&"',
    '"\\u0000"',
    '"\\ud800"',
    '"日本"',
)
GROUPS = ("{}", "[]", "null", "0", '""', "[null]", '{"x":1}')


def alter(directory: Path, cluster: str, ds: date, rng: Random) -> None:
    """Change cluster and day of an unsealed export, alter some of its lines and payloads, and seal it.

    Raises:
        ExportError: The result is not a complete export.
    """
    names = sorted(path.name for path in directory.glob("*.jsonl"))
    altered_share = rng.choice((1 / 12, 1 / 12, 1 / 3))
    for name in names:
        path = directory / name
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            line["cluster"] = cluster
            for instant in {"captured_at", "at"} & line.keys():
                line[instant] = f"{ds}{line[instant][len(str(ds)) :]}"
        kind = KIND_BY_NAME[lines[0]["kind"]]
        if kind.content in (Content.ROCKETMQ_JSON, Content.PROPERTIES):
            _alter_lines(lines, rng, altered_share, may_be_empty=not kind.is_required)
        elif kind.content is Content.FILE:
            _alter_files(directory, lines, rng)
        if lines:
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        else:
            path.unlink()
    seal(directory, cluster=cluster, ds=ds)


def _alter_lines(lines: list[Line], rng: Random, altered_share: float, *, may_be_empty: bool) -> None:
    """Alter about this share of the lines, and now and then the list itself."""
    for line in list(lines):
        if rng.random() < altered_share:
            rng.choices(
                (
                    _alter_payload,
                    partial(_take_payload, lines),
                    _fail,
                    partial(_take_key, lines),
                    partial(_repeat, lines),
                ),
                weights=(10, 2, 1, 2, 1),
            )[0](line, rng)
    chance = rng.random()
    if chance < 0.1:
        rng.shuffle(lines)
    elif chance < 0.2:
        del lines[rng.randrange(len(lines)) + 1 :]
    elif chance < 0.22 and may_be_empty:
        lines.clear()


def _alter_files(directory: Path, lines: list[Line], rng: Random) -> None:
    """Alter about one file in eight."""
    for line in lines:
        if "path" in line and rng.random() < 1 / 8:
            path = directory / line["path"]
            # Latin-1 maps each byte to one character.
            text = _altered(path.read_bytes().decode("latin-1"), rng)
            content = text.encode("latin-1", errors="replace")
            path.write_bytes(content)
            line |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _alter_payload(line: Line, rng: Random) -> None:
    if "payload" in line:
        line["payload"] = _altered(line["payload"], rng)


def _altered(text: str, rng: Random) -> str:
    for _ in range(rng.choice((1, 1, 2, 5))):
        text = rng.choices(_ALTERATIONS, weights=(4, 2, 4, 3, 1, 1, 2, 2, 2, 1))[0](text, rng)
    return text


def _replaced(pattern: re.Pattern[str], texts: tuple[str, ...], text: str, rng: Random) -> str:
    """Return the text with another text in the place of a match."""
    matches = list(pattern.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + rng.choice(texts) + text[match.end() :]


def _with_another(pattern: re.Pattern[str], text: str, rng: Random) -> str:
    """Return the text with another match of the same answer in the place of a match, so that a name may occur twice."""
    return _replaced(pattern, tuple(pattern.findall(text)[:200]), text, rng)


def _without_field(text: str, rng: Random) -> str:
    matches = list(_SIMPLE_FIELD.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    before, after = text[: match.start()].rstrip(), text[match.end() :].lstrip()
    if after.startswith(","):
        return before + after[1:]
    return before.removesuffix(",") + after


def _with_repeated_field(text: str, rng: Random) -> str:
    """Return the text with a field twice in one object, most often with two values."""
    matches = list(_SIMPLE_FIELD.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    name = match.group().partition(":")[0]
    value = rng.choice((match.group().partition(":")[2], *NUMBERS, *STRINGS))
    field = f"{name}:{value}"
    return (
        text[: match.start()]
        + rng.choice((f"{field},{match.group()}", f"{match.group()},{field}"))
        + text[match.end() :]
    )


def _with_repeated_group(text: str, rng: Random) -> str:
    matches = list(_GROUP.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.end()] + "," + match.group() + text[match.end() :]


def _truncated(text: str, rng: Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


_ALTERATIONS: tuple[Callable[[str, Random], str], ...] = (
    partial(_replaced, _NUMBER, NUMBERS),
    partial(_replaced, _NUMBER, NUMBERS_OF_OTHER_TYPES),
    partial(_with_another, _STRING),
    _without_field,
    partial(_with_another, _NAME),
    _with_repeated_field,
    partial(_replaced, _STRING, STRINGS),
    partial(_replaced, _GROUP, GROUPS),
    _with_repeated_group,
    _truncated,
)


def _take_payload(lines: list[Line], line: Line, rng: Random) -> None:
    """Give a line what a line of its kind answered."""
    other = dict(rng.choice(lines))
    for name in ("payload", "error"):
        line.pop(name, None)
        if name in other:
            line[name] = other[name]


def _take_key(lines: list[Line], line: Line, rng: Random) -> None:
    """Give a line one field of the question of another line."""
    other = rng.choice(lines)
    names = sorted(other.keys() & line.keys() - {"kind", "cluster", "payload", "error"})
    name = rng.choice(names)
    line[name] = other[name]


def _fail(line: Line, rng: Random) -> None:
    line.pop("payload", None)
    code = rng.choice((1, 17, 26, 206))
    line["error"] = {"type": "MQBrokerException", "message": f"CODE: {code}  DESC: altered"}


def _repeat(lines: list[Line], line: Line, rng: Random) -> None:
    """Put a line between others once more, with an altered payload or the same one."""
    again = dict(line)
    if rng.random() < 0.5:
        _alter_payload(again, rng)
    lines.insert(rng.randrange(len(lines)), again)
