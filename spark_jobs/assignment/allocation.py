"""Apply every strategy to an Arrow batch of subscriptions: arrays of counts and names in, arrays of integers out.

Belongs here: which strategies are computed for a group, and which one is effective. Does not belong here: the rules
(`strategies`), and the Spark plan (`queue_assignment`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_ledger.rocketmq.versions import DEFAULT_LANGUAGE
from rebalance_ledger.tables.vocabulary import OwnerReason, StrategySource
from spark_jobs.assignment.arrow_batch import ArrowSubscriptions, Profile
from spark_jobs.assignment.strategy_settings import rule_of
from strategies import Language, SlotStrategy, Strategy, get_strategy, has_one_rule
from strategies.batch import first_slots, offsets, owner_of_each, position_in_run
from strategies.by_config import ConfigByClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from rebalance_ledger.settings import GroupSettings
    from spark_jobs.assignment.strategy_settings import StrategySettings
    from spark_jobs.assignment.variant import Variant

    IntArray = npt.NDArray[np.int64]
    SlotArray = npt.NDArray[np.int32]
    BoolArray = npt.NDArray[np.bool_]

BROADCASTING: Final = "BROADCASTING"
"""Shown instead of a strategy if every member reads every queue."""

MIXED: Final = "MIXED"
"""Shown instead of a strategy if members report different ones, and each follows its own."""

POP: Final = "POP"
"""Shown instead of a strategy if members pop: the broker shares each queue among them, and no member owns one."""

SERVER_OFF: Final = OwnerReason.SERVER_OFF.value
"""Members ask brokers with `serverLoadBalancerEnable=false` for their queues: each member gets every queue."""

ROUTE_MISSING: Final = OwnerReason.ROUTE_MISSING.value
"""The reason of a queue that its client keeps although the topic has no readable queue in any route."""

NOT_IN_ROUTE: Final = OwnerReason.QUEUE_NOT_IN_ROUTE.value
"""The reason of a queue with an owner that a CONFIG list names and no route has."""

REASONS: Final = tuple(
    reason.value for reason in OwnerReason if reason.value not in {ROUTE_MISSING, NOT_IN_ROUTE}
)
"""Reasons of queues without an owner. In arrays of owners, reason `i` is the owner `-1 - i`."""

DIVISION_REASONS: Final = (
    "pop_mode",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    SERVER_OFF,
    "strategy_unknown_to_broker",
)
"""Values of `division_reason` (`subscriptions.subscriptions`): the owner is unknown because of the way in which members fetch."""

UNDETERMINED_REASONS: Final = (
    "members_unknown",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    *DIVISION_REASONS,
)
"""Reasons with which no single owner can be named, although the queue may be consumed.

