"""Ids, parents and severities of a staged day's findings, so that a test can corrupt one of them.

Written with loops over one finding at a time. It shares no code with the job or the gate's SQL.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.staged_day import StagedDay

Row = dict[str, Any]

OF_QUEUES = {"unowned", "multiple_owners", "unexpected_owner", "broadcast_queue_not_consumed"}
CAUSES_OF_GROUPS = {
    "duplicate_client_id",
    "room_without_clients",
    "not_in_config_list",
    "mixed_strategies",
    "mixed_clients",
}
SEVERITIES = ["critical", "warning", "info"]


def identify(day: StagedDay) -> None:
    """Add the missing ids, and the parents of findings whose cause is another finding of the group."""
    of_cause: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in day.rows["finding"]:
        if row["finding_id"] is None:
            row["finding_id"] = id_of(row)
            if row["kind"] in OF_QUEUES and row["likely_cause"] in CAUSES_OF_GROUPS:
                of_cause[row["consumer_group"], row["likely_cause"]].append(row)
    for first, *others in of_cause.values():
        explain(first, others)


def explain(root: Row, others: list[Row]) -> None:
    """Make a root finding the parent of others."""
    root["severity"] = min((row["severity"] for row in (root, *others)), key=SEVERITIES.index)
    for row in others:
        row.update(parent_finding_id=root["finding_id"], root_finding_id=root["finding_id"], severity="info")


def id_of(row: Row) -> str:
    """Return the id of a finding."""
    key = [
        row[name] for name in ("kind", "consumer_group", "topic", "broker_name", "client_id", "likely_cause")
    ]
    text = json.dumps(key, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
