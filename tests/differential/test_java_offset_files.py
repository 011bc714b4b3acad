"""Offset files are read, selected and written in the same way as by RocketMQ's own classes of each release."""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.rocketmq.offset_files import (
    OffsetKey,
    Undecided,
    Verdict,
    read_offset_file,
    write_offset_file,
)
from tests.support import offset_file_cases as drawn
from tests.support.offset_file_checks import check_start, form, java_form
from tests.support.offset_file_examples import EXAMPLES
from tools.rocketmq_java.gateway import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.rocketmq_java.gateway import RocketMQ

pytestmark = pytest.mark.differential

SHOWN_AT_MOST = 5
FILES_AT_ONCE = 10_000
# Files written by a client are never undecided. Few of the deliberately unusual random files may be.
UNDECIDED_AT_MOST = 0.03
# In CPU time. A reader that scans the same text repeatedly is far slower.
SLOWEST_S = 1


class Compared:
    """Counts and the first differences of a run."""

    def __init__(self) -> None:
        self.files = 0
        self.by_outcome = Counter[str]()
        self.wrong: list[str] = []
        self.slowest_s = 0.0

    def compare(self, release: RocketMQ, contents: Sequence[bytes], platform_charset: str = "UTF-8") -> None:
        parsed = release.parse_offset_files(contents)
        for content, theirs in zip(contents, parsed, strict=True):
            begin = time.process_time()
            outcome = read_offset_file(
                content, client_version=release.version, platform_charset=platform_charset
            )
            self.slowest_s = max(self.slowest_s, time.process_time() - begin)
            self.files += 1
            self.by_outcome[type(outcome).__name__] += 1
            if not isinstance(outcome, Undecided) and form(outcome) != java_form(theirs):
                self.wrong.append(f"{release.version} {content!r}\n  Java: {theirs}\n  here: {outcome}")

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {count}" for name, count in self.by_outcome.most_common())
        return (
            f"{self.files} files read: {outcomes}; {len(self.wrong)} wrong; "
            f"slowest {1000 * self.slowest_s:.0f} ms"
        )


def test_generated_files_are_read_as_in_java(
    releases: list[RocketMQ], seed: int, case_count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = time.monotonic()
    compared = Compared()
    everything = chain(
        (example.text.encode() for example in EXAMPLES),
        drawn.cut_short(),
        drawn.with_a_flipped_bit(),
        drawn.files(seed, 0, case_count),
        drawn.go_files(seed, 0, case_count // 10),
        drawn.entangled(seed, 0, case_count // 10),
    )
    for contents in batches(everything):
        for release in releases:
            compared.compare(release, contents)
    with capsys.disabled():
        print(f"\noffset files: {compared}; seed {seed}; {time.monotonic() - begin:.0f} s")  # noqa: T201  a run's result
    assert not compared.wrong, f"LEDGER_SEED={seed}:\n" + "\n".join(compared.wrong[:SHOWN_AT_MOST])
    assert compared.files >= case_count * len(releases)
    assert compared.by_outcome["Undecided"] <= UNDECIDED_AT_MOST * compared.files
    assert compared.slowest_s < SLOWEST_S


def test_the_start_file_is_selected_as_in_java(releases: list[RocketMQ], seed: int, case_count: int) -> None:
    cases = list(drawn.starts(seed, case_count // 10))
    verdicts = Counter[Verdict]()
    for release in releases:
        for case, answer in zip(cases, release.answer("offsets_file", cases), strict=True):
            assert answer is not None
            verdicts[check_start(case, release.version, answer).verdict] += 1
    assert all(
        verdicts[verdict] > len(cases) // 10 for verdict in Verdict if verdict is not Verdict.UNDECIDED
    )


def test_files_are_written_as_in_java(releases: list[RocketMQ], seed: int, case_count: int) -> None:
    tables = list(drawn.tables(seed, case_count // 5))
    for release in releases:
        for entries, file in release.write_offset_files(tables):
            check_written(entries, file, release.version)


@pytest.mark.parametrize(
    ("version", "charset"),
    [
        *[("4.9.7", charset) for charset in ("GBK", "ISO-8859-1", "US-ASCII", "windows-1252")],
        # Since 5.0.0 the platform's charset has no effect.
        ("5.3.3", "GBK"),
    ],
)
def test_before_5_files_are_in_the_platforms_charset(
    version: str, charset: str, seed: int, case_count: int
) -> None:
    contents = list(drawn.files(seed, 0, case_count // 10)) + list(
        drawn.with_odd_bytes(seed, case_count // 5)
    )
    tables = list(drawn.tables(seed, case_count // 20))
    compared = Compared()
    with running(version, charset) as release:
        compared.compare(release, contents, charset)
        written = release.write_offset_files(tables)
    assert not compared.wrong, "\n".join(compared.wrong[:SHOWN_AT_MOST])
    for entries, file in written:
        check_written(entries, file, version, charset)


def check_written(entries: list[list[Any]], file: bytes, version: str, charset: str = "UTF-8") -> None:
    table = {OffsetKey(*queue): offset for *queue, offset in entries}
    assert write_offset_file(table, client_version=version, platform_charset=charset) == file, (
        version,
        table,
    )


def batches(contents: Iterator[bytes]) -> Iterator[list[bytes]]:
    while batch := list(islice(contents, FILES_AT_ONCE)):
        yield batch
