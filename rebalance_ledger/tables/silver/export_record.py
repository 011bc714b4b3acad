"""`silver.export_record`: every line of the export, and whether it was read."""

from rebalance_ledger.tables.model import Column, Table

EXPORT_RECORD = Table(
    name="export_record",
    layer="silver",
    grain="line of a file of the export",
    key=(
        "file",
        "line_number",
    ),
    columns=(
        Column("kind", "string", "Kind of the record; see docs/export-contract.md.", nullable=False),
        Column("file", "string", "Path inside the export.", nullable=False),
        Column("line_number", "bigint", "Line of the file, from 1.", nullable=False),
        Column("captured_at", "timestamp", "Time of the answer (UTC)."),
        Column("nameserver", "string", "The queried name server, if any."),
        Column("broker_name", "string", "The queried broker, if any."),
        Column("consumer_group", "string", "The consumer group of the request, if any."),
        Column("topic", "string", "The topic of the request, if any."),
        Column("client_id", "string", "The client of the request, if any."),
        Column(
            "state",
            "string",
            "`payload`: read; `error`: the source returned an error; `rejected`: the payload could not be read, or contradicts another one of the same instant (see rejected_record).",
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
            "Line of the same file that is used instead of this one: it answers the same request, and is newer, or the first of one instant, or an answer while this line is a failure. Null without such a line; see docs/odd-input.md.",
        ),
        Column(
            "is_repeat",
            "boolean",
            "Whether this line has the same content as counted_line; null without one.",
        ),
    ),
)
