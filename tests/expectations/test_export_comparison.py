"""Each silver row that differs from the export is detected. Values that the second reader cannot determine are not reported."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from expectations.suites import export_comparison, metrics
from tests.support.staged_day import BROKERS, NAMESERVERS, Row, StagedDay, healthy_day
from tests.support.staged_export import export_lines, failure, line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


JUDGED = {expectation.expectation_id for expectation in export_comparison.SUITE.expectations}
STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if "'queue_offset.equals_export'" in text]
PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."
SHA256 = "0" * 64
SOURCE = "a broker that fails, of "
MS = 1_794_830_400_123
INSTANT_OF_LINES = "2026-11-16T12:00:00.123Z"
INSTANT = "2026-11-16T12:00:00.123+00:00"
LATER = "2026-11-16T12:00:00.124+00:00"
OF = {
    "queue_offset": "topic",
    "topic_route": "topic",
    "topic_config": "broker_name",
    "subscription_group": "broker_name",
    "message_request_mode": "broker_name",
    "broker": "nameserver",
    "broker_setting": "broker_name",
    "queue_order_lock": "broker_name",
    "export_record": "broker_name",
}
"""Table -> the column that names the subject of its rows, if it is not `consumer_group`."""
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}
EXCUSED: dict[str, Callable[[StagedDay, str], None]] = {}


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a change of silver, for a group or topic named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, set(expected))
        return plant

    return register


def excused(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
    """Register a change, for a group or topic named like the function, that must not be reported."""
    EXCUSED[plant.__name__] = plant
    return plant


def rows_of(day: StagedDay, table: str, name: str) -> list[Row]:
    return day.of(
        table, **{OF.get(table, "consumer_group"): SOURCE + name if table == "export_record" else name}
    )


def changed(table: str, column: str, value: object, *, at: int = 0) -> None:
    """Register a fault: a different value in one row of the table."""

    def plant(day: StagedDay, name: str) -> None:
        row = rows_of(day, table, name)[at]
        assert row[column] != value
        row[column] = value

    plant.__name__ = f"{table}_{column}_is_{value}".lower().translate(str.maketrans(":.+-", "____"))
    fault(f"{table}.equals_export")(plant)


for _table, _column, _value in (
    ("queue_offset", "max_offset", 101),
    ("queue_offset", "min_offset", 11),
    ("queue_offset", "queue_id", 7),
    ("queue_offset", "broker_name", "broker-x"),
    ("queue_offset", "last_stored_at", LATER),
    ("queue_offset", "last_stored_at", None),
    ("consume_progress", "consumer_offset", 180),
    ("consume_progress", "broker_offset", None),
    ("consume_progress", "pull_offset", 91),
    ("consume_progress", "topic", "other"),
    ("consume_progress", "last_consumed_at", LATER),
    ("observed_owner", "is_pop", True),
    ("observed_owner", "is_dropped", None),
    ("observed_owner", "commit_offset", 0),
    ("observed_owner", "last_pull_at", LATER),
    ("observed_owner", "last_consumed_at", LATER),
    ("observed_owner", "client_id", "c9"),
    ("process_owner", "process", "p9"),
    ("process_owner", "queue_id", 7),
    ("consumer_connection", "client_addr", "127.0.0.1:1"),
    ("consumer_connection", "client_language", "GO"),
    ("consumer_connection", "client_version_ordinal", 3),
    ("subscription", "expression", "a || b"),
    ("subscription", "expression_type", None),
    ("proxy_connection", "client_addr", "127.0.0.1:1"),
    ("proxy_connection", "proxy", "proxy-b"),
    ("proxy_subscription", "expression", "a || b"),
    ("topic_route", "nameserver", "127.0.0.1:1"),
    ("topic_route", "broker_name", "broker-x"),
    ("topic_route", "perm", 4),
    ("topic_route", "read_queue_count", 5),
    ("topic_route", "write_queue_count", None),
    ("topic_route", "subscribe_queue_count", 3),
    ("topic_route", "has_master", False),
    ("topic_route", "order_topic_conf", "broker-a:4"),
    ("topic_route", "is_in_route", False),
    ("topic_route", "queue_data_count", None),
    ("subscription_group", "consumer_group", "other"),
    ("subscription_group", "is_consume_enabled", False),
    ("subscription_group", "is_broadcast_enabled", False),
    ("subscription_group", "retry_queue_count", 2),
    ("subscription_group", "retry_max_count", None),
    ("message_request_mode", "consumer_group", "other"),
    ("message_request_mode", "topic", "other"),
    ("message_request_mode", "mode", "PULL"),
    ("message_request_mode", "pop_share_queue_count", 0),
    ("broker", "broker_name", "other"),
    ("broker", "broker_cluster_name", "other"),
    ("broker", "broker_id", 2),
    ("broker", "broker_addr", "127.0.0.1:1"),
    ("topic_config", "topic", "other"),
    ("topic_config", "perm", 4),
    ("topic_config", "read_queue_count", 5),
    ("topic_config", "write_queue_count", 5),
    ("topic_config", "is_order", True),
    ("queue_offset", "captured_at", LATER),
    ("consumer_connection", "client_version", "5.3.2"),
    ("proxy_connection", "client_version", None),
    ("group_presence", "broker_name", "broker-x"),
    ("group_presence", "state", "unknown"),
    ("group_presence", "message_model", "BROADCASTING"),
    ("group_presence", "consume_type", None),
    ("group_presence", "consume_from_where", "CONSUME_FROM_FIRST_OFFSET"),
    ("proxy_presence", "proxy", "proxy-b"),
    ("proxy_presence", "state", "offline"),
    ("proxy_presence", "message_model", None),
    ("proxy_presence", "consume_type", "CONSUME_POP"),
    *(
        (table, column, value)
        for table in ("consumer_client", "client_process")
        for column, value in (
            ("client_id", "c9"),
            ("state", "unknown"),
            ("captured_at", LATER),
            ("strategy_class", "Own"),
            ("strategy", "AVG"),
            ("message_model", None),
            ("consume_type", "CONSUME_POP"),
            ("consume_from_where", "CONSUME_FROM_TIMESTAMP"),
            ("reports_queues", False),
            ("subscription_count", 3),
            ("is_orderly", None),
            ("is_client_rebalance", False),
            ("client_version", "5.3.2"),
            ("started_at", LATER),
        )
    ),
    ("client_process", "process", "p9"),
    ("client_subscription", "topic", "other"),
    ("client_subscription", "expression", "a || b"),
    ("client_subscription", "expression_type", None),
    ("memory_offset", "client_id", "c9"),
    ("memory_offset", "topic", "other"),
    ("memory_offset", "broker_name", "broker-x"),
    ("memory_offset", "queue_id", 7),
    ("memory_offset", "memory_offset", 0),
    ("memory_offset", "captured_at", LATER),
    ("queue_order_lock", "consumer_group", "other"),
    ("queue_order_lock", "topic", "other"),
    ("queue_order_lock", "queue_id", 7),
    ("queue_order_lock", "popped_at", LATER),
    ("queue_order_lock", "invisible_ms", 1),
    ("queue_order_lock", "in_flight_count", 3),
    ("queue_order_lock", "head_offset", 40),
    ("queue_order_lock", "last_offset", 44),
    ("queue_order_lock", "redelivery_count", 0),
    ("queue_order_lock", "next_visible_at", LATER),
    ("queue_order_lock", "blocked_until", None),
    ("queue_order_lock", "captured_at", LATER),
    ("broker_setting", "setting", "enableRetryTopicV2"),
    ("broker_setting", "value", "true"),
    ("offset_file", "host", "h9"),
    ("offset_file", "client_id", "c9"),
    ("offset_file", "moment", 0),
    ("offset_file", "state", "failed"),
    ("offset_file", "path", "offset_files/x"),
    ("offset_file", "size_bytes", 0),
    ("offset_file", "modified_at", LATER),
    ("offset_file", "sha256", "00"),
    ("offset_file", "captured_at", LATER),
    ("offset_file", "error_message", "x"),
    ("export_record", "kind", "event"),
    ("export_record", "captured_at", LATER),
    ("export_record", "nameserver", None),
    ("export_record", "broker_name", "broker-x"),
    ("export_record", "consumer_group", "other"),
    ("export_record", "topic", None),
    ("export_record", "client_id", "c9"),
    ("export_record", "state", "payload"),
    ("export_record", "error_type", "x"),
    ("export_record", "error_code", 206),
    ("export_record", "error_message", None),
):
    changed(_table, _column, _value)


def subject(day: StagedDay, name: str) -> None:
    """Add a group and a topic of that name, with a row in each table for each broker."""
    for broker in BROKERS:
        queue = {"topic": name, "broker_name": broker, "queue_id": 0}
        day.add(
            "queue_offset",
            **queue,
            min_offset=10,
            max_offset=100,
            last_stored_at=INSTANT,
            captured_at=INSTANT,
        )
        day.add(
            "consume_progress",
            consumer_group=name,
            **queue,
            broker_offset=100,
            consumer_offset=90,
            pull_offset=90,
            last_consumed_at=INSTANT,
        )
        times = {"last_pull_at": INSTANT, "last_consumed_at": INSTANT}
        held = {
            "consumer_group": name,
            **queue,
            "is_pop": False,
            "is_dropped": False,
            "commit_offset": 90,
            **times,
        }
        popped = held | {"is_pop": True, "queue_id": 1, "commit_offset": None, "last_consumed_at": None}
        for row in (held, popped):
            day.add("observed_owner", client_id="c1", **row)
            day.add("process_owner", client_id="c1", process="p1", **row)
        client = {"client_id": "c1", "client_addr": "127.0.0.1:4000", "client_language": "JAVA"}
        day.add(
            "consumer_connection",
            consumer_group=name,
            broker_name=broker,
            **client,
            client_version_ordinal=433,
            client_version="5.1.0",
        )
        day.add(
            "proxy_connection",
            consumer_group=name,
            proxy=f"proxy of {broker}",
            **client,
            client_version_ordinal=232,
            client_version="4.1.0-SNAPSHOT",
        )
        models = {"state": "online", "message_model": "CLUSTERING", "consume_type": "CONSUME_PASSIVELY"}
        start = {"consume_from_where": "CONSUME_FROM_LAST_OFFSET"}
        day.add("group_presence", consumer_group=name, broker_name=broker, **models, **start)
        day.add("proxy_presence", consumer_group=name, proxy=f"proxy of {broker}", **models)
        for topic in (name, f"%RETRY%{name}"):
            expression = {"topic": topic, "expression_type": "TAG", "expression": "*"}
            day.add("subscription", consumer_group=name, broker_name=broker, **expression)
            day.add("proxy_subscription", consumer_group=name, proxy=f"proxy of {broker}", **expression)
        day.add_route(NAMESERVERS[0], name, broker, 4, queue_data_count=1)
    description = {
        "state": "online",
        "captured_at": INSTANT,
        "strategy_class": f"{PACKAGE}AllocateMessageQueueByMachineRoom",
        "strategy": "MACHINE_ROOM",
        "message_model": "CLUSTERING",
        "consume_type": "CONSUME_ACTIVELY",
        "consume_from_where": "CONSUME_FROM_FIRST_OFFSET",
        "reports_queues": True,
        "is_orderly": False,
        "is_client_rebalance": True,
        "client_version": "5.3.3",
        "started_at": INSTANT,
    }
    client = {"consumer_group": name, "client_id": "c1"}
    day.add("consumer_client", **client, **description, subscription_count=2)
    day.add("client_process", **client, process="p1", **description, subscription_count=0)
    for topic in (name, f"%RETRY%{name}"):
        day.add("client_subscription", **client, topic=topic, expression_type="TAG", expression="*")
    for queue_id in (0, 1):
        queue = {"topic": name, "broker_name": "broker-a", "queue_id": queue_id}
        day.add("memory_offset", **client, **queue, memory_offset=50 + queue_id, captured_at=INSTANT)
    file = {"host": "h", "size_bytes": 5, "path": f"offset_files/{name}", "sha256": SHA256}
    times = {"modified_at": INSTANT, "captured_at": INSTANT}
    for number in (1, 2):
        day.add("offset_file", line_number=number, moment=number, state="landed", **client, **file, **times)
    day.add("broker_setting", broker_name=name, setting="serverLoadBalancerEnable", value="false")
    day.add("broker_setting", broker_name=name, setting="defaultPopShareQueueNum", value="-1")
    lock = {
        "consumer_group": "fifo",
        "broker_name": name,
        "topic": name,
        "popped_at": INSTANT,
        "invisible_ms": 60_000,
        "in_flight_count": 2,
        "head_offset": 41,
        "last_offset": 43,
        "redelivery_count": 2,
        "next_visible_at": "2026-11-16T12:00:30.123+00:00",
        "blocked_until": "2026-11-16T12:01:00.123+00:00",
        "captured_at": INSTANT,
    }
    for queue_id in (0, 3):
        day.add("queue_order_lock", queue_id=queue_id, **lock)
    # A separate topic on one name server, and a separate broker.
    day.add("topic_route", nameserver=NAMESERVERS[1], topic=name, broker_name="ordered", is_in_route=False)
    numbers = {"perm": 6, "read_queue_count": 4, "write_queue_count": 4, "is_order": False}
    group = {
        "is_consume_enabled": True,
        "is_broadcast_enabled": True,
        "retry_queue_count": 1,
        "retry_max_count": 16,
    }
    for topic in (name, "also"):
        day.add("topic_config", broker_name=name, topic=topic, **numbers)
        day.add("subscription_group", broker_name=name, consumer_group=topic, **group)
        mode = {"mode": "POP", "pop_share_queue_count": 3}
        day.add("message_request_mode", broker_name=name, topic=topic, consumer_group="poppers", **mode)
    for broker_id in (0, 1):
        address = {"broker_name": "broker-a", "broker_cluster_name": "c", "broker_id": broker_id}
        day.add("broker", nameserver=name, **address, broker_addr=f"127.0.0.1:{broker_id}")


def hand_written(name: str) -> list[Row]:
    """Return the lines for rows that `export_lines` does not write."""
    entries = ",".join(
        f'{{"brokerName":"broker-a","queueId":{queue_id},"topic":"{name}"}}:{50 + queue_id}'
        for queue_id in (0, 1)
    )
    status = f'{{"consumerTable":{{"c1":{{{entries}}}}},"messageQueueTable":{{}}}}'
    order = f'{{"popTime":{MS},"i":60000,"o":[40,1,3],"cm":1,"ot":{{41:{MS + 30_000}}},"oc":{{41:2}},"q":9}}'
    locks = f'{{"table":{{"{name}@fifo":{{0:{order},3:{order}}},"a@b@c":{{0:{order}}}}}}}'
    asked = {"group": name, "client_id": "c1"}
    files = [
        {"kind": "offset_file", "host": "h", "moment": number, "path": f"offset_files/{name}"}
        | {"size": 5, "sha256": SHA256, "mtime": INSTANT_OF_LINES}
        | asked
        for number in (1, 2)
    ]
    settings = "serverLoadBalancerEnable=false\nother=1\n\ndefaultPopShareQueueNum=-1"
    return [
        line("consumer_status", status, topic=name, **asked),
        line("consumer_order_info", locks, broker=name),
        *({"kind": "offset_file", "value": json.dumps(file)} for file in files),
        line("broker_config", settings, broker=name),
        failure(
            "consume_stats_merged",
            "CODE: 17  DESC: no",
            broker=SOURCE + name,
            nameserver="n",
            topic="t",
            **asked,
        ),
    ]


def add_record(day: StagedDay, row: Row) -> None:
    """Set the capture time of a line, and add its row of `export_record`."""
    of_line = json.loads(row["value"]) | {"captured_at": INSTANT_OF_LINES}
    row["value"] = json.dumps(of_line)
    error = of_line.get("error", {})
    day.add(
        "export_record",
        kind=row["kind"],
        file=f"{row['kind']}.jsonl",
        captured_at=INSTANT,
        consumer_group=of_line.get("group"),
        broker_name=of_line.get("broker"),
        **{name: of_line.get(name) for name in ("nameserver", "topic", "client_id")},
        state="error" if error else "payload",
        error_type=error.get("type"),
        error_message=error.get("message"),
        error_code=int(found[1]) if (found := re.match(r"CODE: (\d+)", error.get("message", ""))) else None,
    )


TABLES_OF_GROUPS = (
    "group_presence",
    "proxy_presence",
    "consumer_client",
    "client_process",
    "client_subscription",
    "memory_offset",
    "offset_file",
    "proxy_connection",
    "proxy_subscription",
    "consume_progress",
    "observed_owner",
    "process_owner",
    "consumer_connection",
    "subscription",
)


def lost(table: str) -> None:
    def plant(day: StagedDay, name: str) -> None:
        [first, *_] = rows_of(day, table, name)
        day.remove(table, **first)

    plant.__name__ = f"{table}_lost"
    fault(f"{table}.equals_export")(plant)


def twice(table: str) -> None:
    def plant(day: StagedDay, name: str) -> None:
        day.rows[table].append(dict(rows_of(day, table, name)[0]))

    plant.__name__ = f"{table}_twice"
    fault(f"{table}.equals_export")(plant)


for _table in (*OF, *TABLES_OF_GROUPS):
    lost(_table)
    twice(_table)


@fault("observed_owner.equals_export")
def nothing_is_left_of_a_client(day: StagedDay, name: str) -> None:
    day.remove("observed_owner", consumer_group=name)


@fault("observed_owner.equals_export")
def a_client_that_the_export_does_not_have(day: StagedDay, name: str) -> None:
    day.add(
        "observed_owner",
        consumer_group=name,
        client_id="c2",
        topic="t",
        broker_name="b",
        queue_id=0,
        is_pop=False,
    )


@fault("consume_progress.equals_export")
def offsets_of_two_queues_exchanged(day: StagedDay, name: str) -> None:
    first, second = day.of("consume_progress", consumer_group=name)
    first["consumer_offset"], second["consumer_offset"] = 89, 91


def payload_changed(day: StagedDay, kind: str, name: str, pattern: str, replacement: str) -> None:
    """Change a payload in the export without a change to silver, as if the build's reader read the same values."""
    assert day.export is not None
    for row in day.export:
        line = json.loads(row["value"])
        if row["kind"] == kind and name in {line.get("group"), line.get("topic"), line.get("broker")}:
            line["payload"], count = re.subn(pattern, replacement, line["payload"])
            assert count
            row["value"] = json.dumps(line)


