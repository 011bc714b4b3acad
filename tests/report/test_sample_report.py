"""The report of the sample, computed by Spark: each number equals the result of its SQL, and no section is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.report.day_report import write_report
from tests.support.report_page import ReportPage, compare_tables_with_statements

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.warehouse.layout import Warehouse

pytestmark = pytest.mark.spark


def test_the_report_of_the_sample_has_the_numbers_of_its_sql(
    sample_warehouse: Warehouse, tmp_path: Path
) -> None:
    write_report(sample_warehouse.root, tmp_path / "report.html", cluster="shop-prod", ds=None, group=None)

    page = ReportPage.of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert compare_tables_with_statements(sample_warehouse.root, page) >= 60
    charts = {tag.get("class") for name, tag in page.tags if name == "svg"}
    assert {"bar", "columns", "map", "ring"} <= charts
