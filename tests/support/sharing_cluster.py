"""A small cluster in which every group is one case of sharing queues, with the expected results of the ledger.

Each group consumes one topic with the group's name. Brokers a and b pull by default and p pops by default. z assigns
nothing, u returned nothing, and r returned no settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.system_groups import PROXY_HEARTBEAT_GROUP
from tests.support.export_builder import DS, ExportBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CLUSTER = "sharing-test"
AB = {"a": 2, "b": 2}
NOT_ASKED = "a gRPC client has no such answer"
PROXY = "10.0.0.8:8080"
CONSUMER_OFFSET, HANDED_OUT, MOST = 40, 44, 50
NOON_MS = int(datetime(DS.year, DS.month, DS.day, 12, tzinfo=UTC).timestamp() * 1000)
LEASED_MS, REDELIVERIES = 60_000, 3


@dataclass(frozen=True, slots=True)
class Case:
    """The expected results for a group.

    Attributes:
        plant: Adds the sources' answers.
        states: State, and cause or reason, of every queue that is not in `queues`.
        queues: The same by queue, `broker/id`.
        retried: The same by queue of `%RETRY%<group>`, if it has a route.
        readers: Expected readers of every shared queue; None if no queue is shared, or they are unknown.
        readers_of: Expected readers of individual queues.
        mode: Request mode of the shared queues, and its source.
        findings: The kinds of the group's findings.
    """

    plant: Callable[[Planted], None]
    states: tuple[str, str | None]
    queues: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    retried: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    readers: list[str] | None = None
    readers_of: Mapping[str, list[str]] = field(default_factory=dict)
    mode: tuple[str | None, str | None] = (None, None)
    findings: frozenset[str] = frozenset()


class Planted:
    """The sources' answers about one group and the topic with the same name."""

    def __init__(self, export: ExportBuilder, name: str) -> None:
        self.export = export
        self.name = name
        self.retry_topic = f"%RETRY%{name}"

    def members(
        self, *client_ids: str, route: Mapping[str, int] | None = AB, brokers: Iterable[str] | None = None
    ) -> None:
        self.export.route(self.name, route)
        for broker in brokers or route or ():
            self.export.members(broker, self.name, client_ids, [self.name])

    def pops(self, client_id: str, *brokers: str, strategy: str | None = "AVG") -> None:
        self.export.client(
            self.name,
            client_id,
            [self.name],
            strategy,
            pops=[(self.name, broker, -1) for broker in brokers],
            asks_broker=True,
        )

    def pulls(self, client_id: str, *queues: str, strategy: str = "AVG", **more: bool) -> None:
        held = [(self.name, queue.partition("/")[0], int(queue.partition("/")[2])) for queue in queues]
        self.export.client(self.name, client_id, [self.name], strategy, held, **more)

    def grpc(self, *client_ids: str) -> None:
        for client_id in client_ids:
            self.export.failure("consumer_running_info", NOT_ASKED, group=self.name, client_id=client_id)


def _popped_by_all(case: Planted) -> None:
    case.members("c1", "c2", "c3")
    for client in ("c1", "c2", "c3"):
        case.pops(client, "a", "b")
    case.export.offsets("a", case.name, case.name, *[(MOST, CONSUMER_OFFSET, HANDED_OUT)] * 2)
    for separator in "_+":
        case.export.offsets("a", case.name, f"%RETRY%{case.name}{separator}{case.name}", (9, 7, 7))
    case.export.offsets("b", case.name, case.name)


def _retried_on_recreated_topic(case: Planted) -> None:
    """Add 50 pending messages on b, and an offset on a that was committed before the retry topic was recreated."""
    _grpc_alone(case)
    for broker, offsets in {"a": (0, 50, 50), "b": (50, 0, 0)}.items():
        case.export.offsets(broker, case.name, case.name, (MOST, CONSUMER_OFFSET, HANDED_OUT))
        case.export.offsets(broker, case.name, f"%RETRY%{case.name}_{case.name}", offsets)


