"""RocketMQ's JSON dialect is parsed correctly. Anything else is rejected with its position, in linear time."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_ledger.rocketmq import json as rocketmq_json
from rebalance_ledger.rocketmq.json import MAX_DEPTH, ObjectMap, RocketMQJsonError, loads
from tests.support.fastjson_text import LAYOUTS, values, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebalance_ledger.rocketmq.json import RocketMQValue

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = ROOT / "samples" / "exports"
WIRE_SAMPLES = Path(__file__).parents[1] / "data" / "wire_samples.jsonl"
QUEUE = {"brokerName": "broker-a", "queueId": 3, "topic": "TopicTest"}
QUEUE_TEXT = '{"brokerName":"broker-a","queueId":3,"topic":"TopicTest"}'


def real_payloads() -> Iterator[str]:
    """Yield every text of the sample in RocketMQ's dialect."""
    for file in sorted(EXPORTS.glob("*/*/*.jsonl")):
        if file.name != "broker_configs.jsonl":
            for line in file.read_text().splitlines():
                payload = json.loads(line).get("payload")
                if payload is not None:
                    yield payload
    for file in sorted(EXPORTS.glob("*/*/broker_files/*/*")):
        yield file.read_text()
    for line in WIRE_SAMPLES.read_text().splitlines():
        yield json.loads(line)["body"]


PAYLOADS = sorted(set(real_payloads()))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (" \t\r\n[1, 2.5, -0, 1e2] ", [1, 2.5, 0, 100.0]),
        ('{0:"127.0.0.1:10911"}', {0: "127.0.0.1:10911"}),
        ("{\n\t0:13,-1:14\n}", {0: 13, -1: 14}),
        ('{0:"integer","0":"name"}', {0: "integer", "0": "name"}),
        (f'{{"offsetTable":{{{QUEUE_TEXT}:12}}}}', {"offsetTable": ObjectMap([(QUEUE, 12)])}),
        (f"{{{QUEUE_TEXT}:1,{QUEUE_TEXT}:2}}", ObjectMap([(QUEUE, 1), (QUEUE, 2)])),
        ('{{"a":[{0:1}]}:{}}', ObjectMap([({"a": [{0: 1}]}, {})])),
        ('{\n\t"offsetTable":{}\n}', {"offsetTable": {}}),
        ('{\n\t"offsetTable":{\n\t\t\n\t}\n}', {"offsetTable": {}}),
        ('{"a":1,"a":2}', {"a": 2}),
        ("{7:1,7:2}", {7: 2}),
        ('{"a":"}","b":{0:1},"c":"{["}', {"a": "}", "b": {0: 1}, "c": "{["}),
        (r'{0:"\v\0\7\F\x41\'\/\u00e9"}', {0: "\v\0\7\fA'/é"}),
        ('{0:"tab\tand\x01 bare"}', {0: "tab\tand\x01 bare"}),
        ('["tab\tand\x01 bare"]', ["tab\tand\x01 bare"]),
        ("9223372036854775807", 2**63 - 1),
        ("{0:-9223372036854775808}", {0: -(2**63)}),
        ('{"$ref":1}', {"$ref": 1}),
        ('{"$ref":"$","x":1}', {"$ref": "$", "x": 1}),
    ],
)
def test_reads_the_dialect(text: str, value: RocketMQValue) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("", (1, 1), "the text is empty"),
        (" \n ", (1, 1), "the text is empty"),
        ("NaN", (1, 1), "expected a value, found 'N'"),
        ("[Infinity]", (1, 2), "expected a value, found 'I'"),
        ("1e999", (1, 1), "a number is too large for a 64-bit float"),
        ("[01]", (1, 3), "expected ',' or ']' after the element, found '1'"),
        ("[1,]", (1, 4), "expected a value, found ']'"),
        ('{"a":1,}', (1, 8), "expected a key"),
        ("{a:1}", (1, 2), "expected a key, found 'a'"),
        ("{'a':1}", (1, 2), 'expected a key, found "\'"'),
        ("{1.5:2}", (1, 2), "1.5 cannot be a key"),
        ("{[1]:2}", (1, 2), "expected a key"),
        ('{"a" 1}', (1, 6), "expected ':' after the key, found '1'"),
        ('{\n\t"a":1\n', (3, 1), "expected ',' or '}' after the value, found the end of the text"),
        ('{"a":1}\n{}', (2, 1), "the value has ended, but '{' follows"),
        ("{}\0", (1, 3), "the value has ended, but '\\x00' follows"),
        ('{0:"ab', (1, 4), "a string does not end"),
        (r'{0:"a\q"}', (1, 6), "a string holds an unknown escape"),
        (r'{0:"\u12"}', (1, 5), "a string holds an unknown escape"),
        ('{{"a":1}:1,"b":2}', (1, 12), "an object mixes object keys with other keys"),
        ('{"b":2,{"a":1}:1}', (1, 8), "an object mixes object keys with other keys"),
        ('{{{"a":1}:2}:3}', (1, 2), "a key that is an object must have names as its own keys"),
        ("9" * 5000, (1, 1), "a number of 5000 digits cannot be read"),
    ],
)
def test_says_what_is_wrong_and_where(text: str, where: tuple[int, int], reason: str) -> None:
    with pytest.raises(RocketMQJsonError) as caught:
        loads(text)
    assert (caught.value.line, caught.value.column) == where
    assert caught.value.reason == reason
    assert str(caught.value) == f"line {where[0]}, column {where[1]}: {reason}"


