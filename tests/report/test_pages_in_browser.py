"""The report and Data Docs in a real browser: offline, on a phone, in dark mode, and with accessibility checks."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from expectations.suites.all_suites import EXPECTATIONS
from rebalance_ledger.gate.judge import judge
from rebalance_ledger.report.day_report import write_report
from tests.support.published_sample import Publisher, publish_shop_days
from tools.browser import browser

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HOSTILE = '"><img src=http://127.0.0.1:9/planted onerror=alert(1)><script>alert(1)</script>'


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the address of each page, by its name."""
    folder = tmp_path_factory.mktemp("pages")
    warehouse = publish_shop_days(folder / "warehouse")
    write_report(warehouse, folder / "report.html", cluster="shop-prod", ds=None, group=None)
    publisher = Publisher(folder / "hostile")
    drift = {"consumer_group": HOSTILE, "topic": HOSTILE, "broker_name": HOSTILE, "queue_id": 0}
    problem = {"severity": "critical", "kind": "unowned", "evidence": HOSTILE, "advice": HOSTILE}
    subject = {
        "finding_id": "f1",
        "parent_finding_id": None,
        "root_finding_id": None,
        "consumer_group": HOSTILE,
    }
    publisher.publish(
        HOSTILE[:20],
        "2026-11-18",
        ownership_drift=[
            drift | {"state": "unowned", "observed_client_ids": [HOSTILE], "expected_client_ids": [HOSTILE]}
        ],
        finding=[problem | subject],
    )
    write_report(publisher.root, folder / "hostile.html", cluster=None, ds=None, group=None)
    failed = {"observed": 7.0, "examples": [HOSTILE], "affected_subjects": []}
    clean = {"observed": 0.0, "examples": [], "affected_subjects": []}
    judge(
        [
            {"expectation_id": name, **(failed if name == "queue_assignment.one_owner" else clean)}
            for name in EXPECTATIONS
        ],
        cluster=HOSTILE,
        ds=date(2026, 11, 18),
        run_id="run-1",
        data_docs_dir=folder / "data_docs",
    )
    return {
        "report": (folder / "report.html").as_uri(),
        "hostile": (folder / "hostile.html").as_uri(),
        "data_docs": (folder / "data_docs" / "index.html").as_uri(),
    }


@pytest.mark.parametrize(("width", "is_dark"), [(1200, False), (1200, True), (360, False)])
def test_pages_load_without_network_fit_the_window_and_are_accessible(
    pages: dict[str, str], tmp_path: Path, width: int, *, is_dark: bool
) -> None:
    with browser(tmp_path / "profile", width=width, is_offline=True, is_dark=is_dark) as window:
        for name, url in pages.items():
            window.open(url)

            assert window.requested_urls() == [url], name
            assert window.console_errors() == [], name
            assert window.serious_violations() == [], name
            assert window.overflow_px() <= 0, name


def test_names_of_a_cluster_are_text(pages: dict[str, str], tmp_path: Path) -> None:
    with browser(tmp_path / "profile", is_offline=True) as window:
        for name in ("hostile", "data_docs"):
            window.open(pages[name])

            assert HOSTILE[:20] in window.driver.find_element("tag name", "body").text
            assert window.driver.find_elements("css selector", "img, script") == []
