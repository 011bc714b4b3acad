"""Where a warehouse can be: delta-rs reads some characters of a path as others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rebalance_ledger.storage.location import InvalidLocationError
from rebalance_ledger.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

_SCHEMA = pa.schema([("queue_id", pa.int32())])
_UNUSABLE = ("a%25b", "a%2fb", "a\\b", "a\nb", "a\tb", "a\x1bb")
_USABLE = ("50% off", "%", "a%2", "[x]*{y}?", 'it\'s "q"', "#;&|<>^~`$(id)", "a:b@c", " ", "..a", "größe 表")


@pytest.mark.parametrize("name", _UNUSABLE)
def test_a_path_that_delta_changes_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidLocationError, match="cannot be a warehouse: Delta's library does not keep"):
        Warehouse.at(str(tmp_path / name))
    # The refusal is needed as long as this fails.
    with pytest.raises(DeltaError):
        DeltaTable.create(str(tmp_path / name), _SCHEMA)


@pytest.mark.parametrize("name", _USABLE)
def test_every_other_path_is_used_as_it_is(tmp_path: Path, name: str) -> None:
    root = tmp_path / name / "warehouse"
    assert Warehouse.at(str(root)).root == str(root)
    DeltaTable.create(str(root), _SCHEMA)
    assert DeltaTable(str(root)).version() == 0
    assert (root / "_delta_log" / "00000000000000000000.json").is_file()