@excused
def laid_out_with_spaces(day: StagedDay, name: str) -> None:
    payload_changed(day, "consume_stats", name, r"\}:\{", "}\n\t : \r\n {")


@excused
def an_unknown_field(day: StagedDay, name: str) -> None:
    payload_changed(day, "broker_topic_stats", name, r'"minOffset"', '"novel":[1,"x"],"minOffset"')


@excused
def a_route_with_a_field_twice(day: StagedDay, name: str) -> None:
    payload_changed(
        day,
        "nameserver_route",
        name,
        r'"brokerDatas":',
        '"orderTopicConf":"x","orderTopicConf":null,"brokerDatas":',
    )


@excused
def a_connection_with_a_field_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_connection", name, r'"clientAddr":', '"clientAddr":"x","clientAddr":')


@excused
def a_client_with_a_field_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_running_info", name, r'"subString":', '"subString":"x","subString":')


@excused
def a_subscription_with_a_topic_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_running_info", name, r'"topic":(?= "%RETRY%)', '"topic":7,"topic":')


@excused
def a_reference(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_connection", name, r'\{"expressionType[^{}]*\}', r'{"$ref":"$.x"}')


@excused
def a_name_that_is_escaped(day: StagedDay, name: str) -> None:
    payload_changed(day, "consume_stats", name, r'"brokerName": "b', r'"brokerName": "\\\\u0062')


