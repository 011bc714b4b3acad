"""Check an assignment against the strategy's guarantees; examples, property tests and the ledger use the same check.

Belongs here: comparing an assignment with guarantees. Does not belong here: the guarantees (see the file of each
strategy) and the gate, which computes the same from the staged rows without this code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from strategies.batch import first_slots, owner_of_each, position_in_run

if TYPE_CHECKING:
    import numpy.typing as npt

    from strategies.batch import IntArray, Owners, SubscriptionBatch
    from strategies.guarantees import Guarantees
    from strategies.strategy import Strategy


class ViolatedGuarantee(Enum):
    """The part of a strategy's guarantees that does not hold."""

    FOREIGN_QUEUE = "an owned queue is not one of the subscription's"
    FOREIGN_CLIENT = "an owner is not a client of the group, or not named by its first slot"
    TOO_MANY_OWNERS = "a queue has more owners than promised"
    TOO_FEW_OWNERS = "a covered queue has fewer owners than promised"
    NOT_COVERED = "a queue that the strategy does not cover has an owner"
    SPREAD = "two clients' numbers of queues differ by more than promised"
    LOAD = "a client has more queues than promised"
    MOVED_NEEDLESSLY = "a queue moved between two clients that stayed"


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that one subscription breaks.

    Attributes:
        broken: The violated part.
        subscription: The subscription's number in the batch.
        slot: The slot of the queue, or of the client for `FOREIGN_CLIENT` and `LOAD`; -1 for `SPREAD`.
        observed: The number of owners, the spread or the load that was found.
        promised: What was promised instead.
    """

    broken: ViolatedGuarantee
    subscription: int
    slot: int
    observed: int
    promised: int


def promise(strategy: Strategy) -> Guarantees:
    """Return the strategy's guarantees."""
    return strategy.promise


def check(strategy: Strategy, batch: SubscriptionBatch, owners: Owners) -> list[Violation]:
    """Return the violations of the strategy's promise by these owners; an empty list if all of it holds.

    Refused subscriptions, and those without queues or clients, are not checked. In a group with a duplicate client
    id only uniqueness is checked, unless the guarantees hold for such groups too.

    Args:
        strategy: The strategy whose guarantees are checked.
        batch: The subscriptions.
        owners: The assignment to check, computed by this strategy or by other code.
    """
    violations = _foreign(batch, owners)
    if violations:
        # Indices out of range cannot be counted.
        return violations
    stated = strategy.promise
    has_queues_and_clients = (batch.queue_counts() > 0) & (batch.client_counts() > 0)
    has_queues_and_clients[list(owners.refused)] = False
    plain = (
        has_queues_and_clients
        if stated.holds_with_duplicate_ids
        else has_queues_and_clients & ~_has_duplicate_ids(batch)
    )
    queue_rows = batch.queue_offsets[owners.subscription_index] + owners.queue_index
    owner_counts = np.bincount(queue_rows, minlength=len(batch.queue_id))
    return [
        *_owner_counts(
            batch, stated, owner_counts, has_queues_and_clients, plain, strategy.covered_queues(batch)
        ),
        *_loads(batch, stated, owners, plain),
    ]


def check_move(
    strategy: Strategy,
    before: tuple[SubscriptionBatch, Owners],
    after: tuple[SubscriptionBatch, Owners],
) -> list[Violation]:
    """Return the violations of a monotone strategy's guarantee by a change of membership.

    Args:
        strategy: The strategy whose guarantee is checked.
        before: Some subscriptions and their owners.
        after: The same subscriptions and queues after clients left or joined, but not both.
    """
    if not strategy.promise.is_monotone:
        return []
    violations: list[Violation] = []
    for number in range(len(before[0])):
        clients_before, clients_after = before[0].clients_of(number), after[0].clients_of(number)
        stayed = set(clients_before) & set(clients_after)
        owner_before = _owner_names(before[1], number, clients_before)
        owner_after = _owner_names(after[1], number, clients_after)
        violations.extend(
            Violation(ViolatedGuarantee.MOVED_NEEDLESSLY, number, slot, observed=1, promised=0)
            for slot, owner in owner_before.items()
            if owner in stayed and slot in owner_after and owner_after[slot] in stayed - {owner}
        )
    return violations


def _owner_names(owners: Owners, subscription: int, client_ids: list[str]) -> dict[int, str]:
    rows = owners.subscription_index == subscription
    pairs = zip(owners.queue_index[rows].tolist(), owners.client_index[rows].tolist(), strict=True)
    return {queue: client_ids[client] for queue, client in pairs}


