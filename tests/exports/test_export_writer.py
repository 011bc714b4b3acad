"""An export appears complete and sealed, or not at all, even if its writer is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.exports.contract import EnvelopeError
from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.exports.writer import ExportWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebalance_ledger.exports.manifest import Manifest

ROOT = Path(__file__).resolve().parents[2]
DS = date(2026, 11, 16)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
BROKER = {"broker": "broker-a", "broker_addr": "10.0.0.1:10911"}
PARTIAL = ".2026-11-16.partial"


def write_required(writer: ExportWriter) -> None:
    """Write the lines that every export requires."""
    writer.payload("nameserver_topic_list", NOON, '{"topicList":["t"]}', nameserver="ns-1:9876")
    writer.error("nameserver_route", NOON, "MQClientException", "CODE: 17", nameserver="ns-1:9876", topic="t")
    writer.payload("consumer_connection", NOON, "{}", **BROKER, group="g")


def names(exports: Path, cluster: str = "prod") -> set[str]:
    return {path.name for path in (exports / cluster).iterdir()}


def lines(directory: Path, file_name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / file_name).read_bytes().splitlines()]


def refusal(action: ExportWriter) -> str:
    """Return the single problem that a writer raises when its block begins."""
    with pytest.raises(ExportError) as caught, action:
        pass
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem


# A program that writes an export and dies at the given point. At `writing` it prints that, and waits to be killed.
PROGRAM = """
import os, signal, sys
from datetime import UTC, date, datetime
from pathlib import Path
from rebalance_ledger.exports import writer as export_writer
point, exports = sys.argv[1], Path(sys.argv[2])
noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
def dies(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)
if point == "sealing":
    export_writer.seal = dies
if point == "renaming":
    Path.rename = dies
if point == "cleaning up":
    export_writer._remove = dies
with export_writer.ExportWriter(exports, "prod", date(2026, 11, 16)) as writer:
    writer.payload("nameserver_topic_list", noon, "{}", nameserver="ns-1:9876")
    writer.payload("nameserver_route", noon, "{}", nameserver="ns-1:9876", topic="t")
    writer.payload("consumer_connection", noon, "{}", broker="a", broker_addr="a:1", group="g")
    writer.attach("notes.txt", b"some")
    print("writing", flush=True)
    if point == "writing":
        sys.stdin.read()