If one queue of a topic has such a reason, the topic has no fairness numbers, because the owners of the other queues are not enough.
"""


def reason_code(reason: str) -> int:
    """Return the code of a reason in arrays of owners."""
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
"""Strategy -> the largest difference between the queue counts of two clients, for the strategies that guarantee one."""

SOURCES: Final = tuple(source.value for source in StrategySource)
"""Values of `strategy_source`. In arrays, a source is its position."""

_Queue = tuple[str, int]
"""Broker name and queue id."""

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
        ("extra_brokers", pa.list_(pa.string())),
        ("shares", pa.list_(_SHARE_TYPE)),
    ]
)
RESULT_DDL: Final = (
    "struct<queue_brokers:array<int>,queue_ids:array<int>,extra_brokers:array<string>,shares:array<struct<"
    "strategy:string,strategy_source:string,is_effective:boolean,owners:array<int>,queues:array<int>>>>"
)


@dataclass(frozen=True, slots=True)
class _Share:
    """A rule and the members that follow it.

    Attributes:
        codes: Codes of the members' variants; None for all members.
        strategy: The rule.
        is_by_byte: Whether the members sort names by byte, unlike Java.
    """

    codes: frozenset[int] | None
    strategy: Strategy
    is_by_byte: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """The rules by which the members of a profile divide the queues.

    Attributes:
        strategy: Published name.
        source: `observed` or `configured`.
        shares: The known rules, with the members that follow each.
        unowned_reason: Reason of a queue that no member takes.
        between_shares: Reason of a queue that is unowned because members follow different rules.
        is_common: Whether the computation of `strategy` for all groups gives the same result.
    """

    strategy: str
    source: str
    shares: tuple[_Share, ...] = ()
    unowned_reason: str = "not_assigned_by_strategy"
    between_shares: str = "mixed_clients"
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class _Block:
    """The owners under one strategy for N rows.

    Attributes:
        rows: int64[N], positions in the Arrow batch.
        strategy: Name of the strategy.
        sources: int64[N], positions in `SOURCES`.
        is_effective: bool[N].
        owners: N lists of positions in `member_ids`, or reason codes.
        queues: N lists of queue positions, parallel to `owners`; None if `owners` has one element per queue, in order.
    """

    rows: IntArray
    strategy: str
    sources: IntArray
    is_effective: BoolArray
    owners: pa.ListArray
    queues: pa.ListArray | None = None


def allocate_batch(configured: StrategySettings, subscriptions: pa.StructArray) -> pa.StructArray:
    """Apply every strategy to every row of an Arrow batch.

    Args:
        configured: The settings of the clusters.
        subscriptions: R structs of cluster, consumer_group and topic; group_state and, optionally, division_reason (see
            `subscriptions.subscriptions`); broker_names and queue_counts, parallel lists in any order; member_ids, strategies,
            languages, versions, has_answered and is_subscribed, parallel lists in any order with an id once per connection. Unknown
            values are null.

    Returns:
        R structs of `RESULT_TYPE`:

        * queue_brokers, queue_ids: position of each queue's broker in broker_names, and the queue's id, in Java's order. The queues
          that only CONFIG lists name follow.
        * extra_brokers: brokers of these queues; their positions continue those of broker_names.
        * shares: for each strategy, `owners` with positions in member_ids or values of `reason_code`, and `queues` with the position
          of each owner's queue; null if each queue has one owner, in order.
    """
    rows = ArrowSubscriptions.of(subscriptions, configured)
    plans = [_plan(profile, rows.variants, configured) for profile in rows.profiles]
    profile_plans = [
        _own_plans(profile, plan, rows.variants, configured)
        for profile, plan in zip(rows.profiles, plans, strict=True)
    ]
    blocks = [*_common_blocks(rows, configured.hypothetical, plans, profile_plans)]
    extra: dict[int, list[_Queue]] = {}
    for code, (profile, own_plans) in enumerate(zip(rows.profiles, profile_plans, strict=True)):
        if own_plans or profile.state == "broadcasting":
            profile_rows = np.flatnonzero(rows.profile_codes == code)
            part = rows.take(profile_rows)
            for plan in own_plans:
                block = _shared_block(profile_rows, part, plan, is_effective=plan is plans[code])
                if block.is_effective.any():
                    without_route = _without_route(part, plan)
                    block = _with_queues(block, part, without_route)
                    extra |= {int(profile_rows[row]): list(owners) for row, owners in without_route.items()}
                blocks.append(block)
            if profile.state == "broadcasting":
                blocks.append(_broadcasting_block(profile_rows, part))
    return _result(rows, subscriptions.field("broker_names"), blocks, extra)


def _result(
    rows: ArrowSubscriptions, broker_names: pa.Array, blocks: list[_Block], extra: Mapping[int, list[_Queue]]
) -> pa.StructArray:
    """Return R structs of `RESULT_TYPE`.

    Args:
        rows: The subscriptions.
        broker_names: R lists of broker names.
        blocks: The owners under all strategies.
        extra: Row -> queues that only CONFIG lists name, which are inserted after the row's queues.
    """
    broker_counts = pc.list_value_length(broker_names).to_pylist()
    ends = {row: int(rows.batch.queue_offsets[row + 1]) for row in extra}
    at = [ends[row] for row, queues in extra.items() for _ in queues]
    numbers = [broker_counts[row] + number for row, queues in extra.items() for number in range(len(queues))]
    ids = [queue_id for queues in extra.values() for _, queue_id in queues]
    counts = rows.batch.queue_counts() + np.array(
        [len(extra.get(row, ())) for row in range(len(rows))], np.int64
    )
    queue_offsets = offsets(counts)
    return pa.StructArray.from_arrays(
        [
            _lists(queue_offsets, np.insert(rows.queue_brokers, at, numbers)),
            _lists(queue_offsets, np.insert(rows.batch.queue_id, at, ids)),
            pa.array(
                [[broker_name for broker_name, _ in extra.get(row, ())] for row in range(len(rows))],
                pa.list_(pa.string()),
            ),
            _by_row(blocks, len(rows)),
        ],
        fields=list(RESULT_TYPE),
    )


def _settings_of(profile: Profile, configured: StrategySettings) -> GroupSettings | None:
    return configured.settings[profile.configured] if profile.configured >= 0 else None


@dataclass(frozen=True, slots=True)
class _MemberRule:
    """The rule that the members of one variant follow.

    Attributes:
        variant: The variant.
        name: Name of the strategy; None if neither the members nor the settings give one.
        rule: The strategy, or the reason why it is unknown.
        is_configured: Whether the name comes from the settings.
    """

    variant: Variant
    name: str | None
    rule: Strategy | str
    is_configured: bool = False

    @property
    def key(self) -> tuple[str | None, str | None, str | None, int]:
        """Return a key that is equal for members that follow the same rule."""
        language = self.variant.language or DEFAULT_LANGUAGE
        version = None if has_one_rule(self.name or "", language) else self.variant.version
        return self.name, language, version, self.variant.member_settings


def _plan(profile: Profile, variants: list[Variant], configured: StrategySettings) -> _Plan | None:
    """Return how the members of a profile divide the queues; None if it cannot be determined."""
    if profile.state != "online":
        return None
    # Sorted by value, because codes depend on the order of the rows in the batch.
    codes = sorted(profile.variants, key=lambda code: variants[code].sort_key)
    of_group = _settings_of(profile, configured)
    reported = [variants[code] for code in codes if variants[code].strategy is not None]
    if profile.division_reason == "pop_mode":
        return _Plan(POP, "observed", (), profile.division_reason)
    if profile.division_reason is not None:
        strategies = list(dict.fromkeys(member.strategy for member in reported if member.strategy))
        shown = MIXED if len(strategies) > 1 else next(iter(strategies), None)
        return _Plan(shown, "observed", (), profile.division_reason) if shown else None
    rules = {code: _member_rule(variants[code], reported, of_group, configured) for code in codes}
    names = list(dict.fromkeys(rule.name for rule in rules.values() if rule.name is not None))
    if not names:
        return None
    source = "configured" if any(rule.is_configured for rule in rules.values()) else "observed"
    if len(names) == 1 and names[0] in _SAME_IN_EVERY_JAVA_VERSION and source == "observed":
        is_java = all(rule.variant.language in {None, DEFAULT_LANGUAGE} for rule in rules.values())
        if is_java and all(isinstance(rule.rule, Strategy) for rule in rules.values()):
            return _Plan(names[0], source, is_common=True)
    return _plan_of_rules(MIXED if len(names) > 1 else names[0], source, rules)


def _member_rule(
    variant: Variant, reported: list[Variant], of_group: GroupSettings | None, configured: StrategySettings
) -> _MemberRule:
    """Return the rule of a member: the strategy that it reports, otherwise that of similar members, otherwise that of the settings.

    Similar members count only for a member that did not answer, and only if all that report a strategy report the same one: members
    in the same language are other processes of the same program. A member that answered without a strategy has an unknown one.
    """
    names = {member.strategy for member in reported}
    is_similar = any(variant.language in {None, member.language} for member in reported)
    follows = not variant.has_answered and len(names) == 1 and is_similar
    name = variant.strategy or (next(iter(names)) if follows else None)
    is_configured = name is None and of_group is not None
    if name is None and of_group is not None:
        name = of_group.strategy
    if name is None:
        return _MemberRule(variant, None, "settings_missing")
    # A member that follows Java members has Java's rules.
    rule_member = variant._replace(strategy=name) if follows else variant
    rule = rule_of(rule_member, name, configured.of_member(variant, of_group))
    return _MemberRule(variant, name, rule, is_configured)


def _plan_of_rules(name: str, source: str, rules: Mapping[int, _MemberRule]) -> _Plan:
    """Return a plan in which each member follows its own rule; members with the same rule are one share."""
    codes_by_key: dict[tuple[object, ...], set[int]] = {}
    strategies: dict[tuple[object, ...], Strategy] = {}
    for code, rule in rules.items():
        if isinstance(rule.rule, Strategy):
            codes_by_key.setdefault(rule.key, set()).add(code)
            strategies[rule.key] = rule.rule
    if not codes_by_key:
        return _Plan(
            name, source, (), "member_strategy_unknown" if name == MIXED else _reason(rules.values())
        )
    shares = tuple(
        _Share(
            # A rule of all members is computed without selecting members.
            None if len(codes) == len(rules) else frozenset(codes),
            strategies[key],
            is_by_byte=key[1] in _LANGUAGES_BY_BYTE,
        )
        for key, codes in codes_by_key.items()
    )
    is_whole = all(isinstance(rule.rule, Strategy) for rule in rules.values())
    unowned_reason = "mixed_strategies" if name == MIXED else "not_assigned_by_strategy"
    have_one_client = len({key[1:3] for key in codes_by_key}) == 1
    return _Plan(
        name,
        source,
        shares,
        unowned_reason if is_whole else "member_strategy_unknown",
        "mixed_parameters" if have_one_client else "mixed_clients",
    )


def _reason(rules: Iterable[_MemberRule]) -> str:
    """Return the reason why no member's rule is known; of several reasons, prefer the ones that settings can fix."""
    reasons = {rule.rule for rule in rules}
    return next(
        reason for reason in ("settings_missing", "release_unknown", "strategy_unknown") if reason in reasons
    )


