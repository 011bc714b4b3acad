"""The gate: the verdict on a staged day before publication.

What belongs here: the evaluation of what the suites measured, validation by Great Expectations, the verdict and its pages. What does
not: the expectations and their SQL (`expectations`), computing the tables (`strategies`, `spark_jobs`), moving tables (`warehouse`).
"""

import os

# Great Expectations reads this when it is imported, so this precedes every such import in the package.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
