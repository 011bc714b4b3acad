"""`make airflow`: the scheduler publishes days that are asked for later, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        family = descendants(server.pid)
    assert server.returncode == 0
    assert have_ended(family) is None
    published = project.rows("SELECT ds FROM publication ORDER BY ds")
    assert [row["ds"] for row in published] == ["2026-11-16", "2026-11-17", "2026-11-18"]
