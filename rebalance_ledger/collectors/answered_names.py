"""Names in answers that determine the next questions: topics, groups, brokers, members and their connections.

Belongs here: the fields of RocketMQ's answers that hold names. Does not belong here: calls (`live`), and the facts of a payload that
become tables (`rebalance_ledger.exports.payloads`).

The functions parse the raw text and require nothing but names, so a field that this release does not know, or that
RocketMQ's own client cannot decode (a static topic's mapping, for example), causes no error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rebalance_ledger.rocketmq.json import ObjectMap, RocketMQJsonError, loads
from rebalance_ledger.rocketmq.system_groups import SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS
from rebalance_ledger.rocketmq.system_topics import RETRY_PREFIX

HEARTBEAT_SYNCER: Final = "DefaultHeartBeatSyncerTopic"
"""The topic through which proxies in CLUSTER mode exchange their lists of clients."""

_RELEASE: Final = re.compile(r"V(\d{1,3})_(\d{1,3})_(\d{1,3})", re.ASCII)


class NamesError(ValueError):
    """An answer does not have the expected form; `str()` is the reason, as a clause without a full stop."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The content of a connection list.

    Attributes:
        client_ids: The id of each connection, in the list's order; ids may repeat.
        topics: Topics that the group subscribes to, sorted.
        hosts: The host of each connection, as the server sees it; empty where it is missing.
        is_broadcasting: Whether the group is in broadcasting mode.
    """

    client_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_broadcasting: bool = False


def topics_of_list(payload: bytes) -> list[str]:
    """Return the topics of a `TopicList`."""
    return [topic for topic in _list(_object(payload), "topicList") if isinstance(topic, str) and topic]


def brokers_of_cluster(payload: bytes) -> list[tuple[str, int, str]]:
    """Return the name, id and address of each broker of a `ClusterInfo`."""
    brokers = []
    for name, broker in _fields(_object(payload), "brokerAddrTable").items():
        if not isinstance(broker, dict):
            continue
        for broker_id, address in _fields(broker, "brokerAddrs").items():
            number = _number(broker_id)
            if number is not None and isinstance(address, str) and address:
                brokers.append((str(broker.get("brokerName") or name), number, address))
    return brokers


def topics_of_broker(payload: bytes) -> list[str]:
    """Return the topics of a `TopicConfigSerializeWrapper`."""
    return [str(topic) for topic in _fields(_object(payload), "topicConfigTable") if topic != ""]


def groups_of_broker(payload: bytes) -> list[str]:
    """Return the groups of a `SubscriptionGroupWrapper`, including system groups."""
    return [str(group) for group in _fields(_object(payload), "subscriptionGroupTable") if group != ""]


def connections_of(payload: bytes) -> Connections:
    """Return the members and subscriptions of a `ConsumerConnection`."""
    document = _object(payload)
    connections = [each for each in _list(document, "connectionSet") if isinstance(each, dict)]
    members = [each for each in connections if isinstance(each.get("clientId"), str)]
    subscriptions = document.get("subscriptionTable")
    return Connections(
        client_ids=tuple(str(each["clientId"]) for each in members),
        topics=tuple(sorted(str(topic) for topic in subscriptions))
        if isinstance(subscriptions, dict)
        else (),
        hosts=tuple(str(each.get("clientAddr") or "").lstrip("/").rpartition(":")[0] for each in members),
        is_broadcasting=document.get("messageModel") == "BROADCASTING",
    )


def release_of_broker(payload: bytes) -> tuple[int, int, int] | None:
    """Return the release in a broker's runtime info, such as (4, 7, 1); None if it is missing or cannot be parsed."""
    table = _object(payload).get("table")
    description = table.get("brokerVersionDesc") if isinstance(table, dict) else None
    match = _RELEASE.match(description) if isinstance(description, str) else None
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def start_of_process(payload: bytes) -> str | None:
    """Return the consumer's start time in a `ConsumerRunningInfo`; None if it is missing."""
    properties = _object(payload).get("properties")
    start = properties.get("PROP_CONSUMER_START_TIMESTAMP") if isinstance(properties, dict) else None
    return str(start) if isinstance(start, str | int) and str(start) else None


def is_system_group(group: str) -> bool:
    """Return whether a group is a system group of RocketMQ."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def group_of_retry_topic(topic: str, topics: set[str]) -> str | None:
    """Return the group whose retry topic this is, or None.

    Retry topics of POP contain a group's and a topic's name (`%RETRY%group_topic`, `%RETRY%group+topic`). A name that could
    be one of these is ambiguous, so the result is None.

    Args:
        topic: A topic's name.
        topics: All known topics.
    """
    if not topic.startswith(RETRY_PREFIX):
        return None
    group = topic.removeprefix(RETRY_PREFIX)
    cuts = [index for index, character in enumerate(group) if character in "_+" and index]
    if not group or is_system_group(group) or any(group[cut + 1 :] in topics for cut in cuts):
        return None
    return group


def _object(payload: bytes) -> dict[str | int, object]:
    try:
        value = loads(payload.decode(errors="replace"))
    except RocketMQJsonError as error:
        raise NamesError(str(error).rstrip(".")) from error
    if not isinstance(value, dict):
        raise NamesError("it is not an object")
    return dict(value)


def _fields(document: dict[str | int, object] | dict[str, object], name: str) -> dict[str | int, object]:
    value = document.get(name)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, ObjectMap):
        raise NamesError(f"the keys of {name} are not names")
    raise NamesError(f"it has no {name}")


def _list(document: dict[str | int, object], name: str) -> list[object]:
    value = document.get(name)
    if not isinstance(value, list):
        raise NamesError(f"it has no {name}")
    return list(value)


def _number(text: object) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None
