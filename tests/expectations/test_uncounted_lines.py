"""Repeated and rejected lines in silver equal those of the export."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from expectations.suites import uncounted_lines
from expectations.suites.metrics import METRIC_STATEMENTS
from rebalance_ledger.exports.contract import KIND_BY_NAME, parse_envelope
from rebalance_ledger.exports.payloads import PayloadError, facts
from tests.support.staged_day import StagedDay
from tests.support.staged_export import failure, line

if TYPE_CHECKING:
    from tests.support.staged_day import Row


[STATEMENT] = [
    text for text in METRIC_STATEMENTS if f"'{uncounted_lines.TEXT_EQUALS.expectation_id}'" in text
]
KIND = "consumer_connection"
PLAIN = '{"connectionSet":[]}'
OTHER = '{"connectionSet":[{"clientId":"c1"}]}'
LineState = tuple[int | None, bool | None]
"""`counted_line` and `is_repeat` of a line."""

REPEATS: dict[str, tuple[list[str], list[LineState], bool]] = {
    # The contents of three lines, each a second newer than the previous one; their states in silver; whether these are wrong.
    "two_repeats": ([PLAIN, PLAIN, PLAIN], [(3, True), (3, True), (None, None)], False),
    "one_of_another_content": ([OTHER, PLAIN, PLAIN], [(3, False), (3, True), (None, None)], False),
    "none_is_a_repeat": ([OTHER, OTHER, PLAIN], [(3, False), (3, False), (None, None)], False),
    "a_repeat_is_not_told": ([PLAIN, PLAIN, PLAIN], [(3, True), (3, False), (None, None)], True),
    "another_content_told_as_a_repeat": ([OTHER, PLAIN, PLAIN], [(3, True), (3, True), (None, None)], True),
    "an_answer_counts_before_a_newer_failure": (
        [PLAIN, PLAIN, "no answer"],
        [(2, True), (None, None), (2, False)],
        False,
    ),
    "not_online_is_an_answer": (
        [PLAIN, PLAIN, "CODE: 206  DESC: not online"],
        [(3, False), (3, False), (None, None)],
        False,
    ),
    "secrets_may_be_what_differs": (
        ['{"secretKey":"a"}', '{"secretKey":"b"}', '{"secretKey":"c"}'],
        [(3, True), (3, True), (None, None)],
        False,
    ),
}


def with_repeats(day: StagedDay, name: str, contents: list[str], line_states: list[LineState]) -> None:
    assert day.export is not None
    for number, (content, (counted_line, is_repeat)) in enumerate(
        zip(contents, line_states, strict=True), start=1
    ):
        instant = f"2026-11-16T01:00:0{number}Z"
        is_payload = content.startswith("{")
        asked = {"group": name, "broker": "a", "captured_at": instant}
        day.export.append(line(KIND, content, **asked) if is_payload else failure(KIND, content, **asked))
        day.add(
            "export_record",
            kind=KIND,
            file=f"{name}.jsonl",
            line_number=number,
            captured_at=instant,
            broker_name="a",
            consumer_group=name,
            state="payload" if is_payload else "error",
            counted_line=counted_line,
            is_repeat=is_repeat,
        )


def with_rejected(
    day: StagedDay, name: str, in_export: Row, text: str, reason: str = "the line is empty; remove it"
) -> None:
    assert day.export is not None
    day.export.append(in_export)
    of = {"kind": in_export["kind"], "file": f"{name}.jsonl", "line_number": 1}
    day.add("export_record", **of, state="rejected")
    day.add("rejected_record", **of, reason=reason, text=text)


REJECTED: dict[str, tuple[Row, str, bool]] = {
    "a_line_that_is_no_envelope": ({"kind": "torn", "value": "{torn"}, "{torn", False),
    "a_payload": (line("nameserver_route", "[1]", topic="t"), "[1]", False),
    "a_text_without_its_secret": (
        {"kind": "torn", "value": '{"secretKey":"s"'},
        '{"secretKey":"<redacted>"',
        False,
    ),
    "a_text_of_no_line": ({"kind": "torn", "value": "{torn}"}, "{worn", True),
    "a_text_of_another_kind": ({"kind": "broken", "value": "{broken"}, "{torn", True),
}


ROUTE: Final = '{"brokerDatas":[{"brokerName":1}]}'
CONSUMED: Final = '{"offsetTable":{"1":2}}'
REASONS: dict[str, tuple[str, str, str, bool]] = {
    # The kind of the line, its payload, the reason in silver, and whether this reason is wrong.
    "of_a_value": (
        "nameserver_route",
        ROUTE,
        "the payload.brokerDatas[0].brokerName is an integer where a string is expected",
        False,
    ),
    "of_a_missing_field": (
        "nameserver_route",
        '{"brokerDatas":[{}]}',
        "the payload.brokerDatas[0].brokerName is missing",
        False,
    ),
    "of_a_field_that_is_not_there": (
        "nameserver_route",
        ROUTE,
        "the payload.queueDatas[0].perm is a string where an integer is expected",
        True,
    ),
    "of_a_place": ("nameserver_route", "{\n]", "line 2, column 1: expected a key", False),
    "of_a_place_beyond": ("nameserver_route", "{]", "line 2, column 1: expected a key", True),
    "of_its_own_line": (
        "nameserver_route",
        ROUTE,
        "lines 1, 4 answer one question at one instant and differ, so none of them counts",
        False,
    ),
    "of_other_lines": (
        "nameserver_route",
        ROUTE,
        "lines 3, 14 answer one question at one instant and differ, so none of them counts",
        True,
    ),
    "of_no_parser": ("nameserver_route", ROUTE, "something is odd", True),
}
BROKEN: Final = {
    "nameserver_route": (
        ROUTE,
        '{"queueDatas":[{"brokerName":"a","perm":9999999999}]}',
        "[1]",
        "{",
        '"x"',
        "{torn",
        "",
    ),
    "consume_stats": (CONSUMED, '{"offsetTable":{{"topic":"t"}:{}}}', '{"offsetTable":[]}'),
    "nameserver_cluster_info": (
        '{"brokerAddrTable":{"a":{"brokerAddrs":{"x":"y"}}}}',
        '{"brokerAddrTable":{"a.b c":{"brokerAddrs":{"0":1}}}}',
    ),
    "broker_topic_stats": (
        '{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"u"}:{"minOffset":2,"maxOffset":1}}}',
    ),
    "broker_message_request_mode": ('{"t":[]}', '{"t":{"g":{"mode":1}}}'),
    "consumer_status": ('{"consumerTable":{"c":{"1":2}}}', '{"consumerTable":[]}'),
}
"""Kind of a line -> payloads that cannot be parsed."""


def reasons_of_parser() -> list[tuple[str, str, str]]:
    """Return the kind, payload and reason of each payload of `BROKEN` that the parser rejects."""
    found = []
    for kind, payloads in BROKEN.items():
        for payload in payloads:
            fields = dict.fromkeys(KIND_BY_NAME[kind].keys, "name") | {"kind": kind, "cluster": "c"}
            envelope = parse_envelope(
                json.dumps(fields | {"captured_at": "2026-11-16T01:00:00Z", "payload": payload}), kind
            )
            try:
                list(facts(envelope))
            except PayloadError as error:
                found.append((kind, payload, str(error)))
    return found


@pytest.fixture(scope="module")
def examples() -> dict[str, str]:
    """Return expectation -> its examples, joined to one text."""
    day = StagedDay(export=[])
    for name, (contents, line_states, _) in REPEATS.items():
        with_repeats(day, name, contents, line_states)
    for name, (in_export, text, _) in REJECTED.items():
        with_rejected(day, name, in_export, text)
    for name, (kind, payload, reason, _) in REASONS.items():
        with_rejected(day, name, line(kind, payload, topic="t"), payload, reason)
    for number, (kind, payload, reason) in enumerate(reasons_of_parser()):
        with_rejected(day, f"parser_{number}", line(kind, payload, topic="t"), payload, reason)
    measured: list[dict[str, Any]] = day.measure((STATEMENT,))
    return {row["expectation_id"]: "\n".join(row["examples"]) for row in measured}


@pytest.mark.parametrize("name", REPEATS)
def test_repeated_lines_equal_those_of_the_export(name: str, examples: dict[str, str]) -> None:
    is_wrong = f"file {name}.jsonl," in examples[uncounted_lines.REPEATS_EQUAL.expectation_id]

    assert is_wrong == REPEATS[name][2]


@pytest.mark.parametrize("name", REJECTED)
def test_a_rejected_text_is_in_the_export(name: str, examples: dict[str, str]) -> None:
    is_wrong = f"file {name}.jsonl," in examples[uncounted_lines.TEXT_EQUALS.expectation_id]

    assert is_wrong == REJECTED[name][2]


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_about_the_text_that_was_rejected(name: str, examples: dict[str, str]) -> None:
    is_wrong = f"file {name}.jsonl," in examples[uncounted_lines.REASON_FITS_TEXT.expectation_id]

    assert is_wrong == REASONS[name][3]


def test_reasons_of_the_parser_are_about_their_texts(examples: dict[str, str]) -> None:
    assert len(reasons_of_parser()) > 10
    assert "parser_" not in examples[uncounted_lines.REASON_FITS_TEXT.expectation_id]
