"""Broadcasting consumers with real offset files: the ledger's results, compared with the later behaviour of the clients.

Clients write their files on separate disks; clients of several releases run side by side. After the first day some files
are damaged, lost or restored from a backup. On the second day the ledger runs, every process is killed, and every client
is started again with exactly the files in the drop folder. Only RocketMQ writes the files; the test only removes, copies
and truncates them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from rebalance_ledger.rocketmq.json import loads
from tests.real_cluster import Broker, Group, Member, NoAnswerError, Queue, RealCluster
from tests.real_cluster.java_program import VERSIONS
from tests.real_cluster.processes import wait_until
from tests.real_cluster.releases import IN_CI
from tests.support.started_ledger import PATIENTLY, ask, ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tests.real_cluster import Consumed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

BROKER_RELEASE: Final = "5.5.0"
# Without its timers a broker of this release cannot delete topics.
BROKER: Final = Broker("broker-a", properties={"timerWheelEnable": "true"})
QUEUE_COUNT: Final = 4
TIMEOUT_S: Final = 120
A_DAY: Final = timedelta(days=1)

# The offsets of each queue of `notices` over time. After the first day they have one more digit, so files become longer.
AT_BACKUP: Final = 2
ON_THE_FIRST_DAY: Final = 9
AT_THE_ACCIDENTS: Final = 19
ON_THE_SECOND_DAY: Final = 29
AFTER_THE_RESTART: Final = 39

# `remade` loses its log and half of its queues.
REMADE_BEFORE: Final = 5
REMADE_AFTER: Final = 2
REMADE_IN_THE_END: Final = 12
REMADE_QUEUE_COUNT: Final = QUEUE_COUNT // 2

WRITES_IN_PLACE: Final = frozenset(VERSIONS) - {"4.9.7"}
"""Releases that overwrite the main file (from 5.1.0); older releases write another file and rename it."""

CORRECTED_AT_ONCE: Final = frozenset(VERSIONS) - {"4.9.7"}
"""Releases that a broker immediately corrects to the end of a log (from 5.2.0). Older releases wait, and continue from their
stored offset if the log has grown past it meanwhile, which happens here.
"""

TOGETHER: Final = {
    (IN_CI,): [],
    tuple(release for release in VERSIONS if release != IN_CI): [pytest.mark.every_release],
}
"""The releases whose clients share one cluster, with the marks of its tests."""


@dataclass(frozen=True)
class Fate:
    """The expected results for a client on the second day.

    Attributes:
        files: The state of its files.
        queues: The states of its queues.
        kinds: The kinds of its findings.
        restarts: The reason for the position after a restart; None if no client reads the files, or none owns the queue.
    """

    files: str
    queues: frozenset[str]
    kinds: frozenset[str]
    restarts: frozenset[str | None]


def _fate(files: str, queues: str, restarts: str | None, *kinds: str) -> Fate:
    return Fate(files, frozenset({queues}), frozenset(kinds), frozenset({restarts}))


FATES: Final[Mapping[str, Fate]] = {
    "well": _fate("ok", "ok", "stored"),
    "also-well": _fate("ok", "ok", "stored"),
    "gone": _fate("missing", "no_offset", "default_first", "offset_file_lost"),
    "also-gone": _fate("missing", "no_offset", "default_last", "offset_file_lost"),
    "emptied": _fate("empty", "no_offset", "default_first", "offset_file_lost"),
    "main-torn": _fate("recovered_from_bak", "ok", "stored", "offset_file_recovered"),
    "both-torn": _fate("corrupt_both", "no_offset", "fails_to_start", "offset_files_corrupt"),
    "put-back": _fate("ok", "regressed", "stored", "broadcast_offset_regressed"),
    "old-process": _fate("orphan_dir", "unused", None, "offset_file_unused"),
    "new-process": _fate("ok", "ok", "stored"),
    "unshipped": _fate("stale", "ok", "stored", "offset_file_stale"),
    "turned": _fate("clustering_group_with_file", "unused", None, "offset_file_unused"),
    "remade": Fate(
        "ok",
        frozenset({"ahead_of_max", "orphan_queue"}),
        frozenset({"broadcast_offset_ahead"}),
        frozenset({"corrected_by_broker_to_max", None}),
    ),
    # A broker forwards a query to one of the two processes; their two connections could also be a dead one and its successor.
    "same": _fate("ok", "ok", "stored", "duplicate_client_id"),
    "cut-once": _fate("recovered_from_bak", "ok", "stored", "offset_file_recovered"),
    "cut-twice": _fate("corrupt_both", "no_offset", "fails_to_start", "offset_files_corrupt"),
}
"""By the name of what happened to the client."""

_FULL_DISK_OF_OLD: Final = _fate("stale", "ok", "stored", "offset_file_stale")
"""A release that renames keeps its last good file on a full disk."""

FULL_DISK: Final = ("cut-once", "cut-twice")
ONLINE: Final = frozenset({"well", "also-well", "new-process", "unshipped", "same", *FULL_DISK})
NEVER_MS: Final = 24 * 3_600_000
"""The interval at which clients on the full disk write after the first time, so that the number of failed writes is known."""


def fate(name: str, release: str) -> Fate:
    """Return the expected results for this client of this release."""
    return _FULL_DISK_OF_OLD if name in FULL_DISK and release not in WRITES_IN_PLACE else FATES[name]


class Site:
    """The clients of one release: three JVMs on two machines.

    Two processes share the disk of the first machine; the disk of the second one becomes full.
    """

    def __init__(self, cluster: RealCluster, release: str, drop: Path) -> None:
        self.cluster = cluster
        self.release = release
        self.drop = drop
        self.node, self.second, self.full = (f"{name}-{release}" for name in ("node", "second", "full"))
        number = VERSIONS.index(release) + 1
        self._address = {
            self.node: f"10.{number}.0.1",
            self.second: f"10.{number}.0.1",
            self.full: f"10.{number}.0.2",
        }
        self.members: dict[str, Member] = {}
        self.client_ids: dict[str, str] = {}
        self._wanted: dict[str, dict[str, Any]] = {}

    def group(self, name: str) -> str:
        return f"{name}-{self.release.replace('.', '-')}"

    def start(
        self,
        name: str,
        group: str = "first",
        *,
        host: str = "",
        instance: str = "",
        topic: str = "notices",
        **how: Any,
    ) -> None:
        """Start the client with the name of a fate."""
        host = host or self.node
        self.client_ids[name] = f"{self._address[host]}@{instance or name}"
        self._wanted[name] = {
            "group": self.group(group), "topics": [topic], "client_ids": [self.client_ids[name]],
            "host": host, "version": self.release, "is_broadcasting": True, **how,
        }  # fmt: skip
        self.start_again(name)

    def start_again(self, name: str) -> None:
        """Start a client again with the same settings.

        Raises:
            NoAnswerError: It does not start.
        """
        self.members[name] = self.cluster.start_consumers(**self._wanted[name]).members[-1]

    def start_client_with_same_id(self, name: str) -> None:
        """Start a second process with the same client id, on the same disk."""
        self.cluster.start_consumers(**{**self._wanted[name], "host": self.second}, disk=self.node)

    def stop(self, name: str) -> None:
        self.cluster.stop_consumers(self.cluster.groups[self._wanted[name]["group"]], [self.client_ids[name]])

    def on_disk(self, name: str) -> Path:
        """Return the folder of its client id on its host."""
        return self.cluster.offsets_folder(self._wanted[name]["host"]) / self.client_ids[name]

    def landed(self, name: str) -> Path:
        """Return the folder of its client id in the drop folder."""
        return self.drop / self._address[self._wanted[name]["host"]] / self.client_ids[name]

    def files(self, name: str) -> tuple[Path, Path]:
        """Return its main file and its backup file, on its host."""
        main = self.on_disk(name) / self._wanted[name]["group"] / "offsets.json"
        return main, main.with_suffix(".json.bak")

    def ship(self, *names: str) -> None:
        """Copy folders of client ids as `rsync -a --delete` does."""
        for name in names:
            with self.cluster.frozen(self._wanted[name]["host"]):
                _copy(self.on_disk(name), self.landed(name))

    def wait_until_read(self, offset: int, *names: str) -> None:
        """Wait until clients have received all messages before this offset in every queue."""

        def missing() -> str | None:
            for name in names:
                given = self.cluster.consumed(self.members[name])
                if [queue.last for queue in given.values()] != [offset - 1] * QUEUE_COUNT:
                    return f"{name} of {self.release} was given {given}"
            return None

        wait_until(missing, TIMEOUT_S)

    def wait_until_at(self, offset: int, *names: str) -> None:
        """Wait until the next offset that clients read is this one in every queue that they own."""

        def missing() -> str | None:
            for name in names:
                held = loads(self.cluster.running_info(self.members[name]))["mqTable"]
                at = [process_queue["commitOffset"] for queue, process_queue in held.items()]
                if not at or set(at) != {offset}:
                    return f"{name} of {self.release} is at {at}"
            return None

        wait_until(missing, TIMEOUT_S)

    def wait_until_first_write(self, *names: str) -> None:
        """Wait until the timers of clients have written their offsets, ten seconds after the start."""

        def missing() -> str | None:
            for name in names:
                if not self.files(name)[0].exists():
                    return f"{name} of {self.release} has not written its offsets"
            return None

        wait_until(missing, TIMEOUT_S)

    def wait_until_stored(self, offset: int, *names: str) -> None:
        """Wait until both files of clients have this offset for every queue."""

        def missing() -> str | None:
            for name in names:
                self.cluster.persist_offsets(self.members[name])
                for file in self.files(name):
                    if _offsets_in(file) != [offset] * QUEUE_COUNT:
                        return f"{file} has {_offsets_in(file)}"
            return None

        wait_until(missing, TIMEOUT_S)


@dataclass(frozen=True)
class Outcome:
    """The ledger's results, and the behaviour of the clients.

    Attributes:
        sites: The clients by release.
        files: Rows of `broadcast_offset_file`, by client id.
        offsets: Rows of `broadcast_offset`, by client id.
        kinds: Kinds of findings, by client id; None for those without a client.
        refusals: Error messages of the clients that did not start again, by client id.
        consumed: Offsets that the other clients received, by client id.
    """

    sites: Mapping[str, Site]
    files: Mapping[str, dict[str, Any]]
    offsets: Mapping[str, list[dict[str, Any]]]
    kinds: Mapping[str | None, set[str]]
    refusals: Mapping[str, str]
    consumed: Mapping[str, Mapping[Queue, Consumed]]

    def by_name(self, release: str, ask: Callable[[str], Any]) -> dict[str, Any]:
        """Return the result of a function of the client id for each client of a release, by the name of its fate."""
        return {name: ask(client_id) for name, client_id in self.sites[release].client_ids.items()}


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return the outcome for clients of several releases, one entry of `TOGETHER`."""
    releases: tuple[str, ...] = request.param
    folder = tmp_path_factory.mktemp("broadcast")
    drop = folder / "drop"
    with RealCluster(BROKER_RELEASE, folder / "cluster", brokers=[BROKER]) as cluster:
        cluster.create_topic("notices", QUEUE_COUNT)
        cluster.create_topic("remade", QUEUE_COUNT)
        sites = {release: Site(cluster, release, drop) for release in releases}
        for site in sites.values():
            _start(site)
        _live_the_first_day(cluster, sites.values())
        for site in sites.values():
            site.ship(*site.members)
        _collect(cluster, folder)
        _copy(drop, folder / "first-drop")
        _move_to_the_day_before(folder)

        _live_the_second_day(cluster, sites.values())
        _date_what_is_unchanged_a_day_before(drop, folder / "first-drop")
        _collect(cluster, folder)
        refusals, consumed = _start_everything_again(cluster, sites.values())
    (_, export) = sorted((folder / "exports" / "real").iterdir())
    ledger(
        folder,
        "run",
        "--cluster",
        "real",
        "--ds",
        export.name,
        "--exports",
        "exports",
        "--warehouse",
        "warehouse",
    )
    offsets = defaultdict(list)
    for row in ask(folder, "SELECT * FROM broadcast_offset", warehouse="warehouse"):
        offsets[row["client_id"]].append(row)
    kinds = defaultdict(set)
    for row in ask(folder, "SELECT * FROM finding", warehouse="warehouse"):
        kinds[row["client_id"]].add(row["kind"])
    files = ask(folder, "SELECT * FROM broadcast_offset_file", warehouse="warehouse")
    return Outcome(sites, {row["client_id"]: row for row in files}, offsets, kinds, refusals, consumed)


