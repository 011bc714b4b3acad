"""Conversion of `mqadmin` output to the payloads of RocketMQ's admin API.

Belongs here: the output formats of `org.apache.rocketmq.tools.command` (tested with 4.9.7, 5.3.3 and 5.5.0), one function each. Does
not belong here: command lines and failures (`mqadmin_transcript`), the server of a command, and incomplete output (`mqadmin_answers`).

The parsers are strict: a line in any other format raises `TextError`, and nothing of the answer is used. A payload has only
those fields of the Java class that the text shows.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final

from rebalance_ledger.collectors.mqadmin_transcript import Line, TextError
from rebalance_ledger.rocketmq.json import RocketMQJsonError, loads
from strategies import version_of_ordinal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_NAME: Final = r"[^\s#]\S*"
_TOPIC: Final = r"[%|a-zA-Z0-9_@./-]+"
"""Valid topic names; the topic of a broker may have any name that a broker may have."""
_SPACED: Final = r"\S(?:.*?\S)?"
_INTEGER: Final = r"-?[0-9]{1,19}"


@dataclass(frozen=True, slots=True)
class ShownName:
    """A name in a table, possibly truncated.

    Attributes:
        text: The name or its prefix.
        width: Width of the column in characters; None if the table never truncates.
    """

    text: str
    width: int | None

    def whole(self, known: Collection[str] | None) -> str | None:
        """Return the full name; None if it may be truncated and no single known name begins with it.

        Args:
            known: All existing names; None if they are unknown.
        """
        if self.width is None or _java_length(self.text) < self.width:
            return self.text
        matches = [] if known is None else [name for name in known if name.startswith(self.text)]
        return matches[0] if len(matches) == 1 else None


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A line of `clusterList`."""

    cluster: str
    broker: str
    broker_id: int
    address: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A line of a table with one line per queue.

    Attributes:
        line_number: Line number in the text.
        topic: Topic; None if the command has the topic as an option.
        broker: Broker.
        queue_id: Queue id.
        values: Fields of the Java class.
    """

    line_number: int
    topic: ShownName | None
    broker: ShownName
    queue_id: int
    values: dict[str, int]


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A section of `getBrokerConfig`.

    Attributes:
        address: The broker's address.
        broker: Setting `brokerName`; None if it is missing.
        payload: `name=value` lines.
    """

    address: str
    broker: str | None
    payload: str


def topic_list(lines: Sequence[Line]) -> list[str]:
    """Return the topics of `topicList`, which prints one per line without `-c`."""
    for line in lines:
        if not re.fullmatch(_NAME, line.text):
            raise TextError(line.number, "the name of a topic is expected, and nothing else")
    return [line.text for line in lines]


def topic_list_payload(topics: Sequence[str]) -> str:
    """Return `TopicList` as JSON."""
    return _json({"topicList": list(topics)})


def cluster_list(lines: Sequence[Line]) -> list[BrokerAddress]:
    """Return the brokers of `clusterList`."""
    _require_header(lines, "#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version")
    row = re.compile(rf"({_SPACED})  +({_SPACED})  +([0-9]{{1,19}}) +(\S+:[0-9]{{1,5}}) +\S.*")
    brokers = []
    for line in lines[1:]:
        match = row.fullmatch(line.text.rstrip())
        if match is None:
            raise TextError(line.number, "a broker's cluster, name, id, address and state are expected")
        brokers.append(BrokerAddress(match[1], match[2], int(match[3]), match[4]))
    return brokers


def cluster_info_payload(brokers: Sequence[BrokerAddress]) -> str:
    """Return `ClusterInfo` as JSON."""
    addresses: dict[str, dict[str, str]] = {}
    clusters: dict[str, str] = {}
    for broker in brokers:
        addresses.setdefault(broker.broker, {})[str(broker.broker_id)] = broker.address
        clusters[broker.broker] = broker.cluster
    return _json(
        {
            "brokerAddrTable": {
                name: {"brokerAddrs": of_broker, "brokerName": name, "cluster": clusters[name]}
                for name, of_broker in addresses.items()
            },
            "clusterAddrTable": {
                cluster: [name for name, its_cluster in clusters.items() if its_cluster == cluster]
                for cluster in dict.fromkeys(clusters.values())
            },
        }
    )


