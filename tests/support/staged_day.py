"""A small valid staged day, built row by row, so that a test can corrupt exactly one value.

Its assignments are computed with two lines of arithmetic and not with `strategies`, because the gate does not use them either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from expectations.measurement import GateDatabase, gate_database
from expectations.suites.configured_rule import CONFIGURED_RULE_SCHEMA, configured_rules
from expectations.suites.metrics import METRIC_STATEMENTS
from expectations.suites.thresholds import MEASURES_OF_KIND
from rebalance_ledger.settings import ClusterSettings
from rebalance_ledger.tables import COMPUTED_GOLD_TABLES, QUARANTINED_GROUP, SILVER_TABLES, TABLES_OF_GROUPS
from rebalance_ledger.tables.finding_advice import ADVICE, ADVICE_BY_CAUSE, KINDS_WITH_ADVICE_BY_CAUSE
from rebalance_ledger.warehouse.sandbox import SANDBOX_CONFIG
from tests.support.staged_churn import add_churn
from tests.support.staged_drift import complete
from tests.support.staged_export import export_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebalance_ledger.tables import Table

CLUSTER = "shop-test"
DS = date(2026, 11, 16)
ROUTE_FILE = "nameserver_routes.jsonl"
NAMESERVERS = ("127.0.0.1:9876", "127.0.0.1:9877")
BROKERS = ("broker-a", "broker-b")
ORDINAL = 479
"""The version ordinal that clients of 5.3.3 report."""
COMPARED = (
    "queue_assignment",
    "consumer_connection",
    "ownership_drift",
    "quarantined_group",
    "consume_progress",
)
NUMBERS_OF_OWNERS = (
    "min_queues_per_client",
    "max_queues_per_client",
    "mean_queues_per_client",
    "max_over_mean",
    "jain_index",
    "idle_client_count",
    "unowned_queue_count",
    "multiple_owner_queue_count",
    "is_within_bound",
)
"""The columns of `assignment_fairness` about the owners, which are null for a topic that no strategy divides."""
TABLES = {table.name: table for table in (*SILVER_TABLES, *COMPUTED_GOLD_TABLES)}

Row = dict[str, Any]


USUAL_SEVERITY: Final = {
    "idle_clients": "info",
    "offset_file_unused": "info",
    "unowned": "critical",
    "multiple_owners": "critical",
    "duplicate_client_id": "critical",
    "mixed_strategies": "critical",
    "offset_files_corrupt": "critical",
    "offset_file_shared": "critical",
    "broadcast_messages_lost": "critical",
}
"""By kind of the findings in staged days; `warning` for other kinds."""


@dataclass
class StagedDay:
    """The rows of every staged table by the table's name, and the export's manifest."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    manifest: list[Row] = field(default_factory=list)
    undetermined: set[str] = field(default_factory=set)
    findings_of_drift: list[tuple[Row, list[Row]]] = field(default_factory=list)
    """Groups and topics without findings for their drift and divergence."""
    export: list[Row] | None = None
    """The lines of the export; None for those from which the rows follow."""
    baseline_ds: date | None = None
    """The baseline day, if there is one."""
    before: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in COMPARED})
    """The baseline rows that the build reads, by the table's name."""
    without_churn: set[tuple[str, str, str]] = field(default_factory=set)
    """Group, topic and strategy of the omitted rows of churn."""
    excluded_groups: list[str] = field(default_factory=list)
    """Groups that are excluded from the metrics."""
    settings: ClusterSettings = field(default_factory=ClusterSettings)

    def add(self, table: str, **values: Any) -> Row:
        """Add a row of this cluster and day; columns without a value are null."""
        row: Row = {column.name: None for column in TABLES[table].all_columns}
        row |= {"cluster": CLUSTER, "ds": DS.isoformat()} | values
        unknown = row.keys() - {column.name for column in TABLES[table].all_columns}
        assert not unknown, f"{table} has no column {unknown}"
        self.rows[table].append(row)
        return row

    def of(self, table: str, **values: Any) -> list[Row]:
        """Return the rows with these values."""
        rows = list(self.rows[table])
        # Filter by one condition after the other, because days of golden vectors call this tens of thousands of times.
        for key, value in values.items():
            rows = [row for row in rows if row[key] == value]
        return rows

    def remove(self, table: str, **values: Any) -> list[Row]:
        """Remove the rows with these values, and return them."""
        removed = self.of(table, **values)
        assert removed, f"nothing to remove from {table} with {values}"
        self.rows[table] = [row for row in self.rows[table] if row not in removed]
        return removed

    def add_export_file(self, path: str, states: tuple[str, ...] = ("payload",)) -> None:
        """Add a file of the export with one line for each state, and its entry in the manifest."""
        for number, state in enumerate(states, start=1):
            self.add("export_record", kind="some_kind", file=path, line_number=number, state=state)
            if state == "rejected":
                self.add(
                    "rejected_record",
                    kind="some_kind",
                    file=path,
                    line_number=number,
                    reason="'cluster' is missing",
                    text='{"kind": "some_kind"}',
                )
        self.manifest.append(
            {
                "path": path,
                "kind": "some_kind",
                "line_count": len(states),
                "error_count": states.count("error"),
            }
        )

    def add_topic(self, topic: str, queues_per_broker: int = 4) -> None:
        """Add a topic that both name servers have on both brokers."""
        self.add_route_answers(topic, ("payload", "payload"))
        for broker in BROKERS:
            for nameserver in NAMESERVERS:
                self.add_route(nameserver, topic, broker, queues_per_broker)
            others = (queues_per_broker,) * (len(BROKERS) - 1)
            self.add_spread(topic, broker, queues_per_broker, others)

    def add_route_answers(self, topic: str, states: tuple[str, str], error_code: int | None = None) -> None:
        """Add the outcome of the route query for a topic at each name server."""
        file = f"routes of {topic}"
        self.add_export_file(file, states)
        for row, nameserver in zip(self.of("export_record", file=file), NAMESERVERS, strict=True):
            row.update(kind="nameserver_route", topic=topic, nameserver=nameserver)
            row["error_code"] = error_code if row["state"] == "error" else None

    def add_route(self, nameserver: str, topic: str, broker: str, queue_count: int, **values: Any) -> Row:
        """Add a broker to a name server's route, with a master and with readable and writable queues."""
        usual = {
            "is_in_route": True,
            "perm": 6,
            "read_queue_count": queue_count,
            "write_queue_count": queue_count,
            "subscribe_queue_count": queue_count,
            "publish_queue_count": queue_count,
            "publish_run_count": min(queue_count, 1),
            "publish_unread_count": 0,
            "has_master": True,
        }
        asked = {"nameserver": nameserver, "topic": topic, "broker_name": broker}
        return self.add("topic_route", **asked, **usual | values)

    def add_spread(
        self, topic: str, broker: str, queue_count: int, others: tuple[int, ...] = (), **values: Any
    ) -> Row:
        """Add the `producer_spread` row of a broker with this number of queues, in a topic with `others` on the other brokers."""
        left, total = sum(others), queue_count + sum(others)
        usual = {
            "publish_source": "route",
            "writable_queue_count": queue_count,
            "share": queue_count / total,
            "share_per_queue": 1 / total if queue_count else None,
            "unread_share": 0.0 if queue_count else None,
            "is_only_writable_broker": left == 0,
            "retried_share_while_lost": min(queue_count, 1) / left if left else None,
            "largest_share_after_loss": max(others) / left if left else None,
            "load_ratio_after_loss": total / left if left else None,
            "publish_list_count": 1,
        }
        return self.add("producer_spread", topic=topic, broker_name=broker, **usual | values)

    def add_group(
        self,
        group: str,
        topic: str,
        clients: tuple[str, ...] = ("c1", "c2", "c3"),
        strategies: tuple[str, ...] = ("AVG", "AVG_BY_CIRCLE"),
        message_model: str = "CLUSTERING",
    ) -> None:
        """Add an online group whose members report the first of the strategies."""
        for broker in BROKERS:
            self.add(
                "group_presence",
                broker_name=broker,
                consumer_group=group,
                state="online",
                message_model=message_model,
            )
            self.add("subscription", broker_name=broker, consumer_group=group, topic=topic)
            for number, client in enumerate(clients):
                self.add(
                    "consumer_connection",
                    broker_name=broker,
                    consumer_group=group,
                    client_id=client,
                    client_addr=f"127.0.0.1:{4000 + number}",
                    client_language="JAVA",
                    client_version_ordinal=ORDINAL,
                    client_version="5.3.3",
                )
        for client in sorted(set(clients)):
            self.add("consumer_client", consumer_group=group, client_id=client, state="online")
            self.add("client_subscription", consumer_group=group, client_id=client, topic=topic)
        for strategy in strategies:
            self.assign(group, topic, strategy, clients, is_effective=strategy == strategies[0])

    def configure(self, group: str, **rule: Any) -> None:
        """Set a group's entry in the settings."""
        self.settings.groups.update(ClusterSettings.model_validate({"groups": {group: rule}}).groups)

    def add_silent_group(self, group: str, topic: str, state: str, reason: str) -> Row:
        """Add a group whose members are absent (`offline`) or unknown (`unknown`); return its fairness row."""
        for broker in BROKERS:
            self.add("group_presence", broker_name=broker, consumer_group=group, state=state)
        for broker, queue_id in self.queues(topic):
            self.add(
                "queue_assignment",
                consumer_group=group,
                topic=topic,
                broker_name=broker,
                queue_id=queue_id,
                strategy="AVG",
                strategy_source="hypothetical",
                is_effective=False,
                reason=reason,
            )
        return self.rate(group, topic, "AVG", () if state == "offline" else None)

    def queues(self, topic: str) -> list[tuple[str, int]]:
        """Return the queues of a topic at the first name server."""
        return [
            (row["broker_name"], queue_id)
            for row in self.of("topic_route", topic=topic, nameserver=NAMESERVERS[0])
            for queue_id in range(row["subscribe_queue_count"])
        ]

    def assign(
        self, group: str, topic: str, strategy: str, clients: tuple[str, ...], *, is_effective: bool
    ) -> None:
        """Add rows of `queue_assignment` (contiguous blocks for AVG, round-robin for all others) and of `assignment_fairness`."""
        queues = self.queues(topic)
        everybody = sorted(clients)
        for index, (broker, queue_id) in enumerate(queues):
            if strategy == "BROADCASTING":
                owners = everybody
            elif strategy == "AVG":
                share, larger = divmod(len(queues), len(everybody))
                end_of_larger = larger * (share + 1)
                slot = (
                    index // (share + 1)
                    if index < end_of_larger
                    else larger + (index - end_of_larger) // share
                )
                owners = [everybody[slot]]
            else:
                owners = [everybody[index % len(everybody)]]
            for owner in dict.fromkeys(owners):
                self.add(
                    "queue_assignment",
                    consumer_group=group,
                    topic=topic,
                    broker_name=broker,
                    queue_id=queue_id,
                    strategy=strategy,
                    strategy_source="observed" if is_effective else "hypothetical",
                    is_effective=is_effective,
                    client_id=owner,
                )
                if is_effective:
                    self.hold(group, topic, broker, queue_id, owner)
        self.rate(group, topic, strategy, clients)

    def hold(self, group: str, topic: str, broker: str, queue_id: int, client: str, **values: Any) -> Row:
        """Add a client with a queue in its process queue table."""
        queue = {"topic": topic, "broker_name": broker, "queue_id": queue_id, "client_id": client}
        return self.add("observed_owner", consumer_group=group, **queue, **{"is_pop": False} | values)

    def rate(self, group: str, topic: str, strategy: str, clients: tuple[str, ...] | None) -> Row:
        """Set the row of `assignment_fairness` that follows from the rows of `queue_assignment`; `clients` is None if unknown."""
        assigned = self.of("queue_assignment", consumer_group=group, topic=topic, strategy=strategy)
        queues = {
            (row["broker_name"], row["queue_id"]) for row in assigned if row["reason"] != "route_missing"
        }
        values: Row = {
            "strategy_source": assigned[0]["strategy_source"] if assigned else "observed",
            "is_effective": assigned[0]["is_effective"] if assigned else True,
            "group_state": "unknown",
            "group_state_reason": "broker_not_asked" if clients is None else None,
            "queue_count": len(queues) if self.of("topic_route", topic=topic) else None,
            "spread_bound": {"AVG": 1, "AVG_BY_CIRCLE": 1, "MACHINE_ROOM": 1}.get(strategy),
        }
        if clients is not None:
            members = set(clients)
            owned = [
                (row["broker_name"], row["queue_id"]) for row in assigned if row["client_id"] is not None
            ]
            loads = [sum(row["client_id"] == member for row in assigned) for member in members]
            mean = sum(loads) / len(loads) if loads else None
            values |= {
                "group_state": ("broadcasting" if strategy == "BROADCASTING" else "online")
                if loads
                else "offline",
                "client_count": len(members),
                "min_queues_per_client": min(loads, default=None),
                "max_queues_per_client": max(loads, default=None),
                "mean_queues_per_client": mean,
                "max_over_mean": max(loads) / mean if mean else None,
                "jain_index": sum(loads) ** 2 / (len(loads) * sum(load**2 for load in loads))
                if mean
                else None,
                "idle_client_count": loads.count(0),
                "unowned_queue_count": len(queues - set(owned)),
                "multiple_owner_queue_count": sum(owned.count(queue) > 1 for queue in set(owned)),
                "is_within_bound": max(loads) - min(loads) <= 1
                if values["spread_bound"] is not None and loads
                else None,
            }
        if any(row["reason"] == "route_missing" for row in assigned):
            values |= dict.fromkeys(NUMBERS_OF_OWNERS)
        self.rows["assignment_fairness"] = [
            row
            for row in self.rows["assignment_fairness"]
            if (row["consumer_group"], row["topic"], row["strategy"]) != (group, topic, strategy)
        ]
        return self.add("assignment_fairness", consumer_group=group, topic=topic, strategy=strategy, **values)

    def add_finding(self, **values: Any) -> Row:
        """Add a finding that is valid except for the passed values; it is a root until another finding explains it."""
        kind = values.get("kind", "idle_clients")
        of_cause = ADVICE_BY_CAUSE.get(values.get("likely_cause") or "", "")
        usual = {
            "severity": USUAL_SEVERITY.get(kind, "warning"),
            "kind": kind,
            "evidence": "2 of 6 own nothing",
            "advice": of_cause
            if of_cause and kind in KINDS_WITH_ADVICE_BY_CAUSE
            else ADVICE.get(kind, "Remove two."),
            "page": f"docs/findings/{kind}.md",
            MEASURES_OF_KIND.get(kind, ("client_count",))[0]: 2,
        }
        return self.add("finding", **usual | values)

    def show_to(self, database: GateDatabase) -> None:
        """Register the tables and views that the statements read."""
        groups = [{"consumer_group": group} for group in self.excluded_groups]
        database.show_records("excluded_group", "consumer_group string", groups)
        for name, table in TABLES.items():
            excluded = self.excluded_groups if table in TABLES_OF_GROUPS else ()
            rows = [row for row in self.rows[name] if row.get("consumer_group") not in excluded]
            database.show_records(f"{table.layer}_{name}", ddl_of(table), rows)
        for name in COMPARED:
            table = (TABLES | {QUARANTINED_GROUP.name: QUARANTINED_GROUP})[name]
            database.show_records(f"baseline_{name}", ddl_of(table), self.before[name])
        baseline_ds = self.baseline_ds.isoformat() if self.baseline_ds else None
        run = {"cluster": CLUSTER, "ds": DS.isoformat(), "baseline_ds": baseline_ds}
        database.show_records("run", "cluster string, ds date, baseline_ds date", [run])
        database.show_records(
            "manifest_file",
            "path string, kind string, line_count bigint, error_count bigint",
            self.manifest,
        )
        database.show_records("offset_file_content", OFFSET_FILE_CONTENT, [])
        database.show_records("earlier_index_line", "ds date, value string", [])
        database.show_records("configured_rule", CONFIGURED_RULE_SCHEMA, configured_rules(self.settings))
        lines = export_lines(self) if self.export is None else self.export
        database.show_records("export_line", "kind string, value string", lines)

    def _count_members(self) -> None:
        """Set the counts of connections and of members that report a strategy, unless a test has set them."""
        connections = Counter(
            (row["consumer_group"], row["broker_name"], row["client_id"])
            for row in self.rows["consumer_connection"]
        )
        most: dict[tuple[str, str], int] = {}
        for (group, _, client), count in connections.items():
            most[group, client] = max(count, most.get((group, client), 0))
        for proxied in self.rows["proxy_connection"]:
            most.setdefault((proxied["consumer_group"], proxied["client_id"]), 1)
        for row in self.rows["queue_assignment"]:
            if row["client_connection_count"] is None and row["client_id"] is not None:
                row["client_connection_count"] = most.get((row["consumer_group"], row["client_id"]))
        for row in self.rows["assignment_fairness"]:
            if row["reporting_client_count"] is None and row["group_state"] != "unknown":
                row["reporting_client_count"] = sum(
                    group == row["consumer_group"] and self._has_reported(group, client, row["topic"])
                    for group, client in most
                )

    def _has_reported(self, group: str, client: str, topic: str) -> bool:
        """Return whether a member that subscribes to the topic reports its strategy."""
        reports = [
            row["strategy"] or row["strategy_class"]
            for table in ("consumer_client", "client_process")
            for row in self.of(table, consumer_group=group, client_id=client)
            if row["reports_queues"] is not False
            and not (row["consume_type"] == "CONSUME_ACTIVELY" and row["subscription_count"] == 0)
        ]
        topics = {
            row["topic"] for row in self.of("client_subscription", consumer_group=group, client_id=client)
        }
        return any(reports) and (not topics or topic in topics)

    def measure(self, statements: Sequence[str] = METRIC_STATEMENTS) -> list[Row]:
        """Return the gate's input: the rows of all statements, or of some."""
        complete(self)
        add_churn(self)
        self._count_members()
        for finding, rows in self.findings_of_drift:
            owners = {client for row in rows for client in row["observed_client_ids"] or ()}
            finding["client_count"] = None if finding["kind"] == "unowned" else len(owners)
            finding["client_total_count"] = max(
                (row["client_count"] for row in rows if row["client_count"] is not None), default=None
            )
        return self.measure_as_it_is(statements)

    def measure_as_it_is(self, statements: Sequence[str]) -> list[Row]:
        """Return the same without adding the derived rows: drift, churn, counts."""
        with gate_database(SANDBOX_CONFIG) as database:
            self.show_to(database)
            return database.metrics(statements)


