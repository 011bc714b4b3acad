"""CLI tests of `ledger exports collect` and `ledger exports prune` with a simulated cluster instead of the JVM."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from rebalance_ledger.cli import collect as collecting
from rebalance_ledger.collectors.errors import AdminClientError
from rebalance_ledger.exports.contract import KIND_BY_NAME
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.pipeline.outdated import replaced_exports
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from tests.support.command_line import ledger
from tests.support.export_builder import ExportBuilder
from tests.support.simulated_cluster import AdminClients, SimulatedCluster, silence
from tests.support.staging_fixtures import stage_day

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.collectors.admin import Answer, Question

TODAY = datetime.now(UTC).date()


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AdminClients:
    for name in ("LEDGER_EXPORTS", "LEDGER_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
    # With a folder of jars, even an empty one, nothing is downloaded.
    monkeypatch.setenv("LEDGER_COLLECTOR_JARS", str(tmp_path))
    clients = AdminClients()
    monkeypatch.setattr(collecting, "admin_client", clients)
    return clients


def settings(folder: Path, collect: dict[str, Any], cluster: str = "c") -> str:
    file = folder / "ledger.yaml"
    file.write_text(json.dumps({"clusters": {cluster: {"collect": collect}}}))
    return f"--settings={file}"


def collect(folder: Path, *more: str) -> int:
    return ledger("exports", "collect", "--cluster=c", f"--exports={folder / 'exports'}", *more)


BOTH = ("--nameserver=ns-1:9876", "--nameserver=ns-2:9876")


@pytest.mark.usefixtures("clients")
def test_todays_export_is_landed_sealed_and_summarized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert collect(tmp_path, *BOTH) == 0
    directory = tmp_path / "exports" / "c" / f"{TODAY}"
    assert len(verify(directory, cluster="c", ds=TODAY).envelope_files) == 14
    output = capsys.readouterr()
    assert output.out == (
        f"{directory} is collected and sealed: cluster c, {TODAY}, 14 files, 39 lines (2 errors), 0 attachments that no "
        "table reads.\n"
    )
    for part in ("name servers", "brokers", "routes", "groups", "topic offsets"):
        lines = [line for line in output.err.splitlines() if line.startswith(f"{part}: ")]
        # Each part reaches its end without a terminal too.
        assert lines[0].startswith(f"{part}: 0 of ")
        assert len(set(lines[-1].removeprefix(f"{part}: ").split(" of "))) == 1


def test_sources_that_did_not_answer_are_reported(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mute(asked: Question) -> Answer | None:
        return silence() if asked.address == "10.0.0.1:10911" else None

    clients.cluster.instead = mute
    assert collect(tmp_path, *BOTH, settings(tmp_path, {"retries": 0, "unresponsive_after_s": 0.0001})) == 4
    message = capsys.readouterr().err
    assert "warning: 10.0.0.1:10911 was not called any more in this run, after" in message
    assert "groups that only it knows were not asked for" in message


def test_name_servers_of_the_command_line_override_those_of_the_settings(
    clients: AdminClients, tmp_path: Path
) -> None:
    assert collect(tmp_path, settings(tmp_path, {"nameservers": ["ns-1:9876", "ns-2:9876"]})) == 0
    assert ledger(
        "exports", "collect", "--cluster=d", f"--exports={tmp_path / 'exports'}", "--nameserver=ns-2:9876",
        settings(tmp_path, {"nameservers": ["ns-1:9876"]}, "d"),
    ) == 0  # fmt: skip
    assert [nameservers for nameservers, _ in clients.started] == [["ns-1:9876", "ns-2:9876"], ["ns-2:9876"]]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "No name server of c is known; give --nameserver"),
        (("--nameserver=ns-1",), "'ns-1' is no name server's address; give host:port."),
        ((*BOTH, "--ds=2026-11-16"), "2026-11-16 is not today"),
        ((*BOTH, "--credentials-from=env"), "Credentials from env are not there; LEDGER_ROCKETMQ_ACCESS_KEY"),
        ((*BOTH, "--credentials-from=stdin"), "Credentials from stdin are not there; a line {"),
        ((*BOTH, "--settings=/not/there.yaml"), "The settings file /not/there.yaml cannot be read"),
    ],
    ids=str,
)
def test_a_refused_collection_is_one_sentence_and_sends_no_request(
    clients: AdminClients,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"access_key": "only"}\n'))
    assert collect(tmp_path, *options) == 2
    message = capsys.readouterr().err
    assert message.startswith(sentence)
    assert message.count("\n") == 1
    assert clients.started == []
    assert not (tmp_path / "exports" / "c").exists()


def test_credentials_are_removed_from_the_environment(
    clients: AdminClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_ROCKETMQ_ACCESS_KEY", "me")
    monkeypatch.setenv("LEDGER_ROCKETMQ_SECRET_KEY", "s3cret")
    assert collect(tmp_path, *BOTH, "--credentials-from=env") == 0
    ((_, credentials),) = clients.started
    assert (credentials.access_key, credentials.secret_key) == ("me", "s3cret")
    assert "s3cret" not in repr(credentials)
    assert "LEDGER_ROCKETMQ_SECRET_KEY" not in collecting.os.environ


def test_credentials_come_as_a_line_of_json(
    clients: AdminClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"access_key": "me", "secret_key": "s3cret", "tls_key_password": "opens"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given) + "\n"))
    assert collect(tmp_path, *BOTH, "--credentials-from=stdin") == 0
    ((_, credentials),) = clients.started
    assert {name: getattr(credentials, name) for name in given} == given


def test_credentials_that_are_not_json_are_not_echoed(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("me:s3cret\n"))
    assert collect(tmp_path, *BOTH, "--credentials-from=stdin") == 2
    assert "s3cret" not in capsys.readouterr().err
    assert clients.started == []


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (AdminClientError("The JVM has ended."), "The JVM has ended."),
        (silence(), "None of the name servers (ns-1:9876, ns-2:9876) returns topics and brokers"),
    ],
    ids=["the JVM ends", "nobody answers"],
)
def test_a_transient_failure_exits_with_1_and_leaves_no_export(
    clients: AdminClients,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    failure: AdminClientError | Answer,
    words: str,
) -> None:
    def fails(_: Question) -> Answer:
        if isinstance(failure, Exception):
            raise failure
        return failure

    clients.cluster.instead = fails
    assert collect(tmp_path, *BOTH, settings(tmp_path, {"retries": 0})) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(words)
    assert list((tmp_path / "exports" / "c").iterdir()) == []


def test_a_terminal_shows_a_progress_bar_for_each_part(
    clients: AdminClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        "rebalance_ledger.cli.app._stderr", Console(file=terminal, force_terminal=True, width=100)
    )
    assert collect(tmp_path, *BOTH) == 0
    assert "routes" in terminal.getvalue()
    assert "6/6" in terminal.getvalue()
    assert len(clients.started) == 1


def test_a_complete_export_is_not_collected_again_and_no_request_is_sent(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert collect(tmp_path, *BOTH) == 0
    assert collect(tmp_path, *BOTH) == 2
    assert "is already an export, and an export does not change" in capsys.readouterr().err
    assert len(clients.started) == 1


QUICK = {"retries": 0, "unresponsive_after_s": 0.0001}
MUTE = "10.0.0.1:10911"


def directory(folder: Path) -> Path:
    return folder / "exports" / "c" / f"{TODAY}"


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory(folder).iterdir())}


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    file = directory(folder) / KIND_BY_NAME[kind].file_name
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def mute(cluster: SimulatedCluster, *addresses: str) -> None:
    cluster.instead = lambda asked: silence() if asked.address in addresses else None


def test_a_retry_requests_what_the_first_attempt_lacks(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    first = verify(directory(tmp_path))
    assert first.quality == "degraded"
    assert "The capture is degraded: " in capsys.readouterr().err
    before = clients.cluster.calls[:]
    clients.cluster.instead = lambda _: None
    clients.cluster.calls.clear()
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 0
    manifest = verify(directory(tmp_path))
    assert [(each.attempt, each.quality) for each in manifest.attempts] == [(1, "degraded"), (2, "complete")]
    assert manifest.quality == "complete"
    assert manifest.attempts[0] == first.attempts[0]
    assert manifest.attempts[1].started_at >= manifest.attempts[0].ended_at
    # Answered requests are not repeated, except for groups with a failed part: their members must be consistent.
    asked = {call.kind for call in clients.cluster.calls if call.address != MUTE}
    assert asked == {"consumer_connection", "consume_stats", "consumer_running_info"}
    assert {call.kind for call in clients.cluster.calls_of("broker_topic_config")} == {"broker_topic_config"}
    assert any(call.kind == "broker_config" and call.address != MUTE for call in before)
    for kind in ("broker_config", "broker_topic_config"):
        assert {
            (line["broker_addr"], line["attempt"], "payload" in line) for line in lines(tmp_path, kind)
        } == {
            (MUTE, 2, True),
            ("10.0.0.2:10911", 1, True),
        }
    assert collect(tmp_path, *BOTH) == 2


def test_an_answer_of_an_earlier_attempt_is_kept_if_a_later_attempt_fails(
    clients: AdminClients, tmp_path: Path
) -> None:
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    mute(clients.cluster, "10.0.0.2:10911")
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 0
    of = {
        (line["broker_addr"], line["group"]): (line["attempt"], "payload" in line)
        for line in lines(tmp_path, "consumer_connection")
    }
    assert of["10.0.0.1:10911", "biller"] == (2, True)
    assert of["10.0.0.2:10911", "biller"] == (1, True)


def test_an_attempt_without_new_answers_leaves_the_export_unchanged(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    before = content(tmp_path)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    assert content(tmp_path) == before
    assert "brought no answer that the export lacks" in capsys.readouterr().err
    assert [path.name for path in directory(tmp_path).parent.iterdir()] == [f"{TODAY}"]


def test_an_interrupted_attempt_leaves_the_export_unchanged(clients: AdminClients, tmp_path: Path) -> None:
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    before = content(tmp_path)

    def ends(asked: Question) -> Answer | None:
        if asked.kind == "consume_stats":
            raise AdminClientError("The JVM has ended.")
        return None

    clients.cluster.instead = ends
    assert collect(tmp_path, *BOTH) == 1
    assert content(tmp_path) == before
    verify(directory(tmp_path))


def test_a_failed_capture_is_repeated_as_a_whole(clients: AdminClients, tmp_path: Path) -> None:
    strict = settings(tmp_path, {**QUICK, "quality": {"degraded_above": 0.1, "failed_above": 0.2}})
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, strict) == 5
    assert verify(directory(tmp_path)).quality == "failed"
    clients.cluster.instead = lambda _: None
    clients.cluster.calls.clear()
    assert collect(tmp_path, *BOTH, strict) == 0
    assert {call.address for call in clients.cluster.calls_of("broker_config")} == {MUTE, "10.0.0.2:10911"}
    assert {line["attempt"] for line in lines(tmp_path, "broker_config")} == {2}


def test_an_export_without_a_recorded_quality_is_not_replaced(clients: AdminClients, tmp_path: Path) -> None:
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    (directory(tmp_path) / "capture_attempts.jsonl").unlink()
    assert ledger("exports", "seal", "--replace", str(directory(tmp_path))) == 0
    assert verify(directory(tmp_path)).quality is None
    assert collect(tmp_path, *BOTH) == 2
    assert len(clients.started) == 1


def test_offset_files_of_the_first_attempt_are_kept_with_the_queue_offsets_of_that_attempt(
    clients: AdminClients, tmp_path: Path, drop: Path
) -> None:
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK), f"--offset-files={drop}") == 4
    before = of_offset_files(tmp_path)
    next(drop.rglob("offsets.json")).write_bytes(b"later")
    clients.cluster.instead = lambda _: None
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK), f"--offset-files={drop}") == 0
    assert of_offset_files(tmp_path) == [line | {"attempt": 1} for line in before]
    verify(directory(tmp_path))


def of_offset_files(folder: Path) -> list[dict[str, Any]]:
    index = folder / "exports" / "c" / f"{TODAY}" / "offset_files_index.jsonl"
    return [json.loads(line) for line in index.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    group = tmp_path / "drop" / "10.1.1.21" / "10.1.1.21@DEFAULT" / "prices"
    group.mkdir(parents=True)
    (group / "offsets.json").write_bytes(b"{}" * 10)
    (group / "notes").touch()
    return tmp_path / "drop"


@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("is_in_settings", [True, False])
def test_offset_files_are_landed_before_the_cluster_is_asked(
    tmp_path: Path, drop: Path, capsys: pytest.CaptureFixture[str], *, is_in_settings: bool
) -> None:
    option = settings(tmp_path, {"offset_files": str(drop)}) if is_in_settings else f"--offset-files={drop}"
    assert collect(tmp_path, *BOTH, option) == 0
    (line,) = of_offset_files(tmp_path)
    assert (line["host"], line["group"], line["size"]) == ("10.1.1.21", "prices", 20)
    message = capsys.readouterr().err
    assert message.index("trees of offset files") < message.index("name servers")
    assert "warning: Offset files: 1 entries of groups' folders have other names" in message


@pytest.mark.usefixtures("clients")
def test_the_size_limit_of_offset_files_comes_from_the_settings(tmp_path: Path, drop: Path) -> None:
    limited = settings(tmp_path, {"offset_files": str(drop), "offset_file_limit_bytes": 19})
    assert collect(tmp_path, *BOTH, limited) == 0
    (line,) = of_offset_files(tmp_path)
    assert line["error"]["message"] == "offsets.json has 20 bytes, and the limit is 19"


def test_a_missing_drop_folder_is_refused_as_an_option_and_unknown_as_a_setting(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert collect(tmp_path, *BOTH, f"--offset-files={tmp_path / 'gone'}") == 2
    assert capsys.readouterr().err == (
        f"{tmp_path / 'gone'} is not a folder; give the one that has a folder for each host.\n"
    )
    assert clients.started == []
    assert collect(tmp_path, *BOTH, settings(tmp_path, {"offset_files": str(tmp_path / "gone")})) == 0
    (line,) = of_offset_files(tmp_path)
    assert line["error"]["type"] == "FileUnreadable"
    assert "the drop folder cannot be opened" in capsys.readouterr().err


def test_missing_jars_are_reported_in_one_sentence(
    clients: AdminClients, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_COLLECTOR_JARS", str(tmp_path / "nowhere"))
    assert collect(tmp_path, *BOTH) == 2
    assert "is not a folder; set it to a copy of a checkout's .local/collector." in capsys.readouterr().err
    assert clients.started == []


class TestPruning:
    @pytest.fixture
    def exports(self, tmp_path: Path) -> Path:
        for days in (0, 5, 40):
            directory = tmp_path / "exports" / "c" / f"{TODAY - timedelta(days=days)}"
            directory.mkdir(parents=True)
            (directory / "manifest.json").touch()
        return tmp_path / "exports"

    def left(self, exports: Path) -> int:
        return len(list((exports / "c").iterdir()))

    def test_the_default_is_a_dry_run(self, exports: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert (
            ledger(
                "exports", "prune", f"--exports={exports}", "--cluster=c", "--keep-days=30", "--unpublished"
            )
            == 0
        )
        oldest = exports / "c" / f"{TODAY - timedelta(days=40)}"
        assert capsys.readouterr().out == f"{oldest} would be removed; nothing is without --apply.\n"
        assert self.left(exports) == 3

    def test_apply_removes_what_the_settings_do_not_keep(
        self, exports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kept = settings(tmp_path, {"retention": {"keep_days": 5}})
        assert ledger("exports", "prune", f"--exports={exports}", kept, "--unpublished", "--apply") == 0
        assert [line.rpartition(" is ")[2] for line in capsys.readouterr().out.splitlines()] == [
            "removed."
        ] * 2
        assert self.left(exports) == 1
        assert ledger("exports", "prune", f"--exports={exports}", kept, "--unpublished", "--apply") == 0
        assert capsys.readouterr().out == "c has no export of 5 days ago or earlier.\n"

    def test_an_export_is_kept_unless_its_day_is_published_from_it(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        exports, warehouse = tmp_path / "exports", Warehouse.at(str(tmp_path / "warehouse"))
        refused, replaced, published = (date(2026, 11, day) for day in (10, 11, 12))
        folders = {}
        for ds in (refused, replaced, published):
            export = ExportBuilder("c", ds)
            export.route("t", {"a": 1})
            export.members("a", "g", ["c1"], ["t"])
            folders[ds] = export.seal(exports)
        for ds, manifest in (
            (replaced, "of an earlier capture"),
            (published, verify(folders[published]).sha256),
        ):
            stage_day(warehouse, ds, "c", build={"manifest_sha256": manifest})
            publish(warehouse, "c", ds)
        places = (f"--exports={exports}", f"--warehouse={warehouse.root}")
        assert ledger("exports", "prune", *places, "--cluster=c", "--keep-days=1", "--apply") == 0
        assert capsys.readouterr().out.splitlines() == [
            *(
                f"{folders[ds]} is kept: {warehouse.root} has not published its day from it. `--unpublished` removes such exports too."
                for ds in (refused, replaced)
            ),
            f"{folders[published]} is removed.",
        ]
        assert [folder.is_dir() for folder in folders.values()] == [True, True, False]

    def test_without_a_retention_period_nothing_is_removed(
        self, exports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert ledger("exports", "prune", f"--exports={exports}", settings(tmp_path, {}), "--apply") == 2
        assert capsys.readouterr().err.startswith("How long exports of any cluster are kept is not known")
        assert self.left(exports) == 3


def test_a_day_computed_from_an_export_that_was_completed_since_is_out_of_date(
    clients: AdminClients, tmp_path: Path
) -> None:
    exports = tmp_path / "exports"
    mute(clients.cluster, MUTE)
    assert collect(tmp_path, *BOTH, settings(tmp_path, QUICK)) == 4
    published = {
        TODAY: verify(directory(tmp_path)).sha256,
        TODAY - timedelta(days=1): "of an export that is gone",
    }
    assert replaced_exports(published, "c", exports) == []
    clients.cluster.instead = lambda _: None
    assert collect(tmp_path, *BOTH) == 0
    assert replaced_exports(published, "c", exports) == [TODAY]
    assert replaced_exports(published, "c", None) == []
