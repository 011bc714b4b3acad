"""Random settings of the groups in an export, and exports whose members report the strategies of these settings.

Belongs here: which strategies and parameters are drawn. Does not belong here: alterations of answers (`altered_exports`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.export_builder import CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    Line = dict[str, Any]

_STRATEGY = re.compile(r'("allocateMessageQueueStrategy"\s*:\s*")[^"@]*')
_FIELD_OF_JAVA = r'"(?:allocateMessageQueueStrategy|clientRebalance)"\s*:\s*"[^"]*"'
_FIELDS_OF_JAVA = re.compile(rf",\s*{_FIELD_OF_JAVA}|{_FIELD_OF_JAVA}\s*,?")
_CONNECTION = re.compile(r'\{[^{}]*"clientId"\s*:\s*("(?:[^"\\]|\\.)*")[^{}]*\}')
_RELEASE = re.compile(r'("PROP_CLIENT_VERSION"\s*:\s*")[^"]*')
_LANGUAGE = re.compile(r'("language"\s*:\s*")JAVA')
_FILES_OF_MEMBERS = ("consumer_running_infos.jsonl", "process_assignments.jsonl")
_ROOMS = ("hz", "sh", "bj")


@dataclass(frozen=True, slots=True)
class Names:
    """The names in an export.

    Attributes:
        clients: Group -> client ids that were asked about.
        topics: Topics with a route.
        brokers: Brokers that were asked.
    """

    clients: dict[str, list[str]]
    topics: list[str]
    brokers: list[str]


def names_in(directory: Path) -> Names:
    """Return the names in the envelopes of an export."""
    lines = [
        json.loads(text)
        for path in sorted(directory.glob("*.jsonl"))
        for text in path.read_text(encoding="utf-8").splitlines()
    ]
    clients: dict[str, set[str]] = {line["group"]: set() for line in lines if "group" in line}
    for line in lines:
        if "group" in line and "client_id" in line:
            clients[line["group"]].add(line["client_id"])
    return Names(
        {group: sorted(ids) for group, ids in sorted(clients.items())},
        sorted({line["topic"] for line in lines if line["kind"] == "nameserver_route" and "topic" in line}),
        sorted({line["broker"] for line in lines if "broker" in line}),
    )


def draw_settings(names: Names, rng: Random) -> dict[str, Any]:
    """Return settings of a cluster: strategies of most groups, and some to compute for every group."""
    groups = {group: _of_group(names, ids, rng) for group, ids in names.clients.items() if rng.random() < 0.7}
    drawn = [_with_parameters(names, [], rng) for _ in range(rng.randrange(3))]
    return {"groups": groups, "hypothetical": list({of_all["strategy"]: of_all for of_all in drawn}.values())}


def _of_group(names: Names, clients: list[str], rng: Random) -> dict[str, Any]:
    if rng.random() < 0.2:
        return {"strategy": rng.choice(("AVG", "AVG_BY_CIRCLE"))}
    drawn = _with_parameters(names, clients, rng)
    others = [client for client in clients if rng.random() < 0.2]
    if drawn["strategy"] != "CONFIG" and others:
        drawn["members"] = {client: _of_member(drawn["strategy"], names, rng) for client in others}
    return drawn


def _with_parameters(names: Names, clients: list[str], rng: Random) -> dict[str, Any]:
    draw: Callable[[], dict[str, Any]] = rng.choice(
        (
            partial(_ring, rng),
            partial(_machine_room, rng),
            partial(_nearby, names, rng),
            partial(_listed, names, clients, rng),
        )
    )
    return draw()


def _of_member(strategy: str, names: Names, rng: Random) -> dict[str, Any]:
    """Return one parameter of a member that may differ from its group's."""
    draw_by_strategy: dict[str, Callable[[Random], dict[str, Any]]] = {
        "CONSISTENT_HASH": _ring,
        "MACHINE_ROOM": _machine_room,
        "MACHINE_ROOM_NEARBY": partial(_nearby, names),
    }
    drawn = draw_by_strategy[strategy](rng)
    name = rng.choice(sorted(drawn.keys() - {"strategy"}))
    return {name: drawn[name]}


