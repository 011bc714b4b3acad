"""Config files of a broker's `store/config` folder, read as the broker reads them.

Belongs here: RocketMQ's choice between a file and its `.bak`, and the payloads derived from the files. Does not belong here: the
origin of the folder and its capture time (`offline`).
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
"""Kinds whose payload is the unchanged text of a file."""

OFFSETS_FILE: Final = "consumerOffset.json"

_ROCKSDB_FOLDERS: Final = {
    "topics.json": ("topics", "rdb"),
    "subscriptionGroup.json": ("subscriptionGroups", "rdb"),
    OFFSETS_FILE: ("consumerOffsets", "rdb"),
}
"""Folders of the RocksDB databases that brokers of 5.2 and later use if configured; the JSON file is then outdated or missing."""


class ConfigFileError(ValueError):
    """A broker's files do not determine its state. `str()` is one sentence."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that a broker would read at its next start.

    Attributes:
        name: File name; ends in `.bak` if the main file is missing, empty or damaged.
        text: File text; invalid UTF-8 bytes become U+FFFD, as in Java.
        document: Parsed text.
        reason: Reason why the `.bak` is read; empty for the main file.
    """

    name: str
    text: str
    document: RocketMQObject
    reason: str


def read_config_file(folder: Path, name: str) -> ConfigFile | None:
    """Read a file as `org.apache.rocketmq.common.ConfigManager.load` does (4.9.7 to 5.5.0).

    The broker reads the main file; if it is missing, empty or damaged, the `.bak`; if that is missing or empty too, it
    starts with its defaults.

    Returns:
        The file, or None if neither exists.

    Raises:
        ConfigFileError: The broker keeps the data in RocksDB, or with these files the broker would not start, or would
            start without their content.
        OSError: A file cannot be read.
    """
    for database in _ROCKSDB_FOLDERS.get(name, ()):
        if (folder / database / "CURRENT").is_file():
            raise ConfigFileError(
                f"its folder {database!r} shows that the broker keeps this in RocksDB, so {name} may be old; write it out "
                "with `mqadmin rocksDBConfigToJson`"
            )
    reasons: list[str] = []
    for file_name in (name, f"{name}.bak"):
        path = folder / file_name
        content = path.read_bytes() if path.is_file() else None
        if not content:
            reasons.append(f"{file_name} is {'missing' if content is None else 'empty'}")
            continue
        text = content.decode(errors="replace")
        try:
            document = loads(text) if text.strip() else None
        except RocketMQJsonError as error:
            reasons.append(f"{file_name} is damaged ({error})")
            continue
        if isinstance(document, dict):
            return ConfigFile(file_name, text, document, " and ".join(reasons))
        raise ConfigFileError(
            f"{file_name} is there without an object in it; whether the broker would read that or the .bak depends on its "
            "release, so what it holds cannot be determined"
        )
    if all(reason.endswith("missing") for reason in reasons):
        return None
    raise ConfigFileError(f"{' and '.join(reasons)}; what the broker holds cannot be determined")


def consume_stats(broker: str, offsets: ConfigFile) -> dict[str, str]:
    """Return `ConsumeStats` of each group in `consumerOffset.json`, with consumer offsets only.

    The file does not contain broker offsets. Entries that a proxy writes for broadcasting clients (`topic@group@…`) are
    skipped, because they are not the progress of a group.

    Args:
        broker: The broker's name.
        offsets: The offsets file.

    Raises:
        ConfigFileError: The file is not an offset table.
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
