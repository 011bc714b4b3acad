"""The ledger of real clusters, compared with the queues that their clients own.

One cluster of each release is observed twice: first with correctly configured groups only, then with an additional group
for each mistake and a dead broker. Both times the command line collects, computes, gates and publishes it, as a user would.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.real_cluster import Queue, RealCluster
from tests.real_cluster.java_program import VERSIONS
from tests.real_cluster.releases import each_release
from tests.support.real_groups import (
    BROKERS,
    DIES,
    EVERYBODY_OWNS_ALL,
    HALF_KNOWN,
    HOSTILE_IDS,
    MISTAKES,
    PROVEN_PROCESSES,
    SH_B,
    halve_route,
    settings_of,
    start_badly,
    start_well,
)
from tests.support.started_ledger import PATIENTLY, ask, ledger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

KIND_OF_STATE = {
    "unowned": "unowned",
    "multiple_owners": "multiple_owners",
    "unexpected_owner": "unexpected_owner",
}
KINDS_OF_QUEUES = {*KIND_OF_STATE.values(), "assignment_stale"}
ATTEMPTS = 3
RESTLESS = {group for group, mistake in MISTAKES.items() if mistake.is_restless}
Row = dict[str, Any]


@dataclass(frozen=True)
class Observation:
    """One export of a cluster, and the truth at that time.

    Attributes:
        name: The cluster's name in the ledger.
        owners: By group, the owners of each queue as each process reports them.
        poppers: By group that pops, the clients that pop from each broker.
        drift: By group, its rows of `ownership_drift`.
        chosen: By group, the pairs of queue and client in the effective rows of `queue_assignment`.
        findings: All findings.
        proven_processes: By group, the number of processes that answered with the same client id.
    """

    name: str
    owners: Mapping[str, Mapping[Queue, list[str]]]
    poppers: Mapping[str, Mapping[str, list[str]]]
    drift: Mapping[str, list[Row]]
    chosen: Mapping[str, set[tuple[Queue, str]]]
    findings: list[Row]
    proven_processes: Mapping[str, int]

    def found(self, group: str | None) -> set[tuple[str, str | None]]:
        """Return kind and likely cause of a group's findings; None for findings without a group."""
        return {
            (finding["kind"], finding["likely_cause"])
            for finding in self.findings
            if finding["consumer_group"] == group
        }


@dataclass(frozen=True)
class Outcome:
    """The observations of one release.

    Attributes:
        well: With correctly configured groups only.
        ill: With all mistakes.
        folder: The folder with all files.
    """

    well: Observation
    ill: Observation
    folder: Path


@pytest.fixture(scope="module", params=each_release())
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    version: str = request.param
    folder = tmp_path_factory.mktemp(f"real-{version}")
    with RealCluster(version, folder / "cluster", brokers=BROKERS, nameservers=2) as cluster:
        start_well(cluster, older_client=None if version == VERSIONS[0] else VERSIONS[0])
        cluster.wait_until_stable()
        well = _collect(cluster, "well", folder)
        start_badly(cluster)
        ill = _collect(cluster, "ill", folder)
    return Outcome(_compute(*well, folder), _compute(*ill, folder), folder)


class TestWellConfiguredCluster:
    def test_every_queue_is_a_match_or_shared_by_the_clients_that_pop_it(self, outcome: Outcome) -> None:
        assert set(outcome.well.drift) == set(outcome.well.owners)
        states = {
            (group, row["state"], row["likely_cause"])
            for group, rows in outcome.well.drift.items()
            for row in rows
        }
        # A group that pops its topic pulls its retry topic.
        assert states == {(group, "match", None) for group in outcome.well.owners} | {
            (group, "shared", None) for group in outcome.well.poppers
        }

    def test_the_expected_queues_are_the_queues_that_clients_own(self, outcome: Outcome) -> None:
        owned = {
            group: {(queue, client_id) for queue, ids in owners.items() for client_id in ids}
            for group, owners in outcome.well.owners.items()
        }
        of_pop = {group: outcome.well.chosen[group] - owned[group] for group in outcome.well.poppers}
        assert {group: outcome.well.chosen[group] - of_pop.get(group, set()) for group in owned} == owned

    def test_there_are_no_findings(self, outcome: Outcome) -> None:
        assert outcome.well.findings == []


