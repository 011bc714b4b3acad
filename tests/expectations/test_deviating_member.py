"""The gate checks the reported parameters of a deviating member.

It accepts queues that `strategies` assigns with these parameters, and detects any others.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import pytest

from expectations.measurement import gate_database
from expectations.suites import deviating_member
from expectations.suites.model import metric_statement
from rebalance_ledger.tables import OWNERSHIP_DRIFT
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from rebalance_ledger.tables.silver.proxy_connection import PROXY_CONNECTION
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from strategies import MessageQueue, get_strategy
from tests.support.staged_day import ddl_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.staged_day import Row

STATEMENT: Final = metric_statement(
    (deviating_member.PARAMETERS_EXPLAIN,),
    (deviating_member.QUERY,),
    deviating_member.COMMON_TABLES.removeprefix("\n"),
)
SEED: Final = 20261125
CASES: Final = 30
ROOMS: Final = ("hz", "sh", "bj")


def share(text: str, client_id: str, queues: list[tuple[str, int]], ids: list[str]) -> set[tuple[str, int]]:
    """Return the queues that the strategy assigns to the client with the parameters in a text."""
    name, _, value = text.partition(" = ")
    strategy = (
        get_strategy("CONSISTENT_HASH", client_version="5.3.3", virtual_node_count=int(value))
        if name == "virtualNodeCnt"
        else get_strategy("MACHINE_ROOM", client_version="5.3.3", consumer_idcs=set(value.split(", ")))
    )
    own = strategy.allocate("g", client_id, [MessageQueue("t", *queue) for queue in queues], ids)
    return {(str(queue.broker_name), queue.queue_id) for queue in own or ()}


def drawn_cases() -> Iterator[tuple[str, str, list[tuple[str, int]], list[str], set[tuple[str, int]], bool]]:
    """Yield the group, text, queues, members, queues of the deviating member, and whether the text is wrong."""
    random_numbers = random.Random(SEED)  # noqa: S311 - drawn cases, no secret
    for number in range(CASES):
        brokers = sorted(f"{random_numbers.choice(ROOMS)}@broker-{index}" for index in range(4))
        queues = [
            (broker, queue_id)
            for broker in brokers
            for queue_id in range(random_numbers.choice((4, 6, 8, 12)))
        ]
        ids = sorted(f"10.0.{number}.{index}@{random_numbers.randrange(99)}" for index in range(5))
        if number % 2:
            text, other = (f"virtualNodeCnt = {count}" for count in random_numbers.sample((1, 5, 20, 50), 2))
        else:
            text, other = "consumeridcs = bj, hz", "consumeridcs = sh"
        held = share(text, ids[2], queues, ids)
        yield f"right-{number}", text, queues, ids, held, False
        yield f"right-or-others-{number}", f"{text} (or others)", queues, ids, held, False
        yield (
            f"other-parameters-{number}",
            other,
            queues,
            ids,
            held,
            held != share(other, ids[2], queues, ids),
        )
        yield f"other-queues-{number}", text, queues, ids, held ^ {queues[0]}, True
        yield f"no-parameters-{number}", "consumers = 5", queues, ids, held, bool(held)


CASES_BY_GROUP = {case[0]: case for case in drawn_cases()}


@pytest.fixture(scope="module")
def wrong_groups() -> set[str]:
    drift: list[Row] = []
    connections: list[Row] = []
    for group, text, queues, ids, held, _ in CASES_BY_GROUP.values():
        connections += [
            {
                "consumer_group": group,
                "broker_name": "b",
                "client_id": client_id,
                "client_language": "JAVA",
                "client_version": "5.3.3",
            }
            for client_id in ids
        ]
        drift += [
            {
                "consumer_group": group,
                "topic": "t",
                "broker_name": broker,
                "queue_id": queue_id,
                "is_routed": True,
                "observed_client_ids": [ids[2]] if (broker, queue_id) in held else [],
                "deviating_client_id": ids[2] if number == 0 else None,
                "deviating_parameters": text if number == 0 else None,
            }
            for number, (broker, queue_id) in enumerate(queues)
        ]
    with gate_database(SANDBOX_CONFIG) as database:
        for table, rows in (
            (OWNERSHIP_DRIFT, drift),
            (CONSUMER_CONNECTION, connections),
            (PROXY_CONNECTION, []),
        ):
            database.show_records(f"{table.layer}_{table.name}", ddl_of(table), rows)
        [row] = database.metrics((STATEMENT,))
    return {subject["consumer_group"] for subject in row["affected_subjects"]}


def test_parameters_are_wrong_exactly_if_their_assignment_is_not_what_the_member_holds(
    wrong_groups: set[str],
) -> None:
    assert wrong_groups == {group for group, *_, is_wrong in CASES_BY_GROUP.values() if is_wrong}


def test_some_cases_are_right_and_some_wrong() -> None:
    wrong = [is_wrong for *_, is_wrong in CASES_BY_GROUP.values()]

    assert min(wrong.count(True), wrong.count(False)) > CASES
