"""An offset file as fastjson 1 reads it: `JSON.parseObject(text, OffsetSerializeWrapper.class)`.

Belongs here: the reading of a whole text, and what `LocalFileOffsetStore.load` does with the result. Does not belong here:
the objects in it (`deserializers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.wrapper import WrapperDeserializer
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

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.fastjson1.dialect import Dialect


def read(text: str, dialect: Dialect) -> Outcome:
    """Return the result of reading a file's text.

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
