"""The gate's expected owners compared with the results of RocketMQ's classes.

A day of golden vectors is valid, and any other owner is detected.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from expectations.suites import metrics
from tests.support.staged_day import StagedDay

if TYPE_CHECKING:
    from collections.abc import Iterator


GOLDEN: Final = Path(__file__).parents[1] / "golden"
OWNERS: Final = "queue_assignment.owners_recomputed"
STATEMENTS: Final = [text for text in metrics.METRIC_STATEMENTS if f"'{OWNERS}'" in text]
CASES_OF_STRATEGY: Final = 30
MOST_QUEUES: Final = 40
REASON: Final = {"CONFIG": "not_in_config_list", "MACHINE_ROOM": "room_without_clients"}
"""Strategy -> the reason for a queue without an owner. Other strategies use `not_assigned_by_strategy`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A sorted list of one topic's queues and one of members, with each member's answer: positions in the list of queues."""

    name: str
    language: str
    versions: dict[str, str]
    """The release of each member."""
    strategy: str
    rule: dict[str, Any]
    queues: list[tuple[str, str, int]]
    client_ids: list[str]
    answers: dict[str, list[int]]

    @property
    def owners(self) -> list[list[str]]:
        """The owners of each queue."""
        return [
            [client_id for client_id in dict.fromkeys(self.client_ids) if position in self.answers[client_id]]
            for position in range(len(self.queues))
        ]


def java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def is_as_clients_ask(case: dict[str, Any]) -> bool:
    """Return whether the case has queues of one topic, not too many, and members, both in the order of the clients."""
    queues, client_ids = case["mq_all"], case["cid_all"]
    if not queues or not client_ids or not all(client_ids) or len(queues) > MOST_QUEUES:
        return False
    if any(field is None for queue in queues for field in queue) or len({queue[0] for queue in queues}) > 1:
        return False
    in_order = sorted({tuple(queue) for queue in queues}, key=lambda queue: (java_order(queue[1]), queue[2]))
    return [tuple(queue) for queue in queues] == in_order and client_ids == sorted(client_ids, key=java_order)


def settings_of(strategy: str, params: dict[str, Any], client_ids: list[str]) -> dict[str, Any] | None:
    """Return the settings of a group with this strategy and parameters, or None if settings cannot express them."""
    if strategy == "CONSISTENT_HASH":
        count = params.get("virtual_nodes")
        return None if "hash" in params else {"virtual_node_count": 10 if count is None else count}
    if strategy == "MACHINE_ROOM":
        return None if params["consumeridcs"] is None else {"consumer_idcs": params["consumeridcs"]}
    if strategy == "MACHINE_ROOM_NEARBY":
        rooms = {"broker_room": params["broker_room"], "consumer_room": params["cid_room"]}
        inner = settings_of(params["inner"], params.get("inner_params") or {}, client_ids)
        if params["inner"] in (None, "CONFIG") or inner is None or None in rooms.values():
            return None
        return {"inner": {"strategy": params["inner"]} | inner} | {
            name: {"names": {key: room for key, room in names.items() if room and isinstance(room, str)}}
            for name, names in rooms.items()
        }
    if strategy == "CONFIG":
        if params["queues"] is None or any(field is None for queue in params["queues"] for field in queue):
            return None
        listed = [
            {"topic": topic, "broker_name": broker, "queue_ids": [queue_id]}
            for topic, broker, queue_id in params["queues"]
        ]
        return {"clients": dict.fromkeys(client_ids, listed)}
    return {}


def java_answers(case: dict[str, Any], *releases: str) -> dict[str, Any]:
    """Return the answer of each member of the case, if the members alternate between these releases."""
    by_release = {
        release: expected.get("by_cid") or [None] * len(case["asked"])
        for expected in case["expect"]
        for release in expected["versions"]
    }
    return {
        client_id: by_release[releases[number % len(releases)]][number]
        for number, client_id in enumerate(case["asked"])
        if client_id
    }


def go_rule(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return the settings of a group of Go clients, or None if settings cannot express the case."""
    rooms = case["consumeridcs"]
    if case["strategy"] == "MACHINE_ROOM":
        return {"consumer_idcs": rooms} if len(set(rooms)) == len(rooms) else None
    if case["strategy"] == "MACHINE_ROOM_NEARBY":
        return {
            "inner": {"strategy": "AVG_BY_CIRCLE"},
            "broker_room": {"names": {}},
            "consumer_room": {"names": {}},
        }
    if case["strategy"] == "CONSISTENT_HASH":
        return {"virtual_node_count": case["virtual_nodes"]} if case["virtual_nodes"] > 0 else None
    return {}


