"""Text from a cluster made safe for terminals and messages."""

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


def quoted(text: str) -> str:
    """Quote a value for a message, truncated to about one line."""
    return repr(text) if len(text) <= 80 else f"{text[:79]!r}…"  # noqa: PLR2004  # About a line.


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded, as one with a lone surrogate cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, for example `1 row` or `2 rows`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
