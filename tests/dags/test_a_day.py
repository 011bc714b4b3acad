"""A day's run as Airflow sees it, with stand-ins for the programs."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.dags.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.dags.conftest import StandIns


def settings(tmp_path: Path, *clusters: str) -> None:
    (tmp_path / "ledger.yaml").write_text("clusters:\n" + "".join(f"  {name}: {{}}\n" for name in clusters))


def test_each_cluster_of_the_settings_goes_its_own_way(
    run_day: Callable[[str], dict[str, Any]], stand_ins: StandIns, tmp_path: Path
) -> None:
    settings(tmp_path, "east", "west")
    stand_ins.end({"gate east": (3, "Refused.")})
    outcome = run_day("2026-11-17")
    assert outcome["state"] == "failed"
    assert outcome["ds"] == "2026-11-17"
    # Tried once: the same input would be refused again.
    assert outcome["tasks"]["gate east"] == ["failed", 1]
    assert outcome["tasks"]["publish west"] == ["success", 1]
    assert outcome["tasks"]["report west"] == ["success", 1]
    # A task that never ran goes by its number: its cluster's name is rendered when it starts.
    assert outcome["tasks"]["publish 0"][0] == "upstream_failed"
    assert outcome["events"] == [{"cluster": "west", "ds": "2026-11-17"}]
    published = [call for call in stand_ins.calls if call[:3] == ["ledger", "step", "publish"]]
    assert [call[3:5] for call in published] == [["--cluster=west", "--ds=2026-11-17"]]


def test_settings_without_a_cluster_are_an_error_not_a_quiet_success(
    run_day: Callable[[str], dict[str, Any]], stand_ins: StandIns, tmp_path: Path
) -> None:
    settings(tmp_path)
    (tmp_path / "ledger.yaml").write_text("clusters: {}\n")
    outcome = run_day("2026-11-16")
    assert outcome["tasks"]["clusters"] == ["failed", 1]
    assert outcome["state"] == "failed"
    assert stand_ins.calls == []


@pytest.mark.e2e
def test_the_callback_that_the_guide_shows_is_told_of_a_refused_day(
    run_day: Callable[[str], dict[str, Any]], stand_ins: StandIns, tmp_path: Path
) -> None:
    guide = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    policy = re.search(r"^ +def task_policy\(task\):\n(?: +.+\n)+", guide, re.MULTILINE)
    assert policy
    told = tmp_path / "told"
    (tmp_path / "airflow_local_settings.py").write_text(
        "def tell_whom_it_concerns(context):\n"
        f"    with open({str(told)!r}, 'a') as file:\n"
        "        print(context['task_instance'].task_id, context['exception'], file=file)\n"
        f"\n{dedent(policy[0])}"
    )
    stand_ins.environment["PYTHONPATH"] = str(tmp_path)
    settings(tmp_path, "east")
    stand_ins.end({"gate east": (3, "Refused.")})
    assert run_day("2026-11-17")["state"] == "failed"
    assert told.read_text() == "cluster_day.gate Refused.\n"
