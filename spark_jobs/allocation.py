"""Every strategy over a whole Arrow batch of subscriptions: arrays of counts and names in, arrays of integers out.

What belongs here: which strategies are computed for which group and which of them is effective. What does not: any
rule of a strategy (`strategies`), any Spark plan (`queue_assignment`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from settings import (
    ConfigStrategy,
    ConsistentHashStrategy,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    PlainStrategy,
)
from strategies import (
    Client,
    MessageQueue,
    SlotStrategy,
    Strategy,
    SubscriptionBatch,
    UnknownNameError,
    get_strategy,
)
from strategies.average import Average
from strategies.batch import first_slots, position_in_run
from strategies.circle import Circle
from strategies.consistent_hash import DEFAULT_VIRTUAL_NODE_COUNT, ConsistentHash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from settings import GroupSettings

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
    "settings_missing",
    "strategy_unknown",
    "member_strategy_unknown",
    "strategy_failed",
    "left_out_by_strategy",
    "shared_by_pop",
)
"""Why nobody owns a queue. In arrays of owners, reason `i` is the owner `-1 - i`."""

UNTOLD_REASONS: Final = ("members_unknown", "settings_missing", "strategy_unknown", "shared_by_pop")
"""Reasons that do not mean that nobody reads the queue, but that one owner cannot be named."""


def reason_code(reason: str) -> int:
    """The owner that stands for nobody, for this reason."""
    return -1 - REASONS.index(reason)


HYPOTHETICAL: Final[tuple[SlotStrategy, ...]] = (
    Average(Client.parse()),
    Circle(Client.parse()),
    ConsistentHash(Client.parse(), virtual_node_count=DEFAULT_VIRTUAL_NODE_COUNT),
)
"""The strategies that are computed for every group, with RocketMQ's default parameters."""

_COMMON_NAMES: Final = frozenset(strategy.name for strategy in HYPOTHETICAL)

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

RESULT_TYPE: Final = pa.list_(
    pa.struct(
        [
            ("strategy", pa.string()),
            ("strategy_source", pa.string()),
            ("is_effective", pa.bool_()),
            ("owners", pa.list_(pa.int32())),
            ("queues", pa.list_(pa.int32())),
        ]
    )
)
RESULT_DDL: Final = "array<struct<strategy:string,strategy_source:string,is_effective:boolean,owners:array<int>,queues:array<int>>>"


@dataclass(frozen=True, slots=True)
class _Variant:
    """What a member reports of itself; None where it does not say."""

    strategy: str
    language: str | None
    version: str | None

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """Orders variants, whatever is null."""
        return self.strategy, self.language or "", self.version or ""


