"""RocketMQ's own admin client, in a JVM of its own that this process drives through py4j on loopback.

What belongs here: starting and ending that JVM, handing it what it must not find on a command line, which request of
RocketMQ's a question is, and the bytes of its answer. What does not: whom to ask what, how often and how hard (`live`), and
what stands in an answer (`answered_names`).

The program in the JVM is `java/ledger/AdminGateway.java`. Janino, which Spark brings along, compiles it as the JVM starts,
because the Java that the set-up installs has no compiler.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import struct
import subprocess
import tempfile
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from rebalance_ledger.collectors.errors import AdminClientError, UnusableConnectionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rebalance_ledger.settings.model import CollectTls

PROGRAM: Final = Path(__file__).parent / "java" / "ledger" / "AdminGateway.java"
_MAIN_CLASS: Final = "ledger.AdminGateway"
_LAUNCHER: Final = "org.codehaus.janino.SimpleCompiler"

_START_PATIENCE_S: Final = 120
_END_PATIENCE_S: Final = 5
# Beyond the time-out of the call itself: the JVM answers in time unless it is at its end.
_JVM_PATIENCE_S: Final = 120
_LAST_WORDS_BYTES: Final = 2000

_OPTIONS: Final = (
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    # By default a client gives up on answers of more than 16 MiB; a line of an export may have as much as this.
    "-Dcom.rocketmq.remoting.frameMaxLength=268435456",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)


_ASKED: Final = ("nameserver", "broker", "broker_addr", "proxy", "group", "topic", "client_id")

# RocketMQ's RequestCode, and the fields of the request's header by their names there. Brokers of every release answer these
# whole; the admin client's own methods for the first two of brokers take pages since 5.4.
_REQUESTS: Final[dict[str, tuple[int, dict[str, str]]]] = {
    "nameserver_topic_list": (206, {}),
    "nameserver_cluster_info": (106, {}),
    "nameserver_route": (105, {"topic": "topic"}),
    "broker_runtime_info": (28, {}),
    "broker_topic_config": (21, {}),
    "broker_subscription_group": (201, {}),
    "broker_config": (26, {}),
    "broker_message_request_mode": (402, {}),
    "broker_producer_table": (328, {}),
    "broker_topic_stats": (202, {"topic": "topic"}),
    "consumer_connection": (203, {"consumerGroup": "group"}),
    "proxy_consumer_connection": (203, {"consumerGroup": "group"}),
    "consumer_running_info": (307, {"consumerGroup": "group", "clientId": "client_id"}),
    "consumer_status": (223, {"topic": "topic", "group": "group", "clientAddr": "client_id"}),
    "consume_stats": (208, {"consumerGroup": "group"}),
}
# A thread dump of each client is nothing that the ledger reads.
_CONSTANT_FIELDS: Final = {"consumer_running_info": {"jstackEnable": "false"}}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a cluster with access control wants to see; never in an argument list, a file or a log.

    Attributes:
        access_key: Name of the account.
        secret_key: What its requests are signed with; it is not sent.
        tls_key_password: Opens the client's own TLS key, if that is closed.
    """

    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    tls_key_password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call: the fields of the export's line say who is asked what.

    Attributes:
        kind: Name of a kind of the contract.
        nameserver: The name server; empty if a broker is asked.
        broker: Name of the broker.
        broker_addr: Its address.
        proxy: Address of the proxy; empty if another server is asked.
        group: Consumer group.
        topic: Topic.
        client_id: Client id; the broker passes the question on to that client.
    """

    kind: str
    nameserver: str = ""
    broker: str = ""
    broker_addr: str = ""
    proxy: str = ""
    group: str = ""
    topic: str = ""
    client_id: str = ""

    @property
    def address(self) -> str:
        """Who is called."""
        return self.nameserver or self.proxy or self.broker_addr

    @property
    def asked(self) -> dict[str, str | int]:
        """The fields of the line that say what was asked."""
        return {name: getattr(self, name) for name in _ASKED if getattr(self, name)}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        payload: The response's body, byte for byte; None if there was none, or the response was an error.
        error_type: Java class of the exception.
        error_message: Its message.
        response_code: RocketMQ's response code; None if there was no response.
    """

    payload: bytes | None = None
    error_type: str = ""
    error_message: str = ""
    response_code: int | None = None


class AdminClient:
    """RocketMQ's admin client, one for each name server, in a running JVM; safe to call from many threads.

    See `admin_client`, which starts and ends it.
    """

    def __init__(self, jvm: _Jvm, nameservers: Sequence[str]) -> None:
        self._jvm = jvm
        self._nameservers = tuple(nameservers)
        self._entry = jvm.gateway.entry_point
        self._ask = self._entry.ask

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        return self._jvm.process.pid

    def ask(self, question: Question, timeout_ms: int) -> Answer:
        """Ask one question, once.

        Args:
            question: Whom and what.
            timeout_ms: How long the answer may take.

        Raises:
            AdminClientError: The JVM has ended.
        """
        try:
            record: bytes = self._ask(
                _REQUESTS[question.kind][0],
                question.nameserver or self._nameservers[0],
                question.proxy or question.broker_addr or None,
                _header(question),
                timeout_ms,
            )
        except Py4JError:
            raise self._jvm.ended("ended while it was asked") from None
        return _decoded(record)

    def prepare(self, credentials: Credentials, tls: CollectTls | None) -> None:
        """Hands over what is secret, then starts an admin client for each name server; none is called yet.

        Raises:
            AdminClientError: The JVM has ended.
            UnusableConnectionError: The admin client refuses what it is given.
        """
        try:
            if credentials.access_key:
                self._entry.authenticate(credentials.access_key, credentials.secret_key)
            if tls is not None:
                password = credentials.tls_key_password or None
                self._entry.encrypt(tls.verify, tls.trusted_certificates, tls.certificate, tls.key, password)
            for nameserver in self._nameservers:
                self._entry.connect(nameserver)
        except Py4JJavaError as error:
            said = error.java_exception.toString().partition("\n")[0].rstrip(".")
            raise UnusableConnectionError(
                f"RocketMQ's admin client refuses the connection's settings: {said}."
            ) from None
        except Py4JError:
            raise self._jvm.ended("ended while it was prepared") from None


