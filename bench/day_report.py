"""(j) The report of a full-size day, its seconds and bytes, and the explanation of one of its groups.

The published tables that the report reads are made without Spark: the queues of a simulated cluster (`tools.simulated_cluster`), with
owners in the order of the queues, on two days. Every tenth group has problems, so that the page is as full as it may get. `publish`
publishes both days.

Belongs here: those rows, and timing the command. Does not belong here: days that are computed (`large_cluster`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from bench.large_cluster import FULL
from bench.publication_history import stage_rows
from bench.report import Measurement
from bench.stages import CLUSTER, DS
from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.tables import (
    ASSIGNMENT_CHURN,
    ASSIGNMENT_FAIRNESS,
    FINDING,
    GATE_RESULT,
    OWNERSHIP_DRIFT,
    QUEUE_ASSIGNMENT,
    QUEUE_OFFSET,
    ROUTE_DIVERGENCE,
)
from rebalance_ledger.tables.silver.client_process import CLIENT_PROCESS
from rebalance_ledger.tables.silver.consume_progress import CONSUME_PROGRESS
from rebalance_ledger.tables.silver.consumer_client import CONSUMER_CLIENT
from rebalance_ledger.tables.silver.consumer_connection import CONSUMER_CONNECTION
from rebalance_ledger.tables.silver.export_record import EXPORT_RECORD
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from tools.simulated_cluster.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rebalance_ledger.tables import Table
    from tools.simulated_cluster import Size
    from tools.simulated_cluster.layout import Group, Topic

    # An Arrow array, a numpy array or a list; a text, number or null stands for a column of one value.
    Column: TypeAlias = Any

_ROOT: Final = Path(__file__).resolve().parent.parent
_LIMIT_S: Final = 10.0
_EXPLAIN_LIMIT_S: Final = 1.0
_LIMIT_BYTES: Final = 2_000_000
_REPETITION_COUNT: Final = 3
_STRATEGIES: Final = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH",
    "MACHINE_ROOM",
    "MACHINE_ROOM_NEARBY",
    "CONFIG",
)
_FAULTY_EVERY: Final = 10
_CAPTURED_AT: Final = datetime(2026, 11, 16, 2, tzinfo=UTC)
_SCAN: Final = (
    "SELECT count(*) FROM (SELECT consumer_group, topic, broker_name, queue_id, strategy, list(client_id) "
    "FROM latest.queue_assignment GROUP BY ALL)"
)


def measure(*, size: Size = FULL) -> list[Measurement]:
    """Publish two days, write the report of the second and explain a group, in turns with a query of its largest table.

    Raises:
        RuntimeError: A command fails.
    """
    with TemporaryDirectory(prefix="day-report-") as folder:
        warehouse = Warehouse.at(f"{folder}/warehouse")
        row_count = publish_days(warehouse, size)
        page = Path(folder, "report.html")
        of_report = ["ledger", "report", f"--warehouse={warehouse.root}", f"--output={page}"]
        of_scan = ["ledger", "sql", f"--warehouse={warehouse.root}", _SCAN]
        group = Layout(CLUSTER, size).groups[0].name
        of_explanation = ["ledger", "explain", f"--warehouse={warehouse.root}", group]
        reports, scans, explanations = [], [], []
        for _ in range(_REPETITION_COUNT):
            explanations.append(_seconds(of_explanation))
            reports.append(_seconds(of_report))
            scans.append(_seconds(of_scan))
        page_bytes = page.stat().st_size
    what = (
        f"report of {size.broker_count:,} brokers, {size.topic_count:,} topics, {size.group_count:,} groups"
    )
    extra = {"row_count": float(row_count), "page_bytes": float(page_bytes)}
    return [
        Measurement(
            name="day_report_time",
            what=what,
            baseline=f"{_LIMIT_S:g} s",
            seconds=tuple(reports),
            baseline_seconds=(_LIMIT_S,),
            bar=1.0,
            extra=extra,
        ),
        Measurement(
            name="day_report_beside_a_scan",
            what=what,
            baseline="ledger sql: the owners of each queue by each strategy",
            seconds=tuple(reports),
            baseline_seconds=tuple(scans),
            extra=extra,
        ),
        Measurement(
            name="explain_time",
            what=f"ledger explain of a group among {size.group_count:,}",
            baseline=f"{_EXPLAIN_LIMIT_S:g} s",
            seconds=tuple(explanations),
            baseline_seconds=(_EXPLAIN_LIMIT_S,),
            bar=1.0,
        ),
        Measurement(
            name="day_report_bytes",
            what=f"{what}: bytes of the page",
            baseline="2 MB",
            seconds=(float(page_bytes),),
            baseline_seconds=(float(_LIMIT_BYTES),),
            bar=1.0,
            unit="bytes",
        ),
    ]


def publish_days(warehouse: Warehouse, size: Size) -> int:
    """Publish two days of a cluster; return the rows of the second."""
    layout = Layout(CLUSTER, size)
    row_count = 0
    for ds, baseline in ((DS - timedelta(days=1), None), (DS, DS - timedelta(days=1))):
        rows_of = {table: _table(table, ds, columns) for table, columns in _columns(layout, baseline)}
        results = rows_of.pop(GATE_RESULT).drop_columns(["cluster", "ds"]).to_pylist()
        stage_rows(warehouse, CLUSTER, ds, rows_of, results, baseline_ds=baseline)
        row_count = publish(warehouse, CLUSTER, ds).row_count
    return row_count


def _columns(layout: Layout, baseline: date | None) -> Iterator[tuple[Table, Mapping[str, Column]]]:
    """Yield the columns of each table that differ from row to row; the others have one value."""
    queues = _Queues(layout)
    drift = queues.keys() | {
        "state": queues.states,
        "strategy": "AVG",
        "group_state": "online",
        "route_state": "known",
        "is_routed": True,
        "expected_client_ids": _lists(queues.owners),
        "observed_client_ids": _lists(queues.holders),
        "observed_process_count": 1,
        "unasked_client_count": 0,
        "likely_cause": queues.causes,
    }
    yield OWNERSHIP_DRIFT, drift
    count = len(queues.states)
    keys = queues.keys()
    yield (
        QUEUE_ASSIGNMENT,
        {name: _repeated(column, len(_STRATEGIES)) for name, column in keys.items()}
        | {
            "strategy": np.repeat(_STRATEGIES, count),
            "strategy_source": "report",
            "is_effective": np.repeat([True] + [False] * (len(_STRATEGIES) - 1), count),
            "client_id": _repeated(queues.owners, len(_STRATEGIES)),
        },
    )
    yield (
        CONSUME_PROGRESS,
        keys | {"broker_offset": np.arange(count) + 10**9, "consumer_offset": np.arange(count)},
    )
    yield QUEUE_OFFSET, _topic_queues(layout) | {"max_offset": 10**9, "captured_at": _CAPTURED_AT}
    yield ROUTE_DIVERGENCE, _routes(layout)
    yield from _groups(layout, baseline)
    yield FINDING, _findings(layout)
    yield (
        GATE_RESULT,
        {
            "expectation_id": list(EXPECTATIONS),
            "expectation": [one.sentence for one in EXPECTATIONS.values()],
            "table_name": [one.table.qualified_name for one in EXPECTATIONS.values()],
            "outcome": "passed",
            "is_success": True,
            "severity": "block",
            "examples": [[]] * len(EXPECTATIONS),
        },
    )


class _Queues:
    """The queues that each group reads, one row each, with who owns and who holds them."""

    def __init__(self, layout: Layout) -> None:
        group, topic, broker, number, owner, holder, states, causes = ([] for _ in range(8))
        for position, one in enumerate(layout.groups):
            for of_topic in one.subscribed:
                queues = [(b.name, q) for b in of_topic.brokers for q in range(of_topic.queues_on_broker)]
                owners = [one.client_ids[place % len(one.client_ids)] for place in range(len(queues))]
                is_faulty = _is_faulty(position)
                group += [one.name] * len(queues)
                topic += [of_topic.name] * len(queues)
                broker += [name for name, _ in queues]
                number += [queue_id for _, queue_id in queues]
                owner += owners
                holder += [*owners[1:], owners[0]] if is_faulty else owners
                states += ["unexpected_owner" if is_faulty else "match"] * len(queues)
                causes += ["member_lists_differ" if is_faulty else None] * len(queues)
        self._keys = {"consumer_group": group, "topic": topic, "broker_name": broker}
        self._numbers = np.array(number, dtype=np.int32)
        self.owners, self.holders = pa.array(owner), pa.array(holder)
        self.states, self.causes = pa.array(states), pa.array(causes, pa.string())

    def keys(self) -> dict[str, Column]:
        """Return the columns that name a queue of a group."""
        return {name: pa.array(values) for name, values in self._keys.items()} | {"queue_id": self._numbers}


def _groups(layout: Layout, baseline: date | None) -> Iterator[tuple[Table, Mapping[str, Column]]]:
    members = [(one.name, client_id) for one in layout.groups for client_id in one.client_ids]
    clients = {"consumer_group": [name for name, _ in members], "client_id": [id_ for _, id_ in members]}
    yield CONSUMER_CLIENT, clients | {"state": "online", "strategy": "AVG"}
    yield CLIENT_PROCESS, clients | {"state": "online", "strategy": "AVG", "process": "p"}
    connections = [
        (one.name, client_id, broker.name)
        for one in layout.groups
        for client_id in one.client_ids
        for broker in one.retry.brokers
    ]
    yield (
        CONSUMER_CONNECTION,
        {
            name: [row[place] for row in connections]
            for place, name in enumerate(("consumer_group", "client_id", "broker_name"))
        }
        | {"client_language": "JAVA", "client_version": "5.3.3"},
    )
    answered = [(one.name, broker.name) for one in layout.groups for broker in one.retry.brokers]
    yield (
        EXPORT_RECORD,
        {
            "consumer_group": [name for name, _ in answered],
            "broker_name": [name for _, name in answered],
            "kind": "consume_stats",
            "state": "payload",
        },
    )
    topics = [
        (one, topic, strategy)
        for one in layout.groups
        for topic in one.subscribed
        for strategy in _STRATEGIES
    ]
    of_topic = {
        "consumer_group": [one.name for one, _, _ in topics],
        "topic": [topic.name for _, topic, _ in topics],
        "strategy": [strategy for _, _, strategy in topics],
        "strategy_source": "report",
        "is_effective": [strategy == _STRATEGIES[0] for _, _, strategy in topics],
        "queue_count": [topic.queue_count for _, topic, _ in topics],
    }
    loads = [divmod(topic.queue_count, len(one.client_ids)) for one, topic, _ in topics]
    yield (
        ASSIGNMENT_FAIRNESS,
        of_topic
        | {
            "group_state": "online",
            "client_count": [len(one.client_ids) for one, _, _ in topics],
            "min_queues_per_client": [least for least, _ in loads],
            "max_queues_per_client": [least + 2 for least, _ in loads],
            "max_over_mean": 1.5,
            "jain_index": 0.9,
        },
    )
    yield (
        ASSIGNMENT_CHURN,
        of_topic
        | {
            "state": "compared" if baseline else "no_baseline",
            "baseline_ds": baseline,
            "moved_queue_count": 1,
            "least_move_count": 0,
        },
    )


def _topic_queues(layout: Layout) -> dict[str, Column]:
    rows = [
        (topic.name, broker.name, queue_id)
        for topic in layout.all_topics
        for broker in topic.brokers
        for queue_id in range(topic.queues_on_broker)
    ]
    return {
        name: [row[place] for row in rows] for place, name in enumerate(("topic", "broker_name", "queue_id"))
    }


def _routes(layout: Layout) -> dict[str, Column]:
    rows = [
        (topic.name, broker.name, nameserver, "differs" if number % _FAULTY_EVERY == 0 else "agrees")
        for number, topic in enumerate(layout.all_topics)
        for broker in topic.brokers
        for nameserver in layout.nameservers
    ]
    return {
        name: [row[place] for row in rows]
        for place, name in enumerate(("topic", "broker_name", "nameserver", "state"))
    } | {"differences": [["perm"]] * len(rows), "is_routed": True, "perm": 6}


def _findings(layout: Layout) -> dict[str, Column]:
    """Build a finding for each topic of a faulty group, below one for the group."""
    rows: list[dict[str, Any]] = []
    for position, one in enumerate(layout.groups):
        if not _is_faulty(position):
            continue
        root = f"{position:06}"
        rows.append(_finding(one, None, root, "member_lists_differ", None))
        rows += [
            _finding(one, topic, f"{root}-{number}", "unexpected_owner", root if number % 2 else None)
            for number, topic in enumerate(one.subscribed)
        ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _finding(one: Group, topic: Topic | None, finding_id: str, kind: str, root: str | None) -> dict[str, Any]:
    name = topic.name if topic else None
    evidence = (
        f"{topic.queue_count if topic else len(one.client_ids)} of group {one.name}: brokers list other members: "
        f"{', '.join(one.client_ids[:5])}"
    )
    return {
        "severity": "info" if root else "critical",
        "kind": kind,
        "consumer_group": one.name,
        "topic": name,
        "likely_cause": "member_lists_differ",
        "evidence": evidence,
        "advice": "Compare the members that each broker lists with the clients' own logs, and restart the clients that one broker does not list.",
        "page": f"docs/findings/{kind}.md",
        "finding_id": finding_id,
        "parent_finding_id": root,
        "root_finding_id": root,
    }


def _is_faulty(position: int) -> bool:
    return position % _FAULTY_EVERY == 0


def _table(table: Table, ds: date, columns: Mapping[str, Column]) -> pa.Table:
    """Return rows of a table: columns as given, a single value repeated, and the least value or null in all others."""
    schema = arrow_schema(table)
    count = max(
        len(column) for column in columns.values() if isinstance(column, pa.Array | np.ndarray | list)
    )
    values = {"cluster": CLUSTER, "ds": ds, **columns}
    return pa.table([_column(field, values.get(field.name), count) for field in schema], schema=schema)


def _column(field: pa.Field, value: Any, count: int) -> pa.Array:  # noqa: ANN401  # a column or its only value
    if isinstance(value, pa.Array | np.ndarray | list):
        return pa.array(value, field.type) if isinstance(value, list) else pa.array(value).cast(field.type)
    if value is None and not field.nullable:
        value = (
            ""
            if pa.types.is_string(field.type)
            else []
            if pa.types.is_list(field.type)
            else _CAPTURED_AT
            if pa.types.is_timestamp(field.type)
            else False
            if pa.types.is_boolean(field.type)
            else 0
        )
    return pa.repeat(pa.scalar(value, field.type), count)


def _lists(values: pa.Array) -> pa.Array:
    """Return lists of one value each."""
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1), pa.int32()), values)


def _repeated(column: Column, count: int) -> Column:
    return np.tile(column, count) if isinstance(column, np.ndarray) else pa.concat_arrays([column] * count)


def _seconds(command: Sequence[str]) -> float:
    """Return the seconds of a program of the project.

    Raises:
        RuntimeError: It fails.
    """
    begin = time.monotonic()
    ended = subprocess.run(  # noqa: S603  # our own programs
        [_ROOT / "setup" / "in-environment", *command],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}; see above.")
    return time.monotonic() - begin


if __name__ == "__main__":
    # By hand, into a folder that stays: python -m bench.day_report FOLDER
    days = publish_days(Warehouse.at(sys.argv[1]), FULL)
    sys.stdout.write(f"{days:,} rows{os.linesep}")
