"""Every strategy over a whole Arrow batch of subscriptions: arrays of counts and names in, arrays of integers out.

What belongs here: which strategies are computed for which group and which of them is effective. What does not: any
rule of a strategy (`strategies`), any Spark plan (`queue_assignment`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from spark_jobs.configured import lacks_settings, strategy_of
from spark_jobs.subscription_batch import Profile, Rows, Variant
from strategies import SlotStrategy, Strategy, get_strategy
from strategies.batch import first_slots, offsets, owner_of_each, position_in_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from settings import GroupSettings
    from spark_jobs.configured import Configured

    IntArray = npt.NDArray[np.int64]
    SlotArray = npt.NDArray[np.int32]
    BoolArray = npt.NDArray[np.bool_]

BROADCASTING: Final = "BROADCASTING"
"""Stands for a strategy where every member reads every queue."""

MIXED: Final = "MIXED"
"""Stands for a strategy where each member follows the one that it reports."""

POP: Final = "POP"
"""Stands for a strategy where the broker shares each queue among members that pop; no member owns one."""

REASONS: Final = (
    "group_offline",
    "members_unknown",
    "duplicate_client_id",
    "owner_not_subscribed",
    "room_without_consumers",
    "not_in_configured_list",
    "mixed_strategies",
    "mixed_clients",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "strategy_failed",
    "left_out_by_strategy",
    "shared_by_pop",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    "server_off",
    "strategy_unknown_to_broker",
)
"""Why nobody owns a queue. In arrays of owners, reason `i` is the owner `-1 - i`."""

DIVISION_REASONS: Final = (
    "shared_by_pop",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    "server_off",
    "strategy_unknown_to_broker",
)
"""Those of `division_reason` of `subscriptions.subscriptions`: how members fetch, and not their strategy, leaves the owner open."""

UNTOLD_REASONS: Final = ("members_unknown", "settings_missing", "strategy_unknown", *DIVISION_REASONS)
"""Reasons that do not mean that nobody reads the queue, but that one owner cannot be named."""


def reason_code(reason: str) -> int:
    """The owner that stands for nobody, for this reason."""
    return -1 - REASONS.index(reason)


SPREAD_BOUNDS: Final[Mapping[str, int]] = {
    strategy.name: strategy.promise.max_spread_count
    for strategy in (
        get_strategy("AVG"),
        get_strategy("AVG_BY_CIRCLE"),
        get_strategy("MACHINE_ROOM", consumer_idcs=()),
    )
    if strategy.promise.max_spread_count is not None
}
"""The most by which two clients' numbers of queues may differ, for the strategies that promise it."""

SOURCES: Final = ("observed", "configured", "hypothetical")
"""The closed list of `strategy_source`."""