"""


def start(point: str, exports: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, point, str(exports)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def running_writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that writes the export of the day, and kill it at the end."""
    process = start("writing", tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    yield process
    process.kill()
    process.communicate()


class TestWholeExport:
    def test_is_sealed_under_its_name_without_temporary_files(self, tmp_path: Path) -> None:
        with ExportWriter(tmp_path / "new" / "exports", "prod", DS) as writer:
            write_required(writer)
            assert names(tmp_path / "new" / "exports") == {PARTIAL}
        assert names(tmp_path / "new" / "exports") == {"2026-11-16"}
        assert writer.manifest == verify(writer.directory, cluster="prod", ds=DS)

    def test_holds_what_was_written_character_for_character(self, tmp_path: Path) -> None:
        payload = '{{"topic":"顧客\u2028\U0001f600"}:1}\r\n\x00\ttail\\'
        with ExportWriter(tmp_path, "prod", DS) as writer:
            write_required(writer)
            writer.payload("consume_stats", NOON + timedelta(microseconds=5), payload, **BROKER, group="g")
            writer.error("consume_stats", NOON, "Timeout", "", **BROKER, group="<b>'; rm -rf / --")
            writer.event(NOON - timedelta(days=1), "broker-a was upgraded")
        first, second = lines(writer.directory, "consume_stats.jsonl")
        assert first["payload"] == payload
        assert first["captured_at"] == "2026-11-16T12:00:00.000005Z"
        assert {name: first[name] for name in (*BROKER, "group")} == {**BROKER, "group": "g"}
        assert second["error"] == {"type": "Timeout", "message": ""}
        assert second["group"] == "<b>'; rm -rf / --"
        (event,) = lines(writer.directory, "events.jsonl")
        assert (event["at"], event["event"]) == ("2026-11-15T12:00:00.000000Z", "broker-a was upgraded")

    def test_holds_files_of_hosts_byte_for_byte_with_their_index(self, tmp_path: Path) -> None:
        (tmp_path / "topics.json").write_bytes(b"\xff\x00{}")
        with ExportWriter(tmp_path / "exports", "prod", DS) as writer:
            write_required(writer)
            place = "broker_files/broker-a/topics.json"
            writer.file(
                "broker_file",
                NOON,
                place,
                tmp_path / "topics.json",
                NOON - timedelta(days=9),
                broker="broker-a",
            )
            place = "offset_files/h/c@DEFAULT/g/offsets.json"
            writer.file(
                "offset_file", NOON, place, b"", NOON, moment=0, host="h", client_id="c@DEFAULT", group="g"
            )
            writer.attach("mqadmin/topicList.txt", tmp_path / "topics.json")
        assert (writer.directory / "broker_files/broker-a/topics.json").read_bytes() == b"\xff\x00{}"
        (line,) = lines(writer.directory, "broker_files_index.jsonl")
        assert (line["size"], line["mtime"], line["broker"]) == (4, "2026-11-07T12:00:00.000000Z", "broker-a")
        assert writer.manifest is not None
        assert [file.path for file in writer.manifest.attachments] == ["mqadmin/topicList.txt"]

    def test_takes_lines_and_files_from_many_threads(self, tmp_path: Path) -> None:
        def write(thread: int) -> None:
            for number in range(200):
                group = f"{thread}-{number}"
                writer.payload("consumer_connection", NOON, group * 500, **BROKER, group=group)
                writer.attach(f"notes/{group}", group.encode())

        with ExportWriter(tmp_path, "prod", DS) as writer:
            write_required(writer)
            threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        written_lines = lines(writer.directory, "consumer_connections.jsonl")
        assert len(written_lines) == 1 + 8 * 200
        assert all(
            line["payload"] == str(line["group"]) * 500 for line in written_lines[1:] if line["group"] != "g"
        )
        assert writer.manifest is not None
        assert len(writer.manifest.attachments) == 8 * 200


class TestWrongCalls:
    @pytest.mark.parametrize(
        ("kind", "request_fields", "sentence"),
        [
            ("nameserver_route", {"nameserver": "ns:1"}, "'topic' is missing"),
            ("nameserver_route", {"nameserver": "ns:1", "topic": ""}, "'topic' must be text"),
            ("nameserver_route", {"nameserver": "ns:1", "topic": "\ud800"}, "half a surrogate pair"),
            ("broker_file", {"broker": "a"}, "neither 'sha256' nor 'error'"),
        ],
    )
    def test_a_line_that_violates_the_contract_fails_on_writing(
        self, tmp_path: Path, kind: str, request_fields: dict[str, str], sentence: str
    ) -> None:
        with ExportWriter(tmp_path, "prod", DS) as writer:
            with pytest.raises(EnvelopeError, match=sentence):
                writer.payload(kind, NOON, "{}", **request_fields)
            write_required(writer)
        assert writer.manifest is not None
        assert sum(file.line_count or 0 for file in writer.manifest.files) == 3

    @pytest.mark.parametrize("hours", [-13, 12])
    def test_a_capture_of_another_day_is_refused(self, tmp_path: Path, hours: int) -> None:
        with (
            pytest.raises(ExportError, match="not on 2026-11-16 UTC"),
            ExportWriter(tmp_path, "prod", DS) as writer,
        ):
            writer.payload("nameserver_topic_list", NOON + timedelta(hours=hours), "{}", nameserver="ns:1")
        assert names(tmp_path) == set()

    def test_an_instant_without_a_time_zone_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(EnvelopeError, match="no time zone"), ExportWriter(tmp_path, "prod", DS) as writer:
            writer.event(datetime(2026, 11, 16), "x")  # noqa: DTZ001  # This is the fault.

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "/etc/x",
            "../x",
            "a//b",
            "a/./b",
            "manifest.json",
            ".manifest.json.1/../x",
            "nameserver_routes.jsonl",
        ],
    )
    def test_an_attachment_stays_inside_the_export_and_outside_reserved_paths(
        self, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(EnvelopeError), ExportWriter(tmp_path / "exports", "prod", DS) as writer:
            writer.attach(name, b"x")
        assert [path.name for path in tmp_path.rglob("*")] == ["exports", "prod"]

    def test_a_file_of_a_host_goes_into_the_folder_of_its_kind(self, tmp_path: Path) -> None:
        with (
            pytest.raises(EnvelopeError, match="broker_files/"),
            ExportWriter(tmp_path, "prod", DS) as writer,
        ):
            writer.file("broker_file", NOON, "offset_files/x", b"x", NOON, broker="a")

    def test_a_path_is_used_only_once(self, tmp_path: Path) -> None:
        with ExportWriter(tmp_path, "prod", DS) as writer:
            write_required(writer)
            writer.attach("notes.txt", b"x")
            with pytest.raises(EnvelopeError, match=r"'notes\.txt' is already there"):
                writer.attach("notes.txt", b"y")
        assert (writer.directory / "notes.txt").read_bytes() == b"x"

    def test_an_export_without_its_required_files_is_refused_and_removed(self, tmp_path: Path) -> None:
        missing = "nameserver_topic_lists.jsonl is missing"
        with (
            pytest.raises(ExportError, match=re.escape(missing)),
            ExportWriter(tmp_path, "prod", DS) as writer,
        ):
            writer.payload("consumer_connection", NOON, "{}", **BROKER, group="g")
        assert names(tmp_path) == set()

    def test_writing_outside_of_the_with_block_is_refused(self, tmp_path: Path) -> None:
        writer = ExportWriter(tmp_path, "prod", DS)
        with pytest.raises(RuntimeError):
            write_required(writer)
        with writer:
            write_required(writer)
        with pytest.raises(RuntimeError):
            writer.attach("late.txt", b"x")
        verify(writer.directory)

    def test_a_name_that_is_invalid_for_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ExportError, match="cannot be the name of a folder"):
            ExportWriter(tmp_path, "../prod", DS)


