"""Runs `ledger` and injects a fault at one exact point.

    python tests/support/fault_injection.py '{"call": "rebalance_ledger.warehouse.commits:replace_day", "nth": 3, "moment": "before", "deed": "kill"}' run --cluster=…

A separate program, because the fault kills or stops its own process. The stages are the real ones; only the point of the
fault is chosen.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

if __name__ == "__main__":
    sys.path[0] = str(
        Path(__file__).resolve().parents[2]
    )  # Run by path, it would only have its own folder on the module path.


@dataclass(frozen=True)
class Strike:
    """A fault and the point at which it occurs.

    Attributes:
        call: The function, as `module:name`, by the name that its caller uses.
        nth: The number of the call; the first is 1.
        moment: `before`, `after` or `within` the call. Within a generator: after its first item. Within a Spark write: while
            its first file is being written.
        deed: `kill` or `stop` this process, or `spoil` a file.
        spoiled: The file to corrupt; a line is appended to it.
    """

    call: str
    nth: int = 1
    moment: str = "before"
    deed: str = "kill"
    spoiled: str = ""

    def fall(self) -> None:
        """Inject the fault."""
        if self.deed == "spoil":
            with Path(self.spoiled).open("a") as file:
                file.write("\n")
            return
        os.kill(os.getpid(), signal.SIGKILL if self.deed == "kill" else signal.SIGSTOP)


def prepare(strike: Strike) -> None:
    """Wrap the function so that the fault occurs at the chosen call."""
    module_name, _, name = strike.call.partition(":")
    module = importlib.import_module(module_name)
    original: Callable[..., Any] = getattr(module, name)
    calls = itertools.count(1)

    def generator(*arguments: Any) -> Iterator[Any]:
        for number, item in enumerate(original(*arguments)):
            if number > 0:
                strike.fall()
            yield item
        strike.fall()

    def struck(*arguments: Any, **named: Any) -> Any:
        if next(calls) != strike.nth:
            return original(*arguments, **named)
        if strike.moment == "before":
            strike.fall()
        elif strike.moment == "within" and inspect.isgeneratorfunction(original):
            return generator(*arguments)
        elif strike.moment == "within":
            _, stages, table, _ = arguments
            (stage,) = stages.values()
            threading.Thread(target=_when_written, args=(stage.table(table), strike), daemon=True).start()
        answer = original(*arguments, **named)
        if strike.moment == "after":
            strike.fall()
        return answer

    setattr(module, name, struck)


def _when_written(place: str, strike: Strike) -> None:
    """Inject the fault as soon as Spark's tasks write below a folder; the thread ends with the process."""
    while not any(Path(place).glob("**/*.parquet")):
        pass
    strike.fall()


if __name__ == "__main__":
    prepare(Strike(**json.loads(sys.argv.pop(1))))
    from rebalance_ledger.cli.app import main

    sys.exit(main())
