"""The steps of one day, one function each, for the command line and, through it, for Airflow.

Belongs here: the order of calls to the packages. Does not belong here: their work (`exports`, `spark_jobs`, `gate`, `warehouse`), and
output (`cli`).
"""

# Great Expectations takes seconds to import, pydantic a quarter of one, and Spark needs a JVM: each step imports only what it uses.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rebalance_ledger.driver_options import LARGE_EXPORT_BYTES
from spark_jobs import failures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.gate.verdict import Verdict
    from rebalance_ledger.pipeline.day import Day
    from rebalance_ledger.warehouse.layout import Warehouse
    from rebalance_ledger.warehouse.publish import Publication
    from spark_jobs.staged_day import StageResult

_ROOT = Path(__file__).resolve().parents[2]
_DELTA = "io.delta.sql.DeltaSparkSessionExtension"


class RefusedError(Exception):
    """The gate refused the day; `str()` has the failed expectations by table, with examples.

    Attributes:
        page: Path or URI of the first page of the Data Docs, if they were written.
    """

    def __init__(self, reason: str, page: str | None) -> None:
        super().__init__(reason)
        self.page = page


class SetUpMissingError(Exception):
    """A result of `make setup` is missing; `str()` is one sentence."""


def check_writable(warehouse: Warehouse) -> None:
    """Check, before Spark starts, that tables can be written on this disk; an object store is checked when it is written.

    Raises:
        WriteError: The warehouse, the folder in which it would be created, or a part of it that another user has created, cannot be written.
    """
    from rebalance_ledger.storage.location import is_object_store
    from rebalance_ledger.warehouse.errors import WriteError
    from rebalance_ledger.writable import why_file_not_writable, why_not_writable

    if is_object_store(warehouse.root):
        return
    root = Path(warehouse.root)
    folders = (root, root / "silver", root / "gold", root / "staging")
    reasons = [*map(why_not_writable, folders), why_file_not_writable(Path(warehouse.lock_file))]
    reason = next(filter(None, reasons), None)
    if reason is not None:
        raise WriteError(
            f"The warehouse {warehouse.root} cannot be written: {reason}. Name another with --warehouse, or change the folder."
        )


def verify(day: Day) -> Manifest:
    """Check the day's export against its manifest, byte for byte.

    Raises:
        ExportError: The day has no export, or it has changed since it was sealed.
    """
    from rebalance_ledger.exports.manifest import export_directory
    from rebalance_ledger.exports.sealing import verify as verify_export

    return verify_export(export_directory(day.exports, day.cluster, day.ds), cluster=day.cluster, ds=day.ds)


def export_bytes(day: Day) -> int:
    """Return the size of the day's export, from its manifest.

    Raises:
        ExportError: The day has no sealed export.
    """
    from rebalance_ledger.exports.manifest import export_directory, load_manifest

    return load_manifest(export_directory(day.exports, day.cluster, day.ds)).size_bytes


def staged(day: Day) -> StageResult | None:
    """Return the result of a complete stage with the current run id, from another application; None if there is none.

    Raises:
        ExportError: The day has no sealed export.
        QueryError: The earlier published day cannot be read.
        SettingsError: The settings file is wrong.
    """
    from spark_jobs.staged_day import staged_result

    return staged_result(day.exports, day.warehouse, day.settings, (day.cluster, day.ds))


def build(day: Day) -> None:
    """Compute and stage the day in a Spark application of this process.

    Raises:
        ExportError: the day has no export.
        SettingsError: the settings file is wrong.
        SetUpMissingError: there is no Spark configuration.
        SparkError: Spark's Java process did not start, or has ended.
    """
    _ = day.settings  # A wrong file must not cost the start of a JVM.
    with spark_application(f"rebalance-ledger {day.cluster} {day.ds}", day, export_bytes(day)) as build_day:
        build_day(day, ())


