"""RocketMQ's admin client in a separate JVM, controlled through py4j on the loopback interface.

Belongs here: starting and stopping the JVM, passing secrets to it outside its command line, the RocketMQ request of each question, and
the bytes of the response. Does not belong here: the plan, rate and retries of calls (`live`), and the content of responses
(`answered_names`).

The JVM runs `java/ledger/AdminGateway.java`. Janino, a dependency of Spark, compiles it when the JVM starts, because the
Java runtime that the set-up installs has no compiler.
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

_START_TIMEOUT_S: Final = 120
_STOP_TIMEOUT_S: Final = 5
# Longer than the timeout of any call: a JVM that does not answer within it has stopped working.
_JVM_TIMEOUT_S: Final = 120
_STDERR_TAIL_BYTES: Final = 2000

_OPTIONS: Final = (
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    # The default limit is 16 MiB; a line of an export may be as long as this.
    "-Dcom.rocketmq.remoting.frameMaxLength=268435456",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)


_REQUEST_FIELDS: Final = ("nameserver", "broker", "broker_addr", "proxy", "group", "topic", "client_id")

# Values of RocketMQ's RequestCode, and the request header's field names. Brokers of every release return complete answers
# to these; since 5.4 the admin client's own methods for topic configs and subscription groups fetch pages.
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
# The ledger does not read thread dumps.
_CONSTANT_FIELDS: Final = {"consumer_running_info": {"jstackEnable": "false"}}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials for a cluster with access control; never passed in an argument list, a file or a log.

    Attributes:
        access_key: Name of the account.
        secret_key: Key that signs requests; it is not sent.
        tls_key_password: Password of the client's TLS key, if the key is encrypted.
    """

    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    tls_key_password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call: the server and the parameters of the request.

    Attributes:
        kind: Name of a kind of the contract.
        nameserver: Address of the name server; empty for other servers.
        broker: Name of the broker.
        broker_addr: Address of the broker.
        proxy: Address of the proxy; empty for other servers.
        group: Consumer group.
        topic: Topic.
        client_id: Client id; the broker forwards the request to that client.
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
        """Address of the server to call."""
        return self.nameserver or self.proxy or self.broker_addr

    @property
    def fields(self) -> dict[str, str | int]:
        """Fields of the export's line that identify the request."""
        return {name: getattr(self, name) for name in _REQUEST_FIELDS if getattr(self, name)}


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one call.

    Attributes:
        payload: Body of the response, byte for byte; None if there was no response or it was an error.
        error_type: Java class of the exception.
        error_message: Message of the exception.
        response_code: RocketMQ's response code; None if there was no response.
    """

    payload: bytes | None = None
    error_type: str = ""
    error_message: str = ""
    response_code: int | None = None


class AdminClient:
    """RocketMQ's admin clients, one per name server, in a running JVM; thread-safe.

    `admin_client` starts and stops the JVM.
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
            question: The server and the request.
            timeout_ms: Timeout of the response.

        Raises:
            AdminClientError: The JVM has stopped.
        """
        try:
            record: bytes = self._ask(
                _REQUESTS[question.kind][0],
                question.nameserver or self._nameservers[0],
                question.proxy or question.broker_addr or None,
                _encode_header(question),
                timeout_ms,
            )
        except Py4JError:
            raise self._jvm.ended("ended while it was asked") from None
        return _decode_answer(record)

    def prepare(self, credentials: Credentials, tls: CollectTls | None) -> None:
        """Pass the secrets to the JVM and start an admin client for each name server, without calling any server.

        Raises:
            AdminClientError: The JVM has stopped.
            UnusableConnectionError: The admin client refuses the credentials, certificates or addresses.
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
            message = error.java_exception.toString().partition("\n")[0].rstrip(".")
            raise UnusableConnectionError(
                f"RocketMQ's admin client refuses the connection's settings: {message}."
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
    """Start a JVM with an admin client for each name server, and stop it at the end of the block.

    The JVM runs only while its standard input is open, so it also stops when this process dies.

    Args:
        jars: Folder with the jars of RocketMQ, py4j and Janino; see `setup/collector.py`.
        java: Path of the `java` executable.
        nameservers: Addresses, `host:port`.
        credentials: Credentials for a cluster with access control.
        tls: TLS settings; None for plain connections.
        connect_timeout_ms: Timeout of opening a connection.

    Yields:
        The client.

    Raises:
        AdminClientError: The JVM does not start.
        UnusableConnectionError: The admin client refuses the credentials, certificates or addresses.
    """
    # py4j logs every argument at level DEBUG, and at other levels only errors that it also raises.
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
    with _running_jvm(command) as jvm:
        client = AdminClient(jvm, nameservers)
        client.prepare(credentials or Credentials(), tls)
        yield client


@dataclass(frozen=True, slots=True)
class _Jvm:
    """A JVM process and its py4j gateway."""

    process: subprocess.Popen[bytes]
    gateway: JavaGateway
    stderr: IO[bytes]

    def ended(self, how: str) -> AdminClientError:
        return _ended(how, self.stderr)


@contextmanager
def _running_jvm(command: list[str]) -> Iterator[_Jvm]:
    token = secrets.token_hex(32)
    with tempfile.TemporaryFile() as stderr:
        try:
            process = subprocess.Popen(  # noqa: S603  # an argument list, never a shell
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=os.sep,
                # This process's environment may hold credentials, and RocketMQ reads settings from it.
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
                # Ctrl-C must reach only this process; the JVM stops when its standard input is closed.
                start_new_session=True,
            )
        except OSError as error:
            raise AdminClientError(
                f"{command[0]} cannot be run ({error.strerror}); set JAVA_HOME to a Java 17 or 21."
            ) from error
        try:
            port = _handshake(process, token)
            if port is None:
                raise _ended("did not start", stderr)
            gateway = JavaGateway(
                gateway_parameters=GatewayParameters(port=port, auth_token=token, read_timeout=_JVM_TIMEOUT_S)
            )
            try:
                yield _Jvm(process, gateway, stderr)
            finally:
                gateway.close()
        finally:
            _end(process)


def _handshake(process: subprocess.Popen[bytes], token: str) -> int | None:
    """Send the authentication token to the JVM; return its port, or None if it did not start."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    with suppress(BrokenPipeError):
        process.stdin.write(f"{token}\n".encode())
        process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], _START_TIMEOUT_S)
    port = process.stdout.readline().strip() if ready else b""
    return int(port) if port.isdigit() else None


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(BrokenPipeError), process.stdin or nullcontext():
        pass
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with process.stdout or nullcontext():
        pass


def _ended(how: str, stderr: IO[bytes]) -> AdminClientError:
    # The JVM shares the file offset, so a seek here would move its write position.
    size = os.fstat(stderr.fileno()).st_size
    tail = os.pread(stderr.fileno(), _STDERR_TAIL_BYTES, max(0, size - _STDERR_TAIL_BYTES))
    lines = tail.decode(errors="replace").splitlines()
    # SLF4J first reports that no logging backend is configured.
    text = " ".join(" ".join(line for line in lines if not line.startswith("SLF4J: ")).split())
    return AdminClientError(f"The JVM of RocketMQ's admin client {how}: {text or 'no output'}")


def _encode_header(question: Question) -> bytes:
    """Return the fields of a request's header: names and values, each after its length in bytes."""
    _, names = _REQUESTS[question.kind]
    fields = {name: getattr(question, attribute) for name, attribute in names.items()}
    fields |= _CONSTANT_FIELDS.get(question.kind, {})
    encoded = b""
    for name, value in fields.items():
        for text in (name, value):
            utf8 = text.encode(errors="replace")
            encoded += struct.pack(">i", len(utf8)) + utf8
    return encoded


def _decode_answer(record: bytes) -> Answer:
    """Decode the record that `AdminGateway.ask` returns."""
    is_payload, is_response, code = struct.unpack_from(">??i", record)
    position = struct.calcsize(">??i")

    def text() -> str:
        nonlocal position
        (length,) = struct.unpack_from(">i", record, position)
        position += 4 + length
        return record[position - length : position].decode()

    error_type, error_message = text(), text()
    return Answer(
        payload=record[position:] if is_payload else None,
        error_type=error_type,
        error_message=error_message,
        response_code=code if is_response else None,
    )
