"""The groups that the tests with real clusters start: correctly configured ones, and one for each mistake.

Belongs here: the groups, their settings, and the expected facts. Does not belong here: collecting, computing and comparing
(see `test_real_clusters.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.real_cluster import Broker
from tests.real_cluster.cluster import TIMEOUT_S
from tests.real_cluster.java_program import OLD_CLIENT
from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.real_cluster import Group, RealCluster

_TOTALS: Final = re.compile(r"(Diff|Inflight) Total: *(-?\d+)")
"""The end of the output of `mqadmin consumerProgress`; releases before 5.0 print only the first line."""

HZ_A: Final = "hz@broker-a"
SH_B: Final = "sh@broker-b"
SH_C: Final = "sh@broker-c"
HALF_KNOWN: Final = Broker("hz@broker-d", name_servers=(0,))
"""Registers with one of two name servers."""

BROKERS: Final = (HZ_A, Broker(SH_B, properties={"forceRegister": "false"}), SH_C)
"""The second registers only changed topics with name servers: a deleted route stays deleted."""
DIES: Final = SH_C

EVERYBODY_OWNS_ALL: Final = "everywhere"
"""A broadcasting group."""

# Ids that must remain text in a shell, in SQL, in HTML, in a path and in a line.
HOSTILE_IDS: Final = (
    "10.0.0.1@$(touch pwned)`touch pwned`; touch pwned #",
    "10.0.0.2@'; DROP TABLE gold.finding; --\" %s {0} \\",
    "10.0.0.3@<script>alert(1)</script>&amp;",
    "../../../../etc/passwd@..\\..\\pwned\0:*?|",
    "10.0.0.5@tab\tline\nnaïve ☃ 🚀",
)

_CONSISTENT_HASH: Final = {"strategy": "CONSISTENT_HASH", "virtual_node_count": 10}
_NEARBY: Final = {
    "strategy": "MACHINE_ROOM_NEARBY",
    "inner": {"strategy": "AVG"},
    "broker_room": {"separator": "@"},
    "consumer_room": {"prefixes": {"10.1.": "hz", "10.2.": "sh"}},
}
_SECOND_ROOM: Final = {"strategy": "MACHINE_ROOM", "consumer_idcs": ["sh"]}


def pinned(lists: Mapping[str, Iterable[tuple[str, str, int]]]) -> dict[str, Any]:
    """Return CONFIG with a list of queues for each client."""
    return {
        "strategy": "CONFIG",
        "clients": {
            client_id: [
                {"topic": topic, "broker_name": broker, "queue_ids": [queue_id]}
                for topic, broker, queue_id in queues
            ]
            for client_id, queues in lists.items()
        },
    }


def start_well(cluster: RealCluster, *, older_client: str | None) -> None:
    """Start groups of every strategy, all of them correctly configured.

    Args:
        cluster: A cluster with `BROKERS`.
        older_client: The release of one member in a group whose other members have the cluster's release; None for none.
    """
    cluster.create_topic("orders", 4)
    cluster.create_topic("small", 1)
    cluster.create_topic("pinned", 2, brokers=[HZ_A, SH_B])
    # More read queues than write queues, as after a topic was shrunk: clients read all of them.
    cluster.create_topic("shrunk", 3, write_queues=1)
    cluster.send("orders", 60)
    start = cluster.start_consumers
    start("hostile", ["orders", "shrunk"], HOSTILE_IDS)
    start("circle", ["orders"], _ids("10.0.1", 3), "AVG_BY_CIRCLE")
    start("ring", ["orders"], [f"10.4.0.{number}@ring-44" for number in (1, 2, 3)], _CONSISTENT_HASH)
    start("rooms", ["orders"], _ids("10.0.2", 2), {"strategy": "MACHINE_ROOM", "consumer_idcs": ["hz", "sh"]})
    start("nearby", ["orders"], [*_ids("10.1.0", 1), *_ids("10.2.0", 2)], _NEARBY)
    start(
        "pinned",
        ["pinned"],
        _ids("10.0.3", 2),
        pinned(
            {
                "10.0.3.1@1": [("pinned", HZ_A, 0), ("pinned", HZ_A, 1), ("%RETRY%pinned", HZ_A, 0)],
                "10.0.3.2@2": [("pinned", SH_B, 0), ("pinned", SH_B, 1), ("%RETRY%pinned", SH_B, 0)],
            }
        ),
    )
    start("snug", ["small"], _ids("10.0.4", 3))
    start("alone", ["orders", "small", "shrunk"], _ids("10.0.5", 1))
    start("in-order", ["orders"], _ids("10.0.6", 2), is_orderly=True)
    start(EVERYBODY_OWNS_ALL, ["orders"], _ids("10.0.7", 2), is_broadcasting=True)
    if older_client is not None:
        start("upgrading", ["orders"], _ids("10.0.8", 2))
        start("upgrading", ["orders"], ["10.0.8.3@3"], host="older", version=older_client)
    if not cluster.version.startswith("4."):
        start("asks-broker", ["orders"], _ids("10.0.9", 2), is_rebalanced_by_server=True)
        cluster.set_request_mode("orders", "pops", "POP")
        start("pops", ["orders"], _ids("10.0.10", 2), is_rebalanced_by_server=True)


@dataclass(frozen=True)
class Mistake:
    """A mistake in a group, and the exact results that the ledger must report.

    Attributes:
        states: State and likely cause of the queues that do not match.
        other_findings: Kind and likely cause of the findings that are not about such queues.
        unknown: Reasons why the state of some queues is unknown.
        is_restless: Whether its clients never become stable. Then the mismatches change every second, and `states` contains
            the possible ones.
    """

    states: frozenset[tuple[str, str]] = frozenset()
    other_findings: frozenset[tuple[str, str | None]] = frozenset()
    unknown: frozenset[str] = frozenset()
    is_restless: bool = False


_ANY_STATE: Final = ("unowned", "multiple_owners", "unexpected_owner")


def _mistake(cause: str, *states: str, is_restless: bool = False, **findings: str | None) -> Mistake:
    return Mistake(
        frozenset((state, cause) for state in states),
        frozenset(findings.items()),
        is_restless=is_restless,
    )


MISTAKES: Final[Mapping[str, Mistake]] = {
    "mixed": _mistake("mixed_strategies", "unowned", "multiple_owners", mixed_strategies=None),
    # Each broker forwards a query to one of the processes, and connections do not prove that there is another.
    "same-id": Mistake(
        frozenset({("unowned", "duplicate_client_id")}),
        frozenset({("duplicate_client_id", None)}),
        frozenset({"process_count_unknown"}),
    ),
    "apart": _mistake("subscriptions_differ", "unowned", subscriptions_differ=None),
    "halved": _mistake("route_views_differ", "unowned", "multiple_owners"),
    "one-room": _mistake("room_without_clients", "unowned"),
    # The old member allocates queues of the wrong room, so its queues of the right room have no owner.
    "aged": Mistake(frozenset({("unowned", "room_without_clients"), ("unowned", "mixed_clients")})),
    # Both allocate queues of the wrong room, so the queues of the right room have no owner.
    "outdated": Mistake(frozenset({("unowned", "room_without_clients"), ("unowned", "old_machine_room")})),
    "gap": _mistake("not_in_config_list", "unowned"),
    "overlap": _mistake("config_list_overlap", "multiple_owners"),
    "fading": _mistake("route_missing", "unexpected_owner"),
    "gone": _mistake("group_offline", "unowned", group_offline=None),
    # Every queue matches, but there are too many clients.
    "crowd": _mistake("", idle_clients="more_clients_than_queues"),
    "snug": _mistake("", idle_clients="more_clients_than_queues"),
    "split": _mistake("route_views_differ", *_ANY_STATE, is_restless=True, member_lists_differ=None),
    "haunted": _mistake(
        "member_lists_differ",
        *_ANY_STATE,
        is_restless=True,
        member_lists_differ=None,
        client_unreachable=None,
    ),
}
"""By group. `same-id` is the case in which both brokers forwarded the query to the same process. `start_badly` starts all groups except `snug`, which has lost a broker."""


PROVEN_PROCESSES: Final = _mistake(
    "duplicate_client_id", "unowned", "multiple_owners", duplicate_client_id=None
)
"""The ledger's results for `same-id` if each broker forwarded the query to a different process."""


