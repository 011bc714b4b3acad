"""Export contract v1: the kinds of files in an export, and the envelope format of their lines.

`docs/export-contract.md` documents the contract. Belongs here: names, keys, and the validation of a single line. Does not belong here:
directories (`survey`), manifests (`manifest`) and seals (`sealing`), and the content of payloads (`payloads`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from rebalance_ledger.cluster_name import cluster_name_problem
from rebalance_ledger.printable import is_unicode, quoted

CONTRACT_VERSION: Final = 1
"""Incremented when a valid export becomes invalid or changes its meaning; new kinds do not increment it."""

MAX_LINE_BYTES: Final = 256 * 1024 * 1024
"""Maximum length of a line in a file of envelopes, including the line feed."""


class Content(Enum):
    """Content of a line whose source did not fail."""

    ROCKETMQ_JSON = "payload: text in RocketMQ's JSON dialect"
    PROPERTIES = "payload: `name=value` lines"
    FILE = "path, size, mtime and sha256 of a file that lies in the export byte for byte"
    NOTE = "event: a sentence for people"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of source.

    Attributes:
        name: Value of `kind` in its envelopes.
        file_name: Name of the file at the top of the export.
        keys: Required fields that identify the request.
        meaning: Short description of a line.
        content: Content of a line.
        is_required: Whether an export without this file, or with an empty one, is invalid. If another file is absent, its
            source is missing, and everything that depends on it is unknown.
        folders: For `Content.FILE`: folders of the files, each of which must be in the index.
    """

    name: str
    file_name: str
    keys: tuple[str, ...]
    meaning: str
    content: Content = Content.ROCKETMQ_JSON
    is_required: bool = False
    folders: tuple[str, ...] = ()


_BROKER = ("broker", "broker_addr")

OFFSET_FILE_KIND: Final = "offset_file"
"""Name of the kind of the index of offset files."""

KINDS: Final = (
    Kind(
        "nameserver_topic_list",
        "nameserver_topic_lists.jsonl",
        ("nameserver",),
        "all topics that a name server knows (`TopicList`)",
        is_required=True,
    ),
    Kind(
        "nameserver_cluster_info",
        "nameserver_cluster_infos.jsonl",
        ("nameserver",),
        "brokers and their addresses (`ClusterInfo`)",
    ),
    Kind(
        "nameserver_route",
        "nameserver_routes.jsonl",
        ("nameserver", "topic"),
        "the route of a topic (`TopicRouteData`)",
        is_required=True,
    ),
    Kind(
        "broker_topic_config",
        "broker_topic_configs.jsonl",
        _BROKER,
        "all topic configurations of a broker (`TopicConfigSerializeWrapper`)",
    ),
    Kind(
        "broker_subscription_group",
        "broker_subscription_groups.jsonl",
        _BROKER,
        "all group configurations of a broker (`SubscriptionGroupWrapper`)",
    ),
    Kind("broker_config", "broker_configs.jsonl", _BROKER, "a broker's settings", content=Content.PROPERTIES),
    Kind(
        "broker_topic_stats",
        "broker_topic_stats.jsonl",
        (*_BROKER, "topic"),
        "min and max offset of each queue of a topic on a broker (`TopicStatsTable`)",
    ),
    Kind(
        "broker_producer_table",
        "broker_producers.jsonl",
        _BROKER,
        "all producers connected to a broker (`ProducerTableInfo`)",
    ),
    Kind(
        "broker_message_request_mode",
        "broker_message_request_modes.jsonl",
        _BROKER,
        "groups switched between PULL and POP (`MessageRequestModeSerializeWrapper`)",
    ),
    Kind(
        "consumer_order_info",
        "consumer_order_infos.jsonl",
        _BROKER,
        "messages of FIFO queues that are handed out and keep their queue waiting (`ConsumerOrderInfoManager`)",
    ),
    Kind(
        "broker_runtime_info",
        "broker_runtime_infos.jsonl",
        _BROKER,
        "a broker's release and counters (`KVTable`)",
    ),
    Kind(
        "consumer_connection",
        "consumer_connections.jsonl",
        (*_BROKER, "group"),
        "the members of a group that a broker sees (`ConsumerConnection`)",
        is_required=True,
    ),
    Kind(
        "proxy_consumer_connection",
        "proxy_consumer_connections.jsonl",
        ("proxy", "group"),
        "the members of a group that a proxy sees (`ConsumerConnection`)",
    ),
    Kind(
        "consumer_running_info",
        "consumer_running_infos.jsonl",
        ("group", "client_id"),
        "what a client owns and how it is set up, asked through a broker (`ConsumerRunningInfo`)",
    ),
    Kind(
        "consumer_status",
        "consumer_statuses.jsonl",
        (*_BROKER, "group", "topic"),
        "offsets that members of a broadcasting group have in memory, asked through a broker (`GetConsumerStatusBody`)",
    ),
    Kind(
        "process_assignment",
        "process_assignments.jsonl",
        ("process", "group", "client_id"),
        "the same, asked of one process directly: distinguishes processes with one client id",
    ),
    Kind(
        "consume_stats",
        "consume_stats.jsonl",
        (*_BROKER, "group"),
        "broker and consumer offset of each queue of a group on a broker (`ConsumeStats`)",
    ),
    Kind(
        "consume_stats_merged",
        "consume_stats_merged.jsonl",
        ("group",),
        "the same over all brokers, as the admin client merges it (`ConsumeStats`)",
    ),
    Kind(
        "producer_connection",
        "producer_connections.jsonl",
        ("group", "topic"),
        "the producers of a producer group (`ProducerConnection`)",
    ),
    Kind(
        OFFSET_FILE_KIND,
        "offset_files_index.jsonl",
        ("moment", "host", "client_id", "group"),
        "progress file of a broadcasting client, or its `.bak`",
        content=Content.FILE,
        folders=("offset_files", "offset_files_moments"),
    ),
    Kind(
        "broker_file",
        "broker_files_index.jsonl",
        ("broker",),
        "file of a broker's config folder",
        content=Content.FILE,
        folders=("broker_files",),
    ),
    Kind(
        "capture_attempt",
        "capture_attempts.jsonl",
        ("attempt",),
        "an attempt at the capture: when, and how much of the export had failed after it",
    ),
    Kind("event", "events.jsonl", (), "changes of the cluster, and notes for people", content=Content.NOTE),
)
"""Every kind of contract v1."""

