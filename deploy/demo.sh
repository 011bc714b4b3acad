#!/usr/bin/env bash
# `make demo`: the deployment and a RocketMQ cluster with traffic; today's export, today's ledger on Spark, and the result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LEDGER_SETTINGS_FROM=./deploy/demo.yaml
today="$(date --utc +%F)"

compose() { docker compose --profile rocketmq "$@"; }
in_scheduler() { compose exec --no-TTY airflow-scheduler "$@"; }

compose up --detach --wait
echo "cluster_export of $today, and the run of cluster_ledger that its event starts …"
in_scheduler python /opt/rebalance-ledger/deploy/run_dag.py cluster_export '{"ds": "'"$today"'"}' --then cluster_ledger "demo|$today"

in_scheduler ledger summary
in_scheduler ledger sql "
  SELECT consumer_group, topic, broker_name, queue_id, ownership, observed_owners, reason
  FROM latest.queue_ownership WHERE cluster = 'demo' AND topic NOT LIKE '%RETRY%' ORDER BY ALL"
cat <<END

Where to look:
  Airflow       http://$(compose port airflow-api-server 8080)   user admin, password: docker compose run --rm secrets-init cat /run/ledger-secrets/admin/password
  Spark         http://$(compose port spark-master 8080)
  the tables    docker compose exec airflow-scheduler ledger tables
  unknown       docker compose exec airflow-scheduler ledger ask export_errors
  the end       make down
END
