"""The approvals of refused computations, a small file for each cluster and day.

    <warehouse>/approvals/<cluster>/<ds>.json

The file outlives the stage, so that the same computation of the day is accepted again when the day is run again.

Belongs here: reading and writing the file, and which refusal can be approved. Does not belong here: the effect on the verdict
(`rebalance_ledger.gate.judge`).
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_ledger.settings import Approval
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.warehouse.errors import ApprovalError
from rebalance_ledger.warehouse.records import decoding, read_record, write_record
from rebalance_ledger.warehouse.staging import judged_stage, newest_stage, read_build

if TYPE_CHECKING:
    from datetime import date

    from rebalance_ledger.warehouse.layout import Warehouse

_REMEDY = "remove it, and approve the day again"


def read_approval(warehouse: Warehouse, cluster: str, ds: date, run_id: str) -> Approval | None:
    """Return the approval of a computation; None if this computation of the day has no approval.

    Raises:
        StagingError: The file is damaged.
    """
    place = warehouse.approval(cluster, ds)
    record = read_record(place, _REMEDY)
    if record is None:
        return None
    with decoding(place, _REMEDY):
        approval = Approval(
            run_id=record.text("run_id"),
            approved_by=record.text("approved_by"),
            reason=record.text("reason"),
            expectation_ids=tuple(record.texts("expectation_ids")),
        )
    return approval if approval.run_id == run_id else None


def approve(
    warehouse: Warehouse, cluster: str, ds: date, *, approved_by: str, reason: str, run_id: str | None = None
) -> Approval:
    """Approve the newest refused computation of a day; it replaces an earlier approval of the day.

    Args:
        warehouse: Warehouse with the stage.
        cluster: Cluster name.
        ds: UTC day.
        approved_by: Name of the person who approves it.
        reason: Reason of the approval.
        run_id: The computation to approve, which must be the newest; None for no check.

    Raises:
        ApprovalError: Name or reason is empty, the gate has not refused the newest computation, `run_id` is another one, or an
            expectation was not measured, so that the effect of an approval is unknown.
        StagingError: The stage is damaged.
        OSError: The file cannot be written.
    """
    name, why = (" ".join(text.split()) for text in (approved_by, reason))
    if not name or not why:
        raise ApprovalError("An approval needs the name of a person and a reason.")
    judged = judged_stage(warehouse, cluster, ds)
    if judged is None or judged.verdict != "refused":
        raise ApprovalError(
            f"There is no refusal of {cluster} {ds} to approve: "
            + (
                "the gate has not judged a computation that is still staged; run the day first."
                if judged is None
                else f"the verdict on the newest computation is {judged.verdict}."
            )
        )
    if read_build(newest_stage(warehouse, cluster, ds)).run_id != judged.build.run_id:
        raise ApprovalError(
            f"{cluster} {ds} was computed again after the refusal: run `ledger step gate` first."
        )
    if run_id is not None and run_id != judged.build.run_id:
        raise ApprovalError(
            f"{cluster} {ds} was computed again: the refused computation is now {judged.build.run_id} and not {run_id}. "
            "Read its gate results before approving it."
        )
    failed = [row for row in judged.results if row["outcome"] == "failed" and row["severity"] == "block"]
    unmeasured = [row["expectation_id"] for row in failed if row["observed"] is None]
    if unmeasured:
        raise ApprovalError(
            f"{cluster} {ds} cannot be approved, because {', '.join(unmeasured)} was not measured: run the build again."
        )
    approval = Approval(judged.build.run_id, name, why, tuple(row["expectation_id"] for row in failed))
    place = warehouse.approval(cluster, ds)
    if not is_object_store(place):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
    write_record(place, asdict(approval))
    return approval
