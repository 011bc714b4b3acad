"""Airflow's API server with the plugin of pages, in a separate process, and requests to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.answering_process import AnsweringProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

HTML = "text/html,application/xhtml+xml"
PASSWORD = "password-of-the-test"  # noqa: S105


@dataclass(frozen=True)
class Request:
    """A request for a page.

    Attributes:
        path: The path, which is sent unchanged.
        is_logged_in: Whether it has a user's token.
        accept: The header `Accept`.
    """

    path: str
    is_logged_in: bool = True
    accept: str = HTML


@dataclass(frozen=True)
class Served:
    """The responses to requests, in their order, and the server's output since then.

    Attributes:
        answers: Status, headers and text of each.
        output: Both streams of the server.
    """

    answers: list[dict[str, Any]]
    output: str


class PageServer(AnsweringProcess):
    """An API server of an Airflow, in a separate process."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        """Start the server.

        Args:
            environment: The environment of the Airflow.
            folder: The folder for files of the server.
        """
        passwords = folder / "passwords.json"
        passwords.write_text(json.dumps({"admin": PASSWORD}))
        of_server = {
            **environment,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        }
        program = Path(__file__).with_name("ask_pages.py")
        super().__init__(program, environment=of_server, output=folder / "output.log")

    def send(self, *requests: Request, user: str = "admin", **variables: str) -> Served:
        """Send requests.

        Args:
            requests: The requests.
            user: The user that logs in, with `PASSWORD`.
            variables: Variables that are added to the server's environment while it answers.
        """
        asked = [(request.path, request.is_logged_in, request.accept) for request in requests]
        written_before = self.output.stat().st_size
        answers = self.ask({"requests": asked, "user": user, "password": PASSWORD, "variables": variables})
        return Served(answers, self.output.read_bytes()[written_before:].decode())
