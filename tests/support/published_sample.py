"""Builds small published warehouses from rows as dictionaries; columns that are irrelevant to a test are filled in."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from rebalance_ledger.tables import ALL_TABLES, Table
from rebalance_ledger.warehouse.arrow_schema import arrow_schema
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

Rows = list[dict[str, Any]]
CAPTURED_AT = datetime(2026, 11, 18, 2, tzinfo=UTC)

TABLES = {table.name: table for table in ALL_TABLES}

_FILLED_IN: dict[str, Any] = {
    "string": "",
    "int": 0,
    "bigint": 0,
    "boolean": False,
    "array<string>": [],
    "array<table_version>": [],
}


class Publisher:
    """Writes days as publication does: each table, then one row of `publication` with their versions."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._warehouse = Warehouse(self.root)

    def publish(self, cluster: str, ds: str, *, baseline_ds: str | None = None, **rows_of: Rows) -> None:
        """Publish a complete day."""
        versions = [
            {
                "table_name": TABLES[name].qualified_name,
                "delta_version": self.write(cluster, ds, name, rows),
                "row_count": len(rows),
                "content_hash": "",
            }
            for name, rows in rows_of.items()
        ]
        baseline = None if baseline_ds is None else date.fromisoformat(baseline_ds)
        publication = {"gate_verdict": "passed", "baseline_ds": baseline, "tables": versions}
        self.write(cluster, ds, "publication", [publication])

    def write(self, cluster: str, ds: str, name: str, rows: Rows) -> int:
        """Write one table of a day, as a run that is killed before its publication; return the Delta version."""
        return self._write(self._warehouse.published(TABLES[name]), TABLES[name], cluster, ds, rows)

    def quarantine(self, cluster: str, ds: str, rows: Rows) -> None:
        """Write the gate's verdicts on a rejected day."""
        table = TABLES["gate_result"]
        self._write(self._warehouse.quarantine(table), table, cluster, ds, rows)

    def _write(self, path: str, table: Table, cluster: str, ds: str, rows: Rows) -> int:
        day = {"cluster": cluster, "ds": date.fromisoformat(ds)}
        defaults = {
            column.name: None if column.nullable else _FILLED_IN.get(column.type)
            for column in table.all_columns
        }
        filled = [{**defaults, **row, **day} for row in rows]
        batch = pa.Table.from_pylist(filled, schema=arrow_schema(table))
        if DeltaTable.is_deltatable(path):
            write_deltalake(path, batch, mode="overwrite", predicate=f"cluster = '{cluster}' AND ds = '{ds}'")
        else:
            write_deltalake(path, batch, partition_by=["cluster"])
        return int(DeltaTable(path).version())


def publish_sharing_day(root: Path) -> str:
    """Publish a day of `mail-prod`: `mail-sender` pops three queues, of the last of which the readers and the messages are unknown."""
    readers = ["10.1.0.201@mail", "10.1.0.202@mail"]
    rows: Rows = [
        {"consumer_group": "mail-sender", "topic": "mails", "broker_name": "hz@broker-a", "queue_id": queue}
        for queue in range(3)
    ]
    known = {"expected_reader_ids": readers, "ready_count": 20, "in_flight_count_at_most": 3}
    publisher = Publisher(root)
    publisher.publish(
        "mail-prod",
        "2026-11-18",
        ownership_drift=[
            {
                **row,
                "state": "shared",
                "group_state": "online",
                "strategy": "POP",
                "observed_client_ids": [],
                "observed_process_count": 0,
            }
            for row in rows
        ],
        queue_sharing=[
            {**row, "request_mode": "POP", "puller_ids": [], **(known if row["queue_id"] < 2 else {})}
            for row in rows
        ],
        assignment_fairness=[
            {
                "consumer_group": "mail-sender",
                "topic": "mails",
                "strategy": "POP",
                "is_effective": True,
                "group_state": "online",
            }
        ],
        proxy_connection=[
            {
                "consumer_group": "mail-sender",
                "client_id": reader,
                "proxy": "10.0.0.8:8080",
                "client_language": "JAVA",
                "client_version": "5.3.3",
            }
            for reader in readers
        ],
    )
    return publisher.root


