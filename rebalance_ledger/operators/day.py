"""Operator that starts the run of `cluster_ledger` for one cluster and day, and waits until it has ended.

Belongs here: the run to start, and how its outcome becomes that of the task. Does not belong here: the steps of a day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from rebalance_ledger.operators.flow import LEDGER_DAG_ID, day_of, run_id_for

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOOK_INTERVAL_S: Final = 5


class ComputeDayOperator(TriggerDagRunOperator):
    """Start the run of a cluster's day, or start it again, and wait for its end without holding a worker.

    Args:
        cluster: The cluster's name.
        kwargs: Passed on to Airflow.
    """

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(
            trigger_dag_id=LEDGER_DAG_ID,
            reset_dag_run=True,
            wait_for_completion=True,
            fail_when_dag_is_paused=True,
            deferrable=True,
            poke_interval=_LOOK_INTERVAL_S,
            logical_date=None,
            **kwargs,
        )
        self.cluster = cluster

    def execute(self, context: Context) -> None:
        """Trigger the run; Airflow defers the task until the run has ended.

        Raises:
            AirflowFailException: `cluster_ledger` is paused.
        """
        # Set here and not as templates: a cluster's name is text, whatever is in it.
        self.trigger_run_id = run_id_for(context["dag_run"].run_id, self.cluster)
        self.conf = {
            "cluster": self.cluster,
            "ds": day_of(context),
            "force": bool(context["params"].get("force")),
            "stage_through": context["params"].get("stage_through"),
        }
        super().execute(context)

    def execute_complete(self, context: Context, event: tuple[str, dict[str, Any]]) -> None:
        """Pass on how the run has ended.

        Raises:
            AirflowFailException: It failed, after its own retries.
        """
        try:
            super().execute_complete(context, event)
        except AirflowException as error:
            raise AirflowFailException(
                f"{self.cluster} {day_of(context)} failed: see the run {run_id_for(context['dag_run'].run_id, self.cluster)} of {LEDGER_DAG_ID}."
            ) from error
