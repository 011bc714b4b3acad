"""Landing a sealed export in an object store: every file, and the manifest last, so that what bears one is whole.

Belongs here: copying. Does not belong here: what an export is (`manifest`), and making one (`collect`).
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.manifest import (
    MANIFEST_NAME,
    UNCLEAN_EXPORT,
    ExportError,
    export_directory,
    files_with_secrets,
    load_manifest,
    verify,
)
from rebalance_ledger.exports.redaction import POLICY_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.storage.location import ObjectPath

_FILES_AT_A_TIME: Final = 8


def land(
    directory: Path, exports: ObjectPath, *, replaces: Manifest | None = None
) -> tuple[ObjectPath, Manifest]:
    """Copy a sealed export of a disk to an object store. One that is there already stays as it is, unless it is replaced.

    What a landing that was killed has left is removed first. Two that land different exports of one day at the same time
    leave files of both, which no reader takes for an export: their hashes are not the manifest's. The manifest of an export
    that is replaced goes first, so that no reader sees a part of each.

    Args:
        directory: The export.
        exports: Where the exports of all clusters are.
        replaces: The manifest of the landed export that this one replaces; None if none may be there.

    Returns:
        Where it lies now, and its manifest.

    Raises:
        ExportError: It is not a valid export, it holds values that may be secrets, another one of that cluster and day is
            there, or it cannot be written.
    """
    manifest = verify(directory)
    _refuse_unclean(directory, manifest)
    target = export_directory(exports, manifest.cluster, manifest.ds)
    try:
        if bears_manifest(target):
            landed = load_manifest(target)
            if landed.sha256 == manifest.sha256:
                return target, manifest
            if replaces is None or landed.sha256 != replaces.sha256:
                problem = f"{target} has one, and a sealed export does not change; remove it first if it is not wanted"
                raise ExportError("Another export of that day has landed", [problem])
            (target / MANIFEST_NAME).remove()
        target.remove_all_below()
        with ThreadPoolExecutor(_FILES_AT_A_TIME) as pool:
            copies = [
                pool.submit((target / file.path).write, directory / file.path) for file in manifest.files
            ]
            for copy in copies:
                copy.result()
        (target / MANIFEST_NAME).write(directory / MANIFEST_NAME)
    except OSError as error:
        raise ExportError(
            f"{directory} is not landed", [f"{target}: {' '.join(str(error).split())}"]
        ) from error
    return target, manifest


def _refuse_unclean(directory: Path, manifest: Manifest) -> None:
    """Keep secrets out of a store, where an export cannot be redacted in its place: older releases sealed them too.

    Raises:
        ExportError: The export holds values that may be secrets, or cannot be read.
    """
    redaction = manifest.redaction
    if redaction is not None and redaction.policy_version >= POLICY_VERSION:
        return
    summary = f"{directory} is not landed"
    if files_with_secrets(directory, [file.path for file in manifest.files], summary):
        raise ExportError(summary, [UNCLEAN_EXPORT])


def bring(directory: ObjectPath, manifest: Manifest, target: Path) -> None:
    """Copy a landed export to a disk, its manifest last.

    Args:
        directory: Where it lies in the object store.
        manifest: Its manifest, as `verify` read it.
        target: The folder that it gets; made here.

    Raises:
        ExportError: It cannot be read or written.
    """
    try:
        for path in [*(file.path for file in manifest.files), MANIFEST_NAME]:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            with (directory / path).open() as source, (target / path).open("wb") as copy:
                shutil.copyfileobj(source, copy)
    except OSError as error:
        raise ExportError(f"{directory} is not copied to {target}", [" ".join(str(error).split())]) from error


def bears_manifest(target: ObjectPath) -> bool:
    """Return whether a place in an object store has an export.

    Raises:
        ExportError: It cannot be looked at.
    """
    try:
        return (target / MANIFEST_NAME).is_file()
    except OSError as error:
        raise ExportError(f"{target} cannot be looked at", [" ".join(str(error).split())]) from error
