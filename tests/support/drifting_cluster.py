"""A small cluster in which every group is one case of drift, with the expected results of the ledger.

A case is a function that adds the sources' answers about a group and a topic with its name. Its expected results are a
table: `broker/queue` -> the state, and the likely cause or the reason why the state is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strategies import MessageQueue, get_strategy
from tests.support.export_builder import NAMESERVERS, ExportBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

CLUSTER = "drift-test"
NOT_REACHED = "connect to 10.0.0.1:10911 failed"
NOT_ONLINE = "CODE: 1  DESC: The Consumer <{group}> <{client}> not online"
AB = {"a": 2, "b": 2}
"""Two brokers with two queues each. AVG gives c1 those of a and c2 those of b; of three clients c2 gets b/0, c3 b/1."""

JAVA_4_7_1 = 355
Expected = dict[str, tuple[str, str | None]]

CASES: dict[str, tuple[Callable[[SourceAnswer], Expected | None], Expected]] = {}
SETTINGS = """
clusters:
  drift-test:
    groups:
      overlapping_lists:
        strategy: CONFIG
        clients:
          c1: [{topic: overlapping_lists, broker_name: a, queue_ids: [0, 1]}]
          c2: [{topic: overlapping_lists, broker_name: a, queue_ids: [0]}, {topic: overlapping_lists, broker_name: b, queue_ids: [0]}]
      java_and_go:
        strategy: CONSISTENT_HASH
        virtual_node_count: 10
      go_member_with_another_strategy:
        strategy: AVG_BY_CIRCLE
      owner_that_lost_a_queue_beside_another_language:
        strategy: AVG
      route_that_vanished_from_rooms:
        strategy: MACHINE_ROOM
        consumer_idcs: [hz]
      releases_with_other_rooms:
        strategy: MACHINE_ROOM
        consumer_idcs: [sh]
      releases_before_rooms_were_kept_apart:
        strategy: MACHINE_ROOM
        consumer_idcs: [sh]
      member_with_other_rooms:
        strategy: MACHINE_ROOM
        consumer_idcs: [hz]
      member_with_other_virtual_nodes:
        strategy: CONSISTENT_HASH
        virtual_node_count: 10
      member_that_lost_its_queues:
        strategy: MACHINE_ROOM
        consumer_idcs: [hz]
      members_set_to_other_rooms:
        strategy: MACHINE_ROOM
        consumer_idcs: [hz]
        members:
          c2: {consumer_idcs: [sh]}
      lists_with_a_queue_that_is_gone:
        strategy: CONFIG
        clients:
          c1: [{topic: lists_with_a_queue_that_is_gone, broker_name: a, queue_ids: [0, 1, 8]}]
          c2: [{topic: lists_with_a_queue_that_is_gone, broker_name: a, queue_ids: [8]}, {topic: lists_with_a_queue_that_is_gone, broker_name: b, queue_ids: [0, 1, 9]}]
      configured_and_never_asked:
        strategy: AVG
"""

MATCH = ("match", None)


def unowned(cause: str | None) -> tuple[str, str | None]:
    return "unowned", cause


def twice(cause: str | None) -> tuple[str, str | None]:
    return "multiple_owners", cause


def foreign(cause: str | None) -> tuple[str, str | None]:
    return "unexpected_owner", cause


SHARED = ("shared", None)


def unknown(reason: str) -> tuple[str, str | None]:
    return "unknown", reason


class SourceAnswer:
    """The sources' answers about one group and the topic with the same name."""

    def __init__(self, export: ExportBuilder, name: str) -> None:
        self.export = export
        self.name = name

    def route(self, queues: Mapping[str, int] | None = None, *nameservers: str, perm: int = 6) -> None:
        self.export.route(self.name, AB if queues is None else queues, *nameservers, perm=perm)

    def lists(
        self,
        *client_ids: str,
        brokers: Iterable[str] = "ab",
        model: str = "CLUSTERING",
        topics: Iterable[str] | None = None,
        **others: tuple[str, int],
    ) -> None:
        subscribed = [self.name] if topics is None else list(topics)
        for broker in brokers:
            self.export.members(broker, self.name, client_ids, subscribed, model, others=others)

    def client(
        self,
        client_id: str,
        *owns: str,
        strategy: str | None = "AVG",
        topics: Iterable[str] | None = None,
        **more: object,
    ) -> None:
        """Add a client that answered, with its queues as `broker/queue`."""
        ownership_of = {
            key: self.queues(value) if key in {"gives_up", "pops"} else value for key, value in more.items()
        }
        self.export.client(
            self.name,
            client_id,
            [self.name] if topics is None else topics,
            strategy,
            self.queues(owns),
            **ownership_of,  # type: ignore[arg-type]  # the builder accepts these types
        )

    def progress(self) -> None:
        """Add committed offsets of the group in every queue."""
        for broker, count in AB.items():
            self.export.progress(broker, self.name, *((self.name, broker, queue) for queue in range(count)))

    def queues(self, names: object) -> list[tuple[str, str, int]]:
        assert isinstance(names, tuple)
        return [(self.name, name.rpartition("/")[0], int(name.rpartition("/")[2])) for name in names]

    def silent(self, client_id: str, message: str = NOT_REACHED) -> None:
        """Add a client that did not answer a query."""
        self.export.failure("consumer_running_info", message, group=self.name, client_id=client_id)

    def gone(self, client_id: str) -> None:
        """Add a client that a broker reports as not connected."""
        self.silent(client_id, NOT_ONLINE.format(group=self.name, client=client_id))


