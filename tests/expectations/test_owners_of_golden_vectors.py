"""The gate's own owners against what RocketMQ's classes answered: a day of golden vectors is in order, and any other owner is not."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from expectations import metrics
from tests.support.staged_day import StagedDay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GOLDEN: Final = Path(__file__).parents[1] / "golden"
OWNERS: Final = "queue_assignment.owners_recomputed"
STATEMENTS: Final = [text for text in metrics.METRIC_STATEMENTS if f"'{OWNERS}'" in text]
CASES_OF_STRATEGY: Final = 30
MOST_QUEUES: Final = 40
REASON: Final = {"CONFIG": "not_in_config_list", "MACHINE_ROOM": "room_without_clients"}
"""Why a queue has no owner; `not_assigned_by_strategy` by other strategies."""


@dataclass(frozen=True, slots=True)
class Case:
    """A sorted topic and list of members, with what each member answered: positions in the list of queues."""

    name: str
    language: str
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
    """Whether queues and members are there, sorted as clients sort them, of one topic, and few."""
    queues, client_ids = case["mq_all"], case["cid_all"]
    if not queues or not client_ids or not all(client_ids) or len(queues) > MOST_QUEUES:
        return False
    if any(field is None for queue in queues for field in queue) or len({queue[0] for queue in queues}) > 1:
        return False
    in_order = sorted({tuple(queue) for queue in queues}, key=lambda queue: (java_order(queue[1]), queue[2]))
    return [tuple(queue) for queue in queues] == in_order and client_ids == sorted(client_ids, key=java_order)


def settings_of(strategy: str, params: dict[str, Any], client_ids: list[str]) -> dict[str, Any] | None:
    """What a user says in the settings of a group that was constructed so; None where settings cannot say it."""
    if strategy == "CONSISTENT_HASH":
        count = params.get("virtual_nodes")
        return None if "hash" in params else {"virtual_node_count": 10 if count is None else count}
    if strategy == "MACHINE_ROOM":
        return None if params["consumeridcs"] is None else {"consumer_idcs": params["consumeridcs"]}
    if strategy == "MACHINE_ROOM_NEARBY":
        rooms = {"broker_room": params["broker_room"], "consumer_room": params["cid_room"]}
        if params["inner"] not in ("AVG", "AVG_BY_CIRCLE"):
            return None
        return {"inner": {"strategy": params["inner"]}} | {
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


def answered(case: dict[str, Any], language: str) -> list[Any] | None:
    """What the members of the case answered; in Java those of the newest release."""
    if language == "GO":
        return [answer.get("positions") for answer in case["answers"]]
    newest = [expected for expected in case["expect"] if "5.5.0" in expected["versions"]]
    return newest[0].get("by_cid") if newest else None


def cases(language: str, file: str) -> Iterator[Case]:
    """The first cases of each strategy that a staged day can hold."""
    counts: Counter[str] = Counter()
    with gzip.open(GOLDEN / file, "rt", encoding="utf-8") as lines:
        for raw in map(json.loads, lines):
            strategy, client_ids = raw["strategy"], raw["cid_all"]
            if counts[strategy] == CASES_OF_STRATEGY or not is_as_clients_ask(raw):
                continue
            if language == "GO":
                if strategy != "CONSISTENT_HASH" or raw["virtual_nodes"] <= 0:
                    continue
                if not all(name.isascii() for name in (*client_ids, *(queue[1] for queue in raw["mq_all"]))):
                    continue
                params: dict[str, Any] = {"virtual_nodes": raw["virtual_nodes"]}
            else:
                params = raw.get("params") or {}
            rule, answers = settings_of(strategy, params, client_ids), answered(raw, language)
            by_client = dict(zip(raw["asked"], answers or [], strict=False))
            # What is named beside the topic's queues is not one of its rows.
            if rule is None or any(
                not isinstance(by_client.get(client_id), list)
                or not all(isinstance(position, int) for position in by_client[client_id])
                for client_id in client_ids
            ):
                continue
            counts[strategy] += 1
            queues = [(topic, broker, queue_id) for topic, broker, queue_id in raw["mq_all"]]
            yield Case(
                f"{language}-{raw['id']}",
                language,
                strategy,
                rule,
                queues,
                client_ids,
                {client_id: by_client[client_id] for client_id in client_ids},
            )


CASES: Final = [*cases("JAVA", "allocate.jsonl.gz"), *cases("GO", "go_allocate.jsonl.gz")]


def add_case(day: StagedDay, group: str, case: Case, owners: list[list[str]]) -> None:
    """A group whose members are those of the case, and whose rows say these owners."""
    (topic, _, _), *_ = case.queues
    for client_id in case.client_ids:
        member = {"client_id": client_id, "client_language": case.language, "client_version": "5.5.0"}
        day.add("consumer_connection", broker_name="broker-a", consumer_group=group, **member)
    told, source = (case.strategy, "observed") if case.language == "JAVA" else (None, "configured")
    for client_id in dict.fromkeys(case.client_ids):
        day.add("consumer_client", consumer_group=group, client_id=client_id, state="online", strategy=told)
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
    """The owners of the case, but for the last queue: another member's, or the first member's if it has none or all."""
    *before, last = case.owners
    others = [client_id for client_id in dict.fromkeys(case.client_ids) if client_id not in last]
    return [*before, others[:1]]


@pytest.fixture(scope="module")
def wrong_groups(spark: SparkSession) -> set[str]:
    """The groups that break the expectation: `right-<n>` has the owners of case n, `wrong-<n>` all but one."""
    day = StagedDay()
    for number, case in enumerate(CASES):
        add_case(day, f"right-{number}", case, case.owners)
        if with_another_owner(case) != case.owners:
            add_case(day, f"wrong-{number}", case, with_another_owner(case))
    (row,) = (row for row in day.measure(spark, STATEMENTS) if row["expectation_id"] == OWNERS)
    return {offender["consumer_group"] for offender in row["offenders"] or []}


def test_there_are_cases_of_every_strategy_and_language() -> None:
    counts = Counter((case.language, case.strategy) for case in CASES)

    assert set(counts) == {
        ("GO", "CONSISTENT_HASH"),
        ("JAVA", "AVG"),
        ("JAVA", "AVG_BY_CIRCLE"),
        ("JAVA", "CONFIG"),
        ("JAVA", "CONSISTENT_HASH"),
        ("JAVA", "MACHINE_ROOM"),
        ("JAVA", "MACHINE_ROOM_NEARBY"),
    }
    assert min(counts.values()) >= 10


def test_what_rocketmq_answered_is_in_order(wrong_groups: set[str]) -> None:
    wrong = [re.sub(r"\D+", "", group) for group in wrong_groups if group.startswith("right-")]

    assert [CASES[int(number)] for number in sorted(wrong)] == []


def test_any_other_owner_is_seen(wrong_groups: set[str]) -> None:
    seen = {int(group.removeprefix("wrong-")) for group in wrong_groups if group.startswith("wrong-")}
    unseen = [
        case
        for number, case in enumerate(CASES)
        if number not in seen and with_another_owner(case) != case.owners
    ]

    assert unseen == []
