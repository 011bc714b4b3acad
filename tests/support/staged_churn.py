"""Churn that follows from the other rows of two staged days, so that a test can corrupt one value.

Written with loops over one queue at a time, and with the minimum of moves found by trying every permutation of clients. It
shares no code with the job or the gate's SQL.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import permutations
from typing import TYPE_CHECKING, Any

from tests.support.staged_drift import CANNOT_TELL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.support.staged_day import StagedDay

Row = dict[str, Any]
Owners = dict[tuple[str, int], frozenset[str]]

UNDETERMINED = CANNOT_TELL | {"route_missing"}
NUMBERS = (
    "baseline_queue_count",
    "queue_count",
    "added_queue_count",
    "removed_queue_count",
    "moved_queue_count",
    "least_move_count",
    "joined_client_count",
    "left_client_count",
)


def least_moves(before: Sequence[int], now: Sequence[int]) -> int:
    """Return the minimum number of moves of previously owned queues, over all permutations of clients.

    Args:
        before: Each client's number of previous queues that still exist; the shorter of the two lists is padded with zeros.
        now: Each client's number of queues.
    """
    size = max(len(before), len(now))
    had, has = (list(loads) + [0] * (size - len(loads)) for loads in (before, now))
    return sum(had) - max(sum(map(min, had, places)) for places in permutations(has))


def add_churn(day: StagedDay) -> None:
    """Add the missing rows of `assignment_churn`."""
    there = {_key(row) for row in day.rows["assignment_churn"]} | day.without_churn
    for row in day.rows["assignment_fairness"]:
        if _key(row) not in there:
            there.add(_key(row))
            day.add("assignment_churn", **_churn(day, row))


def _key(row: Row) -> tuple[str, str, str]:
    return row["consumer_group"], row["topic"], row["strategy"]


def _churn(day: StagedDay, fairness: Row) -> Row:
    names = ("consumer_group", "topic", "strategy", "strategy_source", "is_effective")
    values: Row = {name: fairness[name] for name in names} | dict.fromkeys(NUMBERS)
    group, topic, strategy = _key(fairness)
    now_rows = day.of("queue_assignment", consumer_group=group, topic=topic, strategy=strategy)
    before_rows = [
        row
        for row in day.before["queue_assignment"]
        if (row["consumer_group"], row["topic"]) == (group, topic)
        and (row["is_effective"] if fairness["is_effective"] else row["strategy"] == strategy)
    ]
    values["baseline_ds"] = day.baseline_ds and day.baseline_ds.isoformat()
    if fairness["is_effective"]:
        values |= _observed(day, group, topic)
    if day.baseline_ds is None:
        return values | {"state": "no_baseline"}
    if not now_rows or any(row["reason"] in UNDETERMINED for row in now_rows):
        return values | {"state": "unknown_now"}
    if any(row["consumer_group"] == group for row in day.before["quarantined_group"]):
        return values | {"state": "unknown_on_baseline"}
    if not before_rows:
        return values | {"state": "absent_on_baseline"}
    if any(row["reason"] in UNDETERMINED for row in before_rows):
        return values | {"state": "unknown_on_baseline"}
    now, before = _owners(now_rows), _owners(before_rows)
    members, members_before = (
        {row["client_id"] for row in rows if row["consumer_group"] == group}
        for rows in (day.rows["consumer_connection"], day.before["consumer_connection"])
    )
    shared = now.keys() & before.keys()
    baseline_strategy = before_rows[0]["strategy"]
    numbers = {
        "baseline_queue_count": len(before),
        "queue_count": len(now),
        "added_queue_count": len(now.keys() - before.keys()),
        "removed_queue_count": len(before.keys() - now.keys()),
        "moved_queue_count": sum(now[queue] != before[queue] for queue in shared),
        "least_move_count": None,
        "joined_client_count": len(members - members_before),
        "left_client_count": len(members_before - members),
    }
    is_exclusive = all(len(owners) <= 1 for owners in (*now.values(), *before.values()))
    if is_exclusive and "BROADCASTING" not in {strategy, baseline_strategy}:
        had, has = _loads(before[queue] for queue in shared), _loads(now.values())
        nobodys = min(had.pop("", 0), has.pop("", 0))
        there = [load for client, load in had.items() if client in members or client in has]
        stay = sum(there) - least_moves(there, list(has.values()))
        numbers["least_move_count"] = len(shared) - stay - nobodys
    changes = {
        "clients_joined": numbers["joined_client_count"],
        "clients_left": numbers["left_client_count"],
        "queues_added": numbers["added_queue_count"],
        "queues_removed": numbers["removed_queue_count"],
        "strategy_changed": strategy != baseline_strategy,
    }
    named = [name for name, is_so in changes.items() if is_so]
    return values | numbers | {"state": "compared", "baseline_strategy": baseline_strategy, "changes": named}


def _observed(day: StagedDay, group: str, topic: str) -> Row:
    """Return the observations of both days, regardless of the expected owners."""
    before = {
        (row["broker_name"], row["queue_id"]): row
        for row in day.before["ownership_drift"]
        if (row["consumer_group"], row["topic"]) == (group, topic)
    }
    if not before:
        return {}
    now = {
        (row["broker_name"], row["queue_id"]): row
        for row in day.of("ownership_drift", consumer_group=group, topic=topic)
    }
    seen = [queue for queue in now.keys() & before.keys() if _is_seen(now[queue]) and _is_seen(before[queue])]
    return {
        "baseline_effective_strategy": max(
            (row["strategy"] for row in before.values() if row["strategy"]), default=None
        ),
        "observed_queue_count": len(seen),
        "observed_moved_queue_count": sum(
            now[queue]["observed_client_ids"] != before[queue]["observed_client_ids"] for queue in seen
        ),
    }


def _is_seen(row: Row) -> bool:
    if not row["observed_client_ids"]:
        return row["state"] not in {"unknown", "shared"}
    return row["state"] != "unknown" or row["unasked_client_count"] == 0


def _owners(rows: Iterable[Row]) -> Owners:
    owners: dict[tuple[str, int], set[str]] = defaultdict(set)
    for row in rows:
        owners[row["broker_name"], row["queue_id"]] |= {row["client_id"]} - {None}
    return {queue: frozenset(clients) for queue, clients in owners.items()}


def _loads(owners: Iterable[frozenset[str]]) -> Counter[str]:
    """Return the number of queues of each client; '' counts those without an owner."""
    return Counter(client for clients in owners for client in (clients or {""}))
