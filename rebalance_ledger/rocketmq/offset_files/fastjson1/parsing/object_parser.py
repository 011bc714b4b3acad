"""Ignored objects, as fastjson 1 reads them: `parseObject(Map, Object)` of `DefaultJSONParser`.

Belongs here: names, members, type names and references of such an object. Does not belong here: other values
(`value_parser`), and objects of a class (`deserializers.bean`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.characters import END
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.value_parser import ValueParser
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import AnyValue, Container, Special, Value
from rebalance_ledger.rocketmq.offset_files.java_values import joined
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.fastjson1.dialect import Dialect
    from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.contexts import Context

_MOST_OBJECT_KEYS: Final = 513
_VALUE_STARTS: Final = frozenset('"-0123456789')
_PLAIN_PATH: Final = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,9}\])+")


@dataclass(eq=False, slots=True)
class _ObjectState:
    """An ignored object that is being read."""

    container: Container
    name: str | int | None
    context: Context | None
    has_entered: bool = False


class Parser(ValueParser):
    """`DefaultJSONParser` over one text."""

    def __init__(self, text: str, dialect: Dialect, depth: int = 0) -> None:
        self._object_key_count = 0
        super().__init__(text, dialect, depth)

    def read_object(self, container: Container, name: str | int | None) -> Value:
        """`parseObject(Map, Object)`."""
        lexer = self.lexer
        token = lexer.token
        if token == Token.NULL:
            lexer.next_token()
            return None
        if token == Token.RBRACE or (token == Token.STRING and not lexer.string()):
            lexer.next_token()
            return container
        if token not in {Token.LBRACE, Token.COMMA}:
            raise RefusedError("an object does not begin with '{'")
        with self.one_level_deeper():
            state = _ObjectState(container, name, self.contexts.current)
            try:
                return self._read_members(state)
            finally:
                self.contexts.current = state.context

    def _read_members(self, state: _ObjectState) -> Value:
        lexer = self.lexer
        container = state.container
        while True:
            lexer.skip_blanks()
            while lexer.ch == ",":
                lexer.advance()
                lexer.skip_blanks()
            if lexer.ch == "}":
                lexer.advance()
                lexer.next_token()
                self._enter_once(state)
                return container
            key = self._read_member_name()
            lexer.forget_taken()
            if key == "@type":
                self._read_member_type(container)
                continue
            if key == "$ref" and state.context is not None and not container.entries:
                lexer.next_token_of(Token.STRING)
                if lexer.token != Token.STRING:
                    raise RefusedError("a reference is no string")
                path = lexer.string()
                lexer.next_token_of(Token.RBRACE)
                if lexer.token == Token.COMMA:
                    container.entries[key] = path
                    continue
                return self._finish_reference(path, state.context)
            self._enter_once(state)
            if self._read_member(state, key):
                return container

    def _enter_once(self, state: _ObjectState) -> None:
        if state.has_entered:
            return
        contexts = self.contexts
        if contexts.current is not None and contexts.current.object is state.container:
            state.context = contexts.current
            return
        context = contexts.enter(contexts.current, state.container, state.name)
        state.context = state.context or context
        state.has_entered = True

    # Names ------------------------------------------------------------------------------------------------------------

    def _read_member_name(self) -> object:
        """Read a name of any kind, and what follows it up to the value."""
        lexer = self.lexer
        character = lexer.ch
        key: object
        if character in {"{", "["}:
            self._object_key_count += 1
            if self._object_key_count > _MOST_OBJECT_KEYS:
                raise RefusedError("too many keys are objects")
            lexer.next_token()
            key = self.read_value(None)
            if isinstance(key, Special):
                self.contexts.has_reference_as_name = True
                key = key.target
            return key if isinstance(key, Container) else object()
        if character in {'"', "'"}:
            key = lexer.scan_quoted_name(character)
            lexer.skip_blanks()
        elif character == END:
            raise RefusedError("an object does not end")
        elif character == "-" or "0" <= character <= "9":
            lexer.forget_taken()
            lexer.scan_number()
            key = str(self.number().value)
        else:
            key = lexer.scan_bare_name()
            lexer.skip_blanks()
        if lexer.ch != ":":
            raise RefusedError(f"expected ':', found {lexer.ch!r}")
        lexer.advance()
        lexer.skip_blanks()
        return "null" if key is None else key

    # References and type names ----------------------------------------------------------------------------------------

    def _read_member_type(self, container: Container) -> None:
        """Read a type name in an ignored object, where it is an ordinary value unless it is an error."""
        type_name = joined(self.lexer.scan_quoted_name('"'))
        self.dialect.check_member_type(type_name)
        container.entries["@type"] = type_name

    def _finish_reference(self, path: str, context: Context) -> Special:
        lexer = self.lexer
        target: AnyValue = None
        if path == "@":
            target = self._surrounding()
        elif path == "..":
            target = context.object
        elif path == "$":
            target = context.root().object
        else:
            if not path and self.dialect.is_since_76:
                raise RefusedError("a reference is empty")
            if not _PLAIN_PATH.fullmatch(path):
                raise UndecidedError(Doubt.REFERENCE)
            self.contexts.await_reference(path)
        if lexer.token != Token.RBRACE:
            raise RefusedError("something follows a reference")
        lexer.next_token_of(Token.COMMA)
        if not isinstance(target, Container):
            return Special("reference")
        self.contexts.has_inner_reference = True
        return Special("reference", target)

    def _surrounding(self) -> AnyValue:
        """Return what `@` stands for: the array or set that is being read, or what is around the object."""
        context = self.contexts.current
        if context is None:
            return None
        if isinstance(context.object, Container) and context.object.kind != "object":
            return context.object
        return None if context.parent is None else context.parent.object

    # Members ----------------------------------------------------------------------------------------------------------

    def _read_member(self, state: _ObjectState, key: object) -> bool:
        """Read a value and what follows it; return True if that ends the object."""
        lexer, contexts = self.lexer, self.contexts
        container = state.container
        character = lexer.ch
        if character in _VALUE_STARTS:
            if character == '"':
                lexer.scan_string(character)
                self._put(container, key, lexer.string())
            else:
                lexer.scan_number()
                self._put(container, key, self.number())
            lexer.skip_blanks()
            if lexer.ch == ",":
                lexer.advance()
                return False
            if lexer.ch != "}":
                raise RefusedError(f"a value is followed by {lexer.ch!r}")
            lexer.advance()
            lexer.next_token()
            contexts.enter(contexts.current, container.entries[key], _context_name(key))
            return True
        lexer.next_token()
        if character == "[":
            array = Container("array")
            if state.name is None:
                contexts.current = state.context
            self.read_array(array, _context_name(key))
            self._put(container, key, array)
        elif character == "{":
            return self._read_inner_object(state, key)
        else:
            self._put(container, key, self.read_value(None))
        return self._ends_object()

    def _read_inner_object(self, state: _ObjectState, key: object) -> bool:
        contexts = self.contexts
        is_in_array = isinstance(state.name, int)
        inner = Container("object")
        context = None
        if not is_in_array:
            parent = contexts.current if self.dialect.is_since_76 else state.context
            context = contexts.enter(parent, inner, _context_name(key))
        value = self.read_object(inner, _context_name(key))
        if context is not None and value is not inner:
            context.object = state.container
        contexts.give_reference_to(None)
        self._put(state.container, key, value)
        if is_in_array:
            contexts.enter(contexts.current, value, _context_name(key))
        is_end = self._ends_object()
        if is_end or not is_in_array:
            contexts.current = state.context
        else:
            contexts.leave()
        return is_end

    def _put(self, container: Container, key: object, value: Value) -> None:
        """`Map.put`, which asks the key for its hash before the entry is there."""
        self.contexts.check_hash(key)
        container.entries[key] = value

    def _ends_object(self) -> bool:
        if self.lexer.token == Token.RBRACE:
            self.lexer.next_token()
            return True
        if self.lexer.token == Token.COMMA:
            return False
        raise RefusedError("a value is followed by something else than ',' or '}'")


def _context_name(key: object) -> str | None:
    return key if isinstance(key, str) else "object"
