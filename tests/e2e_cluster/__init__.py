"""The ledger on the services of `deploy/`: PostgreSQL, Airflow's four components, Spark's master and workers.

Twice: as processes on loopback, which runs wherever the project does (`processes`), and as the containers of
docker-compose.yml, which wants a Docker engine (`containers`). Both do the same: a day, a backfill that loses a worker,
and the published tables beside those of one machine.
"""
