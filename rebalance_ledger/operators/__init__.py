"""Airflow operators of this project's DAGs. Outside `dags/`, so that Airflow lists only DAG files there.

Belongs here: starting a step, and the meaning of its exit code for Airflow. Does not belong here: the steps
(`rebalance_ledger.pipeline`).
"""
