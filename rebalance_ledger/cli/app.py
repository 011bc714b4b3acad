"""The command line `ledger`.

Exit codes: 0 done, 1 crash, 2 bad input or usage, 3 refused by the gate, 4 a degraded capture, 5 a failed one, 6 a newest day that is too
old, 130 interrupted. The reason is the last thing on stderr.

Belongs here: options, progress, what a person reads. Does not belong here: any rule, any engine (see `pipeline.steps`, `sql`).
"""

# Spark, duckdb and Great Expectations take seconds to import: a command imports only what it uses.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from rebalance_ledger.cli.ask import ask, list_questions, question_names, question_sql
from rebalance_ledger.cli.failures import failure_of
from rebalance_ledger.cli.interruption import INTERRUPTED, INTERRUPTED_SENTENCE
from rebalance_ledger.cli.sql import TIME_LIMIT_S, published_days_hint, run_sql, show_tables
from rebalance_ledger.cli.terminal import (
    SentenceConsole,
    check_arguments,
    echo,
    escape_unencodable,
    open_closed_streams,
    read_standard_input,
    until_reader_leaves,
)
from rebalance_ledger.pipeline import steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.printable import counted, visible
from rebalance_ledger.result_file import write_result
from rebalance_ledger.secret_files import read_secret_files
from rebalance_ledger.storage.location import (
    InvalidLocationError,
    Location,
    ObjectPath,
    is_object_store,
    location_of,
)
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.layout import MOST_SEGMENT_CHARACTERS, Warehouse, path_segment

if TYPE_CHECKING:
    from rebalance_ledger.exports.manifest import Manifest

OF_QUALITY = {"degraded": 4, "failed": 5}
"""Exit codes of `exports collect` by the quality of the capture, which is sealed all the same."""

STALE = 6

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A daily record of which RocketMQ client owns each queue and which should.",
)
exports_app = typer.Typer(
    no_args_is_help=True,
    help="Collect, import, seal, verify, upload, redact and prune exports.",
)
app.add_typer(exports_app, name="exports")
settings_app = typer.Typer(no_args_is_help=True, help="Check the settings file.")
app.add_typer(settings_app, name="settings")
gate_app = typer.Typer(no_args_is_help=True, help="Show the gate's results; approve a refused day.")
app.add_typer(gate_app, name="gate")


