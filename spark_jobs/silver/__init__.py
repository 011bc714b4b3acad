"""TODO spark_jobs/silver."""
