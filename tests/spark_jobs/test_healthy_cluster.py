"""A simulated healthy cluster: the ledger has no findings, and its owners equal those that clients report."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.layout import Warehouse
from tests.support.computed_days import asked, compute_and_publish
from tools.simulated_cluster import Layout, Size, generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

DS = date(2026, 11, 16)
CLUSTER = "simulated"


@pytest.fixture(scope="module")
def layout() -> Layout:
    return Layout(CLUSTER, Size(broker_count=10, topic_count=60, group_count=100, clients_per_group=5))


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return the cluster's published day. Tests only read it."""
    folder = tmp_path_factory.mktemp("healthy")
    settings = folder / "settings.yaml"
    generate(layout, folder / "exports", DS, settings)
    day = Day(CLUSTER, DS, folder / "exports", Warehouse.at(str(folder / "warehouse")), settings)
    compute_and_publish(spark, day)
    return day.warehouse


def test_it_has_no_finding(warehouse: Warehouse) -> None:
    assert asked(warehouse, "SELECT kind, consumer_group, topic, broker_name, evidence FROM finding") == []


def test_the_gate_sees_no_violation_and_warns_of_nothing(warehouse: Warehouse) -> None:
    assert asked(warehouse, "SELECT gate_verdict FROM publication") == [("passed",)]
    assert asked(warehouse, "SELECT DISTINCT is_success FROM gate_result") == [(True,)]


def test_every_queue_of_every_group_has_its_expected_owner(warehouse: Warehouse, layout: Layout) -> None:
    states: Counter[str] = Counter()
    for group in layout.groups:
        for topic in group.subscribed:
            is_shared = group.sharing == "POP" and topic is not group.retry
            states["shared" if is_shared else "match"] += topic.queue_count
    found = asked(warehouse, "SELECT state, count(*) FROM ownership_drift GROUP BY state")
    assert dict(found) == states


def test_every_queue_has_one_owner_if_the_strategy_guarantees_it(
    warehouse: Warehouse, layout: Layout
) -> None:
    owners = asked(
        warehouse,
        "SELECT consumer_group, topic, broker_name, queue_id, count(client_id) FROM queue_assignment "
        "WHERE is_effective AND strategy NOT IN ('BROADCASTING', 'POP') GROUP BY ALL",
    )
    expected = {
        (group.name, queue.topic, queue.broker_name, queue.queue_id)
        for group in layout.groups
        for topic in group.subscribed
        if group.sharing not in {"BROADCASTING", "POP"} or (group.sharing == "POP" and topic is group.retry)
        for queue in topic.queues()
    }
    assert {tuple(queue) for *queue, _ in owners} == expected
    assert Counter(count for *_, count in owners) == {1: len(expected)}


def test_the_effective_strategy_of_each_group_is_that_of_its_clients(
    warehouse: Warehouse, layout: Layout
) -> None:
    effective = asked(
        warehouse,
        "SELECT DISTINCT consumer_group, strategy FROM queue_assignment "
        "WHERE is_effective AND NOT starts_with(topic, '%RETRY%')",
    )
    assert set(effective) == {(group.name, group.sharing) for group in layout.groups}


def test_name_servers_and_brokers_agree_on_every_route(warehouse: Warehouse) -> None:
    assert asked(warehouse, "SELECT DISTINCT state FROM route_divergence") == [("same",)]
