"""The warehouse: its layout, publication of staged days, and reading without a JVM.

Belongs here: staging, commits, snapshots, rollback, maintenance, queries. Does not belong here: computing rows (`spark_jobs`) and
judging them (`expectations`, `gate`).
"""
