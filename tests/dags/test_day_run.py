"""One DAG run for one day, with stubs for the programs."""

from __future__ import annotations

import re
from contextlib import closing
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.dags.conftest import ROOT, Runner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.dags.conftest import StandIns


def test_a_published_day_is_announced_with_what_has_changed(
    run_day: Callable[..., dict[str, Any]], stand_ins: StandIns
) -> None:
    outcome = run_day("2026-11-17", cluster="west")

    assert outcome["state"] == "success"
    assert outcome["tasks"]["report"] == ["success", 1]
    facts = {"run_id": "r", "verdict": "passed", "changed_tables": ["gold.finding"]}
    assert outcome["events"] == [["west|2026-11-17", {"cluster": "west", "ds": "2026-11-17", **facts}]]
    published = [call for call in stand_ins.calls if call[:3] == ["ledger", "step", "publish"]]
    assert [call[3:5] for call in published] == [["--cluster=west", "--ds=2026-11-17"]]


def test_a_publication_that_changed_nothing_is_no_event(
    run_day: Callable[..., dict[str, Any]], stand_ins: StandIns
) -> None:
    stand_ins.end({"publish west": (0, {"changed_tables": []})})
    outcome = run_day("2026-11-17", cluster="west")

    assert outcome["state"] == "success"
    assert outcome["tasks"]["announce"][0] == "skipped"
    assert outcome["events"] == []


def test_a_refused_day_is_tried_once_and_publishes_nothing(
    run_day: Callable[..., dict[str, Any]], stand_ins: StandIns
) -> None:
    stand_ins.end({"gate east": (3, "Refused.")})
    outcome = run_day("2026-11-17", cluster="east")

    assert outcome["state"] == "failed"
    # Tried once, because the gate would reject the same input again.
    assert outcome["tasks"]["gate"] == ["failed", 1]
    assert outcome["tasks"]["publish"][0] == "upstream_failed"
    assert outcome["events"] == []
    assert not [call for call in stand_ins.calls if call[2] == "publish"]


def test_a_day_that_is_up_to_date_is_computed_only_if_forced(
    run_day: Callable[..., dict[str, Any]], stand_ins: StandIns
) -> None:
    stand_ins.end({"verify west": (0, {"is_up_to_date": True})})
    assert run_day("2026-11-17", cluster="west")["tasks"]["build"][0] == "skipped"
    assert run_day("2026-11-17", cluster="west", force=True)["tasks"]["build"][0] == "success"


@pytest.mark.e2e
def test_the_callback_in_the_guide_is_called_for_a_refused_day(
    airflow_environment: dict[str, str], stand_ins: StandIns, tmp_path: Path
) -> None:
    guide = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    policy = re.search(r"^ +def task_policy\(task\):\n(?: +.+\n)+", guide, re.MULTILINE)
    assert policy
    output = tmp_path / "output"
    (tmp_path / "airflow_local_settings.py").write_text(
        "def notify(context):\n"
        f"    with open({str(output)!r}, 'a') as file:\n"
        "        print(context['task_instance'].task_id, context['exception'], file=file)\n"
        f"\n{dedent(policy[0])}"
    )
    stand_ins.end({"gate east": (3, "Refused.")})
    # Airflow reads its local settings when it starts.
    with closing(Runner(airflow_environment | {"PYTHONPATH": str(tmp_path)}, tmp_path)) as runner:
        outcome = runner.run("cluster_ledger", "2026-11-17", {"cluster": "east"}, stand_ins.environment)
    assert outcome["state"] == "failed"
    assert output.read_text() == "gate Refused.\n"
