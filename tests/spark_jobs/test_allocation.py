"""Every strategy over a whole Arrow batch is what RocketMQ's own question, asked client by client, would answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from settings import ClusterSettings
from spark_jobs.allocation import BROADCASTING, MIXED, REASONS, allocate_batch
from spark_jobs.configured import Configured
from strategies import MessageQueue, UnknownNameError, get_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from strategies import Strategy

QueueName = tuple[str, int]

GROUPS: dict[str, dict[str, Any]] = {
    "hash": {"strategy": "CONSISTENT_HASH", "virtual_node_count": 3},
    "room": {"strategy": "MACHINE_ROOM", "consumer_idcs": ["hz"]},
    "nearby": {
        "strategy": "MACHINE_ROOM_NEARBY",
        "inner": {"strategy": "AVG_BY_CIRCLE"},
        "broker_room": {"before": "@"},
        "consumer_room": {"prefixes": {"c": "hz", "d": "sh"}},
    },
    "listed": {
        "strategy": "CONFIG",
        "clients": {
            "c1": [{"topic": "orders", "broker_name": "hz@a", "queue_ids": [0, 1, 9]}],
            "c2": [{"topic": "orders", "broker_name": "sh@c", "queue_ids": [0]}],
        },
    },
}
SETTINGS = ClusterSettings.model_validate({"groups": GROUPS})
WHAT_IF = ClusterSettings.model_validate({"groups": GROUPS, "hypothetical": list(GROUPS.values())})
"""What is configured for one group is tried on every group."""

GROUP_WITH = {of_group["strategy"]: group for group, of_group in GROUPS.items()}
PARAMETERS: dict[str, dict[str, Any]] = {
    "hash": {"virtual_node_count": 3},
    "room": {"consumer_idcs": {"hz"}},
    "nearby": {
        "broker_room": lambda queue: queue.broker_name.partition("@")[0],
        "consumer_room": lambda client_id: {"c": "hz", "d": "sh"}.get(client_id[0]),
    },
}
"""The same as `get_strategy` takes them."""

LISTS = {"c1": [("hz@a", 0), ("hz@a", 1), ("hz@a", 9)], "c2": [("sh@c", 0)]}


@dataclass(frozen=True)
class Member:
    """One connection of a group; `strategy` is None where the client could not be asked."""

    client_id: str
    strategy: str | None = "AVG"
    language: str | None = "JAVA"
    version: str | None = "5.3.3"
    is_subscribed: bool = True


@dataclass(frozen=True)
class Sub:
    """One group and topic, as `subscriptions.subscriptions` gives it."""

    members: Sequence[Member] | None
    group: str = "plain"
    state: str = "online"
    brokers: dict[str, int] = field(default_factory=lambda: {"hz@a": 4, "sh@c": 3})
    topic: str = "orders"

    @property
    def queues(self) -> list[MessageQueue]:
        return [
            MessageQueue(self.topic, broker, queue_id)
            for broker, count in sorted(self.brokers.items())
            for queue_id in range(count)
        ]

    @property
    def slots(self) -> list[Member]:
        """In Java's order; twins stay neighbours."""
        return sorted(self.members or (), key=lambda member: member.client_id)


@dataclass(frozen=True)
class Shared:
    """One strategy's answer for one subscription: for each queue its owners, or the reason why there is none."""

    source: str
    is_effective: bool
    owners: dict[QueueName, set[str] | str]

    @property
    def owned(self) -> dict[QueueName, set[str]]:
        return {queue: owners for queue, owners in self.owners.items() if isinstance(owners, set)}

    @property
    def reasons(self) -> set[str]:
        return {owners for owners in self.owners.values() if isinstance(owners, str)}


