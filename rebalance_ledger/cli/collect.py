"""`ledger exports collect` and `ledger exports prune`: options and output.

Belongs here: the sources of addresses, credentials and jars, progress, and the final message. Does not belong here: the requests
(`rebalance_ledger.collectors.live`), and the choice of outdated exports (`rebalance_ledger.exports.retention`).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from rebalance_ledger.collectors.admin import Credentials, admin_client
from rebalance_ledger.collectors.earlier_answers import EarlierAnswers
from rebalance_ledger.collectors.errors import CollectError
from rebalance_ledger.collectors.live import Collected, collect
from rebalance_ledger.collectors.offset_file_drop import land
from rebalance_ledger.collectors.silence_causes import silence_cause
from rebalance_ledger.exports.landing import bears_manifest, bring
from rebalance_ledger.exports.landing import land as land_in_object_store
from rebalance_ledger.exports.manifest import (
    MANIFEST_NAME,
    QUALITIES,
    ExportError,
    export_directory,
    load_manifest,
)
from rebalance_ledger.exports.redaction import redact_text
from rebalance_ledger.exports.retention import outdated_exports, remove_export
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.exports.writer import ExportWriter
from rebalance_ledger.pipeline.outdated import published_days
from rebalance_ledger.pipeline.steps import SetUpMissingError
from rebalance_ledger.settings import CollectSettings, SettingsError, is_host_and_port, load_settings
from rebalance_ledger.storage.location import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.progress import TaskID

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.layout import Warehouse

_ROOT: Final = Path(__file__).resolve().parents[2]
_JARS: Final = _ROOT / ".local" / "collector"
_TELL_EVERY_S: Final = 10.0

_ACCESS_KEY: Final = "LEDGER_ROCKETMQ_ACCESS_KEY"
_SECRET_KEY: Final = "LEDGER_ROCKETMQ_SECRET_KEY"  # noqa: S105  # a variable's name
_TLS_KEY_PASSWORD: Final = "LEDGER_ROCKETMQ_TLS_KEY_PASSWORD"  # noqa: S105  # likewise


def collect_export(
    cluster: str,
    *,
    exports: Location,
    settings_file: Path | None,
    ds: date | None,
    nameservers: Sequence[str],
    credentials_from: Literal["env", "stdin"] | None,
    offset_files: Path | None,
    console: Console,
) -> tuple[Location, Manifest]:
    """Collect today's export of a live cluster.

    Args:
        cluster: Name of the cluster.
        exports: Location of all exports. For an object store, the export is written to a temporary folder and uploaded when it is sealed;
            the folder remains if the upload fails.
        settings_file: File with the cluster's `collect` settings; None for the defaults.
        ds: The day, which must be today (UTC); this is the default.
        nameservers: Addresses; if empty, those of the settings.
        credentials_from: The environment or standard input, never the command line, which all users of the machine can see; None for a
            cluster without access control.
        offset_files: Drop folder of broadcasting clients' offset files; None for that of the settings, if any.
        console: Console for progress and warnings.

    Returns:
        The location of the export, and its manifest, which has its quality. If today's export exists and is degraded or failed, this is a
        further attempt that repeats the failed requests.

    Raises:
        AdminClientError: RocketMQ's admin client does not run.
        CollectError: The options do not allow a collection.
        ExportError: The export already exists, or cannot be written.
        SettingsError: The settings are invalid, or have no name server.
        SetUpMissingError: There is no Java, or the admin client's jars cannot be installed.
        UnreachableError: No name server answers.
        UnusableConnectionError: Credentials or certificates are refused.
    """
    settings = _settings(cluster, settings_file)
    addresses = _addresses(cluster, settings, nameservers)
    credentials = _credentials(credentials_from)
    today = datetime.now(UTC).date()
    if ds is not None and ds != today:
        raise CollectError(
            f"{ds} is not today ({today}, UTC), and a live cluster has only its current state; use the export that was collected "
            "on that day."
        )
    if offset_files is not None and not offset_files.is_dir():
        raise CollectError(f"{offset_files} is not a folder; give the one that has a folder for each host.")
    # A missing folder of the settings is a mount that failed: unknown, and no reason to lose the rest of the day.
    drop = offset_files or (Path(settings.offset_files) if settings.offset_files else None)
    directory = export_directory(exports, cluster, today)
    earlier_manifest = _replaceable(directory, cluster, today)
    jars, java = collector_jars(), java_program()
    # py4j would print a traceback through the root logger where we say a sentence.
    logging.getLogger().addHandler(logging.NullHandler())
    started_at = datetime.now(UTC)
    with _folder_to_grow_in(exports) as folder:
        if isinstance(directory, ObjectPath) and earlier_manifest is not None:
            bring(directory, earlier_manifest, export_directory(folder, cluster, today))
        with (
            ExportWriter(
                folder,
                cluster,
                today,
                replaces=earlier_manifest,
                known_secrets=(credentials.secret_key, credentials.tls_key_password),
            ) as writer,
            admin_client(
                jars,
                java,
                addresses,
                credentials=credentials,
                tls=settings.tls,
                connect_timeout_ms=settings.connect_timeout_ms,
            ) as client,
            _progress(console) as progress,
        ):
            earlier = None
            if earlier_manifest is not None:
                earlier = EarlierAnswers(
                    writer.directory,
                    earlier_manifest,
                    asks_everything=earlier_manifest.quality == QUALITIES[-1],
                )
                console.print(
                    f"The export of today is {earlier_manifest.quality}; this is attempt {earlier.attempt_count + 1}.",
                    soft_wrap=True,
                )
            remarks = _offset_files(writer, drop, settings, earlier, progress)
            collected = collect(
                client,
                writer,
                addresses,
                settings,
                ds=today,
                progress=progress,
                earlier=earlier,
                cause_of_silence=lambda address: silence_cause(address, settings.tls),
            )
            collected.remarks[:0] = remarks
            is_better = _end_attempt(writer, collected, settings, earlier, earlier_manifest, started_at)
        _tell(collected, console)
        if not is_better and earlier_manifest is not None:
            console.print(
                "This attempt brought no answer that the export lacks; it stays as it was.", soft_wrap=True
            )
            return directory, earlier_manifest
        if writer.manifest is None:
            raise AssertionError("a writer that ends well has sealed")
        if isinstance(exports, ObjectPath):
            return _landed(writer.directory, exports, earlier_manifest)
    return writer.directory, writer.manifest


def _replaceable(directory: Location, cluster: str, today: date) -> Manifest | None:
    """Return the manifest of today's export if a further attempt may replace it, or None if there is no export.

    Raises:
        ExportError: There is an export that must not be replaced, or that has changed since it was sealed.
    """
    if isinstance(directory, ObjectPath):
        if not bears_manifest(directory):
            return None
    elif not os.path.lexists(directory):
        return None
    elif not (directory / MANIFEST_NAME).exists():
        problem = f"{directory} is there without a seal; seal it with `ledger exports seal`, or remove it"
        raise ExportError(f"{directory} is not written", [problem])
    manifest = verify(directory, cluster=cluster, ds=today)
    if manifest.quality in {None, QUALITIES[0]}:
        problem = (
            f"{directory} is already an export, and an export does not change; take another day or folder"
        )
        raise ExportError(f"{directory} is not written", [problem])
    return manifest


def _offset_files(
    writer: ExportWriter,
    drop: Path | None,
    settings: CollectSettings,
    earlier: EarlierAnswers | None,
    progress: _Bar | _Lines,
) -> tuple[str, ...]:
    """Land the offset files, or keep those of an earlier attempt if its last offsets of queues are kept too."""
    if earlier is not None and not earlier.asks_everything:
        for line in earlier.lines_of("offset_file"):
            writer.copy("offset_file", line, earlier.directory, attempt=1)
        return ()
    if drop is None:
        return ()
    # Before the brokers tell their last offsets: a file that was read later could be ahead of them.
    progress.begin("trees of offset files", 1)
    remarks = land(writer, drop, limit_bytes=settings.offset_file_limit_bytes).remarks
    progress.advance()
    return remarks


def _end_attempt(  # all that an attempt is
    writer: ExportWriter,
    collected: Collected,
    settings: CollectSettings,
    earlier: EarlierAnswers | None,
    earlier_manifest: Manifest | None,
    started_at: datetime,
) -> bool:
    """Complete the export with the answers of earlier attempts, and assess its quality.

    Returns:
        Whether it is better than the existing export; otherwise the existing one is kept.
    """
    if earlier is not None:
        for line, text in earlier.rest():
            collected.tally.add(line.question, line.answer)
            writer.copy(line.question.kind, text, earlier.directory, attempt=1)
        for kind in ("capture_attempt", "event"):
            for text in earlier.lines_of(kind):
                writer.copy(kind, text, earlier.directory, attempt=1)
    quality, ended_at = collected.tally.verdict(settings.quality), datetime.now(UTC)
    document = {
        "started_at": _instant_text(started_at),
        "ended_at": _instant_text(ended_at),
        "quality": quality,
        **collected.tally.document(),
    }
    writer.payload(
        "capture_attempt",
        ended_at,
        json.dumps(document, ensure_ascii=False),
        attempt=1 if earlier is None else earlier.attempt_count + 1,
    )
    if earlier_manifest is None:
        return True
    before = earlier_manifest.attempts[-1]
    is_better = (QUALITIES.index(quality), collected.tally.failed_count) < (
        QUALITIES.index(before.quality),
        before.failed_count,
    )
    if not is_better:
        writer.abandon()
    return is_better


def _instant_text(instant: datetime) -> str:
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@contextmanager
def _folder_to_grow_in(exports: Location) -> Iterator[Path]:
    """Yield the folder of the exports, or a temporary one for an object store, which has no atomic rename."""
    if isinstance(exports, Path):
        yield exports
        return
    folder = Path(tempfile.mkdtemp(prefix="ledger-export-"))
    try:
        yield folder
    except _NotLandedError:
        raise
    except BaseException:
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


class _NotLandedError(ExportError):
    """An export is sealed on this machine, but was not uploaded to the object store."""


def _landed(directory: Path, exports: ObjectPath, replaces: Manifest | None) -> tuple[ObjectPath, Manifest]:
    """Land the export of a temporary folder.

    Raises:
        _NotLandedError: It cannot be landed; what was collected is not lost.
    """
    try:
        return land_in_object_store(directory, exports, replaces=replaces)
    except ExportError as error:
        kept = f"{directory} has it, sealed: land it with `ledger exports upload {directory} --exports {exports}`, and remove the folder"
        raise _NotLandedError(f"The export is not uploaded to {exports}", [*error.problems, kept]) from error


def prune(
    exports: Path,
    *,
    settings_file: Path | None,
    cluster: str | None,
    keep_days: int | None,
    published_in: Warehouse | None,
    is_applied: bool,
) -> Iterator[str]:
    """Remove exports past their retention, or only list them.

    Args:
        exports: The folder of all exports.
        settings_file: File with the retention of each cluster; required without `keep_days`.
        cluster: Name of the cluster; None for all clusters of the settings.
        keep_days: Retention in days, instead of that of the settings.
        published_in: Warehouse in which a day must be published before its export is removed; None to remove exports of other days too.
        is_applied: Whether to remove the exports.

    Yields:
        A sentence for each export.

    Raises:
        ExportError: An export cannot be removed, or the exports cannot be listed.
        QueryError: The warehouse cannot be read.
        SettingsError: The settings are invalid, or have no retention for any cluster.
    """
    kept = _kept_days(settings_file, cluster, keep_days)
    today = datetime.now(UTC).date()
    for name, days in sorted(kept.items()):
        outdated = outdated_exports(exports, name, keep_days=days, today=today)
        sources = published_days(published_in, name).sources if published_in and outdated else {}
        for directory in outdated:
            if published_in and not _is_published(directory, sources):
                yield f"{directory} is kept: {published_in.root} has not published its day from it. `--unpublished` removes such exports too."
                continue
            if is_applied:
                remove_export(directory)
            yield f"{directory} {'is removed' if is_applied else 'would be removed; nothing is without --apply'}."
        if not outdated:
            yield f"{name} has no export of {days} {'day' if days == 1 else 'days'} ago or earlier."


def _is_published(export: Path, sources: Mapping[date, tuple[str, str, str]]) -> bool:
    """Return whether a day is published from an export.

    Args:
        export: The export's folder, named by its day.
        sources: See `PublishedDays.sources`.
    """
    try:
        manifest = load_manifest(export)
    except ExportError:
        return False
    published_from, *_ = sources.get(date.fromisoformat(export.name), ("",))
    return manifest.sha256 == published_from


def collector_jars() -> Path:
    """Return the folder with the admin client's jars: `LEDGER_COLLECTOR_JARS`, or that of the set-up, created if necessary.

    Raises:
        SetUpMissingError: The folder does not exist and cannot be created.
    """
    given = os.environ.get("LEDGER_COLLECTOR_JARS")
    if given:
        if not Path(given).is_dir():
            raise SetUpMissingError(
                f"LEDGER_COLLECTOR_JARS={given} is not a folder; set it to a copy of a checkout's .local/collector."
            )
        return Path(given).resolve()
    made = subprocess.run(
        [sys.executable, "-m", "setup.collector"], cwd=_ROOT, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False
    )  # fmt: skip
    if made.returncode != 0:
        output = " ".join(made.stderr.split()) or "It output nothing."
        raise SetUpMissingError(
            f"{output} Or set LEDGER_COLLECTOR_JARS to a copy of another checkout's .local/collector."
        )
    return _JARS


def java_program() -> str:
    """Return the path of `java`: that of `JAVA_HOME`, of the set-up, or the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    note = _ROOT / ".local" / "java-home"
    if not home and note.is_file():
        home = note.read_text(encoding="utf-8").strip()
    return str(Path(home) / "bin" / "java") if home else "java"


