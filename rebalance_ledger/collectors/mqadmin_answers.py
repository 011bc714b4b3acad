"""Answers of `mqadmin` become lines of an export: whose answer it is, and what it leaves out.

What belongs here: for each command, which kind of line it gives, of which broker, group, topic or client, and what is
recorded where its text says too little. What does not: the formats (`mqadmin_text`), files (`offline`).
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
    UNKNOWN_BROKER,
    UNREADABLE,
    SourceAnswer,
)
from rebalance_ledger.collectors.mqadmin_transcript import TextError
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
class Asked:
    """An answer and where it stands.

    Attributes:
        answer: The answer.
        file_name: The text that it is in.
        captured_at: When it was given.
    """

    answer: Answer
    file_name: str
    captured_at: datetime

    @property
    def where(self) -> str:
        """The line of the command."""
        return f"{self.file_name} line {self.answer.line_number}"

    def place(self, error: TextError) -> str:
        """Where a text is not as expected, and what was."""
        return f"{self.file_name if error.line_number else self.where} {error}"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that mqadmin wrote, or seems to have written.

    Attributes:
        name: Its path below what was given.
        text: What is in it.
        captured_at: When it was written.
    """

    name: str
    text: str
    captured_at: datetime


class _ProblemError(ValueError):
    """An answer stands in the way of any export."""