def publish_shop_days(root: Path) -> str:
    """Publish two days of `shop-prod` and one of `pay-prod`, with results for every query of sql/questions."""
    publisher = Publisher(root)
    publisher.publish("pay-prod", "2026-11-17", **_day(order_clients=["10.3.0.1@a", "10.3.0.2@b"]))
    publisher.publish(
        "shop-prod",
        "2026-11-17",
        **_day(order_clients=["10.1.0.10@order-2", "10.1.0.11@order-3", "10.1.0.9@order-1"]),
    )
    publisher.publish(
        "shop-prod", "2026-11-18", **_day(order_clients=["10.1.0.10@order-2", "10.1.0.9@order-1"])
    )
    publisher.quarantine(
        "shop-prod",
        "2026-11-19",
        [
            {
                "expectation_id": "queue_assignment.one_row_per_owner",
                "severity": "block",
                "observed": 3.0,
                "threshold_max": 0.0,
                "examples": ["order-service order-events hz@broker-a 3"],
            }
        ],
    )
    return publisher.root


def _day(order_clients: list[str]) -> dict[str, Rows]:
    """Return a day: `order-service` divides eight queues by AVG_BY_CIRCLE; two processes of `member-sync` share a client id."""
    orders = {"consumer_group": "order-service", "topic": "order-events", "broker_name": "hz@broker-a"}
    members = {"consumer_group": "member-sync", "topic": "payment-notify", "broker_name": "hz@broker-b"}
    effective = {"strategy": "AVG_BY_CIRCLE", "strategy_source": "observed", "is_effective": True}
    duplicate = "10.1.0.101@member"
    owned = [
        {**orders, "queue_id": queue, "client_id": order_clients[queue % len(order_clients)]}
        for queue in range(8)
    ]
    return {
        "queue_assignment": [
            *({**row, **effective, "client_connection_count": 1} for row in owned),
            *({**row, **effective, "strategy": "AVG", "is_effective": False} for row in owned),
            {**members, **effective, "queue_id": 0, "client_id": duplicate, "client_connection_count": 2},
            {**members, **effective, "queue_id": 1, "reason": "duplicate_client_id"},
            {**members, **effective, "queue_id": 2, "reason": "members_unknown"},
        ],
        "assignment_fairness": [
            {
                **_without(members, "broker_name"),
                **effective,
                "client_count": 3,
                "queue_count": 8,
                "min_queues_per_client": 0,
                "max_queues_per_client": 5,
                "max_over_mean": 1.875,
                "jain_index": 0.6336,
                "unowned_queue_count": 1,
            },
            {
                **_without(members, "broker_name"),
                "strategy": "AVG",
                "min_queues_per_client": 2,
                "max_queues_per_client": 3,
                "unowned_queue_count": 0,
            },
        ],
        "assignment_churn": [
            {
                **_without(orders, "broker_name"),
                **effective,
                "state": "compared",
                "moved_queue_count": 5,
                "least_move_count": 2,
                "left_client_count": 1,
                "changes": ["clients_left"],
            },
            {
                **_without(members, "broker_name"),
                **effective,
                "state": "unknown_now",
                "baseline_effective_strategy": "AVG",
                "observed_queue_count": 2,
                "observed_moved_queue_count": 1,
            },
        ],
        "observed_owner": [
            *owned[:7],
            {**owned[7], "client_id": "10.9.9.9@stranger"},
        ],
        "ownership_drift": [
            *(_drift(row, [row["client_id"]], [row["client_id"]]) for row in owned[:7]),
            _drift(owned[7], [owned[7]["client_id"]], ["10.9.9.9@stranger"])
            | {"state": "unexpected_owner", "likely_cause": "member_lists_differ", "member_list_count": 2},
            _drift({**members, "queue_id": 0}, [duplicate], [duplicate])
            | {
                "state": "multiple_owners",
                "likely_cause": "duplicate_client_id",
                "observed_process_count": 2,
                "shared_client_id_count": 1,
            },
            _drift({**members, "queue_id": 1}, [], [])
            | {
                "state": "unowned",
                "likely_cause": "duplicate_client_id",
                "expected_reason": "duplicate_client_id",
                "shared_client_id_count": 1,
            },
            _drift({**members, "queue_id": 2}, None, [duplicate])
            | {"state": "unknown", "unknown_reason": "members_unknown", "unasked_client_count": 1},
            _drift({**members, "consumer_group": "sleeping", "queue_id": 0}, [], [])
            | {"state": "unowned", "likely_cause": "group_offline"},
        ],
        "queue_sharing": [
            {
                "consumer_group": "mail-sender",
                "topic": "mails",
                "broker_name": "hz@broker-a",
                "queue_id": queue,
                "request_mode": "POP",
                "request_mode_source": "entry",
                "expected_reader_ids": ["10.1.0.201@mail", "10.1.0.202@mail"],
                "observed_reader_ids": ["10.1.0.201@mail"],
                "sharing_degree": 2,
                "puller_ids": [],
                "ready_count": 10 * queue,
                "in_flight_count_at_most": 3,
                "retry_backlog_count": 2,
            }
            for queue in range(2)
        ],
        "broadcast_offset_file": [
            {**_broadcaster(host), "state": state, "start_outcome": outcome, "age_ms": 90_000}
            for host, state, outcome in (
                ("10.1.1.21", "ok", "stored"),
                ("10.1.1.22", "corrupt_both", "fails_to_start"),
                ("10.1.1.23", "recovered_from_bak", "stored"),
            )
        ],
        "broadcast_offset": [
            {
                **_broadcaster("10.1.1.23"),
                "topic": "config-push",
                "broker_name": "hz@broker-a",
                "queue_id": queue,
                "state": "regressed",
                "restart_reason": "stored",
                "skipped_message_count": 0,
                "repeated_message_count": 4,
            }
            for queue in range(2)
        ],
        "route_divergence": [
            *(
                {
                    "nameserver": nameserver,
                    "topic": "order-events",
                    "broker_name": "hz@broker-a",
                    "state": "differs",
                    "differences": ["perm", *against_config],
                    "is_routed": True,
                    "perm": perm,
                    "is_config_known": True,
                    "config_perm": 6,
                    "nameserver_count": 2,
                    "agreeing_nameserver_count": 1,
                }
                for nameserver, perm, against_config in (
                    ("ns-1:9876", 6, ()),
                    ("ns-2:9876", 4, ("config_perm",)),
                )
            ),
            *(
                {
                    "nameserver": nameserver,
                    "topic": "payment-notify",
                    "broker_name": "hz@broker-b",
                    "state": state,
                    "nameserver_count": 1,
                }
                for nameserver, state in (("ns-1:9876", "same"), ("ns-2:9876", "unknown"))
            ),
        ],
        "consumer_client": [
            *({**orders, "client_id": client, "state": "online"} for client in order_clients),
            {**members, "client_id": duplicate, "state": "unknown"},
        ],
        "client_process": [
            {**members, "client_id": duplicate, "process": process, "state": "online"}
            for process in ("p1", "p2")
        ],
        "consumer_connection": [
            {**members, "client_id": duplicate, "client_addr": "10.1.0.101:4001"},
            {**members, "client_id": duplicate, "client_addr": "10.1.0.101:4002"},
            {**orders, "client_id": order_clients[0], "client_addr": "10.1.0.10:4001"},
        ],
        "consume_progress": [
            {**orders, "queue_id": 0, "broker_offset": 120, "consumer_offset": 100},
            {**orders, "queue_id": 1, "broker_offset": 50, "consumer_offset": -1},
        ],
        "queue_offset": [
            {**orders, "queue_id": queue, "min_offset": 5, "max_offset": 50, "captured_at": CAPTURED_AT}
            for queue in (1, 2)
        ],
        "topic_route": [
            {"nameserver": "ns-1:9876", "topic": "order-events", "broker_name": "hz@broker-a", "perm": 6},
            {"nameserver": "ns-2:9876", "topic": "order-events", "broker_name": "hz@broker-a", "perm": 4},
            {"nameserver": "ns-1:9876", "topic": "payment-notify", "broker_name": "hz@broker-b", "perm": 6},
            {"nameserver": "ns-2:9876", "topic": "payment-notify", "broker_name": "hz@broker-b", "perm": 6},
        ],
        "producer_spread": [
            {
                "topic": "order-events",
                "broker_name": "hz@broker-a",
                "publish_source": "route",
                "writable_queue_count": 8,
                "share": 1.0,
                "share_per_queue": 0.125,
                "unread_share": 0.0,
                "is_only_writable_broker": True,
                "publish_list_count": 2,
            },
            {
                "topic": "order-events",
                "broker_name": "hz@broker-b",
                "publish_source": "route",
                "writable_queue_count": 0,
                "share": 0.0,
                "is_only_writable_broker": False,
                "retried_share_while_lost": 0.0,
                "largest_share_after_loss": 1.0,
                "load_ratio_after_loss": 1.0,
                "publish_list_count": 2,
                "reason": "no_master",
            },
        ],
        "finding": [
            {
                "severity": "critical",
                "kind": "duplicate_client_id",
                "page": "docs/findings/duplicate_client_id.md",
                "process_count": 2,
                "consumer_group": "member-sync",
                "client_id": duplicate,
            }
        ],
        "export_record": [
            {"kind": "consumer_connection", "file": "a.jsonl", "line_number": 1, "state": "payload"},
            {
                "kind": "consume_stats",
                "file": "b.jsonl",
                "line_number": 1,
                "state": "payload",
                "broker_name": "hz@broker-a",
                "consumer_group": "order-service",
            },
            {
                "kind": "consumer_connection",
                "file": "a.jsonl",
                "line_number": 2,
                "state": "error",
                "error_type": "org.apache.rocketmq.client.exception.MQBrokerException",
                "error_code": 206,
                "broker_name": "sh@broker-c",
            },
        ],
        "quarantined_group": [
            {
                "consumer_group": "audit-log",
                "expectation_id": "queue_assignment.one_owner",
                "table_name": "gold.queue_assignment",
                "observed": 2.0,
                "examples": [
                    "group audit-log, topic audit, strategy AVG: queue hz@broker-a/0 is owned by c1 and c2"
                ],
            }
        ],
        "gate_result": [
            {"expectation_id": "finding.few", "severity": "warn", "is_success": False, "observed": 1.0}
        ],
    }


def _drift(queue: dict[str, Any], expected: list[str] | None, observed: list[str]) -> dict[str, Any]:
    """Return a row of `ownership_drift` that is a match, for a queue whose other columns are irrelevant here."""
    subject = {name: queue[name] for name in ("consumer_group", "topic", "broker_name", "queue_id")}
    owners = {"expected_client_ids": expected, "observed_client_ids": observed}
    return (
        subject
        | owners
        | {
            "state": "match",
            "observed_process_count": len(observed),
            "strategy": "AVG_BY_CIRCLE",
            "group_state": "online",
            "unasked_client_count": 0,
        }
    )


def _broadcaster(host: str) -> dict[str, Any]:
    return {"host": host, "client_id": f"{host}@DEFAULT", "consumer_group": "config-listeners"}


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
