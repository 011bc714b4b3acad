"""Malformed offset files, generated from a seed.

Belongs here: random inputs. Every file has its own generator, seeded by run and number, so that a single file can be
generated again. Does not belong here: the results of the clients.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING, Any

from rebalance_ledger.rocketmq.offset_files import OffsetKey, write_offset_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Gaps between tokens: blanks, characters that some lexers accept as blanks, comments, and end-of-input characters.
COMMON_GAPS = ["", "", "", "", " ", "\n\t", "\t"]
BLANKS = [" ", "\n", "\t", " \n\t", "\r\n", "\f", "\b"]
RARE_GAPS = [
    *["/* c */", "// c\n", "/**/", "//", "/*", "/"],
    *["\x00", "\x1f", "\x1a", "\x0b", "\x7f", "\x89", "\xa0", "\xc8", "\u3000", "\ufeff"],
]
GO_BLANKS = ["", " ", "\n", "\t", "\r"]
NAMES = [
    *["topic", "brokerName", "queueId", "offsetTable", "val", "andIncrement", "andDecrement"],
    *["Topic", "broker_name", "queue-id", "QUEUEID", "OffsetTable", "offset_table", "isTopic", "_topic"],
    *["topi", "topics", "tópic", "队列", "x", "a.b", "a b", "", "null", "$ref", "@type", "\x1a", "topic\x00"],
    *["\\u0074opic", "to\\pic", "broker\\u004eame", "\\x74opic", "queueI\\u0064", "queueId\\u0000"],
]
USUAL_STRINGS = ["T", "broker-a", "TopicTest", "7", "中文", "b@b"]
STRINGS = [
    *["T", "broker-a", "TopicTest", "%RETRY%g", "", "null", "NULL", "中文", "😀", "é", "it's", "true"],
    *["\uff11\uff12", "\\u4e2d", "\\ud83d\\ude00", "\\ud800", 'a\\"b', "\\n\\t\\\\", "\\/", "\\v\\0\\7"],
    *["\\f\\F\\r\\b", "\\\\", "\\x41", "\\xzz", "\\x4", "\\u00", "\\u+041"],
    *["\\u-001", "\\u00e9", "\\q", "\\@", "\\.", "\\ ", "\\"],
    *["a\x1ab", "\x00", "\x85", "\u2028", "\ufeff5", "\udc00", "a" * 70, "中" * 9, "ab\\u4e2dcd\\tef"],
    *["1", "1,000", "12,345,678", "a,b", "1,2", "5.0", "5.00", "5.", ".5", "-", "+7", "-3", "7L"],
    *["1e3", " 12 ", "01234567\\n", "2147483648", "9223372036854775807", "9223372036854775808"],
    *['{"topic":"T","queueId":1}', "{topic:'T',brokerName:'b',queueId:2}", "{", "[]", "{}"],
]
NUMBERS = [
    *["0", "1", "12", "-1", "-0", "00", "-00", "007", "+5", "+", "-", "--1", "1 2", "1-2", "1_000"],
    *["0x10", "٣", "5.7", "-5.7", "5.", "1.", ".5", "1.0", "-0.0", "1.2.3", "1.5e1", "0.1e1", "0.0000001"],
    *["123456789012.5", "1e3", "1E+2", "1e", "1e-2", "1e10", "5e0"],
    *["0e5", "-1e3", "123e-2", "1e18", "1e19", "2.5e9"],
    *["1e400", "1e-400", "1e99999999999", "5e00000000000000000001"],
    *["100000000000000000000e-5", "92233720368547758070e-1"],
    *["12L", "12S", "12B", "5F", "5D", "5.5D", "1e2F", "-L", "+L", "1.5L", "5.f", "7 L", "3e5L"],
    *["2147483647", "2147483648", "-2147483648", "-2147483649", "2147483648.5", "214748364.7", "21474836480"],
    *["3000000000", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808"],
    *["-9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999"],
    *["9223372036854775807.9", "9223372036854775808.5", "999999999999999999999999999999999999.9"],
    *["1" * 19, "1" * 39, "1" * 40, "1" * 50, "0." + "1" * 20],
]
WORDS = [
    *["true", "tru", "truee", "True", "true/**/", "T", "false", "fals", "falsey", "S", "N", "u"],
    *["null", "nul", "NULL", "Null", "nullx", "null/**/", "undefined", "NaN", "Infinity"],
    *["new", "new Date(5)", "newDate(5)", "x'AB'", "x'ABC'", "x''", "x"],
    *["Set", "Set[", "Set[1", "Set[]", "Set[1,2]", 'TreeSet[1,"a"]', "TreeSet[1,2]"],
]
REFERENCES = [
    *['"$ref":"$"', '"$ref":".."', '"$ref":"@"', '"$ref":"x"', '"$ref":""', '"$ref":5', '"$ref":"$","a":1'],
    *['"$ref":"$.offsetTable"', '"$ref":"$.offsetTable.null"', '"$ref":"$.null"', '"$ref":"$.x[0]"'],
    *['"$ref":"$.x"', '"$ref":".x"', '"$ref":"$..x"', "'$ref':'$'", '$ref:"$"', '"$ref" : "$"'],
]
TYPES = [
    '"@type":"java.util.HashMap"',
    # 4.9.3 and 5.3.3 use the target of the reference as a queue.
    '"@type":"java.util.HashMap","$ref":"$"',
    '"@type":"java.lang.String"',
    '"@type":"org.apache.rocketmq.common.message.MessageQueue"',
    '"@type":"org.apache.rocketmq.common.message.MessageQueue" ',
    '"@type":"org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper"',
    *['"@type":"com.foo.Bar"', '"@type":"FooException"', '"@type":"com.sun.rowset.JdbcRowSetImpl"'],
    *['"@type":"123"', '"@type":5', '"@type":null', '"@type":""', '"@type" : "x.y.Z"', "'@type':'ab'"],
]
BEHIND_THE_END = ["}", "x", ",", "null", '"', "[", "\x1a", "\x00", "//", "{}", "5"]
SOUP = "{}[]:,\"'\\/*-+.0123456789eELSBFDtrufalsn xXT@$\n\t\b\f\x00\x1a\xa0é中\ufeff"
NAME_PARTS = [
    *"aZ0-%@<>&|'\"\\/ \t\n\r\b\f\x00\x01\x1a\x1f\x7f\x80\x9f\xa0\xe9\u0130\u2028\u2029\u4e2d\ufeff\uffff\U0001f600",
    *["broker-", "%RETRY%", "\\u0041", "\ud800", "\udc00"],
]


def files(seed: int, start: int, stop: int) -> Iterator[bytes]:
    """Yield the generated files with these numbers."""
    for number in range(start, stop):
        yield _file(random.Random(f"offset file {seed} {number}"))  # noqa: S311  repeatable


def go_files(seed: int, start: int, stop: int) -> Iterator[bytes]:
    """Yield the generated files with these numbers in the layout of Go's client, whose queues are strings."""
    for number in range(start, stop):
        yield _go_file(random.Random(f"Go offset file {seed} {number}"))  # noqa: S311  repeatable


