"""Views over published days: the load of clients over all topics of a group, and their load under other strategies."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.report.queries import report_query
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.computed_days import asked
from tests.support.published_sample import Publisher

if TYPE_CHECKING:
    from pathlib import Path

DAY = "2026-11-16"
Row = dict[str, Any]


def queue(topic: str, queue_id: int, client_id: str | None, strategy: str = "AVG", **more: Any) -> Row:
    return {
        "consumer_group": "g", "topic": topic, "broker_name": "b", "queue_id": queue_id, "client_id": client_id,
        "strategy": strategy, "is_effective": strategy == "AVG", "reason": None, **more,
    }  # fmt: skip


def progress(topic: str, queue_id: int, waiting: int | None) -> Row:
    offsets = {"broker_offset": 100, "consumer_offset": -1 if waiting is None else 100 - waiting}
    return {"consumer_group": "g", "topic": topic, "broker_name": "b", "queue_id": queue_id, **offsets}


def held(assignment: list[Row]) -> list[Row]:
    """Return rows of `ownership_drift`: clients hold the queues of the effective strategy, and other owners are unknown."""
    return [
        {
            "consumer_group": "g",
            "topic": row["topic"],
            "broker_name": "b",
            "queue_id": row["queue_id"],
            "state": "unknown" if row["reason"] in UNKNOWN else "match",
            "strategy": "AVG",
            "group_state": "online",
            "observed_client_ids": [row["client_id"]] if row["client_id"] else [],
            "observed_process_count": 1 if row["client_id"] else 0,
            "expected_client_ids": None
            if row["reason"] in UNKNOWN
            else [row["client_id"]]
            if row["client_id"]
            else [],
            "unasked_client_count": 0,
        }
        for row in assignment
        if row["is_effective"]
    ]


UNKNOWN = ("members_unknown", "member_strategy_unknown")
MEMBERS = [
    {"consumer_group": "g", "client_id": client_id, "broker_name": broker}
    for client_id in ("c1", "c2", "idle", "dead")
    for broker in ("b", "b2")
]
"""Connections in the brokers' lists. One client is gone: queried, a broker reports it as offline."""
ASKED = [
    {"consumer_group": "g", "client_id": client_id, "state": "offline" if client_id == "dead" else "online"}
    for client_id in ("c1", "c2", "idle", "dead")
]
KNOWN = [{"consumer_group": "g", "topic": "x", "strategy": "AVG", "group_state": "online", "client_count": 3}]
EFFECTIVE = [
    queue("x", 0, "c1"),
    queue("x", 1, "c1"),
    queue("x", 2, "c2"),
    queue("y", 0, "c1"),
    queue("y", 1, None, reason="not_assigned_by_strategy"),
]
CIRCLE = "AVG_BY_CIRCLE"
IN_A_CIRCLE = [
    queue("x", 0, "c1", CIRCLE),
    queue("x", 1, "c2", CIRCLE),
    queue("x", 2, "idle", CIRCLE),
    queue("y", 0, "c1", CIRCLE),
    queue("y", 1, "c2", CIRCLE),
]


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "warehouse")


def publish(
    publisher: Publisher,
    assignment: list[Row],
    waiting: list[Row] | None = None,
    clients: list[Row] = ASKED,
    observed: list[Row] | None = None,
    at_proxies: list[Row] | None = None,
) -> Warehouse:
    publisher.publish(
        "shop",
        DAY,
        queue_assignment=assignment,
        assignment_fairness=KNOWN,
        ownership_drift=held(assignment) if observed is None else observed,
        consumer_connection=MEMBERS,
        proxy_connection=at_proxies or [],
        consumer_client=clients,
        consume_progress=waiting or [],
    )
    return Warehouse(publisher.root)


