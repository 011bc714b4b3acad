"""One JVM per RocketMQ release, on the loopback interface, that computes cases with that release's classes.

Belongs here: compiling the program in `java`, starting and stopping the JVM, transferring cases as JSON.
Does not belong here: the meaning of a case (see tests/golden/README.md).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from setup import java
from setup.maven_jars import Pins, shipped_by_pyspark
from setup.steps import LOCAL, SetUpError, content_key, run_logged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from py4j.java_gateway import JavaObject

VERSIONS: Final = ("4.7.1", "4.9.3", "4.9.7", "5.3.3", "5.5.0")

# Only the jars that the program in `java` loads: a broker with all dependencies would need 120 more.
_PINS: Final = Pins(Path(__file__).with_name("jars.txt"))
_SOURCES: Final = Path(__file__).with_name("java")
_COMPILED: Final = LOCAL / "rocketmq"
# Enough cases to make the round trip cheap, and few enough for a small heap.
_CASES_AT_ONCE: Final = 250
_FILES_AT_ONCE: Final = 2000
_PATIENCE_S: Final = 20

# For many short cases, an optimizing compiler would cost more than it gains.
_SHORT_CASES: Final = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# Timed calls get the optimizing compiler, and a heap that needs few garbage collections.
_TIMED: Final = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC")
_OPTIONS: Final = (
    "-Drocketmq.client.logLevel=OFF",
    # Netty in 4.7.1 accesses both packages, which Java 17 does not open by default.
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)


class RocketMQ:
    """The classes of one release.

    Attributes:
        version: The release.
    """

    def __init__(self, version: str, gateway: JavaGateway) -> None:
        self.version = version
        self._programs = gateway.jvm.ledger

    def answer(self, family: str, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the results of the classes.

        Args:
            family: A golden family, such as `allocate`.
            cases: Cases of the family. Their `expect` is ignored.

        Returns:
            The result fields of each case, or `None` if this release has no class for it.
        """
        asked = [{name: value for name, value in case.items() if name != "expect"} for case in cases]
        answers: list[dict[str, Any] | None] = []
        for first in range(0, len(asked), _CASES_AT_ONCE):
            text = json.dumps(asked[first : first + _CASES_AT_ONCE])
            answers.extend(json.loads(self._programs.Driver.answer(family, text)))
        return answers

    def parse_offset_files(self, contents: Sequence[bytes]) -> list[Any]:
        """Parse offset files with `OffsetSerializeWrapper`; return `parse_main` of the golden family `offsets_file`.

        Queues are in the order of Java's hash map. A table without offsets of queues is `"foreign"`.
        """
        parsed: list[Any] = []
        for first in range(0, len(contents), _FILES_AT_ONCE):
            files = contents[first : first + _FILES_AT_ONCE]
            framed = b"".join(len(file).to_bytes(4, "big") + file for file in files)
            parsed.extend(json.loads(self._programs.OffsetFiles.parse(bytearray(framed))))
        return parsed

    def write_offset_files(
        self, tables: Sequence[Sequence[list[Any]]]
    ) -> list[tuple[list[list[Any]], bytes]]:
        """Return the offset files that this release writes.

        Args:
            tables: Each a list of `[topic, broker name, queue id, offset]`.

        Returns:
            For each table, its entries in the order of the file, and the file.
        """
        written = json.loads(self._programs.OffsetFiles.write(json.dumps(tables)))
        return [(one["table"], base64.b64decode(one["file"])) for one in written]

    def timed_group(self, case: dict[str, Any]) -> TimedGroup:
        """Create a group whose calls are timed inside the JVM.

        Args:
            case: A case of the golden family `allocate`. The `params` of MACHINE_ROOM_NEARBY may contain `room_before`
                instead of the maps: the room is the text before it, in a broker name and in a client id.
        """
        return TimedGroup(self._programs.TimedGroup(json.dumps(case)))


class TimedGroup:
    """A group in the JVM with timed calls of its clients. The time includes only the calls."""

    def __init__(self, in_java: JavaObject) -> None:
        self._in_java = in_java

    def ask(self, start: int, stop: int) -> int:
        """Call each client of `asked[start:stop]` once, and return the total duration in nanoseconds."""
        took_ns: int = self._in_java.ask(start, stop)
        return took_ns

    def answers(self) -> list[list[int]]:
        """Return the answers to the last `ask`: for each client, positions in `mq_all`."""
        places: list[list[int]] = json.loads(self._in_java.answers())
        return places


