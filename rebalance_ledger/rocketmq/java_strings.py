"""The parts of Java's `String` and `Character` that RocketMQ's rules use.

Belongs here: what the Java platform does with strings and 32-bit numbers.
Does not belong here: anything that RocketMQ itself decides.

A Python `str` may hold an unpaired surrogate, as a Java string may; every function here accepts one.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.errors import RocketMQError

if TYPE_CHECKING:
    from collections.abc import Collection

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1


def to_int(number: int) -> int:
    """Wrap a whole number to Java's 32-bit `int`."""
    return (number + 2**31) % 2**32 - 2**31


def to_long(number: int) -> int:
    """Wrap a whole number to Java's 64-bit `long`."""
    return (number + 2**63) % 2**64 - 2**63


def absolute(number: int) -> int:
    """`Math.abs(int)`: the smallest `int` has no positive counterpart and stays negative."""
    return number if number == INT_MIN else abs(number)


def remainder(dividend: int, divisor: int) -> int:
    """Compute Java's `%`, which takes the sign of the dividend."""
    result = abs(dividend) % abs(divisor)
    return -result if dividend < 0 else result


def order_key(text: str) -> bytes:
    """Return the key under which Python sorts strings as `String.compareTo` does: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def byte_order_key(text: str) -> bytes:
    """Return the key under which strings sort by UTF-8 byte, as the Go and C++ clients do."""
    return text.encode("utf-8", "surrogatepass")


def hash_code(text: str) -> int:
    """`String.hashCode`: 31 times the hash so far plus the next UTF-16 code unit, in 32 bits."""
    result = 0
    units = order_key(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return to_int(result)


def long_hash_code(number: int) -> int:
    """`Long.hashCode`: the two halves of the 64-bit number, combined by exclusive or."""
    unsigned = number % 2**64
    return to_int((unsigned ^ unsigned >> 32) & 0xFFFFFFFF)


def encode(text: str, charset: str = "utf-8") -> bytes:
    """`String.getBytes(charset)`: each character that the charset cannot encode becomes one question mark.

    Raises:
        LookupError: Python does not know the charset.
    """
    try:
        return text.encode(charset)
    except UnicodeEncodeError:
        # Two separate surrogates that make a pair are one character to Java, not two question marks.
        paired = order_key(text).decode("utf-16-be", "surrogatepass")
        return paired.encode(charset, _QUESTION_MARK)


def _question_mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "?" * (error.end - error.start), error.end


_QUESTION_MARK: Final = "rebalance-ledger-java-question-mark"
codecs.register_error(_QUESTION_MARK, _question_mark)


def split(text: str, delimiter: str) -> list[str]:
    """`String.split` for a delimiter without special meaning: trailing empty strings are dropped.

    The result for an empty string is the string itself; for a text of delimiters only, it is empty.
    """
    if delimiter not in text:
        return [text]
    parts = text.split(delimiter)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def parse_int(text: str) -> int:
    """`Integer.parseInt`: an optional sign and digits of any script in the basic plane.

    Raises:
        RocketMQError: `NumberFormatException`, also when the number does not fit 32 bits.
    """
    if _INTEGER.fullmatch(text):
        number = int(text)
        if INT_MIN <= number <= INT_MAX:
            return number
    raise RocketMQError("NumberFormatException", f'For input string: "{text}"')


_INTEGER: Final = re.compile(r"[+-]?(?:(?![\U00010000-\U0010ffff])\d)+")


def hash_map_order(keys: Collection[str]) -> list[str]:
    """Return the keys in the order in which a `java.util.HashMap` of them iterates, if they were put in this order.

    Chains of eight and more equal buckets, which Java turns into trees, are not modelled.
    """
    bucket_count = 16
    while len(keys) > bucket_count * 3 // 4:
        bucket_count *= 2

    def bucket(key: str) -> int:
        unsigned = hash_code(key) & 0xFFFFFFFF
        return (unsigned ^ unsigned >> 16) & (bucket_count - 1)

    return sorted(keys, key=bucket)


# Character.isWhitespace: the separators of Unicode without the three that do not break, and some controls.
_WHITESPACE: Final = frozenset(
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)


def is_whitespace(character: str) -> bool:
    """`Character.isWhitespace`, which excludes U+00A0, U+2007 and U+202F."""
    return character in _WHITESPACE


def is_blank(text: str) -> bool:
    """Return whether there is no character that is not Java whitespace, as commons-lang's `isBlank` asks."""
    return all(map(is_whitespace, text))