@dataclass(slots=True)
class AnswerReader:
    """Reads answers into a gathering; those that say who is who must come first, see `FIRST`.

    Attributes:
        gathering: Takes what they say.
        nameserver: The name server that commands without `-n` have asked, if that is known.
        zone: The time zone in which mqadmin printed times; without it they are left out.
        files: The files that commands may have written, by name; those that were read are taken out.
    """

    gathering: AnswerSet
    nameserver: str | None
    zone: tzinfo | None
    files: dict[str, WrittenFile]
    _topics: set[str] | None = None
    _routes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _members: dict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))
    _group_of_file: dict[str, str] = field(default_factory=dict)
    _ambiguous_paths: set[str] = field(default_factory=set)

    def read_all(self, asked: Sequence[Asked]) -> None:
        """Read the answers of all texts."""
        # Who is who comes first: other texts name brokers by address, or cut their names.
        first: dict[str, Callable[[Asked], None]] = {
            "clusterList": self._cluster_list,
            "topicRoute": self._topic_route,
            "topicList": self._topic_list,
        }
        then: dict[str, Callable[[Asked], None]] = {
            "topicStatus": self._topic_status,
            "consumerConnection": self._consumer_connection,
            "consumerProgress": self._consumer_progress,
            "consumerStatus": self._consumer_status,
            "producerConnection": self._producer_connection,
            "getBrokerConfig": self._broker_config,
            "exportMetadata": self._export_metadata,
            "allocateMQ": self._allocate_mq,
        }
        self._find_ambiguous_paths(asked)
        for readers in (first, then):
            for each in asked:
                if each.answer.command not in readers:
                    continue
                try:
                    readers[each.answer.command](each)
                except _ProblemError as error:
                    self._tell(each, error)
        for each in asked:
            if each.answer.command not in first and each.answer.command not in then:
                self.gathering.note(
                    each.where, f"nothing is read of `{each.answer.command}`; it is kept as an attachment"
                )

    def _tell(self, asked: Asked, problem: _ProblemError) -> None:
        """Refuse the sources for a problem, unless the command said nothing that could be lost."""
        if asked.answer.failure is None:
            self.gathering.problems.append(f"{asked.where}: {problem}")
        else:
            self.gathering.note(
                asked.where, f"the command failed ({_first_line(asked.answer.failure)}), and {problem}"
            )

    def read_running_info(
        self, file: WrittenFile, lines: Sequence[Line], captured_at: datetime | None
    ) -> None:
        """Read a file that `consumerStatus -g` wrote; its path ends in an instant and a client id.

        Args:
            file: The file.
            lines: Its lines.
            captured_at: When all sources were captured, if that was said.
        """
        kind = "consumer_running_info"
        match = re.search(r"(?:^|/)([0-9]{13})/(.+)$", file.name)  # A slash in a client id has made a folder.
        client_id = file.name.rpartition("/")[2] if match is None else match[2]
        written_at = file.captured_at if match is None else datetime.fromtimestamp(int(match[1]) / 1000, UTC)
        group = mqadmin_text.group_of_running_info(lines)
        if group is None and match is not None:
            # Clients of other languages do not say it; the list that `consumerStatus -g` printed does.
            group = self._group_of_file.get(f"{match[1]}/{match[2]}")
        if group is None:
            self.gathering.note(
                file.name, "neither it nor a `consumerStatus -g` says of which group it is; it is not read"
            )
            return
        fields = {"group": group, "client_id": client_id}
        try:
            payload = mqadmin_text.running_info_payload(lines, self.zone)
        except TextError as error:
            said = SourceAnswer(
                kind, fields, captured_at or written_at, error=(UNREADABLE, f"{file.name} {error}")
            )
        else:
            said = SourceAnswer(kind, fields, captured_at or written_at, payload)
        self.gathering.add(said)

    def record_what_is_left_out(self) -> None:
        """Write error lines for clients and brokers that no source speaks of: their state is unknown."""
        described = {
            (said.asked["group"], said.asked["client_id"]) for said in self._lines("consumer_running_info")
        }
        for group, client_ids in self._members.items():
            for client_id, captured_at in client_ids.items():
                if (group, client_id) not in described:
                    message = f"no text of `consumerStatus -g {group}` describes this client"
                    fields = {"group": group, "client_id": client_id}
                    self.gathering.add(
                        SourceAnswer("consumer_running_info", fields, captured_at, error=(NOT_GIVEN, message))
                    )
        self._record_brokers_not_asked()

    def _record_brokers_not_asked(self) -> None:
        """Where it is known which brokers were asked for a group, the others may show other members."""
        kind = "consumer_connection"
        by_group: defaultdict[str, list[SourceAnswer]] = defaultdict(list)
        for said in self._lines(kind):
            by_group[said.asked["group"]].append(said)
        brokers = self.gathering.brokers
        known = set(brokers.addresses) if brokers.all_names is None else brokers.all_names
        for group, lines in by_group.items():
            named = [said for said in lines if said.asked["broker"] != UNKNOWN_BROKER]
            unnamed = [said for said in lines if said not in named]
            if unnamed and any(said.payload is not None for said in named):
                for said in unnamed:
                    self.gathering.drop(
                        said, "other texts of the group say which broker answered; it is left out"
                    )
            elif unnamed:
                continue
            for name in known - {said.asked["broker"] for said in named}:
                message = f"no text of `consumerConnection -g {group} -b ADDRESS` is of this broker"
                fields = {**brokers.named(name), "group": group}
                self.gathering.add(
                    SourceAnswer(kind, fields, lines[0].captured_at, error=(NOT_GIVEN, message))
                )

    # What an answer becomes.

    def _lines(self, kind: str) -> list[SourceAnswer]:
        return self.gathering.lines(kind)

    def _payload(self, asked: Asked, kind: str, payload: str, **fields: str) -> None:
        self.gathering.add(SourceAnswer(kind, fields, asked.captured_at, payload))

    def _failed(self, asked: Asked, kind: str, failure: JavaFailure, **fields: str) -> None:
        self.gathering.add(
            SourceAnswer(kind, fields, asked.captured_at, error=(failure.type, failure.message))
        )

    def _unreadable(self, asked: Asked, kind: str, error: TextError, **fields: str) -> None:
        self.gathering.add(
            SourceAnswer(kind, fields, asked.captured_at, error=(UNREADABLE, asked.place(error)))
        )

    def _incomplete(self, asked: Asked, kind: str, what: str, **fields: str) -> None:
        """Records that the text does not say enough; any other answer to the question is taken before it."""
        error = (INCOMPLETE, f"{asked.where}: {what}")
        self.gathering.add(SourceAnswer(kind, fields, asked.captured_at, error=error, is_preferred=False))

    # Name servers.

    def _nameserver(self, asked: Asked) -> str:
        nameserver = asked.answer.options.get("n") or self.nameserver
        if nameserver is None:
            raise _ProblemError("the command has no -n; say with --nameserver which name server was asked")
        return nameserver

    def _cluster_list(self, asked: Asked) -> None:
        kind, nameserver = "nameserver_cluster_info", self._nameserver(asked)
        options, brokers = asked.answer.options, self.gathering.brokers
        if asked.answer.failure is not None:
            self._failed(asked, kind, asked.answer.failure, nameserver=nameserver)
        elif "m" in options:
            what = "`clusterList -m` shows no addresses; leave out -m"
            self._incomplete(asked, kind, what, nameserver=nameserver)
        else:
            try:
                rows = mqadmin_text.cluster_list(asked.answer.lines)
            except TextError as error:
                self._unreadable(asked, kind, error, nameserver=nameserver)
                return
            for row in rows:
                brokers.add(row.broker, row.broker_id, row.address)
            if "c" not in options:
                brokers.all_names = {row.broker for row in rows} | (brokers.all_names or set())
            self._payload(asked, kind, mqadmin_text.cluster_info_payload(rows), nameserver=nameserver)

    def _topic_route(self, asked: Asked) -> None:
        kind, topic = "nameserver_route", _required(asked, "t")
        fields = {"nameserver": self._nameserver(asked), "topic": topic}
        if asked.answer.failure is not None:
            self._failed(asked, kind, asked.answer.failure, **fields)
        elif "l" in asked.answer.options:
            what = "`topicRoute -l` leaves out the order configuration and the mapping of static topics; leave out -l"
            self._incomplete(asked, kind, what, **fields)
        else:
            try:
                payload = mqadmin_text.topic_route_payload(asked.answer.lines)
            except TextError as error:
                self._unreadable(asked, kind, error, **fields)
                return
            for broker, broker_id, address in mqadmin_text.brokers_of_route(payload):
                self.gathering.brokers.add(broker, broker_id, address)
                self._routes[topic].add(broker)
            self._payload(asked, kind, payload, **fields)

    def _topic_list(self, asked: Asked) -> None:
        kind, nameserver = "nameserver_topic_list", self._nameserver(asked)
        if asked.answer.failure is not None:
            self._failed(asked, kind, asked.answer.failure, nameserver=nameserver)
        elif "c" in asked.answer.options:
            what = "`topicList -c` leaves out %RETRY% and %DLQ% topics and cuts the names of the others; leave out -c"
            self._incomplete(asked, kind, what, nameserver=nameserver)
        else:
            try:
                topics = mqadmin_text.topic_list(asked.answer.lines)
            except TextError as error:
                self._unreadable(asked, kind, error, nameserver=nameserver)
                return
            self._topics = (self._topics or set()) | set(topics)
            self._payload(asked, kind, mqadmin_text.topic_list_payload(topics), nameserver=nameserver)

    # Brokers.

    def _broker_at(self, address: str) -> dict[str, str]:
        fields = self.gathering.brokers.at(address)
        if fields is None:
            raise _ProblemError(
                f"no source says which broker has the address {address}; give the text of a `mqadmin clusterList` that shows it"
            )
        return fields

    def _broker_config(self, asked: Asked) -> None:
        kind = "broker_config"
        options, failure = asked.answer.options, asked.answer.failure
        fields = self._broker_at(options["b"]) if "b" in options else None
        if failure is not None and fields is not None:
            self._failed(asked, kind, failure, **fields)
        elif failure is not None:
            self.gathering.note(asked.where, f"`getBrokerConfig -c` failed: {_first_line(failure)}")
        else:
            try:
                configs = mqadmin_text.broker_configs(asked.answer.lines)
            except TextError as error:
                if fields is None:
                    self.gathering.note(asked.place(error), "nothing is read of this `getBrokerConfig -c`")
                else:
                    self._unreadable(asked, kind, error, **fields)
                return
            for config in configs:
                named = (
                    self._broker_at(config.address) if config.broker is None else {"broker": config.broker}
                )
                self._payload(asked, kind, config.payload, **{**named, "broker_addr": config.address})

    def _topic_status(self, asked: Asked) -> None:
        kind, topic = "broker_topic_stats", _required(asked, "t")
        brokers, failure = self.gathering.brokers, asked.answer.failure
        on_route = [brokers.named(name) for name in sorted(self._routes.get(topic, ()))]
        if failure is not None:
            for fields in on_route:
                self._failed(asked, kind, failure, **fields, topic=topic)
            if not on_route:
                self.gathering.note(asked.where, f"`topicStatus` failed: {_first_line(failure)}")
            return
        try:
            rows = mqadmin_text.topic_status(asked.answer.lines, self.zone)
            by_broker = self._by_broker(rows, topic)
        except TextError as error:
            for fields in on_route:
                self._unreadable(asked, kind, error, **fields, topic=topic)
            if not on_route:
                self.gathering.note(asked.place(error), "nothing is read of this `topicStatus`")
            return
        for broker, queues in by_broker.items():
            payload = mqadmin_text.offset_table_payload(queues)
            self._payload(asked, kind, payload, **brokers.named(broker), topic=topic)

    def _by_broker(self, rows: Iterable[QueueRow], topic: str | None = None) -> dict[str, _Queues]:
        """Sorts the rows of a table by broker, under whole names.

        Raises:
            TextError: A name is cut and could be that of several, or a queue stands there twice.
        """
        found: defaultdict[str, _Queues] = defaultdict(list)
        seen: set[tuple[str, str, int]] = set()
        for row in rows:
            its_topic = topic
            if row.topic is not None:
                its_topic = row.topic.whole(self._topics)
            broker = row.broker.whole(self.gathering.brokers.all_names)
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
            if queue in seen:
                raise TextError(
                    row.line_number, f"queue {row.queue_id} of {its_topic} on {broker} is expected once"
                )
            seen.add(queue)
            found[broker].append((*queue, row.values))
        return found

    def _export_metadata(self, asked: Asked) -> None:
        options = asked.answer.options
        if "b" not in options:
            raise _ProblemError(SUMMED)
        fields = self._broker_at(options["b"])
        kind = "broker_topic_config" if "t" in options else "broker_subscription_group"
        if asked.answer.failure is not None:
            self._failed(asked, kind, asked.answer.failure, **fields)
            return
        try:
            path = mqadmin_text.exported_file(asked.answer.lines)
        except TextError as error:
            self._unreadable(asked, kind, error, **fields)
            return
        if path in self._ambiguous_paths:
            what = f"{path} was written by several commands, the last over the others; give each broker its own -f"
            self._incomplete(asked, kind, what, **fields)
            return
        file = self._take_file(asked, path)
        if file is None:
            what = f"{path} is not among the sources; give that file too"
            self._incomplete(asked, kind, what, **fields)
            return
        try:
            document = loads(file.text)
        except RocketMQJsonError as error:
            said = SourceAnswer(kind, fields, asked.captured_at, error=(UNREADABLE, f"{file.name} {error}"))
            self.gathering.add(said)
            return
        if isinstance(document, dict) and "exportTime" in document:
            raise _ProblemError(f"{file.name} is of another command: {SUMMED}")
        if kind == "broker_topic_config":
            more = "" if "s" in options else ", and without -s %RETRY% and %DLQ% topics"
            self.gathering.note(asked.where, f"`exportMetadata -t` leaves out system topics{more}")
        # A broker's own topics.json leaves out nothing.
        self.gathering.add(SourceAnswer(kind, fields, asked.captured_at, file.text, is_preferred=False))

    def _find_ambiguous_paths(self, asked: Sequence[Asked]) -> None:
        """Find the files that several commands say they wrote."""
        seen: set[str] = set()
        for each in asked:
            if each.answer.command == "exportMetadata" and len(each.answer.lines) == 1:
                path = each.answer.lines[0].text.removeprefix("export ").removesuffix(" success")
                if path in seen:
                    self._ambiguous_paths.add(path)
                seen.add(path)

    def _take_file(self, asked: Asked, path: str) -> WrittenFile | None:
        """Find a file by the path that a command printed, which is absolute, or relative to where mqadmin ran."""
        folder = asked.file_name.rpartition("/")[0]
        beside = f"{folder}/{path}" if folder else path
        ending = [
            name for name in self.files if f"/{path}".endswith(f"/{name}") or f"/{name}".endswith(f"/{path}")
        ]
        names = [beside] if beside in self.files else ending
        return self.files.pop(names[0]) if len(names) == 1 else None

    def _allocate_mq(self, _: Asked) -> None:
        raise _ProblemError(_ALLOCATED)

    # Groups and clients.

    def _consumer_connection(self, asked: Asked) -> None:
        kind, group = "consumer_connection", _required(asked, "g")
        failure = asked.answer.failure
        fields = {**self._broker_that_answered(asked, group), "group": group}
        is_known = fields["broker"] != UNKNOWN_BROKER
        if failure is not None:
            if is_known or error_code(failure.message) != _NOT_ONLINE:
                self._failed(asked, kind, failure, **fields)
            else:
                # That one broker of several has nobody of the group does not make the group offline.
                what = (
                    f"the text does not say which broker was asked (use -b), and it said: {failure.message}"
                )
                self._incomplete(asked, kind, what, **fields)
            return
        try:
            payload, client_ids = mqadmin_text.consumer_connection(asked.answer.lines)
        except TextError as error:
            self._unreadable(asked, kind, error, **fields)
            return
        if not is_known:
            self.gathering.note(
                asked.where,
                "the text does not say which broker showed these members, nor whether others show the same; use -b",
            )
        self._members[group].update(dict.fromkeys(client_ids, asked.captured_at))
        self._payload(asked, kind, payload, **fields)

    def _broker_that_answered(self, asked: Asked, group: str) -> dict[str, str]:
        """Return the fields of the broker that was asked; without -b, mqadmin takes any of the retry topic's route."""
        if "b" in asked.answer.options:
            return self._broker_at(asked.answer.options["b"])
        failure = asked.answer.failure
        named_broker = None if failure is None else re.search(r" BROKER: (\S+)", failure.message)
        if named_broker is not None:
            return self._broker_at(named_broker[1])
        for names in (self._routes.get(f"%RETRY%{group}"), self.gathering.brokers.all_names):
            if names is not None and len(names) == 1:
                return self.gathering.brokers.named(next(iter(names)))
        return {"broker": UNKNOWN_BROKER, "broker_addr": UNKNOWN_BROKER}

    def _consumer_progress(self, asked: Asked) -> None:
        kind, options = "consume_stats_merged", asked.answer.options
        if "g" not in options:
            what = "`consumerProgress` without -g shows sums of groups only; nothing is read of it"
            self.gathering.note(asked.where, what)
            return
        group = options["g"]
        if asked.answer.failure is not None:
            self._failed(asked, kind, asked.answer.failure, group=group)
            return
        if "t" in options:
            what = "`consumerProgress -t` shows one topic of the group only; leave out -t"
            self._incomplete(asked, kind, what, group=group)
            return
        try:
            rows = mqadmin_text.consumer_progress(asked.answer.lines, self.zone)
            by_broker = self._by_broker(rows)
        except TextError as error:
            self._unreadable(asked, kind, error, group=group)
            return
        merged = [queue for queues in by_broker.values() for queue in queues]
        self._payload(asked, kind, mqadmin_text.offset_table_payload(merged), group=group)
        for broker, queues in by_broker.items():
            fields = {**self.gathering.brokers.named(broker), "group": group}
            self._payload(asked, "consume_stats", mqadmin_text.offset_table_payload(queues), **fields)

    def _consumer_status(self, asked: Asked) -> None:
        kind, group = "consumer_running_info", _required(asked, "g")
        failure, client_id = asked.answer.failure, asked.answer.options.get("i")
        if client_id is None:
            self._listed_clients(asked, group)
            return
        fields = {"group": group, "client_id": client_id}
        if failure is not None:
            self._failed(asked, kind, failure, **fields)
            return
        try:
            payload = mqadmin_text.running_info_payload(asked.answer.lines, self.zone)
        except TextError as error:
            self._unreadable(asked, kind, error, **fields)
            return
        self._payload(asked, kind, payload, **fields)

    def _listed_clients(self, asked: Asked, group: str) -> None:
        """Notes whom `consumerStatus -g` lists; the files that it wrote say whose they are."""
        if asked.answer.failure is not None:
            self.gathering.note(asked.where, f"`consumerStatus` failed: {_first_line(asked.answer.failure)}")
            return
        try:
            client_ids = mqadmin_text.listed_clients(asked.answer.lines)
        except TextError as error:
            self.gathering.note(asked.place(error), "the list of this `consumerStatus` is not read")
            return
        for path, client_id in client_ids.items():
            self._members[group].setdefault(client_id, asked.captured_at)
            self._group_of_file[path] = group

    def _producer_connection(self, asked: Asked) -> None:
        kind, fields = "producer_connection", {"group": _required(asked, "g"), "topic": _required(asked, "t")}
        if asked.answer.failure is not None:
            self._failed(asked, kind, asked.answer.failure, **fields)
            return
        try:
            payload = mqadmin_text.producer_connection(asked.answer.lines)
        except TextError as error:
            self._unreadable(asked, kind, error, **fields)
            return
        self._payload(asked, kind, payload, **fields)


def _required(asked: Asked, option: str) -> str:
    value = asked.answer.options.get(option)
    if value is None:
        raise _ProblemError(f"the command has no -{option}, so it does not say what was asked")
    return value


def _first_line(failure: JavaFailure) -> str:
    return failure.message.partition("\n")[0] or failure.type
