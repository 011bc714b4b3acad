"""Take the pictures of README and docs from the published sample: run `make run` first, then `make pictures`.

The report and Data Docs are files. The graph is a page of an Airflow server that this program starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_ledger.report.day_report import write_report
from rebalance_ledger.warehouse.errors import QueryError
from tools.browser import Browser, browser

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WAREHOUSE = ROOT / "data" / "warehouse"
_DAG_ID = "cluster_ledger"
_SERVER_END_S = 60
_GRAPH_SIZE_PX = (1400, 480)


def main() -> None:
    """Write one PNG for each page."""
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder, "profile")) as window:
        report = Path(folder, "report.html")
        try:
            day = write_report(str(WAREHOUSE), report, cluster="shop-prod", ds=None, group=None)
        except QueryError as error:
            sys.exit(f"{error}")
        data_docs = WAREHOUSE / "data_docs" / "shop-prod" / day.ds.isoformat() / "index.html"
        for name, page in (("report", report), ("data-docs", data_docs)):
            window.open(page.as_uri())
            window.driver.save_screenshot(PICTURES / f"{name}.png")
        with _airflow() as address:
            _take_graph(window, address)
    sys.stdout.writelines(f"{picture}\n" for picture in sorted(PICTURES.iterdir()))


def _take_graph(window: Browser, address: str) -> None:
    """Take a picture of only the DAG's graph."""
    window.open(address)
    window.wait_for("main, #root div")
    # The page stores the selected view in the browser.
    window.driver.execute_script("localStorage.setItem('default_dag_view', JSON.stringify('graph'))")
    window.resize(*_GRAPH_SIZE_PX)
    window.open(address)
    window.wait_for(".react-flow__edge")
    window.wait_until_still(".react-flow__viewport")
    # Buttons and the overview map would cover tasks.
    window.driver.execute_script(
        "document.querySelectorAll('.react-flow__panel').forEach(panel => panel.remove())"
    )
    window.wait_for(".react-flow").screenshot(str(PICTURES / "airflow-graph.png"))


@contextmanager
def _airflow() -> Iterator[str]:
    """Start Airflow's web server, yield the address of the DAG, and end the server with SIGINT, as Ctrl-C does."""
    server = subprocess.Popen(
        [sys.executable, "-m", "rebalance_ledger.pipeline.airflow_server"],
        cwd=ROOT,
        env={**os.environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = server.stdout.readline() if server.stdout else ""
        address = next((word for word in line.split() if word.startswith("http://")), None)
        if address is None:
            sys.exit("Airflow did not start: see what it wrote above.")
        yield f"{address.partition('/dags')[0]}/dags/{_DAG_ID}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=_SERVER_END_S)


if __name__ == "__main__":
    main()
