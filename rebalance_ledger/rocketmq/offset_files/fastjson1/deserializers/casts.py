"""Conversions of fastjson 1 to `long` and `int`: `TypeUtils`.

Belongs here: a value to a whole number. Does not belong here: the tokens that a value is read from (`codecs`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_ledger.rocketmq.offset_files.fastjson1.values import Container, Number, Value
from rebalance_ledger.rocketmq.offset_files.java_values import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigDecimal,
    parse_integer,
    wrapped,
)
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.fastjson1.dialect import Dialect

_ATOMIC_FIELDS: Final = frozenset({"andIncrement", "andDecrement"})
_PRINTABLE_SCALE: Final = 100
_SHORTEST_DATE: Final = 8
_DATE_START: Final = re.compile(r"[0-9]{4}[-/0-9\u5e74\ub144]|[0-9]{2}[.-][0-9]{2}[.-]|/Date\(")
_POINT_AND_ZEROS: Final = re.compile(r"\.0*(?=[\n\r\u0085\u2028\u2029]?\Z|\r\n\Z)")


def cast_to_long(value: Value, dialect: Dialect) -> int | None:
    """`TypeUtils.castToLong`."""
    if value is None:
        return None
    if isinstance(value, bool) and dialect.is_since_76:
        return int(value)
    if isinstance(value, Number):
        return _long_of_number(value)
    if isinstance(value, str):
        return _long_of_text(value)
    atomic = _second_of_atomic(value)
    if atomic is not None:
        return cast_to_long(atomic.value, dialect)
    raise RefusedError("an offset is no number")


def cast_to_int(value: Value) -> int | None:
    """`TypeUtils.castToInt`."""
    if value is None:
        return None
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Number):
        number = value.value
        return int_of(number) if isinstance(number, BigDecimal) else wrapped(_long_of_number(value), 32)
    if isinstance(value, str):
        return _int_of_text(value)
    atomic = _second_of_atomic(value)
    if atomic is not None:
        return cast_to_int(atomic.value)
    raise RefusedError("a queue id is no number")


def long_of(decimal: BigDecimal) -> int:
    """`TypeUtils.longValue`."""
    if abs(decimal.scale) <= _PRINTABLE_SCALE:
        return decimal.low_bits(64)
    try:
        return decimal.exactly(LONG_MIN, LONG_MAX)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def int_of(decimal: BigDecimal) -> int:
    """`TypeUtils.intValue`."""
    if abs(decimal.scale) <= _PRINTABLE_SCALE:
        return decimal.low_bits(32)
    try:
        return decimal.exactly(INT_MIN, INT_MAX)
    except ValueError as error:
        raise RefusedError(str(error)) from None


class _Second(NamedTuple):
    value: Value


def _second_of_atomic(value: Value) -> _Second | None:
    """Return the second field, the one that counts, of an `AtomicLong` that was written as a bean; None for another value."""
    if isinstance(value, Container) and value.kind == "object" and value.entries.keys() == _ATOMIC_FIELDS:
        return _Second(list(value.entries.values())[1])
    return None


def _long_of_number(number: Number) -> int:
    if number.value is None:
        raise UndecidedError(Doubt.OBJECT)
    return long_of(number.value) if isinstance(number.value, BigDecimal) else wrapped(number.value, 64)


def _long_of_text(text: str) -> int | None:
    if text in {"", "null", "NULL"}:
        return None
    text = text.replace(",", "")
    try:
        return parse_integer(text, LONG_MIN, LONG_MAX)
    except ValueError:
        pass
    if len(text) >= _SHORTEST_DATE and _DATE_START.match(text.removeprefix("\ufeff")):
        raise UndecidedError(Doubt.DATE)
    raise RefusedError("an offset is no number")


def _int_of_text(text: str) -> int | None:
    if text in {"", "null", "NULL"}:
        return None
    text = _POINT_AND_ZEROS.sub("", text.replace(",", ""))
    try:
        return parse_integer(text, INT_MIN, INT_MAX)
    except ValueError as error:
        raise RefusedError(str(error)) from None