def allocated(*subs: Sub, configured: Any = SETTINGS) -> list[dict[str, Shared]]:
    """For each subscription the answer of each strategy, by name."""

    def of_members(value: Callable[[Member], Any]) -> list[list[Any] | None]:
        return [None if sub.members is None else [value(member) for member in sub.members] for sub in subs]

    texts, numbers = pa.list_(pa.string()), pa.list_(pa.int32())
    batch = pa.StructArray.from_arrays(
        [
            pa.array([sub.group for sub in subs], pa.string()),
            pa.array([sub.topic for sub in subs], pa.string()),
            pa.array([sub.state for sub in subs], pa.string()),
            pa.array([list(sub.brokers) for sub in subs], texts),
            pa.array([list(sub.brokers.values()) for sub in subs], numbers),
            pa.array(of_members(lambda member: member.client_id), texts),
            pa.array(of_members(lambda member: member.strategy), texts),
            pa.array(of_members(lambda member: member.language), texts),
            pa.array(of_members(lambda member: member.version), texts),
            pa.array(of_members(lambda member: member.is_subscribed), pa.list_(pa.bool_())),
        ],
        names=[
            "consumer_group",
            "topic",
            "group_state",
            "broker_names",
            "queue_counts",
            "member_ids",
            "strategies",
            "languages",
            "versions",
            "is_subscribed",
        ],
    )
    results = allocate_batch(Configured.of(configured), batch)
    results.validate(full=True)
    return [_by_strategy(sub, row) for sub, row in zip(subs, results.to_pylist(), strict=True)]


def _by_strategy(sub: Sub, row: dict[str, Any]) -> dict[str, Shared]:
    brokers = list(sub.brokers)
    queues = [
        (brokers[broker], queue_id)
        for broker, queue_id in zip(row["queue_brokers"], row["queue_ids"], strict=True)
    ]
    assert queues == [(queue.broker_name, queue.queue_id) for queue in sub.queues], "in Java's order"
    answers = {}
    for share in row["shares"]:
        owners: dict[QueueName, Any] = {}
        for position, owner in enumerate(share["owners"]):
            name = queues[position if share["queues"] is None else share["queues"][position]]
            if owner < 0:
                assert name not in owners, "a queue has one reason, and no owner beside it"
                owners[name] = REASONS[-1 - owner]
            else:
                owners.setdefault(name, set()).add((sub.members or ())[owner].client_id)
        assert len(owners) == len(sub.queues), "every queue is there"
        assert share["strategy"] not in answers, "a strategy is shown once"
        answers[share["strategy"]] = Shared(share["strategy_source"], share["is_effective"], owners)
    return answers


def effective(sub: Sub, configured: Any = SETTINGS) -> tuple[str, Shared]:
    [answer] = allocated(sub, configured=configured)
    [found] = [(name, shared) for name, shared in answer.items() if shared.is_effective]
    return found


def asked_client_by_client(
    sub: Sub, rule_of: Callable[[Member], Strategy | None]
) -> dict[QueueName, set[str]]:
    """What each client takes when it is asked alone; clients that do not read the topic leave it unread."""
    owned: dict[QueueName, set[str]] = {}
    ids = [member.client_id for member in sub.slots]
    for member in {member.client_id: member for member in reversed(sub.slots)}.values():
        rule = rule_of(member)
        if rule is None or not member.is_subscribed:
            continue
        for queue in rule.allocate(sub.group, member.client_id, sub.queues, ids) or ():
            if queue in sub.queues:
                owned.setdefault((queue.broker_name, queue.queue_id), set()).add(member.client_id)
    return owned


def rule(sub: Sub, member: Member, name: str) -> Strategy | None:
    """The strategy as this member has it; None where its parameters or its rules are not known."""
    who = {"client_language": member.language or "JAVA", "client_version": member.version or "5.3.3"}
    group_has = GROUPS.get(sub.group, {}).get("strategy")
    needs_parameters = name in {"CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"}
    if needs_parameters and group_has != name:
        return None
    try:
        if name == "CONFIG":
            queues = [MessageQueue("orders", *queue) for queue in LISTS.get(member.client_id, [])]
            return get_strategy("CONFIG", **who, message_queues=queues)
        parameters = PARAMETERS.get(sub.group, {}) if group_has == name else {}
        if name == "MACHINE_ROOM_NEARBY":
            parameters = {**parameters, "inner": get_strategy("AVG_BY_CIRCLE", **who)}
        return get_strategy(name, **who, **parameters)
    except UnknownNameError:
        return None


STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY")

rules_of_members = st.one_of(
    st.builds(
        Member,
        client_id=st.just(""),
        strategy=st.sampled_from((*STRATEGIES, "com.example.Mine")),
        language=st.sampled_from(("JAVA", "JAVA", "GO", "CPP", "PYTHON", None)),
        version=st.sampled_from(("4.2.0", "4.9.3", "5.3.3", None)),
    ),
    st.builds(Member, client_id=st.just(""), strategy=st.sampled_from(STRATEGIES)),
)