class TestClusterWithMistakes:
    def test_the_observed_owners_are_the_owners(self, outcome: Outcome) -> None:
        """Each broker forwards the request to one of the processes with one id: they count as one owner unless brokers chose different ones."""
        for group, owners in outcome.ill.owners.items():
            if group not in RESTLESS and group not in outcome.ill.poppers:
                observed = {
                    _queue(row): (row["observed_client_ids"], row["observed_process_count"])
                    for row in outcome.ill.drift[group]
                    if row["observed_process_count"]
                }
                assert observed == {
                    queue: (sorted(set(ids)), len(ids if group in outcome.ill.proven_processes else set(ids)))
                    for queue, ids in owners.items()
                }, group

    def test_the_state_of_each_queue_matches_its_number_of_owners(self, outcome: Outcome) -> None:
        for group, rows in outcome.ill.drift.items():
            if group in RESTLESS or group in outcome.ill.poppers or group == EVERYBODY_OWNS_ALL:
                continue
            for row in rows:
                ids = outcome.ill.owners[group].get(_queue(row), [])
                allowed = {0: {"unowned"}, 1: {"match", "unexpected_owner"}}.get(
                    len(ids), {"multiple_owners"}
                )
                if len(set(ids)) < len(ids) and group not in outcome.ill.proven_processes:
                    allowed = {"unknown"}
                assert row["state"] in allowed, (group, _queue(row))

    @pytest.mark.parametrize("group", sorted(MISTAKES))
    def test_each_mistake_is_found_with_its_cause_and_nothing_else_is_reported(
        self, outcome: Outcome, group: str
    ) -> None:
        mistake = PROVEN_PROCESSES if group in outcome.ill.proven_processes else MISTAKES[group]
        wrong = {
            (row["state"], row["likely_cause"])
            for row in outcome.ill.drift[group]
            if row["state"] not in {"match", "shared", "unknown"}
        }
        found = outcome.ill.found(group)
        of_queues = {pair for pair in found if pair[0] in KINDS_OF_QUEUES}
        assert found - of_queues == mistake.other_findings
        assert of_queues == {(_kind_of(*pair), pair[1]) for pair in wrong} - {(None, "group_offline")}
        if mistake.is_restless:
            assert wrong <= mistake.states
        else:
            assert wrong == mistake.states
            assert {
                row["unknown_reason"] for row in outcome.ill.drift[group] if row["state"] == "unknown"
            } == mistake.unknown

    def test_a_route_missing_on_one_name_server_is_reported_as_divergent(self, outcome: Outcome) -> None:
        """The clients of this group never reach a stable assignment, but one of their problems is permanent."""
        assert {row["state"] for row in outcome.ill.drift["split"]} - {"match", "unknown"}

    def test_groups_without_a_mistake_are_healthy_despite_the_dead_broker(self, outcome: Outcome) -> None:
        for group in outcome.well.owners.keys() - MISTAKES.keys():
            rows = outcome.ill.drift[group]
            shared = {("shared", None)} if group in outcome.ill.poppers else set()
            assert {(row["state"], row["likely_cause"]) for row in rows} == {("match", None), *shared}, group
            assert DIES not in {row["broker_name"] for row in rows}, group
            assert outcome.ill.found(group) == set(), group

    def test_only_faulty_topics_and_brokers_have_findings(self, outcome: Outcome) -> None:
        about = defaultdict(set)
        for finding in outcome.ill.findings:
            if finding["consumer_group"] is None:
                about[finding["kind"]].add(finding["topic"] or finding["broker_name"])
        assert about["broker_missing_on_nameserver"] == {HALF_KNOWN.name, SH_B}
        assert about["route_missing"] == {"fading"}
        assert about["route_differs"] >= {"split", "halved"}
        assert about.keys() == {
            "broker_missing_on_nameserver",
            "route_missing",
            "route_differs",
        }
        differing = {
            (finding["topic"], *finding["examples"])
            for finding in outcome.ill.findings
            if finding["kind"] == "route_differs"
        }
        assert all(brokers == [HALF_KNOWN.name] for topic, *brokers in differing if topic != "halved")
        assert ("halved", SH_B) in differing


