"""Which published days were compared with something that has changed since; the rule is the view `stale_day`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from warehouse.errors import NoWarehouseError
from warehouse.query import query

if TYPE_CHECKING:
    from datetime import date

    from warehouse.layout import Warehouse


class StaleDay(NamedTuple):
    """A published day that is out of date.

    Attributes:
        cluster: the cluster's name.
        ds: the day.
        reasons: see the view.
    """

    cluster: str
    ds: date
    reasons: tuple[str, ...]


def stale_days(warehouse: Warehouse, cluster: str) -> tuple[StaleDay, ...]:
    """The days of a cluster that are out of date, the earliest first; none where nothing is published.

    Raises:
        QueryError: the warehouse cannot be read.
    """
    try:
        with query(warehouse.root, "SELECT cluster, ds, reasons FROM stale_day ORDER BY ds") as result:
            days = [StaleDay(name, ds, tuple(reasons)) for name, ds, reasons in result.rows]
    except NoWarehouseError:
        return ()
    return tuple(day for day in days if day.cluster == cluster)
