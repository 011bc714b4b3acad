"""The ledger of groups that consume by POP or through a proxy, compared with the behaviour of their clients.

A cluster with a separate proxy (CLUSTER mode) is collected twice while every message is consumed: with access to the proxy,
and without. A broker with a proxy in its own process (LOCAL mode) has gRPC clients and remoting clients that pop.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from tests.real_cluster import Broker, RealCluster
from tests.real_cluster.processes import wait_until
from tests.real_cluster.releases import IN_CI
from tests.support.started_ledger import PATIENTLY, ask, ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.real_cluster import Group, GrpcMember

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(1200)]

MESSAGE_COUNT: Final = 160
TOPIC: Final = "orders"
QUEUES_PER_BROKER: Final = 4
BY_GRPC: Final = ("grpc-push", "grpc-simple", "grpc-fifo")
PROXIES_OWN_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"
BEHIND_A_PROXY: Final = (*BY_GRPC, "through-proxy")
"""Groups without members at the brokers of a cluster in CLUSTER mode."""
BLAMES: Final = {
    "unowned",
    "multiple_owners",
    "unexpected_owner",
    "idle_clients",
    "client_unreachable",
    "group_offline",
}
"""Kinds of findings that report a problem of a group, although all of its messages are consumed."""
POP_SHARE: Final = 1
FIRST_ID: Final = "0.1.0.1@mixed"
"""A client id that sorts before those of gRPC clients, which begin with the host name."""
Row = dict[str, Any]


@dataclass
class Consumers:
    """All consumers of the topic.

    Attributes:
        grpc: gRPC consumers by group.
        remoting: Groups of remoting consumers.
    """

    cluster: RealCluster
    grpc: dict[str, list[GrpcMember]] = field(default_factory=lambda: defaultdict(list))
    remoting: dict[str, Group] = field(default_factory=dict)

    def consumed(self, group: str) -> int:
        """Return the number of messages that the members of a group have consumed."""
        by_grpc = sum(
            self.cluster.consumed_by_grpc(member).get(TOPIC, 0) for member in self.grpc.get(group, [])
        )
        members = self.remoting[group].members if group in self.remoting else []
        return by_grpc + sum(
            consumed.last - consumed.first + 1
            for member in members
            for queue, consumed in self.cluster.consumed(member).items()
            if queue.topic == TOPIC
        )

    def wait_until_consumed(self) -> None:
        """Wait until each group has consumed every message and has written its offsets."""

        def missing() -> str | None:
            for group in {*self.grpc, *self.remoting}:
                if (count := self.consumed(group)) < MESSAGE_COUNT:
                    return f"{group} has consumed {count} of {MESSAGE_COUNT} messages"
            return None

        wait_until(missing, 120)
        for group in self.remoting.values():
            for member in group.members:
                self.cluster.persist_offsets(member)


@dataclass(frozen=True)
class Day:
    """The ledger's results for one export.

    Attributes:
        name: The cluster's name in the ledger.
        folder: The folder with all files.
        fairness: By group, its rows of `assignment_fairness`.
        drift: By group, its rows of `ownership_drift`.
        findings: All findings.
    """

    name: str
    folder: Path
    fairness: Mapping[str, list[Row]]
    drift: Mapping[str, list[Row]]
    findings: list[Row]

    def presence(self, group: str) -> set[tuple[str, str | None]]:
        """Return the states of a group with their reasons, over its topics."""
        return {(row["group_state"], row["group_state_reason"]) for row in self.fairness[group]}

    def states(self, group: str, topic: str = TOPIC) -> set[str]:
        """Return the states of the queues of a topic."""
        return {row["state"] for row in self.drift[group] if row["topic"] == topic}

    def found(self, group: str | None) -> set[str]:
        """Return the kinds of a group's findings."""
        return {finding["kind"] for finding in self.findings if finding["consumer_group"] == group}

    def sharing(self, group: str) -> list[Row]:
        """Return the rows of the topic's queue readers, by queue."""
        rows = self.ask("FROM queue_sharing ORDER BY broker_name, queue_id")
        return [row for row in rows if row["consumer_group"] == group and row["topic"] == TOPIC]

    def lines(self, kind: str) -> list[Row]:
        """Return the lines of one file of the export."""
        (export,) = (self.folder / "exports" / self.name).iterdir()
        return [
            json.loads(line) for line in (export / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        ]

    def ask(self, query: str) -> list[Row]:
        """Return the rows of a query of the published tables."""
        return ask(self.folder, query, warehouse=f"{self.name}-warehouse")


def collect(cluster: RealCluster, name: str, folder: Path, **settings: Any) -> str:
    """Collect the cluster, and return the command's output."""
    collecting = {**PATIENTLY, "nameservers": cluster.name_servers, **settings}
    (folder / f"{name}.yaml").write_text(
        yaml.safe_dump({"clusters": {name: {"collect": collecting}}}), encoding="utf-8"
    )
    given = ["--cluster", name, "--settings", f"{name}.yaml", "--exports", "exports"]
    return ledger(folder, "exports", "collect", *given)


def compute(name: str, folder: Path) -> Day:
    """Run the ledger on the export, and return its published results."""
    (export,) = (folder / "exports" / name).iterdir()
    warehouse = f"{name}-warehouse"
    day = ["--cluster", name, "--ds", export.name, "--settings", f"{name}.yaml", "--exports", "exports"]
    ledger(folder, "run", *day, "--warehouse", warehouse)
    by_group: dict[str, dict[str, list[Row]]] = {}
    for table in ("assignment_fairness", "ownership_drift"):
        by_group[table] = defaultdict(list)
        for row in ask(folder, f"FROM {table}", warehouse=warehouse):
            by_group[table][row["consumer_group"]].append(row)
    findings = ask(folder, "SELECT * FROM finding", warehouse=warehouse)
    return Day(name, folder, by_group["assignment_fairness"], by_group["ownership_drift"], findings)


def deletes_something(findings: Iterable[Row]) -> list[Row]:
    """Return the findings whose advice deletes a group or its offsets, or resets them."""
    words = ("deletesubgroup", "deletetopic", "resetoffset", "delete ")
    return [finding for finding in findings if any(word in finding["advice"].lower() for word in words)]


@dataclass(frozen=True)
class InClusterMode:
    """The days of a cluster with a separate proxy.

    Attributes:
        with_proxy: With access to the proxy.
        without_proxy: Without access.
        client_ids: By group, the ids of the gRPC clients.
    """

    with_proxy: Day
    without_proxy: Day
    client_ids: Mapping[str, set[str]]


@pytest.fixture(scope="module")
def in_cluster_mode(tmp_path_factory: pytest.TempPathFactory) -> InClusterMode:
    folder = tmp_path_factory.mktemp("cluster-mode")
    brokers = [Broker(name, can_pop=True) for name in ("broker-a", "broker-b")]
    with RealCluster(IN_CI, folder / "cluster", brokers=brokers) as cluster:
        consumers = Consumers(cluster)
        proxy = cluster.start_proxy()
        cluster.create_topic(TOPIC, QUEUES_PER_BROKER)
        cluster.create_group("grpc-fifo", is_orderly=True)
        for group, count in {"grpc-push": 2, "grpc-simple": 1, "grpc-fifo": 2, "mixed": 1}.items():
            for _ in range(count):
                is_simple = group == "grpc-simple"
                consumers.grpc[group].append(
                    cluster.start_grpc_consumer(group, [TOPIC], proxy, is_simple=is_simple)
                )
        start = cluster.start_consumers
        consumers.remoting["mixed"] = start("mixed", [TOPIC], ["10.0.0.1@mixed"])
        consumers.remoting["beside"] = start("beside", [TOPIC], ["10.0.1.1@1", "10.0.1.2@2"])
        consumers.remoting["gone"] = start("gone", [TOPIC], ["10.0.2.1@1"])
        consumers.remoting["through-proxy"] = start(
            "through-proxy", [TOPIC], ["10.0.3.1@1", "10.0.3.2@2"], host="through-proxy", proxy=proxy
        )
        cluster.send(TOPIC, MESSAGE_COUNT)
        consumers.wait_until_consumed()
        cluster.stop_consumers(consumers.remoting["gone"], ["10.0.2.1@1"])
        cluster.wait_until_stable(consumers.remoting["beside"], consumers.remoting["mixed"])
        remoting_port = int(proxy.remoting_address.rpartition(":")[2])
        collect(cluster, "reached", folder, proxy_port=remoting_port)
        collect(cluster, "unreached", folder, proxy_port=cluster.unused_port())
        client_ids = {
            group: {member.client_id for member in members} for group, members in consumers.grpc.items()
        }
    # In parallel: most of a small day is Spark's driver, which uses one core.
    with ThreadPoolExecutor() as executor:
        with_proxy, without_proxy = executor.map(compute, ("reached", "unreached"), (folder, folder))
    return InClusterMode(with_proxy, without_proxy, client_ids)


class TestReachableProxy:
    @pytest.mark.parametrize("group", [*BEHIND_A_PROXY, "mixed", "beside"])
    def test_consuming_groups_are_online(self, in_cluster_mode: InClusterMode, group: str) -> None:
        assert in_cluster_mode.with_proxy.presence(group) == {("online", None)}

    def test_the_answer_of_the_proxy_is_kept_with_the_members_that_it_lists(
        self, in_cluster_mode: InClusterMode
    ) -> None:
        listed = defaultdict(set)
        query = "SELECT consumer_group, client_id FROM silver.proxy_connection"
        for row in in_cluster_mode.with_proxy.ask(query):
            listed[row["consumer_group"]].add(row["client_id"])
        for group, client_ids in in_cluster_mode.client_ids.items():
            assert listed[group] == client_ids, group
        assert listed["through-proxy"] == {"10.0.3.1@1", "10.0.3.2@2"}
        assert "beside" not in listed

    @pytest.mark.parametrize("group", [*BY_GRPC, "through-proxy"])
    def test_queues_of_proxy_clients_are_neither_unowned_nor_a_match(
        self, in_cluster_mode: InClusterMode, group: str
    ) -> None:
        """Remoting clients divide the queues, but the collector cannot query clients behind a proxy for their queues."""
        state = "shared" if group in BY_GRPC else "unknown"
        assert in_cluster_mode.with_proxy.states(group) == {state}

    @pytest.mark.parametrize("group", BY_GRPC)
    def test_every_grpc_client_may_read_every_queue(self, in_cluster_mode: InClusterMode, group: str) -> None:
        rows = in_cluster_mode.with_proxy.sharing(group)
        assert len(rows) == 2 * QUEUES_PER_BROKER
        client_ids = in_cluster_mode.client_ids[group]
        assert {tuple(sorted(row["expected_reader_ids"])) for row in rows} == {tuple(sorted(client_ids))}
        assert {row["sharing_degree"] for row in rows} == {len(client_ids)}
        assert {row["ready_count"] for row in rows} == {0}

    def test_a_group_of_grpc_and_remoting_clients_is_not_a_match(
        self, in_cluster_mode: InClusterMode
    ) -> None:
        assert in_cluster_mode.with_proxy.states("mixed") == {"shared"}
        assert "mixed_request_modes" in in_cluster_mode.with_proxy.found("mixed")

    def test_the_remoting_client_of_a_mixed_group_owns_the_whole_plain_retry_topic(
        self, in_cluster_mode: InClusterMode
    ) -> None:
        assert in_cluster_mode.with_proxy.states("mixed", "%RETRY%mixed") == {"match"}

    def test_a_group_that_is_not_behind_the_proxy_is_a_match(self, in_cluster_mode: InClusterMode) -> None:
        assert in_cluster_mode.with_proxy.states("beside") == {"match"}
        assert in_cluster_mode.with_proxy.found("beside") == set()

    def test_a_stopped_group_is_offline_and_its_deletion_is_not_advised_after_one_day(
        self, in_cluster_mode: InClusterMode
    ) -> None:
        assert in_cluster_mode.with_proxy.presence("gone") == {("offline", None)}
        assert in_cluster_mode.with_proxy.found("gone") == {"group_offline"}


class TestUnreachableProxy:
    @pytest.mark.parametrize("group", [*BEHIND_A_PROXY, "gone"])
    def test_information_that_only_the_proxy_has_is_unknown(
        self, in_cluster_mode: InClusterMode, group: str
    ) -> None:
        assert in_cluster_mode.without_proxy.presence(group) == {("unknown", "may_be_behind_a_proxy")}
        assert in_cluster_mode.without_proxy.states(group) == {"unknown"}
        assert in_cluster_mode.without_proxy.found(group) == {"members_unknown"}

    @pytest.mark.parametrize("group", ["mixed", "beside"])
    def test_a_group_with_members_listed_by_brokers_is_online_and_not_a_match(
        self, in_cluster_mode: InClusterMode, group: str
    ) -> None:
        """More members can be behind the proxy, as in `mixed`; nothing else in the export distinguishes the two groups."""
        assert in_cluster_mode.without_proxy.presence(group) == {("online", None)}
        assert in_cluster_mode.without_proxy.states(group) == {"unknown"}


@pytest.fixture(params=["with_proxy", "without_proxy"])
def day(request: pytest.FixtureRequest, in_cluster_mode: InClusterMode) -> Day:
    either: Day = getattr(in_cluster_mode, request.param)
    return either


class TestReachableAndUnreachableProxy:
    @pytest.mark.parametrize("group", [*BEHIND_A_PROXY, "mixed", "beside"])
    def test_a_group_whose_messages_are_all_consumed_has_no_ownership_findings(
        self, day: Day, group: str
    ) -> None:
        # Two kinds of clients really read the queues of `mixed`.
        assert not day.found(group) & (BLAMES - ({"multiple_owners"} if group == "mixed" else set()))

    def test_no_advice_deletes_anything(self, day: Day) -> None:
        assert deletes_something(day.findings) == []

    def test_system_groups_of_rocketmq_are_not_user_groups(self, day: Day) -> None:
        assert any(line["group"] == PROXIES_OWN_GROUP for line in day.lines("consumer_connections"))
        named = {*day.fairness, *day.drift, *(finding["consumer_group"] for finding in day.findings)}
        assert not {group for group in named if group and group.startswith("CID_")}


@pytest.fixture(scope="module")
def in_local_mode(tmp_path_factory: pytest.TempPathFactory) -> tuple[Day, Mapping[str, Sequence[str]]]:
    """Return the day of a broker with a proxy, and the ids of its gRPC clients by group."""
    folder = tmp_path_factory.mktemp("local-mode")
    with RealCluster(
        IN_CI, folder / "cluster", brokers=[Broker("broker-a", has_proxy=True, can_pop=True)]
    ) as cluster:
        consumers = Consumers(cluster)
        proxy = cluster.proxies["broker-a"]
        cluster.create_topic(TOPIC, QUEUES_PER_BROKER)
        cluster.create_group("grpc-fifo", is_orderly=True)
        for group, is_simple in {
            "grpc-push": False, "grpc-simple": True, "grpc-fifo": False, "mixed": False,
        }.items():  # fmt: skip
            consumers.grpc[group].append(
                cluster.start_grpc_consumer(group, [TOPIC], proxy, is_simple=is_simple)
            )
        start = cluster.start_consumers
        consumers.remoting["mixed"] = start("mixed", [TOPIC], [FIRST_ID])
        consumers.remoting["beside"] = start("beside", [TOPIC], ["10.1.1.1@1", "10.1.1.2@2"])
        for group in ("pop-share", "pop-and-pull"):
            cluster.set_request_mode(TOPIC, group, "POP", POP_SHARE)
        start("pop-share", [TOPIC], _ids("10.1.2", 4), is_rebalanced_by_server=True)
        start("pop-and-pull", [TOPIC], _ids("10.1.3", 2), is_rebalanced_by_server=True)
        start("pop-and-pull", [TOPIC], ["10.1.3.3@3"])
        cluster.send(TOPIC, MESSAGE_COUNT)
        consumers.wait_until_consumed()
        cluster.wait_until_stable()
        collect(cluster, "local", folder)
        client_ids = {
            group: [member.client_id for member in members] for group, members in consumers.grpc.items()
        }
    return compute("local", folder), client_ids


class TestBrokerWithLocalProxy:
    def test_grpc_clients_are_listed_and_not_asked(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        day, client_ids = in_local_mode
        grpc = {client_id for ids in client_ids.values() for client_id in ids}
        listed = {
            connection["clientId"]
            for line in day.lines("consumer_connections")
            for connection in json.loads(line.get("payload", "{}")).get("connectionSet", [])
        }
        assert listed >= grpc
        running_infos = {
            line["client_id"]: line.get("error", {}).get("type")
            for line in day.lines("consumer_running_infos")
        }
        assert {running_infos[client_id] for client_id in grpc} == {"NotAsked"}
        assert {kind for client_id, kind in running_infos.items() if client_id not in grpc} == {None}

    def test_no_finding_reports_missing_answers_of_grpc_clients(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        day, _ = in_local_mode
        for group in (*BY_GRPC, "mixed"):
            assert day.presence(group) == {("online", None)}
            blames = {*BLAMES, "members_unknown", "strategy_unknown"}
            assert not day.found(group) & (blames - ({"multiple_owners"} if group == "mixed" else set()))
        assert "source_failed" not in {finding["kind"] for finding in day.findings}

    @pytest.mark.parametrize("group", BY_GRPC)
    def test_queues_that_a_grpc_client_pops_are_shared(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]], group: str
    ) -> None:
        assert in_local_mode[0].states(group) == {"shared"}

    def test_no_queue_of_a_group_of_grpc_and_remoting_clients_is_unowned_or_a_match(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        """The broker counts the gRPC client, so the remoting client takes half of the queues; the gRPC client reads all."""
        day, _ = in_local_mode
        assert day.states("mixed") == {"shared"}
        pullers = Counter(tuple(row["puller_ids"]) for row in day.sharing("mixed"))
        assert pullers == {(FIRST_ID,): 2, (): 2}
        assert "mixed_request_modes" in day.found("mixed")

    def test_the_remoting_client_of_a_mixed_group_owns_the_queue_of_the_plain_retry_topic(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        """No gRPC client reads that topic, and the first of the members gets its queue."""
        assert in_local_mode[0].states("mixed", "%RETRY%mixed") == {"match"}

    def test_a_group_of_remoting_clients_only_is_a_match(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        assert in_local_mode[0].states("beside") == {"match"}
        assert in_local_mode[0].found("beside") == set()

    def test_each_queue_is_shared_by_the_number_of_clients_in_the_brokers_entry(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        """There are four clients and four queues: each client reads its own queue and those of the next client."""
        day, _ = in_local_mode
        rows = day.sharing("pop-share")
        ids = _ids("10.1.2", 4)
        assert [sorted(row["expected_reader_ids"]) for row in rows] == [
            sorted([ids[number], ids[number - 1]]) for number in range(4)
        ]
        assert all(row["observed_reader_ids"] == row["expected_reader_ids"] for row in rows)
        assert {row["sharing_degree"] for row in rows} == {1 + POP_SHARE}

    def test_a_group_that_pops_and_pulls_is_not_a_match_and_its_advice_names_the_fix(
        self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]
    ) -> None:
        day, _ = in_local_mode
        assert "match" not in day.states("pop-and-pull")
        advice = " ".join(
            finding["advice"] for finding in day.findings if finding["consumer_group"] == "pop-and-pull"
        )
        assert "clientRebalance" in advice
        assert "allocateMessageQueueStrategy" not in advice
        assert "idle_clients" not in day.found("pop-and-pull")

    def test_no_advice_deletes_anything(self, in_local_mode: tuple[Day, Mapping[str, Sequence[str]]]) -> None:
        assert deletes_something(in_local_mode[0].findings) == []


def _ids(network: str, count: int) -> list[str]:
    return [f"{network}.{number}@{number}" for number in range(1, count + 1)]
