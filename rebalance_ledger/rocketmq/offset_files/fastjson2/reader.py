"""Values as fastjson2 reads or skips them: `readInt64Value`, `readInt32Value`, `readString` and `skipValue` of `JSONReader`.

Belongs here: the reading of what is wanted, and the skipping of what is not. Does not belong here: the objects that are
made (`offset_file`).
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.rocketmq.offset_files.fastjson2.characters import (
    BACKSLASH,
    BYTE_MAX,
    COLON,
    COMMA,
    DIGITS,
    DOUBLE_QUOTE,
    END,
    QUOTES,
    SIGNS,
    is_blank,
)
from rebalance_ledger.rocketmq.offset_files.fastjson2.number import int_of, long_of, text_of
from rebalance_ledger.rocketmq.offset_files.fastjson2.number_reader import (
    EXPONENT_MARKS,
    FLOAT_SUFFIXES,
    SUFFIXES,
    NumberReader,
)
from rebalance_ledger.rocketmq.offset_files.fastjson2.text_reader import unescape_letter
from rebalance_ledger.rocketmq.offset_files.java_values import wrapped
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

MAX_DEPTH: Final = 100
"""Maximum nesting of ignored objects and arrays that is followed; RocketMQ's own files nest 3."""

_CLOSED_BY: Final = {ord("{"): ord("}"), ord("["): ord("]")}
_CLOSERS: Final = frozenset((ord("}"), ord("]"), END))
_SKIPPED_WORD_STARTS: Final = frozenset(b"tfn")
# `INT_VALUE_END`: what cannot stand behind a whole number.
_NO_INTEGER_END: Final = frozenset(b".eEtfn{[0123456789")


