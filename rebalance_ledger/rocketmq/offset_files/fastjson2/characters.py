"""The character that a reader of fastjson2 has in hand: `next`, `nextIfMatch`, `skipComment` and their kin.

On Java 9 and later a text whose characters all are below U+0100 is read as bytes (`JSONReaderASCII`), any other as code
units (`JSONReaderUTF16`); on Java 8 both are. Bytes have signs in Java, and fastjson2 shifts by them: twelve Latin letters
count as blanks in many places (U+00A0 like a space, and U+00C8 too). Arrays that are read beyond their end throw.

Belongs here: single characters, blanks, punctuation and comments. Does not belong here: names, strings
(`text_reader`) and numbers (`number_reader`).
"""

from __future__ import annotations

from array import array
from typing import Final

from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

END: Final = 0x1A
"""What is in hand at the end of the text; the same character inside a text counts as the end here and there."""

QUOTES: Final = frozenset(b"\"'")
DOUBLE_QUOTE: Final = ord('"')
BACKSLASH: Final = ord("\\")
SLASH: Final = ord("/")
COMMA: Final = ord(",")
COLON: Final = ord(":")
DIGITS: Final = range(ord("0"), ord("9") + 1)
SIGNS: Final = frozenset(b"+-")
BYTE_MAX: Final = 0xFF

_MOST_COMMENTS: Final = 1000
_BLANK_BITS: Final = sum(1 << ord(character) for character in " \n\r\f\t\b")
_SPACE: Final = ord(" ")
_STAR: Final = ord("*")


class CharacterCursor:
    """A text, and the character in hand.

    Args:
        text: Code units, each a character; not empty.

    Attributes:
        is_bytes: Whether the text is read as bytes.
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
        self.ch = END
        self.offset = 0
        if self.is_bytes:
            self.next()
        else:
            self._begin_units()

    def _begin_units(self) -> None:
        self.offset = 0
        while self.offset < self._end and is_blank(self._units[self.offset]):
            self.offset += 1
        if self.offset == self._end:
            return
        self.ch = self._units[self.offset]
        self.offset += 1
        if self.ch in {0xFFFE, 0xFEFF}:
            self.next()
        if self.ch == SLASH:
            self._skip_comments()

    # Single characters ------------------------------------------------------------------------------------------------

    def _take(self) -> int:
        """Take the next unit, or `END`."""
        if self.offset == self._end:
            return END
        unit = self._units[self.offset]
        self.offset += 1
        return unit

    def _beyond_end_refused(self) -> int:
        unit = self._units[self.offset]
        self.offset += 1
        return unit

    def _take_nonblank(self, *, over_nul: bool = False) -> int:
        unit = self._take()
        while is_blank(unit) or (over_nul and unit == 0):
            unit = self._take()
        return unit

    def _hold(self, unit: int) -> None:
        self.ch = unit & BYTE_MAX if self.is_bytes else unit

    def _starts_with(self, prefix: str, place: int) -> bool:
        return self._text.startswith(prefix, place)

    def next(self) -> None:
        """`next`."""
        unit = END if self.offset >= self._end else self._take()
        while unit == 0 or (unit > 0 and is_blank(unit)):
            unit = self._take()
        self._hold(unit)
        if unit == SLASH:
            self._skip_comments()

    # Punctuation ------------------------------------------------------------------------------------------------------

    def next_if(self, wanted: str) -> bool:
        """`nextIfMatch`: over blanks before; nothing moves if it is not there."""
        before = self.offset
        unit = self.ch
        while is_blank(unit):
            unit = self._take()
        if unit != ord(wanted):
            self.offset = before
            return False
        self._go_on(self._take_nonblank(over_nul=True))
        return True

    def next_if_comma(self) -> None:
        """`nextIfComma`: blanks before it are skipped in any case."""
        unit = self.ch
        while is_blank(unit):
            unit = self._take()
        if unit == COMMA:
            self._go_on(self._take_nonblank(over_nul=True))
        else:
            self.ch = unit

    def next_if_object_start(self) -> bool:
        """`nextIfObjectStart`."""
        if self.ch != ord("{"):
            return False
        unit = self._take_nonblank(over_nul=True)
        self._hold(unit)
        if unit == SLASH:
            self._skip_comments()
        return True

    def next_if_object_end(self) -> bool:
        """`nextIfObjectEnd`: over a comma behind it."""
        if self.ch != ord("}"):
            return False
        unit = self._take_nonblank(over_nul=True)
        if unit == COMMA:
            unit = self._take_nonblank(over_nul=True)
        self._go_on(unit)
        return True

    def _go_on(self, unit: int) -> None:
        if unit < 0:
            # The byte is taken for a part of UTF-8, and whatever it makes fits nowhere.
            raise RefusedError("a letter stands where none can")
        self.ch = unit
        if unit == SLASH:
            self._skip_comments()

    def _end_value(self) -> None:
        """Take what follows most values: blanks, one comma, blanks."""
        self._end_value_from(self._take())

    def _end_value_from(self, unit: int, *, has_no_sign_after_comma: bool = False) -> None:
        while is_blank(unit):
            unit = self._take()
        self._has_comma = unit == COMMA
        if self._has_comma:
            unit = self._take()
            if not (has_no_sign_after_comma and unit < 0):
                while is_blank(unit):
                    unit = self._take()
        self._hold(unit)

    # Comments ---------------------------------------------------------------------------------------------------------

    def _skip_comments(self) -> None:
        """`skipComment`, which calls itself for the next one."""
        for _ in range(_MOST_COMMENTS):
            self._skip_comment()
            if self.ch != SLASH:
                return
        raise UndecidedError(Doubt.NESTING)

    def _skip_comment(self) -> None:
        offset, units, end = self.offset, self._units, self._end
        if offset + 1 >= end:
            raise RefusedError("a comment does not end")
        opening = units[offset]
        if opening not in {SLASH, _STAR}:
            raise RefusedError("a '/' begins no comment")
        offset += 2
        unit = units[offset - 1]
        while True:
            is_closed = unit == ord("\n")
            if opening == _STAR:
                is_closed = unit == _STAR and units[offset] == SLASH
                offset += is_closed
            if offset >= end:
                unit = END
                break
            unit = units[offset]
            offset += 1
            if is_closed:
                while is_blank(unit) and offset < end:
                    unit = units[offset]
                    offset += 1
                if is_blank(unit):
                    # Whatever is read after this is read beyond the end.
                    unit, offset = END, end + 1
                break
        self.offset = offset
        self.ch = unit & 0xFFFF


def is_blank(unit: int) -> bool:
    """`ch <= ' ' && ((1L << ch) & SPACE) != 0`, of which Java takes the last six bits of a shift."""
    return unit <= _SPACE and bool(_BLANK_BITS >> (unit & 63) & 1)
