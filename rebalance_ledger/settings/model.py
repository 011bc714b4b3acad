"""The model of the settings file. A wrong key is an error, never ignored."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from rebalance_ledger.cluster_name import cluster_name_problem
from rebalance_ledger.settings.gate import GateSettings, Strict

if TYPE_CHECKING:
    from collections.abc import Mapping


MOST_VIRTUAL_NODES: Final = 10_000
"""Largest number of virtual nodes of a client. RocketMQ's default is 10, and each node of each client takes memory in a ring; RocketMQ itself
accepts any `int` of Java."""

_GREATEST_INT: Final = 2**31 - 1

_DEADLINE: Final = r"^([0-3]\d|4[0-7]):[0-5]\d$"
"""Pattern of a time after the beginning of a day, at most 47:59."""


def _check_virtual_node_count(count: object) -> object:
    if isinstance(count, int) and not isinstance(count, bool):
        if count > _GREATEST_INT:
            raise ValueError(f"{count} is no int of Java; RocketMQ's default is 10")
        if count > MOST_VIRTUAL_NODES:
            raise ValueError(
                f"{count} virtual nodes of each client are more than the {MOST_VIRTUAL_NODES} that the ledger computes; RocketMQ's default is 10"
            )
    return count


VirtualNodeCount = Annotated[
    int, Field(ge=0, le=MOST_VIRTUAL_NODES), BeforeValidator(_check_virtual_node_count)
]
"""`virtualNodeCnt` of `AllocateMessageQueueConsistentHash`."""


class RoomRule(Strict):
    """Derive the machine room from a broker or client name: exactly one of three ways.

    Attributes:
        names: the room of each name, for example `{broker-a: hz}`.
        prefixes: the room of the longest prefix that the name begins with, for example `{"10.1.": hz}`.
        separator: the room is the part of the name before it, for example `"@"` for `hz@broker-a`.
    """

    names: dict[str, str] | None = None
    prefixes: dict[str, str] | None = None
    separator: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _exactly_one_way(self) -> RoomRule:
        ways = [way for way in ("names", "prefixes", "separator") if getattr(self, way) is not None]
        if len(ways) != 1:
            raise ValueError(
                f"give exactly one of names, prefixes, separator; got {', '.join(ways) or 'none'}"
            )
        return self

    def room(self, name: str) -> str | None:
        """Return the room of a name, or None if the rule has none for it."""
        if self.names is not None:
            return self.names.get(name)
        if self.prefixes is not None:
            fitting = [prefix for prefix in self.prefixes if name.startswith(prefix)]
            return self.prefixes[max(fitting, key=len)] if fitting else None
        room, separator, _ = name.partition(self.separator or "")
        return room if separator else None


class PlainStrategy(Strict):
    """A strategy without parameters."""

    strategy: Literal["AVG", "AVG_BY_CIRCLE"]


class ConsistentHashStrategy(Strict):
    """`AllocateMessageQueueConsistentHash` with the built-in hash function."""

    strategy: Literal["CONSISTENT_HASH"]
    virtual_node_count: VirtualNodeCount


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


class MemberParameters(Strict):
    """The parameters of one member that differ from those of its group."""

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.changes():
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self

    def changes(self) -> dict[str, Any]:
        """Return the parameters that differ, by name."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}


class ConsistentHashParameters(MemberParameters):
    """See `ConsistentHashStrategy`."""

    virtual_node_count: VirtualNodeCount | None = None


class MachineRoomParameters(MemberParameters):
    """See `MachineRoomStrategy`."""

    consumer_idcs: list[str] | None = None


class MachineRoomNearbyParameters(MemberParameters):
    """See `MachineRoomNearbyStrategy`."""

    inner: Annotated[PlainStrategy | ConsistentHashStrategy, Field(discriminator="strategy")] | None = None
    broker_room: RoomRule | None = None
    consumer_room: RoomRule | None = None


class ConsistentHashGroup(ConsistentHashStrategy):
    """A group with CONSISTENT_HASH.

    Attributes:
        members: client id -> parameters of this member that differ from the group's.
    """

    members: dict[str, ConsistentHashParameters] = Field(default_factory=dict)


