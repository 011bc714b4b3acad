"""The gate: the verdict on a staged day before publication.

Belongs here: the evaluation of the metrics, validation by Great Expectations, the verdict and its pages. Does not belong here: the
expectations and their SQL (`expectations`), computing the tables (`strategies`, `spark_jobs`), publishing them (`warehouse`).
"""

import os

# Great Expectations reads this when it is imported, so this precedes every such import in the package.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