@st.composite
def subs(draw: st.DrawFn) -> Sub:
    """Groups in every state; the members of one client id say the same, as `subscriptions` gives it."""
    state = draw(st.sampled_from(("online", "online", "online", "broadcasting", "offline", "unknown")))
    brokers = draw(
        st.dictionaries(st.sampled_from(("hz@a", "hz@b", "sh@c")), st.integers(1, 5), min_size=1, max_size=3)
    )
    group = draw(st.sampled_from(("plain", *GROUPS)))
    if state in {"offline", "unknown"}:
        return Sub(None, group, state, brokers)
    rules = draw(st.lists(rules_of_members, min_size=1, max_size=3))
    # A member that does not answer does as the others do: that is a question only where they are alike.
    if len(rules) == 1:
        rules.append(replace(rules[0], strategy=None))
    by_id = draw(
        st.dictionaries(
            st.sampled_from(("c1", "c2", "c3", "d1", "d2")),
            st.tuples(st.sampled_from(rules), st.sampled_from((True, True, True, False))),
            min_size=1,
        )
    )
    members = [
        replace(said, client_id=client_id, is_subscribed=is_subscribed)
        for client_id, (said, is_subscribed) in by_id.items()
        for _ in range(draw(st.sampled_from((1, 1, 1, 2))))
    ]
    return Sub(members, group, state, brokers)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(batch=st.lists(subs(), max_size=5))
def test_a_batch_is_what_each_client_would_answer_alone(batch: list[Sub]) -> None:
    for sub, answer in zip(batch, allocated(*batch, configured=WHAT_IF), strict=True):
        shown = {name for name, shared in answer.items() if shared.is_effective}
        if sub.state == "broadcasting":
            assert shown == set(answer) == {BROADCASTING}
            readers = {member.client_id for member in sub.slots if member.is_subscribed}
            assert all(owners == readers for owners in answer[BROADCASTING].owned.values())
            assert bool(answer[BROADCASTING].owned) == bool(readers)
            continue
        for name in STRATEGIES:
            if name not in shown:
                assert_tried(sub, answer[name], name)
        reported = {member.strategy for member in sub.slots} - {None}
        if sub.state != "online":
            assert (shown, reported) == (set(), set())
        elif not reported:
            assert shown == ({GROUPS[sub.group]["strategy"]} if sub.group in GROUPS else set())
        else:
            assert_effective(sub, answer, reported)


def assert_tried(sub: Sub, shared: Shared, name: str) -> None:
    """A strategy that is not in effect is computed as if every member were a newest Java client that has it."""
    is_configured = sub.state == "online" and GROUPS.get(sub.group, {}).get("strategy") == name
    as_in = replace(sub, group=GROUP_WITH.get(name, sub.group))
    expected = asked_client_by_client(as_in, lambda member: rule(as_in, Member(member.client_id), name))

    assert shared.owned == expected, name
    assert shared.source == ("configured" if is_configured else "hypothetical")


def assert_effective(sub: Sub, answer: dict[str, Shared], reported: set[str]) -> None:
    name = MIXED if len(reported) > 1 else next(iter(reported))
    speaks = next(member for member in sub.slots if member.strategy)

    def rule_of(member: Member) -> Strategy | None:
        if member.strategy is None and name != MIXED:
            return rule(sub, replace(speaks, client_id=member.client_id), name)
        return rule(sub, member, member.strategy) if member.strategy else None

    is_known = all(rule_of(member) for member in sub.slots)
    expected = asked_client_by_client(sub, rule_of) if is_known or name == MIXED else {}
    assert [key for key, shared in answer.items() if shared.is_effective] == [name]
    assert answer[name].owned == expected
    assert answer[name].source == "observed"


def test_an_empty_batch_gives_an_empty_answer() -> None:
    assert allocated() == []


def test_a_part_of_a_batch_is_answered_like_the_part_alone() -> None:
    """Arrow hands over slices of larger arrays."""
    batch = [
        Sub([Member("c1"), Member("c2")]),
        Sub(None, state="offline"),
        Sub([Member("c1", "MACHINE_ROOM"), Member("d1", "MACHINE_ROOM")], group="room"),
    ]

    assert allocated(*batch)[1:] == allocated(*batch[1:])