def entangled(seed: int, start: int, stop: int) -> Iterator[bytes]:
    """Yield files with an unused member that contains objects and arrays as names, and references to other places."""
    for number in range(start, stop):
        draw = random.Random(f"entangled {seed} {number}")  # noqa: S311  repeatable
        yield f'{{"offsetTable":{{}},"x":{_entangled(draw, 4)}}}'.encode()


def _entangled(draw: random.Random, depth: int) -> str:
    kind = draw.random()
    if not depth or kind < 0.25:
        return draw.choice(["1", '"a"', "null"])
    if kind < 0.5:
        return f'{{"$ref":"{draw.choice(["@", "@", "..", "..", "$", "$.x"])}"}}'
    inner = [_entangled(draw, depth - 1) for _ in range(draw.choice([1, 1, 2, 3]))]
    if kind < 0.65:
        return f"{draw.choice(['[', '[', 'Set[', 'Set{'])}{','.join(inner)}]"
    names = (draw.choice(['"a"', '"b"', _entangled(draw, depth - 1)]) for _ in inner)
    return "{" + ",".join(f"{name}:{value}" for name, value in zip(names, inner, strict=True)) + "}"


def cut_short() -> Iterator[bytes]:
    """Yield a file of each layout, cut off after each of its bytes."""
    for content in _written():
        yield from (content[:length] for length in range(len(content) + 1))


