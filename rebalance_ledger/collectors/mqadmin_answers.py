"""Conversion of `mqadmin` answers to lines of an export.

Belongs here: for each command, the kind of line, its broker, group, topic or client, and the error line for incomplete output. Does
not belong here: output formats (`mqadmin_text`), files (`offline`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rebalance_ledger.collectors import mqadmin_text
from rebalance_ledger.collectors.answers import (
    INCOMPLETE,
    NOT_GIVEN,
    UNREADABLE,
    SourceAnswer,
)
from rebalance_ledger.collectors.mqadmin_transcript import TextError
from rebalance_ledger.exports.contract import UNKNOWN_BROKER
from rebalance_ledger.exports.payloads import error_code
from rebalance_ledger.rocketmq.json import RocketMQJsonError, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from rebalance_ledger.collectors.answers import AnswerSet
    from rebalance_ledger.collectors.mqadmin_text import QueueRow
    from rebalance_ledger.collectors.mqadmin_transcript import Answer, JavaFailure, Line

SUMMED: Final = (
    "`exportMetadata -c` sums the queues of a topic over the brokers, so it does not say who has them; remove it, and give "
    "`exportMetadata -b ADDRESS` of each broker, or its topics.json"
)

_ALLOCATED: Final = (
    "`allocateMQ` computes AVG over an unsorted set of queues and the addresses that were typed in, which is not what clients "
    "do; remove it, and give `consumerStatus -g GROUP` for what they own"
)

_NOT_ONLINE: Final = 206
"""`ResponseCode.CONSUMER_NOT_ONLINE`."""

_Queues = list[tuple[str, str, int, dict[str, int]]]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """An answer and its position in the sources.

    Attributes:
        answer: The answer.
        file_name: Name of the transcript file.
        captured_at: Capture time.
    """

    answer: Answer
    file_name: str
    captured_at: datetime

    @property
    def where(self) -> str:
        """File name and line number of the command."""
        return f"{self.file_name} line {self.answer.line_number}"

    def describe(self, error: TextError) -> str:
        """Return the position and the reason of an error in this answer."""
        return f"{self.file_name if error.line_number else self.where} {error}"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that mqadmin wrote or may have written.

    Attributes:
        name: Path relative to the source folder.
        text: Content.
        captured_at: Time at which it was written.
    """

    name: str
    text: str
    captured_at: datetime


class _ProblemError(ValueError):
    """An answer prevents the export."""


