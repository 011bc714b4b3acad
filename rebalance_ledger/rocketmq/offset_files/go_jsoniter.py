r"""An offset file as the Go client reads it: `jsoniter.Unmarshal` 1.1.12 into `OffsetSerializeWrapper` (rocketmq-client-go 2.1.2).

Its file is `offset.json`, and its keys are strings that hold JSON. jsoniter reads bytes, does not mind the case of
names, and goes on after a mistake; what counts in the end is whether there was one.

Belongs here: bytes to table. Does not belong here: what the client does with a file that it cannot read (`start_up`).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.offset_files.java_values import LONG_MAX, LONG_MIN
from rebalance_ledger.rocketmq.offset_files.outcome import (
    Doubt,
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
"""Maximum nesting of ignored objects and arrays that is followed; jsoniter itself allows 10,000."""

_END: Final = -1
_BLANK: Final = re.compile(rb"[ \n\t\r]*")
_PLAIN_STRING: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_ANY_STRING: Final = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
_WHOLE: Final = re.compile(rb"0|[1-9][0-9]*")
_NUMBER_LETTERS: Final = re.compile(rb"[-+.eE0-9]*")
_SKIPPED_NUMBER: Final = re.compile(rb"[0-9]*(?:\.[0-9]+)?")
_FLOAT: Final = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NUMBER_ENDS: Final = frozenset(b",]} \t\n\r")
_DIGITS: Final = frozenset(b"0123456789")
_SURROGATES: Final = range(0xD800, 0xE000)
_HIGH_SURROGATES: Final = range(0xD800, 0xDC00)
_LOW_SURROGATES: Final = range(0xDC00, 0xE000)
_REPLACEMENT: Final = "\ufffd"
_ESCAPES: Final = {
    **{ord(letter): letter.encode() for letter in '"\\/'},
    ord("b"): b"\b",
    ord("f"): b"\f",
    ord("n"): b"\n",
    ord("r"): b"\r",
    ord("t"): b"\t",
}
_SAFE_TO_MULTIPLY: Final = (2**64 - 1) // 10 - 1
_MOST_FLOAT32: Final = (2 - 2**-24) * 2.0**127


def read(content: bytes) -> Outcome:
    """Return the result of reading a file.

    Names are bytes to Go. Where they are no UTF-8, each such byte becomes a surrogate, as `surrogateescape` does it.
    """
    try:
        return Offsets(_read_wrapper(content))
    except RefusedError as error:
        return Refused(str(error))
    except UndecidedError as error:
        return Undecided(error.doubt)


_FIELDS: Final = {name.lower(): name for name in ("offsetTable", "topic", "brokerName", "queueId")}


def _read_wrapper(content: bytes) -> dict[OffsetKey, int]:
    reader = _Reader(content)
    kept: dict[OffsetKey, int] = {}
    table = kept
    for name in reader.fields():
        if name != "offsetTable":
            reader.skip()
        elif reader.takes_null():
            # The client keeps the map that it made before, and what comes now goes into another.
            table = {}
        else:
            reader.read_table(table)
    reader.expect_end()
    return kept


def _read_queue(text: bytes) -> OffsetKey:
    reader = _Reader(text)
    names = {"topic": b"", "brokerName": b""}
    queue_id = 0
    for name in reader.fields():
        if name == "queueId":
            queue_id = reader.read_int64(queue_id)
        elif name in names:
            names[name] = reader.read_string()
        else:
            reader.skip()
    reader.expect_end()
    topic, broker = (names[name].decode("utf-8", "surrogateescape") for name in ("topic", "brokerName"))
    return OffsetKey(topic, broker, queue_id)


class _Reader:
    """`jsoniter.Iterator` over bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._head = 0
        self._depth = 0

    # Bytes ------------------------------------------------------------------------------------------------------------

    def _coming(self) -> int:
        """Return the next byte that is no blank, without consuming it."""
        match = _BLANK.match(self._content, self._head)
        self._head = len(self._content) if match is None else match.end()
        return self._content[self._head] if self._head < len(self._content) else _END

    def _next_token(self) -> int:
        token = self._coming()
        self._head += token != _END
        return token

    def _expect(self, word: bytes) -> None:
        if not self._content.startswith(word, self._head):
            raise RefusedError("a word is another than expected")
        self._head += len(word)

    def expect_end(self) -> None:
        """Expect blanks, and then the end; a zero byte counts as the end, whatever follows it."""
        if self._next_token() not in {_END, 0}:
            raise RefusedError("something follows the end")

    # Wanted -----------------------------------------------------------------------------------------------------------

    def fields(self) -> Iterator[str | None]:
        """`generalStructDecoder.Decode`: each field of an object, with its value next; None for a field of another name.

        There are none in `null`.
        """
        if self.takes_null():
            return
        if self._next_token() != ord("{"):
            raise RefusedError("an object does not begin with '{'")
        if self._coming() == ord("}"):
            self._head += 1
            return
        token = ord(",")
        while token == ord(","):
            # Go's capital I with a dot has a plain i as its small letter.
            name = self.read_string().decode("utf-8", "replace").replace("\u0130", "i").lower()
            if self._next_token() != ord(":"):
                raise RefusedError("a name is not followed by ':'")
            yield _FIELDS.get(name)
            token = self._next_token()
        if token != ord("}"):
            raise RefusedError("a value is followed by something else than ',' or '}'")

    def takes_null(self) -> bool:
        """`ReadNil`."""
        if self._coming() != ord("n"):
            return False
        self._expect(b"null")
        return True

    def read_table(self, table: dict[OffsetKey, int]) -> None:
        """`mapDecoder.Decode`."""
        if self._next_token() != ord("{"):
            raise RefusedError("the table is no object")
        if self._coming() == ord("}"):
            self._head += 1
            return
        token = ord(",")
        while token == ord(","):
            key = _read_queue(self.read_string())
            if self._next_token() != ord(":"):
                raise RefusedError("a queue is not followed by ':'")
            table[key] = self.read_int64(0)
            token = self._next_token()
        if token != ord("}"):
            raise RefusedError("an offset is followed by something else than ',' or '}'")

    def read_string(self) -> bytes:
        """`ReadString`: `null` is an empty string."""
        if self.takes_null():
            return b""
        if self._next_token() != ord('"'):
            raise RefusedError("a string does not begin with a quote")
        match = _PLAIN_STRING.match(self._content, self._head)
        end = self._head if match is None else match.end()
        if end < len(self._content) and self._content[end] < ord(" "):
            raise RefusedError("a string holds a control character")
        if end < len(self._content) and self._content[end] == ord('"'):
            start, self._head = self._head, end + 1
            return self._content[start:end]
        return self._read_to_quote()

    def _read_to_quote(self) -> bytes:
        """`readStringSlowPath`, where control characters may stand."""
        match = _ANY_STRING.match(self._content, self._head)
        end = len(self._content) if match is None else match.end()
        if end >= len(self._content) or self._content[end] != ord('"'):
            raise RefusedError("a string does not end")
        raw = self._content[self._head : end]
        self._head = end + 1
        return _unescaped(raw)

    def read_int64(self, default: int) -> int:
        """`ReadInt64`: `null` leaves what was there."""
        if self.takes_null():
            return default
        is_negative = self._coming() == ord("-")
        self._head += is_negative
        match = _WHOLE.match(self._content, self._head)
        if match is None:
            raise RefusedError("a number is expected")
        self._head = match.end()
        magnitude = _uint64(match[0])
        if self._head < len(self._content) and self._content[self._head] == ord("."):
            raise RefusedError("a number has a fraction")
        number = -magnitude if is_negative else magnitude
        if not LONG_MIN <= number <= LONG_MAX:
            raise RefusedError("a number is out of range")
        return number

    # Not wanted -------------------------------------------------------------------------------------------------------

    def skip(self) -> None:
        """`Skip`."""
        token = self._coming()
        if token == ord('"'):
            self.read_string()
        elif token in {ord("{"), ord("[")}:
            self._head += 1
            self._skip_container(token)
        elif token == ord("0"):
            self._read_float(is_float32=True)
        elif token == ord("-") or token in _DIGITS:
            self._skip_number()
        else:
            word = {ord("n"): b"null", ord("t"): b"true", ord("f"): b"false"}.get(token)
            if word is None:
                raise RefusedError("a value is expected")
            self._expect(word)

    def _skip_container(self, opening: int) -> None:
        close = ord("}") if opening == ord("{") else ord("]")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UndecidedError(Doubt.NESTING)
        token = self._coming()
        if token == close:
            self._head += 1
        else:
            if opening == ord("{") and token != ord('"'):
                raise RefusedError("a name does not begin with a quote")
            token = ord(",")
            while token == ord(","):
                if opening == ord("{"):
                    self.read_string()
                    if self._next_token() != ord(":"):
                        raise RefusedError("a name is not followed by ':'")
                self.skip()
                token = self._next_token()
            if token != close:
                raise RefusedError("an object or array does not end")
        self._depth -= 1

    def _skip_number(self) -> None:
        """`skipNumber`: a quick look, and what it cannot judge is read in two other ways."""
        start = self._head
        match = _SKIPPED_NUMBER.match(self._content, start + 1)
        end = start + 1 if match is None else match.end()
        following = self._content[end] if end < len(self._content) else _END
        if following == ord("."):
            if end + 1 < len(self._content):
                raise RefusedError("a number has a second point, or no digit behind it")
        elif following in _NUMBER_ENDS and end > start + 1:
            self._head = end
            return
        self._head = start + (self._content[start] == ord("-"))
        try:
            self._read_float(is_float32=False)
        except RefusedError:
            self._read_big_float()

    def _read_float(self, *, is_float32: bool) -> None:
        """`readPositiveFloat64`; on a mistake that it sees at once, nothing moves."""
        first = self._content[self._head : self._head + 1]
        if first == b"." or (first and first[0] in b",]} \t\n"):
            raise RefusedError("a number has no digits")
        if first == b"0" and self._content[self._head + 1 : self._head + 2].isdigit():
            raise RefusedError("a number begins with 0")
        text = self._number_letters()
        point = text.find(b".")
        if text[:1] == b"-" or (point >= 0 and not text[point + 1 : point + 2].isdigit()):
            raise RefusedError("a number is malformed")
        if _FLOAT.fullmatch(text) is None:
            raise RefusedError("a number is malformed")
        value = float(text)
        if math.isinf(value) or (is_float32 and abs(value) >= _MOST_FLOAT32):
            raise RefusedError("a number is out of range")

    def _read_big_float(self) -> None:
        if _FLOAT.fullmatch(self._number_letters()) is None:
            raise RefusedError("a number is malformed")

    def _number_letters(self) -> bytes:
        match = _NUMBER_LETTERS.match(self._content, self._head)
        text = b"" if match is None else match[0]
        self._head += len(text)
        return text


