"""The model of the settings file. A wrong key is an error, never ignored."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    """Unknown keys are refused and values are not coerced, so a slip of the pen cannot change a number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RoomRule(Strict):
    """How a name (of a broker or of a client) tells its machine room: exactly one of the three ways.

    Attributes:
        names: the room of each name, for example `{broker-a: hz}`.
        prefixes: the room of the longest prefix that the name begins with, for example `{"10.1.": hz}`.
        before: the room is the part of the name before this separator, for example `"@"` for `hz@broker-a`.
    """

    names: dict[str, str] | None = None
    prefixes: dict[str, str] | None = None
    before: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _exactly_one_way(self) -> RoomRule:
        ways = [way for way in ("names", "prefixes", "before") if getattr(self, way) is not None]
        if len(ways) != 1:
            raise ValueError(f"give exactly one of names, prefixes, before; got {', '.join(ways) or 'none'}")
        return self

    def room(self, name: str) -> str | None:
        """The room of a name, or None where the rule does not tell."""
        if self.names is not None:
            return self.names.get(name)
        if self.prefixes is not None:
            fitting = [prefix for prefix in self.prefixes if name.startswith(prefix)]
            return self.prefixes[max(fitting, key=len)] if fitting else None
        room, separator, _ = name.partition(self.before or "")
        return room if separator else None


class PlainStrategy(Strict):
    """A strategy without parameters."""

    strategy: Literal["AVG", "AVG_BY_CIRCLE"]


class ConsistentHashStrategy(Strict):
    """`AllocateMessageQueueConsistentHash` with the built-in hash function."""

    strategy: Literal["CONSISTENT_HASH"]
    virtual_node_count: int = Field(ge=0)


class MachineRoomStrategy(Strict):
    """`AllocateMessageQueueByMachineRoom` and its `consumeridcs`."""

    strategy: Literal["MACHINE_ROOM"]
    consumer_idcs: list[str]


class MachineRoomNearbyStrategy(Strict):
    """`AllocateMachineRoomNearby` over an inner strategy, with its two resolvers as rules."""

    strategy: Literal["MACHINE_ROOM_NEARBY"]
    inner: Annotated[PlainStrategy | ConsistentHashStrategy, Field(discriminator="strategy")]
    broker_room: RoomRule
    consumer_room: RoomRule


class ConfiguredQueues(Strict):
    """Some queues of one topic on one broker."""

    topic: str
    broker_name: str
    queue_ids: list[int]


class ConfigStrategy(Strict):
    """`AllocateMessageQueueByConfig`: the list that each client was given, by client id."""

    strategy: Literal["CONFIG"]
    clients: dict[str, list[ConfiguredQueues]]


GroupSettings = Annotated[
    PlainStrategy | ConsistentHashStrategy | MachineRoomStrategy | MachineRoomNearbyStrategy | ConfigStrategy,
    Field(discriminator="strategy"),
]
"""What a group's clients were configured with. It fills in what they cannot be asked (lists, rooms, counts)."""


class ClusterSettings(Strict):
    """One cluster.

    Attributes:
        groups: consumer group -> what its clients were configured with.
    """

    groups: dict[str, GroupSettings] = Field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical text of these settings; a part of a computation's identity."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


class LedgerSettings(Strict):
    """The whole file.

    Attributes:
        clusters: name -> settings of each cluster that the daily run covers.
    """

    clusters: dict[str, ClusterSettings] = Field(default_factory=dict)
