# `make help` lists the targets. Paths are relative, so that a clone's path may contain spaces.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup collector object-store run test unit test-with-spark test-without-spark test-dags lint differential fuzz e2e e2e-ci e2e-ci-airflow e2e-ci-clusters faults e2e-cluster bench airflow replay docs pictures lock audit clean image up down demo

# Use the first interpreter that starts; shims of version managers may exist without an installed version.
PYTHON ?= $(shell for name in python3.11 python3; do $$name -c '' 2>/dev/null && echo $$name && break; done || echo python3)
IN_ENVIRONMENT := setup/in-environment
# The tests of `make test`, by pytest's marks. They run in another time zone than most servers, so that code that reads the machine's zone fails.
QUICK := not e2e and not e2e_cluster and not faults and not differential
TEST := TZ=Asia/Shanghai $(IN_ENVIRONMENT) pytest
# Folders whose tests need no JVM, no Airflow and no whole days.
UNIT := $(addprefix tests/,strategies rocketmq exports collectors settings tables docs)
# The part of `make e2e` that continuous integration runs, in two halves that may run side by side. A checkout runs one Airflow
# at a time, so tests that start it are in one half.
E2E_CI := e2e and not every_release and not nightly
OF_AIRFLOW := $(addprefix tests/,e2e/test_through_airflow.py e2e/test_asset_flow.py e2e/test_collector.py e2e_cluster/test_cluster.py dags/test_pages.py)
# Everything that mypy checks in addition to the packages in pyproject.toml.
TYPED_BESIDE := bench dags deploy setup tools
COMPOSE := docker compose

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install .venv, Java, Delta's jars and Airflow's home; finished steps are skipped
	@$(PYTHON) -m setup.bootstrap

object-store: setup ## the jars with which Spark reads and writes an object store (s3a://)
	@$(PYTHON) -m setup.object_store

collector: setup ## download the jars of the live collector in advance; otherwise its first run does so
	@$(PYTHON) -m setup.collector

run: setup ## the daily ledger of the bundled sample, three days, through Airflow
	@$(IN_ENVIRONMENT) python -m rebalance_ledger.pipeline.sample_run

airflow: setup ## all components of Airflow on this machine, reachable from it only; end them with Ctrl-C
	@$(IN_ENVIRONMENT) python -m rebalance_ledger.pipeline.airflow_server

replay: setup ## while `make airflow` runs: run `cluster_export` and `cluster_ledger` for each landed day, one after the other
	@$(IN_ENVIRONMENT) python -m rebalance_ledger.pipeline.replay

image: ## the one image of the project, for Airflow and for Spark (deploy/Dockerfile)
	@$(COMPOSE) build

up: ## `docker compose up --wait` with an image of this checkout as it is now
	@$(COMPOSE) up --build --wait

down: ## stop the deployment; its volumes stay
	@$(COMPOSE) --profile '*' down

demo: image ## the deployment with a RocketMQ cluster with traffic, whose day is collected, computed and printed
	@deploy/demo.sh

lint: setup ## ruff, mypy (strict) and the direction of imports
	@$(IN_ENVIRONMENT) ruff check
	@$(IN_ENVIRONMENT) ruff format --check
	@$(IN_ENVIRONMENT) mypy
	@$(IN_ENVIRONMENT) mypy $(TYPED_BESIDE)
	@$(IN_ENVIRONMENT) mypy --explicit-package-bases tests
	@$(IN_ENVIRONMENT) lint-imports

# Two targets run at a time, in this order: the long ones start early. Lint uses one core.
test: setup ## lint, and all tests except those marked e2e, e2e_cluster, faults or differential
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line lint test-without-spark test-with-spark test-dags unit

test-with-spark: setup
	@$(TEST) -m "$(QUICK) and spark"

test-without-spark: setup
	@$(TEST) -m "$(QUICK) and not spark" $(addprefix --ignore=,$(UNIT) tests/dags)

test-dags: setup
	@$(TEST) -m "$(QUICK) and not spark" tests/dags

unit: setup ## tests without a JVM, Airflow or whole days: rules, formats, exports, collectors, settings; a minute
	@$(TEST) -q -m "$(QUICK) and not spark" $(UNIT)

differential: setup ## strategies and offset files against RocketMQ's own Java classes, five releases; requires a JDK
	@$(IN_ENVIRONMENT) pytest -m differential tests/differential

fuzz: setup ## a million random offset files against the same classes, and days with altered answers (LEDGER_CASES, LEDGER_CLUSTERS, LEDGER_SEED); an hour
	@LEDGER_CASES=$${LEDGER_CASES:-1000000} $(IN_ENVIRONMENT) pytest -m differential tests/differential/test_java_offset_files.py -k fresh
	@LEDGER_CLUSTERS=$${LEDGER_CLUSTERS:-30} $(IN_ENVIRONMENT) pytest -m faults tests/faults/test_altered_exports.py

e2e: setup ## the whole path: the sample and a backfill through Airflow, real RocketMQ clusters, many days; requires a JDK
	@$(IN_ENVIRONMENT) pytest -m e2e tests

e2e-ci: e2e-ci-airflow e2e-ci-clusters ## the same with real clusters of one release of RocketMQ and without tests marked `nightly`; requires a JDK

e2e-ci-airflow: setup
	@$(IN_ENVIRONMENT) pytest -m "$(E2E_CI)" $(OF_AIRFLOW)

e2e-ci-clusters: setup
	@$(IN_ENVIRONMENT) pytest -m "$(E2E_CI)" tests $(addprefix --ignore=,$(OF_AIRFLOW))

faults: setup ## runs that are killed at any moment, run twice, stopped, out of disk, executors or Airflow's database; an hour
	@$(IN_ENVIRONMENT) pytest -m faults tests/faults

e2e-cluster: setup ## days on Spark workers and in an object store, equal tables; KIND=processes, many_clusters, containers, fresh_clone, demo or object_store for one of them
	@$(IN_ENVIRONMENT) pytest -m "e2e_cluster or e2e" tests/e2e_cluster tests/object_store $(if $(KIND),-k $(KIND))

bench: setup ## hot paths compared with reference operations: table, docs/benchmarks; requires a JDK and a machine without other load
	@$(IN_ENVIRONMENT) python -m bench

docs: setup ## write docs/tables.md and docs/settings.schema.json from the definitions
	@$(IN_ENVIRONMENT) python -m rebalance_ledger.cli.table_reference
	@$(IN_ENVIRONMENT) python -m rebalance_ledger.cli.settings_schema

pictures: setup ## pictures of README and docs from the published sample
	@$(IN_ENVIRONMENT) python -m tools.pictures

lock: setup ## resolve the dependencies again, with hashes
	@.local/uv/bin/uv pip compile --generate-hashes --extra airflow --extra ledger --extra dev --python-version 3.11 --no-header \
	  --upgrade --output-file requirements/lock.txt pyproject.toml
	@.local/uv/bin/uv pip compile --generate-hashes --no-annotate --python-version 3.11 --no-header \
	  --upgrade --output-file requirements/bootstrap.txt requirements/bootstrap.in
	@.local/uv/bin/uv pip compile --generate-hashes --no-annotate --python-version 3.11 --no-header \
	  --upgrade --output-file requirements/audit.txt requirements/audit.in

audit: setup ## known vulnerabilities of locked packages: exit code 1 if there are any, 2 if a package could not be checked
	@$(PYTHON) -m setup.audit

clean: ## remove what set-up and runs have created, except the published tables (data/warehouse)
	@rm -rf .local .venv *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
