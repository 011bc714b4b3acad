"""Prepare the settings of strategies for batches: strategy objects from parameters, arrays from lists.

Belongs here: the step from `settings` to `strategies`. Does not belong here: how members share queues (`allocation`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_ledger.rocketmq.versions import DEFAULT_LANGUAGE, DEFAULT_VERSION
from rebalance_ledger.settings import (
    ConfigStrategy,
    ConsistentHashStrategy,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    PlainStrategy,
    settings_by_member,
)
from spark_jobs.assignment.variant import Variant
from strategies import (
    Client,
    Language,
    RoomOfName,
    SlotStrategy,
    Strategy,
    UnknownNameError,
    get_strategy,
    has_one_rule,
)
from strategies.average_by_circle import Circle
from strategies.averagely import Average
from strategies.by_config import ConfigByClient
from strategies.consistent_hash import DEFAULT_VIRTUAL_NODE_COUNT, ConsistentHash

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rebalance_ledger.settings import ClusterSettings, GroupSettings
    from rebalance_ledger.settings.model import HypotheticalStrategy

    IntArray = npt.NDArray[np.int64]

HYPOTHETICAL: Final[tuple[SlotStrategy, ...]] = (
    Average(Client.parse()),
    Circle(Client.parse()),
    ConsistentHash(Client.parse(), virtual_node_count=DEFAULT_VIRTUAL_NODE_COUNT),
)
"""The strategies that are computed for every group, whatever the settings are, with RocketMQ's default parameters."""

_NEWEST_JAVA: Final = Variant(language=DEFAULT_LANGUAGE, version=DEFAULT_VERSION)
_SEPARATOR: Final = "\0"
"""Separates the names of cluster and group; a cluster's name is a folder name, which cannot contain it."""

_TAKES_PARAMETERS: Final = frozenset({"CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"})


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """The strategy settings of clusters, indexed for batches.

    Attributes:
        settings: The distinct settings of groups.
        group_codes: Cluster and group -> position in `settings`.
        member_settings: The distinct settings of members that differ from their group.
        member_codes: Position in `settings` -> client id -> position in `member_settings`; only for groups with such members.
        hypothetical: RocketMQ's name -> the strategy that is computed for every group.
    """

    settings: tuple[GroupSettings, ...]
    group_codes: Mapping[tuple[str, str], int]
    member_settings: tuple[GroupSettings, ...]
    member_codes: Mapping[int, Mapping[str, int]]
    hypothetical: Mapping[str, Strategy]

    @classmethod
    def of(cls, clusters: Mapping[str, ClusterSettings]) -> StrategySettings:
        """Index the settings once for a job; Spark sends the result to its workers.

        Args:
            clusters: Cluster -> its settings. All clusters have the same hypothetical strategies.
        """
        settings = _Distinct()
        group_codes = {
            (name, group): settings.code_of(of_group)
            for name, cluster in clusters.items()
            for group, of_group in cluster.groups.items()
        }
        members = _Distinct()
        member_codes = {
            code: {client_id: members.code_of(of_member) for client_id, of_member in by_member.items()}
            for code, of_group in enumerate(settings.values)
            if (by_member := settings_by_member(of_group))
        }
        hypothetical: dict[str, Strategy] = {strategy.name: strategy for strategy in HYPOTHETICAL}
        for of_cluster in next(iter(clusters.values())).hypothetical:
            rule = rule_of(_NEWEST_JAVA, of_cluster.strategy, of_cluster)
            if isinstance(rule, Strategy):
                hypothetical[of_cluster.strategy] = rule
        return cls(tuple(settings.values), group_codes, tuple(members.values), member_codes, hypothetical)

    def codes_of(self, subscriptions: pa.StructArray) -> IntArray:
        """Return the position of each row's group in `settings`, as int64[R]; -1 for a group without settings.

        Args:
            subscriptions: R structs with cluster and consumer_group.
        """
        keys = pa.array([_key(*names) for names in self.group_codes], pa.string())
        codes = np.array([*self.group_codes.values(), -1], dtype=np.int64)
        of_rows = pc.binary_join_element_wise(
            subscriptions.field("cluster"), subscriptions.field("consumer_group"), _SEPARATOR
        )
        result: IntArray = codes[pc.fill_null(pc.index_in(of_rows, keys), -1).to_numpy(zero_copy_only=False)]
        return result

    def of_member(self, variant: Variant, of_group: GroupSettings | None) -> GroupSettings | None:
        """Return the settings of a member: its own, otherwise those of its group."""
        return of_group if variant.member_settings < 0 else self.member_settings[variant.member_settings]


