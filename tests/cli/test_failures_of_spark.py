"""A Spark that does not start, is not configured for Delta, or is killed: the command ends with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.computed_days import ROOT
from tests.support.export_builder import ExportBuilder

if TYPE_CHECKING:
    from pathlib import Path

_LEDGER = "from rebalance_ledger.cli.console import main; main()"

# It must not be used: the process that is killed would not start.
_OF_ANOTHER_SPARK = {
    "JAVA_HOME": "/nonexistent/java",
    "SPARK_HOME": "/nonexistent/spark",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
}

# The build kills the process when the session has started, at the first call that uses it.
_KILLED = """
import os, signal
from pyspark import SparkContext
from spark_jobs import side_by_side
build_days = side_by_side.build
def killed(*words, **named):
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    return build_days(*words, **named)
side_by_side.build = killed
from rebalance_ledger.cli.console import main
main()
"""


# Java cannot start in a container with such a user id; here, its configuration prevents it.
_NAMELESS = f"import os; os.getuid = lambda: 4_000_000_000; {_LEDGER}"


def run(program: str, exports: Path, **environment: str) -> tuple[int, str]:
    words = ("--cluster", "shop", "--ds", "2026-11-16", "--exports", str(exports))
    ended = subprocess.run(
        [sys.executable, "-c", program, "run", *words, "--warehouse", str(exports / "warehouse")],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return ended.returncode, ended.stderr


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    export = ExportBuilder("shop")
    export.route("orders", {"a": 2})
    export.group("g", ["orders"], ["c1"], "a")
    export.seal(tmp_path)
    return tmp_path


def configuration(folder: Path, line: str) -> str:
    """Return a folder with a Spark configuration of one line."""
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(f"{line}\n", encoding="utf-8")
    return str(folder)


def test_a_java_that_does_not_start(exports: Path, tmp_path: Path) -> None:
    conf = configuration(tmp_path / "conf", "spark.driver.defaultJavaOptions -Xms9999g")

    exit_code, errors = run(_LEDGER, exports, SPARK_CONF_DIR=conf)

    assert exit_code == 1
    assert errors.splitlines()[-1].startswith(
        "Spark's Java process did not start; its own message is in the log or above. Spark requires Java 17 or 21, and JAVA_HOME is "
    )
    assert "Traceback" not in errors


def test_a_user_id_without_a_name(exports: Path, tmp_path: Path) -> None:
    conf = configuration(tmp_path / "conf", "spark.driver.defaultJavaOptions -Xms9999g")

    exit_code, errors = run(_NAMELESS, exports, SPARK_CONF_DIR=conf)

    assert exit_code == 1
    assert errors.splitlines()[-1] == (
        "Spark's Java process did not start; its own message is in the log or above. Spark requires a user with a name, and the system has "
        "none for the user id 4000000000: add one to /etc/passwd, or run as another user."
    )


@pytest.mark.parametrize(
    ("most_files", "sentence"),
    [
        (
            200,
            "Spark opens up to 400 files at its start, and this process may open 200: increase `ulimit -n`.",
        ),
        (
            320,
            "A process of Spark may not open enough files (Too many open files): increase `ulimit -n` to 1024 or more",
        ),
    ],
)
@pytest.mark.spark
def test_too_few_files(exports: Path, most_files: int, sentence: str) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most_files},) * 2); {_LEDGER}"

    exit_code, errors = run(limited, exports)

    assert exit_code == 1
    assert sentence in errors.splitlines()[-1]


@pytest.mark.spark
def test_a_configuration_without_delta(exports: Path, tmp_path: Path) -> None:
    conf = configuration(tmp_path / "conf", "spark.ui.enabled false")

    exit_code, errors = run(_LEDGER, exports, SPARK_CONF_DIR=conf)

    assert exit_code == 2
    assert errors.splitlines()[-1] == (
        f"The Spark configuration at {conf} (SPARK_CONF_DIR) does not load Delta: unset the variable to use the configuration of `make "
        "setup`, or name a folder that is made from conf/spark."
    )
    assert not (exports / "warehouse" / "silver").exists()


@pytest.mark.spark
def test_a_driver_with_too_little_memory(exports: Path, tmp_path: Path) -> None:
    conf = configuration(tmp_path / "conf", "spark.driver.memory 300m")

    exit_code, errors = run(_LEDGER, exports, SPARK_CONF_DIR=conf)

    assert exit_code == 1
    assert errors.splitlines()[-1] == (
        "The driver has less memory than Spark requires: increase spark.driver.memory to 512m or more, then run the same command again. "
        "Nothing of this day was published."
    )
    assert "Traceback" not in errors


@pytest.mark.spark
def test_a_java_that_is_killed(exports: Path) -> None:
    exit_code, errors = run(_KILLED, exports, **_OF_ANOTHER_SPARK)

    assert exit_code == 1
    assert errors.splitlines()[-1] == (
        "Spark's Java process was killed (SIGKILL), as by a system that is short of memory, during the work; its own messages are in the "
        "log or above: run the same command again. Nothing of this day was published."
    )
    assert "Traceback" not in errors
