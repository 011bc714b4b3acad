"""Text from a cluster made safe for a terminal."""

from __future__ import annotations


def visible(text: str, keep: str = "") -> str:
    """Return the text with every character that does not print, but those of `keep`, as Python's escape for it.

    So it holds no control sequence, no line separator, and nothing that turns the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )
