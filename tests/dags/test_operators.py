"""The operators start a step, and translate its exit code for Airflow."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from airflow.serialization.serialized_objects import OperatorSerialization

from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES
from rebalance_ledger.operators.build import LedgerBuildOperator
from rebalance_ledger.operators.deadlines import ExportDeadlineOperator, PublicationDeadlineOperator
from rebalance_ledger.operators.flow import GOLD, cluster_of, day_of, run_id_for
from rebalance_ledger.operators.ledger import (
    AnnounceOperator,
    DataDocsLink,
    GateOperator,
    LedgerStepOperator,
    MaintainWarehouseOperator,
    NotifyOperator,
    ReportLink,
    ReportOperator,
    StepCrashedError,
    StepRefusedError,
)
from rebalance_ledger.operators.pages import page_url
from tests.support.notification_servers import webhook_server

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
    logical_date: datetime | None = datetime(2026, 11, 16, tzinfo=UTC),
    partition_key: str | None = None,
    try_number: int = 1,
    verified: dict[str, Any] | None = None,
    **params: Any,
) -> Any:
    return {
        "dag_run": SimpleNamespace(logical_date=logical_date, partition_key=partition_key),
        "params": params,
        "ti": SimpleNamespace(xcom_pull=lambda **_: verified, try_number=try_number),
    }


def step_operator(name: str, cluster: str = "c") -> LedgerStepOperator:
    if name == "gate":
        return GateOperator(task_id=name, cluster=cluster)
    return LedgerStepOperator(task_id=name, step=name, cluster=cluster)


def build(cluster: str = "c") -> LedgerBuildOperator:
    return LedgerBuildOperator(task_id="build", verify_task_id="verify_export", cluster=cluster)


def test_the_gate_link_is_serialized_with_the_dag_under_its_name() -> None:
    serialized = OperatorSerialization.serialize_operator(step_operator("gate"))

    assert serialized["_operator_extra_links"] == {"Data Docs": "_link_DataDocsLink"}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("warehouse", ["/srv/data_docs/warehouse", "s3a://lake/data_docs/warehouse"])
@pytest.mark.parametrize(
    ("served_at", "start"),
    [(None, "/queue-ledger"), ("https://docs.example/ledger/", "https://docs.example/ledger")],
)
def test_the_gate_link_leads_to_the_page_that_the_gate_built(
    stand_ins: StandIns,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    warehouse: str,
    served_at: str | None,
    start: str,
) -> None:
    page = f"{warehouse}/data_docs/prod%2Feu/2026-11-16/index.html"
    stand_ins.end({"gate prod/eu": (code, {"page": page})})
    if served_at:
        monkeypatch.setenv("LEDGER_DATA_DOCS_URL", served_at)
    judged = step_operator("gate", "prod/eu")

    with nullcontext() if code == 0 else pytest.raises(StepRefusedError):
        judged.execute(context())

    link = DataDocsLink().get_link(judged, ti_key=None)  # type: ignore[arg-type]  # it only uses the operator
    assert link == f"{start}/prod%252Feu/2026-11-16/index.html"


def test_links_are_below_the_path_at_which_a_proxy_serves_airflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
    page = "/srv/warehouse/data_docs/c/2026-11-16/index.html"

    assert page_url(page) == "/airflow/queue-ledger/c/2026-11-16/index.html"


def test_the_report_link_leads_to_the_page_that_the_step_names(stand_ins: StandIns) -> None:
    page = Path(stand_ins.environment["LEDGER_WAREHOUSE"]) / "data_docs" / "c" / "2026-11-16" / "report.html"
    stand_ins.end({"report c": (0, {"page": str(page)})})
    report = ReportOperator(task_id="report", cluster="c")

    report.execute(context())

    assert ReportLink().get_link(report, ti_key=None) == "/queue-ledger/c/2026-11-16/report.html"  # type: ignore[arg-type]


def test_a_crashed_gate_has_no_link(stand_ins: StandIns) -> None:
    stand_ins.end({"gate c": (1, "it crashed")})
    judged = step_operator("gate")

    with pytest.raises(StepCrashedError):
        judged.execute(context())

    assert DataDocsLink().get_link(judged, ti_key=None) == ""  # type: ignore[arg-type]  # it only uses the operator


@pytest.mark.parametrize("name", ["verify", "gate", "publish"])
def test_a_step_without_spark_runs_the_command_line_with_plain_arguments(
    stand_ins: StandIns, name: str
) -> None:
    step_operator(name, NASTY).execute(context())
    places = [
        f"--{place}={stand_ins.environment[f'LEDGER_{place.upper()}']}" for place in ("exports", "warehouse")
    ]
    settings = f"--settings={stand_ins.environment['LEDGER_SETTINGS']}"
    assert stand_ins.calls == [
        ["ledger", "step", name, f"--cluster={NASTY}", "--ds=2026-11-16", *places, settings]
    ]


def test_the_spark_step_is_submitted_to_the_connections_master(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "spark://there", "port": 7077}'
    )
    build(NASTY).execute(context())
    (call,) = stand_ins.calls
    assert call[:3] == ["spark-submit", "--master", "spark://there:7077"]
    script = next(place for place, word in enumerate(call) if word.endswith("spark_jobs/day_job.py"))
    assert call[script + 1 : script + 3] == [f"--cluster={NASTY}", "--ds=2026-11-16"]


@pytest.mark.parametrize(
    ("of_run", "settings", "is_beside"),
    [
        ({}, "clusters: {}", True),
        ({"try_number": 2}, "clusters: {}", False),
        ({"force": True}, "clusters: {}", False),
        ({}, "build: {beside_landed: false}", False),
    ],
    ids=["by default", "a further try", "forced", "switched off"],
)
def test_a_build_also_stages_other_landed_days(
    stand_ins: StandIns, of_run: dict[str, Any], settings: str, *, is_beside: bool
) -> None:
    Path(stand_ins.environment["LEDGER_SETTINGS"]).write_text(settings)
    build("c").execute(context(**of_run))
    (call,) = stand_ins.calls
    assert ("--beside-landed" in call) == is_beside


@pytest.mark.parametrize(
    ("of_run", "is_submitted"),
    [({}, False), ({"try_number": 2}, True), ({"force": True}, True)],
    ids=["by default", "a further try", "forced"],
)
def test_a_day_that_another_application_has_staged_starts_no_application(
    stand_ins: StandIns, of_run: dict[str, Any], *, is_submitted: bool
) -> None:
    staged = {"run_id": "r", "row_counts": {"gold.finding": 3}}
    result = build("c").execute(context(verified={"is_up_to_date": False, "staged": staged}, **of_run))
    assert (result == staged) != is_submitted
    assert len(stand_ins.calls) == is_submitted


@pytest.mark.parametrize(("force", "words"), [(False, ["--through=2026-11-18"]), (True, [])])
def test_a_run_also_stages_the_days_of_runs_queued_after_it(
    stand_ins: StandIns, *, force: bool, words: list[str]
) -> None:
    build("c").execute(context(stage_through="2026-11-18", force=force))
    (call,) = stand_ins.calls
    assert [word for word in call if word.startswith("--through")] == words


@pytest.mark.parametrize(
    ("task", "code"),
    [(step_operator("gate"), 2), (step_operator("gate"), 3), (build(), 2)],
    ids=["input", "gate", "build"],
)
def test_a_refusal_fails_without_retry_and_shows_the_reason(
    stand_ins: StandIns, task: BaseOperator, code: int
) -> None:
    end_all(stand_ins, code, "Refused: queue_assignment holds a duplicated owner.")
    with pytest.raises(
        StepRefusedError, match=r"^Refused: queue_assignment holds a duplicated owner\.$"
    ) as caught:
        task.execute(context())
    assert isinstance(caught.value, AirflowFailException)
    assert caught.value.exit_code == code


def test_every_line_of_a_refusal_is_shown(stand_ins: StandIns) -> None:
    words = "\n".join(
        ["The gate refused this day.", *(f"- expectation {number} fails" for number in range(12))]
    )
    end_all(stand_ins, 3, words)
    with pytest.raises(StepRefusedError) as caught:
        step_operator("gate").execute(context())
    assert str(caught.value) == words


@pytest.mark.parametrize("task", [step_operator("gate"), build()], ids=["ledger", "spark-submit"])
def test_a_crash_can_be_retried(stand_ins: StandIns, task: BaseOperator) -> None:
    end_all(stand_ins, 1, "OSError: disk full")
    with pytest.raises(StepCrashedError, match=r"crashed.*: OSError: disk full") as caught:
        task.execute(context())
    assert not isinstance(caught.value, AirflowFailException)


def test_a_program_that_fails_without_a_reason_is_reported_as_a_crash(stand_ins: StandIns) -> None:
    stand_ins.end({"gate c": (-9, {}), "build c": (1, {})})
    with pytest.raises(StepCrashedError, match="its last output is above"):
        step_operator("gate").execute(context())
    with pytest.raises(
        StepCrashedError, match=r"^spark_jobs/day_job\.py ended without a result: Cannot execute"
    ):
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
def test_the_driver_of_a_large_export_uses_both_jit_compilers(
    stand_ins: StandIns, manifest: object, *, expected: bool
) -> None:
    day = Path(stand_ins.environment["LEDGER_EXPORTS"]) / "c" / "2026-11-16"
    if manifest:
        day.mkdir(parents=True)
        (day / "manifest.json").write_text(json.dumps(manifest))
    build("c").execute(context())
    [call] = stand_ins.calls
    both_compilers = "spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=4 "
    assert any(word.startswith(both_compilers) for word in call) == expected


def test_a_run_without_a_logical_date_has_no_day(stand_ins: StandIns) -> None:
    with pytest.raises(AirflowFailException, match="This run has no day"):
        step_operator("gate").execute(context(logical_date=None))
    assert stand_ins.calls == []


def test_cluster_and_day_come_from_the_form_or_from_the_partition_key() -> None:
    by_event = context(None, "prod|eu|2026-11-17")
    by_form = context(None, "prod|2026-11-17", cluster="other", ds="2026-11-18")

    assert (cluster_of(by_event), day_of(by_event)) == ("prod|eu", "2026-11-17")
    assert (cluster_of(by_form), day_of(by_form)) == ("other", "2026-11-18")


@pytest.mark.parametrize(
    "key", ["prod", "|2026-11-17", "prod|2026-11-31", "prod|20261117", "2026-11-17|prod"]
)
def test_a_malformed_partition_key_is_named(key: str) -> None:
    with pytest.raises(AirflowFailException, match=r"does not have the form <cluster>\|<YYYY-MM-DD>"):
        day_of(context(None, key))


def test_ids_of_started_runs_differ_where_names_of_clusters_do() -> None:
    ids = {run_id_for("backfill__x", name) for name in ("prod/eu", "prod_eu", "prod:eu")}
    assert len(ids) == 3
    assert all(set(run_id) <= set("abcdefghijklmnopqrstuvwxyz0123456789_") for run_id in ids)
    assert run_id_for("x", "rocketmq-cluster-上海") != run_id_for("x", "rocketmq-cluster-北京")


def test_the_id_of_a_started_run_fits_into_the_database_of_airflow() -> None:
    ids = {run_id_for("scheduled__2026-11-18T05:00:00+00:00", "a" * 254 + end) for end in "xy"}
    assert len(ids) == 2
    assert max(map(len, ids)) <= 250


@pytest.mark.parametrize(
    ("try_number", "announced_runs", "is_announced"),
    [(1, [], False), (2, [], True), (2, ["other"], True), (2, ["r"], False)],
)
def test_a_publication_whose_first_try_was_killed_after_its_commit_is_announced(
    try_number: int, announced_runs: list[str], *, is_announced: bool
) -> None:
    publication = {"run_id": "r", "verdict": "passed", "changed_tables": [], "try_number": try_number}
    keys: list[str] = []
    of_gold = SimpleNamespace(extra={}, add_partitions=keys.append)
    events = [SimpleNamespace(partition_key="c|2026-11-16", extra={"run_id": run}) for run in announced_runs]
    announcing = context(verified=publication) | {
        "inlet_events": {GOLD: SimpleNamespace(after=lambda _: events)},
        "outlet_events": {GOLD: of_gold},
    }

    with nullcontext() if is_announced else pytest.raises(AirflowSkipException):
        AnnounceOperator(task_id="announce", cluster="c", publish_task_id="publish").execute(announcing)

    assert keys == (["c|2026-11-16"] if is_announced else [])


@pytest.mark.usefixtures("stand_ins")
def test_a_worker_without_a_warehouse_location_names_the_variable_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LEDGER_WAREHOUSE")
    with pytest.raises(AirflowFailException, match="LEDGER_WAREHOUSE is not set"):
        step_operator("publish").execute(context())


def test_the_object_store_keys_come_from_the_named_connection(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"region_name": "eu-central-1", "endpoint_url": "http://store:8333"}
    connection = {"conn_type": "aws", "login": "key", "password": "secret", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
    monkeypatch.setenv("LEDGER_OBJECT_STORE_CONNECTION", "lake")
    step_operator("publish").execute(context())
    [(_, message)] = stand_ins.received
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
    step_operator("publish").execute(context())
    building = build()
    building.execute(context())
    # If the hook has its own variables, it passes another environment to the application, so test both cases.
    monkeypatch.setattr(
        "rebalance_ledger.operators.build.object_store_variables", lambda: {"AWS_ACCESS_KEY_ID": "key"}
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
def test_a_missing_object_store_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_OBJECT_STORE_CONNECTION", "lake")
    with pytest.raises(AirflowFailException, match="no Airflow connection lake"):
        step_operator("publish").execute(context())


@pytest.mark.usefixtures("stand_ins")
class TestDeadlines:
    """A day is late after its deadline; until then the sensor is deferred and occupies no worker."""

    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    @pytest.fixture(autouse=True)
    def _settings(self, tmp_path: Path) -> None:
        deadlines = '{export_by: "00:00", published_by: "00:00"}'
        (tmp_path / "ledger.yaml").write_text(
            f"clusters: {{late: {{deadlines: {deadlines}}}, early: {{}}}}\n"
        )

    @staticmethod
    def land(tmp_path: Path, cluster: str, day: datetime) -> None:
        landed = tmp_path / "exports" / cluster / f"{day:%Y-%m-%d}"
        landed.mkdir(parents=True)
        (landed / "manifest.json").touch()

    def test_before_the_deadline_the_sensor_polls_again_for_an_export_without_collector(self) -> None:
        with pytest.raises(AirflowRescheduleException) as caught:
            ExportDeadlineOperator(task_id="export_landed", cluster="early").execute(context(self.today))
        assert caught.value.reschedule_date <= datetime.now(UTC) + timedelta(minutes=10)

    def test_a_landed_export_meets_its_deadline_even_if_checked_late(self, tmp_path: Path) -> None:
        self.land(tmp_path, "late", self.today)
        ExportDeadlineOperator(task_id="export_landed", cluster="late").execute(context(self.today))

    def test_a_missing_export_fails_and_is_notified(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with webhook_server() as webhook:
            monkeypatch.setenv(
                "AIRFLOW_CONN_PAGER", json.dumps({"conn_type": "http", "password": webhook.url})
            )
            monkeypatch.setenv("LEDGER_NOTIFY_CONNECTION", "pager")
            with pytest.raises(
                AirflowFailException, match=r"No export of late for .* has landed by .* 00:00 UTC"
            ):
                ExportDeadlineOperator(task_id="export_landed", cluster="late").execute(context(self.today))
            [body] = webhook.messages
        assert body["event"] == "deadline_missed"
        assert body["cluster"] == "late"

    def test_a_day_that_is_not_published_in_time_fails(self, stand_ins: StandIns) -> None:
        ds = f"{self.today:%Y-%m-%d}"
        task = PublicationDeadlineOperator(task_id="published", cluster="late")
        stand_ins.end({"--cluster=late late": (0, {"newest_days": {}})})
        with pytest.raises(AirflowFailException, match=f"late {ds} is not published by {ds} 00:00 UTC"):
            task.execute(context(self.today))
        stand_ins.end({"--cluster=late late": (0, {"newest_days": {"late": ds}})})
        task.execute(context(self.today))

    def test_a_publication_without_deadline_is_not_monitored(self, stand_ins: StandIns) -> None:
        with pytest.raises(AirflowSkipException):
            PublicationDeadlineOperator(task_id="published", cluster="early").execute(context(self.today))
        assert stand_ins.calls == []


def end_all(stand_ins: StandIns, code: int, words: str) -> None:
    stand_ins.end({f"{name} c": (code, words) for name in ("verify", "build", "gate", "publish", "report")})


@pytest.mark.parametrize(("dry_run", "flags"), [("true", []), ("false", ["--apply"])])
def test_maintenance_is_a_dry_run_by_default(
    stand_ins: StandIns, tmp_path: Path, dry_run: str, flags: list[str]
) -> None:
    (tmp_path / "ledger.yaml").write_text(f"maintenance: {{dry_run: {dry_run}}}\n")
    MaintainWarehouseOperator(task_id="maintain").execute({})
    places = [f"--warehouse={tmp_path / 'warehouse'}", f"--settings={tmp_path / 'ledger.yaml'}"]
    assert stand_ins.calls == [["ledger", "maintain", *places, *flags]]


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
        (
            {
                "conn_type": "smtp",
                "host": "mail.example",
                "extra": {"from_email": "a@x", "to_emails": "b@x, c@x", "disable_tls": "False"},
            },
            "smtp://mail.example:587?from=a%40x&to=b%40x&to=c%40x",
        ),
    ],
)
def test_the_notification_destination_comes_from_the_connection_and_is_in_no_process_list(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], url: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(connection))
    monkeypatch.setenv("LEDGER_NOTIFY_CONNECTION", "pager")

    NotifyOperator(task_id="notify", cluster="c").execute(context())

    warehouse = stand_ins.environment["LEDGER_WAREHOUSE"]
    options = ["--cluster=c", f"--warehouse={warehouse}", "--destination-from-stdin"]
    assert stand_ins.calls == [["ledger", "notify", *options]]
    assert [stdin for stdin, _ in stand_ins.received] == [f"{url}\n"]


def test_without_a_connection_no_notification_is_sent_and_the_task_is_skipped(stand_ins: StandIns) -> None:
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
def test_an_unusable_connection_is_named(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | None, sentence: str
) -> None:
    if connection is not None:
        monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(connection))
    monkeypatch.setenv("LEDGER_NOTIFY_CONNECTION", "pager")

    with pytest.raises(AirflowFailException, match=sentence):
        NotifyOperator(task_id="notify", cluster="c").execute(context())

    assert stand_ins.calls == []
