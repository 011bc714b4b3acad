"""Requests to Airflow's API server with the plugin of pages, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HTML = "text/html,application/xhtml+xml"
PASSWORD = "password-of-the-test"  # noqa: S105


@dataclass(frozen=True)
class Request:
    """A request for a page.

    Attributes:
        path: Sent as it is.
        is_logged_in: Whether it has the token of a user.
        accept: The header `Accept`.
    """

    path: str
    is_logged_in: bool = True
    accept: str = HTML


@dataclass(frozen=True)
class Served:
    """The answers to requests, in their order, and what the server wrote.

    Attributes:
        answers: Status, headers and text of each.
        output: Both streams of the server.
    """

    answers: list[dict[str, Any]]
    output: str


def serve(
    requests: Sequence[Request], environment: Mapping[str, str], folder: Path, user: str = "admin"
) -> Served:
    """Start a server in an Airflow, send requests, and end it.

    Args:
        requests: The requests.
        environment: Of the Airflow, with LEDGER_WAREHOUSE.
        folder: For files of the test.
        user: Who logs in, with `PASSWORD`.
    """
    passwords, answers = folder / "passwords.json", folder / "answers.json"
    passwords.write_text(json.dumps({"admin": PASSWORD}))
    asked = json.dumps([(request.path, request.is_logged_in, request.accept) for request in requests])
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("ask_pages.py"), asked, answers, PASSWORD, user],
        env={
            **environment,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        },
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ended.returncode == 0 and answers.exists(), ended.stdout[-3000:]  # noqa: PT018 - one server
    return Served(json.loads(answers.read_text()), ended.stdout)
