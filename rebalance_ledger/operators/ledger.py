"""The operators of the ledger's DAG: how a step is started, and what its exit code means to Airflow.

Belongs here: argument lists for `ledger` and `spark-submit`, and the distinction between errors that are retried and errors
that are not. Does not belong here: rules about queues, and imports of Spark, Delta or Great Expectations; the steps are
separate programs.

Exit codes of a step: 0 done, 1 crash, 2 bad input or usage, 3 refused by the gate; of `exports collect` also 4, the capture is
degraded, and 5, it has failed. The reason is the last thing that the program says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import deque
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator, BaseOperatorLink, BaseSensorOperator, Connection
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from rebalance_ledger.driver_options import driver_options
from rebalance_ledger.operators.pages import page_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow.sdk import Context
    from airflow.sdk.types import TaskInstanceKey

    from rebalance_ledger.settings import LedgerSettings

BAD_INPUT = 2
REFUSED = 3
DEGRADED_CAPTURE = 4
FAILED_CAPTURE = 5
_NEVER_RETRIED = {BAD_INPUT, REFUSED}
_REASON_LINES = 30  # a refusal names each failed expectation on a line of its own
# Stack frames and log lines (in the format of conf/spark/log4j2.properties) around the output of a Spark application.
_JVM_LINE = re.compile(r"\s*(at \S+\(|\.\.\. \d+ more|\d\d:\d\d:\d\d (WARN|ERROR) )")
BUILD_SCRIPT = Path(__file__).resolve().parents[2] / "spark_jobs" / "build.py"


class StageCrashedError(AirflowException):
    """A stage ended in a way that another attempt may correct."""

    exit_code = 1


class StageRefusedError(AirflowFailException):
    """A step refused: the export or the settings are wrong, or the gate refused. A retry has the same result.

    Attributes:
        exit_code: 2 (bad input) or 3 (refused by the gate).
    """

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class LackingCaptureError(AirflowException):
    """The capture of a landed export is degraded or failed: another attempt on the same day may complete it.

    Attributes:
        exit_code: 4 (degraded) or 5 (failed).
    """

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


def stage_error(stage: str, exit_code: int, last_lines: Sequence[str]) -> AirflowException:
    """Return the exception for a failed step; its message is the step's last output.

    A refusal may have several lines (the gate names each failed expectation). For a crash only the last line is used,
    where Python puts the error.
    """
    messages = [line for line in last_lines if line.strip()] or ["The program wrote no message."]
    if exit_code in _NEVER_RETRIED:
        return StageRefusedError("\n".join(messages), exit_code)
    if exit_code in {DEGRADED_CAPTURE, FAILED_CAPTURE}:
        return LackingCaptureError(messages[-1], exit_code)
    ending = f"was killed by signal {-exit_code}" if exit_code < 0 else f"crashed with exit code {exit_code}"
    return StageCrashedError(f"{stage} {ending}: {messages[-1]}")


def application_lines(lines: Sequence[str]) -> list[str]:
    """Return the output of a Spark application without JVM stack frames and log lines."""
    return [line for line in lines if line.strip() and not _JVM_LINE.match(line)]


def day_of(context: Mapping[str, Any]) -> str:
    """Return the run's `ds`: its parameter `ds`, else the UTC day of its logical date, on which the export was taken.

    Raises:
        AirflowFailException: If the run was triggered without a logical date and so belongs to no day.
    """
    parameter = context.get("params", {}).get("ds")
    if parameter:
        return str(parameter)
    logical_date: datetime | None = context["dag_run"].logical_date
    if logical_date is None:
        raise AirflowFailException(
            "This run has no logical date, so it belongs to no day. "
            "Trigger it again with a logical date on the UTC day on which the export was taken."
        )
    return f"{logical_date.astimezone(UTC):%Y-%m-%d}"


def places(names: Sequence[str] = ("exports", "warehouse", "settings")) -> dict[str, str]:
    """Return the locations that the run reads and writes, from the worker's environment.

    Args:
        names: Which of exports, warehouse and settings.

    Raises:
        AirflowFailException: If one is not set. There is no default, so that no ledger is published into the wrong
            location.
    """
    locations = {}
    for place in names:
        variable = f"LEDGER_{place.upper()}"
        if not os.environ.get(variable):
            raise AirflowFailException(
                f"{variable} is not set; set it in the environment of the Airflow workers (see docs/airflow.md)."
            )
        locations[place] = os.environ[variable]
    return locations


def is_of_airflow(variable: str) -> bool:
    """Return whether an environment variable belongs to Airflow and is withheld from the programs that tasks start.

    These variables include the URLs of the metadata database, the message broker and its result backend, the Fernet key, API
    secrets, commands that print any of these, and connections. The prefix decides, so that new variables are covered too.
    """
    return variable.lstrip("_").upper().startswith("AIRFLOW")


def object_store_variables() -> dict[str, str]:
    """Return the `AWS_*` variables of the connection in `LEDGER_OBJECT_STORE_CONNECTION`; an empty dict if it is not set.

    In that case the variables of the worker's environment apply, and without those the role of the machine.

    Raises:
        AirflowFailException: If there is no such connection.
    """
    name = os.environ.get("LEDGER_OBJECT_STORE_CONNECTION")
    if not name:
        return {}
    try:
        connection = Connection.get(name)
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"There is no Airflow connection {name}, which LEDGER_OBJECT_STORE_CONNECTION names; add one of type aws, with access "
            "key as login and secret key as password (see docs/object-store.md)."
        ) from error
    extra = connection.extra_dejson
    variables = {
        "AWS_ACCESS_KEY_ID": connection.login,
        "AWS_SECRET_ACCESS_KEY": connection.password,
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "AWS_REGION": extra.get("region_name"),
        "AWS_ENDPOINT_URL": extra.get("endpoint_url"),
    }
    return {variable: value for variable, value in variables.items() if value}


def settings_now() -> LedgerSettings:
    """Return the current settings, read from the file because they change between runs.

    Raises:
        AirflowFailException: If the file is wrong.
    """
    from rebalance_ledger.settings import SettingsError, load_settings  # noqa: PLC0415  # not while the DAG is parsed

    try:
        return load_settings(Path(places(("settings",))["settings"]))
    except SettingsError as error:
        raise AirflowFailException(str(error)) from error


def arguments_for(cluster: str, ds: str) -> list[str]:
    """Return the arguments that every step takes. A value is part of its option's word, so a name cannot pass for one."""
    return [
        f"--cluster={cluster}",
        f"--ds={ds}",
        *(f"--{place}={value}" for place, value in places().items()),
    ]


