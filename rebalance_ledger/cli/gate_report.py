"""The report of `ledger gate show`: the latest gate result for a day.

Belongs here: finding the latest result, and its output for people. Does not belong here: evaluation (`gate`).
"""

# The engines take half a second to import, and the command line imports this module for its other commands too.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from rebalance_ledger.gate.verdict import allowed_range, approval_text, outcome_of
from rebalance_ledger.printable import visible
from rebalance_ledger.warehouse.errors import NoWarehouseError, QueryError

if TYPE_CHECKING:
    from datetime import date

    from rebalance_ledger.cli.sql import OutputFormat
    from rebalance_ledger.warehouse.layout import Warehouse

_COLUMNS: Final = (
    "outcome",
    "severity",
    "expectation_id",
    "expectation",
    "observed",
    "threshold_min",
    "threshold_max",
    "baseline_ds",
    "waiver",
    "approved_by",
    "approval_reason",
    "consumer_group",
    "examples",
    "advice",
    "run_id",
)


@dataclass(frozen=True, slots=True)
class _GateReport:
    """The latest gate result for a day.

    Attributes:
        verdict: `passed`, `passed_with_warnings`, `passed_with_quarantine`, `approved` or `refused`.
        where: Location of the result: a staging area or a table.
        results: Rows of `gate_result`.
        quarantined: Rows of `quarantined_group`: the groups that the published day excludes.
        is_outdated: Whether the day has since been computed from another input.
    """

    verdict: str
    where: str
    results: list[dict[str, Any]]
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    is_outdated: bool = False

    @property
    def run_id(self) -> str:
        """Return the run id of the evaluated computation."""
        return str(self.results[0]["run_id"]) if self.results else "unknown"


def show(warehouse: Warehouse, cluster: str, ds: date, output_format: OutputFormat) -> None:
    """Write the verdict, failed and waived expectations, quarantined groups, and what to do, to standard output.

    `table` is text for people; `csv` and `json` have a row for each expectation that did not pass, and one for each
    expectation that a quarantined group violates.

    Raises:
        QueryError: The gate has not evaluated the day, or its result cannot be read.
    """
    from rebalance_ledger.cli.result_formats import WRITERS
    from rebalance_ledger.gate.advice import advice_on
    from rebalance_ledger.warehouse.records import exists

    report = _load_latest(warehouse, cluster, ds)
    quarantined = [row | {"outcome": "quarantined", "severity": "block"} for row in report.quarantined]
    not_passed = [*quarantined, *(row for row in report.results if outcome_of(row) != "passed")]
    shown_rows = [row | {"advice": advice_on(row)} for row in not_passed]
    if output_format != "table":
        rows = (tuple(row.get(column) for column in _COLUMNS) for row in shown_rows)
        WRITERS[output_format](_COLUMNS, rows, sys.stdout)
        return
    lines = _headline(report, cluster, ds)
    for row in shown_rows:
        if outcome_of(row) != "skipped":
            lines += ["", *_row_lines(row)]
    docs = warehouse.data_docs_index(cluster, ds)
    if exists(docs):
        lines += ["", f"All results as pages: {docs}"]
    sys.stdout.write("\n".join(visible(line) for line in lines) + "\n")


def _load_latest(warehouse: Warehouse, cluster: str, ds: date) -> _GateReport:
    """Return the latest result: of the staging area, which outlives publication and refusal, otherwise of the tables."""
    from rebalance_ledger.tables.gold.gate_result import GATE_RESULT
    from rebalance_ledger.tables.gold.publication import PUBLICATION
    from rebalance_ledger.tables.gold.quarantined_group import QUARANTINED_GROUP
    from rebalance_ledger.warehouse.cluster_day import ClusterDay
    from rebalance_ledger.warehouse.snapshot import Snapshot
    from rebalance_ledger.warehouse.staging import judged_stage, newest_stage, read_build

    judged = judged_stage(warehouse, cluster, ds)
    if judged is not None:
        newest = read_build(newest_stage(warehouse, cluster, ds))
        return _GateReport(
            judged.verdict,
            f"the staging area {judged.stage.root}",
            judged.results,
            judged.quarantined,
            is_outdated=newest.run_id != judged.build.run_id,
        )
    try:
        snapshot = Snapshot(warehouse.root)
    except NoWarehouseError:
        snapshot = None
    if snapshot is not None:
        day = {ClusterDay(cluster, ds)}
        refused = snapshot.quarantined_gate_results().rows(day)
        if refused:
            return _GateReport("refused", "quarantine.gate_result", refused)
        published = snapshot.published(GATE_RESULT).rows(day)
        if published:
            [record] = snapshot.published(PUBLICATION).rows(day, ["gate_verdict"])
            quarantined = snapshot.published(QUARANTINED_GROUP).rows(day)
            return _GateReport(record["gate_verdict"], "gold.gate_result", published, quarantined)
    raise QueryError(
        f"The gate has no result for {cluster} {ds} in {warehouse.root}: compute the day with "
        f"`ledger run --cluster {quote(cluster)} --ds {ds} --warehouse {quote(warehouse.root)}`, or name another warehouse with --warehouse."
    )


def _headline(report: _GateReport, cluster: str, ds: date) -> list[str]:
    outcomes = [outcome_of(row) for row in report.results]
    compared = {row["baseline_ds"] for row in report.results if row.get("baseline_ds")}
    lines = [
        f"{cluster} {ds}: {report.verdict} (run {report.run_id}, from {report.where})",
        f"passed: {outcomes.count('passed')}, waived: {outcomes.count('waived')}, failed: {outcomes.count('failed')}",
    ]
    approvals = {approval_text(row) for row in report.results if outcome_of(row) == "approved"}
    lines += [f"failed and approved: {outcomes.count('approved')}, by {approval}" for approval in approvals]
    if report.quarantined:
        groups = {row["consumer_group"] for row in report.quarantined}
        lines.append(f"quarantined groups: {len(groups)}; with them the gate would have refused the day")
    if compared:
        lines.append(f"baseline: {max(compared)}")
    if outcomes.count("skipped"):
        lines.append(f"skipped: {outcomes.count('skipped')}; there is no baseline day")
    if report.is_outdated:
        lines.append("The day has since been computed again and not yet evaluated: run the gate.")
    return lines


def _row_lines(row: dict[str, Any]) -> list[str]:
    observed = row["observed"]
    if outcome_of(row) == "quarantined":
        return [
            f"quarantined: group {row['consumer_group']}, by {row['expectation_id']}",
            f"  {row['expectation']}",
            f"  found {observed:g} of this group",
            *(f"  - {example}" for example in row["examples"]),
            f"  what to do: {row['advice']}",
        ]
    observation = (
        "it was not measured"
        if observed is None
        else f"found {observed:g}, allowed {allowed_range(row['threshold_min'], row['threshold_max'])}"
    )
    lines = [
        f"{outcome_of(row)} ({row['severity']}): {row['expectation_id']}",
        f"  {row['expectation']}",
        f"  {observation}",
        *(f"  - {example}" for example in row["examples"]),
    ]
    if row["waiver"]:
        lines.append(f"  waiver: {row['waiver']}")
    return [*lines, f"  what to do: {row['advice']}"]