@contextmanager
def admin_client(
    jars: Path,
    java: str | Path,
    nameservers: Sequence[str],
    *,
    credentials: Credentials | None = None,
    tls: CollectTls | None = None,
    connect_timeout_ms: int = 3000,
) -> Iterator[AdminClient]:
    """Start a JVM with an admin client for each name server, and end it afterwards.

    It also ends when this process does, however that happens: it lives as long as its input is open.

    Args:
        jars: Folder with RocketMQ's jars, py4j's and Janino's; see `setup/collector.py`.
        java: The `java` to run.
        nameservers: Addresses, `host:port`.
        credentials: Of a cluster with access control.
        tls: How to encrypt; None for plain connections.
        connect_timeout_ms: How long a connection may take.

    Yields:
        Who can be asked.

    Raises:
        AdminClientError: The JVM does not start.
        UnusableConnectionError: What it was given is refused.
    """
    # At its lowest level py4j's log has every argument; at the others it repeats what it also raises.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    command = [
        str(java),
        *_OPTIONS,
        f"-Dcom.rocketmq.remoting.client.connect.timeout={connect_timeout_ms}",
        "-classpath",
        f"{jars}{os.sep}*",
        _LAUNCHER,
        str(PROGRAM),
        _MAIN_CLASS,
    ]
    with _running(command) as jvm:
        client = AdminClient(jvm, nameservers)
        client.prepare(credentials or Credentials(), tls)
        yield client


@dataclass(frozen=True, slots=True)
class _Jvm:
    """A JVM and the way to it."""

    process: subprocess.Popen[bytes]
    gateway: JavaGateway
    said: IO[bytes]

    def ended(self, how: str) -> AdminClientError:
        return _ended(how, self.said)


@contextmanager
def _running(command: list[str]) -> Iterator[_Jvm]:
    token = secrets.token_hex(32)
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603  # an argument list, never a shell
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                cwd=os.sep,
                # Credentials may be in our environment, and RocketMQ takes settings from it.
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
                # A person's Ctrl-C is for us; the JVM ends when we let go of its input.
                start_new_session=True,
            )
        except OSError as error:
            raise AdminClientError(
                f"{command[0]} cannot be run ({error.strerror}); set JAVA_HOME to a Java 17 or 21."
            ) from error
        try:
            port = _handshake(process, token)
            if port is None:
                raise _ended("did not start", said)
            gateway = JavaGateway(
                gateway_parameters=GatewayParameters(
                    port=port, auth_token=token, read_timeout=_JVM_PATIENCE_S
                )
            )
            try:
                yield _Jvm(process, gateway, said)
            finally:
                gateway.close()
        finally:
            _end(process)


def _handshake(process: subprocess.Popen[bytes], token: str) -> int | None:
    """Give the JVM the token that callers must know; return the port that it listens on."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    with suppress(BrokenPipeError):
        process.stdin.write(f"{token}\n".encode())
        process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], _START_PATIENCE_S)
    port = process.stdout.readline().strip() if ready else b""
    return int(port) if port.isdigit() else None


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(BrokenPipeError), process.stdin or nullcontext():
        pass
    try:
        process.wait(_END_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with process.stdout or nullcontext():
        pass


def _ended(how: str, said: IO[bytes]) -> AdminClientError:
    # Read without moving the place at which the JVM would go on writing.
    size = os.fstat(said.fileno()).st_size
    last = os.pread(said.fileno(), _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
    lines = last.decode(errors="replace").splitlines()
    # RocketMQ's logging tells first that nobody wants it.
    words = " ".join(" ".join(line for line in lines if not line.startswith("SLF4J: ")).split())
    return AdminClientError(f"The JVM of RocketMQ's admin client {how}: {words or 'it said nothing'}")


def _header(question: Question) -> bytes:
    """Return the fields of a request's header: names and values, each after its length in bytes."""
    _, names = _REQUESTS[question.kind]
    fields = {name: getattr(question, own) for name, own in names.items()}
    fields |= _CONSTANT_FIELDS.get(question.kind, {})
    encoded = b""
    for name, value in fields.items():
        for text in (name, value):
            utf8 = text.encode(errors="replace")
            encoded += struct.pack(">i", len(utf8)) + utf8
    return encoded


def _decoded(record: bytes) -> Answer:
    """Read what `AdminGateway.ask` returns."""
    is_payload, is_response, code = struct.unpack_from(">??i", record)
    place = struct.calcsize(">??i")

    def text() -> str:
        nonlocal place
        (length,) = struct.unpack_from(">i", record, place)
        place += 4 + length
        return record[place - length : place].decode()

    error_type, error_message = text(), text()
    return Answer(
        payload=record[place:] if is_payload else None,
        error_type=error_type,
        error_message=error_message,
        response_code=code if is_response else None,
    )