@excused
def a_topic_with_braces(day: StagedDay, name: str) -> None:
    for row in day.of("consume_progress", consumer_group=name):
        row["topic"] = "a}:{b"
    payload_changed(day, "consume_stats", name, rf'"topic": "{name}"', '"topic": "a}:{b"')


@excused
def an_answer_that_the_build_rejected(day: StagedDay, name: str) -> None:
    asked = {"kind": "consume_stats", "consumer_group": name, "state": "rejected", "captured_at": INSTANT}
    day.add("export_record", file="consume_stats.jsonl", line_number=1, **asked)
    day.remove("consume_progress", consumer_group=name)


@excused
def two_addresses_of_a_broker_that_answer_otherwise(day: StagedDay, name: str) -> None:
    assert day.export is not None
    day.export.append(line("consume_stats", '{"offsetTable":{}}', group=name, broker=BROKERS[0]))


@excused
def an_answer_after_which_the_broker_knew_no_member(day: StagedDay, name: str) -> None:
    asked = {"kind": "consume_stats", "consumer_group": name, "state": "payload", "counted_line": 2}
    day.add("export_record", file="consume_stats.jsonl", line_number=1, **asked)
    day.remove("consume_progress", consumer_group=name, broker_name=BROKERS[0])


@excused
def a_client_asked_through_two_brokers(day: StagedDay, name: str) -> None:
    assert day.export is not None
    asked = {"group": name, "client_id": "c1", "broker": "broker-other"}
    day.export.append(line("consumer_running_info", '{"mqTable":{}}', **asked))
    day.remove("observed_owner", consumer_group=name)


