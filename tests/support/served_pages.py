"""Airflow's API server with the plugin of pages, in a process of its own, and requests to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """The answers to requests, in their order, and what the server wrote meanwhile.

    Attributes:
        answers: Status, headers and text of each.
        output: Both streams of the server.
    """

    answers: list[dict[str, Any]]
    output: str


class PageServer:
    """An API server in an Airflow, in a process of its own; it takes seconds to start."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        """Start it.

        Args:
            environment: Of the Airflow.
            folder: For files of the server.
        """
        passwords = folder / "passwords.json"
        passwords.write_text(json.dumps({"admin": PASSWORD}))
        self._output = folder / "output.log"
        answers, of_server = os.pipe()
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-u", Path(__file__).with_name("ask_pages.py"), str(of_server)],
                env={
                    **environment,
                    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
                    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
                    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
                },
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=[of_server],
                text=True,
            )
        os.close(of_server)
        self._answers = os.fdopen(answers)

    def ask(self, *requests: Request, user: str = "admin", **variables: str) -> Served:
        """Send requests.

        Args:
            requests: The requests.
            user: Who logs in, with `PASSWORD`.
            variables: What the server's environment has too while it answers.
        """
        asked = [(request.path, request.is_logged_in, request.accept) for request in requests]
        question = {"requests": asked, "user": user, "password": PASSWORD, "variables": variables}
        written_before = self._output.stat().st_size
        assert self._process.stdin
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        answers = self._answers.readline()
        output = self._output.read_bytes()[written_before:].decode()
        assert answers, output[-3000:]
        return Served(json.loads(answers), output)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait() == 0, self._output.read_text()[-3000:]
        self._answers.close()