def raw_cases(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(GOLDEN / file, "rt", encoding="utf-8") as lines:
        yield from filter(is_as_clients_ask, map(json.loads, lines))


def java_cases(*releases: str, strategies: frozenset[str]) -> Iterator[Case]:
    for raw in raw_cases("allocate.jsonl.gz"):
        if raw["strategy"] in strategies:
            rule = settings_of(raw["strategy"], raw.get("params") or {}, raw["cid_all"])
            yield from case_of(raw, "JAVA", rule, java_answers(raw, *releases), releases)


def go_cases() -> Iterator[Case]:
    for raw in raw_cases("go_allocate.jsonl.gz"):
        if all(name.isascii() for name in (*raw["cid_all"], *(queue[1] for queue in raw["mq_all"]))):
            answers = dict(
                zip(raw["asked"], (answer.get("positions") for answer in raw["answers"]), strict=True)
            )
            yield from case_of(raw, "GO", go_rule(raw), answers, ("4.5.2",))


def case_of(
    raw: dict[str, Any],
    language: str,
    rule: dict[str, Any] | None,
    answers: dict[str, Any],
    releases: tuple[str, ...],
) -> Iterator[Case]:
    """Yield the case if a staged day can represent it: every answer contains only positions in the topic's queues."""
    client_ids = raw["cid_all"]
    if rule is not None and all(
        isinstance(answers.get(client_id), list)
        and all(isinstance(position, int) for position in answers[client_id])
        for client_id in client_ids
    ):
        versions = {
            client_id: releases[number % len(releases)] for number, client_id in enumerate(raw["asked"])
        }
        yield Case(
            f"{language}-{raw['id']}",
            language,
            {client_id: versions[client_id] for client_id in client_ids},
            raw["strategy"],
            rule,
            [(topic, broker, queue_id) for topic, broker, queue_id in raw["mq_all"]],
            client_ids,
            {client_id: answers[client_id] for client_id in client_ids},
        )


def first_of_each_strategy(cases: Iterator[Case]) -> Iterator[Case]:
    counts: Counter[str] = Counter()
    for case in cases:
        counts[case.strategy] += 1
        if counts[case.strategy] <= CASES_OF_STRATEGY:
            yield case


EVERY: Final = frozenset(
    {"AVG", "AVG_BY_CIRCLE", "CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"}
)
ROOMS: Final = frozenset({"MACHINE_ROOM"})
RINGS_OF_ROOMS: Final = (
    case
    for case in java_cases("5.5.0", strategies=frozenset({"MACHINE_ROOM_NEARBY"}))
    if case.rule["inner"]["strategy"] == "CONSISTENT_HASH"
)
CASES: Final = [
    *first_of_each_strategy(java_cases("5.5.0", strategies=EVERY)),
    *first_of_each_strategy(RINGS_OF_ROOMS),
    *first_of_each_strategy(java_cases("4.7.1", strategies=ROOMS)),
    *first_of_each_strategy(java_cases("4.7.1", "5.5.0", strategies=ROOMS)),
    *first_of_each_strategy(go_cases()),
]


def add_case(day: StagedDay, group: str, case: Case, owners: list[list[str]]) -> None:
    """Add a group with the members of the case, and assignment rows with these owners."""
    (topic, _, _), *_ = case.queues
    for client_id in case.client_ids:
        member = {
            "client_id": client_id,
            "client_language": case.language,
            "client_version": case.versions[client_id],
        }
        day.add("consumer_connection", broker_name="broker-a", consumer_group=group, **member)
    strategy, source = (case.strategy, "observed") if case.language == "JAVA" else (None, "configured")
    for client_id in dict.fromkeys(case.client_ids):
        day.add(
            "consumer_client", consumer_group=group, client_id=client_id, state="online", strategy=strategy
        )
        day.add("client_subscription", consumer_group=group, client_id=client_id, topic=topic)
    is_tried = case.language == "JAVA" and case.rule == {"virtual_node_count": 10}
    if case.rule and not is_tried:
        day.configure(group, strategy=case.strategy, **case.rule)
    for (_, broker, queue_id), of_queue in zip(case.queues, owners, strict=True):
        for client_id in of_queue or [None]:
            day.add(
                "queue_assignment",
                consumer_group=group,
                topic=topic,
                broker_name=broker,
                queue_id=queue_id,
                strategy=case.strategy,
                strategy_source="hypothetical" if is_tried else source,
                is_effective=not is_tried,
                client_id=client_id,
                reason=None if client_id else REASON.get(case.strategy, "not_assigned_by_strategy"),
            )
    day.rate(group, topic, case.strategy, tuple(case.client_ids))


def with_another_owner(case: Case) -> list[list[str]]:
    """Return the owners of the case with one different owner of the last queue, or none if all members own it."""
    *before, last = case.owners
    others = [client_id for client_id in dict.fromkeys(case.client_ids) if client_id not in last]
    return [*before, others[:1]]


@pytest.fixture(scope="module")
def wrong_groups() -> set[str]:
    """Return the groups that violate the expectation: `right-<n>` has the owners of case n, `wrong-<n>` one wrong owner."""
    day = StagedDay()
    for number, case in enumerate(CASES):
        add_case(day, f"right-{number}", case, case.owners)
        if with_another_owner(case) != case.owners:
            add_case(day, f"wrong-{number}", case, with_another_owner(case))
    (row,) = (row for row in day.measure(STATEMENTS) if row["expectation_id"] == OWNERS)
    return {subject["consumer_group"] for subject in row["affected_subjects"] or []}


def test_there_are_cases_of_every_strategy_and_language() -> None:
    counts = Counter((case.language, case.strategy) for case in CASES)

    assert set(counts) == {
        ("GO", "AVG"),
        ("GO", "AVG_BY_CIRCLE"),
        ("GO", "CONSISTENT_HASH"),
        ("GO", "MACHINE_ROOM"),
        ("GO", "MACHINE_ROOM_NEARBY"),
        ("JAVA", "AVG"),
        ("JAVA", "AVG_BY_CIRCLE"),
        ("JAVA", "CONFIG"),
        ("JAVA", "CONSISTENT_HASH"),
        ("JAVA", "MACHINE_ROOM"),
        ("JAVA", "MACHINE_ROOM_NEARBY"),
    }
    assert min(counts.values()) >= 5
    assert min(count for (language, _), count in counts.items() if language == "JAVA") >= 10


def test_the_answers_of_rocketmq_are_valid(wrong_groups: set[str]) -> None:
    wrong = [re.sub(r"\D+", "", group) for group in wrong_groups if group.startswith("right-")]

    assert [CASES[int(number)] for number in sorted(wrong)] == []


def test_any_other_owner_is_detected(wrong_groups: set[str]) -> None:
    seen = {int(group.removeprefix("wrong-")) for group in wrong_groups if group.startswith("wrong-")}
    unseen = [
        case
        for number, case in enumerate(CASES)
        if number not in seen and with_another_owner(case) != case.owners
    ]

    assert unseen == []