@given(values, st.sampled_from(LAYOUTS), st.booleans())
def test_reads_back_what_fastjson_writes(value: RocketMQValue, layout: str, escape_all: bool) -> None:  # noqa: FBT001
    assert loads(written(value, layout, escape_all=escape_all)) == value


_texts_with_brackets = st.text(alphabet='{}[]",:a\\', max_size=4)
_objects = st.dictionaries(_texts_with_brackets, st.integers() | _texts_with_brackets, min_size=1, max_size=3)


@given(st.lists(st.tuples(_objects, _objects | st.integers(0, 99)), min_size=1, max_size=4))
def test_a_map_of_objects_is_the_same_with_white_space_and_without(pairs: list[tuple[Any, Any]]) -> None:
    parts = [(json.dumps(key, separators=(",", ":")), json.dumps(value)) for key, value in pairs]
    compact = "{" + ",".join(f"{key}:{value}" for key, value in parts) + "}"
    spaced = "{ " + " , ".join(f"{key} : {value}" for key, value in parts) + " }"
    assert loads(compact) == ObjectMap(pairs)
    assert loads(spaced) == ObjectMap(pairs)


@given(values)
def test_keeps_the_types_of_keys_and_numbers(value: RocketMQValue) -> None:
    # repr distinguishes 1, 1.0 and True, which are equal.
    assert repr(loads(written(value, "compact"))) == repr(value)


_whole_texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | _whole_texts,
        lambda inner: st.lists(inner) | st.dictionaries(st.text('ref\\"{}[]0:, '), inner),
    )
)
def test_reads_plain_json_as_the_standard_library_does(value: RocketMQValue) -> None:
    text = json.dumps(value)
    assert loads(text) == value
    # The parser returns the same result as the fast path.
    assert rocketmq_json._Parser(text).parse() == value


def test_reads_every_payload_of_the_sample() -> None:
    assert len(PAYLOADS) > 500
    for payload in PAYLOADS:
        loads(payload)


def test_a_text_truncated_anywhere_is_an_error() -> None:
    payload = next(each for each in PAYLOADS if '"mqTable":{{' in each)
    for end in range(0, len(payload) - 1, 7):
        with pytest.raises(RocketMQJsonError):
            loads(payload[:end])


_edits = st.tuples(st.floats(0, 1), st.integers(0, 3), st.text('{}[]:,"\\u0$ref1.-e\n\ud800 ', max_size=4))


