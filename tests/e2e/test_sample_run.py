"""`make run`: three days of a real cluster through Airflow, and once more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

DAYS = ["2026-11-16", "2026-11-17", "2026-11-18"]
TABLES = ("queue_assignment", "assignment_fairness", "finding", "gate_result", "publication")


@pytest.fixture(scope="module")
def output(project: Project) -> str:
    """What the first run printed."""
    return project.run("python", "-m", "ledger.sample_run")


def test_it_shows_every_step_of_every_day_and_ends_with_what_to_try_next(output: str) -> None:
    for day in DAYS:
        assert f"\n{day}\n" in output
    for step in ("verify_export", "build", "gate", "publish"):
        assert output.count(f" {step} ") == len(DAYS)
    assert "failed" not in output
    assert output.rstrip().endswith("make airflow")


@pytest.mark.usefixtures("output")
def test_every_day_is_published_with_its_verdict(project: Project) -> None:
    published = project.rows("SELECT cluster, ds, gate_verdict FROM publication ORDER BY ds")
    assert [(row["cluster"], row["ds"]) for row in published] == [("shop-prod", day) for day in DAYS]
    assert {row["gate_verdict"] for row in published} <= {"passed", "passed_with_warnings"}


@pytest.mark.usefixtures("output")
def test_a_second_run_changes_no_row(project: Project) -> None:
    before = everything(project)
    assert all(before.values())
    project.run("python", "-m", "ledger.sample_run")
    assert everything(project) == before


@pytest.mark.usefixtures("output")
def test_a_damaged_export_stops_the_day_names_the_file_and_leaves_what_is_published(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(project)
    exports = tmp_path / "exports"
    shutil.copytree(
        Path(project.environment["LEDGER_EXPORTS"]) / "shop-prod" / DAYS[0], exports / "shop-prod" / DAYS[0]
    )
    routes = exports / "shop-prod" / DAYS[0] / "nameserver_routes.jsonl"
    routes.write_bytes(routes.read_bytes()[:-100])
    monkeypatch.setitem(project.environment, "LEDGER_EXPORTS", str(exports))
    output = project.run("python", "-m", "ledger.sample_run", expect=2)
    assert "verify_export of shop-prod failed for 2026-11-16 (exit code 2)" in output
    assert "nameserver_routes.jsonl" in output
    assert everything(project) == before


def everything(project: Project) -> dict[str, list[dict[str, Any]]]:
    return {table: project.rows(f"SELECT * FROM {table} ORDER BY ALL") for table in TABLES}  # noqa: S608
