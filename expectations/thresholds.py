"""The numbers and closed lists that the gate judges by.

Written down here and not imported from `strategies`, so that a slip there cannot move the bar with it; a test outside
this package holds the two equal. What does not belong here: how a number is measured.
"""

from __future__ import annotations

from typing import Final

SPREAD_BOUND: Final[dict[str, int]] = {"AVG": 1, "AVG_BY_CIRCLE": 1, "MACHINE_ROOM": 1}
"""Strategy -> the most by which the queue counts of two clients of a group may differ, within one topic.

A strategy that is not named promises no bound: a hash ring and a list are uneven by nature, rooms differ in size.
"""

ONE_OWNER_STRATEGIES: Final = frozenset(
    {"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH"}
)
"""Strategies that never give a queue to two clients with different ids. `CONFIG` may: lists can overlap."""

MACHINE_ROOM_ONE_OWNER_SINCE: Final = (4, 8, 0)
"""The Java release from which `MACHINE_ROOM` keeps that promise.

Up to 4.7.1 `AllocateMessageQueueByMachineRoom` takes a client's first queues from the whole list and the rest from
the rooms, so two clients can get the same; the Go client copies that.
"""

COVERING_STRATEGIES: Final = frozenset({"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH"})
"""Strategies that give every queue to somebody. `MACHINE_ROOM` leaves out the rooms that it does not serve."""

EXCUSED_UNOWNED_REASONS: Final = (
    "members_unknown",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "strategy_failed",
    "owner_not_subscribed",
    "left_out_by_strategy",
    "shared_by_pop",
)
"""Reasons with which even a covering strategy may leave a queue to nobody.

Either nobody can say who owns it, or the strategy gave it to somebody who does not read it, or its parameters (no
virtual nodes) leave everything out.
"""

UNKNOWN_OWNER_REASONS: Final = ("members_unknown", "settings_missing", "strategy_unknown", "shared_by_pop")
"""Reasons that mean "it cannot be told who owns this queue", so that counts of owners must be null and not 0."""

DOUBTFUL_OWNER_REASONS: Final = (*UNKNOWN_OWNER_REASONS, "member_strategy_unknown", "strategy_failed")
"""Reasons under which a count over the topic may be given or null: a part of it is known."""

STRATEGY_SOURCES: Final = ("observed", "configured", "hypothetical")
"""The closed list of `strategy_source`."""

FINDING_SEVERITIES: Final = ("critical", "warning", "info")
"""The closed list of `finding.severity`."""

FINDING_KINDS: Final = (
    "strategies_mixed",
    "client_id_duplicated",
    "queue_unowned",
    "queue_owned_twice",
    "clients_idle",
    "group_offline",
    "members_unknown",
    "member_lists_differ",
    "route_differs",
    "route_missing",
    "record_rejected",
    "source_failed",
    "settings_missing",
    "strategy_unknown",
    "load_unfair",
    "owner_unexpected",
)
"""The closed list of `finding.kind`."""

FINDING_KINDS_WITHOUT_SUBJECT: Final = ("record_rejected", "source_failed")
"""Kinds that may concern a name server or a file, for which `finding` has no subject column."""

RATIO_TOLERANCE: Final = 1e-9
"""How far a published ratio may be from its recomputation, relative to the larger of 1 and the ratio."""

MOST_REJECTED_RATIO: Final = 0.01
"""The share of an export's lines that may be unreadable before the gate warns."""

MOST_EXAMPLES: Final = 10
"""Offenders that are kept for each expectation, the first in the order of their text."""


def names_in_table(strategies: frozenset[str]) -> tuple[str, ...]:
    """A set of strategies as the `strategy` column names them, sorted.

    `MACHINE_ROOM_NEARBY` stands there as `MACHINE_ROOM_NEARBY-<inner>` (`AllocateMachineRoomNearby.getName()`) and
    keeps a promise only where its inner strategy does.
    """
    names = set(strategies)
    if "MACHINE_ROOM_NEARBY" in strategies:
        names |= {f"MACHINE_ROOM_NEARBY-{inner}" for inner in strategies}
    return tuple(sorted(names))