@settings(max_examples=400)
@given(
    st.sampled_from([each for each in PAYLOADS if len(each) < 4000]), st.lists(_edits, min_size=1, max_size=6)
)
def test_a_damaged_payload_is_read_or_refused_never_more(
    payload: str, edits: list[tuple[float, int, str]]
) -> None:
    for place, cut, inserted in edits:
        start = int(place * len(payload))
        payload = payload[:start] + inserted + payload[start + cut :]
    with contextlib.suppress(RocketMQJsonError):
        loads(payload)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{0:"' + "a" * 1_000_000, id="a string that does not end"),
        pytest.param('{0:"' + "\\a" * 500_000, id="escapes that do not end"),
        pytest.param("[" + " " * 1_000_000 + "x", id="white space"),
        pytest.param("[" + '{0:"{"},' * 100_000, id="brackets in strings"),
        pytest.param(
            "{0:" * 500 + '{"a":"}",0:"' + "x" * 1_000_000, id="deep, then a string that does not end"
        ),
        pytest.param("[" + '{"a":"}' * 100_000, id="objects that look flat"),
        pytest.param("[" * 1_000_000, id="brackets"),
        pytest.param("-" * 1_000_000, id="signs"),
        pytest.param("[" + "1" * 1_000_000, id="digits"),
    ],
)
def test_hostile_texts_are_refused_in_linear_time(text: str) -> None:
    with pytest.raises(RocketMQJsonError):
        loads(text)


@pytest.mark.parametrize(
    ("opening", "closing", "deepest"),
    [
        ("[", "]", MAX_DEPTH),
        ('{"a":', "}", MAX_DEPTH),
        ("{0:", "}", MAX_DEPTH),
        # The innermost key is one level deeper than its map.
        ('{{"k":1}:', "}", MAX_DEPTH - 1),
    ],
)
def test_nesting_is_bounded_equally_in_every_kind_of_container(
    opening: str, closing: str, deepest: int
) -> None:
    def nested(depth: int) -> str:
        return opening * depth + "1" + closing * depth

    loads(nested(deepest))
    with pytest.raises(RocketMQJsonError, match=f"nest deeper than {MAX_DEPTH} levels"):
        loads(nested(deepest + 1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'{0:"\uD83D\uDE00"}', {0: "😀"}),
        (r'"\ud800"', "\ufffd"),
        (r'"\udc00\ud800x"', "\ufffd\ufffdx"),
        (r'{"\ud800":{0:"\udfff"}}', {"\ufffd": {0: "\ufffd"}}),
        ('"\ud83d\ude00 and \ud83d"', "😀 and \ufffd"),
    ],
)
def test_half_a_surrogate_pair_becomes_the_replacement_character(text: str, value: RocketMQValue) -> None:
    read = loads(text)
    assert read == value
    json.dumps(read, ensure_ascii=False).encode()


