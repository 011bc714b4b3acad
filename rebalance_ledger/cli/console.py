"""The entry point of the scripts `ledger` and `rebalance-ledger`.

Belongs here: steps that must precede the import of the command line. Does not belong here: commands and options (`app`).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_WITHOUT_DATA_FRAMES: Final = frozenset(
    {
        *("ask", "explain", "fingerprint", "freshness", "maintain", "metrics", "report", "rollback"),
        *("sql", "summary", "tables", "verify", "--version", "--help"),
    }
)
"""Commands that read or write published tables and do not use data frames."""
_COLLECTOR_THRESHOLDS: Final = (50_000, 20, 20)
"""Python's garbage collector examines young objects after this many new ones, and older objects after 20 such collections.

With Python's own thresholds (700, 10, 10), the collector takes about a seventh of the time in which the gate's packages are imported,
and finds almost nothing, because modules stay in memory.
"""
_STEPS_WITHOUT_DATA_FRAMES: Final = frozenset({"publish", "report", "verify"})


class _Without:
    """An import hook that hides optional packages of a library.

    pyarrow imports pandas for its first scalar, which `pyarrow.dataset` creates when it is imported (pyarrow 26, `_PandasAPIShim`); this
    takes longer than most queries. Great Expectations imports PySpark and SQLAlchemy for data sources that the gate does not use (1.24,
    `great_expectations.compatibility`).

    Args:
        names: Names of the packages.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol of import hooks
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name in self._names:
            raise ModuleNotFoundError(f"{name} is not imported by this command", name=name)
        return None


def main() -> None:
    """Run the command line of this process."""
    _ignore_foreign_packages()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)
    command, step = (*sys.argv[1:3], "", "")[:2]
    if command in _WITHOUT_DATA_FRAMES or (command == "step" and step in _STEPS_WITHOUT_DATA_FRAMES):
        sys.meta_path.insert(0, _Without("pandas"))
    elif (command, step) == ("step", "gate"):
        sys.meta_path.insert(0, _Without("pyspark", "sqlalchemy"))
    from rebalance_ledger.cli.app import main as run  # noqa: PLC0415 - after the hook

    try:
        run()
    except SystemExit as ending:
        if command == "run" and isinstance(ending.code, int):
            end_process(ending.code)
        raise


def end_process(exit_code: int) -> NoReturn:
    """End the process after its exit handlers, without freeing its objects.

    After a day is built, Python searches them for cycles, which takes a second; `gc.freeze` would prevent it, but then DuckDB's bindings
    report leaks.

    Raises:
        SystemExit: Output cannot be written; Python reports this.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(exit_code)
    atexit._run_exitfuncs()  # noqa: SLF001 - as processes that `multiprocessing` forks end
    os._exit(exit_code)


def _ignore_foreign_packages() -> None:
    """Ignore folders in `PYTHONPATH` that are not of this installation, as conf/environment.sh does.

    Guides to Spark tell their readers to put the PySpark of `SPARK_HOME` there, which may be another release.
    """
    named = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    folders = [os.path.abspath(folder) for folder in named if folder]  # noqa: PTH100  # as `site` names them
    installation = (Path(__file__).parents[2], sys.prefix, sys.base_prefix)
    own = [folder for folder in folders if any(Path(folder).is_relative_to(root) for root in installation)]
    if own:
        os.environ["PYTHONPATH"] = os.pathsep.join(own)
    foreign = set(folders) - set(own)
    sys.path[:] = [folder for folder in sys.path if folder not in foreign]
