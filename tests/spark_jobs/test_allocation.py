"""Each strategy over a whole Arrow batch returns the same result as the strategy called for each client."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_ledger.rocketmq.java_strings import order_key
from rebalance_ledger.settings import ClusterSettings
from spark_jobs.assignment.allocation import BROADCASTING, MIXED, REASONS, allocate_batch
from spark_jobs.assignment.strategy_settings import StrategySettings
from strategies import (
    MessageQueue,
    RocketMQError,
    UnknownNameError,
    get_strategy,
    sort_client_ids,
    sort_queues,
)

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
        "broker_room": {"separator": "@"},
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
CLUSTER = "shop"
SETTINGS = ClusterSettings.model_validate({"groups": GROUPS})
WHAT_IF = ClusterSettings.model_validate({"groups": GROUPS, "hypothetical": list(GROUPS.values())})
"""Settings that apply the strategy of each configured group hypothetically to all groups."""

GROUP_WITH = {of_group["strategy"]: group for group, of_group in GROUPS.items()}
PARAMETERS: dict[str, dict[str, Any]] = {
    "hash": {"virtual_node_count": 3},
    "room": {"consumer_idcs": {"hz"}},
    "nearby": {
        "broker_room": lambda queue: queue.broker_name.partition("@")[0],
        "consumer_room": lambda client_id: {"c": "hz", "d": "sh"}.get(client_id[0]),
    },
}
"""The same parameters in the form of `get_strategy`."""

LISTS = {"c1": [("hz@a", 0), ("hz@a", 1), ("hz@a", 9)], "c2": [("sh@c", 0)]}


@dataclass(frozen=True)
class Member:
    """One connection of a group. `strategy` is None if the client could not be queried or reports no strategy."""

    client_id: str
    strategy: str | None = "AVG"
    language: str | None = "JAVA"
    version: str | None = "5.3.3"
    is_subscribed: bool = True
    answers: bool | None = None

    @property
    def has_answered(self) -> bool:
        return self.strategy is not None if self.answers is None else self.answers


@dataclass(frozen=True)
class Sub:
    """One group and topic, as `subscriptions.subscriptions` returns it."""

    members: Sequence[Member] | None
    group: str = "plain"
    state: str = "online"
    brokers: dict[str, int] = field(default_factory=lambda: {"hz@a": 4, "sh@c": 3})
    topic: str = "orders"

    @property
    def queues(self) -> list[MessageQueue]:
        return sort_queues(
            MessageQueue(self.topic, broker, queue_id)
            for broker, count in self.brokers.items()
            for queue_id in range(count)
        )

    @property
    def slots(self) -> list[Member]:
        """The members in Java's order; equal client ids are adjacent."""
        return sorted(self.members or (), key=lambda member: order_key(member.client_id))


@dataclass(frozen=True)
class Shared:
    """One strategy's result for one subscription: the owners of each queue, or the reason why it has none."""

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
    """Return strategy name -> its result, for each subscription."""

    def of_members(value: Callable[[Member], Any]) -> list[list[Any] | None]:
        return [None if sub.members is None else [value(member) for member in sub.members] for sub in subs]

    texts, numbers = pa.list_(pa.string()), pa.list_(pa.int32())
    batch = pa.StructArray.from_arrays(
        [
            pa.array([CLUSTER] * len(subs), pa.string()),
            pa.array([sub.group for sub in subs], pa.string()),
            pa.array([sub.topic for sub in subs], pa.string()),
            pa.array([sub.state for sub in subs], pa.string()),
            pa.array([list(sub.brokers) for sub in subs], texts),
            pa.array([list(sub.brokers.values()) for sub in subs], numbers),
            pa.array(of_members(lambda member: member.client_id), texts),
            pa.array(of_members(lambda member: member.strategy), texts),
            pa.array(of_members(lambda member: member.language), texts),
            pa.array(of_members(lambda member: member.version), texts),
            pa.array(of_members(lambda member: member.has_answered), pa.list_(pa.bool_())),
            pa.array(of_members(lambda member: member.is_subscribed), pa.list_(pa.bool_())),
        ],
        names=[
            "cluster",
            "consumer_group",
            "topic",
            "group_state",
            "broker_names",
            "queue_counts",
            "member_ids",
            "strategies",
            "languages",
            "versions",
            "has_answered",
            "is_subscribed",
        ],
    )
    results = allocate_batch(StrategySettings.of({CLUSTER: configured}), batch)
    results.validate(full=True)
    return [_by_strategy(sub, row) for sub, row in zip(subs, results.to_pylist(), strict=True)]


