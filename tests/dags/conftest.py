"""Airflow for tests: a separate home, and stubs for the programs that the DAG starts."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.airflow_home import airflow_home
from tests.support.answering_process import AnsweringProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent.parent
DAGS = ROOT / "dags"

# Python comes from the PATH, because a shebang with a path cannot contain spaces. The stub records the call as one JSON list
# per line, and exits as configured for the step and cluster. It writes the reason of a failure, or the facts, to the result file.
_STAND_IN = """#!/usr/bin/env python
import json, os, sys
with open(os.environ["ENVIRONMENTS"], "a") as environments, open("/proc/self/environ") as own:
    environments.write(json.dumps([{name!r}, own.read()]) + "\\n")
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps([{name!r}, *sys.argv[1:]]) + "\\n")
if {name!r} == "ledger":
    with open(os.environ["RECEIVED"], "a") as received:
        connections = [name for name in os.environ if name.startswith(("AIRFLOW_CONN_", "AWS_ENDPOINT_URL", "AWS_REGION"))]
        received.write(json.dumps([sys.stdin.read(), connections]) + "\\n")
step = sys.argv[2] if {name!r} == "ledger" else "build"
cluster = next((word for word in sys.argv if word.startswith("--cluster=")), "").removeprefix("--cluster=")
with open(os.environ["ENDINGS"]) as endings:
    code, result = json.load(endings).get(f"{{step}} {{cluster}}", [0, {{}}])
print("working")
if isinstance(result, str):
    print(result, file=sys.stderr)
    result = {{"reason": result, "is_refusal": code == 2}}
if step == "publish":
    result = {{"run_id": "r", "verdict": "passed", "changed_tables": ["gold.finding"], "row_count": 1}} | result
if result:
    with open(os.environ["LEDGER_RESULT_FILE"], "w") as file:
        json.dump(result, file)
sys.exit(code)
"""


class StandIns:
    """Stubs for the programs `ledger` and `spark-submit`, which record how they were called."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        self._calls.touch()
        self._environments = folder / "environments"
        self._environments.touch()
        self._received = folder / "received"
        self._received.touch()
        self._endings = folder / "endings"
        self.end({})
        programs = folder / "bin"
        programs.mkdir()
        for name in ("ledger", "spark-submit"):
            program = programs / name
            program.write_text(_STAND_IN.format(name=name))
            program.chmod(0o755)
        settings = folder / "ledger.yaml"
        if not settings.exists():  # Keep a file that the test has written.
            settings.write_text("clusters: {}\n")
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(self._calls),
            "RECEIVED": str(self._received),
            "ENVIRONMENTS": str(self._environments),
            "ENDINGS": str(self._endings),
            "LEDGER_EXPORTS": str(folder / "exports"),
            "LEDGER_WAREHOUSE": str(folder / "warehouse"),
            "LEDGER_SETTINGS": str(folder / "ledger.yaml"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        }

    def end(self, endings: Mapping[str, tuple[int, str | dict[str, Any]]]) -> None:
        """Make `"<step> <cluster>"` exit with this code, and this reason or these facts, from now on."""
        self._endings.write_text(json.dumps(endings))

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    @property
    def environments(self) -> list[tuple[str, str]]:
        """The program of each call, and its complete environment as the kernel reports it."""
        return [tuple(json.loads(line)) for line in self._environments.read_text().splitlines()]

    @property
    def received(self) -> list[tuple[str, list[str]]]:
        """For each call of `ledger`: its standard input, and the variables of Airflow connections and of the object store."""
        return [tuple(json.loads(line)) for line in self._received.read_text().splitlines()]


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIns:
    stand_ins = StandIns(tmp_path)
    for name, value in stand_ins.environment.items():
        monkeypatch.setenv(name, value)
    return stand_ins


@pytest.fixture(scope="session")
def airflow_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of an Airflow with a home and database that no other test run uses."""
    return airflow_home(tmp_path_factory.mktemp("airflow"))


class Runner(AnsweringProcess):
    """A process with an Airflow that runs DAGs sequentially."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        program = Path(__file__).with_name("run_day.py")
        super().__init__(program, DAGS, environment=environment, output=folder / "output.log")

    def run(
        self, dag_id: str, ds: str, conf: Mapping[str, Any], environment: Mapping[str, str]
    ) -> dict[str, Any]:
        """Run a DAG for a day with additional variables, and return the outcome."""
        outcome: dict[str, Any] = self.ask([environment, dag_id, ds, conf])
        return outcome


@pytest.fixture(scope="session")
def runner(airflow_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Yield the process that runs the days of tests; each test passes the variables of its own stubs."""
    with closing(Runner(airflow_environment, tmp_path_factory.mktemp("runner"))) as started:
        yield started


@pytest.fixture
def run_day(runner: Runner, stand_ins: StandIns) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a DAG for a day and returns the outcome."""

    def run(ds: str, dag_id: str = "cluster_ledger", /, **conf: Any) -> dict[str, Any]:
        return runner.run(dag_id, ds, conf, stand_ins.environment)

    return run
