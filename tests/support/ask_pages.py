"""Serves Airflow's API server application on loopback and requests pages of the plugin: one line of JSON with answers for each line with requests.

Run by served_pages.py in a separate process with the environment of an Airflow.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import uvicorn
from airflow.api_fastapi.app import create_app


def ask(port: int, path: str, headers: dict[str, str], body: str | None = None) -> dict[str, Any]:
    """Return status, headers and text of one response; the path is sent unchanged."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return {"status": answer.status, "headers": headers, "text": answer.read().decode()}
    finally:
        connection.close()


def _answers(port: int, question: dict[str, Any]) -> list[dict[str, Any]]:
    """Send a question's requests, with its variables in the server's environment for their duration."""
    before = dict(os.environ)
    os.environ.update(question["variables"])
    try:
        body = json.dumps({"username": question["user"], "password": question["password"]})
        token = json.loads(ask(port, "/auth/token", {"Content-Type": "application/json"}, body)["text"])[
            "access_token"
        ]
        return [
            ask(port, path, {"Accept": accept} | ({"Cookie": f"_token={token}"} if is_logged_in else {}))
            for path, is_logged_in, accept in question["requests"]
        ]
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Server(uvicorn.Server):
    """A server that, once it is ready, sends itself the requests from its standard input, and ends with that input."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and send the requests from a thread."""
        await super().startup(sockets)
        assert sockets
        Thread(target=self._ask_all, args=(sockets[0].getsockname()[1],)).start()

    def _ask_all(self, port: int) -> None:
        try:
            with os.fdopen(int(sys.argv[1]), "w") as answers:
                for line in sys.stdin:
                    answers.write(f"{json.dumps(_answers(port, json.loads(line)))}\n")
                    answers.flush()
        finally:
            self.should_exit = True


loopback = socket.create_server(("127.0.0.1", 0))
_Server(uvicorn.Config(create_app(), log_level="warning")).run(sockets=[loopback])
