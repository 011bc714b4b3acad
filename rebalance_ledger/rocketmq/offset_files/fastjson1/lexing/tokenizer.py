"""The tokens of a text of fastjson 1: `nextToken` of `JSONLexerBase`, with the features that are on by default.

Belongs here: which token stands next. Does not belong here: strings, names and numbers (`literals`), and the
shortcuts that go past tokens (`lexer`).
"""

from __future__ import annotations

import unicodedata
from typing import Final

from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.characters import BLANKS, DIGITS, END
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.literals import LiteralScanner
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import (
    CLOSING,
    OPENING,
    PUNCTUATION,
    WORDS,
    Token,
)
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

_AFTER_TRUE: Final = frozenset(" ,}]\n\r\t\x1a\f\b:/")
_AFTER_NULL: Final = frozenset(" ,}]\n\r\t\x1a\f\b")


class Tokenizer(LiteralScanner):
    """The tokens of one text."""

    def next_token(self) -> None:  # noqa: C901, PLR0912  # The branches of the class, in its order.
        """`nextToken()`."""
        self._taken = 0
        while True:
            self._token_position = self._position
            character = self.ch
            if character == "/":
                self._skip_comment()
            elif character in BLANKS:
                self.advance()
            elif character == '"' or character == "'":  # noqa: PLR1714  # One test more often than two.
                self.scan_string(character)
                return
            elif character in PUNCTUATION:
                self.advance()
                self.token = PUNCTUATION[character]
                return
            elif character in DIGITS or character == "-":
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
                if character in CLOSING:
                    self.token = CLOSING[character]
                    self.advance()
                    return
                if character == END:
                    self.token = Token.EOF
                    return
                if character == "n":
                    self._scan_null_or_new(after_null=_AFTER_NULL)
                    return
            elif expected in {Token.INT, Token.STRING}:
                if character in DIGITS or character == '"':
                    self._token_position = self._position
                    self.scan_number() if character in DIGITS else self.scan_string('"')
                    return
                if self._takes_opening():
                    return
            elif expected in {Token.LBRACE, Token.LBRACKET} and self._takes_opening():
                return
            if character not in BLANKS:
                self.next_token()
                return
            self.advance()

    def next_token_after_colon(self) -> None:
        """`nextTokenWithColon`."""
        self._taken = 0
        while self.ch in BLANKS:
            self.advance()
        if self.ch != ":":
            raise RefusedError(f"expected ':', found {self.ch!r}")
        self.advance()
        self.next_token()

    def open_first(self) -> None:
        """Do what the constructor of `DefaultJSONParser` does."""
        if not self._takes_opening():
            self.next_token()

    def close_bean(self) -> None:
        """Do what a generated reader does behind the `}` of a map: take one of `,`, `}` and `]` at once, else `nextToken()`."""
        if self.ch in CLOSING:
            self.token = CLOSING[self.ch]
            self.advance()
        elif self.ch == END:
            self.token = Token.EOF
        else:
            self.next_token()

    def is_blank_text(self) -> bool:
        """`isBlankInput`: whether there is nothing but blanks up to the first `END`; if so, the text counts as read."""
        end = self._text.find(END)
        if not BLANKS.issuperset(self._text if end < 0 else self._text[:end]):
            return False
        self.token = Token.EOF
        return True

    def _takes_opening(self) -> bool:
        if self.ch not in OPENING:
            return False
        self.token = OPENING[self.ch]
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
        while self.ch in BLANKS:
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
        self.token = Token.NULL if word.lower() == "null" else WORDS.get(word, Token.IDENTIFIER)

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
            if character not in DIGITS and not "A" <= character <= "F":
                raise RefusedError(f"{character!r} is no hexadecimal digit")

    def check_hex(self) -> None:
        """`bytesValue`: two digits a byte."""
        if self._taken % 2:
            raise RefusedError("half a byte is left")
