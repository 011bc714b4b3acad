r"""The characters of fastjson 1: `JSONLexerBase` and `JSONScanner` of 1.2.69 to 1.2.83, with the features that are on by default.

Belongs here: tokens, strings, numbers, names, and the shortcuts by which generated readers take a field at once. Does
not belong here: what the tokens make (`fastjson1`).

fastjson's lexer keeps more state than it needs, and what it accepts depends on that: the character in hand (`ch`) and
the place (`position`) may part, a value that a shortcut has taken leaves the token from before it, and U+001A stands for
the end of the text wherever it is. So the state is the same here.
"""

from __future__ import annotations

import unicodedata
from enum import IntEnum
from typing import Final

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

END: Final = "\x1a"
"""What the lexer has in hand at the end of the text. The same character inside a text is taken for the end here and there."""

_BLANKS: Final = frozenset(" \n\r\t\f\b")
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_AFTER_TRUE: Final = frozenset(" ,}]\n\r\t\x1a\f\b:/")
_AFTER_NULL: Final = frozenset(" ,}]\n\r\t\x1a\f\b")
_NAME_STARTS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$")
_NAME_PARTS: Final = (_NAME_STARTS | _DIGITS) - {"$"}
_FIRST_ALWAYS_IN_A_NAME: Final = "\u0100"
_ESCAPES: Final = {
    **{str(number): chr(number) for number in range(8)},
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "F": "\f",
    "r": "\r",
    **{character: character for character in "\"'/\\"},
}
_INTEGER_SUFFIXES: Final = frozenset("LSB")
_SUFFIXES: Final = frozenset("LSBFD")
_LONGEST_NUMBER: Final = 65535
# `JSONLexerBase.sbuf`, before anything has made it grow.
_BUFFER: Final = 512


class Token(IntEnum):
    """`JSONToken`."""

    NONE = 0
    ERROR = 1
    INT = 2
    FLOAT = 3
    STRING = 4
    TRUE = 6
    FALSE = 7
    NULL = 8
    NEW = 9
    LPAREN = 10
    RPAREN = 11
    LBRACE = 12
    RBRACE = 13
    LBRACKET = 14
    RBRACKET = 15
    COMMA = 16
    COLON = 17
    IDENTIFIER = 18
    EOF = 20
    SET = 21
    TREE_SET = 22
    UNDEFINED = 23
    SEMI = 24
    DOT = 25
    HEX = 26


class Match(IntEnum):
    """`JSONLexerBase.matchStat`: how a shortcut went. Above 0 it took the field."""

    NOT_MATCH_NAME = -2
    NOT_MATCH = -1
    UNKNOWN = 0
    VALUE = 3
    END = 4


_PUNCTUATION: Final = {
    "(": Token.LPAREN,
    ")": Token.RPAREN,
    "[": Token.LBRACKET,
    "]": Token.RBRACKET,
    "{": Token.LBRACE,
    "}": Token.RBRACE,
    ":": Token.COLON,
    ";": Token.SEMI,
    ".": Token.DOT,
    ",": Token.COMMA,
}
_OPENING: Final = {"{": Token.LBRACE, "[": Token.LBRACKET}
_CLOSING: Final = {",": Token.COMMA, "]": Token.RBRACKET, "}": Token.RBRACE}
_WORDS: Final = {
    "new": Token.NEW,
    "true": Token.TRUE,
    "false": Token.FALSE,
    "undefined": Token.UNDEFINED,
    "Set": Token.SET,
    "TreeSet": Token.TREE_SET,
}


def is_blank(character: str) -> bool:
    """`JSONLexerBase.isWhitespace`."""
    return character in _BLANKS


