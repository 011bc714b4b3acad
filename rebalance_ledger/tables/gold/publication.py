"""`gold.publication`: which days are published, from what, by which code: the last row written, so the record of the whole day."""

from rebalance_ledger.tables.columns import RUN_ID
from rebalance_ledger.tables.model import Column, Table
from rebalance_ledger.tables.vocabulary import GateVerdict

PUBLICATION = Table(
    name="publication",
    layer="gold",
    grain="cluster x day",
    key=(),
    columns=(
        RUN_ID,
        Column("manifest_sha256", "string", "SHA-256 of the export's manifest.json.", nullable=False),
        Column("settings_sha256", "string", "SHA-256 of the cluster's part of the settings.", nullable=False),
        Column("code_version", "string", "Version of the code and a hash of its source.", nullable=False),
        Column(
            "gate_verdict",
            "string",
            "`passed`; `passed_with_warnings` where an expectation of severity `warn` failed; `passed_with_quarantine`, warnings or not, where the day is published without the groups in quarantined_group; `approved` where the gate refused the day and a person approved it, see gate_result.",
            nullable=False,
            values=tuple(GateVerdict),
        ),
        Column(
            "tables",
            "array<table_version>",
            "For each table: its name, the Delta version that readers of this publication see, the day's row count and content hash.",
            nullable=False,
        ),
        Column(
            "replaced_version",
            "bigint",
            "The Delta version of this table that still has the row that this one replaced: what `ledger rollback` returns to. Null for the first publication of the day.",
        ),
        Column(
            "withdrawn_run_id",
            "string",
            "Where this row is a rollback: the run that was taken back. Null where a run published the day.",
        ),
        Column(
            "withdrawn_version",
            "bigint",
            "Where this row is a rollback: the Delta version of this table that still has the row that was taken back.",
        ),
        Column(
            "baseline_ds",
            "date",
            "The newest earlier published day that this day was compared with; null where there was none.",
        ),
        Column(
            "compared_content",
            "array<string>",
            "What was read of baseline_ds: for each table its name, `=`, and the content hash of that day. Null where nothing was.",
        ),
        Column(
            "compared_exports",
            "array<string>",
            "The earlier exports in which offset files were looked for to compare this day's with, the newest first: the day, `=`, the manifest's SHA-256. Null where the day has no offset files.",
        ),
    ),
)
