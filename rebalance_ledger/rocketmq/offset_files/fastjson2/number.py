"""A number of fastjson2 and what is made of it: `getNumber`, `getInt64Value` and `getInt32Value` of `JSONReader`.

Belongs here: a number, and its conversions to text, `long` and `int`. Does not belong here: the characters that it is read
from (`number_reader`).
"""

from __future__ import annotations

import re
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

_MAX_SCALE: Final = 2048
_DATE_LENGTHS: Final = range(11, 40)
_FEWEST_DATE_DIGITS: Final = 4
# What `NumberFormat` may begin to read in some locale, and what may be a field `val`.
_LOCAL_NUMBER: Final = re.compile(r"NaN|\W{0,2}[\d\u221e]")
_NUMBER_FIELD: Final = re.compile(r"\bval\b|\\")


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


def text_of(number: Number) -> str:
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


def long_of(number: Number) -> int:
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


def int_of(number: Number) -> int:
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


def _text_of_long_decimal(number: Number) -> str:
    if number.scale > _MAX_SCALE:
        raise RefusedError("a number has too many digits")
    if number.scale <= 0 and "." in number.text:
        raise RefusedError("a number ends in a point")
    return str(BigDecimal.parse(number.text))


def _without_top(number: Number) -> int:
    """Return the number, without the highest of its four parts where the two below it are 0 and the last has no sign."""
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
