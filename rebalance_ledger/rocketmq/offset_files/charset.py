"""Decoding and encoding as Java's charsets do it.

`MixAll.file2String` and `string2File` use UTF-8 since 5.0.0, and the platform's charset before. What is malformed becomes
U+FFFD, and how many of them differs from Python's codecs. Checked against Java 17: every pair of bytes, and random bytes.

Belongs here: charsets. Does not belong here: which one a client uses.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from functools import cache
from typing import Final

CHARSETS: Final = ("UTF-8", "US-ASCII", "ISO-8859-1", "windows-1252", "GBK")
"""Platform charsets that can be read. US-ASCII is that of a container without a locale (until Java 17)."""

# Three bytes that stand for half a surrogate pair are one mistake to Java.
_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# Where Java's GBK and Python's gb18030 differ: first and last pair of bytes, and the character of the first.
_GBK_OTHERWISE: Final = (
    (0xA892, 0xA892, 0x2641),
    (0xA8BF, 0xA8BF, 0xE7C8),
    (0xA989, 0xA995, 0xE7E7),
    (0xFE50, 0xFE50, 0xE815),
    (0xFE54, 0xFE58, 0xE819),
    (0xFE5A, 0xFE60, 0xE81F),
    (0xFE62, 0xFE65, 0xE827),
    (0xFE68, 0xFE6B, 0xE82D),
    (0xFE6E, 0xFE75, 0xE833),
    (0xFE77, 0xFE7D, 0xE83C),
    (0xFE80, 0xFE8F, 0xE844),
    (0xFE92, 0xFE9F, 0xE856),
)
# A pair that ends in FF is one mistake; a first byte without a second is another.
_GBK_PART: Final = re.compile(rb"[\x00-\x7f]+|[\x81-\xfe][\x40-\x7e\x80-\xff]|[\x80-\xff]")


def check(charset: str) -> str:
    """Return the charset's name as it is in `CHARSETS`; Python's other names for it are accepted too.

    Raises:
        ValueError: It is none of them.
    """
    with suppress(LookupError):
        meant = codecs.lookup(charset).name
        for known in CHARSETS:
            if codecs.lookup(known).name == meant:
                return known
    raise ValueError(
        f"{charset!r} is not a charset that offset files are read in: take {', '.join(CHARSETS)}"
    )


def decode(content: bytes, charset: str) -> str:
    """`new String(byte[], Charset)`; `charset` is one of `CHARSETS`."""
    if content.isascii():
        return content.decode("ascii")
    if charset == "UTF-8":
        return _ENCODED_SURROGATE.sub(_REPLACEMENT.encode(), content).decode("utf-8", "replace")
    if charset == "GBK":
        return "".join(_gbk_text(part) for part in _GBK_PART.findall(content))
    return content.decode(charset, "replace")


def encode(text: str, charset: str) -> bytes:
    """`String.getBytes(Charset)`: `?` for characters that the charset does not have; `charset` is one of `CHARSETS`."""
    if text.isascii():
        return text.encode("ascii")
    if charset == "UTF-8":
        return _SURROGATE.sub("?", text).encode()
    if charset == "GBK":
        pairs = _gbk_pairs()
        return b"".join(
            character.encode() if character.isascii() else pairs.get(character, b"?") for character in text
        )
    return text.encode(charset, "replace")


def _gbk_text(part: bytes) -> str:
    if part.isascii():
        return part.decode("ascii")
    pair = int.from_bytes(part)
    for first, last, character in _GBK_OTHERWISE:
        if first <= pair <= last:
            return chr(character + pair - first)
    try:
        return part.decode("gb18030")
    except UnicodeDecodeError:
        return _REPLACEMENT


@cache
def _gbk_pairs() -> dict[str, bytes]:
    """Return the pair of each character; of two pairs for one character the first."""
    pairs: dict[str, bytes] = {}
    for number in range(0x8140, 0xFEFF):
        part = number.to_bytes(2)
        if _GBK_PART.fullmatch(part) and (character := _gbk_text(part)) != _REPLACEMENT:
            pairs.setdefault(character, part)
    return pairs
