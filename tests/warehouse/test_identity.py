"""A computation has the same run id if its export, settings and code are the same."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from rebalance_ledger.warehouse import identity
from rebalance_ledger.warehouse.identity import RunIdentity, code_version

IDENTITY = RunIdentity("manifest", "settings", "0.1.0+abc")


def test_a_run_id_has_sixteen_hexadecimal_digits_and_is_stable() -> None:
    assert IDENTITY.run_id == "67b8f1f192526d20"


@pytest.mark.parametrize("part", ["manifest_sha256", "settings_sha256", "code_version"])
def test_each_part_is_in_the_run_id(part: str) -> None:
    assert replace(IDENTITY, **{part: "another"}).run_id != IDENTITY.run_id


def test_each_earlier_export_of_the_lookback_is_in_the_run_id_in_order() -> None:
    ids = {
        replace(IDENTITY, compared_exports=earlier).run_id for earlier in ((), ("a",), ("a", "b"), ("b", "a"))
    }

    assert len(ids) == 4


def test_the_content_of_the_baseline_day_is_in_the_run_id() -> None:
    ids = {
        replace(IDENTITY, baseline_ds=ds, compared_content=content).run_id
        for ds, content in (
            (None, ()),
            (date(2026, 11, 16), ("gold.queue_assignment=1a",)),
            (date(2026, 11, 16), ("gold.queue_assignment=1b",)),
            (date(2026, 11, 17), ("gold.queue_assignment=1a",)),
        )
    }

    assert len(ids) == 4


def test_parts_of_the_run_id_are_separated() -> None:
    assert RunIdentity("ab", "c", "d").run_id != RunIdentity("a", "bc", "d").run_id


def test_the_code_version_is_the_release_and_a_hash() -> None:
    assert re.fullmatch(r"(\d+\.\d+\.\d+|unreleased)\+[0-9a-f]{12}", code_version())


def test_a_changed_line_of_code_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "strategies"
    package.mkdir()
    folder = tmp_path / "rebalance_ledger" / "warehouse"
    folder.mkdir(parents=True)
    monkeypatch.setattr(identity, "__file__", str(folder / "identity.py"))

    def version_with(name: str, source: str) -> str:
        (package / name).write_text(source, encoding="utf-8")
        code_version.cache_clear()
        return code_version()

    try:
        first = version_with("average.py", "SHARE = 1\n")
        second = version_with("average.py", "SHARE = 2\n")
        third = version_with("notes.md", "not code")
        assert first != second
        assert second == third
    finally:
        monkeypatch.undo()
        code_version.cache_clear()


def test_no_published_row_can_come_from_the_folder_of_sql_which_the_version_leaves_out() -> None:
    root = Path(identity.__file__).resolve().parents[2]
    naming = {
        path.relative_to(root).as_posix()
        for package in identity._PACKAGES
        for path in (root / package).rglob("*.py")
        if re.search(r"""["']sql["'/]""", path.read_text(encoding="utf-8"))
    }

    assert naming == {"rebalance_ledger/warehouse/query.py"}
    importing = {
        path.relative_to(root).as_posix()
        for package in identity._PACKAGES
        for path in (root / package).rglob("*.py")
        if "rebalance_ledger.warehouse.query" in path.read_text(encoding="utf-8")
    }
    assert importing == set()