@contextmanager
def spark_application(
    name: str, any_day: Day, export_size_bytes: int
) -> Iterator[Callable[[Day, Sequence[Day]], None]]:
    """Run a Spark application in this process that computes and stages days.

    A day that fails leaves the application as it was.

    Args:
        name: Name of the application in the Spark UI.
        any_day: A day with the locations of exports and warehouse; its cluster and ds are not used.
        export_size_bytes: Size of the export, which determines options of the JVM.

    Yields:
        A function that computes and stages one day, given the following days, which are computed together with it. It raises the errors of
        `build`.

    Raises:
        SetUpMissingError: There is no Spark configuration, or none that loads Delta.
        SparkError: Spark's Java process does not start.
    """
    _use_project_spark()
    from spark_jobs.session import spark_session

    beside_start = ThreadPoolExecutor(1)
    beside_start.submit(_load_build)
    if export_size_bytes < LARGE_EXPORT_BYTES:  # Beside large tables its memory is missed.
        beside_start.submit(_load_later_steps)
    try:
        with _frequent_switches(), failures.starting():
            spark = spark_session(name, export_size_bytes)
        try:
            if _DELTA not in (spark.conf.get("spark.sql.extensions", "") or ""):
                raise SetUpMissingError(
                    f"The Spark configuration at {os.environ['SPARK_CONF_DIR']} (SPARK_CONF_DIR) does not load Delta: unset the variable to "
                    "use the configuration of `make setup`, or name a folder that is made from conf/spark."
                )
            from spark_jobs.side_by_side import SideBySide

            with closing(SideBySide(spark, any_day.exports, any_day.warehouse)) as days:

                def build_one(day: Day, ahead: Sequence[Day]) -> None:
                    settings = {each.cluster: each.settings for each in (day, *ahead)}
                    with failures.working():
                        days.build(
                            (day.cluster, day.ds), settings, [(each.cluster, each.ds) for each in ahead]
                        )

                yield build_one
        finally:
            if failures.java_exit_code() is None:
                spark.stop()
    finally:
        beside_start.shutdown(cancel_futures=True)


