"""The gate: checks of a staged day before publication.

What belongs here: expectations as data, the SQL that measures them on the staged tables, thresholds, and validation by
Great Expectations. What does not: computing the tables (`strategies`, `spark_jobs`), moving tables (`warehouse`).

A new expectation goes into the module of its table: one `Expectation` and one `Violation` that selects the violating rows
in SQL. A new table gets a module of its own and a line in `suites.py`.
"""

import os

# Great Expectations reads this when it is imported, so this precedes every such import in the package.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