def _key(cluster: str, group: str) -> str:
    return f"{cluster}{_SEPARATOR}{group}"


class _Distinct:
    """A list of distinct settings; equal settings have the same position."""

    def __init__(self) -> None:
        self.values: list[GroupSettings] = []
        self._codes: dict[str, int] = {}

    def code_of(self, settings: GroupSettings) -> int:
        code = self._codes.setdefault(settings.model_dump_json(), len(self.values))
        if code == len(self.values):
            self.values.append(settings)
        return code


def rule_of(
    variant: Variant, name: str, configured: GroupSettings | HypotheticalStrategy | None
) -> Strategy | str:
    """Return a member's rule for a strategy, or the reason why it is unknown.

    A member of unknown language that reported a strategy has Java's rules, because only Java clients report one.

    Args:
        variant: The member's variant.
        name: RocketMQ's name of the strategy.
        configured: Settings with the strategy's parameters; None for none.

    Returns:
        The strategy, or `strategy_unknown`, `settings_missing` or `release_unknown`.
    """
    language = variant.language or (DEFAULT_LANGUAGE if variant.strategy else None)
    known = Variant(variant.strategy, language or DEFAULT_LANGUAGE, variant.version)
    is_configured = configured is not None and configured.strategy == name
    try:
        if name in _TAKES_PARAMETERS and not is_configured:
            # C++ clients do not have these strategies, so settings would not help.
            is_cpp = Language.parse(known.language or DEFAULT_LANGUAGE) is Language.CPP
            return "strategy_unknown" if is_cpp else "settings_missing"
        if isinstance(configured, ConfigStrategy) and is_configured:
            _get(known, "CONFIG", message_queues=None)  # raises if the member's language has no CONFIG
            rule: Strategy = ConfigByClient(configured.clients)
        else:
            parameters = _parameters(configured, known) if is_configured and configured is not None else {}
            rule = _get(known, name, **parameters)
    except UnknownNameError:
        return "strategy_unknown"
    is_one_rule = has_one_rule(name, language) or (language is not None and variant.version is not None)
    return rule if is_one_rule else "release_unknown"


def _get(variant: Variant, name: str, **parameters: Any) -> Strategy:  # noqa: ANN401 - every strategy has its own
    client = {"client_language": variant.language, "client_version": variant.version}
    return get_strategy(
        name, **{key: value for key, value in client.items() if value is not None}, **parameters
    )


def _parameters(configured: GroupSettings | HypotheticalStrategy, variant: Variant) -> dict[str, Any]:
    """Return the parameters of configured settings as keyword arguments of `get_strategy`."""
    match configured:
        case ConsistentHashStrategy():
            return {"virtual_node_count": configured.virtual_node_count}
        case MachineRoomStrategy():
            return {"consumer_idcs": set(configured.consumer_idcs)}
        case MachineRoomNearbyStrategy():
            return {
                "inner": _get(variant, configured.inner.strategy, **_parameters(configured.inner, variant)),
                "broker_room": RoomOfName(configured.broker_room.room),
                "consumer_room": configured.consumer_room.room,
            }
        case PlainStrategy() | ConfigStrategy():
            return {}
