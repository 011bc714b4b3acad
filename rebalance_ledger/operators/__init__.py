"""Airflow operators of this project's DAGs. Outside `dags/`, so that Airflow lists only DAG files there.

What belongs here: how a step is started, and what its exit code means to Airflow. What does not: what a step does
(`rebalance_ledger.pipeline`).
"""
