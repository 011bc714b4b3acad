"""Reading one offset file as a client does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.rocketmq.offset_files import canonical, charset, go_jsoniter
from rebalance_ledger.rocketmq.offset_files.outcome import Empty, Offsets, Outcome
from rebalance_ledger.rocketmq.offset_files.releases import offset_format

if TYPE_CHECKING:
    from rebalance_ledger.rocketmq.offset_files.releases import OffsetFormat


def read_offset_file(
    content: bytes, *, client_version: str, client_language: str = "JAVA", platform_charset: str = "UTF-8"
) -> Outcome:
    """Read an offset file as a client of some release would, regardless of its content.

    For Java this is `MixAll.file2String` and `OffsetSerializeWrapper.fromJson`, on Java 9 or later; for Go
    `localFileOffsetStore.load`. Time and memory grow with the file's size: limit that before.

    Args:
        content: The bytes of `offsets.json`, of `offsets.json.bak`, or of Go's `offset.json`.
        client_version: The client's release, such as `4.9.7`.
        client_language: `JAVA` or `GO`.
        platform_charset: The charset of the client's platform, which counts before 5.0.0; see `charset.CHARSETS`.

    Returns:
        `Offsets`, `NoTable`, `Empty` or `Refused`; `Undecided` for a text that no client writes, where class
        path, locale, time zone or stack of the client decide.

    Raises:
        UnknownNameError: The language or the release is unknown.
        ValueError: The language or the charset is one that is not known here.
    """
    return read_as(content, offset_format(client_version, client_language, platform_charset))


def read_as(content: bytes, file_format: OffsetFormat) -> Outcome:
    """Return the result of `read_offset_file` for a given format."""
    if not content:
        return Empty()
    if file_format.read_text is None:
        return go_jsoniter.read(content)
    text = charset.decode(content, file_format.charset)
    table = canonical.read(text)
    return file_format.read_text(text) if table is None else Offsets(table)