def test_the_answer_for_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    """Java's ring and Go's differ, and one member does not say which it has."""
    java, go = Member("c1", "CONSISTENT_HASH"), Member("c2", "CONSISTENT_HASH", language="GO")
    asked = Sub([java, go, Member("c3", None)], group="hash", brokers={"hz@a": 30})
    only_java, only_go = (Sub([member], group="hash") for member in (java, go))

    assert allocated(only_java, asked)[1] == allocated(only_go, asked)[1] == allocated(asked)[0]


@pytest.mark.parametrize(("state", "reason"), [("offline", "group_offline"), ("unknown", "members_unknown")])
def test_a_group_that_is_not_seen_owns_nothing_for_that_reason(state: str, reason: str) -> None:
    [answer] = allocated(Sub(None, state=state))

    assert set(answer) == {"AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"}
    for shared in answer.values():
        assert (shared.is_effective, shared.owned, shared.reasons) == (False, {}, {reason})


def test_twins_take_one_share_and_leave_the_other_to_nobody() -> None:
    name, shared = effective(Sub([Member("c1"), Member("c1"), Member("c2")], brokers={"hz@a": 6}))

    assert name == "AVG"
    assert shared.owned == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c1"},
        ("hz@a", 4): {"c2"},
        ("hz@a", 5): {"c2"},
    }
    assert shared.reasons == {"duplicate_client_id"}


def test_what_falls_to_a_member_that_does_not_read_the_topic_is_read_by_nobody() -> None:
    _, shared = effective(Sub([Member("c1"), Member("c2", is_subscribed=False)], brokers={"hz@a": 2}))

    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): "owner_not_subscribed"}


def test_mixed_strategies_own_some_queues_twice_and_some_never() -> None:
    name, shared = effective(Sub([Member("c1"), Member("c2", "AVG_BY_CIRCLE")], brokers={"hz@a": 4}))

    assert name == MIXED
    assert shared.owners == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c1", "c2"},
        ("hz@a", 2): "mixed_strategies",
        ("hz@a", 3): {"c2"},
    }


def test_where_a_part_of_a_mix_is_unknown_the_rest_may_not_be_nobodys() -> None:
    _, shared = effective(Sub([Member("c1"), Member("c2", "com.example.Mine")], brokers={"hz@a": 2}))

    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): "member_strategy_unknown"}


def test_a_member_that_does_not_answer_does_as_the_others_say_that_they_do() -> None:
    name, shared = effective(Sub([Member("c1", "AVG_BY_CIRCLE"), Member("c2", None)], brokers={"hz@a": 2}))

    assert (name, shared.source) == ("AVG_BY_CIRCLE", "observed")
    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): {"c2"}}


def test_where_no_member_answers_the_settings_speak() -> None:
    name, shared = effective(Sub([Member("c1", None, None, None)], group="room"))

    assert (name, shared.source) == ("MACHINE_ROOM", "configured")
    assert set(shared.owned) == {("hz@a", queue) for queue in range(4)}
    assert shared.reasons == {"room_without_consumers"}


def test_where_neither_members_nor_settings_speak_no_strategy_is_in_effect() -> None:
    [answer] = allocated(Sub([Member("c1", None)]))

    assert [shared.is_effective for shared in answer.values()] == [False, False, False]


@pytest.mark.parametrize("strategy", ["CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"])
def test_parameters_that_nobody_gave_are_not_guessed(strategy: str) -> None:
    name, shared = effective(Sub([Member("c1", strategy)]))

    assert (name, shared.owned, shared.reasons) == (strategy, {}, {"settings_missing"})


def test_the_settings_of_another_strategy_are_no_parameters() -> None:
    [answer] = allocated(Sub([Member("c1", "MACHINE_ROOM")], group="hash"))

    assert answer["MACHINE_ROOM"].reasons == {"settings_missing"}


def test_a_configured_strategy_that_no_member_reports_is_shown_beside_the_effective_one() -> None:
    [answer] = allocated(Sub([Member("c1")], group="room"))

    assert (answer["AVG"].is_effective, answer["AVG"].source) == (True, "observed")
    assert (answer["MACHINE_ROOM"].is_effective, answer["MACHINE_ROOM"].source) == (False, "configured")


