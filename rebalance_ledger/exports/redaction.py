"""Removal of secrets from the text of an export; `docs/threat-model.md` lists the decision for each kind.

Belongs here: the allow-lists, and the replacement of other values. Does not belong here: reading and writing files (`writer`,
`redacted_files`), and the content of payloads (`payloads`).

Every function is pure and idempotent. Doubtful values are redacted. `REDACTED` replaces a redacted value, so that readers
still see that it was set.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.contract import KIND_BY_NAME, Content, SourceError, parse_envelope
from rebalance_ledger.rocketmq.json import RocketMQJsonError, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from rebalance_ledger.exports.contract import Envelope

POLICY_VERSION: Final = 2
"""Incremented when this module begins to redact further values."""

REDACTED: Final = "<redacted>"
"""Replacement of a redacted value."""

_BOOLEAN: Final = re.compile(r"true|false")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
_NAME: Final = re.compile(r"[^\\\x00-\x1f\x7f]{1,255}")

KEPT_BROKER_SETTINGS: Final = {
    # Identity of the broker.
    "brokerClusterName": _NAME,
    "brokerName": _NAME,
    "brokerId": _INTEGER,
    "brokerRole": re.compile("ASYNC_MASTER|SYNC_MASTER|SLAVE"),
    "brokerPermission": _INTEGER,
    "listenPort": _INTEGER,
    "isBrokerContainer": _BOOLEAN,
    "isInBrokerContainer": _BOOLEAN,
    "storeType": _WORD,
    "configManagerVersion": _WORD,
    # Failover of the master.
    "enableControllerMode": _BOOLEAN,
    "enableDLegerCommitLog": _BOOLEAN,
    "enableRemoteEscape": _BOOLEAN,
    "enableSlaveActingMaster": _BOOLEAN,
    "slaveReadEnable": _BOOLEAN,
    # Assignment of queues.
    "allocateMessageQueueStrategy": _WORD,
    "clientRebalance": _BOOLEAN,
    "defaultMessageRequestMode": _WORD,
    "defaultPopShareQueueNum": _INTEGER,
    "serverLoadBalancerEnable": _BOOLEAN,
    "notifyConsumerIdsChangedEnable": _BOOLEAN,
    "rejectPullConsumerEnable": _BOOLEAN,
    "litePullMessageEnable": _BOOLEAN,
    "longPollingEnable": _BOOLEAN,
    # POP and its retry topics.
    "enableRetryTopicV2": _BOOLEAN,
    "retrieveMessageFromPopRetryTopicV1": _BOOLEAN,
    "popResponseReturnActualRetryTopic": _BOOLEAN,
    "popConsumerFSServiceInit": _BOOLEAN,
    "popConsumerKVServiceEnable": _BOOLEAN,
    "popConsumerKVServiceInit": _BOOLEAN,
    "popFromRetryProbability": _INTEGER,
    "popInflightMessageThreshold": _INTEGER,
    "enablePopBatchAck": _BOOLEAN,
    "enablePopBufferMerge": _BOOLEAN,
    "enablePopMessageThreshold": _BOOLEAN,
    "enableSkipLongAwaitingAck": _BOOLEAN,
    "priorityOrderAsc": _BOOLEAN,
    "usePopRevive": _BOOLEAN,
    # Topics, groups and offsets.
    "autoCreateSubscriptionGroup": _BOOLEAN,
    "autoCreateTopicEnable": _BOOLEAN,
    "defaultTopicQueueNums": _INTEGER,
    "enableBroadcastOffsetStore": _BOOLEAN,
    "broadcastOffsetExpireMaxSecond": _INTEGER,
    "broadcastOffsetExpireSecond": _INTEGER,
    "enableLmq": _BOOLEAN,
    "enableMixedMessageType": _BOOLEAN,
    "enableMultiDispatch": _BOOLEAN,
    "enablePropertyFilter": _BOOLEAN,
    "filterSupportRetry": _BOOLEAN,
    "flushConsumerOffsetInterval": _INTEGER,
    "useServerSideResetOffset": _BOOLEAN,
    "channelExpiredTimeout": _INTEGER,
    # Access control.
    "aclEnable": _BOOLEAN,
    "authenticationEnabled": _BOOLEAN,
    "authorizationEnabled": _BOOLEAN,
    "migrateAuthFromV1Enabled": _BOOLEAN,
}
"""Allow-list of broker settings, with the required format of each value. All other values are redacted."""

KEPT_BROKER_FILES: Final = frozenset(
    name + suffix
    for name in (
        "broadcastOffset.json",
        "coldDataFlowCtr.json",
        "consumerFilter.json",
        "consumerOffset.json",
        "consumerOrderInfo.json",
        "delayOffset.json",
        "lmqConsumerOffset.json",
        "messageRequestMode.json",
        "subscriptionGroup.json",
        "timermetrics",
        "topicQueueMapping.json",
        "topics.json",
    )
    for suffix in ("", ".bak")
)
"""Allow-list of files of a broker's `store/config` folder: topics, groups and offsets. The content of others is redacted."""

