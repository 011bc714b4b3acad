"""`silver.export_record`: every line of the export and what became of it."""

from rebalance_ledger.tables.model import Column, Table

EXPORT_RECORD = Table(
    name="export_record",
    layer="silver",
    grain="one line of one file of the export",
    key=(
        "file",
        "line_number",
    ),
    columns=(
        Column("kind", "string", "Kind of the record; see docs/export-contract.md.", nullable=False),
        Column("file", "string", "Path inside the export.", nullable=False),
        Column("line_number", "bigint", "Line of the file, from 1.", nullable=False),
        Column("captured_at", "timestamp", "When the source was asked (UTC)."),
        Column("nameserver", "string", "The name server that was asked, if one was."),
        Column("broker_name", "string", "The broker that was asked, if one was."),
        Column("consumer_group", "string", "The consumer group asked about, if any."),
        Column("topic", "string", "The topic asked about, if any."),
        Column("client_id", "string", "The client asked about, if any."),
        Column(
            "state",
            "string",
            "`payload`: read; `error`: the source failed and said why; `rejected`: a payload came but could not be read, or another one of the same instant contradicts it (see rejected_record).",
            nullable=False,
        ),
        Column("error_type", "string", "Java class of the exception, for state `error`."),
        Column(
            "error_code",
            "int",
            "RocketMQ response code in the exception's message, for example 206 (consumer not online), if it has one.",
        ),
        Column("error_message", "string", "The exception's message, for state `error`."),
        Column(
            "counted_line",
            "bigint",
            "Line of the same file that counts instead of this one: it answers the same question, and is newer, or the first of one instant, or an answer where this is a failure. Null where no such line is there; see docs/odd-input.md.",
        ),
        Column(
            "is_repeat",
            "boolean",
            "Whether this line says exactly what counted_line says; null without one.",
        ),
    ),
)