def topic_route_payload(lines: Sequence[Line]) -> str:
    """Return `TopicRouteData` of `topicRoute`, which prints the JSON unchanged."""
    text = "\n".join(line.text for line in lines)
    first = lines[0].number if lines else 0
    try:
        document = loads(text)
    except RocketMQJsonError as error:
        raise TextError(first + error.line - 1, f"the JSON of a route is expected: {error.reason}") from None
    if not isinstance(document, dict) or "queueDatas" not in document:
        raise TextError(first, "the JSON of a route with its queueDatas is expected")
    return text


def brokers_of_route(payload: str) -> Iterator[tuple[str, int, str]]:
    """Yield the name, id and address of each broker in a route, without missing or malformed entries."""
    document = loads(payload)
    datas = document.get("brokerDatas") if isinstance(document, dict) else None
    for data in datas if isinstance(datas, list) else ():
        name, addresses = (
            (data.get("brokerName"), data.get("brokerAddrs")) if isinstance(data, dict) else (None, None)
        )
        if not isinstance(name, str) or not isinstance(addresses, dict):
            continue
        for broker_id, address in addresses.items():
            if isinstance(address, str) and re.fullmatch(r"[0-9]{1,19}", str(broker_id)):
                yield name, int(broker_id), address


def topic_status(lines: Sequence[Line], zone: tzinfo | None) -> list[QueueRow]:
    """Return the queues of `topicStatus`: `minOffset`, `maxOffset`, and `lastUpdateTimestamp` if the zone is known."""
    _require_header(lines, "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")
    width = _width(lines[0].text, "#Broker Name", "#QID")
    row = re.compile(rf"({_SPACED})  +([0-9]{{1,10}}) +({_INTEGER}) +({_INTEGER}) *(\S.*)?")
    rows = []
    for line in lines[1:]:
        if not line.text or re.fullmatch(r"Topic Put TPS: \S+", line.text):
            continue
        match = row.fullmatch(line.text.rstrip())
        if match is None:
            raise TextError(line.number, "a queue's broker, id, offsets and last update are expected")
        values = {"maxOffset": int(match[4]), "minOffset": int(match[3])}
        if match[5] is None:
            values["lastUpdateTimestamp"] = 0
        else:
            updated = _local_time(line, match[5], "%Y-%m-%d %H:%M:%S,%f", zone)
            values |= {} if updated is None else {"lastUpdateTimestamp": updated}
        rows.append(QueueRow(line.number, None, ShownName(match[1], width), int(match[2]), values))
    return rows


def offset_table_payload(rows: Sequence[tuple[str, str, int, dict[str, int]]]) -> str:
    """Return `ConsumeStats` or `TopicStatsTable` for rows of topic, broker, queue id and values."""
    return '{"offsetTable":' + _queue_map((queue[:3], queue[3]) for queue in rows) + "}"


def consumer_connection(lines: Sequence[Line]) -> tuple[str, list[str]]:
    """Return `ConsumerConnection` of `consumerConnection`, and its client ids."""
    cursor = _Cursor(lines)
    cursor.header("#ClientId", "#ClientAddr", "#Language", "#Version")
    connections = []
    while (line := cursor.next("a connection, or a blank line")).text:
        connections.append(_connection(line, line.text))
    cursor.exactly("Below is subscription:")
    cursor.header("#Topic", "#SubExpression")
    subscriptions = {}
    while (line := cursor.next("a subscription, or a blank line")).text:
        match = re.fullmatch(rf"({_TOPIC}) +(.*)", line.text)
        if match is None:
            raise TextError(line.number, "a topic and its expression are expected")
        subscriptions[match[1]] = {"subString": match[2], "topic": match[1]}
    payload: dict[str, object] = {"connectionSet": connections}
    for label, name in (
        ("ConsumeType", "consumeType"),
        ("MessageModel", "messageModel"),
        ("ConsumeFromWhere", "consumeFromWhere"),
    ):
        line = cursor.next(f"{label}:")
        match = re.fullmatch(rf"{label}: (\w+)", line.text)
        if match is None:
            raise TextError(line.number, f"'{label}: ' and a constant are expected")
        if match[1] != "null":
            payload[name] = match[1]
    cursor.end()
    payload["subscriptionTable"] = subscriptions
    return _json(payload), [str(connection["clientId"]) for connection in connections]


