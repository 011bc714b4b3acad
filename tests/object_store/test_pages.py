"""Pages of days in an object store: the gate and the report write them there, and Airflow serves them from there."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from rebalance_ledger.storage.location import ObjectPath
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.maintenance import RetentionPolicy, maintain
from rebalance_ledger.warehouse.pages import PageReader
from tests.support.airflow_home import airflow_home
from tests.support.export_builder import ExportBuilder
from tests.support.published_sample import publish_shop_days
from tests.support.served_pages import PageServer, Request, Served
from tests.support.staging_fixtures import MONDAY, stage_day_of_export

if TYPE_CHECKING:
    from pathlib import Path

    from tests.object_store.conftest import Ledger, Store

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

JUDGED = ("--cluster=shop", f"--ds={MONDAY}")
PUBLISHED = ("--cluster=shop-prod", "--ds=2026-11-17")
KILLED = -9


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return the export of a day with one group."""
    of_day = ExportBuilder("shop", MONDAY)
    of_day.route("orders", {"a": 2})
    of_day.group("g", ["orders"], ["c1"], "a")
    return of_day.seal(tmp_path / "exports")


@pytest.fixture
def warehouse(in_store: str, tmp_path: Path, export: Path) -> Warehouse:
    """Return a warehouse in the store: one day before the gate, and published days."""
    folder = tmp_path / "warehouse"
    stage_day_of_export(Warehouse.at(str(folder)), export)
    publish_shop_days(folder)
    warehouse = Warehouse.at(f"{in_store}/{tmp_path.name}")
    for file in folder.rglob("*"):
        if file.is_file():
            (ObjectPath.of(warehouse.root) / file.relative_to(folder).as_posix()).write(file)
    return warehouse


def served(store: Store, warehouse: Warehouse, folder: Path, *requests: Request, keys: str) -> Served:
    """Return the responses of an Airflow that gets the store from a connection alone, or the keys from files."""
    variables = store.variables
    environment = {
        name: value for name, value in airflow_home(folder / "airflow").items() if not name.startswith("AWS_")
    } | {"LEDGER_WAREHOUSE": warehouse.root}
    if keys == "connection":
        connection = {
            "conn_type": "aws",
            "login": variables["AWS_ACCESS_KEY_ID"],
            "password": variables["AWS_SECRET_ACCESS_KEY"],
            "extra": {"region_name": variables["AWS_REGION"], "endpoint_url": variables["AWS_ENDPOINT_URL"]},
        }
        environment["LEDGER_OBJECT_STORE_CONNECTION"] = "ledger_store"
        environment["AIRFLOW_CONN_LEDGER_STORE"] = json.dumps(connection)
    else:
        environment |= {name: variables[name] for name in ("AWS_REGION", "AWS_ENDPOINT_URL")}
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            (folder / name).write_text(variables[name])
            environment[f"{name}_FILE"] = str(folder / name)
    with closing(PageServer(environment, folder)) as server:
        return server.send(*requests)


