"""A broker's `store/config` folder: which of its files the broker would read, and what they say.

What belongs here: the rule by which RocketMQ chooses between a file and its `.bak`, and the payloads that follow from the
files. What does not: where the folder came from and when (`offline`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rebalance_ledger.collectors.mqadmin_text import offset_table_payload
from rebalance_ledger.rocketmq.json import RocketMQJsonError, loads

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.rocketmq.json import RocketMQObject

WHOLE_FILES: Final = {
    "broker_topic_config": "topics.json",
    "broker_subscription_group": "subscriptionGroup.json",
    "broker_message_request_mode": "messageRequestMode.json",
    "consumer_order_info": "consumerOrderInfo.json",
}
"""Kinds whose payload is the text of a file as it is."""

OFFSETS_FILE: Final = "consumerOffset.json"

_ROCKSDB_FOLDERS: Final = {
    "topics.json": ("topics", "rdb"),
    "subscriptionGroup.json": ("subscriptionGroups", "rdb"),
    OFFSETS_FILE: ("consumerOffsets", "rdb"),
}
"""Where a broker of 5.2 or later keeps the same if it is set to; then the file is old, or not there."""


class ConfigFileError(ValueError):
    """What a broker holds cannot be determined from its files. `str()` is one sentence."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file that a broker would read at its next start.

    Attributes:
        name: Its name; ends in `.bak` if the main file is missing, empty or damaged.
        text: Its text. A byte that is no UTF-8 is U+FFFD, as in Java.
        document: What it says.
        reason: Why it is the `.bak`; empty if it is not.
    """

    name: str
    text: str
    document: RocketMQObject
    reason: str


def read_config_file(folder: Path, name: str) -> ConfigFile | None:
    """Read a file as `org.apache.rocketmq.common.ConfigManager.load` does (4.9.7 to 5.5.0).

    The main file is read; if it is missing, empty or damaged, its `.bak`; if that is missing or empty too, the broker
    starts with what it is born with.

    Returns:
        The file, or None if there is neither.

    Raises:
        ConfigFileError: The broker keeps it in RocksDB, or the files are such that the broker would not start, or would
            start without what was in them.
        OSError: A file cannot be read.
    """
    for database in _ROCKSDB_FOLDERS.get(name, ()):
        if (folder / database / "CURRENT").is_file():
            raise ConfigFileError(
                f"its folder {database!r} shows that the broker keeps this in RocksDB, so {name} may be old; write it out "
                "with `mqadmin rocksDBConfigToJson`"
            )
    why: list[str] = []
    for file_name in (name, f"{name}.bak"):
        path = folder / file_name
        content = path.read_bytes() if path.is_file() else None
        if not content:
            why.append(f"{file_name} is {'missing' if content is None else 'empty'}")
            continue
        text = content.decode(errors="replace")
        try:
            document = loads(text) if text.strip() else None
        except RocketMQJsonError as error:
            why.append(f"{file_name} is damaged ({error})")
            continue
        if isinstance(document, dict):
            return ConfigFile(file_name, text, document, " and ".join(why))
        raise ConfigFileError(
            f"{file_name} is there without an object in it; whether the broker would read that or the .bak depends on its "
            "release, so what it holds cannot be determined"
        )
    if all(reason.endswith("missing") for reason in why):
        return None
    raise ConfigFileError(f"{' and '.join(why)}; what the broker holds cannot be determined")


def consume_stats(broker: str, offsets: ConfigFile) -> dict[str, str]:
    """`ConsumeStats` of each group in `consumerOffset.json`, with consumer offsets only.

    The brokers' own offsets are not in the file, so they are left out. Entries that a proxy keeps for broadcasting
    clients (`topic@group@…`) are no group's progress.

    Args:
        broker: The broker's name.
        offsets: The file.

    Raises:
        ConfigFileError: The file is no offset table.
    """
    table = offsets.document.get("offsetTable")
    if not isinstance(table, dict):
        raise ConfigFileError(f"{offsets.name} has no offsetTable")
    by_group: defaultdict[str, list[tuple[str, str, int, dict[str, int]]]] = defaultdict(list)
    for key, queues in table.items():
        topic, _, group = str(key).partition("@")
        if "@" in group:
            continue
        if not topic or not group or not isinstance(queues, dict):
            raise ConfigFileError(
                f"{offsets.name}: offsetTable has {key!r}, which is no topic@group with offsets"
            )
        for queue_id, offset in queues.items():
            is_number = isinstance(offset, int) and not isinstance(offset, bool)
            if not is_number or not re.fullmatch(r"[0-9]{1,10}", str(queue_id)):
                raise ConfigFileError(f"{offsets.name}: {key!r} has no offset for queue {queue_id!r}")
            by_group[group].append((topic, broker, int(queue_id), {"consumerOffset": int(str(offset))}))
    return {group: offset_table_payload(rows) for group, rows in by_group.items()}
