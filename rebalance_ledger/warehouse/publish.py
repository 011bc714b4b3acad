"""Publish a staged day, or record its refusal.

Only a staged day that the gate has accepted is published (see `staging`). The tables get the day's rows one after another (see
`commits`); the row of `gold.publication` is the last commit, and readers follow it (see `snapshot`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rebalance_ledger.tables import GATE_RESULT, QUARANTINED_GROUP
from rebalance_ledger.warehouse import commits
from rebalance_ledger.warehouse.cluster_day import ClusterDay
from rebalance_ledger.warehouse.data_files import data_files
from rebalance_ledger.warehouse.evolution import bring_up_to_date
from rebalance_ledger.warehouse.exclude_groups import without_groups
from rebalance_ledger.warehouse.sandbox import connect
from rebalance_ledger.warehouse.staged_files import staged_rows
from rebalance_ledger.warehouse.staging import accepted_stage, remove_superseded

if TYPE_CHECKING:
    from datetime import date

    from rebalance_ledger.warehouse.commits import PublishedTables
    from rebalance_ledger.warehouse.layout import Warehouse


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of publishing a day.

    Attributes:
        run_id: The published computation.
        verdict: The gate's verdict.
        changed_tables: Qualified names of the tables whose rows changed; empty for a plain re-run.
        row_count: Rows of the day in all tables.
    """

    run_id: str
    verdict: str
    changed_tables: tuple[str, ...]
    row_count: int


def quarantine(warehouse: Warehouse, cluster: str, ds: date, results: list[dict[str, Any]]) -> None:
    """Write the results of a refused day to `quarantine.gate_result`; published tables do not change."""
    place = warehouse.quarantine(GATE_RESULT)
    with commits.writer_lock(warehouse):
        delta = commits.open_table(place)
        if delta is not None:
            bring_up_to_date(delta, GATE_RESULT)
            delta.update_incremental()
        rows = commits.rows_of(GATE_RESULT, cluster, ds, results)
        commits.replace_day(delta, place, GATE_RESULT, ClusterDay(cluster, ds), rows)
        commits.checkpoint_if_due(place)


def publish(warehouse: Warehouse, cluster: str, ds: date) -> Publication:
    """Publish the staged and accepted day. Publishing a day again replaces exactly that day.

    Raises:
        StagingError: The staged day is incomplete, or the gate has not accepted it.
        WriteError: The day cannot be written; readers see the previous state.
    """
    day = ClusterDay(cluster, ds)
    # One connection for all tables: to open one takes longer than to count a table's rows.
    with commits.writer_lock(warehouse) as ensure_held, connect() as connection:
        # Checked while the lease is held: a writer that had to wait must not publish an outdated attempt.
        judged = accepted_stage(warehouse, cluster, ds)
        tables = commits.prepare_tables(warehouse)
        excluded_groups = {row["consumer_group"] for row in judged.quarantined}
        of_gate = {QUARANTINED_GROUP: judged.quarantined, GATE_RESULT: judged.results}
        rows = {
            table: commits.rows_of(table, cluster, ds, of_gate[table])
            if table in of_gate
            else without_groups(staged_rows(judged.stage, table), table, excluded_groups)
            if excluded_groups
            else judged.files(table)
            for table in commits.PUBLISHED_TABLES
        }
        versions, changed = commits.replace_changed_tables(connection, tables, day, rows, ensure_held)
        _record(tables, day, {**asdict(judged.build), "gate_verdict": judged.verdict, "tables": versions})
        _leave_quarantine(warehouse, day)
        remove_superseded(warehouse, cluster, ds)
    return Publication(
        judged.build.run_id, judged.verdict, changed, sum(row["row_count"] for row in versions)
    )


def _record(tables: PublishedTables, day: ClusterDay, record: dict[str, Any]) -> None:
    """Write the day's row of `publication`, unless it is there already."""
    replaced_version = None
    for current in tables.publications(day):
        is_same = all(current[name] == value for name, value in record.items())
        if is_same and current["withdrawn_run_id"] is None:
            return
        # A run that computes what a rollback restored confirms it: it replaces no other publication.
        replaced_version = current["replaced_version"] if is_same else tables.publication_version
    tables.record(day, {**record, "replaced_version": replaced_version})


def _leave_quarantine(warehouse: Warehouse, day: ClusterDay) -> None:
    """Remove the results of an earlier refusal of the day."""
    place = warehouse.quarantine(GATE_RESULT)
    delta = commits.open_table(place)
    if delta is not None and data_files(delta, day):
        commits.replace_day(
            delta, place, GATE_RESULT, day, commits.rows_of(GATE_RESULT, day.cluster, day.ds, [])
        )
