# The environment of every program of this project: sourced by the Makefile and by setup/in-environment, and by
# hand when you want to type `airflow …` or `spark-submit …` yourself:  source conf/environment.sh
#
# Belongs here: where things are and how Airflow is set. Does not: settings of the ledger (conf/ledger.yaml) and
# of Spark (conf/spark/spark-defaults.conf).
# shellcheck shell=bash

LEDGER_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
ledger_local="$LEDGER_ROOT/.local"
export LEDGER_ROOT

# Where a run reads and writes; each may be set by the caller.
export LEDGER_EXPORTS="${LEDGER_EXPORTS:-$LEDGER_ROOT/samples/exports}"
export LEDGER_WAREHOUSE="${LEDGER_WAREHOUSE:-$LEDGER_ROOT/data/warehouse}"
export LEDGER_SETTINGS="${LEDGER_SETTINGS:-$LEDGER_ROOT/conf/ledger.yaml}"

# In the locale C, Java finds no file whose name has other characters than ASCII.
case "${LC_ALL:-}" in C | POSIX) export LC_ALL=C.UTF-8 ;; esac

# Another project's Python or Spark must not leak in.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PATH="$LEDGER_ROOT/.venv/bin:$PATH" # the Spark operator looks for spark-submit here
export PYSPARK_PYTHON="$LEDGER_ROOT/.venv/bin/python"
export PYSPARK_DRIVER_PYTHON="$PYSPARK_PYTHON"
export SPARK_CONF_DIR="$ledger_local/spark-conf"
# Named here because Spark's own search for it breaks at a space in the path.
export SPARK_HOME="$LEDGER_ROOT/.venv/lib/python3.11/site-packages/pyspark"
if [[ -r "$ledger_local/java-home" ]]; then
  JAVA_HOME="$(<"$ledger_local/java-home")"
  export JAVA_HOME
fi

# Airflow: a home inside the checkout, SQLite, our DAGs alone, loopback alone.
export AIRFLOW_HOME="${LEDGER_AIRFLOW_HOME:-$ledger_local/airflow}"
export AIRFLOW__CORE__DAGS_FOLDER="$LEDGER_ROOT/dags"
export AIRFLOW__CORE__LOAD_EXAMPLES=False
export AIRFLOW__CORE__EXECUTOR=LocalExecutor
export AIRFLOW__CORE__PARALLELISM=4
export AIRFLOW_PORT="${AIRFLOW_PORT:-8080}"
export AIRFLOW__API__HOST=127.0.0.1
export AIRFLOW__API__PORT="$AIRFLOW_PORT"
export AIRFLOW__API__BASE_URL="http://127.0.0.1:$AIRFLOW_PORT"
export AIRFLOW__API__WORKERS=1
# No password on a page that only this machine can open; never use this setting on a shared server.
export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=True
# Without another metadata database it is SQLite, where writers wait for each other. Another one has no such arguments, and a process of
# this environment that names one may have inherited them.
ledger_connect_args=rebalance_ledger.pipeline.metadata_database.CONNECT_ARGS
if [[ -z "${AIRFLOW__DATABASE__SQL_ALCHEMY_CONN:-}" ]]; then
  export AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS="$ledger_connect_args"
  export AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC="$ledger_connect_args"
elif [[ "${AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS:-}" == "$ledger_connect_args" ]]; then
  unset AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC
fi
# A task waits for a slow API server, and for one that is started again: two minutes of retries instead of half a minute.
export AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT=60
export AIRFLOW__WORKERS__EXECUTION_API_RETRIES=8
export AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL=300
# The Spark operator's connection: local by default; for a cluster set it to spark://host:7077, and nothing else.
if [[ -z "${AIRFLOW_CONN_SPARK_DEFAULT:-}" ]]; then
  export AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}'
fi

# Loopback bypasses proxies. Usage analytics of the dependencies are off.
export NO_PROXY="127.0.0.1,localhost${NO_PROXY:+,$NO_PROXY}"
export no_proxy="$NO_PROXY"
export GX_ANALYTICS_ENABLED=false
export SCARF_ANALYTICS=false
export DO_NOT_TRACK=1
unset ledger_local