def _retried_on_one_broker_that_answered(case: Planted) -> None:
    _grpc_alone(case)
    case.export.offsets("a", case.name, case.name, (MOST, CONSUMER_OFFSET, HANDED_OUT))
    case.export.offsets("a", case.name, f"%RETRY%{case.name}_{case.name}", (9, 7, 7))
    case.export.failure("consume_stats", NOT_ASKED, broker="b", group=case.name)


def _offsets_at_the_end_of_bigint(case: Planted) -> None:
    _grpc_alone(case)
    most = 2**63 - 1
    case.export.offsets("a", case.name, case.name, (most, CONSUMER_OFFSET, -1))
    case.export.offsets("b", case.name, case.name)
    case.export.offsets("a", case.name, f"%RETRY%{case.name}_{case.name}", (most, 0, 0), (most, 0, 0))


def _popped_in_part(case: Planted) -> None:
    case.members("c1", "c2", "c3", "c4")
    for client in ("c1", "c2", "c3", "c4"):
        case.pops(client, "a", "b")


def _more_members_than_queues(case: Planted) -> None:
    clients = [f"c{number}" for number in range(1, 7)]
    case.members(*clients)
    for client in clients:
        case.pops(client, "a", "b")


def _grpc_alone(case: Planted) -> None:
    case.members(*GRPC)
    case.grpc(*GRPC)


def _grpc_and_remoting(case: Planted) -> None:
    case.members("c1", GRPC[0])
    case.pulls("c1", "a/0", "a/1")
    case.grpc(GRPC[0])


def _one_pops_one_pulls(case: Planted) -> None:
    case.members("c1", "c2")
    case.pops("c1", "a", "b")
    case.pulls("c2", "b/0", "b/1")


def _by_default(case: Planted) -> None:
    case.members("c1", "c2", route={"p": 2})
    for client in ("c1", "c2"):
        case.pops(client, "p")


def _brokers_differ(case: Planted) -> None:
    case.members("c1", "c2")
    case.pulls("c1", "a/0", "a/1", asks_broker=True)
    case.pulls("c2", "b/0", "b/1", asks_broker=True)


def _ring_at_the_broker(case: Planted) -> None:
    case.members("c1", "c2")
    for client in ("c1", "c2"):
        case.pulls(client, strategy="CONSISTENT_HASH", asks_broker=True)


def _ring_beside_another_list(case: Planted) -> None:
    """Add two members of one list, of which the broker of the route lists one."""
    case.members("c1", route={"a": 2})
    case.export.members("b", case.name, ["c1", "c2"], [case.name])
    for client in ("c1", "c2"):
        case.pulls(client, strategy="CONSISTENT_HASH", asks_broker=True)


def _two_strategies_of_one_client(case: Planted) -> None:
    """Add a client id whose processes follow different strategies; the broker has only one of them."""
    case.members("c1")
    case.pulls("c1", strategy="CONSISTENT_HASH", asks_broker=True)
    held = [(case.name, broker, queue_id) for broker in AB for queue_id in (0, 1)]
    case.export.client(case.name, "c1", [case.name], "AVG", held, asks_broker=True, process="p1")


def _one_popper_without_strategy(case: Planted) -> None:
    case.members("c1", "c2")
    case.pops("c1", "a", "b")
    case.pops("c2", "a", "b", strategy=None)


def _one_popper_with_two_strategies(case: Planted) -> None:
    _one_popper_without_strategy(case)
    for process, strategy in {"p1": "AVG", "p2": "AVG_BY_CIRCLE"}.items():
        pops = [(case.name, broker, -1) for broker in AB]
        case.export.client(
            case.name, "c2", [case.name], strategy, pops=pops, asks_broker=True, process=process
        )


def _poppers_without_strategy(case: Planted) -> None:
    case.members("c1", "c2")
    for client in ("c1", "c2"):
        case.pops(client, "a", "b", strategy=None)