def _start(site: Site) -> None:
    """Start all clients of a release in their state of the first day."""
    for name in ("well", "gone", "emptied", "main-torn", "both-torn", "put-back", "unshipped", "same"):
        site.start(name)
    for name in ("also-well", "also-gone"):
        site.start(name, "last", consume_from="CONSUME_FROM_LAST_OFFSET")
    site.start("turned", "turned")
    site.start("remade", "remade", topic="remade")
    # Applications name their instances like this if each process must have its own name.
    site.start("old-process", instance=f"{site.cluster.process_ids()[site.node]}#1")
    for name in FULL_DISK:
        site.start(name, host=site.full, persist_interval_ms=NEVER_MS)
    site.start_client_with_same_id("same")
    site.wait_until_first_write(*FULL_DISK)


def _live_the_first_day(cluster: RealCluster, sites: Iterable[Site]) -> None:
    cluster.send("remade", REMADE_BEFORE * QUEUE_COUNT)
    cluster.send("notices", AT_BACKUP * QUEUE_COUNT)
    for site in sites:
        site.wait_until_stored(AT_BACKUP, "put-back")
        _copy(site.on_disk("put-back"), site.drop.parent / "backup" / site.release)
    cluster.send("notices", (ON_THE_FIRST_DAY - AT_BACKUP) * QUEUE_COUNT)
    for site in sites:
        site.wait_until_stored(ON_THE_FIRST_DAY, *(name for name in site.members if name != "remade"))
        site.wait_until_stored(REMADE_BEFORE, "remade")