def start_badly(cluster: RealCluster) -> None:
    """Start a group for each mistake, kill a broker, and wait until all clients have noticed it."""
    cluster.start_broker(HALF_KNOWN)
    cluster.create_topic("extra", 2, brokers=[HZ_A, SH_B])
    cluster.create_topic("split", 4, brokers=[HZ_A, HALF_KNOWN.name])
    cluster.create_topic("halved", 2, brokers=[HZ_A, SH_B])
    cluster.create_topic("fading", 2, brokers=[DIES])
    start = cluster.start_consumers

    start("mixed", ["orders"], _ids("10.5.0", 2))
    start("mixed", ["orders"], ["10.5.0.3@3"], "AVG_BY_CIRCLE")

    start("same-id", ["orders"], ["10.5.1.1@same", "10.5.1.2@other"])
    start("same-id", ["orders"], ["10.5.1.1@same"], host="second")

    start("crowd", ["small"], _ids("10.5.2", 4))

    start("apart", {"orders": "*", "extra": "*"}, ["10.5.3.1@1"])
    start("apart", {"orders": "*"}, ["10.5.3.2@2"])

    start("split", ["split"], ["10.5.4.1@1"], name_servers=[0])
    start("split", ["split"], ["10.5.4.2@2"], name_servers=[1])

    start("halved", ["halved"], ["10.5.10.1@1"], name_servers=[0])
    start("halved", ["halved"], ["10.5.10.2@2"], name_servers=[1])

    start("one-room", ["orders"], _ids("10.5.5", 2), {"strategy": "MACHINE_ROOM", "consumer_idcs": ["hz"]})

    start("aged", ["orders"], ["10.5.12.1@1"], _SECOND_ROOM)
    start("aged", ["orders"], ["10.5.12.2@2"], _SECOND_ROOM, host="old", version=OLD_CLIENT)

    start("outdated", ["orders"], _ids("10.5.13", 2), _SECOND_ROOM, host="old", version=OLD_CLIENT)

    start(
        "gap",
        ["pinned"],
        _ids("10.5.6", 2),
        pinned(
            {
                "10.5.6.1@1": [("pinned", HZ_A, 0), ("pinned", HZ_A, 1), ("%RETRY%gap", HZ_A, 0)],
                "10.5.6.2@2": [("pinned", SH_B, 0), ("%RETRY%gap", SH_B, 0)],
            }
        ),
    )
    start(
        "overlap",
        ["pinned"],
        _ids("10.5.11", 2),
        pinned(
            {
                "10.5.11.1@1": [("pinned", HZ_A, 0), ("pinned", HZ_A, 1), ("%RETRY%overlap", HZ_A, 0)],
                "10.5.11.2@2": [
                    ("pinned", HZ_A, 1),
                    ("pinned", SH_B, 0),
                    ("pinned", SH_B, 1),
                    ("%RETRY%overlap", SH_B, 0),
                ],
            }
        ),
    )

    haunted = start("haunted", ["orders"], _ids("10.5.7", 2))
    start("fading", ["orders", "fading"], _ids("10.5.8", 2))

    gone = start("gone", ["orders"], _ids("10.5.9", 1))
    able_to_rest = [group for group in cluster.groups.values() if group.name != "split"]
    cluster.wait_until_stable(*able_to_rest)
    wait_until_all_is_committed(cluster, gone)
    cluster.stop_consumers(gone, ["10.5.9.1@1"])
    cluster.kill_broker(DIES)
    halve_route(cluster)
    cluster.wait_until_stable(*able_to_rest)
    cluster.plant_ghost(haunted, "10.5.7.0@ghost", HZ_A)