KIND_BY_NAME: Final = {kind.name: kind for kind in KINDS}
KIND_BY_FILE_NAME: Final = {kind.file_name: kind for kind in KINDS}


UNKNOWN_BROKER: Final = "(unknown)"
"""Placeholder for the broker or its address where no source identifies it (`mqadmin consumerConnection` without `-b`)."""

NOT_ASKED: Final = "NotAsked"
"""Error type of a skipped question, which is not a failure: the source cannot have the answer; the message is the reason."""


class EnvelopeError(ValueError):
    """A line is not an envelope of the contract.

    Attributes:
        reason: One sentence: the problem and, where it is not obvious, the remedy.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SourceError:
    """The failure of a source.

    Attributes:
        type: Java exception class, or a collector's own error type.
        message: The exception's message; empty if it had none.
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A copy of a host's file in the export.

    Attributes:
        path: Path in the export, with `/` as separator.
        size_bytes: Size.
        mtime: Time of the last write, by the host's clock (UTC).
        sha256: SHA-256 of the content, 64 lower-case hexadecimal digits.
    """

    path: str
    size_bytes: int
    mtime: datetime
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One line of an export: a request, its time, and the answer.

    Exactly one of `payload`, `error`, `file` and `note` is set. The fields between `captured_at` and `payload` identify the
    request; the kind's `keys` are always set, others are optional.

    Attributes:
        kind: Name of a kind in `KINDS`.
        cluster: Name of the cluster.
        captured_at: Time (UTC) of the answer, of reading the file, or of the event.
        nameserver: Address of the name server.
        broker: Name of the broker.
        broker_addr: Address of the broker.
        proxy: Address at which a proxy speaks the remoting protocol, `host:port`.
        group: Consumer or producer group.
        topic: Topic.
        client_id: Client id.
        process: The collector's name for one process.
        host: Host of the file.
        moment: Index of the snapshot of the same files, from 0.
        attempt: Number of the capture attempt, from 1; None if the day has a single attempt.
        payload: Unchanged text of RocketMQ, except that unpaired surrogates become U+FFFD.
        error: The failure.
        file: The file of an index line.
        note: Text of the event.
    """

    kind: str
    cluster: str
    captured_at: datetime
    nameserver: str | None = None
    broker: str | None = None
    broker_addr: str | None = None
    proxy: str | None = None
    group: str | None = None
    topic: str | None = None
    client_id: str | None = None
    process: str | None = None
    host: str | None = None
    moment: int | None = None
    attempt: int | None = None
    payload: str | None = None
    error: SourceError | None = None
    file: IndexedFile | None = None
    note: str | None = None