@contextmanager
def running(version: str, charset: str = "UTF-8", *, timed: bool = False) -> Iterator[RocketMQ]:
    """Start a JVM with the classes of one release, and end it afterwards.

    Args:
        version: One of `VERSIONS`.
        charset: The platform's charset, which releases before 5.0.0 use for hashes.
        timed: Whether to optimize the JVM for speed after warm-up instead of for a small size.

    Raises:
        SetUpError: There is no JDK, the jars cannot be downloaded, or the JVM does not start.
    """
    home = java.find_jdk("Comparing with RocketMQ's classes")
    _PINS.ensure(home)
    class_path = [_compiled(version, home), *_libraries(version)]
    log = LOCAL / "logs" / f"rocketmq-java-{version}.log"
    with log.open("w", encoding="utf-8") as output, tempfile.TemporaryDirectory() as scratch:
        try:
            port, token, process = launch_gateway(
                jarpath=str(shipped_by_pyspark("py4j-*.jar")),
                classpath=os.pathsep.join(map(str, class_path)),
                # RocketMQ writes logs below the home folder, regardless of the log level.
                javaopts=[
                    *(_TIMED if timed else _SHORT_CASES),
                    *_OPTIONS,
                    f"-Dfile.encoding={charset}",
                    f"-Duser.home={scratch}",
                ],
                java_path=str(home / "bin" / "java"),
                redirect_stdout=output,
                redirect_stderr=output,
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
            )
        except ValueError:
            raise SetUpError(
                f"The JVM for RocketMQ {version} did not start; see {log.name} in .local/logs."
            ) from None
        # JVM objects live until the JVM ends. Without memory management, Python does not contact an ended JVM to release them.
        parameters = GatewayParameters(port=port, auth_token=token, enable_memory_management=False)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield RocketMQ(version, gateway)
        finally:
            gateway.close()
            # The JVM ends when its standard input is closed.
            process.stdin.close()
            process.wait(timeout=_PATIENCE_S)


def _libraries(version: str) -> list[Path]:
    """Return the libraries of a release. Jackson from PySpark is first, because 5.x contains an older one."""
    jackson = [
        shipped_by_pyspark(f"jackson-{part}-[0-9]*.jar") for part in ("core", "databind", "annotations")
    ]
    return [*jackson, *_PINS.class_path(version)]


def _compiled(version: str, home: Path) -> Path:
    """Return the folder of the compiled program, which is compiled again if the program or a jar has changed."""
    before_5 = version.startswith("4.")
    folders = [_SOURCES / "every_release", _SOURCES / ("before_5" if before_5 else "since_5")]
    sources = sorted(source for folder in folders for source in folder.rglob("*.java"))
    pins = [jar.sha256 for jar in _PINS.jars(version)]
    classes = _COMPILED / version / f"classes-{content_key(*sources, *pins)[:12]}"
    if classes.is_dir():
        return classes
    for outdated in classes.parent.glob("classes-*"):
        shutil.rmtree(outdated)
    classes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_COMPILED) as scratch:
        adapted = []
        for source in sources:
            text = source.read_text(encoding="utf-8")
            if before_5:
                # 5.1.0 moved the protocol classes of client and broker to another package.
                text = text.replace("rocketmq.remoting.protocol.", "rocketmq.common.protocol.")
            adapted.append(Path(scratch) / source.name)
            adapted[-1].write_text(text, encoding="utf-8")
        made = Path(scratch) / "classes"
        run_logged(
            [
                home / "bin" / "javac",
                "-nowarn", "-proc:none", "-encoding", "UTF-8", "-XDignore.symbol.file",
                "-classpath", os.pathsep.join(map(str, _libraries(version))),
                "-d", made,
                *adapted,
            ],
            log="rocketmq-java",
            on_failure=f"The program in tools/rocketmq_java/java does not fit RocketMQ {version}.",
        )  # fmt: skip
        made.replace(classes)
    return classes