def _by_strategy(sub: Sub, row: dict[str, Any]) -> dict[str, Shared]:
    brokers = [*sub.brokers, *row["extra_brokers"]]
    queues = [
        (brokers[broker], queue_id)
        for broker, queue_id in zip(row["queue_brokers"], row["queue_ids"], strict=True)
    ]
    routed = [(queue.broker_name, queue.queue_id) for queue in sub.queues]
    assert queues[: len(routed)] == routed, "in Java's order"
    assert not set(routed) & set(queues[len(routed) :])
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
        assert owners.keys() == set(
            queues if share["is_effective"] and share["strategy"] in {"CONFIG", MIXED} else routed
        ), "every queue is there"
        assert share["strategy"] not in answers, "a strategy is shown once"
        answers[share["strategy"]] = Shared(share["strategy_source"], share["is_effective"], owners)
    return answers


def effective(sub: Sub, configured: Any = SETTINGS) -> tuple[str, Shared]:
    [answer] = allocated(sub, configured=configured)
    [found] = [(name, shared) for name, shared in answer.items() if shared.is_effective]
    return found


def asked_client_by_client(
    sub: Sub, rule_of: Callable[[Member], Strategy | None], *, with_lists: bool = False
) -> dict[QueueName, set[str]]:
    """Return the owners of each queue if each client is computed alone.

    Clients that do not subscribe, and clients whose strategy throws, own nothing.
    """
    owned: dict[QueueName, set[str]] = {}
    for member in {member.client_id: member for member in reversed(sub.slots)}.values():
        rule = rule_of(member)
        if rule is None or not member.is_subscribed:
            continue
        language = member.language if member.language in {"GO", "CPP"} else "JAVA"
        ids = sort_client_ids([member.client_id for member in sub.slots], language)
        queues = sort_queues(sub.queues, language)
        try:
            taken = rule.allocate(sub.group, member.client_id, queues, ids) or ()
        except RocketMQError:
            continue
        for queue in taken:
            if queue in sub.queues or with_lists:
                owned.setdefault((queue.broker_name, queue.queue_id), set()).add(member.client_id)
    return owned


def rule(sub: Sub, member: Member, name: str) -> Strategy | None:
    """Return the strategy in this member's implementation, or None if its parameters or rules are unknown."""
    who = {"client_language": member.language or "JAVA", "client_version": member.version or "5.3.3"}
    group_has = GROUPS.get(sub.group, {}).get("strategy")
    needs_parameters = name in {"CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"}
    if needs_parameters and group_has != name:
        return None
    is_java = member.language == "JAVA" or member.language is None
    if name == "MACHINE_ROOM" and is_java and member.version is None:
        return None
    if member.language is None and member.strategy is None and name != "AVG":
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


def divides_by(sub: Sub, member: Member) -> Member:
    """Return the member with its reported strategy or, if it did not answer, the only one that similar members report."""
    reporting = [other for other in sub.slots if other.strategy]
    names = {other.strategy for other in reporting}
    is_like_them = member.language in {None, *(other.language for other in reporting)}
    if member.strategy is None and not member.has_answered and len(names) == 1 and is_like_them:
        return replace(member, strategy=reporting[0].strategy)
    return member


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
    st.builds(
        Member,
        client_id=st.just(""),
        strategy=st.none(),
        language=st.sampled_from(("JAVA", "GO", "GO", "CPP", "PYTHON", None)),
        version=st.sampled_from(("4.5.2", "5.3.3", None)),
        answers=st.booleans(),
    ),
)
# The second name of each pair sorts last by byte, and first by UTF-16 code unit.
ODD_BROKERS = ("hz@\ufb01", "hz@\U0001f600")
ODD_CLIENTS = ("c\ufb01", "c\U0001f600")


