"""Ignored values, as fastjson 1 reads them: `parse` and `parseArray` of `DefaultJSONParser`.

Belongs here: values of any kind, arrays and sets. Does not belong here: objects (`object_parser`), and the
fields and offsets that are wanted (`deserializers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.lexer import Lexer
from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.contexts import Contexts
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import Container, Number, Special, Value
from rebalance_ledger.rocketmq.offset_files.java_values import wrapped
from rebalance_ledger.rocketmq.offset_files.outcome import Doubt, RefusedError, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebalance_ledger.rocketmq.offset_files.fastjson1.dialect import Dialect

MAX_DEPTH: Final = 100
"""Maximum nesting of ignored objects and arrays that is followed; RocketMQ's own files nest 3."""

_DEEPEST_ARRAY: Final = 512
_ARRAY_KINDS: Final[dict[int, str]] = {Token.LBRACKET: "array", Token.SET: "set", Token.TREE_SET: "tree_set"}


class ValueParser(ABC):
    """`DefaultJSONParser` over one text, for all but objects.

    Args:
        text: Code units, each a character.
        dialect: The release of fastjson.
        depth: How deep the text is nested in others.

    Attributes:
        dialect: See there.
        depth: How deep the parser is.
        lexer: The text's tokens.
        contexts: Where the parser is, and the references that it has met.
    """

    def __init__(self, text: str, dialect: Dialect, depth: int = 0) -> None:
        self.dialect = dialect
        self.depth = depth
        self.lexer = Lexer(text, grows_buffer=dialect.is_since_76, limits_numbers=dialect.is_since_76)
        self.contexts = Contexts()
        self.lexer.open_first()

    @abstractmethod
    def read_object(self, container: Container, name: str | int | None) -> Value:
        """`parseObject(Map, Object)`."""

    def read_value(self, name: str | int | None) -> Value:  # noqa: C901  # The branches of the class.
        """`parse(Object)`."""
        lexer = self.lexer
        token = lexer.token
        if token == Token.LBRACE:
            return self.read_object(Container("object"), name)
        if token in {Token.LBRACKET, Token.SET, Token.TREE_SET}:
            if token != Token.LBRACKET:
                lexer.next_token()
            container = Container(_ARRAY_KINDS[token])
            self.read_array(container, name)
            return container
        if token == Token.STRING:
            text = lexer.string()
            lexer.next_token_of(Token.COMMA)
            return text
        if token in {Token.INT, Token.FLOAT}:
            number = self.number()
            lexer.next_token()
            return number
        if token in {Token.TRUE, Token.FALSE, Token.NULL, Token.UNDEFINED}:
            lexer.next_token()
            return None if token in {Token.NULL, Token.UNDEFINED} else token == Token.TRUE
        if token == Token.NEW:
            return self._read_new_date()
        if token == Token.EOF and lexer.is_blank_text():
            return None
        if token == Token.HEX:
            lexer.check_hex()
            lexer.next_token()
            return Special("bytes")
        if token == Token.IDENTIFIER and lexer.string() == "NaN":
            lexer.next_token()
            return None
        raise RefusedError("a value is expected")

    def number(self) -> Number:
        """Return the number at the token: `integerValue` and `decimalValue`."""
        lexer = self.lexer
        if lexer.token == Token.INT:
            value = lexer.integer_value()
            kind = next(
                (kind for kind, bits in (("int", 32), ("long", 64)) if wrapped(value, bits) == value), "big"
            )
            suffix = lexer.number_suffix()
            return Number(
                {"L": "long", "S": "short", "B": "byte"}.get(suffix, kind) if kind == "int" else kind, value
            )
        number = lexer.decimal_value()
        return Number("float", None) if lexer.number_suffix() in {"F", "D"} else Number("decimal", number)

    def _read_new_date(self) -> Special:
        lexer = self.lexer
        lexer.next_token_of(Token.IDENTIFIER)
        for token, following in (
            (Token.IDENTIFIER, Token.LPAREN),
            (Token.LPAREN, None),
            (Token.INT, None),
            (Token.RPAREN, None),
        ):
            if lexer.token != token:
                raise RefusedError("'new' is followed by something else than a date")
            if token == Token.INT:
                lexer.integer_value()
            if following is None:
                lexer.next_token()
            else:
                lexer.next_token_of(following)
        return Special("date")

    @contextmanager
    def one_level_deeper(self) -> Iterator[None]:
        """Count a level of nesting while the block runs."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UndecidedError(Doubt.NESTING)
        try:
            yield
        finally:
            self.depth -= 1

    def read_array(self, container: Container, name: str | int | None) -> None:
        """`parseArray(Collection, Object)`."""
        lexer, contexts = self.lexer, self.contexts
        if lexer.token in {Token.SET, Token.TREE_SET}:
            lexer.next_token()
        if lexer.token != Token.LBRACKET:
            raise RefusedError("an array does not begin with '['")
        lexer.next_token_of(Token.STRING)
        context = contexts.current
        if context is not None and context.level > _DEEPEST_ARRAY:
            raise RefusedError("an array is nested too deep")
        contexts.enter(context, container, name)
        with self.one_level_deeper():
            try:
                self._read_elements(container)
            finally:
                contexts.current = context

    def _read_elements(self, container: Container) -> None:
        lexer = self.lexer
        index = 0
        while True:
            while lexer.token == Token.COMMA:
                lexer.next_token()
            if lexer.token == Token.RBRACKET:
                lexer.next_token_of(Token.COMMA)
                return
            if lexer.token == Token.EOF:
                raise RefusedError("an array does not end")
            self._add_element(container, self._read_element(index))
            self.contexts.give_reference_to(None)
            if lexer.token == Token.COMMA:
                lexer.next_token_of(Token.STRING)
            index += 1

    def _read_element(self, index: int) -> Value:
        lexer = self.lexer
        token = lexer.token
        if token in {Token.INT, Token.FLOAT}:
            number = self.number()
            lexer.next_token_of(Token.COMMA)
            return number
        if token in {Token.TRUE, Token.FALSE}:
            lexer.next_token_of(Token.COMMA)
            return token == Token.TRUE
        if token in {Token.NULL, Token.UNDEFINED}:
            lexer.next_token_of(Token.STRING)
            return None
        if token == Token.LBRACE:
            return self.read_object(Container("object"), index)
        if token == Token.LBRACKET:
            container = Container("array")
            self.read_array(container, index)
            return container
        return self.read_value(None)

    def _add_element(self, container: Container, value: Value) -> None:
        """Add an element: a `HashSet` asks it for its hash, a `TreeSet` wants elements that compare with one another."""
        if container.kind == "set":
            self.contexts.check_hash(value)
        if container.kind == "tree_set":
            kind = _comparable_kind(value)
            if kind is None or (container.count and container.entries["kind"] != kind):
                raise RefusedError("the elements of a set do not compare")
            container.entries["kind"] = kind
        if isinstance(value, (Container, Special)):
            container.elements.append(value)
        container.count += 1


def _comparable_kind(value: Value) -> str | None:
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, (str, bool)):
        return type(value).__name__
    return value.kind if isinstance(value, Special) and value.kind == "date" else None
