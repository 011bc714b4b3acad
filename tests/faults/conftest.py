"""Two days of a small cluster, and their expected results without faults."""

from __future__ import annotations

import pytest

from tests.support.fault_injection import Strike
from tests.support.ledger_process import CLUSTER, MONDAY, TUESDAY, Days, Ledger
from tools.simulated_cluster import Layout, Size, generate


@pytest.fixture(scope="session")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    folder = tmp_path_factory.mktemp("faults")
    settings = folder / "ledger.yaml"
    for ds, group_count in ((MONDAY, 8), (TUESDAY, 10)):
        size = Size(broker_count=2, topic_count=5, group_count=group_count, clients_per_group=3)
        generate(Layout(CLUSTER, size), folder / "exports", ds, settings)
    monday = Ledger(folder / "exports", settings, folder / "warehouse")
    monday.run("run", ds=MONDAY)
    judged = monday.copied_to(folder / "judged")
    judged.run("run", strike=Strike("rebalance_ledger.pipeline.steps:publish"), expect=-9)
    tuesday = judged.copied_to(folder / "tuesday")
    tuesday.run("step", "publish")
    return Days(monday, judged, tuesday, (monday.fingerprint(), tuesday.fingerprint()))