def _live_the_second_day(cluster: RealCluster, sites: Iterable[Site]) -> None:
    """Run the events of the second day, and ship the files on the disks."""
    for site in sites:
        cluster.fill_disk(site.full, site.files("cut-once")[0].stat().st_size)
    cluster.send("notices", (AT_THE_ACCIDENTS - ON_THE_FIRST_DAY) * QUEUE_COUNT)
    for site in sites:
        _cut_files(site)
    stopped = (
        "gone",
        "also-gone",
        "emptied",
        "main-torn",
        "both-torn",
        "put-back",
        "old-process",
        "turned",
        "remade",
    )
    for site in sites:
        site.wait_until_stored(AT_THE_ACCIDENTS, *(set(stopped) - {"remade"}))
        for name in stopped:
            site.stop(name)
        _damage(site)
        site.start("new-process", instance=f"{cluster.process_ids()[site.node]}#2")
        cluster.start_consumers(
            site.group("turned"), ["notices"], [site.client_ids["turned"]], host=site.node
        )
    cluster.delete_topic("remade")
    cluster.create_topic("remade", REMADE_QUEUE_COUNT)
    cluster.send("remade", REMADE_AFTER * REMADE_QUEUE_COUNT)
    cluster.send("notices", (ON_THE_SECOND_DAY - AT_THE_ACCIDENTS) * QUEUE_COUNT)
    for site in sites:
        site.wait_until_stored(ON_THE_SECOND_DAY, "well", "also-well", "new-process", "same")
        site.ship(*(site.client_ids.keys() - {"unshipped", "gone", "also-gone", *FULL_DISK}))
        for name in ("gone", "also-gone"):
            shutil.rmtree(site.landed(name))


