"""Wiring for Airflow: schedules, edges, retries, asset events. Nothing here knows a rule about queues."""
