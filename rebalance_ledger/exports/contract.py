"""Export contract v1: the kinds of files in an export, and the envelope that each of their lines is.

`docs/export-contract.md` is this module in prose. What belongs here: names, keys, and the rules that one line can be
judged by. What does not: directories, manifests and seals (`manifest`), and what a payload's text says (`payloads`).
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from typing import Final, NoReturn, TypeAlias

CONTRACT_VERSION: Final = 1
"""Goes up when an export that was valid no longer is, or means something else; an added kind does not raise it."""

MAX_LINE_BYTES: Final = 256 * 1024 * 1024
"""Longest line of a file of envelopes, line feed included."""


class Content(Enum):
    """What a line of a kind carries when the source did not fail."""

    ROCKETMQ_JSON = "payload: text in RocketMQ's JSON dialect"
    PROPERTIES = "payload: `name=value` lines"
    FILE = "path, size, mtime and sha256 of a file that lies in the export byte for byte"
    NOTE = "event: a sentence for people"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of source.

    Attributes:
        name: The `kind` of its envelopes.
        file_name: The file, at the top of the export, that holds them all.
        keys: The fields that say what was asked; each is required.
        meaning: What a line is, in a few words.
        content: What a line carries.
        is_required: Whether an export without this file, or with an empty one, is refused. Every other file may be
            absent: then its source is missing, and what depends on it is unknown.
        folders: For `Content.FILE`: the folders that hold the files, each of which must be in the index.
    """

    name: str
    file_name: str
    keys: tuple[str, ...]
    meaning: str
    content: Content = Content.ROCKETMQ_JSON
    is_required: bool = False
    folders: tuple[str, ...] = ()


_BROKER = ("broker", "broker_addr")

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
        "offset_file",
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
    Kind("event", "events.jsonl", (), "what was done to the cluster, for people", content=Content.NOTE),
)
"""Every kind of contract v1."""

KIND_BY_NAME: Final = {kind.name: kind for kind in KINDS}
KIND_BY_FILE_NAME: Final = {kind.file_name: kind for kind in KINDS}


NOT_ASKED: Final = "NotAsked"
"""Type of an error that is no failure: the source cannot know the answer, so it was not asked; the message says why."""


class EnvelopeError(ValueError):
    """A line is not an envelope of the contract.

    Attributes:
        reason: One sentence: what is wrong and, where that is not plain, what to do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SourceError:
    """What came instead of a payload.

    Attributes:
        type: Java exception class, or what a collector calls its own failure.
        message: The exception's message; empty if it had none.
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file that lies in the export as it lay on its host.

    Attributes:
        path: Where it is in the export, with `/` between names.
        size_bytes: Its size.
        mtime: When it was last written, by its host's clock (UTC).
        sha256: SHA-256 of its bytes, 64 lower-case hexadecimal digits.
    """

    path: str
    size_bytes: int
    mtime: datetime
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One line of an export: who was asked what and when, and what came back.

    Exactly one of `payload`, `error`, `file` and `note` is set. The fields between `captured_at` and `payload` say what
    was asked; those among the kind's `keys` are set, others where the collector gave them.

    Attributes:
        kind: Name of a kind in `KINDS`.
        cluster: Name of the cluster.
        captured_at: When the answer came, or the file was read (UTC); for an event, when it happened.
        nameserver: Address of the name server.
        broker: Name of the broker.
        broker_addr: Address of the broker.
        proxy: Address at which a proxy speaks the remoting protocol, `host:port`.
        group: Consumer or producer group.
        topic: Topic.
        client_id: Client id.
        process: The collector's name for one process.
        host: Host that a file was read on.
        moment: Which of several snapshots of the same files this is, from 0.
        attempt: Which attempt at the day's capture the line is of, from 1; None where there was one alone.
        payload: The text exactly as RocketMQ gave it, except that half a surrogate pair is U+FFFD.
        error: What came instead.
        file: The file that the line is about.
        note: The event.
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

# A file's content is several fields: the hash stands for them, as an error may say which path it is about.
_CONTENT_FIELD: Final = {
    Content.ROCKETMQ_JSON: "payload",
    Content.PROPERTIES: "payload",
    Content.FILE: "sha256",
    Content.NOTE: "event",
}

_Fields: TypeAlias = dict[str, object]


def parse_envelope(line: str | bytes, kind: str) -> Envelope:
    """Read one line of a file of envelopes.

    Whether the payload's text can be read is not looked at. Fields that the contract does not know are ignored.

    Args:
        line: The line, with or without its line feed.
        kind: Name of the kind that the line's file is for.

    Raises:
        EnvelopeError: The line is not an envelope of that kind.
        KeyError: There is no such kind.
    """
    expected = KIND_BY_NAME[kind]
    fields = _json_object(line)
    found = _text(fields, "kind")
    if found != kind:
        where = KIND_BY_NAME[found].file_name if found in KIND_BY_NAME else None
        advice = f"move the line to {where}" if where else "no file of the contract has such lines"
        raise EnvelopeError(f"kind is {_shown(found)}, but this file is for {kind!r}; {advice}")
    cluster = _text(fields, "cluster")
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise EnvelopeError(f"cluster {problem}")
    for name in expected.keys:
        if fields.get(name) is None:
            raise EnvelopeError(
                f"{name!r} is missing; a line of kind {kind!r} needs {_listed(expected.keys)}"
            )
    content_field = _the_one_content(fields, expected)
    return Envelope(
        kind=kind,
        cluster=cluster,
        captured_at=_instant(fields, "at" if expected.content is Content.NOTE else "captured_at"),
        **{name: _text(fields, name) for name in _TEXT_KEYS if fields.get(name) is not None},
        moment=None if fields.get("moment") is None else _count(fields, "moment"),
        attempt=None if fields.get("attempt") is None else _count(fields, "attempt"),
        payload=_payload(fields) if content_field == "payload" else None,
        error=_error(fields) if content_field == "error" else None,
        file=_file(fields, expected) if content_field == "sha256" else None,
        note=_text(fields, "event") if content_field == "event" else None,
    )


def cluster_name_problem(name: str) -> str | None:
    """Say why a cluster's name cannot be a folder's name, or None.

    RocketMQ takes any text. Here it is one folder of a path and the value of a partition: 1 to 255 bytes of UTF-8, not
    `.` or `..`, without `/` and without control characters, and no white space at its ends.
    """
    if not name:
        return "is empty"
    if not _is_unicode(name):
        return f"{name!r} is not Unicode text"
    if len(name.encode()) > 255:  # noqa: PLR2004  # The longest file name of common file systems.
        return f"{_shown(name)} is longer than 255 bytes"
    if name in {".", ".."} or "/" in name:
        return f"{name!r} cannot be the name of a folder"
    if name != name.strip() or any(unicodedata.category(character) == "Cc" for character in name):
        return f"{name!r} has control characters, or white space at an end"
    return None


def _the_one_content(fields: _Fields, kind: Kind) -> str:
    """Return the field that holds what came back: that of the kind's content, or `error`."""
    own = _CONTENT_FIELD[kind.content]
    has_own = fields.get(own) is not None
    if kind.content is Content.NOTE:
        if not has_own:
            raise EnvelopeError("'event' is missing")
        return own
    has_error = fields.get("error") is not None
    if has_own and has_error:
        raise EnvelopeError(f"{own!r} and 'error' are both there; a source either answers or fails")
    if not has_own and not has_error:
        raise EnvelopeError(f"neither {own!r} nor 'error' is there; give what came back, or why nothing did")
    return "error" if has_error else own


