"""Creation of an export from files: `mqadmin` output, copies of brokers' `store/config` folders, offset files.

Belongs here: the source files, their capture times, and the kinds that every export requires. Does not belong here: the content of the
files (`mqadmin_answers`, `broker_folders`) and files on disk (`rebalance_ledger.exports.writer`).

Nothing is guessed. Text that cannot be parsed becomes an error line with the file and the line number. A command whose
answer is always misleading is refused, with the name of the command to use instead. Missing information becomes an error
line or an event, so that everything that depends on it is unknown. The export attaches every source.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rebalance_ledger.collectors.answers import AnswerSet
from rebalance_ledger.collectors.broker_folders import HostFile, read_broker_folders
from rebalance_ledger.collectors.mqadmin_answers import SUMMED, AnswerReader, TranscriptEntry, WrittenFile
from rebalance_ledger.collectors.mqadmin_transcript import TextError, lines_of, read_transcript
from rebalance_ledger.collectors.offset_file_drop import land
from rebalance_ledger.exports.contract import EnvelopeError
from rebalance_ledger.exports.manifest import ExportError, Manifest, export_directory
from rebalance_ledger.exports.survey import MAX_PROBLEM_COUNT
from rebalance_ledger.exports.writer import ExportWriter
from rebalance_ledger.rocketmq.json import RocketMQJsonError, loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

_REQUIRED: Final = {
    "nameserver_topic_list": "the topics that a name server knows; give the text of `mqadmin topicList -n NAMESERVER`",
    "nameserver_route": "the route of any topic; give the text of `mqadmin topicRoute -n NAMESERVER -t TOPIC` of each topic",
    "consumer_connection": (
        "the members of any group; give the text of `mqadmin consumerConnection -g GROUP -b ADDRESS` of each group and each "
        "broker"
    ),
}
"""Kinds that every export requires and that brokers' files do not contain, with advice."""

