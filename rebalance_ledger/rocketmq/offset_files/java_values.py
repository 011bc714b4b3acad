"""Java's numbers and text, as far as reading offset files requires.

Belongs here: code units, `parseInt` and its kin, `BigDecimal`, rounding. Does not belong here: anything of JSON.

A number may have as many digits as its file has characters. So digits stay text until they are known to be few: nothing
here takes more than a time that grows with their count.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import Final, NamedTuple

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1

_BEYOND_THE_BASIC_PLANE: Final = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def code_units(text: str) -> str:
    """Return the text with each character beyond U+FFFF as the two surrogates that a Java string holds for it."""
    return text if text.isascii() else _BEYOND_THE_BASIC_PLANE.sub(_split, text)


def joined(units: str) -> str:
    """Return the text of code units; a surrogate without its other half stays as it is."""
    return units if units.isascii() else _SURROGATE_PAIR.sub(_join, units)


def _split(match: re.Match[str]) -> str:
    offset = ord(match[0]) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def _join(match: re.Match[str]) -> str:
    high, low = ord(match[0][0]), ord(match[0][1])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def wrapped(number: int, bits: int) -> int:
    """Return the two's complement of this many bits, to which Java truncates a number that is too large."""
    modulus = 1 << bits
    number &= modulus - 1
    return number - modulus if number >> (bits - 1) else number


def digit(unit: str, radix: int = 10) -> int:
    """`Character.digit`: digits of every script, and full-width letters; -1 for anything else."""
    value = unicodedata.decimal(unit, -1)
    if value < 0:
        letter = unicodedata.normalize("NFKC", unit) if "\uff21" <= unit <= "\uff5a" else unit
        if "a" <= letter <= "z":
            value = ord(letter) - ord("a") + 10
        elif "A" <= letter <= "Z":
            value = ord(letter) - ord("A") + 10
    return value if value < radix else -1


def parse_integer(text: str, low: int, high: int, radix: int = 10) -> int:
    """`Integer.parseInt` and `Long.parseLong`: a sign and digits of any script, and nothing else.

    Raises:
        ValueError: The text is no such number, or it is below `low` or above `high`.
    """
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits:
        raise ValueError("a number has no digits")
    magnitude = 0
    for unit in digits:
        value = digit(unit, radix)
        if value < 0:
            raise ValueError("a text is no number")
        magnitude = magnitude * radix + value
        if magnitude > -low:
            raise ValueError("a number is out of range")
    number = -magnitude if text[0] == "-" else magnitude
    if not low <= number <= high:
        raise ValueError("a number is out of range")
    return number


_DECIMAL: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?")
_MOST_EXPONENT_DIGITS: Final = 10
_MOST_LONG_DIGITS: Final = 19
_FIRST_WRITTEN_EXPONENT: Final = -6
_DIGITS_AT_ONCE: Final = 1000


class BigDecimal(NamedTuple):
    """A `java.math.BigDecimal`: digits as a whole number, times ten to the power of -`scale`.

    Attributes:
        is_negative: Its sign; that of 0 does not count.
        digits: Without leading zeros; `0` for zero.
        scale: How many of the digits stand behind the point; below 0, how many zeros follow them.
    """

    is_negative: bool
    digits: str
    scale: int

    @classmethod
    def of(cls, unscaled: int, scale: int = 0) -> BigDecimal:
        """`BigDecimal.valueOf(long, int)`; the number must be a short one."""
        return cls(unscaled < 0, str(abs(unscaled)), scale)

    @classmethod
    def parse(cls, text: str) -> BigDecimal:
        """`new BigDecimal(char[])`.

        Raises:
            ValueError: The text is not a decimal number, or its exponent is out of range.
        """
        match = _DECIMAL.fullmatch(text)
        if match is None or not (match[2] or match[3]):
            raise ValueError("a text is no decimal number")
        sign, whole, fraction, exponent_sign, exponent = match.groups(default="")
        exponent = exponent.lstrip("0") or "0"
        power = int(exponent) if len(exponent) <= _MOST_EXPONENT_DIGITS else INT_MAX + 1
        power = -power if exponent_sign == "-" else power
        scale = len(fraction) - power
        if not (INT_MIN <= power <= INT_MAX and INT_MIN <= scale <= INT_MAX):
            raise ValueError("an exponent is out of range")
        return cls(sign == "-", (whole + fraction).lstrip("0") or "0", scale)

    def low_bits(self, bits: int) -> int:
        """`longValue` and `intValue`: the last bits of the number without its fraction."""
        digits = self.digits[: len(self.digits) - self.scale] if self.scale > 0 else self.digits
        if self.scale >= len(self.digits) or -self.scale >= bits:
            # Only a fraction, or a multiple of a power of ten that ends in as many zero bits.
            return 0
        number = 0
        for start in range(0, len(digits), _DIGITS_AT_ONCE):
            part = digits[start : start + _DIGITS_AT_ONCE]
            number = (number * 10 ** len(part) + int(part)) % (1 << bits)
        number *= 10 ** max(-self.scale, 0)
        return wrapped(-number if self.is_negative else number, bits)

    def exactly(self, low: int, high: int) -> int:
        """`longValueExact` and `intValueExact`.

        Raises:
            ValueError: The number has a fraction, or it is below `low` or above `high`.
        """
        if self.digits == "0":
            return 0
        whole_digit_count = len(self.digits) - self.scale
        if not 0 < whole_digit_count <= _MOST_LONG_DIGITS:
            raise ValueError("a number is out of range or has a fraction")
        if self.digits[whole_digit_count:].strip("0"):
            raise ValueError("a number has a fraction")
        number = int(self.digits[:whole_digit_count].ljust(whole_digit_count, "0"))
        number = -number if self.is_negative else number
        if not low <= number <= high:
            raise ValueError("a number is out of range")
        return number

    def __str__(self) -> str:
        """`BigDecimal.toString`."""
        digits = self.digits
        sign = "-" if self.is_negative and digits != "0" else ""
        if self.scale == 0:
            return sign + digits
        exponent = len(digits) - 1 - self.scale
        if self.scale > 0 and exponent >= _FIRST_WRITTEN_EXPONENT:
            padded = digits.rjust(self.scale + 1, "0")
            return f"{sign}{padded[: -self.scale]}.{padded[-self.scale :]}"
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}" + (f"E{exponent:+d}" if exponent else "")


class FloatFormat(NamedTuple):
    """A format of binary floating-point numbers: the bits of its mantissa, and its greatest exponent."""

    mantissa_bits: int
    most_exponent: int


FLOAT: Final = FloatFormat(24, 127)
DOUBLE: Final = FloatFormat(53, 1023)


def through_float(number: Fraction, float_format: FloatFormat, low: int, high: int) -> int:
    """Return a number rounded to a float and then truncated to an integer, limited to `low` and `high`."""
    if number == 0:
        return 0
    magnitude = abs(number)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - float_format.mantissa_bits + 1)
    nearest = round(magnitude / unit) * unit
    whole = nearest.numerator // nearest.denominator
    if nearest >= Fraction(2) ** (float_format.most_exponent + 1):
        whole = max(-low, high)
    return max(low, min(high, -whole if number < 0 else whole))
