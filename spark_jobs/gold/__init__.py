"""TODO spark_jobs/gold."""