@dataclass(slots=True)
class AnswerReader:
    """Reader of transcripts into an answer set.

    Attributes:
        answers: Receives the answers.
        nameserver: Name server of commands without `-n`, if known.
        zone: Time zone of the times that mqadmin printed; without it times are omitted.
        files: Files that commands may have written, by name; `read_all` removes those that it reads.
    """

    answers: AnswerSet
    nameserver: str | None
    zone: tzinfo | None
    files: dict[str, WrittenFile]
    _topics: set[str] | None = None
    _routes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _members: dict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))
    _group_of_file: dict[str, str] = field(default_factory=dict)
    _ambiguous_paths: set[str] = field(default_factory=set)

    def read_all(self, entries: Sequence[TranscriptEntry]) -> None:
        """Read the answers of all transcripts."""
        # Commands that map broker names to addresses come first: other output has only addresses or truncated names.
        first_readers: dict[str, Callable[[TranscriptEntry], None]] = {
            "clusterList": self._cluster_list,
            "topicRoute": self._topic_route,
            "topicList": self._topic_list,
        }
        other_readers: dict[str, Callable[[TranscriptEntry], None]] = {
            "topicStatus": self._topic_status,
            "consumerConnection": self._consumer_connection,
            "consumerProgress": self._consumer_progress,
            "consumerStatus": self._consumer_status,
            "producerConnection": self._producer_connection,
            "getBrokerConfig": self._broker_config,
            "exportMetadata": self._export_metadata,
            "allocateMQ": self._allocate_mq,
        }
        self._find_ambiguous_paths(entries)
        for readers in (first_readers, other_readers):
            for entry in entries:
                if entry.answer.command not in readers:
                    continue
                try:
                    readers[entry.answer.command](entry)
                except _ProblemError as error:
                    self._report_problem(entry, error)
        for entry in entries:
            if entry.answer.command not in first_readers and entry.answer.command not in other_readers:
                self.answers.note(
                    entry.where, f"nothing is read of `{entry.answer.command}`; it is kept as an attachment"
                )

    def _report_problem(self, entry: TranscriptEntry, problem: _ProblemError) -> None:
        """Add a problem, or only a notice if the command failed and so no output is lost."""
        if entry.answer.failure is None:
            self.answers.problems.append(f"{entry.where}: {problem}")
        else:
            self.answers.note(
                entry.where, f"the command failed ({_first_line(entry.answer.failure)}), and {problem}"
            )

    def read_running_info(
        self, file: WrittenFile, lines: Sequence[Line], captured_at: datetime | None
    ) -> None:
        """Read a file that `consumerStatus -g` wrote; its path ends with a timestamp and a client id.

        Args:
            file: The file.
            lines: Its lines.
            captured_at: Capture time of all sources, if the user specified it.
        """
        kind = "consumer_running_info"
        match = re.search(r"(?:^|/)([0-9]{13})/(.+)$", file.name)  # A slash in a client id creates a folder.
        client_id = file.name.rpartition("/")[2] if match is None else match[2]
        written_at = file.captured_at if match is None else datetime.fromtimestamp(int(match[1]) / 1000, UTC)
        group = mqadmin_text.group_of_running_info(lines)
        if group is None and match is not None:
            # Clients in other languages omit the group; the list of `consumerStatus -g` has it.
            group = self._group_of_file.get(f"{match[1]}/{match[2]}")
        if group is None:
            self.answers.note(
                file.name, "neither the file nor `consumerStatus -g` names its group; the file is ignored"
            )
            return
        fields = {"group": group, "client_id": client_id}
        try:
            payload = mqadmin_text.running_info_payload(lines, self.zone)
        except TextError as error:
            source_answer = SourceAnswer(
                kind, fields, captured_at or written_at, error=(UNREADABLE, f"{file.name} {error}")
            )
        else:
            source_answer = SourceAnswer(kind, fields, captured_at or written_at, payload)
        self.answers.add(source_answer)

    def record_missing(self) -> None:
        """Add error lines for clients and brokers without a source, because their state is unknown."""
        described_clients = {
            (answer.request["group"], answer.request["client_id"])
            for answer in self._lines("consumer_running_info")
        }
        for group, client_ids in self._members.items():
            for client_id, captured_at in client_ids.items():
                if (group, client_id) not in described_clients:
                    message = f"no text of `consumerStatus -g {group}` describes this client"
                    fields = {"group": group, "client_id": client_id}
                    self.answers.add(
                        SourceAnswer("consumer_running_info", fields, captured_at, error=(NOT_GIVEN, message))
                    )
        self._record_missing_brokers()

    def _record_missing_brokers(self) -> None:
        """Add error lines for the other brokers of a group's connections: they may have other members."""
        kind = "consumer_connection"
        by_group: defaultdict[str, list[SourceAnswer]] = defaultdict(list)
        for answer in self._lines(kind):
            by_group[answer.request["group"]].append(answer)
        brokers = self.answers.brokers
        known_names = set(brokers.addresses) if brokers.all_names is None else brokers.all_names
        for group, lines in by_group.items():
            identified_answers = [answer for answer in lines if answer.request["broker"] != UNKNOWN_BROKER]
            unidentified_answers = [answer for answer in lines if answer not in identified_answers]
            if unidentified_answers and any(answer.payload is not None for answer in identified_answers):
                for answer in unidentified_answers:
                    self.answers.drop(
                        answer, "other texts of the group name the broker that answered; it is discarded"
                    )
            elif unidentified_answers:
                continue
            for name in known_names - {answer.request["broker"] for answer in identified_answers}:
                message = f"no text of `consumerConnection -g {group} -b ADDRESS` is of this broker"
                fields = {**brokers.by_name(name), "group": group}
                self.answers.add(SourceAnswer(kind, fields, lines[0].captured_at, error=(NOT_GIVEN, message)))

    # Lines of the export.

    def _lines(self, kind: str) -> list[SourceAnswer]:
        return self.answers.lines(kind)

    def _payload(self, entry: TranscriptEntry, kind: str, payload: str, **fields: str) -> None:
        self.answers.add(SourceAnswer(kind, fields, entry.captured_at, payload))

    def _failed(self, entry: TranscriptEntry, kind: str, failure: JavaFailure, **fields: str) -> None:
        self.answers.add(SourceAnswer(kind, fields, entry.captured_at, error=(failure.type, failure.message)))

    def _unreadable(self, entry: TranscriptEntry, kind: str, error: TextError, **fields: str) -> None:
        self.answers.add(
            SourceAnswer(kind, fields, entry.captured_at, error=(UNREADABLE, entry.describe(error)))
        )

    def _incomplete(self, entry: TranscriptEntry, kind: str, what: str, **fields: str) -> None:
        """Add an error line for incomplete output; any other answer to the question takes precedence."""
        error = (INCOMPLETE, f"{entry.where}: {what}")
        self.answers.add(SourceAnswer(kind, fields, entry.captured_at, error=error, is_preferred=False))

    # Name servers.

    def _nameserver(self, entry: TranscriptEntry) -> str:
        nameserver = entry.answer.options.get("n") or self.nameserver
        if nameserver is None:
            raise _ProblemError("the command has no -n; specify the name server with --nameserver")
        return nameserver

    def _cluster_list(self, entry: TranscriptEntry) -> None:
        kind, nameserver = "nameserver_cluster_info", self._nameserver(entry)
        options, brokers = entry.answer.options, self.answers.brokers
        if entry.answer.failure is not None:
            self._failed(entry, kind, entry.answer.failure, nameserver=nameserver)
        elif "m" in options:
            what = "`clusterList -m` shows no addresses; run it without -m"
            self._incomplete(entry, kind, what, nameserver=nameserver)
        else:
            try:
                rows = mqadmin_text.cluster_list(entry.answer.lines)
            except TextError as error:
                self._unreadable(entry, kind, error, nameserver=nameserver)
                return
            for row in rows:
                brokers.add(row.broker, row.broker_id, row.address)
            if "c" not in options:
                brokers.all_names = {row.broker for row in rows} | (brokers.all_names or set())
            self._payload(entry, kind, mqadmin_text.cluster_info_payload(rows), nameserver=nameserver)

    def _topic_route(self, entry: TranscriptEntry) -> None:
        kind, topic = "nameserver_route", _required_option(entry, "t")
        fields = {"nameserver": self._nameserver(entry), "topic": topic}
        if entry.answer.failure is not None:
            self._failed(entry, kind, entry.answer.failure, **fields)
        elif "l" in entry.answer.options:
            what = "`topicRoute -l` omits the order configuration and the mapping of static topics; run it without -l"
            self._incomplete(entry, kind, what, **fields)
        else:
            try:
                payload = mqadmin_text.topic_route_payload(entry.answer.lines)
            except TextError as error:
                self._unreadable(entry, kind, error, **fields)
                return
            for broker, broker_id, address in mqadmin_text.brokers_of_route(payload):
                self.answers.brokers.add(broker, broker_id, address)
                self._routes[topic].add(broker)
            self._payload(entry, kind, payload, **fields)

    def _topic_list(self, entry: TranscriptEntry) -> None:
        kind, nameserver = "nameserver_topic_list", self._nameserver(entry)
        if entry.answer.failure is not None:
            self._failed(entry, kind, entry.answer.failure, nameserver=nameserver)
        elif "c" in entry.answer.options:
            what = "`topicList -c` omits %RETRY% and %DLQ% topics and truncates the names of the others; run it without -c"
            self._incomplete(entry, kind, what, nameserver=nameserver)
        else:
            try:
                topics = mqadmin_text.topic_list(entry.answer.lines)
            except TextError as error:
                self._unreadable(entry, kind, error, nameserver=nameserver)
                return
            self._topics = (self._topics or set()) | set(topics)
            self._payload(entry, kind, mqadmin_text.topic_list_payload(topics), nameserver=nameserver)

    # Brokers.

    def _broker_at(self, address: str) -> dict[str, str]:
        fields = self.answers.brokers.by_address(address)
        if fields is None:
            raise _ProblemError(
                f"no source says which broker has the address {address}; give the text of a `mqadmin clusterList` that shows it"
            )
        return fields

    def _broker_config(self, entry: TranscriptEntry) -> None:
        kind = "broker_config"
        options, failure = entry.answer.options, entry.answer.failure
        fields = self._broker_at(options["b"]) if "b" in options else None
        if failure is not None and fields is not None:
            self._failed(entry, kind, failure, **fields)
        elif failure is not None:
            self.answers.note(entry.where, f"`getBrokerConfig -c` failed: {_first_line(failure)}")
        else:
            try:
                configs = mqadmin_text.broker_configs(entry.answer.lines)
            except TextError as error:
                if fields is None:
                    self.answers.note(entry.describe(error), "nothing is read of this `getBrokerConfig -c`")
                else:
                    self._unreadable(entry, kind, error, **fields)
                return
            for config in configs:
                fields_of_broker = (
                    self._broker_at(config.address) if config.broker is None else {"broker": config.broker}
                )
                self._payload(
                    entry, kind, config.payload, **{**fields_of_broker, "broker_addr": config.address}
                )

    def _topic_status(self, entry: TranscriptEntry) -> None:
        kind, topic = "broker_topic_stats", _required_option(entry, "t")
        brokers, failure = self.answers.brokers, entry.answer.failure
        on_route = [brokers.by_name(name) for name in sorted(self._routes.get(topic, ()))]
        if failure is not None:
            for fields in on_route:
                self._failed(entry, kind, failure, **fields, topic=topic)
            if not on_route:
                self.answers.note(entry.where, f"`topicStatus` failed: {_first_line(failure)}")
            return
        try:
            rows = mqadmin_text.topic_status(entry.answer.lines, self.zone)
            by_broker = self._by_broker(rows, topic)
        except TextError as error:
            for fields in on_route:
                self._unreadable(entry, kind, error, **fields, topic=topic)
            if not on_route:
                self.answers.note(entry.describe(error), "nothing is read of this `topicStatus`")
            return
        for broker, queues in by_broker.items():
            payload = mqadmin_text.offset_table_payload(queues)
            self._payload(entry, kind, payload, **brokers.by_name(broker), topic=topic)

    def _by_broker(self, rows: Iterable[QueueRow], topic: str | None = None) -> dict[str, _Queues]:
        """Group the rows of a table by broker, with full names.

        Raises:
            TextError: A truncated name is ambiguous, or the table has a queue twice.
        """
        by_broker: defaultdict[str, _Queues] = defaultdict(list)
        queues: set[tuple[str, str, int]] = set()
        for row in rows:
            its_topic = topic
            if row.topic is not None:
                its_topic = row.topic.whole(self._topics)
            broker = row.broker.whole(self.answers.brokers.all_names)
            for what, name, cut in (("topic", its_topic, row.topic), ("broker", broker, row.broker)):
                if name is None and cut is not None:
                    raise TextError(
                        row.line_number,
                        f"the whole name of a {what} is expected: mqadmin shows {cut.width} characters of it, and no source says "
                        f"which one begins with {cut.text!r}",
                    )
            if its_topic is None or broker is None:
                raise AssertionError("one of them was cut")
            queue = (its_topic, broker, row.queue_id)
            if queue in queues:
                raise TextError(
                    row.line_number, f"queue {row.queue_id} of {its_topic} on {broker} is expected once"
                )
            queues.add(queue)
            by_broker[broker].append((*queue, row.values))
        return by_broker

    def _export_metadata(self, entry: TranscriptEntry) -> None:
        options = entry.answer.options
        if "b" not in options:
            raise _ProblemError(SUMMED)
        fields = self._broker_at(options["b"])
        kind = "broker_topic_config" if "t" in options else "broker_subscription_group"
        if entry.answer.failure is not None:
            self._failed(entry, kind, entry.answer.failure, **fields)
            return
        try:
            path = mqadmin_text.exported_file(entry.answer.lines)
        except TextError as error:
            self._unreadable(entry, kind, error, **fields)
            return
        if path in self._ambiguous_paths:
            what = f"{path} was written by several commands, the last over the others; give each broker its own -f"
            self._incomplete(entry, kind, what, **fields)
            return
        file = self._take_file(entry, path)
        if file is None:
            what = f"{path} is not among the sources; give that file too"
            self._incomplete(entry, kind, what, **fields)
            return
        try:
            document = loads(file.text)
        except RocketMQJsonError as error:
            source_answer = SourceAnswer(
                kind, fields, entry.captured_at, error=(UNREADABLE, f"{file.name} {error}")
            )
            self.answers.add(source_answer)
            return
        if isinstance(document, dict) and "exportTime" in document:
            raise _ProblemError(f"{file.name} is of another command: {SUMMED}")
        if kind == "broker_topic_config":
            more = "" if "s" in options else ", and without -s %RETRY% and %DLQ% topics"
            self.answers.note(entry.where, f"`exportMetadata -t` omits system topics{more}")
        # A broker's topics.json is complete, so it takes precedence.
        self.answers.add(SourceAnswer(kind, fields, entry.captured_at, file.text, is_preferred=False))

    def _find_ambiguous_paths(self, entries: Sequence[TranscriptEntry]) -> None:
        """Find the paths that several commands wrote to."""
        paths: set[str] = set()
        for entry in entries:
            if entry.answer.command == "exportMetadata" and len(entry.answer.lines) == 1:
                path = entry.answer.lines[0].text.removeprefix("export ").removesuffix(" success")
                if path in paths:
                    self._ambiguous_paths.add(path)
                paths.add(path)

    def _take_file(self, entry: TranscriptEntry, path: str) -> WrittenFile | None:
        """Find a file by the printed path, which is absolute or relative to the working directory of mqadmin."""
        folder = entry.file_name.rpartition("/")[0]
        beside = f"{folder}/{path}" if folder else path
        ending = [
            name for name in self.files if f"/{path}".endswith(f"/{name}") or f"/{name}".endswith(f"/{path}")
        ]
        names = [beside] if beside in self.files else ending
        return self.files.pop(names[0]) if len(names) == 1 else None

    def _allocate_mq(self, _: TranscriptEntry) -> None:
        raise _ProblemError(_ALLOCATED)

    # Groups and clients.

    def _consumer_connection(self, entry: TranscriptEntry) -> None:
        kind, group = "consumer_connection", _required_option(entry, "g")
        failure = entry.answer.failure
        fields = {**self._broker_that_answered(entry, group), "group": group}
        is_known = fields["broker"] != UNKNOWN_BROKER
        if failure is not None:
            if is_known or error_code(failure.message) != _NOT_ONLINE:
                self._failed(entry, kind, failure, **fields)
            else:
                # A group without members on one of several brokers is not necessarily offline.
                what = f"the text does not say which broker answered (use -b); the error: {failure.message}"
                self._incomplete(entry, kind, what, **fields)
            return
        try:
            payload, client_ids = mqadmin_text.consumer_connection(entry.answer.lines)
        except TextError as error:
            self._unreadable(entry, kind, error, **fields)
            return
        if not is_known:
            self.answers.note(
                entry.where,
                "the text does not say which broker showed these members, nor whether others show the same; use -b",
            )
        self._members[group].update(dict.fromkeys(client_ids, entry.captured_at))
        self._payload(entry, kind, payload, **fields)

    def _broker_that_answered(self, entry: TranscriptEntry, group: str) -> dict[str, str]:
        """Return the fields of the broker that answered; without -b, mqadmin chooses any broker of the retry topic's route."""
        if "b" in entry.answer.options:
            return self._broker_at(entry.answer.options["b"])
        failure = entry.answer.failure
        named_broker = None if failure is None else re.search(r" BROKER: (\S+)", failure.message)
        if named_broker is not None:
            return self._broker_at(named_broker[1])
        for names in (self._routes.get(f"%RETRY%{group}"), self.answers.brokers.all_names):
            if names is not None and len(names) == 1:
                return self.answers.brokers.by_name(next(iter(names)))
        return {"broker": UNKNOWN_BROKER, "broker_addr": UNKNOWN_BROKER}

    def _consumer_progress(self, entry: TranscriptEntry) -> None:
        kind, options = "consume_stats_merged", entry.answer.options
        if "g" not in options:
            what = "`consumerProgress` without -g shows sums of groups only; nothing is read of it"
            self.answers.note(entry.where, what)
            return
        group = options["g"]
        if entry.answer.failure is not None:
            self._failed(entry, kind, entry.answer.failure, group=group)
            return
        if "t" in options:
            what = "`consumerProgress -t` shows one topic of the group only; run it without -t"
            self._incomplete(entry, kind, what, group=group)
            return
        try:
            rows = mqadmin_text.consumer_progress(entry.answer.lines, self.zone)
            by_broker = self._by_broker(rows)
        except TextError as error:
            self._unreadable(entry, kind, error, group=group)
            return
        all_queues = [queue for queues in by_broker.values() for queue in queues]
        self._payload(entry, kind, mqadmin_text.offset_table_payload(all_queues), group=group)
        for broker, queues in by_broker.items():
            fields = {**self.answers.brokers.by_name(broker), "group": group}
            self._payload(entry, "consume_stats", mqadmin_text.offset_table_payload(queues), **fields)

    def _consumer_status(self, entry: TranscriptEntry) -> None:
        kind, group = "consumer_running_info", _required_option(entry, "g")
        failure, client_id = entry.answer.failure, entry.answer.options.get("i")
        if client_id is None:
            self._read_client_list(entry, group)
            return
        fields = {"group": group, "client_id": client_id}
        if failure is not None:
            self._failed(entry, kind, failure, **fields)
            return
        try:
            payload = mqadmin_text.running_info_payload(entry.answer.lines, self.zone)
        except TextError as error:
            self._unreadable(entry, kind, error, **fields)
            return
        self._payload(entry, kind, payload, **fields)

    def _read_client_list(self, entry: TranscriptEntry, group: str) -> None:
        """Record the clients that `consumerStatus -g` lists, and the group of the files that it wrote."""
        if entry.answer.failure is not None:
            self.answers.note(entry.where, f"`consumerStatus` failed: {_first_line(entry.answer.failure)}")
            return
        try:
            client_ids = mqadmin_text.listed_clients(entry.answer.lines)
        except TextError as error:
            self.answers.note(entry.describe(error), "the list of this `consumerStatus` is not read")
            return
        for path, client_id in client_ids.items():
            self._members[group].setdefault(client_id, entry.captured_at)
            self._group_of_file[path] = group

    def _producer_connection(self, entry: TranscriptEntry) -> None:
        kind, fields = (
            "producer_connection",
            {"group": _required_option(entry, "g"), "topic": _required_option(entry, "t")},
        )
        if entry.answer.failure is not None:
            self._failed(entry, kind, entry.answer.failure, **fields)
            return
        try:
            payload = mqadmin_text.producer_connection(entry.answer.lines)
        except TextError as error:
            self._unreadable(entry, kind, error, **fields)
            return
        self._payload(entry, kind, payload, **fields)


def _required_option(entry: TranscriptEntry, option: str) -> str:
    value = entry.answer.options.get(option)
    if value is None:
        raise _ProblemError(f"the command has no -{option}, so it does not say what was asked")
    return value


def _first_line(failure: JavaFailure) -> str:
    return failure.message.partition("\n")[0] or failure.type