class Lexer:
    """`JSONScanner` over one text.

    Args:
        text: Code units, each a character.
        grows_buffer: Whether `putChar` copes with a string that already is longer than its buffer (since 1.2.76).
        limits_numbers: Whether a number may have 65,535 digits at most (since 1.2.76).

    Attributes:
        ch: The character in hand, `END` at the end.
        token: The last token.
        match: How the last shortcut went.
    """

    def __init__(self, text: str, *, grows_buffer: bool, limits_numbers: bool) -> None:
        self.ch = END
        # Declared wider than they are: mypy would else hold them to the last value that it has seen them compared with.
        self.token: int = Token.NONE
        self.match: int = Match.UNKNOWN
        self._text = text
        self._length = len(text)
        self._grows_buffer = grows_buffer
        self._limits_numbers = limits_numbers
        self._position = -1
        self._token_position = 0
        self._start = 0
        self._taken = 0
        self._unescaped: list[str] | None = None
        self.advance()
        if self.ch == "\ufeff":
            self.advance()

    # The character in hand --------------------------------------------------------------------------------------------

    def advance(self) -> str:
        """`next`."""
        self._position += 1
        self.ch = self._text[self._position] if self._position < self._length else END
        return self.ch

    def skip_blanks(self) -> None:
        """`skipWhitespace`: over comments too."""
        while True:
            if self.ch in _BLANKS:
                self.advance()
            elif self.ch == "/":
                self._skip_comment()
            else:
                return

    def is_blank_text(self) -> bool:
        """`isBlankInput`: whether there is nothing but blanks up to the first `END`; if so, the text counts as read."""
        end = self._text.find(END)
        if not _BLANKS.issuperset(self._text if end < 0 else self._text[:end]):
            return False
        self.token = Token.EOF
        return True

    def _at(self, index: int) -> str:
        """`charAt`."""
        if index >= self._length:
            return END
        if index < 0:
            raise RefusedError("a number has no digits")
        return self._text[index]

    def _is_end(self) -> bool:
        return self._position == self._length or (self.ch == END and self._position + 1 >= self._length)

    def _starts_with(self, prefix: str) -> bool:
        return self._text.startswith(prefix, self._position)

    def _move_to(self, position: int) -> None:
        self._position = position
        self.ch = self._at(position)

    def _skip_comment(self) -> None:
        self.advance()
        if self.ch == "/":
            while self.advance() != END:
                if self.ch == "\n":
                    self.advance()
                    return
        elif self.ch == "*":
            self.advance()
            while self.ch != END:
                if self.ch != "*":
                    self.advance()
                elif self.advance() == "/":
                    self.advance()
                    return
        else:
            raise RefusedError("a '/' begins no comment")

    # Tokens -----------------------------------------------------------------------------------------------------------

    def next_token(self) -> None:  # noqa: C901, PLR0912  # The branches of the class, in its order.
        """`nextToken()`."""
        self._taken = 0
        while True:
            self._token_position = self._position
            character = self.ch
            if character == "/":
                self._skip_comment()
            elif character in _BLANKS:
                self.advance()
            elif character == '"' or character == "'":  # noqa: PLR1714  # One test more often than two.
                self.scan_string(character)
                return
            elif character in _PUNCTUATION:
                self.advance()
                self.token = _PUNCTUATION[character]
                return
            elif character in _DIGITS or character == "-":
                self.scan_number()
                return
            elif character == "+":
                self.advance()
                self.scan_number()
                return
            elif character == "t":
                self._scan_word("true", Token.TRUE, _AFTER_TRUE)
                return
            elif character == "f":
                self._scan_word("false", Token.FALSE, _AFTER_TRUE)
                return
            elif character == "n":
                self._scan_null_or_new(after_null=_AFTER_NULL | {":"})
                return
            elif character in "TNSu":
                self._scan_identifier()
                return
            elif character == "x":
                self._scan_hex()
                return
            elif self._is_end():
                if self.token == Token.EOF:
                    raise RefusedError("the text has ended")
                self.token = Token.EOF
                return
            elif character <= "\x1f" or character == "\x7f":
                self.advance()
            else:
                self.token = Token.ERROR
                self.advance()
                return

    def next_token_of(self, expected: Token) -> None:  # noqa: C901  # The branches of the class, in its order.
        """`nextToken(int)`: a shortcut for what is likely, and `nextToken()` for anything else."""
        self._taken = 0
        while True:
            character = self.ch
            if expected == Token.IDENTIFIER:
                self._next_identifier()
                return
            if expected == Token.COMMA:
                if character in _CLOSING:
                    self.token = _CLOSING[character]
                    self.advance()
                    return
                if character == END:
                    self.token = Token.EOF
                    return
                if character == "n":
                    self._scan_null_or_new(after_null=_AFTER_NULL)
                    return
            elif expected in {Token.INT, Token.STRING}:
                if character in _DIGITS or character == '"':
                    self._token_position = self._position
                    self.scan_number() if character in _DIGITS else self.scan_string('"')
                    return
                if self._takes_opening():
                    return
            elif expected in {Token.LBRACE, Token.LBRACKET} and self._takes_opening():
                return
            if character not in _BLANKS:
                self.next_token()
                return
            self.advance()

    def next_token_after_colon(self) -> None:
        """`nextTokenWithColon`."""
        self._taken = 0
        while self.ch in _BLANKS:
            self.advance()
        if self.ch != ":":
            raise RefusedError(f"expected ':', found {self.ch!r}")
        self.advance()
        self.next_token()

    def open_first(self) -> None:
        """What the constructor of `DefaultJSONParser` does."""
        if not self._takes_opening():
            self.next_token()

    def close_bean(self) -> None:
        """What a generated reader does behind the `}` of a map: one of `,`, `}` and `]` at once, else `nextToken()`."""
        if self.ch in _CLOSING:
            self.token = _CLOSING[self.ch]
            self.advance()
        elif self.ch == END:
            self.token = Token.EOF
        else:
            self.next_token()

    def forget_taken(self) -> None:
        """`resetStringPosition`."""
        self._taken = 0

    def _takes_opening(self) -> bool:
        if self.ch not in _OPENING:
            return False
        self.token = _OPENING[self.ch]
        self.advance()
        return True

    def _scan_word(self, word: str, token: Token, after: frozenset[str]) -> None:
        for letter in word:
            if self.ch != letter:
                raise RefusedError(f"a word begins like {word!r} and is another")
            self.advance()
        if self.ch not in after:
            raise RefusedError(f"{word!r} is followed by {self.ch!r}")
        self.token = token

    def _scan_null_or_new(self, *, after_null: frozenset[str]) -> None:
        if self._at(self._position + 1) == "u":
            self._scan_word("null", Token.NULL, after_null)
        else:
            self._scan_word("new", Token.NEW, _AFTER_NULL)

    def _next_identifier(self) -> None:
        while self.ch in _BLANKS:
            self.advance()
        if self.ch in "_$" or unicodedata.category(self.ch).startswith("L"):
            self._scan_identifier()
        else:
            self.next_token()

    def _scan_identifier(self) -> None:
        self._start = self._position - 1
        self._unescaped = None
        self._taken += 1
        while unicodedata.category(self.advance()) in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"}:
            self._taken += 1
        word = self.string()
        self.token = Token.NULL if word.lower() == "null" else _WORDS.get(word, Token.IDENTIFIER)

    def _scan_hex(self) -> None:
        if self.advance() != "'":
            raise RefusedError("an 'x' begins no hexadecimal bytes")
        self._start = self._position
        if self.advance() == "'":
            self.advance()
            self.token = Token.HEX
            return
        while True:
            self._taken += 1
            character = self.advance()
            if character == "'":
                self.advance()
                self.token = Token.HEX
                return
            if character not in _DIGITS and not "A" <= character <= "F":
                raise RefusedError(f"{character!r} is no hexadecimal digit")

    def check_hex(self) -> None:
        """`bytesValue`: two digits a byte."""
        if self._taken % 2:
            raise RefusedError("half a byte is left")

    # Strings and names ------------------------------------------------------------------------------------------------

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
            self.token = _CLOSING[self.ch]
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

    def _escape(self, letter: str, *, in_name: bool = False) -> str:
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter == "x":
            pair = self.advance() + self.advance()
            if in_name and all(character <= "f" for character in pair):
                high, low = (int(character, 16) if character in _HEX else 0 for character in pair)
                return chr(high * 16 + low)
            if not _HEX.issuperset(pair):
                raise RefusedError(f"'\\x{pair}' is no character")
            return chr(int(pair, 16))
        if letter == "u":
            digits = "".join(self.advance() for _ in range(4))
            return chr(parsed_hex(digits) & 0xFFFF)
        raise RefusedError(f"'\\{letter}' is no character")

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
        while self.ch in _DIGITS:
            self.advance()

    def number_text(self) -> str:
        """`numberString`: without one suffix."""
        taken = self._taken - 1 if self._last_taken() in _SUFFIXES else self._taken
        return self._text[self._start : self._start + taken]

    def number_suffix(self) -> str:
        """The letter that ends the number, or nothing."""
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

    # Shortcuts --------------------------------------------------------------------------------------------------------

    def scan_type(self, type_name: str) -> Match:
        """`scanType`: `"@type":"` and the wanted name; what the generated reader goes by is the answer, not `match`."""
        self.match = Match.UNKNOWN
        prefix = '"@type":"'
        if not self._starts_with(prefix):
            return Match.NOT_MATCH_NAME
        place = self._position + len(prefix)
        if not self._text.startswith(type_name + '"', place):
            return Match.NOT_MATCH
        place += len(type_name) + 1
        self.ch = self._at(place)
        if self.ch == ",":
            self._move_to(place + 1)
            self.token = Token.COMMA
            return Match.VALUE
        if self.ch == "}":
            place += 1
            self.ch = self._at(place)
            if self.ch in _CLOSING:
                self.token = _CLOSING[self.ch]
                place += 1
                self.ch = self._at(place)
            elif self.ch == END:
                self.token = Token.EOF
            else:
                return Match.NOT_MATCH
            self.match = Match.END
        self._position = place
        return self.match

    def match_field(self, prefix: str) -> bool:
        """`matchField`: the name with its colon, after blanks; then the token behind it."""
        while not self._starts_with(prefix):
            if self.ch not in _BLANKS:
                return False
            self.advance()
        self._move_to(self._position + len(prefix))
        if self._takes_opening():
            return True
        if self.ch == "S" and self._text.startswith("et[", self._position + 1):
            self._move_to(self._position + 3)
            self.token = Token.SET
        else:
            self.next_token()
        return True

    def scan_int_field(self, prefix: str) -> int:  # noqa: C901  # The branches of the class, in its order.
        """`scanFieldInt`: name, number and what ends it, or nothing at all."""
        self.match = Match.UNKNOWN
        if not self._starts_with(prefix):
            self.match = Match.NOT_MATCH_NAME
            return 0
        self.match = Match.NOT_MATCH
        place = self._position + len(prefix)
        quoted = self._at(place) == '"'
        place += quoted
        negative = self._at(place) == "-"
        place += negative
        if self._at(place) not in _DIGITS:
            return 0
        value = int(self._at(place))
        place += 1
        while self._at(place) in _DIGITS:
            tenfold = wrapped(value * 10, 32)
            if tenfold < value:
                return 0
            value = wrapped(tenfold + int(self._at(place)), 32)
            place += 1
        if value < 0 or self._at(place) == ".":
            return 0
        if quoted:
            if self._at(place) != '"':
                return 0
            place += 1
        while self._at(place) in _BLANKS:
            place += 1
        if self._at(place) == ",":
            self._move_to(place + 1)
            self.token = Token.COMMA
            self.match = Match.VALUE
        elif self._at(place) == "}":
            self._close_field(place, over_blanks=True)
        return (-value if negative else value) if self.match > 0 else 0

    def scan_string_field(self, prefix: str) -> str | None:  # noqa: C901  # The branches of the class, in its order.
        """`scanFieldString`: name, string and what ends it; blanks before it stay skipped."""
        self.match = Match.UNKNOWN
        before = self._position, self.ch
        while not self._starts_with(prefix):
            if self.ch not in _BLANKS:
                self.match = Match.NOT_MATCH_NAME
                return None
            self.advance()
        self.match = Match.NOT_MATCH
        place = self._position + len(prefix)
        while self._at(place) in _BLANKS:
            place += 1
        if self._at(place) != '"':
            return None
        place += 1
        end = self._text.find('"', place)
        if end < 0:
            raise RefusedError("a string does not end")
        value = self._text[place:end]
        if "\\" in value:
            end = self._unescaped_quote(end)
            value = self._unescape(self._text[place:end])
        place = end + 1
        while self._at(place) in _BLANKS:
            place += 1
        if self._at(place) == ",":
            self._move_to(place + 1)
            self.match = Match.VALUE
        elif self._at(place) == "}":
            self._close_field(place, over_blanks=False)
            if self.match == Match.NOT_MATCH:
                self._position, self.ch = before
        return value if self.match > 0 else None

    def _close_field(self, brace: int, *, over_blanks: bool) -> None:
        """Behind the `}` that ends an object: what closes or continues the one around it."""
        place = brace + 1
        while over_blanks and self._at(place) in _BLANKS:
            place += 1
        character = self._at(place)
        if character in _CLOSING:
            self.token = _CLOSING[character]
            place += 1
        elif character == END:
            self.token = Token.EOF
        else:
            return
        self._move_to(place)
        self.match = Match.END

    def _unescaped_quote(self, quote: int) -> int:
        """The first quote from here on with an even number of backslashes before it."""
        while True:
            first = quote
            while first > 0 and self._text[first - 1] == "\\":
                first -= 1
            if (quote - first) % 2 == 0:
                return quote
            quote = self._text.find('"', quote + 1)
            if quote < 0:
                raise RefusedError("a string does not end")

    def _unescape(self, raw: str) -> str:
        """`readString`."""
        parts: list[str] = []
        place = 0
        while (backslash := raw.find("\\", place)) >= 0:
            parts.append(raw[place:backslash])
            letter = raw[backslash + 1 : backslash + 2]
            place = backslash + 2
            if letter in _ESCAPES:
                parts.append(_ESCAPES[letter])
            elif letter == "x" and len(raw) >= place + 2 and max(raw[place : place + 2]) <= "f":
                high, low = (int(digit, 16) if digit in _HEX else 0 for digit in raw[place : place + 2])
                parts.append(chr(high * 16 + low))
                place += 2
            elif letter == "u" and len(raw) >= place + 4:
                parts.append(chr(parsed_hex(raw[place : place + 4]) & 0xFFFF))
                place += 4
            else:
                raise RefusedError(f"'\\{letter}' is no character")
        parts.append(raw[place:])
        return "".join(parts)


def parsed_hex(digits: str) -> int:
    """Four characters as `Integer.parseInt` takes them: with a sign if there is one, in digits of any script."""
    try:
        return parse_integer(digits, INT_MIN, INT_MAX, 16)
    except ValueError:
        raise RefusedError(f"'\\u{digits}' is no character") from None
