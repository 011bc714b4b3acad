"""A JVM per RocketMQ release, on loopback, that answers cases with that release's classes.

Belongs here: compiling the program in `java`, starting and stopping the JVM, carrying cases over as JSON.
Does not belong here: what a case means (see tests/golden/README.md).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from setup import java
from setup.steps import LOCAL, SetUpError, content_key, run_logged
from tools.rocketmq_java import jars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SOURCES: Final = Path(__file__).with_name("java")
# Enough to make the way over and back cheap, little enough for a small heap.
_CASES_AT_ONCE: Final = 250
_PATIENCE_S: Final = 20

_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Drocketmq.client.logLevel=OFF",
    # The Netty of 4.7.1 reaches into both of them, and Java 17 keeps them closed.
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
        self._driver = gateway.jvm.ledger.Driver

    def answer(self, family: str, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """What the classes answer.

        Args:
            family: A golden family, such as `allocate`.
            cases: Its cases; an `expect` in them is not looked at.

        Returns:
            The result fields of each case, `None` where this release has nothing that could be asked.
        """
        asked = [{name: value for name, value in case.items() if name != "expect"} for case in cases]
        answers: list[dict[str, Any] | None] = []
        for first in range(0, len(asked), _CASES_AT_ONCE):
            text = json.dumps(asked[first : first + _CASES_AT_ONCE])
            answers.extend(json.loads(self._driver.answer(family, text)))
        return answers


@contextmanager
def running(version: str, charset: str = "UTF-8") -> Iterator[RocketMQ]:
    """Start a JVM with the classes of one release, and end it afterwards.

    Args:
        version: One of `jars.VERSIONS`.
        charset: The platform's charset, in which releases before 5.0.0 hash.

    Raises:
        SetUpError: There is no JDK, the jars cannot be fetched, or the JVM does not start.
    """
    home = _jdk()
    jars.ensure(home)
    class_path = [_compiled(version, home), *_libraries(version)]
    log = LOCAL / "logs" / f"rocketmq-java-{version}.log"
    with log.open("w", encoding="utf-8") as output, tempfile.TemporaryDirectory() as scratch:
        try:
            port, token, process = launch_gateway(
                jarpath=str(jars.shipped_by_pyspark("py4j-*.jar")),
                classpath=os.pathsep.join(map(str, class_path)),
                # RocketMQ writes its logs below the home folder, whatever their level.
                javaopts=[*_OPTIONS, f"-Dfile.encoding={charset}", f"-Duser.home={scratch}"],
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
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            yield RocketMQ(version, gateway)
        finally:
            gateway.close()
            # The JVM ends when its input does.
            process.stdin.close()
            process.wait(timeout=_PATIENCE_S)


def _jdk() -> Path:
    home = java.find()
    if home is None or not (home / "bin" / "javac").is_file():
        raise SetUpError(
            f"Comparing with RocketMQ's classes compiles a small class, and {home or 'this machine'} has no javac: "
            "install a JDK (Debian's name for it is openjdk-17-jdk-headless), or set JAVA_HOME to one."
        )
    return home


def _libraries(version: str) -> list[Path]:
    """Our JSON reader comes first, because 5.x brings an older one."""
    jackson = [
        jars.shipped_by_pyspark(f"jackson-{part}-[0-9]*.jar") for part in ("core", "databind", "annotations")
    ]
    return [*jackson, *(jar.path for jar in jars.pinned() if jar.version == version)]


def _compiled(version: str, home: Path) -> Path:
    """The folder of the compiled program; it is compiled again when the program or a jar has changed."""
    before_5 = version.startswith("4.")
    folders = [_SOURCES / "every_release", _SOURCES / ("before_5" if before_5 else "since_5")]
    sources = sorted(source for folder in folders for source in folder.rglob("*.java"))
    pins = [jar.sha256 for jar in jars.pinned() if jar.version == version]
    classes = jars.FOLDER / version / f"classes-{content_key(*sources, *pins)[:12]}"
    if classes.is_dir():
        return classes
    for outdated in classes.parent.glob("classes-*"):
        shutil.rmtree(outdated)
    with tempfile.TemporaryDirectory(dir=jars.FOLDER) as scratch:
        adapted = []
        for source in sources:
            text = source.read_text(encoding="utf-8")
            if before_5:
                # 5.1.0 moved what travels between client and broker into another package.
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
