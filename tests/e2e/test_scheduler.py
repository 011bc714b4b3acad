"""`make airflow`: the scheduler publishes days that are asked for later, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from tests.real_cluster.processes import descendants, have_ended

if TYPE_CHECKING:
    from tests.e2e.conftest import Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_a_backfill_publishes_both_its_dates_and_all_between(project: Project) -> None:
    with project.airflow() as server:
        days = project.backfill("2026-11-16", "2026-11-18")
        assert sorted(days) == [f"backfill__2026-11-{day}T00:00:00+00:00" for day in (16, 17, 18)]
        assert project.api.wait_for(days) == ["success"] * len(days)
        pages = [
            page_behind(project.api.buttons(day, "cluster_day.gate")["Data Docs"]) for day in sorted(days)
        ]
        family = descendants(server.pid)
    assert server.returncode == 0
    assert have_ended(family) is None
    published = project.rows("SELECT ds FROM publication ORDER BY ds")
    assert [row["ds"] for row in published] == ["2026-11-16", "2026-11-17", "2026-11-18"]
    for page, row in zip(pages, published, strict=True):
        assert row["ds"] in page


def page_behind(address: str) -> str:
    """What a browser is shown that is given the address of a file."""
    parts = urlsplit(address)
    assert parts.scheme == "file"
    return Path(unquote(parts.path)).read_text(encoding="utf-8")
