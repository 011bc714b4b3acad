"""`ledger exports import`: options and output.

Belongs here: the time zone, and notices. Does not belong here: parsing sources (`rebalance_ledger.collectors.offline`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rebalance_ledger.collectors.offline import Sources, convert
from rebalance_ledger.exports.manifest import ExportError, export_directory
from rebalance_ledger.exports.redaction import redact_text
from rebalance_ledger.printable import visible

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from rich.console import Console

    from rebalance_ledger.exports.manifest import Manifest


def import_sources(
    cluster: str,
    ds: date,
    *,
    exports: Path,
    sources: Sources,
    time_zone: str | None,
    console: Console,
) -> tuple[Path, Manifest]:
    """Build an export from mqadmin output and files, and print notices of missing data.

    Args:
        cluster: Name of the cluster in the ledger.
        ds: UTC day of the sources.
        exports: The folder of all clusters.
        sources: The sources, without their time zone.
        time_zone: Name of the zone in which mqadmin printed times.
        console: Console for notices.

    Returns:
        Directory and manifest of the export.

    Raises:
        ExportError: The export cannot be built, or the time zone does not exist.
    """
    directory = export_directory(exports, cluster, ds)
    try:
        zone = None if time_zone is None else ZoneInfo(time_zone)
    except (LookupError, ValueError, OSError):
        problem = f"{time_zone!r} is no time zone; give a name such as UTC or Asia/Shanghai"
        raise ExportError(f"{directory} is not written", [problem]) from None
    made = convert(exports, cluster, ds, replace(sources, zone=zone))
    for notice in made.notices:
        console.print(f"notice: {visible(redact_text(notice))}", soft_wrap=True)
    return directory, made.manifest
