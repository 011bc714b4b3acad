"""The lexer of fastjson 1: the shortcuts of `JSONLexerBase` and `JSONScanner`, by which generated readers take a field at once.

Belongs here: these shortcuts. Does not belong here: the next token of any kind (`tokenizer`).
"""

from __future__ import annotations

from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.characters import BLANKS, DIGITS, END
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.escapes import unescape
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokenizer import Tokenizer
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import CLOSING, Match, Token
from rebalance_ledger.rocketmq.offset_files.java_values import wrapped
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError


class Lexer(Tokenizer):
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
        super().__init__(text, grows_buffer=grows_buffer, limits_numbers=limits_numbers)
        # Declared wider than it is, like the token.
        self.match: int = Match.UNKNOWN

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
            if self.ch in CLOSING:
                self.token = CLOSING[self.ch]
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
            if self.ch not in BLANKS:
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
        if self._at(place) not in DIGITS:
            return 0
        value = int(self._at(place))
        place += 1
        while self._at(place) in DIGITS:
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
        while self._at(place) in BLANKS:
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
            if self.ch not in BLANKS:
                self.match = Match.NOT_MATCH_NAME
                return None
            self.advance()
        self.match = Match.NOT_MATCH
        place = self._position + len(prefix)
        while self._at(place) in BLANKS:
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
            value = unescape(self._text[place:end])
        place = end + 1
        while self._at(place) in BLANKS:
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
        """Read, behind the `}` that ends an object, what closes or continues the one around it."""
        place = brace + 1
        while over_blanks and self._at(place) in BLANKS:
            place += 1
        character = self._at(place)
        if character in CLOSING:
            self.token = CLOSING[character]
            place += 1
        elif character == END:
            self.token = Token.EOF
        else:
            return
        self._move_to(place)
        self.match = Match.END

    def _unescaped_quote(self, quote: int) -> int:
        """Find the first quote from here on with an even number of backslashes before it."""
        while True:
            first = quote
            while first > 0 and self._text[first - 1] == "\\":
                first -= 1
            if (quote - first) % 2 == 0:
                return quote
            quote = self._text.find('"', quote + 1)
            if quote < 0:
                raise RefusedError("a string does not end")
