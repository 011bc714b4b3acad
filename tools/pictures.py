"""Take the pictures of README and docs from the published sample: run `make run` first, then `make pictures`.

The pages load nothing, so Chromium needs no network; it is not part of the set-up. Debian's package is `chromium`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rebalance_ledger.report.day_report import write_report
from rebalance_ledger.warehouse.errors import QueryError

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WAREHOUSE = ROOT / "data" / "warehouse"
_SIZE = "1200,1000"


def main() -> None:
    """Write one PNG for each page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on the PATH: install the package `chromium`.")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.html")
        try:
            day = write_report(str(WAREHOUSE), report, cluster="shop-prod", ds=None, group=None)
        except QueryError as error:
            sys.exit(f"{error}")
        data_docs = WAREHOUSE / "data_docs" / "shop-prod" / day.ds.isoformat() / "index.html"
        for name, page in (("report", report), ("data-docs", data_docs)):
            _take(chromium, Path(folder), page.as_uri(), PICTURES / f"{name}.png")
            sys.stdout.write(f"{PICTURES / name}.png\n")


def _take(chromium: str, folder: Path, page: str, picture: Path) -> None:
    profile = folder / "profile"
    subprocess.run(  # noqa: S603  # an argument list, never a shell
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
            f"--user-data-dir={profile}", f"--window-size={_SIZE}", f"--screenshot={picture}", page,
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )  # fmt: skip


if __name__ == "__main__":
    main()
