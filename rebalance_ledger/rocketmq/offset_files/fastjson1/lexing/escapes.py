"""Escapes in the strings of fastjson 1.

Belongs here: what an escape stands for. Does not belong here: where a string ends (`literals`).
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.rocketmq.offset_files.java_values import INT_MAX, INT_MIN, parse_integer
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

HEX: Final = frozenset("0123456789abcdefABCDEF")
ESCAPES: Final = {
    **{str(number): chr(number) for number in range(8)},
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "F": "\f",
    "r": "\r",
    **{character: character for character in "\"'/\\"},
}


def unescape(raw: str) -> str:
    """`readString`."""
    parts: list[str] = []
    place = 0
    while (backslash := raw.find("\\", place)) >= 0:
        parts.append(raw[place:backslash])
        letter = raw[backslash + 1 : backslash + 2]
        place = backslash + 2
        if letter in ESCAPES:
            parts.append(ESCAPES[letter])
        elif letter == "x" and len(raw) >= place + 2 and max(raw[place : place + 2]) <= "f":
            high, low = (int(digit, 16) if digit in HEX else 0 for digit in raw[place : place + 2])
            parts.append(chr(high * 16 + low))
            place += 2
        elif letter == "u" and len(raw) >= place + 4:
            parts.append(chr(parsed_hex(raw[place : place + 4]) & 0xFFFF))
            place += 4
        else:
            raise RefusedError(f"'\\{letter}' is no character")
    parts.append(raw[place:])
    return "".join(parts)


def parsed_hex(digits: str) -> int:
    """Parse four characters as `Integer.parseInt` does: with a sign if there is one, in digits of any script."""
    try:
        return parse_integer(digits, INT_MIN, INT_MAX, 16)
    except ValueError:
        raise RefusedError(f"'\\u{digits}' is no character") from None
