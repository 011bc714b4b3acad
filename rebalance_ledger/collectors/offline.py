"""An export from what people already have: texts of `mqadmin`, copies of brokers' `store/config` folders, offset files.

What belongs here: the files that are given, when they were captured, and what every export must have. What does not: what
the files say (`mqadmin_answers`, `broker_folders`) and the disk (`export_writer`).

Nothing is guessed. A text that cannot be read is an error line that names the file and the line in it; a command whose
answer would be wrong in every case is refused, and the sentence names the command that serves; what the sources leave out
is an error line or an event, so that what depends on it is unknown. Every source is sealed with the export, byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from rebalance_ledger.collectors.answers import AnswerSet
from rebalance_ledger.collectors.broker_folders import HostFile, read_broker_folders
from rebalance_ledger.collectors.mqadmin_answers import SUMMED, AnswerReader, Asked, WrittenFile
from rebalance_ledger.collectors.mqadmin_transcript import TextError, lines_of, read_transcript
from rebalance_ledger.collectors.offset_file_drop import land
from rebalance_ledger.exports.contract import EnvelopeError
from rebalance_ledger.exports.manifest import MAX_PROBLEM_COUNT, ExportError, Manifest, export_directory
from rebalance_ledger.exports.writer import ExportWriter
from rebalance_ledger.rocketmq.json import RocketMQJsonError, loads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo
    from pathlib import Path

_WANTED: Final = {
    "nameserver_topic_list": "the topics that a name server knows; give the text of `mqadmin topicList -n NAMESERVER`",
    "nameserver_route": "the route of any topic; give the text of `mqadmin topicRoute -n NAMESERVER -t TOPIC` of each topic",
    "consumer_connection": (
        "the members of any group; give the text of `mqadmin consumerConnection -g GROUP -b ADDRESS` of each group and each "
        "broker"
    ),
}
"""The kinds that every export must have, none of which a broker's files can say."""

