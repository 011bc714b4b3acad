"""Serves Airflow's API server application on loopback, asks it for pages of the plugin, and writes the answers into a file as JSON.

Run by served_pages.py in a process of its own, with the environment of an Airflow.
"""

from __future__ import annotations

import json
import socket
import sys
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from airflow.api_fastapi.app import create_app


def ask(port: int, path: str, headers: dict[str, str], body: str | None = None) -> dict[str, Any]:
    """Return status, headers and text of one answer; the path is sent as it is."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return {"status": answer.status, "headers": headers, "text": answer.read().decode()}
    finally:
        connection.close()


class _Server(uvicorn.Server):
    """A server that asks itself once it is ready, and ends."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and ask from a thread."""
        await super().startup(sockets)
        assert sockets
        Thread(target=self._ask_all, args=(sockets[0].getsockname()[1],)).start()

    def _ask_all(self, port: int) -> None:
        try:
            body = json.dumps({"username": sys.argv[4], "password": sys.argv[3]})
            token = json.loads(ask(port, "/auth/token", {"Content-Type": "application/json"}, body)["text"])[
                "access_token"
            ]
            answers = [
                ask(port, path, {"Accept": accept} | ({"Cookie": f"_token={token}"} if is_logged_in else {}))
                for path, is_logged_in, accept in json.loads(sys.argv[1])
            ]
            Path(sys.argv[2]).write_text(json.dumps(answers))
        finally:
            self.should_exit = True


loopback = socket.create_server(("127.0.0.1", 0))
_Server(uvicorn.Config(create_app(), log_level="warning")).run(sockets=[loopback])