def loads(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return asked(
        warehouse,
        "SELECT client_id, observed_queue_count, observed_topic_count, queue_share, load_rank FROM client_load "
        "ORDER BY client_id",
    )


def test_the_load_of_a_client_covers_all_topics_and_that_of_an_idle_client_is_zero(
    publisher: Publisher,
) -> None:
    warehouse = publish(publisher, EFFECTIVE + IN_A_CIRCLE)

    assert loads(warehouse) == [("c1", 3, 2, 0.75, 1), ("c2", 1, 1, 0.25, 2), ("idle", 0, 0, 0.0, 3)]


def test_a_load_has_held_and_expected_queues(publisher: Publisher) -> None:
    """c1 still holds a queue that the strategy assigns to c2."""
    observed = held(EFFECTIVE)
    observed[2]["observed_client_ids"] = ["c1"]
    warehouse = publish(publisher, EFFECTIVE, observed=observed)

    counts = (
        "SELECT client_id, observed_queue_count, expected_queue_count FROM client_load ORDER BY client_id"
    )
    assert asked(warehouse, counts) == [("c1", 4, 3), ("c2", 0, 1), ("idle", 0, 0)]


def test_the_load_of_a_client_that_did_not_answer_is_unknown(publisher: Publisher) -> None:
    silent = [row | {"state": "unknown"} if row["client_id"] == "idle" else row for row in ASKED]
    warehouse = publish(publisher, EFFECTIVE, clients=silent)

    assert loads(warehouse)[-1] == ("idle", None, None, None, None)


def test_members_at_proxies_are_members_with_an_unknown_load(publisher: Publisher) -> None:
    """The proxy reports its own release for a gRPC client, so that of the client is unknown."""
    grpc = "host-a@7@0@1k2j3h"
    of_client = {"consumer_group": "g", "client_language": "GO", "client_version": "5.3.3"}
    at_proxies = [
        {**of_client, "client_id": client_id, "proxy": proxy}
        for client_id in ("remoting", grpc)
        for proxy in ("p1:8080", "p2:8080")
    ]
    warehouse = publish(publisher, EFFECTIVE, at_proxies=at_proxies)
    values = {"cluster": "shop", "ds": date.fromisoformat(DAY), "groups": ("g",)}
    members = report_query("group/members").text(values)

    proxied = [row for row in loads(warehouse) if row[0] in {grpc, "remoting"}]
    assert proxied == [(grpc, None, None, None, None), ("remoting", None, None, None, None)]
    columns = "client_id, releases, expected_queue_count, observed_queue_count"
    found = asked(warehouse, f"SELECT {columns} FROM ({members}) ORDER BY client_id")  # noqa: S608  # constants
    assert [row for row in found if row[0] in {grpc, "remoting"}] == [
        (grpc, ["GO (gRPC)"], 0, None),
        ("remoting", ["GO 5.3.3"], 0, None),
    ]


def test_clients_with_equal_load_have_the_same_rank(publisher: Publisher) -> None:
    warehouse = publish(publisher, [queue("x", 0, "c1"), queue("x", 1, "c2")])

    assert [rank for *_, rank in loads(warehouse)] == [1, 1, 3]


def test_shares_are_null_if_owners_are_unknown(publisher: Publisher) -> None:
    warehouse = publish(publisher, [*EFFECTIVE, queue("z", 0, None, reason="members_unknown")])

    assert loads(warehouse) == [
        ("c1", 3, 2, None, None),
        ("c2", 1, 1, None, None),
        ("idle", 0, 0, None, None),
    ]


def test_the_backlog_is_known_only_if_brokers_report_it_for_each_queue(publisher: Publisher) -> None:
    rows = [progress("x", 0, 5), progress("x", 1, 7), progress("x", 2, 1), progress("y", 0, None)]
    warehouse = publish(publisher, EFFECTIVE, rows)

    lag = "SELECT client_id, lag_count, lag_unknown_queue_count FROM client_load ORDER BY client_id"
    assert asked(warehouse, lag) == [("c1", None, 1), ("c2", 1, 0), ("idle", 0, 0)]


def test_a_committed_offset_beyond_the_newest_message_hides_no_message_of_another_queue(
    publisher: Publisher,
) -> None:
    ahead = progress("x", 0, 0) | {"broker_offset": 100, "consumer_offset": 150}
    behind = progress("x", 1, 0) | {"broker_offset": 100, "consumer_offset": 50}
    warehouse = publish(publisher, EFFECTIVE, [ahead, behind])

    lag = "SELECT sum(lag_count), sum(waiting_count) FROM queue_lag WHERE topic = 'x'"
    assert asked(warehouse, lag) == [(50, 50)]


def test_offsets_of_any_64_bits_have_a_backlog_or_none(publisher: Publisher) -> None:
    most = 2**63 - 1
    offsets = [(-5, most), (most, 0), (most, 0)]
    rows = [
        progress("x", number, 0) | {"broker_offset": end, "consumer_offset": committed}
        for number, (end, committed) in enumerate(offsets)
    ]
    warehouse = publish(publisher, [queue("x", number, "c1") for number in range(3)], rows)

    lag = "SELECT queue_id, waiting_count FROM queue_lag ORDER BY queue_id"
    assert asked(warehouse, lag) == [(0, 0), (1, most), (2, most)]
    load = "SELECT lag_count FROM client_load WHERE client_id = 'c1'"
    assert asked(warehouse, load) == [(None,)]


COMPARISON = """
    SELECT strategy, is_effective, queue_count, client_count, min_queues_per_client, max_queues_per_client,
        round(max_over_mean, 3), round(jain_index, 3), idle_client_count, unowned_queue_count, moved_queue_count
    FROM strategy_comparison ORDER BY strategy"""


def test_another_strategy_is_compared_with_the_effective_one_with_its_moves(
    publisher: Publisher,
) -> None:
    warehouse = publish(publisher, EFFECTIVE + IN_A_CIRCLE)

    assert asked(warehouse, COMPARISON) == [
        ("AVG", True, 5, 3, 0, 3, 2.25, 0.533, 1, 1, 0),
        (CIRCLE, False, 5, 3, 1, 2, 1.2, 0.926, 0, 0, 3),
    ]


def test_a_value_unknown_for_one_topic_is_null_for_the_group(publisher: Publisher) -> None:
    unknown = queue("z", 0, None, CIRCLE, reason="settings_missing")
    warehouse = publish(publisher, [*EFFECTIVE, queue("z", 0, "c2"), *IN_A_CIRCLE, unknown])

    [(_, *known), (_, *undetermined)] = asked(warehouse, COMPARISON)
    assert None not in known
    assert undetermined == [False, 6, 3, None, None, None, None, None, None, None]


def test_a_sum_over_groups_counts_the_groups_that_it_lacks(publisher: Publisher) -> None:
    unknown = queue("z", 0, None, reason="member_strategy_unknown")
    warehouse = publish(publisher, [*EFFECTIVE, unknown, *IN_A_CIRCLE, queue("z", 0, "c2", CIRCLE)])
    strategies = report_query("day/strategies").text({"cluster": "shop", "ds": date.fromisoformat(DAY)})

    columns = "strategy, undetermined_group_count, moves_unknown_group_count, moved_queue_count"
    assert asked(warehouse, f"SELECT {columns} FROM ({strategies}) ORDER BY strategy") == [  # noqa: S608  # constants
        ("AVG", 1, 1, None),
        (CIRCLE, 0, 1, None),
    ]


def test_moves_are_null_if_current_owners_are_unknown(publisher: Publisher) -> None:
    unknown = queue("z", 0, None, reason="member_strategy_unknown")
    warehouse = publish(publisher, [*EFFECTIVE, unknown, *IN_A_CIRCLE, queue("z", 0, "c2", CIRCLE)])

    moved = (
        "SELECT strategy, max_queues_per_client, moved_queue_count FROM strategy_comparison ORDER BY strategy"
    )
    assert asked(warehouse, moved) == [("AVG", None, None), (CIRCLE, 3, None)]
