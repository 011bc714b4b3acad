"""Expectation for `gold.quarantined_group`: the share of quarantined groups is limited.

Belongs here: the expectation and its SQL. Does not belong here: the selection of the groups (`quarantine`).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.model import Expectation, Suite, quoted, subject_columns
from expectations.suites.thresholds import MOST_QUARANTINED_RATIO
from rebalance_ledger.tables import QUARANTINED_GROUP

LEFT_OUT_ARE_FEW: Final = Expectation(
    QUARANTINED_GROUP,
    "count_within_limit",
    "The share of quarantined groups is within the limit.",
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
"""Each quarantined group, as its share of all groups."""
