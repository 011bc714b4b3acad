"""A server that is down, misspelt or unreachable and problems of TLS are distinguished from each other."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from rebalance_ledger.collectors.silence_causes import silence_cause
from rebalance_ledger.settings import CollectTls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Certificate:
    """A self-signed certificate and its key."""

    def __init__(self, folder: Path, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.file, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        self.file.write_bytes(certificate.public_bytes(Encoding.PEM))
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@contextmanager
def full_backlog() -> Iterator[str]:
    """Drop further connections, as a firewall does: nobody accepts, and the queue of connections is full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        with socket.create_connection(address):
            yield f"127.0.0.1:{address[1]}"


@contextmanager
def server(context: ssl.SSLContext | None) -> Iterator[str]:
    """Accept one TLS handshake; without a context, answer in plain text and close the connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with suppress(OSError), connection:
                if context is None:
                    connection.recv(100)
                    connection.sendall(b"\0\0\0\x10 not what TLS says")
                else:
                    with context.wrap_socket(connection, server_side=True) as encrypted:
                        encrypted.recv(100)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@pytest.fixture
def own(tmp_path: Path) -> Certificate:
    return Certificate(tmp_path, "own")


def speaking(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    return context


def test_a_plain_client_and_a_tls_server(own: Certificate) -> None:
    with server(speaking(own)) as address:
        assert "add it" in silence_cause(address, None)
        assert "collect.tls" in silence_cause(address, None)


def test_a_certificate_of_another_authority(own: Certificate, tmp_path: Path) -> None:
    other = Certificate(tmp_path, "other")
    with server(speaking(own)) as address:
        cause = silence_cause(address, CollectTls(trusted_certificates=str(other.file)))
        assert cause.startswith(f"no authority in {other.file} has signed its certificate (")
        assert silence_cause(address, CollectTls()).startswith("no authority that is trusted by default")


def test_a_client_whose_tls_is_right_has_no_tls_cause(
    own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebalance_ledger.collectors.silence_causes._TIMEOUT_S", 0.2)
    with server(speaking(own)) as address:
        assert not silence_cause(address, CollectTls(trusted_certificates=str(own.file)))
        assert not silence_cause(address, CollectTls(verify=False))


def test_a_server_that_requires_a_client_certificate(own: Certificate) -> None:
    context = speaking(own)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(own.file)
    with server(context) as address:
        assert "certificate of the client" in silence_cause(
            address, CollectTls(trusted_certificates=str(own.file))
        )


def test_a_server_that_does_not_speak_tls() -> None:
    with server(None) as address:
        assert not silence_cause(address, None)
        assert "not speak TLS" in silence_cause(address, CollectTls(verify=False))


@pytest.mark.parametrize("tls", [None, CollectTls()], ids=["plain", "TLS"])
def test_a_server_that_is_down_or_misspelt(tls: CollectTls | None) -> None:
    assert silence_cause("127.0.0.1:1", tls).startswith("127.0.0.1 has no server on port 1; check the port")
    assert silence_cause("mq.invalid:9876", tls).startswith(
        "mq.invalid has no address on this machine; check"
    )
    assert not silence_cause("nonsense", tls)


def test_a_server_behind_a_firewall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_ledger.collectors.silence_causes._TIMEOUT_S", 0.2)
    with full_backlog() as address:
        assert silence_cause(address, None).startswith("no connection within 0.2 s; check the network")
