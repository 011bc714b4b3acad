"""Airflow wiring: schedules, dependencies, retries and asset events. Rules about queues do not belong here."""