class TestReferences:
    @pytest.mark.parametrize(
        ("shared", "path"),
        [
            ('{"brokerDatas":[{"b":1}],"x":%s}', "$.brokerDatas[0]"),
            ('{"table":{"hz@broker-a":{"b":1}},"x":%s}', r"$.table.hz\@broker\-a"),
            ('{"table":{"a.b\\\\c":{"b":1}},"x":%s}', r"$.table.a\.b\\c"),
            ('{"brokerAddrs":{0:{"b":1}},"x":%s}', "$.brokerAddrs[0]"),
            (
                f'{{"mqTable":{{{QUEUE_TEXT}:{{"b":1}}}},"x":%s}}',
                r"$.mqTable.MessageQueue\ \[topic\=TopicTest\,\ brokerName\=broker\-a\,\ queueId\=3\]",
            ),
        ],
    )
    def test_a_path_leads_to_the_same_object(self, shared: str, path: str) -> None:
        reference = json.dumps({"$ref": path})
        value = loads(shared % reference)
        assert isinstance(value, dict)
        holder = next(iter(value.values()))
        target = holder[0] if isinstance(holder, list) else next(each for _, each in holder.items())
        assert target == {"b": 1}
        assert value["x"] is target

    def test_a_reference_may_be_an_element_a_value_or_a_key(self) -> None:
        value = loads('{"q":{"a":1},"list":[{"$ref":"$.q"}],"map":{{"$ref":"$.q"}:{"$ref":"$.list"}}}')
        assert value == {"q": {"a": 1}, "list": [{"a": 1}], "map": ObjectMap([({"a": 1}, [{"a": 1}])])}

    def test_an_escaped_name_is_a_reference_too(self) -> None:
        assert loads(r'{"a":[1],"b":{"\u0024\u0072ef":"$.a"}}') == {"a": [1], "b": [1]}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ('{"a":{"$ref":"@"}}', "contain itself"),
            ('{"a":{"$ref":".."}}', "contain itself"),
            ('{"a":{"$ref":"$"}}', "contain itself"),
            ('{"a":[{"$ref":"$.a"}]}', "contain itself"),
            ('{"a":[{"$ref":"$.b"}],"b":[{"$ref":"$.a"}]}', "contain itself"),
            ('{"$ref":"$.a"}', "refers? to|reference to itself"),
            ('{"a":{"$ref":"$.b"}}', r"'\$\.b' leads to nothing"),
            ('{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}', "leads to nothing"),
            ('{"a":[1],"b":{"$ref":"$.a[1]"}}', "leads to nothing"),
            ('{"a":[1],"b":{"$ref":"$.a["}}', "leads to nothing"),
            ('{"a":[1],"b":{"$ref":"..a"}}', "leads to nothing"),
            ('{"a":1,"b":{{"$ref":"$.a"}:1}}', "which is a number"),
        ],
    )
    def test_what_cannot_be_a_tree_is_refused(self, text: str, reason: str) -> None:
        with pytest.raises(RocketMQJsonError, match=reason):
            loads(text)

    @pytest.mark.timeout(30)
    def test_a_text_that_doubles_itself_again_and_again_is_refused(self) -> None:
        steps = [f'"a{n}":[{{"$ref":"$.a{n - 1}"}},{{"$ref":"$.a{n - 1}"}}]' for n in range(1, 100)]
        with pytest.raises(RocketMQJsonError, match="stand for more than"):
            loads('{"a0":[1,2],' + ",".join(steps) + "}")

    @pytest.mark.timeout(30)
    def test_references_that_nest_what_they_refer_to_are_bounded(self) -> None:
        steps = [f'"a{n}":[{{"$ref":"$.a{n - 1}"}}]' for n in range(1, MAX_DEPTH + 1)]
        with pytest.raises(RocketMQJsonError, match="nest deeper"):
            loads('{"a0":[1],' + ",".join(steps) + "}")

    @pytest.mark.timeout(30)
    def test_many_references_into_one_big_map_are_followed(self) -> None:
        keys = [f'{{"brokerName":"b","queueId":{n},"topic":"T"}}' for n in range(20_000)]
        paths = [rf"$.m.MessageQueue \[topic=T, brokerName=b, queueId={n}\]" for n in range(20_000)]
        table = ",".join(f"{key}:[{n}]" for n, key in enumerate(keys))
        value = loads(f'{{"m":{{{table}}},"x":{json.dumps([{"$ref": path} for path in paths])}}}')
        assert isinstance(value, dict)
        assert value["x"] == [[n] for n in range(20_000)]


class TestObjectMap:
    def test_an_empty_map_comes_as_an_empty_dict(self) -> None:
        assert list(ObjectMap.of(loads("{}"))) == []
        assert ObjectMap.of(loads(f"{{{QUEUE_TEXT}:1}}")).items() == [(QUEUE, 1)]

    @pytest.mark.parametrize("text", ["[]", "null", '{"a":1}', '"{}"', "0"])
    def test_nothing_else_passes_for_one(self, text: str) -> None:
        with pytest.raises(TypeError, match=re.escape("expected a map with object keys")):
            ObjectMap.of(loads(text))