def _json_object(line: str | bytes) -> _Fields:
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError as error:
            raise EnvelopeError(f"byte {error.start + 1} is not UTF-8; write the file as UTF-8") from None
    if not line.strip():
        raise EnvelopeError("the line is empty; remove it")
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
        raise EnvelopeError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
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
    if not _is_unicode(value):
        raise EnvelopeError(f"{name!r} holds half a surrogate pair, which is no character")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_INSTANT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?Z")


def _instant(fields: _Fields, name: str) -> datetime:
    text = _text(fields, name)
    match = _INSTANT.fullmatch(text)
    if match is not None:
        microseconds = (match[2] or "").ljust(6, "0")[:6]
        try:
            return datetime.fromisoformat(match[1]).replace(microsecond=int(microseconds), tzinfo=UTC)
        except ValueError:
            pass
    raise EnvelopeError(f"{name!r} is {_shown(text)}; write a UTC instant such as 2026-11-16T01:58:38.273Z")


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
    if _is_unicode(payload):
        return payload
    # The decoder has joined the pairs that were whole.
    return re.sub("[\ud800-\udfff]", "\ufffd", payload)


def _error(fields: _Fields) -> SourceError:
    error = fields["error"]
    if not isinstance(error, dict):
        raise EnvelopeError("'error' must be an object with 'type' and 'message'")
    error_type, message = error.get("type"), error.get("message")
    if not isinstance(error_type, str) or not error_type or not _is_unicode(error_type):
        raise EnvelopeError("'type' of 'error' must name the exception's class")
    if message is None:
        return SourceError(error_type, "")
    if not isinstance(message, str):
        raise EnvelopeError("'message' of 'error' must be text or null")
    return SourceError(error_type, re.sub("[\ud800-\udfff]", "\ufffd", message))


_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def _file(fields: _Fields, kind: Kind) -> IndexedFile:
    path = _text(fields, "path")
    # A path that is not its own normal form holds '.', '//' or a '/' at its end: one file would have two names.
    parts = PurePosixPath(path).parts
    is_normal = "/".join(parts) == path and ".." not in parts and "\0" not in path
    if not is_normal or len(parts) == 1 or parts[0] not in kind.folders:
        folders = _listed(tuple(f"{folder}/" for folder in kind.folders))
        raise EnvelopeError(
            f"path {_shown(path)} must lead to a file in {folders}, without '.' or '..' on the way"
        )
    sha256 = _text(fields, "sha256")
    if not _SHA256.fullmatch(sha256):
        raise EnvelopeError("'sha256' must be 64 lower-case hexadecimal digits")
    return IndexedFile(path, _count(fields, "size"), _instant(fields, "mtime"), sha256)


def _shown(text: str) -> str:
    """Quotes a value of the export for a sentence, cut so that the sentence stays one."""
    return repr(text) if len(text) <= 80 else f"{text[:79]!r}…"  # noqa: PLR2004  # About a line.


def _listed(names: tuple[str, ...]) -> str:
    quoted = [repr(name) for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