@excused
def a_queue_held_and_popped(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_running_info", name, r'"queueId": 1', '"queueId": 0')
    day.remove("observed_owner", consumer_group=name, is_pop=True)


@excused
def a_queue_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "broker_topic_stats", name, r"(\{[^{}]*\}:\{[^{}]*\})", r"\1,\1")


@excused
def a_broker_twice_in_a_route(day: StagedDay, name: str) -> None:
    payload_changed(day, "nameserver_route", name, r'"queueDatas":\[(.*)\]', r'"queueDatas":[\1,\1]')


@excused
def a_topic_whose_queues_are_logical(day: StagedDay, name: str) -> None:
    payload_changed(
        day, "nameserver_route", name, r"^\{", '{"topicQueueMappingByBroker":{"a":{"bname":"a"}},'
    )
    for row in day.of("topic_route", topic=name):
        row["subscribe_queue_count"] = 0


@excused
def a_route_without_brokers(day: StagedDay, name: str) -> None:
    payload_changed(day, "nameserver_route", name, r"^.*$", "{}")
    day.remove("topic_route", topic=name)


@excused
def a_connection_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_connection", name, r"\[(\{[^{}]*\})\]", r"[\1, \1]")


@excused
def a_value_that_names_another_queue(day: StagedDay, name: str) -> None:
    payload_changed(day, "consume_stats", name, r'"consumerOffset"', '"topic":"other","consumerOffset"')


