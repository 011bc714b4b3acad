"""The sample's days through Airflow: by `make run` on a terminal, and by the scheduler of `make airflow`."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.warehouse.fingerprint import fingerprint
from rebalance_ledger.warehouse.layout import Warehouse
from tests.e2e.conftest import ROOT, SAMPLE, Project
from tests.real_cluster.processes import descendants, have_ended, wait_until
from tests.support.airflow_api import APPROVAL_DAG_ID, DAG_ID, DAY_DAG_ID, run_of
from tests.support.computed_days import SETTINGS_FILE, published_state
from tools.browser import browser

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

FIRST, SECOND, THIRD = "2026-11-16", "2026-11-17", "2026-11-18"


@pytest.fixture(scope="module")
def output(project: Project, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of the first run, of two days; the scheduler runs all three below."""
    printed = make_run(project, tmp_path_factory.mktemp("two-days"), force=False)
    log = (ROOT / ".local" / "logs" / "run.log").read_text(encoding="utf-8")
    assert f"shop-prod {SECOND} is staged as well" in log
    assert "Staged by another application, from the same input" in log
    return printed


def make_run(
    project: Project, exports: Path, *, damaged: str | None = None, expect: int = 0, force: bool = True
) -> str:
    """Run `make run` for the sample's first two days, copied to a folder; return its output."""
    for day in (FIRST, SECOND):
        shutil.copytree(SAMPLE / "shop-prod" / day, exports / "shop-prod" / day)
    if damaged is not None:
        routes = exports / "shop-prod" / damaged / "nameserver_routes.jsonl"
        routes.write_bytes(routes.read_bytes()[:-100])
    return project.run(
        "python",
        "-m",
        "rebalance_ledger.pipeline.sample_run",
        expect=expect,
        LEDGER_EXPORTS=str(exports),
        LEDGER_FORCE="1" if force else "",
    )


def test_the_run_shows_every_step_of_every_day_and_ends_with_the_next_steps(output: str) -> None:
    assert f"\n{FIRST} (its build also stages the days after it)\n" in output
    assert f"\n{SECOND}\n" in output
    for step in ("verify_export", "build", "gate", "publish", "report"):
        assert len(re.findall(rf"^  shop-prod +{step} ", output, re.MULTILINE)) == 2
    assert len(re.findall(r"^  shop-prod +notify .* skipped$", output, re.MULTILINE)) == 2
    assert "failed" not in output
    assert output.rstrip().endswith("make airflow")


@pytest.mark.usefixtures("output")
def test_every_day_is_published_with_its_verdict(project: Project) -> None:
    published = project.rows("SELECT cluster, ds, gate_verdict FROM publication ORDER BY ds")
    assert [(row["cluster"], row["ds"]) for row in published] == [("shop-prod", FIRST), ("shop-prod", SECOND)]
    assert {row["gate_verdict"] for row in published} <= {"passed", "passed_with_warnings"}


@pytest.mark.usefixtures("output")
def test_days_that_are_published_from_the_same_input_are_not_computed_again(
    project: Project, tmp_path: Path
) -> None:
    printed = make_run(project, tmp_path / "again", force=False)

    for day in (FIRST, SECOND):
        assert f"{day} is published from this export, settings and code" in printed
    assert " build " not in printed


@pytest.mark.usefixtures("output")
def test_a_second_run_changes_no_row_and_a_damaged_export_fails_it_and_is_named(
    project: Project, tmp_path: Path
) -> None:
    before = published_state(Warehouse.at(str(project.warehouse)))
    assert before

    message = make_run(project, tmp_path / "exports", damaged=SECOND, expect=2)

    for step in ("build", "gate", "publish", "report"):
        assert len(re.findall(rf"^  shop-prod +{step} ", message, re.MULTILINE)) == 1
    assert f"verify_export of shop-prod failed for {SECOND} (exit code 2)" in message
    assert "nameserver_routes.jsonl" in message
    assert published_state(Warehouse.at(str(project.warehouse))) == before


