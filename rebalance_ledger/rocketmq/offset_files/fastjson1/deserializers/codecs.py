"""Fields and offsets as fastjson 1 reads them: `LongCodec`, `IntegerCodec` and `StringCodec`.

Belongs here: the value at a parser's token as a long, an int or a text. Does not belong here: what another value is cast
to (`casts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.casts import (
    cast_to_int,
    cast_to_long,
    int_of,
    long_of,
)
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import Container, Number, Value
from rebalance_ledger.rocketmq.offset_files.java_values import BigDecimal
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, UndecidedError

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.value_parser import ValueParser


def read_long(parser: ValueParser) -> int | None:
    """`LongCodec.deserialze`."""
    lexer = parser.lexer
    if lexer.token == Token.INT:
        value = lexer.long_value()
        lexer.next_token_of(Token.COMMA)
        return value
    if lexer.token == Token.FLOAT:
        value = long_of(lexer.decimal_value())
        lexer.next_token_of(Token.COMMA)
        return value
    return cast_to_long(_read_other(parser), parser.dialect)


def read_int(parser: ValueParser) -> int | None:
    """`IntegerCodec.deserialze`."""
    lexer = parser.lexer
    if lexer.token == Token.NULL:
        lexer.next_token_of(Token.COMMA)
        return None
    if lexer.token == Token.INT:
        value = lexer.int_value()
        lexer.next_token_of(Token.COMMA)
        return value
    if lexer.token == Token.FLOAT:
        value = int_of(lexer.decimal_value())
        lexer.next_token_of(Token.COMMA)
        return value
    return cast_to_int(_read_other(parser))


def read_text(parser: ValueParser) -> str | None:
    """`StringCodec.deserialze`."""
    lexer = parser.lexer
    if lexer.token == Token.STRING:
        text = lexer.string()
        lexer.next_token_of(Token.COMMA)
        return text
    if lexer.token == Token.INT:
        text = lexer.number_text()
        lexer.next_token_of(Token.COMMA)
        return text
    value = parser.read_value(None)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Number) and isinstance(value.value, BigDecimal):
        return str(value.value)
    raise UndecidedError(Doubt.OBJECT)


def _read_other(parser: ValueParser) -> Value:
    if parser.lexer.token != Token.LBRACE:
        return parser.read_value(None)
    container = Container("object")
    parser.read_object(container, None)
    return container
