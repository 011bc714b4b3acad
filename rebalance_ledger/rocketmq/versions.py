"""Which client is meant: its language, its RocketMQ release, and the class names that it reports.

Belongs here: parsing of versions and languages, `MQVersion` ordinals, class names of strategies.
Does not belong here: what differs between versions; each rule documents that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from rebalance_ledger.rocketmq.errors import unknown_name

DEFAULT_LANGUAGE: Final = "JAVA"
DEFAULT_VERSION: Final = "5.3.3"


class Language(Enum):
    """The client languages with rules of their own, named as RocketMQ's `LanguageCode` names them."""

    JAVA = "JAVA"
    GO = "GO"
    CPP = "CPP"

    @classmethod
    def parse(cls, name: str) -> Language:
        """Return the language of a `LanguageCode` name.

        `LanguageCode` has more (`DOTNET`, `PYTHON`, `RUST`, ...); nothing is known of how they balance.

        Raises:
            UnknownNameError: There are no rules for the language.
        """
        try:
            return cls(name)
        except ValueError:
            raise unknown_name("client language", name, [language.value for language in cls]) from None


class Version(NamedTuple):
    """A RocketMQ release number; compares as numbers do."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Version:
        """Return the release that a text such as `4.9.8` or `5.0.0-SNAPSHOT` names.

        Any release from 4.1.0 up to, but not including, 6.0.0 is accepted. Nothing later than 5.5.0 was read,
        so a later 5.x behaves as 5.5.0 does: that is the best guess, and refusing to guess would stop the
        ledger of a cluster on the day its first client is upgraded.

        Raises:
            UnknownNameError: It is not a release number, or not one of that range.
        """
        match = _RELEASE.fullmatch(text)
        if match:
            version = cls(*(int(part) for part in match.groups()))
            if OLDEST <= version < _UNKNOWN_FUTURE:
                return version
        raise unknown_name("client version", text, ["every release from 4.1.0 to 5.x (read up to 5.5.0)"])


_RELEASE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:-SNAPSHOT|-incubating)?", re.ASCII)
OLDEST: Final = Version(4, 1, 0)
_UNKNOWN_FUTURE: Final = Version(6, 0, 0)


@dataclass(frozen=True, slots=True)
class Client:
    """A client release that selects the rules.

    Attributes:
        language: its language.
        version: its RocketMQ release; None for a client in Go or C++. These have release numbers of their own (2.x), report
            a constant of Java's `MQVersion` instead (Go 2.0.0 to 2.1.2: 4.5.2), and no rule of theirs depends on either.
    """

    language: Language
    version: Version | None

    @classmethod
    def parse(cls, client_language: str = DEFAULT_LANGUAGE, client_version: str = DEFAULT_VERSION) -> Client:
        """Return the client of these names.

        Args:
            client_language: `JAVA`, `GO` or `CPP`.
            client_version: A RocketMQ release number from 4.1.0 on; ignored for `GO` and `CPP`.

        Raises:
            UnknownNameError: There are no rules for the language or the version.
        """
        language = Language.parse(client_language)
        return cls(language, Version.parse(client_version) if language is Language.JAVA else None)

    def before(self, major: int, minor: int, patch: int) -> bool:
        """Return whether this is a Java release earlier than the given one."""
        return self.version is not None and self.version < (major, minor, patch)


# MQVersion.Version lists a SNAPSHOT and a release for every patch 0 to 9 of every minor 0 to 9, from
# V4_0_0_SNAPSHOT (212) to V5_9_9 (611); HIGHER_VERSION follows. The 3.x part before it is irregular.
_ORDINAL_OF_4_0_0_SNAPSHOT: Final = 212
_ORDINAL_OF_HIGHER_VERSION: Final = 612


def version_of_ordinal(ordinal: int) -> str | None:
    """Return the release behind the `version` number that clients report, for example 409 -> `4.9.8`.

    A SNAPSHOT keeps its suffix. Every answer is a `client_version` that `get_strategy` accepts.

    Args:
        ordinal: The ordinal of a constant of `org.apache.rocketmq.common.MQVersion.Version`. Other clients
            report a Java constant too, and not always one that describes their own release.

    Returns:
        The release, or `None` for an ordinal without one and for releases before 4.1.0.
    """
    if not _ORDINAL_OF_4_0_0_SNAPSHOT <= ordinal < _ORDINAL_OF_HIGHER_VERSION:
        return None
    patch_count, is_release = divmod(ordinal - _ORDINAL_OF_4_0_0_SNAPSHOT, 2)
    minor_count, patch = divmod(patch_count, 10)
    major_count, minor = divmod(minor_count, 10)
    version = Version(4 + major_count, minor, patch)
    if version < OLDEST:
        return None
    return ".".join(map(str, version)) + ("" if is_release else "-SNAPSHOT")


_PACKAGE: Final = "org.apache.rocketmq.client.consumer.rebalance."
_STRATEGY_OF_CLASS: Final = {
    f"{_PACKAGE}AllocateMessageQueueAveragely": "AVG",
    f"{_PACKAGE}AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    f"{_PACKAGE}AllocateMessageQueueByConfig": "CONFIG",
    f"{_PACKAGE}AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    f"{_PACKAGE}AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    f"{_PACKAGE}AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
}


def strategy_of_class_name(reported: str) -> str | None:
    """Return the strategy behind what a Java client reports as `allocateMessageQueueStrategy`.

    Args:
        reported: A full class name, with or without the identity that `Object.toString` appends, for example
            `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@79339374`.

    Returns:
        The name for `get_strategy`, or `None` for a class that is not RocketMQ's own.
    """
    return _STRATEGY_OF_CLASS.get(reported.partition("@")[0])
