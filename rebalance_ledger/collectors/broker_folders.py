"""Folders of brokers' config files: what each broker holds, and the files themselves.

What belongs here: one folder a broker, which of its files say what, and when they were read. What does not: which of two
files a broker reads, and what it says (`broker_files`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rebalance_ledger.collectors import broker_files
from rebalance_ledger.collectors.answers import UNREADABLE, SourceAnswer
from rebalance_ledger.collectors.broker_files import ConfigFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rebalance_ledger.collectors.answers import AnswerSet
    from rebalance_ledger.exports.writer import ExportWriter


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file of a broker, to be kept byte for byte.

    Attributes:
        broker: The broker's name.
        path: Where it is.
        captured_at: When it was read on its host.
    """

    broker: str
    path: Path
    captured_at: datetime

    def write(self, writer: ExportWriter) -> None:
        """Put it into an export."""
        mtime = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        place = f"broker_files/{self.broker}/{self.path.name}"
        writer.file("broker_file", self.captured_at, place, self.path, mtime, broker=self.broker)


def read_broker_folders(
    folder: Path, captured_at: datetime | None, gathering: AnswerSet
) -> Iterator[HostFile]:
    """Gathers what brokers' files say.

    Args:
        folder: Has a folder for each broker, which bears its name and holds the files of its `store/config`.
        captured_at: When the files were copied; None for the time of the newest file of each broker.
        gathering: Takes what they say; brokers' addresses must be known to it already.

    Yields:
        The files.
    """
    if not folder.is_dir():
        gathering.problems.append(f"{folder} is not a folder; give the one that has a folder for each broker")
        return
    brokers = sorted(path for path in folder.iterdir() if path.is_dir())
    if not brokers or (folder / "topics.json").exists():
        gathering.problems.append(
            f"{folder} has no folder for each broker; put a broker's config folder into one that bears the broker's name"
        )
        return
    for broker in brokers:
        files = sorted(path for path in broker.iterdir() if path.is_file())
        if not files:
            gathering.problems.append(
                f"{broker} is empty; copy the files of the broker's store/config folder into it"
            )
            continue
        newest = max(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in files)
        _read_broker(broker, captured_at or newest, gathering)
        yield from (HostFile(broker.name, path, captured_at or newest) for path in files)


def _read_broker(folder: Path, captured_at: datetime, gathering: AnswerSet) -> None:
    broker = folder.name
    fields = gathering.brokers.named(broker)
    for kind, name in broker_files.WHOLE_FILES.items():
        try:
            found = broker_files.read_config_file(folder, name)
        except ConfigFileError as error:
            gathering.add(SourceAnswer(kind, fields, captured_at, error=(UNREADABLE, f"{broker}: {error}")))
            continue
        if found is None:
            gathering.note(broker, f"there is no {name} among its files, so what it holds of that is unknown")
            continue
        if found.reason:
            gathering.note(broker, f"{found.reason}, so {found.name} is read, as the broker would")
        gathering.add(SourceAnswer(kind, fields, captured_at, found.text))
    try:
        offsets = broker_files.read_config_file(folder, broker_files.OFFSETS_FILE)
        stats = {} if offsets is None else broker_files.consume_stats(broker, offsets)
    except ConfigFileError as error:
        gathering.note(broker, f"{error}, so the offsets of its groups are unknown")
        return
    for group, payload in stats.items():
        # `consumerProgress` says the same and the broker's own offsets beside it.
        gathering.add(
            SourceAnswer(
                "consume_stats", {**fields, "group": group}, captured_at, payload, is_preferred=False
            )
        )
