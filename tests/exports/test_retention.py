"""Old sealed exports are removed atomically. Everything else remains."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.exports.manifest import ExportError
from rebalance_ledger.exports.retention import outdated_exports, remove_export

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 11, 21)


def export(exports: Path, day: str, *, cluster: str = "c", is_sealed: bool = True) -> Path:
    directory = exports / cluster / day
    directory.mkdir(parents=True)
    (directory / "events.jsonl").write_text("{}\n")
    if is_sealed:
        (directory / "manifest.json").write_text("{}")
    return directory


def outdated(exports: Path, keep_days: int = 3) -> list[str]:
    return [path.name for path in outdated_exports(exports, "c", keep_days=keep_days, today=TODAY)]


def test_expired_days_are_removed_oldest_first(tmp_path: Path) -> None:
    for day in ("2026-11-19", "2026-11-18", "2025-12-31", "2026-11-17", "2026-11-21"):
        export(tmp_path, day)
    assert outdated(tmp_path) == ["2025-12-31", "2026-11-17", "2026-11-18"]


def test_folders_that_are_not_sealed_days_are_kept_regardless_of_age(tmp_path: Path) -> None:
    export(tmp_path, "2026-11-01", is_sealed=False)
    export(tmp_path, "20261101")
    export(tmp_path, "2026-11-01.copy")
    export(tmp_path, ".2026-11-01.partial")
    export(tmp_path, "2026-11-02", cluster="other")
    (tmp_path / "c" / "2026-11-03").symlink_to(tmp_path / "other" / "2026-11-02")
    (tmp_path / "c" / "2026-11-04").write_text("a file")
    assert outdated(tmp_path) == []


@pytest.mark.parametrize("keep_days", [1_000_000, 10**12])
def test_a_period_longer_than_the_calendar_keeps_all(tmp_path: Path, keep_days: int) -> None:
    export(tmp_path, "2025-12-31")
    assert outdated(tmp_path, keep_days) == []


def test_a_cluster_without_exports_has_none_to_remove(tmp_path: Path) -> None:
    assert outdated(tmp_path) == []


def test_a_missing_folder_of_exports_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="mistyped is not a folder; name the one with <cluster>/<ds>/"):
        outdated(tmp_path / "mistyped")


def test_a_cluster_name_cannot_escape_the_exports(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot be the name of a folder"):
        outdated_exports(tmp_path / "exports", "../other", keep_days=1, today=TODAY)


def test_a_removed_export_leaves_nothing(tmp_path: Path) -> None:
    outdated, recent = export(tmp_path, "2026-11-01"), export(tmp_path, "2026-11-02")
    remove_export(outdated)
    assert [path.name for path in recent.parent.iterdir()] == ["2026-11-02"]


def test_an_interrupted_removal_leaves_nothing_that_looks_like_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = export(tmp_path, "2026-11-01")

    def breaks_off(path: Path) -> None:
        (path / "manifest.json").unlink()
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr("rebalance_ledger.exports.retention.shutil.rmtree", breaks_off)
    with pytest.raises(ExportError, match="Input/output error"):
        remove_export(directory)
    assert not directory.exists()
    assert all(path.name.startswith(".") for path in directory.parent.iterdir())