def _ring(rng: Random) -> dict[str, Any]:
    return {"strategy": "CONSISTENT_HASH", "virtual_node_count": rng.choice((0, 1, 3, 10, 10, 50))}


def _machine_room(rng: Random) -> dict[str, Any]:
    return {"strategy": "MACHINE_ROOM", "consumer_idcs": rng.choices(_ROOMS, k=rng.randrange(4))}


def _nearby(names: Names, rng: Random) -> dict[str, Any]:
    clients = sorted({client for ids in names.clients.values() for client in ids})
    return {
        "strategy": "MACHINE_ROOM_NEARBY",
        "inner": rng.choice(({"strategy": "AVG"}, {"strategy": "AVG_BY_CIRCLE"}, _ring(rng))),
        "broker_room": _room_rule(names.brokers, rng),
        "consumer_room": _room_rule(clients, rng),
    }


def _room_rule(names: list[str], rng: Random) -> dict[str, Any]:
    """Return a rule that has a room for most of these names."""
    return rng.choice(
        (
            {"separator": rng.choice(("@", "-", "e"))},
            {"names": {name: rng.choice(_ROOMS) for name in names if rng.random() < 0.97}},
            {"prefixes": {name[: rng.randrange(4)]: rng.choice(_ROOMS) for name in names}},
        )
    )


def _listed(names: Names, clients: list[str], rng: Random) -> dict[str, Any]:
    def queues() -> list[dict[str, Any]]:
        return [
            {
                "topic": rng.choice(names.topics),
                "broker_name": rng.choice(names.brokers),
                "queue_ids": rng.choices(range(5), k=rng.randrange(1, 4)),
            }
            for _ in range(rng.randrange(4))
        ]

    listed = [client for client in clients if rng.random() < 0.8]
    return {"strategy": "CONFIG", "clients": {client: queues() for client in (*listed, "of-no-member")}}


def let_members_report(directory: Path, settings: dict[str, Any], rng: Random) -> None:
    """Let the members of most groups report the strategy of the settings, and some another one, release or language.

    Some are Go clients, which report neither a strategy nor who balances their queues.
    """
    reports = _Reports(settings, rng)
    for path in sorted(directory.glob("*.jsonl")):
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if "payload" in line and path.name in _FILES_OF_MEMBERS:
                line["payload"] = reports.of_member(line)
            elif "payload" in line and line["kind"] == "consumer_connection":
                line["payload"] = reports.of_broker(line)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


class _Reports:
    """Reports of the members of an export, by themselves and by brokers."""

    def __init__(self, settings: dict[str, Any], rng: Random) -> None:
        self._rng = rng
        self._strategies = {
            group: of_group["strategy"]
            for group, of_group in settings["groups"].items()
            if rng.random() < 0.7
        }
        self._is_go: dict[tuple[str, str], bool] = defaultdict(lambda: rng.random() < 0.1)

    def of_member(self, line: Line) -> str:
        """Return the payload of a member's own answer."""
        if self._is_go[line["group"], line["client_id"]]:
            text = _FIELDS_OF_JAVA.sub("", line["payload"])
        else:
            text = _STRATEGY.sub(partial(self._with_class, line["group"]), line["payload"])
        return _RELEASE.sub(self._with_release, text)

    def of_broker(self, line: Line) -> str:
        """Return the payload of a broker's answer on the members of a group."""
        return _CONNECTION.sub(partial(self._with_language, line["group"]), line["payload"])

    def _with_class(self, group: str, given: re.Match[str]) -> str:
        name = self._rng.choice(sorted(CLASSES)) if self._rng.random() < 0.05 else self._strategies.get(group)
        return f"{given[1]}{CLASSES[name]}" if name else given[0]

    def _with_release(self, given: re.Match[str]) -> str:
        return given[1] + self._rng.choice(("V4_7_1", "V4_9_4")) if self._rng.random() < 0.05 else given[0]

    def _with_language(self, group: str, given: re.Match[str]) -> str:
        if self._is_go[group, json.loads(given[1])]:
            return _LANGUAGE.sub(r"\1GO", given[0])
        is_another = self._rng.random() < 0.03
        return _LANGUAGE.sub(rf"\1{self._rng.choice(('GO', 'CPP'))}", given[0]) if is_another else given[0]