@contextmanager
def _frequent_switches() -> Iterator[None]:
    """Switch between threads 25 times as often, because each call to Java ends with a wait for a thread that imports packages."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(interval_s / 25)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)


def _load_build() -> None:
    """Import the build while Spark starts; errors appear in the build."""
    import spark_jobs.side_by_side  # noqa: F401 - what takes time is to import it


def _load_later_steps() -> None:
    """Import the packages of the gate, publication and report while Spark starts and leaves a core idle, which saves seconds.

    Errors appear in the steps.
    """
    import rebalance_ledger.gate.judge
    import rebalance_ledger.report.day_report
    import rebalance_ledger.warehouse.publish  # noqa: F401 - what takes time is to import these
    from expectations.measurement import translate_statements

    translate_statements()


def gate(day: Day) -> Verdict:
    """Measure and judge the staged day. This can be repeated, also with other expectations or settings.

    Raises:
        ExportError: An export is missing, or has changed since the build.
        QueryError: A published table cannot be read.
        SettingsError: The settings file is invalid.
        StagingError: There is no complete stage, its files have changed since the build, or the day's approval is damaged.
        RefusedError: A blocking expectation failed; the results are in `quarantine.gate_result`.
    """
    from rebalance_ledger.gate.verdict import explain
    from rebalance_ledger.pipeline.gate_input import measured_day
    from rebalance_ledger.warehouse.approvals import read_approval
    from rebalance_ledger.warehouse.errors import QueryError
    from rebalance_ledger.warehouse.pages import write_data_docs
    from rebalance_ledger.warehouse.publish import quarantine
    from rebalance_ledger.warehouse.staging import check_inventory, newest_stage, read_build, write_verdict

    settings = day.settings
    stage = newest_stage(day.warehouse, day.cluster, day.ds)
    build_record = read_build(stage)
    run_id = build_record.run_id
    check_inventory(stage)
    approval = read_approval(day.warehouse, day.cluster, day.ds, run_id)
    judged = measured_day(day, settings, stage, build_record)
    # Imported here, unless `_load_later_steps` has done so, because the memory of Great Expectations and the database would add up.
    from rebalance_ledger.gate.judge import judge

    with TemporaryDirectory(prefix="ledger-data-docs-") as folder:
        verdict = judge(
            judged.metrics,
            cluster=day.cluster,
            ds=day.ds,
            run_id=run_id,
            data_docs_dir=Path(folder),
            settings=settings.gate,
            baseline_ds=judged.baseline_ds,
            quarantined=judged.quarantined,
            approval=approval,
        )
        first_page = write_data_docs(day.warehouse, day.cluster, day.ds, Path(folder))
    verdict = replace(verdict, notes=[*judged.notes, *verdict.notes], data_docs_index=first_page)
    write_verdict(
        day.warehouse, day.cluster, day.ds, stage, verdict.verdict, verdict.results, verdict.quarantined
    )
    if verdict.verdict == "refused":
        quarantine(day.warehouse, day.cluster, day.ds, verdict.results)
        try:
            write_metrics_file(day.warehouse)
        except (OSError, QueryError) as error:  # The refusal is what the caller must learn.
            verdict = replace(verdict, notes=[*verdict.notes, f"the metrics were not written: {error}"])
        raise RefusedError(explain(verdict), verdict.data_docs_index)
    return verdict


def publish(day: Day) -> Publication:
    """Publish the staged and accepted day.

    Raises:
        StagingError: The staged day is incomplete, or the gate has not accepted it.
    """
    from rebalance_ledger.warehouse.publish import publish as publish_day

    return publish_day(day.warehouse, day.cluster, day.ds)


def report(day: Day) -> str:
    """Write the metrics file, and the report of the published day to the folder of its Data Docs; return the location of the report.

    Raises:
        QueryError: The day is not published, or cannot be read.
        OSError: A file cannot be written.
    """
    from rebalance_ledger.report.day_report import render_report
    from rebalance_ledger.report.published_day import find_day
    from rebalance_ledger.warehouse.pages import write_report
    from rebalance_ledger.warehouse.snapshot import Snapshot

    write_metrics_file(day.warehouse)
    snapshot = Snapshot(day.warehouse.root)
    page = render_report(snapshot, find_day(snapshot, day.cluster, day.ds), group=None)
    return write_report(day.warehouse, day.cluster, day.ds, page)


def write_metrics_file(warehouse: Warehouse) -> None:
    """Write the metrics of all clusters to the file in LEDGER_METRICS_FILE, if it is set.

    Raises:
        QueryError: The warehouse cannot be read.
        OSError: The file cannot be written.
    """
    from rebalance_ledger.report.metrics import write_metrics

    output = os.environ.get("LEDGER_METRICS_FILE")
    if output:
        write_metrics(warehouse.root, Path(output))


def _use_project_spark() -> None:
    """Use the installed PySpark, the Java that set-up found, and a locale in which Java reads UTF-8, as conf/environment.sh does.

    An address is named if this machine's name has none.

    The variables of this user may be for another Spark. `SPARK_CONF_DIR` is kept; by default it is this checkout's configuration.
    """
    if sys.flags.utf8_mode:
        # Python's names of files are UTF-8 in the locale C too, Java's are ASCII there.
        os.environ["LC_ALL"] = "C.UTF-8"
    import pyspark

    from rebalance_ledger.host_name import variables_without_address

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
    for name, value in variables_without_address().items():
        os.environ.setdefault(name, value)
    java_home = _ROOT / ".local" / "java-home"
    if java_home.is_file():
        os.environ["JAVA_HOME"] = java_home.read_text(encoding="utf-8").strip()
    if "SPARK_CONF_DIR" not in os.environ:
        conf = _ROOT / ".local" / "spark-conf"
        if not (conf / "spark-defaults.conf").is_file():
            raise SetUpMissingError(
                f"There is no Spark configuration at {conf}: run `make setup`, or set SPARK_CONF_DIR."
            )
        os.environ["SPARK_CONF_DIR"] = str(conf)
