"""Write the golden files: `python -m tools.rocketmq_java write-golden [--add FAMILY FILE]`.

Every case that is in `tests/golden` is asked again, and the cases in FILE (JSON lines without `expect`) come behind
those of their family.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from setup.steps import SetUpError
from tools.rocketmq_java import golden


def main() -> int:
    """Run the command of the command line. Return 1 if the Java classes cannot be run."""
    parser = argparse.ArgumentParser(prog="python -m tools.rocketmq_java", description=__doc__)
    commands = parser.add_subparsers(required=True)
    write = commands.add_parser("write-golden")
    write.add_argument("--add", nargs=2, action="append", default=[], metavar=("FAMILY", "FILE"))
    given = parser.parse_args()
    added = {}
    for family, file in given.add:
        if family not in golden.FAMILIES:
            parser.error(f"there is no family {family}: there is {', '.join(golden.FAMILIES)}")
        added[family] = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    try:
        counts = golden.write(added)
    except SetUpError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for family, count in counts.items():
        sys.stdout.write(f"{family}: {count} cases\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
