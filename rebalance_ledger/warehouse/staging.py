"""Stages of computed days: locations, completion, and the verdict of the gate.

Each computation of a day is an attempt with its own folder, so that concurrent or abandoned computations never write into each other's
files:

    <warehouse>/staging/<cluster>/<ds>/<attempt>/          one computation's rows, its `build.json` written last
    <warehouse>/staging/<cluster>/<ds>/newest.json         the attempt that was completed last
    <warehouse>/staging/<cluster>/<ds>/judged.json         the attempt that the gate judged last
    <warehouse>/staging/<cluster>/<ds>/reserved            locked by the application that will stage the day, see `reserved`

Both records are replaced atomically. The judged attempt is published, but only if the day was not computed from another input since.

Belongs here: attempts, their records and verdicts. Does not belong here: writing rows (`spark_jobs.staging`), and publishing them.
"""

from __future__ import annotations

import fcntl
import re
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rebalance_ledger.storage.engines import file_system_of, folder_names
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.tables import GATE_RESULT, QUARANTINED_GROUP
from rebalance_ledger.tables.vocabulary import GateVerdict
from rebalance_ledger.warehouse.content import Content
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.inventory import StagedTable, refuse_changed
from rebalance_ledger.warehouse.records import (
    BUILD_AGAIN,
    GATE_AGAIN,
    RecordError,
    decoding,
    exists,
    read_record,
    write_record,
)
from rebalance_ledger.warehouse.staged_files import StagedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse

_NEWEST: Final = "newest.json"
_JUDGED: Final = "judged.json"
_RESERVED: Final = "reserved"
_ATTEMPT_NAME: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Build:
    """The recorded input of a stage; see the columns of `gold.publication`."""

    run_id: str
    manifest_sha256: str
    settings_sha256: str
    code_version: str
    baseline_ds: date | None = None
    compared_content: list[str] | None = None
    compared_exports: list[str] | None = None


@dataclass(frozen=True, slots=True)
class JudgedStage:
    """A complete stage with the verdict of the gate.

    Attributes:
        stage: Location of the rows.
        build: The recorded input.
        verdict: The verdict of the gate.
        results: Rows of `gate_result`, without cluster and ds.
        quarantined: Rows of `quarantined_group`, without cluster and ds: the groups without which the stage is accepted.
        inventory: The judged files.
    """

    stage: StagingArea
    build: Build
    verdict: GateVerdict
    results: list[dict[str, Any]]
    quarantined: list[dict[str, Any]]
    inventory: tuple[StagedTable, ...]

    def files(self, table: Table) -> StagedFiles:
        """Return the judged files of a table that have rows.

        Raises:
            StagingError: The inventory does not have the table, or not its content.
        """
        for staged in self.inventory:
            if staged.name == table.qualified_name and staged.content_hash is not None:
                folder = self.stage.table(table)
                return StagedFiles(
                    tuple(f"{folder}/{file.name}" for file in staged.files if file.row_count),
                    Content(staged.row_count, staged.content_hash),
                )
        raise StagingError(
            f"The inventory of the staging area at {self.stage.root} lacks the content of {table.qualified_name}: another release computed it, "
            f"or it has rows of another day; {BUILD_AGAIN}."
        )


@contextmanager
def reserved(warehouse: Warehouse, cluster: str, ds: date, *, is_waiting: bool = False) -> Iterator[bool]:
    """Reserve a day for the block among applications that stage several days, so that each day is computed once.

    A process that computes a single day makes no reservation. The reservations of a process end with it.

    Args:
        warehouse: The warehouse.
        cluster: The day's cluster.
        ds: The day.
        is_waiting: Whether to wait until the application that has reserved the day has ended.

    Yields:
        Whether the day is reserved; always true in an object store, which has no locks.
    """
    place = warehouse.attempts(cluster, ds)
    if is_object_store(place):
        yield True
        return
    Path(place).mkdir(parents=True, exist_ok=True)
    with Path(place, _RESERVED).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if is_waiting else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def attempt(warehouse: Warehouse, cluster: str, ds: date) -> Iterator[StagingArea]:
    """Yield a stage for one computation of a day, which no other computation uses.

    On a local disk, the attempt is locked until the block or the process ends; leftovers of dead processes are removed first. In an object
    store, a dead writer cannot be distinguished from a slow one, so maintenance removes stages by age.
    """
    place = warehouse.attempts(cluster, ds)
    stage = warehouse.stage(cluster, ds, secrets.token_hex(8))
    if is_object_store(place):
        yield stage
        return
    folder = Path(stage.root)
    folder.mkdir(parents=True)
    with Path(stage.lock).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in folder_names(*file_system_of(place)):
            _remove_if_dead(warehouse.stage(cluster, ds, name))
        yield stage