_SAME_IN_EVERY_JAVA_VERSION: Final = frozenset({"AVG", "AVG_BY_CIRCLE"})
_LANGUAGES: Final = frozenset(language.value for language in Language)
_LANGUAGES_BY_BYTE: Final = _LANGUAGES - {DEFAULT_LANGUAGE}


def _own_plans(
    profile: Profile, plan: _Plan | None, variants: list[Variant], configured: StrategySettings
) -> list[_Plan]:
    """Return the plans of one profile beyond the common strategies: the effective one, and the configured one if it differs."""
    plans = [] if plan is None or plan.is_common else [plan]
    of_group = _settings_of(profile, configured)
    if of_group is not None and plan is not None and plan.strategy != of_group.strategy:
        name = of_group.strategy
        rules = {
            code: _MemberRule(
                variants[code],
                name,
                rule_of(variants[code], name, configured.of_member(variants[code], of_group)),
            )
            for code in profile.variants
        }
        configured_plan = _plan_of_rules(name, "configured", rules)
        if configured_plan.shares:
            plans.append(configured_plan)
    return plans


def _common_blocks(
    rows: ArrowSubscriptions,
    hypothetical: Mapping[str, Strategy],
    plans: list[_Plan | None],
    profile_plans: list[list[_Plan]],
) -> Iterable[_Block]:
    """Yield the blocks of the strategies that are computed for every group, whatever its own strategy is."""
    is_shared = rows.states() != "broadcasting"
    for name, strategy in hypothetical.items():
        # A profile's own plan with this name replaces the common computation.
        has_own = np.array(
            [any(plan.strategy == name for plan in own_plans) for own_plans in profile_plans], dtype=bool
        )
        is_observed = np.array(
            [plan is not None and plan.is_common and plan.strategy == name for plan in plans], dtype=bool
        )
        chosen = np.flatnonzero(is_shared & ~has_own[rows.profile_codes])
        part = rows.take(chosen)
        effective = is_observed[part.profile_codes]
        plan = _Plan(name, "hypothetical", (_Share(None, strategy),))
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


