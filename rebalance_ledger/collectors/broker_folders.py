"""Folders with copies of brokers' config files.

Belongs here: one folder per broker, the kinds that its files answer, and their capture times. Does not belong here: the choice between
a file and its `.bak`, and the content of a file (`broker_files`).
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
    """A file of a broker.

    Attributes:
        broker: The broker's name.
        path: Path of the file.
        captured_at: Time at which it was copied from its host.
    """

    broker: str
    path: Path
    captured_at: datetime

    def write(self, writer: ExportWriter) -> None:
        """Write the file to an export."""
        mtime = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        export_path = f"broker_files/{self.broker}/{self.path.name}"
        writer.file("broker_file", self.captured_at, export_path, self.path, mtime, broker=self.broker)


def read_broker_folders(folder: Path, captured_at: datetime | None, answers: AnswerSet) -> Iterator[HostFile]:
    """Read brokers' config files into an answer set.

    Args:
        folder: Folder with one folder per broker, named after it, which holds the files of its `store/config`.
        captured_at: Time at which the files were copied; None for the time of the newest file of each broker.
        answers: Receives the answers; it must already have the brokers' addresses.

    Yields:
        The files.
    """
    if not folder.is_dir():
        answers.problems.append(f"{folder} is not a folder; give the one that has a folder for each broker")
        return
    brokers = sorted(path for path in folder.iterdir() if path.is_dir())
    if not brokers or (folder / "topics.json").exists():
        answers.problems.append(
            f"{folder} has no folder for each broker; put a broker's config folder into one that bears the broker's name"
        )
        return
    for broker in brokers:
        if not answers.takes_name(broker.name):
            continue
        files = sorted(
            path
            for path in broker.iterdir()
            if path.is_file() and answers.takes_name(f"{broker.name}/{path.name}")
        )
        if not files:
            answers.problems.append(
                f"{broker} is empty; copy the files of the broker's store/config folder into it"
            )
            continue
        newest = max(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in files)
        _read_broker(broker, captured_at or newest, answers)
        yield from (HostFile(broker.name, path, captured_at or newest) for path in files)


def _read_broker(folder: Path, captured_at: datetime, answers: AnswerSet) -> None:
    broker = folder.name
    fields = answers.brokers.by_name(broker)
    for kind, name in broker_files.WHOLE_FILES.items():
        try:
            file = broker_files.read_config_file(folder, name)
        except ConfigFileError as error:
            answers.add(SourceAnswer(kind, fields, captured_at, error=(UNREADABLE, f"{broker}: {error}")))
            continue
        if file is None:
            answers.note(broker, f"there is no {name} among its files, so what it holds of that is unknown")
            continue
        if file.reason:
            answers.note(broker, f"{file.reason}, so {file.name} is read, as the broker would")
        answers.add(SourceAnswer(kind, fields, captured_at, file.text))
    try:
        offsets = broker_files.read_config_file(folder, broker_files.OFFSETS_FILE)
        stats = {} if offsets is None else broker_files.consume_stats(broker, offsets)
    except ConfigFileError as error:
        answers.note(broker, f"{error}, so the offsets of its groups are unknown")
        return
    for group, payload in stats.items():
        # The output of `consumerProgress` takes precedence, because it has the broker offsets too.
        answers.add(
            SourceAnswer(
                "consume_stats", {**fields, "group": group}, captured_at, payload, is_preferred=False
            )
        )