class CheckedLine(NamedTuple):
    """What the check of an export needs to know of an envelope.

    Attributes:
        cluster: Name of the cluster.
        captured_at: Time (UTC) of the answer, of reading the file, or of the event.
        has_error: Whether the source failed.
        file: The file of an index line.
    """

    cluster: str
    captured_at: datetime
    has_error: bool
    file: IndexedFile | None


_TEXT_KEYS: Final = (
    "nameserver",
    "broker",
    "broker_addr",
    "proxy",
    "group",
    "topic",
    "client_id",
    "process",
    "host",
)

# A file's content is several fields. The hash represents them, because an error line may have a path too.
_CONTENT_FIELD: Final = {
    Content.ROCKETMQ_JSON: "payload",
    Content.PROPERTIES: "payload",
    Content.FILE: "sha256",
    Content.NOTE: "event",
}

_Fields: TypeAlias = dict[str, object]


def parse_envelope(line: str | bytes, kind: str) -> Envelope:
    """Parse one line of a file of envelopes.

    The text of a payload is not parsed. Fields outside the contract are ignored.

    Args:
        line: The line, with or without its line feed.
        kind: Name of the kind of the line's file.

    Raises:
        EnvelopeError: The line is not an envelope of that kind.
        KeyError: The kind does not exist.
    """
    return Envelope(kind=kind, **_values(line, kind))


def check_envelope(line: str | bytes, kind: str) -> CheckedLine:
    """Parse one line of a file of envelopes as `parse_envelope` does, without making an envelope of it.

    Raises:
        EnvelopeError: The line is not an envelope of that kind.
        KeyError: The kind does not exist.
    """
    values = _values(line, kind)
    return CheckedLine(values["cluster"], values["captured_at"], values["error"] is not None, values["file"])


def _values(line: str | bytes, kind: str) -> dict[str, Any]:
    """Return the attributes of a line's envelope, without its kind and those that have their default."""
    expected = KIND_BY_NAME[kind]
    fields = _json_object(line)
    line_kind = _text(fields, "kind")
    if line_kind != kind:
        file_name = KIND_BY_NAME[line_kind].file_name if line_kind in KIND_BY_NAME else None
        advice = f"move the line to {file_name}" if file_name else "no file of the contract has such lines"
        raise EnvelopeError(f"kind is {quoted(line_kind)}, but this file is for {kind!r}; {advice}")
    cluster = _text(fields, "cluster")
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise EnvelopeError(f"cluster {problem}")
    for name in expected.keys:
        if fields.get(name) is None:
            raise EnvelopeError(
                f"{name!r} is missing; a line of kind {kind!r} needs {_join_names(expected.keys)}"
            )
    content_field = _content_field(fields, expected)
    return {
        "cluster": cluster,
        "captured_at": _instant(fields, "at" if expected.content is Content.NOTE else "captured_at"),
        **{name: _text(fields, name) for name in _TEXT_KEYS if fields.get(name) is not None},
        "moment": None if fields.get("moment") is None else _count(fields, "moment"),
        "attempt": None if fields.get("attempt") is None else _count(fields, "attempt"),
        "payload": _payload(fields) if content_field == "payload" else None,
        "error": _error(fields) if content_field == "error" else None,
        "file": _file(fields, expected) if content_field == "sha256" else None,
        "note": _text(fields, "event") if content_field == "event" else None,
    }


def _content_field(fields: _Fields, kind: Kind) -> str:
    """Return the field that holds the answer: that of the kind's content, or `error`."""
    expected_field = _CONTENT_FIELD[kind.content]
    has_content = fields.get(expected_field) is not None
    if kind.content is Content.NOTE:
        if not has_content:
            raise EnvelopeError("'event' is missing")
        return expected_field
    has_error = fields.get("error") is not None
    if has_content and has_error:
        raise EnvelopeError(
            f"{expected_field!r} and 'error' are both there; a source either answers or fails"
        )
    if not has_content and not has_error:
        raise EnvelopeError(
            f"neither {expected_field!r} nor 'error' is there; give what came back, or why nothing did"
        )
    return "error" if has_error else expected_field


