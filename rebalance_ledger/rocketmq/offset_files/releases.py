"""Which reader and which layout a client has, by its language and release.

Belongs here: releases of RocketMQ -> releases of fastjson. Does not belong here: what these do.

| RocketMQ | reads and writes with | charset of the file |
|---|---|---|
| 4.1.0 to 4.8.0 | fastjson 1.2.69 (4.7.1 and 4.8.0; older ones have 1.2.29 to 1.2.62, which were not compared) | the platform's |
| 4.9.0 to 4.9.3 | fastjson 1.2.76 | the platform's |
| 4.9.4 to 4.9.8 | fastjson 1.2.69_noneautotype | the platform's |
| 5.0.0 | fastjson 1.2.69_noneautotype | UTF-8 |
| 5.1.0 to 5.3.3 | fastjson 1.2.83 | UTF-8 |
| 5.4.0 and later | fastjson2 2.0.59 (5.5.0; the release in 5.4.0 was not compared) | UTF-8 |
| Go | jsoniter 1.1.12 (2.1.2) | bytes |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import Final, TypeAlias

from rebalance_ledger.rocketmq.offset_files import charset as charsets
from rebalance_ledger.rocketmq.offset_files.fastjson1 import offset_file as fastjson1_file
from rebalance_ledger.rocketmq.offset_files.fastjson1.dialect import (
    FASTJSON_1_2_69,
    FASTJSON_1_2_69_NONEAUTOTYPE,
    FASTJSON_1_2_76,
    FASTJSON_1_2_83,
)
from rebalance_ledger.rocketmq.offset_files.fastjson2 import offset_file as fastjson2_file
from rebalance_ledger.rocketmq.offset_files.outcome import Outcome
from rebalance_ledger.rocketmq.versions import Language, Version

TextReader: TypeAlias = Callable[[str], Outcome]

_UTF_8_SINCE: Final = Version(5, 0, 0)
_BY_RELEASE: Final[tuple[tuple[Version, TextReader], ...]] = (
    (Version(5, 4, 0), fastjson2_file.read),
    (Version(5, 1, 0), partial(fastjson1_file.read, dialect=FASTJSON_1_2_83)),
    (Version(4, 9, 4), partial(fastjson1_file.read, dialect=FASTJSON_1_2_69_NONEAUTOTYPE)),
    (Version(4, 9, 0), partial(fastjson1_file.read, dialect=FASTJSON_1_2_76)),
    (Version(0, 0, 0), partial(fastjson1_file.read, dialect=FASTJSON_1_2_69)),
)


class Layout(Enum):
    """How a client lays its file out."""

    FASTJSON_1 = "fastjson 1"
    FASTJSON_2 = "fastjson2"
    GO = "Go"


@dataclass(frozen=True, slots=True)
class OffsetFormat:
    """How one client reads and writes its file.

    Attributes:
        layout: How it writes.
        charset: What its bytes are; Go's are not decoded.
        read_text: The result for a text that is not empty; None for Go, which reads bytes.
    """

    layout: Layout
    charset: str
    read_text: TextReader | None


@lru_cache(maxsize=256)
def offset_format(client_version: str, client_language: str, platform_charset: str) -> OffsetFormat:
    """Return the format of a client's offset file.

    Args:
        client_version: A release from 4.1.0 on, such as `4.9.7`; that of a client in Go is not looked at.
        client_language: `JAVA` or `GO`.
        platform_charset: One of `charset.CHARSETS`, for releases before 5.0.0.

    Raises:
        UnknownNameError: The language or the release is unknown.
        ValueError: The language keeps no offset file that is known, or the charset is none of those.
    """
    platform_charset = charsets.check(platform_charset)
    language = Language.parse(client_language)
    if language is Language.GO:
        return OffsetFormat(Layout.GO, "UTF-8", None)
    if language is not Language.JAVA:
        raise ValueError(f"how a client in {client_language} keeps its offsets is not known: take JAVA or GO")
    version = Version.parse(client_version)
    reader = next(reader for since, reader in _BY_RELEASE if version >= since)
    return OffsetFormat(
        Layout.FASTJSON_2 if reader is fastjson2_file.read else Layout.FASTJSON_1,
        "UTF-8" if version >= _UTF_8_SINCE else platform_charset,
        reader,
    )
