"""Rows in silver and gold for each kind of finding, from which a finding of the kind must follow.

The numbers are those of the findings of these kinds in `test_finding_measures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.staged_day import StagedDay

NOW: Final = "2026-11-16 02:00:00"
LONG_AGO: Final = "2026-11-16 01:48:00"
OF_REASONS: Final = {
    "server_load_balancer_off": "server_off",
    "request_modes_differ": "request_modes_differ",
    "strategy_unknown_to_broker": "strategy_unknown_to_broker",
    "mixed_request_modes": "mixed_request_modes",
}
"""Kind -> reason why the owners of the topic's queues are undetermined."""

OF_DIFFERENCES: Final = {
    "broker_missing_on_nameserver": "broker_missing",
    "write_route_differs": "write_queues",
    "broker_address_differs": "addresses",
    "route_config_differs": "config_perm",
}
"""Kind -> the difference between the answers of the name servers."""

_FACTS: Final[dict[str, Callable[[StagedDay, str, str], None]]] = {}


def _facts(
    *kinds: str,
) -> Callable[[Callable[[StagedDay, str, str], None]], Callable[[StagedDay, str, str], None]]:
    def register(function: Callable[[StagedDay, str, str], None]) -> Callable[[StagedDay, str, str], None]:
        _FACTS.update(dict.fromkeys(kinds, function))
        return function

    return register


def add_facts(day: StagedDay, kind: str, name: str) -> None:
    """Add the rows from which a finding of this kind follows; `name` is its group, topic or broker."""
    _FACTS[kind](day, kind, name)


def add_fairness(day: StagedDay, group: str, group_state: str = "online", **values: Any) -> None:
    day.add(
        "assignment_fairness",
        consumer_group=group,
        topic="t",
        strategy="CONFIG",
        is_effective=True,
        group_state=group_state,
        **values,
    )


def add_difference(day: StagedDay, broker: str, difference: str) -> None:
    for nameserver, is_routed in (("ns-1", True), ("ns-2", difference != "broker_missing")):
        day.add(
            "route_divergence",
            topic="t",
            broker_name=broker,
            nameserver=nameserver,
            state="differs",
            differences=[difference],
            is_routed=is_routed,
            is_read_affected=False,
        )


def add_members(
    day: StagedDay, group: str, *strategies: str | None, brokers: int = 1, asking: tuple[bool, ...] = ()
) -> None:
    """Add members of a topic `t` with their strategies; None for a member that did not answer."""
    add_fairness(day, group, max_queues_per_client=1)
    for number, strategy in enumerate(strategies, start=1):
        # An id that must not terminate a quoted part of a regular expression.
        member = {"consumer_group": group, "client_id": f"c{number}" if strategy else rf"c\E({number}"}
        for broker in range(brokers):
            if number <= len(strategies) - broker:
                day.add("consumer_connection", broker_name=f"b{broker}", **member)
        state = "unknown" if strategy is None else "online"
        row = day.add("consumer_client", **member, state=state, strategy=strategy, captured_at=NOW)
        if asking:
            row["is_client_rebalance"] = not asking[number - 1]


def add_drift(day: StagedDay, group: str, **values: Any) -> None:
    for queue_id in range(2):
        queue = {"consumer_group": group, "topic": "t", "broker_name": "b", "queue_id": queue_id}
        day.add("ownership_drift", **queue, is_routed=True, group_state="online", **values)


@_facts("duplicate_client_id")
def _client_id_duplicated(day: StagedDay, _kind: str, name: str) -> None:
    add_fairness(day, name)
    for process in ("p1", "p2"):
        day.add("client_process", consumer_group=name, client_id="c1", process=process, state="online")
        day.add("consumer_connection", consumer_group=name, broker_name="b", client_id="c1")


@_facts("idle_clients")
def _clients_idle(day: StagedDay, _kind: str, name: str) -> None:
    add_fairness(day, name, client_count=3, queue_count=4, idle_client_count=1)


@_facts("load_imbalanced")
def _load_unfair(day: StagedDay, _kind: str, name: str) -> None:
    add_fairness(
        day,
        name,
        client_count=2,
        queue_count=6,
        max_queues_per_client=6,
        min_queues_per_client=0,
        mean_queues_per_client=3.0,
        max_over_mean=2.0,
    )


@_facts("group_offline", "members_unknown")
def _group_offline(day: StagedDay, kind: str, name: str) -> None:
    if kind == "group_offline":
        add_fairness(day, name, "offline")
    else:
        add_fairness(day, name, "unknown", group_state_reason="broker_not_asked")


@_facts("strategy_changed")
def _strategy_changed(day: StagedDay, _kind: str, name: str) -> None:
    day.add(
        "assignment_churn",
        consumer_group=name,
        topic="t",
        strategy="CONFIG",
        baseline_effective_strategy="AVG",
        is_effective=True,
        observed_queue_count=8,
        observed_moved_queue_count=1,
    )