def producer_connection(lines: Sequence[Line]) -> str:
    """Return `ProducerConnection` of `producerConnection`."""
    connections = []
    for line in lines:
        match = re.fullmatch(r"[0-9]{4,} +(.*)", line.text)
        if match is None:
            raise TextError(line.number, "a number and a producer's connection are expected")
        connections.append(_connection(line, match[1]))
    return _json({"connectionSet": connections})


def _connection(line: Line, text: str) -> dict[str, object]:
    # A client id may contain blanks, the other columns cannot: parse from the end.
    match = re.fullmatch(r"(\S.*?) +(\S+:[0-9]{1,5}) +(\w+) +(\w+)", text.rstrip())
    if match is None:
        raise TextError(line.number, "a client's id, address, language and version are expected")
    connection: dict[str, object] = {"clientAddr": match[2], "clientId": match[1]}
    if match[3] != "null":
        connection["language"] = match[3]
    ordinal = _ORDINAL_OF_DESCRIPTION.get(match[4])
    if ordinal is not None:
        connection["version"] = ordinal
    return connection


def consumer_progress(lines: Sequence[Line], zone: tzinfo | None) -> list[QueueRow]:
    """Return the queues of `consumerProgress -g`: `brokerOffset`, `consumerOffset`, and `lastTimestamp` if the zone is known.

    The differences and their sum in the text must match the offsets, which detects truncated text. The column `#Client IP`
    is ignored: it is the part of a client id before the first `@`, which does not identify a client.
    """
    columns = tuple(re.split(r" *#", lines[0].text.rstrip())[1:]) if lines else ()
    row = _PROGRESS_ROWS.get(columns)
    if row is None:
        raise TextError(
            lines[0].number if lines else 0,
            "the header '#Topic #Broker Name #QID #Broker Offset #Consumer Offset …' is expected",
        )
    cursor = _Cursor(lines[1:])
    rows = []
    difference_sum = 0
    while (line := cursor.next("a queue's progress, or a blank line")).text:
        match = row.fullmatch(line.text.rstrip())
        if match is None:
            raise TextError(line.number, f"a value of each column is expected: {', '.join(columns)}")
        values = {
            "brokerOffset": int(match["broker_offset"]),
            "consumerOffset": int(match["consumer_offset"]),
        }
        difference = values["brokerOffset"] - values["consumerOffset"]
        if difference != int(match["difference"]):
            raise TextError(
                line.number, f"a difference of {difference} is expected, not {match['difference']}"
            )
        difference_sum += difference
        if match["last"] == "N/A":
            values["lastTimestamp"] = 0
        elif match["last"]:
            last = _local_time(line, match["last"], "%Y-%m-%d %H:%M:%S", zone)
            values |= {} if last is None else {"lastTimestamp": last}
        topic = ShownName(match["topic"], _width(lines[0].text, "#Topic", "#Broker Name"))
        broker = ShownName(match["broker"], _width(lines[0].text, "#Broker Name", "#QID"))
        rows.append(QueueRow(line.number, topic, broker, int(match["queue_id"]), values))
    cursor.matching(r"Consume TPS: \S+", "'Consume TPS: '")
    line = cursor.matching(r"(?:Consume )?Diff Total: -?[0-9]+", "'Diff Total: '")
    if int(line.text.rpartition(" ")[2]) != difference_sum:
        raise TextError(line.number, f"a sum of {difference_sum} is expected; a queue's line may be missing")
    if "Inflight" in columns:
        cursor.matching(r"Consume Inflight Total: -?[0-9]+", "'Consume Inflight Total: '")
    cursor.end()
    return rows


