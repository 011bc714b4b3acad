"""The exports that a build was compared with are found again, or an error names the changed one."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.exports.catalog import earlier_exports, referenced_exports
from rebalance_ledger.exports.manifest import ExportError
from rebalance_ledger.exports.sealing import seal
from tests.support.export_builder import ExportBuilder

if TYPE_CHECKING:
    from pathlib import Path

DS = date(2026, 11, 18)


def sealed_export(exports: Path, day: int) -> Path:
    export = ExportBuilder("shop", date(2026, 11, day))
    export.route("orders", {"a": 2})
    export.group("g", ["orders"], ["c1"], "a")
    return export.seal(exports)


def test_exports_are_found_by_their_references_until_one_is_replaced_or_removed(tmp_path: Path) -> None:
    sealed = [sealed_export(tmp_path, day) for day in (16, 17)]
    earlier = earlier_exports(tmp_path, "shop", DS, most=3)
    references = [export.reference for export in earlier]

    assert referenced_exports(tmp_path, "shop", references) == earlier

    (sealed[0] / "attachment.txt").write_text("more", encoding="utf-8")
    seal(sealed[0], replace=True)
    with pytest.raises(
        ExportError, match=f"{sealed[0]} is not the export that offset files were compared with"
    ):
        referenced_exports(tmp_path, "shop", references)

    (sealed[1] / "manifest.json").unlink()
    with pytest.raises(ExportError, match=r"manifest\.json"):
        referenced_exports(tmp_path, "shop", references)
