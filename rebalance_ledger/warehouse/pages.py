"""The pages of days in a warehouse: the gate's Data Docs, and reports.

    <warehouse>/data_docs/<cluster>/<ds>/index.html     the first page of the Data Docs, written last
    <warehouse>/data_docs/<cluster>/<ds>/…/*.html       the pages that it links
    <warehouse>/data_docs/<cluster>/<ds>/report.html    the report of the published day

Data Docs are rendered in a temporary folder and then copied to a folder or an object store. The first page is removed before the copy and
written after it, so a killed gate leaves no first page that links to pages of another run.

Belongs here: writing, listing and reading pages. Does not belong here: their content (`gate.pages`, `report`), access
(`operators.pages`), and retention (`maintenance`).
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow.fs as pafs

from rebalance_ledger.storage.engines import file_system_of, folder_names
from rebalance_ledger.storage.location import is_object_store
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.records import write_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

_FIRST_PAGE: Final = "index.html"
_REPORT: Final = "report.html"
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOST_DAYS: Final = 60
_MOST_SEGMENT_BYTES: Final = 255
_MOST_PATH_BYTES: Final = 1024
"""Maximum length of a name in an object store."""

_REQUESTS_AT_ONCE: Final = 8
_HEAD_BYTES: Final = 4096


def write_data_docs(warehouse: Warehouse, cluster: str, ds: date, made: Path) -> str:
    """Replace the Data Docs of a day; return the place of their first page.

    Args:
        warehouse: the warehouse.
        cluster: name of the cluster.
        ds: UTC day.
        made: folder with the pages.

    Raises:
        OSError: a page cannot be read or written.
    """
    folder = warehouse.pages(cluster, ds)
    pages = {path.relative_to(made).as_posix(): path.read_bytes() for path in sorted(made.rglob("*.html"))}
    first_page = pages.pop(_FIRST_PAGE)
    file_system, path = file_system_of(folder)
    old = _files(file_system, path)
    if _FIRST_PAGE in old:
        file_system.delete_file(f"{path}/{_FIRST_PAGE}")

    def delete(name: str) -> None:
        file_system.delete_file(f"{path}/{name}")

    def write(name: str) -> None:
        _write(f"{folder}/{name}", pages[name])

    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        list(pool.map(delete, old - pages.keys() - {_FIRST_PAGE, _REPORT}))
        list(pool.map(write, pages))
    place = warehouse.data_docs_index(cluster, ds)
    _write(place, first_page)
    return place


def write_report(warehouse: Warehouse, cluster: str, ds: date, page: str) -> str:
    """Write the report of a day atomically, and return its location.

    Raises:
        OSError: it cannot be written.
    """
    place = f"{warehouse.pages(cluster, ds)}/{_REPORT}"
    _write(place, page.encode())
    return place


@dataclass(frozen=True, slots=True)
class DayPages:
    """The pages of a cluster's day.

    Attributes:
        cluster: name of the cluster.
        ds: UTC day, as text.
        folder: `<cluster>/<ds>`, relative to the folder of all pages.
        first_page_head: beginning of the first page of the Data Docs; None if there is none.
        has_report: whether there is a report.
    """

    cluster: str
    ds: str
    folder: str
    first_page_head: str | None
    has_report: bool


class PageReader:
    """A reader of the pages in a warehouse.

    Args:
        root: path or URI of the warehouse.
        store_variables: `AWS_*` variables that take precedence over those of the environment.

    Raises:
        InvalidLocationError: The root is a URI, but not that of an object store.
    """

    def __init__(self, root: str, store_variables: Mapping[str, str] | None = None) -> None:
        self._root = Warehouse.at(root).data_docs
        self._file_system, self._path = file_system_of(self._root, store_variables)

    def read(self, name: str) -> bytes | None:
        """Return a page; None if there is no page of this name.

        Args:
            name: `<cluster>/<ds>/…/<page>.html`, relative to the folder of all pages; any other text is the name of no page.

        Raises:
            OSError: it cannot be read.
        """
        if not _is_page_name(name) or not self._is_inside(name):
            return None
        path = f"{self._path}/{name}"
        if len(path.encode()) > _MOST_PATH_BYTES or not self._file_system.get_file_info(path).is_file:
            return None
        with self._file_system.open_input_file(path) as file:
            content: bytes = file.read()
        return content

    def days(self) -> dict[str, list[DayPages]]:
        """Return the newest days with pages of each cluster: name -> days, the newest first.

        Raises:
            OSError: the warehouse cannot be read.
        """
        days_of = {
            segment: sorted(
                filter(_DAY.fullmatch, folder_names(self._file_system, f"{self._path}/{segment}")),
                reverse=True,
            )
            for segment in folder_names(self._file_system, self._path)
        }
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return {
                unquote(segment): list(pool.map(self._day, [segment] * _MOST_DAYS, days[:_MOST_DAYS]))
                for segment, days in days_of.items()
            }

    def _day(self, segment: str, ds: str) -> DayPages:
        folder = f"{segment}/{ds}"
        first_page, report = self._file_system.get_file_info(
            [f"{self._path}/{folder}/{name}" for name in (_FIRST_PAGE, _REPORT)]
        )
        head = None
        if first_page.is_file:
            with self._file_system.open_input_file(first_page.path) as file:
                head = file.read(_HEAD_BYTES).decode(errors="replace")
        return DayPages(unquote(segment), ds, folder, head, report.is_file)

    def _is_inside(self, name: str) -> bool:
        """Return whether a name is in the folder of all pages after symbolic links are resolved; object stores have none."""
        if is_object_store(self._root):
            return True
        return Path(self._root, name).resolve().is_relative_to(Path(self._root).resolve())


def _write(place: str, content: bytes) -> None:
    if not is_object_store(place):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
    write_file(place, content)


def _files(file_system: pafs.FileSystem, path: str) -> set[str]:
    """Return the files in a folder by their relative paths."""
    entries = file_system.get_file_info(pafs.FileSelector(path, allow_not_found=True, recursive=True))
    return {entry.path.removeprefix(f"{path}/") for entry in entries if entry.is_file}


def _is_page_name(name: str) -> bool:
    """Return whether a name is that of a page: in the folder of a day, without parts such as `..`."""
    _, _, in_cluster = name.partition("/")
    ds, _, page = in_cluster.partition("/")
    return (
        name.isprintable()
        and _DAY.fullmatch(ds) is not None
        and page.endswith(".html")
        and all(
            segment not in {"", ".", ".."} and len(segment.encode()) <= _MOST_SEGMENT_BYTES
            for segment in name.split("/")
        )
    )
