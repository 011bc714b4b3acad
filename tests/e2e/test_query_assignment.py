"""The ledger's expected assignments by the broker equal the broker's answers to QUERY_ASSIGNMENT, including POP sharing.

One of two brokers pulls by default, the other pops. The clients are heartbeats over separate connections: a broker answers
from its list of a group's members, whether or not a process exists.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from strategies import MessageQueue
from strategies.pop import RequestMode, RequestSetting, effective_setting, query_assignment
from strategies.rebalance import ClientView, MessageModel
from tests.real_cluster import Broker, Queue, RealCluster
from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PULLS: Final = "broker-a"
POPS: Final = "broker-b"
DEFAULTS: Final = {PULLS: RequestSetting(), POPS: RequestSetting(RequestMode.POP, 2)}
CASE_COUNT: Final = 1_000
CASES_WITHOUT_BALANCING: Final = 50
# Java sorts them by UTF-16 units: the last but one comes before the last.
CLIENT_IDS: Final = (
    *(f"10.0.0.{number}@{number * 7919}" for number in range(1, 11)),
    "10.0.0.1@A", "10.0.0.1@a", " 10.0.0.1@a", "naïve@☃", "rocket@\U0001f680", "rocket@\uff21",
)  # fmt: skip
# The number of read queues on each broker.
TOPICS: Final = {
    f"topic-{number}": queues
    for number, queues in enumerate(
        [(1, 0), (0, 2), (1, 1), (3, 0), (2, 2), (4, 1), (3, 4), (8, 0), (5, 5), (8, 8), (16, 1), (16, 16)]
    )
}
GROUP_COUNT: Final = 32
STRATEGIES: Final = ("AVG", "AVG_BY_CIRCLE")


class Case(NamedTuple):
    """A request to a broker."""

    broker: str
    topic: str
    group: str
    client_id: str
    strategy: str
    message_model: MessageModel

    def question(self) -> dict[str, str]:
        return {
            "topic": self.topic,
            "group": self.group,
            "client_id": self.client_id,
            "strategy": self.strategy,
            "message_model": self.message_model.value,
        }


class Known(NamedTuple):
    """The state of the brokers.

    Attributes:
        members: Client ids by group.
        entries: The entry of a broker, a topic and a group in `messageRequestMode.json`.
    """

    members: Mapping[str, list[str]]
    entries: Mapping[tuple[str, str, str], RequestSetting]


@pytest.fixture(scope="module")
def drawn() -> random.Random:
    return random.Random(os.environ.get("LEDGER_SEED", "20261122"))  # noqa: S311  repeatable


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    pops = {"defaultMessageRequestMode": "POP", "defaultPopShareQueueNum": "2"}
    brokers = [PULLS, Broker(POPS, properties=pops)]
    with RealCluster("5.3.3", tmp_path_factory.mktemp("assignments"), brokers=brokers) as cluster:
        for topic, counts in TOPICS.items():
            for broker, queues in zip((PULLS, POPS), counts, strict=True):
                if queues:
                    cluster.create_topic(topic, queues, brokers=[broker])
        yield cluster


@pytest.fixture(scope="module")
def known(cluster: RealCluster, drawn: random.Random) -> Known:
    members = {
        f"group-{number}": drawn.sample(CLIENT_IDS, drawn.randint(1, len(CLIENT_IDS)))
        for number in range(GROUP_COUNT)
    }
    entries = {}
    for group, client_ids in members.items():
        for topic in drawn.sample(sorted(TOPICS), 8):
            # Include shares of no queues, of nearly all queues, and among more clients than there are.
            setting = RequestSetting(
                drawn.choice([RequestMode.POP, RequestMode.POP, RequestMode.POP, RequestMode.PULL]),
                drawn.choice([drawn.randint(1, 4), drawn.randint(-1, len(client_ids) + 1)]),
            )
            # A broker rejects an entry for a topic that it does not have.
            having = [broker for broker, queues in zip((PULLS, POPS), TOPICS[topic], strict=True) if queues]
            for broker in drawn.sample(having, drawn.randint(1, len(having))):
                cluster.set_request_mode(
                    topic, group, setting.mode.value, setting.pop_share_queue_num, [broker]
                )
                entries[broker, topic, group] = setting
    _register(cluster, members)
    return Known(members, entries)


def _register(cluster: RealCluster, members: Mapping[str, list[str]]) -> None:
    """Send the heartbeats, and wait until the brokers and the routes show them."""
    for broker in DEFAULTS:
        for client_id in CLIENT_IDS:
            groups = [group for group, client_ids in members.items() if client_id in client_ids]
            cluster.register(broker, client_id, groups, sorted(TOPICS))

    def missing() -> str | None:
        for group, client_ids in members.items():
            for broker in DEFAULTS:
                listed = cluster.members_known_to(broker, group)
                if set(listed) != set(client_ids):
                    return f"{broker} lists {listed} in {group}, which has {client_ids}"
            if cluster.route(f"%RETRY%{group}", cluster.name_servers[0]) != dict.fromkeys(DEFAULTS, 1):
                return f"the retry topic of {group} has no route"
        return None

    wait_until(missing, 120)


def draw(drawn: random.Random, known: Known, count: int) -> list[Case]:
    """Draw cases, a few of them with clients, groups and strategies that are unknown to the broker."""
    cases = []
    for _ in range(count):
        group = drawn.choice([*known.members, "nobody"] if drawn.random() < 0.05 else [*known.members])
        retry = [f"%RETRY%{group}"] if group in known.members and drawn.random() < 0.1 else []
        members = known.members.get(group, [])
        cases.append(
            Case(
                broker=drawn.choice((PULLS, POPS)),
                topic=drawn.choice(retry or sorted(TOPICS)),
                group=group,
                client_id=drawn.choice(members if members and drawn.random() < 0.95 else ["stranger@0"]),
                strategy="CONSISTENT_HASH" if drawn.random() < 0.03 else drawn.choice(STRATEGIES),
                message_model=MessageModel.BROADCASTING if drawn.random() < 0.05 else MessageModel.CLUSTERING,
            )
        )
    return cases


def expected(
    case: Case, known: Known, *, is_balancing: bool = True
) -> tuple[frozenset[Queue] | None, RequestMode]:
    """Return the library's prediction of the broker's answer, and the request mode."""
    setting = effective_setting(
        case.topic, known.entries.get((case.broker, case.topic, case.group)), DEFAULTS[case.broker]
    )
    counts = TOPICS.get(case.topic, (1, 1))
    queues = [
        MessageQueue(case.topic, broker, number)
        for broker, count in zip((PULLS, POPS), counts, strict=True)
        for number in range(count)
    ]
    view = ClientView(
        case.group,
        case.client_id,
        case.topic,
        queues,
        known.members.get(case.group),
        message_model=case.message_model,
    )
    answer = query_assignment(
        case.strategy, view, setting, broker_name=case.broker, server_load_balancer_enable=is_balancing
    )
    if answer is None:
        return None, setting.mode
    return frozenset(Queue(queue.topic, queue.broker_name, queue.queue_id) for queue in answer), setting.mode


def compare(cluster: RealCluster, known: Known, cases: list[Case], *, is_balancing: bool) -> list[Any]:
    """Return the cases in which the broker's answer differs, with both answers."""
    wrong: list[Any] = []
    for broker in DEFAULTS:
        asked = [case for case in cases if case.broker == broker]
        answers = cluster.query_assignments(broker, [case.question() for case in asked])
        for case, answer in zip(asked, answers, strict=True):
            queues, mode = expected(case, known, is_balancing=is_balancing)
            answered = None if answer is None else frozenset(entry and entry[0] for entry in answer)
            modes = {entry[1] for entry in answer or [] if entry}
            if answered != queues or modes - {mode.value}:
                wrong.append((case, answer, queues, mode))
    return wrong