@st.composite
def subs(draw: st.DrawFn) -> Sub:
    """Draw groups in every state. Members with one client id have equal reports, as `subscriptions` returns them."""
    state = draw(st.sampled_from(("online", "online", "online", "broadcasting", "offline", "unknown")))
    brokers = draw(
        st.dictionaries(
            st.sampled_from(("hz@a", "hz@b", "sh@c", *ODD_BROKERS)),
            st.integers(1, 5),
            min_size=1,
            max_size=3,
        )
    )
    group = draw(st.sampled_from(("plain", *GROUPS)))
    if state in {"offline", "unknown"}:
        return Sub(None, group, state, brokers)
    rules = draw(st.lists(rules_of_members, min_size=1, max_size=3))
    rules.append(replace(rules[0], strategy=None, answers=False))
    by_id = draw(
        st.dictionaries(
            # The settings give `x1` no room.
            st.sampled_from(("c1", "c2", "c3", "d1", "d2", "x1", *ODD_CLIENTS)),
            st.tuples(st.sampled_from(rules), st.sampled_from((True, True, True, False))),
            min_size=1,
        )
    )
    members = [
        replace(member, client_id=client_id, is_subscribed=is_subscribed)
        for client_id, (member, is_subscribed) in by_id.items()
        for _ in range(draw(st.sampled_from((1, 1, 1, 2))))
    ]
    return Sub(members, group, state, brokers)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(batch=st.lists(subs(), max_size=5))
def test_a_batch_equals_the_answers_for_each_client(batch: list[Sub]) -> None:
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
        if sub.state == "online":
            assert_effective(sub, answer)
        else:
            assert shown == set()


def assert_tried(sub: Sub, shared: Shared, name: str) -> None:
    """Assert the result of a hypothetical strategy.

    Members use their own implementations if the settings name the strategy for the group, else that of the newest Java client.
    """
    is_configured = sub.state == "online" and GROUPS.get(sub.group, {}).get("strategy") == name
    as_in = replace(sub, group=GROUP_WITH.get(name, sub.group))
    own = {member: rule(as_in, member, name) for member in sub.slots}
    is_configured &= any(own.values())
    if not is_configured:
        as_in = replace(as_in, members=[Member(member.client_id) for member in sub.members or ()])
        own = {member: rule(as_in, member, name) for member in as_in.slots}
    # A member that does not subscribe owns nothing under any strategy.
    is_subscribed = {member.client_id: member.is_subscribed for member in sub.slots}
    expected = {
        queue: readers
        for queue, owners in asked_client_by_client(as_in, own.__getitem__).items()
        if (readers := {owner for owner in owners if is_subscribed[owner]})
    }

    assert shared.owned == expected, name
    assert shared.source == ("configured" if is_configured else "hypothetical")


def assert_effective(sub: Sub, answer: dict[str, Shared]) -> None:
    divided = {member: divides_by(sub, member) for member in sub.slots}
    of_group = GROUPS.get(sub.group, {}).get("strategy")
    names = {member: as_divided.strategy or of_group for member, as_divided in divided.items()}
    rules = {
        member: rule(sub, as_divided, names[member]) if names[member] else None
        for member, as_divided in divided.items()
    }
    known = set(names.values()) - {None}
    shown = [key for key, shared in answer.items() if shared.is_effective]
    if not known:
        assert shown == []
        return
    name = MIXED if len(known) > 1 else next(iter(known))
    assert shown == [name]
    assert answer[name].owned == asked_client_by_client(sub, rules.__getitem__, with_lists=True)
    is_observed = all(as_divided.strategy for as_divided in divided.values()) or of_group is None
    assert answer[name].source == ("observed" if is_observed else "configured")


def test_an_empty_batch_gives_an_empty_answer() -> None:
    assert allocated() == []


def test_a_slice_of_a_batch_is_answered_like_the_slice_alone() -> None:
    """Arrow passes slices of larger arrays."""
    batch = [
        Sub([Member("c1"), Member("c2")]),
        Sub(None, state="offline"),
        Sub([Member("c1", "MACHINE_ROOM"), Member("d1", "MACHINE_ROOM")], group="room"),
    ]

    assert allocated(*batch)[1:] == allocated(*batch[1:])