def with_a_flipped_bit() -> Iterator[bytes]:
    """Yield a file of each layout with each of its bits flipped."""
    for content in _written():
        for place in range(len(content)):
            for bit in range(8):
                yield content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def with_odd_bytes(seed: int, count: int) -> Iterator[bytes]:
    """Yield files of all layouts with a few non-ASCII bytes in their names."""
    for number in range(count):
        draw = random.Random(f"odd bytes {seed} {number}")  # noqa: S311  repeatable
        odd = bytes(
            draw.choice([draw.randrange(256), draw.randrange(128, 256)]) for _ in range(draw.randint(1, 6))
        )
        yield draw.choice(_written()).replace(b"T", b"T" + odd)


def tables(seed: int, count: int) -> Iterator[list[list[Any]]]:
    """Yield tables of `[topic, broker name, queue id, offset]`, with all characters that must be escaped."""
    for number in range(count):
        draw = random.Random(f"offset table {seed} {number}")  # noqa: S311  repeatable
        by_queue = {
            (_odd_name(draw), _odd_name(draw), _near(draw, 2**31)): _near(draw, 2**63)
            for _ in range(draw.choice([0, 1, 1, 2, 5]))
        }
        # A round trip through JSON joins two adjacent surrogates into the one character that they are in Java.
        yield json.loads(json.dumps([[*queue, offset] for queue, offset in by_queue.items()]))


