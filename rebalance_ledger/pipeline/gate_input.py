"""The input of the gate: the metrics of a staged day, with or without the groups that would cause its refusal.

Belongs here: finding the input of the day, combining the metrics of the stage and of the comparison with the baseline, and the choice of
quarantined groups. Does not belong here: expectations (`expectations`), and the effect of the verdict (`steps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expectations.suites import day_over_day
from rebalance_ledger.exports.catalog import EarlierExport, referenced_exports
from rebalance_ledger.exports.manifest import export_directory, load_manifest
from rebalance_ledger.exports.sealing import check_unchanged
from rebalance_ledger.gate.evaluation import evaluate, one_line
from rebalance_ledger.gate.policy import GatePolicy
from rebalance_ledger.gate.quarantine import blocking, group_names, groups_to_quarantine
from rebalance_ledger.pipeline.gate_metrics import Sources, gate_database_of, measure
from rebalance_ledger.warehouse.baseline import read_baseline
from rebalance_ledger.warehouse.day_comparison import compare
from rebalance_ledger.warehouse.errors import StagingError
from rebalance_ledger.warehouse.records import BUILD_AGAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import date

    from expectations.measurement import GateDatabase
    from rebalance_ledger.pipeline.day import Day
    from rebalance_ledger.settings import ClusterSettings, GateSettings
    from rebalance_ledger.warehouse.layout import StagingArea
    from rebalance_ledger.warehouse.staging import Build

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GateInput:
    """The input of one gate evaluation.

    Attributes:
        metrics: Rows of `expectations.measurement.METRIC_SCHEMA`.
        baseline_ds: The day that they are compared with; None without a baseline.
        quarantined: Rows with the own columns of `gold.quarantined_group`: the groups that the metrics exclude, and why.
        notes: Reasons, one sentence each, why no group is quarantined although the settings request it.
    """

    metrics: list[Row]
    baseline_ds: date | None
    quarantined: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()


def measured_day(day: Day, settings: ClusterSettings, stage: StagingArea, build: Build) -> GateInput:
    """Measure a staged day; if the settings allow quarantine and the day passes with it, without the quarantined groups.

    Args:
        day: The day.
        settings: The settings of its cluster.
        stage: Its stage, with the files that the build recorded.
        build: The recorded input of the stage.

    Raises:
        ExportError: An export is missing, or has changed since the build.
        QueryError: A published table cannot be read.
        StagingError: The settings have changed since the build, or files of the baseline are missing.
    """
    sources = sources_of(day, settings, stage, build)
    with gate_database_of(stage, sources) as database:
        measured = _measure_with_quarantine(day, settings.gate, stage, database)
    # If the export changed while it was read, the numbers are invalid.
    check_unchanged(sources.export.directory, sources.export.manifest)
    return measured


def sources_of(day: Day, settings: ClusterSettings, stage: StagingArea, build: Build) -> Sources:
    """Return the input of a stage.

    Raises:
        ExportError: An export is missing, or has been replaced.
        StagingError: The export or the settings have changed since the build, or files of the baseline are missing.
    """
    directory = export_directory(day.exports, day.cluster, day.ds)
    manifest = load_manifest(directory, cluster=day.cluster, ds=day.ds)
    for name, recorded, present in (
        (f"the export at {directory}", build.manifest_sha256, manifest.sha256),
        (f"the settings of {one_line(day.cluster)}", build.settings_sha256, settings.sha256),
    ):
        if recorded != present:
            raise StagingError(
                f"The staging area at {stage.root} does not fit {name}, now another: {BUILD_AGAIN}."
            )
    earlier = referenced_exports(day.exports, day.cluster, build.compared_exports or ())
    return Sources(
        EarlierExport(directory, manifest),
        [export for export in earlier if export.has_offset_files],
        read_baseline(day.warehouse, stage, build),
        settings,
    )


def _measure_with_quarantine(
    day: Day, settings: GateSettings, stage: StagingArea, database: GateDatabase
) -> GateInput:
    """Return the metrics of the whole day, or those without the groups that would cause its refusal.

    Groups are quarantined only if none of the metrics without them refuses the day.
    """
    policy = GatePolicy(settings, day.ds)

    def with_comparison(excluded_groups: Collection[str]) -> GateInput:
        of_day = measure(database, stage, excluded_groups)
        comparison = compare(
            day.warehouse,
            day.cluster,
            day.ds,
            stage,
            counted=day_over_day.COUNTED_TABLES,
            read=day_over_day.READ_TABLES,
            statement=day_over_day.STATEMENT,
            excluded_groups=excluded_groups,
        )
        if comparison is None:
            return GateInput(of_day, None)
        return GateInput(of_day + day_over_day.measures(comparison.rows), comparison.baseline_ds)

    whole = with_comparison(())
    if not settings.quarantine_groups:
        return whole
    quarantined = groups_to_quarantine(evaluate(whole.metrics, policy, baseline_ds=whole.baseline_ds))
    if quarantined is None:
        return _noted(
            whole,
            "no group is quarantined, because some failed expectations of this day do not belong to a group",
        )
    if not quarantined:
        return whole
    groups = group_names(quarantined)
    remaining = with_comparison(groups)
    broken = blocking(evaluate(remaining.metrics, policy, baseline_ds=remaining.baseline_ds))
    if broken:
        failed = ", ".join(evaluation.expectation.expectation_id for evaluation in broken)
        return _noted(
            whole,
            f"no group is quarantined, because the day also fails {failed} without {_join_names(groups)}",
        )
    return GateInput(remaining.metrics, remaining.baseline_ds, quarantined=tuple(quarantined))


def _noted(whole: GateInput, note: str) -> GateInput:
    return GateInput(whole.metrics, whole.baseline_ds, notes=(note,))


def _join_names(groups: Iterable[str]) -> str:
    return ", ".join(map(one_line, groups))
