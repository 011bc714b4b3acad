"""Drift, divergence and their findings that follow from the other rows of a staged day, so that a test can corrupt one value.

Written with loops over one queue and one broker at a time. It shares no code with the job or the gate's SQL.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.support.staged_findings import identify

if TYPE_CHECKING:
    from tests.support.staged_day import StagedDay

Row = dict[str, Any]

UNKNOWN_RULE = {
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    "strategy_failed",
}
CANNOT_TELL = {"members_unknown", "pop_mode", *UNKNOWN_RULE}
CAUSE_OF_REASON = {
    "duplicate_client_id": "duplicate_client_id",
    "room_without_clients": "room_without_clients",
    "not_in_config_list": "not_in_config_list",
    "mixed_strategies": "mixed_strategies",
    "mixed_clients": "mixed_clients",
    "owner_not_subscribed": "subscriptions_differ",
    "queue_not_in_route": "queue_not_in_route",
}
KIND_OF_STATE = {
    "unowned": "unowned",
    "multiple_owners": "multiple_owners",
    "unexpected_owner": "unexpected_owner",
}
COMPARED = {
    "read_queues": "read_queue_count",
    "write_queues": "write_queue_count",
    "perm": "perm",
    "order_conf": "order_topic_conf",
}


def complete(day: StagedDay) -> None:
    """Add the derived rows of the day, for the groups and topics that have none yet."""
    groups = {
        row["consumer_group"] for name in ("queue_assignment", "observed_owner") for row in day.rows[name]
    }
    for group in sorted(groups - {row["consumer_group"] for row in day.rows["ownership_drift"]}):
        add_drift(day, group)
    topics = {row["topic"] for row in day.rows["export_record"] if row["kind"] == "nameserver_route"}
    for topic in sorted(topics - {row["topic"] for row in day.rows["route_divergence"]}):
        add_divergence(day, topic)
    divergent: dict[str, set[str]] = defaultdict(set)
    for row in day.rows["route_divergence"]:
        if row["is_read_affected"]:
            divergent[row["topic"]].add(row["broker_name"])
    for row in day.rows["ownership_drift"]:
        row["divergent_broker_count"] = row["divergent_broker_count"] or len(divergent[row["topic"]])
    add_findings(day)
    identify(day)


def add_drift(day: StagedDay, group: str) -> list[Row]:
    """Add the rows of `ownership_drift` of a group, and return them."""
    assigned: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    held: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in day.of("queue_assignment", consumer_group=group):
        if row["is_effective"] or row["strategy"] == "AVG":
            assigned[row["topic"], row["broker_name"], row["queue_id"]].append(row)
    answered = {row["client_id"] for row in day.of("client_process", consumer_group=group, state="online")}
    for row in day.of("observed_owner", consumer_group=group):
        if row["client_id"] not in answered:
            held[row["topic"], row["broker_name"], row["queue_id"]].append(row)
    for row in day.of("process_owner", consumer_group=group):
        held[row["topic"], row["broker_name"], row["queue_id"]].append(row)
    states = {row["topic"]: row["group_state"] for row in day.of("assignment_fairness", consumer_group=group)}
    silent = {row["client_id"] for row in day.of("consumer_client", consumer_group=group, state="unknown")}
    return [
        _drift_of_queue(
            day, group, queue, assigned[queue], held[queue], states.get(queue[0], "unknown"), silent
        )
        for queue in sorted(assigned.keys() | held.keys())
    ]


def _drift_of_queue(
    day: StagedDay,
    group: str,
    queue: tuple[str, str, int],
    assigned: list[Row],
    held: list[Row],
    group_state: str,
    silent: set[str],
) -> Row:
    effective = [row for row in assigned if row["is_effective"]]
    is_kept = any(row["reason"] == "route_missing" for row in assigned)
    reason = max((row["reason"] for row in effective if row["reason"]), default=None)
    strategy = effective[0]["strategy"] if effective else None
    chosen = sorted({row["client_id"] for row in effective if row["client_id"] and not is_kept})
    clients = sorted({row["client_id"] for row in held})
    processes = len(held)
    is_repeated = any(
        "process" not in row and _connection_count(day, group, row["client_id"]) > 1 for row in held
    )
    missing = set(chosen) - set(clients)
    undetermined = (
        "members_unknown" if group_state == "unknown" else reason if reason in CANNOT_TELL else None
    )
    cause = CAUSE_OF_REASON.get(reason or "")
    if reason == "pop_mode":
        state, cause = ("shared" if held else "unknown"), None
    elif "broadcasting" in {group_state, (strategy or "").lower()}:
        state = (
            "unexpected_owner" if set(clients) - set(chosen) else "unowned" if missing - silent else "match"
        )
    elif processes > 1:
        state, cause = "multiple_owners", "duplicate_client_id" if processes > len(clients) else None
    elif undetermined:
        state, cause = ("unknown", None)
        if not held and not silent and reason in UNKNOWN_RULE:
            state = "unowned"
    elif set(clients) - set(chosen):
        state, cause = "unexpected_owner", "route_missing" if is_kept else None
    elif missing & silent or is_repeated:
        state, cause = "unknown", None
    elif clients:
        state, cause = "match", None
    else:
        state, cause = "unowned", "group_offline" if group_state == "offline" else cause
    topic, broker, queue_id = queue
    return day.add(
        "ownership_drift",
        consumer_group=group,
        topic=topic,
        broker_name=broker,
        queue_id=queue_id,
        state=state,
        likely_cause=cause,
        unknown_reason=(
            undetermined or ("client_unreachable" if missing & silent else "process_count_unknown")
            if state == "unknown"
            else None
        ),
        strategy=strategy,
        expected_client_ids=None if undetermined else chosen,
        expected_reason=reason,
        observed_client_ids=clients,
        observed_process_count=processes,
        is_routed=bool(assigned) and not is_kept and reason != "queue_not_in_route",
        route_state=_route_state(day, topic),
        group_state=group_state,
        group_state_reason=next(
            (
                row["group_state_reason"]
                for row in day.of("assignment_fairness", consumer_group=group, topic=topic)
            ),
            None,
        ),
        divergent_broker_count=0,
        is_being_released=False,
    )


def _route_state(day: StagedDay, topic: str) -> str:
    if any(row["subscribe_queue_count"] for row in day.of("topic_route", topic=topic, is_in_route=True)):
        return "known"
    answers = day.of("export_record", kind="nameserver_route", topic=topic)
    return (
        "none" if any(row["state"] == "payload" or row["error_code"] == 17 for row in answers) else "unknown"
    )


def _connection_count(day: StagedDay, group: str, client: str) -> int:
    by_broker: dict[str, int] = defaultdict(int)
    for row in day.of("consumer_connection", consumer_group=group, client_id=client):
        by_broker[row["broker_name"]] += 1
    return min(by_broker.values(), default=1)


def add_divergence(day: StagedDay, topic: str) -> list[Row]:
    """Add the rows of `route_divergence` of a topic, and return them."""
    asked = {
        row["nameserver"]: row["state"] == "payload" or row["error_code"] == 17
        for row in day.of("export_record", kind="nameserver_route", topic=topic)
    }
    routes = {
        (row["broker_name"], row["nameserver"]): row
        for row in day.of("topic_route", topic=topic, is_in_route=True)
    }
    configs = {row["broker_name"]: row for row in day.of("topic_config", topic=topic)}
    answered = {
        row["broker_name"] for row in day.of("export_record", kind="broker_topic_config", state="payload")
    }
    added = []
    for broker in sorted({broker for broker, _ in routes} | set(configs)):
        own = {
            nameserver: routes.get((broker, nameserver))
            for nameserver, is_answer in asked.items()
            if is_answer
        }
        known = [route for route in own.values() if route]
        between = [name for name, column in COMPARED.items() if len({route[column] for route in known}) > 1]
        if known and len(known) < len(own):
            between.insert(0, "broker_missing")
        readable = {route["subscribe_queue_count"] for route in known}
        for nameserver, is_answer in asked.items():
            route, config = routes.get((broker, nameserver)), configs.get(broker)
            against = _against_config(route, config, is_answered=broker in answered) if is_answer else []
            differences = [*between, *against] if is_answer else []
            added.append(
                day.add(
                    "route_divergence",
                    topic=topic,
                    broker_name=broker,
                    nameserver=nameserver,
                    state="unknown" if not is_answer else "differs" if differences else "same",
                    differences=differences,
                    is_read_affected=len(readable) > 1 or ("broker_missing" in between and max(readable) > 0),
                    is_routed=route is not None if is_answer else None,
                    is_config_known=broker in answered,
                    nameserver_count=len(own),
                    agreeing_nameserver_count=_agreeing_count(own, route) if is_answer else None,
                    broker_addrs=_addresses(day, broker, nameserver),
                    **{name: route and route[name] for name in (*COMPARED.values(), "subscribe_queue_count")},
                    **{
                        f"config_{name}": config and config[name]
                        for name in ("perm", "read_queue_count", "write_queue_count")
                    },
                )
            )
    return added


def _agreeing_count(answers: dict[str, Row | None], route: Row | None) -> int:
    columns = (*COMPARED.values(), "subscribe_queue_count")
    answered = [answer and [answer[name] for name in columns] for answer in answers.values()]
    return answered.count(route and [route[name] for name in columns])


def _addresses(day: StagedDay, broker: str, nameserver: str) -> list[str] | None:
    rows = day.of("broker", broker_name=broker, nameserver=nameserver)
    return sorted({f"{row['broker_id']}={row['broker_addr']}" for row in rows}) or None


def _against_config(route: Row | None, config: Row | None, *, is_answered: bool) -> list[str]:
    if route is None:
        return [] if config is None else ["not_routed"]
    if config is None:
        return ["not_configured"] if is_answered else []
    columns = ("read_queues", "write_queues", "perm")
    return [f"config_{name}" for name in columns if route[COMPARED[name]] != config[COMPARED[name]]]


def add_findings(day: StagedDay) -> None:
    """Add the missing findings of drift and divergence."""
    queues: dict[tuple[str, str, str, str | None], list[Row]] = defaultdict(list)
    for row in day.rows["ownership_drift"]:
        if row["state"] in KIND_OF_STATE and row["likely_cause"] != "group_offline":
            queues[row["consumer_group"], row["topic"], row["state"], row["likely_cause"]].append(row)
    for (group, topic, state, cause), rows in queues.items():
        is_frozen = state == "unexpected_owner" and cause == "route_missing"
        kind = "assignment_stale" if is_frozen else KIND_OF_STATE[state]
        if group not in day.undetermined and not day.of(
            "finding", kind=kind, consumer_group=group, topic=topic
        ):
            row = day.add_finding(
                kind=kind,
                consumer_group=group,
                topic=topic,
                likely_cause=cause,
                queue_count=len(rows),
                examples=sorted(f"{queue['broker_name']}/{queue['queue_id']}" for queue in rows)[:5],
                seen_values=sorted({queue["expected_reason"] for queue in rows if queue["expected_reason"]}),
            )
            day.findings_of_drift.append((row, rows))
            if cause == "not_yet_rebalanced":
                row["severity"] = "warning"
    topics = {
        (row["topic"], kind)
        for row in day.rows["route_divergence"]
        for kind, is_there in (
            ("route_differs", row["is_read_affected"]),
            ("order_conf_differs", "order_conf" in (row["differences"] or [])),
        )
        if row["state"] == "differs" and is_there
    }
    for topic, kind in sorted(topics):
        if topic not in day.undetermined and not day.of("finding", kind=kind, topic=topic):
            day.add_finding(kind=kind, topic=topic, value_count=2)
