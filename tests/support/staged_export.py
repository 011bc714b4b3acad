"""The lines of an export that give the rows of a staged day: written from the rows, so that both sides agree until one is changed."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.staged_day import Row, StagedDay


def export_lines(day: StagedDay) -> list[Row]:
    """The rows of the view `export_line`."""
    return [*_of_groups(day), *_of_brokers(day)]


def _of_groups(day: StagedDay) -> list[Row]:
    lines = []
    for (group, broker), rows in _by(day, "consume_progress", "consumer_group", "broker_name"):
        entries = [_entry(row, _offsets_of_group(row)) for row in rows]
        lines.append(line("consume_stats", _map("offsetTable", entries), group=group, broker=broker))
    for (group, client), rows in _by(day, "observed_owner", "consumer_group", "client_id"):
        lines.append(
            line("consumer_running_info", _process_tables(rows), group=group, client_id=client, broker="b")
        )
    for (group, client, process), rows in _by(day, "process_owner", "consumer_group", "client_id", "process"):
        asked = {"group": group, "client_id": client, "process": process}
        lines.append(line("process_assignment", _process_tables(rows), **asked))
    for connections, subscriptions, kind, column in (
        ("consumer_connection", "subscription", "consumer_connection", "broker_name"),
        ("proxy_connection", "proxy_subscription", "proxy_consumer_connection", "proxy"),
    ):
        listed = dict(_by(day, connections, "consumer_group", column))
        subscribed = dict(_by(day, subscriptions, "consumer_group", column))
        for group, name in sorted(listed.keys() | subscribed.keys()):
            members = _members(listed.get((group, name), []), subscribed.get((group, name), []))
            lines.append(line(kind, members, group=group, **{column.removesuffix("_name"): name}))
    return lines


def _of_brokers(day: StagedDay) -> list[Row]:
    lines = []
    for (topic, broker), rows in _by(day, "queue_offset", "topic", "broker_name"):
        entries = [_entry(row, _offsets_of_topic(row)) for row in rows]
        lines.append(line("broker_topic_stats", _map("offsetTable", entries), topic=topic, broker=broker))
    for (topic, nameserver), rows in _by(day, "topic_route", "topic", "nameserver"):
        lines.append(line("nameserver_route", _route(rows), topic=topic, nameserver=nameserver))
    for (broker,), rows in _by(day, "topic_config", "broker_name"):
        lines.append(line("broker_topic_config", _topic_configs(rows), broker=broker))
    for (broker,), rows in _by(day, "subscription_group", "broker_name"):
        lines.append(line("broker_subscription_group", _groups(rows), broker=broker))
    for (broker,), rows in _by(day, "message_request_mode", "broker_name"):
        lines.append(line("broker_message_request_mode", _modes(rows), broker=broker))
    for (nameserver,), rows in _by(day, "broker", "nameserver"):
        lines.append(line("nameserver_cluster_info", _brokers(rows), nameserver=nameserver))
    return lines


def line(kind: str, payload: str, **asked: str) -> Row:
    """One line as the view has it."""
    return {"kind": kind, "value": json.dumps({"kind": kind, "payload": payload} | asked)}


def _by(day: StagedDay, table: str, *key: str) -> list[tuple[tuple[Any, ...], list[Row]]]:
    rows_by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in day.rows[table]:
        rows_by_key[tuple(row[name] for name in key)].append(row)
    return list(rows_by_key.items())


def _entry(row: Row, value: dict[str, Any]) -> str:
    queue = {"brokerName": row["broker_name"], "queueId": row["queue_id"], "topic": row["topic"]}
    return f"{json.dumps(queue)}:{json.dumps(value)}"


def _map(name: str, entries: list[str]) -> str:
    return f'{{"{name}":{{{",".join(entries)}}}}}'


def _members(connections: list[Row], subscriptions: list[Row]) -> str:
    members = {
        "connectionSet": [
            {
                "clientId": row["client_id"],
                "clientAddr": row["client_addr"],
                "language": row["client_language"],
                "version": row["client_version_ordinal"],
            }
            for row in connections
        ],
        "subscriptionTable": {
            row["topic"]: {"expressionType": row["expression_type"], "subString": row["expression"]}
            for row in subscriptions
        },
    }
    return json.dumps(members)


def _route(rows: list[Row]) -> str:
    """The route that gives the rows; with an entry of one broker twice, of which nothing is said, where none gives them."""
    routed = [row for row in rows if row["queue_data_count"] is not None]
    entries = [
        {
            "brokerName": row["broker_name"],
            "perm": row["perm"],
            "readQueueNums": row["read_queue_count"],
            "writeQueueNums": row["write_queue_count"],
        }
        for row in routed
    ]
    # A test that spoils a row may leave no route that would give it.
    is_odd = any(
        row["queue_data_count"] != 1
        or not row["is_in_route"]
        or row["perm"] is None
        or row["subscribe_queue_count"] != (row["read_queue_count"] if row["perm"] & 4 else 0)
        or row["order_topic_conf"] != rows[0]["order_topic_conf"]
        for row in routed
    )
    brokers = ",".join(
        f'{{"brokerAddrs":{{{0 if row["has_master"] else 1}:"127.0.0.1:10911"}},"brokerName":{json.dumps(row["broker_name"])}}}'
        for row in routed
    )
    order = json.dumps(rows[0]["order_topic_conf"])
    return f'{{"brokerDatas":[{brokers}],"orderTopicConf":{order},"queueDatas":{json.dumps(entries * 2 if is_odd else entries)}}}'


def _topic_configs(rows: list[Row]) -> str:
    configs = {
        row["topic"]: {
            "perm": row["perm"],
            "readQueueNums": row["read_queue_count"],
            "writeQueueNums": row["write_queue_count"],
            "order": row["is_order"],
        }
        for row in rows
    }
    return json.dumps({"topicConfigTable": configs})


def _groups(rows: list[Row]) -> str:
    groups = {
        row["consumer_group"]: {
            "consumeEnable": row["is_consume_enabled"],
            "consumeBroadcastEnable": row["is_broadcast_enabled"],
            "retryQueueNums": row["retry_queue_count"],
            "retryMaxTimes": row["retry_max_count"],
        }
        for row in rows
    }
    return json.dumps({"subscriptionGroupTable": groups})


def _modes(rows: list[Row]) -> str:
    modes: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        mode = {"mode": row["mode"], "popShareQueueNum": row["pop_share_queue_count"]}
        modes[row["topic"]][row["consumer_group"]] = mode
    return json.dumps({"messageRequestModeMap": modes})


def _brokers(rows: list[Row]) -> str:
    brokers: dict[str, dict[str, Any]] = {}
    for row in rows:
        broker = {"brokerName": row["broker_name"], "cluster": row["broker_cluster_name"], "brokerAddrs": {}}
        addresses = brokers.setdefault(row["broker_name"], broker)["brokerAddrs"]
        addresses[row["broker_id"]] = row["broker_addr"]
    # Brokers write their ids without quotes.
    return re.sub(r'"(\d+)":', r"\1:", json.dumps({"brokerAddrTable": brokers}))


def _offsets_of_topic(row: Row) -> dict[str, Any]:
    return {
        "minOffset": row["min_offset"],
        "maxOffset": row["max_offset"],
        "lastUpdateTimestamp": _ms(row["last_stored_at"]),
    }


def _offsets_of_group(row: Row) -> dict[str, Any]:
    return {
        "brokerOffset": row["broker_offset"],
        "consumerOffset": row["consumer_offset"],
        "pullOffset": row["pull_offset"],
        "lastTimestamp": _ms(row["last_consumed_at"]),
    }


def _process_tables(rows: list[Row]) -> str:
    held = [_entry(row, _process_queue(row)) for row in rows if not row["is_pop"]]
    popped = [
        _entry(row, {"droped": row["is_dropped"], "lastPopTimestamp": _ms(row["last_pull_at"])})
        for row in rows
        if row["is_pop"]
    ]
    tables = f'"mqPopTable":{{{",".join(popped)}}},"mqTable":{{{",".join(held)}}}'
    return f'{{{tables},"properties":{{}},"statusTable":{{"t":{{"pullRT":0.5}}}}}}'


def _process_queue(row: Row) -> dict[str, Any]:
    return {
        "droped": row["is_dropped"],
        "commitOffset": row["commit_offset"],
        "lastPullTimestamp": _ms(row["last_pull_at"]),
        "lastConsumeTimestamp": _ms(row["last_consumed_at"]),
    }


def _ms(instant: str | None) -> int:
    return 0 if instant is None else round(datetime.fromisoformat(instant).timestamp() * 1000)