_SENSITIVE: Final = (
    r"passw|passphrase|pwd|secret|credential|token|access[_.\- ]?key|private[_.\- ]?key|api[_.\- ]?key|signature"
    r"|authentication[_.\- ]?user|socks[_.\- ]?proxy"
)
_SENSITIVE_NAME: Final = re.compile(
    rf"[A-Za-z0-9_.\-]{{0,64}}(?:{_SENSITIVE})[A-Za-z0-9_.\-]{{0,64}}", re.IGNORECASE
)

# Plain substrings as a fast check: most texts have none of them, and need no regular expressions.
_SUSPICIOUS: Final = (
    "passw", "passphrase", "pwd", "secret", "credential", "token", "signature", "authorization", "bearer",
    "akia", "ltai", "eyj", "authentication", "socks",
)  # fmt: skip
_SUSPICIOUS_KEYS: Final = tuple(
    f"{first}{between}key" for first in ("access", "private", "api") for between in ("", "_", ".", "-", " ")
)

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_USER_OF_URL: Final = re.compile(r"(://)[^\s/@\"']+(@)")
_VALUE: Final = rf"(?!['\"\\]*{REDACTED}['\"\\]*[ \t\r]*$)(?!(?:\{{\}}|\[\]|null)[ \t\r]*$)(?=\S)(.+)"
"""The rest of a line, because the end of an unquoted value is ambiguous."""
_NAMED_VALUE: Final = re.compile(
    # `secretKey=…`, `"secretKey" : …`, `\"secretKey\":…`, `secretKey => …`, a value on the next line.
    rf"((?:{_SENSITIVE})[A-Za-z0-9_.\-]{{0,64}}+['\"\\\]]*+\s*+(?:=>|[=:])\s*+(?:[|>][+-]?[ \t]*+\n\s*+)?+){_VALUE}",
    re.IGNORECASE | re.MULTILINE,
)
_OPTION: Final = re.compile(
    rf"(--?[a-z\-]{{0,40}}(?:{_SENSITIVE})[A-Za-z\-]{{0,40}}+ ++){_VALUE}", re.IGNORECASE | re.MULTILINE
)
_ELEMENT: Final = re.compile(
    rf"(<[A-Za-z0-9_.:\-]{{0,64}}(?:{_SENSITIVE})[A-Za-z0-9_.:\-]{{0,64}}+[^<>]*+>)[^<]+", re.IGNORECASE
)
_AUTHORIZATION: Final = re.compile(
    rf"(\bauthorization['\"\\]*+\s*+[=:]\s*+|\bbearer\s++){_VALUE}", re.IGNORECASE | re.MULTILINE
)
_TOKEN: Final = re.compile(
    r"\b(?:AKIA[0-9A-Z]{16}|LTAI[0-9A-Za-z]{12,30}|eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*)", re.ASCII
)


_ASCII_ESCAPE: Final = re.compile(r"\\+u00([2-7][0-9a-fA-F])")
"""A printable character that JSON can hide; RocketMQ escapes none of them."""


def _unescaped(text: str) -> str:
    """Return a text in which no name hides behind escapes."""
    return _ASCII_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u00" in text else text


def _is_suspicious(text: str) -> bool:
    folded = _unescaped(text).casefold()
    # Every error of RocketMQ's clients names a page that explains it: a URL alone has no user.
    return (
        any(map(folded.__contains__, _SUSPICIOUS))
        or ("key" in folded and any(map(folded.__contains__, _SUSPICIOUS_KEYS)))
        or ("://" in folded and "@" in folded)
    )


def redact_text(text: str) -> str:
    """Return free text (messages, notes, attachments) without values that are secrets by name or format."""
    if not _is_suspicious(text):
        return text
    text = _PRIVATE_KEY.sub(REDACTED, _unescaped(text))
    text = _USER_OF_URL.sub(rf"\1{REDACTED}\2", text)
    text = _ELEMENT.sub(rf"\1{REDACTED}", text)
    text = _AUTHORIZATION.sub(rf"\1{REDACTED}", text)
    text = _NAMED_VALUE.sub(rf"\1{REDACTED}", text)
    text = _OPTION.sub(rf"\1{REDACTED}", text)
    return _TOKEN.sub(REDACTED, text)