def _slot_owners(part: ArrowSubscriptions, plan: _Plan, strategy: SlotStrategy) -> pa.ListArray:
    """Return the owner of each queue, in order, under a strategy that assigns a queue to at most one member."""
    batch = part.batch
    slots = strategy.slots(batch)
    is_owned = slots.slot >= 0
    if is_owned.all() and part.is_subscribed.all():
        return _lists(
            batch.queue_offsets, _reported_slots(part, owner_of_each(batch.queue_counts()), slots.slot)
        )
    unowned_codes = _unowned_codes_of(plan, part, slots.refused)
    queue_rows = np.flatnonzero(is_owned)
    return _owners(part, queue_rows, slots.slot[queue_rows].astype(np.int64), unowned_codes)[0]


def _shared_block(
    profile_rows: IntArray, part: ArrowSubscriptions, plan: _Plan, *, is_effective: bool
) -> _Block:
    """Build the block in which each member owns the queues that its rule assigns to it."""
    owners, queues = _shared_owners(part, plan)
    return _block(profile_rows, plan, owners, queues, is_effective=is_effective)


def _without_route(part: ArrowSubscriptions, plan: _Plan) -> dict[int, dict[_Queue, list[int]]]:
    """Return the queues that no route has and that members take because their CONFIG lists name them: row -> queue -> member slots."""
    result: dict[int, dict[_Queue, list[int]]] = {}
    for share in plan.shares:
        if isinstance(share.strategy, ConfigByClient):
            for row, slot, broker_name, queue_id in share.strategy.queues_without_route(part.batch):
                member = part.batch.client_offsets[row] + slot
                follows = share.codes is None or part.variant_codes[member] in share.codes
                if follows and part.is_subscribed[member]:
                    result.setdefault(row, {}).setdefault((broker_name, queue_id), []).append(slot)
    return result