_TABLE_HEADER: Final = re.compile(
    r"#(?:Topic|ClientId|Broker ?Name|Cluster ?Name|Index|Group)\b|=+[^=\s]+:[0-9]+=+"
)
"""First line of tables of mqadmin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of an export.

    Attributes:
        texts: Files and folders: transcripts of mqadmin, and the files that its commands wrote.
        broker_files: Folders with one folder per broker, named after it, which holds its `store/config` files.
        offset_files: Folder with one folder per host, with the offset files of its broadcasting clients; None if there are
            none. Their capture time is that of the latest other source, because files do not record their copy time.
        nameserver: Name server of commands without `-n`.
        captured_at: Capture time of all sources; None to use the sources' own times.
        zone: Time zone of the times that mqadmin printed; None if it is unknown, then they are omitted.
    """

    texts: Sequence[Path] = ()
    broker_files: Sequence[Path] = ()
    offset_files: Path | None = None
    nameserver: str | None = None
    captured_at: datetime | None = None
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of a conversion.

    Attributes:
        manifest: Manifest of the sealed export.
        notices: Information that the sources lack, and unused sources; one sentence each.
    """

    manifest: Manifest
    notices: tuple[str, ...]


def convert(exports: Path, cluster: str, ds: date, sources: Sources) -> Conversion:
    """Write an export of the sources.

    Args:
        exports: Folder of all clusters.
        cluster: The ledger's name of the cluster.
        ds: UTC day on which the sources were captured.
        sources: The sources.

    Raises:
        ExportError: The sources are of another day, lack a required kind, or are unusable; or an export of that day exists.
    """
    directory = export_directory(exports, cluster, ds)
    answers = AnswerSet(ds)
    attachments = _files(sources.texts, answers)
    host_files: list[HostFile] = []
    try:
        _read_texts(attachments, sources, answers)
        for folder in sources.broker_files:
            host_files += read_broker_folders(folder, sources.captured_at, answers)
    except OSError as error:
        answers.problems.append(f"{error.filename} cannot be read: {error.strerror}")
    if sources.offset_files is not None and not sources.offset_files.is_dir():
        answers.problems.append(
            f"{sources.offset_files} is not a folder; give the one that has a folder for each host"
        )
    kinds = {answer.kind for answer in answers.lines()}
    answers.problems += [f"no source says {what}" for kind, what in _REQUIRED.items() if kind not in kinds]
    refusals = answers.refusals()
    if refusals:
        raise ExportError(f"{directory} is not written", refusals[:MAX_PROBLEM_COUNT])
    answers.note(
        "ledger exports import",
        "made from texts and files; docs/offline-collecting.md says what they cannot say",
    )
    remarks: tuple[str, ...] = ()
    try:
        with ExportWriter(exports, cluster, ds) as writer:
            answers.write(writer)
            if sources.offset_files is not None:
                captured_at = sources.captured_at or max(answer.captured_at for answer in answers.lines())
                remarks = land(writer, sources.offset_files, now=lambda: captured_at).remarks
            for name, path in attachments.items():
                writer.attach(f"mqadmin/{name}", path)
            for file in host_files:
                file.write(writer)
    except EnvelopeError as error:
        # A name that the contract does not allow, or two folders of one broker.
        raise ExportError(f"{directory} is not written", [f"{error}; rename it, or leave it out"]) from error
    if writer.manifest is None:
        raise AssertionError("a writer whose block ended has sealed")
    return Conversion(writer.manifest, answers.notices + remarks)


def _files(roots: Sequence[Path], answers: AnswerSet) -> dict[str, Path]:
    """Return the files below the source paths, by the names that messages and attachments use."""
    files: dict[str, Path] = {}
    for number, root in enumerate(roots, start=1):
        prefix = "" if len(roots) == 1 else f"{number}/"
        if root.is_dir():
            paths = sorted(_files_below(root, answers))
            names = {prefix + path.relative_to(root).as_posix(): path for path in paths}
            files |= {name: path for name, path in names.items() if answers.takes_name(name)}
        elif root.is_file():
            if answers.takes_name(prefix + root.name):
                files[prefix + root.name] = root
        elif root.exists():
            answers.problems.append(f"{root} is neither a file nor a folder; put its text into a file")
        else:
            answers.problems.append(
                f"{root} is not there; give a text of mqadmin, or a folder with its texts and files"
            )
    return files


def _files_below(root: Path, answers: AnswerSet) -> Iterator[Path]:
    """Yield the files below a folder; report what cannot be read as a problem, because its answers would be missing unnoticed."""

    def refuse(error: OSError) -> None:
        answers.problems.append(f"{error.filename} cannot be read: {error.strerror}")

    for folder, folder_names, file_names in os.walk(root, onerror=refuse):
        for path in (Path(folder, name) for name in (*folder_names, *file_names)):
            if path.is_symlink() and path.is_dir():
                answers.problems.append(f"{path} is a link to a folder; put the folder itself there")
            elif path.is_file():
                yield path
            elif not path.is_dir():
                answers.problems.append(
                    f"{path} is neither a file nor a folder, or a link to nothing; remove it, or put the file itself there"
                )


def _read_texts(files: dict[str, Path], sources: Sources, answers: AnswerSet) -> None:
    entries: list[TranscriptEntry] = []
    infos: list[WrittenFile] = []
    reader = AnswerReader(answers, sources.nameserver, sources.zone, {})
    for name, path in files.items():
        try:
            captured_at = sources.captured_at or datetime.fromtimestamp(path.stat().st_mtime, UTC)
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            answers.problems.append(f"{name} cannot be read: {error.strerror}")
            continue
        except UnicodeDecodeError:
            answers.problems.append(
                f"{name} is not UTF-8; convert it, or run mqadmin again and write its output as UTF-8 (`>` of Windows PowerShell "
                "writes UTF-16)"
            )
            continue
        if text.lstrip().startswith("{"):
            reader.files[name] = WrittenFile(name, text, captured_at)
        elif text.startswith("#Consumer Properties#"):
            infos.append(WrittenFile(name, text, captured_at))
        else:
            entries += _entries(name, text, captured_at, sources, answers)
    reader.read_all(entries)
    for info in infos:
        reader.read_running_info(info, lines_of(info.text), sources.captured_at)
    reader.record_missing()
    for file in reader.files.values():
        _report_unused(file, answers)


def _entries(
    name: str, text: str, captured_at: datetime, sources: Sources, answers: AnswerSet
) -> list[TranscriptEntry]:
    try:
        transcript = read_transcript(text)
    except TextError as error:
        answers.problems.append(f"{name} {error}")
        return []
    if not transcript and _TABLE_HEADER.match(text.lstrip()):
        answers.problems.append(
            f"{name} does not say which command printed it; write that into the line before it, such as '$ mqadmin "
            "consumerConnection -n NAMESERVER -g GROUP'"
        )
    elif not transcript:
        answers.note(name, "no text of mqadmin; it is kept as an attachment")
    return [
        TranscriptEntry(answer, name, sources.captured_at or answer.asked_at or captured_at)
        for answer in transcript
    ]


def _report_unused(file: WrittenFile, answers: AnswerSet) -> None:
    try:
        document = loads(file.text)
    except RocketMQJsonError as error:
        answers.note(f"{file.name} {error}", "nothing is read of it")
        return
    if isinstance(document, dict) and "exportTime" in document:
        answers.problems.append(f"{file.name}: {SUMMED}")
    else:
        answers.note(file.name, "no text says which command wrote it; it is kept as an attachment")
