"""Damaged files of a staging area or of published tables: one sentence names the file, and nothing is partly written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.publish import publish
from tests.support.command_line import ledger
from tests.support.staging_fixtures import MONDAY, TABLES, TUESDAY, owners, stage_day

if TYPE_CHECKING:
    from collections.abc import Callable

CLUSTER = "shop"


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Return a warehouse with Monday published twice, and Tuesday staged and evaluated."""
    warehouse = Warehouse.at(str(tmp_path_factory.mktemp("undamaged") / "warehouse"))
    for run_id, host in (("run-1", "10.0.0"), ("run-2", "10.0.1")):
        clients = [f"{host}.{number}@order" for number in range(100)]
        stage_day(warehouse, MONDAY, run_id=run_id, queue_assignment=owners(*clients))
        publish(warehouse, CLUSTER, MONDAY)
    stage_day(warehouse, TUESDAY, run_id="run-3", queue_assignment=owners("10.0.0.1@order"))
    return warehouse


@pytest.fixture
def warehouse(undamaged: Warehouse, tmp_path: Path) -> Warehouse:
    """Return a copy of the warehouse for a test to damage."""
    return Warehouse.at(str(shutil.copytree(undamaged.root, tmp_path / "warehouse")))


def stage_file(warehouse: Warehouse, name: str) -> Path:
    stage = warehouse.stage(CLUSTER, TUESDAY, "only")
    return Path(stage.attempts if name in {"newest.json", "judged.json"} else stage.root, name)


def tuesday(command: str, warehouse: Warehouse) -> list[str]:
    words = {"publish": ["step", "publish"], "gate": ["step", "gate"], "show": ["gate", "show"]}[command]
    return [*words, f"--cluster={CLUSTER}", f"--ds={TUESDAY}", f"--warehouse={warehouse.root}"]


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    err = capsys.readouterr().err
    assert len(err.strip().splitlines()) == 1, err
    return err


RECORDS = ("newest.json", "judged.json", "gate_verdict.json", "build.json", "inventory.json")
READERS = {
    "newest.json": ("publish", "gate", "show"),
    "judged.json": ("publish", "show"),
    "gate_verdict.json": ("publish", "show"),
    "build.json": ("publish", "gate", "show"),
    "inventory.json": ("gate",),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_of_a_stage_is_named_with_what_to_do(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = stage_file(warehouse, name)
    file.write_bytes(file.read_bytes()[:-2])
    for command in READERS[name]:
        assert ledger(*tuesday(command, warehouse)) == 2
        output = sentence(capsys)
        assert f"{file} is damaged (it is not JSON; it may be cut)" in output
        assert "again." in output


def test_each_kind_of_damage_is_named(warehouse: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    file = stage_file(warehouse, "gate_verdict.json")
    for content, problem in (
        (b"", "it is empty"),
        (b"\xff\xfe{}", "it is not UTF-8 text"),
        (b"[" * 100_000, "it is not JSON; it may be cut"),
        (b"null", "it holds no JSON object"),
        (b"[1]", "it holds no JSON object"),
        (b"{}", "'verdict' is not a text"),
    ):
        file.write_bytes(content)
        assert ledger(*tuesday("publish", warehouse)) == 2
        assert f"{file} is damaged ({problem}): run the gate of this day again." in sentence(capsys)


@pytest.mark.parametrize("name", RECORDS)
def test_a_folder_instead_of_a_record_is_named(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = stage_file(warehouse, name)
    file.unlink()
    file.mkdir()
    for command in READERS[name]:
        assert ledger(*tuesday(command, warehouse)) == 2
        assert f"{file} cannot be read" in sentence(capsys)


def test_a_field_of_another_type_is_damage(warehouse: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    for name, field, value in (
        ("judged.json", "attempt", "../../other"),
        ("judged.json", "attempt", 3),
        ("gate_verdict.json", "verdict", "pa3sed"),
        ("gate_verdict.json", "verdict", None),
        ("gate_verdict.json", "results", {}),
        ("gate_verdict.json", "results", [3]),
        ("gate_verdict.json", "results", [{"expectation_id": None}]),
        ("gate_verdict.json", "quarantined", [{"consumer_group": 3}]),
        ("gate_verdict.json", "inventory", {"name": "gold.finding"}),
        ("build.json", "run_id", []),
        ("build.json", "baseline_ds", "someday"),
        ("build.json", "compared_content", "hash"),
    ):
        file = stage_file(warehouse, name)
        whole = file.read_text()
        file.write_text(json.dumps(json.loads(whole) | {field: value}))
        assert ledger(*tuesday("publish", warehouse)) == 2
        output = sentence(capsys)
        assert f"{file} is damaged" in output
        assert f"{field!r}" in output
        file.write_text(whole)


def test_a_record_of_another_attempt_does_not_stop_a_publication(warehouse: Warehouse) -> None:
    other = Path(warehouse.stage(CLUSTER, TUESDAY, "other").root)
    other.mkdir()
    (other / "build.json").write_text("")
    assert ledger(*tuesday("publish", warehouse)) == 0
    assert not other.exists()


def published_file(warehouse: Warehouse) -> Path:
    [uri] = DeltaTable(warehouse.published(TABLES["queue_assignment"])).file_uris()
    return Path(uri)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 3] = b"\xff" * (len(content) // 3 - 4)
    path.write_bytes(content)


def overwrite_footer(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-200:-8] = b"\xff" * 192
    path.write_bytes(content)


DAMAGES = [cut, empty, overwrite_pages, overwrite_footer, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_published_file_is_named_and_publishing_the_day_again_repairs_it(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    file = published_file(warehouse)
    damage(file)
    place = f"--warehouse={warehouse.root}"
    question = "SELECT max(client_id), max(topic), max(consumer_group), sum(queue_id) FROM queue_assignment"
    for words in (["sql", question], ["verify"], ["fingerprint", f"--cluster={CLUSTER}"]):
        assert ledger(*words, place) == 2
        output = sentence(capsys)
        assert f"{file} cannot be read" in output
        assert "ledger backfill" in output
    clients = [f"10.0.1.{number}@order" for number in range(100)]
    stage_day(warehouse, MONDAY, run_id="run-2", queue_assignment=owners(*clients))
    publish(warehouse, CLUSTER, MONDAY)
    assert ledger("verify", place) == 0


@pytest.mark.parametrize("damage", [cut, empty, overwrite_footer])
def test_a_damaged_log_of_a_published_table_is_named(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    log = Path(warehouse.root, "gold", "queue_assignment", "_delta_log")
    damage(max(log.glob("*.json")))
    for words in (["sql", "SELECT count(*) FROM queue_assignment"], ["verify"]):
        assert ledger(*words, f"--warehouse={warehouse.root}") == 2
        assert str(log.parent) in sentence(capsys)
