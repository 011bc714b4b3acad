"""Each fault injected into shared queues violates its own expectation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from expectations.suites import (
    assignment_fairness,
    finding,
    metrics,
    ownership_drift,
    queue_assignment,
    queue_sharing,
    thresholds,
)
from rebalance_ledger.rocketmq import client_ids as clients
from spark_jobs.assignment import allocation
from tests.support.staged_day import BROKERS, ORDINAL, Row, StagedDay, healthy_day
from tests.support.staged_drift import add_drift

if TYPE_CHECKING:
    from collections.abc import Callable


JUDGED = {
    expectation.expectation_id
    for suite in (
        queue_sharing.SUITE,
        ownership_drift.SUITE,
        queue_assignment.SUITE,
        assignment_fairness.SUITE,
    )
    for expectation in suite.expectations
    if expectation.severity == "block"
} | {finding.ORDER_BLOCK_REPORTED.expectation_id}
STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if any(f"'{name}'" in text for name in JUDGED)]
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}
CLIENTS = ("c1", "c2", "c3")
GRPC = "host@7@0@1k2j3h"


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a fault, injected into a group named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, set(expected))
        return plant

    return register


def popped_group(day: StagedDay, group: str, *grpc: str, share: int = 1) -> list[Row]:
    """Add three members that pop `orders` with one extra reader per queue, and gRPC clients; return the shared queues."""
    members = sorted({*CLIENTS, *grpc})
    for broker in BROKERS:
        day.add(
            "group_presence",
            broker_name=broker,
            consumer_group=group,
            state="online",
            message_model="CLUSTERING",
        )
        day.add("subscription", broker_name=broker, consumer_group=group, topic="orders")
        day.add(
            "export_record", kind="consume_stats", consumer_group=group, broker_name=broker, state="payload"
        )
        setting = {"broker_name": broker, "setting": "serverLoadBalancerEnable"}
        if not day.of("broker_setting", **setting):
            day.add("broker_setting", **setting, value="true")
        mode = {"consumer_group": group, "topic": "orders", "mode": "POP", "pop_share_queue_count": share}
        day.add("message_request_mode", broker_name=broker, **mode)
        for number, client in enumerate(members):
            day.add(
                "consumer_connection",
                broker_name=broker,
                consumer_group=group,
                client_id=client,
                client_addr=f"127.0.0.1:{4000 + number}",
                client_language="JAVA",
                client_version_ordinal=ORDINAL,
                client_version="5.3.3",
            )
    for client in CLIENTS:
        day.add(
            "consumer_client",
            consumer_group=group,
            client_id=client,
            state="online",
            strategy="AVG",
            is_client_rebalance=False,
            is_orderly=False,
        )
        day.add("client_subscription", consumer_group=group, client_id=client, topic="orders")
    shared = []
    for place, (broker, queue_id) in enumerate(day.queues("orders")):
        queue = {"consumer_group": group, "topic": "orders", "broker_name": broker, "queue_id": queue_id}
        # AVG assigns eight queues to three members in runs of 3, 3 and 2, and to four members in runs of 2.
        owner = (0, 0, 0, 1, 1, 1, 2, 2)[place] if not grpc else place // 2
        ring = [members[owner], members[owner - 1]]
        readers = sorted({*(client for client in ring if client in CLIENTS), *grpc})
        for client in readers:
            if client in CLIENTS:
                day.hold(group, "orders", broker, queue_id, client, is_pop=True)
        day.add(
            "queue_assignment",
            **queue,
            strategy="POP",
            strategy_source="observed",
            is_effective=True,
            reason="pop_mode",
        )
        day.add("consume_progress", **queue, broker_offset=50, consumer_offset=40, pull_offset=44)
        shared.append(
            day.add(
                "queue_sharing",
                **queue,
                request_mode="POP",
                request_mode_source="entry",
                pop_share_count=share,
                expected_reader_ids=readers,
                sharing_degree=len(readers),
                observed_reader_ids=[client for client in readers if client in CLIENTS],
                unobserved_reader_count=len(grpc),
                puller_ids=[],
                committed_offset=40,
                handed_out_offset=44,
                in_flight_count_at_most=4,
                ready_count=6,
            )
        )
    day.rate(group, "orders", "POP", None).update(
        group_state="online", group_state_reason=None, client_count=len(members)
    )
    return shared


@fault("ownership_drift.state_follows_owners")
def a_popped_queue_called_a_match(day: StagedDay, group: str) -> None:
    popped_group(day, group)
    add_drift(day, group)[0]["state"] = "match"


@fault("queue_sharing.numbers_equal_sources")
def a_wrong_sharing_degree(day: StagedDay, group: str) -> None:
    popped_group(day, group)[0]["sharing_degree"] = 1


@fault("queue_sharing.readers_follow_rule")
def a_reader_too_few(day: StagedDay, group: str) -> None:
    popped_group(day, group)[3].update(expected_reader_ids=["c1"], sharing_degree=1)


@fault("queue_sharing.readers_follow_rule")
def a_grpc_client_left_out(day: StagedDay, group: str) -> None:
    row = popped_group(day, group, GRPC)[3]
    readers = [client for client in row["expected_reader_ids"] if client != GRPC]
    row.update(expected_reader_ids=readers, sharing_degree=len(readers), unobserved_reader_count=0)


@fault("queue_sharing.readers_seen")
def an_unobserved_reader(day: StagedDay, group: str) -> None:
    row = popped_group(day, group)[0]
    row["observed_reader_ids"] = ["c1", "c2", "c3"]


# The gate computes the rule from the share count and the queues of the table, so with 7 the readers differ too.
@fault("queue_sharing.mode_follows_sources", "queue_sharing.readers_follow_rule")
def a_mode_of_no_broker(day: StagedDay, group: str) -> None:
    popped_group(day, group)[0].update(pop_share_count=7)


@fault("queue_sharing.mode_follows_sources")
def a_mode_without_a_source(day: StagedDay, group: str) -> None:
    popped_group(day, group)[0].update(request_mode_source=None)


@fault("queue_sharing.numbers_equal_sources")
def offsets_taken_for_zero(day: StagedDay, group: str) -> None:
    popped_group(day, group)
    day.remove("consume_progress", consumer_group=group, broker_name="broker-a", queue_id=0)


@fault("queue_sharing.numbers_equal_sources")
def a_reader_that_answered_called_silent(day: StagedDay, group: str) -> None:
    popped_group(day, group)[0]["unobserved_reader_count"] = 1


@fault("queue_sharing.numbers_equal_sources")
def a_member_that_pulls_seen_by_nobody(day: StagedDay, group: str) -> None:
    popped_group(day, group)[0]["puller_ids"] = ["c3"]


@fault("queue_sharing.numbers_equal_sources")
def messages_to_retry_not_counted(day: StagedDay, group: str) -> None:
    _, *others = popped_group(day, group)
    retry = {"topic": f"%RETRY%{group}_orders", "broker_name": "broker-a", "queue_id": 0}
    day.add("consume_progress", consumer_group=group, **retry, broker_offset=9, consumer_offset=4)
    for row in others:
        row["retry_backlog_count"] = 5


def retried_group(day: StagedDay, group: str, *offsets: tuple[int, int], count: int | None) -> Row:
    """Add (broker_offset, consumer_offset) of the retry topic on each broker; return a row of the shared queues."""
    shared = popped_group(day, group)
    for broker, (most, committed) in zip(BROKERS, offsets, strict=False):
        retry = {"topic": f"%RETRY%{group}_orders", "broker_name": broker, "queue_id": 0}
        day.add(
            "consume_progress", consumer_group=group, **retry, broker_offset=most, consumer_offset=committed
        )
    for row in shared:
        row["retry_backlog_count"] = count
    return shared[0]


@fault("queue_sharing.numbers_equal_sources")
def messages_of_a_recreated_retry_topic_deducted(day: StagedDay, group: str) -> None:
    retried_group(day, group, (0, 50), (50, 0), count=50)["retry_backlog_count"] = 0


@fault("queue_sharing.numbers_equal_sources")
def messages_of_one_broker_called_all(day: StagedDay, group: str) -> None:
    retried_group(day, group, (9, 4), count=None)["retry_backlog_count"] = 5
    day.of("export_record", kind="consume_stats", consumer_group=group)[-1]["state"] = "error"


def fifo_group(day: StagedDay, group: str) -> Row:
    """Add shared queues, one of them blocked by a message that was delivered twice before; return its row."""
    row = popped_group(day, group)[0]
    queue = {name: row[name] for name in ("consumer_group", "topic", "broker_name", "queue_id")}
    day.add(
        "queue_order_lock",
        **queue,
        in_flight_count=1,
        head_offset=40,
        last_offset=43,
        redelivery_count=2,
        blocked_until="2026-11-16T12:00:30",
        captured_at="2026-11-16T12:00:00",
    )
    row.update(order_blocked_until="2026-11-16T12:00:30", redelivery_count=2)
    day.add_finding(
        kind="order_queue_blocked",
        consumer_group=group,
        topic="orders",
        queue_count=1,
        examples=[f"{row['broker_name']}/{row['queue_id']}"],
    )
    return row


@fault("queue_sharing.numbers_equal_sources")
def a_blocked_queue_called_free(day: StagedDay, group: str) -> None:
    fifo_group(day, group)["order_blocked_until"] = None


@fault("queue_sharing.numbers_equal_sources")
def a_lease_that_ended_called_a_block(day: StagedDay, group: str) -> None:
    fifo_group(day, group)
    day.of("queue_order_lock", consumer_group=group)[0]["captured_at"] = "2026-11-16T12:00:30"


@fault("queue_sharing.numbers_equal_sources")
def a_redelivery_that_no_broker_counted(day: StagedDay, group: str) -> None:
    popped_group(day, group)[0]["redelivery_count"] = 0


@fault("finding.order_block_has_finding")
def a_blocked_queue_without_a_finding(day: StagedDay, group: str) -> None:
    fifo_group(day, group)
    day.remove("finding", kind="order_queue_blocked", consumer_group=group)


@fault("finding.order_block_has_finding")
def a_block_that_was_committed_since(day: StagedDay, group: str) -> None:
    fifo_group(day, group)
    day.of("queue_order_lock", consumer_group=group)[0]["head_offset"] = 39


@fault("finding.order_block_has_finding")
def a_block_with_nothing_behind_it(day: StagedDay, group: str) -> None:
    fifo_group(day, group)
    day.of("queue_order_lock", consumer_group=group)[0]["last_offset"] = 49


@fault("queue_sharing.shared_queues_present", "queue_sharing.readers_follow_rule")
def a_shared_queue_without_a_row(day: StagedDay, group: str) -> None:
    popped_group(day, group)
    day.remove("queue_sharing", consumer_group=group, broker_name="broker-b", queue_id=3)


@fault("assignment_fairness.unknown_is_null")
def even_shares_of_nothing(day: StagedDay, group: str) -> None:
    popped_group(day, group)
    day.of("assignment_fairness", consumer_group=group)[0]["max_over_mean"] = 1.0


@pytest.fixture(scope="module")
def corrupted_metrics() -> dict[str, Row]:
    day = healthy_day()
    for name, (plant, _) in FAULTS.items():
        plant(day, name)
    return {row["expectation_id"]: row for row in day.measure(STATEMENTS)}


def test_valid_shared_queues_violate_nothing() -> None:
    day = healthy_day()
    popped_group(day, "popped")
    popped_group(day, "popped-and-grpc", GRPC)
    fifo_group(day, "fifo")
    retried_group(day, "retried", (0, 50), (50, 0), count=50)
    retried_group(day, "retried-on-one-broker", (9, 4), count=None)
    day.of("export_record", kind="consume_stats", consumer_group="retried-on-one-broker")[-1]["state"] = (
        "error"
    )
    retried_group(day, "retried-too-often", (2**63 - 1, 0), (2**63 - 1, 0), count=None)
    measured = day.measure(STATEMENTS)

    assert [row for row in measured if row["observed"] and row["expectation_id"] in JUDGED] == []


def test_an_entry_gives_no_mode_if_the_settings_of_its_broker_were_not_read() -> None:
    day = healthy_day()
    popped_group(day, "popped")
    day.remove("broker_setting", broker_name=BROKERS[0])
    seen = {row["expectation_id"] for row in day.measure(STATEMENTS) if row["observed"]} & JUDGED

    assert seen == {"queue_sharing.mode_follows_sources"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_violates_its_own_expectation(name: str, corrupted_metrics: dict[str, Row]) -> None:
    seen = {
        expectation_id
        for expectation_id in JUDGED
        if any(
            re.search(rf"(?<![\w-]){name}(?![\w-])", example)
            for example in corrupted_metrics[expectation_id]["examples"]
        )
    }

    assert seen == FAULTS[name][1]


def test_gate_job_and_report_use_the_same_constants() -> None:
    assert thresholds.DIVISION_REASONS == allocation.DIVISION_REASONS
    assert thresholds.GRPC_CLIENT_ID_PATTERN == clients.GRPC_CLIENT_ID_PATTERN
    members = Path(__file__).parents[2] / "sql" / "report" / "group" / "members.sql"
    assert f"'{clients.GRPC_CLIENT_ID_PATTERN}'" in members.read_text(encoding="utf-8")