def finish(
    warehouse: Warehouse,
    cluster: str,
    ds: date,
    stage: StagingArea,
    build: Build,
    staged: Sequence[StagedTable],
) -> None:
    """Complete a stage whose rows are written, and make it the day's newest.

    Args:
        warehouse: Warehouse with the stage.
        cluster: Cluster of the day.
        ds: The day.
        stage: The stage.
        build: The input of the computation.
        staged: Files of the stage (`inventory_of_stage`).
    """
    write_record(stage.inventory, {"tables": [table.document() for table in staged]})
    write_record(stage.build, asdict(build))
    write_record(f"{warehouse.attempts(cluster, ds)}/{_NEWEST}", {"attempt": stage.attempt})


def newest_stage(warehouse: Warehouse, cluster: str, ds: date) -> StagingArea:
    """Return the stage that was completed last.

    Raises:
        StagingError: No computation of the day was completed.
    """
    pointer_target = _pointed_to(warehouse, cluster, ds, _NEWEST)
    if pointer_target is None:
        raise StagingError(
            f"There is no whole stage at {warehouse.attempts(cluster, ds)}: run the build of this day first."
        )
    return pointer_target


def read_build(stage: StagingArea) -> Build:
    """Read the recorded input of a complete stage.

    Raises:
        StagingError: The stage is incomplete.
    """
    record = read_record(stage.build, BUILD_AGAIN)
    if record is None:
        raise StagingError(f"There is no whole stage at {stage.root}: run the build of this day first.")
    with decoding(stage.build, BUILD_AGAIN):
        return Build(
            run_id=record.text("run_id"),
            manifest_sha256=record.text("manifest_sha256"),
            settings_sha256=record.text("settings_sha256"),
            code_version=record.text("code_version"),
            baseline_ds=record.day_or_none("baseline_ds"),
            compared_content=record.texts_or_none("compared_content"),
            compared_exports=record.texts_or_none("compared_exports"),
        )


def check_inventory(stage: StagingArea) -> tuple[StagedTable, ...]:
    """Compare the files of a complete stage with the record of the build, and return the record.

    Raises:
        StagingError: The files differ.
    """
    inventory = _read_inventory(stage)
    refuse_changed(stage, inventory)
    return inventory


def _read_inventory(stage: StagingArea) -> tuple[StagedTable, ...]:
    record = read_record(stage.inventory, BUILD_AGAIN)
    if record is None:
        raise StagingError(
            f"The staging area at {stage.root} has no inventory of its files, so another release computed it: run the build again."
        )
    with decoding(stage.inventory, BUILD_AGAIN):
        return tuple(StagedTable.of(table) for table in record.records("tables"))


def write_verdict(
    warehouse: Warehouse,
    cluster: str,
    ds: date,
    stage: StagingArea,
    verdict: str,
    results: list[dict[str, Any]],
    quarantined: Sequence[dict[str, Any]] = (),
) -> None:
    """Record the gate's verdict next to the evaluated rows, with their files."""
    document = {
        "verdict": verdict,
        "results": results,
        "quarantined": list(quarantined),
        "inventory": [table.document() for table in _read_inventory(stage)],
    }
    write_record(stage.gate_verdict, document)
    write_record(f"{warehouse.attempts(cluster, ds)}/{_JUDGED}", {"attempt": stage.attempt})


