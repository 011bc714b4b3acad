"""Numbers of fastjson2, and what may stand in their place: `readNumber0` of `JSONReader`.

Belongs here: where such a value ends, and its parts. Does not belong here: what is made of it (`number`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rebalance_ledger.rocketmq.offset_files.fastjson2.characters import (
    BACKSLASH,
    COMMA,
    DIGITS,
    DOUBLE_QUOTE,
    END,
    QUOTES,
    SIGNS,
    SLASH,
    is_blank,
)
from rebalance_ledger.rocketmq.offset_files.fastjson2.number import Kind, Number
from rebalance_ledger.rocketmq.offset_files.fastjson2.text_reader import TextReader
from rebalance_ledger.rocketmq.offset_files.java_values import wrapped
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

SUFFIXES: Final = frozenset(b"LFDBS")
FLOAT_SUFFIXES: Final = frozenset(b"FD")
EXPONENT_MARKS: Final = frozenset(b"eE")
_SHORT_SUFFIXES: Final = frozenset(b"BS")
_OPENERS: Final = frozenset(b"{[")
_WORD_STARTS: Final = frozenset(b"ntfN{[")
_MAX_EXPONENT: Final = 2047
_MOST_DIGITS: Final = 38
_DIGITS_OF_INT64: Final = 19


@dataclass(slots=True)
class _Counted:
    """Digits as `readNumber0` counts them: below 0, in 32 bits, until they might not fit."""

    value: int = 0
    digit_count: int = 0
    is_overflown: bool = False

    def add(self, digit: int) -> None:
        self.digit_count += 1
        if self.is_overflown:
            return
        self.value = wrapped(self.value * 10, 32)
        limit = -(2**31 // 10)
        if self.value >= limit:
            self.value -= digit
        self.is_overflown = self.value < limit


class NumberReader(TextReader):
    """The numbers of one text, and what may stand in their place."""

    def read_number(self) -> Number:
        """`readNumber0`: a number in any form, and what else may stand in its place.

        Raises:
            RefusedError: It is none of these.
        """
        number = Number()
        begin, quote = self.offset, self.ch if self.ch in QUOTES else 0
        unit = self.ch
        if quote:
            unit = self._units[self.offset]
            self.offset += 1
            if unit == quote:
                self.ch = self._take_nonblank()
                self.next_if_comma()
                return Number(Kind.NULL, is_null=True)
        start = self.offset
        is_valid, unit = self._scan_digits(number, start, unit)
        if self.offset == start and unit in _WORD_STARTS:
            if unit in _OPENERS and not quote:
                return self._read_container(unit)
            is_valid, unit = self._scan_word(number, unit, is_valid=is_valid)
        if quote:
            if unit != quote:
                self.offset, self.ch = begin, quote
                return self._read_other_string()
            unit = self._take()
        if unit in SUFFIXES:
            self._apply_suffix(number, unit, start)
            unit = self._take()
        self._end_value_from(unit)
        if not is_valid:
            raise RefusedError("a number is expected")
        return number

    # Digits -----------------------------------------------------------------------------------------------------------

    def _scan_digits(self, number: Number, start: int, unit: int) -> tuple[bool, int]:
        """Scan sign, digits, fraction and exponent; return whether there was a digit, and the unit behind them."""
        if unit in SIGNS:
            if self.offset == self._end:
                raise RefusedError("a number has no digits")
            number.is_negative = unit == ord("-")
            unit = self._units[self.offset]
            self.offset += 1
        counted = _Counted()
        unit = self._count_digits(counted, unit)
        if unit == ord("."):
            number.kind = Kind.DECIMAL
            whole_count = counted.digit_count
            unit = self._count_digits(counted, self._beyond_end_refused())
            number.scale = wrapped(counted.digit_count - whole_count, 16)
        number.magnitude = -counted.value
        if counted.is_overflown:
            self._read_long_digits(number, start, counted.value)
        is_valid = counted.digit_count > 0
        if unit in EXPONENT_MARKS:
            has_digits, unit = self._scan_exponent(number)
            is_valid = is_valid or has_digits
        return is_valid, unit

    def _count_digits(self, counted: _Counted, unit: int) -> int:
        while unit in DIGITS:
            counted.add(unit - ord("0"))
            if self.offset == self._end:
                self.offset += 1
                return END
            unit = self._units[self.offset]
            self.offset += 1
        return unit

    def _read_long_digits(self, number: Number, start: int, partial: int) -> None:
        """`bigInt`, or the text of a number that is too long even for that."""
        first = start if number.is_negative else start - 1
        last = self.offset - 1
        digit_count = last - first - (1 if number.scale > 0 else 0)
        if digit_count > _MOST_DIGITS:
            number.kind = Kind.LONG_DECIMAL
            number.text = self._text[first - number.is_negative : last]
            number.magnitude = partial & 0xFFFFFFFF
        else:
            number.magnitude = self._big_integer(first, last, digit_count)

    def _big_integer(self, first: int, last: int, digit_count: int) -> int:
        """`bigInt`: groups of nine digits. A `+` counts as one, and a point without digits behind it shifts them."""
        cursor = first
        length = digit_count % 9 or 9
        magnitude: int | None = None
        while magnitude is None or cursor < last:
            place, end = cursor, cursor + length
            cursor = end
            group = 0
            while True:
                if self._units[place] == ord("."):
                    place += 1
                    cursor += 1
                    end += 1 if magnitude is not None or end < last else 0
                group = wrapped(group * 10 + self._units[place] - ord("0"), 32)
                place += 1
                if place >= end:
                    break
            group &= 0xFFFFFFFF
            magnitude = group if magnitude is None else (magnitude * 10**9 + group) & ((1 << 128) - 1)
            length = 9
        return magnitude

    def _scan_exponent(self, number: Number) -> tuple[bool, int]:
        unit = self._beyond_end_refused()
        is_negative = unit == ord("-")
        if unit in SIGNS:
            unit = self._beyond_end_refused()
        has_digits = False
        exponent = 0
        while unit in DIGITS:
            has_digits = True
            exponent = exponent * 10 + unit - ord("0")
            if exponent > _MAX_EXPONENT:
                raise RefusedError("an exponent is too large")
            if self.offset == self._end:
                unit = END
                break
            unit = self._beyond_end_refused()
        number.exponent = -exponent if is_negative else exponent
        number.kind = Kind.DECIMAL
        return has_digits, unit

    def _apply_suffix(self, number: Number, suffix: int, start: int) -> None:
        is_short = number.kind != Kind.DECIMAL and not (
            number.kind == Kind.LONG_DECIMAL or number.magnitude >> 31
        )
        if suffix in _SHORT_SUFFIXES and is_short:
            number.kind = Kind.INT8 if suffix == ord("B") else Kind.INT16
        elif suffix == ord("L") and self.offset - start < _DIGITS_OF_INT64 and number.kind != Kind.DECIMAL:
            number.kind = Kind.INT64
        elif suffix in FLOAT_SUFFIXES:
            number.kind = Kind.FLOAT if suffix == ord("F") else Kind.DOUBLE

    # What may stand in the place of a number --------------------------------------------------------------------------

    def _scan_word(self, number: Number, unit: int, *, is_valid: bool) -> tuple[bool, int]:
        """Scan a word in the place of a number, in quotes or not; return True for a word, else `is_valid`, and the unit behind it."""
        for word, kind in (
            ("null", Kind.NULL),
            ("true", Kind.BOOLEAN),
            ("false", Kind.BOOLEAN),
            ("NaN", Kind.NAN),
        ):
            if unit != ord(word[0]):
                continue
            if not self._starts_with(word[1:], self.offset):
                if self.offset + len(word) - 1 > self._end and word != "false":
                    # It looks at each letter before it knows that there are enough.
                    self._check_letters(word)
                return is_valid, unit
            self.offset += len(word) - 1
            number.kind = kind
            number.is_null = kind == Kind.NULL
            number.is_true = word == "true"
            return True, self._take()
        return is_valid, unit

    def _check_letters(self, word: str) -> None:
        for place, letter in enumerate(word[1:], start=self.offset):
            if self._units[place] != ord(letter):
                return

    def _read_other_string(self) -> Number:
        """`readString0`, which ends at a double quote where there are escapes, and reads beyond the end for a blank."""
        quote = self.ch
        offset = self.offset
        has_escape = False
        while self._units[offset] != quote:
            if self._units[offset] == BACKSLASH:
                has_escape = True
                letter = self._units[offset + 1]
                offset += 6 if letter == ord("u") else 4 if letter == ord("x") else 2
            else:
                offset += 1
        if has_escape:
            if quote != DOUBLE_QUOTE:
                raise RefusedError("a string with escapes does not end")
            text = self._unescape_to(DOUBLE_QUOTE)
            offset = self.offset - 1
        else:
            text = self._text[self.offset : offset]
        self._end_other_string(offset + 1)
        return Number(Kind.STRING, text=text)

    def _end_other_string(self, offset: int) -> None:
        unit = END if offset == self._end and not self.is_bytes else self._units[offset]
        while is_blank(unit) and (unit > 0 or not self.is_bytes):
            offset += 1
            unit = self._units[offset]
        self.offset = offset + 1
        self._has_comma = unit == COMMA
        if not self._has_comma:
            self.ch = unit & 0xFFFF
        elif self.is_bytes:
            self.next()
        else:
            self.ch = self._beyond_end_refused()
            while is_blank(self.ch):
                self.ch = END if self.offset >= self._end else self._beyond_end_refused()

    def _read_container(self, opening: int) -> Number:
        if opening == ord("{"):
            return Number(Kind.OBJECT, text=self._text[self.offset :])
        self.ch = opening
        return Number(Kind.ARRAY, items=self._read_items())

    def _read_items(self) -> list[Number]:
        """`readArray`, as far as it may hold one number or string; with anything else it makes no offset."""
        self.next()
        items: list[Number] = []
        while self.ch != ord("]"):
            if self.ch in QUOTES:
                items.append(Number(Kind.STRING, text=self._read_quoted_value()))
            elif self.ch in DIGITS or self.ch in SIGNS:
                items.append(self.read_number())
            elif self.ch == SLASH:
                self._skip_comments()
            else:
                raise RefusedError("an array holds something else than a number")
        self.next()
        self._has_comma = self.ch == COMMA
        if self._has_comma:
            self.next()
        return items
