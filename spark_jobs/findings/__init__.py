"""The kinds of findings, one module per subject; `spark_jobs.gold.finding` combines them into `gold.finding`."""
