"""Convert an Arrow batch of subscriptions to flat arrays, in the order in which clients see queues and members.

Belongs here: sorting, numbering names, and grouping rows that can be planned together. Does not belong here: the allocation
(`allocation`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.assignment.variant import Variant
from strategies import SubscriptionBatch, sort_client_ids
from strategies.batch import expand, offsets, owner_of_each, position_in_run

if TYPE_CHECKING:
    import numpy.typing as npt

    from spark_jobs.assignment.strategy_settings import StrategySettings

    IntArray = npt.NDArray[np.int64]
    SlotArray = npt.NDArray[np.int32]
    BoolArray = npt.NDArray[np.bool_]
    NameArray = npt.NDArray[np.object_]

_BITS_OF_WORD: Final = 63


@dataclass(frozen=True, slots=True)
class Profile:
    """The properties of a subscription that select the rules of its members; one plan serves all rows with the same profile.

    Attributes:
        state: State of the group.
        configured: Position of the group's settings in `StrategySettings.settings`; -1 for a group without settings.
        variants: Codes of the members' variants.
        division_reason: Why no owner can be named, whatever the strategies are; None if one can.
    """

    state: str
    configured: int
    variants: frozenset[int]
    division_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ArrowSubscriptions:
    """R subscriptions with a total of Q queues and M member slots, both in Java's order.

    Attributes:
        batch: Queues and member slots of all rows, concatenated.
        queue_brokers: int32[Q], position of each queue's broker in the row's input list.
        given_slots: int32[M], position of each member slot in the row's input list.
        profiles: The distinct profiles.
        profile_codes: int64[R], profile of each row.
        variants: The distinct variants.
        variant_codes: int64[M], variant of each member slot.
        is_subscribed: bool[M].
        byte_order: Order for clients that sort names by byte; None if it is the same as Java's.
    """

    batch: SubscriptionBatch
    queue_brokers: SlotArray
    given_slots: SlotArray
    profiles: list[Profile]
    profile_codes: IntArray
    variants: list[Variant]
    variant_codes: IntArray
    is_subscribed: BoolArray
    byte_order: ByteOrder | None

    @classmethod
    def of(cls, subscriptions: pa.StructArray, configured: StrategySettings) -> ArrowSubscriptions:
        """Build the arrays from a batch.

        Args:
            subscriptions: R structs, see `allocation.allocate_batch`.
            configured: The settings of the clusters.
        """
        broker_offsets, brokers = _flat(subscriptions.field("broker_names"))
        _, listed_counts = _flat(subscriptions.field("queue_counts"))
        broker_codes, broker_names = _codes(brokers)
        broker_order = _java_order(broker_offsets, broker_codes, broker_names)
        queue_counts = np.asarray(pc.fill_null(listed_counts, 0)).astype(np.int64)[broker_order]
        broker_positions = broker_order - np.repeat(broker_offsets[:-1], np.diff(broker_offsets))

        member_offsets, members = _flat(subscriptions.field("member_ids"))
        client_codes, client_ids = _codes(members)
        member_order = _java_order(member_offsets, client_codes, client_ids)
        variant_codes, variants = _variants(subscriptions, configured, member_offsets)
        profiles, profile_codes = _profiles(subscriptions, configured, member_offsets, variant_codes)
        _, is_subscribed = _flat(subscriptions.field("is_subscribed"))
        return cls(
            batch=SubscriptionBatch(
                queue_offsets=offsets(queue_counts)[broker_offsets],
                client_offsets=member_offsets,
                topic=subscriptions.field("topic").to_numpy(zero_copy_only=False),
                broker_name_codes=np.repeat(broker_codes[broker_order], queue_counts).astype(np.int32),
                broker_names=broker_names,
                queue_id=position_in_run(queue_counts).astype(np.int32),
                client_id_codes=client_codes[member_order].astype(np.int32),
                client_ids=client_ids,
            ),
            queue_brokers=np.repeat(broker_positions, queue_counts).astype(np.int32),
            given_slots=(member_order - np.repeat(member_offsets[:-1], np.diff(member_offsets))).astype(
                np.int32
            ),
            profiles=profiles,
            profile_codes=profile_codes,
            variants=variants,
            variant_codes=variant_codes[member_order],
            is_subscribed=np.asarray(is_subscribed).astype(np.bool_)[member_order],
            byte_order=ByteOrder.of(broker_names, client_ids),
        )

    def __len__(self) -> int:
        return len(self.profile_codes)

    def states(self) -> NameArray:
        """Return the R group states."""
        return np.array([profile.state for profile in self.profiles], dtype=np.object_)[self.profile_codes]

    def take(self, rows: IntArray) -> ArrowSubscriptions:
        """Return the subscriptions at these positions, in this order."""
        if len(rows) == len(self) and (rows == np.arange(len(self))).all():
            return self
        queue_counts, client_counts = self.batch.queue_counts()[rows], self.batch.client_counts()[rows]
        queue_rows = expand(self.batch.queue_offsets[rows], queue_counts)
        member_rows = expand(self.batch.client_offsets[rows], client_counts)
        return ArrowSubscriptions(
            batch=replace(
                self.batch,
                queue_offsets=offsets(queue_counts),
                client_offsets=offsets(client_counts),
                topic=np.asarray(self.batch.topic, dtype=np.object_)[rows],
                broker_name_codes=self.batch.broker_name_codes[queue_rows],
                queue_id=self.batch.queue_id[queue_rows],
                client_id_codes=self.batch.client_id_codes[member_rows],
            ),
            queue_brokers=self.queue_brokers[queue_rows],
            given_slots=self.given_slots[member_rows],
            profiles=self.profiles,
            profile_codes=self.profile_codes[rows],
            variants=self.variants,
            variant_codes=self.variant_codes[member_rows],
            is_subscribed=self.is_subscribed[member_rows],
            byte_order=self.byte_order,
        )


@dataclass(frozen=True, slots=True)
class ByteOrder:
    """The order of names by UTF-8 bytes; it differs from Java's order by UTF-16 code units only for characters above U+D7FF.

    Attributes:
        of_broker_names: int64, rank of each distinct broker name.
        of_client_ids: int64, rank of each distinct client id.
    """

    of_broker_names: IntArray
    of_client_ids: IntArray

    @classmethod
    def of(cls, broker_names: NameArray, client_ids: NameArray) -> ByteOrder | None:
        """Return the order, or None if it is the same as Java's."""
        differs = any(
            sort_client_ids(names, "GO") != sort_client_ids(names) for names in (broker_names, client_ids)
        )
        return cls(_ranks(broker_names, "GO"), _ranks(client_ids, "GO")) if differs else None

    def sorted_batch(self, batch: SubscriptionBatch) -> tuple[SubscriptionBatch, IntArray, IntArray]:
        """Return the batch in this order, and the row in `batch` of each queue (int64[Q]) and member slot (int64[M]) of the result."""
        queue_rows: IntArray = np.lexsort(
            (
                batch.queue_id,
                self.of_broker_names[batch.broker_name_codes],
                owner_of_each(batch.queue_counts()),
            )
        )
        member_rows: IntArray = np.lexsort(
            (self.of_client_ids[batch.client_id_codes], owner_of_each(batch.client_counts()))
        )
        in_order = replace(
            batch,
            broker_name_codes=batch.broker_name_codes[queue_rows],
            queue_id=batch.queue_id[queue_rows],
            client_id_codes=batch.client_id_codes[member_rows],
        )
        return in_order, queue_rows, member_rows