def _ring_beside_two_strategies(case: Planted) -> None:
    """Add a member with a strategy that the broker does not have, and one whose processes report that and another one."""
    case.members("c1", "c2")
    case.pulls("c1", "a/0", strategy="CONSISTENT_HASH", asks_broker=True)
    case.pulls("c2", strategy="CONSISTENT_HASH", asks_broker=True)
    held = [(case.name, "b", 0)]
    case.export.client(case.name, "c2", [case.name], "AVG", held, asks_broker=True, process="p1")


def _orderly(case: Planted) -> None:
    case.members("c1", "c2")
    case.pulls("c1", "a/0", "a/1", asks_broker=True, is_orderly=True)
    case.pulls("c2", "b/0", "b/1", asks_broker=True, is_orderly=True)


def _pulled_by_the_broker(case: Planted) -> None:
    case.members("c1", "c2")
    case.pulls("c1", "a/0", "a/1", asks_broker=True)
    case.pulls("c2", "b/0", "b/1", asks_broker=True)


def _server_off(case: Planted) -> None:
    case.members("c1", "c2", route={"z": 2})
    for client in ("c1", "c2"):
        case.pulls(client, "z/0", "z/1", asks_broker=True)


def _both_hold_queues_without_route(case: Planted) -> None:
    case.members("c1", "c2", route=None, brokers="z")
    for client in ("c1", "c2"):
        case.pulls(client, "z/0", "z/1", asks_broker=True)


def _mixed_without_route(case: Planted) -> None:
    case.members("c1", GRPC[0], route=None, brokers="ab")
    case.pulls("c1", "a/0", "a/1")
    case.grpc(GRPC[0])


def _settings_unread(case: Planted) -> None:
    case.members("c1", route={"u": 1})
    case.pulls("c1", "u/0", asks_broker=True)


def _settings_refused(case: Planted) -> None:
    """Add a broker that returned its entries but no settings: it may have serverLoadBalancerEnable=false."""
    topics = [case.name, case.retry_topic]
    for topic in topics:
        case.export.route(topic, {"r": 1})
    case.export.members("r", case.name, ["c1"], topics)
    owns = [(topic, "r", 0) for topic in topics]
    case.export.client(case.name, "c1", topics, "AVG", owns, asks_broker=True)


def _setting_omitted(case: Planted) -> None:
    case.members("c1", route={"p": 1})
    case.pulls("c1", "p/0", asks_broker=True)


def _behind_the_proxy(case: Planted) -> None:
    case.export.route(case.name, AB)
    for broker in AB:
        case.export.no_members(broker, case.name)
    case.export.proxy_members(PROXY, case.name, GRPC, [case.name])


def _beside_the_proxy(case: Planted) -> None:
    case.members("c1")
    case.pulls("c1", "a/0", "a/1", "b/0", "b/1")
    case.export.proxy_members(PROXY, case.name, GRPC[:1], [case.name])


def _retries(case: Planted, *listed: str, held: list[str]) -> None:
    """Add the remoting client c1 on the plain retry topic, the members that brokers list, and the retry queues that c1 owns."""
    topics = [case.name, case.retry_topic]
    for topic, count in zip(topics, (2, 1), strict=True):
        case.export.route(topic, dict.fromkeys("ab", count))
    for broker in "ab":
        case.export.members(broker, case.name, listed, topics)
    owns = [(case.name, "a", 0), (case.name, "a", 1), *((case.retry_topic, broker, 0) for broker in held)]
    case.export.client(case.name, "c1", topics, "AVG", owns)


def _retry_beside_grpc(case: Planted) -> None:
    _retries(case, "c1", GRPC[0], held=["a"])
    case.grpc(GRPC[0])


def _retry_beside_the_proxy(case: Planted) -> None:
    _retries(case, "c1", held=["a", "b"])
    case.export.proxy_members(PROXY, case.name, GRPC[:1], [case.name])