def wait_until_all_is_committed(cluster: RealCluster, group: Group) -> None:
    """Wait until the brokers have the offsets of all consumed messages: handed-out but uncommitted messages can be in flight."""
    for member in group.members:
        cluster.persist_offsets(member)

    def missing() -> str | None:
        text = cluster.mqadmin("consumerProgress", "-n", ";".join(cluster.name_servers), "-g", group.name)
        counts = dict(_TOTALS.findall(text))
        return None if counts and set(counts.values()) == {"0"} else text

    wait_until(missing, TIMEOUT_S)


def halve_route(cluster: RealCluster) -> None:
    """Remove one of the two brokers of `halved` from the second name server's route.

    The route stays so until that broker has a change to register, because it then registers all of its topics.
    """
    if cluster.route("halved", cluster.name_servers[1]) != {HZ_A: 2}:
        cluster.delete_route("halved", [1])
        # One of its two brokers registers it again.
        cluster.create_topic("halved", 2, brokers=[HZ_A])
        cluster.wait_for_route("halved", 1, {HZ_A: 2})


def settings_of(groups: Iterable[Group]) -> dict[str, Any]:
    """Return the groups' entries for the settings file: the parameters that no client reports."""
    return {
        group.name: dict(group.members[0].strategy)
        for group in groups
        if group.members and len(group.members[0].strategy) > 1
    }


def _ids(network: str, count: int) -> list[str]:
    return [f"{network}.{number}@{number}" for number in range(1, count + 1)]
