"""`silver.rejected_record`: what could not be read, with its text, so that nothing is dropped in silence."""

from rebalance_ledger.tables.model import Column, Table

REJECTED_RECORD = Table(
    name="rejected_record",
    layer="silver",
    grain="one line of the export, or one part of its payload, that could not be read",
    key=(
        "file",
        "line_number",
        "reason",
    ),
    columns=(
        Column("kind", "string", "Kind of the record.", nullable=False),
        Column("file", "string", "Path inside the export.", nullable=False),
        Column("line_number", "bigint", "Line of the file, from 1.", nullable=False),
        Column("reason", "string", "One sentence: what is wrong and where.", nullable=False),
        Column("text", "string", "The payload's text as it came.", nullable=False),
    ),
)
