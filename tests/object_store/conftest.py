"""The object store, and the programs configured to use it.

It is a server on loopback, unless `LEDGER_TEST_STORE` names a location in another store, `s3a://bucket/prefix`, for which the `AWS_*` variables are set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from rebalance_ledger.storage.location import ObjectPath
from rebalance_ledger.storage.location import variables as variables_of_this_process
from setup import spark_conf
from setup.java import ensure as java_home
from setup.object_store import step as jars_step
from setup.steps import perform
from tests.object_store.server import object_store

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "exports"
_FAULTS = ROOT / "tests" / "support" / "fault_injection.py"


@dataclass(frozen=True)
class Store:
    """The configuration of an object store.

    Attributes:
        place: `s3a://…`, which is empty at first.
        variables: The variables by which every engine connects to it.
    """

    place: str
    variables: dict[str, str]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    perform(jars_step(java_home()))
    another = os.environ.get("LEDGER_TEST_STORE")
    if another is None:
        with object_store(tmp_path_factory.mktemp("store"), "lake") as variables:
            yield Store("s3a://lake", variables)
        return
    place = f"{another}/{uuid4()}"
    try:
        yield Store(place, variables_of_this_process())
    finally:
        ObjectPath.of(place).remove_all_below()


@pytest.fixture
def in_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """Configure this process for the store; return its location."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    return store.place


@pytest.fixture(scope="session")
def spark_conf_dir(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return Spark's settings with the jars of `store`."""
    folder = tmp_path_factory.mktemp("conf") / "spark"
    spark_conf.write(target=folder)
    return folder


class Ledger:
    """The program `ledger`, in separate processes."""

    def __init__(self, store: Store, spark_conf_dir: Path) -> None:
        self.place = store.place
        self.exports = f"{store.place}/exports"
        self.environment = {**os.environ, **store.variables, "SPARK_CONF_DIR": str(spark_conf_dir)}

    def __call__(self, *words: str, ends_with: int = 0, killed_at: str | None = None) -> str:
        """Run it, and return its output on both streams.

        Args:
            words: Its arguments.
            ends_with: Its exit code.
            killed_at: The function, as `module:name`, at whose tenth call it is killed.
        """
        program = (
            ["-m", "rebalance_ledger.cli.app"]
            if killed_at is None
            else [str(_FAULTS), json.dumps({"call": killed_at, "nth": 10})]
        )
        answer = subprocess.run(
            [sys.executable, *program, *words],
            cwd=ROOT,
            env=self.environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert answer.returncode == ends_with, answer.stdout
        return answer.stdout


@pytest.fixture(scope="session")
def ledger(store: Store, spark_conf_dir: Path) -> Ledger:
    return Ledger(store, spark_conf_dir)
