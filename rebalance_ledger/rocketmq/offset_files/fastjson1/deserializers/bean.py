"""Objects of a class, as fastjson 1 reads them: the readers that it generates, and `JavaBeanDeserializer` behind them.

A generated reader holds the fields in alphabetical order and takes them one after the other; `JavaBeanDeserializer` reads
everything else than the expected.

Belongs here: what is the same for `OffsetSerializeWrapper` (`wrapper`) and `MessageQueue` (`message_queue`).
Does not belong here: their fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from rebalance_ledger.rocketmq.offset_files.fastjson1.lexing.tokens import Match, Token
from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.contexts import remove_backslashes
from rebalance_ledger.rocketmq.offset_files.fastjson1.values import AnyValue, Bean
from rebalance_ledger.rocketmq.offset_files.java_values import joined
from rebalance_ledger.rocketmq.offset_files.outcome import RefusedError

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.contexts import Context
    from rebalance_ledger.rocketmq.offset_files.fastjson1.parsing.value_parser import ValueParser

BeanT = TypeVar("BeanT", bound=Bean)


class FieldMatch(NamedTuple):
    """A field that a shortcut has matched; `is_read` if it has its value too."""

    name: str
    value: str | int | None
    is_read: bool


class BeanDeserializer(ABC, Generic[BeanT]):
    """The reader of one class on one parser.

    Attributes:
        type_name: The class's name.
        bean_class: What stands for the class here.
        fields: The class's fields, in the order in which the generated reader looks for them.
    """

    type_name: ClassVar[str]
    bean_class: type[BeanT]
    fields: ClassVar[tuple[str, ...]]

    def __init__(self, parser: ValueParser) -> None:
        self._parser = parser
        self._lexer = parser.lexer
        self._contexts = parser.contexts

    @abstractmethod
    def _read_in_order(self, bean: BeanT, read_fields: set[str]) -> bool:
        """Read the fields as the generated reader does; return whether they and the end of the object were there."""

    @abstractmethod
    def _match_field(self, name: str) -> FieldMatch | None:
        """Try the shortcuts for the fields in their order; return None if the next field is another, or not in the usual form."""

    @abstractmethod
    def _has_other_name(self) -> bool:
        """Return whether the last shortcut matched nothing because of the next field's name."""

    @abstractmethod
    def _read_field(self, bean: BeanT, name: str) -> None:
        """`FieldDeserializer.parseField` of one of the fields."""

    def read(self, name: str | None) -> AnyValue:
        """`deserialze` of a generated reader: it does not look at the token that it begins with."""
        lexer, contexts = self._lexer, self._contexts
        if lexer.scan_type(self.type_name) == Match.NOT_MATCH:
            return self._read_slowly(name, None, set())
        context = contexts.current
        bean = self.bean_class()
        contexts.enter(context, bean, name)
        if lexer.match == Match.END:
            contexts.current = context
            return bean
        read_fields: set[str] = set()
        if self._read_in_order(bean, read_fields):
            contexts.current = context
            return bean
        rest = self._read_slowly(name, bean, read_fields)
        if rest is not None and not isinstance(rest, self.bean_class):
            raise RefusedError("a reference or a type name leads to another class")
        return rest

    def _read_slowly(self, name: str | None, bean: BeanT | None, read_fields: set[str]) -> AnyValue:
        """`JavaBeanDeserializer.deserialze`, from the start or (with a bean) as `parseRest`."""
        lexer, contexts = self._lexer, self._contexts
        token = lexer.token
        if token == Token.NULL:
            lexer.next_token_of(Token.COMMA)
            return None
        context = contexts.current
        if bean is not None and context is not None:
            context = context.parent
        try:
            if token == Token.RBRACE:
                lexer.next_token_of(Token.COMMA)
                return self.bean_class() if bean is None else bean
            if token not in {Token.LBRACE, Token.COMMA}:
                self._read_no_bean()
                return None
            return self._read_fields(name, bean, context, read_fields)
        finally:
            contexts.current = context

    def _read_no_bean(self) -> None:
        """Read as null what does not begin like an object, if it is blank, `""` or `[]`."""
        lexer = self._lexer
        if lexer.is_blank_text():
            return
        if lexer.token == Token.STRING and not lexer.string():
            lexer.next_token()
            return
        if lexer.token == Token.LBRACKET and lexer.ch == "]":
            lexer.advance()
            lexer.next_token()
            return
        raise RefusedError("an object does not begin with '{'")

    def _read_fields(  # noqa: C901, PLR0912  # The branches of the class, in its order.
        self, name: str | None, bean: BeanT | None, context: Context | None, read_fields: set[str]
    ) -> AnyValue:
        lexer = self._lexer
        shortcuts = iter(self.fields)
        while True:
            field: FieldMatch | None = None
            shortcut = next(shortcuts, None)
            if shortcut is not None:
                field = self._match_field(shortcut)
                if field is None and self._has_other_name():
                    continue
            key = None
            if field is None:
                key = lexer.scan_name()
                if key is None and lexer.token == Token.RBRACE:
                    lexer.next_token_of(Token.COMMA)
                    break
                if key is None and lexer.token == Token.COMMA:
                    continue
                if key == "$ref" and context is not None:
                    return self._read_reference(bean, context, name)
                if key == "@type":
                    self._read_type()
                    if lexer.token == Token.RBRACE:
                        lexer.next_token()
                        break
                    continue
            if bean is None:
                bean = self.bean_class()
                self._contexts.enter(context, bean, name)
            if field is not None:
                self._put_match(bean, field, read_fields)
                if field.is_read and lexer.match == Match.END:
                    break
            elif not self._read_named_field(bean, key, read_fields):
                if lexer.token == Token.RBRACE:
                    lexer.next_token()
                    break
                continue
            elif lexer.token == Token.COLON:
                raise RefusedError("a ':' stands behind a value")
            if lexer.token == Token.RBRACE:
                lexer.next_token_of(Token.COMMA)
                break
            if lexer.token in {Token.IDENTIFIER, Token.ERROR}:
                raise RefusedError("a field is followed by something else than ',' or '}'")
        if bean is None:
            bean = self.bean_class()
            self._contexts.enter(context, bean, name)
        return bean

    def _put_match(self, bean: BeanT, field: FieldMatch, read_fields: set[str]) -> None:
        if not field.is_read:
            self._read_field(bean, field.name)
            return
        setattr(bean, field.name, field.value)
        read_fields.add(field.name)

    def _read_named_field(self, bean: BeanT, key: str | None, read_fields: set[str]) -> bool:
        """`parseField`: whether the field is one of the class. A second time it is not, so the first value stays."""
        name = self._smart_match(key)
        self._lexer.next_token_after_colon()
        if name is None or name in read_fields:
            self._parser.read_value(None)
            self._contexts.awaits_reference = False
            return False
        self._read_field(bean, name)
        self._contexts.give_reference_to(None)
        read_fields.add(name)
        return True

    def _smart_match(self, key: str | None) -> str | None:
        """`smartMatch`: case, `_` and `-` do not count."""
        if key is None:
            return None
        letters = key.replace("_", "").replace("-", "")
        if not letters.isascii():
            return None
        return next((name for name in self.fields if name.lower() == letters.lower()), None)

    def _read_reference(self, bean: BeanT | None, context: Context, name: str | None) -> AnyValue:
        lexer, contexts = self._lexer, self._contexts
        lexer.next_token_after_colon()
        if lexer.token != Token.STRING:
            raise RefusedError("a reference is no string")
        path = lexer.string()
        target: AnyValue = bean
        if path == "@":
            target = context.object
        elif path == "..":
            if context.parent is None:
                raise RefusedError("a reference leads out of the text")
            target = context.parent.object
        elif path == "$":
            target = context.root().object
        else:
            if path.find("\\") > 0:
                path = remove_backslashes(path)
            target = contexts.find(path)
            if target is None:
                contexts.await_reference(path)
                target = bean
        lexer.next_token_of(Token.RBRACE)
        if lexer.token != Token.RBRACE:
            raise RefusedError("something follows a reference")
        lexer.next_token_of(Token.COMMA)
        contexts.enter(context, target, name)
        return target

    def _read_type(self) -> None:
        lexer = self._lexer
        lexer.next_token_after_colon()
        if lexer.token != Token.STRING:
            raise RefusedError("a type name is no string")
        type_name = joined(lexer.string())
        lexer.next_token_of(Token.COMMA)
        self._parser.dialect.check_bean_type(type_name, self.type_name)
