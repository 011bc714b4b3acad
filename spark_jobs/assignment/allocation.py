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
"""Stands for a strategy where every member reads every queue."""

MIXED: Final = "MIXED"
"""Stands for a strategy where each member follows the one that it reports."""

POP: Final = "POP"
"""Stands for a strategy where the broker shares each queue among members that pop; no member owns one."""

SERVER_OFF: Final = "server_off"
"""Members leave the division to brokers with `serverLoadBalancerEnable=false`: each that asks is given every queue."""

REASONS: Final = (
    "group_offline",
    "members_unknown",
    "duplicate_client_id",
    "owner_not_subscribed",
    "room_without_clients",
    "not_in_config_list",
    "mixed_strategies",
    "mixed_clients",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "strategy_failed",
    "not_assigned_by_strategy",
    "pop_mode",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    SERVER_OFF,
    "strategy_unknown_to_broker",
    "release_unknown",
    "mixed_parameters",
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
"""Those of `division_reason` of `subscriptions.subscriptions`: how members fetch, and not their strategy, leaves the owner open."""

UNDETERMINED_REASONS: Final = (
    "members_unknown",
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "release_unknown",
    *DIVISION_REASONS,
)
"""Reasons for which one owner cannot be named, although the queue may be consumed.

Where one queue of a topic has one of them, what is known of the other queues is no measure of how evenly they are shared.
"""


def reason_code(reason: str) -> int:
    """Return the code in arrays of owners for a queue without an owner, by its reason."""
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

NOT_IN_ROUTE: Final = "queue_not_in_route"
"""The reason beside the owner of a queue that its list of CONFIG names and no route has."""

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
    """A rule and the members that divide by it.

    Attributes:
        codes: the codes of their variants; None for all members.
        strategy: the rule.
        is_by_byte: whether they sort names by byte and not as Java does.
    """

    codes: frozenset[int] | None
    strategy: Strategy
    is_by_byte: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the members of a profile really share.

    Attributes:
        strategy: the name to show.
        source: `observed` or `configured`.
        shares: the rules of those members whose rule is known.
        unowned_reason: Reason of a queue that no member takes.
        between_shares: the reason where members with different rules leave a queue to each other.
        is_common: whether the common computation of `strategy` already is the answer.
    """

    strategy: str
    source: str
    shares: tuple[_Share, ...] = ()
    unowned_reason: str = "not_assigned_by_strategy"
    between_shares: str = "mixed_clients"
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


def allocate_batch(configured: StrategySettings, subscriptions: pa.StructArray) -> pa.StructArray:
    """Apply every strategy to every row of an Arrow batch.

    Args:
        configured: what the settings say.
        subscriptions: R structs of cluster, consumer_group, topic; group_state and (it may be absent) division_reason, see
            `subscriptions.subscriptions`; broker_names
            and queue_counts, lists beside each other, in any order; member_ids, strategies, languages, versions,
            has_answered and is_subscribed, lists beside each other, in any order, an id once for each connection; null
            where unknown.

    Returns:
        R structs of `RESULT_TYPE`: for each queue, in Java's order, the position of its broker in broker_names and its id;
        behind them the queues without a route that lists of CONFIG name, whose brokers are the extra ones behind
        broker_names; for each strategy the owner of each queue, as a position in member_ids or `reason_code`, beside the
        position of the queue where that is not simply each queue once.
    """
    rows = ArrowSubscriptions.of(subscriptions, configured)
    plans = [_plan(profile, rows.variants, configured) for profile in rows.profiles]
    own = [
        _own_plans(profile, plan, rows.variants, configured)
        for profile, plan in zip(rows.profiles, plans, strict=True)
    ]
    blocks = [*_common_blocks(rows, configured.hypothetical, plans, own)]
    extra: dict[int, list[_Queue]] = {}
    for code, (profile, own_plans) in enumerate(zip(rows.profiles, own, strict=True)):
        if own_plans or profile.state == "broadcasting":
            of_profile = np.flatnonzero(rows.profile_codes == code)
            part = rows.take(of_profile)
            for plan in own_plans:
                block = _shared_block(of_profile, part, plan, is_effective=plan is plans[code])
                if block.is_effective.any():
                    without_route = _without_route(part, plan)
                    block = _with_queues(block, part, without_route)
                    extra |= {int(of_profile[row]): list(owners) for row, owners in without_route.items()}
                blocks.append(block)
            if profile.state == "broadcasting":
                blocks.append(_broadcasting_block(of_profile, part))
    broker_counts = pc.list_value_length(subscriptions.field("broker_names")).to_pylist()
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
    """How the members of one variant divide.

    Attributes:
        variant: theirs.
        name: their strategy's name; None where neither they nor the settings give one.
        rule: the strategy, or the reason why it is not known.
        is_configured: whether the name comes from the settings.
    """

    variant: Variant
    name: str | None
    rule: Strategy | str
    is_configured: bool = False

    @property
    def key(self) -> tuple[str | None, str | None, str | None, int]:
        """Return what members have in common that divide by one rule."""
        language = self.variant.language or DEFAULT_LANGUAGE
        version = None if has_one_rule(self.name or "", language) else self.variant.version
        return self.name, language, version, self.variant.member_settings


def _plan(profile: Profile, variants: list[Variant], configured: StrategySettings) -> _Plan | None:
    """Return how the members of a profile divide the queues; None if it cannot be determined."""
    if profile.state != "online":
        return None
    # By name: a code only says where in the batch the variant was first met.
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
    """Return how a member divides: by what it reports, else as the members like it report, else by the settings.

    If it could not be asked, the members like it are those in its language: they are other processes of the same
    program. A member that was asked and reports nothing has a strategy of unknown name.
    """
    names = {member.strategy for member in reported}
    is_like_them = any(variant.language in {None, member.language} for member in reported)
    follows = not variant.has_answered and len(names) == 1 and is_like_them
    name = variant.strategy or (next(iter(names)) if follows else None)
    is_configured = name is None and of_group is not None
    if name is None and of_group is not None:
        name = of_group.strategy
    if name is None:
        return _MemberRule(variant, None, "settings_missing")
    # Who follows Java members is one.
    rule_member = variant._replace(strategy=name) if follows else variant
    rule = rule_of(rule_member, name, configured.of_member(variant, of_group))
    return _MemberRule(variant, name, rule, is_configured)


def _plan_of_rules(name: str, source: str, rules: Mapping[int, _MemberRule]) -> _Plan:
    """Plan each member by its own rule, members with the same rule together."""
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
            # A rule that all members have is asked for all of them.
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
    """Return the reason why no member's rule is known: of several the one that the settings can remedy."""
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
    """Return the plans that only the rows of one profile have: the effective strategy, and beside it the configured one."""
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
        beside = _plan_of_rules(name, "configured", rules)
        if beside.shares:
            plans.append(beside)
    return plans


def _common_blocks(
    rows: ArrowSubscriptions,
    hypothetical: Mapping[str, Strategy],
    plans: list[_Plan | None],
    own: list[list[_Plan]],
) -> Iterable[_Block]:
    """Return the strategies that are computed for every group, whichever it uses."""
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
    """Return the owner of each queue, in order, by a strategy that gives a queue to one member at most."""
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
    of_profile: IntArray, part: ArrowSubscriptions, plan: _Plan, *, is_effective: bool
) -> _Block:
    """Build the block in which each member takes what its own rule gives it."""
    owners, queues = _shared_owners(part, plan)
    return _block(of_profile, plan, owners, queues, is_effective=is_effective)


