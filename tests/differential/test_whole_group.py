"""`make bench` accepts equal results of both sides, and detects a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import whole_group
from tools.rocketmq_java.gateway import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.rocketmq_java.gateway import RocketMQ

pytestmark = pytest.mark.differential


@pytest.fixture(scope="module")
def release() -> Iterator[RocketMQ]:
    with running(whole_group.RELEASE, timed=True) as started:
        yield started


@pytest.mark.parametrize(("queue_count", "client_count"), [(100, 12), (30, 70)])
@pytest.mark.parametrize("rule", whole_group.RULES, ids=lambda rule: rule.strategy)
def test_every_client_of_a_small_group_gets_the_same_queues(
    rule: whole_group.Rule, queue_count: int, client_count: int, release: RocketMQ
) -> None:
    sides = whole_group.Sides(release, rule, queue_count, client_count)
    assert sides.run_java(0, client_count) > 0


def test_a_wrong_owner_ends_the_benchmark(release: RocketMQ) -> None:
    rule = whole_group.Rule(
        "MACHINE_ROOM",
        bar=1,
        options={"consumer_idcs": ["room-1"]},
        params={"consumeridcs": ["room-2"]},
    )
    sides = whole_group.Sides(release, rule, 32, 6)
    with pytest.raises(RuntimeError, match="a wrong answer has no speed"):
        sides.run_java(0, 6)


def test_a_sampled_strategy_is_marked_as_sampled_and_counts_its_calls() -> None:
    hashed = next(rule for rule in whole_group.RULES if rule.is_sampled)
    (measured,) = whole_group.measure(
        queue_count=16, client_count=6, repetitions=2, warm_up_s=0, rules=[hashed]
    )
    assert measured.name == "consistent_hash"
    assert measured.extra["java_calls_timed"] == 2
    assert "extrapolated" in measured.note
    assert measured.direction == "at_least"
    assert len(measured.ratios) == 2