_OWNERS: Final = pa.list_(pa.int32())
_SHARE_TYPE: Final = pa.struct(
    [
        ("strategy", pa.string()),
        ("strategy_source", pa.string()),
        ("is_effective", pa.bool_()),
        ("owners", _OWNERS),
        ("queues", _OWNERS),
    ]
)
RESULT_TYPE: Final = pa.struct(
    [
        ("queue_brokers", pa.list_(pa.int32())),
        ("queue_ids", pa.list_(pa.int32())),
        ("shares", pa.list_(_SHARE_TYPE)),
    ]
)
RESULT_DDL: Final = (
    "struct<queue_brokers:array<int>,queue_ids:array<int>,shares:array<struct<"
    "strategy:string,strategy_source:string,is_effective:boolean,owners:array<int>,queues:array<int>>>>"
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the members of a profile really share.

    Attributes:
        strategy: the name to show.
        source: `observed` or `configured`.
        shares: for sets of variant codes, the rule that those members follow; None for all members.
        nobody: the reason where no member takes a queue.
        is_common: whether the common computation of `strategy` already is the answer.
    """

    strategy: str
    source: str
    shares: tuple[tuple[frozenset[int] | None, Strategy], ...] = ()
    nobody: str = "left_out_by_strategy"
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class _Block:
    """One strategy's answer for N rows.

    Attributes:
        rows: int64[N]: positions in the Arrow batch.
        strategy: the strategy's name.
        sources: int64[N]: positions in `SOURCES`.
        is_effective: bool[N].
        owners: N lists of positions in `member_ids` or reason codes.
        queues: N lists of queue positions beside `owners`; None where `owners` has one element per queue, in order.
    """

    rows: IntArray
    strategy: str
    sources: IntArray
    is_effective: BoolArray
    owners: pa.ListArray
    queues: pa.ListArray | None = None


def allocate_batch(configured: Configured, subscriptions: pa.StructArray) -> pa.StructArray:
    """Every strategy for every row of an Arrow batch.

    Args:
        configured: what the settings say.
        subscriptions: R structs of consumer_group, topic; group_state and (it may be absent) division_reason, see `subscriptions.subscriptions`; broker_names
            and queue_counts, lists beside each other, in any order; member_ids, strategies, languages, versions and
            is_subscribed, lists beside each other, in any order, an id once for each connection; null where unknown.

    Returns:
        R structs of `RESULT_TYPE`: for each queue, in Java's order, the position of its broker in broker_names and its id;
        for each strategy the owner of each queue, as a position in member_ids or `reason_code`, beside the position of
        the queue where that is not simply each queue once.
    """
    rows = Rows.of(subscriptions, configured)
    plans = [_plan(profile, rows.variants, _settings_of(profile, configured)) for profile in rows.profiles]
    own = [
        _own_plans(plan, _settings_of(profile, configured))
        for profile, plan in zip(rows.profiles, plans, strict=True)
    ]
    blocks = [*_common_blocks(rows, configured.hypothetical, plans, own)]
    for code, (profile, own_plans) in enumerate(zip(rows.profiles, own, strict=True)):
        if own_plans or profile.state == "broadcasting":
            of_profile = np.flatnonzero(rows.profile_codes == code)
            part = rows.take(of_profile)
            blocks += [
                _shared_block(of_profile, part, plan, is_effective=plan is plans[code]) for plan in own_plans
            ]
            if profile.state == "broadcasting":
                blocks.append(_broadcasting_block(of_profile, part))
    queue_offsets = rows.batch.queue_offsets
    return pa.StructArray.from_arrays(
        [
            _lists(queue_offsets, rows.queue_brokers),
            _lists(queue_offsets, rows.batch.queue_id),
            _by_row(blocks, len(rows)),
        ],
        fields=list(RESULT_TYPE),
    )


def _settings_of(profile: Profile, configured: Configured) -> GroupSettings | None:
    return configured.settings[profile.configured] if profile.configured >= 0 else None


def _plan(profile: Profile, variants: list[Variant], configured: GroupSettings | None) -> _Plan | None:
    """How the members of a profile share; None where nobody can say."""
    if profile.state != "online":
        return None
    # By name: a code only says where in the batch the variant was first met.
    reported = sorted(profile.variants - {-1}, key=lambda code: variants[code].sort_key)
    strategies = {variants[code].strategy for code in reported}
    if profile.division_reason == "shared_by_pop":
        return _Plan(POP, "observed", (), profile.division_reason)
    if profile.division_reason is not None:
        return (
            _Plan(MIXED if len(strategies) > 1 else strategies.pop(), "observed", (), profile.division_reason)
            if strategies
            else None
        )
    if not reported:
        if configured is None:
            return None
        strategy = strategy_of(Variant(configured.strategy), configured)
        return _Plan(configured.strategy, "configured", ((profile.variants, strategy),) if strategy else ())
    built = {code: strategy_of(variants[code], configured) for code in reported}
    if len(strategies) > 1:
        shares = tuple(
            (frozenset([code]), strategy) for code, strategy in built.items() if strategy is not None
        )
        is_whole = len(shares) == len(profile.variants)
        return _Plan(MIXED, "observed", shares, "mixed_strategies" if is_whole else "member_strategy_unknown")
    name = strategies.pop()
    if None in built.values():
        return _Plan(
            name,
            "observed",
            (),
            "settings_missing" if lacks_settings(name, configured) else "strategy_unknown",
        )
    if name in _SAME_IN_EVERY_JAVA_VERSION and all(
        variants[code].language in {None, "JAVA"} for code in reported
    ):
        return _Plan(name, "observed", is_common=True)
    # A member that could not be asked is taken to do as the others say that they do.
    silent = profile.variants & {-1}
    shares = tuple(
        (frozenset([code]) | (silent if code == reported[0] else frozenset()), strategy)
        for code, strategy in built.items()
        if strategy is not None
    )
    return _Plan(name, "observed", shares)


_SAME_IN_EVERY_JAVA_VERSION: Final = frozenset({"AVG", "AVG_BY_CIRCLE"})


def _own_plans(plan: _Plan | None, configured: GroupSettings | None) -> list[_Plan]:
    """What only the rows of one profile have: their effective strategy, and beside it their configured one."""
    plans = [] if plan is None or plan.is_common else [plan]
    if configured is not None and plan is not None and plan.strategy != configured.strategy:
        strategy = strategy_of(Variant(configured.strategy), configured)
        if strategy is not None:
            plans.append(_Plan(configured.strategy, "configured", ((None, strategy),)))
    return plans


def _common_blocks(
    rows: Rows, hypothetical: Mapping[str, Strategy], plans: list[_Plan | None], own: list[list[_Plan]]
) -> Iterable[_Block]:
    """The strategies that are computed for every group, whichever it uses."""
    is_shared = rows.states() != "broadcasting"
    for name, strategy in hypothetical.items():
        # A plan that shows this strategy's name by rules of its own takes the place of the common computation.
        has_own = np.array(
            [any(plan.strategy == name for plan in of_profile) for of_profile in own], dtype=bool
        )
        is_observed = np.array(
            [plan is not None and plan.is_common and plan.strategy == name for plan in plans], dtype=bool
        )
        chosen = np.flatnonzero(is_shared & ~has_own[rows.profile_codes])
        part = rows.take(chosen)
        effective = is_observed[part.profile_codes]
        plan = _Plan(name, "hypothetical", ((None, strategy),))
        if isinstance(strategy, SlotStrategy):
            owners, queues = _slot_owners(part, plan, strategy), None
        else:
            owners, queues = _shared_owners(part, plan)
        yield _Block(
            rows=chosen,
            strategy=name,
            sources=np.where(effective, SOURCES.index("observed"), SOURCES.index("hypothetical")),
            is_effective=effective,
            owners=owners,
            queues=queues,
        )


def _slot_owners(part: Rows, plan: _Plan, strategy: SlotStrategy) -> pa.ListArray:
    """The owner of each queue, in order, by a strategy that gives a queue to one member at most."""
    batch = part.batch
    slots = strategy.slots(batch)
    is_owned = slots.slot >= 0
    if is_owned.all() and part.is_subscribed.all():
        return _lists(batch.queue_offsets, _given(part, owner_of_each(batch.queue_counts()), slots.slot))
    nobody = _nobody_of(plan, part, slots.refused)
    queue_rows = np.flatnonzero(is_owned)
    return _owners(part, queue_rows, slots.slot[queue_rows].astype(np.int64), nobody)[0]


def _shared_block(of_profile: IntArray, part: Rows, plan: _Plan, *, is_effective: bool) -> _Block:
    """Each member takes what its own rule gives it."""
    owners, queues = _shared_owners(part, plan)
    return _block(of_profile, plan, owners, queues, is_effective=is_effective)


def _shared_owners(part: Rows, plan: _Plan) -> tuple[pa.ListArray, pa.ListArray | None]:
    batch = part.batch
    queue_rows, slots = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    refused: dict[int, str] = {}
    for codes, strategy in plan.shares:
        taken = strategy.allocate_batch(batch)
        refused.update(taken.refused)
        rows = batch.queue_offsets[taken.subscription_index] + taken.queue_index
        taken_slots = taken.client_index
        if codes is not None:
            members = batch.client_offsets[taken.subscription_index] + taken_slots
            follows = np.isin(part.variant_codes[members], list(codes))
            rows, taken_slots = rows[follows], taken_slots[follows]
        queue_rows.append(rows)
        slots.append(taken_slots)
    nobody = _nobody_of(plan, part, refused)
    return _owners(part, np.concatenate(queue_rows), np.concatenate(slots), nobody)


def _broadcasting_block(of_profile: IntArray, part: Rows) -> _Block:
    """Every member that subscribes to the topic reads every queue of it."""
    batch = part.batch
    members = np.flatnonzero(_is_first_slot(part) & part.is_subscribed)
    of_row = owner_of_each(batch.client_counts())[members]
    counts = batch.queue_counts()[of_row]
    queue_rows = np.repeat(batch.queue_offsets[of_row], counts) + position_in_run(counts)
    slots = np.repeat(members - batch.client_offsets[of_row], counts)
    plan = _Plan(BROADCASTING, "observed")
    owners, queues = _owners(part, queue_rows, slots, _nobody(plan, part))
    return _block(of_profile, plan, owners, queues, is_effective=True)


def _block(
    rows: IntArray, plan: _Plan, owners: pa.ListArray, queues: pa.ListArray | None, *, is_effective: bool
) -> _Block:
    return _Block(
        rows=rows,
        strategy=plan.strategy,
        sources=np.full(len(rows), SOURCES.index(plan.source)),
        is_effective=np.full(len(rows), is_effective),
        owners=owners,
        queues=queues,
    )


def _owners(
    part: Rows, queue_rows: IntArray, slots: IntArray, nobody: IntArray
) -> tuple[pa.ListArray, pa.ListArray | None]:
    """The lists of a block, from pairs of a queue (its row among all Q) and a member slot, in any order, none twice.

    Queues that no pair names are nobody's, for their reason (int64[Q]).
    """
    batch = part.batch
    subscription = owner_of_each(batch.queue_counts())
    members = batch.client_offsets[subscription[queue_rows]] + slots
    is_subscribed = part.is_subscribed[members] if len(members) else np.empty(0, dtype=bool)
    if not is_subscribed.all():
        nobody = nobody.copy()
        nobody[queue_rows[~is_subscribed]] = reason_code("owner_not_subscribed")
        queue_rows, slots = queue_rows[is_subscribed], slots[is_subscribed]
    owner_counts = np.bincount(queue_rows, minlength=len(batch.queue_id))
    row_counts = np.maximum(owner_counts, 1)
    starts = offsets(row_counts)
    owners = np.repeat(nobody, row_counts).astype(np.int32)
    given = _given(part, subscription[queue_rows], slots)
    if len(owners) == len(nobody):
        owners[queue_rows] = given
        return _lists(batch.queue_offsets, owners), None
    order = np.lexsort((slots, queue_rows))
    places = np.repeat(starts[:-1], owner_counts) + position_in_run(owner_counts)
    owners[places] = given[order]
    list_offsets = starts[batch.queue_offsets]
    queues = np.repeat(position_in_run(batch.queue_counts()), row_counts)
    return _lists(list_offsets, owners), _lists(list_offsets, queues.astype(np.int32))


def _given(part: Rows, subscription: IntArray, slots: IntArray | SlotArray) -> SlotArray:
    """int32: the positions in the lists of members as they were given, for slots of subscriptions."""
    result: SlotArray = part.given_slots[part.batch.client_offsets[subscription] + slots]
    return result


def _nobody_of(plan: _Plan, part: Rows, refused: Mapping[int, str]) -> IntArray:
    """int64[Q]: `_nobody`, or what stands above any strategy: the group's state, and that a strategy throws."""
    states = part.states()
    above = np.zeros(len(part), dtype=np.int64)
    above[states == "offline"] = reason_code("group_offline")
    above[states == "unknown"] = reason_code("members_unknown")
    above[list(refused)] = reason_code("strategy_failed")
    above = np.repeat(above, part.batch.queue_counts())
    return np.where(above < 0, above, _nobody(plan, part))


def _nobody(plan: _Plan, part: Rows) -> IntArray:
    """int64[Q]: the code of the reason that each queue has where no member takes it."""
    batch = part.batch
    if plan.nobody != "left_out_by_strategy":
        return np.full(len(batch.queue_id), reason_code(plan.nobody), dtype=np.int64)
    left_out = {"CONFIG": "not_in_configured_list", "MACHINE_ROOM": "room_without_consumers"}
    reasons = np.full(
        len(batch.queue_id), reason_code(left_out.get(plan.strategy, plan.nobody)), dtype=np.int64
    )
    # Where a rule means to cover a queue and nobody takes it, it is not for the reason above: members whose rules differ
    # by language or version left it to each other, or only a twin's share is left, as both twins take the first one's.
    row = np.repeat(np.arange(len(part.profile_codes)), batch.client_counts())
    has_twins = np.isin(np.arange(len(part.profile_codes)), row[~_is_first_slot(part)])
    is_covered = np.zeros(len(batch.queue_id), dtype=np.bool_)
    is_promised = is_covered.copy()
    for _, strategy in plan.shares:
        covered = strategy.covered_queues(batch)
        is_covered |= covered
        is_promised |= covered & (strategy.promise.min_owner_count > 0)
    reasons[is_covered] = reason_code("left_out_by_strategy")
    if len(plan.shares) > 1:
        reasons[is_promised] = reason_code("mixed_clients")
    reasons[is_covered & np.repeat(has_twins, batch.queue_counts())] = reason_code("duplicate_client_id")
    return reasons


def _is_first_slot(part: Rows) -> BoolArray:
    """bool[M]: whether the slot is the first of its client id in its subscription."""
    result: BoolArray = first_slots(part.batch) == position_in_run(part.batch.client_counts())
    return result


def _lists(list_offsets: IntArray, values: SlotArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(list_offsets, pa.int32()), pa.array(values, pa.int32()))


def _by_row(blocks: list[_Block], row_count: int) -> pa.ListArray:
    """The blocks' answers, row by row: R lists of structs."""
    block_of = np.repeat(np.arange(len(blocks)), [len(block.rows) for block in blocks])
    rows = np.concatenate([block.rows for block in blocks])
    strategies = pa.array([block.strategy for block in blocks], pa.string())
    sources = np.concatenate([block.sources for block in blocks])
    shares = pa.StructArray.from_arrays(
        [
            strategies.take(pa.array(block_of)),
            pa.array(SOURCES, pa.string()).take(pa.array(sources)),
            pa.array(np.concatenate([block.is_effective for block in blocks]), pa.bool_()),
            pa.concat_arrays([block.owners for block in blocks]),
            pa.concat_arrays(
                [
                    pa.nulls(len(block.rows), _OWNERS) if block.queues is None else block.queues
                    for block in blocks
                ]
            ),
        ],
        fields=list(_SHARE_TYPE),
    )
    list_offsets = offsets(np.bincount(rows, minlength=row_count))
    return pa.ListArray.from_arrays(
        pa.array(list_offsets, pa.int32()), shares.take(pa.array(np.argsort(rows, kind="stable")))
    )
