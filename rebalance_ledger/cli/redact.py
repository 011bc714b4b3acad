"""CLI command for removing secrets from sealed exports.

Belongs here: the choice of exports, and one sentence for each. Does not belong here: the definition of secrets
(`rebalance_ledger.exports.redaction`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_ledger.exports.manifest import ExportError, export_directory
from rebalance_ledger.exports.redact_sealed import redact_sealed, sealed_exports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

    from rebalance_ledger.exports.redact_sealed import Redacted


def redact_exports(exports: Path, cluster: str, ds: date | None, *, is_applied: bool) -> Iterator[str]:
    """Redact sealed exports, or only count what would be redacted.

    Args:
        exports: The folder of all clusters.
        cluster: Name of the cluster.
        ds: The UTC day; None for all days of the cluster.
        is_applied: Whether anything is written.

    Yields:
        A sentence for each export. It names files and numbers, never a value.

    Raises:
        ExportError: An export is not valid or cannot be replaced; the other days are redacted all the same.
    """
    days = sealed_exports(exports, cluster) if ds is None else [export_directory(exports, cluster, ds)]
    if not days:
        yield f"{cluster} has no sealed export in {exports}."
    problems: list[str] = []
    for directory in days:
        try:
            yield _sentence(redact_sealed(directory, is_applied=is_applied))
        except ExportError as error:
            problems += error.problems if ds is not None else [f"{directory}: {error.problems[0]}"]
    if problems:
        raise ExportError(f"Not all exports of {cluster} are redacted", problems)


def _sentence(redacted: Redacted) -> str:
    if not redacted.value_counts:
        return f"{redacted.directory} has nothing to redact."
    files = ", ".join(f"{path} ({count})" for path, count in sorted(redacted.value_counts.items()))
    count = sum(redacted.value_counts.values())
    values = f"{count} value{'' if count == 1 else 's'}"
    if redacted.manifest is None:
        return f"{redacted.directory}: {values} would be redacted in {files}; nothing is without --apply."
    return (
        f"{redacted.directory}: {values} redacted in {files}; it is sealed again, its manifest names the one that it "
        "replaces."
    )