def starts(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield pairs of main and backup file, as cases of the golden family `offsets_file`."""
    for number in range(count):
        draw = random.Random(f"offset files {seed} {number}")  # noqa: S311  repeatable
        main, bak = (_one_of_two(draw) for _ in range(2))
        yield {"id": f"start-{seed}-{number}", "op": "read", "main": main, "bak": bak, "ask": []}


def _one_of_two(draw: random.Random) -> dict[str, str] | None:
    if draw.random() < 0.15:
        return None
    content = draw.choice([*_WITHOUT_OFFSETS, *_written(), _file(draw), _file(draw)])
    return {"base64": b64encode(content).decode()}


@cache
def _written() -> tuple[bytes, ...]:
    """Return files as clients write them: one without and one with escapes, in each layout."""
    plain = {OffsetKey("TopicTest", "broker-a", 3): 12, OffsetKey("T", "br\u4e2d", 1): 13}
    escaped = {OffsetKey('a"\\\u2028', None, 0): -1}
    layouts = [("4.9.7", "JAVA"), ("5.5.0", "JAVA"), ("2.1.2", "GO")]
    return tuple(
        write_offset_file(table, client_version=version, client_language=language)
        for version, language in layouts
        for table in (plain, escaped, {})
    )


def _file(draw: random.Random) -> bytes:
    kind = draw.random()
    drawn = _Text(draw)
    if kind < 0.55:
        return _encoded(drawn.file())
    if kind < 0.65:
        return _some_layout(draw)
    if kind < 0.9:
        return _changed(draw, draw.choice(_written() + _HAND_MADE))
    if kind < 0.97:
        return _changed(draw, _encoded(drawn.file()))
    return _encoded("".join(draw.choices(SOUP, k=draw.randint(0, 40))))


def _go_file(draw: random.Random) -> bytes:
    kind = draw.random()
    if kind < 0.15:
        return _file(draw)
    blanks = GO_BLANKS if draw.random() < 0.8 else COMMON_GAPS + RARE_GAPS
    content = _encoded(_Text(draw, blanks).go_file())
    return content if kind < 0.7 else _changed(draw, content)


def _some_layout(draw: random.Random) -> bytes:
    """Draw a file as some client writes it, like nearly all real files."""
    table = {
        OffsetKey(
            draw.choice([*USUAL_STRINGS, "a\tb"]), draw.choice(USUAL_STRINGS), _near(draw, 2**31)
        ): _near(draw, 2**63)
        for _ in range(draw.randint(0, 6))
    }
    content = write_offset_file(table, client_version=draw.choice(["4.9.7", "5.5.0"]))
    return content if draw.random() < 0.7 else b"".join(content.split())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _odd_name(draw: random.Random) -> str | None:
    return None if draw.random() < 0.05 else "".join(draw.choices(NAME_PARTS, k=draw.randint(0, 5)))


def _near(draw: random.Random, power: int) -> int:
    return draw.choice([0, 1, -1, 7, power - 1, -power, draw.randrange(-power, power), draw.randrange(1000)])


def _changed(draw: random.Random, content: bytes) -> bytes:
    """Flip bits, drop, insert, change or repeat bytes, cut off the end, or insert a value anywhere."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 5])):
        if not changed:
            break
        place = draw.randrange(len(changed))
        kind = draw.random()
        if kind < 0.2:
            changed[place] ^= 1 << draw.randrange(8)
        elif kind < 0.35:
            del changed[place : place + draw.choice([1, 1, 2, 5])]
        elif kind < 0.6:
            changed[place:place] = _encoded(draw.choice(SOUP))
        elif kind < 0.75:
            changed[place] = ord(draw.choice(SOUP)) & 0x7F
        elif kind < 0.85:
            del changed[place:]
        elif kind < 0.93:
            start = draw.randrange(len(changed))
            changed[place:place] = changed[start : start + draw.randint(1, 20)]
        else:
            drawn = _Text(draw)
            some = draw.choice([drawn.number, drawn.string, drawn.name, drawn.value, drawn.queue, drawn.gap])
            changed[place:place] = _encoded(some())
    return bytes(changed)


class _Text:
    """Texts that mostly follow the grammar of the files."""

    def __init__(self, draw: random.Random, blanks: Sequence[str] | None = None) -> None:
        self._draw = draw
        self._blanks = blanks

    def file(self) -> str:
        if self._often(0.05):
            return self.value()
        name = (
            "offsetTable"
            if self._often(0.9)
            else self._one_of(["OffsetTable", "offset_table", "offsetTabl", "offset\\u0054able"])
        )
        members = [self._member(0.15)] if self._often(0.15) else []
        if self._often(0.02):
            members.append(self._one_of(REFERENCES + TYPES))
        if self._often(0.95):
            members.append(
                self.name(name) + self._colon() + (self.table() if self._often(0.92) else self.value())
            )
        if self._often(0.15):
            members.append(self._member(1))
        if self._often(0.03):
            members.append('"offsetTable":' + self.table())
        text = self.gap() + self._in_braces(members) + self.gap()
        if self._often(0.03):
            text += self._one_of(BEHIND_THE_END)
        if self._often(0.03):
            text = f"[{text}]"
        return f"\ufeff{text}" if self._often(0.02) else text

    def go_file(self) -> str:
        entries = [
            self._go_queue() + self._colon() + (self.number() if self._often(0.85) else self.value())
            for _ in range(self._one_of([0, 1, 1, 2, 3]))
        ]
        table = self._in_braces(entries)
        members = [self._member(1)] if self._often(0.3) else []
        name = (
            '"offsetTable"'
            if self._often(0.9)
            else self.name(self._one_of(["OFFSETTABLE", "offset\\u0054able", "offsettable", "x"]))
        )
        members.append(name + self._colon() + (table if self._often(0.95) else self.value()))
        if self._often(0.2):
            members.append(self._member(1))
        if self._often(0.05):
            members.append(f'"offsetTable":{table}')
        text = self.gap() + self._in_braces(members) + self.gap()
        return text + (self._one_of([*BEHIND_THE_END, "\x00x"]) if self._often(0.03) else "")

    def table(self) -> str:
        if self._often(0.02):
            return "{" + self._one_of(REFERENCES + TYPES) + self._closed("}")
        entries = [
            self.queue() + self._colon() + (self.number() if self._often(0.8) else self.value())
            for _ in range(self._one_of([0, 1, 1, 1, 2, 2, 3]))
        ]
        if self._often(0.02):
            entries.insert(0, self._one_of(TYPES))
        return self._in_braces(entries)

    def queue(self) -> str:
        kind = self._draw.random()
        if kind < 0.03:
            return self._object(0)
        if kind < 0.05:
            return self.string()
        if kind < 0.06:
            return self.value()
        if kind < 0.075:
            return "{" + self._one_of(REFERENCES + TYPES) + self._closed("}")
        fields = self._queue_fields(0.3)
        if self._often(0.02):
            fields.insert(self._draw.randint(0, len(fields)), self._one_of(REFERENCES + TYPES))
        text = self._in_braces(fields)
        if self._often(0.04):
            return json.dumps(text) if self._often(0.7) else f"'{text}'"
        return text

    def _go_queue(self) -> str:
        text = self._in_braces(self._queue_fields(0.2))
        if self._often(0.03):
            text += self._one_of(["\x00", " ", "x", "\x00x"])
        if self._often(0.03):
            return text
        quoted = json.dumps(text, ensure_ascii=self._often(0.5))
        return quoted.replace("\\u0000", "\x00") if self._often(0.3) else quoted

    def _queue_fields(self, shuffled: float) -> list[str]:
        order = ["brokerName", "queueId", "topic"]
        if self._often(shuffled):
            self._draw.shuffle(order)
        if self._often(0.1):
            order.append(self._one_of(order))
        fields = []
        for field in order:
            if self._often(0.05):
                continue
            name = self.name(field if self._often(0.9) else None)
            if not self._often(0.85):
                value = self.value(2)
            elif field != "queueId":
                value = self.string()
            else:
                value = str(self._draw.randint(0, 20)) if self._often(0.7) else self.number()
            fields.append(name + self._colon() + value)
            if self._often(0.05):
                fields.append(self._member(1, 1))
        return fields

    def name(self, name: str | None = None) -> str:
        name = self._one_of(NAMES) if name is None else name
        kind = self._draw.random()
        if kind < 0.9:
            return f'"{name}"'
        if kind < 0.95:
            return f"'{name}'"
        return name if kind < 0.997 else f'"{name}'

    def string(self) -> str:
        text = self._one_of(STRINGS if self._often(0.5) else USUAL_STRINGS)
        kind = self._draw.random()
        if kind < 0.85:
            return f'"{text}"'
        if kind < 0.98:
            return f"'{text}'"
        return text if kind < 0.995 else f'"{text}'

    def number(self) -> str:
        if self._often(0.8):
            return str(
                self._one_of([0, 1, 5, 12, 100, self._draw.randint(-5, 5), self._draw.randrange(2**63)])
            )
        return self._one_of(NUMBERS)

    def value(self, depth: int = 0) -> str:
        kind = self._draw.random()
        if kind < 0.35 or (depth > 3 and kind >= 0.72):
            return self.number()
        if kind < 0.6:
            return self.string()
        if kind < 0.72:
            return self._one_of(WORDS)
        if kind < 0.86:
            return self._object(depth + 1)
        if kind < 0.97:
            items = [self.value(depth + 1) for _ in range(self._one_of([0, 1, 1, 2, 3]))]
            return "[" + self._listed(items) + self._closed("]")
        return self.table()

    def gap(self) -> str:
        if self._blanks is not None:
            return self._one_of(self._blanks)
        if not self._often(0.08):
            return self._one_of(COMMON_GAPS)
        return self._one_of(RARE_GAPS if self._often(0.3) else BLANKS)

    def _object(self, depth: int) -> str:
        if self._often(0.08):
            more = f",{self._member(1, depth)}" if self._often(0.3) else ""
            return "{" + self.gap() + self._one_of(REFERENCES + TYPES) + more + self._closed("}")
        return self._in_braces([self._member(0.86, depth) for _ in range(self._one_of([0, 1, 1, 2, 3]))])

    def _member(self, named: float, depth: int = 0) -> str:
        """Draw a name, often replaced by something else, and a value."""
        if self._often(named):
            name = self.name()
        else:
            shapes: list[Callable[[], str]] = [self.number, self.name, lambda: self.value(depth + 1)]
            name = (
                self._one_of(shapes)()
                if depth >= 3
                else self._one_of([*shapes, lambda: self._object(depth + 1)])()
            )
        return name + self._colon() + self.value(depth + 1)

    def _in_braces(self, members: list[str]) -> str:
        return "{" + self._listed(members) + self._closed("}")

    def _listed(self, members: list[str]) -> str:
        text = ""
        for place, member in enumerate(members):
            if place:
                text += self.gap() + ("," if self._often(0.99) else self._one_of(["", ";", ",,", ":", " "]))
            text += self.gap() + member
        return text + ("," if self._often(0.04) else "") + self.gap()

    def _closed(self, bracket: str) -> str:
        return bracket if self._often(0.997) else self._one_of(["", "}", "]", 2 * bracket])

    def _colon(self) -> str:
        return self.gap() + (":" if self._often(0.998) else self._one_of(["", "=", "::", ","])) + self.gap()

    def _often(self, share: float) -> bool:
        return self._draw.random() < share

    def _one_of(self, things: Sequence[Any]) -> Any:
        return self._draw.choice(things)


_WITHOUT_OFFSETS = (b"", b"null", b'{"offsetTable":null}')
_HAND_MADE = (
    b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:0,{"queueId":1,"topic":"T"}:7}}',
    b'{"offsetTable":{"{\\"brokerName\\":\\"a\\",\\"queueId\\":1,\\"topic\\":\\"T\\"}":5}}',
    b'{"x":[1,{"a":"b"}],"offsetTable":{{"topic":"T","queueId":"3","brokerName":null}:"5"},"y":{"z":null}}',
)