@pytest.fixture
def frequent_thread_switches() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


class TestOtherWriters:
    def test_an_export_is_never_overwritten(self, tmp_path: Path) -> None:
        with ExportWriter(tmp_path, "prod", DS) as writer:
            write_required(writer)
        assert "is already an export" in refusal(ExportWriter(tmp_path, "prod", DS))
        assert writer.manifest == verify(writer.directory)

    def test_an_unsealed_folder_is_not_overwritten(self, tmp_path: Path) -> None:
        export_directory(tmp_path, "prod", DS).mkdir(parents=True)
        assert "without a seal" in refusal(ExportWriter(tmp_path, "prod", DS))

    def test_the_folder_of_a_running_writer_is_not_removed(
        self, tmp_path: Path, running_writer: subprocess.Popen[str]
    ) -> None:
        assert "is being written by another process" in refusal(ExportWriter(tmp_path, "prod", DS))
        with ExportWriter(tmp_path, "prod", DS + timedelta(days=1)) as other_day:
            next_noon = NOON + timedelta(days=1)
            other_day.payload("nameserver_topic_list", next_noon, "{}", nameserver="ns-1:9876")
            other_day.payload("nameserver_route", next_noon, "{}", nameserver="ns-1:9876", topic="t")
            other_day.payload("consumer_connection", next_noon, "{}", **BROKER, group="g")
        assert names(tmp_path) == {PARTIAL, "2026-11-17"}
        running_writer.communicate("", timeout=60)
        assert running_writer.returncode == 0
        verify(export_directory(tmp_path, "prod", DS))
        assert names(tmp_path) == {"2026-11-16", "2026-11-17"}

    @pytest.mark.usefixtures("frequent_thread_switches")
    def test_of_concurrent_writers_one_writes_and_all_others_are_refused(self, tmp_path: Path) -> None:
        """Two of three processes search for abandoned folders, and must not remove the folder of the third."""
        for _ in range(300):
            day = tmp_path / os.urandom(4).hex()
            outcomes: list[str] = []
            barrier = threading.Barrier(3)

            def write(day: Path, barrier: threading.Barrier, outcomes: list[str]) -> None:
                barrier.wait()
                try:
                    with ExportWriter(day, "prod", DS) as writer:
                        write_required(writer)
                except ExportError as error:
                    outcomes.append(error.problems[0])
                else:
                    outcomes.append("written")

            threads = [threading.Thread(target=write, args=(day, barrier, outcomes)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            refused = [each for each in outcomes if "being written" in each or "already an export" in each]
            assert outcomes.count("written") == 1
            assert len(refused) == 2, outcomes
            assert names(day) == {"2026-11-16"}
            verify(day / "prod" / "2026-11-16")


class TestDeadWriters:
    @pytest.mark.parametrize("point", ["writing", "sealing", "renaming"])
    def test_a_kill_leaves_no_export_and_the_next_writer_removes_the_remains(
        self, tmp_path: Path, point: str
    ) -> None:
        process = start(point, tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        if point == "writing":
            process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert names(tmp_path) == {PARTIAL}
        with pytest.raises(ExportError):
            load_manifest(export_directory(tmp_path, "prod", DS))
        with pytest.raises(ExportError):
            load_manifest(tmp_path / "prod" / PARTIAL)
        with ExportWriter(tmp_path, "prod", DS) as writer:
            write_required(writer)
        assert names(tmp_path) == {"2026-11-16"}
        assert writer.manifest is not None
        assert writer.manifest.attachments == ()

    def test_a_kill_after_the_final_rename_loses_nothing(self, tmp_path: Path) -> None:
        process = start("cleaning up", tmp_path)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        verify(export_directory(tmp_path, "prod", DS), cluster="prod", ds=DS)
        assert names(tmp_path) == {"2026-11-16", PARTIAL}
        assert "already an export" in refusal(ExportWriter(tmp_path, "prod", DS))
        assert names(tmp_path) == {"2026-11-16"}

    @pytest.mark.parametrize("failure", [KeyError("a"), KeyboardInterrupt(), SystemExit(1)])
    def test_an_exception_leaves_nothing(self, tmp_path: Path, failure: BaseException) -> None:
        def fail() -> None:
            with ExportWriter(tmp_path, "prod", DS) as writer:
                write_required(writer)
                raise failure

        with pytest.raises(type(failure)):
            fail()
        assert names(tmp_path) == set()

    def test_a_full_disk_is_one_sentence_and_no_export(self, tmp_path: Path) -> None:
        program = """
import resource, signal, sys
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from rebalance_ledger.exports.writer import ExportWriter
from rebalance_ledger.exports.manifest import ExportError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
try:
    with ExportWriter(Path(sys.argv[1]), "prod", date(2026, 11, 16)) as writer:
        writer.payload("nameserver_topic_list", noon, "{}", nameserver="ns-1:9876")
        writer.payload("nameserver_route", noon, "{}", nameserver="ns-1:9876", topic="t")
        with suppress(ExportError):  # A collector may go on; the export is lost all the same.
            writer.payload("consumer_connection", noon, "x" * 200_000, broker="a", broker_addr="a:1", group="g")
except ExportError as error:
    print(error.problems)
"""
        process = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (process.returncode, process.stderr) == (0, "")
        assert "could not be written" in process.stdout
        assert names(tmp_path) == set()


def test_an_export_contains_no_secret(tmp_path: Path) -> None:
    with ExportWriter(tmp_path, "prod", DS, known_secrets=["own-secret-key", "x"]) as writer:
        write_required(writer)
        writer.payload(
            "broker_config",
            NOON,
            'brokerName=broker-a\ninitAuthenticationUser={"password":"hunter2"}\n',
            **BROKER,
        )
        writer.error("broker_config", NOON, "E", "CODE: 1  DESC: own-secret-key, password=hunter2", **BROKER)
        writer.event(NOON, "asked with own-secret-key; secretKey: hunter2")
        writer.attach("mqadmin/a.txt", b"$ mqadmin getAcl -n ns:9876\nhunter2\n")
        for name, content in {"plain_acl.yml": b"hunter2", "topics.json": b"{}"}.items():
            writer.file("broker_file", NOON, f"broker_files/a/{name}", content, NOON, broker="a")
    files = [path for path in writer.directory.rglob("*") if path.is_file()]
    for path in files:
        assert not re.search(rb"hunter2|own-secret-key", path.read_bytes()), path
        assert path.stat().st_mode & 0o007 == 0
    assert writer.manifest == verify(writer.directory)
    assert lines(writer.directory, "broker_configs.jsonl")[0]["payload"] == (
        "brokerName=broker-a\ninitAuthenticationUser=<redacted>\n"
    )
    assert lines(writer.directory, "broker_configs.jsonl")[1]["error"] == {
        "type": "E",
        "message": "CODE: 1  DESC: <redacted>, password=<redacted>",
    }


def first_attempt(exports: Path) -> Manifest:
    with ExportWriter(exports, "prod", DS) as writer:
        write_required(writer)
        writer.attach("of-the-first.txt", b"kept")
    return load_manifest(writer.directory)


def test_an_export_is_replaced_as_a_whole(tmp_path: Path) -> None:
    with ExportWriter(tmp_path, "prod", DS, replaces=first_attempt(tmp_path)) as writer:
        write_required(writer)
        writer.attach("of-the-second.txt", b"new")
    assert not (writer.directory / "of-the-first.txt").exists()
    assert (writer.directory / "of-the-second.txt").read_bytes() == b"new"
    assert verify(writer.directory) == writer.manifest
    assert names(tmp_path) == {"2026-11-16"}


def test_an_abandoned_writer_leaves_the_existing_export(tmp_path: Path) -> None:
    manifest = first_attempt(tmp_path)
    with ExportWriter(tmp_path, "prod", DS, replaces=manifest) as writer:
        write_required(writer)
        writer.abandon()
    assert verify(writer.directory) == manifest
    assert names(tmp_path) == {"2026-11-16"}


def test_an_export_replaced_by_another_process_is_not_replaced_again(tmp_path: Path) -> None:
    manifest = first_attempt(tmp_path)
    with ExportWriter(tmp_path, "prod", DS, replaces=manifest) as writer:
        write_required(writer)
    assert "another process has replaced" in refusal(ExportWriter(tmp_path, "prod", DS, replaces=manifest))


@pytest.mark.parametrize("has_exchange", [True, False])
@pytest.mark.parametrize("point", ["begun", "sealing", "exchanging", "exchanged", "moved away", "moved in"])
def test_a_writer_killed_during_the_replacement_leaves_a_complete_export(
    tmp_path: Path, point: str, *, has_exchange: bool
) -> None:
    manifest = first_attempt(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", REPLACING, point, str(tmp_path), str(int(has_exchange))], cwd=ROOT, check=False
    )
    survives = point in {"moved away", "moved in"} and has_exchange
    assert ended.returncode == (0 if survives else -signal.SIGKILL)
    if not (point == "moved away" and not has_exchange):
        # The export is complete at every moment, without a repair.
        verify(export_directory(tmp_path, "prod", DS))
    # The next writer of the cluster finds either the old or the new export, and cleans up.
    with ExportWriter(tmp_path, "prod", DS + timedelta(days=1)) as writer:
        writer.abandon()
    current = verify(export_directory(tmp_path, "prod", DS))
    is_new = survives or point in {"exchanged", "moved in"}
    assert (current.sha256 != manifest.sha256) == is_new
    assert names(tmp_path) == {"2026-11-16"}


# A program that replaces an export and dies at the given point, optionally without atomic exchange of folders.
REPLACING = """
import os, signal, sys
from datetime import UTC, date, datetime
from pathlib import Path
from rebalance_ledger.exports import writer as export_writer
from rebalance_ledger.exports.manifest import load_manifest
point, exports, has_exchange = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "1"
noon = datetime(2026, 11, 16, 13, tzinfo=UTC)
def dies(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)
if not has_exchange:
    class NoExchange:
        def __init__(self, *arguments, **options):
            pass
    export_writer.ctypes.CDLL = NoExchange
exchange = export_writer._exchange
if point == "sealing":
    export_writer.seal = dies
if point == "exchanging":
    export_writer._exchange = dies
if point == "exchanged":
    export_writer._exchange = lambda *both: (exchange(*both), dies())
rename = Path.rename
def renamed(source, target):
    if point == "moved away" and "partial" in str(source):
        dies()
    rename(source, target)
    if point == "moved in" and "partial" in str(source):
        dies()
if point.startswith("moved") and not has_exchange:
    Path.rename = renamed
with export_writer.ExportWriter(
    exports, "prod", date(2026, 11, 16), replaces=load_manifest(exports / "prod" / "2026-11-16")
) as writer:
    writer.payload("nameserver_topic_list", noon, "{}", nameserver="ns-1:9876")
    writer.payload("nameserver_route", noon, "{}", nameserver="ns-1:9876", topic="t")
    writer.payload("consumer_connection", noon, "{}", broker="a", broker_addr="a:1", group="g")
    if point == "begun":
        dies()
"""


def test_lines_of_the_days_earlier_export_are_copied_without_secrets(tmp_path: Path) -> None:
    content = b"accounts: hunter2\n"
    earlier = tmp_path / "earlier"
    (earlier / "broker_files" / "a").mkdir(parents=True)
    (earlier / "broker_files" / "a" / "plain_acl.yml").write_bytes(content)
    common_fields = {"cluster": "prod", "captured_at": "2026-11-16T12:00:00Z", **BROKER}
    file = {
        "path": "broker_files/a/plain_acl.yml",
        "size": len(content),
        "mtime": "2026-11-16T12:00:00Z",
        "sha256": "0" * 64,
    }
    copied = {"broker_config": {"payload": "adminPassword=hunter2\n"}, "broker_file": file}
    with ExportWriter(tmp_path, "prod", DS) as writer:
        write_required(writer)
        for kind, fields in copied.items():
            writer.copy(
                kind, json.dumps({"kind": kind, **common_fields, **fields}).encode() + b"\n", earlier, 1
            )
    assert writer.manifest == verify(writer.directory)
    for path in writer.directory.rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes()
