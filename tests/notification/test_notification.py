"""Notifications: each critical finding once when it comes and once when it goes, a refused day once, nothing else."""

from __future__ import annotations

import io
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.cli import app as command_line
from rebalance_ledger.notification.changes import notify
from rebalance_ledger.notification.destination import NotificationError, Webhook, destination_of
from rebalance_ledger.warehouse.errors import QueryError
from tests.support.notification_servers import MailServer, WebhookServer, mail_server, webhook_server
from tests.support.published_sample import Publisher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NULLS: dict[str, Any] = {
    "parent_finding_id": None,
    "root_finding_id": None,
    "broker_name": None,
    "client_id": None,
}


@pytest.fixture
def webhook() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        yield server


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path / "warehouse")


def critical(name: str, **more: Any) -> dict[str, Any]:
    row = {
        "finding_id": name,
        "severity": "critical",
        "kind": "unowned",
        "consumer_group": f"group-{name}",
        "topic": "t",
    }
    return row | NULLS | {"evidence": f"evidence {name}.", "advice": f"advice {name}."} | more


def publish(publisher: Publisher, day: int, *names: str, **tables: Any) -> None:
    publisher.publish("c", f"2026-11-{day:02}", finding=[critical(name) for name in names], **tables)


def words(messages: list[dict[str, Any]]) -> list[list[str]]:
    """Return for each message what it says of which finding: `NEW a`, `RESOLVED b`."""
    return [
        [f"NEW {row['finding_id']}" for row in message["new"]]
        + [f"RESOLVED {row['finding_id']}" for row in message["resolved"]]
        for message in messages
    ]


