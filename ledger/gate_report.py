"""`ledger gate show`: what the gate said of a day, and what to do about it.

What belongs here: where the newest word on a day is, and how a person reads it. What does not: judging (`expectations`).
"""

# The engines take half a second to import, and the command line imports this module for its other commands too.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from warehouse.errors import NoWarehouseError, QueryError

if TYPE_CHECKING:
    from datetime import date

    from ledger.sql import OutputFormat
    from warehouse.layout import Warehouse

_SHOWN: Final = (
    "outcome",
    "severity",
    "expectation_id",
    "expectation",
    "observed",
    "threshold_min",
    "threshold_max",
    "compared_ds",
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


def data_docs_index(warehouse: Warehouse, cluster: str, ds: date) -> Path | None:
    """The first page of the Data Docs of a day; None in a warehouse that keeps none."""
    from topology.object_store import is_object_store
    from warehouse.layout import path_segment

    if is_object_store(warehouse.root):
        return None
    return Path(warehouse.root) / "data_docs" / path_segment(cluster) / ds.isoformat() / "index.html"


def show(warehouse: Warehouse, cluster: str, ds: date, output_format: OutputFormat) -> None:
    """Write the verdict, what does not hold, what is waived, who is left out, and what to do, on standard output.

    `table` is a text for people; `csv` and `json` have a row for each expectation that does not plainly hold, and one for
    each that a group breaks which the day is published without.

    Raises:
        QueryError: the gate has not judged the day, or what it said cannot be read.
    """
    from ledger.result_formats import WRITERS, visible

    said = _newest(warehouse, cluster, ds)
    left_out = [row | {"outcome": "quarantined", "severity": "block"} for row in said.quarantined]
    rows_told = [*left_out, *(row for row in said.results if _outcome(row) != "held")]
    told = [row | {"advice": _advice(row)} for row in rows_told]
    if output_format != "table":
        rows = (tuple(row.get(column) for column in _SHOWN) for row in told)
        WRITERS[output_format](_SHOWN, rows, sys.stdout)
        return
    lines = _headline(said, cluster, ds)
    for row in told:
        if _outcome(row) != "not_compared":
            lines += ["", *_of_row(row)]
    docs = data_docs_index(warehouse, cluster, ds)
    if docs is not None and docs.is_file():
        lines += ["", f"All results as pages: {docs}"]
    sys.stdout.write("\n".join(visible(line) for line in lines) + "\n")


def _newest(warehouse: Warehouse, cluster: str, ds: date) -> _Said:
    """What the gate said last: of the stage, which outlives publication and refusal, else in the tables."""
    from tables.gold.gate_result import GATE_RESULT
    from tables.gold.publication import PUBLICATION
    from tables.gold.quarantined_group import QUARANTINED_GROUP
    from warehouse.snapshot import PublishedDay, Snapshot
    from warehouse.staging import judged_stage, newest_stage, read_build

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
            left_out = snapshot.published(QUARANTINED_GROUP).rows(day)
            return _Said(record["gate_verdict"], "gold.gate_result", published, left_out)
    raise QueryError(
        f"The gate has said nothing of {cluster} {ds} in {warehouse.root}: compute the day with "
        f"`ledger run --cluster {cluster} --ds {ds}`, or name another warehouse with --warehouse."
    )


def _headline(said: _Said, cluster: str, ds: date) -> list[str]:
    outcomes = [_outcome(row) for row in said.results]
    compared = {row["compared_ds"] for row in said.results if row.get("compared_ds")}
    lines = [
        f"{cluster} {ds}: {said.verdict} (run {said.run_id}, from {said.where})",
        f"{outcomes.count('held')} expectations hold, {outcomes.count('waived')} are waived, {outcomes.count('failed')} failed.",
    ]
    if said.quarantined:
        groups = {row["consumer_group"] for row in said.quarantined}
        lines.append(f"Left out of the day: {len(groups)} groups, which alone would have refused it.")
    if compared:
        lines.append(f"Compared with {max(compared)}.")
    if outcomes.count("not_compared"):
        lines.append(f"Not compared: {outcomes.count('not_compared')}; no earlier day was published.")
    if said.is_outdated:
        lines.append("The day was computed again since, and that is not judged yet: run the gate.")
    return lines


def _of_row(row: dict[str, Any]) -> list[str]:
    observed = row["observed"]
    if _outcome(row) == "quarantined":
        return [
            f"left out: group {row['consumer_group']}, by {row['expectation_id']}",
            f"  {row['expectation']}",
            f"  found {observed:g} of this group",
            *(f"  - {example}" for example in row["examples"]),
            f"  what to do: {row['advice']}",
        ]
    found = "it was not measured" if observed is None else f"found {observed:g}, allowed {_allowed(row)}"
    lines = [
        f"{_outcome(row)} ({row['severity']}): {row['expectation_id']}",
        f"  {row['expectation']}",
        f"  {found}",
        *(f"  - {example}" for example in row["examples"]),
    ]
    if row["waiver"]:
        lines.append(f"  waiver: {row['waiver']}")
    return [*lines, f"  what to do: {row['advice']}"]


def _allowed(row: dict[str, Any]) -> str:
    limits = (("at least", row["threshold_min"]), ("at most", row["threshold_max"]))
    return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def _outcome(row: dict[str, Any]) -> str:
    """What came of an expectation, or of a group; rows of the first releases say only whether it held."""
    return row.get("outcome") or ("held" if row["is_success"] else "failed")


def _advice(row: dict[str, Any]) -> str:
    """What a person can do about a row that does not plainly hold."""
    from expectations.finding import kind_of
    from expectations.suites import EXPECTATIONS

    expectation = EXPECTATIONS.get(row["expectation_id"])
    kind = kind_of(expectation) if expectation else None
    outcome = _outcome(row)
    if outcome == "quarantined" and kind is None:
        return "The ledger may be wrong about this group: ask the stage, repair the export or the code, and run the day again; it is whole then."
    if outcome == "waived":
        return "Nothing before the waiver ends; then repair what it excuses, or renew it."
    if outcome == "not_compared":
        return "Nothing, if this is the first day; else publish the earlier day and judge this one again."
    if row["observed"] is None:
        return "Build the day again: the stage was measured by other code, or not to its end."
    if kind is not None:
        return f"Repair the cluster (docs/findings/{kind}.md); waive the finding if it is known, or take it out of `gate.findings`."
    if expectation is not None and expectation.is_of_two_days:
        return "Hold the two exports side by side. A true change needs nothing, or a waiver where it blocks; a poor export is landed again."
    if expectation is not None and expectation.is_each_limited:
        return "Compare the strategies in assignment_fairness; a group that is uneven by design gets a limit of its own."
    if row["severity"] == "warn":
        return "Look at the examples; raise the limit in the settings if this is usual for the cluster."
    return "The ledger may be wrong: ask the stage, repair the export or the code, and run the day again. A waiver lets it pass, knowingly."