def _uint64(digits: bytes) -> int:
    """`readUint64`, which does not see every overflow."""
    value = 0
    for place, letter in enumerate(digits):
        multiplied = value * 10 + letter - ord("0")
        if place and value > _SAFE_TO_MULTIPLY:
            multiplied %= 2**64
            if multiplied < value:
                raise RefusedError("a number is out of range")
        value = multiplied
    return value


def _unescaped(raw: bytes) -> bytes:
    parts: list[bytes] = []
    place = 0
    while (backslash := raw.find(b"\\", place)) >= 0:
        parts.append(raw[place:backslash])
        letter = raw[backslash + 1]
        place = backslash + 2
        if letter != ord("u"):
            if letter not in _ESCAPES:
                raise RefusedError("an escape is no character")
            parts.append(_ESCAPES[letter])
            continue
        unit = _hex4(raw, place)
        place += 4
        if unit in _SURROGATES and raw[place : place + 2] == b"\\u":
            second = _hex4(raw, place + 2)
            place += 6
            if unit in _HIGH_SURROGATES and second in _LOW_SURROGATES:
                parts.append(chr(0x10000 + ((unit - 0xD800) << 10) + second - 0xDC00).encode())
                continue
            parts.append(_rune(unit))
            unit = second
        parts.append(_rune(unit))
    parts.append(raw[place:])
    return b"".join(parts)


def _rune(unit: int) -> bytes:
    return (_REPLACEMENT if unit in _SURROGATES else chr(unit)).encode()


def _hex4(raw: bytes, place: int) -> int:
    digits = raw[place : place + 4]
    if re.fullmatch(rb"[0-9a-fA-F]{4}", digits) is None:
        raise RefusedError("an escape is no character")
    return int(digits, 16)
