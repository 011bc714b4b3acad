r"""An offset file as fastjson 1 reads it: `JSON.parseObject(text, OffsetSerializeWrapper.class)`.

This follows the classes step by step, because what they accept is decided by their steps:

| Java | here |
|---|---|
| `JSON.parseObject`, `LocalFileOffsetStore.load` | this module |
| the generated readers of `OffsetSerializeWrapper` and `MessageQueue` | `deserializers.wrapper`, `deserializers.message_queue` |
| `JavaBeanDeserializer` behind them, for everything else than the expected | `deserializers.bean` |
| `MapDeserializer`, for the table | `deserializers.table` |
| `LongCodec`, `IntegerCodec`, `StringCodec`, and `TypeUtils` | `deserializers.codecs`, `deserializers.casts` |
| `DefaultJSONParser`, for what is not wanted | `parsing.value_parser`, `parsing.object_parser` |
| `ParseContext`, `ResolveTask` | `parsing.contexts` |
| `ParserConfig` | `dialect` |
| `JSONScanner`, `JSONLexerBase` | `lexing.lexer` |

| RocketMQ | fastjson |
|---|---|
| 4.7.1 | 1.2.69 |
| 4.9.3 | 1.2.76 |
| 4.9.7 | 1.2.69_noneautotype |
| 5.3.3 | 1.2.83 |

Belongs here: text to table. Does not belong here: characters (`lexing.lexer`), bytes and files.
"""

from __future__ import annotations

from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.wrapper import WrapperDeserializer
from rebalance_ledger.rocketmq.offset_files.fastjson1.dialect import (
    FASTJSON_1_2_69,
    FASTJSON_1_2_69_NONEAUTOTYPE,
    FASTJSON_1_2_76,
    FASTJSON_1_2_83,
    Dialect,
)
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.object_parser import Parser
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import AnyValue, Wrapper
from rebalance_ledger.rocketmq.offset_files.java_values import code_units
from rebalance_ledger.rocketmq.offset_files.outcome import (
    Doubt,
    NoTable,
    Offsets,
    Outcome,
    Refused,
    RefusedError,
    Undecided,
    UndecidedError,
)

__all__ = [
    "FASTJSON_1_2_69",
    "FASTJSON_1_2_69_NONEAUTOTYPE",
    "FASTJSON_1_2_76",
    "FASTJSON_1_2_83",
    "Dialect",
    "read",
]


def read(text: str, dialect: Dialect) -> Outcome:
    """The result of reading a file's text.

    Args:
        text: Not empty.
        dialect: The release of fastjson.
    """
    try:
        return _read(code_units(text), dialect)
    except RefusedError as error:
        return Refused(str(error))
    except UndecidedError as error:
        return Undecided(error.doubt)


def _read(text: str, dialect: Dialect) -> Outcome:
    """`JSON.parseObject`, then what `LocalFileOffsetStore.load` does with the result."""
    parser = Parser(text, dialect)
    wrapper: AnyValue = None
    if parser.lexer.token == Token.NULL:
        parser.lexer.next_token()
    else:
        wrapper = WrapperDeserializer(parser).read(None)
    parser.contexts.resolve()
    if parser.lexer.token != Token.EOF:
        raise RefusedError("something follows the end")
    if wrapper is None:
        return NoTable(has_object=False)
    if not isinstance(wrapper, Wrapper):
        raise RefusedError("the text is of another class")
    table = wrapper.offsetTable
    if table is None:
        return NoTable(has_object=True)
    if table.is_foreign:
        raise UndecidedError(Doubt.REFERENCE)
    return Offsets(table.offsets)
