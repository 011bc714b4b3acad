"""The kinds of `gold.finding`, by the relation in which they are seen; `spark_jobs.gold.finding` puts them together."""
