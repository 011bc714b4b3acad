"""Spark application that builds one day of one cluster; Airflow submits it.

`spark-submit spark_jobs/day_job.py --cluster C --ds D --exports DIR --warehouse DIR [--settings FILE] [--beside-landed [--through D]]`

With `--beside-landed` it also stages the same day of other clusters in the settings file whose exports have landed, and the following
days of all clusters up to `--through`. If another application has already staged the requested day, it is not computed again.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    # spark-submit puts this file's folder on the path, not the project's.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from rebalance_ledger.exports.manifest import ExportError
from rebalance_ledger.gate.policy import GATE_NAMES
from rebalance_ledger.progress import LOGGER, heartbeat, logged_to
from rebalance_ledger.result_file import write_result
from rebalance_ledger.settings import ClusterSettings, SettingsError, load_settings
from rebalance_ledger.storage.location import InvalidLocationError, location_of
from rebalance_ledger.warehouse.errors import QueryError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.staging import reserved
from spark_jobs.failures import SparkError, working
from spark_jobs.landed_days import landed_beside
from spark_jobs.session import spark_session
from spark_jobs.side_by_side import SideBySide
from spark_jobs.staged_day import staged_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.side_by_side import DayKey
    from spark_jobs.staged_day import StageResult


def main() -> int:
    """Run the job from the command line; return the exit code (0 done, 2 bad input)."""
    parser = argparse.ArgumentParser(description="Compute and stage one day of one cluster.")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--ds", required=True, type=date.fromisoformat)
    parser.add_argument("--exports", required=True)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--beside-landed", action="store_true")
    parser.add_argument("--through", type=date.fromisoformat)
    try:
        with logged_to(sys.stdout), heartbeat():
            result = _stage(parser.parse_args())
    except (InvalidLocationError, ExportError, SettingsError, QueryError) as error:
        write_result(reason=str(error), is_refusal=True)
        print(error, file=sys.stderr)  # noqa: T201 - the reason, for the log of the task
        return 2
    except SparkError as error:
        write_result(reason=str(error))
        raise
    except Exception as error:
        write_result(reason=f"{type(error).__name__}: {error}")
        raise
    write_result(**result._asdict())
    return 0


def _stage(arguments: argparse.Namespace) -> StageResult:
    """Stage the requested day and, with `--beside-landed`, those of other clusters; return the result of the requested one."""
    clusters = load_settings(arguments.settings, GATE_NAMES).clusters if arguments.settings else {}
    settings = {arguments.cluster: ClusterSettings(), **clusters}
    exports, warehouse = location_of(arguments.exports), Warehouse.at(arguments.warehouse)
    day = (arguments.cluster, arguments.ds)
    with ExitStack() as reservations:
        ahead: list[DayKey] = []
        if arguments.beside_landed:
            # Wait for the requested day before any other day is reserved, so that two applications never wait for each other.
            reservations.enter_context(_reserved_own(warehouse, day))
            staged = staged_result(exports, warehouse, settings[arguments.cluster], day)
            if staged is not None:
                LOGGER.info("Staged by another application, from the same input")
                return staged

            def reserve(other: DayKey) -> bool:
                return reservations.enter_context(reserved(warehouse, *other))

            ahead = landed_beside(exports, warehouse, settings, day, reserve, through=arguments.through)
        spark = spark_session(f"rebalance-ledger {arguments.cluster} {arguments.ds}")
        with closing(SideBySide(spark, exports, warehouse)) as days, working():
            result = days.build(day, settings, ahead)
            for cluster, ds in days.finish_waiting():
                LOGGER.info("%s %s is staged as well", cluster, ds)
        spark.stop()
    return result


@contextmanager
def _reserved_own(warehouse: Warehouse, day: DayKey) -> Iterator[None]:
    """Reserve a day; wait while another application has reserved it."""
    with reserved(warehouse, *day) as is_reserved:
        if is_reserved:
            yield
            return
    LOGGER.info("Another application computes this day; waiting for its end")
    with reserved(warehouse, *day, is_waiting=True):
        yield


if __name__ == "__main__":
    sys.exit(main())
