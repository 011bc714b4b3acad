"""The entry point of the scripts `ledger` and `rebalance-ledger`.

What belongs here: what must be settled before the command line is imported. What does not: commands and options (`app`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_READING: Final = frozenset(
    {"ask", "explain", "freshness", "metrics", "sql", "summary", "tables", "--version", "--help"}
)
"""Commands that read published tables and hand rows to nobody as a data frame."""


class _WithoutPandas:
    """An import hook that reports pandas as not installed.

    pyarrow imports pandas, if it is there, when it makes its first scalar, and `pyarrow.dataset` makes one when it is imported
    (pyarrow 26, `_PandasAPIShim`). That takes longer than most queries, and pyarrow works without.
    """

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol of import hooks
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not imported by commands that read tables", name=name)
        return None


def main() -> None:
    """Run the command line of this process."""
    if len(sys.argv) > 1 and sys.argv[1] in _READING:
        sys.meta_path.insert(0, _WithoutPandas())
    from rebalance_ledger.cli.app import main as run  # noqa: PLC0415 - after the hook

    run()