def export_size_bytes(cluster: str, ds: str) -> int:
    """Return the size of a landed export by its manifest; 0 if it is in an object store or has no manifest that can be read."""
    exports = places(("exports",))["exports"]
    if "://" in exports:
        return 0
    try:
        manifest = json.loads((Path(exports) / cluster / ds / "manifest.json").read_text(encoding="utf-8"))
        return sum(int(file["size_bytes"]) for file in manifest["files"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0  # The build itself names what is wrong.


class LedgerOperator(BaseOperator):
    """Run `ledger`.

    Args:
        kwargs: Passed on to Airflow.
    """

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self._process: subprocess.Popen[str] | None = None

    def run_ledger(self, words: Sequence[str], options: Sequence[str], stdin_secret: str = "") -> list[str]:
        """Run `ledger` to its end, log what it says, and return the lines of its standard output.

        Args:
            words: The command, such as `step`, `gate`.
            options: Its options.
            stdin_secret: What it is given on standard input, which no log and no list of processes shows.

        Raises:
            StageRefusedError: On exit code 2 or 3.
            LackingCaptureError: On 4 or 5.
            StageCrashedError: On any other exit code except 0.
        """
        command = ["ledger", *words, *options]
        self.log.info("Running %s", command)
        reason: deque[str] = deque(maxlen=_REASON_LINES)
        output: deque[str] = deque()
        with subprocess.Popen(  # noqa: S603  # an argument list, never a shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={name: value for name, value in os.environ.items() if not is_of_airflow(name)}
            | object_store_variables(),
        ) as self._process:
            self._write_secret(self._process.stdin, stdin_secret)
            progress = Thread(target=self._log_lines, args=(self._process.stdout, output))
            progress.start()
            try:
                self._log_lines(self._process.stderr, reason)
                self._process.wait()
            except BaseException:
                # Airflow raises its timeout here; the program must not outlive its task.
                self._process.kill()
                raise
            finally:
                progress.join()
        if self._process.returncode != 0:
            raise stage_error(" ".join(("ledger", *words)), self._process.returncode, reason)
        return list(output)

    @staticmethod
    def _write_secret(stream: IO[str] | None, text: str) -> None:
        # A program that ended before it listened says itself why.
        with suppress(BrokenPipeError), stream or nullcontext():
            if stream and text:
                stream.write(text)

    def _log_lines(self, stream: Iterable[str] | None, keep: deque[str]) -> None:
        for line in stream or ():
            self.log.info("%s", line.rstrip())
            keep.append(line.rstrip())

    def on_kill(self) -> None:
        """End the program when the task is marked failed or cleared in the UI."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()


class ClusterOperator(LedgerOperator):
    """Run `ledger` for one cluster.

    Args:
        cluster: The cluster's name, usually from the settings through an expanded task group.
        kwargs: Passed on to Airflow.
    """

    template_fields: Sequence[str] = ("cluster",)

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.cluster = cluster

    def has_landed(self, ds: str) -> bool:
        """Return whether the cluster's export of a day has its manifest, which lands last by contract."""
        exports = places(("exports",))["exports"]
        if "://" not in exports:
            return (Path(exports) / self.cluster / ds / "manifest.json").is_file()
        try:
            self.run_ledger(
                ["exports", "status"], [f"--cluster={self.cluster}", f"--ds={ds}", f"--exports={exports}"]
            )
        except StageRefusedError:
            return False
        return True


class MaintainWarehouseOperator(LedgerOperator):
    """Run `ledger maintain`: list unreferenced data of the warehouse, and remove it if the settings allow it."""

    def execute(self, context: Context) -> None:  # noqa: ARG002  # Airflow's own signature
        """Run the command, with `--apply` if the settings have `dry_run: false`.

        Raises:
            AirflowFailException: If the settings are wrong.
            StageRefusedError: If another release has written the warehouse.
            StageCrashedError: If a write fails.
        """
        options = [f"--{place}={value}" for place, value in places(("warehouse", "settings")).items()]
        if not settings_now().maintenance.dry_run:
            options.append("--apply")
        self.run_ledger(["maintain"], options)


class LedgerStepOperator(ClusterOperator):
    """Run one step that needs no Spark, `ledger step <name>`, for one cluster and day.

    Args:
        stage: `verify` or `publish`; `gate` and `report` have operators with links.
        kwargs: See `ClusterOperator`.
    """

    def __init__(self, *, stage: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.stage = stage

    def execute(self, context: Context) -> None:
        """Run the step, log its output, and announce its outlets if it succeeds."""
        ds = day_of(context)
        self.run_stage(ds)
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = {"cluster": self.cluster, "ds": ds}

    def run_stage(self, ds: str) -> None:
        """Run `ledger step` to its end.

        Raises:
            StageRefusedError: On exit code 2 or 3.
            StageCrashedError: On any other exit code except 0.
        """
        self.run_ledger(["step", self.stage], arguments_for(self.cluster, ds))


class _PageOperator(LedgerStepOperator):
    """A step that writes a page and names its file on a line of its own, after `page_prefix`."""

    page_prefix = ""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.page_url = ""

    def _log_lines(self, stream: Iterable[str] | None, keep: deque[str]) -> None:
        """Log the step's output and store the address of its page."""

        def lines_with_url_stored() -> Iterator[str]:
            for line in stream or ():
                before, prefix, page = line.rstrip().partition(self.page_prefix)
                if prefix and not before:
                    self.page_url = page_url(Path(page))
                yield line

        super()._log_lines(lines_with_url_stored(), keep)


class DataDocsLink(BaseOperatorLink):
    """Link from the gate's task to the Data Docs pages of its verdict."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  # Airflow's own signature
        """Return the address of the day's pages; Airflow calls this after the task and stores the result as an XCom."""
        return operator.page_url if isinstance(operator, GateOperator) else ""


class GateOperator(_PageOperator):
    """Run `ledger step gate` and link the pages of its verdict, including those of a refusal.

    Args:
        kwargs: See `ClusterOperator`.
    """

    operator_extra_links = (DataDocsLink(),)
    page_prefix = "All results: "  # equal to the text of `expectations.verdict.explain`; a test compares them

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(stage="gate", **kwargs)


class ReportLink(BaseOperatorLink):
    """Link from the task `report` to the report of the day."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  # Airflow's own signature
        """Return the address of the report; Airflow calls this after the task and stores the result as an XCom."""
        return operator.page_url if isinstance(operator, ReportOperator) else ""


class ReportOperator(_PageOperator):
    """Run `ledger step report` and link the report.

    Args:
        kwargs: See `ClusterOperator`.
    """

    operator_extra_links = (ReportLink(),)
    page_prefix = "Report: "

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(stage="report", **kwargs)


class NotifyOperator(ClusterOperator):
    """Run `ledger notify` if LEDGER_NOTIFY_CONNECTION names a connection; skip the task otherwise.

    A webhook is a connection whose password is its URL, which Airflow masks in logs. E-mail is a connection of type smtp: host, port,
    login, password, and in its extra `from_email`, `to_emails` (a list) and, without TLS, `disable_tls`.

    Args:
        kwargs: See `ClusterOperator`.
    """

    def execute(self, context: Context) -> None:  # noqa: ARG002  # Airflow's own signature
        """Send what is new.

        Raises:
            AirflowSkipException: If no connection is named.
            AirflowFailException: If there is no such connection, or it lacks something.
            StageRefusedError: If the warehouse cannot be read, or the destination is wrong.
            StageCrashedError: If the notification was not accepted; another attempt sends it again.
        """
        conn_id = os.environ.get("LEDGER_NOTIFY_CONNECTION")
        if not conn_id:
            raise AirflowSkipException(
                "Nobody is notified: LEDGER_NOTIFY_CONNECTION names no connection (see docs/alerts.md)."
            )
        options = [f"--cluster={self.cluster}", f"--warehouse={places(('warehouse',))['warehouse']}"]
        self.run_ledger(["notify"], [*options, "--destination-from-stdin"], f"{_destination(conn_id)}\n")


def _destination(conn_id: str) -> str:
    """Return the URL of a connection's destination, as `ledger notify` reads it."""
    try:
        connection = Connection.get(conn_id)
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"There is no Airflow connection {conn_id}, which LEDGER_NOTIFY_CONNECTION names (see docs/alerts.md)."
        ) from error
    if connection.conn_type != "smtp":
        if not connection.password:
            raise AirflowFailException(
                f"The connection {conn_id} has no password: put the URL of the webhook there."
            )
        return str(connection.password)
    extra = connection.extra_dejson
    recipients = extra.get("to_emails") or []
    if not connection.host or not extra.get("from_email") or not recipients:
        raise AirflowFailException(
            f"The connection {conn_id} needs a host, and from_email and to_emails in its extra (see docs/alerts.md)."
        )
    login = (
        f"{quote(connection.login, safe='')}:{quote(connection.password or '', safe='')}@"
        if connection.login
        else ""
    )
    options = [("from", extra["from_email"]), *(("to", address) for address in recipients)]
    if extra.get("disable_tls"):
        options.append(("security", "none"))
    return f"smtp://{login}{connection.host}:{connection.port or 587}?{urlencode(options)}"


class VerifyExportSensor(LedgerStepOperator, BaseSensorOperator):
    """Check a landed export against its manifest; on the day itself, wait for the export to land.

    Only scheduled runs wait, and only during their UTC day. A run for a past day and a manually triggered run do not wait.
    The sensor never queries a live cluster.
    """

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(stage="verify", mode="reschedule", **kwargs)

    def execute(self, context: Context) -> None:
        """Let the sensor's loop call `poke`."""
        BaseSensorOperator.execute(self, context)

    def poke(self, context: Context) -> bool:
        """Verify the export if it has landed or if waiting is pointless; otherwise return False."""
        ds = day_of(context)
        scheduled = context["dag_run"].run_type == "scheduled"
        # The step checks the manifest itself.
        if scheduled and ds == f"{datetime.now(UTC):%Y-%m-%d}" and not self.has_landed(ds):
            where = places()["exports"]
            self.log.info("No export of %s for %s has landed yet in %s; waiting.", self.cluster, ds, where)
            return False
        self.run_stage(ds)
        return True


class _SubmitHook(SparkSubmitHook):
    """Start `spark-submit` without Airflow's variables; the provider's hook can add variables but not remove them."""

    def _get_spark_binary_path(self) -> list[str]:
        unset = [f"--unset={name}" for name in sorted(os.environ) if is_of_airflow(name)]
        return ["env", *unset, *super()._get_spark_binary_path()]


class LedgerBuildOperator(SparkSubmitOperator):
    """Submit the day's one Spark application, `spark_jobs/build.py`, through the connection `spark_default`.

    Args:
        cluster: The cluster's name, usually from the settings through an expanded task group.
        kwargs: Passed on to the Spark provider's operator.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "cluster")

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(
            application=str(BUILD_SCRIPT), conn_id="spark_default", name="ledger-build", **kwargs
        )
        self.cluster = cluster

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        hook.__class__ = (
            _SubmitHook  # It overrides one method; the operator has no parameter for a custom hook.
        )
        return hook

    def execute(self, context: Context) -> None:
        """Submit the application and wait for it.

        Raises:
            StageRefusedError: If the application exits with 2 or 3, which the base operator would retry.
            StageCrashedError: On any other failure.
        """
        ds = day_of(context)
        self.application_args = arguments_for(self.cluster, ds)
        self.env_vars = object_store_variables()
        self.conf = (self.conf or {}) | driver_options(export_size_bytes(self.cluster, ds))
        self._hook = self._get_hook()
        try:
            super().execute(context)
        except AirflowException as error:
            submitted = self._hook._submit_sp  # noqa: SLF001  # the only place that has the exit code as a number
            if submitted is None or not submitted.returncode:
                raise
            last_lines = list(self._hook._last_submit_log_lines)  # noqa: SLF001  # likewise, the last output
            raise stage_error(
                "spark_jobs/build.py", submitted.returncode, application_lines(last_lines)[-1:]
            ) from error


def retry_policy() -> dict[str, Any]:
    """Return the default arguments of every task: crashes are retried with exponential backoff, and every task has a timeout."""
    return {
        "retries": 2,
        "retry_delay": timedelta(minutes=1),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=15),
        "execution_timeout": timedelta(minutes=15),
    }