@dataclass(frozen=True, slots=True)
class _Profile:
    """What decides how a subscription is shared: rows with one profile are planned once.

    Attributes:
        state: the group's state.
        configured_group: the group, where the settings say something of it.
        variants: the codes of the members' variants; -1 for members that could not be asked.
    """

    state: str
    configured_group: str | None
    variants: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the members of a profile really share.

    Attributes:
        strategy: the name to show.
        source: `observed` or `configured`.
        shares: for sets of variant codes, the rule that those members follow; empty where the common computation of
            `strategy` already is the answer.
        nobody: the reason where no member takes a queue.
    """

    strategy: str
    source: str
    shares: tuple[tuple[frozenset[int], Strategy], ...] = ()
    nobody: str = "left_out_by_strategy"
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class _Rows:
    """The Arrow batch as arrays: R subscriptions with Q queues and M member slots in all.

    Attributes:
        batch: queues and member slots of all rows, laid end to end.
        profiles: the distinct profiles.
        profile_codes: int64[R]: each row's profile.
        variants: the distinct variants.
        variant_codes: int64[M]: each member slot's variant, -1 for a member that could not be asked.
        is_subscribed: bool[M].
    """

    batch: SubscriptionBatch
    profiles: list[_Profile]
    profile_codes: IntArray
    variants: list[_Variant]
    variant_codes: IntArray
    is_subscribed: BoolArray

    def take(self, rows: IntArray) -> _Rows:
        """The same for some of the rows, in the order given."""
        queue_rows, queue_offsets = _ranges(self.batch.queue_offsets, rows)
        member_rows, client_offsets = _ranges(self.batch.client_offsets, rows)
        return _Rows(
            batch=replace(
                self.batch,
                queue_offsets=queue_offsets,
                client_offsets=client_offsets,
                topic=np.asarray(self.batch.topic, dtype=np.object_)[rows],
                broker_name_codes=self.batch.broker_name_codes[queue_rows],
                queue_id=self.batch.queue_id[queue_rows],
                client_id_codes=self.batch.client_id_codes[member_rows],
            ),
            profiles=self.profiles,
            profile_codes=self.profile_codes[rows],
            variants=self.variants,
            variant_codes=self.variant_codes[member_rows],
            is_subscribed=self.is_subscribed[member_rows],
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """One strategy's answer for N rows.

    Attributes:
        rows: int64[N]: positions in the Arrow batch.
        strategy: the strategy's name.
        sources: N times `observed`, `configured` or `hypothetical`.
        is_effective: bool[N].
        owners: N lists of member slots or reason codes.
        queues: N lists of queue positions beside `owners`; None where `owners` has one element per queue, in order.
    """

    rows: IntArray
    strategy: str
    sources: list[str]
    is_effective: BoolArray
    owners: pa.ListArray
    queues: pa.ListArray | None = None


def allocate_batch(
    settings: Mapping[str, GroupSettings],
    groups: pa.Array,
    topics: pa.Array,
    states: pa.Array,
    brokers: pa.Array,
    member_ids: pa.Array,
    variants: pa.Array,
) -> pa.Array:
    """Every strategy for every row of an Arrow batch.

    Args:
        settings: what the settings file says of groups.
        groups: R consumer groups.
        topics: R topics.
        states: R group states, see `subscriptions.members`.
        brokers: R lists of struct<broker_name, queue_count> in Java order.
        member_ids: R lists of client ids in Java order, duplicates kept; null where unknown.
        variants: R lists beside member_ids of struct<strategy, client_language, client_version, is_subscribed>.

    Returns:
        R lists of `RESULT_TYPE`.
    """
    rows = _rows(settings, groups, topics, states, brokers, member_ids, variants)
    configured = [settings.get(profile.configured_group or "") for profile in rows.profiles]
    plans = [
        _plan(profile, rows.variants, of_group)
        for profile, of_group in zip(rows.profiles, configured, strict=True)
    ]
    blocks = [*_common_blocks(rows, plans)]
    for code, (profile, plan, of_group) in enumerate(zip(rows.profiles, plans, configured, strict=True)):
        of_profile = np.flatnonzero(rows.profile_codes == code)
        blocks += _profile_blocks(rows, of_profile, profile, plan, of_group)
    return _by_row(blocks, len(groups))


def _rows(
    settings: Mapping[str, GroupSettings],
    groups: pa.Array,
    topics: pa.Array,
    states: pa.Array,
    brokers: pa.Array,
    member_ids: pa.Array,
    variants: pa.Array,
) -> _Rows:
    broker_offsets, broker = _flat(brokers)
    queue_counts = broker.field("queue_count").to_numpy(zero_copy_only=False).astype(np.int64)
    broker_codes, broker_names = _codes(broker.field("broker_name"))
    queues_before = np.concatenate([[0], np.cumsum(queue_counts)])
    member_offsets, members = _flat(member_ids)
    client_codes, client_ids = _codes(members)
    _, variant = _flat(variants)
    texts = pc.binary_join_element_wise(
        variant.field("strategy"),
        pc.fill_null(variant.field("client_language"), ""),
        pc.fill_null(variant.field("client_version"), ""),
        "\0",
    )
    variant_codes, variant_texts = _codes(texts)
    parts = [str(text).split("\0") for text in variant_texts]
    profiles, profile_codes = _profiles(settings, groups, states, member_offsets, variant_codes)
    return _Rows(
        batch=SubscriptionBatch(
            queue_offsets=queues_before[broker_offsets],
            client_offsets=member_offsets,
            topic=topics.to_numpy(zero_copy_only=False),
            broker_name_codes=np.repeat(broker_codes, queue_counts).astype(np.int32),
            broker_names=broker_names,
            queue_id=(np.arange(queues_before[-1]) - np.repeat(queues_before[:-1], queue_counts)).astype(
                np.int32
            ),
            client_id_codes=client_codes.astype(np.int32),
            client_ids=client_ids,
        ),
        profiles=profiles,
        profile_codes=profile_codes,
        variants=[
            _Variant(strategy, language or None, version or None) for strategy, language, version in parts
        ],
        variant_codes=variant_codes,
        is_subscribed=variant.field("is_subscribed").to_numpy(zero_copy_only=False).astype(np.bool_),
    )


def _profiles(
    settings: Mapping[str, GroupSettings],
    groups: pa.Array,
    states: pa.Array,
    member_offsets: IntArray,
    variant_codes: IntArray,
) -> tuple[list[_Profile], IntArray]:
    """The distinct profiles, and each row's. Python runs per row only where a row's members differ."""
    counts = np.diff(member_offsets)
    codes = variant_codes + 1
    has_members = counts > 0
    starts = member_offsets[:-1][has_members]
    least = np.zeros(len(counts), dtype=np.int64)
    most = np.zeros(len(counts), dtype=np.int64)
    if len(starts):
        least[has_members] = np.minimum.reduceat(codes, starts)
        most[has_members] = np.maximum.reduceat(codes, starts)
    state_codes, state_names = _codes(states)
    configured_groups = sorted(settings)
    group_codes = pc.fill_null(
        pc.index_in(groups, pa.array(configured_groups, pa.string())), len(configured_groups)
    ).to_numpy(zero_copy_only=False)
    known: dict[_Profile, int] = {}
    result = np.empty(len(counts), dtype=np.int64)
    keys = np.stack([state_codes, group_codes, least, most, has_members], axis=1)
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    for index, (state, group, low, high, any_member) in enumerate(distinct.tolist()):
        of_key = np.flatnonzero(inverse.ravel() == index)
        configured_group = configured_groups[group] if group < len(configured_groups) else None
        if low == high:
            found = frozenset([low - 1]) if any_member else frozenset()
            result[of_key] = known.setdefault(
                _Profile(state_names[state], configured_group, found), len(known)
            )
            continue
        for row in of_key.tolist():
            found = frozenset(variant_codes[member_offsets[row] : member_offsets[row + 1]].tolist())
            result[row] = known.setdefault(_Profile(state_names[state], configured_group, found), len(known))
    return list(known), result


def _plan(profile: _Profile, variants: list[_Variant], configured: GroupSettings | None) -> _Plan | None:
    """How the members of a profile share; None where nobody can say."""
    if profile.state != "online":
        return None
    # By name: a code only says where in the batch the variant was first met.
    reported = sorted(profile.variants - {-1}, key=lambda code: variants[code].sort_key)
    strategies = {variants[code].strategy for code in reported}
    if not reported:
        if configured is None:
            return None
        strategy = _strategy(_Variant(configured.strategy, None, None), configured)
        return _Plan(configured.strategy, "configured", ((profile.variants, strategy),) if strategy else ())
    built = {code: _strategy(variants[code], configured) for code in reported}
    if len(strategies) > 1:
        shares = tuple(
            (frozenset([code]), strategy) for code, strategy in built.items() if strategy is not None
        )
        is_whole = len(shares) == len(profile.variants)
        return _Plan(MIXED, "observed", shares, "mixed_strategies" if is_whole else "member_strategy_unknown")
    name = strategies.pop()
    if name == POP:
        return _Plan(POP, "observed", (), "shared_by_pop")
    if None in built.values():
        return _Plan(
            name,
            "observed",
            (),
            "settings_missing" if _lacks_settings(name, configured) else "strategy_unknown",
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
_TAKES_PARAMETERS: Final = frozenset({"CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"})


def _strategy(variant: _Variant, configured: GroupSettings | None) -> Strategy | None:
    """The strategy as a member has it; None where its parameters or its rule are not known."""
    if _lacks_settings(variant.strategy, configured):
        return None
    is_configured = configured is not None and configured.strategy == variant.strategy
    try:
        if isinstance(configured, ConfigStrategy) and is_configured:
            return _ConfiguredLists(variant, configured)
        parameters = _parameters(configured, variant) if is_configured and configured is not None else {}
        return _get(variant, variant.strategy, **parameters)
    except UnknownNameError:
        return None


def _lacks_settings(strategy: str, configured: GroupSettings | None) -> bool:
    """Whether the strategy has parameters that only the settings can tell, and they do not."""
    return strategy in _TAKES_PARAMETERS and (configured is None or configured.strategy != strategy)


def _get(variant: _Variant, name: str, **parameters: Any) -> Strategy:  # noqa: ANN401 - every strategy has its own
    who = {"client_language": variant.language, "client_version": variant.version}
    return get_strategy(name, **{key: value for key, value in who.items() if value is not None}, **parameters)


class _ConfiguredLists(Strategy):
    """CONFIG as a group has it: every client was constructed with a list of its own."""

    name = "CONFIG"

    def __init__(self, variant: _Variant, configured: ConfigStrategy) -> None:
        self._by_client = {
            client_id: _get(
                variant,
                "CONFIG",
                message_queues=[
                    MessageQueue(queues.topic, queues.broker_name, queue_id)
                    for queues in listed
                    for queue_id in queues.queue_ids
                ],
            )
            for client_id, listed in configured.clients.items()
        }

    def allocate(
        self,
        consumer_group: str | None,
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str] | None,
    ) -> list[MessageQueue] | None:
        """The client's own list; nothing for a client that the settings do not name."""
        own = self._by_client.get(current_cid or "")
        return None if own is None else own.allocate(consumer_group, current_cid, mq_all, cid_all)

    def covered_queues(self, batch: SubscriptionBatch) -> BoolArray:
        """None: a list promises no queue an owner."""
        return np.zeros(len(batch.queue_id), dtype=np.bool_)


