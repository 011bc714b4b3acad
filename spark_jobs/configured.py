"""What the settings say of strategies, made ready for batches: parameters into strategies, lists into arrays.

What belongs here: the way from `settings` to `strategies`. What does not: who shares how (`allocation`).
"""

from __future__ import annotations

from dataclasses import dataclass
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
from spark_jobs.subscription_batch import Variant
from strategies import Client, RoomOfName, SlotStrategy, Strategy, UnknownNameError, get_strategy
from strategies.average import Average
from strategies.circle import Circle
from strategies.config import ConfigByClient
from strategies.consistent_hash import DEFAULT_VIRTUAL_NODE_COUNT, ConsistentHash

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from settings import ClusterSettings, GroupSettings

    IntArray = npt.NDArray[np.int64]

HYPOTHETICAL: Final[tuple[SlotStrategy, ...]] = (
    Average(Client.parse()),
    Circle(Client.parse()),
    ConsistentHash(Client.parse(), virtual_node_count=DEFAULT_VIRTUAL_NODE_COUNT),
)
"""The strategies that are computed for every group whatever the settings say, with RocketMQ's default parameters."""

_TAKES_PARAMETERS: Final = frozenset({"CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"})


@dataclass(frozen=True, slots=True)
class Configured:
    """The settings of a cluster, as every batch needs them.

    Attributes:
        settings: the different things that are said of groups.
        group_codes: group -> position in `settings`.
        hypothetical: RocketMQ's name -> the strategy as it is computed for every group.
    """

    settings: tuple[GroupSettings, ...]
    group_codes: Mapping[str, int]
    hypothetical: Mapping[str, Strategy]

    @classmethod
    def of(cls, cluster: ClusterSettings) -> Configured:
        """Once for a job: what is built here travels to the workers."""
        distinct: dict[str, int] = {}
        settings: list[GroupSettings] = []
        group_codes = {}
        for group, of_group in cluster.groups.items():
            code = distinct.setdefault(of_group.model_dump_json(), len(settings))
            if code == len(settings):
                settings.append(of_group)
            group_codes[group] = code
        hypothetical: dict[str, Strategy] = {strategy.name: strategy for strategy in HYPOTHETICAL}
        for of_cluster in cluster.hypothetical:
            strategy = strategy_of(Variant(of_cluster.strategy), of_cluster)
            if strategy is not None:
                hypothetical[of_cluster.strategy] = strategy
        return cls(tuple(settings), group_codes, hypothetical)

    def codes_of(self, groups: pa.Array) -> IntArray:
        """int64[R]: the position in `settings` of each group's, -1 where nothing is said of it."""
        names = pa.array(list(self.group_codes), pa.string())
        codes = np.array([*self.group_codes.values(), -1], dtype=np.int64)
        result: IntArray = codes[pc.fill_null(pc.index_in(groups, names), -1).to_numpy(zero_copy_only=False)]
        return result


def strategy_of(variant: Variant, configured: GroupSettings | None) -> Strategy | None:
    """The strategy as a member has it; None where its parameters or its rule are not known."""
    if lacks_settings(variant.strategy, configured):
        return None
    is_configured = configured is not None and configured.strategy == variant.strategy
    try:
        if isinstance(configured, ConfigStrategy) and is_configured:
            _get(variant, "CONFIG", message_queues=None)  # throws where the member's language has no CONFIG
            return ConfigByClient(configured.clients)
        parameters = _parameters(configured, variant) if is_configured and configured is not None else {}
        return _get(variant, variant.strategy, **parameters)
    except UnknownNameError:
        return None


def lacks_settings(strategy: str, configured: GroupSettings | None) -> bool:
    """Whether the strategy has parameters that only the settings can tell, and they do not."""
    return strategy in _TAKES_PARAMETERS and (configured is None or configured.strategy != strategy)


def _get(variant: Variant, name: str, **parameters: Any) -> Strategy:  # noqa: ANN401 - every strategy has its own
    who = {"client_language": variant.language, "client_version": variant.version}
    return get_strategy(name, **{key: value for key, value in who.items() if value is not None}, **parameters)


def _parameters(configured: GroupSettings, variant: Variant) -> dict[str, Any]:
    """The settings of a group as `get_strategy` takes them."""
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
