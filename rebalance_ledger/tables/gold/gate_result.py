"""`gold.gate_result`: what the gate judged before the day was published."""

from rebalance_ledger.tables.columns import RUN_ID
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import Outcome

GATE_RESULT = Table(
    name="gate_result",
    layer="gold",
    grain="run x expectation",
    key=(
        "run_id",
        "expectation_id",
    ),
    columns=(
        RUN_ID,
        Column(
            "expectation_id",
            "string",
            "Stable name of the expectation, for example `queue_assignment.one_row_per_owner`.",
            nullable=False,
        ),
        Column("table_name", "string", "The table judged.", nullable=False),
        Column("expectation", "string", "The expectation in one sentence.", nullable=False),
        Column(
            "severity",
            "string",
            "`block`: a failure keeps the day from being published; `warn`: it is reported.",
            nullable=False,
        ),
        Column(
            "is_success",
            "boolean",
            "False where the number is out of its range, waived or not; true also where there was nothing to compare: see outcome.",
            nullable=False,
        ),
        Column(
            "observed",
            "double",
            "The number found, mostly a count of violations, with those that are waived; null if it could not be measured.",
        ),
        Column("threshold_min", "double", "Least value allowed; null for no lower limit."),
        Column("threshold_max", "double", "Greatest value allowed; null for no upper limit."),
        Column("examples", "array<string>", "Up to ten offenders, each as one line.", nullable=False),
        Column(
            "waiver", "string", "The waived amount, with expiry, approver and reason; null without a waiver."
        ),
        Column(
            "outcome",
            "string",
            "`passed`; `waived`: within limits after waivers; `approved`: failed, and a person approved this computation; `failed`; `skipped`: there is no baseline day.",
            values=tuple(Outcome),
        ),
        Column(
            "baseline_ds",
            "date",
            "The earlier day that the number compares with; null where it compares with none.",
        ),
        Column(
            "approved_by",
            "string",
            "Who approved that the day is published although this expectation failed; null where nobody did.",
        ),
        Column("approval_reason", "string", "The reason given with the approval; null without an approval."),
    ),
)
