"""Offset files are read and written as clients read and write them.

`tests/golden` contains the results of the Java and Go clients' own code, and `tests/differential` compares further cases.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_ledger.rocketmq.offset_files import (
    CHARSETS,
    Doubt,
    Empty,
    NoTable,
    OffsetKey,
    Offsets,
    Outcome,
    Refused,
    Source,
    Undecided,
    Verdict,
    canonical,
    read_offset_file,
    start_up,
    write_offset_file,
)
from rebalance_ledger.rocketmq.offset_files.releases import offset_format
from strategies import UnknownNameError
from tests.support import offset_file_cases as drawn
from tests.support.offset_file_checks import check_start, content, form
from tests.support.offset_file_examples import EVERY_CLIENT, EXAMPLES, QUEUE, RELEASES, Example, expected

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parents[1] / "golden"
SEED = 20261121
KEY = OffsetKey("T", "b", 0)
FILE = f'{{"offsetTable":{{{QUEUE}:7}}}}'.encode()
OTHER = f'{{"offsetTable":{{{QUEUE}:5}}}}'.encode()
CUT = FILE[:-9]
NULL_TABLE = b'{"offsetTable":null}'
# A reader that takes longer than this for a file of about 100 kB scans the same text repeatedly.
TIMEOUT_S = 20


def golden(family: str) -> Iterator[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_by(client: str, file: bytes) -> Outcome:
    if client == "GO":
        return read_offset_file(file, client_version="2.1.2", client_language="GO")
    return read_offset_file(file, client_version=client)


# Results of the clients' own code -----------------------------------------------------------------------------------


def test_files_are_read_as_java_read_them() -> None:
    verdicts = Counter[Verdict]()
    for case in golden("offsets_file"):
        if case["op"] == "read":
            for answer in case["expect"]:
                for version in answer["versions"]:
                    started = check_start(case, version, answer)
                    verdicts[started.verdict] += 1
                    if started.verdict is not Verdict.UNDECIDED:
                        asked = [started.table.get(OffsetKey(*queue), -1) for queue in case["ask"]]
                        assert asked == answer["read_from_store"], (case["id"], version)
                    else:
                        assert case["id"].startswith(("drawn-", "read-key-with-reference-")), (
                            "RocketMQ's own files are never undecided"
                        )
    assert verdicts[Verdict.UNDECIDED] < 100
    assert all(verdicts[verdict] > 500 for verdict in (Verdict.STORED, Verdict.DEFAULT, Verdict.FAILS))


def test_files_are_written_as_java_wrote_them() -> None:
    written = 0
    for case in golden("offsets_file"):
        if case["op"] == "write":
            for answer in case["expect"]:
                for version in answer["versions"]:
                    file = content(answer["main"])
                    if file is None or answer["main"] == case["main"]:
                        continue
                    read = read_offset_file(file, client_version=version)
                    assert isinstance(read, Offsets), (case["id"], version)
                    assert write_offset_file(read.table, client_version=version) == file, (
                        case["id"],
                        version,
                    )
                    written += 1
    assert written > 800


def test_files_are_read_and_written_as_go_did() -> None:
    outcomes = Counter[str]()
    for case in golden("go_offsets_file"):
        if "entry" in case:
            table = dict([go_entry(case["entry"])])
            file = write_offset_file(table, client_version="2.1.2", client_language="GO")
            assert file == base64.b64decode(case["written"]), case["id"]
            outcomes["written"] += 1
            continue
        read = read_by("GO", base64.b64decode(case["content"]))
        if case.get("refused"):
            assert isinstance(read, Refused), (case["id"], read)
        else:
            assert read == Offsets(dict(map(go_entry, case.get("table", [])))), case["id"]
        outcomes[type(read).__name__] += 1
    assert all(outcomes[kind] >= 200 for kind in ("written", "Offsets", "Refused"))


def go_entry(entry: dict[str, Any]) -> tuple[OffsetKey, int]:
    """Return an entry of a Go client's file. Its names are bytes, and invalid UTF-8 becomes surrogate escapes."""
    topic, broker = (
        base64.b64decode(entry[name] or "").decode("utf-8", "surrogateescape")
        for name in ("topic", "broker_name")
    )
    return OffsetKey(topic, broker, entry["queue_id"]), entry["offset"]