class MachineRoomGroup(MachineRoomStrategy):
    """A group with MACHINE_ROOM.

    Attributes:
        members: client id -> parameters of this member that differ from the group's.
    """

    members: dict[str, MachineRoomParameters] = Field(default_factory=dict)


class MachineRoomNearbyGroup(MachineRoomNearbyStrategy):
    """A group with MACHINE_ROOM_NEARBY.

    Attributes:
        members: client id -> parameters of this member that differ from the group's.
    """

    members: dict[str, MachineRoomNearbyParameters] = Field(default_factory=dict)


class ConfiguredQueues(Strict):
    """Some queues of one topic on one broker."""

    topic: str
    broker_name: str
    queue_ids: list[Annotated[int, Field(ge=0, le=_GREATEST_INT)]]


class ConfigStrategy(Strict):
    """`AllocateMessageQueueByConfig`: the list that each client was given, by client id."""

    strategy: Literal["CONFIG"]
    clients: dict[str, list[ConfiguredQueues]]


GroupSettings = Annotated[
    PlainStrategy | ConsistentHashGroup | MachineRoomGroup | MachineRoomNearbyGroup | ConfigStrategy,
    Field(discriminator="strategy"),
]
"""The strategy of a group's clients, with the parameters that clients do not report (lists, rooms, counts)."""


def settings_by_member(of_group: GroupSettings) -> dict[str, GroupSettings]:
    """Return the settings of the members that were configured differently from their group, by client id."""
    if isinstance(of_group, PlainStrategy | ConfigStrategy):
        return {}
    parameters: Mapping[str, MemberParameters] = of_group.members
    return {
        client_id: of_group.model_copy(update={**of_member.changes(), "members": {}})
        for client_id, of_member in parameters.items()
    }


HypotheticalStrategy = Annotated[
    ConsistentHashStrategy | MachineRoomStrategy | MachineRoomNearbyStrategy | ConfigStrategy,
    Field(discriminator="strategy"),
]
"""A strategy that takes parameters, with those to compute."""


class CollectTls(Strict):
    """Encryption of the collector's connections. The password of a key is a secret and belongs to the credentials.

    Attributes:
        verify: whether the servers' certificates are checked. RocketMQ's client never compares their host names.
        trusted_certificates: file (PEM) with the authorities to trust; None for those of the Java installation.
        certificate: file (PEM) with the client's own certificate, for servers that require one.
        key: file (PEM, PKCS 8) with its private key.
    """

    verify: bool = True
    trusted_certificates: str | None = None
    certificate: str | None = None
    key: str | None = None

    @model_validator(mode="after")
    def _certificate_with_key(self) -> CollectTls:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("give both certificate and key, or neither")
        return self


class Retention(Strict):
    """How long exports are kept.

    Attributes:
        keep_days: exports of this many days ago (UTC) and earlier are outdated.
        dry_run: whether the daily run only reports what it would remove.
        unpublished: whether exports from which no day is published are removed too.
    """

    keep_days: int = Field(ge=1)
    dry_run: bool = True
    unpublished: bool = False


class CaptureQuality(Strict):
    """Thresholds for the quality of a capture. A share is the number of failed requests divided by the number of all requests.

    Attributes:
        degraded_above: a capture with a larger share is `degraded`, as is one in which no broker answered for some group.
        failed_above: a capture with a larger share is `failed`.
    """

    degraded_above: float = Field(default=0.05, ge=0, le=1)
    failed_above: float = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _in_order(self) -> CaptureQuality:
        if self.degraded_above > self.failed_above:
            raise ValueError("degraded_above must not be above failed_above")
        return self


