"""An Airflow plugin that serves the pages of days, Data Docs and reports, with Airflow's own authentication.

Belongs here: addresses and permissions of pages. Does not belong here: the content of a page (`rebalance_ledger.gate.pages.first_page`,
`rebalance_ledger.report`), and its storage (`rebalance_ledger.warehouse.pages`).

Airflow loads plugins in every process, but only the API server serves pages, so FastAPI and Arrow are imported at the first request.
"""

from __future__ import annotations

import html
import logging
import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from airflow.plugins_manager import AirflowPlugin
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from rebalance_ledger.operators.flow import LEDGER_DAG_ID
from rebalance_ledger.operators.object_store import object_store_variables
from rebalance_ledger.printable import visible
from rebalance_ledger.secret_files import secrets_from_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from rebalance_ledger.warehouse.pages import DayPages, PageReader

_log = logging.getLogger(__name__)

PREFIX: Final = "/queue-ledger"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache, private",
}
_TITLE: Final = re.compile(r"<title>(?P<verdict>[^<:]*)")
_PARTS_BELOW: Final = 3


def page_url(page: str) -> str:
    """Return the address of a day's first page or report.

    It is under LEDGER_DATA_DOCS_URL if that is set, and otherwise on this Airflow's API server, where the plugin serves the page.

    Args:
        page: Path or URI of the page, `<warehouse>/data_docs/<cluster>/<ds>/<name>`.
    """
    below = quote("/".join(page.rsplit("/", _PARTS_BELOW)[1:]))
    served_at = os.environ.get("LEDGER_DATA_DOCS_URL")
    return f"{served_at.rstrip('/')}/{below}" if served_at else f"{_airflow_path()}{PREFIX}/{below}"


def _airflow_path() -> str:
    """Return the path of Airflow's own address, empty unless a proxy serves it below one."""
    base_url: str = conf.get("api", "base_url", fallback="")
    return urlsplit(base_url).path.rstrip("/")


class PagesApp:
    """The ASGI application of the pages; its FastAPI application is created at the first request."""

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
    from fastapi.responses import HTMLResponse, RedirectResponse, Response  # noqa: PLC0415

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
        """Redirect a browser to the login page, which redirects back."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(get_auth_manager().get_url_login(next_url=str(request.url)))
        return Response("Not authenticated", status_code=401)

    @app.exception_handler(AirflowFailException)
    @app.exception_handler(OSError)
    def say_unreadable(_: Request, error: Exception) -> Response:
        """Return an error without the reason, which may contain host names and is in the log of the server."""
        _log.error("The pages of days cannot be read: %s", error)
        return Response(
            "The pages cannot be read now; the log of Airflow's API server has the reason.",
            status_code=503,
            headers=_HEADERS,
            media_type="text/plain",
        )

    @app.get("/")
    def days() -> Response:
        """List the days with pages, the newest first."""
        reader = _reader()
        return HTMLResponse(_list_of_days(None if reader is None else reader.days()), headers=_HEADERS)

    @app.get("/{name:path}")
    def page(name: str) -> Response:
        """Return one page."""
        reader = _reader()
        content = None if reader is None else reader.read(name)
        if content is None:
            raise HTTPException(
                404,
                "There is no such page; the day was not computed here, its pages are being written, or retention removed them.",
            )
        return HTMLResponse(content, headers=_HEADERS)

    return app


def _reader() -> PageReader | None:
    """Return the reader of the pages; None if the API server does not know the warehouse."""
    from rebalance_ledger.warehouse.pages import PageReader  # noqa: PLC0415  # see the module's docstring

    warehouse = os.environ.get("LEDGER_WAREHOUSE")
    return PageReader(warehouse, object_store_variables() or secrets_from_files()) if warehouse else None


def _list_of_days(days: Mapping[str, Sequence[DayPages]] | None) -> str:
    if days is None:
        body = (
            "<p>This server has no pages: LEDGER_WAREHOUSE is not set here. "
            "<code>ledger report</code> writes the report of a published day.</p>"
        )
    else:
        body = (
            "".join(_list_of_cluster(cluster, pages) for cluster, pages in days.items())
            or "<p>No day has been judged yet.</p>"
        )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Queue ledger: days</title><style>:root{color-scheme:light dark}body{max-width:50rem;margin:1rem auto;padding:0 1rem;"
        "font:1rem/1.5 system-ui,sans-serif}table{border-collapse:collapse}th,td{padding:.2rem .8rem;border:1px solid #8884;text-align:left}"
        f"</style></head><body><main><h1>Queue ledger: days</h1>{body}</main></body></html>"
    )


def _list_of_cluster(cluster: str, days: Sequence[DayPages]) -> str:
    rows = "".join(map(_row_of_day, days))
    return (
        f"<h2>{html.escape(visible(cluster))}</h2><table><thead><tr><th scope='col'>day</th><th scope='col'>gate</th>"
        f"<th scope='col'>report</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _row_of_day(day: DayPages) -> str:
    address = quote(day.folder)
    gate = report = "none"
    if day.first_page_head is not None:
        match = _TITLE.search(day.first_page_head)
        verdict = html.escape(html.unescape(match["verdict"])) if match else "Data Docs"
        gate = f'<a href="{address}/index.html">{verdict}</a>'
    if day.has_report:
        report = f'<a href="{address}/report.html">report</a>'
    return f"<tr><td>{day.ds}</td><td>{gate}</td><td>{report}</td></tr>"


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
