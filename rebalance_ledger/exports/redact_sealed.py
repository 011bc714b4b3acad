"""Redacting exports that were sealed before secrets were redacted: `ledger exports redact`.

Belongs here: replacing a sealed export by its redacted copy, all of it at once. Does not belong here: what is a secret
(`rebalance_ledger.exports.redaction`), and which files hold one (`rebalance_ledger.exports.redacted_files`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.contract import cluster_name_problem
from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, export_day, seal, verify
from rebalance_ledger.exports.redacted_files import unclean_files, write_redacted
from rebalance_ledger.exports.writer import partial_folder, sync, sync_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True)
class Redacted:
    """What there was to redact in an export.

    Attributes:
        directory: The export.
        value_counts: File -> how many of its values may be secrets; empty if the export is clean.
        manifest: The new one; None if nothing was written.
    """

    directory: Path
    value_counts: Mapping[str, int]
    manifest: Manifest | None


def sealed_exports(exports: Path, cluster: str) -> list[Path]:
    """Return the sealed exports of a cluster, the earliest day first.

    Args:
        exports: The folder of all clusters.
        cluster: Name of the cluster.

    Raises:
        ExportError: The cluster's name cannot be a folder's name, or its folder cannot be listed.
    """
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise ExportError("No such exports", [f"the cluster's name {problem}; give the name of one cluster"])
    folder = exports / cluster
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if export_day(path.name) is not None
            and not path.is_symlink()
            and (path / MANIFEST_NAME).is_file()
        )
    except OSError as error:
        raise ExportError(
            f"The exports of {cluster} cannot be listed", [f"{folder}: {error.strerror}"]
        ) from error


def redact_sealed(directory: Path, *, is_applied: bool) -> Redacted:
    """Replace a sealed export by its redacted copy, or only count what would be redacted.

    The copy is complete and sealed before it takes the export's place in one step of the file system, so at any moment
    the old or the new export is there and valid.

    Args:
        directory: The export.
        is_applied: Whether it is replaced.

    Raises:
        ExportError: It is no valid export, another process writes it, or it cannot be replaced.
    """
    manifest = verify(directory)
    paths = [file.path for file in manifest.files]
    try:
        unclean = unclean_files(directory, paths)
        if not is_applied:
            return Redacted(directory, unclean, None)
        with partial_folder(directory) as copy:
            # Also of a clean export: a process that was killed after the exchange has left the old files behind.
            if not unclean:
                return Redacted(directory, unclean, None)
            write_redacted(directory, unclean, copy)
            for path in paths:
                _copy(directory / path, copy / path)
            made = seal(
                copy,
                cluster=manifest.cluster,
                ds=manifest.ds,
                is_redacted=True,
                replaces_sha256=manifest.sha256,
            )
            sync_tree(copy)
            if verify(directory).sha256 != manifest.sha256:
                raise ExportError(f"{directory} is not redacted", ["it has changed meanwhile; do it again"])
            _exchange(copy, directory)
            sync(directory.parent)
    except OSError as error:
        problem = f"{error.filename or directory}: {error.strerror}"
        raise ExportError(f"{directory} is not redacted", [problem]) from error
    return Redacted(directory, unclean, made)


def _copy(source: Path, target: Path) -> None:
    """Give a file a second name in the copy, or copy it where that cannot be; one that is there already is redacted."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _exchange(first: Path, second: Path) -> None:
    """Exchange two folders in one step.

    Raises:
        OSError: The system or the file system cannot do that.
    """
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        raise OSError(errno.ENOSYS, "this system cannot exchange two folders in one step", str(second))
    done = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    if done != 0:
        reason = (
            f"the file system cannot exchange two folders in one step ({os.strerror(ctypes.get_errno())}); copy the "
            "exports to a local disk, redact them there, and copy them back"
        )
        raise OSError(ctypes.get_errno(), reason, str(second))