def _with_queues(
    block: _Block, part: ArrowSubscriptions, extra: dict[int, dict[_Queue, list[int]]]
) -> _Block:
    """Return the block with extra queues appended to its rows (row -> queue -> member slots)."""
    if not extra:
        return block
    counts = part.batch.queue_counts().tolist()
    owners = block.owners.to_pylist()
    queues = [list(range(count)) for count in counts] if block.queues is None else block.queues.to_pylist()
    for row, slots_of in extra.items():
        for number, slots in enumerate(slots_of.values()):
            positions = part.given_slots[part.batch.client_offsets[row] + np.array(slots)].tolist()
            owners[row] += positions
            queues[row] += [counts[row] + number] * len(positions)
    return replace(block, owners=pa.array(owners, _OWNERS), queues=pa.array(queues, _OWNERS))


def _shared_owners(part: ArrowSubscriptions, plan: _Plan) -> tuple[pa.ListArray, pa.ListArray | None]:
    queue_rows, slots = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    refused: dict[int, str] = {}
    for share in plan.shares:
        rows, taken_slots, refused_by_share = _assigned_slots(part, share)
        refused.update(refused_by_share)
        queue_rows.append(rows)
        slots.append(taken_slots)
    unowned_codes = _unowned_codes_of(plan, part, refused)
    return _owners(part, np.concatenate(queue_rows), np.concatenate(slots), unowned_codes)