def _without_route(part: ArrowSubscriptions, plan: _Plan) -> dict[int, dict[_Queue, list[int]]]:
    """Return the queues that no route has and members take all the same, as lists of CONFIG name them: by row, with the slots."""
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
    """Return the block with more queues behind those of its rows, and their owners."""
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
        rows, taken_slots, of_share = _assigned_slots(part, share)
        refused.update(of_share)
        queue_rows.append(rows)
        slots.append(taken_slots)
    unowned_codes = _unowned_codes_of(plan, part, refused)
    return _owners(part, np.concatenate(queue_rows), np.concatenate(slots), unowned_codes)


def _assigned_slots(part: ArrowSubscriptions, share: _Share) -> tuple[IntArray, IntArray, Mapping[int, str]]:
    """Return the rows among all Q queues that a share's members take, a member slot for each, and who is refused, and why."""
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
    """Return which queues the rule of a share is meant to cover, as bool[Q]."""
    if not share.is_by_byte or part.byte_order is None:
        return share.strategy.covered_queues(part.batch)
    by_byte, queue_rows, _ = part.byte_order.sorted_batch(part.batch)
    result = np.zeros(len(queue_rows), dtype=np.bool_)
    result[queue_rows] = share.strategy.covered_queues(by_byte)
    return result