def case(
    expected: Expected | None = None,
) -> Callable[[Callable[[SourceAnswer], Expected | None]], Callable[[SourceAnswer], Expected | None]]:
    """Register a case; without expected results here, the function returns them."""

    def register(
        plant: Callable[[SourceAnswer], Expected | None],
    ) -> Callable[[SourceAnswer], Expected | None]:
        CASES[plant.__name__] = (plant, expected or {})
        return plant

    return register


def drifting_export() -> tuple[ExportBuilder, dict[str, Expected]]:
    """Return the export of all cases, and the expected results of each."""
    export = ExportBuilder(CLUSTER)
    expected = {}
    for broker in "ab":
        export.broker_settings(broker, serverLoadBalancerEnable="true")
    for name, (plant, of_case) in CASES.items():
        expected[name] = plant(SourceAnswer(export, name)) or of_case
    return export, expected


# No problem


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def well(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0", "b/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def more_clients_than_queues(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", "c3", "c4", "c5", "c6")
    for client, owns in {
        "c1": ("a/0",),
        "c2": ("a/1",),
        "c3": ("b/0",),
        "c4": ("b/1",),
        "c5": (),
        "c6": (),
    }.items():
        sources.client(client, *owns)


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def releases_with_one_rule(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", c1=("JAVA", JAVA_4_7_1))
    sources.client("c1", "a/0", "a/1", version="V4_7_1")
    sources.client("c2", "b/0", "b/1")


@case({"a/0": SHARED, "a/1": SHARED, "b/0": SHARED, "b/1": SHARED})
def shared_by_the_broker(sources: SourceAnswer) -> None:
    sources.route()
    for broker in "ab":
        sources.export.popped(broker, sources.name, sources.name)
    sources.lists("c1", "c2")
    sources.client("c1", pops=("a/-1", "b/-1"))
    sources.client("c2", pops=("a/-1", "b/0"))


@case({"a/0": twice("mixed_request_modes"), "a/1": SHARED, "b/0": SHARED, "b/1": SHARED})
def one_pops_and_one_pulls(sources: SourceAnswer) -> None:
    sources.route()
    for broker in "ab":
        sources.export.popped(broker, sources.name, sources.name)
    sources.lists("c1", "c2")
    sources.client("c1", pops=("a/-1", "b/-1"))
    sources.client("c2", "a/0")


@case({"a/0": SHARED, "a/1": SHARED, "b/0": unknown("pop_mode"), "b/1": unknown("pop_mode")})
def popped_although_no_broker_said_so(sources: SourceAnswer) -> None:
    """Add clients that report that they pop; the broker's default mode is not in the export."""
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", pops=("a/-1",))
    sources.client("c2", pops=("a/-1",))


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def broadcasting_duplicate_client_ids(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c1", "c2", model="BROADCASTING")
    for client in ("c1", "c2"):
        sources.client(client, "a/0", "a/1", "b/0", "b/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def broadcasting_member_that_is_gone(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", model="BROADCASTING")
    sources.client("c1", "a/0", "a/1", "b/0", "b/1")
    sources.gone("c2")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def suspended_consumer(sources: SourceAnswer) -> None:
    """Add a client c2 that pulls but does not consume: five messages in each of its queues are an hour old."""
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0", "b/1", consumed_s_ago=3600)
    for broker in "ab":
        sources.export.topic_offsets(
            broker, *sources.queues((f"{broker}/0", f"{broker}/1")), stored_s_ago=3600
        )


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def quiet_topic_that_just_got_messages(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", consumed_s_ago=3600)
    sources.client("c2", "b/0", "b/1", consumed_s_ago=3600)
    for broker in "ab":
        sources.export.topic_offsets(broker, *sources.queues((f"{broker}/0", f"{broker}/1")), stored_s_ago=5)


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def quiet_topic_without_messages(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", consumed_s_ago=3600)
    sources.client("c2", "b/0", "b/1", consumed_s_ago=3600)
    for broker in "ab":
        sources.export.topic_offsets(
            broker, *sources.queues((f"{broker}/0", f"{broker}/1")), stored_s_ago=3600, max_offset=0
        )


# Queues that strategies or lists assign to no client or to two


@case(
    {
        "a/0": MATCH,
        "a/1": MATCH,
        "b/0": unowned("subscriptions_differ"),
        "b/1": unowned("subscriptions_differ"),
    }
)
def member_that_does_not_subscribe(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", topics=["another"])


@case(
    {"a/0": MATCH, "a/1": unowned(None), "b/0": MATCH, "b/1": unowned("subscriptions_differ")},
)
def owner_that_lost_a_queue_beside_a_member_that_does_not_subscribe(sources: SourceAnswer) -> None:
    """Add a member that counts in the division without subscribing; this takes no other member's share away."""
    sources.route()
    sources.lists("c1", "c2", "c3")
    sources.client("c1", "a/0")
    sources.client("c2", "b/0")
    sources.client("c3", topics=["another"])


@case({"a/0": MATCH, "a/1": unowned(None), "b/0": MATCH, "b/1": MATCH})
def owner_that_lost_a_queue_beside_another_language(sources: SourceAnswer) -> None:
    """Add Java and Go clients, which have one AVG."""
    sources.route()
    sources.lists("c1", "c2", c2=("GO", 479))
    sources.client("c1", "a/0")
    sources.client("c2", "b/0", "b/1", strategy=None)


@case(
    {"a/0": MATCH, "a/1": twice("mixed_strategies"), "a/2": unowned("mixed_strategies"), "a/3": unowned(None)}
)
def owner_that_lost_a_queue_beside_another_strategy(sources: SourceAnswer) -> None:
    sources.route({"a": 4})
    sources.lists("c1", "c2", brokers="a")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "a/1", strategy="AVG_BY_CIRCLE")


@case()
def java_and_go(sources: SourceAnswer) -> Expected:
    """Add clients whose hash rings differ; the expected result is computed with one strategy call for each client."""
    return _each_by_its_own(
        sources,
        {"a": 8, "b": 8},
        "CONSISTENT_HASH",
        {"c1": ("JAVA", "5.3.3"), "c2": ("GO", "5.3.3")},
        "mixed_clients",
        virtual_node_count=10,
    )


@case({"a/0": MATCH, "a/1": twice("mixed_strategies"), "a/2": unowned("mixed_strategies"), "a/3": MATCH})
def go_member_with_another_strategy(sources: SourceAnswer) -> None:
    """Add a Java client that reports AVG, and a Go client that reports no strategy; the settings have AVG_BY_CIRCLE."""
    sources.route({"a": 4})
    sources.lists("c1", "c2", brokers="a", c2=("GO", 479))
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "a/1", "a/3", strategy=None)


@case()
def releases_with_other_rooms(sources: SourceAnswer) -> Expected:
    return _each_by_its_own(
        sources,
        {"hz@a": 2, "sh@b": 8},
        "MACHINE_ROOM",
        {"c1": ("JAVA", "5.3.3"), "c2": ("JAVA", "4.7.1")},
        "mixed_clients",
        consumer_idcs={"sh"},
    ) | {f"hz@a/{queue_id}": unowned("room_without_clients") for queue_id in (0, 1)}


@case()
def releases_before_rooms_were_kept_apart(sources: SourceAnswer) -> Expected:
    return _each_by_its_own(
        sources,
        {"hz@a": 2, "sh@b": 9},
        "MACHINE_ROOM",
        {"c1": ("JAVA", "4.7.1"), "c2": ("JAVA", "4.7.1")},
        "old_machine_room",
        consumer_idcs={"sh"},
    )


def _each_by_its_own(
    sources: SourceAnswer,
    brokers: Mapping[str, int],
    strategy: str,
    clients: Mapping[str, tuple[str, str]],
    cause: str,
    **parameters: object,
) -> Expected:
    """Give every client the queues that its language and release assign; the cause explains queues not owned exactly once."""
    queues = [
        MessageQueue(sources.name, broker, queue_id)
        for broker, count in brokers.items()
        for queue_id in range(count)
    ]
    sources.route(brokers)
    ordinals = {"4.7.1": JAVA_4_7_1, "5.3.3": 479}
    listed = {client: (language, ordinals[version]) for client, (language, version) in clients.items()}
    sources.lists(*clients, brokers=brokers, **listed)
    owner_counts = dict.fromkeys(queues, 0)
    for client, (language, version) in clients.items():
        rule = get_strategy(strategy, client_language=language, client_version=version, **parameters)
        own = rule.allocate(sources.name, client, queues, list(clients)) or []
        for queue in own:
            owner_counts[queue] += 1
        names = [f"{queue.broker_name}/{queue.queue_id}" for queue in own]
        sources.client(client, *names, strategy=strategy, version=f"V{version.replace('.', '_')}")
    by_count = {0: unowned(cause), 1: MATCH, 2: twice(cause)}
    return {f"{queue.broker_name}/{queue.queue_id}": by_count[count] for queue, count in owner_counts.items()}


@case({"a/0": twice("config_list_overlap"), "a/1": MATCH, "b/0": MATCH, "b/1": unowned("not_in_config_list")})
def overlapping_lists(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", strategy="CONFIG")
    sources.client("c2", "a/0", "b/0", strategy="CONFIG")


@case(
    {
        **dict.fromkeys(("a/0", "a/1", "b/0", "b/1", "b/9"), MATCH),
        "a/8": twice("queue_not_in_route"),
    }
)
def lists_with_a_queue_that_is_gone(sources: SourceAnswer) -> None:
    """Add clients that consume the queues of their lists regardless of the route; two lists contain a/8."""
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", "a/8", strategy="CONFIG")
    sources.client("c2", "a/8", "b/0", "b/1", "b/9", strategy="CONFIG")


@case(
    {
        "a/0": twice("config_list_overlap"),
        "a/1": unknown("settings_missing"),
        "b/0": unknown("settings_missing"),
        "b/1": unowned("not_in_config_list"),
    }
)
def lists_from_no_broker(sources: SourceAnswer) -> None:
    """Add overlapping lists that are not in the settings: two owners or none are detected without knowing the lists."""
    overlapping_lists(sources)


@case(
    {
        "a/0": twice(None),
        "a/1": unknown("strategy_unknown"),
        "b/0": unowned(None),
        "b/1": unknown("strategy_unknown"),
    }
)
def strategy_of_their_own(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", strategy="com.example.Own")
    sources.client("c2", "a/0", "b/1", strategy="com.example.Own")


# Members with their own parameters


@case()
def member_with_other_rooms(sources: SourceAnswer) -> Expected:
    """Add a client c3 for the other room: its queues of the first have no owner, and its queues of the second should have none."""
    return _one_with_other_parameters(
        sources, {"hz@a": 6, "sh@b": 6}, "MACHINE_ROOM", {"consumer_idcs": {"hz"}}, {"consumer_idcs": {"sh"}}
    )


@case(
    {
        "hz@a/0": MATCH,
        "hz@a/1": unowned("mixed_parameters"),
        "sh@b/0": unowned("mixed_parameters"),
        "sh@b/1": MATCH,
    }
)
def members_set_to_other_rooms(sources: SourceAnswer) -> None:
    """Add a client c2 for the other room, as in the settings."""
    sources.route({"hz@a": 2, "sh@b": 2})
    sources.lists("c1", "c2", brokers=("hz@a", "sh@b"))
    sources.client("c1", "hz@a/0", strategy="MACHINE_ROOM")
    sources.client("c2", "sh@b/1", strategy="MACHINE_ROOM")


@case()
def member_with_other_virtual_nodes(sources: SourceAnswer) -> Expected:
    return _one_with_other_parameters(
        sources,
        {"a": 16, "b": 16},
        "CONSISTENT_HASH",
        {"virtual_node_count": 10},
        {"virtual_node_count": 100},
    )


def _one_with_other_parameters(
    sources: SourceAnswer,
    brokers: Mapping[str, int],
    strategy: str,
    parameters: Mapping[str, object],
    other: Mapping[str, object],
) -> Expected:
    """Add c1 and c2 with the group's parameters, and c3 with others, which cause every mismatch."""
    queues = [
        MessageQueue(sources.name, broker, queue_id)
        for broker, count in brokers.items()
        for queue_id in range(count)
    ]
    clients = ["c1", "c2", "c3"]
    sources.route(brokers)
    sources.lists(*clients, brokers=brokers)
    chosen: dict[MessageQueue, str] = {}
    holders: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
    for client in clients:
        rule = get_strategy(strategy, **parameters)
        chosen |= dict.fromkeys(rule.allocate(sources.name, client, queues, clients) or [], client)
        own = get_strategy(strategy, **(other if client == "c3" else parameters))
        held = own.allocate(sources.name, client, queues, clients) or []
        for queue in held:
            holders[queue].append(client)
        names = [f"{queue.broker_name}/{queue.queue_id}" for queue in held]
        sources.client(client, *names, strategy=strategy)

    def ownership_of(queue: MessageQueue) -> tuple[str, str | None]:
        match holders[queue]:
            case []:
                return unowned("parameters_differ" if queue in chosen else "room_without_clients")
            case [holder]:
                return MATCH if chosen.get(queue) == holder else foreign("parameters_differ")
            case _:
                return twice("parameters_differ")

    return {f"{queue.broker_name}/{queue.queue_id}": ownership_of(queue) for queue in queues}


@case(
    {f"hz@a/{queue}": MATCH for queue in (0, 1)}
    | {f"hz@a/{queue}": unowned(None) for queue in (2, 3)}
    | {f"sh@b/{queue}": unowned("room_without_clients") for queue in range(4)}
)
def member_that_lost_its_queues(sources: SourceAnswer) -> None:
    """Add a client c2 without queues, which can be detected without the parameters."""
    sources.route({"hz@a": 4, "sh@b": 4})
    sources.lists("c1", "c2", brokers=("hz@a", "sh@b"))
    sources.client("c1", "hz@a/0", "hz@a/1", strategy="MACHINE_ROOM")
    sources.client("c2", strategy="MACHINE_ROOM")


# Duplicate client ids and dead connections

TWINS: Expected = {
    "a/0": twice("duplicate_client_id"),
    "a/1": twice("duplicate_client_id"),
    "b/0": unowned("duplicate_client_id"),
    "b/1": MATCH,
}


@case(
    {
        "a/0": unknown("process_count_unknown"),
        "a/1": unknown("process_count_unknown"),
        "b/0": unowned("duplicate_client_id"),
        "b/1": MATCH,
    }
)
def id_listed_twice_by_every_broker(sources: SourceAnswer) -> None:
    """Add an id with two processes, or one process with dead connections: one process answers through a broker."""
    sources.route()
    sources.lists("c1", "c1", "c2")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/1")


@case(TWINS)
def duplicate_client_ids_asked_directly(sources: SourceAnswer) -> None:
    id_listed_twice_by_every_broker(sources)
    for process in ("p1", "p2"):
        sources.client("c1", "a/0", "a/1", process=process)
    sources.client("c2", "b/1", process="p3")


@case(TWINS)
def stalled_duplicate_client_ids(sources: SourceAnswer) -> None:
    """Add two processes with one id that pull but do not consume: five messages in each of their queues are an hour old."""
    id_listed_twice_by_every_broker(sources)
    for process in ("p1", "p2"):
        sources.client("c1", "a/0", "a/1", process=process, consumed_s_ago=3600)
    sources.export.topic_offsets("a", *sources.queues(("a/0", "a/1")), stored_s_ago=3600)


@case(TWINS | {"a/1": MATCH})
def duplicate_client_id_that_lost_a_queue(sources: SourceAnswer) -> None:
    """Add two processes with one id: the answer of one through a broker does not hide the answer of the other."""
    id_listed_twice_by_every_broker(sources)
    sources.client("c1", "a/0", "a/1", process="p1")
    sources.client("c1", "a/0", process="p2")


@case(
    {
        "a/0": twice("duplicate_client_id"),
        "a/1": unknown("member_strategy_unknown"),
        "b/0": twice("mixed_strategies"),
        "b/1": MATCH,
    }
)
def processes_of_one_id_with_two_strategies(sources: SourceAnswer) -> None:
    """Add two processes with one id: a broker lists it once, and one of them follows another strategy."""
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "b/0", strategy="AVG_BY_CIRCLE")
    sources.client("c1", "a/0", "b/0", strategy="AVG_BY_CIRCLE", process="p1")
    sources.client("c1", "a/0", "a/1", process="p2")
    sources.client("c2", "b/0", "b/1")


@case({queue: unknown("strategy_unknown") for queue in ("a/0", "a/1", "b/0", "b/1")})
def answers_of_one_client_with_two_strategies(sources: SourceAnswer) -> None:
    """Add a client whose answer through a broker has another strategy than that of its process."""
    sources.route()
    sources.lists("c1")
    sources.client("c1", "a/0", "a/1", "b/0", "b/1", strategy="AVG_BY_CIRCLE")
    sources.client("c1", "a/0", "a/1", "b/0", "b/1", process="p2")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": unowned("member_lists_differ"), "b/1": MATCH})
def id_listed_twice_with_one_process(sources: SourceAnswer) -> None:
    id_listed_twice_by_every_broker(sources)
    sources.client("c1", "a/0", "a/1", process="p1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": unowned("member_lists_differ"), "b/1": MATCH})
def dead_connection_on_one_broker(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c1", "c2", brokers="a")
    sources.lists("c1", "c2", brokers="b")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def ignored_dead_connection(sources: SourceAnswer) -> None:
    """Add two lists with one vote each; the longer one has one more connection of an id than the other broker has."""
    sources.route()
    sources.lists("c1", "c1", "c2", brokers="a")
    sources.lists("c1", "c2", brokers="b")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0", "b/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def list_without_a_member_that_answers(sources: SourceAnswer) -> None:
    """Add two lists with one vote each; c3, which is missing from the shorter one, answers and allocates by the longer one."""
    sources.route()
    sources.lists("c1", "c2", brokers="a")
    sources.lists("c1", "c2", "c3", brokers="b")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0")
    sources.client("c3", "b/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": unowned("member_lists_differ")})
def ghost_on_one_broker(sources: SourceAnswer) -> None:
    """Add a dead client c3 that one broker still lists: c1 allocates among two clients, c2 among three."""
    sources.route()
    sources.lists("c1", "c2", brokers="a")
    sources.lists("c1", "c2", "c3", brokers="b")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0")
    sources.gone("c3")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": unowned("member_lists_differ")})
def ghost_on_every_broker(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", "c3")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0")
    sources.gone("c3")


# Routes


@case({"a/0": MATCH, "a/1": unowned("route_views_differ"), "b/0": MATCH, "b/1": MATCH})
def name_servers_with_other_queues(sources: SourceAnswer) -> None:
    """Add a client c1 that polls the name server without broker b."""
    sources.route(AB, "ns-1:9876")
    sources.route({"a": 2}, "ns-2:9876")
    sources.lists("c1", "c2")
    sources.client("c1", "a/0")
    sources.client("c2", "b/0", "b/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH, "b/2": foreign("route_views_differ")})
def queue_of_the_other_name_server(sources: SourceAnswer) -> None:
    sources.route({"a": 2, "b": 3}, "ns-1:9876")
    for nameserver in ("ns-2:9876", "ns-3:9876"):
        sources.route(AB, nameserver)
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0", "b/1", "b/2")


@case({"a/0": foreign("route_missing"), "b/1": foreign("route_missing")})
def route_that_vanished(sources: SourceAnswer) -> None:
    sources.export.route(sources.name, None)
    sources.lists("c1", "c2")
    sources.client("c1", "a/0")
    sources.client("c2", "b/1")


@case({queue: foreign("route_missing") for queue in ("hz@a/0", "hz@a/1", "hz@a/2")})
def route_that_vanished_from_rooms(sources: SourceAnswer) -> None:
    """Add two members of which one has another queue in the answer of its process, although nothing is divided."""
    sources.export.route(sources.name, None)
    sources.lists("c1", "c2")
    sources.client("c1", "hz@a/0", strategy="MACHINE_ROOM")
    sources.client("c2", "hz@a/1", strategy="MACHINE_ROOM")
    sources.client("c2", "hz@a/1", "hz@a/2", strategy="MACHINE_ROOM", process="p1")


@case({"a/0": foreign("route_missing")})
def topic_closed_for_reading(sources: SourceAnswer) -> None:
    sources.route(perm=2)
    sources.lists("c1", "c2")
    sources.client("c1", "a/0")
    sources.client("c2")


# An ongoing change


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": foreign("not_yet_rebalanced")})
def client_that_has_just_started(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", "c3")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0", "b/1")
    sources.client("c3", age_s=5)


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": foreign("not_yet_rebalanced")})
def client_that_has_just_started_beside_one_whose_clock_is_ahead(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", "c3")
    sources.client("c1", "a/0", "a/1", age_s=-3600)
    sources.client("c2", "b/0", "b/1")
    sources.client("c3", age_s=5)


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": foreign(None)})
def client_that_started_long_ago_and_owns_nothing(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", "c3")
    sources.client("c1", "a/0", "a/1")
    sources.client("c2", "b/0", "b/1")
    sources.client("c3")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": unowned("not_yet_rebalanced")})
def queue_that_is_being_given_up(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", gives_up=("b/1",))
    sources.client("c2", "b/0")


@case({"a/0": twice(None), "a/1": MATCH, "b/0": MATCH, "b/1": MATCH})
def stranger_that_no_broker_lists(sources: SourceAnswer) -> None:
    well(sources)
    sources.client("c9", "a/0")


# Undeterminable states

PULLS = {"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY"}
PULLS_LITE = PULLS | {"defaultLitePullConsumerImpl": "org.apache.rocketmq.DefaultLitePullConsumerImpl@1"}
NOTHING_REPORTED = unknown("pull_consumer_reports_no_queues")


@case(dict.fromkeys(("a/0", "a/1", "b/0", "b/1"), NOTHING_REPORTED))
def pull_consumers(sources: SourceAnswer) -> None:
    """Add `DefaultMQPullConsumer` clients: the application chooses the queues to pull, and no answer reports them."""
    sources.route()
    sources.lists("c1", "c2", topics=[])
    sources.progress()
    for client in ("c1", "c2"):
        sources.client(client, topics=[], properties=PULLS)


@case(dict.fromkeys(("a/0", "a/1", "b/0", "b/1"), NOTHING_REPORTED))
def pull_consumers_that_subscribe(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    for client in ("c1", "c2"):
        sources.client(client, properties=PULLS)


@case(dict.fromkeys(("a/0", "a/1", "b/0", "b/1"), unknown("assigned_by_hand")))
def queues_assigned_by_hand(sources: SourceAnswer) -> None:
    """`DefaultLitePullConsumer.assign`: the application deliberately omits two queues."""
    sources.route()
    sources.lists("c1@STREAM", topics=[])
    sources.client("c1@STREAM", "a/0", "b/1", topics=[], properties=PULLS_LITE)


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": unowned(None)})
def lite_pull_that_lost_a_queue(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1@STREAM", "c2@STREAM")
    sources.client("c1@STREAM", "a/0", "a/1", properties=PULLS_LITE)
    sources.client("c2@STREAM", "b/0", properties=PULLS_LITE)


NOT_REPORTED = unknown("strategy_not_reported")


@case({"a/0": NOT_REPORTED, "a/1": NOT_REPORTED, "b/0": NOT_REPORTED, "b/1": unowned(None)})
def members_that_report_no_strategy(sources: SourceAnswer) -> None:
    """Add Go clients, which report their queues but no strategy."""
    sources.route()
    sources.lists("c1", "c2", c1=("GO", JAVA_4_7_1), c2=("GO", JAVA_4_7_1))
    sources.client("c1", "a/0", "a/1", strategy=None)
    sources.client("c2", "b/0", strategy=None)


@case(
    {
        "a/0": MATCH,
        "a/1": unowned(None),
        "b/0": unknown("client_unreachable"),
        "b/1": unknown("client_unreachable"),
    }
)
def client_that_does_not_answer(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0")
    sources.silent("c2")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": foreign(None), "b/1": unknown("client_unreachable")})
def queue_of_a_silent_client_with_another_one(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")
    sources.client("c1", "a/0", "a/1", "b/0")
    sources.silent("c2")


@case({name: unknown("client_unreachable") for name in ("a/0", "a/1", "b/0", "b/1")})
def group_of_which_nobody_could_be_asked(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2")


@case({name: unknown("client_unreachable") for name in ("a/0", "a/1", "b/0", "b/1")})
def configured_and_never_asked(sources: SourceAnswer) -> None:
    group_of_which_nobody_could_be_asked(sources)


@case({name: unknown("members_unknown") for name in ("a/0", "a/1", "b/0", "b/1")})
def members_unknown_to_all_brokers(sources: SourceAnswer) -> None:
    sources.route()
    for broker in "ab":
        sources.export.failure("consumer_connection", NOT_REACHED, broker=broker, group=sources.name)
    sources.client("c1")


def of_retry_topic(sources: SourceAnswer) -> None:
    """Add the route of the group's retry topic, which is the only topic of the group in the export."""
    sources.export.route(f"%RETRY%{sources.name}", {"a": 1, "b": 1})


@case({"a/0": unknown("members_unknown"), "b/0": unknown("members_unknown")})
def group_that_only_failed_questions_name(sources: SourceAnswer) -> None:
    """Add failures as for an account without permission for the group, or brokers that died during the capture."""
    of_retry_topic(sources)
    for broker in "ab":
        sources.export.failure("consumer_connection", NOT_REACHED, broker=broker, group=sources.name)
        sources.export.failure("consume_stats", NOT_REACHED, broker=broker, group=sources.name)


@case({"a/0": unknown("members_unknown"), "b/0": unknown("members_unknown")})
def group_that_only_its_retry_topic_names(sources: SourceAnswer) -> None:
    of_retry_topic(sources)


@case({})
def group_that_was_deleted(sources: SourceAnswer) -> None:
    """Add the retry topic of the group on a broker whose list of groups does not contain it."""
    sources.export.route(f"%RETRY%{sources.name}", {"broker-that-was-read": 1})
    sources.export.subscription_groups("broker-that-was-read", "well")


@case({})
def group_that_exists_and_is_not_used(sources: SourceAnswer) -> None:
    of_retry_topic(sources)
    for broker in "ab":
        sources.export.no_members(broker, sources.name)


@case({"a/0": unknown("route_unknown")})
def route_unknown_to_all_name_servers(sources: SourceAnswer) -> None:
    for nameserver in ("ns-1:9876", "ns-2:9876"):
        sources.export.failure("nameserver_route", NOT_REACHED, nameserver=nameserver, topic=sources.name)
    sources.lists("c1")
    sources.client("c1", "a/0")


@case({name: unowned("group_offline") for name in ("a/0", "a/1", "b/0", "b/1")})
def group_that_is_offline(sources: SourceAnswer) -> None:
    sources.route()
    for broker in "ab":
        sources.export.no_members(broker, sources.name)
    sources.export.progress("a", sources.name, (sources.name, "a", 0))


@case({"a/0": unowned(None), "a/1": unowned(None), "b/0": MATCH, "b/1": MATCH})
def broadcasting_member_that_lost_a_broker(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", model="BROADCASTING")
    sources.client("c1", "a/0", "a/1", "b/0", "b/1")
    sources.client("c2", "b/0", "b/1")


@case({name: unknown("client_unreachable") for name in ("a/0", "a/1", "b/0", "b/1")})
def broadcasting_member_that_does_not_answer(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", model="BROADCASTING")
    sources.client("c1", "a/0", "a/1", "b/0", "b/1")
    sources.silent("c2")


@case(dict.fromkeys(("a/0", "a/1"), unknown("route_unknown")))
def broadcasting_group_with_unknown_route(sources: SourceAnswer) -> None:
    for nameserver in NAMESERVERS:
        sources.export.failure("nameserver_route", NOT_REACHED, nameserver=nameserver, topic=sources.name)
    sources.lists("c1", "c2", model="BROADCASTING")
    for client in ("c1", "c2"):
        sources.client(client, "a/0", "a/1")


@case({"a/0": MATCH, "a/1": MATCH, "b/0": MATCH, "b/1": MATCH, "b/5": foreign(None)})
def broadcasting_group_whose_route_shrank(sources: SourceAnswer) -> None:
    sources.route()
    sources.lists("c1", "c2", model="BROADCASTING")
    for client in ("c1", "c2"):
        sources.client(client, "a/0", "a/1", "b/0", "b/1", "b/5")


@case(dict.fromkeys(("a/0", "a/1"), unknown("members_unknown")))
def broadcasting_group_that_only_another_broker_lists(sources: SourceAnswer) -> None:
    """Add a topic on broker a, which did not answer; broker b, which is not in the route, lists the members."""
    sources.route({"a": 2})
    sources.export.failure("consumer_connection", NOT_REACHED, broker="a", group=sources.name)
    sources.lists("c1", "c2", brokers="b", model="BROADCASTING")
    for client in ("c1", "c2"):
        sources.client(client, "a/0", "a/1")


@case(dict.fromkeys(("a/0", "a/1"), unknown("members_unknown")))
def processes_that_broadcast_and_that_no_broker_lists(sources: SourceAnswer) -> None:
    sources.route({"a": 2})
    sources.export.failure("consumer_connection", NOT_REACHED, broker="a", group=sources.name)
    for client in ("c1", "c2"):
        sources.client(
            client, "a/0", "a/1", process=f"p-{client}", properties={"messageModel": "BROADCASTING"}
        )


@case(dict.fromkeys(("a/0", "a/1"), twice(None)))
def clustering_group_that_only_another_broker_lists(sources: SourceAnswer) -> None:
    sources.route({"a": 2})
    sources.export.failure("consumer_connection", NOT_REACHED, broker="a", group=sources.name)
    sources.lists("c1", "c2", brokers="b")
    for client in ("c1", "c2"):
        sources.client(client, "a/0", "a/1")


def write(folder: Path) -> dict[str, Expected]:
    """Seal the export and write the settings below a folder; return the expected results of each case."""
    export, expected = drifting_export()
    export.seal(folder / "exports")
    (folder / "ledger.yaml").write_text(SETTINGS, encoding="utf-8")
    return expected
