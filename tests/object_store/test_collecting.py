"""Collecting into an object store: a retry completes the export in the store, and an export that cannot be uploaded is not lost."""

from __future__ import annotations

import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.cli import collect as collecting
from rebalance_ledger.exports.landing import land
from rebalance_ledger.exports.manifest import MANIFEST_NAME, export_directory
from rebalance_ledger.exports.sealing import verify
from rebalance_ledger.storage.location import ObjectPath
from tests.support.command_line import ledger
from tests.support.simulated_cluster import AdminClients, silence

if TYPE_CHECKING:
    from rebalance_ledger.collectors.admin import Answer, Question

pytestmark = pytest.mark.e2e

_TODAY = datetime.now(UTC).date()
_MUTE = "10.0.0.1:10911"


@pytest.fixture
def exports(in_store: str, request: pytest.FixtureRequest) -> ObjectPath:
    return ObjectPath.of(f"{in_store}/{request.node.name}")


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AdminClients:
    for name in ("LEDGER_EXPORTS", "LEDGER_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LEDGER_COLLECTOR_JARS", str(tmp_path))
    # The folder for unfinished exports.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    clients = AdminClients()
    monkeypatch.setattr(collecting, "admin_client", clients)
    return clients


def collect(exports: ObjectPath, folder: Path) -> int:
    settings = folder / "ledger.json"
    settings.write_text(
        json.dumps({"clusters": {"c": {"collect": {"retries": 0, "unresponsive_after_s": 0.0001}}}})
    )
    return ledger(
        "exports",
        "collect",
        "--cluster=c",
        f"--exports={exports}",
        "--nameserver=ns-1:9876",
        "--nameserver=ns-2:9876",
        f"--settings={settings}",
    )


def mute(asked: Question) -> Answer | None:
    return silence() if asked.address == _MUTE else None


def test_a_retry_completes_an_export_in_the_store(
    clients: AdminClients, exports: ObjectPath, tmp_path: Path
) -> None:
    clients.cluster.instead = mute
    assert collect(exports, tmp_path) == 4
    directory = export_directory(exports, "c", _TODAY)
    assert verify(directory).quality == "degraded"
    clients.cluster.instead = lambda _: None
    clients.cluster.calls.clear()

    assert collect(exports, tmp_path) == 0

    manifest = verify(directory)
    assert [each.quality for each in manifest.attempts] == ["degraded", "complete"]
    assert not [
        call for call in clients.cluster.calls if call.kind == "broker_config" and call.address != _MUTE
    ]
    assert collect(exports, tmp_path) == 2
    assert verify(directory) == manifest
    assert not list(tmp_path.glob("ledger-export-*"))


def test_an_attempt_without_new_answers_leaves_the_store_unchanged(
    clients: AdminClients, exports: ObjectPath, tmp_path: Path
) -> None:
    clients.cluster.instead = mute
    assert collect(exports, tmp_path) == 4
    before = verify(export_directory(exports, "c", _TODAY))

    assert collect(exports, tmp_path) == 4

    assert verify(export_directory(exports, "c", _TODAY)) == before


def test_an_export_that_cannot_be_landed_is_kept_sealed_at_the_path_in_the_message(
    clients: AdminClients,
    exports: ObjectPath,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write = ObjectPath.write

    def breaks(self: ObjectPath, content: bytes | Path) -> None:
        if self.name == MANIFEST_NAME:
            raise OSError("the store does not answer")
        write(self, content)

    monkeypatch.setattr(ObjectPath, "write", breaks)
    assert collect(exports, tmp_path) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert "the store does not answer" in output
    kept = re.search(r"ledger exports upload (\S+) --exports", output)
    assert kept is not None
    monkeypatch.setattr(ObjectPath, "write", write)

    directory, manifest = land(Path(kept[1]), exports)

    assert verify(directory) == manifest
