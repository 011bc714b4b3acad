"""Atomic writes of single files on a disk: output files that a user names, and the record of notifications.

Belongs here: the draft beside such a file. Does not belong here: tables and stages (`rebalance_ledger.warehouse`), and exports
(`rebalance_ledger.exports.writer`).
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_NAME_CHARACTERS: Final = 50
"""Characters of a file's name in that of its draft, which must not become too long for a file system."""


@contextmanager
def whole_file(output: Path) -> Iterator[Path]:
    """Yield the path to write to: a draft, which replaces the file at the end and is removed after an error.

    A link stays a link, and the file behind it is replaced. A device or a pipe such as `/dev/stdout` is never replaced; it is written
    to directly.

    Raises:
        OSError: The file cannot be written; the error names the file and not the draft.
    """
    target = Path(os.path.realpath(output))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(output))
    # A pipe behind a link of /proc has no name that exists, so the name as given decides.
    if output.exists() and not output.is_file():
        yield output
        return
    # Several processes may write the same file at the same time.
    draft = target.with_name(f".{target.name[:_MOST_NAME_CHARACTERS]}.{os.getpid()}.draft")
    try:
        yield draft
        draft.replace(target)
    except OSError as error:
        if error.filename != str(draft):
            raise
        raise OSError(error.errno, error.strerror, str(output)) from error
    finally:
        with suppress(OSError):  # There is none: it has become the file, or could not be created.
            draft.unlink()
