"""Every line of an export is an envelope of its file's kind, or raises an error with a one-sentence message."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_ledger.cluster_name import cluster_name_problem
from rebalance_ledger.exports.contract import (
    KIND_BY_NAME,
    KINDS,
    Content,
    EnvelopeError,
    IndexedFile,
    SourceError,
    parse_envelope,
)

ROOT = Path(__file__).resolve().parents[2]
ROUTE = {
    "kind": "nameserver_route",
    "cluster": "shop-prod",
    "captured_at": "2026-11-16T01:54:43.350Z",
    "nameserver": "127.0.0.1:9876",
    "topic": "order-events",
    "payload": "{}",
}
FILE = {
    "kind": "offset_file",
    "cluster": "shop-prod",
    "captured_at": "2026-11-16T01:54:43Z",
    "moment": 0,
    "host": "10.1.1.21",
    "client_id": "10.1.1.21@DEFAULT",
    "group": "config-listeners",
    "path": "offset_files/10.1.1.21/offsets.json",
    "size": 678,
    "mtime": "2026-11-15T23:59:59.123456789Z",
    "sha256": "ab" * 32,
}
ERROR = {"type": "org.apache.rocketmq.client.exception.MQClientException", "message": "CODE: 17"}


def line(template: dict[str, object], /, **changes: object) -> str:
    """Return the line of a template with some fields changed; None removes a field."""
    return json.dumps({name: value for name, value in (template | changes).items() if value is not None})


def test_a_payload_keeps_its_text_and_what_was_asked() -> None:
    envelope = parse_envelope(line(ROUTE, payload='{0:"\\u00e9"}\n'), "nameserver_route")
    assert envelope.kind == "nameserver_route"
    assert envelope.cluster == "shop-prod"
    assert envelope.captured_at == datetime(2026, 11, 16, 1, 54, 43, 350_000, tzinfo=UTC)
    assert (envelope.nameserver, envelope.topic) == ("127.0.0.1:9876", "order-events")
    assert envelope.payload == '{0:"\\u00e9"}\n'
    assert (envelope.error, envelope.file, envelope.note, envelope.group) == (None, None, None, None)


def test_a_line_of_a_proxy_names_the_proxy() -> None:
    proxy = {
        **ROUTE,
        "kind": "proxy_consumer_connection",
        "nameserver": None,
        "topic": None,
        "group": "carts",
    }
    envelope = parse_envelope(line(proxy, proxy="10.0.0.7:8080"), "proxy_consumer_connection")
    assert (envelope.proxy, envelope.group, envelope.broker) == ("10.0.0.7:8080", "carts", None)
    with pytest.raises(EnvelopeError, match="'proxy' is missing"):
        parse_envelope(line(proxy), "proxy_consumer_connection")


def test_an_empty_payload_is_a_payload() -> None:
    assert parse_envelope(line(ROUTE, payload=""), "nameserver_route").payload == ""


@pytest.mark.parametrize("message", ["CODE: 17", "", None])
def test_an_error_takes_the_place_of_a_payload(message: str | None) -> None:
    error = {"type": "java.lang.NullPointerException", "message": message}
    envelope = parse_envelope(line(ROUTE, payload=None, error=error), "nameserver_route")
    assert envelope.payload is None
    assert envelope.error == SourceError("java.lang.NullPointerException", message or "")


def test_an_index_line_names_a_file() -> None:
    envelope = parse_envelope(line(FILE), "offset_file")
    mtime = datetime(2026, 11, 15, 23, 59, 59, 123456, tzinfo=UTC)
    assert envelope.file == IndexedFile("offset_files/10.1.1.21/offsets.json", 678, mtime, "ab" * 32)
    assert (envelope.moment, envelope.host) == (0, "10.1.1.21")


def test_an_index_line_may_record_that_a_file_could_not_be_read() -> None:
    failed = line(
        FILE, size=None, mtime=None, sha256=None, error={"type": "java.io.IOException", "message": "no"}
    )
    envelope = parse_envelope(failed, "offset_file")
    assert envelope.file is None
    assert envelope.error == SourceError("java.io.IOException", "no")


def test_an_event_is_a_sentence() -> None:
    event = '{"kind":"event","cluster":"c","at":"2026-11-16T01:00:00Z","event":"broker-a stopped"}'
    envelope = parse_envelope(event, "event")
    assert envelope.note == "broker-a stopped"
    assert envelope.captured_at == datetime(2026, 11, 16, 1, tzinfo=UTC)


def test_half_a_surrogate_pair_in_a_payload_does_not_reach_the_tables() -> None:
    assert parse_envelope(line(ROUTE, payload="a\ud800\U0001f600"), "nameserver_route").payload == "a\ufffd😀"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the line is empty; remove it"),
        (" \n", "the line is empty; remove it"),
        ("{", "not JSON at column 2: Expecting property name enclosed in double quotes"),
        ("\ufeff" + line(ROUTE), "a byte order mark precedes the line; write the file as UTF-8 without one"),
        ("[]", "not a JSON object; each line is one envelope"),
        (line(ROUTE)[:-2], "not JSON at column 165: Unterminated string starting at"),
        (line(ROUTE)[:-1] + ',"payload":"{}"}', "duplicate key 'payload'"),
        (line(ROUTE, kind=None), "'kind' is missing"),
        (
            line(ROUTE, kind="consumer_connection"),
            "kind is 'consumer_connection', but this file is for 'nameserver_route'; move the line to consumer_connections.jsonl",
        ),
        (
            line(ROUTE, kind="route"),
            "kind is 'route', but this file is for 'nameserver_route'; no file of the contract has such lines",
        ),
        (line(ROUTE, cluster=""), "'cluster' must be text that is not empty"),
        (line(ROUTE, cluster="../x"), "cluster '../x' cannot be the name of a folder"),
        (
            line(ROUTE, topic=None),
            "'topic' is missing; a line of kind 'nameserver_route' needs 'nameserver' and 'topic'",
        ),
        (line(ROUTE, topic=7), "'topic' must be text that is not empty"),
        (line(ROUTE, topic="\ud800"), "'topic' holds half a surrogate pair, which is no character"),
        (line(ROUTE, captured_at=None), "'captured_at' is missing"),
        (
            line(ROUTE, captured_at="2026-11-16 01:54:43"),
            "'captured_at' is '2026-11-16 01:54:43'; write a UTC instant such as 2026-11-16T01:58:38.273Z",
        ),
        (
            line(ROUTE, payload=None),
            "neither 'payload' nor 'error' is there; give what came back, or why nothing did",
        ),
        (
            line(ROUTE, error=ERROR),
            "'payload' and 'error' are both there; a source either answers or fails",
        ),
        (
            line(ROUTE, payload={}),
            "'payload' must be the source's text as one JSON string, not the value it stands for",
        ),
        (line(ROUTE, payload=None, error="dead"), "'error' must be an object with 'type' and 'message'"),
        (line(ROUTE, payload=None, error={}), "'type' of 'error' must name the exception's class"),
    ],
)
def test_the_error_gives_the_reason_why_a_line_is_no_envelope(text: str, reason: str) -> None:
    with pytest.raises(EnvelopeError) as caught:
        parse_envelope(text, "nameserver_route")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "captured_at",
    ["2026-02-30T00:00:00Z", "2026-11-16T24:00:01Z", "2026-11-16T01:00:00+08:00", "2026-11-16T01:00Z", "0000-01-01T00:00:00Z"],
)  # fmt: skip
def test_an_instant_that_is_not_utc_or_not_in_the_calendar_is_refused(captured_at: str) -> None:
    with pytest.raises(EnvelopeError, match="write a UTC instant"):
        parse_envelope(line(ROUTE, captured_at=captured_at), "nameserver_route")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "offset_files/../../x", "offset_files", "offset_files/", "offset_files//x", "./offset_files/x",
     "offset_files/./x", "broker_files/x", "x", ".", "offset_files/a\0"],
)  # fmt: skip
def test_an_index_path_that_escapes_its_folders_is_refused(path: str) -> None:
    with pytest.raises(
        EnvelopeError, match=r"must lead to a file in 'offset_files/' and 'offset_files_moments/'"
    ):
        parse_envelope(line(FILE, path=path), "offset_file")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"size": -1}, "'size' must be a whole number"),
        ({"size": True}, "'size' must be a whole number"),
        ({"size": None}, "'size' must be a whole number"),
        ({"moment": "0"}, "'moment' must be a whole number"),
        ({"sha256": "AB" * 32}, "'sha256' must be 64 lower-case hexadecimal digits"),
        ({"sha256": None}, "neither 'sha256' nor 'error' is there"),
        ({"error": ERROR}, "'sha256' and 'error' are both there"),
    ],
)
def test_the_error_gives_the_reason_why_an_index_line_is_no_envelope(
    changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(EnvelopeError, match=reason):
        parse_envelope(line(FILE, **changes), "offset_file")


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(EnvelopeError, match="byte 3 is not UTF-8"):
        parse_envelope(b'{"\xff":1}', "nameserver_route")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' + "9" * 5000 + "}", '{"a":NaN}'])
def test_json_that_python_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(EnvelopeError):
        parse_envelope(text, "nameserver_route")


@given(st.sampled_from(KINDS), st.binary() | st.text().map(str.encode))
def test_any_line_is_an_envelope_or_an_envelope_error(kind: object, text: bytes) -> None:
    with contextlib.suppress(EnvelopeError):
        parse_envelope(text, kind.name)  # type: ignore[attr-defined]


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "message"]), inner),
    max_leaves=4,
)


@given(
    st.sampled_from([ROUTE, FILE]), st.dictionaries(st.sampled_from([*ROUTE, *FILE, "error"]), _json_values)
)
def test_any_field_of_any_type_gives_an_envelope_or_an_envelope_error(
    template: dict[str, object], changes: dict[str, object]
) -> None:
    with contextlib.suppress(EnvelopeError):
        envelope = parse_envelope(line(template, **changes), str(template["kind"]))
        contents = (envelope.payload, envelope.error, envelope.file, envelope.note)
        assert sum(each is not None for each in contents) == 1


@pytest.mark.parametrize("name", ["DefaultCluster", "shop prod", "集群", "-", "a" * 255, ".hidden", "a=b"])
def test_a_cluster_may_have_any_name_that_is_valid_for_a_folder(name: str) -> None:
    assert cluster_name_problem(name) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\0b", "a\nb", " a", "a ", "\ud800", "集" * 86, "\x7f", "\x85"]
)
def test_a_cluster_name_that_is_invalid_for_a_folder_is_refused(name: str) -> None:
    assert cluster_name_problem(name) is not None


def test_the_document_describes_every_kind() -> None:
    document = (ROOT / "docs" / "export-contract.md").read_text()
    for kind in KINDS:
        row = next(row for row in document.splitlines() if row.startswith(f"| `{kind.file_name}` "))
        keys = ", ".join(f"`{key}`" for key in kind.keys) or "none"
        assert f"| `{kind.name}` | {keys} | {'yes' if kind.is_required else 'no'} |" in row
        assert kind.meaning in row


def test_kinds_do_not_share_names_files_or_folders() -> None:
    assert len(KIND_BY_NAME) == len({kind.file_name for kind in KINDS}) == len(KINDS)
    folders = [folder for kind in KINDS for folder in kind.folders]
    assert len(set(folders)) == len(folders)
    assert all(bool(kind.folders) == (kind.content is Content.FILE) for kind in KINDS)
