"""Why a server does not answer, by one connection and one TLS handshake.

Belongs here: the result of the connection and the handshake, as a clause. Does not belong here: the connections of RocketMQ's client.

RocketMQ's client reports the same error ("connect … failed", or a timeout) for a name without an address, for a port without a server,
for a plain connection to a TLS port, and for a certificate that no trusted authority has signed.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rebalance_ledger.settings.model import CollectTls

_TIMEOUT_S: Final = 3.0
_CERTIFICATE_REFUSED: Final = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE", "UNKNOWN_CA")


def silence_cause(address: str, tls: CollectTls | None) -> str:
    """Return the problem that prevents a server's answer and its remedy, as a clause; empty if none is found.

    Args:
        address: `host:port` of a server that has not answered.
        tls: The collector's TLS settings; None for plain connections.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as plain_socket:
            return _tls_cause(plain_socket, tls)
    except socket.gaierror:
        return f"{host} has no address on this machine; check its spelling and the machine's DNS"
    except ConnectionRefusedError:
        return f"{host} has no server on port {port}; check the port, and whether the server runs"
    except TimeoutError:
        return f"no connection within {_TIMEOUT_S:g} s; check the network and its firewalls between this machine and {host}"
    except (OSError, ValueError):
        return ""  # The client's message already reports that the server is unreachable.


def _tls_cause(connection: socket.socket, tls: CollectTls | None) -> str:
    try:
        context = _context(tls)
    except (OSError, ssl.SSLError):
        return ""
    try:
        with context.wrap_socket(connection) as tls_socket:
            if tls is None:
                return "it speaks TLS, and the settings have no collect.tls; add it"
            tls_socket.settimeout(_TIMEOUT_S)
            return _after_handshake(tls_socket)
    except ssl.SSLCertVerificationError as error:
        trusted_path = tls.trusted_certificates if tls is not None else None
        finding = (
            f"no authority in {trusted_path} has signed its certificate"
            if trusted_path
            else "no authority that is trusted by default has signed its certificate"
        )
        return f"{finding} ({error.verify_message}); set collect.tls.trusted_certificates to the file with its authority"
    except ssl.SSLError as error:
        if tls is None:
            return ""
        return (
            _refusal(error)
            or "it does not speak TLS; take collect.tls out of the settings, or give its TLS port"
        )
    except OSError:
        return "" if tls is None else "it ends the connection at the TLS handshake, so it may not speak TLS"


def _context(tls: CollectTls | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # RocketMQ's client does not verify host names either.
    context.check_hostname = False
    if tls is None or not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    elif tls.trusted_certificates:
        context.load_verify_locations(tls.trusted_certificates)
    else:
        context.load_default_certs()
    return context


def _after_handshake(tls_socket: ssl.SSLSocket) -> str:
    """Return the refusal that a server which requires a client certificate sends after the handshake; else empty text."""
    try:
        tls_socket.recv(1)
    except TimeoutError:
        return ""
    except ssl.SSLError as error:
        return _refusal(error)
    except OSError:
        return ""
    return ""


def _refusal(error: ssl.SSLError) -> str:
    reason = str(error.reason or "").upper()
    if any(word in reason for word in _CERTIFICATE_REFUSED):
        return "it wants a certificate of the client; set collect.tls.certificate and collect.tls.key"
    return ""