def _progress_row(*, has_client: bool, has_inflight: bool) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<topic>{_TOPIC}) +(?P<broker>{_SPACED})  +(?P<queue_id>[0-9]{{1,10}}) +(?P<broker_offset>{_INTEGER}) +"
        rf"(?P<consumer_offset>{_INTEGER}) +{r'[^ ].*? +' if has_client else ''}(?P<difference>{_INTEGER})"
        rf"{rf' +{_INTEGER}' if has_inflight else ''} *(?P<last>|N/A|[0-9-]{{10}} [0-9:]{{8}})"
    )


_PROGRESS_COLUMNS: Final = ("Topic", "Broker Name", "QID", "Broker Offset", "Consumer Offset")
_PROGRESS_ROWS: Final = {
    (
        *_PROGRESS_COLUMNS,
        *(["Client IP"] if has_client else []),
        "Diff",
        *(["Inflight"] if has_inflight else []),
        "LastTime",
    ): _progress_row(has_client=has_client, has_inflight=has_inflight)
    for has_client in (False, True)
    for has_inflight in (False, True)
}
"""Row pattern by header. Releases before 4.9 have no `#Inflight`; `-s` adds `#Client IP`."""


def listed_clients(lines: Sequence[Line]) -> dict[str, str]:
    """Return the clients that `consumerStatus -g` lists: path of the file written for each client -> client id."""
    _require_header(lines, "#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile")
    client_ids = {}
    for line in lines[1:]:
        if not line.text:
            break  # mqadmin's verdict follows, which carries no information: it always prints "Rebalance OK".
        match = re.fullmatch(r"[0-9]+ +(\S.*?) +\w+ +([0-9]{13}/(.+))", line.text)
        if match is None or match[1] != match[3]:
            raise TextError(line.number, "an index, a client id, a version and a file are expected")
        client_ids[match[2]] = match[1]
    return client_ids


_SECTION: Final = re.compile(r"#(Consumer [A-Z][\w &]*|User Consume Info)#")
_SECTIONS: Final = ("Consumer Properties", "Consumer Subscription", "Consumer Offset", "Consumer MQ Detail")


def running_info_payload(lines: Sequence[Line], zone: tzinfo | None) -> str:
    """Return `ConsumerRunningInfo` of its `formatString`; times only if the zone is known.

    Averages (`#Consumer RT&TPS#`) and thread dumps are ignored.
    """
    sections = _sections(lines)
    for name in (*_SECTIONS, "Consumer RT&TPS"):
        if name not in sections:
            raise TextError(0, f"the section '#{name}#' is expected; the text may be cut")
    properties = {}
    for line in sections["Consumer Properties"]:
        match = re.fullmatch(r"(\S+) *: (.*)", line.text)
        if match is None:
            raise TextError(line.number, "a property's name and value are expected")
        properties[match[1]] = match[2]
    subscriptions = []
    for line in sections["Consumer Subscription"]:
        match = re.fullmatch(
            rf"[0-9]{{3,}} Topic: ({_TOPIC}) +ClassFilter: (true|false) +SubExpression: (.*)", line.text
        )
        if match is None:
            raise TextError(
                line.number, "a subscription's number, topic, filter mode and expression are expected"
            )
        subscriptions.append(
            {"classFilterMode": match[2] == "true", "subString": match[3], "topic": match[1]}
        )
    owned_queues = [_process_queue(line, zone) for line in _rows(sections["Consumer MQ Detail"])]
    popped_queues = [_pop_process_queue(line) for line in _rows(sections.get("Consumer Pop Detail", ()))]
    offsets = [_queue_offset(line) for line in _rows(sections["Consumer Offset"])]
    if offsets != [(queue, values.get("commitOffset")) for queue, values in owned_queues]:
        raise TextError(
            0, "the same queues and offsets are expected in '#Consumer Offset#' and '#Consumer MQ Detail#'"
        )
    return (
        f'{{"mqPopTable":{_queue_map(popped_queues)},"mqTable":{_queue_map(owned_queues)},"properties":{_json(properties)},'
        f'"subscriptionSet":{_json(subscriptions)}}}'
    )