# Results of parsing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", EVERY_CLIENT)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.what)
def test_each_client_has_its_own_rules(example: Example, client: str) -> None:
    assert form(read_by(client, example.text.encode())) == expected(example, client)


@pytest.mark.parametrize(
    ("text", "doubt", "versions"),
    [
        ('{"offsetTable":{{"@type":"java.util.HashMap"}:7}}', Doubt.TYPE_NAME, ["4.7.1"]),
        ('{"x":{"@type":"com.example.Gone"},"offsetTable":{}}', Doubt.TYPE_NAME, []),
        ('{"offsetTable":{{"$ref":"$.x"}:7}}', Doubt.REFERENCE, ["4.7.1", "4.9.3", "4.9.7", "5.3.3"]),
        (f'{{"offsetTable":{{{QUEUE}:{{"$ref":"$"}}}}}}', Doubt.REFERENCE, ["5.5.0"]),
        ('{"offsetTable":{{"topic":{"a":1}}:7}}', Doubt.OBJECT, RELEASES),
        (f'{{"offsetTable":{{{QUEUE}:"2026-11-21 10:00:00"}}}}', Doubt.DATE, RELEASES),
        ('{"x":' + 200 * "[" + 200 * "]" + "}", Doubt.NESTING, EVERY_CLIENT),
    ],
)
def test_a_reading_that_depends_on_more_than_text_and_release_is_undecided(
    text: str, doubt: Doubt, versions: list[str]
) -> None:
    outcomes = {client: read_by(client, text.encode()) for client in EVERY_CLIENT}
    assert [client for client, read in outcomes.items() if read == Undecided(doubt)] == list(versions)
    assert sum(isinstance(read, Undecided) for read in outcomes.values()) == len(versions)


def test_a_duplicate_queue_keeps_its_first_position_and_its_last_offset() -> None:
    one, two = QUEUE, QUEUE.replace("0", "1")
    read = read_by("5.3.3", f'{{"offsetTable":{{{one}:1,{two}:2,{one}:3}}}}'.encode())
    assert isinstance(read, Offsets)
    assert list(read.table.items()) == [(KEY, 3), (OffsetKey("T", "b", 1), 2)]


def test_a_refused_file_has_a_reason() -> None:
    read = read_by("4.9.7", CUT)
    assert isinstance(read, Refused)
    assert read.reason


# Bytes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "charset", "file", "topic"),
    [
        ("4.9.7", "GBK", "中".encode("gbk"), "中"),
        ("4.9.7", "UTF-8", "中".encode("gbk"), "\ufffd\ufffd"),
        ("4.9.7", "ISO-8859-1", "é".encode("latin-1"), "é"),
        ("4.9.7", "windows-1252", b"\x80\x81", "€\ufffd"),
        ("4.9.7", "US-ASCII", b"\xc3\xa9", "\ufffd\ufffd"),
        ("4.9.7", "utf8", "é".encode(), "é"),
        # Since 5.0.0 the charset does not depend on the platform.
        ("5.0.0", "GBK", "中".encode(), "中"),
    ],
)
def test_before_5_bytes_are_in_the_platforms_charset(
    version: str, charset: str, file: bytes, topic: str
) -> None:
    whole = FILE.replace(b'"T"', b'"' + file + b'"')
    assert read_offset_file(whole, client_version=version, platform_charset=charset) == Offsets(
        {OffsetKey(topic, "b", 0): 7}
    )


