"""Operator that submits the Spark application of a day.

Belongs here: the arguments of `spark-submit`, and when the computation is skipped. Does not belong here: the computation
(`spark_jobs`).
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from rebalance_ledger.driver_options import driver_options
from rebalance_ledger.operators.flow import cluster_of, day_of
from rebalance_ledger.operators.ledger import (
    BAD_INPUT,
    StepCrashedError,
    StepRefusedError,
    arguments_for,
    places,
    settings_now,
)
from rebalance_ledger.operators.object_store import object_store_variables
from rebalance_ledger.result_file import RESULT_FILE_VARIABLE, read_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

BUILD_SCRIPT: Final = Path(__file__).resolve().parents[2] / "spark_jobs" / "day_job.py"
SPARK_SUBMIT: Final = "ledger-spark-submit"
"""`spark-submit` without Airflow's variables: see `rebalance_ledger.child_process`."""


def export_size_bytes(cluster: str, ds: str) -> int:
    """Return the size of a landed export by its manifest; 0 if it is in an object store or has no manifest that can be read."""
    exports = places(("exports",))["exports"]
    if "://" in exports:
        return 0
    try:
        manifest = json.loads((Path(exports) / cluster / ds / "manifest.json").read_text(encoding="utf-8"))
        return sum(int(file["size_bytes"]) for file in manifest["files"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0  # The build itself names what is wrong.


class LedgerBuildOperator(SparkSubmitOperator):
    """Submit the day's one Spark application, `spark_jobs/day_job.py`, through the connection `spark_default`.

    Args:
        verify_task_id: The task whose XCom says whether the day is published from this export, settings and code already, or staged.
        cluster: The cluster's name; empty for the run's own cluster.
        kwargs: Passed on to the Spark provider's operator.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "cluster")

    def __init__(
        self,
        *,
        verify_task_id: str,
        cluster: str = "",
        **kwargs: Any,  # noqa: ANN401  # Airflow's own arguments
    ) -> None:
        super().__init__(
            application=str(BUILD_SCRIPT),
            conn_id="spark_default",
            name="ledger-build",
            spark_binary=SPARK_SUBMIT,
            **kwargs,
        )
        self.verify_task_id = verify_task_id
        self.cluster = cluster

    def pre_execute(self, context: Context) -> None:
        """Take the run's cluster if the task has none of its own."""
        super().pre_execute(context)
        self.cluster = self.cluster or cluster_of(context)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]  # the base operator returns nothing
        """Submit the application, wait for it, and return its result: run id and rows by table.

        Raises:
            AirflowSkipException: The day is up to date, and `force` is not set.
            StepRefusedError: The application refused its input; the base operator would try again.
            StepCrashedError: Any other failure.
        """
        ds = day_of(context)
        verified = context["ti"].xcom_pull(task_ids=self.verify_task_id) or {}
        if verified.get("is_up_to_date") and not context["params"].get("force"):
            raise AirflowSkipException(
                f"{self.cluster} {ds} is published from this export, settings and code; trigger a run with `force` to compute it again."
            )
        self.application_args = arguments_for(self.cluster, ds)
        is_forced = bool(context["params"].get("force"))
        # A further try computes its own day alone, whatever the first one died of.
        if settings_now().build.beside_landed and not is_forced and context["ti"].try_number == 1:
            if staged := verified.get("staged"):
                self.log.info("Staged by another application, from the same input")
                return dict(staged)
            self.application_args.append("--beside-landed")
            if through := context["params"].get("stage_through"):
                self.application_args.append(f"--through={through}")
        self.env_vars = object_store_variables()
        self.conf = (self.conf or {}) | driver_options(export_size_bytes(self.cluster, ds))
        with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
            result_file = Path(folder, "result.json")
            # By the environment: the operator's own variables are an error where the driver runs elsewhere.
            os.environ[RESULT_FILE_VARIABLE] = str(result_file)
            try:
                super().execute(context)
            except AirflowException as error:
                raise _reason_of(error, read_result(result_file)) from None
            finally:
                del os.environ[RESULT_FILE_VARIABLE]
            return read_result(result_file)


def _reason_of(error: AirflowException, result: dict[str, Any]) -> AirflowException:
    """Return the exception for a failed application: by its own result, else by the sentence of the Spark provider."""
    reason = result.get("reason")
    if reason is None:
        return StepCrashedError(
            f"spark_jobs/day_job.py ended without a result: {str(error).partition(chr(10))[0]}"
        )
    if result.get("is_refusal"):
        return StepRefusedError(reason, BAD_INPUT)
    return StepCrashedError(f"spark_jobs/day_job.py crashed: {reason}")
