"""Owners compared with the result of plain SQL: swapped, missing, unknown without a cause, or by an unreported strategy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from expectations.suites import metrics, recomputed_owners
from rebalance_ledger.rocketmq.errors import RocketMQError
from rebalance_ledger.rocketmq.message_queue import MessageQueue
from rebalance_ledger.settings import ClusterSettings
from spark_jobs.assignment.strategy_settings import rule_of
from spark_jobs.assignment.variant import Variant
from strategies import Strategy
from tests.support.staged_day import BROKERS, NAMESERVERS, Row, StagedDay

if TYPE_CHECKING:
    from collections.abc import Callable


STATEMENTS = [text for text in metrics.METRIC_STATEMENTS if "'queue_assignment.owners_recomputed'" in text]
OWNERS, READS, COMPLETE, FOLLOWS, REASON, CONNECTIONS, REPORTS = (
    expectation.expectation_id for expectation in recomputed_owners.SUITE.expectations
)
FAULTS: dict[str, tuple[Callable[[StagedDay, str], None], set[str]]] = {}


def fault(*expected: str) -> Callable[[Callable[[StagedDay, str], None]], Callable[[StagedDay, str], None]]:
    """Register a fault, injected into a group named like the function, and the expectations that must detect it."""

    def register(plant: Callable[[StagedDay, str], None]) -> Callable[[StagedDay, str], None]:
        FAULTS[plant.__name__] = (plant, set(expected))
        return plant

    return register


def add_group(
    day: StagedDay,
    group: str,
    clients: tuple[str, ...] = ("c1", "c2", "c3"),
    strategies_of_clients: tuple[str | None, ...] = ("AVG", "AVG", "AVG"),
) -> None:
    """Add a group that consumes `orders`: its members report these strategies, and its rows follow AVG."""
    day.add_group(group, "orders", clients)
    for client, strategy in zip(sorted(set(clients)), strategies_of_clients, strict=False):
        day.of("consumer_client", consumer_group=group, client_id=client)[0]["strategy"] = strategy


def rows(day: StagedDay, group: str, strategy: str = "AVG") -> list[Row]:
    return day.of("queue_assignment", consumer_group=group, strategy=strategy)


@fault()
def in_order(day: StagedDay, group: str) -> None:
    add_group(day, group)


@fault()
def more_clients_than_queues(day: StagedDay, group: str) -> None:
    clients = tuple(f"c{number:02}" for number in range(11))
    add_group(day, group, clients, ("AVG",) * 11)


@fault()
def names_that_java_sorts_otherwise_than_bytes(day: StagedDay, group: str) -> None:
    """Add names that Java does not sort by byte: in UTF-16 a surrogate precedes U+FFFD, by byte it follows."""
    day.add_group(group, "orders", ("\ufffd", "\U00010000"))
    for row in day.of("consumer_client", consumer_group=group):
        row["strategy"] = "AVG"
    for strategy, of_first in (("AVG", (0, 1, 2, 3)), ("AVG_BY_CIRCLE", (0, 2, 4, 6))):
        for index, row in enumerate(rows(day, group, strategy)):
            row["client_id"] = "\U00010000" if index in of_first else "\ufffd"


@fault()
def brokers_that_list_different_members(day: StagedDay, group: str) -> None:
    add_group(day, group)
    day.remove("consumer_connection", consumer_group=group, broker_name=BROKERS[1], client_id="c3")


@fault()
def share_of_a_second_connection(day: StagedDay, group: str) -> None:
    """Add a group in which both connections of a client id take the first share. The second share has no owner."""
    add_group(day, group, ("c1", "c1"), ("AVG",))
    for strategy, owned in (("AVG", (0, 1, 2, 3)), ("AVG_BY_CIRCLE", (0, 2, 4, 6))):
        for index, row in enumerate(rows(day, group, strategy)):
            if index not in owned:
                row.update(client_id=None, reason="duplicate_client_id")


@fault()
def owner_that_does_not_subscribe(day: StagedDay, group: str) -> None:
    add_group(day, group)
    day.of("client_subscription", consumer_group=group, client_id="c3")[0]["topic"] = "config"
    for row in day.of("queue_assignment", consumer_group=group, client_id="c3"):
        row.update(client_id=None, reason="owner_not_subscribed")


@fault(OWNERS)
def owner_that_does_not_subscribe_and_is_given_queues(day: StagedDay, group: str) -> None:
    add_group(day, group)
    day.of("client_subscription", consumer_group=group, client_id="c3")[0]["topic"] = "config"


@fault(OWNERS)
def owner_that_subscribes_and_is_said_not_to(day: StagedDay, group: str) -> None:
    add_group(day, group)
    rows(day, group)[0].update(client_id=None, reason="owner_not_subscribed")


@fault(OWNERS)
def clients_swapped(day: StagedDay, group: str) -> None:
    add_group(day, group)
    swap = {"c1": "c2", "c2": "c1", "c3": "c3"}
    for row in rows(day, group, "AVG_BY_CIRCLE"):
        row["client_id"] = swap[row["client_id"]]


@fault(OWNERS)
def strategies_exchanged(day: StagedDay, group: str) -> None:
    add_group(day, group)
    for one, other in zip(rows(day, group), rows(day, group, "AVG_BY_CIRCLE"), strict=True):
        one["client_id"], other["client_id"] = other["client_id"], one["client_id"]


@fault(OWNERS)
def brokers_swapped(day: StagedDay, group: str) -> None:
    add_group(day, group, ("c1", "c2"), ("AVG", "AVG"))
    for row in rows(day, group):
        row["broker_name"] = BROKERS[1] if row["broker_name"] == BROKERS[0] else BROKERS[0]


@fault(OWNERS, REASON)
def left_out_by_even_shares(day: StagedDay, group: str) -> None:
    add_group(day, group)
    rows(day, group)[0].update(client_id=None, reason="not_assigned_by_strategy")


@fault(OWNERS, REASON)
def unknown_members_that_brokers_list(day: StagedDay, group: str) -> None:
    add_group(day, group)
    for row in rows(day, group):
        row.update(client_id=None, reason="members_unknown")


@fault(OWNERS, REASON)
def offline_group_that_is_online(day: StagedDay, group: str) -> None:
    add_group(day, group)
    for row in rows(day, group):
        row.update(client_id=None, reason="group_offline")


@fault(OWNERS, REASON)
def duplicate_client_ids_that_no_broker_lists(day: StagedDay, group: str) -> None:
    add_group(day, group)
    rows(day, group)[0].update(client_id=None, reason="duplicate_client_id")


@fault(OWNERS, REASON)
def reason_of_another_strategy(day: StagedDay, group: str) -> None:
    add_group(day, group)
    rows(day, group)[0].update(client_id=None, reason="not_in_config_list")


def add_listeners(day: StagedDay, group: str) -> None:
    day.add_group(group, "config", strategies=("BROADCASTING",), message_model="BROADCASTING")


@fault(COMPLETE, REASON)
def a_reason_that_no_list_has(day: StagedDay, group: str) -> None:
    # A group that is not online has only rows of AVG here.
    day.add_silent_group(group, "orders", "offline", "group_offline")
    for row in day.of("queue_assignment", consumer_group=group):
        row["reason"] = "group_offlin"


@fault(COMPLETE, REASON)
def an_offline_group_whose_strategy_assigns_nothing(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "offline", "group_offline")
    for row in day.of("queue_assignment", consumer_group=group):
        row["reason"] = "owner_not_subscribed"


@fault(COMPLETE, REASON)
def an_unknown_group_whose_client_ids_repeat(day: StagedDay, group: str) -> None:
    day.add_silent_group(group, "orders", "unknown", "members_unknown")
    for row in day.of("queue_assignment", consumer_group=group):
        row["reason"] = "strategy_unknown"


@fault()
def listeners(day: StagedDay, group: str) -> None:
    add_listeners(day, group)


@fault(READS)
def listener_missing(day: StagedDay, group: str) -> None:
    add_listeners(day, group)
    day.remove("queue_assignment", consumer_group=group, client_id="c2")


@fault(READS)
def listener_without_a_queue(day: StagedDay, group: str) -> None:
    add_listeners(day, group)
    day.remove("queue_assignment", consumer_group=group, client_id="c2", broker_name=BROKERS[0])


@fault(COMPLETE)
def topic_without_a_strategy(day: StagedDay, group: str) -> None:
    add_group(day, group)
    day.remove("queue_assignment", consumer_group=group, strategy="AVG_BY_CIRCLE")


@fault(FOLLOWS)
def no_effective_strategy(day: StagedDay, group: str) -> None:
    add_group(day, group)
    for row in rows(day, group):
        row.update(is_effective=False, strategy_source="hypothetical")


@fault(FOLLOWS)
def another_effective_strategy(day: StagedDay, group: str) -> None:
    add_group(day, group)
    for one, other in zip(rows(day, group), rows(day, group, "AVG_BY_CIRCLE"), strict=True):
        one.update(is_effective=False, strategy_source="hypothetical")
        other.update(is_effective=True, strategy_source="observed")


@fault(FOLLOWS)
def one_strategy_where_members_report_two(day: StagedDay, group: str) -> None:
    add_group(day, group, strategies_of_clients=("AVG", "AVG", "AVG_BY_CIRCLE"))


@fault(FOLLOWS)
def configured_without_settings(day: StagedDay, group: str) -> None:
    add_group(day, group)
    for row in rows(day, group):
        row["strategy_source"] = "configured"


@fault()
def configured_with_settings(day: StagedDay, group: str) -> None:
    add_group(day, group, strategies_of_clients=(None, None, None))
    day.configure(group, strategy="AVG")
    for row in rows(day, group):
        row["strategy_source"] = "configured"


@fault(FOLLOWS)
def effective_without_report(day: StagedDay, group: str) -> None:
    add_group(day, group, strategies_of_clients=(None, None, None))


@fault(FOLLOWS)
def configured_unlike_the_settings(day: StagedDay, group: str) -> None:
    add_group(day, group, strategies_of_clients=(None, None, None))
    day.configure(group, strategy="AVG_BY_CIRCLE")
    for row in rows(day, group):
        row["strategy_source"] = "configured"


def add_ring(day: StagedDay, group: str, owners: str) -> None:
    """Add a group with owners of `ring` on CONSISTENT_HASH, as digits of c1 and c2, and with owners on the AVG strategies."""
    day.add_group(group, "ring", ("c1", "c2"), ("CONSISTENT_HASH", "AVG", "AVG_BY_CIRCLE"))
    day.configure(group, strategy="CONSISTENT_HASH", virtual_node_count=10)
    for client in ("c1", "c2"):
        day.of("consumer_client", consumer_group=group, client_id=client)[0]["strategy"] = "CONSISTENT_HASH"
    for row, number in zip(rows(day, group, "CONSISTENT_HASH"), owners, strict=True):
        row["client_id"] = f"c{number}"


RING_OWNERS = "22222112"
"""Owners of the queues of `ring`, c1 or c2, by `AllocateMessageQueueConsistentHash` of RocketMQ 5.5.0."""


@fault()
def ring(day: StagedDay, group: str) -> None:
    add_ring(day, group, RING_OWNERS)


@fault(OWNERS)
def ring_that_gives_all_to_one(day: StagedDay, group: str) -> None:
    add_ring(day, group, "11111111")


@fault(OWNERS)
def ring_swapped(day: StagedDay, group: str) -> None:
    add_ring(day, group, RING_OWNERS.translate(str.maketrans("12", "21")))


@fault(OWNERS)
def ring_without_an_owner(day: StagedDay, group: str) -> None:
    add_ring(day, group, RING_OWNERS)
    rows(day, group, "CONSISTENT_HASH")[0].update(client_id=None, reason="not_assigned_by_strategy")


def add_classes(
    day: StagedDay,
    group: str,
    strategy: str,
    languages: dict[str, tuple[str, str]],
    rule: dict[str, Any],
    own: dict[str, dict[str, Any]],
) -> None:
    """Add a group that consumes `rooms` with one strategy, each member with its own language, release and parameters."""
    clients = tuple(languages)
    day.add_group(group, "rooms", clients)
    members = {"members": own} if own else {}
    day.configure(group, strategy=strategy, **rule, **members)
    queues = [MessageQueue("rooms", broker, number) for broker, number in day.queues("rooms")]
    takers: dict[MessageQueue, list[str | None]] = {queue: [] for queue in queues}
    reason = "mixed_parameters" if own else "mixed_clients"
    for client, (language, version) in languages.items():
        for row in day.of("consumer_connection", consumer_group=group, client_id=client):
            row.update(client_language=language, client_version=version)
        day.of("consumer_client", consumer_group=group, client_id=client)[0]["strategy"] = (
            strategy if language == "JAVA" else None
        )
        of_member = {"strategy": strategy} | rule | own.get(client, {})
        of_client = rule_of(
            Variant(None, language, version),
            strategy,
            ClusterSettings.model_validate({"groups": {group: of_member}}).groups[group],
        )
        assert isinstance(of_client, Strategy)
        try:
            own_queues = of_client.allocate(group, client, queues, sorted(clients))
        except RocketMQError:
            reason = "strategy_failed"
            continue
        for queue in own_queues:
            takers[queue].append(client)
    for row in day.of("queue_assignment", consumer_group=group):
        row.update(is_effective=False, strategy_source="hypothetical")
    source = "observed" if all(language == "JAVA" for language, _ in languages.values()) else "configured"
    for queue, of_queue in takers.items():
        for client in of_queue or [None]:
            day.add(
                "queue_assignment",
                consumer_group=group,
                topic="rooms",
                broker_name=queue.broker_name,
                queue_id=queue.queue_id,
                strategy=strategy,
                strategy_source=source,
                is_effective=True,
                client_id=client,
                reason=None if client else reason,
            )
    day.rate(group, "rooms", strategy, clients)


JAVA: Final = ("JAVA", "5.3.3")
OLD_JAVA: Final = ("JAVA", "4.7.1")
GO: Final = ("GO", "4.5.2")
NEARBY_RINGS: Final = {
    "inner": {"strategy": "CONSISTENT_HASH", "virtual_node_count": 10},
    "broker_room": {"separator": "@"},
    "consumer_room": {"names": {"c1": "hz", "c2": "sh", "c3": "hz"}},
}
CLASSES: Final = {
    "nearby_rings_of_java_beside_go": (
        "MACHINE_ROOM_NEARBY",
        {"c1": JAVA, "c2": GO, "c3": JAVA},
        NEARBY_RINGS,
        {},
    ),
    "nearby_rings_beside_nearby_shares": (
        "MACHINE_ROOM_NEARBY",
        {"c1": JAVA, "c2": JAVA, "c3": JAVA},
        NEARBY_RINGS,
        {"c3": {"inner": {"strategy": "AVG"}}},
    ),
    "ring_of_java_and_go": (
        "CONSISTENT_HASH",
        {"c1": JAVA, "c2": GO, "c3": JAVA},
        {"virtual_node_count": 10},
        {},
    ),
    "ring_with_own_nodes": (
        "CONSISTENT_HASH",
        {"c1": JAVA, "c2": JAVA, "c3": JAVA},
        {"virtual_node_count": 10},
        {"c2": {"virtual_node_count": 50}},
    ),
    "rooms_of_java_and_go": (
        "MACHINE_ROOM",
        {"c1": JAVA, "c2": GO, "c3": OLD_JAVA},
        {"consumer_idcs": ["hz"]},
        {},
    ),
    "rooms_of_their_own": (
        "MACHINE_ROOM",
        {"c1": JAVA, "c2": JAVA, "c3": JAVA},
        {"consumer_idcs": ["hz", "sh"]},
        {"c3": {"consumer_idcs": ["sh"]}},
    ),
}


@fault()
def nearby_rings_of_java_that_throw_beside_go(day: StagedDay, group: str) -> None:
    """Add a broker without a room: the Java members own nothing, and the Go member owns its share of all queues."""
    rooms = {"broker_room": {"names": {"hz@a": "hz", "hz@b": "hz"}}}
    add_classes(
        day, group, "MACHINE_ROOM_NEARBY", {"c1": JAVA, "c2": GO, "c3": JAVA}, NEARBY_RINGS | rooms, {}
    )
    owners = {row["client_id"] for row in rows(day, group, "MACHINE_ROOM_NEARBY")}
    assert owners == {"c2", None}


@fault()
def configured_names_that_go_sorts_otherwise(day: StagedDay, group: str) -> None:
    """Add rows by the strategy of the settings, which the Java member does not follow."""
    clients = {"c\ufb01": JAVA, "c\U0001f600": GO}
    rooms = {name: {"prefixes": {"": "room"}} for name in ("broker_room", "consumer_room")}
    add_classes(day, group, "MACHINE_ROOM_NEARBY", clients, {"inner": {"strategy": "AVG"}} | rooms, {})
    day.of("consumer_client", consumer_group=group, client_id="c\ufb01")[0]["strategy"] = "AVG"
    for row in rows(day, group, "MACHINE_ROOM_NEARBY"):
        row["is_effective"] = False
    for row in rows(day, group):
        row.update(is_effective=True, strategy_source="observed")
    for row in rows(day, group, "AVG_BY_CIRCLE"):  # a hypothetical strategy, by Java's rule
        row["client_id"] = next(client for client in clients if client != row["client_id"])


def classes_in_order(name: str) -> Callable[[StagedDay, str], None]:
    def plant(day: StagedDay, group: str) -> None:
        add_classes(day, group, *CLASSES[name])

    return plant


def classes_with_an_owner_exchanged(name: str) -> Callable[[StagedDay, str], None]:
    def plant(day: StagedDay, group: str) -> None:
        add_classes(day, group, *CLASSES[name])
        owned = [row for row in rows(day, group, CLASSES[name][0]) if row["client_id"]]
        owned[0]["client_id"] = next(client for client in CLASSES[name][1] if client != owned[0]["client_id"])

    return plant


def classes_with_an_owner_less(name: str) -> Callable[[StagedDay, str], None]:
    def plant(day: StagedDay, group: str) -> None:
        add_classes(day, group, *CLASSES[name])
        first = next(row for row in rows(day, group, CLASSES[name][0]) if row["client_id"])
        first.update(client_id=None, reason="mixed_clients")
        if CLASSES[name][3]:
            first["reason"] = "mixed_parameters"

    return plant


for _name in CLASSES:
    FAULTS[_name] = (classes_in_order(_name), set())
    FAULTS[f"{_name}_exchanged"] = (classes_with_an_owner_exchanged(_name), {OWNERS})
    FAULTS[f"{_name}_with_an_owner_less"] = (classes_with_an_owner_less(_name), {OWNERS})


def add_mixed(day: StagedDay, group: str) -> None:
    """Add a group with two members on AVG and one on AVG_BY_CIRCLE: each takes the queues that its own strategy assigns."""
    add_group(day, group, strategies_of_clients=("AVG", "AVG", "AVG_BY_CIRCLE"))
    for even, turn in zip(rows(day, group), rows(day, group, "AVG_BY_CIRCLE"), strict=True):
        owners = [even["client_id"]] * (even["client_id"] != "c3") + ["c3"] * (turn["client_id"] == "c3")
        for row in (even, turn):
            row.update(is_effective=False, strategy_source="hypothetical")
        common = even | {"strategy": "MIXED", "is_effective": True, "strategy_source": "observed"}
        for client in owners or [None]:
            reason = None if client else "mixed_strategies"
            day.rows["queue_assignment"].append(common | {"client_id": client, "reason": reason})
    day.rate(group, "orders", "AVG", ("c1", "c2", "c3"))
    day.rate(group, "orders", "MIXED", ("c1", "c2", "c3"))


@fault()
def mixed(day: StagedDay, group: str) -> None:
    add_mixed(day, group)


@fault(OWNERS)
def mixed_with_clients_swapped(day: StagedDay, group: str) -> None:
    add_mixed(day, group)
    swap = {"c1": "c2", "c2": "c1"}
    for row in rows(day, group, "MIXED"):
        row["client_id"] = swap.get(row["client_id"], row["client_id"])


@fault(OWNERS)
def mixed_with_an_owner_less(day: StagedDay, group: str) -> None:
    add_mixed(day, group)
    day.remove(
        "queue_assignment", consumer_group=group, strategy="MIXED", client_id="c3", broker_name=BROKERS[0]
    )


def add_member_without_rule(day: StagedDay, group: str, strategy: str) -> list[Row]:
    """Add two members on AVG, and one that reports this strategy and whose queues are unknown; return the effective rows."""
    add_group(day, group, strategies_of_clients=("AVG", "AVG", strategy))
    for even in rows(day, group):
        even.update(is_effective=False, strategy_source="hypothetical")
        day.rows["queue_assignment"].append(
            even | {"strategy": "MIXED", "is_effective": True, "strategy_source": "observed"}
        )
    for row in day.of("queue_assignment", consumer_group=group, strategy="MIXED", client_id="c3"):
        row.update(client_id=None, reason="member_strategy_unknown")
    day.rate(group, "orders", "AVG", ("c1", "c2", "c3"))
    day.rate(group, "orders", "MIXED", ("c1", "c2", "c3"))
    return rows(day, group, "MIXED")


@fault()
def member_without_parameters(day: StagedDay, group: str) -> None:
    add_member_without_rule(day, group, "CONSISTENT_HASH")


@fault(OWNERS)
def queue_of_a_member_without_parameters(day: StagedDay, group: str) -> None:
    given = add_member_without_rule(day, group, "CONSISTENT_HASH")
    next(row for row in given if row["client_id"] is None).update(client_id="c3", reason=None)


def add_member_with_two_strategies(day: StagedDay, group: str) -> list[Row]:
    """Add a member whose answer through a broker and whose process report different strategies; return the effective rows."""
    given = add_member_without_rule(day, group, "AVG")
    process = {"process": "p1", "state": "online", "strategy": "AVG_BY_CIRCLE"}
    day.add("client_process", consumer_group=group, client_id="c3", **process)
    return given


@fault()
def member_with_two_strategies(day: StagedDay, group: str) -> None:
    add_member_with_two_strategies(day, group)


@fault(OWNERS)
def queue_of_a_member_with_two_strategies(day: StagedDay, group: str) -> None:
    given = add_member_with_two_strategies(day, group)
    next(row for row in given if row["client_id"] is None).update(client_id="c3", reason=None)


@fault(CONNECTIONS)
def connections_that_no_broker_lists(day: StagedDay, group: str) -> None:
    add_group(day, group)
    rows(day, group)[0]["client_connection_count"] = 2


@fault(CONNECTIONS)
def connections_without_owner(day: StagedDay, group: str) -> None:
    add_group(day, group, ("c1", "c1"), ("AVG",))
    for strategy, owned in (("AVG", (0, 1, 2, 3)), ("AVG_BY_CIRCLE", (0, 2, 4, 6))):
        for index, row in enumerate(rows(day, group, strategy)):
            if index not in owned:
                row.update(client_id=None, reason="duplicate_client_id", client_connection_count=1)


@fault(REPORTS)
def one_report_too_many(day: StagedDay, group: str) -> None:
    add_group(day, group, strategies_of_clients=("AVG", "AVG", None))
    for row in day.of("assignment_fairness", consumer_group=group):
        row["reporting_client_count"] = 3


@fault()
def member_without_a_report(day: StagedDay, group: str) -> None:
    add_group(day, group, strategies_of_clients=("AVG", "AVG", None))


@pytest.fixture(scope="module")
def measured() -> dict[str, str]:
    """Return expectation -> all examples of one day on which each group has its fault."""
    day = StagedDay()
    day.add_topic("orders")
    day.add_topic("config", queues_per_broker=1)
    day.add_topic("ring")
    day.add_route_answers("rooms", ("payload", "payload"))
    for broker in ("hz@a", "hz@b", "sh@a"):
        for nameserver in NAMESERVERS:
            day.add_route(nameserver, "rooms", broker, 4)
    for name, (plant, _) in FAULTS.items():
        plant(day, name)
    return {
        row["expectation_id"]: "\n".join(
            example for subject in row["affected_subjects"] or [] for example in subject["examples"]
        )
        for row in day.measure(STATEMENTS)
    }


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_violates_its_own_expectations_only(name: str, measured: dict[str, str]) -> None:
    seen = {rule for rule, text in measured.items() if re.search(rf"group {name}\b", text)}
    assert seen == FAULTS[name][1], "\n".join(text for text in measured.values() if name in text)
