"""`DAY`: the two columns that identify a cluster's day in every DataFrame.

Planning takes Spark longer than computing a small day, so one plan computes many days. Every table and intermediate result has these
columns, and every join, grouping, window and distinct selection is within one day.
"""

from __future__ import annotations

from typing import Final

DAY: Final = ("cluster", "ds")
"""The columns that identify the cluster and day of a row."""