def test_client_ids_stay_text_in_every_shell_query_page_and_path(outcome: Outcome) -> None:
    for observation in (outcome.well, outcome.ill):
        owners = {
            client_id for row in observation.drift["hostile"] for client_id in row["observed_client_ids"]
        }
        assert owners == set(HOSTILE_IDS)
    assert not list(outcome.folder.rglob("*pwned*"))


def _collect(cluster: RealCluster, name: str, folder: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Collect the cluster while nothing moves, and return its name with the observed owners and poppers.

    If a broker or a client of a busy machine changes something in the meantime, collect it again.
    """
    settings = {
        "clusters": {
            name: {
                "groups": settings_of(cluster.groups.values()),
                "collect": {**PATIENTLY, "nameservers": cluster.name_servers},
            }
        }
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
    for _ in range(ATTEMPTS):
        shutil.rmtree(folder / "exports" / name, ignore_errors=True)
        before = {group.name: cluster.owners(group) for group in cluster.groups.values()}
        ledger(
            folder,
            "exports",
            "collect",
            "--cluster",
            name,
            "--settings",
            f"{name}.yaml",
            "--exports",
            "exports",
        )
        after = {group.name: cluster.owners(group) for group in cluster.groups.values()}
        moved = {group for group in after if before[group] != after[group]} - RESTLESS
        if not moved:
            break
        if "halved" in cluster.groups:
            halve_route(cluster)
        cluster.wait_until_stable(*(group for group in cluster.groups.values() if group.name not in RESTLESS))
    assert not moved
    poppers = {group.name: cluster.popped(group) for group in cluster.groups.values()}
    return name, after, {group: popped for group, popped in poppers.items() if popped}


def _compute(name: str, owners: dict[str, Any], poppers: dict[str, Any], folder: Path) -> Observation:
    """Run the ledger on the export, and return its published results."""
    (export,) = (folder / "exports" / name).iterdir()
    warehouse = f"{name}-warehouse"
    day = ["--cluster", name, "--ds", export.name, "--settings", f"{name}.yaml", "--exports", "exports"]
    ledger(folder, "run", *day, "--warehouse", warehouse)

    drift = defaultdict(list)
    for row in ask(folder, "SELECT * FROM ownership_drift", warehouse=warehouse):
        drift[row["consumer_group"]].append(row)
    chosen = defaultdict(set)
    of_strategy = "SELECT * FROM queue_assignment WHERE is_effective AND client_id IS NOT NULL"
    for row in ask(folder, of_strategy, warehouse=warehouse):
        chosen[row["consumer_group"]].add((_queue(row), row["client_id"]))
    findings = ask(folder, "SELECT * FROM finding", warehouse=warehouse)
    several = """SELECT consumer_group, count(*) AS process_count FROM silver.client_process
        WHERE state = 'online' GROUP BY consumer_group, client_id HAVING count(*) > 1"""
    processes = ask(folder, several, warehouse=warehouse)
    proven = {row["consumer_group"]: row["process_count"] for row in processes}
    return Observation(name, owners, poppers, drift, chosen, findings, proven)


def _queue(row: Row) -> Queue:
    return Queue(row["topic"], row["broker_name"], row["queue_id"])


def _kind_of(state: str, cause: str | None) -> str | None:
    """Return the kind of finding for such queues; None for those of an offline group, which has one finding for all."""
    if cause == "group_offline":
        return None
    return "assignment_stale" if cause == "route_missing" else KIND_OF_STATE[state]
