"""The Java program in `java`, compiled against each release, and the command that starts its JVM.

Belongs here: class paths, compiling, JVM options. Does not belong here: the commands that the processes execute.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from setup import java
from setup.maven_jars import Pins, shipped_by_pyspark
from setup.steps import LOCAL, content_key, run_logged

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSIONS: Final = ("4.9.7", "5.3.3", "5.5.0")
"""Releases whose servers can be started."""

OLD_CLIENT: Final = "4.7.1"
"""The last release with the first algorithm of MACHINE_ROOM; most tests start only its clients."""

GRPC_CLIENT: Final = "grpc-client"
"""The set of jars of the gRPC client library, which has its own releases."""

PINS: Final = Pins(Path(__file__).with_name("jars.txt"))
"""The jars of each release."""

_SOURCES: Final = Path(__file__).with_name("java")
_GRPC_SOURCES: Final = Path(__file__).with_name("grpc")
_AGENT_SOURCE: Final = _SOURCES / "ledger" / "cluster" / "LoopbackAgent.java"
_COMPILED: Final = LOCAL / "real-cluster"
_ASM: Final = "--add-exports=java.base/jdk.internal.org.objectweb.asm=ALL-UNNAMED"
_AGENT: Final = "Premain-Class: ledger.cluster.LoopbackAgent\n"
_SERVERS: Final = ("rocketmq-broker-", "rocketmq-namesrv-")
_LOGBACK: Final = """<configuration>
  <appender name="errors" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{HH:mm:ss.SSS} %level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="errors"/></root>
</configuration>
"""
# Small and quick to start. RocketMQ accesses the internals of Java 17 that are opened here.
_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    "-Xss512k",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dfile.encoding=UTF-8",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    _ASM,
)


class JavaProgram:
    """The class paths and commands for JVMs of one release.

    Args:
        version: A release whose jars are pinned, or `GRPC_CLIENT`.

    Raises:
        SetUpError: There is no JDK, or the jars cannot be fetched.
    """

    def __init__(self, version: str) -> None:
        home = self._home = java.find_jdk("Running a real cluster")
        PINS.ensure(home, version)
        self.version = version
        self._java = home / "bin" / "java"
        compiled = _compiled(version, home)
        self._agent = compiled / "loopback.jar"
        libraries = [compiled, *_libraries(version)]
        self._of_servers = os.pathsep.join(map(str, libraries))
        # A server's jar contains a log configuration that overrides that of the tools and prints hundreds of lines.
        self._of_others = os.pathsep.join(
            str(path) for path in libraries if not path.name.startswith(_SERVERS)
        )

    def server(self, main: str, *arguments: str, heap_mib: int, folder: Path) -> list[str]:
        """Return the command line of a broker or a name server; see `other`."""
        return self._words(self._of_servers, main, *arguments, heap_mib=heap_mib, folder=folder)

    def proxy(self, *arguments: str, heap_mib: int, folder: Path) -> list[str]:
        """Return the command line of a proxy of this release, alone or with a broker in the same JVM; see `other`."""
        group = f"{self.version}-proxy"
        PINS.ensure(self._home, group)
        class_path = os.pathsep.join(map(str, PINS.class_path(group)))
        main = "org.apache.rocketmq.proxy.ProxyStartup"
        # With TLS its remoting server needs native code that is not pinned.
        return self._words(
            class_path, main, *arguments, heap_mib=heap_mib, folder=folder, tls_server_mode="disabled"
        )

    def other(self, main: str, *arguments: str, heap_mib: int, folder: Path, **properties: str) -> list[str]:
        """Return the command line of a JVM that is not a server.

        Args:
            main: Its main class.
            arguments: Its arguments.
            heap_mib: The maximum size of its heap, and of its direct buffers.
            folder: Its home: RocketMQ writes logs and offsets below the user's home.
            properties: Java system properties, with `_` for `.`.
        """
        return self._words(self._of_others, main, *arguments, heap_mib=heap_mib, folder=folder, **properties)

    def _words(
        self, class_path: str, main: str, *arguments: str, heap_mib: int, folder: Path, **properties: str
    ) -> list[str]:
        if self.version.startswith("4."):
            # Servers and tools of these releases do not start without a log configuration in RocketMQ's home.
            (folder / "conf").mkdir(parents=True, exist_ok=True)
            for program in ("namesrv", "broker", "tools"):
                (folder / "conf" / f"logback_{program}.xml").write_text(_LOGBACK, encoding="utf-8")
        named = {name.replace("_", "."): value for name, value in properties.items()}
        named |= {"user.home": str(folder), "rocketmq.home.dir": str(folder)}
        return [
            str(self._java),
            *_OPTIONS,
            f"-Xmx{heap_mib}m",
            f"-XX:MaxDirectMemorySize={heap_mib}m",
            f"-javaagent:{self._agent}",
            *(f"-D{name}={value}" for name, value in named.items()),
            "-classpath",
            class_path,
            main,
            *arguments,
        ]


def _libraries(version: str) -> list[Path]:
    """Return the jars, with our JSON reader first, because 5.x contains an older one."""
    jackson = [
        shipped_by_pyspark(f"jackson-{part}-[0-9]*.jar") for part in ("core", "databind", "annotations")
    ]
    return [*jackson, *PINS.class_path(version)]


def _compiled(version: str, home: Path) -> Path:
    """Return the folder of the compiled program and its agent, compiled again if the program or a jar has changed.

    Concurrent processes wait for the first, and use its result.
    """
    if version == GRPC_CLIENT:
        sources = [*sorted(_GRPC_SOURCES.rglob("*.java")), _AGENT_SOURCE]
    else:
        sources = sorted(_SOURCES.rglob("*.java"))
    key = content_key(_AGENT, *sources, *(jar.sha256 for jar in PINS.jars(version)))
    made = _COMPILED / version / key[:12]
    _COMPILED.mkdir(parents=True, exist_ok=True)
    with (_COMPILED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            shutil.rmtree(made.parent, ignore_errors=True)
            made.parent.mkdir(parents=True)
            _compile(version, home, sources, made)
    return made


def _compile(version: str, home: Path, sources: Sequence[Path], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=_COMPILED) as scratch:
        adapted = []
        for source in sources:
            text = source.read_text(encoding="utf-8")
            if version.startswith("4."):
                # 5.1.0 moved the classes of the protocol between client and broker into another package.
                text = text.replace("rocketmq.remoting.protocol.", "rocketmq.common.protocol.")
            adapted.append(Path(scratch) / source.name)
            adapted[-1].write_text(text, encoding="utf-8")
        classes = Path(scratch) / "classes"
        run_logged(
            [
                home / "bin" / "javac",
                "-nowarn", "-proc:none", "-encoding", "UTF-8", "-XDignore.symbol.file", _ASM,
                "-classpath", os.pathsep.join(map(str, _libraries(version))),
                "-d", classes,
                *adapted,
            ],
            log="real-cluster",
            on_failure=f"The program in tests/real_cluster does not fit RocketMQ {version}.",
        )  # fmt: skip
        with zipfile.ZipFile(classes / "loopback.jar", "w") as agent:
            agent.writestr("META-INF/MANIFEST.MF", _AGENT)
            for compiled in classes.glob("ledger/cluster/LoopbackAgent*.class"):
                agent.write(compiled, compiled.relative_to(classes))
        classes.replace(target)
