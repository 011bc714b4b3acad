"""Redaction of exports that an older release sealed with secrets: `ledger exports redact`.

Belongs here: the atomic replacement of a sealed export by its redacted copy. Does not belong here: the definition of a secret
(`rebalance_ledger.exports.redaction`), and the files that hold one (`rebalance_ledger.exports.redacted_files`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rebalance_ledger.cluster_name import cluster_name_problem
from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, export_day
from rebalance_ledger.exports.redacted_files import unclean_files, write_redacted
from rebalance_ledger.exports.sealing import seal, verify
from rebalance_ledger.exports.writer import partial_folder, sync, sync_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True)
class Redacted:
    """The result of redacting an export.

    Attributes:
        directory: The export.
        value_counts: File -> number of values that may be secrets; empty if the export is clean.
        manifest: Manifest of the redacted export; None if nothing was written.
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
    """Replace a sealed export by its redacted copy, or only count the values to redact.

    The copy is complete and sealed before it replaces the export in one atomic step, so a valid export exists at any time.

    Args:
        directory: The export.
        is_applied: Whether to replace the export.

    Raises:
        ExportError: The export is invalid, another process writes it, or it cannot be replaced.
    """
    manifest = verify(directory)
    paths = [file.path for file in manifest.files]
    try:
        unclean = unclean_files(directory, paths)
        if not is_applied:
            return Redacted(directory, unclean, None)
        with partial_folder(directory) as copy:
            # Clean exports need this block too: a process killed after the exchange leaves the old files in the partial folder.
            if not unclean:
                return Redacted(directory, unclean, None)
            write_redacted(directory, unclean, copy)
            for path in paths:
                _copy(directory / path, copy / path)
            new_manifest = seal(
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
    return Redacted(directory, unclean, new_manifest)


def _copy(source: Path, target: Path) -> None:
    """Hard-link a file into the copy, or copy it if links are not possible; skip redacted files, which already exist."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _exchange(first: Path, second: Path) -> None:
    """Exchange two folders atomically.

    Raises:
        OSError: The operating system or the file system does not support it.
    """
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        raise OSError(errno.ENOSYS, "this system cannot exchange two folders in one step", str(second))
    status = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    if status != 0:
        reason = (
            f"the file system cannot exchange two folders in one step ({os.strerror(ctypes.get_errno())}); copy the "
            "exports to a local disk, redact them there, and copy them back"
        )
        raise OSError(ctypes.get_errno(), reason, str(second))