def _parameters(configured: GroupSettings, variant: _Variant) -> dict[str, Any]:
    """The settings of a group as `get_strategy` takes them."""
    match configured:
        case ConsistentHashStrategy():
            return {"virtual_node_count": configured.virtual_node_count}
        case MachineRoomStrategy():
            return {"consumer_idcs": set(configured.consumer_idcs)}
        case MachineRoomNearbyStrategy():
            return {
                "inner": _get(variant, configured.inner.strategy, **_parameters(configured.inner, variant)),
                "broker_room": lambda queue: configured.broker_room.room(queue.broker_name),
                "consumer_room": configured.consumer_room.room,
            }
        case PlainStrategy() | ConfigStrategy():
            return {}


def _common_blocks(rows: _Rows, plans: list[_Plan | None]) -> Iterable[_Block]:
    """The strategies that are computed for every group, whichever it uses."""
    states = np.array([profile.state for profile in rows.profiles], dtype=np.object_)[rows.profile_codes]
    for strategy in HYPOTHETICAL:
        name = strategy.name
        # A plan that shows this strategy's name by rules of its own takes the place of the common computation.
        has_own = np.array(
            [plan is not None and plan.strategy == name and not plan.is_common for plan in plans], dtype=bool
        )
        is_effective = np.array([plan is not None and plan.strategy == name for plan in plans], dtype=bool)
        chosen = np.flatnonzero((states != "broadcasting") & ~has_own[rows.profile_codes])
        part = rows.take(chosen)
        effective = is_effective[part.profile_codes]
        yield _Block(
            rows=chosen,
            strategy=name,
            sources=np.where(effective, "observed", "hypothetical").tolist(),
            is_effective=effective,
            owners=_lists(part.batch.queue_offsets, _dense_owners(part, strategy)),
        )


