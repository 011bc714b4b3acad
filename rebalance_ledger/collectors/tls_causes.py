"""Why a server does not answer, where TLS is the cause: found out by shaking hands with it once.

What belongs here: what a handshake proves, as a clause. What does not: the connections that questions are asked over; those are
RocketMQ's client's.

RocketMQ's client says the same ("connect … failed", or a time-out) of a plain client at a server that wants TLS, of a
certificate that no trusted authority has signed, and of a server that is down.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rebalance_ledger.settings.model import CollectTls

_TIMEOUT_S: Final = 3.0
_CERTIFICATE_REFUSED: Final = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE", "UNKNOWN_CA")


def tls_cause(address: str, tls: CollectTls | None) -> str:
    """Return why TLS keeps a server from answering, as a clause with what to do; empty if it does not.

    Args:
        address: `host:port` of a server that has not answered.
        tls: How the collector encrypts; None for plain connections.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT_S) as plain:
            return _cause(plain, tls)
    except (OSError, ValueError):
        return ""  # It cannot be reached at all, as the client's message says.


def _cause(connection: socket.socket, tls: CollectTls | None) -> str:
    try:
        context = _context(tls)
    except (OSError, ssl.SSLError):
        return ""
    try:
        with context.wrap_socket(connection) as encrypted:
            if tls is None:
                return "it speaks TLS, and the settings have no collect.tls; add it"
            encrypted.settimeout(_TIMEOUT_S)
            return _after_handshake(encrypted)
    except ssl.SSLCertVerificationError as error:
        trusted = tls.trusted_certificates if tls is not None else None
        whom = (
            f"no authority in {trusted} has signed its certificate"
            if trusted
            else "no authority that is trusted by default has signed its certificate"
        )
        return f"{whom} ({error.verify_message}); set collect.tls.trusted_certificates to the file with its authority"
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
    # RocketMQ's client compares no host names either.
    context.check_hostname = False
    if tls is None or not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    elif tls.trusted_certificates:
        context.load_verify_locations(tls.trusted_certificates)
    else:
        context.load_default_certs()
    return context


def _after_handshake(encrypted: ssl.SSLSocket) -> str:
    """A server that wants a certificate of the client says so in its first words after the handshake."""
    try:
        encrypted.recv(1)
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
