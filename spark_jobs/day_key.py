"""The key of a cluster's day.

A plan costs Spark more than the rows of a small day, so one plan computes many days side by side. Every table and intermediate result
has these two columns, and every join, grouping, window and distinct selection is within one day.
"""

from __future__ import annotations

from typing import Final

DAY: Final = ("cluster", "ds")
"""The columns that say of which cluster's day a row is."""