@excused
def a_number_of_a_queue_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consume_stats", name, r'"consumerOffset"', '"consumerOffset":1,"consumerOffset"')


@excused
def a_secret_that_tables_do_not_have(day: StagedDay, name: str) -> None:
    for row in day.of("subscription", consumer_group=name):
        row["expression"] = "<redacted>"


@excused
def a_setting_that_tables_do_not_have(day: StagedDay, name: str) -> None:
    day.of("broker_setting", broker_name=name)[0]["value"] = "<redacted>"


@excused
def a_setting_after_a_continued_line(day: StagedDay, name: str) -> None:
    payload_changed(day, "broker_config", name, "other=1", r"other=\\")
    day.remove("broker_setting", broker_name=name, setting="defaultPopShareQueueNum")


@excused
def a_member_that_names_a_queue_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_status", name, r"\{\{(.*?:50)", r"{{\1,{\1")
    day.remove("memory_offset", consumer_group=name, queue_id=0)


@excused
def a_queue_of_a_member_with_a_field_twice(day: StagedDay, name: str) -> None:
    payload_changed(day, "consumer_status", name, r'"brokerName":', '"brokerName":"x","brokerName":')


@excused
def a_line_without_an_instant(day: StagedDay, name: str) -> None:
    assert day.export is not None
    for row in day.export:
        of_line = json.loads(row["value"])
        if of_line.get("broker") == SOURCE + name or (
            of_line["kind"] == "offset_file" and of_line["group"] == name
        ):
            row["value"] = json.dumps(of_line | {"captured_at": None})
    day.remove("export_record", broker_name=SOURCE + name)
    day.remove("offset_file", consumer_group=name)


@excused
def an_empty_answer(day: StagedDay, name: str) -> None:
    assert day.export is not None
    day.export.append(line("consume_stats", '{"offsetTable":{}}', group=name, broker="broker-empty"))


@excused
def a_group_that_the_day_is_without(day: StagedDay, name: str) -> None:
    day.excluded_groups.append(name)


def write_export(day: StagedDay, names: Collection[str]) -> None:
    """Write the lines of the day. Only lines of these names get a capture time and a row of `export_record`."""
    by_hand = {"consumer_status", "offset_file", "consumer_order_info", "broker_config"}
    written = [row for row in export_lines(day) if row["kind"] not in by_hand]
    day.export = [*written, *(row for name in names for row in hand_written(name))]
    subjects = {*names, *(SOURCE + name for name in names)}
    for row in day.export:
        if subjects & {value for value in json.loads(row["value"]).values() if isinstance(value, str)}:
            add_record(day, row)


@pytest.fixture(scope="module")
def measured() -> dict[str, Row]:
    day = healthy_day()
    for name in (*FAULTS, *EXCUSED):
        subject(day, name)
    write_export(day, (*FAULTS, *EXCUSED))
    for name, plant in [*((name, plant) for name, (plant, _) in FAULTS.items()), *EXCUSED.items()]:
        plant(day, name)
    return {row["expectation_id"]: row for row in day.measure(STATEMENTS)}


def seen(measured: dict[str, Row], name: str) -> set[str]:
    return {
        expectation_id
        for expectation_id, row in measured.items()
        if expectation_id in JUDGED
        for subject in row["affected_subjects"]
        if {name, SOURCE + name} & {subject["consumer_group"], subject["topic"], subject["broker_name"]}
        or any(f"name server {name}," in example for example in subject["examples"])
    }


@pytest.mark.parametrize("name", FAULTS)
def test_a_row_that_differs_from_the_export_is_detected(name: str, measured: dict[str, Row]) -> None:
    assert seen(measured, name) == FAULTS[name][1]


@pytest.mark.parametrize("name", EXCUSED)
def test_values_that_the_second_reader_cannot_determine_are_no_difference(
    name: str, measured: dict[str, Row]
) -> None:
    assert seen(measured, name) == set()


def test_a_day_that_equals_its_export_has_no_difference() -> None:
    day = healthy_day()
    subject(day, "some")
    write_export(day, ("some",))

    found: dict[str, Any] = {row["expectation_id"]: row["observed"] for row in day.measure(STATEMENTS)}

    assert found == dict.fromkeys(JUDGED, 0.0)


def test_the_sentence_shows_both_values(measured: dict[str, Row]) -> None:
    [subject] = [
        subject
        for subject in measured["queue_offset.equals_export"]["affected_subjects"]
        if subject["topic"] == "queue_offset_max_offset_is_101"
    ]

    [example] = subject["examples"]
    assert example.endswith(
        "2 rows, the export has 2, other values, max_offset in all 201, the export has 200"
    )


def test_unreadable_answers_are_counted(measured: dict[str, Row]) -> None:
    compared = measured["export_record.lines_compared"]

    assert 0 < compared["observed"] < 0.1
    assert re.fullmatch(r"\d+ of \d+ answers", compared["examples"][0])
