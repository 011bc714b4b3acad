"""Destinations of notifications: webhooks and e-mail."""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from urllib.parse import SplitResult

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30
_SECURITY: Final = ("starttls", "none")


class NotificationError(Exception):
    """A notification cannot be sent; `str()` is one sentence without secrets."""


class Destination(Protocol):
    """A destination of notifications."""

    def send(self, subject: str, text: str, facts: Mapping[str, Any]) -> None:
        """Send one notification.

        Args:
            subject: The subject, one line.
            text: The text for people, including the subject.
            facts: The same facts for programs, as JSON values.

        Raises:
            NotificationError: The notification was not accepted.
        """


class _NoRedirects(HTTPRedirectHandler):
    """Report a redirect as an error: a redirected POST becomes a GET without the notification, which a login page accepts."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow none."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook that accepts JSON with a `text`, like those of Slack and Mattermost.

    Attributes:
        url: Address, which is a secret for most services.
    """

    url: str

    def send(self, subject: str, text: str, facts: Mapping[str, Any]) -> None:  # noqa: ARG002  # the text begins with it
        """Post the notification; see `Destination.send`."""
        body = json.dumps({"text": _without_markup(text), **facts}).encode()
        # The scheme was checked when the address was read.
        request = Request(self.url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310
        try:
            with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S):
                pass
        except HTTPError as error:
            raise NotificationError(
                f"The webhook at {self._host} answered with HTTP {error.code}: check its address."
            ) from None
        except HTTPException as error:
            # Its text may be the address, or what the server sent.
            raise NotificationError(
                f"The webhook at {self._host} did not answer in HTTP ({type(error).__name__}): check its address."
            ) from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise NotificationError(f"The webhook at {self._host} cannot be reached: {reason}.") from None

    @property
    def _host(self) -> str:
        return urlsplit(self.url).hostname or ""


@dataclass(frozen=True, slots=True)
class Email:
    """An SMTP server, a sender and recipients.

    Attributes:
        host: Host of the server.
        port: Its port.
        login: User; empty without authentication.
        password: Its password.
        sender: Address in `From`.
        recipients: Addresses in `To`.
        security: `tls` from the start, `starttls`, or `none`.
    """

    host: str
    port: int
    login: str
    password: str
    sender: str
    recipients: Sequence[str]
    security: str

    def send(self, subject: str, text: str, facts: Mapping[str, Any]) -> None:  # noqa: ARG002  # for programs
        """Send the notification; see `Destination.send`.

        A warning names the recipients that the server refuses. The message counts as sent if it takes one of them, because sending
        again would repeat it to those.
        """
        try:
            message = EmailMessage()
            message["Subject"] = " ".join(subject.split())
            message["From"] = self.sender
            message["To"] = ", ".join(self.recipients)
            message.set_content(text)
            with self._connection() as server:
                if self.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if self.login:
                    server.login(self.login, self.password)
                refused = server.send_message(message)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            # A ValueError: a login that is not ASCII, or a recipient with a line break.
            kind = type(error).__name__
            raise NotificationError(
                f"The mail server {self.host}:{self.port} did not take the message ({kind}): check address, login and recipients."
            ) from None
        if refused:
            _log.warning(
                "The mail server %s:%s refused %s: check the recipients.",
                self.host,
                self.port,
                ", ".join(sorted(refused)),
            )

    def _connection(self) -> smtplib.SMTP:
        if self.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, self.port, timeout=_TIMEOUT_S, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=_TIMEOUT_S)


def destination_of(url: str) -> Destination:
    """Return the destination that a URL names.

    Args:
        url: `https://…` or `http://…` for a webhook; `smtp://[login:password@]host[:port]?from=A&to=B&to=C` for e-mail with STARTTLS
            (`&security=none` without), `smtps://…` with TLS from the start.

    Raises:
        NotificationError: The URL is neither, or has no address. The message does not contain the URL.
    """
    parts, port = _parts(url.strip())
    if parts.scheme in {"http", "https"} and parts.hostname:
        return Webhook(url.strip())
    if parts.scheme in {"smtp", "smtps"} and parts.hostname:
        options = parse_qs(parts.query)
        sender, recipients = options.get("from", [""])[0], options.get("to", [])
        if not sender or not recipients:
            raise NotificationError(
                "The URL of the mail server has no sender or no recipient: add ?from=A&to=B."
            )
        is_tls = parts.scheme == "smtps"
        security = options.get("security", [_SECURITY[0]])[0]
        if is_tls and "security" in options:
            raise NotificationError("smtps:// has TLS from the start: remove security from the URL.")
        if security not in _SECURITY:
            raise NotificationError(
                "The security in the URL of the mail server is neither starttls nor none."
            )
        return Email(
            parts.hostname,
            port or (465 if is_tls else 587),
            unquote(parts.username or ""),
            unquote(parts.password or ""),
            sender,
            recipients,
            "tls" if is_tls else security,
        )
    raise NotificationError(
        "The destination is neither a webhook (https://…) nor a mail server (smtp://… or smtps://…)."
    )


def _parts(url: str) -> tuple[SplitResult, int | None]:
    """Return the parts of a URL, and its port.

    Raises:
        NotificationError: It is no URL: a text of Python may have part of a password that is not percent-encoded.
    """
    try:
        # urllib sends an address with other characters in no request, and names it in the error.
        if url.isascii() and url.isprintable() and " " not in url:
            parts = urlsplit(url)
            return parts, parts.port
    except ValueError:
        pass
    raise NotificationError(
        "The destination is not a URL: percent-encode special characters of login, password and path, such as / and spaces, "
        "and check host and port."
    )


def _without_markup(text: str) -> str:
    """Escape text for Slack, so that a name such as `<!channel>` does not notify the channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
