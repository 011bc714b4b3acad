"""Broadcasting clients in every state that the sample does not have: one group for each, two days one after the other.

Every group reads one queue of a topic of its own name, with the messages 10 to 99, on host 10.0.0.1.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.warehouse.identity import RunIdentity
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import read_build
from tests.support.computed_days import compute_and_publish, newest, staged_rows
from tests.support.export_builder import DS, ExportBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOST = "10.0.0.1"
CLIENT = f"{HOST}@DEFAULT"
CUT = b'{"offsetTable":{{"bro'
ZEROS = bytes(600)
NESTED = b'{"a":' * 1_000_000
"""Whether a client reads it depends on its stack."""
EARLIER = DS - timedelta(days=1)


def table(topic: str, offset: int, queue_id: int = 0) -> bytes:
    """A file with one queue."""
    return (
        f'{{"offsetTable":{{{{"brokerName":"broker-a","queueId":{queue_id},"topic":"{topic}"}}:{offset}}}}}'
    ).encode()


class Hosts(ExportBuilder):
    """An export with offset files."""

    def __init__(self, ds: date) -> None:
        super().__init__(ds=ds)
        self.files: dict[str, bytes] = {}

    def file(
        self, group: str, content: bytes, name: str = "offsets.json", *, client: str = CLIENT, age_s: int = 2
    ) -> None:
        """A file, written so many seconds before its capture at noon."""
        path = f"offset_files/{HOST}/{client}/{group}/{name}"
        self.files[path] = content
        written = self._captured_at() - timedelta(seconds=age_s)
        self._add(
            "offset_file",
            {"host": HOST, "client_id": client, "group": group},
            moment=0,
            path=path,
            size=len(content),
            mtime=f"{written:%Y-%m-%dT%H:%M:%SZ}",
            sha256=hashlib.sha256(content).hexdigest(),
        )

    def reader(
        self,
        group: str,
        main: bytes | None = None,
        bak: bytes | None = None,
        *,
        from_where: str = "CONSUME_FROM_LAST_OFFSET",
        model: str = "BROADCASTING",
        client: str = CLIENT,
        age_s: int = 2,
        connection_count: int = 1,
    ) -> None:
        """A group with one connected client, and its files."""
        self.route(group, {"broker-a": 1})
        connection = {"clientId": CLIENT, "language": "JAVA", "version": 479}
        payload = {
            "connectionSet": [
                {**connection, "clientAddr": f"10.0.0.1:{port}"} for port in range(4, 4 + connection_count)
            ],
            "subscriptionTable": {group: {"subString": "*", "expressionType": "TAG"}},
            "messageModel": model,
            "consumeType": "CONSUME_PASSIVELY",
            "consumeFromWhere": from_where,
        }
        self.answer("consumer_connection", payload, broker="broker-a", group=group)
        if main is not None:
            self.file(group, main, client=client, age_s=age_s)
        if bak is not None:
            self.file(group, bak, "offsets.json.bak", client=client, age_s=age_s)

    def bounds(self, topic: str) -> None:
        """The broker tells that the queue has the messages 10 to 99, the newest stored at noon."""
        stored_at_ms = int(self._captured_at().timestamp() * 1000)
        queue = f'{{"topic":"{topic}","brokerName":"broker-a","queueId":0}}'
        ends = f'{{"minOffset":10,"maxOffset":100,"lastUpdateTimestamp":{stored_at_ms}}}'
        self.answer(
            "broker_topic_stats", f'{{"offsetTable":{{{queue}:{ends}}}}}', broker="broker-a", topic=topic
        )

    def remembers(self, group: str, offset: int) -> None:
        """The group's client says that it has this offset of the queue in memory."""
        queue = f'{{"topic":"{group}","brokerName":"broker-a","queueId":0}}'
        text = f'{{"consumerTable":{{"{CLIENT}":{{{queue}:{offset}}}}},"messageQueueTable":{{}}}}'
        self.answer("consumer_status", text, broker="broker-a", group=group, client_id=CLIENT, topic=group)

    def write(self, exports: Path) -> Path:
        directory = super().write(exports)
        for path, content in self.files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(content)
        return directory


def earlier_day() -> Hosts:
    hosts = Hosts(EARLIER)
    for group, offset in {
        "well": 50,
        "went_back": 95,
        "stuck": 90,
        "removed": 90,
        "emptied": 90,
        "not_written": 90,
    }.items():
        hosts.reader(group, table(group, offset))
    hosts.reader("tidied", table("tidied", 50), client=f"{HOST}@4711")
    return hosts