def _settings(cluster: str, file: Path | None) -> CollectSettings:
    if file is None:
        return CollectSettings()
    configured = load_settings(file).clusters.get(cluster)
    return (configured.collect if configured else None) or CollectSettings()


def _addresses(cluster: str, settings: CollectSettings, given: Sequence[str]) -> list[str]:
    addresses = list(dict.fromkeys(given)) or settings.nameservers
    for address in addresses:
        if not is_host_and_port(address):
            raise CollectError(f"{address!r} is no name server's address; give host:port.")
    if not addresses:
        raise SettingsError(
            f"No name server of {cluster} is known; give --nameserver, or put them below clusters.{cluster}.collect."
            "nameservers of the settings file."
        )
    return addresses


def _credentials(source: Literal["env", "stdin"] | None) -> Credentials:
    if source is None:
        return Credentials()
    if source == "env":
        # Taken out, so that no program that is started from here inherits them.
        access_key, secret_key, password = (
            os.environ.pop(name, "") for name in (_ACCESS_KEY, _SECRET_KEY, _TLS_KEY_PASSWORD)
        )
        what = f"{_ACCESS_KEY} and {_SECRET_KEY}, or {_TLS_KEY_PASSWORD},"
    else:
        try:
            given = json.loads(sys.stdin.readline())
            access_key, secret_key, password = (
                str(given.get(name) or "") for name in ("access_key", "secret_key", "tls_key_password")
            )
        except (ValueError, AttributeError):
            # What was read stays out of the sentence.
            access_key = secret_key = password = ""
        what = 'a line {"access_key": …, "secret_key": …} on standard input'
    if bool(access_key) != bool(secret_key) or not (access_key or password):
        raise CollectError(f"Credentials from {source} are not there; {what} must be set, and not empty.")
    return Credentials(access_key, secret_key, password)