def _dense_owners(part: _Rows, strategy: SlotStrategy) -> SlotArray:
    """int32[Q]: the owner of each queue, or the code of the reason why nobody owns it."""
    batch = part.batch
    owners = strategy.owner_slots(batch)
    counts = batch.queue_counts()
    states = np.array([profile.state for profile in part.profiles], dtype=np.object_)[part.profile_codes]
    nobody = np.select(
        [states == "offline", states == "unknown"],
        [reason_code("group_offline"), reason_code("members_unknown")],
        default=reason_code("duplicate_client_id"),
    ).astype(np.int32)
    owners = np.where(owners < 0, np.repeat(nobody, counts), owners)
    if not part.is_subscribed.all():
        slots = np.repeat(batch.client_offsets[:-1], counts) + np.maximum(owners, 0)
        unsubscribed = (owners >= 0) & ~part.is_subscribed[np.minimum(slots, len(part.is_subscribed) - 1)]
        owners = np.where(unsubscribed, reason_code("owner_not_subscribed"), owners)
    return owners.astype(np.int32)


def _profile_blocks(
    rows: _Rows, of_profile: IntArray, profile: _Profile, plan: _Plan | None, configured: GroupSettings | None
) -> Iterable[_Block]:
    """What only the rows of one profile have: their effective strategy, or their configured one."""
    part = rows.take(of_profile)
    if profile.state == "broadcasting":
        yield _broadcasting_block(of_profile, part)
    elif plan is not None and not plan.is_common:
        yield _shared_block(of_profile, part, plan, is_effective=True)
    if (
        configured is not None
        and profile.state == "online"
        and (plan is None or plan.strategy != configured.strategy)
    ):
        strategy = _strategy(_Variant(configured.strategy, None, None), configured)
        if configured.strategy not in _COMMON_NAMES and strategy is not None:
            shares = ((profile.variants, strategy),)
            yield _shared_block(
                of_profile, part, _Plan(configured.strategy, "configured", shares), is_effective=False
            )


