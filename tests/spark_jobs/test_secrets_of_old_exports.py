"""No table contains a secret of an export that was sealed before redaction existed."""

from __future__ import annotations

import json

import pytest

from spark_jobs.silver.line_parsing import rows_of_line

USER = 'initAuthenticationUser={"username":"admin","password":"hunter2"}\n'
BROKER = {"captured_at": "2026-11-16T12:00:00Z", "cluster": "prod", "broker": "a", "broker_addr": "a:1"}


def rows(kind: str, line: dict[str, object] | str) -> str:
    text = line if isinstance(line, str) else json.dumps({"kind": kind, **line})
    found = list(rows_of_line("lines.jsonl", kind, 1, text))
    assert "export_record" in [table for table, _ in found]
    return json.dumps(found)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("broker_config", {**BROKER, "payload": USER}),
        ("broker_config", {**BROKER, "payload": USER, "error": {"type": "E"}}),
        ("broker_config", f'{{"kind":"broker_config","payload":"{USER}'),
        ("broker_config", {**BROKER, "error": {"type": "E", "message": f"CODE: 1 DESC: {USER}"}}),
        ("broker_topic_config", {**BROKER, "payload": '{"topicConfigTable":3,"password":"hunter2"}'}),
        ("broker_topic_config", {**BROKER, "payload": '{"topicConfigTable":{"password":"hunter2'}),
        ("broker_topic_config", {**BROKER, "payload": '{"topicConfigTable":{"password=hunter2":3}}'}),
    ],
)
def test_no_row_has_a_secret(kind: str, line: dict[str, object] | str) -> None:
    assert "hunter2" not in rows(kind, line)
