r"""A tolerant reader of the JSON that RocketMQ writes.

RocketMQ serialises with fastjson (1.x, and 2.x in newer modules), whose text is a superset of JSON:

* integer keys without quotes: ``{0:"127.0.0.1:10911"}``;
* objects as keys: ``{{"brokerName":"a","queueId":0,"topic":"T"}:12}``;
* ``{"$ref":"$.a.b[0]"}`` where one Java object is written a second time;
* escapes that JSON does not know: ``\v``, ``\0`` to ``\7``, ``\'``, ``\xHH``; bare control characters.

:func:`loads` reads that and plain JSON, in compact and in pretty layout. Belongs here: text to values, with the position of what is
wrong. Does not belong here: what a payload means (``payloads``), and the more tolerant rules by which a client reads its own
``offsets.json`` (comments, single quotes, truncated files), which depend on the client's release.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NoReturn, TypeAlias, cast, overload

MAX_DEPTH: Final = 512
"""Deepest nesting of objects and arrays that is read, references included. RocketMQ's own records nest below 10."""

MAX_EXPANDED_VALUE_COUNT: Final = 10_000_000
"""Most values that a text may stand for once every ``$ref`` is counted as a copy of what it refers to."""

RocketMQValue: TypeAlias = (
    "bool | int | float | str | list[RocketMQValue] | RocketMQObject | ObjectMap | None"
)
"""What a text stands for. An object is a dict if its keys are names or integers, else an :class:`ObjectMap`."""

RocketMQObject: TypeAlias = "dict[str | int, RocketMQValue]"


class RocketMQJsonError(ValueError):
    """The text is not a record that RocketMQ could have written.

    Attributes:
        reason: What is wrong, without the position.
        line: Line of the first character that is wrong, from 1.
        column: Its column in characters, from 1.
    """

    def __init__(self, reason: str, *, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


class ObjectMap(Sequence["tuple[RocketMQObject, RocketMQValue]"]):
    """A map whose keys are objects, such as ``mqTable``: the pairs in the order of the text, duplicates kept.

    The order has no meaning (RocketMQ writes hash maps). The caller decides what two pairs with one key mean.
    """

    __slots__ = ("_pairs",)
    __hash__ = None  # type: ignore[assignment]  # The values are mutable.

    def __init__(self, pairs: Sequence[tuple[RocketMQObject, RocketMQValue]] = ()) -> None:
        self._pairs = list(pairs)

    @classmethod
    def of(cls, value: RocketMQValue) -> ObjectMap:
        """Return ``value`` as an object map.

        An empty map is written ``{}`` whatever its keys would be, and is read as an empty dict: this is the one
        place that handles both spellings.

        Raises:
            TypeError: ``value`` is neither an object map nor an empty object.
        """
        if isinstance(value, cls):
            return value
        if value == {}:
            return cls()
        raise TypeError(f"expected a map with object keys, found {_name_of(value)}")

    def items(self) -> Sequence[tuple[RocketMQObject, RocketMQValue]]:
        """Return the (key, value) pairs in the order of the text."""
        return self._pairs

    @overload
    def __getitem__(self, index: int) -> tuple[RocketMQObject, RocketMQValue]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[RocketMQObject, RocketMQValue]]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[RocketMQObject, RocketMQValue] | list[tuple[RocketMQObject, RocketMQValue]]:
        return self._pairs[index]

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[RocketMQObject, RocketMQValue]]:
        return iter(self._pairs)

    def __eq__(self, other: object) -> bool:
        return self._pairs == other._pairs if isinstance(other, ObjectMap) else NotImplemented

    def __repr__(self) -> str:
        return f"ObjectMap({self._pairs!r})"