def test_the_answer_for_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    """The rings of Java and Go differ, and one member does not report its language."""
    java, go = Member("c1", "CONSISTENT_HASH"), Member("c2", "CONSISTENT_HASH", language="GO")
    asked = Sub([java, go, Member("c3", None)], group="hash", brokers={"hz@a": 30})
    only_java, only_go = (Sub([member], group="hash") for member in (java, go))

    assert allocated(only_java, asked)[1] == allocated(only_go, asked)[1] == allocated(asked)[0]


@pytest.mark.parametrize(("state", "reason"), [("offline", "group_offline"), ("unknown", "members_unknown")])
def test_a_group_that_was_not_observed_owns_nothing_for_that_reason(state: str, reason: str) -> None:
    [answer] = allocated(Sub(None, state=state))

    assert set(answer) == {"AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"}
    for shared in answer.values():
        assert (shared.is_effective, shared.owned, shared.reasons) == (False, {}, {reason})


def test_duplicate_client_ids_take_one_share_and_the_other_has_no_owner() -> None:
    name, shared = effective(Sub([Member("c1"), Member("c1"), Member("c2")], brokers={"hz@a": 6}))

    assert name == "AVG"
    assert shared.owned == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c1"},
        ("hz@a", 4): {"c2"},
        ("hz@a", 5): {"c2"},
    }
    assert shared.reasons == {"duplicate_client_id"}


def test_queues_of_a_member_that_does_not_subscribe_have_no_owner() -> None:
    _, shared = effective(Sub([Member("c1"), Member("c2", is_subscribed=False)], brokers={"hz@a": 2}))

    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): "owner_not_subscribed"}


def test_mixed_strategies_give_some_queues_two_owners_and_some_none() -> None:
    name, shared = effective(Sub([Member("c1"), Member("c2", "AVG_BY_CIRCLE")], brokers={"hz@a": 4}))

    assert name == MIXED
    assert shared.owners == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c1", "c2"},
        ("hz@a", 2): "mixed_strategies",
        ("hz@a", 3): {"c2"},
    }


def test_with_an_unknown_member_strategy_other_queues_are_not_reported_as_unowned() -> None:
    _, shared = effective(Sub([Member("c1"), Member("c2", "com.example.Mine")], brokers={"hz@a": 2}))

    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): "member_strategy_unknown"}


def test_a_member_that_does_not_answer_is_assumed_to_use_the_strategy_of_the_others() -> None:
    name, shared = effective(Sub([Member("c1", "AVG_BY_CIRCLE"), Member("c2", None)], brokers={"hz@a": 2}))

    assert (name, shared.source) == ("AVG_BY_CIRCLE", "observed")
    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): {"c2"}}


def test_settings_apply_if_no_member_answers() -> None:
    name, shared = effective(Sub([Member("c1", None)], group="room"))

    assert (name, shared.source) == ("MACHINE_ROOM", "configured")
    assert set(shared.owned) == {("hz@a", queue) for queue in range(4)}
    assert shared.reasons == {"room_without_clients"}


def test_without_answers_and_settings_no_strategy_is_in_effect() -> None:
    [answer] = allocated(Sub([Member("c1", None)]))

    assert [shared.is_effective for shared in answer.values()] == [False, False, False]


GO_MEMBERS = [Member(client_id, None, "GO", "4.5.2", answers=True) for client_id in ("c1", "c2", "d1")]
"""Go clients, which answer but report no strategy."""


@pytest.mark.parametrize("group", ["hash", "room", "nearby"])
def test_members_that_report_no_strategy_use_the_settings_in_their_own_language(group: str) -> None:
    brokers = {"hz@a": 4, "sh@c": 4}
    name, shared = effective(Sub(GO_MEMBERS, group=group, brokers=brokers))
    in_java = effective(Sub([replace(member, strategy=name) for member in GO_MEMBERS], "hash", "online"))[1]
    parameters = PARAMETERS[group] if group != "nearby" else {}
    of_go = get_strategy(name, client_language="GO", **parameters)

    assert (name, shared.source) == (GROUPS[group]["strategy"], "configured")
    assert shared.owned == asked_client_by_client(Sub(GO_MEMBERS, brokers=brokers), lambda _: of_go)
    assert shared.owned != in_java.owned