@pytest.mark.parametrize(
    ("broken", "read"),
    [
        (b"\xff", "\ufffd"),
        (b"\xe4\xb8", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
    ],
)
def test_bytes_that_are_not_utf_8_become_question_marks_as_in_java(broken: bytes, read: str) -> None:
    outcome = read_by("5.3.3", FILE.replace(b'"T"', b'"' + broken + b'"'))
    assert outcome == Offsets({OffsetKey(read, "b", 0): 7})


def test_half_a_surrogate_pair_is_unchanged() -> None:
    for version in RELEASES:
        outcome = read_by(version, FILE.replace(b'"T"', rb'"\ud83d\ude00 \ud800"'))
        assert outcome == Offsets({OffsetKey("\U0001f600 \ud800", "b", 0): 7})


# Nothing makes a reader crash or hang --------------------------------------------------------------------------------


@pytest.mark.parametrize("client", EVERY_CLIENT)
def test_a_file_truncated_anywhere_is_read_or_refused(client: str) -> None:
    for cut in drawn.cut_short():
        assert isinstance(read_by(client, cut), Outcome)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(file=st.binary(max_size=200), client=st.sampled_from(EVERY_CLIENT))
def test_any_bytes_are_read_or_refused(file: bytes, client: str) -> None:
    assert isinstance(read_by(client, file), Outcome)


HOSTILE = {
    "arrays in arrays": b"[" * 100_000,
    "objects in objects": b'{"a":' * 20_000,
    "queues in queues": b'{"offsetTable":{' + b"{" * 100_000,
    "tables in tables": b'{"offsetTable":{' * 6_000,
    "queues in texts": b'{"offsetTable":{"' + b'{\\"topic\\":\\"' * 8_000,
    "one long number": b'{"offsetTable":{{}:' + b"9" * 100_000 + b"}}",
    "one long fraction": b'{"offsetTable":{{}:1.' + b"9" * 100_000 + b"}}",
    "a vast exponent": b'{"offsetTable":{{}:1e999999999}}',
    "a tiny exponent": b'{"offsetTable":{{"queueId":1e-999999999}:1}}',
    "a vast number that is not wanted": b'{"x":1e999999999,"y":' + b"9" * 100_000 + b"}",
    "one long name": b'{"offsetTable":{{"topic":"' + b"a" * 100_000,
    "escapes": b'{"offsetTable":{{"topic":"' + b"\\u0041" * 20_000 + b'"}:1}}',
    "comments": b"/**/" * 30_000 + b"{}",
    "stars of a comment": b"/*" + b"*" * 100_000,
    "blanks": b" " * 100_000,
    "references": b'{"offsetTable":{' + b'{"$ref":"$.x"}:1,' * 6_000 + b"}}",
    "references that are not wanted": b'{"x":[' + b'{"$ref":"$.x[5]"},' * 6_000 + b'0],"offsetTable":{}}',
    "types": b'{"x":[' + b'{"@type":"a.b"},' * 6_000 + b"0]}",
    "a member again and again": b"{" + b'"a":1,' * 10_000 + b'"offsetTable":{}}',
    "bytes that are no text": b"\xe4" * 100_000,
    "nearly what clients write": b'{"offsetTable":{' + b",".join([QUEUE.encode() + b":7"] * 2_000) + b"}",
}


@pytest.mark.parametrize("client", ["4.9.3", "4.9.7", "5.5.0", "GO"])
@pytest.mark.parametrize("file", HOSTILE.values(), ids=HOSTILE)
def test_time_and_stack_are_bounded(file: bytes, client: str) -> None:
    begin = time.process_time()
    assert isinstance(read_by(client, file), Outcome)
    assert time.process_time() - begin < TIMEOUT_S


# The fast path for files written by clients -------------------------------------------------------------------------


@pytest.mark.parametrize("version", RELEASES)
def test_the_fast_path_equals_the_step_by_step_reader(version: str) -> None:
    read_text = offset_format(version, "JAVA", "UTF-8").read_text
    assert read_text is not None
    at_once = 0
    for file in (*drawn.files(SEED, 0, 2_000), *drawn.with_a_flipped_bit()):
        text = file.decode(errors="replace")
        table = canonical.read(text)
        if table is not None:
            assert read_text(text) == Offsets(table), text
            at_once += 1
    assert at_once > 400


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3", "5.5.0"])
def test_files_written_by_clients_take_the_fast_path(version: str) -> None:
    table = {OffsetKey("TopicTest", "broker-中", number): number**9 for number in range(100)}
    assert canonical.read(write_offset_file(table, client_version=version).decode()) == table


# Selection of the file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("main", "bak", "verdict", "source", "offset"),
    [
        (FILE, OTHER, Verdict.STORED, Source.MAIN, 7),
        (FILE, CUT, Verdict.STORED, Source.MAIN, 7),
        (FILE, None, Verdict.STORED, Source.MAIN, 7),
        (CUT, OTHER, Verdict.STORED, Source.BAK, 5),
        (b"", OTHER, Verdict.STORED, Source.BAK, 5),
        (None, OTHER, Verdict.STORED, Source.BAK, 5),
        # A readable file is used even if it contains no offsets.
        (b"{}", OTHER, Verdict.DEFAULT, Source.MAIN, None),
        (b"null", OTHER, Verdict.DEFAULT, Source.MAIN, None),
        (NULL_TABLE, OTHER, Verdict.DEFAULT, Source.MAIN, None),
        (CUT, NULL_TABLE, Verdict.DEFAULT, Source.BAK, None),
        # Without a readable file, the client's settings decide.
        (None, None, Verdict.DEFAULT, None, None),
        (b"", b"", Verdict.DEFAULT, None, None),
        (CUT, None, Verdict.DEFAULT, None, None),
        (CUT, b"", Verdict.DEFAULT, None, None),
        # The .bak file is read last, and it throws.
        (CUT, CUT, Verdict.FAILS, Source.BAK, None),
        (b"", CUT, Verdict.FAILS, Source.BAK, None),
        (None, CUT, Verdict.FAILS, Source.BAK, None),
    ],
)
@pytest.mark.parametrize("version", RELEASES)
def test_the_file_that_a_client_starts_from(
    main: bytes | None,
    bak: bytes | None,
    verdict: Verdict,
    source: Source | None,
    offset: int | None,
    version: str,
) -> None:
    started = start_up(main, bak, client_version=version)
    assert (started.verdict, started.source, started.table.get(KEY)) == (verdict, source, offset)
    assert (started.main, started.bak) == tuple(
        None if file is None else read_by(version, file) for file in (main, bak)
    )