def _broadcasting_block(of_profile: IntArray, part: _Rows) -> _Block:
    """Every member that subscribes to the topic reads every queue of it."""
    batch = part.batch
    is_first = _is_first_slot(part) & part.is_subscribed
    member_rows = np.flatnonzero(is_first)
    of_row = np.repeat(np.arange(len(of_profile)), batch.client_counts())[member_rows]
    slots = member_rows - batch.client_offsets[of_row]
    counts = batch.queue_counts()[of_row]
    queue_rows = np.repeat(of_row, counts)
    queues = position_in_run(counts)
    pairs = np.stack([queue_rows, queues, np.repeat(slots, counts)])
    plan = _Plan(BROADCASTING, "observed")
    return _pair_block(of_profile, part, plan, pairs, _nobody(plan, part), is_effective=True)


def _shared_block(of_profile: IntArray, part: _Rows, plan: _Plan, *, is_effective: bool) -> _Block:
    """Each member takes what its own rule gives it."""
    pairs = [np.empty((3, 0), dtype=np.int64)]
    nobody = _nobody(plan, part)
    queue_rows = np.repeat(np.arange(len(of_profile)), part.batch.queue_counts())
    for codes, strategy in plan.shares:
        owners = strategy.allocate_batch(part.batch)
        nobody[np.isin(queue_rows, list(owners.refused))] = reason_code("strategy_failed")
        member_rows = part.batch.client_offsets[owners.subscription_index] + owners.client_index
        follows = np.isin(part.variant_codes[member_rows], list(codes))
        pairs.append(
            np.stack([owners.subscription_index, owners.queue_index, owners.client_index])[:, follows]
        )
    return _pair_block(
        of_profile,
        part,
        plan,
        np.concatenate(pairs, axis=1),
        nobody,
        is_effective=is_effective,
    )