def test_members_that_report_no_strategy_do_not_inherit_that_of_other_members() -> None:
    members = [Member("c1"), Member("c2", None, "GO", "4.5.2", answers=True)]
    name, shared = effective(Sub(members, brokers={"hz@a": 2}))

    assert (name, shared.source) == ("AVG", "observed")
    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): "member_strategy_unknown"}


def test_a_member_in_another_language_that_was_not_asked_does_not_inherit_it_either() -> None:
    _, shared = effective(Sub([Member("c1"), Member("c2", None, "CPP")], brokers={"hz@a": 2}))

    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): "member_strategy_unknown"}


def test_settings_apply_to_members_without_a_reported_strategy_in_a_mixed_group() -> None:
    plain = ClusterSettings.model_validate({"groups": {"plain": {"strategy": "AVG"}}})
    members = [Member("c1"), Member("c2", None, "GO", "4.5.2", answers=True)]
    name, shared = effective(Sub(members, brokers={"hz@a": 2}), plain)

    assert (name, shared.source) == ("AVG", "configured")
    assert shared.owners == {("hz@a", 0): {"c1"}, ("hz@a", 1): {"c2"}}


def test_an_unreported_strategy_is_not_guessed() -> None:
    [answer] = allocated(Sub([Member("c1", None, "GO", answers=True)]))

    assert [shared.is_effective for shared in answer.values()] == [False, False, False]


@pytest.mark.parametrize("group", ["hash", "room", "nearby", "listed"])
def test_a_strategy_that_a_language_lacks_is_unknown_whatever_the_settings(group: str) -> None:
    _, shared = effective(Sub([Member("c1", None, "CPP", answers=True)], group=group))

    assert (shared.owned, shared.reasons) == ({}, {"strategy_unknown"})


def test_an_unknown_release_matters_only_if_releases_differ() -> None:
    members = [Member("c1", "MACHINE_ROOM", version=None), Member("c2", "MACHINE_ROOM", version=None)]
    _, room = effective(Sub(members, group="room"))
    _, ring = effective(Sub([replace(member, strategy="CONSISTENT_HASH") for member in members], "hash"))

    assert (room.owned, room.reasons) == ({}, {"release_unknown"})
    assert ring.reasons == set()


def test_members_of_one_group_may_have_different_parameters() -> None:
    configured = ClusterSettings.model_validate(
        {
            "groups": {
                "room": {
                    "strategy": "MACHINE_ROOM",
                    "consumer_idcs": ["hz"],
                    "members": {"c2": {"consumer_idcs": ["sh"]}},
                },
                "hash": {
                    "strategy": "CONSISTENT_HASH",
                    "virtual_node_count": 3,
                    "members": {"c2": {"virtual_node_count": 50}},
                },
            }
        }
    )
    brokers = {"hz@a": 2, "sh@c": 2}
    members = [Member("c1", "MACHINE_ROOM"), Member("c2", "MACHINE_ROOM")]
    _, rooms = effective(Sub(members, "room", brokers=brokers), configured)
    of_ring = Sub(
        [replace(member, strategy="CONSISTENT_HASH") for member in members], "hash", brokers={"b": 40}
    )
    _, ring = effective(of_ring, configured)
    rings = {
        client_id: get_strategy("CONSISTENT_HASH", virtual_node_count=count)
        for client_id, count in (("c1", 3), ("c2", 50))
    }

    assert rooms.owners == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): "mixed_parameters",
        ("sh@c", 0): "mixed_parameters",
        ("sh@c", 1): {"c2"},
    }
    assert ring.owned == asked_client_by_client(of_ring, lambda member: rings[member.client_id])
    assert ring.reasons == {"mixed_parameters"}
    assert {len(owners) for owners in ring.owned.values()} == {1, 2}


def test_a_member_with_different_parameters_does_not_affect_other_groups() -> None:
    """The settings override one client id in one group."""
    configured = ClusterSettings.model_validate(
        {
            "groups": {
                group: {
                    "strategy": "CONSISTENT_HASH",
                    "virtual_node_count": 3,
                    **({"members": {"c2": {"virtual_node_count": 50}}} if group == "odd" else {}),
                }
                for group in ("odd", "hash")
            }
        }
    )
    members = [Member(client_id, "CONSISTENT_HASH") for client_id in ("c1", "c2")]
    plain = Sub(members, "hash", brokers={"b": 40})

    odd, beside = allocated(replace(plain, group="odd"), plain, configured=configured)
    assert beside == allocated(plain)[0]
    assert odd["CONSISTENT_HASH"].owners != beside["CONSISTENT_HASH"].owners


