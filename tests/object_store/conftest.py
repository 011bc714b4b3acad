"""The store, what every program is told of it, and the days of one machine to compare with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from setup import spark_conf
from tests.object_store.server import object_store

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "exports"
BUCKET = "lake"
EXPORTS = f"s3a://{BUCKET}/exports"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with object_store(tmp_path_factory.mktemp("store"), BUCKET) as variables:
        yield variables


@pytest.fixture
def in_store(store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """This process, too, knows the store; gives the bucket."""
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    return BUCKET


@pytest.fixture(scope="session")
def spark_conf_dir(store: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark's settings with the store's jars, which `object_store` has brought."""
    folder = tmp_path_factory.mktemp("conf") / "spark"
    spark_conf.write(target=folder)
    return folder


class Ledger:
    """The program `ledger`, in processes of its own."""

    def __init__(self, variables: dict[str, str], spark_conf_dir: Path) -> None:
        self.environment = {**os.environ, **variables, "SPARK_CONF_DIR": str(spark_conf_dir)}

    def __call__(self, *words: str, ends_with: int = 0) -> str:
        """Run it; gives what it said on both streams."""
        answer = subprocess.run(
            [sys.executable, "-m", "ledger.cli", *words],
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
def ledger(store: dict[str, str], spark_conf_dir: Path) -> Ledger:
    return Ledger(store, spark_conf_dir)
