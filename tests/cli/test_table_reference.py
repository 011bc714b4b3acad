"""docs/tables.md matches the table definitions."""

from __future__ import annotations

from rebalance_ledger.cli.table_reference import PATH, table_reference


def test_the_table_reference_is_current() -> None:
    assert PATH.read_text(encoding="utf-8") == table_reference(), (
        "run: python -m rebalance_ledger.cli.table_reference"
    )
