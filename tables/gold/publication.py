"""`gold.publication`: which days are published, from what, by which code: the last row written, so the record of the whole day."""

from tables.columns import RUN_ID
from tables.model import Column, Table

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
            "`passed`, or `passed_with_warnings` where an expectation of severity `warn` failed.",
            nullable=False,
        ),
        Column(
            "tables",
            "array<table_version>",
            "For each table: its name, the Delta version that readers of this publication see, the day's row count and content hash.",
            nullable=False,
        ),
    ),
)