@pytest.mark.parametrize(
    ("main", "verdict", "source"),
    [
        (b'{"offsetTable":{"{\\"topic\\":\\"T\\"}":7}}', Verdict.STORED, Source.MAIN),
        (b'{"offsetTable":{}}', Verdict.DEFAULT, Source.MAIN),
        (FILE, Verdict.DEFAULT, None),
        (b"", Verdict.DEFAULT, None),
        (None, Verdict.DEFAULT, None),
    ],
)
def test_go_never_takes_the_bak_file_and_always_starts(
    main: bytes | None, verdict: Verdict, source: Source | None
) -> None:
    bak = b'{"offsetTable":{"{\\"topic\\":\\"T\\"}":5}}'
    started = start_up(main, bak, client_version="2.1.2", client_language="GO")
    assert (started.verdict, started.source) == (verdict, source)
    assert 5 not in started.table.values()


def test_an_undecided_file_leaves_the_start_undecided_unless_another_counts() -> None:
    doubtful = b'{"offsetTable":{{"topic":{}}:1}}'
    assert start_up(doubtful, OTHER, client_version="5.3.3").verdict is Verdict.UNDECIDED
    assert start_up(CUT, doubtful, client_version="5.3.3").verdict is Verdict.UNDECIDED
    assert start_up(FILE, doubtful, client_version="5.3.3").verdict is Verdict.STORED


@pytest.mark.parametrize(
    ("main", "bak", "reason"),
    [
        (FILE, None, "offsets.json holds 1 offsets"),
        (NULL_TABLE, None, "offsets.json holds no table"),
        (b"", None, "offsets.json is empty, and offsets.json.bak is missing"),
        (
            None,
            OTHER,
            "offsets.json is missing, so the client takes the other: offsets.json.bak holds 1 offsets",
        ),
    ],
)
def test_a_start_has_a_reason(main: bytes | None, bak: bytes | None, reason: str) -> None:
    assert start_up(main, bak, client_version="5.3.3").reason == reason


# Writing -------------------------------------------------------------------------------------------------------------

TABLE = {OffsetKey('T"\u2028\x01', "b", 3): 12, OffsetKey(None, "中", -1): -1}


