r"""A fast reader for files in the form in which clients write them.

A file in the layout of fastjson 1 or fastjson2, or compact, whose names need no escape, means the same to every release.
Nearly all files are such, so they need not go through the step-by-step readers: this is 15 to 30 times as fast. A file
with anything else in it is left to them.

Belongs here: the one expression for such a file. Does not belong here: anything that releases could read differently.
"""

from __future__ import annotations

import re
from typing import Final

from rebalance_ledger.rocketmq.offset_files.outcome import OffsetKey

# Possessive throughout: a text fails at its first strange character, in a time that grows with its length.
_GAP: Final = r"[ \t\n\r]*+"
_NAME: Final = r'"([^"\\\x00-\x1f]*+)"'
_QUEUE_ID: Final = r"(-?(?:0|[1-9][0-9]{0,8}+))"
_OFFSET: Final = r"(-?(?:0|[1-9][0-9]{0,17}+))"
_QUEUE: Final = (
    rf'\{{{_GAP}"brokerName":{_NAME},{_GAP}"queueId":{_QUEUE_ID},{_GAP}"topic":{_NAME}{_GAP}\}}:{_OFFSET}'
)
_ENTRY: Final = re.compile(_QUEUE)
_FILE: Final = re.compile(
    rf'\{{{_GAP}"offsetTable":\{{{_GAP}(?:{_QUEUE}(?:,{_GAP}{_QUEUE})*+{_GAP})?+\}}{_GAP}\}}{_GAP}'
)


def read(text: str) -> dict[OffsetKey, int] | None:
    """Return the table of a file in the usual form; None for any other text."""
    if _FILE.fullmatch(text) is None:
        return None
    return {
        OffsetKey(topic, broker_name, int(queue_id)): int(offset)
        for broker_name, queue_id, topic, offset in _ENTRY.findall(text)
    }
