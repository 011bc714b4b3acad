r"""An offset file as fastjson 1 reads it: `JSON.parseObject(text, OffsetSerializeWrapper.class)`.

This follows the classes step by step, because what they accept is decided by their steps: the readers that fastjson
generates for `OffsetSerializeWrapper` and `MessageQueue`, which hold the fields in alphabetical order; `JavaBeanDeserializer`
behind them for everything else than the expected; `MapDeserializer` for the table; `DefaultJSONParser` for what is not
wanted. Class names stand at each step.

| RocketMQ | fastjson |
|---|---|
| 4.7.1 | 1.2.69 |
| 4.9.3 | 1.2.76 |
| 4.9.7 | 1.2.69_noneautotype |
| 5.3.3 | 1.2.83 |

Belongs here: text to table. Does not belong here: characters (`fastjson1_lexer`), bytes and files.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rebalance_ledger.rocketmq.offset_files.fastjson1_lexer import END, Lexer, Match, Token
from rebalance_ledger.rocketmq.offset_files.java_values import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigDecimal,
    code_units,
    joined,
    parse_integer,
    wrapped,
)
from rebalance_ledger.rocketmq.offset_files.outcome import (
    Doubt,
    NoTable,
    OffsetKey,
    Offsets,
    Outcome,
    Refused,
    RefusedError,
    Undecided,
    UndecidedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 100
"""Objects and arrays inside one another that are followed in what is not wanted; RocketMQ's own files nest 3."""

_MOST_OBJECT_KEYS: Final = 513
_DEEPEST_ARRAY: Final = 512
# A search goes through every object so far: more of them than anybody writes would take a file's length squared.
_MOST_SEARCHES: Final = 16
_ARRAY_KINDS: Final[dict[int, str]] = {Token.LBRACKET: "array", Token.SET: "set", Token.TREE_SET: "tree_set"}
_VALUE_STARTS: Final = frozenset('"-0123456789')

