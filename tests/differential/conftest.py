"""Fixtures for comparisons with RocketMQ's own classes: one JVM per release."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.rocketmq_java.gateway import RocketMQ


@pytest.fixture(scope="session")
def releases() -> Iterator[list[RocketMQ]]:
    """Yield the Java classes of every release."""
    from setup.steps import SetUpError
    from tools.rocketmq_java.gateway import VERSIONS, running

    with ExitStack() as stack:
        try:
            started = [stack.enter_context(running(version)) for version in VERSIONS]
        except SetUpError as error:
            pytest.fail(str(error), pytrace=False)
        yield started


@pytest.fixture(scope="session")
def seed() -> int:
    """Return the seed of all cases. `LEDGER_SEED` overrides it."""
    return int(os.environ.get("LEDGER_SEED", "20261121"))


@pytest.fixture(scope="session")
def case_count() -> int:
    """Return the number of cases to draw per family. `LEDGER_CASES` overrides it."""
    return int(os.environ.get("LEDGER_CASES", "5000"))
