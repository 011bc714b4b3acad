"""Memory and disk limits of `ledger sql` for any query. Each query runs in a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# The limits are small, because a test that uses gigabytes would leave too little memory for parallel tests.
PROGRAM = """
import sys
from pathlib import Path
import rebalance_ledger.cli.sql, rebalance_ledger.warehouse.query
from rebalance_ledger.cli.app import main
rebalance_ledger.cli.sql._MOST_MEMORY_BYTES = 400_000_000
rebalance_ledger.warehouse.query.SANDBOX_CONFIG["memory_limit"] = "100MB"
try:
    main()
finally:
    # `ru_maxrss` would count what the process that started this one has.
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    print(peak.split()[1], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT repeat('x', 3000000000)",
        "SELECT repeat('x', 10000000) FROM range(1000)",
        "SELECT range(1000000000)",
        "SELECT list(range) FROM range(1000000000)",
        "SELECT string_agg('xxxxxxxxxxxxxxxxxxx') FROM range(1000000000)",
        "SELECT lpad('x', 2000000000, 'y')",
        "FROM range(1000000000) ORDER BY hash(range)",
        "SELECT hash(a.range, b.range) AS h, count(*) FROM range(100000) AS a, range(100000) AS b GROUP BY h",
    ],
)
def test_a_query_that_exceeds_its_limits_fails_with_a_clear_message(
    text: str, shop_warehouse: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            "sql",
            text,
            "--format",
            "csv",
            "--warehouse",
            shop_warehouse,
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    sentence, peak_kilobytes = done.stderr.splitlines()[-2:]
    assert done.returncode == 2
    assert "of memory" in sentence or "Arrow Appender" in sentence
    assert "Traceback" not in done.stderr
    assert int(peak_kilobytes) < 1_000_000
    assert list(tmp_path.iterdir()) == []