def day() -> Hosts:
    hosts = Hosts(DS)
    for group, offset in {
        "well": 90,
        "went_back": 90,
        "stuck": 90,
        "behind": 4,
        "ahead": 105,
        "not_written": 90,
    }.items():
        hosts.reader(group, table(group, offset))
        hosts.bounds(group)
    hosts.remembers("not_written", 97)
    hosts.remembers("stuck", 90)
    hosts.reader("listed_twice", table("listed_twice", 90), connection_count=2)
    hosts.reader("removed", from_where="CONSUME_FROM_FIRST_OFFSET")
    hosts.reader("emptied", b"")
    hosts.reader("cut_without_bak", CUT)
    hosts.reader("cut_twice", CUT, CUT)
    hosts.reader("recovered", CUT, table("recovered", 90))
    hosts.reader("zeroed", ZEROS, table("zeroed", 90))
    hosts.reader("nested", NESTED)
    hosts.reader("negative", table("negative", -12))
    hosts.reader("silent_writer", table("silent_writer", 90), age_s=2 * 3600)
    hosts.reader("moved_to_clustering", table("moved_to_clustering", 90), model="CLUSTERING")
    hosts.reader("old_process", table("old_process", 90), client=f"{HOST}@4711#99")
    hosts.reader("queue_gone", table("queue_gone", 90, queue_id=7))
    hosts.reader("timed", from_where="CONSUME_FROM_TIMESTAMP")
    for group in (
        "removed",
        "emptied",
        "cut_twice",
        "recovered",
        "queue_gone",
        "timed",
        "nested",
        "negative",
    ):
        hosts.bounds(group)
    hosts.reader("broker_untold", table("broker_untold", 90))
    hosts.reader("tidied")
    hosts.reader("unreadable")
    hosts.failure(
        "offset_file", "permission denied", host=HOST, client_id=CLIENT, group="unreadable", moment=0
    )  # type: ignore[arg-type]  # moment is a number
    hosts.route("asleep", {"broker-a": 1})
    hosts.no_members("broker-a", "asleep")
    hosts.file("asleep", table("asleep", 90))
    hosts.members("broker-a", "elsewhere", ["10.0.0.77@DEFAULT"], ["well"], "BROADCASTING")
    return hosts


