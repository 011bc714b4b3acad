"""`gold.gate_result`: the result of each expectation that the gate evaluated before the day was published."""

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
        Column("table_name", "string", "The table that the expectation is about.", nullable=False),
        Column("expectation", "string", "The expectation in one sentence.", nullable=False),
        Column(
            "severity",
            "string",
            "`block`: a failure prevents publication; `warn`: a failure is reported.",
            nullable=False,
        ),
        Column(
            "is_success",
            "boolean",
            "False if the number is out of its range, waived or not; true also if there was nothing to compare: see outcome.",
            nullable=False,
        ),
        Column(
            "observed",
            "double",
            "The measured number, mostly a count of violations, waived ones included; null if it could not be measured.",
        ),
        Column("threshold_min", "double", "Smallest allowed value; null for no lower limit."),
        Column("threshold_max", "double", "Largest allowed value; null for no upper limit."),
        Column("examples", "array<string>", "Up to ten violations, one line each.", nullable=False),
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
            "The earlier day with which the number is compared; null if it is compared with none.",
        ),
        Column(
            "approved_by",
            "string",
            "The person who approved the publication although this expectation failed; null without an approval.",
        ),
        Column("approval_reason", "string", "The reason given with the approval; null without an approval."),
    ),
)