def accepted_stage(warehouse: Warehouse, cluster: str, ds: date) -> JudgedStage:
    """Return the stage that may be published.

    Raises:
        StagingError: There is no complete stage, the gate has not judged it or has refused it, the day has since been computed from
            another input, or the files have changed since the gate judged them.
    """
    newest = newest_stage(warehouse, cluster, ds)
    judged = judged_stage(warehouse, cluster, ds)
    if judged is None:
        raise StagingError(f"The gate has not judged the staging area at {newest.root}: run the gate first.")
    # Another attempt of the same input has the same rows, in any order.
    if judged.build.run_id != read_build(newest).run_id:
        raise StagingError(
            f"The day was computed again, at {newest.root}, after the gate judged it: run the gate again."
        )
    if judged.verdict is GateVerdict.REFUSED:
        raise StagingError(
            f"The gate refused the staging area at {judged.stage.root}: see quarantine.gate_result."
        )
    if not judged.inventory:
        raise StagingError(
            f"The verdict on the staging area at {judged.stage.root} names no files: run the gate again."
        )
    refuse_changed(judged.stage, judged.inventory)
    return judged


def judged_stage(warehouse: Warehouse, cluster: str, ds: date) -> JudgedStage | None:
    """Return the stage that the gate judged last, accepted or refused; None if there is none."""
    stage = _pointed_to(warehouse, cluster, ds, _JUDGED)
    record = read_record(stage.gate_verdict, GATE_AGAIN) if stage else None
    if stage is None or record is None:
        return None
    with decoding(stage.gate_verdict, GATE_AGAIN):
        verdict = _verdict(record.text("verdict"))
        results = record.rows("results", GATE_RESULT)
        # Releases without quarantine wrote no list of groups; older ones wrote no inventory.
        quarantined = record.rows("quarantined", QUARANTINED_GROUP) if "quarantined" in record else []
        tables = record.records("inventory") if "inventory" in record else []
        inventory = tuple(map(StagedTable.of, tables))
    return JudgedStage(stage, read_build(stage), verdict, results, quarantined, inventory)


def _verdict(text: str) -> GateVerdict:
    try:
        return GateVerdict(text)
    except ValueError:
        raise RecordError(f"'verdict' is none of {', '.join(GateVerdict)}") from None


def is_being_computed(warehouse: Warehouse, cluster: str, ds: date) -> bool:
    """Return whether a process on this machine computes the day now; always false in an object store."""
    return _is_being_computed(warehouse.attempts(cluster, ds))


def remove_superseded(warehouse: Warehouse, cluster: str, ds: date) -> None:
    """Remove the day's complete stages except the newest and the judged one; running computations are not affected."""
    place = warehouse.attempts(cluster, ds)
    kept_attempts = {
        stage.attempt
        for pointer in (_NEWEST, _JUDGED)
        if (stage := _pointed_to(warehouse, cluster, ds, pointer)) is not None
    }
    for name in folder_names(*file_system_of(place)):
        stage = warehouse.stage(cluster, ds, name)
        if name not in kept_attempts and exists(stage.build):
            file_system, path = file_system_of(stage.root)
            file_system.delete_dir(path)


def remove_attempts_of_day(place: str) -> bool:
    """Remove all attempts of a day; return false and remove nothing if one of them is running.

    In an object store this cannot be determined, so call this function only for days without recent writes.
    """
    if _is_being_computed(place):
        return False
    file_system, path = file_system_of(place)
    file_system.delete_dir(path)
    return True


def _pointed_to(warehouse: Warehouse, cluster: str, ds: date, pointer: str) -> StagingArea | None:
    """Return the complete stage that a pointer names; None if there is none."""
    place = f"{warehouse.attempts(cluster, ds)}/{pointer}"
    remedy = GATE_AGAIN if pointer == _JUDGED else BUILD_AGAIN
    record = read_record(place, remedy)
    if record is None:
        return None
    with decoding(place, remedy):
        attempt_name = record.text("attempt")
        if not _ATTEMPT_NAME.fullmatch(attempt_name):
            raise RecordError("'attempt' is not the name of a folder beside it")
    stage = warehouse.stage(cluster, ds, attempt_name)
    return stage if exists(stage.build) else None


def _is_being_computed(place: str) -> bool:
    return not is_object_store(place) and any(
        _is_alive(Path(place, name, "lock")) for name in folder_names(*file_system_of(place))
    )


def _remove_if_dead(stage: StagingArea) -> None:
    """Remove an incomplete attempt that no running process has locked."""
    if Path(stage.build).exists():
        return
    if not _is_alive(Path(stage.lock)):
        shutil.rmtree(stage.root, ignore_errors=True)  # another process may be removing it too


def _is_alive(lock: Path) -> bool:
    """Return whether a process holds the lock of an attempt."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
