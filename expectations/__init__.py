"""The gate: what must hold of a staged day before it is published.

What belongs here: expectations as data, the SQL that measures them on the staged tables, thresholds, the evaluation by
Great Expectations. What does not: computing what is judged (`strategies`, `spark_jobs`), moving tables (`warehouse`).

A new expectation goes into the module of its table: one `Expectation` and one `Violation` that says, in SQL, which rows
break it. A new table gets a module of its own and a line in `suites.py`.
"""

import os

# Great Expectations reads it when it is imported, so it stands before every import of it from this package.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
