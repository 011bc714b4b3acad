"""What Spark needs to read and write an object store (`s3a://`), in `.local/object-store`: Hadoop's file system and Amazon's SDK.

Not a part of `make setup`: who keeps exports and tables on disks needs none of it. The image has it.

Belongs here: one folder of jars that is complete. Does not belong here: how the store is reached (`conf/spark`,
`spark_jobs.session`).
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from typing import TYPE_CHECKING

from setup import java, spark_conf
from setup.maven_jars import Pins
from setup.steps import LOCAL, ROOT, SetUpError, Step, content_key, perform

if TYPE_CHECKING:
    from pathlib import Path

_PINS = ROOT / "setup" / "object_store_jars.txt"
_EXIT_BAD_SURROUNDINGS = 2


def step(java_home: Path) -> Step:
    """Return the step; it is repeated when a pin changes."""

    def run() -> None:
        pins = Pins(_PINS)
        pins.ensure(java_home)
        folder = spark_conf.OBJECT_STORE_JARS
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for pin in pins.jars():
            shutil.copyfile(pin.path, folder / pin.file_name)

    return Step(
        "object-store", "the object store's jars, checked by SHA-256", content_key(_PINS, str(ROOT)), run
    )


def main() -> int:
    """Do it, if it is not done yet, and let Spark's configuration name the jars.

    Returns:
        0, or 2 after printing why it cannot be done and what to do.
    """
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "object-store.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            perform(step(java.ensure()))
        except SetUpError as error:
            sys.stderr.write(f"The object store's jars cannot be had. {error}\n")
            return _EXIT_BAD_SURROUNDINGS
        spark_conf.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