@pytest.fixture(scope="module")
def broadcasting(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("broadcasting")
    earlier_day().seal(folder / "exports")
    day().seal(folder / "exports")
    computed = Day("shop-test", DS, folder / "exports", Warehouse.at(str(folder / "warehouse")), None)
    compute_and_publish(spark, computed)
    return computed


@pytest.fixture(scope="module")
def rows(broadcasting: Day) -> Mapping[str, list[dict[str, Any]]]:
    stage = newest(broadcasting)
    names = ("broadcast_offset_file", "broadcast_offset", "finding")
    return {name: staged_rows(stage, name) for name in names}


FILE_STATES = {
    "well": ("ok", "stored", "main"),
    "went_back": ("ok", "stored", "main"),
    "not_written": ("ok", "stored", "main"),
    "listed_twice": ("ok", "stored", "main"),
    "removed": ("missing", "default", None),
    "emptied": ("empty", "default", None),
    "cut_without_bak": ("empty", "default", None),
    "cut_twice": ("corrupt_both", "fails_to_start", "bak"),
    "recovered": ("recovered_from_bak", "stored", "bak"),
    "zeroed": ("recovered_from_bak", "stored", "bak"),
    "nested": ("unknown", None, "main"),
    "negative": ("ok", "stored", "main"),
    "silent_writer": ("stale", "stored", "main"),
    "moved_to_clustering": ("clustering_group_with_file", None, "main"),
    "old_process": ("orphan_dir", "stored", "main"),
    "timed": ("missing", "default", None),
    "unreadable": ("unknown", None, None),
    "asleep": ("ok", "stored", "main"),
    "elsewhere": ("unknown", None, None),
}


@pytest.mark.parametrize("group", FILE_STATES)
def test_files_are_in_the_state_that_they_were_put_in(
    group: str, rows: Mapping[str, list[dict[str, Any]]]
) -> None:
    found = [
        (row["state"], row["start_outcome"], row["start_from"])
        for row in rows["broadcast_offset_file"]
        # A client whose folder is of an old process is itself there without files.
        if row["consumer_group"] == group and (group != "old_process" or "#" in row["client_id"])
    ]

    assert found == [FILE_STATES[group]]


def test_connections_of_one_id_are_no_proof_of_processes_that_share_a_file(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [file] = [row for row in rows["broadcast_offset_file"] if row["consumer_group"] == "listed_twice"]
    kinds = {row["kind"] for row in rows["finding"] if row["consumer_group"] == "listed_twice"}

    assert (file["is_online"], file["process_count"]) == (True, None)
    assert "duplicate_client_id" in kinds
    assert "offset_file_shared" not in kinds


# State, restart reason, restart offset, skipped, repeated.
QUEUES = {
    "well": ("ok", "stored", 90, 0, 0),
    "went_back": ("regressed", "stored", 90, 0, 5),
    "stuck": ("stale", "stored", 90, 0, 0),
    "not_written": ("ok", "stored", 90, 0, 7),
    "behind": ("behind_min", "corrected_by_broker_to_min", 10, 6, 0),
    "ahead": ("ahead_of_max", "corrected_by_broker_to_max", 100, None, None),
    "removed": ("no_offset", "default_first", 10, 0, 80),
    "emptied": ("no_offset", "default_last", 100, 10, 0),
    "cut_twice": ("no_offset", "fails_to_start", None, None, None),
    "timed": ("no_offset", "default_timestamp", None, None, None),
    "recovered": ("ok", "stored", 90, 0, 0),
    "negative": ("no_offset", "queue_skipped", None, None, None),
    "moved_to_clustering": ("unused", None, None, None, None),
    "broker_untold": ("unknown", "unknown", None, None, None),
}


@pytest.mark.parametrize("group", QUEUES)
def test_a_queue_has_its_state_and_a_restart_its_place(
    group: str, rows: Mapping[str, list[dict[str, Any]]]
) -> None:
    names = ("state", "restart_reason", "restart_offset", "skipped_message_count", "repeated_message_count")
    found = [
        tuple(row[name] for name in names)
        for row in rows["broadcast_offset"]
        if row["consumer_group"] == group
    ]

    assert found == [QUEUES[group]]


def test_a_queue_that_no_route_has_stands_beside_the_one_that_nothing_is_stored_of(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["queue_id"]: (row["state"], row["restart_reason"])
        for row in rows["broadcast_offset"]
        if row["consumer_group"] == "queue_gone"
    }

    assert found == {7: ("orphan_queue", None), 0: ("no_offset", "default_last")}


def test_without_the_brokers_word_lag_and_losses_are_null_and_not_zero(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [row] = [row for row in rows["broadcast_offset"] if row["consumer_group"] == "broker_untold"]

    assert (row["stored_offset"], row["lag_message_count"], row["lost_message_count"]) == (90, None, None)


def test_the_offset_in_memory_stands_beside_the_stored_one_where_the_client_told_it(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    found = {
        row["consumer_group"]: (row["stored_offset"], row["memory_offset"])
        for row in rows["broadcast_offset"]
        if row["consumer_group"] in {"not_written", "stuck", "well"}
    }

    assert found == {"not_written": (90, 97), "stuck": (90, 90), "well": (90, None)}


def test_a_client_that_reads_on_is_not_called_stuck_though_its_file_stands_still(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    stuck = {row["consumer_group"] for row in rows["finding"] if row["kind"] == "broadcast_client_stuck"}

    assert stuck == {"stuck"}


def test_a_folder_that_went_with_its_process_is_not_missed(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    found = {row["client_id"] for row in rows["broadcast_offset_file"] if row["consumer_group"] == "tidied"}

    assert found == {CLIENT}


def test_the_release_that_reads_is_the_clients_own_or_assumed_and_said_to_be(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    sources = {row["consumer_group"]: row["client_version_source"] for row in rows["broadcast_offset_file"]}

    assert (sources["well"], sources["asleep"]) == ("client", "assumed")


def test_what_is_missing_now_says_when_it_was_last_there(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    [row] = [row for row in rows["broadcast_offset_file"] if row["consumer_group"] == "removed"]

    assert (row["previous_ds"], row["previous_start_outcome"]) == (EARLIER, "stored")


def test_a_file_of_which_nobody_knows_what_a_client_makes_is_a_finding(
    rows: Mapping[str, list[dict[str, Any]]],
) -> None:
    [finding] = [row for row in rows["finding"] if row["kind"] == "offset_file_undecided"]

    assert (finding["consumer_group"], finding["client_id"], finding["severity"]) == (
        "nested",
        CLIENT,
        "warning",
    )
    assert finding["evidence"] == (
        f"Whether the client can read its file is not known. On {HOST}: "
        "in offsets.json, the text nests so deep that the client's stack decides."
    )


def test_findings_tell_of_lost_messages_with_their_number(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    [finding] = [row for row in rows["finding"] if row["kind"] == "broadcast_messages_lost"]

    assert finding["consumer_group"] == "behind"
    assert "6 messages" in finding["evidence"]


def test_the_earlier_export_is_part_of_what_the_day_was_computed_from(broadcasting: Day) -> None:
    build = read_build(newest(broadcasting))
    alone = RunIdentity(build.manifest_sha256, build.settings_sha256, build.code_version)

    assert build.run_id != alone.run_id


def test_a_file_that_is_not_what_was_sealed_stops_the_build(
    spark: SparkSession, broadcasting: Day, tmp_path: Path
) -> None:
    hosts = Hosts(DS)
    hosts.reader("well", table("well", 90))
    directory = hosts.seal(tmp_path / "exports")
    changed = Day("shop-test", DS, tmp_path / "exports", Warehouse.at(str(tmp_path / "warehouse")), None)
    path = directory / next(iter(hosts.files))

    def spoil_after_verification() -> None:
        path.write_bytes(path.read_bytes() + b" ")

    from spark_jobs.build import build

    spoil_after_verification()
    with pytest.raises(Exception, match=r"is not what was sealed: its SHA-256 differs from the index"):
        build(
            spark,
            exports=changed.exports,
            warehouse=changed.warehouse,
            settings=changed.settings,
            cluster=changed.cluster,
            ds=changed.ds,
        )
