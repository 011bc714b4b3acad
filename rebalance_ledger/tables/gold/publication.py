"""`gold.publication`: which days are published, from which export, settings and code. It is written last, so its row records the whole day."""

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
            values=tuple(verdict for verdict in GateVerdict if verdict is not GateVerdict.REFUSED),
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
            "The Delta version of this table before this row replaced the previous one; `ledger rollback` returns to it. Null for the first publication of the day.",
        ),
        Column(
            "withdrawn_run_id",
            "string",
            "For a rollback: the run that was withdrawn. Null if a run published the day.",
        ),
        Column(
            "withdrawn_version",
            "bigint",
            "For a rollback: the Delta version of this table that still contains the withdrawn row.",
        ),
        Column(
            "baseline_ds",
            "date",
            "The newest earlier published day, with which this day was compared; null if there was none.",
        ),
        Column(
            "compared_content",
            "array<string>",
            "The tables of baseline_ds that were read: for each its name, `=`, and the content hash of that day. Null if none was read.",
        ),
        Column(
            "compared_exports",
            "array<string>",
            "The earlier exports in which offset files were looked for to compare this day's with, the newest first: the day, `=`, the manifest's SHA-256. Null where the day has no offset files.",
        ),
    ),
)
