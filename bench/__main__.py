"""`make bench`: run the parts, print the table, write `docs/benchmarks/results.json` and `results.svg`.

`python -m bench [PART…]` runs some of them; the others keep the figures that they have.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from bench import (
    assignment,
    backfill,
    concurrent_publication,
    day_report,
    large_cluster,
    manifest,
    offset_files,
    publication,
    publication_history,
    whole_day,
    whole_group,
)
from bench.report import as_json, as_svg, as_table, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.report import Measurement

PARTS: Final[Mapping[str, Callable[[], list[Measurement]]]] = {
    "assignment": assignment.measure,
    "whole_group": whole_group.measure,
    "growth": assignment.measure_growth,
    "large_cluster": large_cluster.measure,
    "offset_files": offset_files.measure,
    "backfill": backfill.measure,
    "publication": publication.measure,
    "publication_history": publication_history.measure,
    "concurrent_publication": concurrent_publication.measure,
    "day_report": day_report.measure,
    "manifest": manifest.measure,
    "whole_day": whole_day.measure,
}
FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def main(names: list[str]) -> int:
    """Run the named parts, or all; 0 if every bar is kept, 1 if one is not, 2 for a part that there is not."""
    console = Console()
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        console.print(f"There is no part {unknown[0]!r}; there is {', '.join(PARTS)}.")
        return 2
    results = FOLDER / "results.json"
    known = from_json(results.read_text(encoding="utf-8")) if results.exists() else {}
    measured = {name: PARTS[name]() for name in names or PARTS}
    console.print(as_table([one for part in measured.values() for one in part]))
    parts = {name: part for name in PARTS if (part := measured.get(name) or known.get(name))}
    FOLDER.mkdir(exist_ok=True)
    results.write_text(as_json(parts), encoding="utf-8")
    (FOLDER / "results.svg").write_text(
        as_svg([one for part in parts.values() for one in part]), encoding="utf-8"
    )
    return int(any(one.is_met is False for part in measured.values() for one in part))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
