"""Redaction removes every value that may be a secret, in any format, and keeps the values that tables need."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rebalance_ledger.exports.redaction import (
    REDACTED,
    redact_attachment,
    redact_broker_file,
    redact_json,
    redact_line,
    redact_payload,
    redact_settings,
    redact_text,
    redact_transcript,
)
from rebalance_ledger.rocketmq.json import loads

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "exports"
USER = '{"username":"rocketmq","password":"hunter2-hunter2"}'

# A part of a secret that occurs nowhere else: names and kept values have no digits after "zq".
FRAGMENT = st.integers(100_000, 999_999).map("zq{}".format)
NAMES = st.text("abcdeXYZ", min_size=1, max_size=12).map("n{}".format)
BETWEEN = st.sampled_from(
    [
        "",
        " ",
        "\t",
        ",",
        ":",
        "=",
        '"',
        "\\\\",
        "\\u0041",
        "\\n",
        "#",
        "!",
        "{",
        "}",
        "é",
        "\u2028",
        "\\\n",
        "\\\r\n   ",
        "\\ ",
    ]
)
SEPARATORS = st.sampled_from(["=", " = ", ":", " : ", "\t", "  ", "=\t", " =  ", "\\\n = "])
INDENTS = st.sampled_from(["", " ", "\t", "\f  "])
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
KEPT_LINES = st.sampled_from(
    ["brokerName=broker-a", "brokerId=0", "autoCreateTopicEnable=true", "# comment", "", "empty="]
)


@st.composite
def secret_lines(draw: st.DrawFn) -> str:
    """Generate a logical line of java.util.Properties whose value, or whole text, is secret."""
    pieces = draw(st.lists(st.tuples(FRAGMENT, BETWEEN), min_size=1, max_size=4))
    value = "".join(fragment + between for fragment, between in pieces) + draw(FRAGMENT)
    name = draw(
        NAMES | st.sampled_from(["brokerName\\", "broker\\u004eame", "brokerRole", "!", "# comment "])
    )
    return draw(INDENTS) + name + draw(SEPARATORS) + value


@example([("!=zq100000\\\nzq100000:zq100000", "\n")])
@example([("brokerRole=zq100000zq100000", "\n")])
@given(st.lists(st.tuples(secret_lines() | KEPT_LINES, LINE_ENDS), max_size=8))
def test_no_part_of_a_value_survives_in_any_layout_of_properties(lines: list[tuple[str, str]]) -> None:
    text = "".join(line + end for line, end in lines)
    redacted = redact_settings(text)
    assert not re.search(r"zq[0-9]", redacted)
    assert redact_settings(redacted) == redacted


@given(
    st.dictionaries(
        NAMES, st.text(' a=:,{}"#é\t', max_size=12).filter(lambda value: not value.startswith("="))
    )
)
def test_names_of_settings_are_kept_and_empty_values_remain_empty(settings: dict[str, str]) -> None:
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    expected = [f"{name}={REDACTED if value.strip() else ''}" for name, value in settings.items()]
    assert redact_settings(text).split("\n")[:-1] == expected


def test_allow_listed_settings_are_unchanged() -> None:
    text = (
        "brokerClusterName=shop prod\nbrokerName=hz@broker-a\nbrokerId=0\nbrokerRole=ASYNC_MASTER\n"
        "defaultMessageRequestMode=POP\ndefaultPopShareQueueNum=-1\nserverLoadBalancerEnable=true\n"
        "authenticationEnabled=true\nconfigManagerVersion=v1\n"
    )
    assert redact_settings(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"brokerRole={USER}\n",
        "brokerId=12 hunter2\n",
        "brokerName=a\nbrokerName=hunter2\n",
        "brokerName=password=hunter2\n",
        f"initAuthenticationUser={USER}\n",
        'initAuthenticationUser={\n  "password": "hunter2"\n}\n',
    ],
)
def test_a_kept_name_does_not_carry_a_secret(text: str) -> None:
    assert "hunter2" not in redact_settings(text)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("CODE: 16  DESC: accessKey=hunter2 is refused", "CODE: 16  DESC: accessKey="),
        (f"cannot parse {USER}", 'cannot parse {"username":"rocketmq",'),
        ('escaped {\\"secretKey\\":\\"hunter2\\"}', "escaped"),
        ("SessionCredentials [accessKey='a', secretKey='hunter2', signature=x]", "SessionCredentials ["),
        ("connect to http://admin:hunter2@10.0.0.1:9876/x failed", "@10.0.0.1:9876/x failed"),
        ("Authorization: Basic hunter2", "Authorization:"),
        ("mqadmin --secret-key hunter2", "mqadmin"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey: hunter2\n", "accounts:"),
        ("password:\n  hunter2\n", "password:"),
        ("pa\u017f\u017fword=hunter2", "word="),
        ("password: |\n  hunter2\n", "password:"),
        ("<password>hunter2</password>", "</password>"),
        ("password=<redacted>hunter2", "password="),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nend", "end"),
    ],
)
def test_a_message_keeps_its_text_except_secrets(text: str, visible: str) -> None:
    redacted = redact_text(text)
    assert "hunter2" not in redacted
    assert visible in redacted
    assert redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "CODE: 206  DESC: the consumer group[password-reset] not online",
        "CODE: 17  DESC: No topic route info in name server for the topic: token-events",
        "CODE: 16  DESC: User:ledger has no permission to access Topic:secret-topic from 10.0.0.9:1234",
        "warning: 10.0.0.1:10911 was silent",
    ],
)
def test_names_of_groups_and_topics_are_no_secrets(text: str) -> None:
    assert redact_text(text) == text


def test_json_loses_secrets_and_keeps_every_other_byte() -> None:
    text = (
        '{"properties":{"socksProxyConfig":"{\\"*\\":{\\"username\\":\\"u\\",\\"password\\":\\"hunter2\\"}}","secretKey":"hunter2",'
        '"pin_token":42, "namesrvAddr":"http://u:hunter2@h:1","accessChannel":"LOCAL","log":"a \\"quoted\\" word"},'
        '"mqTable":{{"brokerName":"a","queueId":0,"topic":"token-t"}:{"commitOffset":12}},0:"x"}'
    )
    redacted = redact_json(text)
    assert "hunter2" not in redacted
    assert redacted == (
        '{"properties":{"socksProxyConfig":"<redacted>","secretKey":"<redacted>",'
        '"pin_token":"<redacted>", "namesrvAddr":"<redacted>","accessChannel":"LOCAL","log":"a \\"quoted\\" word"},'
        '"mqTable":{{"brokerName":"a","queueId":0,"topic":"token-t"}:{"commitOffset":12}},0:"x"}'
    )
    loads(redacted)


@pytest.mark.parametrize(
    "value",
    [
        "accessKey=a;secretKey=hunter2",
        "SessionCredentials [secretKey = hunter2]",
        "Map(password => hunter2)",
        "Authorization: Bearer hunter2",
        "eyJhbGciOiJIUzI1NiJ9.eyJodW50ZXIyIjoxfQ.hunter2",
    ],
)
def test_a_string_of_json_with_a_secret_in_another_form_is_redacted(value: str) -> None:
    assert redact_json(json.dumps({"properties": {"note": value}, "topic": "t"})) == json.dumps(
        {"properties": {"note": REDACTED}, "topic": "t"}
    )


@pytest.mark.parametrize(
    "text",
    [
        r'{"s\u0065cretKey":"hunter2"}',
        r'{"note":"{\"s\\u0065cretKey\":\"hunter2\"}"}',
        r'{"note":"s\u0065cret\u003dhunter2"}',
        r'{"s\u0065cretKey":"hunter2',
    ],
)
def test_escapes_hide_no_secret(text: str) -> None:
    redacted = redact_payload("consumer_running_info", text)

    assert "hunter2" not in redacted
    assert redact_payload("consumer_running_info", redacted) == redacted


def test_topics_and_groups_named_like_secrets_are_kept() -> None:
    text = (
        '{"topicConfigTable":{"password-reset":{"topicName":"password-reset","perm":6}},'
        '"subscriptionTable":{"token":{"subString":"token = \'x\'","topic":"token"}},"socksProxyConfig":"{}"}'
    )
    assert redact_json(text) == text


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "password", "x y", 'q"', "t\\"]), inner, max_size=3),
    max_leaves=12,
))  # fmt: skip
def test_redacted_json_is_the_same_json_without_secrets(value: object) -> None:
    def expected(node: object) -> object:
        if isinstance(node, list):
            return [expected(each) for each in node]
        if isinstance(node, dict):
            return {
                key: REDACTED
                if key == "password"
                and not isinstance(each, dict | list | None)
                and each not in ("", "{}", "[]", "null")
                else expected(each)
                for key, each in node.items()
            }
        return node

    document = {"token": value, "at": "x"} if not isinstance(value, dict) else value
    assert json.loads(redact_json(json.dumps({"at": document}))) == {
        "at": expected_of_token(document, expected)
    }


def expected_of_token(document: dict[str, object], expected: object) -> object:
    """Extend the expected result for the key `token`, which also names a secret."""
    assert callable(expected)
    result = expected(document)
    if "token" in document:
        value = document["token"]
        is_scalar = value is not None and not isinstance(value, dict | list)
        result["token"] = REDACTED if is_scalar and value not in {"", "{}", "[]", "null"} else expected(value)
    return result


def test_a_transcript_keeps_only_answers_of_known_commands() -> None:
    text = (
        "# 2026-11-16T01:55:40Z\n$ mqadmin topicList -n ns:9876\nT1\n\n"
        "$ sh bin/mqadmin getBrokerConfig -n ns:9876 -b 10.0.0.1:10911\r\n============10.0.0.1:10911==========\r\n"
        f"brokerName                                        =  broker-a\r\ninitAuthenticationUser    =  {USER}\r\n"
        "storePathRootDir      =  /hunter2\r\n\n"
        "$ mqadmin createUser -n ns:9876 -u ledger -p hunter2\ncreate user hunter2 success\n"
        "$ mqadmin listUser -n ns:9876\nledger   hunter2   Normal\n"
        "$ mqadmin topicList -n ns:9876\nT2\n"
    )
    redacted = redact_transcript(text)
    assert "hunter2" not in redacted
    for visible in (
        "T1\n",
        "T2\n",
        "broker-a\r\n",
        "=10.0.0.1:10911=",
        "$ mqadmin createUser <redacted>\n",
        "# 2026",
    ):
        assert visible in redacted
    assert redact_transcript(redacted) == redacted


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("mqadmin/plain_acl.yml", b"accounts:\n- user: hunter2\n"),
        ("conf/broker.conf", b"brokerName=hunter2\n"),
        ("notes/acl.txt", b"accounts:\n- accessKey: RocketMQ\n  secretKey: hunter2\n"),
        ("keys/client.p12", b"hunter2"),
        ("notes/users.bin", b"\0hunter2"),
        ("mqadmin/configs.json", b'{"brokerConfigs":{"a":{"initAuthenticationUser":"hunter2"}}}'),
        ("mqadmin/latin.txt", "é password=hunter2".encode("latin-1")),
    ],
)
def test_attachments_hold_no_secrets(path: str, content: bytes) -> None:
    redacted = redact_attachment(path, content)
    assert b"hunter2" not in redacted
    assert REDACTED.encode() in redacted
    assert redact_attachment(path, redacted) == redacted


def test_other_attachments_are_kept_byte_for_byte() -> None:
    for content in (b"", b"restarted broker-a\r\n\xff", b'{\n "topicConfigTable": {"token": {"perm": 6}}\n}'):
        assert redact_attachment("notes.txt", content) == content


@pytest.mark.parametrize(
    "name", ["plain_acl.yml", "users.json", "acls.json", "tools.yml", "broker.conf", "anything.json"]
)
def test_only_a_brokers_files_of_topics_groups_and_offsets_are_kept(name: str) -> None:
    assert redact_broker_file(f"broker_files/a/{name}", b'{"x":"hunter2"}') == b"<redacted>\n"
    visible = b'{"topicConfigTable":{"token":{"perm":6}}}'
    assert redact_broker_file("broker_files/a/topics.json.bak", visible) == visible


def test_fields_that_the_contract_does_not_know_are_redacted_too() -> None:
    line = json.dumps(
        {
            "kind": "broker_config",
            "cluster": "token=prod",
            "captured_at": "2026-11-16T01:00:00Z",
            "broker": "secret=a",
            "broker_addr": "a:1",
            "error": {"type": "E", "message": f"bad {USER}", "password": "password=hunter2"},
            "secretKey": "hunter2",
            "more": {"password": "hunter2"},
            "attempt": 2,
        }
    ).encode()
    redacted = redact_line("broker_config", line + b"\n")
    assert b"hunter2" not in redacted
    fields = json.loads(redacted)
    assert (fields["cluster"], fields["broker"], fields["attempt"]) == ("token=prod", "secret=a", 2)
    assert redact_line("broker_config", redacted) == redacted


def test_no_line_of_the_samples_has_anything_to_redact() -> None:
    checked = 0
    for path in sorted(SAMPLES.glob("*/*/*.jsonl")):
        kind = next(json.loads(line)["kind"] for line in path.open("rb"))
        for line in path.open("rb"):
            assert redact_line(kind, line) == line, path
            checked += 1
    assert checked > 100
