"""What a strategy promises, as plain numbers.

Belongs here: the terms in which promises are stated. Does not belong here: which strategy promises what (each
states it in its own file) and the check (see `invariants`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What holds for every subscription with queues and with clients, whatever they are called.

    A strategy that states nothing promises nothing but that owners are clients of the group.

    Attributes:
        max_owner_count: No queue has more owners than this; `None` for no bound.
        min_owner_count: No queue that the strategy covers has fewer owners than this. Which queues those are
            says `Strategy.covered_queues`; the others have none, if this is at least 1.
        max_spread_count: The client with the most queues has at most this many more than the client with
            the fewest; `None` for no bound.
        max_load_factor: No client has more queues than this times the mean, rounded up; `None` for no bound.
        is_monotone: When a client leaves, only its own queues get new owners; when one joins, queues move to
            it only.
        holds_with_duplicate_ids: Whether spread and coverage also hold for a group in which two clients have
            the same id. RocketMQ's arithmetic strategies give the second one a share that nobody takes.
    """

    max_owner_count: int | None = None
    min_owner_count: int = 0
    max_spread_count: int | None = None
    max_load_factor: float | None = None
    is_monotone: bool = False
    holds_with_duplicate_ids: bool = False


EVEN_SHARES = Guarantees(max_owner_count=1, min_owner_count=1, max_spread_count=1)
"""Every queue has exactly one owner, and no client has two more than another."""
