"""What must hold of `gold.quarantined_group`: that few groups are left out of a day.

What belongs here: the expectation and how it is measured. What does not: which groups are left out (`quarantine`).
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from typing import Final

from expectations.model import Expectation, Suite, quoted, subject_columns
from expectations.thresholds import MOST_QUARANTINED_RATIO
from rebalance_ledger.tables import QUARANTINED_GROUP

LEFT_OUT_ARE_FEW: Final = Expectation(
    QUARANTINED_GROUP,
    "count_within_limit",
    "The share of the cluster's groups that the day is published without is small.",
    threshold_max=MOST_QUARANTINED_RATIO,
)

SUITE: Final = Suite("quarantined_group", (LEFT_OUT_ARE_FEW,))

QUERY: Final = f"""
SELECT
  {quoted(LEFT_OUT_ARE_FEW.expectation_id)} AS expectation_id,
  1 / (SELECT count(*) FROM (
    SELECT consumer_group FROM silver_group_presence UNION SELECT consumer_group FROM excluded_group
  )) AS amount,
  concat('group ', consumer_group) AS example,
  {subject_columns(("consumer_group",))}
FROM excluded_group"""
"""Each group that is left out, as its part of all groups."""
