"""Suggestions for names that do not exist."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, most: int, cutoff: float) -> str:
    """Return `did you mean a or b?` with the known names most like a name; empty if none is like it.

    Args:
        name: The name that does not exist.
        known: The names that do.
        most: How many to suggest at most.
        cutoff: How alike they must be, 0 to 1; see `difflib.get_close_matches`.
    """
    near = get_close_matches(name, sorted(known), n=most, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}?" if near else ""