class CollectSettings(Strict):
    """How a live cluster is queried.

    Attributes:
        nameservers: addresses, `host:port`; each is queried separately. Empty if the Airflow connection has them.
        proxies: addresses, `host:port`, of RocketMQ 5 proxies in CLUSTER mode that serve the remoting protocol. If empty,
            proxies are discovered by their connections to the brokers, and queried at `proxy_port` of their hosts.
        proxy_port: the proxies' `remotingListenPort`.
        connection: id of the Airflow connection with the credentials; None for a cluster without access control.
        tls: how to encrypt; None for plain connections.
        parallelism: maximum number of concurrent calls to all servers.
        calls_per_second: maximum rate of calls to one name server or broker.
        connect_timeout_ms: time limit of a connection attempt.
        call_timeout_ms: time limit of a call.
        client_timeout_ms: time limit of a call that a broker forwards to a client. A broker waits ten seconds for the client
            and then returns an error, so a longer silence is the broker's.
        retries: how often an unanswered call is retried, with a longer pause each time.
        unresponsive_after_s: a server that has not answered for this time, and has left three calls unanswered, is not called
            again in this run.
        exclude_kinds: kinds of sources that are not queried; values that depend on them are unknown.
        offset_files: the drop folder of broadcasting clients' offset files, an absolute path; None if no offset files are shipped.
        offset_file_limit_bytes: a larger offset file is not copied.
        quality: thresholds for degraded and failed captures, whose failed requests the day's next attempt repeats.
        retention: how long exports are kept; None to keep them indefinitely.
    """

    nameservers: list[str] = Field(default_factory=list)
    proxies: list[str] = Field(default_factory=list)
    proxy_port: int = Field(default=8080, ge=1, le=65535)
    connection: str | None = Field(default=None, min_length=1)
    tls: CollectTls | None = None
    parallelism: int = Field(default=16, ge=1, le=256)
    calls_per_second: float = Field(default=50, gt=0)
    connect_timeout_ms: int = Field(default=3_000, ge=100)
    call_timeout_ms: int = Field(default=5_000, ge=100)
    client_timeout_ms: int = Field(default=15_000, ge=11_000)
    retries: int = Field(default=2, ge=0, le=10)
    unresponsive_after_s: float = Field(default=20, gt=0)
    exclude_kinds: list[
        Literal[
            "broker_config",
            "broker_message_request_mode",
            "broker_producer_table",
            "broker_topic_stats",
            "consume_stats",
            "consumer_running_info",
            "consumer_status",
        ]
    ] = Field(default_factory=list)
    offset_files: str | None = None
    offset_file_limit_bytes: int = Field(default=16 * 1024 * 1024, ge=1, le=1024 * 1024 * 1024)
    quality: CaptureQuality = Field(default_factory=CaptureQuality)
    retention: Retention | None = None

    @field_validator("offset_files")
    @classmethod
    def _absolute(cls, folder: str | None) -> str | None:
        # A worker of Airflow has another working directory than the author of the settings.
        if folder is not None and not folder.startswith("/"):
            raise ValueError(f"{folder!r} is not an absolute path")
        return folder

    @field_validator("nameservers", "proxies")
    @classmethod
    def _host_and_port(cls, addresses: list[str]) -> list[str]:
        for address in addresses:
            if not is_host_and_port(address):
                raise ValueError(f"{address!r} is not host:port")
        if len(set(addresses)) < len(addresses):
            raise ValueError("duplicate address")
        return addresses


def is_host_and_port(address: str) -> bool:
    """Return whether a text is the address of a server: a host, a colon and a port."""
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536  # noqa: PLR2004  # TCP's own
    return bool(host) and is_port and not set(host) & set(" \t\r\n;,/")


class Deadlines(Strict):
    """When a day of a cluster is late. Times are `HH:MM` after the beginning of the UTC day `ds`; times from 24:00 are on the next day.

    Attributes:
        export_by: time by which the export must have landed.
        published_by: time by which the day must be published; None if this is not monitored.
    """

    export_by: str = Field(default="24:00", pattern=_DEADLINE)
    published_by: str | None = Field(default=None, pattern=_DEADLINE)

    @property
    def export_by_time(self) -> timedelta:
        """The time of `export_by` after the beginning of the day."""
        return _time_of(self.export_by)

    @property
    def published_by_time(self) -> timedelta | None:
        """The time of `published_by` after the beginning of the day; None without it."""
        return None if self.published_by is None else _time_of(self.published_by)

    @model_validator(mode="after")
    def _in_order(self) -> Deadlines:
        if self.published_by_time is not None and self.published_by_time < self.export_by_time:
            raise ValueError("published_by must not be before export_by, which is 24:00 unless it is set")
        return self