def _has_duplicate_ids(batch: SubscriptionBatch) -> npt.NDArray[np.bool_]:
    counts = batch.client_counts()
    result = np.zeros(len(batch), dtype=bool)
    result[owner_of_each(counts)[first_slots(batch) != position_in_run(counts)]] = True
    return result


def _foreign(batch: SubscriptionBatch, owners: Owners) -> list[Violation]:
    subscription = owners.subscription_index
    queue_counts = batch.queue_counts()[subscription]
    client_counts = batch.client_counts()[subscription]
    bad_queue = (owners.queue_index < 0) | (owners.queue_index >= queue_counts)
    bad_client = (owners.client_index < 0) | (owners.client_index >= client_counts)
    inside = np.flatnonzero(~bad_client)
    rows = batch.client_offsets[subscription[inside]] + owners.client_index[inside]
    bad_client[inside] = first_slots(batch)[rows] != owners.client_index[inside]
    return [
        *_violations(
            ViolatedGuarantee.FOREIGN_QUEUE, subscription, owners.queue_index, bad_queue, queue_counts, 0
        ),
        *_violations(
            ViolatedGuarantee.FOREIGN_CLIENT, subscription, owners.client_index, bad_client, client_counts, 0
        ),
    ]


def _owner_counts(
    batch: SubscriptionBatch,
    stated: Guarantees,
    owner_counts: IntArray,
    asked: npt.NDArray[np.bool_],
    plain: npt.NDArray[np.bool_],
    covered: npt.NDArray[np.bool_],
) -> list[Violation]:
    counts = batch.queue_counts()
    subscription, slot = owner_of_each(counts), position_in_run(counts)
    violations = []
    if stated.max_owner_count is not None:
        many = asked[subscription] & (owner_counts > stated.max_owner_count)
        violations += _violations(
            ViolatedGuarantee.TOO_MANY_OWNERS, subscription, slot, many, owner_counts, stated.max_owner_count
        )
    if stated.min_owner_count:
        few = plain[subscription] & covered & (owner_counts < stated.min_owner_count)
        violations += _violations(
            ViolatedGuarantee.TOO_FEW_OWNERS, subscription, slot, few, owner_counts, stated.min_owner_count
        )
        outside = asked[subscription] & ~covered & (owner_counts > 0)
        violations += _violations(ViolatedGuarantee.NOT_COVERED, subscription, slot, outside, owner_counts, 0)
    return violations


def _loads(
    batch: SubscriptionBatch, stated: Guarantees, owners: Owners, plain: npt.NDArray[np.bool_]
) -> list[Violation]:
    counts = batch.client_counts()
    client_rows = batch.client_offsets[owners.subscription_index] + owners.client_index
    load = np.bincount(client_rows, minlength=len(batch.client_id_codes))
    is_first = first_slots(batch) == position_in_run(counts)
    subscription, slot = owner_of_each(counts)[is_first], position_in_run(counts)[is_first]
    load = load[is_first]
    violations = []
    if stated.max_spread_count is not None:
        most, fewest = np.zeros(len(batch), dtype=np.int64), np.full(len(batch), np.iinfo(np.int64).max)
        np.maximum.at(most, subscription, load)
        np.minimum.at(fewest, subscription, load)
        spread = np.where(plain, most - fewest, 0)
        violations += _violations(
            ViolatedGuarantee.SPREAD,
            np.arange(len(batch)),
            np.full(len(batch), -1),
            spread > stated.max_spread_count,
            spread,
            stated.max_spread_count,
        )
    if stated.max_load_factor is not None:
        clients = np.bincount(subscription, minlength=len(batch))
        mean = batch.queue_counts() / np.maximum(clients, 1)
        bound = np.ceil(stated.max_load_factor * mean).astype(np.int64)[subscription]
        over = np.flatnonzero(plain[subscription] & (load > bound))
        violations += [
            Violation(
                ViolatedGuarantee.LOAD,
                *(int(value) for value in (subscription[at], slot[at], load[at], bound[at])),
            )
            for at in over.tolist()
        ]
    return violations


def _violations(
    broken: ViolatedGuarantee,
    subscription: IntArray,
    slot: IntArray,
    is_broken: npt.NDArray[np.bool_],
    observed: IntArray,
    promised: int,
) -> list[Violation]:
    at = np.flatnonzero(is_broken)
    columns = zip(subscription[at].tolist(), slot[at].tolist(), observed[at].tolist(), strict=True)
    return [Violation(broken, number, position, seen, promised) for number, position, seen in columns]