def _remoting_at_the_proxy_and_beside_it(case: Planted) -> None:
    case.members("c1")
    case.pulls("c1", "a/0", "a/1", "b/0", "b/1")
    case.export.proxy_members(PROXY, case.name, ["10.0.0.2@1#1"], [case.name])


def _silent_beside_the_proxy(case: Planted) -> None:
    case.members("c1")
    case.export.failure("consumer_running_info", "connect failed", group=case.name, client_id="c1")
    case.export.proxy_members(PROXY, case.name, ["10.0.0.2@1#1"], [case.name])


def _remoting_behind_the_proxy(case: Planted) -> None:
    case.export.route(case.name, AB)
    for broker in AB:
        case.export.no_members(broker, case.name)
    case.export.proxy_members(PROXY, case.name, ["10.0.0.2@1#1"], [case.name])


def _of_another_topic_at_the_proxy(case: Planted) -> None:
    """Add a member that reads the topic, on the list of a broker outside its route, and one that reads another topic at a proxy."""
    case.members("c1", brokers=["u"])
    case.pulls("c1", "a/0", "a/1", "b/0", "b/1")
    case.export.proxy_members(PROXY, case.name, GRPC, ["another-topic"])


def _fifo_blocked(case: Planted) -> None:
    _grpc_alone(case)
    case.export.offsets("a", case.name, case.name, (MOST, CONSUMER_OFFSET, CONSUMER_OFFSET))
    handed_out = _lease([CONSUMER_OFFSET, 1, 2], oc={str(CONSUMER_OFFSET): REDELIVERIES})
    case.export.order_locks("a", case.name, case.name, handed_out)


def _fifo_consumed(case: Planted) -> None:
    """Add four FIFO queues.

    - Leased for the first time.
    - Leased for the first time, with a longer lease.
    - The last message was handed out again.
    - The last message was handed out again, and committed since.
    """
    case.members(*GRPC, route={"b": 4})
    case.grpc(*GRPC)
    case.export.offsets(
        "b",
        case.name,
        case.name,
        *[(MOST, CONSUMER_OFFSET, CONSUMER_OFFSET)] * 3,
        (MOST, HANDED_OUT, HANDED_OUT),
    )
    head = str(CONSUMER_OFFSET)
    case.export.order_locks(
        "b",
        case.name,
        case.name,
        _lease([CONSUMER_OFFSET]),
        _lease([CONSUMER_OFFSET], ot={head: NOON_MS + 3_600_000}),
        _lease([CONSUMER_OFFSET, MOST - 1 - CONSUMER_OFFSET], oc={head: 1}),
        _lease([CONSUMER_OFFSET], -LEASED_MS, oc={head: 1}),
    )


