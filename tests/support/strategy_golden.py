"""Reads the golden vectors: cases with the answers of the Java classes (see tests/golden/README.md)."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_ledger.rocketmq import java_strings as java
from strategies import MessageQueue, RocketMQError, Strategy, get_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FOLDER = Path(__file__).parents[1] / "golden"

# The exceptions whose text is RocketMQ's own; all other texts come from the Java runtime and are not compared.
_OWN_TEXTS = {"allocateMessageQueueStrategy is null", "machineRoomResolver is null"}


def cases(family: str) -> Iterator[dict[str, Any]]:
    """Yield the cases of one family, in file order."""
    with gzip.open(FOLDER / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def expectations(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each version with the answer of its classes."""
    for answer in case["expect"]:
        for version in answer["versions"]:
            yield version, answer


def queues(listed: list[list[Any]] | None) -> list[MessageQueue] | None:
    """Return the queues of a case, `None` for a Java null."""
    return None if listed is None else [MessageQueue(*fields) for fields in listed]


def expected_queues(answer: Any, listed: Sequence[MessageQueue] | None) -> Any:
    """Return an answered list with its positions resolved; errors and null as `outcome` returns them."""
    if isinstance(answer, dict):
        return expected_error(answer["error"])
    if answer is None:
        return None
    return [(listed or [])[item] if isinstance(item, int) else MessageQueue(*item) for item in answer]


def expected_error(error: dict[str, Any]) -> tuple[str, str | None]:
    """Return the class name, and the text if it is RocketMQ's own."""
    own = error["type"] == "IllegalArgumentException" or error["message"] in _OWN_TEXTS
    return error["type"], error["message"] if own else None


def outcome(ask: Callable[[], Any]) -> Any:
    """Return the result of a call, or its error in the format of `expected_error`."""
    try:
        return ask()
    except RocketMQError as error:
        text = str(error)
        own = error.java_class == "IllegalArgumentException" or text in _OWN_TEXTS
        return error.java_class, text if own else None


def strategy_of(name: str, params: dict[str, Any] | None, version: str) -> Strategy:
    """Return the strategy that a case describes by its name and `params`."""
    given = params or {}
    wanted: dict[str, Any] = {}
    if name == "CONFIG":
        wanted["message_queues"] = queues(given["queues"])
    elif name == "CONSISTENT_HASH":
        wanted["hash_function"] = _hash_function(given.get("hash"))
        if given.get("virtual_nodes") is not None:
            wanted["virtual_node_count"] = given["virtual_nodes"]
    elif name == "MACHINE_ROOM":
        wanted["consumer_idcs"] = given["consumeridcs"]
    elif name == "MACHINE_ROOM_NEARBY":
        inner = given["inner"]
        wanted["inner"] = None if inner is None else strategy_of(inner, given.get("inner_params"), version)
        wanted["broker_room"] = _resolver(given["broker_room"])
        wanted["consumer_room"] = _resolver(given.get("cid_room"))
    return get_strategy(name, client_version=version, **wanted)


def _hash_function(described: dict[str, Any] | None) -> Callable[[str], int] | None:
    if described is None:
        return None
    kinds: dict[str, Callable[[str], int]] = {
        "md5mod": lambda text: (
            int.from_bytes(hashlib.md5(java.encode(text), usedforsecurity=False).digest()[:4])
            % described["mod"]
        ),
        "javahash": java.hash_code,
        "length": lambda text: len(java.order_key(text)) // 2,
        "const": lambda _: described["value"],
    }
    # Cached, because every client resolves the same strings.
    return cache(kinds[described["kind"]])


def _resolver(rooms: dict[str, Any] | None) -> Callable[[Any], str | None] | None:
    if rooms is None:
        return None

    def room_of(subject: Any) -> str | None:
        room = rooms.get(subject.broker_name if isinstance(subject, MessageQueue) else subject)
        if isinstance(room, dict):
            raise RocketMQError("IllegalStateException", room["throw"])
        return room

    return room_of
