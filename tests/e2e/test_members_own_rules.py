"""The ledger of groups whose members use custom strategies, compared with the queues that they really consume or own.

Go clients report their queues but no strategy. The settings contain it, and Go's own implementation of it applies. The
truth is the messages that each client received in its own process. Two further groups consist of Java clients with
different configurations.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.real_cluster import RealCluster
from tests.real_cluster.go_clients import GoConsumers
from tests.real_cluster.processes import wait_until
from tests.support.started_ledger import PATIENTLY, ask, ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(1800)]

VERSION = "5.3.3"
TOPIC = "orders"
HZ, SH = "hz@broker-a", "sh@broker-b"
SETTINGS: Mapping[str, dict[str, Any]] = {
    "go-avg": {"strategy": "AVG"},
    "go-ring": {"strategy": "CONSISTENT_HASH", "virtual_node_count": 10},
    "go-nearby": {
        "strategy": "MACHINE_ROOM_NEARBY",
        "inner": {"strategy": "AVG_BY_CIRCLE"},
        "broker_room": {"separator": "@"},
        "consumer_room": {"prefixes": {"": "hz"}},
    },
    "go-room": {"strategy": "MACHINE_ROOM", "consumer_idcs": ["sh"]},
    "both": {"strategy": "AVG"},
}
"""`both` also has a member in Java."""
NOT_IN_SETTINGS = "go-quiet"
GROUPS = (*SETTINGS, NOT_IN_SETTINGS)
JAVA: Mapping[str, dict[str, Any]] = {
    "rings": {
        "strategy": "CONSISTENT_HASH",
        "virtual_node_count": 10,
        "members": {"10.1.0.2@ring": {"virtual_node_count": 100}},
    },
    "lists": {
        "strategy": "CONFIG",
        "clients": {
            "10.2.0.1@list": [
                {"topic": TOPIC, "broker_name": HZ, "queue_ids": [0, 1, 2, 3, 9]},
                {"topic": "%RETRY%lists", "broker_name": HZ, "queue_ids": [0]},
            ],
            "10.2.0.2@list": [
                {"topic": TOPIC, "broker_name": SH, "queue_ids": [0, 1, 2, 3]},
                {"topic": "%RETRY%lists", "broker_name": SH, "queue_ids": [0]},
            ],
        },
    },
}
"""The topic has no queue 9 on `hz@broker-a`, but the client consumes it nevertheless."""
IN_ORDER = ("go-avg", "go-ring", "go-nearby", "both")
INSTANCES = ("one", "two", "three")
OWNED_QUEUE_COUNT = {"go-room": 4}
"""Each of three members takes a run of one queue from the whole list, and one of them also the remaining queue."""
MESSAGES = 160
"""Enough messages for each of eight queues to receive some."""

Owners = dict[tuple[str, int], set[str]]


@dataclass(frozen=True)
class Day:
    """The published results of the ledger, and the truth.

    Attributes:
        owners: By group, the ids of the clients that consumed each queue of the topic; for Java clients, that own it.
        drift: By group, its rows of `ownership_drift` of the topic.
        chosen: By group, its effective rows of `queue_assignment` of the topic.
        findings: By group, kind and likely cause of its findings.
    """

    owners: Mapping[str, Owners]
    drift: Mapping[str, list[dict[str, Any]]]
    chosen: Mapping[str, list[dict[str, Any]]]
    findings: Mapping[str, set[tuple[str, str | None]]]


class Truth:
    """The consumers of each queue, according to the messages that the clients received in their own processes."""

    def __init__(self, cluster: RealCluster, go: GoConsumers) -> None:
        self._cluster = cluster
        self._go = go
        self._broker_of = {address: name for name, address in cluster.broker_addresses.items()}

    def look(self) -> dict[str, Owners]:
        """Return the current consumers of each queue: send messages to every queue, and wait for all of them."""
        self._go.consumed()
        self._cluster.send(TOPIC, MESSAGES)
        seen: dict[str, Owners] = {group: defaultdict(set) for group in GROUPS}
        for group in self._cluster.groups:
            self._of_java(group, seen.setdefault(group, defaultdict(set)))

        def missing() -> str | None:
            for group, instance, topic, address, queue_id in self._go.consumed():
                if topic == TOPIC:
                    seen[group][(self._broker_of[address], queue_id)].add(self._client_id(group, instance))
            waiting = [group for group in GROUPS if len(seen[group]) < OWNED_QUEUE_COUNT.get(group, 8)]
            return f"{waiting} have not consumed every queue that somebody owns" if waiting else None

        wait_until(missing, 120)
        return {group: dict(owners) for group, owners in seen.items()}

    def settled(self) -> dict[str, Owners]:
        """Return the consumers once two successive observations agree, with one owner for each of eight queues where expected."""
        last: dict[str, Owners] = {}

        def missing() -> str | None:
            nonlocal last
            before, last = last, self.look()
            shared = [group for group in IN_ORDER if any(len(ids) > 1 for ids in last[group].values())]
            return "the clients are still dividing the queues" if shared or before != last else None

        wait_until(missing, 240)
        return last

    def _of_java(self, group: str, seen: Owners) -> None:
        for queue, ids in self._cluster.owners(self._cluster.groups[group]).items():
            if queue.topic == TOPIC:
                seen[(queue.broker_name, queue.queue_id)].update(ids)

    def _client_id(self, group: str, instance: str) -> str:
        ids = self._cluster.members_known_to(HZ, group)
        return next(client_id for client_id in ids if client_id.endswith(f"@{instance}"))


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("go-clients")
    with RealCluster(VERSION, folder / "cluster", brokers=(HZ, SH)) as cluster:
        cluster.create_topic(TOPIC, 4)
        cluster.start_consumers("both", [TOPIC], ["10.0.0.1@java"])
        cluster.start_consumers("lists", [TOPIC], list(JAVA["lists"]["clients"]), JAVA["lists"])
        for client_id, node_count in (("10.1.0.1@ring", 10), ("10.1.0.2@ring", 100)):
            ring = {"strategy": "CONSISTENT_HASH", "virtual_node_count": node_count}
            cluster.start_consumers("rings", [TOPIC], [client_id], ring)
        members = [
            {
                "name_servers": cluster.name_servers,
                "group": group,
                "topic": TOPIC,
                "instance": f"{group}-{instance}",
                **SETTINGS.get(group, {"strategy": "AVG"}),
            }
            for group in GROUPS
            for instance in INSTANCES
        ]
        go = GoConsumers(cluster.processes, folder / "go", members)
        truth = Truth(cluster, go)
        owners = truth.settled()
        settings = {
            "groups": {**SETTINGS, **JAVA},
            "collect": {**PATIENTLY, "nameservers": cluster.name_servers},
        }
        (folder / "ledger.yaml").write_text(yaml.safe_dump({"clusters": {"go": settings}}))
        places = ["--cluster", "go", "--settings", "ledger.yaml", "--exports", "exports"]
        ledger(folder, "exports", "collect", *places)
        assert truth.settled() == owners, "the clients divided the queues anew in the meantime"
    (export,) = (folder / "exports" / "go").iterdir()
    answers = (export / "consumer_running_infos.jsonl").read_text(encoding="utf-8").splitlines()
    errors = [line for line in answers if "payload" not in json.loads(line)]
    assert not errors, f"members did not answer: {errors}"
    ledger(folder, "run", *places, "--ds", export.name, "--warehouse", "warehouse")

    def by_group(table: str) -> dict[str, list[dict[str, Any]]]:
        rows = defaultdict(list)
        for row in ask(folder, f"FROM {table}", warehouse="warehouse"):
            if row["topic"] in {TOPIC, None}:
                rows[row["consumer_group"]].append(row)
        return rows

    chosen = {
        group: [row for row in rows if row["is_effective"]]
        for group, rows in by_group("queue_assignment").items()
    }
    findings = {
        group: {(row["kind"], row["likely_cause"]) for row in rows}
        for group, rows in by_group("finding").items()
    }
    return Day(owners, by_group("ownership_drift"), chosen, findings)


@pytest.mark.parametrize("group", IN_ORDER)
def test_every_queue_is_a_match_with_the_owner_that_consumes_it(day: Day, group: str) -> None:
    seen = {
        (row["broker_name"], row["queue_id"]): (
            row["state"],
            set(row["expected_client_ids"]),
            set(row["observed_client_ids"]),
        )
        for row in day.drift[group]
    }
    assert seen == {queue: ("match", ids, ids) for queue, ids in day.owners[group].items()}
    assert len(seen) == 8


@pytest.mark.parametrize("group", IN_ORDER)
def test_a_healthy_group_has_no_findings(day: Day, group: str) -> None:
    assert day.findings.get(group, set()) == set()


def test_rooms_are_divided_as_go_divides_them(day: Day) -> None:
    """Go divides the whole list: members get queues of the other room, and some queues of their own room have no owner."""
    chosen: Owners = defaultdict(set)
    for row in day.chosen["go-room"]:
        if row["client_id"] is not None:
            chosen[(row["broker_name"], row["queue_id"])].add(row["client_id"])

    assert dict(chosen) == day.owners["go-room"]
    assert {broker for broker, _ in chosen} == {HZ, SH}
    wrong = {(row["state"], row["likely_cause"]) for row in day.drift["go-room"]} - {("match", None)}
    assert wrong == {("unowned", "old_machine_room"), ("unowned", "room_without_clients")}


def test_a_missing_strategy_setting_is_a_finding_and_never_guessed(day: Day) -> None:
    rows = day.drift[NOT_IN_SETTINGS]
    assert {(row["state"], row["strategy"], row["unknown_reason"]) for row in rows} == {
        ("unknown", None, "strategy_not_reported")
    }
    assert {
        (row["broker_name"], row["queue_id"]): set(row["observed_client_ids"]) for row in rows
    } == day.owners[NOT_IN_SETTINGS]
    assert day.findings[NOT_IN_SETTINGS] == {("settings_missing", None)}


def test_members_with_different_parameters_use_their_own(day: Day) -> None:
    rows = day.drift["rings"]
    expected = {(row["broker_name"], row["queue_id"]): set(row["expected_client_ids"]) for row in rows}
    by_count = {
        0: ("unowned", "mixed_parameters"),
        1: ("match", None),
        2: ("multiple_owners", "mixed_parameters"),
    }

    assert {queue: ids for queue, ids in expected.items() if ids} == day.owners["rings"]
    assert [(row["state"], row["likely_cause"]) for row in rows] == [
        by_count[len(row["observed_client_ids"])] for row in rows
    ]


def test_a_configured_queue_that_no_route_has_is_held_as_expected(day: Day) -> None:
    rows = day.drift["lists"]
    assert {row["state"] for row in rows} == {"match"}
    assert {
        (row["broker_name"], row["queue_id"]): set(row["expected_client_ids"]) for row in rows
    } == day.owners["lists"]
    assert [row["queue_id"] for row in rows if row["expected_reason"] == "queue_not_in_route"] == [9]
    assert day.findings.get("lists", set()) == set()


def test_the_source_of_each_strategy_is_recorded(day: Day) -> None:
    sources = {group: {row["strategy_source"] for row in rows} for group, rows in day.chosen.items()}
    assert sources == {
        **{group: {"configured"} for group in SETTINGS},
        **{group: {"observed"} for group in JAVA},
        NOT_IN_SETTINGS: set(),
    }
