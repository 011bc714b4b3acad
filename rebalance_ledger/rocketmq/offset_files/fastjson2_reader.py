r"""The characters of fastjson2: `JSONReader`, `JSONReaderUTF16` and `JSONReaderASCII` of 2.0.59, with the features that are on by default.

On Java 9 and later a text whose characters all are below U+0100 is read as bytes (`JSONReaderASCII`), any other as code
units (`JSONReaderUTF16`); on Java 8 both are. Bytes have signs in Java, and fastjson2 shifts by them: twelve Latin letters
count as blanks in many places (U+00A0 like a space, and U+00C8 too). Arrays that are read beyond their end throw.

Belongs here: blanks, comments, names, strings, numbers, and the skipping of what is not wanted. Does not belong here: the
objects that are made (`fastjson2`).
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final

from rebalance_ledger.rocketmq.offset_files.java_values import (
    DOUBLE,
    FLOAT,
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigDecimal,
    parse_integer,
    through_float,
    wrapped,
)
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

END: Final = 0x1A
"""What is in hand at the end of the text; the same character inside a text counts as the end here and there."""

MAX_DEPTH: Final = 100
"""Objects and arrays inside one another that are followed in what is not wanted; RocketMQ's own files nest 3."""

_MOST_COMMENTS: Final = 1000
_BLANK_BITS: Final = sum(1 << ord(character) for character in " \n\r\f\t\b")
_SPACE: Final = ord(" ")
_CLOSED_BY: Final = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTES: Final = frozenset(b"\"'")
_DOUBLE_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_SLASH: Final = ord("/")
_STAR: Final = ord("*")
_COMMA: Final = ord(",")
_COLON: Final = ord(":")
_DIGITS: Final = range(ord("0"), ord("9") + 1)
_CLOSERS: Final = frozenset((ord("}"), ord("]"), END))
_PATH_STARTS: Final = frozenset(b"$.@")
_BLANKS: Final = frozenset(b" \n\r\f\t\b")
_SIGNS: Final = frozenset(b"+-")
_OPENERS: Final = frozenset(b"{[")
_WORD_STARTS: Final = frozenset(b"ntfN{[")
_SKIPPED_WORD_STARTS: Final = frozenset(b"tfn")
_EXPONENT_MARKS: Final = frozenset(b"eE")
_SUFFIXES: Final = frozenset(b"LFDBS")
_SHORT_SUFFIXES: Final = frozenset(b"BS")
_FLOAT_SUFFIXES: Final = frozenset(b"FD")
# `INT_VALUE_END`: what cannot stand behind a whole number.
_NO_INTEGER_END: Final = frozenset(b".eEtfn{[0123456789")
_ESCAPES: Final = {
    **{ord(str(number)): number for number in range(8)},
    ord("b"): 8,
    ord("t"): 9,
    ord("n"): 10,
    ord("v"): 11,
    ord("f"): 12,
    ord("F"): 12,
    ord("r"): 13,
    **{letter: letter for letter in b"\"'/.\\#&[]@()_,~ "},
}
_HEX: Final = {ord(digit): int(digit, 16) for digit in "0123456789abcdefABCDEF"}
_LAST_HEX: Final = ord("f")
_BYTE_MAX: Final = 0xFF
_FNV_START: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_LONGEST_PACKED_NAME: Final = 8
_MAX_EXPONENT: Final = 2047
_MOST_DIGITS: Final = 38
_MAX_SCALE: Final = 2048
_DATE_LENGTHS: Final = range(11, 40)
_FEWEST_DATE_DIGITS: Final = 4
# What `NumberFormat` may begin to read in some locale, and what may be a field `val`.
_LOCAL_NUMBER: Final = re.compile(r"NaN|\W{0,2}[\d\u221e]")
_NUMBER_FIELD: Final = re.compile(r"\bval\b|\\")
_DIGITS_OF_INT64: Final = 19


class Kind(Enum):
    """`valueType`."""

    INT = "a whole number"
    INT8 = "a whole number that ends in B"
    INT16 = "a whole number that ends in S"
    INT64 = "a whole number that ends in L"
    DECIMAL = "a number with a fraction or an exponent"
    LONG_DECIMAL = "a number of more than 38 digits"
    FLOAT = "a number that ends in F"
    DOUBLE = "a number that ends in D"
    BOOLEAN = "true or false"
    NULL = "null"
    NAN = "NaN"
    STRING = "a string"
    OBJECT = "an object"
    ARRAY = "an array"


