"""The warehouse: its layout, publication of staged days, and reading without a JVM.

What belongs here: staging, commits, snapshots, rollback, maintenance, queries. What does not: computing rows
(`spark_jobs`) and judging them (`expectations`).
"""
