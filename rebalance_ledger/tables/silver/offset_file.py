"""`silver.offset_file`: every line of the export's index of broadcast offset files; the contents of the files are in gold."""

from rebalance_ledger.tables.columns import CLIENT_ID, CONSUMER_GROUP
from rebalance_ledger.tables.model import Column, Table

OFFSET_FILE = Table(
    name="offset_file",
    layer="silver",
    grain="line of the index of offset files: a file of one snapshot, or the failure to land one",
    key=("line_number",),
    columns=(
        Column("line_number", "bigint", "Line of `offset_files_index.jsonl`, from 1.", nullable=False),
        Column(
            "moment", "int", "Number of the snapshot, from 0; the greatest is the newest.", nullable=False
        ),
        Column("host", "string", "The host that the file lay on.", nullable=False),
        CLIENT_ID,
        CONSUMER_GROUP,
        Column(
            "state",
            "string",
            "`landed`, or `failed`: the file could not be read on its host.",
            nullable=False,
        ),
        Column("path", "string", "Where the file is in the export; null if it failed."),
        Column("size_bytes", "bigint", "Its size; null if it failed.", unit="bytes"),
        Column("modified_at", "timestamp", "When it was last written (UTC), by its host's clock."),
        Column("sha256", "string", "SHA-256 of its bytes, in lower-case hexadecimal digits."),
        Column("captured_at", "timestamp", "When it was read (UTC).", nullable=False),
        Column("error_message", "string", "Why it failed."),
    ),
)