@dataclass(slots=True)
class Number:
    """What `readNumber0` leaves behind.

    Attributes:
        kind: What was there.
        magnitude: 128 bits, without sign, point and exponent.
        is_negative: Whether it began with `-`.
        scale: How many digits stand behind the point.
        exponent: The exponent.
        text: The string, the digits of a very long number, or what follows the brace of an object.
        is_true: The boolean.
        is_null: Whether it counts as null.
        items: The elements of an array, as far as an offset may be made of them.
    """

    kind: Kind = Kind.INT
    magnitude: int = 0
    is_negative: bool = False
    scale: int = 0
    exponent: int = 0
    text: str = ""
    is_true: bool = False
    is_null: bool = False
    items: list[Number] | None = None

    @property
    def signed(self) -> int:
        """The magnitude with its sign."""
        return -self.magnitude if self.is_negative else self.magnitude


class Reader:
    """A text, and the character in hand.

    Args:
        text: Code units, each a character; not empty.

    Attributes:
        ch: The character in hand, `END` at the end.
        offset: The place behind it.
    """

    def __init__(self, text: str) -> None:
        self.is_bytes = max(text) <= "\xff"
        data = text.encode("latin-1") if self.is_bytes else text.encode("utf-16-le", "surrogatepass")
        # Python's own arrays count from the end below 0; no place here is ever below 0.
        self._units = array("b" if self.is_bytes else "H", data)
        self._text = text
        self._end = len(self._units)
        self._has_comma = False
        self._depth = 0
        self.ch = END
        self.offset = 0
        if self.is_bytes:
            self.next()
        else:
            self._begin_units()

    def _begin_units(self) -> None:
        self.offset = 0
        while self.offset < self._end and _is_blank(self._units[self.offset]):
            self.offset += 1
        if self.offset == self._end:
            return
        self.ch = self._units[self.offset]
        self.offset += 1
        if self.ch in {0xFFFE, 0xFEFF}:
            self.next()
        if self.ch == _SLASH:
            self._skip_comments()

    # Blanks and punctuation -------------------------------------------------------------------------------------------

    def _take(self) -> int:
        """The next unit, or `END`."""
        if self.offset == self._end:
            return END
        unit = self._units[self.offset]
        self.offset += 1
        return unit

    def _take_nonblank(self, *, over_nul: bool = False) -> int:
        unit = self._take()
        while _is_blank(unit) or (over_nul and unit == 0):
            unit = self._take()
        return unit

    def _hold(self, unit: int) -> None:
        self.ch = unit & _BYTE_MAX if self.is_bytes else unit

    def next(self) -> None:
        """`next`."""
        unit = END if self.offset >= self._end else self._take()
        while unit == 0 or (unit > 0 and _is_blank(unit)):
            unit = self._take()
        self._hold(unit)
        if unit == _SLASH:
            self._skip_comments()

    def next_if(self, wanted: str) -> bool:
        """`nextIfMatch`: over blanks before; nothing moves if it is not there."""
        before = self.offset
        unit = self.ch
        while _is_blank(unit):
            unit = self._take()
        if unit != ord(wanted):
            self.offset = before
            return False
        self._go_on(self._take_nonblank(over_nul=True))
        return True

    def next_if_comma(self) -> None:
        """`nextIfComma`: blanks before it are skipped in any case."""
        unit = self.ch
        while _is_blank(unit):
            unit = self._take()
        if unit == _COMMA:
            self._go_on(self._take_nonblank(over_nul=True))
        else:
            self.ch = unit

    def next_if_object_start(self) -> bool:
        """`nextIfObjectStart`."""
        if self.ch != ord("{"):
            return False
        unit = self._take_nonblank(over_nul=True)
        self._hold(unit)
        if unit == _SLASH:
            self._skip_comments()
        return True

    def next_if_object_end(self) -> bool:
        """`nextIfObjectEnd`: over a comma behind it."""
        if self.ch != ord("}"):
            return False
        unit = self._take_nonblank(over_nul=True)
        if unit == _COMMA:
            unit = self._take_nonblank(over_nul=True)
        self._go_on(unit)
        return True

    def _go_on(self, unit: int) -> None:
        if unit < 0:
            # The byte is taken for a part of UTF-8, and whatever it makes fits nowhere.
            raise RefusedError("a letter stands where none can")
        self.ch = unit
        if unit == _SLASH:
            self._skip_comments()

    def _end_value(self) -> None:
        """What most values do at last: blanks, one comma, blanks."""
        self._end_value_from(self._take())

    def _end_value_from(self, unit: int, *, has_no_sign_after_comma: bool = False) -> None:
        while _is_blank(unit):
            unit = self._take()
        self._has_comma = unit == _COMMA
        if self._has_comma:
            unit = self._take()
            if not (has_no_sign_after_comma and unit < 0):
                while _is_blank(unit):
                    unit = self._take()
        self._hold(unit)

    def _skip_comments(self) -> None:
        """`skipComment`, which calls itself for the next one."""
        for _ in range(_MOST_COMMENTS):
            self._skip_comment()
            if self.ch != _SLASH:
                return
        raise UndecidedError(Doubt.NESTING)

    def _skip_comment(self) -> None:
        offset, units, end = self.offset, self._units, self._end
        if offset + 1 >= end:
            raise RefusedError("a comment does not end")
        opening = units[offset]
        if opening not in {_SLASH, _STAR}:
            raise RefusedError("a '/' begins no comment")
        offset += 2
        unit = units[offset - 1]
        while True:
            is_closed = unit == ord("\n")
            if opening == _STAR:
                is_closed = unit == _STAR and units[offset] == _SLASH
                offset += is_closed
            if offset >= end:
                unit = END
                break
            unit = units[offset]
            offset += 1
            if is_closed:
                while _is_blank(unit) and offset < end:
                    unit = units[offset]
                    offset += 1
                if _is_blank(unit):
                    # Whatever is read after this is read beyond the end.
                    unit, offset = END, end + 1
                break
        self.offset = offset
        self.ch = unit & 0xFFFF

    # null and references ----------------------------------------------------------------------------------------------

    def is_null(self) -> bool:
        """`isNull`: two letters are enough."""
        return self.ch == ord("n") and self.offset < self._end and self._units[self.offset] == ord("u")

    def next_if_null(self) -> bool:
        """`nextIfNull`."""
        if not (self.is_null() and self.offset + 2 < self._end):
            return False
        self._read_null()
        return True

    def _read_null(self) -> None:
        if not self._starts_with("ull", self.offset):
            raise RefusedError("a word begins like 'null' and is another")
        self.offset += 3
        self._end_value()

    def next_if_null_or_empty(self) -> bool:
        """`nextIfNullOrEmptyString`: `null`, or an empty string, or `null` in quotes."""
        offset, end = self.offset, self._end
        if self.ch == ord("n") and offset + 2 < end and self._starts_with("ull", offset):
            offset += 3
        elif self.ch in _QUOTES and offset < end and self._units[offset] == self.ch:
            offset += 1
        elif (
            self.ch in _QUOTES
            and offset + 4 < end
            and self._starts_with("null", offset)
            and self._units[offset + 4] == self.ch
        ):
            offset += 5
        else:
            return False
        self.offset = offset
        unit = self._take_plain_nonblank(self._take())
        self._has_comma = unit == _COMMA
        if self._has_comma:
            unit = self._take_plain_nonblank(self._take())
        self._hold(unit)
        return True

    def _take_plain_nonblank(self, unit: int) -> int:
        """Where a byte with a sign is no blank."""
        while unit >= 0 and _is_blank(unit):
            unit = self._take()
        return unit

    def _starts_with(self, prefix: str, place: int) -> bool:
        return self._text.startswith(prefix, place)

    def is_reference(self) -> bool:
        """`isReference`: `{"$ref":` and a string that begins like a path."""
        if self.ch != ord("{"):
            return False
        units, end = self._units, self._end
        place = self._first_nonblank(self.offset, signed=True)
        if place + 6 >= end or not self._starts_with("$ref", place + 1) or units[place + 5] != units[place]:
            return False
        quote = units[place]
        place = self._first_nonblank(place + 6, signed=False)
        if place + 1 >= end or units[place] != _COLON:
            return False
        place = self._first_nonblank(place + 1, signed=False)
        if place >= end or units[place] != quote:
            return False
        return place + 1 >= end or units[place + 1] in _PATH_STARTS

    def _first_nonblank(self, place: int, *, signed: bool) -> int:
        while place < self._end and _is_blank(self._units[place]) and (signed or self._units[place] >= 0):
            place += 1
        return place

    # Names ------------------------------------------------------------------------------------------------------------

    def next_if_name(self, name: str) -> bool:
        """`nextIfName4Match…`: the name in double quotes and its colon, without blanks, and something behind them."""
        prefix = f'"{name}":'
        if not self._starts_with(prefix, self.offset - 1) or self.offset + len(prefix) > self._end:
            return False
        if self.offset + len(prefix) - 1 >= self._end:
            return False
        self.offset += len(prefix) - 1
        while self._units[self.offset] in _BLANKS:
            self.offset += 1
        self._hold(self._units[self.offset])
        self.offset += 1
        return True

    def read_name_hash(self) -> int | None:
        """`readFieldNameHashCode`: up to eight letters packed into a number, or a hash of them.

        Names are distinguished by this number alone. None if there is no name, but `}` or what begins like `null`.
        """
        if self.ch == _SLASH:
            self._skip_comments()
        quote = self.ch
        if quote not in _QUOTES:
            if quote == ord("}") or self.is_null():
                return None
            raise RefusedError("a name does not begin with a quote")
        begin = self.offset
        packed = self._short_name(quote) or self._packed_name(quote)
        if packed == 0:
            self.offset = begin
            packed = self._hashed_name(quote)
        unit = self._take_nonblank()
        if unit != _COLON:
            raise RefusedError("a name is not followed by ':'")
        self._hold(self._take_nonblank())
        # A name of nothing but U+00FF makes the number that stands for no name.
        return None if packed == -1 else packed

    def _short_name(self, quote: int) -> int:
        """Up to eight letters without an escape; 0, and nothing moves, if there are more or others."""
        units, offset = self._units, self.offset
        if offset + 9 >= self._end or units[offset] == quote:
            return 0
        for length in range(1, _LONGEST_PACKED_NAME + 1):
            if units[offset + length] == quote:
                letters = units[offset : offset + length]
                if _BACKSLASH not in letters and self._may_be_packed(letters):
                    self.offset = offset + length + 1
                    return _packed(letters)
        return 0

    def _may_be_packed(self, letters: array[int]) -> bool:
        if self.is_bytes:
            return min(letters) >= 0 and letters[-1] > 0
        return letters[0] != 0 and max(letters) <= _BYTE_MAX

    def _packed_name(self, quote: int) -> int:
        """The same with escapes; 0 if it cannot be packed."""
        letters: list[int] = []
        while self.offset < self._end:
            letter = self._units[self.offset]
            if self.is_bytes:
                letter &= _BYTE_MAX
            if letter == quote:
                if not letters:
                    return 0
                self.offset += 1
                return _packed(letters)
            if letter == _BACKSLASH:
                letter = self._escaped()
            if letter > _BYTE_MAX or len(letters) == _LONGEST_PACKED_NAME or (not letters and letter == 0):
                return 0
            letters.append(letter)
            self.offset += 1
        return _packed(letters) if letters else 0

    def _hashed_name(self, quote: int) -> int:
        value = _FNV_START
        while True:
            letter = self._units[self.offset]
            if letter == _BACKSLASH:
                letter = self._escaped()
            elif letter == quote:
                self.offset += 1
                return wrapped(value, 64)
            self.offset += 1
            value = ((value ^ letter) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF

    def _escaped(self) -> int:
        """The unit that the escape at the offset stands for; the offset moves to its last character."""
        self.offset += 1
        letter = self._units[self.offset]
        if letter == ord("u"):
            if self.offset + 4 >= self._end:
                raise RefusedError("an escape does not end")
            digits = self._units[self.offset + 1 : self.offset + 5]
            self.offset += 4
            # Other characters than digits are not refused: their bits make something.
            high, *rest = (((digit & 0xF) + (9 if digit & 0x40 else 0)) & 0xF for digit in digits)
            return (high << 12) | (rest[0] << 8) | (rest[1] << 4) | rest[2]
        if letter == ord("x"):
            pair = self._units[self.offset + 1], self._units[self.offset + 2]
            self.offset += 2
            if not all(0 <= digit <= _LAST_HEX for digit in pair):
                raise RefusedError("an escape is no character")
            return _HEX.get(pair[0], 0) * 16 + _HEX.get(pair[1], 0)
        return _unescaped(letter)

    # Strings ----------------------------------------------------------------------------------------------------------

    def read_string(self) -> str | None:
        """`readString`: a string, null, or the text of a number or boolean."""
        if self.ch in _QUOTES:
            text = self._read_quoted(self.ch)
            self._end_value()
            return text
        if self.ch == ord("n"):
            self._read_null()
            return None
        if self.ch in {ord("["), ord("{")}:
            raise UndecidedError(Doubt.OBJECT)
        if self.ch in {ord("t"), ord("f")}:
            return "true" if self._read_boolean() else "false"
        if self.ch in _DIGITS or self.ch in _SIGNS:
            return _text_of(self.read_number())
        raise RefusedError("a string is expected")

    def _read_quoted(self, quote: int) -> str:
        """From behind the opening quote to behind the closing one."""
        close = self._text.find(chr(quote), self.offset)
        if close < 0:
            raise RefusedError("a string does not end")
        raw = self._text[self.offset : close]
        if "\\" not in raw:
            self.offset = close + 1
            return raw
        self._check_escapes(quote)
        return self._unescape_to(quote)

    def _check_escapes(self, quote: int) -> None:
        """Whether the string ends, counting two, four or six characters an escape."""
        offset = self.offset
        while offset < self._end and self._units[offset] != quote:
            if self._units[offset] == _BACKSLASH:
                letter = self._units[offset + 1]
                offset += 6 if letter == ord("u") else 4 if letter == ord("x") else 2
            else:
                offset += 1
        if offset >= self._end:
            raise RefusedError("a string does not end")

    def _unescape_to(self, quote: int) -> str:
        letters: list[str] = []
        while True:
            letter = self._units[self.offset]
            if letter == _BACKSLASH:
                letter = self._escaped()
            elif letter == quote:
                self.offset += 1
                return "".join(letters)
            elif self.is_bytes:
                letter &= _BYTE_MAX
            letters.append(chr(letter))
            self.offset += 1

    def _read_boolean(self) -> bool:
        """`readBoolValue`."""
        word = "true" if self.ch == ord("t") else "false"
        if not self._starts_with(word, self.offset - 1):
            raise RefusedError(f"a word begins like {word!r} and is another")
        self.offset += len(word) - 1
        # This one byte has no sign.
        self._end_value_from(self._take() & 0xFFFF)
        return word == "true"

    # Numbers ----------------------------------------------------------------------------------------------------------

    def read_long(self) -> int:
        """`readInt64Value`."""
        whole = self._read_whole(64)
        return _long_of(self.read_number()) if whole is None else whole

    def read_int(self) -> int:
        """`readInt32Value`."""
        whole = self._read_whole(32)
        return _int_of(self.read_number()) if whole is None else whole

    def _read_whole(self, bits: int) -> int | None:
        """The short way: digits, in quotes or not; None, and nothing moves, if there is something else.

        Digits are taken two at a time and counted below 0; a number that is too large comes out above it.
        """
        units, end = self._units, self._end
        lowest = -(1 << (bits - 1))
        offset = self.offset
        first = self.ch
        quote = 0
        if first in _QUOTES:
            quote = first
            first = units[offset]
            offset += 1
        value = ord("0") - first if first in _DIGITS else 0 if first in _SIGNS else 1
        while (
            offset + 1 < end
            and units[offset] in _DIGITS
            and units[offset + 1] in _DIGITS
            and -(-lowest // 100) <= value <= 0
        ):
            pair = (units[offset] - ord("0")) * 10 + units[offset + 1] - ord("0")
            value = wrapped(value * 100 - pair, bits)
            offset += 2
        if offset < end and units[offset] in _DIGITS and -(-lowest // 10) <= value <= 0:
            value = wrapped(value * 10 + ord("0") - units[offset], bits)
            offset += 1
        unit = END if offset == end else units[offset]
        offset += offset != end
        is_whole = value <= 0 and (lowest < value or first == ord("-"))
        if not is_whole or unit & _BYTE_MAX in _NO_INTEGER_END or (quote and unit != quote):
            return None
        self.offset = offset
        if quote:
            unit = self._take()
        if unit in _SUFFIXES:
            unit = self._take()
        self._end_value_from(unit, has_no_sign_after_comma=True)
        return value if first == ord("-") else -value

    def read_number(self) -> Number:
        """`readNumber0`: a number in any form, and what else may stand in its place.

        Raises:
            RefusedError: It is none of these.
        """
        number = Number()
        begin, quote = self.offset, self.ch if self.ch in _QUOTES else 0
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
        if unit in _SUFFIXES:
            self._apply_suffix(number, unit, start)
            unit = self._take()
        self._end_value_from(unit)
        if not is_valid:
            raise RefusedError("a number is expected")
        return number

    def _scan_digits(self, number: Number, start: int, unit: int) -> tuple[bool, int]:
        """Sign, digits, fraction and exponent; whether there was a digit, and the unit behind them."""
        if unit in _SIGNS:
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
        if unit in _EXPONENT_MARKS:
            has_digits, unit = self._scan_exponent(number)
            is_valid = is_valid or has_digits
        return is_valid, unit

    def _beyond_end_refused(self) -> int:
        unit = self._units[self.offset]
        self.offset += 1
        return unit

    def _count_digits(self, counted: _Counted, unit: int) -> int:
        while unit in _DIGITS:
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
        if unit in _SIGNS:
            unit = self._beyond_end_refused()
        has_digits = False
        exponent = 0
        while unit in _DIGITS:
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

    def _scan_word(self, number: Number, unit: int, *, is_valid: bool) -> tuple[bool, int]:
        """A word in the place of a number, in quotes or not; the unit behind it."""
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

    def _apply_suffix(self, number: Number, suffix: int, start: int) -> None:
        is_short = number.kind != Kind.DECIMAL and not (
            number.kind == Kind.LONG_DECIMAL or number.magnitude >> 31
        )
        if suffix in _SHORT_SUFFIXES and is_short:
            number.kind = Kind.INT8 if suffix == ord("B") else Kind.INT16
        elif suffix == ord("L") and self.offset - start < _DIGITS_OF_INT64 and number.kind != Kind.DECIMAL:
            number.kind = Kind.INT64
        elif suffix in _FLOAT_SUFFIXES:
            number.kind = Kind.FLOAT if suffix == ord("F") else Kind.DOUBLE

    def _read_other_string(self) -> Number:
        """`readString0`, which ends at a double quote where there are escapes, and reads beyond the end for a blank."""
        quote = self.ch
        offset = self.offset
        has_escape = False
        while self._units[offset] != quote:
            if self._units[offset] == _BACKSLASH:
                has_escape = True
                letter = self._units[offset + 1]
                offset += 6 if letter == ord("u") else 4 if letter == ord("x") else 2
            else:
                offset += 1
        if has_escape:
            if quote != _DOUBLE_QUOTE:
                raise RefusedError("a string with escapes does not end")
            text = self._unescape_to(_DOUBLE_QUOTE)
            offset = self.offset - 1
        else:
            text = self._text[self.offset : offset]
        self._end_other_string(offset + 1)
        return Number(Kind.STRING, text=text)

    def _end_other_string(self, offset: int) -> None:
        unit = END if offset == self._end and not self.is_bytes else self._units[offset]
        while _is_blank(unit) and (unit > 0 or not self.is_bytes):
            offset += 1
            unit = self._units[offset]
        self.offset = offset + 1
        self._has_comma = unit == _COMMA
        if not self._has_comma:
            self.ch = unit & 0xFFFF
        elif self.is_bytes:
            self.next()
        else:
            self.ch = self._beyond_end_refused()
            while _is_blank(self.ch):
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
            if self.ch in _QUOTES:
                items.append(Number(Kind.STRING, text=self.read_string() or ""))
            elif self.ch in _DIGITS or self.ch in _SIGNS:
                items.append(self.read_number())
            elif self.ch == _SLASH:
                self._skip_comments()
            else:
                raise RefusedError("an array holds something else than a number")
        self.next()
        self._has_comma = self.ch == _COMMA
        if self._has_comma:
            self.next()
        return items

    # What is not wanted -----------------------------------------------------------------------------------------------

    def skip_value(self) -> None:
        """`skipValue`."""
        character = self.ch
        if character in _QUOTES:
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
        """From behind the opening quote to behind the closing one."""
        while (unit := self._beyond_end_refused()) != quote:
            if unit != _BACKSLASH:
                continue
            letter = self._beyond_end_refused()
            if letter == ord("u"):
                self.offset += 4
            elif letter == ord("x"):
                self.offset += 2
            elif letter not in {_BACKSLASH, _DOUBLE_QUOTE}:
                _unescaped(letter)

    def _skip_name(self) -> None:
        if self.ch not in _QUOTES:
            raise RefusedError("a name does not begin with a quote")
        if self.is_bytes:
            self._skip_quoted(self.ch)
        else:
            quote = self.ch
            while (unit := self._beyond_end_refused()) != quote:
                if unit == _BACKSLASH:
                    letter = self._units[self.offset]
                    self.offset += 5 if letter == ord("u") else 3 if letter == ord("x") else 1
        if self._take_nonblank() != _COLON:
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
        if unit in _SIGNS:
            if self.offset >= self._end:
                raise RefusedError("a number has no digits")
            unit = self._take()
        has_digits = unit in _DIGITS
        while unit in _DIGITS:
            unit = self._take()
        if has_digits and unit in _SUFFIXES:
            unit = self._beyond_end_refused()
        else:
            unit = self._skip_fraction(unit, has_digits=has_digits)
        self._end_skipped(unit)

    def _skip_fraction(self, unit: int, *, has_digits: bool) -> int:
        has_point = unit == ord(".")
        if has_point:
            unit = self._take()
            while unit in _DIGITS:
                unit = self._take()
        if not has_digits and not has_point:
            raise RefusedError("a number has no digits")
        if unit in _EXPONENT_MARKS:
            unit = self._beyond_end_refused()
            has_sign = unit in _SIGNS
            if has_sign:
                if self.offset >= self._end:
                    raise RefusedError("an exponent has no digits")
                unit = self._take()
            if unit not in _DIGITS and has_sign:
                raise RefusedError("an exponent has no digits")
            while unit in _DIGITS:
                unit = self._take()
        return self._take() if unit in _FLOAT_SUFFIXES else unit

    def _end_skipped(self, unit: int) -> None:
        """Behind a skipped value: a comma with something behind it, or what closes."""
        while _is_blank(unit):
            unit = self._take()
        self._has_comma = unit == _COMMA
        if self._has_comma:
            unit = self._take_nonblank()
        if self._has_comma == (unit in _CLOSERS):
            raise RefusedError("a value is followed by something that cannot stand there")
        self.ch = unit & 0xFFFF


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


def _is_blank(unit: int) -> bool:
    """`ch <= ' ' && ((1L << ch) & SPACE) != 0`, of which Java takes the last six bits of a shift."""
    return unit <= _SPACE and bool(_BLANK_BITS >> (unit & 63) & 1)


def _packed(letters: array[int] | list[int]) -> int:
    value = 0
    for place, letter in enumerate(letters):
        value |= (letter & _BYTE_MAX) << (8 * place)
    return wrapped(value, 8 * len(letters))


def _unescaped(letter: int) -> int:
    if letter not in _ESCAPES:
        raise RefusedError("an escape is no character")
    return _ESCAPES[letter]


def _text_of(number: Number) -> str:
    """`getNumber().toString()`."""
    kind = number.kind
    if kind in {Kind.FLOAT, Kind.DOUBLE} or (kind == Kind.DECIMAL and number.exponent):
        raise UndecidedError(Doubt.OBJECT)
    if kind == Kind.DECIMAL:
        return str(BigDecimal.of(number.signed, number.scale))
    if kind == Kind.LONG_DECIMAL:
        return _text_of_long_decimal(number)
    if kind in {Kind.INT8, Kind.INT16}:
        return str(wrapped(number.signed, 8 if kind == Kind.INT8 else 16))
    return str(BigDecimal.of(number.signed))


def _text_of_long_decimal(number: Number) -> str:
    if number.scale > _MAX_SCALE:
        raise RefusedError("a number has too many digits")
    if number.scale <= 0 and "." in number.text:
        raise RefusedError("a number ends in a point")
    return str(BigDecimal.parse(number.text))


def _long_of(number: Number) -> int:
    """`getInt64Value`."""
    kind = number.kind
    if kind in {Kind.INT, Kind.INT8, Kind.INT16}:
        return _in_range(_without_top(number), LONG_MIN, LONG_MAX)
    if kind in {Kind.DECIMAL, Kind.INT64, Kind.FLOAT, Kind.DOUBLE}:
        if number.is_null:
            raise RefusedError("a number is null")
        return _long_of_fraction(number)
    if kind in {Kind.BOOLEAN, Kind.NULL}:
        return int(number.is_true)
    if kind == Kind.STRING:
        return _whole_of_text(number.text, LONG_MIN, LONG_MAX, may_be_date=True)
    if kind == Kind.ARRAY:
        return _whole_of_items(number.items or [])
    if kind == Kind.LONG_DECIMAL:
        return _exact(number, LONG_MIN, LONG_MAX)
    if kind == Kind.OBJECT and _NUMBER_FIELD.search(number.text):
        # An object with a number by that name counts as the number.
        raise UndecidedError(Doubt.OBJECT)
    raise RefusedError("an offset is no number")


def _int_of(number: Number) -> int:
    """`getInt32Value`."""
    kind = number.kind
    if kind in {Kind.INT, Kind.INT8, Kind.INT16}:
        return _in_range(_without_top(number), INT_MIN, INT_MAX)
    if kind == Kind.DECIMAL:
        return (
            wrapped(_long_of_fraction(number), 32)
            if not number.exponent
            else _through_float(number, INT_MIN, INT_MAX)
        )
    if kind in {Kind.INT64, Kind.FLOAT, Kind.DOUBLE}:
        if number.is_null:
            raise RefusedError("a number is null")
        return _in_range(_long_of_fraction(number), INT_MIN, INT_MAX)
    if kind in {Kind.BOOLEAN, Kind.NULL}:
        return int(number.is_true)
    if kind == Kind.STRING:
        return _whole_of_text(number.text, INT_MIN, INT_MAX, may_be_date=False)
    if kind == Kind.ARRAY:
        return _whole_of_items(number.items or [])
    if kind == Kind.LONG_DECIMAL:
        return _exact(number, INT_MIN, INT_MAX)
    if kind == Kind.OBJECT:
        raise UndecidedError(Doubt.OBJECT)
    raise RefusedError("a queue id is no number")


def _without_top(number: Number) -> int:
    """The highest of four parts is not looked at where the two below it are 0 and the last has no sign."""
    magnitude = number.magnitude
    if magnitude >> 32 & (2**64 - 1) == 0 and not magnitude >> 31 & 1:
        magnitude &= 0x7FFFFFFF
    return -magnitude if number.is_negative else magnitude


def _in_range(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise RefusedError("a number is out of range")
    return value


def _long_of_fraction(number: Number) -> int:
    """`getNumber().longValue()`."""
    if number.kind in {Kind.INT64, Kind.DECIMAL} and not number.exponent:
        return BigDecimal.of(number.signed, number.scale).low_bits(64)
    return _through_float(number, LONG_MIN, LONG_MAX)


def _through_float(number: Number, low: int, high: int) -> int:
    """`getNumber()` where it makes a `Double` or `Float`, and the integer that this is cut to."""
    is_suffixed = number.kind in {Kind.FLOAT, Kind.DOUBLE}
    if is_suffixed and number.exponent and "E" in str(BigDecimal.of(number.signed, number.scale)):
        raise RefusedError("a number has two exponents")
    value = Fraction(number.signed) * Fraction(10) ** (number.exponent - number.scale)
    return through_float(value, FLOAT if number.kind == Kind.FLOAT else DOUBLE, low, high)


def _exact(number: Number, low: int, high: int) -> int:
    try:
        return BigDecimal.parse(number.text).exactly(low, high)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def _whole_of_text(text: str, low: int, high: int, *, may_be_date: bool) -> int:
    """`toInt64` and `toInt32`."""
    is_number = text.lstrip("+-").isdecimal() and text.isascii() and text.lstrip("+-") in {text, text[1:]}
    if is_number:
        try:
            return parse_integer(text, low, high)
        except ValueError as error:
            raise RefusedError(str(error)) from None
    if text.rfind(",") == len(text) - 4 and _LOCAL_NUMBER.match(text):
        raise UndecidedError(Doubt.LOCALE)
    digit_count = sum(character.isdecimal() for character in text)
    if may_be_date and len(text) in _DATE_LENGTHS and digit_count >= _FEWEST_DATE_DIGITS:
        raise UndecidedError(Doubt.DATE)
    raise RefusedError("a text is no number")


def _whole_of_items(items: list[Number]) -> int:
    """`toInt(List)`: one element, which is cut to 32 bits."""
    if len(items) != 1:
        raise RefusedError("an array holds other than one number")
    item = items[0]
    if item.kind == Kind.STRING:
        try:
            return parse_integer(item.text, INT_MIN, INT_MAX)
        except ValueError as error:
            raise RefusedError(str(error)) from None
    if item.kind in {Kind.INT, Kind.INT64}:
        return wrapped(item.signed, 32)
    if item.kind in {Kind.INT8, Kind.INT16}:
        return wrapped(item.signed, 8 if item.kind == Kind.INT8 else 16)
    if item.kind == Kind.DECIMAL and not item.exponent:
        return BigDecimal.of(item.signed, item.scale).low_bits(32)
    if item.kind == Kind.LONG_DECIMAL:
        _text_of_long_decimal(item)
        return BigDecimal.parse(item.text).low_bits(32)
    if item.is_null:
        raise RefusedError("an array holds null")
    return _through_float(item, INT_MIN, INT_MAX)