_WRAPPER: Final = "org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper"
_MESSAGE_QUEUE: Final = "org.apache.rocketmq.common.message.MessageQueue"
_HASH_MAPS: Final = frozenset({"java.util.HashMap", "java.util.LinkedHashMap"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the releases of fastjson 1 have otherwise.

    Attributes:
        release: Its own name.
        is_since_76: Whether it is 1.2.76 or later.
        is_since_83: Whether it is 1.2.83 or later.
        has_type_names: Whether a type name may stand for a class at all: the build of 4.9.7 refuses every one.
    """

    release: str
    is_since_76: bool = False
    is_since_83: bool = False
    has_type_names: bool = True


FASTJSON_1_2_69: Final = Dialect("1.2.69")
FASTJSON_1_2_69_NONEAUTOTYPE: Final = Dialect("1.2.69_noneautotype", has_type_names=False)
FASTJSON_1_2_76: Final = Dialect("1.2.76", is_since_76=True)
FASTJSON_1_2_83: Final = Dialect("1.2.83", is_since_76=True, is_since_83=True)


def read(text: str, dialect: Dialect) -> Outcome:
    """The result of reading a file's text.

    Args:
        text: Not empty.
        dialect: The release of fastjson.
    """
    try:
        return _Parser(code_units(text), dialect).read()
    except RefusedError as error:
        return Refused(str(error))
    except UndecidedError as error:
        return Undecided(error.doubt)


# What the classes make -----------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Queue:
    """A `MessageQueue`. Fields are what a reader has set."""

    topic: str | None = None
    brokerName: str | None = None  # noqa: N815  # As the file names them.
    queueId: int = 0  # noqa: N815

    def key(self) -> OffsetKey:
        topic, broker = (None if name is None else joined(name) for name in (self.topic, self.brokerName))
        return OffsetKey(topic, broker, self.queueId)


@dataclass(eq=False, slots=True)
class _Table:
    """The `ConcurrentHashMap` of a wrapper.

    Generics let a reference put something else than a queue or an offset into it. Whether the client notices depends on
    what it does with the table: `is_foreign` then, and nobody can say what comes of it.
    """

    offsets: dict[OffsetKey, int] = field(default_factory=dict)
    is_foreign: bool = False


@dataclass(eq=False, slots=True)
class _Wrapper:
    """An `OffsetSerializeWrapper`."""

    offsetTable: _Table | None = field(default_factory=_Table)  # noqa: N815  # As the file names it.


class _Number(NamedTuple):
    """A number in what is not wanted: `value` is an int, a BigDecimal, or None for a float."""

    kind: str
    value: int | BigDecimal | None


@dataclass(eq=False, slots=True)
class _Container:
    """A `JSONObject`, `JSONArray` or set in what is not wanted.

    Attributes:
        kind: Which.
        entries: An object's, by name; a name that is an object or array is that.
        elements: An array's or set's, those that hold others; `count` is the number of all.
        count: See there.
    """

    kind: str
    entries: dict[object, _Value] = field(default_factory=dict)
    elements: list[_Value] = field(default_factory=list)
    count: int = 0

    def inner(self) -> list[_Container]:
        """The containers in it, and those that references in it lead to."""
        held = (*self.entries, *self.entries.values(), *self.elements)
        led_to = (each.target if isinstance(each, _Thing) else each for each in held)
        return [each for each in led_to if isinstance(each, _Container)]


@dataclass(frozen=True, slots=True)
class _Thing:
    """A date, bytes, or a reference, which may lead to a `target`."""

    kind: str
    target: _Container | None = None


_Value: TypeAlias = "str | bool | _Number | _Container | _Thing | None"
_Bean: TypeAlias = "_Queue | _Wrapper"
_Anything: TypeAlias = "_Value | _Bean | _Table"


@dataclass(eq=False, slots=True)
class _Context:
    """`ParseContext`: an object that is being read, and where it is. References are paths of these."""

    parent: _Context | None
    object: _Anything
    name: str | int | None
    level: int = 0

    def path(self) -> str:
        steps = []
        context = self
        while context.parent is not None:
            name = "null" if context.name is None else context.name
            steps.append(f"[{name}]" if isinstance(name, int) else f".{name}")
            context = context.parent
        return "$" + "".join(reversed(steps))


class _Reference(NamedTuple):
    """`ResolveTask`: a reference to something that was not there yet, and whose place it is to take."""

    path: str
    owner: _Table | _Wrapper | None


@dataclass(frozen=True, slots=True)
class _BeanClass:
    """A class that fastjson has generated a reader for; `fields` in the order in which that looks for them."""

    name: str
    make: type[_Bean]
    fields: tuple[str, ...]


_WRAPPER_CLASS: Final = _BeanClass(_WRAPPER, _Wrapper, ("offsetTable",))
_QUEUE_CLASS: Final = _BeanClass(_MESSAGE_QUEUE, _Queue, ("brokerName", "queueId", "topic"))


class _Parser:
    """`DefaultJSONParser` over one text, with the deserializers that it calls."""

    def __init__(self, text: str, dialect: Dialect, depth: int = 0) -> None:
        self._dialect = dialect
        self._lexer = Lexer(text, grows_buffer=dialect.is_since_76, limits_numbers=dialect.is_since_76)
        self._context: _Context | None = None
        self._contexts: list[_Context] = []
        self._references: list[_Reference] = []
        self._awaits_reference = False
        self._has_inner_reference = False
        self._has_reference_for_name = False
        self._object_key_count = 0
        self._depth = depth
        self._search_count = 0
        self._lexer.open_first()

    def read(self) -> Outcome:
        """`JSON.parseObject`, then what `LocalFileOffsetStore.load` does with the result."""
        wrapper: _Anything = None
        if self._lexer.token == Token.NULL:
            self._lexer.next_token()
        else:
            wrapper = self._read_bean(_WRAPPER_CLASS, None)
        self._resolve_references()
        if self._lexer.token != Token.EOF:
            raise RefusedError("something follows the end")
        if wrapper is None:
            return NoTable(has_object=False)
        if not isinstance(wrapper, _Wrapper):
            raise RefusedError("the text is of another class")
        table = wrapper.offsetTable
        if table is None:
            return NoTable(has_object=True)
        if table.is_foreign:
            raise UndecidedError(Doubt.REFERENCE)
        return Offsets(table.offsets)

    # Contexts and references ----------------------------------------------------------------------------------------

    def _enter(self, parent: _Context | None, thing: _Anything, name: str | int | None) -> _Context:
        """`setContext(ParseContext, Object, Object)`."""
        self._context = _Context(parent, thing, name, 0 if parent is None else parent.level + 1)
        self._contexts.append(self._context)
        return self._context

    def _found_by_path(self, path: str) -> _Anything:
        """`getObject` and `resolveReference`."""
        self._search_count += 1
        if self._search_count > _MOST_SEARCHES:
            raise UndecidedError(Doubt.REFERENCE)
        return next((context.object for context in self._contexts if context.path() == path), None)

    def _await_reference(self, path: str) -> None:
        self._references.append(_Reference(path, None))
        self._awaits_reference = True

    def _give_reference_to(self, owner: _Table | _Wrapper | None) -> None:
        """`checkMapResolve` and its kin: the last reference is to take a place in this owner."""
        if self._awaits_reference:
            self._references[-1] = self._references[-1]._replace(owner=owner)
            self._awaits_reference = False

    def _resolve_references(self) -> None:
        """`handleResovleTask`. In what is not wanted a reference changes nothing."""
        if self._has_inner_reference:
            self._refuse_to_mix_references()
        for reference in self._references:
            owner = reference.owner
            if owner is None:
                continue
            found = self._found_by_path(reference.path) if reference.path.startswith("$") else None
            if found is None:
                raise UndecidedError(Doubt.REFERENCE)
            if isinstance(owner, _Table):
                owner.is_foreign = True
            elif isinstance(found, _Table):
                owner.offsetTable = found
            else:
                raise RefusedError("a reference leads to another class")

    def _refuse_to_mix_references(self) -> None:
        """Where some references lead inside and others wait for the end, the stack decides what is ever looked at."""
        if self._references:
            raise UndecidedError(Doubt.REFERENCE)

    # OffsetSerializeWrapper and MessageQueue --------------------------------------------------------------------------

    def _read_bean(self, bean_class: _BeanClass, name: str | None) -> _Anything:
        """`deserialze` of a generated reader: it does not look at the token that it begins with."""
        lexer = self._lexer
        if lexer.scan_type(bean_class.name) == Match.NOT_MATCH:
            return self._read_bean_slowly(bean_class, name, None, set())
        context = self._context
        bean = bean_class.make()
        self._enter(context, bean, name)
        if lexer.match == Match.END:
            self._context = context
            return bean
        seen: set[str] = set()
        is_whole = (
            self._take_table(bean, seen) if isinstance(bean, _Wrapper) else self._take_fields(bean, seen)
        )
        if is_whole:
            self._context = context
            return bean
        rest = self._read_bean_slowly(bean_class, name, bean, seen)
        if rest is not None and not isinstance(rest, bean_class.make):
            raise RefusedError("a reference or a type name leads to another class")
        return rest

    def _take_table(self, wrapper: _Wrapper, seen: set[str]) -> bool:
        lexer = self._lexer
        if not lexer.match_field('"offsetTable":'):
            return False
        seen.add("offsetTable")
        table = self._read_table("offsetTable")
        self._give_reference_to(wrapper)
        wrapper.offsetTable = table
        if lexer.token != Token.RBRACE:
            return False
        lexer.close_bean()
        return True

    def _take_fields(self, queue: _Queue, seen: set[str]) -> bool:
        lexer = self._lexer
        for name in _QUEUE_CLASS.fields:
            taken = self._take(name)
            if lexer.match == Match.NOT_MATCH:
                return False
            if taken is not None:
                self._put_taken(queue, taken, seen)
            if lexer.match == Match.END:
                return True
        return False

    def _read_bean_slowly(
        self, bean_class: _BeanClass, name: str | None, bean: _Bean | None, seen: set[str]
    ) -> _Anything:
        """`JavaBeanDeserializer.deserialze`, from the start or (with a bean) as `parseRest`."""
        lexer = self._lexer
        token = lexer.token
        if token == Token.NULL:
            lexer.next_token_of(Token.COMMA)
            return None
        context = self._context
        if bean is not None and context is not None:
            context = context.parent
        try:
            if token == Token.RBRACE:
                lexer.next_token_of(Token.COMMA)
                return bean_class.make() if bean is None else bean
            if token not in {Token.LBRACE, Token.COMMA}:
                self._read_no_bean()
                return None
            return self._read_fields(bean_class, name, bean, context, seen)
        finally:
            self._context = context

    def _read_no_bean(self) -> None:
        """What does not begin like an object counts as null if it is blank, `""` or `[]`."""
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
        self,
        bean_class: _BeanClass,
        name: str | None,
        bean: _Bean | None,
        context: _Context | None,
        seen: set[str],
    ) -> _Anything:
        lexer = self._lexer
        made = bean
        shortcuts = iter(bean_class.fields)
        while True:
            value: _Taken | None = None
            shortcut = next(shortcuts, None)
            if shortcut is not None:
                value = self._take(shortcut)
                if value is None and (shortcut == "offsetTable" or lexer.match == Match.NOT_MATCH_NAME):
                    continue
            key = None
            if value is None:
                key = lexer.scan_name()
                if key is None and lexer.token == Token.RBRACE:
                    lexer.next_token_of(Token.COMMA)
                    break
                if key is None and lexer.token == Token.COMMA:
                    continue
                if key == "$ref" and context is not None:
                    return self._read_bean_reference(made, context, name)
                if key == "@type":
                    self._read_bean_type(bean_class)
                    if lexer.token == Token.RBRACE:
                        lexer.next_token()
                        break
                    continue
            if made is None:
                made = bean_class.make()
                self._enter(context, made, name)
            if value is not None:
                self._put_taken(made, value, seen)
                if value.is_read and lexer.match == Match.END:
                    break
            elif not self._read_named(bean_class, made, key, seen):
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
        if made is None:
            made = bean_class.make()
            self._enter(context, made, name)
        return made

    def _take(self, name: str) -> _Taken | None:
        """The shortcuts for the fields in their order: None if the next field is another, or not in the usual form."""
        prefix = f'"{name}":'
        if name == "offsetTable":
            return _Taken(name, None, is_read=False) if self._lexer.match_field(prefix) else None
        value: str | int | None
        if name == "queueId":
            value = self._lexer.scan_int_field(prefix)
        else:
            value = self._lexer.scan_string_field(prefix)
        return _Taken(name, value, is_read=True) if self._lexer.match > 0 else None

    def _put_taken(self, bean: _Bean, taken: _Taken, seen: set[str]) -> None:
        if not taken.is_read:
            self._read_table_into(bean)
            return
        setattr(bean, taken.name, taken.value)
        seen.add(taken.name)

    def _read_named(self, bean_class: _BeanClass, bean: _Bean, key: str | None, seen: set[str]) -> bool:
        """`parseField`: whether the field is one of the class. A second time it is not, so the first value stays."""
        lexer = self._lexer
        name = _smart_match(bean_class, key)
        lexer.next_token_after_colon()
        if name is None or name in seen:
            self._read_ignored(None)
            self._awaits_reference = False
            return False
        if name == "offsetTable":
            self._read_table_into(bean)
        elif name == "queueId":
            queue_id = self._read_int()
            if queue_id is not None:
                bean.queueId = queue_id  # type: ignore[union-attr]  # Only a queue has the field.
        else:
            setattr(bean, name, self._read_text())
        self._give_reference_to(None)
        seen.add(name)
        return True

    def _read_bean_reference(self, bean: _Bean | None, context: _Context, name: str | None) -> _Anything:
        lexer = self._lexer
        lexer.next_token_after_colon()
        if lexer.token != Token.STRING:
            raise RefusedError("a reference is no string")
        path = lexer.string()
        found: _Anything = bean
        if path == "@":
            found = context.object
        elif path == "..":
            if context.parent is None:
                raise RefusedError("a reference leads out of the text")
            found = context.parent.object
        elif path == "$":
            found = _root(context).object
        else:
            if path.find("\\") > 0:
                path = _without_backslashes(path)
            found = self._found_by_path(path)
            if found is None:
                self._await_reference(path)
                found = bean
        lexer.next_token_of(Token.RBRACE)
        if lexer.token != Token.RBRACE:
            raise RefusedError("something follows a reference")
        lexer.next_token_of(Token.COMMA)
        self._enter(context, found, name)
        return found

    def _read_bean_type(self, bean_class: _BeanClass) -> None:
        lexer = self._lexer
        lexer.next_token_after_colon()
        if lexer.token != Token.STRING:
            raise RefusedError("a type name is no string")
        type_name = joined(lexer.string())
        lexer.next_token_of(Token.COMMA)
        if type_name == bean_class.name or (self._dialect.is_since_76 and type_name in _HASH_MAPS):
            return
        may_be_known = type_name in _HASH_MAPS or type_name.startswith("org.apache.rocketmq.")
        if self._dialect.has_type_names and (may_be_known or self._is_forgiven(type_name)):
            raise UndecidedError(Doubt.TYPE_NAME)
        raise RefusedError(f"the type {type_name!r} is not allowed")

    def _is_forgiven(self, type_name: str) -> bool:
        """Return whether `checkAutoType` gives no class for the name, and no exception either."""
        is_throwable = type_name.endswith(("Exception", "Error"))
        return self._dialect.is_since_83 and is_throwable and len(type_name) < _LONGEST_TYPE_NAME

    # The table --------------------------------------------------------------------------------------------------------

    def _read_table_into(self, bean: _Bean) -> None:
        """`DefaultFieldDeserializer.parseField` of `offsetTable`."""
        wrapper = bean
        if not isinstance(wrapper, _Wrapper):
            raise TypeError("only a wrapper has a table")
        table = self._read_table("offsetTable")
        if self._awaits_reference:
            self._give_reference_to(wrapper)
        else:
            wrapper.offsetTable = table

    def _read_table(self, name: str) -> _Table | None:
        """`MapDeserializer.deserialze`."""
        if self._lexer.token == Token.NULL:
            self._lexer.next_token_of(Token.COMMA)
            return None
        table = _Table()
        context = self._context
        self._enter(context, table, name)
        try:
            found = self._read_entries(table)
        finally:
            self._context = context
        if found is not None and not isinstance(found, _Table):
            raise RefusedError("a reference leads to another class")
        return found

    def _read_entries(self, table: _Table) -> _Anything:
        """`MapDeserializer.parseMap`."""
        lexer = self._lexer
        if lexer.token not in {Token.LBRACE, Token.COMMA}:
            raise RefusedError("the table is no object")
        lexer.next_token_of(Token.LBRACE)
        context = self._context
        while lexer.token != Token.RBRACE:
            if lexer.token == Token.STRING and lexer.is_reference():
                return self._read_table_reference(context)
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
            offset = self._read_long()
            self._give_reference_to(table)
            if key is None or offset is None:
                raise RefusedError("a queue or an offset is null")
            if isinstance(key, _Queue):
                table.offsets[key.key()] = offset
            else:
                table.is_foreign = True
            if lexer.token == Token.COMMA:
                lexer.next_token_of(Token.LBRACE)
        lexer.next_token_of(Token.COMMA)
        return table

    def _read_table_reference(self, context: _Context | None) -> _Anything:
        lexer = self._lexer
        found: _Anything = None
        lexer.next_token_after_colon()
        if lexer.token != Token.STRING or context is None:
            raise RefusedError("a reference is no string")
        path = lexer.string()
        if path == "..":
            found = None if context.parent is None else context.parent.object
        elif path == "$":
            found = _root(context).object
        else:
            self._await_reference(path)
        lexer.next_token_of(Token.RBRACE)
        if lexer.token != Token.RBRACE:
            raise RefusedError("something follows a reference")
        lexer.next_token_of(Token.COMMA)
        return found

    def _read_key(self) -> _Anything:
        if self._lexer.token != Token.STRING:
            return self._read_bean(_QUEUE_CLASS, None)
        text = self._lexer.string()
        self._lexer.next_token()
        # What follows the queue inside the string is not looked at.
        return _Parser(text, self._dialect, self._depth + 1)._read_bean(_QUEUE_CLASS, None)  # noqa: SLF001  # One of its own kind.

    # Values that are wanted -------------------------------------------------------------------------------------------

    def _read_long(self) -> int | None:
        """`LongCodec.deserialze`."""
        lexer = self._lexer
        if lexer.token == Token.INT:
            value = lexer.long_value()
            lexer.next_token_of(Token.COMMA)
            return value
        if lexer.token == Token.FLOAT:
            value = _long_of(lexer.decimal_value())
            lexer.next_token_of(Token.COMMA)
            return value
        return self._cast_to_long(self._read_other())

    def _read_int(self) -> int | None:
        """`IntegerCodec.deserialze`."""
        lexer = self._lexer
        if lexer.token == Token.NULL:
            lexer.next_token_of(Token.COMMA)
            return None
        if lexer.token == Token.INT:
            value = lexer.int_value()
            lexer.next_token_of(Token.COMMA)
            return value
        if lexer.token == Token.FLOAT:
            value = _int_of(lexer.decimal_value())
            lexer.next_token_of(Token.COMMA)
            return value
        return self._cast_to_int(self._read_other())

    def _read_text(self) -> str | None:
        """`StringCodec.deserialze`."""
        lexer = self._lexer
        if lexer.token == Token.STRING:
            text = lexer.string()
            lexer.next_token_of(Token.COMMA)
            return text
        if lexer.token == Token.INT:
            text = lexer.number_text()
            lexer.next_token_of(Token.COMMA)
            return text
        value = self._read_ignored(None)
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return value
        if isinstance(value, _Number) and isinstance(value.value, BigDecimal):
            return str(value.value)
        raise UndecidedError(Doubt.OBJECT)

    def _read_other(self) -> _Value:
        if self._lexer.token != Token.LBRACE:
            return self._read_ignored(None)
        made = _Container("object")
        self._read_object(made, None)
        return made

    def _cast_to_long(self, value: _Value) -> int | None:
        """`TypeUtils.castToLong`."""
        if value is None:
            return None
        if isinstance(value, bool) and self._dialect.is_since_76:
            return int(value)
        if isinstance(value, _Number):
            return _long_of_number(value)
        if isinstance(value, str):
            return _long_of_text(value)
        atomic = _second_of_atomic(value)
        if atomic is not None:
            return self._cast_to_long(atomic.value)
        raise RefusedError("an offset is no number")

    def _cast_to_int(self, value: _Value) -> int | None:
        """`TypeUtils.castToInt`."""
        if value is None:
            return None
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, _Number):
            number = value.value
            return _int_of(number) if isinstance(number, BigDecimal) else wrapped(_long_of_number(value), 32)
        if isinstance(value, str):
            return _int_of_text(value)
        atomic = _second_of_atomic(value)
        if atomic is not None:
            return self._cast_to_int(atomic.value)
        raise RefusedError("a queue id is no number")

    # What is not wanted -----------------------------------------------------------------------------------------------

    def _read_ignored(self, name: str | int | None) -> _Value:  # noqa: C901  # The branches of the class.
        """`DefaultJSONParser.parse(Object)`."""
        lexer = self._lexer
        token = lexer.token
        if token == Token.LBRACE:
            return self._read_object(_Container("object"), name)
        if token in {Token.LBRACKET, Token.SET, Token.TREE_SET}:
            if token != Token.LBRACKET:
                lexer.next_token()
            made = _Container(_ARRAY_KINDS[token])
            self._read_array(made, name)
            return made
        if token == Token.STRING:
            text = lexer.string()
            lexer.next_token_of(Token.COMMA)
            return text
        if token in {Token.INT, Token.FLOAT}:
            number = self._number()
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
            return _Thing("bytes")
        if token == Token.IDENTIFIER and lexer.string() == "NaN":
            lexer.next_token()
            return None
        raise RefusedError("a value is expected")

    def _number(self) -> _Number:
        lexer = self._lexer
        if lexer.token == Token.INT:
            value = lexer.integer_value()
            kind = next(
                (kind for kind, bits in (("int", 32), ("long", 64)) if wrapped(value, bits) == value), "big"
            )
            suffix = lexer.number_suffix()
            return _Number(
                {"L": "long", "S": "short", "B": "byte"}.get(suffix, kind) if kind == "int" else kind, value
            )
        number = lexer.decimal_value()
        return _Number("float", None) if lexer.number_suffix() in {"F", "D"} else _Number("decimal", number)

    def _read_new_date(self) -> _Thing:
        lexer = self._lexer
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
        return _Thing("date")

    @contextmanager
    def _one_deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UndecidedError(Doubt.NESTING)
        try:
            yield
        finally:
            self._depth -= 1

    def _read_array(self, made: _Container, name: str | int | None) -> None:
        """`parseArray(Collection, Object)`."""
        lexer = self._lexer
        if lexer.token in {Token.SET, Token.TREE_SET}:
            lexer.next_token()
        if lexer.token != Token.LBRACKET:
            raise RefusedError("an array does not begin with '['")
        lexer.next_token_of(Token.STRING)
        context = self._context
        if context is not None and context.level > _DEEPEST_ARRAY:
            raise RefusedError("an array is nested too deep")
        self._enter(context, made, name)
        with self._one_deeper():
            try:
                self._read_elements(made)
            finally:
                self._context = context

    def _read_elements(self, made: _Container) -> None:
        lexer = self._lexer
        index = 0
        while True:
            while lexer.token == Token.COMMA:
                lexer.next_token()
            if lexer.token == Token.RBRACKET:
                lexer.next_token_of(Token.COMMA)
                return
            if lexer.token == Token.EOF:
                raise RefusedError("an array does not end")
            self._add_element(made, self._read_element(index))
            self._give_reference_to(None)
            if lexer.token == Token.COMMA:
                lexer.next_token_of(Token.STRING)
            index += 1

    def _read_element(self, index: int) -> _Value:
        lexer = self._lexer
        token = lexer.token
        if token in {Token.INT, Token.FLOAT}:
            number = self._number()
            lexer.next_token_of(Token.COMMA)
            return number
        if token in {Token.TRUE, Token.FALSE}:
            lexer.next_token_of(Token.COMMA)
            return token == Token.TRUE
        if token in {Token.NULL, Token.UNDEFINED}:
            lexer.next_token_of(Token.STRING)
            return None
        if token == Token.LBRACE:
            return self._read_object(_Container("object"), index)
        if token == Token.LBRACKET:
            made = _Container("array")
            self._read_array(made, index)
            return made
        return self._read_ignored(None)

    def _add_element(self, made: _Container, value: _Value) -> None:
        """A `HashSet` asks its elements for their hash; a `TreeSet` wants some that compare with one another."""
        if made.kind == "set":
            self._check_hash(value)
        if made.kind == "tree_set":
            kind = _comparable_kind(value)
            if kind is None or (made.count and made.entries["kind"] != kind):
                raise RefusedError("the elements of a set do not compare")
            made.entries["kind"] = kind
        if isinstance(value, (_Container, _Thing)):
            made.elements.append(value)
        made.count += 1

    def _put(self, made: _Container, key: object, value: _Value) -> None:
        """`Map.put`, which asks the key for its hash before the entry is there."""
        self._check_hash(key)
        made.entries[key] = value

    def _check_hash(self, value: object) -> None:
        """`hashCode` goes through all that a value holds: where that leads back, the stack overflows, and the file is refused."""
        start = value.target if isinstance(value, _Thing) else value
        if not self._has_inner_reference or not isinstance(start, _Container):
            return
        self._search_count += 1
        if self._search_count > _MOST_SEARCHES:
            raise UndecidedError(Doubt.REFERENCE)
        if _leads_back(start):
            self._refuse_to_mix_references()
            if self._has_reference_for_name or _has_names_of_containers(start):
                raise UndecidedError(Doubt.REFERENCE)
            raise RefusedError("what stands for a name or in a set contains itself")

    def _read_object(self, made: _Container, name: str | int | None) -> _Value:
        """`parseObject(Map, Object)`."""
        lexer = self._lexer
        token = lexer.token
        if token == Token.NULL:
            lexer.next_token()
            return None
        if token == Token.RBRACE or (token == Token.STRING and not lexer.string()):
            lexer.next_token()
            return made
        if token not in {Token.LBRACE, Token.COMMA}:
            raise RefusedError("an object does not begin with '{'")
        with self._one_deeper():
            reading = _Reading(made, name, self._context)
            try:
                return self._read_members(reading)
            finally:
                self._context = reading.context

    def _read_members(self, reading: _Reading) -> _Value:
        lexer = self._lexer
        made = reading.made
        while True:
            lexer.skip_blanks()
            while lexer.ch == ",":
                lexer.advance()
                lexer.skip_blanks()
            if lexer.ch == "}":
                lexer.advance()
                lexer.next_token()
                self._enter_once(reading)
                return made
            key = self._read_member_name()
            lexer.forget_taken()
            if key == "@type" and self._skip_member_type(made):
                continue
            if key == "$ref" and reading.context is not None and not made.entries:
                lexer.next_token_of(Token.STRING)
                if lexer.token != Token.STRING:
                    raise RefusedError("a reference is no string")
                path = lexer.string()
                lexer.next_token_of(Token.RBRACE)
                if lexer.token == Token.COMMA:
                    made.entries[key] = path
                    continue
                return self._finish_reference(path, reading.context)
            self._enter_once(reading)
            if self._read_member(reading, key):
                return made

    def _enter_once(self, reading: _Reading) -> None:
        if reading.has_entered:
            return
        if self._context is not None and self._context.object is reading.made:
            reading.context = self._context
            return
        entered = self._enter(self._context, reading.made, reading.name)
        reading.context = reading.context or entered
        reading.has_entered = True

    def _read_member_name(self) -> object:
        """A name of any kind, and what stands behind it up to the value."""
        lexer = self._lexer
        character = lexer.ch
        key: object
        if character in {"{", "["}:
            self._object_key_count += 1
            if self._object_key_count > _MOST_OBJECT_KEYS:
                raise RefusedError("too many keys are objects")
            lexer.next_token()
            key = self._read_ignored(None)
            if isinstance(key, _Thing):
                self._has_reference_for_name = True
                key = key.target
            return key if isinstance(key, _Container) else object()
        if character in {'"', "'"}:
            key = lexer.scan_quoted_name(character)
            lexer.skip_blanks()
        elif character == END:
            raise RefusedError("an object does not end")
        elif character == "-" or "0" <= character <= "9":
            lexer.forget_taken()
            lexer.scan_number()
            key = str(self._number().value)
        else:
            key = lexer.scan_bare_name()
            lexer.skip_blanks()
        if lexer.ch != ":":
            raise RefusedError(f"expected ':', found {lexer.ch!r}")
        lexer.advance()
        lexer.skip_blanks()
        return "null" if key is None else key

    def _skip_member_type(self, made: _Container) -> bool:
        """A type name in what is not wanted: True if it counts as an ordinary value."""
        type_name = joined(self._lexer.scan_quoted_name('"'))
        if not type_name.strip("0123456789"):
            made.entries["@type"] = type_name
            return True
        if type_name == "com.alibaba.fastjson.JSONObject" or (
            self._dialect.is_since_76 and type_name in _HASH_MAPS
        ):
            raise UndecidedError(Doubt.TYPE_NAME)
        if self._dialect.has_type_names:
            if _KNOWN_TYPE.match(type_name):
                raise UndecidedError(Doubt.TYPE_NAME)
            if self._is_forgiven(type_name):
                made.entries["@type"] = type_name
                return True
        raise RefusedError(f"the type {type_name!r} is not allowed")

    def _finish_reference(self, path: str, context: _Context) -> _Thing:
        lexer = self._lexer
        target: _Anything = None
        if path == "@":
            target = self._surrounding()
        elif path == "..":
            target = context.object
        elif path == "$":
            target = _root(context).object
        else:
            if not path and self._dialect.is_since_76:
                raise RefusedError("a reference is empty")
            if not _PLAIN_PATH.fullmatch(path):
                raise UndecidedError(Doubt.REFERENCE)
            self._await_reference(path)
        if lexer.token != Token.RBRACE:
            raise RefusedError("something follows a reference")
        lexer.next_token_of(Token.COMMA)
        if not isinstance(target, _Container):
            return _Thing("reference")
        self._has_inner_reference = True
        return _Thing("reference", target)

    def _surrounding(self) -> _Anything:
        """What `@` stands for: the array or set that is being read, or what is around the object."""
        context = self._context
        if context is None:
            return None
        if isinstance(context.object, _Container) and context.object.kind != "object":
            return context.object
        return None if context.parent is None else context.parent.object

    def _read_member(self, reading: _Reading, key: object) -> bool:
        """A value and what follows it: True if that ends the object."""
        lexer = self._lexer
        made = reading.made
        character = lexer.ch
        if character in _VALUE_STARTS:
            if character == '"':
                lexer.scan_string(character)
                self._put(made, key, lexer.string())
            else:
                lexer.scan_number()
                self._put(made, key, self._number())
            lexer.skip_blanks()
            if lexer.ch == ",":
                lexer.advance()
                return False
            if lexer.ch != "}":
                raise RefusedError(f"a value is followed by {lexer.ch!r}")
            lexer.advance()
            lexer.next_token()
            self._enter(self._context, made.entries[key], _context_name(key))
            return True
        lexer.next_token()
        if character == "[":
            array = _Container("array")
            if reading.name is None:
                self._context = reading.context
            self._read_array(array, _context_name(key))
            self._put(made, key, array)
        elif character == "{":
            return self._read_inner_object(reading, key)
        else:
            self._put(made, key, self._read_ignored(None))
        return self._ends_object()

    def _read_inner_object(self, reading: _Reading, key: object) -> bool:
        is_in_array = isinstance(reading.name, int)
        inner = _Container("object")
        entered = None
        if not is_in_array:
            parent = self._context if self._dialect.is_since_76 else reading.context
            entered = self._enter(parent, inner, _context_name(key))
        value = self._read_object(inner, _context_name(key))
        if entered is not None and value is not inner:
            entered.object = reading.made
        self._give_reference_to(None)
        self._put(reading.made, key, value)
        if is_in_array:
            self._enter(self._context, value, _context_name(key))
        is_end = self._ends_object()
        if is_end or not is_in_array:
            self._context = reading.context
        elif self._context is not None:
            self._context = self._context.parent
            self._contexts.pop()
        return is_end

    def _ends_object(self) -> bool:
        if self._lexer.token == Token.RBRACE:
            self._lexer.next_token()
            return True
        if self._lexer.token == Token.COMMA:
            return False
        raise RefusedError("a value is followed by something else than ',' or '}'")


class _Taken(NamedTuple):
    """A field that a shortcut has found; `is_read` if it has its value too."""

    name: str
    value: str | int | None
    is_read: bool


@dataclass(eq=False, slots=True)
class _Reading:
    """An object in what is not wanted, while it is read."""

    made: _Container
    name: str | int | None
    context: _Context | None
    has_entered: bool = False


_LONGEST_TYPE_NAME: Final = 192
# Names that may be in fastjson's lists of classes, or that the client may have read before.
_KNOWN_TYPE: Final = re.compile(
    r"java\.|javax\.|sun\.|com\.alibaba\.|org\.springframework\.|org\.apache\.|org\.joda\.|com\.google\.|org\.javamoney\."
    r"|(?:byte|short|int|long|float|double|boolean|char)$"
)
_PLAIN_PATH: Final = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,9}\])+")
_ATOMIC_FIELDS: Final = frozenset({"andIncrement", "andDecrement"})
_PRINTABLE_SCALE: Final = 100
_SHORTEST_DATE: Final = 8
_DATE_START: Final = re.compile(r"[0-9]{4}[-/0-9\u5e74\ub144]|[0-9]{2}[.-][0-9]{2}[.-]|/Date\(")
_POINT_AND_ZEROS: Final = re.compile(r"\.0*(?=[\n\r\u0085\u2028\u2029]?\Z|\r\n\Z)")


def _smart_match(bean_class: _BeanClass, key: str | None) -> str | None:
    """`smartMatch`: case, `_` and `-` do not count."""
    if key is None:
        return None
    letters = key.replace("_", "").replace("-", "")
    if not letters.isascii():
        return None
    return next((name for name in bean_class.fields if name.lower() == letters.lower()), None)


def _root(context: _Context) -> _Context:
    while context.parent is not None:
        context = context.parent
    return context


def _has_names_of_containers(start: _Container) -> bool:
    """Return whether `start` or what it holds has a set, or an object for a name: then when each hash was asked decides."""
    seen: dict[int, _Container] = {}
    left = [start]
    while left:
        container = left.pop()
        if id(container) in seen:
            continue
        seen[id(container)] = container
        if container.kind == "set" or any(isinstance(key, _Container) for key in container.entries):
            return True
        left += container.inner()
    return False


def _leads_back(start: _Container) -> bool:
    """Return whether some container below `start`, or itself, holds itself."""
    on_the_way: dict[int, list[_Container]] = {id(start): start.inner()}
    done: set[int] = set()
    while on_the_way:
        way, left = next(reversed(on_the_way.items()))
        if not left:
            del on_the_way[way]
            done.add(way)
            continue
        inner = left.pop()
        if id(inner) in on_the_way:
            return True
        if id(inner) not in done:
            on_the_way[id(inner)] = inner.inner()
    return False


def _without_backslashes(path: str) -> str:
    plain = re.sub(r"\\(.)", r"\1", path, flags=re.DOTALL)
    if len(path) - len(path.rstrip("\\")) & 1:
        raise RefusedError("a reference ends in a backslash")
    return plain


def _context_name(key: object) -> str | None:
    return key if isinstance(key, str) else "object"


def _comparable_kind(value: _Value) -> str | None:
    if isinstance(value, _Number):
        return value.kind
    if isinstance(value, (str, bool)):
        return type(value).__name__
    return value.kind if isinstance(value, _Thing) and value.kind == "date" else None


class _Second(NamedTuple):
    value: _Value


def _second_of_atomic(value: _Value) -> _Second | None:
    """An `AtomicLong` that was written as a bean has two fields; the second one counts."""
    if isinstance(value, _Container) and value.kind == "object" and value.entries.keys() == _ATOMIC_FIELDS:
        return _Second(list(value.entries.values())[1])
    return None


def _long_of(decimal: BigDecimal) -> int:
    """`TypeUtils.longValue`."""
    if abs(decimal.scale) <= _PRINTABLE_SCALE:
        return decimal.low_bits(64)
    try:
        return decimal.exactly(LONG_MIN, LONG_MAX)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def _int_of(decimal: BigDecimal) -> int:
    """`TypeUtils.intValue`."""
    if abs(decimal.scale) <= _PRINTABLE_SCALE:
        return decimal.low_bits(32)
    try:
        return decimal.exactly(INT_MIN, INT_MAX)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def _long_of_number(number: _Number) -> int:
    if number.value is None:
        raise UndecidedError(Doubt.OBJECT)
    return _long_of(number.value) if isinstance(number.value, BigDecimal) else wrapped(number.value, 64)


def _long_of_text(text: str) -> int | None:
    if text in {"", "null", "NULL"}:
        return None
    text = text.replace(",", "")
    try:
        return parse_integer(text, LONG_MIN, LONG_MAX)
    except ValueError:
        pass
    if len(text) >= _SHORTEST_DATE and _DATE_START.match(text.removeprefix("\ufeff")):
        raise UndecidedError(Doubt.DATE)
    raise RefusedError("an offset is no number")


def _int_of_text(text: str) -> int | None:
    if text in {"", "null", "NULL"}:
        return None
    text = _POINT_AND_ZEROS.sub("", text.replace(",", ""))
    try:
        return parse_integer(text, INT_MIN, INT_MAX)
    except ValueError as error:
        raise RefusedError(str(error)) from None