# A setting in the format of brokers: the name of a Java field and a value. The name is not a secret.
_SETTING: Final = re.compile(r"([a-z][A-Za-z0-9]{0,63})=(.*)", re.DOTALL)
# The same in another format of java.util.Properties: only the name remains, because the end of the value is ambiguous.
_LOOSE_SETTING: Final = re.compile(r"[ \t\f]*([a-z][A-Za-z0-9]{0,63})[ \t\f]*[=:](?!=)", re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def redact_settings(text: str) -> str:
    """Return `name=value` lines in which only values of `KEPT_BROKER_SETTINGS` remain.

    Brokers write names and values without escapes, other sources in the format of `java.util.Properties`. A value remains only
    if it is the whole value of an allowed, unique name in both formats.
    """
    lines = _LINE_END.split(text)
    names = [match[1] for line in lines if (match := _LOOSE_SETTING.match(line)) is not None]
    repeated = {name for name in names if names.count(name) > 1} & KEPT_BROKER_SETTINGS.keys()
    is_continued = False
    redacted: list[str] = []
    for line in lines:
        redacted.append(REDACTED if is_continued and line.strip() else _redact_setting(line, repeated))
        # Java comments do not continue on the next line, but this may be a setting whose name begins with # or !.
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
    result = "\n".join(redacted)
    return text if result == "\n".join(lines) else result


def _redact_setting(line: str, repeated: set[str]) -> str:
    if not line.strip():
        return ""
    match = _SETTING.fullmatch(line)
    if match is None or match[2].startswith("="):
        loose_match = _LOOSE_SETTING.match(line)
        return REDACTED if loose_match is None else f"{loose_match[1]}={REDACTED}"
    name, value = match[1], match[2]
    if not value.strip():
        return f"{name}="
    pattern = KEPT_BROKER_SETTINGS.get(name)
    is_allowed = (
        pattern is not None
        and name not in repeated
        and pattern.fullmatch(value)
        and redact_text(value) == value
    )
    return line if is_allowed else f"{name}={REDACTED}"


_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_AFTER_KEY: Final = re.compile(r"\s*:\s*")
_SCALAR: Final = re.compile(r"[^\s,{}\[\]\"']+")
_EMPTY_PROXY: Final = '"socksProxyConfig":"{}"'
_EMPTY: Final = frozenset({"", "{}", "[]", "null", REDACTED})
_EMBEDDED: Final = re.compile(
    rf"[\"'](?:[A-Za-z0-9_.\-]*(?:{_SENSITIVE})[A-Za-z0-9_.\-]*)\\*[\"']\s*:|PRIVATE KEY|://[^\s/@\"']+@"
    r"|\beyJ[\w\-]{8,}\.[\w\-]{8,}\.|\bbearer\s+\S",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(
    rf"(?:{_SENSITIVE})[A-Za-z0-9_.\-]{{0,64}}+['\"\]]*+\s*+=>?\s*+(?!{REDACTED})\S", re.IGNORECASE
)
_NAME_OR_EXPRESSION: Final = re.compile(
    r'"(?:topic|topicName|brokerName|groupName|consumerGroup|clientId|subString|expression)"\s*:\s*("(?:[^"\\]|\\.)*")',
    re.DOTALL,
)
"""Names, which must be the same everywhere, and conditions of subscriptions (`token = 'x'`)."""


def redact_json(text: str) -> str:
    """Return RocketMQ's JSON without values that are secrets by name or format; everything else is unchanged.

    The value of a sensitive name is redacted if it is a scalar: names of topics, groups and clients are keys too, but their
    values are objects. A string is redacted completely if it contains such a pair, a private key, a token or a URL's user.
    """
    # Every running info of a Java client has this pair, and most have nothing else that is suspicious.
    if not _is_suspicious(text.replace(_EMPTY_PROXY, " ")):
        return text
    # A text has the same few strings thousands of times, so each is looked at once.
    strings = set(_STRING.findall(text))
    names = {string for string in strings if _SENSITIVE_NAME.fullmatch(_unescaped(string[1:-1])) is not None}
    kept = set(_NAME_OR_EXPRESSION.findall(text))
    secrets = {string for string in strings if _is_secret_text(string[1:-1], may_assign=string in kept)}
    pieces: list[str] = []
    end = 0
    for start, stop in _redacted_spans(text, names, secrets):
        pieces += [text[end:start], f'"{REDACTED}"']
        end = stop
    return "".join([*pieces, text[end:]]) if pieces else text


def _redacted_spans(
    text: str, names: AbstractSet[str], secrets: AbstractSet[str]
) -> Iterator[tuple[int, int]]:
    """Yield start and end of each value to redact, in order.

    Args:
        text: RocketMQ's JSON.
        names: Strings, with their quotes, whose values are secrets where they are keys.
        secrets: Strings that are secrets where they are values.
    """
    found = names | secrets
    end = 0
    for match in _STRING.finditer(text):
        # The value of a sensitive name is a string too.
        if match[0] not in found or match.start() < end:
            continue
        colon = _AFTER_KEY.match(text, match.end())
        if colon is None:
            if match[0] in secrets:
                yield match.span()
        elif match[0] in names:
            value = _STRING.match(text, colon.end()) or _SCALAR.match(text, colon.end())
            if value is not None:
                end = value.end()
                if value[0].strip("\"'") not in _EMPTY:
                    yield value.span()


def _is_secret_text(content: str, *, may_assign: bool) -> bool:
    if not _is_suspicious(content):
        return False
    # Names in nested JSON text have escaped quotes, at any depth.
    plain = re.sub(r"\\+", "", _unescaped(content))
    return _EMBEDDED.search(plain) is not None or (not may_assign and _ASSIGNED.search(plain) is not None)


_MQADMIN: Final = re.compile(
    r"((?:[^$#>\n]{0,200}[$#>] *|\+ )?(?:(?:sh|bash) +)?(?:[^\s'\"]*/)?mqadmin(?:\.cmd)? +([A-Za-z0-9]+))(.*)"
)
_INSTANT_LINE: Final = re.compile(r"# [0-9T:.\-]{19,26}Z")
_PLAIN_COMMANDS: Final = frozenset(
    {
        "allocateMQ",
        "brokerStatus",
        "clusterList",
        "consumerConnection",
        "consumerProgress",
        "consumerStatus",
        "exportMetadata",
        "getConsumerConfig",
        "producerConnection",
        "statsAll",
        "topicClusterList",
        "topicList",
        "topicRoute",
        "topicStatus",
    }
)
"""Commands of mqadmin whose output has only names, addresses and numbers. Output of others is redacted line by line."""

_MQADMIN_SETTING: Final = re.compile(r"([a-z][A-Za-z0-9]{0,63})( *=  )(.*)")
_MQADMIN_HEAD: Final = re.compile(r"=+(?:Master: |My Master: \S+=+Slave: )?[^=\s]+:[0-9]{1,5}=+")


def redact_transcript(text: str) -> str:
    """Return a text without secrets, which may contain commands of mqadmin and their output."""
    if not any(_MQADMIN.fullmatch(line.removesuffix("\r")) for line in text.split("\n")):
        return redact_text(text)
    command: str | None = None
    redacted: list[str] = []
    for line in text.split("\n"):
        body = line.removesuffix("\r")
        match = _MQADMIN.fullmatch(body)
        if match is not None:
            command = match[2]
            is_plain = command in _PLAIN_COMMANDS or command == "getBrokerConfig"
            options = match[3] if is_plain or not match[3].strip() else f" {REDACTED}"
            new_body = f"{match[1]}{options}"
        elif not body.strip() or _INSTANT_LINE.fullmatch(body):
            new_body = body
        elif command == "getBrokerConfig":
            new_body = _redact_config_line(body)
        else:
            new_body = body if command is None or command in _PLAIN_COMMANDS else REDACTED
        redacted.append(new_body + line[len(body) :])
    return redact_text("\n".join(redacted))


def _redact_config_line(line: str) -> str:
    if _MQADMIN_HEAD.fullmatch(line):
        return line
    setting = _MQADMIN_SETTING.fullmatch(line)
    if setting is None:
        return REDACTED
    name, separator, value = setting.groups()
    redacted_value = _redact_setting(f"{name}={value}", set()).removeprefix(f"{name}=")
    return f"{name}{separator}{redacted_value}"


_SECRET_FILE: Final = re.compile(
    r"(?:plain_acl|tools|users?|acls?)\.(?:ya?ml|json)(?:\.bak)?|.*\.(?:conf|properties|pem|key|jks|p12|pfx|keystore)",
    re.IGNORECASE,
)
"""Names of files with accounts, keys or all settings of a server."""

MAX_CHECKED_BYTES: Final = 256 * 1024 * 1024
"""Size limit of the search for secrets; the content of a larger file is redacted."""

_REDACTED_FILE: Final = f"{REDACTED}\n".encode()


def redact_broker_file(path: str, content: bytes) -> bytes:
    """Return the redacted content of a file of a broker's `store/config` folder."""
    name = path.rpartition("/")[2]
    if not content:
        return content
    if name not in KEPT_BROKER_FILES or len(content) > MAX_CHECKED_BYTES:
        return _REDACTED_FILE
    return _redact_bytes(content, _redact_json_or_text)


def redact_attachment(path: str, content: bytes) -> bytes:
    """Return the redacted content of a file outside the contract."""
    if not content:
        return content
    if (
        len(content) > MAX_CHECKED_BYTES
        or _SECRET_FILE.fullmatch(path.rpartition("/")[2])
        or b"\0" in content
    ):
        return _REDACTED_FILE
    is_json = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}
    return _redact_bytes(content, _redact_json_or_text if is_json else redact_transcript)


def _redact_json_or_text(text: str) -> str:
    if not _is_suspicious(text):
        return text
    try:
        loads(text.removeprefix("\u00ef\u00bb\u00bf"))
    except RocketMQJsonError:
        return redact_text(redact_json(text))
    return redact_json(text)


def _redact_bytes(content: bytes, redact: Callable[[str], str]) -> bytes:
    # Latin-1 maps every byte to one character, so unredacted bytes do not change.
    text = content.decode("latin-1")
    redacted = redact(text)
    return content if redacted == text else redacted.encode("latin-1")


def redact_payload(kind: str, payload: str) -> str:
    """Return the redacted payload of a kind.

    Raises:
        KeyError: The kind does not exist.
    """
    if KIND_BY_NAME[kind].content is Content.PROPERTIES:
        return redact_settings(payload)
    is_object = payload.lstrip()[:1] in {"{", "["} and payload.rstrip()[-1:] in {"}", "]"}
    return redact_json(payload) if is_object else redact_text(redact_json(payload))


def redact_envelope(envelope: Envelope) -> Envelope:
    """Return a redacted envelope; the same object if nothing changes."""
    redacted = envelope
    if envelope.payload is not None:
        payload = redact_payload(envelope.kind, envelope.payload)
        if payload != envelope.payload:
            redacted = replace(redacted, payload=payload)
    if envelope.error is not None:
        message = redact_text(envelope.error.message)
        if message != envelope.error.message:
            redacted = replace(redacted, error=SourceError(envelope.error.type, message))
    if envelope.note is not None:
        note = redact_text(envelope.note)
        if note != envelope.note:
            redacted = replace(redacted, note=note)
    return redacted


def redact_line(kind: str, line: bytes) -> bytes:
    """Return a redacted line of a file of envelopes; the same bytes if nothing changes.

    Fields outside the contract are redacted too, because the export contains them.

    Raises:
        EnvelopeError: The line is not an envelope of that kind.
        KeyError: The kind does not exist.
    """
    parse_envelope(line, kind)
    fields = json.loads(line)
    redacted_fields = {name: _redact_field(kind, name, value) for name, value in fields.items()}
    if redacted_fields == fields:
        return line
    return (
        json.dumps(redacted_fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        + b"\n"
    )


_KNOWN_FIELDS: Final = frozenset(
    {name for kind in KIND_BY_NAME.values() for name in kind.keys}
    | {"kind", "cluster", "captured_at", "at", "path", "size", "mtime", "sha256"}
    | {
        "nameserver",
        "broker",
        "broker_addr",
        "group",
        "topic",
        "client_id",
        "process",
        "host",
        "moment",
        "proxy",
    }
)


def _redact_field(kind: str, name: str, value: object) -> object:
    if name in _KNOWN_FIELDS or value is None:
        return value
    if name == "payload" and isinstance(value, str):
        return redact_payload(kind, value)
    if name == "error" and isinstance(value, dict):
        return {key: redact_text(text) if isinstance(text, str) else text for key, text in value.items()}
    if isinstance(value, str):
        is_secret = _SENSITIVE_NAME.fullmatch(name) is not None and value not in _EMPTY
        return REDACTED if is_secret else redact_text(value)
    text = json.dumps({name: value})
    redacted = redact_json(text)
    return value if redacted == text else json.loads(redacted)[name]


def redact_unreadable(kind: str, text: str) -> str:
    """Return the redacted text of a line that is not an envelope of its kind."""
    kind_of_line = KIND_BY_NAME.get(kind)
    if kind_of_line is not None and kind_of_line.content is Content.PROPERTIES and text:
        return REDACTED
    return redact_text(redact_json(text))
