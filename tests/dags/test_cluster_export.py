"""The schedule of collecting a live cluster, and the arguments and credentials passed to the collector."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from rebalance_ledger.operators.collection import CollectExportOperator, PruneExportsOperator
from rebalance_ledger.operators.ledger import IncompleteCaptureError, StepCrashedError, StepRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.dags.conftest import StandIns

TODAY = datetime.now(UTC).replace(hour=1, minute=0, second=0, microsecond=0)
YESTERDAY = TODAY - timedelta(days=1)
SECRET = "s3cret-$(id)-é"  # noqa: S105  # a secret that must not appear anywhere


@pytest.fixture
def settings(stand_ins: StandIns, tmp_path: Path) -> Callable[[Any], None]:
    def write(collect: Any) -> None:
        (tmp_path / "ledger.yaml").write_text(json.dumps({"clusters": {"c": {"collect": collect}}}))

    write({"nameservers": ["ns:9876"]})
    return write


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def define(**fields: Any) -> None:
        described = {"conn_type": "generic", "login": "ledger", "password": SECRET, **fields}
        monkeypatch.setenv("AIRFLOW_CONN_ROCKETMQ", json.dumps(described))

    return define


def collect(day: datetime = TODAY, *, try_number: int = 3, max_tries: int = 2) -> None:
    run = SimpleNamespace(logical_date=day, run_type="scheduled", partition_key=None)
    task = SimpleNamespace(try_number=try_number, max_tries=max_tries)
    operator = CollectExportOperator(task_id="collect", cluster="c")
    operator.execute({"dag_run": run, "outlet_events": {}, "ti": task})  # type: ignore[typeddict-item]


def prune(state: str = "success") -> None:
    states = {"run": {"collect_0": state}}
    ti = SimpleNamespace(
        dag_id="cluster_export", run_id="run", map_index=0, get_task_states=lambda **_: states
    )
    PruneExportsOperator(task_id="prune", cluster="c").execute({"ti": ti})  # type: ignore[typeddict-item]  # only the keys that it reads


def land(tmp_path: Path, day: datetime, quality: str | None = None) -> None:
    directory = tmp_path / "exports" / "c" / f"{day:%Y-%m-%d}"
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps({"quality": quality} if quality else {}))


def options(stand_ins: StandIns) -> list[str]:
    (call,) = stand_ins.calls
    assert call[:3] == ["ledger", "exports", "collect"]
    return call[3:]


@pytest.mark.usefixtures("settings")
def test_today_is_collected_with_plain_arguments(stand_ins: StandIns, tmp_path: Path) -> None:
    collect()
    assert options(stand_ins) == [
        "--cluster=c",
        f"--ds={TODAY:%Y-%m-%d}",
        f"--exports={tmp_path / 'exports'}",
        f"--settings={tmp_path / 'ledger.yaml'}",
    ]


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("day", [TODAY, YESTERDAY])
def test_a_landed_export_is_not_collected_again(stand_ins: StandIns, tmp_path: Path, day: datetime) -> None:
    land(tmp_path, day)
    collect(day)
    assert stand_ins.calls == []


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(
    ("day", "quality", "is_asked"),
    [
        (TODAY, "complete", False),
        (TODAY, "degraded", True),
        (TODAY, "failed", True),
        (YESTERDAY, "degraded", False),
        (YESTERDAY, "failed", False),
    ],
)
def test_a_bad_capture_is_completed_until_the_end_of_its_day(
    stand_ins: StandIns, tmp_path: Path, day: datetime, quality: str, *, is_asked: bool
) -> None:
    land(tmp_path, day, quality)
    collect(day)
    assert bool(stand_ins.calls) == is_asked


@pytest.mark.parametrize("quality", ["complete", "degraded"])
def test_an_export_of_another_collector_is_only_announced(
    stand_ins: StandIns, settings: Callable[[Any], None], tmp_path: Path, quality: str
) -> None:
    settings(None)
    land(tmp_path, TODAY, quality)
    collect()
    prune()
    assert stand_ins.calls == []


def test_without_settings_and_export_the_missing_settings_are_named(
    stand_ins: StandIns, settings: Callable[[Any], None]
) -> None:
    settings(None)
    with pytest.raises(AirflowFailException, match=r"add clusters\.c\.collect"):
        collect()
    assert stand_ins.calls == []


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(
    ("day", "quality", "is_asked"),
    [
        (TODAY, "complete", False),
        (TODAY, None, False),
        (TODAY, "degraded", True),
        (TODAY, "failed", True),
        (YESTERDAY, "degraded", False),
    ],
)
def test_a_bad_capture_in_an_object_store_is_completed_too(
    stand_ins: StandIns,
    monkeypatch: pytest.MonkeyPatch,
    day: datetime,
    quality: str | None,
    *,
    is_asked: bool,
) -> None:
    monkeypatch.setenv("LEDGER_EXPORTS", "s3a://exports")
    stand_ins.end({"status c": (0, {"quality": quality})})
    collect(day)
    assert ["collect" in call for call in stand_ins.calls] == [False, True][: 1 + is_asked]


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("code", [4, 5])
def test_a_bad_capture_is_retried(stand_ins: StandIns, code: int) -> None:
    stand_ins.end({"collect c": (code, "The capture is bad.")})
    with pytest.raises(IncompleteCaptureError, match=r"^The capture is bad\.$"):
        collect(try_number=2)


@pytest.mark.usefixtures("settings")
def test_after_the_last_retry_a_degraded_export_is_accepted_and_a_failed_one_is_not(
    stand_ins: StandIns, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_ins.end({"collect c": (4, "The capture is degraded.")})
    collect()
    assert "The export has landed all the same: The capture is degraded." in capsys.readouterr().out
    stand_ins.end({"collect c": (5, "The capture is failed.")})
    with pytest.raises(AirflowFailException, match=r"^The capture is failed\.$"):
        collect()


@pytest.mark.usefixtures("settings")
def test_a_past_day_without_an_export_fails_in_one_sentence_and_sends_no_request(stand_ins: StandIns) -> None:
    with pytest.raises(
        AirflowFailException, match=rf"^No export of c for {YESTERDAY:%Y-%m-%d} has landed"
    ) as caught:
        collect(YESTERDAY)
    assert "a live cluster has only its current state" in str(caught.value)
    assert stand_ins.calls == []


def test_credentials_are_passed_on_stdin_only(
    stand_ins: StandIns,
    settings: Callable[[Any], None],
    connection: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection(host="ns-1:9876;ns-2", port=9999, extra={"tls_key_password": "opens"})
    settings({"connection": "rocketmq"})
    with caplog.at_level(0):
        collect()
    assert options(stand_ins)[-3:] == [
        "--nameserver=ns-1:9876",
        "--nameserver=ns-2:9999",
        "--credentials-from=stdin",
    ]
    ((received, connections),) = stand_ins.received
    assert json.loads(received) == {"access_key": "ledger", "secret_key": SECRET, "tls_key_password": "opens"}
    assert connections == []
    assert SECRET not in str(stand_ins.calls)
    assert SECRET not in caplog.text


def test_name_servers_of_the_settings_override_those_of_the_connection(
    stand_ins: StandIns, settings: Callable[[Any], None], connection: Callable[..., None]
) -> None:
    connection(host="elsewhere:9876", login="", password="")
    settings({"connection": "rocketmq", "nameservers": ["ns:9876"]})
    collect()
    assert not [word for word in options(stand_ins) if word.startswith(("--nameserver", "--credentials"))]


def test_a_missing_connection_is_named(stand_ins: StandIns, settings: Callable[[Any], None]) -> None:
    settings({"connection": "nobody-made-it"})
    with pytest.raises(AirflowFailException, match="no Airflow connection nobody-made-it"):
        collect()
    assert stand_ins.calls == []


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(("code", "error"), [(1, StepCrashedError), (2, StepRefusedError)])
def test_an_unreachable_cluster_is_retried_and_bad_settings_are_not(
    stand_ins: StandIns, code: int, error: type[Exception]
) -> None:
    stand_ins.end({"collect c": (code, "None of the name servers tells.")})
    with pytest.raises(error, match=r"None of the name servers tells\.$"):
        collect()


@pytest.mark.parametrize(
    ("retention", "called", "applied", "unpublished"),
    [
        (None, False, False, False),
        ({"keep_days": 30}, True, False, False),
        ({"keep_days": 30, "dry_run": False}, True, True, False),
        ({"keep_days": 30, "unpublished": True}, True, False, True),
    ],
)
def test_the_removal_of_exports_is_a_dry_run_by_default(
    stand_ins: StandIns,
    settings: Callable[[Any], None],
    retention: Any,
    *,
    called: bool,
    applied: bool,
    unpublished: bool,
) -> None:
    settings({"retention": retention})
    prune()
    assert [call[1:3] for call in stand_ins.calls] == [["exports", "prune"]] * called
    assert ("--apply" in str(stand_ins.calls)) is applied
    assert ("--unpublished" in str(stand_ins.calls)) is unpublished


def test_no_export_is_removed_if_the_collection_failed(
    stand_ins: StandIns, settings: Callable[[Any], None]
) -> None:
    settings({"retention": {"keep_days": 30, "dry_run": False}})
    with pytest.raises(AirflowFailException, match="A task of c before this one has failed"):
        prune(state="failed")
    assert stand_ins.calls == []


class TestCompleteRun:
    def test_a_past_day_that_has_landed_is_announced(
        self,
        run_day: Callable[..., dict[str, Any]],
        stand_ins: StandIns,
        settings: Callable[[Any], None],
        tmp_path: Path,
    ) -> None:
        settings({"nameservers": ["ns:9876"], "retention": {"keep_days": 7}})
        land(tmp_path, datetime(2026, 11, 16, tzinfo=UTC))
        outcome = run_day("2026-11-16", "cluster_export")
        assert outcome["state"] == "success"
        assert outcome["events"] == [["c|2026-11-16", {"cluster": "c", "ds": "2026-11-16"}]]
        assert [call[1:3] for call in stand_ins.calls] == [["exports", "prune"]]

    def test_a_failed_collection_fails_the_run_and_tasks_show_their_cluster(
        self, run_day: Callable[..., dict[str, Any]], stand_ins: StandIns, settings: Callable[[Any], None]
    ) -> None:
        settings({"nameservers": ["ns:9876"], "retention": {"keep_days": 7}})
        outcome = run_day("2026-11-16", "cluster_export")
        assert outcome["tasks"]["cluster_day.collect"][0] == "failed"
        assert outcome["state"] == "failed"
        assert outcome["tasks"]["cluster_day.prune"][0] == "failed"
        assert outcome["names"]["cluster_day.prune"] == "c"
        assert stand_ins.calls == []

    def test_a_requested_cluster_needs_no_collection_settings_once_its_export_has_landed(
        self, run_day: Callable[..., dict[str, Any]], stand_ins: StandIns, tmp_path: Path
    ) -> None:
        (tmp_path / "ledger.yaml").write_text(
            "clusters: {c: {}, other: {collect: {nameservers: ['ns:9876']}}}\n"
        )
        land(tmp_path, datetime(2026, 11, 16, tzinfo=UTC))
        outcome = run_day("2026-11-20", "cluster_export", clusters=["c"], ds="2026-11-16")
        assert outcome["state"] == "success"
        assert outcome["events"] == [["c|2026-11-16", {"cluster": "c", "ds": "2026-11-16"}]]
        assert stand_ins.calls == []

    def test_an_unknown_cluster_is_named(
        self, run_day: Callable[..., dict[str, Any]], settings: Callable[[Any], None]
    ) -> None:
        settings({"nameservers": ["ns:9876"]})
        outcome = run_day("2026-11-16", "cluster_export", clusters=["c", "d"])
        assert outcome["tasks"]["clusters"][0] == "failed"
        assert outcome["tasks"]["cluster_day.collect"][0] == "upstream_failed"
        assert outcome["events"] == []

    def test_without_a_cluster_to_collect_the_run_is_skipped(
        self, run_day: Callable[..., dict[str, Any]], stand_ins: StandIns, tmp_path: Path
    ) -> None:
        (tmp_path / "ledger.yaml").write_text("clusters: {c: {}}\n")
        outcome = run_day("2026-11-16", "cluster_export", clusters=None)
        assert outcome["tasks"]["clusters"][0] == "skipped"
        assert outcome["state"] == "success"
        assert stand_ins.calls == []