def loads(text: str) -> RocketMQValue:
    r"""Read one value from RocketMQ's JSON dialect.

    * Objects: names and unquoted integers become a dict with ``str`` and ``int`` keys (of a key written twice the
      last value wins, as in fastjson); object keys become an :class:`ObjectMap`; ``{}`` is an empty dict.
    * Integers are exact at any size. Numbers with a point or an exponent are floats.
    * ``{"$ref":"$.a.b[0]"}`` becomes the value at that path: the same Python object, not a copy. A path is written
      as fastjson writes it: ``.name`` (other characters than letters and digits behind a backslash), ``[n]`` for an
      element or an integer key, and ``MessageQueue``'s ``toString`` for an entry under an object key. ``$``, ``@``
      and ``..`` alone always mean an object that contains itself and are refused, as is a path to nothing.
    * Half a surrogate pair, escaped (``\ud800``) or bare, becomes U+FFFD: RocketMQ sends UTF-8, which cannot carry
      it, and neither Arrow nor Spark can hold it.

    Time grows linearly with the text. Nesting is limited to ``MAX_DEPTH``, what references stand for to
    ``MAX_EXPANDED_VALUE_COUNT``.

    Args:
        text: The whole record; white space around it is allowed.

    Raises:
        RocketMQJsonError: The text is empty, cut, followed by something else, or not of this dialect.
    """
    if not text.isascii():
        text = _with_whole_characters(text)
    if not _needs_care(text):
        try:
            value: RocketMQValue = _PLAIN_JSON.decode(text)
        except (ValueError, RecursionError):
            pass  # Not plain JSON: the parser below reads it or reports the position of the error.
        else:
            # Few brackets cannot nest deep, which spares most records the walk.
            if text.count("{") + text.count("[") <= MAX_DEPTH or not _is_deeper_than(MAX_DEPTH, value):
                return value
    return _Parser(text).parse()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


_PLAIN_JSON: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite_float, strict=False
)

# The standard library reads a reference as an ordinary object, and leaves half a surrogate pair in a string.
_REFERENCE_OR_SURROGATE: Final = re.compile(r"(?:\$|\\u0024)(?:r|\\u0072)|\\u[dD][89a-fA-F]")


def _needs_care(text: str) -> bool:
    # Two searches for one substring cost a hundredth of the regular expression, and most records pass them.
    return ("$" in text or "\\u" in text) and _REFERENCE_OR_SURROGATE.search(text) is not None