def _pair_block(
    of_profile: IntArray, part: _Rows, plan: _Plan, pairs: IntArray, nobody: IntArray, *, is_effective: bool
) -> _Block:
    """A block from (row, queue, slot) pairs; queues that no pair names are nobody's, for their reason (int64[Q])."""
    batch = part.batch
    member_rows = batch.client_offsets[pairs[0]] + pairs[2]
    is_subscribed = part.is_subscribed[member_rows] if len(member_rows) else np.empty(0, dtype=bool)
    queue_rows = batch.queue_offsets[pairs[0]] + pairs[1]
    nobody = nobody.copy()
    nobody[queue_rows[~is_subscribed]] = reason_code("owner_not_subscribed")
    is_owned = np.zeros(len(batch.queue_id), dtype=bool)
    is_owned[queue_rows[is_subscribed]] = True
    unowned = np.flatnonzero(~is_owned)
    queues = np.concatenate([queue_rows[is_subscribed], unowned])
    owners = np.concatenate([pairs[2][is_subscribed], nobody[unowned]])
    order = np.lexsort([owners, queues])
    queues, owners = queues[order], owners[order]
    offsets = np.searchsorted(queues, batch.queue_offsets)
    starts = np.repeat(batch.queue_offsets[:-1], np.diff(offsets))
    return _Block(
        rows=of_profile,
        strategy=plan.strategy,
        sources=[plan.source] * len(of_profile),
        is_effective=np.full(len(of_profile), is_effective),
        owners=_lists(offsets, owners.astype(np.int32)),
        queues=_lists(offsets, (queues - starts).astype(np.int32)),
    )


def _nobody(plan: _Plan, part: _Rows) -> IntArray:
    """int64[Q]: the code of the reason that each queue has where no member takes it."""
    batch = part.batch
    if plan.nobody != "left_out_by_strategy":
        return np.full(len(batch.queue_id), reason_code(plan.nobody), dtype=np.int64)
    left_out = {"CONFIG": "not_in_configured_list", "MACHINE_ROOM": "room_without_consumers"}
    reasons = np.full(
        len(batch.queue_id), reason_code(left_out.get(plan.strategy, plan.nobody)), dtype=np.int64
    )
    # Where the strategy covers a queue, only a twin's share is left: both twins take the first one's.
    row = np.repeat(np.arange(len(part.profile_codes)), batch.client_counts())
    has_twins = np.isin(np.arange(len(part.profile_codes)), row[~_is_first_slot(part)])
    is_covered = np.zeros(len(batch.queue_id), dtype=bool)
    for _, strategy in plan.shares:
        is_covered |= strategy.covered_queues(batch)
    reasons[is_covered & np.repeat(has_twins, batch.queue_counts())] = reason_code("duplicate_client_id")
    return reasons


def _is_first_slot(part: _Rows) -> BoolArray:
    """bool[M]: whether the slot is the first of its client id in its subscription."""
    result: BoolArray = first_slots(part.batch) == position_in_run(part.batch.client_counts())
    return result


def _ranges(offsets: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The positions of some runs laid end to end, and the offsets of those runs in the result."""
    counts = np.diff(offsets)[rows]
    new_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.arange(new_offsets[-1]) + np.repeat(offsets[:-1][rows] - new_offsets[:-1], counts), new_offsets


def _flat(lists: pa.Array) -> tuple[IntArray, pa.Array]:
    """The offsets (int64[N + 1], from 0) and the values of a list array; a null list counts as empty."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), pc.list_flatten(lists)


def _codes(names: pa.Array) -> tuple[IntArray, npt.NDArray[np.object_]]:
    """Each name's position among the distinct names (-1 for null), and the distinct names."""
    encoded = names.dictionary_encode()
    return (
        pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64),
        encoded.dictionary.to_numpy(zero_copy_only=False),
    )


def _lists(offsets: IntArray, values: SlotArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def _by_row(blocks: list[_Block], row_count: int) -> pa.Array:
    """The blocks' answers, row by row."""
    rows = np.concatenate([block.rows for block in blocks])
    nothing = pa.array([None], pa.list_(pa.int32()))
    structs = pa.StructArray.from_arrays(
        [
            pa.array([block.strategy for block in blocks for _ in block.rows], pa.string()),
            pa.array([source for block in blocks for source in block.sources], pa.string()),
            pa.array(np.concatenate([block.is_effective for block in blocks]), pa.bool_()),
            pa.concat_arrays([block.owners for block in blocks]),
            pa.concat_arrays(
                [
                    block.queues
                    if block.queues is not None
                    else nothing.take(pa.array(np.zeros(len(block.rows), np.int64)))
                    for block in blocks
                ]
            ),
        ],
        fields=list(RESULT_TYPE.value_type),
    )
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=row_count))])
    ordered = structs.take(pa.array(np.argsort(rows, kind="stable")))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ordered).cast(RESULT_TYPE)