@pytest.mark.parametrize(
    "member",
    [
        Member("c1", "com.example.Mine"),
        Member("c1", "AVG", language="PYTHON"),
        Member("c1", "AVG_BY_CIRCLE", language="CPP"),
        Member("c1", "AVG", version="3.5.8"),
    ],
    ids=lambda member: f"{member.strategy}-{member.language}-{member.version}",
)
def test_a_strategy_whose_rules_are_not_known_is_called_unknown_and_not_wanting_settings(
    member: Member,
) -> None:
    name, shared = effective(Sub([member]))

    assert (name, shared.owned, shared.reasons) == (member.strategy, {}, {"strategy_unknown"})


@pytest.mark.parametrize(
    ("group", "strategy"),
    [
        ("hash", "CONSISTENT_HASH"),
        ("room", "MACHINE_ROOM"),
        ("nearby", "MACHINE_ROOM_NEARBY"),
        ("listed", "CONFIG"),
    ],
)
@pytest.mark.parametrize("language", ["PYTHON", "CPP", "OTHER"])
def test_a_client_in_a_language_without_rules_stops_no_day(group: str, strategy: str, language: str) -> None:
    _, shared = effective(Sub([Member("c1", strategy, language=language)], group=group))

    assert (shared.owned, shared.reasons) == ({}, {"strategy_unknown"})


def test_lists_are_each_clients_own_and_what_stands_in_none_is_nobodys() -> None:
    members = [Member("c1", "CONFIG"), Member("c2", "CONFIG"), Member("c3", "CONFIG")]
    name, shared = effective(Sub(members, group="listed"))

    assert name == "CONFIG"
    assert shared.owned == {("hz@a", 0): {"c1"}, ("hz@a", 1): {"c1"}, ("sh@c", 0): {"c2"}}
    assert shared.reasons == {"not_in_configured_list"}


def test_twins_are_not_to_blame_for_what_a_list_or_a_room_leaves_out() -> None:
    listed = effective(Sub([Member("c1", "CONFIG"), Member("c1", "CONFIG")], group="listed"))[1]
    rooms = effective(Sub([Member("c1", "MACHINE_ROOM"), Member("c1", "MACHINE_ROOM")], group="room"))[1]

    assert listed.reasons == {"not_in_configured_list"}
    assert rooms.owners[("sh@c", 0)] == "room_without_consumers"
    assert "duplicate_client_id" in rooms.reasons


def test_a_subscription_that_the_strategy_refuses_spoils_no_other_topic() -> None:
    """Nearby throws where a broker has no room; the group's other topics are shared."""
    members = [Member("x1", "MACHINE_ROOM_NEARBY"), Member("c1", "MACHINE_ROOM_NEARBY")]
    well = [Member("c1", "MACHINE_ROOM_NEARBY"), Member("c2", "MACHINE_ROOM_NEARBY")]
    refused, shared = allocated(Sub(members, group="nearby"), Sub(well, group="nearby"))

    assert refused["MACHINE_ROOM_NEARBY"].reasons == {"strategy_failed"}
    assert shared["MACHINE_ROOM_NEARBY"].reasons == set()


def test_rooms_share_their_own_brokers() -> None:
    members = [Member(client_id, "MACHINE_ROOM_NEARBY") for client_id in ("c1", "c2", "d1")]
    _, shared = effective(Sub(members, group="nearby", brokers={"hz@a": 2, "sh@c": 2}))

    assert shared.owners == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c2"},
        ("sh@c", 0): {"d1"},
        ("sh@c", 1): {"d1"},
    }


def test_broadcasting_twins_read_once_and_strangers_to_the_topic_not_at_all() -> None:
    members = [Member("c1"), Member("c1"), Member("c2", None), Member("c3", is_subscribed=False)]
    name, shared = effective(Sub(members, state="broadcasting", brokers={"hz@a": 2}))

    assert name == BROADCASTING
    assert shared.owners == {("hz@a", 0): {"c1", "c2"}, ("hz@a", 1): {"c1", "c2"}}


def test_client_ids_and_brokers_may_be_any_text() -> None:
    names = ["", "a\tb", "ü", "中文", "\U0001f600", "x" * 300]
    members: Iterable[Member] = [Member(name) for name in names if name]
    [answer] = allocated(Sub(list(members), group="gröup", topic="%RETRY%x", brokers={"b\"'": 5}))

    assert answer["AVG"].is_effective
    assert {owner for owners in answer["AVG"].owned.values() for owner in owners} == set(names[1:])
