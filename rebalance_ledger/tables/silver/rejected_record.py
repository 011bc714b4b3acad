"""`silver.rejected_record`: lines and payloads that could not be read, with their text and the reason."""

from rebalance_ledger.tables.model import Column, Table

REJECTED_RECORD = Table(
    name="rejected_record",
    layer="silver",
    grain="line of the export, or part of its payload, that could not be read",
    key=(
        "file",
        "line_number",
        "reason",
    ),
    columns=(
        Column("kind", "string", "Kind of the record.", nullable=False),
        Column("file", "string", "Path inside the export.", nullable=False),
        Column("line_number", "bigint", "Line of the file, from 1.", nullable=False),
        Column("reason", "string", "What is wrong and where, in one sentence.", nullable=False),
        Column("text", "string", "The payload's text, unchanged.", nullable=False),
    ),
)
