#!/usr/bin/env bash
# `make demo`: the deployment and a RocketMQ cluster with traffic; today's export, today's ledger on Spark, and the result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LEDGER_SETTINGS_FROM=./deploy/demo.yaml
today="$(date --utc +%F)"
log=/var/lib/airflow/logs/demo.log

compose() { docker compose --profile rocketmq "$@"; }
in_scheduler() { compose exec --no-TTY airflow-scheduler "$@"; }

# One day of one DAG with a configuration (JSON), in the scheduler's container, with its connections and pools; its output is kept in a log.
run_day() {
  echo "$1 of $today …"
  if ! in_scheduler bash -c "airflow dags test $1 $today --conf '$2' >>$log 2>&1"; then
    in_scheduler tail --lines=40 "$log"
    echo "$1 failed; all of its output: docker compose exec airflow-scheduler cat $log" >&2
    exit 1
  fi
}

compose up --detach --wait
run_day cluster_export '{}'
run_day cluster_ledger '{"cluster": "demo", "ds": "'"$today"'"}'

in_scheduler ledger summary
in_scheduler ledger sql "
  SELECT consumer_group, topic, broker_name, queue_id, ownership, owners, reason
  FROM latest.queue_ownership WHERE cluster = 'demo' AND topic NOT LIKE '%RETRY%' ORDER BY ALL"
cat <<END

Where to look:
  Airflow       http://$(compose port airflow-api-server 8080)   user admin, password: docker compose run --rm secrets-init cat /run/ledger-secrets/admin/password
  Spark         http://$(compose port spark-master 8080)
  the tables    docker compose exec airflow-scheduler ledger tables
  the end       make down
END
