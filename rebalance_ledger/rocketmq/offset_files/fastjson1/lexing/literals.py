"""Strings, names and numbers of fastjson 1: `scanString`, `scanSymbol` and `scanNumber` of `JSONLexerBase`.

Belongs here: where each ends, and its value. Does not belong here: which of them stands next (`tokenizer`).
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.characters import DIGITS, END, CharacterCursor
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.escapes import ESCAPES, HEX, parsed_hex
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import CLOSING, Token
from rebalance_ledger.rocketmq.offset_files.java_values import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigDecimal,
    wrapped,
)
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

_NAME_STARTS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$")
_NAME_PARTS: Final = (_NAME_STARTS | DIGITS) - {"$"}
_FIRST_ALWAYS_IN_A_NAME: Final = "\u0100"
_INTEGER_SUFFIXES: Final = frozenset("LSB")
_SUFFIXES: Final = frozenset("LSBFD")
_LONGEST_NUMBER: Final = 65535
# `JSONLexerBase.sbuf`, before anything has made it grow.
_BUFFER: Final = 512


class LiteralScanner(CharacterCursor):
    """The strings, names and numbers of one text.

    Args:
        text: Code units, each a character.
        grows_buffer: Whether `putChar` copes with a string that already is longer than its buffer (since 1.2.76).
        limits_numbers: Whether a number may have 65,535 digits at most (since 1.2.76).

    Attributes:
        token: The last token.
    """

    def __init__(self, text: str, *, grows_buffer: bool, limits_numbers: bool) -> None:
        super().__init__(text)
        # Declared wider than it is: mypy would else hold it to the last value that it has seen it compared with.
        self.token: int = Token.NONE
        self._grows_buffer = grows_buffer
        self._limits_numbers = limits_numbers
        self._token_position = 0
        self._start = 0
        self._taken = 0
        self._unescaped: list[str] | None = None

    # Strings ----------------------------------------------------------------------------------------------------------

    def scan_string(self, quote: str) -> None:
        """`scanString` and `scanStringSingleQuote`, from the opening quote in hand."""
        self._start = self._position
        self._unescaped = None
        while True:
            character = self.advance()
            if character == quote:
                break
            if character == END:
                if self._is_end():
                    raise RefusedError("a string does not end")
                if self._unescaped is None and self._taken > _BUFFER and not self._grows_buffer:
                    raise UndecidedError(Doubt.BUFFER)
            if character == "\\":
                if self._unescaped is None:
                    first = self._start + 1
                    self._unescaped = list(self._text[first : first + self._taken])
                character = self._escape(self.advance())
            if self._unescaped is not None:
                self._unescaped.append(character)
            self._taken += 1
        self.token = Token.STRING
        self.advance()

    def string(self) -> str:
        """`stringVal`."""
        if self._unescaped is not None:
            return "".join(self._unescaped)
        first = self._start + 1
        if first + self._taken > self._length:
            raise RefusedError("the text has ended")
        return self._text[first : first + self._taken]

    def is_reference(self) -> bool:
        """`isRef`: whether the last string, as it is written, is `$ref`."""
        return self._taken == len("$ref") and self._text.startswith("$ref", self._start + 1)

    def forget_taken(self) -> None:
        """`resetStringPosition`."""
        self._taken = 0

    def _escape(self, letter: str, *, in_name: bool = False) -> str:
        if letter in ESCAPES:
            return ESCAPES[letter]
        if letter == "x":
            pair = self.advance() + self.advance()
            if in_name and all(character <= "f" for character in pair):
                high, low = (int(character, 16) if character in HEX else 0 for character in pair)
                return chr(high * 16 + low)
            if not HEX.issuperset(pair):
                raise RefusedError(f"'\\x{pair}' is no character")
            return chr(int(pair, 16))
        if letter == "u":
            digits = "".join(self.advance() for _ in range(4))
            return chr(parsed_hex(digits) & 0xFFFF)
        raise RefusedError(f"'\\{letter}' is no character")

    # Names ------------------------------------------------------------------------------------------------------------

    def scan_quoted_name(self, quote: str) -> str:
        """`scanSymbol(SymbolTable, char)`: whatever is in hand counts as the opening quote."""
        self._start = self._position
        self._taken = 0
        name: list[str] = []
        while True:
            character = self.advance()
            if character == quote:
                break
            if character == END:
                raise RefusedError("a name does not end")
            if character == "\\":
                character = self._escape(self.advance(), in_name=True)
            name.append(character)
        self.token = Token.STRING
        self.advance()
        return "".join(name)

    def scan_name(self) -> str | None:
        """`scanSymbol(SymbolTable)`: a name in quotes or without; None and a token where there is none."""
        self.skip_blanks()
        if self.ch in "\"'":
            return self.scan_quoted_name(self.ch)
        if self.ch in "},":
            self.token = CLOSING[self.ch]
            self.advance()
            return None
        if self.ch == END:
            self.token = Token.EOF
            return None
        return self.scan_bare_name()

    def scan_bare_name(self) -> str | None:
        """`scanSymbolUnQuoted`; None for `null`."""
        if self.token == Token.ERROR and self._token_position == 0 and self._position == 1:
            self._position = 0
        if self.ch < _FIRST_ALWAYS_IN_A_NAME and self.ch not in _NAME_STARTS:
            raise RefusedError(f"{self.ch!r} begins no name")
        self._start = self._position
        end = self._position + 1
        while end < self._length and (
            self._text[end] >= _FIRST_ALWAYS_IN_A_NAME or self._text[end] in _NAME_PARTS
        ):
            end += 1
        self._taken = end - self._start
        self._move_to(end)
        self.token = Token.IDENTIFIER
        name = self._text[self._start : end]
        return None if name == "null" else name

    # Numbers ----------------------------------------------------------------------------------------------------------

    def scan_number(self) -> None:
        """`scanNumber`, which counts on from what was taken before."""
        first = self._start = self._position
        if self.ch == "-":
            self.advance()
        self._skip_digits()
        is_float = False
        if self.ch == ".":
            self.advance()
            self._skip_digits()
            is_float = True
        if self._limits_numbers and self._taken + self._position - first > _LONGEST_NUMBER:
            raise RefusedError("a number is too long")
        if self.ch in _INTEGER_SUFFIXES:
            self.advance()
        elif self.ch in "FD":
            self.advance()
            is_float = True
        elif self.ch in "eE":
            self.advance()
            if self.ch in "+-":
                self.advance()
            self._skip_digits()
            if self.ch in "DF":
                self.advance()
            is_float = True
        self._taken += self._position - first
        self.token = Token.FLOAT if is_float else Token.INT

    def _skip_digits(self) -> None:
        while self.ch in DIGITS:
            self.advance()

    def number_text(self) -> str:
        """`numberString`: without one suffix."""
        taken = self._taken - 1 if self._last_taken() in _SUFFIXES else self._taken
        return self._text[self._start : self._start + taken]

    def number_suffix(self) -> str:
        """Return the letter that ends the number, or an empty string."""
        last = self._last_taken()
        return last if last in _SUFFIXES else ""

    def _last_taken(self) -> str:
        return self._at(self._start + self._taken - 1)

    def long_value(self) -> int:
        """`longValue`."""
        return self._limited_value(LONG_MIN, LONG_MAX)

    def int_value(self) -> int:
        """`intValue`."""
        return self._limited_value(INT_MIN, INT_MAX)

    def integer_value(self) -> int:
        """`integerValue`: the value, or `LONG_MAX + 1` for one that takes a `BigInteger`; a `+` alone is 0."""
        text = self._text[self._start : self._start + self._taken]
        suffix = text[-1:] if text[-1:] in _INTEGER_SUFFIXES else ""
        try:
            number = self._number_of(text.removesuffix(suffix)).exactly(LONG_MIN, LONG_MAX)
        except ValueError:
            return LONG_MAX + 1
        if INT_MIN <= number <= INT_MAX and suffix in {"S", "B"}:
            return wrapped(number, 16 if suffix == "S" else 8)
        return number

    def _limited_value(self, low: int, high: int) -> int:
        text = self._text[self._start : self._start + self._taken]
        digits = text.removeprefix("-")
        if digits[:1] in _INTEGER_SUFFIXES:
            # The first character is taken for a digit without a look.
            number = ord(digits) - ord("0")
            return -number if text != digits else number
        try:
            return self._number_of(text.rstrip("LSB")).exactly(low, high)
        except ValueError as error:
            raise RefusedError(str(error)) from None

    @staticmethod
    def _number_of(digits: str) -> BigDecimal:
        if digits == "-":
            raise RefusedError("a number has no digits")
        return BigDecimal.parse(digits or "0")

    def decimal_value(self) -> BigDecimal:
        """`decimalValue`."""
        text = self.number_text()
        if self._limits_numbers and len(text) > _LONGEST_NUMBER:
            raise RefusedError("a number is too long")
        try:
            return BigDecimal.parse(text)
        except ValueError as error:
            raise RefusedError(str(error)) from None