def _assigned_slots(part: ArrowSubscriptions, share: _Share) -> tuple[IntArray, IntArray, Mapping[int, str]]:
    """Return the assignments of a share: queue rows among all Q queues, a member slot for each, and refused subscriptions with the reason."""
    batch = part.batch
    if not share.is_by_byte or part.byte_order is None:
        taken = share.strategy.allocate_batch(batch)
        rows = batch.queue_offsets[taken.subscription_index] + taken.queue_index
        members = batch.client_offsets[taken.subscription_index] + taken.client_index
    else:
        by_byte, queue_rows, member_rows = part.byte_order.sorted_batch(batch)
        taken = share.strategy.allocate_batch(by_byte)
        rows = queue_rows[batch.queue_offsets[taken.subscription_index] + taken.queue_index]
        members = member_rows[batch.client_offsets[taken.subscription_index] + taken.client_index]
    slots = members - batch.client_offsets[taken.subscription_index]
    if share.codes is not None:
        follows = np.isin(part.variant_codes[members], list(share.codes))
        rows, slots = rows[follows], slots[follows]
    return rows, slots, taken.refused


def _covered_queues(part: ArrowSubscriptions, share: _Share) -> BoolArray:
    """Return whether the rule of a share covers each queue, as bool[Q]."""
    if not share.is_by_byte or part.byte_order is None:
        return share.strategy.covered_queues(part.batch)
    by_byte, queue_rows, _ = part.byte_order.sorted_batch(part.batch)
    result = np.zeros(len(queue_rows), dtype=np.bool_)
    result[queue_rows] = share.strategy.covered_queues(by_byte)
    return result


def _broadcasting_block(profile_rows: IntArray, part: ArrowSubscriptions) -> _Block:
    """Build the block in which every subscribed member reads every queue of the topic."""
    batch = part.batch
    members = np.flatnonzero(_is_first_slot(part) & part.is_subscribed)
    member_rows = owner_of_each(batch.client_counts())[members]
    counts = batch.queue_counts()[member_rows]
    queue_rows = np.repeat(batch.queue_offsets[member_rows], counts) + position_in_run(counts)
    slots = np.repeat(members - batch.client_offsets[member_rows], counts)
    plan = _Plan(BROADCASTING, "observed")
    owners, queues = _owners(part, queue_rows, slots, _unowned_codes(plan, part))
    return _block(profile_rows, plan, owners, queues, is_effective=True)


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
    part: ArrowSubscriptions, queue_rows: IntArray, slots: IntArray, unowned_codes: IntArray
) -> tuple[pa.ListArray, pa.ListArray | None]:
    """Return the lists `owners` and `queues` of a block.

    Args:
        part: The subscriptions.
        queue_rows: int64[P], the queue of each assignment as a row among all Q queues, in any order.
        slots: int64[P], the member slot of each assignment; no assignment occurs twice.
        unowned_codes: int64[Q], the reason code of each queue if it has no assignment.
    """
    batch = part.batch
    subscription = owner_of_each(batch.queue_counts())
    members = batch.client_offsets[subscription[queue_rows]] + slots
    is_subscribed = part.is_subscribed[members] if len(members) else np.empty(0, dtype=bool)
    if not is_subscribed.all():
        unowned_codes = unowned_codes.copy()
        unowned_codes[queue_rows[~is_subscribed]] = reason_code("owner_not_subscribed")
        queue_rows, slots = queue_rows[is_subscribed], slots[is_subscribed]
    owner_counts = np.bincount(queue_rows, minlength=len(batch.queue_id))
    row_counts = np.maximum(owner_counts, 1)
    starts = offsets(row_counts)
    owners = np.repeat(unowned_codes, row_counts).astype(np.int32)
    positions = _reported_slots(part, subscription[queue_rows], slots)
    if len(owners) == len(unowned_codes):
        owners[queue_rows] = positions
        return _lists(batch.queue_offsets, owners), None
    order = np.lexsort((slots, queue_rows))
    owner_rows = np.repeat(starts[:-1], owner_counts) + position_in_run(owner_counts)
    owners[owner_rows] = positions[order]
    list_offsets = starts[batch.queue_offsets]
    queues = np.repeat(position_in_run(batch.queue_counts()), row_counts)
    return _lists(list_offsets, owners), _lists(list_offsets, queues.astype(np.int32))


