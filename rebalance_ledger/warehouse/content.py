"""Row count and content hash of a day's rows in a table; the hash does not depend on their order.

Publication compares by it, so that a day that has not changed is not written; `fingerprint` shows it, so that two
warehouses can be compared. What does not belong here: which rows a reader sees (`snapshot`), writing (`publish`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    import duckdb

    from rebalance_ledger.tables import Table


# Arrow's own choice, sixteen batches of 131,072 rows of four files ahead of the reader, is a gigabyte of a large day.
STREAMED: Final = {"batch_size": 32_768, "batch_readahead": 2, "fragment_readahead": 1}
"""How a day's rows are read that may be many."""


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows of one day of one cluster, in a published table."""

    cluster: str
    ds: date

    @property
    def predicate(self) -> str:
        """The day as a SQL predicate; the cluster's name is escaped."""
        name = self.cluster.replace("'", "''")
        return f"cluster = '{name}' AND ds = '{self.ds.isoformat()}'"

    @property
    def filter(self) -> pads.Expression:
        """The day as a filter of an Arrow dataset."""
        return (pads.field("cluster") == self.cluster) & (pads.field("ds") == pa.scalar(self.ds))


class Content(NamedTuple):
    """Equal content, equal hash.

    Attributes:
        row_count: the day's rows.
        content_hash: hexadecimal; the sum of the rows' hashes. A null counts as no column at all, so a day keeps its
            hash when its table gets a column that the day does not fill.
    """

    row_count: int
    content_hash: str


def content_of(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pads.Dataset,
    day: DayRows,
    columns: Sequence[str] | None = None,
) -> Content:
    """Return the content of a day's rows.

    Args:
        connection: computes; to open one takes longer than to count a table's rows.
        table: the table of the rows.
        rows: the table, or at least this day of it.
        day: which rows count.
        columns: the columns that count; the table's own ones if not given.
    """
    names = [column.name for column in table.columns] if columns is None else list(columns)
    batches = rows.scanner(columns=names, filter=day.filter, **STREAMED).to_reader()
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
