"""An offset file as fastjson2 2.0.59 reads it (5.5.0): `JSON.parseObject(text, OffsetSerializeWrapper.class)`.

The readers that fastjson2 generates for `OffsetSerializeWrapper` and `MessageQueue`, `ObjectReaderImplMapTyped` for the
table, and `FieldReader` for a field whose name is not written the usual way.

Belongs here: text to table. Does not belong here: characters (`reader`), bytes and files.
"""

from __future__ import annotations

from typing import Final

from rebalance_ledger.rocketmq.offset_files.fastjson2.characters import END
from rebalance_ledger.rocketmq.offset_files.fastjson2.reader import Reader
from rebalance_ledger.rocketmq.offset_files.java_values import code_units, joined
from rebalance_ledger.rocketmq.offset_files.outcome import (
    Doubt,
    NoTable,
    OffsetKey,
    Offsets,
    Outcome,
    Refused,
    RefusedError,
    Undecided,
    UndecidedError,
)

# `FieldReader.fieldNameHash` of each field; a name of eight letters or fewer is its own hash.
_HASHES: Final = {
    -3775519118733668514: "offsetTable",
    -3113304744917623409: "brokerName",
    int.from_bytes(b"queueId", "little"): "queueId",
    int.from_bytes(b"topic", "little"): "topic",
}


def read(text: str) -> Outcome:
    """Return the result of reading a file's text.

    Args:
        text: Not empty.
    """
    try:
        return _read(code_units(text))
    except IndexError:
        return Refused("the text has ended")
    except RefusedError as error:
        return Refused(str(error))
    except UndecidedError as error:
        return Undecided(error.doubt)


def _read(text: str) -> Outcome:
    reader = Reader(text)
    outcome = _read_wrapper(reader)
    if reader.ch != END:
        raise RefusedError("something follows the end")
    return outcome


def _read_wrapper(reader: Reader) -> Outcome:
    """`readObject` of `ORG_1_1_OffsetSerializeWrapper`."""
    table: dict[OffsetKey, int] | None = {}
    if reader.ch == ord("["):
        raise RefusedError("an array stands where an object should")
    if not reader.next_if_object_start() and reader.next_if_null_or_empty():
        return NoTable(has_object=False)
    while not reader.next_if_object_end():
        if reader.next_if_name("offsetTable"):
            _refuse_reference(reader)
            table = None if reader.next_if_null() else _read_table(reader)
            continue
        name = reader.read_name_hash()
        if name is None:
            break
        if _HASHES.get(name) == "offsetTable":
            _refuse_reference(reader)
            table = None if reader.next_if_null_or_empty() else _read_table(reader)
        else:
            reader.skip_value()
    return NoTable(has_object=True) if table is None else Offsets(table)


def _refuse_reference(reader: Reader) -> None:
    if reader.is_reference():
        raise UndecidedError(Doubt.REFERENCE)


def _read_table(reader: Reader) -> dict[OffsetKey, int] | None:
    """`ObjectReaderImplMapTyped.readObject`."""
    if not reader.next_if_object_start():
        if reader.next_if_null_or_empty():
            return None
        raise RefusedError("the table is no object")
    table: dict[OffsetKey, int] = {}
    while not reader.next_if_object_end() and reader.ch != END:
        key = _read_key(reader)
        _refuse_reference(reader)
        if reader.next_if_null():
            raise RefusedError("an offset is null")
        offset = reader.read_long()
        if key is None:
            raise RefusedError("a queue is null")
        table[key] = offset
    reader.next_if_comma()
    return table


def _read_key(reader: Reader) -> OffsetKey | None:
    if reader.next_if_null():
        if not reader.next_if(":"):
            raise RefusedError("a queue is not followed by ':'")
        return None
    key = _read_queue(reader)
    reader.next_if(":")
    return key


def _read_queue(reader: Reader) -> OffsetKey | None:
    """`readObject` of `ORG_2_3_MessageQueue`: without a `{` the fields count all the same."""
    if reader.ch == ord("["):
        raise RefusedError("an array stands where an object should")
    if not reader.next_if_object_start() and reader.next_if_null_or_empty():
        return None
    names: dict[str, str | None] = {"topic": None, "brokerName": None}
    queue_id = 0
    while not reader.next_if_object_end():
        name = next((name for name in ("queueId", "brokerName", "topic") if reader.next_if_name(name)), None)
        if name is None:
            name_hash = reader.read_name_hash()
            if name_hash is None:
                break
            name = _HASHES.get(name_hash)
        if name == "queueId":
            queue_id = reader.read_int()
        elif name in names:
            text = reader.read_string()
            names[name] = None if text is None else joined(text)
        else:
            reader.skip_value()
    return OffsetKey(names["topic"], names["brokerName"], queue_id)
