"""The ledger on the services of `deploy/`: PostgreSQL, Airflow's four components, Spark's master and workers.

There are two deployments: processes on loopback, which run wherever the project does (`processes`), and the containers of
docker-compose.yml, which need a Docker engine (`containers`). Both run a day and a backfill that loses a worker, and compare
the published tables with those of one machine.
"""
