"""A webhook and a mail server on loopback that store the messages they receive."""

from __future__ import annotations

import json
import socketserver
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage


@dataclass
class WebhookServer:
    """A webhook.

    Attributes:
        url: Its address.
        messages: Bodies of the accepted requests.
        status: HTTP status of the next responses.
        location: `Location` of the next responses, which is an existing page; empty for none.
    """

    url: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    location: str = ""


@contextmanager
def webhook_server() -> Iterator[WebhookServer]:
    """Serve a webhook on loopback."""
    state = WebhookServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if state.status == 200:
                assert self.headers["Content-Type"] == "application/json"
                state.messages.append(json.loads(body))
            self.send_response(state.status)
            if state.location:
                self.send_header("Location", state.location)
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, _served(server):
        state.url = f"http://127.0.0.1:{server.server_address[1]}/services/T0/secret-token"
        yield state


@dataclass
class MailServer:
    """A mail server.

    Attributes:
        url: The notification destination for it.
        messages: The messages that it accepted.
        recipients: The envelope recipients of each message.
        refused: Recipients that it refuses.
    """

    url: str = ""
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Serve SMTP without TLS on loopback."""
    state = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            recipients: list[str] = []
            self.wfile.write(b"220 test\r\n")
            for line in self.rfile:
                command = line.strip().upper()
                if command.startswith(b"RCPT TO:"):
                    recipient = line.strip()[len("RCPT TO:") :].decode().strip("<>")
                    if recipient in state.refused:
                        self.wfile.write(b"550 no such user\r\n")
                        continue
                    recipients.append(recipient)
                if command == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    content = b"".join(iter(self.rfile.readline, b".\r\n"))
                    state.messages.append(message_from_bytes(content, policy=policy.default))  # type: ignore[arg-type]
                    state.recipients.append(recipients)
                self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")
                if command == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server, _served(server):
        port = server.server_address[1]
        state.url = (
            f"smtp://127.0.0.1:{port}?from=ledger@example.org&to=a@example.org&to=b@example.org&security=none"
        )
        yield state


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
