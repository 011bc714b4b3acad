"""`ledger freshness`: the age of the newest published day of each cluster.

Belongs here: ages, their limit, and output. Does not belong here: published days (`rebalance_ledger.warehouse`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from rebalance_ledger.printable import visible
from rebalance_ledger.settings import load_settings
from rebalance_ledger.warehouse.errors import NoWarehouseError
from rebalance_ledger.warehouse.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rebalance_ledger.warehouse.layout import Warehouse

_AGE: Final = re.compile(r"(?P<number>\d+)(?P<unit>[mhd])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Freshness:
    """The age of a cluster's newest published day.

    Attributes:
        cluster: Name of the cluster.
        ds: Its newest published UTC day; None if there is none.
        age: Time since the beginning of that day; None if there is none.
        is_stale: Whether the age is above the limit. With a limit, always true without a published day, or if the newest one is in the
            future: the age of the data is then unknown.
    """

    cluster: str
    ds: date | None
    age: timedelta | None
    is_stale: bool

    @property
    def line(self) -> str:
        """Return it as one line."""
        name = visible(self.cluster)
        if self.ds is None or self.age is None:
            return f"{name}  never published"
        if self.age < timedelta(0):
            return f"{name}  {self.ds}  in the future: check the clock of its collector"
        return f"{name}  {self.ds}  {_shown(self.age)} old{'  too old' if self.is_stale else ''}"


def _shown(age: timedelta) -> str:
    """Return an age in days and hours from two days on, and below in hours and minutes."""
    hours, minutes = divmod(int(age.total_seconds()) // 60, 60)
    return f"{hours // 24} d {hours % 24} h" if age >= timedelta(days=2) else f"{hours} h {minutes} min"


def age_of(text: str) -> timedelta:
    """Return an age such as `26h`, `90m` or `2d`; the longest one that Python has, if it is longer.

    Raises:
        ValueError: The text has another form.
    """
    match = _AGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an age: write a number of minutes, hours or days, such as 26h")
    try:
        return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})
    except OverflowError:
        return timedelta.max


def freshness(
    warehouse: Warehouse,
    *,
    settings_file: Path | None,
    cluster: str | None,
    max_age: timedelta | None,
    now: datetime | None = None,
) -> Sequence[Freshness]:
    """Return the freshness of each cluster, in the order of their names.

    Args:
        warehouse: The warehouse.
        settings_file: File with the expected clusters; None for the published clusters.
        cluster: Name of the cluster; None for all.
        max_age: The limit; None for none.
        now: Current time; None for that of the clock.

    Raises:
        QueryError: The warehouse cannot be read.
        SettingsError: The settings file is wrong.
    """
    newest: dict[str, date] = {}
    try:
        for day in Snapshot(warehouse.root).days:
            newest[day.cluster] = max(day.ds, newest.get(day.cluster, day.ds))
    except NoWarehouseError:
        pass  # Then every expected cluster was never published.
    if cluster is not None:
        names = [cluster]
    else:
        names = sorted(newest if settings_file is None else load_settings(settings_file).clusters)
    now = now or datetime.now(UTC)
    return [_freshness(name, newest.get(name), max_age, now) for name in names]


def _freshness(cluster: str, ds: date | None, max_age: timedelta | None, now: datetime) -> Freshness:
    if ds is None:
        return Freshness(cluster, None, None, is_stale=max_age is not None)
    age = now - datetime(ds.year, ds.month, ds.day, tzinfo=UTC)
    return Freshness(cluster, ds, age, is_stale=max_age is not None and not timedelta(0) <= age <= max_age)
