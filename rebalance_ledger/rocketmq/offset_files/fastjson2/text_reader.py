"""Names, strings and words of fastjson2: `readFieldNameHashCode`, `readString`, `readBoolValue` and `nextIfNull`.

Belongs here: where each ends, and its value. Does not belong here: numbers (`number_reader`), and the skipping
of ignored values (`reader`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.offset_files.fastjson2.characters import (
    BACKSLASH,
    BYTE_MAX,
    COLON,
    COMMA,
    QUOTES,
    SLASH,
    CharacterCursor,
    is_blank,
)
from rebalance_ledger.rocketmq.offset_files.java_values import wrapped
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

if TYPE_CHECKING:
    from array import array

_BLANKS: Final = frozenset(b" \n\r\f\t\b")
_PATH_STARTS: Final = frozenset(b"$.@")
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
_FNV_START: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_LONGEST_PACKED_NAME: Final = 8


class TextReader(CharacterCursor):
    """The names, strings and words of one text."""

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
        elif self.ch in QUOTES and offset < end and self._units[offset] == self.ch:
            offset += 1
        elif (
            self.ch in QUOTES
            and offset + 4 < end
            and self._starts_with("null", offset)
            and self._units[offset + 4] == self.ch
        ):
            offset += 5
        else:
            return False
        self.offset = offset
        unit = self._take_plain_nonblank(self._take())
        self._has_comma = unit == COMMA
        if self._has_comma:
            unit = self._take_plain_nonblank(self._take())
        self._hold(unit)
        return True

    def _take_plain_nonblank(self, unit: int) -> int:
        """Skip blanks from this unit on; a byte with a sign is no blank here."""
        while unit >= 0 and is_blank(unit):
            unit = self._take()
        return unit

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
        if place + 1 >= end or units[place] != COLON:
            return False
        place = self._first_nonblank(place + 1, signed=False)
        if place >= end or units[place] != quote:
            return False
        return place + 1 >= end or units[place + 1] in _PATH_STARTS

    def _first_nonblank(self, place: int, *, signed: bool) -> int:
        while place < self._end and is_blank(self._units[place]) and (signed or self._units[place] >= 0):
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
        if self.ch == SLASH:
            self._skip_comments()
        quote = self.ch
        if quote not in QUOTES:
            if quote == ord("}") or self.is_null():
                return None
            raise RefusedError("a name does not begin with a quote")
        begin = self.offset
        packed = self._short_name(quote) or self._packed_name(quote)
        if packed == 0:
            self.offset = begin
            packed = self._hashed_name(quote)
        unit = self._take_nonblank()
        if unit != COLON:
            raise RefusedError("a name is not followed by ':'")
        self._hold(self._take_nonblank())
        # A name of nothing but U+00FF makes the number that stands for no name.
        return None if packed == -1 else packed

    def _short_name(self, quote: int) -> int:
        """Pack up to eight letters without an escape; return 0 without moving if there are more or others."""
        units, offset = self._units, self.offset
        if offset + 9 >= self._end or units[offset] == quote:
            return 0
        for length in range(1, _LONGEST_PACKED_NAME + 1):
            if units[offset + length] == quote:
                letters = units[offset : offset + length]
                if BACKSLASH not in letters and self._may_be_packed(letters):
                    self.offset = offset + length + 1
                    return _packed(letters)
        return 0

    def _may_be_packed(self, letters: array[int]) -> bool:
        if self.is_bytes:
            return min(letters) >= 0 and letters[-1] > 0
        return letters[0] != 0 and max(letters) <= BYTE_MAX

    def _packed_name(self, quote: int) -> int:
        """Pack up to eight letters, escapes included; return 0 if they cannot be packed."""
        letters: list[int] = []
        while self.offset < self._end:
            letter = self._units[self.offset]
            if self.is_bytes:
                letter &= BYTE_MAX
            if letter == quote:
                if not letters:
                    return 0
                self.offset += 1
                return _packed(letters)
            if letter == BACKSLASH:
                letter = self._escaped()
            if letter > BYTE_MAX or len(letters) == _LONGEST_PACKED_NAME or (not letters and letter == 0):
                return 0
            letters.append(letter)
            self.offset += 1
        return _packed(letters) if letters else 0

    def _hashed_name(self, quote: int) -> int:
        value = _FNV_START
        while True:
            letter = self._units[self.offset]
            if letter == BACKSLASH:
                letter = self._escaped()
            elif letter == quote:
                self.offset += 1
                return wrapped(value, 64)
            self.offset += 1
            value = ((value ^ letter) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF

    # Strings and booleans ---------------------------------------------------------------------------------------------

    def _read_quoted_value(self) -> str:
        """Read a string in quotes, and what follows it."""
        text = self._read_quoted(self.ch)
        self._end_value()
        return text

    def _read_quoted(self, quote: int) -> str:
        """Read from behind the opening quote to behind the closing one."""
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
        """Check that the string ends, counting two, four or six characters an escape."""
        offset = self.offset
        while offset < self._end and self._units[offset] != quote:
            if self._units[offset] == BACKSLASH:
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
            if letter == BACKSLASH:
                letter = self._escaped()
            elif letter == quote:
                self.offset += 1
                return "".join(letters)
            elif self.is_bytes:
                letter &= BYTE_MAX
            letters.append(chr(letter))
            self.offset += 1

    def _escaped(self) -> int:
        """Return the unit that the escape at the offset stands for, and move the offset to the escape's last character."""
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
        return unescape_letter(letter)

    def _read_boolean(self) -> bool:
        """`readBoolValue`."""
        word = "true" if self.ch == ord("t") else "false"
        if not self._starts_with(word, self.offset - 1):
            raise RefusedError(f"a word begins like {word!r} and is another")
        self.offset += len(word) - 1
        # This one byte has no sign.
        self._end_value_from(self._take() & 0xFFFF)
        return word == "true"


def unescape_letter(letter: int) -> int:
    """Return the unit that a backslash and this letter stand for."""
    if letter not in _ESCAPES:
        raise RefusedError("an escape is no character")
    return _ESCAPES[letter]


def _packed(letters: array[int] | list[int]) -> int:
    value = 0
    for place, letter in enumerate(letters):
        value |= (letter & BYTE_MAX) << (8 * place)
    return wrapped(value, 8 * len(letters))