def _kept_days(file: Path | None, cluster: str | None, keep_days: int | None) -> dict[str, int]:
    if cluster is not None and keep_days is not None:
        return {cluster: keep_days}
    clusters = load_settings(file).clusters if file else {}
    kept = {
        name: keep_days or settings.collect.retention.keep_days
        for name, settings in clusters.items()
        if (cluster is None or name == cluster) and settings.collect and settings.collect.retention
    }
    if not kept:
        raise SettingsError(
            f"How long exports of {cluster or 'any cluster'} are kept is not known; give --cluster and --keep-days, or put "
            "collect.retention.keep_days into the settings file."
        )
    return kept


def _tell(collected: Collected, console: Console) -> None:
    for address, reason in sorted(collected.silent.items()):
        console.print(f"warning: {address} was {redact_text(reason)}", soft_wrap=True)
    for remark in collected.remarks:
        console.print(f"warning: {redact_text(remark)}", soft_wrap=True)


@contextmanager
def _progress(console: Console) -> Iterator[_Bar | _Lines]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console) as bars:
        yield _Bar(bars)


class _Bar:
    """Progress on a terminal: a bar for each part."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def begin(self, what: str, total: int) -> None:
        self._task = self._bars.add_task(what, total=total)

    def advance(self) -> None:
        if self._task is not None:
            self._bars.advance(self._task)


class _Lines:
    """Progress in a log: a line at the start and end of each part, and one every ten seconds in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._what, self._done, self._total, self._reported_at = "", 0, 0, 0.0

    def begin(self, what: str, total: int) -> None:
        with self._lock:
            self._what, self._done, self._total = what, 0, total
            if total:
                self._tell()

    def advance(self) -> None:
        with self._lock:
            self._done += 1
            if self._done == self._total or time.monotonic() - self._reported_at >= _TELL_EVERY_S:
                self._tell()

    def _tell(self) -> None:
        self._reported_at = time.monotonic()
        self._console.print(f"{self._what}: {self._done} of {self._total}")