_BYTE_ORDER_MARK: Final = "\ufeff"


def _json_object(line: str | bytes) -> _Fields:
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError as error:
            raise EnvelopeError(f"byte {error.start + 1} is not UTF-8; write the file as UTF-8") from None
    if not line or line.isspace():
        raise EnvelopeError("the line is empty; remove it")
    if line.startswith(_BYTE_ORDER_MARK):
        raise EnvelopeError("a byte order mark precedes the line; write the file as UTF-8 without one")
    try:
        value: object = _ENVELOPE_JSON.decode(line)
    except EnvelopeError:
        raise
    except json.JSONDecodeError as error:
        raise EnvelopeError(f"not JSON at column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise EnvelopeError(f"not JSON that an envelope is made of: {error}") from None
    if not isinstance(value, dict):
        raise EnvelopeError("not a JSON object; each line is one envelope")
    return value


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> _Fields:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise EnvelopeError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise EnvelopeError(f"{name} is not JSON")


_ENVELOPE_JSON: Final = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates, parse_constant=_refuse_constant
)


def _text(fields: _Fields, name: str) -> str:
    value = fields.get(name)
    if value is None:
        raise EnvelopeError(f"{name!r} is missing")
    if not isinstance(value, str) or not value:
        raise EnvelopeError(f"{name!r} must be text that is not empty")
    if not is_unicode(value):
        raise EnvelopeError(f"{name!r} holds half a surrogate pair, which is no character")
    return value


_INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z")


def _instant(fields: _Fields, name: str) -> datetime:
    text = _text(fields, name)
    if _INSTANT.fullmatch(text):
        try:
            return datetime.fromisoformat(text)  # Digits beyond microseconds are cut off.
        except ValueError:
            pass
    raise EnvelopeError(f"{name!r} is {quoted(text)}; write a UTC instant such as 2026-11-16T01:58:38.273Z")


def _count(fields: _Fields, name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise EnvelopeError(f"{name!r} must be a whole number, 0 or more")
    return value


def _payload(fields: _Fields) -> str:
    payload = fields["payload"]
    if not isinstance(payload, str):
        raise EnvelopeError(
            "'payload' must be the source's text as one JSON string, not the value it stands for"
        )
    if is_unicode(payload):
        return payload
    # The decoder joins complete pairs, so the remaining surrogates are unpaired.
    return re.sub("[\ud800-\udfff]", "\ufffd", payload)


def _error(fields: _Fields) -> SourceError:
    error = fields["error"]
    if not isinstance(error, dict):
        raise EnvelopeError("'error' must be an object with 'type' and 'message'")
    error_type, message = error.get("type"), error.get("message")
    if not isinstance(error_type, str) or not error_type or not is_unicode(error_type):
        raise EnvelopeError("'type' of 'error' must name the exception's class")
    if message is None:
        return SourceError(error_type, "")
    if not isinstance(message, str):
        raise EnvelopeError("'message' of 'error' must be text or null")
    return SourceError(error_type, re.sub("[\ud800-\udfff]", "\ufffd", message))


_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NO_NAMES: Final = frozenset({"", ".", ".."})


def _file(fields: _Fields, kind: Kind) -> IndexedFile:
    path = _text(fields, "path")
    # A path with '.', '//' or a trailing '/' is not normalised: one file would have two names.
    parts = path.split("/")
    is_normal = not _NO_NAMES.intersection(parts) and "\0" not in path
    if not is_normal or len(parts) == 1 or parts[0] not in kind.folders:
        folders = _join_names(tuple(f"{folder}/" for folder in kind.folders))
        raise EnvelopeError(
            f"path {quoted(path)} must lead to a file in {folders}, without '.' or '..' on the way"
        )
    sha256 = _text(fields, "sha256")
    if not _SHA256.fullmatch(sha256):
        raise EnvelopeError("'sha256' must be 64 lower-case hexadecimal digits")
    return IndexedFile(path, _count(fields, "size"), _instant(fields, "mtime"), sha256)


def _join_names(names: tuple[str, ...]) -> str:
    quoted = [repr(name) for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