def _show_version(is_wanted: bool) -> None:  # noqa: FBT001  # Typer passes the option's value
    if is_wanted:
        from rebalance_ledger.warehouse.identity import code_version

        typer.echo(f"rebalance-ledger {code_version()}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    del version


_stderr = SentenceConsole(stderr=True, highlight=False, markup=False)


def _utc_day(text: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a day such as 2026-11-16.") from None


def _day_option(description: str, *names: str) -> Any:  # noqa: ANN401  # as Typer declares its own
    return typer.Option(*names, parser=_utc_day, metavar="YYYY-MM-DD", help=description)


Cluster = Annotated[str, typer.Option("--cluster", help="Name of the cluster.")]
Ds = Annotated[date, _day_option("UTC day of the export.", "--ds")]
Exports = Annotated[
    str,
    typer.Option("--exports", envvar="LEDGER_EXPORTS", help="Folder or s3a://bucket/… with <cluster>/<ds>/."),
]
WarehouseLocation = Annotated[
    str,
    typer.Option("--warehouse", envvar="LEDGER_WAREHOUSE", help="Folder or s3a://bucket/… of the tables."),
]
Settings = Annotated[
    Path | None, typer.Option("--settings", envvar="LEDGER_SETTINGS", help="The settings file (YAML).")
]
Directory = Annotated[Path, typer.Argument(help="The directory of one export, <exports>/<cluster>/<ds>.")]

OffsetFiles = Annotated[
    Path | None,
    typer.Option(help="Drop folder with <host>/<clientId>/<group>/offsets.json of broadcasting clients."),
]

_EXPORTS = "samples/exports"
_WAREHOUSE = "data/warehouse"
_NAMED_DAYS: Final = 5
"""Outdated days that a warning names."""


class Format(StrEnum):
    """Output format of a query."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="Output format.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", help="File to write: .csv, .json or .parquet.")
]
TimeLimit = Annotated[
    float, typer.Option("--timeout-seconds", min=0, help="Time limit in seconds; 0 for none.")
]


class CredentialsFrom(StrEnum):
    """Source of a cluster's credentials."""

    ENV = "env"
    STDIN = "stdin"


class StepName(StrEnum):
    """Step of a day that needs no Spark."""

    VERIFY = "verify"
    GATE = "gate"
    PUBLISH = "publish"
    REPORT = "report"


@app.command()
def run(
    context: typer.Context,
    cluster: Cluster,
    ds: Ds,
    exports: Exports = _EXPORTS,
    warehouse: WarehouseLocation = _WAREHOUSE,
    settings: Settings = None,
) -> None:
    """Verify, build, gate and publish one day in one process, without Airflow."""
    from rebalance_ledger.cli.build_progress import log_file
    from rebalance_ledger.cli.day_run import publish_day, report_day

    day = _day(cluster, ds, exports, warehouse, settings)
    log = log_file(cluster, day.ds)
    publish_day(day, _stderr, lambda: _build(day, log), build_log=log)
    report_day(day, _stderr)
    _warn_of_outdated_days(context, day.warehouse, cluster, day.exports)


_SQL_COMMENT: Final = re.compile(r"--(?:\s|[^=\n]*\n)")


class _SqlCommand(TyperCommand):
    """A command whose argument may begin with an SQL comment (`-- …`), which is not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # a class that Typer does not export
        """Parse the arguments as Typer does, with a space before SQL comments, which makes them arguments and changes no query."""
        return super().parse_args(ctx, [f" {each}" if _SQL_COMMENT.match(each) else each for each in args])


@app.command(cls=_SqlCommand)
def sql(
    query: Annotated[
        str | None,
        typer.Argument(help="One SELECT statement; `-` reads it from standard input; none starts a shell."),
    ] = None,
    output_format: FormatOption = Format.TABLE,
    output: OutputOption = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
    timeout_seconds: TimeLimit = TIME_LIMIT_S,
) -> None:
    """Answer one SQL query over the published tables; see docs/sql.md."""
    if query is None and sys.stdin.isatty():
        from rebalance_ledger.cli.shell import run_shell

        run_shell(
            warehouse,
            [f"--warehouse={warehouse}", f"--format={output_format}", f"--timeout-seconds={timeout_seconds}"],
        )
        return
    row_count = run_sql(
        query if query not in {None, "-"} else read_standard_input(),
        output_format=output_format.value,
        warehouse=warehouse,
        timeout_s=timeout_seconds or None,
        output=output,
    )
    _print_output(output, row_count)
    if row_count == 0:
        _print_error(published_days_hint(warehouse))


@app.command("ask")
def ask_question(  # noqa: PLR0913, PLR0917  # each is an option of the command
    question: Annotated[
        str | None,
        typer.Argument(help="Name of the question; omit it to list all.", autocompletion=question_names),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only rows of this cluster.")] = None,
    group: Annotated[str | None, typer.Option(help="Only rows of this consumer group.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only rows of this topic.")] = None,
    broker: Annotated[str | None, typer.Option(help="Only rows of this broker.")] = None,
    queue: Annotated[int | None, typer.Option(min=0, help="Only rows of this queue id.")] = None,
    client: Annotated[str | None, typer.Option(help="Only rows of this client id.")] = None,
    ds: Annotated[
        date | None,
        _day_option("UTC day; default: each cluster's newest published day."),
    ] = None,
    compare_ds: Annotated[
        date | None,
        _day_option("UTC day to compare with; default: the published day before."),
    ] = None,
    output_format: FormatOption = Format.TABLE,
    output: OutputOption = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
    timeout_seconds: TimeLimit = TIME_LIMIT_S,
    *,
    show_sql: Annotated[
        bool, typer.Option("--show-sql", help="Print the SQL of the question instead of running it.")
    ] = False,
) -> None:
    """Answer one of the questions in sql/questions, restricted by the options."""
    if question is None:
        with until_reader_leaves():
            list_questions()
        return
    if show_sql:
        with until_reader_leaves():
            typer.echo(question_sql(question).rstrip())
        return
    columns: dict[str, str | int | None] = {
        "cluster": cluster,
        "consumer_group": group,
        "topic": topic,
        "broker_name": broker,
        "queue_id": queue,
        "client_id": client,
    }
    row_count = ask(
        question,
        conditions={column: value for column, value in columns.items() if value is not None},
        ds=ds,
        output_format=output_format.value,
        warehouse=warehouse,
        timeout_s=timeout_seconds or None,
        compare_ds=compare_ds,
        output=output,
    )
    _print_output(output, row_count)
    if row_count == 0:
        days = (ds, compare_ds) if compare_ds else (ds,)
        for hint in dict.fromkeys(published_days_hint(warehouse, cluster, day, group) for day in days):
            _print_error(hint)


@app.command("explain")
def explain_group(
    group: Annotated[str, typer.Argument(help="Name of the consumer group.")],
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    queue: Annotated[
        str | None,
        typer.Option(metavar="BROKER:ID", help="Only this queue, with its owners on earlier days."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Name of the cluster; needed if several are published.")
    ] = None,
    ds: Annotated[
        date | None,
        _day_option("UTC day; default: the newest published day."),
    ] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Show a group on one screen: findings with advice, strategy, owners of its queues, members."""
    from rebalance_ledger.cli.explain import explain

    with until_reader_leaves():
        explain(
            group,
            topic=topic,
            queue=queue,
            cluster=cluster,
            ds=ds,
            warehouse=warehouse,
        )


@app.command("report")
def write_day_report(
    output: Annotated[Path, typer.Option(help="HTML file to write.")],
    cluster: Annotated[
        str | None, typer.Option(help="Name of the cluster; needed if several are published.")
    ] = None,
    ds: Annotated[
        date | None,
        _day_option("UTC day; default: the newest published day."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Show this group in detail; default: the worst groups.")
    ] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Write the report of a published day as one HTML page that needs no network."""
    from rebalance_ledger.report.day_report import write_report

    day = write_report(warehouse, output, cluster=cluster, ds=ds, group=group)
    echo(f"The report of {day.cluster} for {day.ds} is in {output}.")


@app.command("metrics")
def show_metrics(
    output: Annotated[
        Path | None, typer.Option(help="File to write, for example for node_exporter's textfile collector.")
    ] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Write freshness, verdicts, findings, ownership and fairness as OpenMetrics text."""
    from rebalance_ledger.report.metrics import metrics_text, write_metrics

    if output is None:
        with until_reader_leaves():
            typer.echo(metrics_text(warehouse), nl=False)
    else:
        write_metrics(warehouse, output)


@app.command("notify")
def send_notification(
    cluster: Cluster,
    warehouse: WarehouseLocation = _WAREHOUSE,
    *,
    from_stdin: Annotated[
        bool, typer.Option("--destination-from-stdin", help="Read the destination from standard input.")
    ] = False,
) -> None:
    """Notify of new and resolved critical findings, and of a refused day, each once.

    LEDGER_NOTIFY_URL is the destination: https://… for a webhook, or smtp://login:password@host:port?from=A&to=B for e-mail.
    """
    from rebalance_ledger.notification.changes import notify
    from rebalance_ledger.notification.destination import destination_of

    url = sys.stdin.readline() if from_stdin else os.environ.get("LEDGER_NOTIFY_URL", "")
    if not url.strip():
        raise typer.BadParameter("There is no destination: set LEDGER_NOTIFY_URL.")
    changes = notify(warehouse, cluster, destination_of(url))
    echo(f"Sent: {changes.subject}" if changes.are_any else f"Nothing new for {cluster}: nothing was sent.")


@app.command()
def tables(
    name: Annotated[
        str | None, typer.Argument(help="One table or view, for example queue_assignment.")
    ] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """List tables with their columns, views, and published days."""
    show_tables(warehouse, name)


@app.command()
def summary(warehouse: WarehouseLocation = _WAREHOUSE) -> None:
    """List published days with groups, queues, assignments, problems and gate verdict."""
    from rebalance_ledger.cli.summary import show_summary

    show_summary(warehouse)


@app.command("freshness")
def show_freshness(
    max_age: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Exit with 6 if a newest day began longer ago: 90m, 26h, 2d."),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
    settings: Settings = None,
) -> None:
    """Show the newest published day of each cluster of the settings, and whether one is too old or was never published."""
    from rebalance_ledger.cli.freshness import age_of, freshness

    try:
        limit = None if max_age is None else age_of(max_age)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--max-age") from error
    clusters = freshness(Warehouse.at(warehouse), settings_file=settings, cluster=cluster, max_age=limit)
    for of_cluster in clusters:
        echo(of_cluster.line)
    write_result(newest_days={of_cluster.cluster: of_cluster.ds for of_cluster in clusters if of_cluster.ds})
    stale = [of_cluster.cluster for of_cluster in clusters if of_cluster.is_stale]
    if stale:
        _print_error(f"Too old, or never published: {', '.join(stale)}.")
        raise typer.Exit(STALE)
    if not clusters:
        _print_error(f"Nothing is published in {warehouse}, and no settings name a cluster.")
        if limit is not None:
            raise typer.Exit(STALE)


@app.command()
def fingerprint(
    cluster: Cluster,
    ds: Annotated[date | None, _day_option("Only this day.", "--ds")] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Print row count and content hash of each published day and table."""
    from rebalance_ledger.warehouse.fingerprint import fingerprint as table_days

    differing = []
    is_published = False
    for day in table_days(Warehouse.at(warehouse).root, cluster, ds):
        is_published = True
        echo(f"{day.ds} {day.table_name} {day.row_count} {day.content_hash}")
        if not day.is_as_published:
            differing.append(f"{day.ds} {day.table_name}")
    if differing:
        raise QueryError(
            f"The rows of {', '.join(differing)} are not those that the publication names: publish the day again."
        )
    if not is_published:
        wanted = f"{cluster} {ds}" if ds else cluster
        raise QueryError(
            f"{warehouse} has no published day of {wanted}: look for its name and day in `ledger summary`."
        )


@app.command("verify")
def verify_published(
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    ds: Annotated[date | None, _day_option("Only this day.", "--ds")] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Compare published rows with the counts and hashes recorded at publication."""
    from rebalance_ledger.cli.verify import published_days, verify_days

    root = Warehouse.at(warehouse).root
    for line in verify_days(root, published_days(root, cluster, ds)):
        echo(line)


@app.command()
def rollback(
    context: typer.Context,
    cluster: Cluster,
    ds: Ds,
    warehouse: WarehouseLocation = _WAREHOUSE,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the changes without making them.")
    ] = False,
) -> None:
    """Return one day to its previous publication, in all tables at once. Repeat to go further back."""
    from rebalance_ledger.warehouse.rollback import rollback as roll_back

    done = roll_back(Warehouse.at(warehouse), cluster, ds, is_applied=not dry_run)
    for table_name, (before, after) in done.row_counts.items():
        echo(f"{table_name}: {before} rows become {after}")
    echo(
        f"{cluster} {ds} {'would be' if dry_run else 'is'} rolled back to run {done.restored_run_id}; "
        f"run {done.withdrawn_run_id} {'would be' if dry_run else 'is'} withdrawn."
    )
    _warn_of_outdated_days(
        context,
        Warehouse.at(warehouse),
        cluster,
        hint="; add the --exports and --settings from which the days were computed",
    )


@app.command()
def backfill(  # noqa: PLR0913  # each is an option of the command
    context: typer.Context,
    clusters: Annotated[list[str], typer.Option("--cluster", help="Name of the cluster; repeatable.")],
    first: Annotated[date, _day_option("First UTC day.", "--from")],
    last: Annotated[date, _day_option("Last UTC day, included.", "--to")],
    exports: Exports = _EXPORTS,
    warehouse: WarehouseLocation = _WAREHOUSE,
    settings: Settings = None,
    *,
    is_reversed: Annotated[bool, typer.Option("--reversed", help="Start with the last day.")] = False,
    skip_published: Annotated[
        bool, typer.Option("--skip-published", help="Skip days that are published and up to date.")
    ] = False,
) -> None:
    """Run each day of a range that has an export, then the later days whose baseline has changed.

    All days run in one Spark application, cluster after cluster.
    """
    from rebalance_ledger.cli.backfill import run_backfill

    if first > last:
        raise typer.BadParameter(f"--from {first} is after --to {last}: exchange them.")
    days = [_day(cluster, first, exports, warehouse, settings) for cluster in dict.fromkeys(clusters)]
    code = run_backfill(days, first, last, is_reversed=is_reversed, is_published_skipped=skip_published)
    for day in days:
        _warn_of_outdated_days(context, day.warehouse, day.cluster, day.exports)
    if code:
        raise typer.Exit(code)


@settings_app.command("check")
def check_settings(
    settings: Annotated[
        Path, typer.Option("--settings", envvar="LEDGER_SETTINGS", help="The settings file (YAML).")
    ] = Path("conf/ledger.yaml"),
) -> None:
    """Check the settings file and list its clusters."""
    from rebalance_ledger.gate.policy import GATE_NAMES
    from rebalance_ledger.settings import load_settings

    clusters = load_settings(settings, GATE_NAMES).clusters
    echo(f"{settings} is valid. Clusters: {', '.join(sorted(clusters)) or 'none'}.")


@gate_app.command("show")
def show_gate(
    cluster: Cluster,
    ds: Ds,
    output_format: FormatOption = Format.TABLE,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Show the latest gate result of a day: verdict, failures with their subjects, waivers, advice."""
    from rebalance_ledger.cli.gate_report import show

    with until_reader_leaves():
        show(Warehouse.at(warehouse), cluster, ds, output_format.value)


@gate_app.command("approve")
def approve_day(  # each is an option of the command
    context: typer.Context,
    cluster: Cluster,
    ds: Ds,
    approved_by: Annotated[str, typer.Option("--approved-by", help="Name of the person who approves.")],
    reason: Annotated[str, typer.Option("--reason", help="Why the day is published all the same.")],
    run_id: Annotated[
        str | None, typer.Option("--run-id", help="Fail unless this computation was refused.")
    ] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
) -> None:
    """Approve the publication of a refused day; gate_result keeps name and reason. Then run gate and publish again."""
    from rebalance_ledger.warehouse.approvals import approve

    approval = approve(
        Warehouse.at(warehouse),
        cluster,
        ds,
        approved_by=approved_by,
        reason=reason,
        run_id=run_id,
    )
    of_day = f"--cluster {quote(cluster)} --ds {ds}{_options_in_effect(context)}"
    echo(
        f"{approval.approved_by} approved run {approval.run_id} of {cluster} {ds}, which fails "
        f"{', '.join(approval.expectation_ids)}. Nothing is published yet: clear the task gate in Airflow, or run "
        f"`ledger step gate {of_day}` and `ledger step publish {of_day}`; add the --exports and --settings of the refused run."
    )


@app.command()
def maintain(
    warehouse: WarehouseLocation = _WAREHOUSE,
    settings: Settings = None,
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the changes instead of listing them.")
    ] = False,
) -> None:
    """Merge small files, and remove unreferenced files, staged days and Data Docs past their retention."""
    from rebalance_ledger.cli.maintain import maintain_warehouse

    for line in maintain_warehouse(Warehouse.at(warehouse), settings, is_applied=apply):
        echo(line)


@exports_app.command()
def collect(
    cluster: Cluster,
    exports: Exports = _EXPORTS,
    settings: Settings = None,
    ds: Annotated[date | None, _day_option("Fail unless today (UTC) is this day.")] = None,
    nameserver: Annotated[
        list[str] | None,
        typer.Option(help="Name server, host:port; repeat for several. Default: from the settings."),
    ] = None,
    credentials_from: Annotated[
        CredentialsFrom | None,
        typer.Option(help="Source of access key and secret key; see docs/collecting.md."),
    ] = None,
    offset_files: OffsetFiles = None,
) -> None:
    """Collect and seal today's export of a live cluster.

    If today's export is degraded or failed, collect what it lacks. Exit code 4: degraded; 5: failed.
    """
    from rebalance_ledger.cli.collect import collect_export

    directory, manifest = collect_export(
        cluster,
        exports=location_of(exports),
        settings_file=settings,
        ds=ds,
        nameservers=nameserver or [],
        credentials_from=credentials_from.value if credentials_from else None,
        offset_files=offset_files,
        console=_stderr,
    )
    _print_manifest("collected and sealed", directory, manifest)
    if manifest.quality in OF_QUALITY:
        last = manifest.attempts[-1]
        problem = (
            f"The capture is {last.quality}: {last.failed_count} of {last.asked_count} requests failed. Values that depend on them are "
            "unknown; capture_attempts.jsonl in the export lists the kinds, servers and groups. Fix the cause and run the command "
            "again today (UTC); it repeats only the failed requests."
        )
        _stderr.print(problem, soft_wrap=True)
        write_result(reason=problem)
        raise typer.Exit(OF_QUALITY[last.quality])


@exports_app.command("import")
def import_export(  # noqa: PLR0913, PLR0917  # each is an option of the command
    cluster: Cluster,
    ds: Ds,
    exports: Exports = _EXPORTS,
    mqadmin: Annotated[
        list[Path] | None,
        typer.Option(help="mqadmin output, or a folder of outputs and files; repeatable."),
    ] = None,
    broker_files: Annotated[
        list[Path] | None,
        typer.Option(help="Folder with one subfolder of store/config files for each broker."),
    ] = None,
    offset_files: OffsetFiles = None,
    nameserver: Annotated[
        str | None, typer.Option(help="Name server of mqadmin commands without -n.")
    ] = None,
    captured_at: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%dT%H:%M:%SZ"], help="Capture time of the sources; default: their own times."
        ),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of times printed by mqadmin; without it they are omitted.")
    ] = None,
) -> None:
    """Build an export from mqadmin output and broker files; see docs/offline-collecting.md."""
    from rebalance_ledger.cli.import_export import import_sources
    from rebalance_ledger.collectors.offline import Sources

    sources = Sources(
        texts=mqadmin or (),
        broker_files=broker_files or (),
        offset_files=offset_files,
        nameserver=nameserver,
        captured_at=captured_at.replace(tzinfo=UTC) if captured_at else None,
    )
    directory, manifest = import_sources(
        cluster, ds, exports=_folder(exports), sources=sources, time_zone=time_zone, console=_stderr
    )
    _print_manifest("imported and sealed", directory, manifest)


@exports_app.command("prune")
def prune_exports(
    exports: Exports = _EXPORTS,
    settings: Settings = None,
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(min=1, help="Remove exports of at least this age in days. Default: from the settings."),
    ] = None,
    warehouse: WarehouseLocation = _WAREHOUSE,
    *,
    unpublished: Annotated[
        bool, typer.Option("--unpublished", help="Also exports from which no day is published.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Remove the exports instead of listing them.")
    ] = False,
) -> None:
    """List sealed exports past their retention; remove them with --apply.

    An export from which no day is published is kept, because nothing else has its data.
    """
    from rebalance_ledger.cli.collect import prune

    for sentence in prune(
        _folder(exports),
        settings_file=settings,
        cluster=cluster,
        keep_days=keep_days,
        published_in=None if unpublished else Warehouse.at(warehouse),
        is_applied=apply,
    ):
        echo(sentence)


@exports_app.command("redact")
def redact_exports_of_cluster(
    cluster: Cluster,
    exports: Exports = _EXPORTS,
    ds: Annotated[date | None, _day_option("Only this UTC day.")] = None,
    *,
    is_all: Annotated[bool, typer.Option("--all", help="All days of the cluster.")] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Redact the exports instead of counting values.")
    ] = False,
) -> None:
    """Remove possible secrets from exports that older releases sealed, and seal them again."""
    from rebalance_ledger.cli.redact import redact_exports

    if (ds is None) is not is_all:
        raise typer.BadParameter("Give either --ds with one day, or --all for every day of the cluster.")
    place = location_of(exports)
    if not isinstance(place, Path):
        raise typer.BadParameter(
            f"{place} is in an object store, where an export cannot be replaced in one step: copy it into a folder, redact "
            "it there, remove it from the store with all versions, and `ledger exports upload` it again."
        )
    for sentence in redact_exports(place, cluster, ds, is_applied=apply):
        echo(sentence)


@exports_app.command()
def seal(
    directory: Directory,
    cluster: Annotated[str | None, typer.Option(help="Cluster, if no line names it.")] = None,
    ds: Annotated[
        date | None,
        _day_option("Day, if the directory does not name it."),
    ] = None,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Seal a changed directory again.")] = False,
) -> None:
    """Write the manifest of a directory of envelopes; refuse malformed files."""
    from rebalance_ledger.exports.sealing import seal as seal_export

    manifest = seal_export(directory, cluster=cluster, ds=ds, replace=replace)
    _print_manifest("sealed", directory, manifest)


@exports_app.command("verify")
def verify_export(
    directory: Annotated[str, typer.Argument(help="One export, <exports>/<cluster>/<ds>.")],
) -> None:
    """Check a sealed export against its manifest, byte for byte."""
    from rebalance_ledger.exports.sealing import verify

    place = location_of(directory)
    _print_manifest("verified", place, verify(place))


@exports_app.command()
def status(cluster: Cluster, ds: Ds, exports: Exports = _EXPORTS) -> None:
    """Show whether a day's export has landed, without reading it; exit code 2 if not."""
    from rebalance_ledger.exports.manifest import export_directory, load_manifest

    directory = export_directory(location_of(exports), cluster, ds)
    quality = load_manifest(directory).quality
    write_result(quality=quality)
    echo(f"{directory} has landed{f'; its capture is {quality}' if quality else ''}.")


@exports_app.command("upload")
def upload_export(directory: Directory, exports: Exports) -> None:
    """Copy a sealed export into an object store, its manifest last."""
    from rebalance_ledger.exports.landing import land

    place = location_of(exports)
    if not isinstance(place, ObjectPath):
        raise typer.BadParameter(f"{place} is a folder: copy the export there, its manifest last.")
    _print_manifest("uploaded", *land(directory, place))


@app.command()
def step(
    context: typer.Context,
    name: Annotated[StepName, typer.Argument(help="Step to run.")],
    cluster: Cluster,
    ds: Ds,
    exports: Exports = _EXPORTS,
    warehouse: WarehouseLocation = _WAREHOUSE,
    settings: Settings = None,
) -> None:
    """Run one step of a day that needs no Spark, as Airflow does."""
    day = _day(cluster, ds, exports, warehouse, settings)
    match name:
        case StepName.VERIFY:
            from rebalance_ledger.pipeline.outdated import is_up_to_date

            manifest = steps.verify(day)
            echo(f"The export of {cluster} for {day.ds} matches its manifest ({len(manifest.files)} files).")
            is_published = is_up_to_date(day)
            staged = None if is_published else steps.staged(day)
            write_result(is_up_to_date=is_published, staged=staged._asdict() if staged else None)
        case StepName.GATE:
            from rebalance_ledger.gate.verdict import explain
            from rebalance_ledger.progress import heartbeat, logged_to

            with logged_to(sys.stdout), heartbeat():
                verdict = steps.gate(day)
            echo(explain(verdict))
            write_result(verdict=verdict.verdict, page=verdict.data_docs_index)
        case StepName.PUBLISH:
            publication = steps.publish(day)
            changed = counted(len(publication.changed_tables), "table")
            echo(f"Published run {publication.run_id}; {changed} changed.")
            write_result(
                run_id=publication.run_id,
                verdict=publication.verdict,
                changed_tables=publication.changed_tables,
                row_count=publication.row_count,
            )
            _warn_of_outdated_days(context, day.warehouse, cluster, day.exports)
        case StepName.REPORT:
            page = steps.report(day)
            echo(f"Report: {page}")
            write_result(page=page)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    open_closed_streams()
    escape_unencodable()
    try:
        check_arguments(sys.argv[1:])
        read_secret_files()
        app()
    except SystemExit as ending:
        # Typer ends so on Ctrl-C, and says nothing.
        if ending.code == INTERRUPTED:
            _print_error(INTERRUPTED_SENTENCE)
        raise
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            write_result(reason=f"{type(error).__name__}: {error}")
            raise
        _print_error(failure.sentence)
        page = {"page": error.page} if isinstance(error, steps.RefusedError) else {}
        write_result(reason=visible(failure.sentence, keep="\n"), **page)
        sys.exit(failure.exit_code)


def _print_error(message: str) -> None:
    """Write an error to stderr with control characters escaped."""
    _stderr.print(message, soft_wrap=True)


def _print_output(output: Path | None, row_count: int) -> None:
    if output is not None:
        _stderr.print(
            f"{row_count} {'row is' if row_count == 1 else 'rows are'} in {output}.",
            soft_wrap=True,
        )


def _day(cluster: str, ds: date, exports: str, warehouse: str, settings: Path | None) -> Day:
    place = Warehouse.at(warehouse)
    length = len(path_segment(cluster))
    if length > MOST_SEGMENT_CHARACTERS and not is_object_store(place.root):
        raise InvalidLocationError(
            f"The name of cluster {cluster!r} is {length} characters long in the names of files and folders, and there is room for "
            f"{MOST_SEGMENT_CHARACTERS} in a warehouse on a disk: collect or import the cluster under a shorter name."
        )
    return Day(cluster, ds, location_of(exports), place, settings)


def _folder(exports: str) -> Path:
    """Return the exports' folder, for commands that need a disk."""
    place = location_of(exports)
    if isinstance(place, Path):
        return place
    raise typer.BadParameter(
        f"{place} is in an object store: import into a folder and `ledger exports upload` the result there; old exports are "
        "removed by the bucket's own lifecycle rules."
    )


def _options_in_effect(context: typer.Context) -> str:
    """Return the locations and the settings file of the running command as options to type; empty if all are the defaults.

    Options from environment variables are included: a printed command may be run in another shell.
    """
    sources = {name: context.get_parameter_source(name) for name in ("exports", "warehouse", "settings")}
    return "".join(
        f" --{name} {quote(str(context.params[name]))}"
        for name, source in sources.items()
        if source is not None and source.name != "DEFAULT"
    )


def _warn_of_outdated_days(
    context: typer.Context,
    warehouse: Warehouse,
    cluster: str,
    exports: Location | None = None,
    hint: str = "",
) -> None:
    """Warn about outdated published days, with the command that computes them again; `hint` is about its other options."""
    from rebalance_ledger.pipeline.outdated import stale_days

    days = stale_days(warehouse, cluster, exports)
    if days:
        named = ", ".join(f"{day.ds} ({', '.join(day.reasons)})" for day in days[:_NAMED_DAYS])
        more = f" and {len(days) - _NAMED_DAYS} more" if len(days) > _NAMED_DAYS else ""
        _stderr.print(
            f"warning: outdated comparisons with the baseline: {named}{more}; "
            f"`ledger backfill --cluster {quote(cluster)} --from {days[0].ds} --to {days[-1].ds} --skip-published{_options_in_effect(context)}` "
            f"computes them again{hint}.",
            soft_wrap=True,
        )


def _build(day: Day, log: Path) -> None:
    from rebalance_ledger.cli.build_progress import build_progress
    from rebalance_ledger.cli.interruption import ended_at_once
    from rebalance_ledger.progress import LOGGER, RECORD_COUNT

    with (
        ended_at_once(None, "", is_line_open=True),
        build_progress(log, LOGGER, RECORD_COUNT),
    ):
        steps.build(day)


def _print_manifest(done: str, directory: Location, manifest: Manifest) -> None:
    lines = sum(file.line_count or 0 for file in manifest.files)
    errors = sum(file.error_count or 0 for file in manifest.files)
    echo(
        f"{directory} is {done}: cluster {manifest.cluster}, {manifest.ds}, {counted(len(manifest.files), 'file')}, "
        f"{counted(lines, 'line')} ({counted(errors, 'error')}), {counted(len(manifest.attachments), 'attachment')} that no table reads."
    )


if __name__ == "__main__":
    main()
