"""What the live collector's JVM runs with, in `.local/collector`: RocketMQ's admin client, py4j and Janino.

Not a part of `make setup`: who brings exports from elsewhere needs none of it. `ledger exports collect` runs it by itself
the first time, and `make collector` ahead of that; afterwards no network is needed.

Belongs here: one folder of jars that is complete. Does not belong here: what is done with them (`rebalance_ledger/collectors`).
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from typing import TYPE_CHECKING

from setup import java
from setup.maven_jars import Pins, shipped_by_pyspark
from setup.steps import LOCAL, ROOT, SetUpError, Step, content_key, perform

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = LOCAL / "collector"
_PINS = ROOT / "rebalance_ledger" / "collectors" / "jars.txt"
_SHIPPED = ("py4j-*.jar", "janino-*.jar", "commons-compiler-*.jar")
_EXIT_BAD_SURROUNDINGS = 2


def step(java_home: Path) -> Step:
    """Return the step; it is repeated when a pin changes."""

    def run() -> None:
        pins = Pins(_PINS)
        pins.ensure(java_home)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        for jar in [*(pin.path for pin in pins.jars()), *map(shipped_by_pyspark, _SHIPPED)]:
            shutil.copyfile(jar, FOLDER / jar.name)

    key = content_key(_PINS, repr(_SHIPPED), str(ROOT))
    return Step("collector", "the live collector's jars, checked by SHA-256", key, run)


def main() -> int:
    """Do it, if it is not done yet.

    Returns:
        0, or 2 after printing why it cannot be done and what to do.
    """
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "collector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            perform(step(java.ensure()))
        except SetUpError as error:
            sys.stderr.write(f"The live collector cannot be set up. {error}\n")
            return _EXIT_BAD_SURROUNDINGS
    return 0


if __name__ == "__main__":
    sys.exit(main())