def _damage(site: Site) -> None:
    """Damage the files of stopped clients, as failing hosts and users do."""
    for name in ("gone", "also-gone"):
        shutil.rmtree(site.on_disk(name))
    main, bak = site.files("emptied")
    os.truncate(main, 0)
    bak.unlink()
    os.truncate(site.files("main-torn")[0], 100)
    for file in site.files("both-torn"):
        os.truncate(file, 100)
    _copy(site.drop.parent / "backup" / site.release, site.on_disk("put-back"))


def _cut_files(site: Site) -> None:
    """Make the clients on the full disk write files that are too large: one once, one twice; ship the remaining files."""
    once, twice = FULL_DISK
    site.wait_until_read(AT_THE_ACCIDENTS, *FULL_DISK)
    for name in (once, twice, twice):
        site.cluster.persist_offsets(site.members[name])
    for name in FULL_DISK:
        # Ensure that the operating system has truncated a file.
        assert any(not _is_whole(file) for file in site.on_disk(name).rglob("offsets.json*"))
    if site.release in WRITES_IN_PLACE:
        assert _is_whole(site.files(once)[1]), f"{once} has written more than once"
    site.ship(*FULL_DISK)


def _start_everything_again(
    cluster: RealCluster, sites: Iterable[Site]
) -> tuple[dict[str, str], dict[str, dict[Queue, Consumed]]]:
    """Kill all clients, and start each with the files in the drop folder; return errors of failed starts and consumed offsets."""
    refusals: dict[str, str] = {}
    started: dict[str, Member] = {}
    for site in sites:
        for host in (site.node, site.second, site.full):
            cluster.kill_host(host)
        for name in site.client_ids.keys() - {"old-process", "turned"}:
            shutil.rmtree(site.on_disk(name), ignore_errors=True)
            if site.landed(name).exists():
                _copy(site.landed(name), site.on_disk(name))
            try:
                site.start_again(name)
            except NoAnswerError as error:
                refusals[site.client_ids[name]] = str(error)
            else:
                started[site.client_ids[name]] = site.members[name]
    wait_until(lambda: _without_queues(cluster, started), TIMEOUT_S)
    for site in sites:
        if site.release in CORRECTED_AT_ONCE:
            # Wait before sending more: if a log grew past the stored offset, the client would continue from there.
            site.wait_until_at(REMADE_AFTER, "remade")
    cluster.send("notices", (AFTER_THE_RESTART - ON_THE_SECOND_DAY) * QUEUE_COUNT)
    cluster.send("remade", (REMADE_IN_THE_END - REMADE_AFTER) * REMADE_QUEUE_COUNT)
    wait_until(lambda: _behind(cluster, started), TIMEOUT_S)
    return refusals, {client_id: cluster.consumed(member) for client_id, member in started.items()}