OFFSET_FILE_CONTENT = "host string, client_id string, consumer_group string, is_previous boolean, moment int, side string, content binary"
"""The columns of the view with the bytes of offset files."""


def ddl_of(table: Table) -> str:
    """Return the columns of a table as a Spark schema."""
    return ", ".join(f"{column.name} {column.type}" for column in table.all_columns)


def healthy_day() -> StagedDay:
    """Return a day with two clustering groups, a broadcasting one, an offline one, an unreachable one, and a vanished topic."""
    day = StagedDay()
    day.add_export_file(ROUTE_FILE, ("payload",) * 200 + ("error", "rejected"))
    day.add_topic("orders")
    day.add_topic("config", queues_per_broker=1)
    day.add_group("order-service", "orders")
    day.add_group("big-service", "orders", clients=tuple(f"m{n:02}" for n in range(11)))
    day.add_group("listeners", "config", strategies=("BROADCASTING",), message_model="BROADCASTING")
    day.add_finding(consumer_group="big-service", topic="orders")
    day.add_silent_group("sleeping", "orders", "offline", "group_offline")
    day.add_silent_group("unreachable", "orders", "unknown", "members_unknown")
    keep_without_route(day, "order-service", "vanished", owner="c2")
    return day


def keep_without_route(day: StagedDay, group: str, topic: str, owner: str) -> None:
    """Add a topic without a route at any name server, to which all members subscribe, and of which one still owns queue 0 of `broker-c`."""
    queue = {
        "consumer_group": group,
        "topic": topic,
        "broker_name": "broker-c",
        "queue_id": 0,
        "client_id": owner,
    }
    if not day.of("export_record", topic=topic):
        day.add_route_answers(topic, ("error", "error"), error_code=17)
    day.add("observed_owner", **queue, is_pop=False)
    day.add(
        "queue_assignment",
        **queue,
        strategy="AVG",
        strategy_source="observed",
        is_effective=True,
        client_connection_count=1,
        reason="route_missing",
    )
    members = ("c1", "c2", "c3")
    for client in members:
        subscription = {"consumer_group": group, "client_id": client, "topic": topic}
        if not day.of("client_subscription", **subscription):
            day.add("client_subscription", **subscription)
    day.rate(group, topic, "AVG", members)
