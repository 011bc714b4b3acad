"""The library returns the same results for newly generated cases as RocketMQ's own classes of each release."""

from __future__ import annotations

import json
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from strategies import get_strategy
from tests.support import differential_cases as cases
from tests.support.golden_checks import CHECKS
from tests.support.strategy_golden import expected_queues, outcome, queues
from tools.rocketmq_java import golden
from tools.rocketmq_java.gateway import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.rocketmq_java.gateway import RocketMQ

pytestmark = pytest.mark.differential

STRATEGIES = ["AVG", "AVG_BY_CIRCLE", "CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"]
DRAWN: dict[str, tuple[str, Callable[[int, int], Iterator[dict[str, Any]]]]] = {
    **{name: ("allocate", partial(cases.allocate, strategy=name)) for name in STRATEGIES},
    "rebalance": ("rebalance", cases.rebalance),
    "queues_from_route": ("queues_from_route", cases.queues_from_route),
    "producer_select": ("producer_select", cases.producer_select),
    "pop": ("pop", cases.pop),
    "hash": ("hash", cases.hashes),
}
SHOWN_AT_MOST = 5


@pytest.mark.parametrize("name", DRAWN)
def test_generated_cases_give_the_same_answers_as_java(
    name: str, releases: list[RocketMQ], seed: int, case_count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    family, draw = DRAWN[name]
    begin = time.monotonic()
    drawn = list(draw(seed, case_count))
    cases_of, answers_of, wrong = Counter[str](), Counter[str](), []
    for release in releases:
        for case, answer in zip(drawn, release.answer(family, drawn), strict=True):
            if answer is None:
                continue
            cases_of[release.version] += 1
            try:
                answers_of[release.version] += CHECKS[family](case, release.version, answer)
            except AssertionError as difference:
                wrong.append(f"{case}\n  {difference}")
    with capsys.disabled():
        counted = ", ".join(f"{version} {count}" for version, count in cases_of.items())
        print(  # noqa: T201  a run's counts are its result
            f"\n{name}: {sum(answers_of.values())} answers compared, cases by release: {counted}; "
            f"{len(wrong)} wrong; seed {seed}; {time.monotonic() - begin:.0f} s"
        )
    assert not wrong, f"{len(wrong)} differences, LEDGER_SEED={seed}:\n" + "\n".join(wrong[:SHOWN_AT_MOST])
    assert sum(cases_of.values()) >= case_count


@pytest.mark.parametrize("family", golden.FAMILIES)
def test_the_golden_files_equal_the_answers_of_the_java_classes(
    family: str, releases: list[RocketMQ]
) -> None:
    asked = [release for release in releases if release.version in golden.FAMILIES[family]]
    kept = golden.read(family)
    assert golden.as_text(golden.answered(family, kept, asked)) == golden.as_text(kept)


@pytest.mark.parametrize(
    ("version", "charset"), [("4.9.7", "iso-8859-1"), ("4.9.7", "gbk"), ("5.3.3", "gbk")]
)
def test_before_5_strings_are_hashed_in_the_platforms_charset(
    version: str, charset: str, seed: int, case_count: int
) -> None:
    drawn = [
        case
        for case in cases.allocate(seed, case_count, "CONSISTENT_HASH")
        if "hash" not in case["params"]
        and (case["params"]["virtual_nodes"] or 0) > 0
        # Python's GBK and Java's differ in the private use area.
        and "\ue000" not in json.dumps(case, ensure_ascii=False)
    ]
    with running(version, charset) as release:
        answers = release.answer("allocate", drawn)
    compared = 0
    for case, answer in zip(drawn, answers, strict=True):
        strategy = get_strategy(
            "CONSISTENT_HASH",
            client_version=version,
            virtual_node_count=case["params"]["virtual_nodes"],
            platform_charset=charset,
        )
        listed = queues(case["mq_all"])
        assert answer is not None
        for client_id, expected in zip(case["asked"], answer["by_cid"], strict=True):
            got = outcome(partial(strategy.allocate, case["group"], client_id, listed, case["cid_all"]))
            assert got == expected_queues(expected, listed), (case, client_id)
            compared += 1
    assert compared > case_count // 2