class Reader(NumberReader):
    """`JSONReader` over one text.

    Args:
        text: Code units, each a character; not empty.

    Attributes:
        is_bytes: Whether the text is read as bytes.
        ch: The character in hand, `END` at the end.
        offset: The place behind it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    # What is wanted ---------------------------------------------------------------------------------------------------

    def read_string(self) -> str | None:
        """`readString`: a string, null, or the text of a number or boolean."""
        if self.ch in QUOTES:
            return self._read_quoted_value()
        if self.ch == ord("n"):
            self._read_null()
            return None
        if self.ch in {ord("["), ord("{")}:
            raise UndecidedError(Doubt.OBJECT)
        if self.ch in {ord("t"), ord("f")}:
            return "true" if self._read_boolean() else "false"
        if self.ch in DIGITS or self.ch in SIGNS:
            return text_of(self.read_number())
        raise RefusedError("a string is expected")

    def read_long(self) -> int:
        """`readInt64Value`."""
        whole = self._read_whole(64)
        return long_of(self.read_number()) if whole is None else whole

    def read_int(self) -> int:
        """`readInt32Value`."""
        whole = self._read_whole(32)
        return int_of(self.read_number()) if whole is None else whole

    def _read_whole(self, bits: int) -> int | None:
        """Read digits, in quotes or not, the short way; return None without moving if there is something else.

        Digits are taken two at a time and counted below 0; a number that is too large comes out above it.
        """
        units, end = self._units, self._end
        lowest = -(1 << (bits - 1))
        offset = self.offset
        first = self.ch
        quote = 0
        if first in QUOTES:
            quote = first
            first = units[offset]
            offset += 1
        value = ord("0") - first if first in DIGITS else 0 if first in SIGNS else 1
        while (
            offset + 1 < end
            and units[offset] in DIGITS
            and units[offset + 1] in DIGITS
            and -(-lowest // 100) <= value <= 0
        ):
            pair = (units[offset] - ord("0")) * 10 + units[offset + 1] - ord("0")
            value = wrapped(value * 100 - pair, bits)
            offset += 2
        if offset < end and units[offset] in DIGITS and -(-lowest // 10) <= value <= 0:
            value = wrapped(value * 10 + ord("0") - units[offset], bits)
            offset += 1
        unit = END if offset == end else units[offset]
        offset += offset != end
        is_whole = value <= 0 and (lowest < value or first == ord("-"))
        if not is_whole or unit & BYTE_MAX in _NO_INTEGER_END or (quote and unit != quote):
            return None
        self.offset = offset
        if quote:
            unit = self._take()
        if unit in SUFFIXES:
            unit = self._take()
        self._end_value_from(unit, has_no_sign_after_comma=True)
        return value if first == ord("-") else -value

    # Ignored values ---------------------------------------------------------------------------------------------------

    def skip_value(self) -> None:
        """`skipValue`."""
        character = self.ch
        if character in QUOTES:
            self._skip_string()
        elif character in _CLOSED_BY:
            self._skip_container(_CLOSED_BY[character])
        elif character == ord("S"):
            if not self._starts_with("et", self.offset):
                raise RefusedError("a word begins like 'Set' and is another")
            self.offset += 2
            self.ch = self._take_nonblank()
            # An array from its second character on: the first is stepped over, whatever it is.
            self._skip_container(ord("]"))
        elif character in _SKIPPED_WORD_STARTS:
            self._skip_word({ord("t"): "true", ord("f"): "false"}.get(character, "null"))
        else:
            self._skip_number()

    def _skip_word(self, word: str) -> None:
        if not self._starts_with(word, self.offset - 1):
            raise RefusedError(f"a word begins like {word!r} and is another")
        self.offset += len(word) - 1
        self._end_skipped(self._take())

    def _skip_string(self) -> None:
        self._skip_quoted(self.ch)
        self._end_skipped(self._take())

    def _skip_quoted(self, quote: int) -> None:
        """Skip from behind the opening quote to behind the closing one."""
        while (unit := self._beyond_end_refused()) != quote:
            if unit != BACKSLASH:
                continue
            letter = self._beyond_end_refused()
            if letter == ord("u"):
                self.offset += 4
            elif letter == ord("x"):
                self.offset += 2
            elif letter not in {BACKSLASH, DOUBLE_QUOTE}:
                unescape_letter(letter)

    def _skip_name(self) -> None:
        if self.ch not in QUOTES:
            raise RefusedError("a name does not begin with a quote")
        if self.is_bytes:
            self._skip_quoted(self.ch)
        else:
            quote = self.ch
            while (unit := self._beyond_end_refused()) != quote:
                if unit == BACKSLASH:
                    letter = self._units[self.offset]
                    self.offset += 5 if letter == ord("u") else 3 if letter == ord("x") else 1
        if self._take_nonblank() != COLON:
            raise RefusedError("a name is not followed by ':'")
        self._hold(self._take_nonblank())

    def _skip_container(self, close: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UndecidedError(Doubt.NESTING)
        self._go_on(self._take_nonblank(over_nul=True))
        is_first = True
        while self.ch != close:
            if not is_first and not self._has_comma:
                raise RefusedError("a value is followed by something else than ','")
            if close == ord("}"):
                self._skip_name()
            self.skip_value()
            is_first = False
        self._depth -= 1
        self._end_skipped(self._take())

    def _skip_number(self) -> None:
        unit = self.ch
        if unit in SIGNS:
            if self.offset >= self._end:
                raise RefusedError("a number has no digits")
            unit = self._take()
        has_digits = unit in DIGITS
        while unit in DIGITS:
            unit = self._take()
        if has_digits and unit in SUFFIXES:
            unit = self._beyond_end_refused()
        else:
            unit = self._skip_fraction(unit, has_digits=has_digits)
        self._end_skipped(unit)

    def _skip_fraction(self, unit: int, *, has_digits: bool) -> int:
        has_point = unit == ord(".")
        if has_point:
            unit = self._take()
            while unit in DIGITS:
                unit = self._take()
        if not has_digits and not has_point:
            raise RefusedError("a number has no digits")
        if unit in EXPONENT_MARKS:
            unit = self._beyond_end_refused()
            has_sign = unit in SIGNS
            if has_sign:
                if self.offset >= self._end:
                    raise RefusedError("an exponent has no digits")
                unit = self._take()
            if unit not in DIGITS and has_sign:
                raise RefusedError("an exponent has no digits")
            while unit in DIGITS:
                unit = self._take()
        return self._take() if unit in FLOAT_SUFFIXES else unit

    def _end_skipped(self, unit: int) -> None:
        """Take what follows a skipped value: a comma with something behind it, or what closes."""
        while is_blank(unit):
            unit = self._take()
        self._has_comma = unit == COMMA
        if self._has_comma:
            unit = self._take_nonblank()
        if self._has_comma == (unit in _CLOSERS):
            raise RefusedError("a value is followed by something that cannot stand there")
        self.ch = unit & 0xFFFF
