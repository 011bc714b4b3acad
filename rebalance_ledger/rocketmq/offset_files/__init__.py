"""Progress files of broadcasting clients: `offsets.json`, `offsets.json.bak`, and Go's `offset.json`.

What a file's bytes are to a client of a given release, which of two files it would start from, and the bytes that it would
write. Each reader follows the classes of the library that the client reads with, because what these accept is decided by
their steps; `tests/differential` holds them to the classes. `fastjson1` and `fastjson2` are Java's libraries, `go_jsoniter`
is Go's, `releases` says which client has which; `reading`, `start_up` and `writing` answer the three questions.

Belongs here: bytes to offsets and back. Does not belong here: where files lie and how they came, what an offset means for
its queue, and Spark.
"""

from rebalance_ledger.rocketmq.offset_files.charset import CHARSETS
from rebalance_ledger.rocketmq.offset_files.outcome import (
    OUTCOME_NAMES,
    Doubt,
    Empty,
    NoTable,
    OffsetKey,
    Offsets,
    Outcome,
    Refused,
    Undecided,
)
from rebalance_ledger.rocketmq.offset_files.reading import read_offset_file
from rebalance_ledger.rocketmq.offset_files.start_up import Source, StartUp, Verdict, start_up
from rebalance_ledger.rocketmq.offset_files.writing import write_offset_file

__all__ = [
    "CHARSETS",
    "OUTCOME_NAMES",
    "Doubt",
    "Empty",
    "NoTable",
    "OffsetKey",
    "Offsets",
    "Outcome",
    "Refused",
    "Source",
    "StartUp",
    "Undecided",
    "Verdict",
    "read_offset_file",
    "start_up",
    "write_offset_file",
]
