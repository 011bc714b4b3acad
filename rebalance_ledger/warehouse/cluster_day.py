"""`ClusterDay`, the unit in which a warehouse is published, read, replaced and rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import date


class ClusterDay(NamedTuple):
    """One day of one cluster.

    Attributes:
        cluster: Name of the cluster.
        ds: The day.
    """

    cluster: str
    ds: date