@pytest.mark.parametrize(
    ("version", "language", "file"),
    [
        (
            "4.9.7",
            "JAVA",
            (
                '{\n\t"offsetTable":{'
                '{\n\t\t\t"brokerName":"b",\n\t\t\t"queueId":3,\n\t\t\t"topic":"T\\"\\u2028\\u0001"\n\t\t}:12,'
                '{\n\t\t\t"brokerName":"中",\n\t\t\t"queueId":-1\n\t\t}:-1'
                "\n\t}\n}"
            ),
        ),
        (
            "5.5.0",
            "JAVA",
            (
                '{\n\t"offsetTable":{'
                '\n\t\t{\n\t\t\t"brokerName":"b",\n\t\t\t"queueId":3,\n\t\t\t"topic":"T\\"\u2028\\u0001"\n\t\t}:12,'
                '\n\t\t{\n\t\t\t"brokerName":"中",\n\t\t\t"queueId":-1\n\t\t}:-1'
                "\n\t}\n}"
            ),
        ),
        (
            "2.1.2",
            "GO",
            (
                '{"offsetTable":{'
                r'"{\"topic\":\"T\\\"\\u2028\\u0001\",\"brokerName\":\"b\",\"queueId\":3}":12,'
                r'"{\"topic\":\"\",\"brokerName\":\"中\",\"queueId\":-1}":-1'
                "}}"
            ),
        ),
    ],
)
def test_the_layouts(version: str, language: str, file: str) -> None:
    assert write_offset_file(TABLE, client_version=version, client_language=language).decode() == file


@pytest.mark.parametrize("version", RELEASES)
def test_an_empty_table_has_its_own_layout(version: str) -> None:
    assert write_offset_file({}, client_version=version) == b'{\n\t"offsetTable":{}\n}'


NAMES = st.none() | st.text(max_size=8)
TABLES = st.dictionaries(
    st.builds(OffsetKey, NAMES, NAMES, st.integers(-(2**31), 2**31 - 1)),
    st.integers(-(2**63), 2**63 - 1),
    max_size=5,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(table=TABLES, version=st.sampled_from(RELEASES))
def test_a_client_reads_what_it_wrote(table: dict[OffsetKey, int], version: str) -> None:
    assert read_by(version, write_offset_file(table, client_version=version)) == Offsets(table)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(table=TABLES)
def test_go_reads_what_it_wrote_without_nulls(table: dict[OffsetKey, int]) -> None:
    file = write_offset_file(table, client_version="2.1.2", client_language="GO")
    named = {OffsetKey(key.topic or "", key.broker_name or "", key.queue_id): at for key, at in table.items()}
    assert read_by("GO", file) == Offsets(named)


@pytest.mark.parametrize("charset", CHARSETS)
def test_characters_missing_in_the_platform_charset_are_written_as_question_marks(charset: str) -> None:
    file = write_offset_file(
        {OffsetKey("é中\U0001f600", "b", 0): 7}, client_version="4.9.7", platform_charset=charset
    )
    kept = {"UTF-8": "é中\U0001f600", "GBK": "é中?", "US-ASCII": "???"}.get(charset, "é??")
    read = read_offset_file(file, client_version="4.9.7", platform_charset=charset)
    assert read == Offsets({OffsetKey(kept, "b", 0): 7})


@pytest.mark.parametrize(
    ("queue_id", "offset", "language"),
    [(2**31, 0, "JAVA"), (0, 2**63, "JAVA"), (2**63, 0, "GO"), (0, -(2**64), "GO")],
)
def test_a_number_that_no_client_has_is_not_written(queue_id: int, offset: int, language: str) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        write_offset_file(
            {OffsetKey("T", "b", queue_id): offset}, client_version="5.3.3", client_language=language
        )


# Invalid arguments --------------------------------------------------------------------------------------------------


def test_unknown_clients_are_named() -> None:
    with pytest.raises(UnknownNameError, match="banana"):
        read_offset_file(FILE, client_version="banana")
    with pytest.raises(UnknownNameError, match="COBOL"):
        read_offset_file(FILE, client_version="5.3.3", client_language="COBOL")
    with pytest.raises(ValueError, match="CPP"):
        read_offset_file(FILE, client_version="5.3.3", client_language="CPP")
    with pytest.raises(ValueError, match="EBCDIC"):
        read_offset_file(FILE, client_version="4.9.7", platform_charset="EBCDIC")


def test_an_empty_file_is_empty_for_every_client() -> None:
    assert {type(read_by(client, b"")) for client in EVERY_CLIENT} == {Empty}


def test_whether_a_null_table_has_an_object_around_it_is_kept() -> None:
    assert read_by("5.3.3", b"null") == NoTable(has_object=False)
    assert read_by("5.3.3", NULL_TABLE) == NoTable(has_object=True)
