"""Parse lines of exports into silver rows, in Spark's Python workers or, for a small day, in the driver.

Each worker imports this module when it starts, so it imports neither PySpark nor what only the driver needs.

Belongs here: the rows of one line, and Arrow batches of them. Does not belong here: which lines count (`reader`), files of rows
(`parsed_lines`), and the meaning of a line (`rebalance_ledger.exports.contract`, `rebalance_ledger.exports.payloads`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from rebalance_ledger.exports.contract import KIND_BY_NAME, Content, EnvelopeError, parse_envelope
from rebalance_ledger.exports.payloads import PayloadError, error_code, facts, facts_of_unreadable
from rebalance_ledger.exports.redaction import redact_envelope, redact_text, redact_unreadable
from rebalance_ledger.tables import OFFSET_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date

    from rebalance_ledger.exports.contract import Envelope

LINE_FIELDS: Final = (
    pa.field("cluster", pa.string()),
    pa.field("ds", pa.date32()),
    pa.field("file_name", pa.string()),
    pa.field("line_number", pa.int64()),
)
"""Identity of the line of a row."""

QUESTION_FIELDS: Final = (
    pa.field("broker_addr", pa.string()),
    pa.field("question", pa.int64()),
    pa.field("answer", pa.int64()),
)
"""Additional columns of `export_record`: the address of the broker that was asked, and hashes of the question and of the answer."""

_HASH_BYTES = 8


class ExportFile(NamedTuple):
    """A file of a day's export, with the kind of its lines."""

    cluster: str
    ds: date
    name: str
    kind: str


class Line(NamedTuple):
    """Identity of a line among the exports of all days."""

    cluster: str
    ds: date
    file: str
    line_number: int


class Contradiction(NamedTuple):
    """A line that contradicts another line.

    Attributes:
        reason: Reason of the rejection.
        is_first: Whether the line represents all lines that contradict each other.
    """

    reason: str
    is_first: bool


def parse_batches(
    batches: Iterable[pa.RecordBatch],
    files: Mapping[str, ExportFile],
    schemas: Mapping[str, pa.Schema],
    contradictions: Mapping[Line, Contradiction] | None = None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of lines, those of each table in batches of their own.

    Args:
        batches: Lines, with the columns of `day_export.batches_of_lines`.
        files: File key (see `export_file_key`) -> file.
        schemas: Table -> schema of its rows: `LINE_FIELDS`, for `export_record` `QUESTION_FIELDS`, and columns of the table.
        contradictions: Parse only these lines, and treat them as unreadable; None to parse all lines.

    Yields:
        The name of a table, and rows with its schema.
    """
    lines_read: dict[tuple[str, int], int] = defaultdict(int)
    for batch in batches:
        rows_of_batch: dict[str, list[dict[str, Any]]] = defaultdict(list)
        columns = (
            batch.column(name).to_pylist()
            for name in ("file_key", "block_start", "first_line_number", "value")
        )
        for file_key, block_start, first_line_number, text in zip(*columns, strict=True):
            cluster, ds, file, kind = files[file_key]
            line_number = first_line_number + lines_read[file_key, block_start]
            lines_read[file_key, block_start] += 1
            line = Line(cluster, ds, file, line_number)
            contradiction = contradictions.get(line) if contradictions else None
            if contradictions and contradiction is None:
                continue
            identity = {"cluster": cluster, "ds": ds, "file_name": file, "line_number": line_number}
            for table, row in rows_of_line(file, kind, line_number, text, contradiction):
                row.update(identity)
                rows_of_batch[table].append(row)
        for table, rows in rows_of_batch.items():
            yield table, _batch(rows, schemas[table])


def _batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [_column([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return the values of a column; timestamps are ISO 8601 text, as in `rebalance_ledger.exports.payloads.Fact`."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def rows_of_line(
    file: str, kind: str, line_number: int, text: str, contradiction: Contradiction | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the silver rows of one line with the names of their tables: facts, its `export_record`, and its rejection if any."""
    line = {"kind": kind, "file": file, "line_number": line_number}
    try:
        envelope = parse_envelope(text, kind)
    except EnvelopeError as error:
        yield (
            "rejected_record",
            line | {"reason": redact_text(str(error)), "text": redact_unreadable(kind, text)},
        )
        yield "export_record", line | {"state": "rejected"}
        return
    # Exports of releases without redaction may contain secrets, which must not get into a table.
    envelope = redact_envelope(envelope)
    record = line | {
        "captured_at": envelope.captured_at.isoformat(),
        "nameserver": envelope.nameserver,
        "broker_name": envelope.broker,
        "consumer_group": envelope.group,
        "topic": envelope.topic,
        "client_id": envelope.client_id,
        "broker_addr": envelope.broker_addr if "broker_addr" in KIND_BY_NAME[kind].keys else None,
        "question": _question(envelope),
        "answer": _hash(envelope.payload, envelope.error),
    }
    if contradiction is not None:
        payload = redact_text(envelope.payload or "")
        yield "rejected_record", line | {"reason": contradiction.reason, "text": payload}
        yield "export_record", record | {"state": "rejected"}
        if contradiction.is_first:
            yield from facts_of_unreadable(envelope)
        return
    try:
        # A record that can be read only in part gives no facts.
        rows = list(facts(envelope))
    except PayloadError as error:
        payload = redact_text(envelope.payload or "")
        yield "rejected_record", line | {"reason": redact_text(str(error)), "text": payload}
        yield "export_record", record | {"state": "rejected"}
        yield from facts_of_unreadable(envelope)
        return
    for table, row in rows:
        # An offset file that failed to land has no path, so its line number identifies it.
        yield table, row | {"line_number": line_number} if table == OFFSET_FILE.name else row
    if envelope.error is None:
        yield "export_record", record | {"state": "payload"}
    else:
        yield (
            "export_record",
            record
            | {
                "state": "error",
                "error_type": envelope.error.type,
                "error_code": error_code(envelope.error.message),
                "error_message": envelope.error.message,
            },
        )


def _question(envelope: Envelope) -> int | None:
    """Return a hash of the question, without the address of the broker; None if the line is no answer to a question."""
    kind = KIND_BY_NAME[envelope.kind]
    if kind.content not in {Content.ROCKETMQ_JSON, Content.PROPERTIES} or kind.name == "capture_attempt":
        return None
    names = set(kind.keys) - {"broker_addr"}
    if kind.name == "consumer_status":
        # The offsets of one member, or of all members, are the same, whichever broker forwards the request.
        names = names - {"broker"} | {"client_id"}
    return _hash(kind.name, *(f"{name}={getattr(envelope, name)}" for name in sorted(names)))


def _hash(*parts: object) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, signed=True)