def _reported_slots(
    part: ArrowSubscriptions, subscription: IntArray, slots: IntArray | SlotArray
) -> SlotArray:
    """Return the positions of member slots in the input's lists of members, as int32."""
    result: SlotArray = part.given_slots[part.batch.client_offsets[subscription] + slots]
    return result


def _unowned_codes_of(plan: _Plan, part: ArrowSubscriptions, refused: Mapping[int, str]) -> IntArray:
    """Return the reason codes of unowned queues, as int64[Q]; the group's state and a strategy that throws take precedence."""
    states = part.states()
    row_codes = np.zeros(len(part), dtype=np.int64)
    row_codes[states == "offline"] = reason_code("group_offline")
    row_codes[states == "unknown"] = reason_code("members_unknown")
    row_codes[list(refused)] = reason_code("strategy_failed")
    queue_codes = np.repeat(row_codes, part.batch.queue_counts())
    return np.where(queue_codes < 0, queue_codes, _unowned_codes(plan, part))


def _unowned_codes(plan: _Plan, part: ArrowSubscriptions) -> IntArray:
    """Return the reason code of each queue if no member takes it, as int64[Q]."""
    batch = part.batch
    if plan.unowned_reason != "not_assigned_by_strategy":
        return np.full(len(batch.queue_id), reason_code(plan.unowned_reason), dtype=np.int64)
    reason_by_strategy = {"CONFIG": "not_in_config_list", "MACHINE_ROOM": "room_without_clients"}
    reasons = np.full(
        len(batch.queue_id),
        reason_code(reason_by_strategy.get(plan.strategy, plan.unowned_reason)),
        dtype=np.int64,
    )
    # A queue that a rule covers has another reason than the one above. Either members' rules differ by language, version or
    # parameters, or the queue belongs to a later slot of a duplicate id, because all processes with the id take the first slot's queues.
    row = np.repeat(np.arange(len(part.profile_codes)), batch.client_counts())
    has_shared_ids = np.isin(np.arange(len(part.profile_codes)), row[~_is_first_slot(part)])
    is_covered = np.zeros(len(batch.queue_id), dtype=np.bool_)
    is_promised = is_covered.copy()
    for share in plan.shares:
        covered = _covered_queues(part, share)
        is_covered |= covered
        is_promised |= covered & (share.strategy.promise.min_owner_count > 0)
    reasons[is_covered] = reason_code("not_assigned_by_strategy")
    if len(plan.shares) > 1:
        # If one member serves a room and another does not, the rule covers its queues but guarantees no owner.
        is_between = is_covered if plan.between_shares == "mixed_parameters" else is_promised
        reasons[is_between] = reason_code(plan.between_shares)
    reasons[is_covered & np.repeat(has_shared_ids, batch.queue_counts())] = reason_code("duplicate_client_id")
    return reasons


def _is_first_slot(part: ArrowSubscriptions) -> BoolArray:
    """Return whether each slot is the first of its client id in its subscription, as bool[M]."""
    result: BoolArray = first_slots(part.batch) == position_in_run(part.batch.client_counts())
    return result


def _lists(list_offsets: IntArray, values: SlotArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(list_offsets, pa.int32()), pa.array(values, pa.int32()))


def _by_row(blocks: list[_Block], row_count: int) -> pa.ListArray:
    """Return the blocks regrouped by row, as R lists of structs."""
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