def _ranks(names: NameArray, client_language: str) -> IntArray:
    """Return the rank of each distinct name in the order of a client language, as int64."""
    rank_of = {name: rank for rank, name in enumerate(sort_client_ids(names, client_language))}
    return np.fromiter((rank_of[name] for name in names), np.int64, len(names))


def _java_order(list_offsets: IntArray, codes: IntArray, names: NameArray) -> IntArray:
    """Return the positions that sort each list by name in Java's order, as int64[N]; duplicates keep their order."""
    order: IntArray = np.lexsort((_ranks(names, "JAVA")[codes], owner_of_each(np.diff(list_offsets))))
    return order


def _variants(
    subscriptions: pa.StructArray, configured: StrategySettings, member_offsets: IntArray
) -> tuple[IntArray, list[Variant]]:
    """Return the variant of each member slot in input order (int64[M]), and the distinct variants."""
    columns = [
        _codes(_flat(subscriptions.field(name))[1]) for name in ("strategies", "languages", "versions")
    ]
    answered = np.asarray(_flat(subscriptions.field("has_answered"))[1]).astype(np.int64)
    member_settings = _member_settings(subscriptions, configured, member_offsets)
    # Encode each combination as one number. Each factor is small, so the product fits into 64 bits.
    keys = np.zeros(len(answered), dtype=np.int64)
    for codes, values in columns:
        keys = keys * (len(values) + 1) + codes + 1
    keys = (keys * 2 + answered) * (int(member_settings.max(initial=-1)) + 2) + member_settings + 1
    _, first, variant_codes = np.unique(keys, return_index=True, return_inverse=True)
    variants = []
    for member in first.tolist():
        strategy, language, version = (
            None if codes[member] < 0 else str(values[codes[member]]) for codes, values in columns
        )
        is_answered, settings = bool(answered[member]), int(member_settings[member])
        variants.append(Variant(strategy, language, version, is_answered, settings))
    return variant_codes, variants