def _lease(offsets: list[int], popped_ms: int = -LEASED_MS // 2, **more: dict[str, int]) -> dict[str, object]:
    """Return an `OrderInfo` popped this long after the capture; with the default its lease still lasts at the capture."""
    popped_at = NOON_MS + popped_ms
    return {"popTime": popped_at, "i": LEASED_MS, "o": offsets, "l": popped_at, "cm": 0, **more}


GRPC = ["host-a@7@0@1k2j3h", "host-b@8@0@1k2j4h"]
SHARED = ("shared", None)
MATCH = ("match", None)
CASES: dict[str, Case] = {
    "popped-by-all": Case(_popped_by_all, SHARED, readers=["c1", "c2", "c3"], mode=("POP", "entry")),
    "popped-in-part": Case(
        _popped_in_part,
        SHARED,
        # AVG assigns one of four queues to each of four clients; each is also read by the next client.
        readers_of={"a/0": ["c1", "c4"], "a/1": ["c1", "c2"], "b/0": ["c2", "c3"], "b/1": ["c3", "c4"]},
        mode=("POP", "entry"),
    ),
    "more-members-than-queues": Case(
        _more_members_than_queues,
        SHARED,
        readers_of={"a/0": ["c1", "c5"], "a/1": ["c2", "c6"], "b/0": ["c3"], "b/1": ["c4"]},
        mode=("POP", "entry"),
    ),
    "grpc-alone": Case(_grpc_alone, SHARED, readers=GRPC),
    "retried-on-recreated-topic": Case(_retried_on_recreated_topic, SHARED, readers=GRPC),
    "retried-on-one-broker-that-answered": Case(_retried_on_one_broker_that_answered, SHARED, readers=GRPC),
    "offsets-at-the-end-of-bigint": Case(_offsets_at_the_end_of_bigint, SHARED, readers=GRPC),
    "fifo-blocked": Case(_fifo_blocked, SHARED, readers=GRPC, findings=frozenset({"order_queue_blocked"})),
    "fifo-consumed": Case(_fifo_consumed, SHARED, readers=GRPC),
    "grpc-and-remoting": Case(
        _grpc_and_remoting, SHARED, readers=GRPC[:1], findings=frozenset({"mixed_request_modes"})
    ),
    "one-pops-one-pulls": Case(
        _one_pops_one_pulls,
        SHARED,
        dict.fromkeys(("b/0", "b/1"), ("multiple_owners", "mixed_request_modes")),
        readers=["c1"],
        mode=("POP", "entry"),
        findings=frozenset({"mixed_request_modes", "multiple_owners"}),
    ),
    "by-default": Case(_by_default, SHARED, readers=["c1", "c2"], mode=("POP", "broker_default")),
    "brokers-differ": Case(
        _brokers_differ, ("unknown", "request_modes_differ"), findings=frozenset({"request_modes_differ"})
    ),
    "ring-at-the-broker": Case(
        _ring_at_the_broker,
        ("unknown", "strategy_unknown_to_broker"),
        findings=frozenset({"strategy_unknown_to_broker"}),
    ),
    "ring-beside-another-list": Case(
        _ring_beside_another_list,
        ("unknown", "strategy_unknown_to_broker"),
        findings=frozenset({"strategy_unknown_to_broker"}),
    ),
    "ring-beside-two-strategies": Case(
        _ring_beside_two_strategies,
        ("unknown", "strategy_unknown_to_broker"),
        findings=frozenset({"strategy_unknown_to_broker"}),
    ),
    "two-strategies-of-one-client": Case(
        _two_strategies_of_one_client,
        ("unknown", "strategy_unknown"),
        findings=frozenset({"strategy_unknown"}),
    ),
    "two-strategies-of-one-popper": Case(
        _two_strategies_of_one_client,
        ("unknown", "strategy_unknown"),
        findings=frozenset({"strategy_unknown"}),
    ),
    "one-popper-without-strategy": Case(
        _one_popper_without_strategy, SHARED, readers=["c1", "c2"], mode=("POP", "entry")
    ),
    "one-popper-with-two-strategies": Case(
        _one_popper_with_two_strategies,
        SHARED,
        readers=["c1", "c2"],
        mode=("POP", "entry"),
        findings=frozenset({"duplicate_client_id"}),
    ),
    "poppers-without-strategy": Case(_poppers_without_strategy, SHARED, mode=("POP", "entry")),
    "orderly": Case(_orderly, MATCH),
    "pulled-by-the-broker": Case(_pulled_by_the_broker, MATCH),
    "server-off": Case(
        _server_off,
        ("multiple_owners", "server_load_balancer_off"),
        findings=frozenset({"server_load_balancer_off", "multiple_owners"}),
    ),
    "both-hold-queues-without-route": Case(
        _both_hold_queues_without_route,
        ("multiple_owners", "route_missing"),
        findings=frozenset({"multiple_owners"}),
    ),
    "mixed-without-route": Case(_mixed_without_route, ("unknown", "pop_mode")),
    "settings-unread": Case(_settings_unread, ("unknown", "request_mode_unknown")),
    "settings-refused": Case(
        _settings_refused,
        ("unknown", "request_mode_unknown"),
        retried={"r/0": ("unknown", "request_mode_unknown")},
    ),
    "setting-omitted": Case(_setting_omitted, MATCH),
    "behind-the-proxy": Case(_behind_the_proxy, SHARED, readers=GRPC),
    "beside-the-proxy": Case(
        _beside_the_proxy, SHARED, readers=GRPC[:1], findings=frozenset({"mixed_request_modes"})
    ),
    "retry-beside-grpc": Case(
        _retry_beside_grpc,
        SHARED,
        # The broker counts the gRPC client as a member, but that client pops from other retry topics.
        retried={"a/0": MATCH, "b/0": ("unowned", "mixed_request_modes")},
        readers=GRPC[:1],
        findings=frozenset({"mixed_request_modes", "unowned"}),
    ),
    "retry-beside-the-proxy": Case(
        _retry_beside_the_proxy,
        SHARED,
        retried={"a/0": MATCH, "b/0": MATCH},
        readers=GRPC[:1],
        findings=frozenset({"mixed_request_modes"}),
    ),
    "remoting-at-the-proxy-and-beside-it": Case(
        _remoting_at_the_proxy_and_beside_it,
        ("unknown", "mixed_request_modes"),
        findings=frozenset({"mixed_request_modes"}),
    ),
    "silent-beside-the-proxy": Case(
        _silent_beside_the_proxy,
        ("unknown", "client_unreachable"),
        findings=frozenset({"mixed_request_modes", "client_unreachable"}),
    ),
    "remoting-behind-the-proxy": Case(_remoting_behind_the_proxy, ("unknown", "client_unreachable")),
    "of-another-topic-at-the-proxy": Case(
        _of_another_topic_at_the_proxy,
        ("unknown", "members_unknown"),
        findings=frozenset({"members_unknown"}),
    ),
}
PROXIED = ("behind-the-proxy", "beside-the-proxy", "at-the-proxy-and-beside-it", "at-the-proxy")
MODES = {
    "popped-by-all": ("POP", -1),
    "popped-in-part": ("POP", 1),
    "more-members-than-queues": ("POP", 1),
    "one-pops-one-pulls": ("POP", 0),
    "orderly": ("POP", -1),
    "two-strategies-of-one-popper": ("POP", -1),
    "one-popper-without-strategy": ("POP", -1),
    "one-popper-with-two-strategies": ("POP", -1),
    "poppers-without-strategy": ("POP", -1),
}


def sharing_export() -> ExportBuilder:
    """Return the export of all cases."""
    export = ExportBuilder(CLUSTER)
    export.brokers("ns-1:9876", {broker: {"0": f"{broker}:10911"} for broker in "abpzur"})
    pulls = {"defaultMessageRequestMode": "PULL", "defaultPopShareQueueNum": -1}
    for broker in "ab":
        export.broker_settings(broker, serverLoadBalancerEnable="true", **pulls)
        own = {"brokers-differ": ("POP", -1)} if broker == "a" else {}
        export.request_modes(broker, MODES | own)
        export.members(
            broker, PROXY_HEARTBEAT_GROUP, ["10.0.0.8@1#1"], ["DefaultHeartBeatSyncerTopic"], "BROADCASTING"
        )
    export.broker_settings("p", defaultMessageRequestMode="POP", defaultPopShareQueueNum=-1)
    export.broker_settings("z", serverLoadBalancerEnable="false", **pulls)
    export.request_modes("p", {"setting-omitted": ("PULL", -1)})
    export.request_modes("z", {})
    export.request_modes("r", {"settings-refused": ("PULL", -1)})
    export.failure("broker_config", "CODE: 26  DESC: no permission", broker="r")
    for name, case in CASES.items():
        case.plant(Planted(export, name))
        if not name.endswith(PROXIED):
            export.no_members_at_proxy(PROXY, name)
    return export