_TABLE_HEADER: Final = re.compile(
    r"#(?:Topic|ClientId|Broker ?Name|Cluster ?Name|Index|Group)\b|=+[^=\s]+:[0-9]+=+"
)
"""How tables of mqadmin begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What there is to make an export of.

    Attributes:
        texts: Files and folders: transcripts of mqadmin, and the files that its commands wrote.
        broker_files: Folders with a folder for each broker, which bears its name and holds its `store/config` files.
        offset_files: A folder with a folder for each host, with the offset files of its broadcasting clients; None if there
            are none. They are of the time of the last other source, for files do not tell when they were copied.
        nameserver: The name server that was asked by commands without `-n`.
        captured_at: When all of it was captured; None if the sources' own times are to be taken.
        zone: The time zone in which mqadmin printed times; None if that is not known, then they are left out.
    """

    texts: Sequence[Path] = ()
    broker_files: Sequence[Path] = ()
    offset_files: Path | None = None
    nameserver: str | None = None
    captured_at: datetime | None = None
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was made.

    Attributes:
        manifest: Of the sealed export.
        notices: What the sources do not say, and what of them was not used; one sentence each.
    """

    manifest: Manifest
    notices: tuple[str, ...]


def convert(exports: Path, cluster: str, ds: date, sources: Sources) -> Conversion:
    """Write the export that the sources give.

    Args:
        exports: The folder of all clusters.
        cluster: The ledger's name of the cluster.
        ds: The UTC day on which the sources were captured.
        sources: The sources.

    Raises:
        ExportError: The sources are of another day, say nothing of what every export must say, or hold what cannot serve;
            or there already is an export of that day.
    """
    directory = export_directory(exports, cluster, ds)
    gathering = AnswerSet(ds)
    attachments = _files(sources.texts, gathering)
    host_files: list[HostFile] = []
    try:
        _read_texts(attachments, sources, gathering)
        for folder in sources.broker_files:
            host_files += read_broker_folders(folder, sources.captured_at, gathering)
    except OSError as error:
        gathering.problems.append(f"{error.filename} cannot be read: {error.strerror}")
    if sources.offset_files is not None and not sources.offset_files.is_dir():
        gathering.problems.append(
            f"{sources.offset_files} is not a folder; give the one that has a folder for each host"
        )
    kinds = {said.kind for said in gathering.lines()}
    gathering.problems += [f"no source says {what}" for kind, what in _WANTED.items() if kind not in kinds]
    refusals = gathering.refusals()
    if refusals:
        raise ExportError(f"{directory} is not written", refusals[:MAX_PROBLEM_COUNT])
    gathering.note(
        "ledger exports import",
        "made from texts and files; docs/offline-collecting.md says what they cannot say",
    )
    remarks: tuple[str, ...] = ()
    try:
        with ExportWriter(exports, cluster, ds) as writer:
            gathering.write(writer)
            if sources.offset_files is not None:
                captured_at = sources.captured_at or max(said.captured_at for said in gathering.lines())
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
    return Conversion(writer.manifest, gathering.notices + remarks)


def _files(given: Sequence[Path], gathering: AnswerSet) -> dict[str, Path]:
    """Return the files below what was given, by the names that sentences and attachments have for them."""
    found: dict[str, Path] = {}
    for number, root in enumerate(given, start=1):
        prefix = "" if len(given) == 1 else f"{number}/"
        if root.is_dir():
            paths = sorted(path for path in root.rglob("*") if path.is_file())
            found |= {prefix + path.relative_to(root).as_posix(): path for path in paths}
        elif root.is_file():
            found[prefix + root.name] = root
        else:
            gathering.problems.append(
                f"{root} is not there; give a text of mqadmin, or a folder with its texts and files"
            )
    return found


def _read_texts(files: dict[str, Path], sources: Sources, gathering: AnswerSet) -> None:
    asked: list[Asked] = []
    infos: list[WrittenFile] = []
    reader = AnswerReader(gathering, sources.nameserver, sources.zone, {})
    for name, path in files.items():
        captured_at = sources.captured_at or datetime.fromtimestamp(path.stat().st_mtime, UTC)
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            gathering.problems.append(f"{name} is not UTF-8; give the text as mqadmin printed it")
            continue
        if text.lstrip().startswith("{"):
            reader.files[name] = WrittenFile(name, text, captured_at)
        elif text.startswith("#Consumer Properties#"):
            infos.append(WrittenFile(name, text, captured_at))
        else:
            asked += _asked(name, text, captured_at, sources, gathering)
    reader.read_all(asked)
    for info in infos:
        reader.read_running_info(info, lines_of(info.text), sources.captured_at)
    reader.record_what_is_left_out()
    for file in reader.files.values():
        _tell_unused(file, gathering)


def _asked(
    name: str, text: str, captured_at: datetime, sources: Sources, gathering: AnswerSet
) -> list[Asked]:
    try:
        answers = read_transcript(text)
    except TextError as error:
        gathering.problems.append(f"{name} {error}")
        return []
    if not answers and _TABLE_HEADER.match(text.lstrip()):
        gathering.problems.append(
            f"{name} does not say which command printed it; write that into the line before it, such as '$ mqadmin "
            "consumerConnection -n NAMESERVER -g GROUP'"
        )
    elif not answers:
        gathering.note(name, "no text of mqadmin; it is kept as an attachment")
    return [Asked(answer, name, sources.captured_at or answer.asked_at or captured_at) for answer in answers]


def _tell_unused(file: WrittenFile, gathering: AnswerSet) -> None:
    try:
        document = loads(file.text)
    except RocketMQJsonError as error:
        gathering.note(f"{file.name} {error}", "nothing is read of it")
        return
    if isinstance(document, dict) and "exportTime" in document:
        gathering.problems.append(f"{file.name}: {SUMMED}")
    else:
        gathering.note(file.name, "no text says which command wrote it; it is kept as an attachment")
