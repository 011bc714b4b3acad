"""An Airflow plugin that serves the pages of days, Data Docs and reports, with Airflow's own authentication.

What belongs here: addresses of pages, and who may read them. What does not: what is on a page (`expectations.first_page`,
`rebalance_ledger.report`).

Airflow loads plugins in every process, and only the API server serves: so FastAPI is imported with the first request.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from airflow.plugins_manager import AirflowPlugin
from airflow.sdk.configuration import conf

from rebalance_ledger.operators.flow import LEDGER_DAG_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

PREFIX: Final = "/queue-ledger"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache, private",
}
_MOST_DAYS: Final = 60
_TITLE: Final = re.compile(r"<title>(?P<verdict>[^<:]*)")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def page_url(page: Path) -> str:
    """Return the address of a page below `<warehouse>/data_docs`.

    It is below LEDGER_DATA_DOCS_URL if that is set, else on this Airflow's own server, where the plugin serves the page.

    Args:
        page: File of the page.
    """
    below = quote(page.relative_to(data_docs_folder()).as_posix())
    served_at = os.environ.get("LEDGER_DATA_DOCS_URL")
    return f"{served_at.rstrip('/')}/{below}" if served_at else f"{_airflow_path()}{PREFIX}/{below}"


def data_docs_folder() -> Path:
    """Return `<warehouse>/data_docs`.

    Raises:
        KeyError: LEDGER_WAREHOUSE is not set.
    """
    return Path(os.environ["LEDGER_WAREHOUSE"]).resolve() / "data_docs"


def _airflow_path() -> str:
    """Return the path of Airflow's own address, empty unless a proxy serves it below one."""
    base_url: str = conf.get("api", "base_url", fallback="")
    return urlsplit(base_url).path.rstrip("/")


class PagesApp:
    """The ASGI application of the pages; FastAPI behind it is made with the first request."""

    def __init__(self) -> None:
        self._app: FastAPI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._app is None:
            self._app = _pages_app()
        await self._app(scope, receive, send)


def _pages_app() -> FastAPI:
    from airflow.api_fastapi.app import get_auth_manager  # noqa: PLC0415  # see the module's docstring
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity  # noqa: PLC0415
    from airflow.api_fastapi.core_api.security import requires_access_dag  # noqa: PLC0415
    from fastapi import Depends, FastAPI, HTTPException, Request  # noqa: PLC0415
    from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response  # noqa: PLC0415

    # Users who may see the runs of the DAG may see their results.
    may_read = requires_access_dag("GET", DagAccessEntity.RUN, LEDGER_DAG_ID)
    app = FastAPI(
        title="Pages of rebalance-ledger",
        dependencies=[Depends(may_read)],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )

    @app.exception_handler(401)
    def log_in(request: Request, _: Exception) -> Response:
        """Send a browser to the login page, and from there back."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(get_auth_manager().get_url_login(next_url=str(request.url)))
        return Response("Not authenticated", status_code=401)

    @app.get("/")
    def days() -> Response:
        """List the days with pages, the newest first."""
        return HTMLResponse(_list_of_days(_folder_or_none()), headers=_HEADERS)

    @app.get("/{name:path}")
    def page(name: str) -> Response:
        """Return one page."""
        folder = _folder_or_none()
        file = None if folder is None else (folder / name).resolve()
        if file is None or folder not in file.parents or file.suffix != ".html" or not file.is_file():
            raise HTTPException(
                404,
                "There is no such page; the day was not computed here, or its pages were removed by retention.",
            )
        return FileResponse(file, headers=_HEADERS, media_type="text/html")

    return app


def _folder_or_none() -> Path | None:
    """Return the folder of the pages; None if the API server does not know it, or the warehouse is in an object store."""
    warehouse = os.environ.get("LEDGER_WAREHOUSE", "")
    return None if not warehouse or "://" in warehouse else data_docs_folder()


def _list_of_days(folder: Path | None) -> str:
    if folder is None:
        body = (
            "<p>This server has no pages: LEDGER_WAREHOUSE is not set here, or it names an object store, which has none. "
            "<code>ledger report</code> writes the report of a published day.</p>"
        )
    else:
        clusters = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        body = (
            "".join(_list_of_cluster(cluster) for cluster in clusters) or "<p>No day has been judged yet.</p>"
        )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Queue ledger: days</title><style>:root{color-scheme:light dark}body{max-width:50rem;margin:1rem auto;padding:0 1rem;"
        "font:1rem/1.5 system-ui,sans-serif}table{border-collapse:collapse}th,td{padding:.2rem .8rem;border:1px solid #8884;text-align:left}"
        f"</style></head><body><main><h1>Queue ledger: days</h1>{body}</main></body></html>"
    )


def _list_of_cluster(cluster: Path) -> str:
    rows = "".join(_row_of_day(day) for day in _newest_days(cluster))
    return (
        f"<h2>{html.escape(unquote(cluster.name))}</h2><table><thead><tr><th scope='col'>day</th><th scope='col'>gate</th>"
        f"<th scope='col'>report</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _newest_days(cluster: Path) -> Iterator[Path]:
    days = sorted((path for path in cluster.iterdir() if _DAY.fullmatch(path.name)), reverse=True)
    yield from days[:_MOST_DAYS]


def _row_of_day(day: Path) -> str:
    address = quote(f"{day.parent.name}/{day.name}")
    gate = report = "none"
    if (day / "index.html").is_file():
        match = _TITLE.search((day / "index.html").read_text(encoding="utf-8")[:4096])
        verdict = html.escape(html.unescape(match["verdict"])) if match else "Data Docs"
        gate = f'<a href="{address}/index.html">{verdict}</a>'
    if (day / "report.html").is_file():
        report = f'<a href="{address}/report.html">report</a>'
    return f"<tr><td>{day.name}</td><td>{gate}</td><td>{report}</td></tr>"


class QueueLedgerPages(AirflowPlugin):
    """Airflow's entry: the application, an item in the navigation, and a tab on the pages of each DAG."""

    name = "queue_ledger_pages"
    fastapi_apps = [  # noqa: RUF012  # Airflow's own attribute
        {"name": "Queue ledger pages", "app": PagesApp(), "url_prefix": PREFIX}
    ]
    external_views = [  # noqa: RUF012
        {"name": "Queue ledger", "href": f"{PREFIX}/", "destination": "nav", "category": "browse"},
        {
            "name": "Queue ledger verdicts",
            "href": f"{PREFIX}/",
            "destination": "dag",
            "url_route": "queue-ledger-verdicts",
        },
    ]
