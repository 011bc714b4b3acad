"""The character that a lexer of fastjson 1 has in hand: `JSONScanner.next` and `charAt`, and what they move over.

Belongs here: single characters, blanks and comments. Does not belong here: strings, numbers (`literals`) and
tokens (`tokenizer`).
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

END: Final = "\x1a"
"""What the lexer has in hand at the end of the text. The same character inside a text is taken for the end here and there."""

# `JSONLexerBase.isWhitespace`.
BLANKS: Final = frozenset(" \n\r\t\f\b")
DIGITS: Final = frozenset("0123456789")


class CharacterCursor:
    """A text, and the character in hand.

    Args:
        text: Code units, each a character.

    Attributes:
        ch: The character in hand, `END` at the end.
    """

    def __init__(self, text: str) -> None:
        self.ch = END
        self._text = text
        self._length = len(text)
        self._position = -1
        self.advance()
        if self.ch == "\ufeff":
            self.advance()

    def advance(self) -> str:
        """`next`."""
        self._position += 1
        self.ch = self._text[self._position] if self._position < self._length else END
        return self.ch

    def skip_blanks(self) -> None:
        """`skipWhitespace`: over comments too."""
        while True:
            if self.ch in BLANKS:
                self.advance()
            elif self.ch == "/":
                self._skip_comment()
            else:
                return

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