def test_ten_days_notify_each_finding_once_when_it_comes_and_once_when_it_goes(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    days = ["a", "a", "ab", "ab", "b", "b", "b", "", "a", "a"]
    for number, names in enumerate(days, start=1):
        publish(publisher, number, *names)
        for _ in range(2):  # A task that is cleared runs again.
            notify(publisher.root, "c", Webhook(webhook.url))

    assert words(webhook.messages) == [["NEW a"], ["NEW b"], ["RESOLVED a"], ["RESOLVED b"], ["NEW a"]]


def test_a_recomputed_earlier_day_notifies_nothing(publisher: Publisher, webhook: WebhookServer) -> None:
    publish(publisher, 2, "a")
    notify(publisher.root, "c", Webhook(webhook.url))
    publish(publisher, 1, "z")
    notify(publisher.root, "c", Webhook(webhook.url))

    assert words(webhook.messages) == [["NEW a"]]


def test_findings_that_are_not_critical_or_explained_by_another_notify_nothing(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    rows = [critical("w", severity="warning"), critical("x", root_finding_id="w", parent_finding_id="w")]
    publisher.publish("c", "2026-11-01", finding=rows)
    notify(publisher.root, "c", Webhook(webhook.url))

    assert webhook.messages == []


def test_a_finding_that_another_explains_or_that_is_less_severe_is_not_gone(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    publish(publisher, 1, "a", "b")
    notify(publisher.root, "c", Webhook(webhook.url))
    explained = critical("a", root_finding_id="r", parent_finding_id="r")
    publisher.publish("c", "2026-11-02", finding=[explained, critical("b", severity="warning")])
    notify(publisher.root, "c", Webhook(webhook.url))
    assert words(webhook.messages) == [["NEW a", "NEW b"]]

    publisher.publish("c", "2026-11-03", finding=[explained, critical("b")])
    notify(publisher.root, "c", Webhook(webhook.url))
    notify(publisher.root, "c", Webhook(webhook.url))
    publish(publisher, 4)
    notify(publisher.root, "c", Webhook(webhook.url))

    assert words(webhook.messages)[1:] == [["NEW b"], ["RESOLVED a", "RESOLVED b"]]


def test_runs_that_end_at_the_same_time_send_one_notification(publisher: Publisher) -> None:
    subjects: list[str] = []

    class SlowDestination:
        def send(self, subject: str, text: str, facts: Mapping[str, Any]) -> None:  # noqa: ARG002  # of the protocol
            subjects.append(subject)
            time.sleep(0.5)

    publish(publisher, 1, "a")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: notify(publisher.root, "c", SlowDestination()), range(3)))

    assert subjects == ["c: 2026-11-01: 1 critical finding new"]


def test_a_quarantined_group_is_not_reported_as_recovered(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    publish(publisher, 1, "a", "b")
    notify(publisher.root, "c", Webhook(webhook.url))
    publish(
        publisher,
        2,
        quarantined_group=[{"consumer_group": "group-a", "expectation_id": "x", "observed": 1.0}],
    )
    notify(publisher.root, "c", Webhook(webhook.url))
    publish(publisher, 3)
    notify(publisher.root, "c", Webhook(webhook.url))

    assert words(webhook.messages)[1:] == [["RESOLVED b"], ["RESOLVED a"]]


def test_a_refused_day_notifies_once_with_its_reason_and_once_more_when_another_run_is_refused(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    publish(publisher, 1)
    failure = {
        "severity": "block",
        "outcome": "failed",
        "expectation_id": "t.e",
        "expectation": "No two owners",
        "examples": ["q 3"],
    }
    for run_id in ("r1", "r1", "r2"):
        publisher.quarantine("c", "2026-11-02", [failure | {"run_id": run_id}])
        notify(publisher.root, "c", Webhook(webhook.url))
    publish(publisher, 2)
    notify(publisher.root, "c", Webhook(webhook.url))

    assert [message["refused_ds"] for message in webhook.messages] == ["2026-11-02", "2026-11-02"]
    assert "REFUSED 2026-11-02: No two owners (t.e); for example q 3" in webhook.messages[0]["text"]


def test_a_cluster_whose_first_day_is_refused_is_notified(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    publisher.quarantine(
        "c",
        "2026-11-02",
        [{"severity": "block", "outcome": "failed", "expectation_id": "t.e", "run_id": "r"}],
    )
    notify(publisher.root, "c", Webhook(webhook.url))

    assert [message["refused_ds"] for message in webhook.messages] == ["2026-11-02"]


def test_a_rejected_notification_is_sent_again(publisher: Publisher, webhook: WebhookServer) -> None:
    publish(publisher, 1, "a")
    webhook.status = 503
    with pytest.raises(
        NotificationError, match=r"The webhook at 127\.0\.0\.1 answered with HTTP 503"
    ) as error:
        notify(publisher.root, "c", Webhook(webhook.url))
    assert "secret-token" not in str(error.value)

    webhook.status = 200
    notify(publisher.root, "c", Webhook(webhook.url))

    assert words(webhook.messages) == [["NEW a"]]


def test_a_webhook_that_redirects_has_not_accepted_the_notification(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    publish(publisher, 1, "a")
    webhook.status = 302
    webhook.location = "/login"
    with pytest.raises(NotificationError, match="answered with HTTP 302"):
        notify(publisher.root, "c", Webhook(webhook.url))

    webhook.status = 200
    notify(publisher.root, "c", Webhook(webhook.url))

    assert words(webhook.messages) == [["NEW a"]]


def test_an_answer_that_is_not_http_is_a_failure_without_the_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=_answer_without_http, args=(server,))
        thread.start()
        with pytest.raises(NotificationError, match="did not answer in HTTP") as error:
            Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/hidden").send("s", "t", {})
        thread.join()
    assert "hidden" not in str(error.value)


def _answer_without_http(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b"hidden\r\n\r\n")


def test_a_recipient_with_a_line_break_is_refused(mail: MailServer) -> None:
    with pytest.raises(NotificationError, match="did not take the message"):
        destination_of(f"{mail.url}&to=c%0ABcc:d@example.org").send("s", "t", {})
    assert mail.messages == []


def test_hostile_names_cannot_mention_everybody_or_hide_text(
    publisher: Publisher, webhook: WebhookServer
) -> None:
    publisher.publish("c", "2026-11-01", finding=[critical("a", consumer_group="<!channel>\x1b[8m\u202e")])
    notify(publisher.root, "c", Webhook(webhook.url))

    text = webhook.messages[0]["text"]
    assert "&lt;!channel&gt;\\x1b[8m\\u202e" in text
    assert "<" not in text


def test_a_recipient_that_the_server_refuses_is_named(
    mail: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    mail.refused.add("b@example.org")
    destination_of(mail.url).send("s", "t", {})
    assert mail.recipients == [["a@example.org"]]
    assert caplog.messages == [
        f"The mail server {mail.url[7:].partition('?')[0]} refused b@example.org: check the recipients."
    ]


def test_a_mail_that_no_recipient_gets_is_not_sent(mail: MailServer) -> None:
    mail.refused |= {"a@example.org", "b@example.org"}
    with pytest.raises(NotificationError, match="did not take the message"):
        destination_of(mail.url).send("s", "t", {})


def test_a_mail_has_the_change_in_its_subject_and_the_advice_in_its_text(
    publisher: Publisher, mail: MailServer
) -> None:
    publish(publisher, 1, "a")
    notify(publisher.root, "c", destination_of(mail.url))

    (message,) = mail.messages
    assert message["Subject"] == "c: 2026-11-01: 1 critical finding new"
    assert mail.recipients == [["a@example.org", "b@example.org"]]
    assert "NEW unowned (group-a, t): evidence a. advice a." in message.get_content()


def test_a_damaged_record_is_named_and_nothing_is_sent(
    publisher: Publisher, webhook: WebhookServer, tmp_path: Path
) -> None:
    publish(publisher, 1, "a")
    record = tmp_path / "warehouse" / "notifications" / "c.json"
    record.parent.mkdir()
    record.write_text("{")

    with pytest.raises(
        QueryError, match=r"notifications/c\.json cannot be read as the record of notifications"
    ):
        notify(publisher.root, "c", Webhook(webhook.url))
    assert webhook.messages == []


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://user:hidden@example.org", "neither a webhook"),
        ("hidden", "neither a webhook"),
        ("smtp://user:hidden@example.org", "no sender or no recipient"),
        ("smtp://user:hidden/x@example.org?from=a@b&to=c@d", "not a URL: percent-encode"),
        ("smtp://hidden@example.org?from=a@b&to=c@d&security=STARTTLS", "neither starttls nor none"),
        ("smtps://hidden@example.org?from=a@b&to=c@d&security=none", "remove security"),
        ("https://[example.org/hidden", "not a URL"),
        ("https://example.org:80a/hidden", "not a URL"),
        ("https://example.org/hidden hidden", "not a URL"),
        ("https://example.org/hiddenü", "not a URL"),
    ],
)
def test_a_wrong_destination_is_refused_without_repeating_it(url: str, sentence: str) -> None:
    with pytest.raises(NotificationError, match=sentence) as error:
        destination_of(url)
    assert "hidden" not in str(error.value)


def test_the_command_reads_the_destination_from_standard_input(
    publisher: Publisher,
    webhook: WebhookServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish(publisher, 1, "a")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{webhook.url}\n"))
    monkeypatch.setattr(
        "sys.argv",
        ["ledger", "notify", "--cluster=c", f"--warehouse={publisher.root}", "--destination-from-stdin"],
    )

    with pytest.raises(SystemExit) as ending:
        command_line.main()

    assert ending.value.code == 0
    assert words(webhook.messages) == [["NEW a"]]
    assert capsys.readouterr().out == "Sent: c: 2026-11-01: 1 critical finding new\n"