@pytest.mark.parametrize("keys", ["connection", "files"])
def test_airflow_serves_the_pages_of_the_store(
    ledger: Ledger, store: Store, warehouse: Warehouse, export: Path, tmp_path: Path, keys: str
) -> None:
    places = (f"--exports={export.parents[1]}", f"--warehouse={warehouse.root}")
    refusal = ledger("step", "gate", *JUDGED, *places, ends_with=3)
    report = ledger("step", "report", *PUBLISHED, f"--warehouse={warehouse.root}")
    shown = ledger("gate", "show", *JUDGED, f"--warehouse={warehouse.root}")
    first_page = f"{warehouse.root}/data_docs/shop/{MONDAY}/index.html"
    assert first_page in refusal
    assert first_page in shown
    assert f"Report: {warehouse.root}/data_docs/shop-prod/2026-11-17/report.html" in report
    # Files beside the pages must not be served.
    ObjectPath.of(f"{warehouse.root}/secret.html").write(b"not a page")
    ObjectPath.of(f"{warehouse.root}/data_docs/shop/{MONDAY}/verdict.json").write(b"{}")

    day = f"/queue-ledger/shop/{MONDAY}"
    answer = served(
        store,
        warehouse,
        tmp_path,
        Request("/queue-ledger/"),
        Request(f"{day}/index.html"),
        Request(f"{day}/suites/queue_assignment.html"),
        Request("/queue-ledger/shop-prod/2026-11-17/report.html"),
        Request(f"{day}/index.html", is_logged_in=False),
        Request(f"{day}/missing.html"),
        Request(f"{day}/verdict.json"),
        Request(f"{day}/..%2F..%2F..%2Fsecret.html"),
        Request("/queue-ledger/..%2Fsecret.html"),
        Request(f"{day}/%2F%2Fsecret.html"),
        keys=keys,
    )

    days, data_docs, linked, report_page, not_logged_in, *refused = answer.answers
    assert [each["status"] for each in (days, data_docs, linked, report_page)] == [200] * 4
    assert f'<a href="shop/{MONDAY}/index.html">Refused</a></td><td>none</td>' in days["text"]
    assert '<td>none</td><td><a href="shop-prod/2026-11-17/report.html">report</a></td>' in days["text"]
    assert "queue_assignment.one_owner" in data_docs["text"]
    assert 'href="suites/queue_assignment.html"' in data_docs["text"]
    assert "shop-prod" in report_page["text"]
    for page in (days, data_docs, linked, report_page):
        assert page["headers"]["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in page["headers"]["content-security-policy"]
    assert "/auth/login" in not_logged_in["headers"]["location"]
    assert [each["status"] for each in refused] == [404] * len(refused)
    for key in (store.variables["AWS_ACCESS_KEY_ID"], store.variables["AWS_SECRET_ACCESS_KEY"]):
        assert key not in answer.output
        assert all(key not in json.dumps(each) for each in answer.answers)


def test_a_gate_killed_while_writing_pages_leaves_no_first_page_and_the_next_gate_writes_all(
    ledger: Ledger, warehouse: Warehouse, export: Path
) -> None:
    gate = ("step", "gate", *JUDGED, f"--exports={export.parents[1]}", f"--warehouse={warehouse.root}")
    reader = PageReader(warehouse.root)
    ledger(*gate, ends_with=3)
    whole = sorted(ObjectPath.of(warehouse.pages("shop", MONDAY)).files())
    assert "index.html" in whole

    ledger(*gate, killed_at="rebalance_ledger.warehouse.pages:write_file", ends_with=KILLED)
    assert reader.read(f"shop/{MONDAY}/index.html") is None
    assert [day.first_page_head for day in reader.days()["shop"]] == [None]

    ledger(*gate, ends_with=3)
    assert sorted(ObjectPath.of(warehouse.pages("shop", MONDAY)).files()) == whole
    assert b"Refused: shop" in (reader.read(f"shop/{MONDAY}/index.html") or b"")


def test_maintenance_removes_pages_past_their_retention(ledger: Ledger, warehouse: Warehouse) -> None:
    ledger("step", "report", *PUBLISHED, f"--warehouse={warehouse.root}")
    reader = PageReader(warehouse.root)
    keep = RetentionPolicy(
        timedelta(days=365),
        timedelta(days=365),
        data_docs=timedelta(days=90),
        separate_days=timedelta(days=365),
    )

    def maintained(age_days: int) -> list[str]:
        now = datetime.now(UTC) + timedelta(days=age_days)
        done = maintain(warehouse, keep, now=now, is_applied=True)
        return [action.place for action in done if action.what == "data_docs"]

    assert maintained(89) == []
    assert reader.read("shop-prod/2026-11-17/report.html") is not None
    assert maintained(91) == [f"{warehouse.root}/data_docs/shop-prod/2026-11-17"]
    assert reader.read("shop-prod/2026-11-17/report.html") is None