def _time_of(text: str) -> timedelta:
    hours, minutes = text.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes))


class ClusterSettings(Strict):
    """One cluster.

    Attributes:
        groups: consumer group -> the strategy and parameters of its clients.
        hypothetical: strategies to compute for every group in addition to AVG, AVG_BY_CIRCLE and CONSISTENT_HASH with ten
            virtual nodes; a CONSISTENT_HASH here replaces the latter. Each strategy at most once, in any order.
        collect: how the live cluster is queried; None if its exports come from another source.
        deadlines: when a day is late.
        gate: the gate policy in addition to the defaults.
    """

    groups: dict[str, GroupSettings] = Field(default_factory=dict)
    hypothetical: list[HypotheticalStrategy] = Field(default_factory=list)
    collect: CollectSettings | None = None
    deadlines: Deadlines = Field(default_factory=Deadlines)
    gate: GateSettings = Field(default_factory=GateSettings)

    @field_validator("hypothetical")
    @classmethod
    def _each_once(cls, hypothetical: list[HypotheticalStrategy]) -> list[HypotheticalStrategy]:
        names = [of_cluster.strategy for of_cluster in hypothetical]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"duplicate {name}; a group, topic and queue has one row set of each strategy"
                )
        return sorted(hypothetical, key=lambda of_cluster: of_cluster.strategy)

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical text of the settings that can change a number; part of a computation's identity.

        Deadlines and the gate's part change no row.
        """
        document = self.model_dump(mode="json", exclude={"collect", "deadlines", "gate"})
        for of_group in document["groups"].values():
            # Without members, the hash is that of releases that did not have this setting.
            if not of_group.get("members"):
                of_group.pop("members", None)
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


class MaintenanceSettings(Strict):
    """Retention periods for unreferenced files of a warehouse.

    Attributes:
        vacuum_retention_days: files that no publication of this many days needs are removed; `ledger rollback` reaches back
            this far. At least one week, so that no reader still uses a removed file.
        staging_retention_days: stages of days, for inspection.
        data_docs_retention_days: the gate's pages.
        merge_after_days: files of the days of a month, one for each table and cluster, until they become one file.
        dry_run: whether the DAG only reports what it would remove.
        verified_day_count: how many published days each maintenance compares with the hashes of their publication; other
            days each time.
    """

    vacuum_retention_days: int = Field(default=30, ge=7)
    staging_retention_days: int = Field(default=14, ge=1)
    data_docs_retention_days: int = Field(default=90, ge=1)
    merge_after_days: int = Field(default=30, ge=1)
    dry_run: bool = True
    verified_day_count: int = Field(default=3, ge=0)


class BuildSettings(Strict):
    """How the daily run computes days.

    Attributes:
        beside_landed: whether a Spark application also computes the same day of other clusters whose exports have landed. A small day costs
            seconds beside another one and most of a minute by itself. Switch it off where many builds run at the same time.
    """

    beside_landed: bool = True


class LedgerSettings(Strict):
    """The whole file.

    Attributes:
        clusters: name -> settings of each cluster that the daily run covers.
        build: how the daily run computes days.
        maintenance: retention periods for unreferenced files of the warehouse.
    """

    clusters: dict[str, ClusterSettings] = Field(default_factory=dict)
    build: BuildSettings = Field(default_factory=BuildSettings)
    maintenance: MaintenanceSettings = Field(default_factory=MaintenanceSettings)

    @field_validator("clusters")
    @classmethod
    def _names_of_folders(cls, clusters: dict[str, ClusterSettings]) -> dict[str, ClusterSettings]:
        for name in clusters:
            problem = cluster_name_problem(name)
            if problem is not None:
                raise ValueError(f"the name {problem}")
        return clusters