def _without_queues(cluster: RealCluster, started: Mapping[str, Member]) -> str | None:
    """Return a client that does not own all its queues yet; it chooses its start position when it takes a queue."""
    for client_id, member in started.items():
        ((_, queues),) = cluster.owned(Group("of one", [member]))
        if len(queues) != (REMADE_QUEUE_COUNT if "remade" in member.topics else QUEUE_COUNT):
            return f"{client_id} has {sorted(queues)}"
    return None


def _behind(cluster: RealCluster, started: Mapping[str, Member]) -> str | None:
    """Return a client that has not received the last message of each queue."""
    for client_id, member in started.items():
        given = cluster.consumed(member)
        end, count = (
            (REMADE_IN_THE_END, REMADE_QUEUE_COUNT)
            if "remade" in member.topics
            else (AFTER_THE_RESTART, QUEUE_COUNT)
        )
        if [queue.last for queue in given.values()] != [end - 1] * count:
            return f"{client_id} was given {given}"
    return None


@pytest.mark.parametrize(
    ("outcome", "release"),
    [
        pytest.param(releases, release, marks=marks, id=release)
        for releases, marks in TOGETHER.items()
        for release in releases
    ],
    indirect=["outcome"],
    scope="module",  # run all tests of one cluster consecutively
)
class TestClientsOfOneRelease:
    def test_files_have_the_prepared_state(self, outcome: Outcome, release: str) -> None:
        found = outcome.by_name(release, lambda client_id: outcome.files[client_id]["state"])
        assert found == {name: fate(name, release).files for name in FATES}

    def test_process_counts_are_null_only_for_a_client_id_with_two_connections(
        self, outcome: Outcome, release: str
    ) -> None:
        counts = outcome.by_name(release, lambda client_id: outcome.files[client_id]["process_count"])
        connected = ONLINE | {"turned"}
        assert counts == {name: int(name in connected) if name != "same" else None for name in FATES}

    def test_queues_have_the_prepared_state(self, outcome: Outcome, release: str) -> None:
        found = outcome.by_name(
            release, lambda client_id: {row["state"] for row in outcome.offsets[client_id]}
        )
        assert found == {name: fate(name, release).queues for name in FATES}
        counts = outcome.by_name(release, lambda client_id: len(outcome.offsets[client_id]))
        assert counts == dict.fromkeys(FATES, QUEUE_COUNT)

    def test_each_problem_has_a_finding_and_healthy_clients_have_none(
        self, outcome: Outcome, release: str
    ) -> None:
        found = outcome.by_name(release, lambda client_id: outcome.kinds.get(client_id, set()))
        assert found == {name: fate(name, release).kinds for name in FATES}

    def test_running_clients_report_in_memory_offsets_independently_of_their_files(
        self, outcome: Outcome, release: str
    ) -> None:
        found = outcome.by_name(
            release, lambda client_id: {row["memory_offset"] for row in outcome.offsets[client_id]}
        )
        assert found == {name: {ON_THE_SECOND_DAY if name in ONLINE else None} for name in FATES}

    def test_exactly_the_predicted_clients_fail_to_start(self, outcome: Outcome, release: str) -> None:
        refusals = outcome.by_name(release, lambda client_id: outcome.refusals.get(client_id, ""))
        refused = {name for name, sentence in refusals.items() if sentence}
        assert refused == {name for name in FATES if fate(name, release).restarts == {"fails_to_start"}}
        assert all("readLocalOffset Exception" in refusals[name] for name in refused)

    def test_the_other_clients_start_at_the_predicted_offset_for_the_predicted_reason(
        self, outcome: Outcome, release: str
    ) -> None:
        reasons = outcome.by_name(
            release, lambda client_id: {row["restart_reason"] for row in outcome.offsets[client_id]}
        )
        assert reasons == {name: fate(name, release).restarts for name in FATES}
        foretold = outcome.by_name(
            release,
            lambda client_id: {
                _queue(row): row["restart_offset"]
                for row in outcome.offsets[client_id]
                if row["restart_offset"] is not None
            },
        )
        began = outcome.by_name(
            release,
            lambda client_id: {
                queue: given.first for queue, given in outcome.consumed.get(client_id, {}).items()
            },
        )
        if release not in CORRECTED_AT_ONCE:
            del foretold["remade"]
            assert set(began.pop("remade").values()) <= {REMADE_AFTER, REMADE_BEFORE}
        assert began == foretold


