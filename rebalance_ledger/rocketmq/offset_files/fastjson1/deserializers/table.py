"""The table of an offset file as fastjson 1 reads it: `MapDeserializer`.

Belongs here: queues and their offsets. Does not belong here: the fields of a queue (`message_queue`), and the wrapper
around the table (`wrapper`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.codecs import read_long
from rebalance_ledger.rocketmq.offset_files.fastjson1.deserializers.message_queue import QueueDeserializer
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.object_parser import Parser
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import AnyValue, Queue, Table
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.contexts import Context
    from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.value_parser import ValueParser


class TableDeserializer:
    """`MapDeserializer` on one parser, for queues and their offsets."""

    def __init__(self, parser: ValueParser) -> None:
        self._parser = parser
        self._lexer = parser.lexer
        self._contexts = parser.contexts

    def read(self, name: str) -> Table | None:
        """`MapDeserializer.deserialze`."""
        contexts = self._contexts
        if self._lexer.token == Token.NULL:
            self._lexer.next_token_of(Token.COMMA)
            return None
        table = Table()
        context = contexts.current
        contexts.enter(context, table, name)
        try:
            value = self._read_entries(table)
        finally:
            contexts.current = context
        if value is not None and not isinstance(value, Table):
            raise RefusedError("a reference leads to another class")
        return value

    def _read_entries(self, table: Table) -> AnyValue:
        """`MapDeserializer.parseMap`."""
        lexer, contexts = self._lexer, self._contexts
        if lexer.token not in {Token.LBRACE, Token.COMMA}:
            raise RefusedError("the table is no object")
        lexer.next_token_of(Token.LBRACE)
        context = contexts.current
        while lexer.token != Token.RBRACE:
            if lexer.token == Token.STRING and lexer.is_reference():
                return self._read_reference(context)
            if not table.offsets and lexer.token == Token.STRING and lexer.string() == "@type":
                lexer.next_token_after_colon()
                lexer.next_token_of(Token.COMMA)
                if lexer.token == Token.RBRACE:
                    lexer.next_token()
                    return table
                lexer.next_token_of(Token.LBRACE)
            key = self._read_key()
            if lexer.token != Token.COLON:
                raise RefusedError("a queue is not followed by ':'")
            lexer.next_token_of(Token.INT)
            offset = read_long(self._parser)
            contexts.give_reference_to(table)
            if key is None or offset is None:
                raise RefusedError("a queue or an offset is null")
            if isinstance(key, Queue):
                table.offsets[key.key()] = offset
            else:
                table.is_foreign = True
            if lexer.token == Token.COMMA:
                lexer.next_token_of(Token.LBRACE)
        lexer.next_token_of(Token.COMMA)
        return table

    def _read_reference(self, context: Context | None) -> AnyValue:
        lexer = self._lexer
        target: AnyValue = None
        lexer.next_token_after_colon()
        if lexer.token != Token.STRING or context is None:
            raise RefusedError("a reference is no string")
        path = lexer.string()
        if path == "..":
            target = None if context.parent is None else context.parent.object
        elif path == "$":
            target = context.root().object
        else:
            self._contexts.await_reference(path)
        lexer.next_token_of(Token.RBRACE)
        if lexer.token != Token.RBRACE:
            raise RefusedError("something follows a reference")
        lexer.next_token_of(Token.COMMA)
        return target

    def _read_key(self) -> AnyValue:
        parser = self._parser
        if self._lexer.token == Token.STRING:
            text = self._lexer.string()
            self._lexer.next_token()
            # What follows the queue inside the string is not looked at.
            parser = Parser(text, parser.dialect, parser.depth + 1)
        return QueueDeserializer(parser).read(None)
