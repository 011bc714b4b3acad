"""Exports in an object store: uploaded completely, verified byte for byte, rejected when they change."""

from __future__ import annotations

import pytest

from rebalance_ledger.exports.landing import land
from rebalance_ledger.exports.manifest import ExportError, export_directory, load_manifest
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.pipeline.outdated import replaced_exports
from rebalance_ledger.storage.location import ObjectPath
from tests.object_store.conftest import SAMPLE, Ledger

pytestmark = pytest.mark.e2e

_DAY = SAMPLE / "shop-prod" / "2026-11-18"


@pytest.fixture
def landed(in_store: str, request: pytest.FixtureRequest) -> ObjectPath:
    """Return the sample's third day at a location of this test only."""
    exports = ObjectPath.of(f"{in_store}/{request.node.name}")
    directory, _ = land(_DAY, exports)
    return directory


@pytest.mark.parametrize("process_count", [0, 2])
def test_a_landed_export_equals_the_sealed_one(landed: ObjectPath, process_count: int) -> None:
    assert verify(landed, process_count=process_count, chunk_bytes=50_000) == verify(_DAY)


def test_landing_again_changes_nothing(landed: ObjectPath) -> None:
    before = sorted(landed.files())
    assert land(_DAY, landed.parent.parent)[0] == landed
    assert sorted(landed.files()) == before


def test_another_export_of_the_day_is_refused(landed: ObjectPath) -> None:
    (landed / "manifest.json").write(b"{}")
    with pytest.raises(ExportError):
        land(_DAY, landed.parent.parent)


def test_the_remains_of_a_killed_landing_are_no_export_and_are_replaced(in_store: str) -> None:
    exports = ObjectPath.of(f"{in_store}/killed")
    directory = export_directory(exports, "shop-prod", load_manifest(_DAY).ds)
    (directory / "left_behind.jsonl").write(b"half")
    with pytest.raises(ExportError, match=r"there is no manifest\.json"):
        verify(directory)
    land(_DAY, exports)
    assert verify(directory) == verify(_DAY)


@pytest.mark.parametrize("process_count", [0, 2])
def test_an_object_that_was_changed_is_named(landed: ObjectPath, process_count: int) -> None:
    (landed / "consume_stats.jsonl").write(b"{}\n")
    (landed / "broker_files" / "new.json").write(b"{}")
    with pytest.raises(ExportError) as error:
        verify(landed, process_count=process_count)
    assert "consume_stats.jsonl has 3 bytes" in str(error.value)
    assert "broker_files/new.json is not in manifest.json" in str(error.value)


def test_a_day_computed_from_another_export_is_out_of_date(landed: ObjectPath) -> None:
    manifest, exports = load_manifest(landed), landed.parent.parent
    assert replaced_exports({manifest.ds: manifest.sha256}, manifest.cluster, exports) == []
    assert replaced_exports({manifest.ds: "0" * 64}, manifest.cluster, exports) == [manifest.ds]


def test_a_day_that_has_not_landed_is_reported(ledger: Ledger) -> None:
    options = ["--cluster=shop-prod", "--ds=2026-11-10", f"--exports={ledger.exports}"]
    assert "is not an export" in ledger("exports", "status", *options, ends_with=2)


def test_a_uri_of_another_scheme_is_refused(ledger: Ledger) -> None:
    output = ledger("exports", "verify", "gs://bucket/x/2026-11-18", ends_with=2)
    assert "neither a folder nor s3a://" in output


def test_commands_that_need_a_disk_report_what_to_do(ledger: Ledger) -> None:
    options = ["--cluster=c", "--keep-days=3", f"--exports={ledger.exports}"]
    output = ledger("exports", "prune", *options, ends_with=2)
    assert "lifecycle rules" in " ".join(output.split())
