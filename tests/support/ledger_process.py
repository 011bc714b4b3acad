"""`ledger` on one warehouse, started as by a user or Airflow, with or without an injected fault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from tools.simulated_cluster import Layout, Size, generate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.fault_injection import Strike

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "simulated"
MONDAY, TUESDAY = date(2026, 11, 16), date(2026, 11, 17)


def start_ledger(
    words: Sequence[str], strike: Strike | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start `ledger` with some arguments, with a fault if one is passed."""
    program = (
        ["-c", "import rebalance_ledger.cli.app as c; c.main()"]
        if strike is None
        else [str(Path(__file__).with_name("fault_injection.py")), json.dumps(asdict(strike))]
    )
    return subprocess.Popen(
        [sys.executable, *program, *words],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True)
class Ledger:
    """The command line for one warehouse.

    Attributes:
        exports: The folder of exports.
        settings: The settings file.
        warehouse: The warehouse.
    """

    exports: Path
    settings: Path
    warehouse: Path

    def words(self, *command: str, ds: date = TUESDAY) -> list[str]:
        """Return the arguments of a command for a day."""
        places = [f"--exports={self.exports}", f"--warehouse={self.warehouse}", f"--settings={self.settings}"]
        return [*command, f"--cluster={CLUSTER}", f"--ds={ds}", *places]

    def start(
        self, *command: str, ds: date = TUESDAY, strike: Strike | None = None, **environment: str
    ) -> subprocess.Popen[str]:
        """Start a command, with a fault if one is passed."""
        return start_ledger(self.words(*command, ds=ds), strike, environment)

    def run(
        self,
        *command: str,
        ds: date = TUESDAY,
        strike: Strike | None = None,
        expect: int = 0,
        **environment: str,
    ) -> str:
        """Run a command to its end and return its output."""
        process = self.start(*command, ds=ds, strike=strike, **environment)
        _, output = process.communicate()
        assert process.returncode == expect, f"{command} {strike}: {process.returncode}\n{output}"
        return output

    def fingerprint(self) -> list[str]:
        """Return a line for each table and day that readers see, with the hash of its rows."""
        answer = subprocess.run(
            [ROOT / "setup" / "in-environment", "ledger", "fingerprint", f"--cluster={CLUSTER}", f"--warehouse={self.warehouse}"],
            capture_output=True,
            text=True,
            check=True,
        )  # fmt: skip
        return answer.stdout.splitlines()

    def with_another_tuesday(self, folder: Path) -> Ledger:
        """Return the same warehouse with another export of Tuesday, which contains more groups."""
        size = Size(broker_count=2, topic_count=5, group_count=14, clients_per_group=3)
        generate(Layout(CLUSTER, size), folder / "other-exports", TUESDAY, folder / "other.yaml")
        return Ledger(folder / "other-exports", folder / "other.yaml", self.warehouse)

    def copied_to(self, folder: Path) -> Ledger:
        """Return the same exports, with a copy of the warehouse."""
        shutil.copytree(self.warehouse, folder / "warehouse")
        return Ledger(self.exports, self.settings, folder / "warehouse")


@dataclass(frozen=True)
class Days:
    """Warehouses without faults; no test writes to them.

    Attributes:
        monday: Monday is published.
        judged: In addition, Tuesday is computed and accepted, but not published.
        tuesday: Both days are published.
        contents: The fingerprints of `monday` and `tuesday`.
    """

    monday: Ledger
    judged: Ledger
    tuesday: Ledger
    contents: tuple[Sequence[str], Sequence[str]]