def test_the_expected_queues_equal_the_brokers_answers(
    cluster: RealCluster, known: Known, drawn: random.Random
) -> None:
    cases = draw(drawn, known, CASE_COUNT)
    kinds = Counter(
        (mode, min(len(queues or ()), 3), any(queue.queue_id < 0 for queue in queues or ()))
        for queues, mode in (expected(case, known) for case in cases)
    )
    # Queues shared by all clients, a part of the queues, and pulled queues.
    assert (
        sum(count for (mode, _, is_all), count in kinds.items() if mode is RequestMode.POP and is_all) > 100
    )
    assert (
        sum(count for (mode, _, is_all), count in kinds.items() if mode is RequestMode.POP and not is_all)
        > 100
    )
    assert sum(count for (mode, _, _), count in kinds.items() if mode is RequestMode.PULL) > 100
    wrong = compare(cluster, known, cases, is_balancing=True)
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, the first: {wrong[0]}"


def test_a_broker_that_does_not_balance_returns_every_queue(
    cluster: RealCluster, known: Known, drawn: random.Random
) -> None:
    for is_balancing in (False, True):
        for broker in DEFAULTS:
            cluster.configure_broker(broker, serverLoadBalancerEnable=str(is_balancing).lower())
        cases = draw(drawn, known, CASES_WITHOUT_BALANCING)
        wrong = compare(cluster, known, cases, is_balancing=is_balancing)
        assert not wrong, f"{len(wrong)} of {len(cases)} differ, the first: {wrong[0]}"