@pytest.mark.nightly
def test_a_refused_day_is_published_after_approval(tmp_path: Path) -> None:
    settings = tmp_path / "ledger.yaml"
    settings.write_text(
        SETTINGS_FILE.read_text(encoding="utf-8").replace(
            "  shop-prod:\n", "  shop-prod:\n    gate: {findings: {mixed_strategies: block}}\n", 1
        ),
        encoding="utf-8",
    )
    project = Project(tmp_path, LEDGER_SETTINGS=str(settings))
    with project.airflow():
        wait_until(project.api.knows_dag, 120)
        project.api.unpause()
        refused = project.api.trigger(FIRST)
        assert project.api.wait_for([refused]) == ["failed"]
        # The message is the reason, which ends with the pages; no traceback follows.
        reason = project.api.last_shown(project.api.task(refused, "gate"))
        assert reason.startswith("The gate refused this day")
        assert reason.endswith("index.html")
        with browser(tmp_path / "refused") as window:
            window.open(project.api.task_page(DAG_ID, refused, "gate"))
            window.click_link("Data Docs")
            window.wait_for_title(f"Refused: shop-prod, {FIRST}")
            assert window.serious_violations() == []

        rejected = project.api.start_approval("shop-prod", FIRST)
        question = project.api.required_action(rejected)
        assert question["subject"] == f"Publish shop-prod {FIRST} although the gate refused it?"
        assert "**finding.no_mixed_strategies**" in question["body"]
        project.api.decide(rejected, "Reject", reason="not today")
        assert project.api.wait_for([rejected], dag_id=APPROVAL_DAG_ID) == ["success"]
        assert not (project.warehouse / "gold" / "publication").exists()

        approved = project.api.start_approval("shop-prod", FIRST)
        project.api.decide(approved, "Approve", reason="both rules agree; ticket 7")
        assert project.api.wait_for([approved], dag_id=APPROVAL_DAG_ID) == ["success"]
        with browser(tmp_path / "approved") as window:
            window.open(project.api.task_page(APPROVAL_DAG_ID, approved, "report"))
            window.click_link("Report")
            window.wait_for_title(f"shop-prod, {FIRST}")
            window.open(project.api.task_page(APPROVAL_DAG_ID, approved, "gate"))
            window.click_link("Data Docs")
            window.wait_for_title(f"Refused and approved by a person: shop-prod, {FIRST}")
    assert project.rows("SELECT ds, gate_verdict FROM publication") == [
        {"ds": FIRST, "gate_verdict": "approved"}
    ]
    [row] = project.rows("SELECT * FROM gate_result WHERE outcome = 'approved'")
    assert row["expectation_id"] == "finding.no_mixed_strategies"
    assert row["approved_by"]
    assert row["approval_reason"] == "both rules agree; ticket 7"


@pytest.mark.nightly
@pytest.mark.usefixtures("output")
def test_a_backfill_publishes_all_days_of_its_range_with_the_rows_of_make_run(
    project: Project, tmp_path: Path
) -> None:
    """A scheduler with its own home and warehouse publishes days that are triggered later, and leaves nothing behind."""
    by_make_run = list(fingerprint(str(project.warehouse), "shop-prod"))
    scheduled = Project(tmp_path)
    with scheduled.airflow() as server:
        days = scheduled.backfill(FIRST, THIRD)
        assert sorted(days) == [f"backfill__{day}T00:00:00+00:00" for day in (FIRST, SECOND, THIRD)]
        assert scheduled.api.wait_for(days, dag_id=DAY_DAG_ID) == ["success"] * len(days)
        builds = [
            scheduled.api.log(scheduled.api.task(run_of(day), "build")) for day in (FIRST, SECOND, THIRD)
        ]
        pages = [
            scheduled.api.page(scheduled.api.buttons(run_of(day), task)[button])
            for task, button in (("gate", "Data Docs"), ("report", "Report"))
            for day in (FIRST, SECOND, THIRD)
        ]
        family = descendants(server.pid)
    assert server.returncode == 0
    assert have_ended(family) is None
    assert ["Staged by another application" in log for log in builds] == [False, True, True]
    published = scheduled.rows("SELECT ds FROM publication ORDER BY ds")
    assert [row["ds"] for row in published] == [FIRST, SECOND, THIRD]
    for page, row in zip(pages, [*published, *published], strict=True):
        assert row["ds"] in page
    by_scheduler = list(fingerprint(str(scheduled.warehouse), "shop-prod"))
    assert [table for table in by_scheduler if f"{table.ds}" != THIRD] == by_make_run
