"""`ledger gate show`: what the gate said of a day, and what to do about it.

What belongs here: where the newest word on a day is, and how a person reads it. What does not: judging (`expectations`).
"""

# The engines take half a second to import, and the command line imports this module for its other commands too.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from expectations.verdict import allowed_range, outcome_of
from rebalance_ledger.warehouse.errors import NoWarehouseError, QueryError

if TYPE_CHECKING:
    from datetime import date

    from rebalance_ledger.cli.sql import OutputFormat
    from rebalance_ledger.warehouse.layout import Warehouse

_SHOWN: Final = (
    "outcome",
    "severity",
    "expectation_id",
    "expectation",
    "observed",
    "threshold_min",
    "threshold_max",
    "baseline_ds",
    "waiver",
    "consumer_group",
    "examples",
    "advice",
)


@dataclass(frozen=True, slots=True)
class _Said:
    """The newest word of the gate on a day.

    Attributes:
        verdict: `passed`, `passed_with_warnings`, `passed_with_quarantine` or `refused`.
        where: in which place it was found.
        results: rows of `gate_result`.
        quarantined: rows of `quarantined_group`: whom the day is published without.
        is_outdated: whether the day has since been computed from another input.
    """

    verdict: str
    where: str
    results: list[dict[str, Any]]
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    is_outdated: bool = False

    @property
    def run_id(self) -> str:
        """The computation that was judged."""
        return str(self.results[0]["run_id"]) if self.results else "unknown"


def show(warehouse: Warehouse, cluster: str, ds: date, output_format: OutputFormat) -> None:
    """Write the verdict, what does not hold, what is waived, who is left out, and what to do, on standard output.

    `table` is a text for people; `csv` and `json` have a row for each expectation that does not plainly hold, and one for
    each that a group breaks which the day is published without.

    Raises:
        QueryError: the gate has not judged the day, or what it said cannot be read.
    """
    from expectations.advice import advice_on
    from rebalance_ledger.cli.result_formats import WRITERS, visible

    said = _newest(warehouse, cluster, ds)
    excluded_groups = [row | {"outcome": "quarantined", "severity": "block"} for row in said.quarantined]
    shown_rows = [*excluded_groups, *(row for row in said.results if outcome_of(row) != "passed")]
    advised_rows = [row | {"advice": advice_on(row)} for row in shown_rows]
    if output_format != "table":
        rows = (tuple(row.get(column) for column in _SHOWN) for row in advised_rows)
        WRITERS[output_format](_SHOWN, rows, sys.stdout)
        return
    lines = _headline(said, cluster, ds)
    for row in advised_rows:
        if outcome_of(row) != "skipped":
            lines += ["", *_of_row(row)]
    docs = warehouse.data_docs_index(cluster, ds)
    if docs is not None and docs.is_file():
        lines += ["", f"All results as pages: {docs}"]
    sys.stdout.write("\n".join(visible(line) for line in lines) + "\n")


def _newest(warehouse: Warehouse, cluster: str, ds: date) -> _Said:
    """Return the latest gate result: of the staged day, which outlives publication and refusal, else of the tables."""
    from rebalance_ledger.tables.gold.gate_result import GATE_RESULT
    from rebalance_ledger.tables.gold.publication import PUBLICATION
    from rebalance_ledger.tables.gold.quarantined_group import QUARANTINED_GROUP
    from rebalance_ledger.warehouse.snapshot import PublishedDay, Snapshot
    from rebalance_ledger.warehouse.staging import judged_stage, newest_stage, read_build

    judged = judged_stage(warehouse, cluster, ds)
    if judged is not None:
        newest = read_build(newest_stage(warehouse, cluster, ds))
        return _Said(
            judged.verdict,
            f"the stage {judged.stage.root}",
            judged.results,
            judged.quarantined,
            is_outdated=newest.run_id != judged.build.run_id,
        )
    try:
        snapshot = Snapshot(warehouse.root)
    except NoWarehouseError:
        snapshot = None
    if snapshot is not None:
        day = {PublishedDay(cluster, ds)}
        refused = snapshot.quarantined_gate_results().rows(day)
        if refused:
            return _Said("refused", "quarantine.gate_result", refused)
        published = snapshot.published(GATE_RESULT).rows(day)
        if published:
            [record] = snapshot.published(PUBLICATION).rows(day, ["gate_verdict"])
            excluded_groups = snapshot.published(QUARANTINED_GROUP).rows(day)
            return _Said(record["gate_verdict"], "gold.gate_result", published, excluded_groups)
    raise QueryError(
        f"The gate has said nothing of {cluster} {ds} in {warehouse.root}: compute the day with "
        f"`ledger run --cluster {cluster} --ds {ds}`, or name another warehouse with --warehouse."
    )


def _headline(said: _Said, cluster: str, ds: date) -> list[str]:
    outcomes = [outcome_of(row) for row in said.results]
    compared = {row["baseline_ds"] for row in said.results if row.get("baseline_ds")}
    lines = [
        f"{cluster} {ds}: {said.verdict} (run {said.run_id}, from {said.where})",
        f"{outcomes.count('passed')} expectations hold, {outcomes.count('waived')} are waived, {outcomes.count('failed')} failed.",
    ]
    if said.quarantined:
        groups = {row["consumer_group"] for row in said.quarantined}
        lines.append(f"Left out of the day: {len(groups)} groups, which alone would have refused it.")
    if compared:
        lines.append(f"Compared with {max(compared)}.")
    if outcomes.count("skipped"):
        lines.append(f"Not compared: {outcomes.count('skipped')}; no earlier day was published.")
    if said.is_outdated:
        lines.append("The day was computed again since, and that is not judged yet: run the gate.")
    return lines


def _of_row(row: dict[str, Any]) -> list[str]:
    observed = row["observed"]
    if outcome_of(row) == "quarantined":
        return [
            f"left out: group {row['consumer_group']}, by {row['expectation_id']}",
            f"  {row['expectation']}",
            f"  found {observed:g} of this group",
            *(f"  - {example}" for example in row["examples"]),
            f"  what to do: {row['advice']}",
        ]
    found = (
        "it was not measured"
        if observed is None
        else f"found {observed:g}, allowed {allowed_range(row['threshold_min'], row['threshold_max'])}"
    )
    lines = [
        f"{outcome_of(row)} ({row['severity']}): {row['expectation_id']}",
        f"  {row['expectation']}",
        f"  {found}",
        *(f"  - {example}" for example in row["examples"]),
    ]
    if row["waiver"]:
        lines.append(f"  waiver: {row['waiver']}")
    return [*lines, f"  what to do: {row['advice']}"]
