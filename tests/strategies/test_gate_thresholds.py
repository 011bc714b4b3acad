"""The gate's thresholds equal the guarantees of the strategies. They are defined separately to detect errors in either."""

from __future__ import annotations

import pytest

from expectations.suites import thresholds
from rebalance_ledger.rocketmq import system_topics as topic_names
from strategies import RoomPart, Strategy, get_strategy
from strategies.invariants import promise

ROOMS = RoomPart("@", 0)
STRATEGIES = {
    "AVG": get_strategy("AVG"),
    "AVG_BY_CIRCLE": get_strategy("AVG_BY_CIRCLE"),
    "CONFIG": get_strategy("CONFIG", message_queues=[]),
    "CONSISTENT_HASH": get_strategy("CONSISTENT_HASH"),
    "MACHINE_ROOM": get_strategy("MACHINE_ROOM", consumer_idcs={"hz"}),
    "MACHINE_ROOM_NEARBY": get_strategy(
        "MACHINE_ROOM_NEARBY", inner=get_strategy("AVG"), broker_room=ROOMS, consumer_room=ROOMS
    ),
}
NAMES = [pytest.param(name, strategy, id=name) for name, strategy in STRATEGIES.items()]


@pytest.mark.parametrize(("name", "strategy"), NAMES)
def test_the_gate_bounds_the_spread_as_the_strategy_promises(name: str, strategy: Strategy) -> None:
    assert thresholds.SPREAD_BOUND.get(name) == promise(strategy).max_spread_count


@pytest.mark.parametrize(("name", "strategy"), NAMES)
def test_the_gate_asks_for_one_owner_where_the_strategy_promises_it(name: str, strategy: Strategy) -> None:
    assert (name in thresholds.ONE_OWNER_STRATEGIES) == (promise(strategy).max_owner_count == 1)


def test_the_gate_knows_the_topics_that_rocketmq_keeps_for_itself() -> None:
    assert set(thresholds.SYSTEM_TOPICS) == topic_names.SYSTEM_TOPICS
    assert thresholds.OWN_TOPIC_PREFIXES == topic_names.OWN_TOPIC_PREFIXES
    assert thresholds.REPLY_TOPIC_SUFFIX == topic_names.REPLY_TOPIC_SUFFIX