@pytest.mark.parametrize(
    "outcome",
    [pytest.param(releases, marks=marks, id=" and ".join(releases)) for releases, marks in TOGETHER.items()],
    indirect=True,
)
def test_every_finding_belongs_to_a_client(outcome: Outcome) -> None:
    assert outcome.kinds.keys() <= outcome.files.keys()


def _queue(row: Mapping[str, Any]) -> Queue:
    return Queue(row["topic"], row["broker_name"], row["queue_id"])


def _collect(cluster: RealCluster, folder: Path) -> None:
    settings = {
        "clusters": {
            "real": {
                "collect": {
                    **PATIENTLY,
                    "nameservers": cluster.name_servers,
                    "offset_files": str(folder / "drop"),
                }
            }
        }
    }
    (folder / "collect.json").write_text(json.dumps(settings), encoding="utf-8")
    ledger(folder, "exports", "collect", "--cluster=real", "--exports=exports", "--settings=collect.json")


def _move_to_the_day_before(folder: Path) -> None:
    """Date the collected export one day earlier, as if the collector had run yesterday."""
    (export,) = (folder / "exports" / "real").iterdir()
    earlier = export.with_name(f"{date.fromisoformat(export.name) - A_DAY}")
    export.rename(earlier)
    (earlier / "manifest.json").unlink()
    for file in earlier.glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            for name in {"captured_at", "mtime"} & line.keys():
                line[name] = (datetime.fromisoformat(line[name]) - A_DAY).isoformat().replace("+00:00", "Z")
        file.write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
        )
    ledger(folder, "exports", "seal", str(earlier))


def _date_what_is_unchanged_a_day_before(drop: Path, first: Path) -> None:
    """Date the files in the drop folder that have not changed since the first day one day earlier."""
    for file in drop.rglob("offsets.json*"):
        before = first / file.relative_to(drop)
        if before.exists() and before.read_bytes() == file.read_bytes():
            os.utime(file, (before.stat().st_mtime - A_DAY.total_seconds(),) * 2)


def _copy(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)


def _is_whole(file: Path) -> bool:
    return file.read_bytes().endswith(b"}")


def _offsets_in(file: Path) -> list[int]:
    """Return the offsets in a file, sorted, regardless of its other content; an empty list if there is no file."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    return sorted(int(offset) for offset in re.findall(rb"\}:(\d+)", content))
