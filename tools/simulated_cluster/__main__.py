"""The command line of the simulated cluster; see the package."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from rebalance_ledger.exports.manifest import ExportError
from tools.simulated_cluster.generate import generate
from tools.simulated_cluster.layout import Layout, Size


def main() -> int:
    """Write one export and print its size. Return 2 if it cannot be written."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.simulated_cluster", description="Export a simulated cluster."
    )
    parser.add_argument("--brokers", type=int, required=True)
    parser.add_argument("--topics", type=int, required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--clients-per-group", type=int, default=8)
    parser.add_argument("--seed", type=int, default=20261116)
    parser.add_argument("--ds", type=date.fromisoformat, required=True)
    parser.add_argument("--exports", type=Path, required=True)
    parser.add_argument("--cluster", required=True)
    parser.add_argument(
        "--settings", type=Path, help="file for what the ledger must know of the groups' strategies"
    )
    given = parser.parse_args()
    size = Size(given.brokers, given.topics, given.groups, given.clients_per_group)
    if min(size) < 1:
        parser.error("a cluster has at least one broker, topic, group and client")
    try:
        manifest = generate(
            Layout(given.cluster, size, given.seed), given.exports.resolve(), given.ds, given.settings
        )
    except ExportError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for file in manifest.envelope_files:
        sys.stdout.write(
            f"{file.path}: {file.line_count:,} lines, {file.error_count:,} errors, {file.size_bytes:,} bytes\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
