"""The trigger form of the backfill DAG and the commands that it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from rebalance_ledger.operators.backfill import RUN_PUBLISHED, SKIP_PUBLISHED, BackfillOperator
from rebalance_ledger.operators.ledger import StepRefusedError

if TYPE_CHECKING:
    from tests.dags.conftest import StandIns


def context(last_day: str = "2026-11-18", published_days: str = SKIP_PUBLISHED) -> Any:
    return {
        "params": {"first_day": "2026-11-16", "last_day": last_day, "published_days": published_days},
    }


@pytest.mark.parametrize(
    ("published_days", "option"), [(SKIP_PUBLISHED, ["--skip-published"]), (RUN_PUBLISHED, [])], ids=str
)
def test_the_form_becomes_one_command_for_a_cluster(
    stand_ins: StandIns, published_days: str, option: list[str]
) -> None:
    lines = BackfillOperator(task_id="backfill", cluster="c").execute(context(published_days=published_days))

    places = [
        f"--{place}={stand_ins.environment[f'LEDGER_{place.upper()}']}"
        for place in ("exports", "warehouse", "settings")
    ]
    days = ["--from=2026-11-16", "--to=2026-11-18"]
    assert stand_ins.calls == [["ledger", "backfill", "--cluster=c", *days, *option, *places]]
    assert lines == ["working"]


def test_a_range_that_ends_before_it_begins_starts_nothing(stand_ins: StandIns) -> None:
    with pytest.raises(AirflowFailException, match="The last day, 2026-11-15, is before the first"):
        BackfillOperator(task_id="backfill", cluster="c").execute(context(last_day="2026-11-15"))

    assert stand_ins.calls == []


def test_a_refused_day_fails_the_task_without_retry(stand_ins: StandIns) -> None:
    stand_ins.end({"--cluster=c c": (3, "refused")})

    with pytest.raises(StepRefusedError, match="refused"):
        BackfillOperator(task_id="backfill", cluster="c").execute(context())