def group_of_running_info(lines: Sequence[Line]) -> str | None:
    """Return the group of a running info, even if the text is damaged elsewhere; None if it has no group."""
    for line in lines:
        match = re.fullmatch(r"consumerGroup +: (\S+)", line.text)
        if match is not None:
            return match[1]
    return None


def _sections(lines: Sequence[Line]) -> dict[str, list[Line]]:
    sections: dict[str, list[Line]] = {}
    current: list[Line] | None = None
    for line in lines:
        match = _SECTION.fullmatch(line.text)
        if match is not None and match[1] not in sections:
            current = sections.setdefault(match[1], [])
            if match[1] == "Consumer jstack":
                return sections  # The thread dump is the last section, and its lines may look like section headers.
        elif current is not None and line.text:
            current.append(line)
        elif line.text:
            raise TextError(line.number, "'#Consumer Properties#' is expected first")
    return sections


def _rows(section: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines of a table without its header."""
    if section:
        _require_header(section, "#Topic", "#Broker Name", "#QID")
    yield from section[1:]


_Entry = tuple[tuple[str, str, int], "dict[str, int | bool]"]


def _queue_offset(line: Line) -> tuple[tuple[str, str, int], int]:
    match = re.fullmatch(rf"({_TOPIC}) +({_SPACED})  +([0-9]{{1,10}}) +({_INTEGER})", line.text.rstrip())
    if match is None:
        raise TextError(line.number, "a topic, a broker, a queue id and an offset are expected")
    return (match[1], match[2], int(match[3])), int(match[4])


def _process_queue(line: Line, zone: tzinfo | None) -> _Entry:
    queue, text = _queue_detail(line, "ProcessQueueInfo")
    values: dict[str, int | bool] = {}
    for item in text.split(", "):
        name, separator, value = item.partition("=")
        if name.endswith("Timestamp") and re.fullmatch(r"[0-9]{17}", value):
            instant = _local_time(line, value, "%Y%m%d%H%M%S%f", zone)
            values |= {} if instant is None else {name: instant}
        elif separator and value in {"true", "false"}:
            values[name] = value == "true"
        elif separator and re.fullmatch(_INTEGER, value):
            values[name] = int(value)
        else:
            raise TextError(line.number, f"a field of ProcessQueueInfo is expected, and {item!r} is none")
    return queue, values


def _pop_process_queue(line: Line) -> _Entry:
    queue, text = _queue_detail(line, "PopProcessQueueInfo")
    match = re.fullmatch(
        rf"waitAckCount:({_INTEGER}), droped:(true|false), lastPopTimestamp:({_INTEGER})", text
    )
    if match is None:
        raise TextError(line.number, "the fields of PopProcessQueueInfo are expected")
    return queue, {
        "droped": match[2] == "true",
        "lastPopTimestamp": int(match[3]),
        "waitAckCount": int(match[1]),
    }


def _queue_detail(line: Line, class_name: str) -> tuple[tuple[str, str, int], str]:
    match = re.fullmatch(rf"({_TOPIC}) +({_SPACED})  +(-?[0-9]{{1,10}}) +{class_name} \[(.*)\]", line.text)
    if match is None:
        raise TextError(line.number, f"a topic, a broker, a queue id and {class_name} [...] are expected")
    return (match[1], match[2], int(match[3])), match[4]


def broker_configs(lines: Sequence[Line]) -> list[BrokerConfig]:
    """Return the sections of `getBrokerConfig`."""
    sections: list[tuple[str, list[str], str | None]] = []
    for line in lines:
        head = re.fullmatch(r"=+(?:Master: |My Master: \S+=+Slave: )?([^=\s]+:[0-9]{1,5})=+", line.text)
        entry = re.fullmatch(r"(\S+) *=  (.*)", line.text)
        if head is not None:
            sections.append((head[1], [], None))
        elif entry is not None and sections:
            address, settings, name = sections[-1]
            settings.append(f"{entry[1]}={entry[2]}")
            sections[-1] = (address, settings, entry[2] if entry[1] == "brokerName" else name)
        elif line.text:
            raise TextError(
                line.number, "a broker's address between '=' signs, or 'name =  value' is expected"
            )
    for address, settings, _ in sections:
        if not settings:
            raise TextError(0, f"settings of {address} are expected; the text may be cut")
    return [BrokerConfig(address, name, "\n".join(settings) + "\n") for address, settings, name in sections]


def exported_file(lines: Sequence[Line]) -> str:
    """Return the path in the success message of `exportMetadata`."""
    for line in lines:
        match = re.fullmatch(r"export (.+) success", line.text)
        if match is None or len(lines) > 1:
            raise TextError(line.number, "'export FILE success' is expected")
        return match[1]
    raise TextError(0, "'export FILE success' is expected; `exportMetadata -b` wants -t or -g too")


class _Cursor:
    """A cursor over the lines of an answer."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._next = 0

    def next(self, expected: str) -> Line:
        if self._next == len(self._lines):
            raise TextError(
                self._lines[-1].number if self._lines else 0,
                f"{expected} is expected after it; the text may be cut",
            )
        self._next += 1
        return self._lines[self._next - 1]

    def matching(self, pattern: str, expected: str) -> Line:
        line = self.next(expected)
        if not re.fullmatch(pattern, line.text):
            raise TextError(line.number, f"{expected} is expected")
        return line

    def exactly(self, text: str) -> None:
        self.matching(re.escape(text), repr(text))

    def header(self, *columns: str) -> None:
        self.matching(" +".join(map(re.escape, columns)) + " *", f"the header {' '.join(columns)!r}")

    def end(self) -> None:
        if self._next < len(self._lines):
            raise TextError(
                self._lines[self._next].number, "nothing is expected after the answer's last line"
            )


def _require_header(lines: Sequence[Line], *columns: str) -> None:
    expected = " +".join(map(re.escape, columns))
    if not lines or not re.match(expected, lines[0].text):
        raise TextError(lines[0].number if lines else 0, f"the header {' '.join(columns)!r} is expected")


def _width(header: str, column: str, next_column: str) -> int:
    """Return the width of a name column in characters: `UtilAll.frontStringAtLeast` truncates names to it.

    Topic columns have 64 characters, 32 until 4.9.2; broker columns have 32. Two blanks separate the columns.
    """
    return header.index(next_column) - header.index(column) - len("  ")


def _local_time(line: Line, text: str, time_format: str, zone: tzinfo | None) -> int | None:
    """Return a local time of mqadmin in epoch milliseconds; None if the zone is unknown or the time is ambiguous in it."""
    try:
        local = datetime.strptime(text, time_format)  # noqa: DTZ007  # The zone is applied below.
    except ValueError:
        raise TextError(line.number, f"a time is expected, and {text!r} is none") from None
    if zone is None:
        return None
    instants = {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    if len(instants) > 1:
        return None
    return (instants.pop() - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _queue_map(entries: Iterator[tuple[tuple[str, str, int], object]] | Sequence[_Entry]) -> str:
    """Return a map whose keys are message queues, as fastjson writes it."""
    pairs = (
        _json({"brokerName": broker, "queueId": queue_id, "topic": topic}) + ":" + _json(value)
        for (topic, broker, queue_id), value in entries
    )
    return "{" + ",".join(pairs) + "}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _java_length(text: str) -> int:
    """Return Java's `String.length`, which counts a character beyond U+FFFF twice."""
    return len(text.encode("utf-16-le")) // 2


def _description(release: str) -> str:
    """Return `MQVersion.getVersionDesc` of a release: the name of its constant."""
    return "V" + release.replace(".", "_").replace("-", "_")


_ORDINAL_OF_DESCRIPTION: Final = {
    _description(release): ordinal
    for ordinal in range(1000)
    if (release := version_of_ordinal(ordinal)) is not None
}
