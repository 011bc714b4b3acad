"""Row count and content hash of a day's rows in a table; the hash does not depend on their order.

Publication compares it, so that a day that has not changed is not written; `fingerprint` prints it to compare warehouses.

Does not belong here: the rows that a reader sees (`snapshot`), and writing (`publish`).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from rebalance_ledger.tables import Table
    from rebalance_ledger.warehouse.cluster_day import ClusterDay


# Arrow's default, sixteen batches of 131,072 rows of four files ahead of the reader, takes a gigabyte for a large day.
STREAMED: Final = {"batch_size": 32_768, "batch_readahead": 2, "fragment_readahead": 1}
"""Read options for days with many rows."""


class Content(NamedTuple):
    """Row count and hash of a day's rows; equal rows have equal hashes.

    Attributes:
        row_count: Number of rows.
        content_hash: Sum of the rows' hashes, hexadecimal. Nulls are ignored, so a day keeps its hash when its table gets a column
            that is null on that day.
    """

    row_count: int
    content_hash: str


def content_of(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pads.Dataset,
    day: ClusterDay,
    columns: Sequence[str] | None = None,
) -> Content:
    """Return the content of a day's rows.

    Args:
        connection: Connection of `sandbox.connect`, because the texts of instants are hashed. It is reused: opening one takes longer than
            counting a table's rows.
        table: The table of the rows.
        rows: The table, or at least this day of it.
        day: The day to select.
        columns: The columns to hash; by default the table's own ones.
    """
    names = [column.name for column in table.columns] if columns is None else list(columns)
    batches = rows.scanner(
        columns=names,
        filter=(pads.field("cluster") == day.cluster) & (pads.field("ds") == pa.scalar(day.ds)),
        **STREAMED,
    ).to_reader()
    first = next((batch for batch in batches if batch.num_rows), None)
    if (
        first is None
    ):  # Most tables of a small day: a query over no rows would take longer than all else here.
        return Content(0, "0")
    own = pa.RecordBatchReader.from_batches(
        batches.schema, chain([first], batches)
    )  # Named in the statement below.
    row = ", ".join(f'"{name}" := "{name}"' for name in names)
    connection.register("own", own)
    count, total = connection.execute(
        # A patch leaves out what is null.
        f"SELECT count(*), coalesce(sum(md5_number_lower(json_merge_patch('{{}}', to_json(struct_pack({row})))::VARCHAR)), 0) "  # noqa: S608 - names of our own columns
        "FROM own"
    ).fetchall()[0]
    return Content(int(count), f"{int(total):x}")
