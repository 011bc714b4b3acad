"""How the operators start a stage, and what its exit code means to Airflow."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.serialization.serialized_objects import OperatorSerialization

from expectations.gate import judge
from expectations.verdict import explain
from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES
from rebalance_ledger.operators.ledger import (
    DataDocsLink,
    GateOperator,
    LedgerBuildOperator,
    LedgerStepOperator,
    MaintainWarehouseOperator,
    NotifyOperator,
    ReportLink,
    ReportOperator,
    StageCrashedError,
    StageRefusedError,
    VerifyExportSensor,
)
from rebalance_ledger.operators.pages import page_url

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from tests.dags.conftest import StandIns

_SECRETS_OF_AIRFLOW = (
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_SECRET",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__INTERNAL_API_SECRET_KEY",
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__CELERY__BROKER_URL",
    "AIRFLOW__CELERY__RESULT_BACKEND",
    "AIRFLOW__SECRETS__BACKEND_KWARGS",
    "AIRFLOW__SMTP__SMTP_PASSWORD",
    "AIRFLOW_CONN_ROCKETMQ",
    "AIRFLOW_VAR_TOKEN",
    "_AIRFLOW_WWW_USER_PASSWORD",
)

NASTY = '--help"; touch /tmp/x; {{ 7 * 7 }} $(id) %s'


def context(
    logical_date: datetime | None = datetime(2026, 11, 16, tzinfo=UTC), run_type: str = "manual"
) -> Any:
    return {"dag_run": SimpleNamespace(logical_date=logical_date, run_type=run_type), "outlet_events": {}}


def stage(name: str, cluster: str = "c") -> LedgerStepOperator:
    if name == "gate":
        return GateOperator(task_id=name, cluster=cluster)
    return LedgerStepOperator(task_id=name, stage=name, cluster=cluster)


def build(cluster: str = "c") -> LedgerBuildOperator:
    return LedgerBuildOperator(task_id="build", cluster=cluster)


def test_the_gates_link_is_kept_with_the_dag_by_the_name_under_which_it_is_asked_for() -> None:
    serialized = OperatorSerialization.serialize_operator(stage("gate"))

    assert serialized["_operator_extra_links"] == {"Data Docs": "_link_DataDocsLink"}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize(
    ("served_at", "start"),
    [(None, "/queue-ledger"), ("https://docs.example/ledger/", "https://docs.example/ledger")],
)
def test_the_gates_link_leads_to_the_page_that_it_built(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, code: int, served_at: str | None, start: str
) -> None:
    folder = Path(stand_ins.environment["LEDGER_WAREHOUSE"]) / "data_docs" / "prod%2Feu" / "2026-11-16"
    verdict = judge([], cluster="prod/eu", ds=date(2026, 11, 16), run_id="r", data_docs_dir=folder)
    stand_ins.end({"gate prod/eu": (code, explain(verdict))})
    if served_at:
        monkeypatch.setenv("LEDGER_DATA_DOCS_URL", served_at)
    judged = stage("gate", "prod/eu")

    with nullcontext() if code == 0 else pytest.raises(StageRefusedError):
        judged.execute(context())

    link = DataDocsLink().get_link(judged, ti_key=None)  # type: ignore[arg-type]  # it asks the operator alone
    assert link == f"{start}/prod%252Feu/2026-11-16/index.html"
    assert (folder / "index.html").is_file()


def test_links_are_below_the_path_at_which_a_proxy_serves_airflow(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
    page = Path(stand_ins.environment["LEDGER_WAREHOUSE"]) / "data_docs" / "c" / "2026-11-16" / "index.html"

    assert page_url(page) == "/airflow/queue-ledger/c/2026-11-16/index.html"


def test_the_reports_link_leads_to_the_page_that_the_step_names(stand_ins: StandIns) -> None:
    page = Path(stand_ins.environment["LEDGER_WAREHOUSE"]) / "data_docs" / "c" / "2026-11-16" / "report.html"
    stand_ins.end({"report c": (0, f"Report: {page}")})
    report = ReportOperator(task_id="report", cluster="c")

    report.execute(context())

    assert ReportLink().get_link(report, ti_key=None) == "/queue-ledger/c/2026-11-16/report.html"  # type: ignore[arg-type]


def test_a_gate_that_crashed_has_no_pages_to_link(stand_ins: StandIns) -> None:
    stand_ins.end({"gate c": (1, "it crashed")})
    judged = stage("gate")

    with pytest.raises(StageCrashedError):
        judged.execute(context())

    assert DataDocsLink().get_link(judged, ti_key=None) == ""  # type: ignore[arg-type]  # it asks the operator alone


@pytest.mark.parametrize("name", ["verify", "gate", "publish"])
def test_a_stage_without_spark_is_the_command_line_with_plain_arguments(
    stand_ins: StandIns, name: str
) -> None:
    stage(name, NASTY).execute(context())
    places = [
        f"--{place}={stand_ins.environment[f'LEDGER_{place.upper()}']}" for place in ("exports", "warehouse")
    ]
    settings = f"--settings={stand_ins.environment['LEDGER_SETTINGS']}"
    assert stand_ins.calls == [
        ["ledger", "step", name, f"--cluster={NASTY}", "--ds=2026-11-16", *places, settings]
    ]


def test_the_spark_stage_is_submitted_to_the_connections_master(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "spark://there", "port": 7077}'
    )
    build(NASTY).execute(context())
    (call,) = stand_ins.calls
    assert call[:3] == ["spark-submit", "--master", "spark://there:7077"]
    script = next(place for place, word in enumerate(call) if word.endswith("spark_jobs/build.py"))
    assert call[script + 1 : script + 3] == [f"--cluster={NASTY}", "--ds=2026-11-16"]


@pytest.mark.parametrize("code", [2, 3])
@pytest.mark.parametrize("task", [stage("gate"), build()], ids=["ledger", "spark-submit"])
def test_a_refusal_fails_for_good_and_says_why(stand_ins: StandIns, task: BaseOperator, code: int) -> None:
    end_all(stand_ins, code, "Refused: queue_assignment holds a duplicated owner.")
    with pytest.raises(
        StageRefusedError, match=r"^Refused: queue_assignment holds a duplicated owner\.$"
    ) as caught:
        task.execute(context())
    assert isinstance(caught.value, AirflowFailException)
    assert caught.value.exit_code == code


def test_every_line_of_a_refusal_reaches_the_reader(stand_ins: StandIns) -> None:
    words = "\n".join(
        ["The gate refused this day.", *(f"- expectation {number} fails" for number in range(12))]
    )
    end_all(stand_ins, 3, words)
    with pytest.raises(StageRefusedError) as caught:
        stage("gate").execute(context())
    assert str(caught.value) == words


@pytest.mark.parametrize("task", [stage("gate"), build()], ids=["ledger", "spark-submit"])
def test_a_crash_may_be_tried_again(stand_ins: StandIns, task: BaseOperator) -> None:
    end_all(stand_ins, 1, "Traceback (most recent call last):\nOSError: disk full")
    with pytest.raises(StageCrashedError, match="crashed with exit code 1: OSError: disk full") as caught:
        task.execute(context())
    assert not isinstance(caught.value, AirflowFailException)


def test_the_jvms_words_are_not_taken_for_the_reason(stand_ins: StandIns) -> None:
    end_all(
        stand_ins, 2, "No export.\n\tat org.apache.Main(Main.scala:1)\n\t... 3 more\n12:00:00 WARN X: bye"
    )
    with pytest.raises(StageRefusedError, match=r"^No export\.$"):
        build().execute(context())


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"files": [{"size_bytes": LARGE_EXPORT_BYTES - 1}, {"size_bytes": 1}]}, True),
        ({"files": [{"size_bytes": LARGE_EXPORT_BYTES - 1}]}, False),
        ({"files": [{}]}, False),
        (None, False),
    ],
    ids=["large", "small", "incomplete", "missing"],
)
def test_the_driver_of_a_large_export_has_both_compilers(
    stand_ins: StandIns, manifest: object, *, expected: bool
) -> None:
    day = Path(stand_ins.environment["LEDGER_EXPORTS"]) / "c" / "2026-11-16"
    if manifest:
        day.mkdir(parents=True)
        (day / "manifest.json").write_text(json.dumps(manifest))
    build("c").execute(context())
    [call] = stand_ins.calls
    assert ("spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=4" in call) == expected


def test_a_run_without_a_logical_date_belongs_to_no_day(stand_ins: StandIns) -> None:
    with pytest.raises(AirflowFailException, match="no logical date"):
        stage("gate").execute(context(logical_date=None))
    assert stand_ins.calls == []


@pytest.mark.usefixtures("stand_ins")
def test_a_worker_that_does_not_know_the_warehouse_says_which_variable_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LEDGER_WAREHOUSE")
    with pytest.raises(AirflowFailException, match="LEDGER_WAREHOUSE is not set"):
        stage("publish").execute(context())


def test_the_object_stores_keys_come_from_the_connection_that_is_named(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"region_name": "eu-central-1", "endpoint_url": "http://store:8333"}
    connection = {"conn_type": "aws", "login": "key", "password": "secret", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
    monkeypatch.setenv("LEDGER_OBJECT_STORE_CONNECTION", "lake")
    stage("publish").execute(context())
    [(_, message)] = stand_ins.heard
    assert sorted(message) == ["AWS_ENDPOINT_URL", "AWS_REGION"]
    building = build()
    building.execute(context())
    assert building.env_vars == {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "http://store:8333",
    }
    assert not any("secret" in word for call in stand_ins.calls for word in call)


def test_no_program_of_a_task_inherits_airflows_secrets(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in _SECRETS_OF_AIRFLOW:
        monkeypatch.setenv(variable, "db:hidden-secret")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    stage("publish").execute(context())
    building = build()
    building.execute(context())
    # With variables of its own the hook gives the application another environment than without.
    monkeypatch.setattr(
        "rebalance_ledger.operators.ledger.object_store_variables", lambda: {"AWS_ACCESS_KEY_ID": "key"}
    )
    build().execute(context())
    programs = [program for program, _ in stand_ins.environments]
    assert programs == ["ledger", "spark-submit", "spark-submit"]
    for _, environment in stand_ins.environments:
        assert "hidden-secret" not in environment
        variables = [line.partition("=")[0] for line in environment.split("\0")]
        assert not [name for name in variables if name.lstrip("_").startswith("AIRFLOW")]
        assert "AWS_REGION=eu-central-1" in environment
        assert "LEDGER_WAREHOUSE=" in environment
    assert not any("hidden-secret" in word for call in stand_ins.calls for word in call)


@pytest.mark.usefixtures("stand_ins")
def test_an_object_stores_connection_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_OBJECT_STORE_CONNECTION", "lake")
    with pytest.raises(AirflowFailException, match="no Airflow connection lake"):
        stage("publish").execute(context())


class TestWaitingForTheExport:
    """Only the scheduler's own run waits, only on the day itself, and only while nothing has landed."""

    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def poke(self, day: datetime, run_type: str) -> bool:
        sensor = VerifyExportSensor(task_id="verify_export", cluster="c")
        return sensor.poke(context(day, run_type))

    def test_todays_scheduled_run_waits(self, stand_ins: StandIns) -> None:
        assert self.poke(self.today, "scheduled") is False
        assert stand_ins.calls == []

    def test_it_verifies_as_soon_as_the_manifest_is_there(self, stand_ins: StandIns, tmp_path: Path) -> None:
        landed = tmp_path / "exports" / "c" / f"{self.today:%Y-%m-%d}"
        landed.mkdir(parents=True)
        (landed / "manifest.json").touch()
        assert self.poke(self.today, "scheduled") is True
        assert [call[:3] for call in stand_ins.calls] == [["ledger", "step", "verify"]]

    def test_in_an_object_store_it_lets_the_ledger_look(
        self, stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LEDGER_EXPORTS", "s3a://lake/exports")
        stand_ins.end({"status c": (2, "There is no manifest.")})
        assert self.poke(self.today, "scheduled") is False
        stand_ins.end({})
        assert self.poke(self.today, "scheduled") is True
        assert [call[1:3] for call in stand_ins.calls] == [
            ["exports", "status"],
            ["exports", "status"],
            ["step", "verify"],
        ]

    @pytest.mark.parametrize("run_type", ["manual", "backfill"])
    def test_a_run_that_somebody_started_gets_its_answer_at_once(
        self, stand_ins: StandIns, run_type: str
    ) -> None:
        end_all(stand_ins, 2, "No export has landed.")
        with pytest.raises(StageRefusedError, match="No export has landed"):
            self.poke(self.today, run_type)

    def test_a_past_day_is_never_waited_for(self, stand_ins: StandIns) -> None:
        end_all(stand_ins, 2, "No export has landed.")
        with pytest.raises(StageRefusedError, match="No export has landed"):
            self.poke(self.today - timedelta(days=1), "scheduled")


def end_all(stand_ins: StandIns, code: int, words: str) -> None:
    stand_ins.end({f"{name} c": (code, words) for name in ("verify", "build", "gate", "publish", "report")})


@pytest.mark.parametrize(("dry_run", "said"), [("true", []), ("false", ["--apply"])])
def test_maintenance_only_names_what_would_go_unless_the_settings_say_otherwise(
    stand_ins: StandIns, tmp_path: Path, dry_run: str, said: list[str]
) -> None:
    (tmp_path / "ledger.yaml").write_text(f"maintenance: {{dry_run: {dry_run}}}\n")
    MaintainWarehouseOperator(task_id="maintain").execute({})
    places = [f"--warehouse={tmp_path / 'warehouse'}", f"--settings={tmp_path / 'ledger.yaml'}"]
    assert stand_ins.calls == [["ledger", "maintain", *places, *said]]


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        (
            {"conn_type": "http", "password": "https://hooks.example/T0/secret"},
            "https://hooks.example/T0/secret",
        ),
        (
            {
                "conn_type": "smtp",
                "host": "mail.example",
                "port": 25,
                "login": "l@x",
                "password": "p/w",
                "extra": {"from_email": "a@x", "to_emails": ["b@x", "c@x"], "disable_tls": True},
            },
            "smtp://l%40x:p%2Fw@mail.example:25?from=a%40x&to=b%40x&to=c%40x&security=none",
        ),
    ],
)
def test_notifications_go_where_the_connection_says_and_no_list_of_processes_shows_it(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], url: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(connection))
    monkeypatch.setenv("LEDGER_NOTIFY_CONNECTION", "pager")

    NotifyOperator(task_id="notify", cluster="c").execute(context())

    warehouse = stand_ins.environment["LEDGER_WAREHOUSE"]
    options = ["--cluster=c", f"--warehouse={warehouse}", "--destination-from-stdin"]
    assert stand_ins.calls == [["ledger", "notify", *options]]
    assert [stdin for stdin, _ in stand_ins.heard] == [f"{url}\n"]


def test_without_a_connection_nobody_is_notified_and_the_task_is_skipped(stand_ins: StandIns) -> None:
    with pytest.raises(AirflowSkipException, match="LEDGER_NOTIFY_CONNECTION"):
        NotifyOperator(task_id="notify", cluster="c").execute(context())

    assert stand_ins.calls == []


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        (None, "There is no Airflow connection pager"),
        ({"conn_type": "http"}, "has no password"),
        ({"conn_type": "smtp", "host": "mail.example"}, "needs a host, and from_email and to_emails"),
    ],
)
def test_a_connection_that_cannot_be_used_is_named(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | None, sentence: str
) -> None:
    if connection is not None:
        monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(connection))
    monkeypatch.setenv("LEDGER_NOTIFY_CONNECTION", "pager")

    with pytest.raises(AirflowFailException, match=sentence):
        NotifyOperator(task_id="notify", cluster="c").execute(context())

    assert stand_ins.calls == []