@_facts("broker_without_master")
def _broker_without_master(day: StagedDay, _kind: str, name: str) -> None:
    day.add("broker", nameserver="ns-1", broker_name=name, broker_id=1, broker_addr="b:1")
    day.add(
        "route_divergence",
        topic="t",
        broker_name=name,
        nameserver="ns-1",
        state="same",
        is_routed=True,
    )


@_facts("mixed_strategies")
def _strategies_mixed(day: StagedDay, _kind: str, name: str) -> None:
    add_members(day, name, "AVG", "CONFIG")


@_facts("client_unreachable")
def _client_not_asked(day: StagedDay, _kind: str, name: str) -> None:
    add_members(day, name, "AVG", "AVG", None)


@_facts("member_lists_differ")
def _member_lists_differ(day: StagedDay, _kind: str, name: str) -> None:
    add_members(day, name, "AVG", "AVG", brokers=2)
    add_drift(day, name, state="match", member_list_count=2)


@_facts("consumption_disabled")
def _consumption_disabled(day: StagedDay, _kind: str, name: str) -> None:
    add_fairness(day, name)
    for broker in ("b1", "b2"):
        day.add("subscription_group", broker_name=broker, consumer_group=name, is_consume_enabled=False)


@_facts("subscriptions_differ")
def _subscriptions_differ(day: StagedDay, _kind: str, name: str) -> None:
    add_members(day, name, "AVG", "AVG", "AVG")
    for client_id, topic, expression in (("c1", "t", "x"), ("c2", "t", "y"), ("c3", "other", "x")):
        day.add(
            "client_subscription",
            consumer_group=name,
            client_id=client_id,
            topic=topic,
            expression=expression,
        )


@_facts("settings_missing", "strategy_unknown")
def _settings_missing(day: StagedDay, kind: str, name: str) -> None:
    add_drift(day, name, state="unknown", strategy="Own", expected_reason=kind)


@_facts("consumption_stalled")
def _consumption_stalled(day: StagedDay, _kind: str, name: str) -> None:
    add_members(day, name, "AVG")
    day.of("consumer_client", consumer_group=name)[0].update(consume_type="CONSUME_PASSIVELY")
    for queue_id in range(6):
        queue = {"topic": "t", "broker_name": "b", "queue_id": queue_id}
        day.add(
            "observed_owner",
            **queue,
            consumer_group=name,
            client_id="c1",
            is_pop=False,
            commit_offset=0,
            last_pull_at=NOW,
            last_consumed_at=LONG_AGO,
        )
        day.add("queue_offset", **queue, min_offset=0, max_offset=3, last_stored_at=LONG_AGO)


@_facts("route_missing")
def _route_missing(day: StagedDay, _kind: str, name: str) -> None:
    day.add("assignment_fairness", consumer_group="g", topic=name, strategy="AVG", group_state="online")
    day.add(
        "export_record",
        kind="nameserver_route",
        topic=name,
        file=name,
        line_number=1,
        state="payload",
    )


@_facts("record_rejected")
def _record_rejected(day: StagedDay, _kind: str, name: str) -> None:
    line = {"kind": "some_kind", "file": name, "line_number": 1}
    day.add("export_record", **line, consumer_group=name, state="rejected")
    day.add("rejected_record", **line, reason="'cluster' is missing", text='{"kind": "some_kind"}')


@_facts("record_repeated")
def _record_repeated(day: StagedDay, _kind: str, name: str) -> None:
    for line_number, counted_line in ((1, 2), (2, None)):
        day.add(
            "export_record",
            kind="some_kind",
            file=name,
            line_number=line_number,
            consumer_group=name,
            state="payload",
            counted_line=counted_line,
            is_repeat=None if counted_line is None else False,
        )


@_facts("order_conf_unreadable")
def _order_conf_unreadable(day: StagedDay, _kind: str, name: str) -> None:
    for nameserver in ("ns-1", "ns-2"):
        day.add(
            "topic_route",
            nameserver=nameserver,
            topic=name,
            broker_name="b",
            order_topic_conf="b:4;c" if nameserver == "ns-1" else "b:4;c:4;",
        )


@_facts("source_failed")
def _source_failed(day: StagedDay, _kind: str, name: str) -> None:
    day.add(
        "export_record",
        kind="some_kind",
        file=name,
        line_number=1,
        broker_name=name,
        nameserver="ns-1",
        state="error",
        error_type="RemotingTimeoutException",
    )


@_facts(*OF_REASONS)
def _open_division(day: StagedDay, kind: str, name: str) -> None:
    add_members(
        day,
        name,
        "AVG",
        "CONFIG",
        asking=(kind in {"server_load_balancer_off", "strategy_unknown_to_broker"}, True),
    )
    # No client divides the queues, so two strategies are not a problem here.
    day.of("assignment_fairness", consumer_group=name)[0]["max_queues_per_client"] = None
    add_drift(day, name, state="unknown", expected_reason=OF_REASONS[kind], client_count=2)


@_facts(*OF_DIFFERENCES)
def _difference(day: StagedDay, kind: str, name: str) -> None:
    add_difference(day, name, OF_DIFFERENCES[kind])
