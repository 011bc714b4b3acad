"""Names of clusters, which are names of folders and partition values."""

from __future__ import annotations

import unicodedata

from rebalance_ledger.printable import is_unicode, quoted


def cluster_name_problem(name: str) -> str | None:
    """Return the reason why a cluster's name is not a valid folder name; None if it is valid.

    RocketMQ accepts any text. The ledger uses the name as a folder and a partition value: 1 to 255 bytes of UTF-8, not `.`
    or `..`, without `/`, control characters, or leading or trailing white space.
    """
    if not name:
        return "is empty"
    if not is_unicode(name):
        return f"{name!r} is not Unicode text"
    if len(name.encode()) > 255:  # noqa: PLR2004  # The longest file name of common file systems.
        return f"{quoted(name)} is longer than 255 bytes"
    if name in {".", ".."} or "/" in name:
        return f"{name!r} cannot be the name of a folder"
    has_controls = not name.isprintable() and any(unicodedata.category(each) == "Cc" for each in name)
    if name != name.strip() or has_controls:
        return f"{name!r} has control characters, or white space at an end"
    return None
