"""Operator of the backfill DAG: run `ledger backfill` for a range of days of one cluster.

Belongs here: how the values of the trigger form become a command. Does not belong here: which days run and which are out of date
(`rebalance_ledger.pipeline.backfill`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from airflow.sdk.exceptions import AirflowFailException

from rebalance_ledger.operators.ledger import ClusterOperator, places

if TYPE_CHECKING:
    from airflow.sdk import Context

SKIP_PUBLISHED: Final = "skip those that are up to date"
RUN_PUBLISHED: Final = "compute them again"


class BackfillOperator(ClusterOperator):
    """Run `ledger backfill` for the days of the run's parameters `first_day` and `last_day`.

    Args:
        kwargs: See `ClusterOperator`.
    """

    def execute(self, context: Context) -> list[str]:
        """Return a line for each day: its outcome, and the reason of a failure. They are in the log and in XCom.

        Raises:
            AirflowFailException: The last day is before the first.
            StepRefusedError: A day was refused, or its export is bad; the other days are published.
            StepCrashedError: A day has crashed; the other days are published.
        """
        params = context["params"]
        first, last = params["first_day"], params["last_day"]
        if first > last:
            raise AirflowFailException(
                f"The last day, {last}, is before the first, {first}: trigger again with other days."
            )
        options = [f"--cluster={self.cluster}", f"--from={first}", f"--to={last}"]
        if params["published_days"] == SKIP_PUBLISHED:
            options.append("--skip-published")
        options += [f"--{place}={value}" for place, value in places().items()]
        return self.run_ledger(["backfill"], options)
