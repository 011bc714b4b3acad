"""TODO spark_jobs/assignment."""
