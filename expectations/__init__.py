"""The gate: checks of a staged day before publication.

What belongs here: the evaluation of what the suites measured, validation by Great Expectations, the verdict and its pages. What does
not: the expectations (`suites`), computing the tables (`strategies`, `spark_jobs`), moving tables (`warehouse`).

A new expectation goes into the module of its table in `suites`: one `Expectation` and one `Violation` that selects the violating rows
in SQL. A new table gets a module of its own and a line in `all_suites`.
"""

import os

# Great Expectations reads this when it is imported, so this precedes every such import in the package.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