@pytest.mark.parametrize("strategy", ["CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"])
def test_missing_parameters_are_not_guessed(strategy: str) -> None:
    name, shared = effective(Sub([Member("c1", strategy)]))

    assert (name, shared.owned, shared.reasons) == (strategy, {}, {"settings_missing"})


def test_the_settings_of_another_strategy_are_no_parameters() -> None:
    [answer] = allocated(Sub([Member("c1", "MACHINE_ROOM")], group="hash"))

    assert answer["MACHINE_ROOM"].reasons == {"settings_missing"}


def test_a_configured_but_unreported_strategy_is_shown_with_the_effective_one() -> None:
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
def test_a_strategy_with_unknown_rules_is_reported_as_unknown_and_not_as_missing_settings(
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
def test_a_client_in_a_language_without_rules_does_not_fail_the_day(
    group: str, strategy: str, language: str
) -> None:
    _, shared = effective(Sub([Member("c1", strategy, language=language)], group=group))

    assert (shared.owned, shared.reasons) == ({}, {"strategy_unknown"})


def test_each_client_has_its_own_list_and_unlisted_queues_have_no_owner() -> None:
    members = [Member("c1", "CONFIG"), Member("c2", "CONFIG"), Member("c3", "CONFIG")]
    name, shared = effective(Sub(members, group="listed"))

    assert name == "CONFIG"
    # RocketMQ does not compare a list with the route: the client takes hz@a/9 too, which is in no route.
    assert shared.owned == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c1"},
        ("hz@a", 9): {"c1"},
        ("sh@c", 0): {"c2"},
    }
    assert shared.reasons == {"not_in_config_list"}


def test_duplicate_client_ids_are_not_the_cause_of_queues_missing_from_lists_or_rooms() -> None:
    listed = effective(Sub([Member("c1", "CONFIG"), Member("c1", "CONFIG")], group="listed"))[1]
    rooms = effective(Sub([Member("c1", "MACHINE_ROOM"), Member("c1", "MACHINE_ROOM")], group="room"))[1]

    assert listed.reasons == {"not_in_config_list"}
    assert rooms.owners[("sh@c", 0)] == "room_without_clients"
    assert "duplicate_client_id" in rooms.reasons


def test_a_subscription_that_the_strategy_refuses_does_not_affect_other_topics() -> None:
    """MACHINE_ROOM_NEARBY throws if a broker has no room. The group's other topics are still assigned."""
    members = [Member("x1", "MACHINE_ROOM_NEARBY"), Member("c1", "MACHINE_ROOM_NEARBY")]
    well = [Member("c1", "MACHINE_ROOM_NEARBY"), Member("c2", "MACHINE_ROOM_NEARBY")]
    before, refused, after = allocated(
        Sub(well, group="nearby"), Sub(members, group="nearby"), Sub(well, group="nearby")
    )

    assert refused["MACHINE_ROOM_NEARBY"].reasons == {"strategy_failed"}
    assert (
        before["MACHINE_ROOM_NEARBY"]
        == after["MACHINE_ROOM_NEARBY"]
        == allocated(Sub(well, group="nearby"))[0]["MACHINE_ROOM_NEARBY"]
    )
    assert after["MACHINE_ROOM_NEARBY"].reasons == set()


def test_rooms_share_their_own_brokers() -> None:
    members = [Member(client_id, "MACHINE_ROOM_NEARBY") for client_id in ("c1", "c2", "d1")]
    _, shared = effective(Sub(members, group="nearby", brokers={"hz@a": 2, "sh@c": 2}))

    assert shared.owners == {
        ("hz@a", 0): {"c1"},
        ("hz@a", 1): {"c2"},
        ("sh@c", 0): {"d1"},
        ("sh@c", 1): {"d1"},
    }


def test_broadcasting_duplicates_read_once_and_members_without_subscription_not_at_all() -> None:
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