def _broadcasting_block(of_profile: IntArray, part: ArrowSubscriptions) -> _Block:
    """Build the block in which every member that subscribes to the topic reads every queue of it."""
    batch = part.batch
    members = np.flatnonzero(_is_first_slot(part) & part.is_subscribed)
    of_row = owner_of_each(batch.client_counts())[members]
    counts = batch.queue_counts()[of_row]
    queue_rows = np.repeat(batch.queue_offsets[of_row], counts) + position_in_run(counts)
    slots = np.repeat(members - batch.client_offsets[of_row], counts)
    plan = _Plan(BROADCASTING, "observed")
    owners, queues = _owners(part, queue_rows, slots, _unowned_codes(plan, part))
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
    part: ArrowSubscriptions, queue_rows: IntArray, slots: IntArray, unowned_codes: IntArray
) -> tuple[pa.ListArray, pa.ListArray | None]:
    """Return the lists of a block, from pairs of a queue (its row among all Q) and a member slot, in any order, none twice.

    A queue that no pair names has no owner, for the reason whose code is in `unowned_codes` (int64[Q]).
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
    places = np.repeat(starts[:-1], owner_counts) + position_in_run(owner_counts)
    owners[places] = positions[order]
    list_offsets = starts[batch.queue_offsets]
    queues = np.repeat(position_in_run(batch.queue_counts()), row_counts)
    return _lists(list_offsets, owners), _lists(list_offsets, queues.astype(np.int32))


def _reported_slots(
    part: ArrowSubscriptions, subscription: IntArray, slots: IntArray | SlotArray
) -> SlotArray:
    """Return the positions, in the lists of members as they were given, of slots of subscriptions, as int32."""
    result: SlotArray = part.given_slots[part.batch.client_offsets[subscription] + slots]
    return result


def _unowned_codes_of(plan: _Plan, part: ArrowSubscriptions, refused: Mapping[int, str]) -> IntArray:
    """Return `_unowned_codes`, as int64[Q], unless the group's state or a strategy that throws takes precedence."""
    states = part.states()
    above = np.zeros(len(part), dtype=np.int64)
    above[states == "offline"] = reason_code("group_offline")
    above[states == "unknown"] = reason_code("members_unknown")
    above[list(refused)] = reason_code("strategy_failed")
    above = np.repeat(above, part.batch.queue_counts())
    return np.where(above < 0, above, _unowned_codes(plan, part))


def _unowned_codes(plan: _Plan, part: ArrowSubscriptions) -> IntArray:
    """Return the code of the reason that each queue has where no member takes it, as int64[Q]."""
    batch = part.batch
    if plan.unowned_reason != "not_assigned_by_strategy":
        return np.full(len(batch.queue_id), reason_code(plan.unowned_reason), dtype=np.int64)
    excluded_groups = {"CONFIG": "not_in_config_list", "MACHINE_ROOM": "room_without_clients"}
    reasons = np.full(
        len(batch.queue_id),
        reason_code(excluded_groups.get(plan.strategy, plan.unowned_reason)),
        dtype=np.int64,
    )
    # A queue that a rule covers and no member takes has another reason than the one above: members whose rules differ
    # by language, version or parameters left it to each other, or only the share of a duplicate id is left, as both processes take the
    # first one's.
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
        # Rooms that one member serves and another does not: the rule covers the queue without promising an owner.
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
    """Return the blocks' answers, row by row: R lists of structs."""
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