def _member_settings(
    subscriptions: pa.StructArray, configured: StrategySettings, member_offsets: IntArray
) -> IntArray:
    """Return each member slot's position in `StrategySettings.member_settings`, in input order (int64[M]); -1 for the group's settings."""
    result = np.full(int(member_offsets[-1]), -1, dtype=np.int64)
    settings_codes = configured.codes_of(subscriptions)
    _, members = _flat(subscriptions.field("member_ids"))
    for row in np.flatnonzero(np.isin(settings_codes, list(configured.member_codes))).tolist():
        start, stop = member_offsets[row : row + 2].tolist()
        codes = configured.member_codes[int(settings_codes[row])]
        ids = members.slice(start, stop - start).to_pylist()
        result[start:stop] = [codes.get(client_id, -1) for client_id in ids]
    return result


def _profiles(
    subscriptions: pa.StructArray,
    configured: StrategySettings,
    member_offsets: IntArray,
    variant_codes: IntArray,
) -> tuple[list[Profile], IntArray]:
    """Return the distinct profiles, and the profile of each row (int64[R])."""
    state_codes, state_names = _codes(subscriptions.field("group_state"))
    reason_codes, reason_names = _codes(_division_reasons(subscriptions))
    settings_codes = configured.codes_of(subscriptions)
    sets = _variant_sets(member_offsets, variant_codes)
    keys = np.column_stack([state_codes, settings_codes, reason_codes, *sets])
    distinct, first, codes = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    profiles = [
        Profile(
            state=str(state_names[state]),
            configured=int(setting),
            variants=frozenset(variant_codes[member_offsets[row] : member_offsets[row + 1]].tolist()),
            division_reason=str(reason_names[reason]) if reason >= 0 else None,
        )
        for (state, setting, reason), row in zip(distinct[:, :3].tolist(), first.tolist(), strict=True)
    ]
    return profiles, codes.reshape(-1)


def _division_reasons(subscriptions: pa.StructArray) -> pa.Array:
    """Return the R values of division_reason; all are null in a batch without the field."""
    if subscriptions.type.get_field_index("division_reason") < 0:
        return pa.nulls(len(subscriptions), pa.string())
    return subscriptions.field("division_reason")


def _variant_sets(member_offsets: IntArray, variant_codes: IntArray) -> list[IntArray]:
    """Return int64[R] columns with one bit for each variant; they are equal for rows with the same set of variants."""
    has_members = np.diff(member_offsets) > 0
    starts = member_offsets[:-1][has_members]
    columns = []
    for first in range(0, int(variant_codes.max(initial=-1)) + 1, _BITS_OF_WORD):
        bit = variant_codes - first
        is_here = (bit >= 0) & (bit < _BITS_OF_WORD)
        bits = np.where(is_here, np.int64(1) << np.where(is_here, bit, 0), 0)
        column = np.zeros(len(has_members), dtype=np.int64)
        if len(starts):
            column[has_members] = np.bitwise_or.reduceat(bits, starts)
        columns.append(column)
    return columns


def _flat(lists: pa.Array) -> tuple[IntArray, pa.Array]:
    """Return the offsets (int64[N + 1], from 0) and values of a list array; a null list is treated as empty."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return offsets(counts), pc.list_flatten(lists)


def _codes(names: pa.Array) -> tuple[IntArray, NameArray]:
    """Return each name's position among the distinct names (-1 for null), and the distinct names."""
    encoded = names.dictionary_encode()
    return (
        pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64),
        encoded.dictionary.to_numpy(zero_copy_only=False),
    )
