"""The capture: the collector queries a simulated cluster and seals the export.

Belongs here: the clock and the settings of such a capture. Does not belong here: the requests (`rebalance_ledger.collectors.live`).
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import yaml

from rebalance_ledger.collectors.live import collect
from rebalance_ledger.exports.writer import ExportWriter
from rebalance_ledger.settings import CollectSettings
from tools.simulated_cluster.answers import HealthyCluster

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest
    from tools.simulated_cluster.layout import Layout

_BEGIN = time(1, 50, tzinfo=UTC)
_READING = timedelta(milliseconds=1)


def generate(layout: Layout, exports: Path, ds: date, settings_file: Path | None = None) -> Manifest:
    """Collect a simulated cluster and seal the export.

    With one call at a time and a clock that only counts, equal layouts and days give equal bytes.

    Args:
        layout: The cluster.
        exports: The folder of all exports.
        ds: The day.
        settings_file: The file for the group settings that the ledger needs, or None to write no file.

    Raises:
        ExportError: The export already exists or cannot be written.
    """
    begin = datetime.combine(ds, _BEGIN)
    with ExportWriter(exports, layout.cluster, ds) as writer:
        collect(
            HealthyCluster(layout, begin),
            writer,
            layout.nameservers,
            CollectSettings(parallelism=1, calls_per_second=1e9),
            ds=ds,
            progress=_Quiet(),
            now=_Clock(begin),
        )
    if writer.manifest is None:
        raise AssertionError("a writer that ends well has sealed")
    if settings_file is not None:
        clusters = {layout.cluster: layout.settings.model_dump(mode="json", exclude_none=True)}
        settings_file.write_text(yaml.safe_dump({"clusters": clusters}), encoding="utf-8")
    return writer.manifest


class _Clock:
    """A clock that advances by a millisecond at each read."""

    def __init__(self, begin: datetime) -> None:
        self._now = begin

    def __call__(self) -> datetime:
        self._now += _READING
        return self._now


class _Quiet:
    """A progress listener that ignores all events."""

    def begin(self, what: str, total: int) -> None:
        """Receive the name of a stage that starts."""

    def advance(self) -> None:
        """Receive the end of a step."""