def _with_whole_characters(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, or replaced by U+FFFD if the other half is missing."""
    return _BARE_SURROGATE.sub(_whole_character, text)


# A pair comes first, so that what the second alternative finds is a half without its other half.
_BARE_SURROGATE: Final = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")


def _whole_character(match: re.Match[str]) -> str:
    high, low = match.groups()
    return _REPLACEMENT if high is None else _joined(ord(high), ord(low))


def _joined(high: int, low: int) -> str:
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


_REPLACEMENT: Final = "\ufffd"


def _is_deeper_than(limit: int, value: RocketMQValue) -> bool:
    """Return whether plain containers nest deeper than ``limit``; level by level, so that depth costs no stack."""
    level = [value]
    for _ in range(limit):
        inner: list[RocketMQValue] = []
        for container in level:
            if isinstance(container, dict):
                inner += [child for child in container.values() if isinstance(child, (dict, list))]
            elif isinstance(container, list):
                inner += [child for child in container if isinstance(child, (dict, list))]
        if not inner:
            return False
        level = inner
    return True


def _name_of(value: object) -> str:
    """Return the JSON name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    return "an object"


def _error_at(text: str, position: int, reason: str) -> RocketMQJsonError:
    line_start = text.rfind("\n", 0, position) + 1
    return RocketMQJsonError(reason, line=text.count("\n", 0, position) + 1, column=position - line_start + 1)


class _Opened(Enum):
    """What reading a value gives when the value is a container that has only begun."""

    CONTAINER = 0


class _Frame:
    """A container that is being read. In an object ``keys`` runs ahead of ``values`` by the key that waits."""

    __slots__ = ("is_key", "is_object", "keys", "start", "values")

    def __init__(self, *, is_object: bool, is_key: bool, start: int) -> None:
        self.is_object = is_object
        self.is_key = is_key
        self.start = start
        self.keys: list[str | int | RocketMQObject] = []
        self.values: list[RocketMQValue] = []


class _Reference:
    """Stands in the tree for a ``$ref`` until the whole text is read."""

    __slots__ = ("path", "position")

    def __init__(self, path: str, position: int) -> None:
        self.path = path
        self.position = position


def _as_reference(value: object) -> _Reference | None:
    """Return the reference that sits where the tree's type says a value is, or None."""
    return value if isinstance(value, _Reference) else None


# Quantifiers are possessive: an unterminated string fails at once instead of trying every way to split it.
_TOKEN: Final = re.compile(
    r"""[ \t\n\r]*+(?:
        "(?P<plain>[^"\\]*+)"
      | "(?P<escaped>(?:[^"\\]++|\\.)*+)"
      | (?P<number>-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)
      | (?P<punctuation>[{}\[\]:,])
      | (?P<word>true|false|null)
    )""",
    re.DOTALL | re.VERBOSE,
)
_PLAIN, _ESCAPED, _NUMBER, _PUNCTUATION = (
    _TOKEN.groupindex[name] for name in ("plain", "escaped", "number", "punctuation")
)
_WHITE_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

# Most objects in a record hold no container (a MessageQueue, a queue's counters): the standard library reads those
# in one call. A bracket inside a string makes the guess fail, and then the object is read token by token.
_FLAT_OBJECT: Final = re.compile(r'\{[ \t\n\r]*+(?=["}])[^{}\[\]]*+\}')
# The same for numbers by queue id, once the ids are quoted; without a string inside nothing else looks like a key.
_FLAT_NUMBERS: Final = re.compile(r'\{[ \t\n\r]*+(?=[-0-9])[^{}\[\]"]*+\}')
# A map of objects without inner containers, as `mqTable` is written: its entries are read in one call too.
_FLAT_ENTRY: Final = re.compile(r'(\{"[^{}\[\]]*+\}):(\{"[^{}\[\]]*+\}|-?+[0-9]++)(?:,(?=\{)|(?P<end>\}))')
_INTEGER_KEY: Final = re.compile(r"(?<=[{,\s])(-?(?:0|[1-9][0-9]*+))(?=[ \t\n\r]*+:)")

_ESCAPE: Final = re.compile(
    r"""\\(?:
        u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})
      | u(?P<unit>[0-9a-fA-F]{4})
      | x(?P<byte>[0-9a-fA-F]{2})
      | (?P<letter>.)
    )""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPED_LETTERS: Final = {
    **{letter: letter for letter in "\"'\\/"},
    **{str(number): chr(number) for number in range(8)},
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "F": "\f",
    "r": "\r",
}


class _Parser:
    """Read one text, container by container, with an explicit stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._frames: list[_Frame] = []
        self._has_references = False
        self._may_use_library = not _needs_care(text)

    def parse(self) -> RocketMQValue:
        if _WHITE_SPACE.fullmatch(self._text):
            raise self._error("the text is empty", 0)
        value = self._read_value()
        while self._frames:
            frame = self._frames[-1]
            value = self._continue_object(frame) if frame.is_object else self._continue_array(frame)
            if value is _Opened.CONTAINER:
                continue
            self._frames.pop()
            if frame.is_key:
                self._put_object_key(self._frames[-1], value, frame.start)
            elif self._frames:
                self._frames[-1].values.append(value)
        end = self._skip_white_space()
        if end != len(self._text):
            raise self._error(f"the value has ended, but {self._found(end)} follows", end)
        complete = cast("RocketMQValue", value)
        return _References(self._text, complete).resolved() if self._has_references else complete

    def _put_object_key(self, parent: _Frame, key: object, start: int) -> None:
        if not isinstance(key, (dict, _Reference)):
            raise self._error("a key that is an object must have names as its own keys", start)
        if parent.keys and isinstance(parent.keys[0], (str, int)):
            raise self._error("an object mixes object keys with other keys", start)
        parent.keys.append(cast("RocketMQObject", key))

    def _continue_object(self, frame: _Frame) -> RocketMQValue | _Opened:
        """Read on after ``{``, after a key that was a container, or after a value that was one."""
        while True:
            if len(frame.keys) > len(frame.values):
                self._expect(":", "':' after the key")
                value = self._read_value()
                if value is _Opened.CONTAINER:
                    return value
                frame.values.append(value)
            if self._ends("}", "',' or '}' after the value", is_first=not frame.keys):
                return self._closed_object(frame)
            if self._read_key(frame) is _Opened.CONTAINER:
                return _Opened.CONTAINER

    def _continue_array(self, frame: _Frame) -> RocketMQValue | _Opened:
        """Read on after ``[`` or after an element that was a container."""
        values = frame.values
        while not self._ends("]", "',' or ']' after the element", is_first=not values):
            value = self._read_value()
            if value is _Opened.CONTAINER:
                return value
            values.append(value)
        return values

    def _closed_object(self, frame: _Frame) -> RocketMQValue:
        if frame.keys and not isinstance(frame.keys[0], (str, int)):
            return ObjectMap(list(zip(cast("list[RocketMQObject]", frame.keys), frame.values, strict=True)))
        names = cast("list[str | int]", frame.keys)
        return self._reference_or(dict(zip(names, frame.values, strict=True)), frame.start)

    def _reference_or(self, value: RocketMQObject, start: int) -> RocketMQValue:
        """Return the object itself, or what stands for it if fastjson reads it as a reference."""
        path = value.get("$ref")
        if len(value) != 1 or not isinstance(path, str) or not path.startswith(("$", "@", "..")):
            return value
        self._has_references = True
        return cast("RocketMQValue", _Reference(path, start))

    def _read_value(self) -> RocketMQValue | _Opened:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise self._bad_token("a value")
        kind = match.lastindex
        if kind == _PUNCTUATION:
            return self._open(match, is_key=False)
        self._position = match.end()
        if kind == _PLAIN:
            return match[_PLAIN]
        if kind == _NUMBER:
            return self._number(match)
        if kind == _ESCAPED:
            return self._unescaped(match)
        return _WORDS[match["word"]]

    def _read_key(self, frame: _Frame) -> _Opened | None:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise self._bad_token("a key")
        key: str | int
        if match.lastindex == _PLAIN:
            key = match[_PLAIN]
        elif match.lastindex == _NUMBER:
            number = self._number(match)
            if isinstance(number, float):
                raise self._error(f"{match[_NUMBER]} cannot be a key", match.start(_NUMBER))
            key = number
        elif match.lastindex == _ESCAPED:
            key = self._unescaped(match)
        elif match["punctuation"] == "{":
            start = match.start(_PUNCTUATION)
            opened = self._open(match, is_key=True)
            if opened is _Opened.CONTAINER:
                return opened
            self._put_object_key(frame, opened, start)
            return None
        else:
            raise self._error("expected a key", match.end() - 1)
        if frame.keys and not isinstance(frame.keys[0], (str, int)):
            raise self._error("an object mixes object keys with other keys", self._skip_white_space())
        frame.keys.append(key)
        self._position = match.end()
        return None

    def _open(self, match: re.Match[str], *, is_key: bool) -> RocketMQValue | _Opened:
        start = match.start(_PUNCTUATION)
        bracket = match[_PUNCTUATION]
        if bracket not in "{[":
            raise self._error(f"expected a value, found '{bracket}'", start)
        if len(self._frames) >= MAX_DEPTH:
            raise self._error(f"objects and arrays nest deeper than {MAX_DEPTH} levels", start)
        if bracket == "{" and self._may_use_library:
            flat: RocketMQValue = self._flat_object(start)
            if flat is None and len(self._frames) + 1 < MAX_DEPTH:
                flat = self._flat_object_map(start)
            if flat is not None:
                return flat
        self._position = match.end()
        self._frames.append(_Frame(is_object=bracket == "{", is_key=is_key, start=start))
        return _Opened.CONTAINER

    def _flat_object_map(self, start: int) -> ObjectMap | None:
        """Read a map of objects without inner containers in one call, or return None where that does not work."""
        parts: list[str] = []
        position = start + 1
        while (entry := _FLAT_ENTRY.match(self._text, position)) is not None:
            parts += entry[1], entry[2]
            position = entry.end()
            if entry["end"] is not None:
                break
        else:
            return None
        try:
            values = _PLAIN_JSON.decode(f"[{','.join(parts)}]")
        except ValueError:
            return None
        # A bracket inside a string can make two parts one value; each part has one, so all are objects if none is inside a string.
        object_count = sum(part[0] == "{" for part in parts)
        if len(values) != len(parts) or sum(type(value) is dict for value in values) != object_count:
            return None
        self._position = position
        return ObjectMap(list(zip(values[::2], values[1::2], strict=True)))

    def _flat_object(self, start: int) -> RocketMQObject | None:
        """Read an object without inner containers in one call, or return None where that does not work."""
        value: RocketMQObject
        try:
            if match := _FLAT_OBJECT.match(self._text, start):
                value = _PLAIN_JSON.decode(match[0])
            elif match := _FLAT_NUMBERS.match(self._text, start):
                quoted = _PLAIN_JSON.decode(_INTEGER_KEY.sub(r'"\1"', match[0]))
                value = {int(key): number for key, number in quoted.items()}
            else:
                return None
        except ValueError:
            return None
        self._position = match.end()
        return value

    def _ends(self, closer: str, wanted: str, *, is_first: bool) -> bool:
        """Consume the closing bracket (True) or the comma before the next entry (False)."""
        start = self._skip_white_space()
        current = self._text[start : start + 1]
        if current == closer:
            self._position = start + 1
            return True
        if not is_first:
            if current != ",":
                raise self._error(f"expected {wanted}, found {self._found(start)}", start)
            self._position = start + 1
        return False

    def _expect(self, character: str, wanted: str) -> None:
        start = self._skip_white_space()
        if not self._text.startswith(character, start):
            raise self._error(f"expected {wanted}, found {self._found(start)}", start)
        self._position = start + 1

    def _number(self, match: re.Match[str]) -> int | float:
        digits = match[_NUMBER]
        try:
            return int(digits)
        except ValueError:
            # Python turns at most some thousand digits into an integer.
            if digits.lstrip("-").isdecimal():
                raise self._error(
                    f"a number of {len(digits)} digits cannot be read", match.start(_NUMBER)
                ) from None
        try:
            return _finite_float(digits)
        except ValueError:
            raise self._error("a number is too large for a 64-bit float", match.start(_NUMBER)) from None

    def _unescaped(self, match: re.Match[str]) -> str:
        start = match.start(_ESCAPED)

        def character(escape: re.Match[str]) -> str:
            if escape["high"] is not None:
                return _joined(int(escape["high"], 16), int(escape["low"], 16))
            if escape["letter"] is not None:
                letter = _ESCAPED_LETTERS.get(escape["letter"])
                if letter is None:
                    raise self._error("a string holds an unknown escape", start + escape.start())
                return letter
            code = int(escape["unit"] or escape["byte"], 16)
            return _REPLACEMENT if 0xD800 <= code < 0xE000 else chr(code)  # noqa: PLR2004  # The surrogates.

        return _ESCAPE.sub(character, match[_ESCAPED])

    def _skip_white_space(self) -> int:
        match = _WHITE_SPACE.match(self._text, self._position)
        return self._position if match is None else match.end()

    def _found(self, position: int) -> str:
        return repr(self._text[position]) if position < len(self._text) else "the end of the text"

    def _bad_token(self, wanted: str) -> RocketMQJsonError:
        start = self._skip_white_space()
        if self._text.startswith('"', start):
            return self._error("a string does not end", start)
        return self._error(f"expected {wanted}, found {self._found(start)}", start)

    def _error(self, reason: str, position: int) -> RocketMQJsonError:
        return _error_at(self._text, position, reason)


_PATH_STEP: Final = re.compile(r"\[(?P<index>-?[0-9]{1,19}+)\]|\.(?P<name>(?:[^.\[\]\\]++|\\.)++)", re.DOTALL)
_PATH_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_NOTHING: Final = object()


class _References:
    """Replaces each ``$ref`` of one tree by what it refers to, sharing it."""

    def __init__(self, text: str, root: RocketMQValue) -> None:
        self._text = text
        self._root = root
        self._by_path: dict[str, RocketMQValue] = {}
        self._by_printed_key: dict[int, dict[str, RocketMQValue]] = {}

    def resolved(self) -> RocketMQValue:
        reference = _as_reference(self._root)
        if reference is not None:
            raise self._error("the whole text is a reference to itself", reference)
        for container in _containers_of(self._root):
            self._replace_in(container)
        self._check_size_and_depth()
        return self._root

    def _replace_in(self, container: RocketMQValue) -> None:
        if isinstance(container, dict):
            for name, value in container.items():
                container[name] = self._replaced(value)
        elif isinstance(container, list):
            for index, value in enumerate(container):
                container[index] = self._replaced(value)
        elif isinstance(container, ObjectMap):
            container._pairs = [(self._replaced_key(key), self._replaced(value)) for key, value in container]  # noqa: SLF001  # Only here is a map changed.

    def _replaced(self, value: RocketMQValue) -> RocketMQValue:
        reference = _as_reference(value)
        return value if reference is None else self._target(reference)

    def _replaced_key(self, key: RocketMQObject) -> RocketMQObject:
        reference = _as_reference(key)
        if reference is None:
            return key
        target = self._target(reference)
        if not isinstance(target, dict):
            raise self._error(f"a key refers to {reference.path!r}, which is {_name_of(target)}", reference)
        return target

    def _target(self, reference: _Reference) -> RocketMQValue:
        path = reference.path
        if path not in self._by_path:
            current = self._follow(reference)
            # fastjson writes an object where it first meets it, so a path always leads to the object itself.
            if current is _NOTHING or _as_reference(current) is not None:
                raise self._error(f"the reference {path!r} leads to nothing", reference)
            self._by_path[path] = cast("RocketMQValue", current)
        return self._by_path[path]

    def _follow(self, reference: _Reference) -> object:
        path = reference.path
        if path in ("$", "@", ".."):
            raise self._error(f"the reference {path!r} makes an object contain itself", reference)
        position = 1
        current: object = self._root
        while path.startswith("$") and position < len(path):
            step = _PATH_STEP.match(path, position)
            if step is None:
                return _NOTHING
            current = self._step(current, step)
            position = step.end()
        return current if path.startswith("$") else _NOTHING

    def _step(self, container: object, step: re.Match[str]) -> object:
        index = None if step["index"] is None else int(step["index"])
        if isinstance(container, list):
            return container[index] if index is not None and 0 <= index < len(container) else _NOTHING
        if index is not None:
            return container.get(index, _NOTHING) if isinstance(container, dict) else _NOTHING
        name = _PATH_ESCAPE.sub(r"\1", step["name"])
        if isinstance(container, dict):
            return container.get(name, _NOTHING)
        if isinstance(container, ObjectMap):
            if id(container) not in self._by_printed_key:
                self._by_printed_key[id(container)] = {_printed(key): value for key, value in container}
            return self._by_printed_key[id(container)].get(name, _NOTHING)
        return _NOTHING

    def _check_size_and_depth(self) -> None:
        """Refuse cycles, and trees that only sharing keeps small, before anyone walks them."""
        measured: dict[int, tuple[int, int]] = {}
        entered: set[int] = set()
        stack: list[tuple[RocketMQValue, bool]] = [(self._root, False)]
        while stack:
            container, is_done = stack.pop()
            identity = id(container)
            if identity in measured:
                continue
            children = _container_children(container)
            if not is_done:
                if identity in entered:
                    raise _error_at(self._text, 0, "references make an object contain itself")
                entered.add(identity)
                stack.append((container, True))
                stack += [(child, False) for child in children if id(child) not in measured]
                continue
            value_count = _entry_count(container) + sum(measured[id(child)][0] for child in children)
            depth = 1 + max((measured[id(child)][1] for child in children), default=0)
            if value_count > MAX_EXPANDED_VALUE_COUNT:
                reason = f"references make the text stand for more than {MAX_EXPANDED_VALUE_COUNT} values"
                raise _error_at(self._text, 0, reason)
            if depth > MAX_DEPTH:
                raise _error_at(self._text, 0, f"references nest deeper than {MAX_DEPTH} levels")
            measured[identity] = value_count, depth

    def _error(self, reason: str, reference: _Reference) -> RocketMQJsonError:
        return _error_at(self._text, reference.position, reason)


def _printed(key: RocketMQObject) -> str:
    """Return the Java ``toString`` of a ``MessageQueue``, which is how fastjson names an entry under an object key."""
    if _as_reference(key) is not None:
        return ""
    topic, broker_name, queue_id = (key.get(name) for name in ("topic", "brokerName", "queueId"))
    return f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"


def _container_children(container: RocketMQValue) -> list[RocketMQValue]:
    inner: list[RocketMQValue]
    if isinstance(container, dict):
        inner = list(container.values())
    elif isinstance(container, ObjectMap):
        inner = [part for pair in container for part in pair]
    elif isinstance(container, list):
        inner = container
    else:
        return []
    return [child for child in inner if isinstance(child, (dict, list, ObjectMap))]


def _entry_count(container: RocketMQValue) -> int:
    return len(container) if isinstance(container, (dict, list, ObjectMap)) else 1


def _containers_of(root: RocketMQValue) -> list[RocketMQValue]:
    """Return all containers of a tree in which nothing is shared yet."""
    containers = [root]
    for container in containers:  # Grows while it is walked: breadth first.
        containers += _container_children(container)
    return containers
