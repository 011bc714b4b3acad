"""Reading the golden vectors: cases as the Java classes answered them (see tests/golden/README.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strategies import MessageQueue, RocketMQError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FOLDER = Path(__file__).parents[1] / "golden"

# The exceptions whose text RocketMQ wrote; all other texts come from the Java runtime and are not compared.
_OWN_TEXTS = {"allocateMessageQueueStrategy is null", "machineRoomResolver is null"}


def cases(family: str) -> Iterator[dict[str, Any]]:
    """The cases of one family, in file order."""
    with gzip.open(FOLDER / f"{family}.jsonl.gz", "rt", encoding="ascii") as lines:
        for line in lines:
            yield json.loads(line)


def expectations(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each version with what its classes answered."""
    for answer in case["expect"]:
        for version in answer["versions"]:
            yield version, answer


def queues(listed: list[list[Any]] | None) -> list[MessageQueue] | None:
    """The queues of a case, `None` for a Java null."""
    return None if listed is None else [MessageQueue(*fields) for fields in listed]


def expected_queues(answer: Any, listed: Sequence[MessageQueue] | None) -> Any:
    """An answered list with its positions resolved; errors and null as `outcome` gives them."""
    if isinstance(answer, dict):
        return expected_error(answer["error"])
    if answer is None:
        return None
    return [(listed or [])[item] if isinstance(item, int) else MessageQueue(*item) for item in answer]


def expected_error(error: dict[str, Any]) -> tuple[str, str | None]:
    """The class name, and the text where RocketMQ wrote it."""
    own = error["type"] == "IllegalArgumentException" or error["message"] in _OWN_TEXTS
    return error["type"], error["message"] if own else None


def outcome(ask: Callable[[], Any]) -> Any:
    """What a call returned, or its error in the form of `expected_error`."""
    try:
        return ask()
    except RocketMQError as error:
        text = str(error)
        own = error.java_class == "IllegalArgumentException" or text in _OWN_TEXTS
        return error.java_class, text if own else None
