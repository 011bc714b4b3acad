"""The tokens of fastjson 1: `JSONToken`, and the results of shortcuts.

Belongs here: kinds of tokens, and the characters that are tokens. Does not belong here: how a text is cut into them
(`lexer`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


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


PUNCTUATION: Final = {
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
OPENING: Final = {"{": Token.LBRACE, "[": Token.LBRACKET}
CLOSING: Final = {",": Token.COMMA, "]": Token.RBRACKET, "}": Token.RBRACE}
WORDS: Final = {
    "new": Token.NEW,
    "true": Token.TRUE,
    "false": Token.FALSE,
    "undefined": Token.UNDEFINED,
    "Set": Token.SET,
    "TreeSet": Token.TREE_SET,
}
