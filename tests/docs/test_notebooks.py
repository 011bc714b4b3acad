"""Every notebook of the documentation runs from its first cell to its last on a published warehouse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.published_sample import publish_shop_days

if TYPE_CHECKING:
    import pytest

NOTEBOOKS = {
    path.stem: path for path in (Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb")
}


def run(path: Path) -> dict[str, Any]:
    """Run the code of a notebook, and return its variables."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], f"{path.name} holds output in {cell['id']}: clear it"
            exec(compile("".join(cell["source"]), f"{path.name}:{cell['id']}", "exec"), variables)  # noqa: S102  # our own
    return variables


def test_queues_over_time_plots_published_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_WAREHOUSE", publish_shop_days(tmp_path / "warehouse"))
    assert set(NOTEBOOKS) == {"queues_over_time"}

    variables = run(NOTEBOOKS["queues_over_time"])

    [states] = variables["states_chart"].to_dict()["datasets"].values()
    assert {row["ownership"] for row in states} >= {"owned", "unowned", "multiple_owners"}
    [problems] = variables["problems_chart"].to_dict()["datasets"].values()
    assert any(row["queue_count"] for row in problems)
    assert list(variables["fairness"]["max_over_mean"]) == sorted(
        variables["fairness"]["max_over_mean"], reverse=True
    )
    assert len(variables["fairness"]) > 0
