"""Text from a cluster made safe for a terminal."""

from __future__ import annotations


def visible(text: str, keep: str = "") -> str:
    """Escape every non-printing character except those in `keep`, as in Python.

    The result has no control sequences, line separators, or characters that change the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )
