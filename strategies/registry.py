"""Registry of strategies by name: RocketMQ's, this project's hypothetical ones, and those of installed packages.

Belongs here: names, and the entry point by which a package adds its own strategy.
Does not belong here: the rules (one file per strategy).
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from rebalance_ledger.rocketmq.errors import unknown_name
from rebalance_ledger.rocketmq.versions import DEFAULT_LANGUAGE, DEFAULT_VERSION, Client, Language
from strategies.average_by_circle import Circle
from strategies.averagely import Average
from strategies.bounded_load_hash import BoundedLoadHash
from strategies.by_config import Config
from strategies.canary import Canary
from strategies.consistent_hash import ConsistentHash, GoConsistentHash
from strategies.cross_topic_fair import CrossTopicFair
from strategies.lag_weighted import LagWeighted
from strategies.machine_room import machine_room
from strategies.machine_room_nearby import GoMachineNearby, machine_room_nearby
from strategies.sticky import Sticky

if TYPE_CHECKING:
    from collections.abc import Callable

    from strategies.strategy import Strategy

ENTRY_POINT_GROUP: Final = "rebalance_ledger.strategies"

_JAVA: Final[dict[str, Callable[..., Strategy]]] = {
    "AVG": Average,
    "AVG_BY_CIRCLE": Circle,
    "CONFIG": Config,
    "CONSISTENT_HASH": ConsistentHash,
    "MACHINE_ROOM": machine_room,
    "MACHINE_ROOM_NEARBY": machine_room_nearby,
}
_BUILT_IN: Final[dict[Language, dict[str, Callable[..., Strategy]]]] = {
    Language.JAVA: _JAVA,
    Language.GO: {
        "AVG": Average,
        "AVG_BY_CIRCLE": Circle,
        "CONFIG": Config,
        "CONSISTENT_HASH": GoConsistentHash,
        "MACHINE_ROOM": machine_room,
        "MACHINE_ROOM_NEARBY": GoMachineNearby,
    },
    Language.CPP: {"AVG": Average},
}

_HYPOTHETICAL: Final[dict[str, Callable[..., Strategy]]] = {
    "BOUNDED_LOAD_HASH": BoundedLoadHash,
    "CANARY": Canary,
    "CROSS_TOPIC_FAIR": CrossTopicFair,
    "LAG_WEIGHTED": LagWeighted,
    "STICKY": Sticky,
}


def get_strategy(
    name: str,
    *,
    client_language: str = DEFAULT_LANGUAGE,
    client_version: str = DEFAULT_VERSION,
    **params: Any,  # noqa: ANN401  every strategy has its own
) -> Strategy:
    """Return the strategy with this name, as clients of this language and version implement it.

    A package adds a strategy by an entry point in the group `rebalance_ledger.strategies`. Its name is the name of
    the strategy; its object is a callable that takes a `strategies.Client` and the parameters and returns a
    `strategies.Strategy`. The names of RocketMQ's strategies are reserved.

    Args:
        name: `AVG`, `AVG_BY_CIRCLE`, ..., one of the hypothetical strategies, or a name that an installed
            package adds; see `strategy_names`.
        client_language: `JAVA`, `GO` or `CPP`.
        client_version: A RocketMQ release number, 4.1.0 or later; ignored for `GO` and `CPP`, see `Client`.
        **params: The strategy's parameters, as its class documents them.

    Raises:
        UnknownNameError: The strategy, language or version is unknown; the message lists the known ones.
        TypeError: A parameter is unknown to the strategy, or a required one is missing.
        RocketMQError: RocketMQ's constructor would throw.
    """
    client = Client.parse(client_language, client_version)
    factory = _BUILT_IN[client.language].get(name) or _HYPOTHETICAL.get(name)
    if factory is None:
        added = entry_points(group=ENTRY_POINT_GROUP, name=name)
        # A package cannot replace a RocketMQ strategy, even for a language without it.
        if name in _JAVA or not added:
            raise unknown_name(f"strategy for {client.language.value}", name, strategy_names(client_language))
        factory = next(iter(added)).load()
    strategy: Strategy = factory(client, **params)
    return strategy


def strategy_names(client_language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Return the names that `get_strategy` knows for a client language, in alphabetical order.

    Names that installed packages add are included.

    Raises:
        UnknownNameError: The language is unknown.
    """
    built_in = _BUILT_IN[Language.parse(client_language)].keys() | _HYPOTHETICAL.keys()
    added = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)} - _JAVA.keys()
    return sorted(built_in | added)


def has_one_rule(name: str, client_language: str | None) -> bool:
    """Return whether all releases of a language implement this strategy by the same rule.

    Java's `MACHINE_ROOM` changed in 4.8.0. The charset of `CONSISTENT_HASH` changed in 5.0.0, but it is a parameter.

    Args:
        name: See `get_strategy`.
        client_language: `None` for an unknown language; the rule must then be the same in all languages.
    """
    if client_language is None:
        return name == "AVG"
    return (client_language, name) != (Language.JAVA.value, "MACHINE_ROOM")
