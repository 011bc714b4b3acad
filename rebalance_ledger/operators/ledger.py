"""Operators that run `ledger` commands, and the meaning of their exit codes to Airflow.

Belongs here: argument lists for `ledger`, and the distinction between errors that are retried and errors that are not. Does not
belong here: the Spark application (`build`), rules about queues, and imports of Spark, Delta or Great Expectations; the steps
are separate programs.

Exit codes of a step: 0 done, 1 crash, 2 bad input or usage, 3 refused by the gate; of `exports collect` also 4, the capture is
degraded, and 5, it has failed. The reason of a failure and the numbers of a success are in a file (`result_file`).
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import tempfile
from collections import deque
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from airflow.sdk import BaseOperator, BaseOperatorLink, Connection
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from rebalance_ledger.child_process import environment_of_child
from rebalance_ledger.operators.flow import GOLD, cluster_of, day_of, partition_key
from rebalance_ledger.operators.object_store import object_store_variables
from rebalance_ledger.operators.pages import page_url
from rebalance_ledger.result_file import RESULT_FILE_VARIABLE, read_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow.sdk import Context
    from airflow.sdk.types import TaskInstanceKey

    from rebalance_ledger.settings import LedgerSettings

_log = logging.getLogger(__name__)

BAD_INPUT = 2
REFUSED = 3
DEGRADED_CAPTURE = 4
FAILED_CAPTURE = 5
_NEVER_RETRIED = {BAD_INPUT, REFUSED}
_NO_REASON: Final = "it gave no reason; its last output is above"


class StepCrashedError(AirflowException):
    """A step ended with an error that a retry may correct."""

    exit_code = 1


class _ExitCodeError(AirflowException):
    """A step ended with an exit code that has a meaning of its own.

    Attributes:
        exit_code: The exit code.
    """

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class StepRefusedError(_ExitCodeError, AirflowFailException):
    """A step refused: the export or the settings are wrong (2), or the gate refused (3). A retry has the same result."""


class IncompleteCaptureError(_ExitCodeError):
    """The capture of a landed export is degraded (4) or failed (5): another attempt on the same day may complete it."""


def step_error(step: str, exit_code: int, reason: str | None) -> AirflowException:
    """Return the exception for a failed step.

    Args:
        step: Name of the step.
        exit_code: Its exit code; negative for a signal.
        reason: Reason from its result file; None without one.
    """
    if exit_code in _NEVER_RETRIED:
        return StepRefusedError(
            reason or f"{step} ended with exit code {exit_code}: {_NO_REASON}.", exit_code
        )
    if exit_code in {DEGRADED_CAPTURE, FAILED_CAPTURE}:
        return IncompleteCaptureError(reason or f"{step} ended with exit code {exit_code}.", exit_code)
    ending = f"was killed by signal {-exit_code}" if exit_code < 0 else f"crashed with exit code {exit_code}"
    return StepCrashedError(f"{step} {ending}: {reason or _NO_REASON}")


def log_reason(context: Context) -> None:
    """Log why a task failed, as the last line of its log: a callback for failures and retries."""
    _log.error("%s", context.get("exception") or "The task failed without a reason.")


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


def configured_clusters() -> list[str]:
    """Return the names of all clusters in the settings file.

    Raises:
        AirflowFailException: The settings file names no cluster, or is wrong.
    """
    from rebalance_ledger.settings import SettingsError, load_cluster_names  # noqa: PLC0415  # not while the DAG is parsed

    try:
        return load_cluster_names(Path(places(("settings",))["settings"]))
    except SettingsError as error:
        raise AirflowFailException(str(error)) from error


def collected_clusters() -> list[str]:
    """Return the names of the clusters that the settings file collects.

    Raises:
        AirflowFailException: The settings file is wrong.
        AirflowSkipException: The settings file collects no cluster.
    """
    names = sorted(name for name, cluster in settings_now().clusters.items() if cluster.collect)
    if not names:
        raise AirflowSkipException("No cluster in the settings has `collect:`, so there is nothing to do.")
    return names


def requested_clusters(context: Mapping[str, Any], default: Callable[[], list[str]]) -> list[str]:
    """Return the names in the run's parameter `clusters`, each once; those of `default` if the parameter is empty or null.

    Args:
        context: Context of the task.
        default: Returns the names for an empty parameter, such as `configured_clusters`.

    Raises:
        AirflowFailException: The settings file does not name one of them, or is wrong.
    """
    requested = list(dict.fromkeys(context["params"]["clusters"] or ()))
    known = sorted(settings_now().clusters)
    unknown = sorted(set(requested) - set(known))
    if unknown:
        raise AirflowFailException(
            f"The settings file does not name {', '.join(unknown)}; it names {', '.join(known) or 'none'}."
        )
    return requested or default()


def arguments_for(cluster: str, ds: str) -> list[str]:
    """Return the common arguments of every step, in the form `--option=value`, so that a value cannot be read as an option."""
    return [
        f"--cluster={cluster}",
        f"--ds={ds}",
        *(f"--{place}={value}" for place, value in places().items()),
    ]


class LedgerOperator(BaseOperator):
    """Run `ledger`.

    Args:
        kwargs: Passed on to Airflow.

    Attributes:
        result: Content of the result file of the last program.
    """

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.result: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None

    def run_ledger(self, words: Sequence[str], options: Sequence[str], stdin_secret: str = "") -> list[str]:
        """Run `ledger` to its end, log its output, and return the lines of its standard output.

        Args:
            words: The command, such as `step`, `gate`.
            options: Its options.
            stdin_secret: Text for standard input, which appears in no log and no process list.

        Raises:
            StepRefusedError: On exit code 2 or 3.
            IncompleteCaptureError: On 4 or 5.
            StepCrashedError: On any other exit code except 0.
        """
        with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
            result_file = Path(folder, "result.json")
            exit_code, output = self._run(["ledger", *words, *options], stdin_secret, result_file)
            self.result = read_result(result_file)
        if exit_code != 0:
            raise step_error(" ".join(("ledger", *words)), exit_code, self.result.get("reason"))
        return output

    def _run(self, command: Sequence[str], stdin_secret: str, result_file: Path) -> tuple[int, list[str]]:
        self.log.info("Running %s", command)
        output: deque[str] = deque()
        with subprocess.Popen(  # noqa: S603  # an argument list, never a shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment_of_child() | object_store_variables() | {RESULT_FILE_VARIABLE: str(result_file)},
        ) as self._process:
            self._write_secret(self._process.stdin, stdin_secret)
            progress = Thread(target=self._log_lines, args=(self._process.stdout, output))
            progress.start()
            try:
                self._log_lines(self._process.stderr, deque(maxlen=0))
                self._process.wait()
            except BaseException:
                # Airflow raises its timeout here; the program must not outlive its task.
                self._process.kill()
                raise
            finally:
                progress.join()
        return self._process.returncode, list(output)

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
        cluster: The cluster's name, from the settings through an expanded task group; empty for the run's own cluster.
        kwargs: Passed on to Airflow.
    """

    template_fields: Sequence[str] = ("cluster",)

    def __init__(self, *, cluster: str = "", **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.cluster = cluster

    def pre_execute(self, context: Context) -> None:
        """Take the run's cluster if the task has none of its own."""
        super().pre_execute(context)
        self.cluster = self.cluster or cluster_of(context)

    def fail_after_failure(self, context: Context) -> None:
        """Fail if a task before this one has failed for the same cluster.

        Airflow names a mapped task when it starts, and `none_skipped` starts it after a failure as well.

        Raises:
            AirflowFailException: A task before this one has failed.
        """
        ti = context["ti"]
        of_runs = ti.get_task_states(
            dag_id=ti.dag_id,
            map_index=ti.map_index,
            task_ids=sorted(self.upstream_task_ids),
            run_ids=[ti.run_id],
        )
        if any(
            state in {"failed", "upstream_failed"} for states in of_runs.values() for state in states.values()
        ):
            raise AirflowFailException(f"A task of {self.cluster} before this one has failed; see its log.")

    def has_landed(self, ds: str) -> bool:
        """Return whether the cluster's export of a day has its manifest, which lands last by contract."""
        exports = places(("exports",))["exports"]
        if "://" in exports:
            return self.landed_manifest(ds) is not None
        return self._manifest_file(exports, ds).is_file()

    def landed_manifest(self, ds: str) -> Mapping[str, Any] | None:
        """Return the manifest of the cluster's export of a day; None if none has landed.

        From an object store only its `quality`. An unreadable manifest is empty: the tasks that read the export name the error.
        """
        exports = places(("exports",))["exports"]
        if "://" in exports:
            try:
                self.run_ledger(
                    ["exports", "status"], [f"--cluster={self.cluster}", f"--ds={ds}", f"--exports={exports}"]
                )
            except StepRefusedError:
                return None
            return self.result
        file = self._manifest_file(exports, ds)
        if not file.is_file():
            return None
        try:
            manifest = json.loads(file.read_text())
        except (OSError, ValueError):
            return {}
        return manifest if isinstance(manifest, dict) else {}

    def _manifest_file(self, exports: str, ds: str) -> Path:
        return Path(exports) / self.cluster / ds / "manifest.json"


class MaintainWarehouseOperator(LedgerOperator):
    """Run `ledger maintain`: list unreferenced data of the warehouse, and remove it if the settings allow it."""

    def execute(self, context: Context) -> None:  # noqa: ARG002  # Airflow's own signature
        """Run the command, with `--apply` if the settings have `dry_run: false`.

        Raises:
            AirflowFailException: If the settings are wrong.
            StepRefusedError: If another release has written the warehouse.
            StepCrashedError: If a write fails.
        """
        options = [f"--{place}={value}" for place, value in places(("warehouse", "settings")).items()]
        if not settings_now().maintenance.dry_run:
            options.append("--apply")
        self.run_ledger(["maintain"], options)


class LedgerStepOperator(ClusterOperator):
    """Run one step that needs no Spark, `ledger step <name>`, for one cluster and day.

    Args:
        step: `verify` or `publish`; `gate` and `report` have operators with links.
        kwargs: See `ClusterOperator`.
    """

    def __init__(self, *, step: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.step = step

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the step, log its output, and return its result, which Airflow keeps as an XCom.

        Raises:
            StepRefusedError: On exit code 2 or 3.
            StepCrashedError: On any other exit code except 0.
        """
        self.run_ledger(["step", self.step], arguments_for(self.cluster, day_of(context)))
        return self.result | {"try_number": context["ti"].try_number}


class AnnounceOperator(ClusterOperator):
    """Emit the event of `ledger://gold` for a publication that changed a table; skip the task for another.

    A try of the publication that was killed after its commit leaves no result, and the next try changes nothing. So after several tries
    there is an event unless this computation has one.

    Args:
        publish_task_id: The task whose XCom is the result of `ledger step publish`.
        kwargs: See `ClusterOperator`.
    """

    def __init__(self, *, publish_task_id: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(inlets=[GOLD], outlets=[GOLD], **kwargs)
        self.publish_task_id = publish_task_id

    def execute(self, context: Context) -> None:
        """Add partition key and extra to the event.

        Raises:
            AirflowSkipException: The publication changed nothing.
        """
        ds = day_of(context)
        publication = context["ti"].xcom_pull(task_ids=self.publish_task_id)
        if not publication["changed_tables"] and not self._is_unannounced(context, ds, publication):
            raise AirflowSkipException(
                f"{self.cluster} {ds} was published with the same rows: nothing changed."
            )
        event = context["outlet_events"][GOLD]
        event.add_partitions(partition_key(self.cluster, ds))
        event.extra = {
            "cluster": self.cluster,
            "ds": ds,
            **{name: publication[name] for name in ("run_id", "verdict", "changed_tables")},
        }

    def _is_unannounced(self, context: Context, ds: str, publication: Mapping[str, Any]) -> bool:
        """Return whether an earlier try may have published this computation, and no event says so."""
        if publication.get("try_number", 1) == 1:
            return False
        key = partition_key(self.cluster, ds)
        events = context["inlet_events"][GOLD].after(f"{ds}T00:00:00+00:00")
        return not any(
            event.partition_key == key and (event.extra or {}).get("run_id") == publication["run_id"]
            for event in events
        )


class _PageOperator(LedgerStepOperator):
    """A step that writes a page; `page_url` is its address, after a refusal too."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.page_url = ""

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the step, and keep the address of its page."""
        try:
            return super().execute(context)
        finally:
            page = self.result.get("page")
            if page:
                self.page_url = page_url(page)


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

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(step="gate", **kwargs)


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

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(step="report", **kwargs)


class NotifyOperator(ClusterOperator):
    """Run `ledger notify` if LEDGER_NOTIFY_CONNECTION names a connection; skip the task otherwise.

    A webhook is a connection whose password is its URL, which Airflow masks in logs. E-mail is a connection of type smtp: host, port,
    login, password, and in its extra `from_email`, `to_emails` (a list) and, without TLS, `disable_tls`.

    Args:
        kwargs: See `ClusterOperator`.
    """

    def execute(self, context: Context) -> None:  # noqa: ARG002  # Airflow's own signature
        """Send the changes since the last notification.

        Raises:
            AirflowSkipException: No connection is configured.
            AirflowFailException: There is no such connection, or it is incomplete.
            StepRefusedError: The warehouse cannot be read, or the destination is invalid.
            StepCrashedError: The notification was not accepted; a retry sends it again.
        """
        conn_id = os.environ.get("LEDGER_NOTIFY_CONNECTION")
        if not conn_id:
            raise AirflowSkipException(
                "Nobody is notified: LEDGER_NOTIFY_CONNECTION names no connection (see docs/alerts.md)."
            )
        options = [f"--cluster={self.cluster}", f"--warehouse={places(('warehouse',))['warehouse']}"]
        self.run_ledger(["notify"], [*options, "--destination-from-stdin"], f"{destination_url(conn_id)}\n")


def destination_url(conn_id: str) -> str:
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
    if isinstance(recipients, str):
        recipients = [address.strip() for address in recipients.split(",")]
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
    # A form or a URI has texts: TLS stays on unless the value is unmistakable, because a login would be sent in clear text.
    if str(extra.get("disable_tls")).lower() == "true":
        options.append(("security", "none"))
    return f"smtp://{login}{connection.host}:{connection.port or 587}?{urlencode(options)}"


def retry_policy() -> dict[str, Any]:
    """Return the default arguments of every task.

    Crashes are retried with exponential backoff, every task has a timeout, and the reason of a failure ends its log.
    """
    return {
        "on_failure_callback": log_reason,
        "on_retry_callback": log_reason,
        "retries": 2,
        "retry_delay": timedelta(minutes=1),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=15),
        "execution_timeout": timedelta(minutes=15),
    }
