"""An offset file as a client would write it, byte for byte.

Belongs here: layouts and escapes. Does not belong here: writing to disk, and what a client does with the file that was
there before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rebalance_ledger.rocketmq.offset_files import charset
from rebalance_ledger.rocketmq.offset_files.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from rebalance_ledger.rocketmq.offset_files.releases import Layout, offset_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_ledger.rocketmq.offset_files.outcome import OffsetKey

_SHORT_ESCAPES: Final = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}
_FASTJSON_1_ESCAPED: Final = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_FASTJSON_2_ESCAPED: Final = re.compile('["\\\\\x00-\x1f]')
_GO_ESCAPED: Final = re.compile('["\\\\<>&\x00-\x1f\u2028\u2029\ud800-\udfff]')
_GO_SHORT: Final = frozenset('\t\n\r"\\')


def write_offset_file(
    table: Mapping[OffsetKey, int],
    *,
    client_version: str,
    client_language: str = "JAVA",
    platform_charset: str = "UTF-8",
) -> bytes:
    """Return the bytes that a client writes for a table.

    For Java: `OffsetSerializeWrapper.toJson(true)` and `MixAll.string2File`; for Go `localFileOffsetStore.persist`. A client
    writes its queues in the order of its hash map; here they keep the order of `table`.

    Args:
        table: Queue -> offset. A name that is None is left out by Java, and empty in Go.
        client_version: See `read_offset_file`.
        client_language: See `read_offset_file`.
        platform_charset: See `read_offset_file`; what it does not have becomes `?`.

    Raises:
        UnknownNameError: The language or the release is unknown.
        ValueError: The language or the charset is one that is not known here, or a number does not fit the client's type.
    """
    file_format = offset_format(client_version, client_language, platform_charset)
    if file_format.layout is Layout.GO:
        _check_numbers(table, LONG_MIN, LONG_MAX)
        entries = ",".join(f"{_go_string(_go_key(key))}:{offset}" for key, offset in table.items())
        return f'{{"offsetTable":{{{entries}}}}}'.encode()
    _check_numbers(table, INT_MIN, INT_MAX)
    is_second = file_format.layout is Layout.FASTJSON_2
    escaped = _FASTJSON_2_ESCAPED if is_second else _FASTJSON_1_ESCAPED
    before = "\n\t\t" if is_second else ""
    entries = ",".join(
        f"{before}{{{_java_fields(key, escaped, is_upper=not is_second)}\n\t\t}}:{offset}"
        for key, offset in table.items()
    )
    text = f'{{\n\t"offsetTable":{{{entries}' + ("\n\t" if table else "") + "}\n}"
    return charset.encode(text, file_format.charset)


def _check_numbers(table: Mapping[OffsetKey, int], low: int, high: int) -> None:
    for key, offset in table.items():
        if not (low <= key.queue_id <= high and LONG_MIN <= offset <= LONG_MAX):
            raise ValueError(f"queue id {key.queue_id} or offset {offset} does not fit the client's type")


def _java_fields(key: OffsetKey, escaped: re.Pattern[str], *, is_upper: bool) -> str:
    fields = []
    if key.broker_name is not None:
        fields.append(f'"brokerName":{_java_string(key.broker_name, escaped, is_upper=is_upper)}')
    fields.append(f'"queueId":{key.queue_id}')
    if key.topic is not None:
        fields.append(f'"topic":{_java_string(key.topic, escaped, is_upper=is_upper)}')
    return ",".join(f"\n\t\t\t{member}" for member in fields)


def _java_string(text: str, escaped: re.Pattern[str], *, is_upper: bool) -> str:
    def escape(match: re.Match[str]) -> str:
        character = match[0]
        digits = f"{ord(character):04X}" if is_upper else f"{ord(character):04x}"
        return _SHORT_ESCAPES.get(character, f"\\u{digits}")

    return f'"{escaped.sub(escape, text)}"'


def _go_key(key: OffsetKey) -> str:
    """`MessageQueueKey.MarshalText`."""
    topic, broker = (_go_string(name or "") for name in (key.topic, key.broker_name))
    return f'{{"topic":{topic},"brokerName":{broker},"queueId":{key.queue_id}}}'


def _go_string(text: str) -> str:
    """`Stream.WriteStringWithHTMLEscaped`."""

    def escape(match: re.Match[str]) -> str:
        character = match[0]
        if character in _GO_SHORT:
            return _SHORT_ESCAPES[character]
        # A byte that is no UTF-8 came as a surrogate.
        return "\\ufffd" if "\ud800" <= character <= "\udfff" else f"\\u{ord(character):04x}"

    return f'"{_GO_ESCAPED.sub(escape, text)}"'
