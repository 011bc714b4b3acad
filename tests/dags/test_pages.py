"""Pages of days in Airflow: served to who may read the DAG's runs, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HTML = "text/html,application/xhtml+xml"
PASSWORD = "password-of-the-test"  # noqa: S105


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    folder = tmp_path / "warehouse"
    for day, title in (("2026-11-16", "Passed: c, 2026-11-16"), ("2026-11-17", "Refused: c, 2026-11-17")):
        pages = folder / "data_docs" / "prod%2Feu<b>" / day
        pages.mkdir(parents=True)
        (pages / "index.html").write_text(f"<title>{title}</title>Data Docs of {day}")
    (folder / "data_docs" / "prod%2Feu<b>" / "2026-11-16" / "report.html").write_text("the report")
    (folder / "data_docs" / "prod%2Feu<b>" / "2026-11-16" / "verdict.json").write_text("{}")
    (folder / "secret.html").write_text("not a page")
    return folder


@pytest.fixture
def ask(
    airflow_environment: dict[str, str], warehouse: Path, tmp_path: Path
) -> Callable[..., list[dict[str, Any]]]:
    """Sends requests (path, whether logged in, Accept) to Airflow's API server and returns the answers."""

    def send(*requests: tuple[str, bool, str], place: str = str(warehouse)) -> list[dict[str, Any]]:
        passwords = tmp_path / "passwords.json"
        passwords.write_text(json.dumps({"admin": PASSWORD}))
        answers_file = tmp_path / "answers.json"
        answer = subprocess.run(
            [
                sys.executable,
                Path(__file__).with_name("ask_pages.py"),
                json.dumps(requests),
                answers_file,
                PASSWORD,
            ],
            env={
                **airflow_environment,
                "LEDGER_WAREHOUSE": place,
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            },
            check=False,
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stderr[-3000:]
        answers: list[dict[str, Any]] = json.loads(answers_file.read_text())
        return answers

    return send


def test_pages_are_served_to_who_is_logged_in(ask: Callable[..., list[dict[str, Any]]]) -> None:
    day = "/queue-ledger/prod%252Feu%3Cb%3E/2026-11-16"
    days, data_docs, report, refused, browser, program, outside, encoded, other_type, missing = ask(
        ("/queue-ledger/", True, HTML),
        (f"{day}/index.html", True, HTML),
        (f"{day}/report.html", True, HTML),
        ("/queue-ledger/prod%252Feu%3Cb%3E/2026-11-17/index.html", True, HTML),
        (f"{day}/index.html", False, HTML),
        (f"{day}/index.html", False, "application/json"),
        ("/queue-ledger/../secret.html", True, HTML),
        ("/queue-ledger/..%2Fsecret.html", True, HTML),
        (f"{day}/verdict.json", True, HTML),
        (f"{day}/nothing.html", True, HTML),
    )

    assert data_docs["status"] == 200
    assert data_docs["text"].endswith("Data Docs of 2026-11-16")
    assert "default-src 'none'" in data_docs["headers"]["content-security-policy"]
    assert (report["status"], report["text"]) == (200, "the report")
    assert refused["text"].endswith("Data Docs of 2026-11-17")
    assert browser["status"] in {302, 303, 307}
    assert "/auth/login" in browser["headers"]["location"]
    assert program["status"] == 401
    assert [answer["status"] for answer in (other_type, missing)] == [404, 404]
    assert all("not a page" not in answer["text"] for answer in (outside, encoded))
    assert encoded["status"] == 404

    text = days["text"]
    assert "<h2>prod/eu&lt;b&gt;</h2>" in text
    assert text.index("2026-11-17") < text.index("2026-11-16")
    assert '<a href="prod%252Feu%3Cb%3E/2026-11-17/index.html">Refused</a></td><td>none</td>' in text
    assert '<a href="prod%252Feu%3Cb%3E/2026-11-16/report.html">report</a>' in text


def test_a_server_without_pages_says_why(ask: Callable[..., list[dict[str, Any]]]) -> None:
    (days,) = ask(("/queue-ledger/", True, HTML), place="s3a://bucket/warehouse")

    assert days["status"] == 200
    assert "it names an object store" in days["text"]
