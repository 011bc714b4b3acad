"""Repeated and rejected lines in silver equal those of the export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites import odd_lines
from expectations.suites.metrics import METRIC_STATEMENTS
from tests.support.staged_day import StagedDay
from tests.support.staged_export import failure, line

if TYPE_CHECKING:
    from tests.support.staged_day import Row


[STATEMENT] = [text for text in METRIC_STATEMENTS if f"'{odd_lines.TEXT_EQUALS.expectation_id}'" in text]
KIND = "consumer_connection"
PLAIN = '{"connectionSet":[]}'
OTHER = '{"connectionSet":[{"clientId":"c1"}]}'
Told = tuple[int | None, bool | None]
"""counted_line and is_repeat of a line."""

REPEATS: dict[str, tuple[list[str], list[Told], bool]] = {
    # Contents of three lines, each a second newer than the one before; what silver says of them; whether it is wrong.
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


def with_repeats(day: StagedDay, name: str, contents: list[str], told: list[Told]) -> None:
    assert day.export is not None
    for number, (content, (counted_line, is_repeat)) in enumerate(zip(contents, told, strict=True), start=1):
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


def with_rejected(day: StagedDay, name: str, in_export: Row, text: str) -> None:
    assert day.export is not None
    day.export.append(in_export)
    of = {"kind": in_export["kind"], "file": f"{name}.jsonl", "line_number": 1}
    day.add("export_record", **of, state="rejected")
    day.add("rejected_record", **of, reason="torn", text=text)


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


@pytest.fixture(scope="module")
def examples() -> dict[str, str]:
    """Expectation -> its examples, as one text."""
    day = StagedDay(export=[])
    for name, (contents, told, _) in REPEATS.items():
        with_repeats(day, name, contents, told)
    for name, (in_export, text, _) in REJECTED.items():
        with_rejected(day, name, in_export, text)
    measured: list[dict[str, Any]] = day.measure((STATEMENT,))
    return {row["expectation_id"]: "\n".join(row["examples"]) for row in measured}


@pytest.mark.parametrize("name", REPEATS)
def test_repeats_are_those_of_the_export(name: str, examples: dict[str, str]) -> None:
    is_wrong = f"file {name}.jsonl," in examples[odd_lines.REPEATS_EQUAL.expectation_id]

    assert is_wrong == REPEATS[name][2]


@pytest.mark.parametrize("name", REJECTED)
def test_a_rejected_text_is_one_of_the_export(name: str, examples: dict[str, str]) -> None:
    is_wrong = f"file {name}.jsonl," in examples[odd_lines.TEXT_EQUALS.expectation_id]

    assert is_wrong == REJECTED[name][2]
