"""A TCP proxy on loopback that records the traffic, and can cut connections or accept TLS."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence
    from types import TracebackType

_PIECE_BYTES = 65536


class TcpProxy:
    """A proxy in front of one server, as a context manager.

    Args:
        server: Its address.
        cut_after: The number of the server's bytes that each connection forwards before it is cut: one number for each
            connection in order of arrival, the last for all that follow, None for all bytes.
        tls: The context for clients' connections; the connection to the server is plain.

    Attributes:
        address: The address that it listens on.
        sent_by_server: The bytes sent by the server, by connection.
        sent_by_clients: The bytes sent by clients, by connection.
    """

    def __init__(
        self, server: str, cut_after: Sequence[int | None] = (None,), tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = server
        self._cut_after = cut_after
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listening]
        self._lock = threading.Lock()
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.sent_by_server: list[bytearray] = []
        self.sent_by_clients: list[bytearray] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for each in self._open:
                _shut(each)

    def _accept(self) -> None:
        host, _, port = self._server.rpartition(":")
        # The listening socket is closed at exit.
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._tls is not None:
                    try:
                        client = self._tls.wrap_socket(client, server_side=True)
                    except OSError:
                        continue  # The client rejected our certificate.
                server = socket.create_connection((host, int(port)))
                with self._lock:
                    self._open += [client, server]
                    allowed = self._cut_after[min(len(self.sent_by_server), len(self._cut_after) - 1)]
                    self.sent_by_server.append(bytearray())
                    self.sent_by_clients.append(bytearray())
                    ways = (
                        (client, server, None, self.sent_by_clients[-1]),
                        (server, client, allowed, self.sent_by_server[-1]),
                    )
                for way in ways:
                    threading.Thread(target=_pass_on, args=way, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, allowed: int | None, copy: bytearray) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE_BYTES):
            copy += piece
            if allowed is not None and len(copy) > allowed:
                target.sendall(piece[: max(0, allowed - len(copy) + len(piece))])
                break
            target.sendall(piece)
    for each in (source, target):
        _shut(each)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
