"""The possible readers of each queue of a popped topic, compared with the broker's answer to each client."""

from __future__ import annotations

import random

import pytest

from rebalance_ledger.rocketmq.client_ids import is_grpc_client_id
from strategies import ClientView, MessageQueue
from strategies.pop import ALL_QUEUES_ID, RequestMode, RequestSetting, query_assignment
from strategies.sharing import expected_readers


def queues(**counts: int) -> list[MessageQueue]:
    return [
        MessageQueue("t", broker, queue_id) for broker, count in counts.items() for queue_id in range(count)
    ]


def test_each_queue_has_its_own_reader_and_those_that_share_with_it() -> None:
    readers = expected_readers(
        queues(a=4, b=4), ["c1", "c2", "c3", "c4"], dict.fromkeys(["c1", "c2", "c3", "c4"], "AVG"), 1
    )

    assert readers == [["c1", "c4"]] * 2 + [["c1", "c2"]] * 2 + [["c2", "c3"]] * 2 + [["c3", "c4"]] * 2


def test_a_client_of_a_proxy_reads_every_queue_and_one_that_pulls_none() -> None:
    assert expected_readers(queues(a=2), ["c1", "g"], {}, -1, ["g"]) == [["g"], ["g"]]


def test_a_strategy_that_the_broker_does_not_have_has_no_answer() -> None:
    assert expected_readers(queues(a=2), ["c1"], {"c1": "CONSISTENT_HASH"}, -1) is None


@pytest.mark.parametrize("seed", range(300))
def test_readers_are_the_clients_to_which_the_broker_gives_the_queue(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a case, no secret
    of_topic = queues(a=chance.randint(0, 5), b=chance.randint(1, 6))
    clients = [f"c{number}" for number in range(chance.randint(1, 9))]
    name, share = chance.choice(["AVG", "AVG_BY_CIRCLE"]), chance.randint(-1, 9)
    is_on = chance.random() < 0.9
    expected: dict[MessageQueue, list[str]] = {queue: [] for queue in of_topic}
    for client in clients:
        view = ClientView("g", client, "t", of_topic, clients)
        answer = query_assignment(
            name,
            view,
            RequestSetting(RequestMode.POP, share),
            broker_name="a",
            server_load_balancer_enable=is_on,
        )
        assert answer is not None
        for queue in of_topic:
            if queue in answer or MessageQueue("t", queue.broker_name, ALL_QUEUES_ID) in answer:
                expected[queue].append(client)

    assert expected_readers(
        of_topic, clients, dict.fromkeys(clients, name), share, server_load_balancer_enable=is_on
    ) == list(expected.values())


@pytest.mark.parametrize(
    ("client_id", "is_grpc"),
    [
        ("app-7f9c@1@0@3kd81hz0a", True),
        ("host.example.com@30211@12@-1y2p0ij32e8e7", True),
        ("app-7f9c@30211#0_1794790000000", True),
        ("app-7f9c@30211#12", True),
        ("10.0.0.1@30211#712381237123", False),
        ("10.0.0.1@30211#12", False),
        ("fe80::a1%eth0@30211#12", False),
        ("app-7f9c@30211#712381237123", False),
        ("10.0.0.1@DEFAULT", False),
        ("10.0.0.1@member@unit-1", False),
        ("10.0.0.1@7@unit@STREAM", False),
    ],
)
def test_a_grpc_client_is_known_by_its_id(client_id: str, is_grpc: bool) -> None:  # noqa: FBT001
    assert is_grpc_client_id(client_id) == is_grpc
