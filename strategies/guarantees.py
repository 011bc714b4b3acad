"""Guarantees of an allocation strategy: bounds on owners, spread, load and moves.

Belongs here: the kinds of bounds. Does not belong here: the bounds of a strategy (see its own file) and the check
(see `invariants`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guarantees:
    """Bounds that hold for every subscription with queues and clients, whatever their names.

    With the defaults, a strategy only guarantees that owners are clients of the group.

    Attributes:
        max_owner_count: No queue has more owners than this; `None` for no bound.
        min_owner_count: No queue that the strategy covers (see `Strategy.covered_queues`) has fewer owners than this.
            If it is 1 or more, the other queues have no owner.
        max_spread_count: The client with the most queues has at most this many more than the client with
            the fewest; `None` for no bound.
        max_load_factor: No client has more queues than this factor times the mean, rounded up; `None` for no bound.
        is_monotone: When a client leaves, only its own queues move; when a client joins, queues only move to it.
        holds_with_duplicate_ids: Whether spread and coverage also hold for a group in which two clients have
            the same id. RocketMQ's arithmetic strategies give the second one a share that no client takes.
    """

    max_owner_count: int | None = None
    min_owner_count: int = 0
    max_spread_count: int | None = None
    max_load_factor: float | None = None
    is_monotone: bool = False
    holds_with_duplicate_ids: bool = False


EVEN_SHARES = Guarantees(max_owner_count=1, min_owner_count=1, max_spread_count=1)
"""Each queue has exactly one owner, and the queue counts of two clients differ by at most one."""
