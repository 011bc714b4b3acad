"""Upload of a sealed export to an object store, manifest last, so that an export with a manifest is complete.

Belongs here: copies. Does not belong here: the format of an export (`manifest`), and writing one (`writer`).
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from rebalance_ledger.exports.manifest import MANIFEST_NAME, ExportError, export_directory, load_manifest
from rebalance_ledger.exports.redaction import POLICY_VERSION
from rebalance_ledger.exports.sealing import UNCLEAN_EXPORT, files_with_secrets, verify

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_ledger.exports.manifest import Manifest
    from rebalance_ledger.storage.location import ObjectPath

_FILES_AT_A_TIME: Final = 8


def land(
    directory: Path, exports: ObjectPath, *, replaces: Manifest | None = None
) -> tuple[ObjectPath, Manifest]:
    """Copy a sealed export from disk to an object store; an identical export there is not written again.

    Leftovers of an interrupted upload are removed first. Concurrent uploads of different exports of one day leave a mix of
    files that no reader accepts, because the hashes do not match the manifest. The manifest of a replaced export is removed
    first, so that no reader sees files of both.

    Args:
        directory: The export.
        exports: Location of the exports of all clusters.
        replaces: Manifest of the landed export to replace; None if no other export may exist.

    Returns:
        The location of the uploaded export, and its manifest.

    Raises:
        ExportError: The export is invalid or holds values that may be secrets, another one of that cluster and day
            exists, or it cannot be written.
    """
    manifest = verify(directory)
    _refuse_unclean(directory, manifest)
    target = export_directory(exports, manifest.cluster, manifest.ds)
    try:
        if bears_manifest(target):
            existing = load_manifest(target)
            if existing.sha256 == manifest.sha256:
                return target, manifest
            if replaces is None or existing.sha256 != replaces.sha256:
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
            f"{directory} is not uploaded", [f"{target}: {' '.join(str(error).split())}"]
        ) from error
    return target, manifest


def _refuse_unclean(directory: Path, manifest: Manifest) -> None:
    """Refuse an export with secrets, because an export in an object store cannot be redacted in place.

    Older releases sealed exports without redaction.

    Raises:
        ExportError: The export holds values that may be secrets, or cannot be read.
    """
    redaction = manifest.redaction
    if redaction is not None and redaction.policy_version >= POLICY_VERSION:
        return
    summary = f"{directory} is not uploaded"
    if files_with_secrets(directory, [file.path for file in manifest.files], summary):
        raise ExportError(summary, [UNCLEAN_EXPORT])


def bring(directory: ObjectPath, manifest: Manifest, target: Path) -> None:
    """Copy a landed export to a disk, its manifest last.

    Args:
        directory: Location of the export in the object store.
        manifest: Manifest that `verify` returned.
        target: Target folder; created here.

    Raises:
        ExportError: The export cannot be read or written.
    """
    try:
        for path in [*(file.path for file in manifest.files), MANIFEST_NAME]:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            with (directory / path).open() as source, (target / path).open("wb") as copy:
                shutil.copyfileobj(source, copy)
    except OSError as error:
        raise ExportError(f"{directory} is not copied to {target}", [" ".join(str(error).split())]) from error


def bears_manifest(target: ObjectPath) -> bool:
    """Return whether a location in an object store has an export.

    Raises:
        ExportError: The object store cannot be read.
    """
    try:
        return (target / MANIFEST_NAME).is_file()
    except OSError as error:
        raise ExportError(f"{target} cannot be looked at", [" ".join(str(error).split())]) from error
