"""Complete the stage of a computed day, and find out whether a day already has a complete stage. No Spark.

A day may be computed together with its baseline, before the baseline is published. Its stage is completed if the published baseline has
the rows with which the day was compared, because the gate may refuse the baseline or quarantine a group. A stage may also be completed
ahead, with the run id that is valid if the baseline is published with these rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rebalance_ledger.exports.catalog import compared_exports
from rebalance_ledger.exports.manifest import export_directory, load_manifest
from rebalance_ledger.exports.sealing import check_unchanged
from rebalance_ledger.tables import QUARANTINED_GROUP
from rebalance_ledger.warehouse.baseline import COMPARED_TABLES, newest_earlier_day, write_baseline
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.identity import RunIdentity, code_version
from rebalance_ledger.warehouse.inventory import inventory_of_stage
from rebalance_ledger.warehouse.staging import check_inventory, finish, newest_stage, read_build

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from rebalance_ledger.exports.catalog import EarlierExport
    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.settings import ClusterSettings
    from rebalance_ledger.storage.location import Location
    from rebalance_ledger.warehouse.baseline import EarlierDay
    from rebalance_ledger.warehouse.inventory import StagedTable
    from rebalance_ledger.warehouse.layout import StagingArea, Warehouse
    from spark_jobs.silver.day_export import DayExport

_NO_ROWS = "0"
"""Content hash of a table without rows."""


class OtherBaselineError(Exception):
    """The newest earlier published day is not the baseline that the day was compared with; compute the day again."""


class StageResult(NamedTuple):
    """Result of a build with a complete stage.

    Attributes:
        run_id: See `RunIdentity`.
        row_counts: Qualified name of a table -> its rows.
    """

    run_id: str
    row_counts: dict[str, int]

    @classmethod
    def of(cls, run_id: str, inventory: Iterable[StagedTable]) -> StageResult:
        """Return the result of a stage with these tables."""
        return cls(run_id, {table.name: table.row_count for table in inventory})


def identity_of(
    manifest: Manifest,
    settings_sha256: str,
    looked_at: Iterable[EarlierExport] | None,
    baseline: EarlierDay | StagedDay | None,
) -> RunIdentity:
    """Return the identity of a run: the day's input and the code version.

    Args:
        manifest: Manifest of the day's export.
        settings_sha256: SHA-256 of the cluster's settings.
        looked_at: Earlier exports that are searched for offset files; None for a day without offset files.
        baseline: The baseline, published or assumed to be published with these rows; None if there is none.
    """
    return RunIdentity(
        manifest.sha256,
        settings_sha256,
        code_version(),
        None if looked_at is None else tuple(export.reference for export in looked_at),
        baseline.ds if baseline else None,
        baseline.content if baseline else (),
    )


class StagedDay:
    """A day with all rows written, whose stage is not complete yet."""

    def __init__(
        self,
        warehouse: Warehouse,
        stage: StagingArea,
        export: DayExport,
        *,
        settings_sha256: str,
        looked_at: tuple[EarlierExport, ...] | None,
        baseline: EarlierDay | StagedDay | None,
    ) -> None:
        """Record the input of the day.

        Args:
            warehouse: The warehouse of the stage.
            stage: The stage.
            export: The day's export.
            settings_sha256: SHA-256 of the cluster's settings.
            looked_at: Earlier exports that are searched for offset files; None for a day without offset files.
            baseline: The baseline, published or computed together with the day; None if there is none.
        """
        self.stage = stage
        self.export = export
        self.baseline = baseline
        self.settings_sha256 = settings_sha256
        self._warehouse = warehouse
        self._looked_at = looked_at

    @cached_property
    def inventory(self) -> tuple[StagedTable, ...]:
        """The files of the stage."""
        return inventory_of_stage(self.stage, ClusterDay(*self.export.key))

    def finish(self) -> StageResult:
        """Complete the stage and make it the day's newest.

        Raises:
            ExportError: The export has changed since it was sealed.
            OtherBaselineError: The newest earlier published day is not the compared one, or has other rows.
            QueryError: The earlier published day cannot be read.
        """
        baseline = self._published_baseline()
        if baseline:
            write_baseline(self._warehouse, self.stage, baseline)
        return self._finish(baseline)

    def finish_ahead(self) -> StageResult:
        """Complete the stage, assuming that the baseline will be published with the compared rows.

        The stage has no record of the published baseline, which the gate requires. The build that uses the stage writes the record.

        Raises:
            ExportError: The export has changed since it was sealed.
        """
        return self._finish(self.baseline) if isinstance(self.baseline, StagedDay) else self.finish()

    def _finish(self, baseline: EarlierDay | StagedDay | None) -> StageResult:
        cluster, ds = self.export.key
        # If the export changed while it was read, the staged data is invalid.
        check_unchanged(self.export.directory, self.export.manifest)
        identity = identity_of(self.export.manifest, self.settings_sha256, self._looked_at, baseline)
        finish(self._warehouse, cluster, ds, self.stage, identity.build, self.inventory)
        return StageResult.of(identity.run_id, self.inventory)

    @property
    def ds(self) -> date:
        """The day."""
        return self.export.key[1]

    @property
    def content(self) -> tuple[str, ...]:
        """Return `EarlierDay.content` of this day if it is published without a quarantined group."""
        hashes = {table.name: table.content_hash for table in self.inventory} | {
            QUARANTINED_GROUP.qualified_name: _NO_ROWS
        }
        return tuple(f"{table.qualified_name}={hashes[table.qualified_name]}" for table in COMPARED_TABLES)

    def _published_baseline(self) -> EarlierDay | None:
        if not isinstance(self.baseline, StagedDay):
            return self.baseline
        published = newest_earlier_day(self._warehouse, *self.export.key, COMPARED_TABLES)
        if published is None or (published.ds, published.content) != (
            self.baseline.ds,
            self.baseline.content,
        ):
            raise OtherBaselineError
        return published


def staged_result(
    exports: Location, warehouse: Warehouse, settings: ClusterSettings, day: tuple[str, date]
) -> StageResult | None:
    """Return the result of the complete stage of a day with the current run id; None if there is none.

    Write the record of the published baseline to the stage, which may have been completed before the baseline was published.

    Raises:
        ExportError: The day has no sealed export.
        QueryError: The earlier published day cannot be read.
    """
    cluster, ds = day
    manifest = load_manifest(export_directory(exports, cluster, ds), cluster=cluster, ds=ds)
    before = newest_earlier_day(warehouse, *day, COMPARED_TABLES)
    staged = stage_of_run(warehouse, day, run_id_of(exports, settings, manifest, before))
    if staged is not None and before is not None:
        write_baseline(warehouse, newest_stage(warehouse, *day), before)
    return staged


def stage_of_run(warehouse: Warehouse, day: tuple[str, date], run_id: str) -> StageResult | None:
    """Return the result of the newest complete stage of a day if it has this run id; otherwise None."""
    try:
        stage = newest_stage(warehouse, *day)
        if read_build(stage).run_id != run_id:
            return None
        return StageResult.of(run_id, check_inventory(stage))
    except StagingError:
        return None


def run_id_of(
    exports: Location, settings: ClusterSettings, manifest: Manifest, before: EarlierDay | None
) -> str:
    """Return the run id of a build of the day with the current input and code."""
    return identity_of(manifest, settings.sha256, compared_exports(exports, manifest), before).run_id
