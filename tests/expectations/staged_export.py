"""The lines of an export that give the rows of a staged day: written from the rows, so that both sides agree until one is changed."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from staged_day import Row, StagedDay


def export_lines(day: StagedDay) -> list[Row]:
    """The rows of the view `export_line`."""
    lines = []
    for (topic, broker), rows in _by(day, "queue_offset", "topic", "broker_name"):
        entries = [_entry(row, _offsets_of_topic(row)) for row in rows]
        lines.append(line("broker_topic_stats", _map("offsetTable", entries), topic=topic, broker=broker))
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
    subscriptions = dict(_by(day, "subscription", "consumer_group", "broker_name"))
    connections = dict(_by(day, "consumer_connection", "consumer_group", "broker_name"))
    for group, broker in sorted(subscriptions.keys() | connections.keys()):
        members = {
            "connectionSet": [
                {
                    "clientId": row["client_id"],
                    "clientAddr": row["client_addr"],
                    "language": row["client_language"],
                    "version": row["client_version_ordinal"],
                }
                for row in connections.get((group, broker), [])
            ],
            "subscriptionTable": {
                row["topic"]: {"expressionType": row["expression_type"], "subString": row["expression"]}
                for row in subscriptions.get((group, broker), [])
            },
        }
        lines.append(line("consumer_connection", json.dumps(members), group=group, broker=broker))
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
