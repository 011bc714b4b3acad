"""The export lines of a staged day, derived from its rows, so that both sides agree until a test changes one."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rebalance_ledger.rocketmq.versions import version_of_ordinal

if TYPE_CHECKING:
    from tests.support.staged_day import Row, StagedDay


def export_lines(day: StagedDay) -> list[Row]:
    """Return the rows of the view `export_line`."""
    rejected = [{"kind": row["kind"], "value": row["text"]} for row in day.rows["rejected_record"]]
    return [*_of_groups(day), *_of_brokers(day), *rejected]


def _of_groups(day: StagedDay) -> list[Row]:
    lines = []
    for (group, broker), rows in _by(day, "consume_progress", "consumer_group", "broker_name"):
        entries = [_entry(row, _offsets_of_group(row)) for row in rows]
        lines.append(line("consume_stats", _map("offsetTable", entries), group=group, broker=broker))
    client = ("consumer_group", "client_id")
    owned = dict(_by(day, "observed_owner", *client))
    described = dict(_by(day, "consumer_client", *client))
    subscribed = dict(_by(day, "client_subscription", *client))
    for key in sorted(owned.keys() | described.keys() | subscribed.keys()):
        asked = {"group": key[0], "client_id": key[1], "broker": "b"}
        info = _running_info(described.get(key, []), owned.get(key, []), subscribed.get(key, []))
        lines.append(line("consumer_running_info", info, **asked))
    owned = dict(_by(day, "process_owner", *client, "process"))
    described = dict(_by(day, "client_process", *client, "process"))
    for key in sorted(owned.keys() | described.keys()):
        asked = {"group": key[0], "client_id": key[1], "process": key[2]}
        info = _running_info(described.get(key, []), owned.get(key, []), [])
        lines.append(line("process_assignment", info, **asked))
    for connections, subscriptions, presence, kind, column in (
        ("consumer_connection", "subscription", "group_presence", "consumer_connection", "broker_name"),
        ("proxy_connection", "proxy_subscription", "proxy_presence", "proxy_consumer_connection", "proxy"),
    ):
        tables = [
            dict(_by(day, table, "consumer_group", column))
            for table in (connections, subscriptions, presence)
        ]
        for group, name in sorted({key for rows_by_key in tables for key in rows_by_key}):
            listed, wanted, present = (rows_by_key.get((group, name), []) for rows_by_key in tables)
            asked = {"group": group, column.removesuffix("_name"): name}
            lines.append(_answer_on_members(kind, asked, listed, wanted, present))
    # Only lines with a time are compared with these tables, and tests write those explicitly.
    for (group, client_id, topic), _ in _by(day, "memory_offset", *client, "topic"):
        lines.append(line("consumer_status", "{}", group=group, client_id=client_id, topic=topic))
    for (group, client_id), _ in _by(day, "offset_file", *client):
        lines.append(
            {
                "kind": "offset_file",
                "value": json.dumps(
                    {"kind": "offset_file", "group": group, "client_id": client_id, "sha256": ""}
                ),
            }
        )
    return lines


def _answer_on_members(
    kind: str, asked: dict[str, str], listed: list[Row], subscribed: list[Row], present: list[Row]
) -> Row:
    """Return the line with these rows; if no line has them, return one with a reference, about which no metric makes a claim."""
    [presence] = present if len(present) == 1 else [{"state": None}]
    if not listed and not subscribed and presence["state"] in {"offline", "unknown"}:
        message = "CODE: 206  DESC: not online" if presence["state"] == "offline" else "no answer"
        return failure(kind, message, **asked)
    is_odd = presence["state"] != ("online" if listed else "offline") or any(
        row["client_version"] != _release(row["client_version_ordinal"]) for row in listed
    )
    return line(kind, _members(listed, subscribed, presence, is_odd=is_odd), **asked)


def _release(ordinal: int | None) -> str | None:
    return None if ordinal is None else version_of_ordinal(ordinal)


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
    for (broker,), rows in _by(day, "broker_setting", "broker_name"):
        settings = "\n".join(f"{row['setting']}={row['value']}" for row in rows)
        lines.append(line("broker_config", settings, broker=broker))
    # Only lines with a time are compared with this table, and tests write those explicitly.
    for (broker,), _ in _by(day, "queue_order_lock", "broker_name"):
        lines.append(line("consumer_order_info", "{}", broker=broker))
    return lines


def line(kind: str, payload: str, **asked: str) -> Row:
    """Return one line as a row of the view. RocketMQ omits fields that are null."""
    payload = re.sub(r'"\w+":\s*null,\s*|,?\s*"\w+":\s*null', "", payload)
    return {"kind": kind, "value": json.dumps({"kind": kind, "payload": payload} | asked)}


def failure(kind: str, message: str, **asked: str) -> Row:
    """Return the line of a source that failed."""
    error = {"type": "MQClientException", "message": message}
    return {"kind": kind, "value": json.dumps({"kind": kind, "error": error} | asked)}


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


def _members(connections: list[Row], subscriptions: list[Row], presence: Row, *, is_odd: bool) -> str:
    members = {
        "messageModel": presence.get("message_model"),
        "consumeType": presence.get("consume_type"),
        "consumeFromWhere": presence.get("consume_from_where"),
        "consumerTable": {"$ref": "$.x"} if is_odd else {},
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
    """Return the route with these rows; if none has them, return one with two entries of a broker, about which no metric makes a claim."""
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
    # If a test corrupts a row, there may be no route with these rows.
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


def _running_info(described: list[Row], rows: list[Row], subscriptions: list[Row]) -> str:
    held = [_entry(row, _process_queue(row)) for row in rows if not row["is_pop"]]
    popped = [
        _entry(row, {"droped": row["is_dropped"], "lastPopTimestamp": _ms(row["last_pull_at"])})
        for row in rows
        if row["is_pop"]
    ]
    tables = f'"mqPopTable":{{{",".join(popped)}}},"mqTable":{{{",".join(held)}}}'
    properties = json.dumps(_properties(described[0]) if described else {})
    subscribed = json.dumps(
        [
            {
                "topic": row["topic"],
                "expressionType": row["expression_type"],
                "subString": row["expression"],
                "tagsSet": [],
            }
            for row in subscriptions
        ]
    )
    return f'{{{tables},"properties":{properties},"statusTable":{{"t":{{"pullRT":0.5}}}},"subscriptionSet":{subscribed}}}'


def _properties(row: Row) -> dict[str, str]:
    version, started_at = row["client_version"], row["started_at"]
    properties = {
        "allocateMessageQueueStrategy": row["strategy_class"] and f"{row['strategy_class']}@1f2e3d",
        "messageModel": row["message_model"],
        "PROP_CONSUME_TYPE": row["consume_type"],
        "consumeFromWhere": row["consume_from_where"],
        "PROP_CONSUMEORDERLY": None if row["is_orderly"] is None else str(row["is_orderly"]),
        "clientRebalance": None if row["is_client_rebalance"] is None else str(row["is_client_rebalance"]),
        "PROP_CLIENT_VERSION": version and f"V{version.replace('.', '_')}",
        "PROP_CONSUMER_START_TIMESTAMP": started_at and str(_ms(started_at)),
    }
    return {name: value for name, value in properties.items() if value is not None}


def _process_queue(row: Row) -> dict[str, Any]:
    return {
        "droped": row["is_dropped"],
        "commitOffset": row["commit_offset"],
        "lastPullTimestamp": _ms(row["last_pull_at"]),
        "lastConsumeTimestamp": _ms(row["last_consumed_at"]),
    }


def _ms(instant: str | None) -> int:
    return 0 if instant is None else round(datetime.fromisoformat(instant).timestamp() * 1000)
