"""Operators of the approval DAG: show the gate's refusal, and record who approved it.

Belongs here: the text on which a person decides, and the command that records the decision. Does not belong here: waiting for the
person (Airflow's `ApprovalOperator`), and the effect of an approval on the gate.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException

from rebalance_ledger.operators.flow import day_of
from rebalance_ledger.operators.ledger import ClusterOperator, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow.sdk import Context

_MOST_EXPECTATIONS: Final = 20
_MOST_EXAMPLES: Final = 3


class RefusalOperator(ClusterOperator):
    """Read why the gate refused a day.

    Args:
        kwargs: See `ClusterOperator`.
    """

    def execute(self, context: Context) -> dict[str, str]:
        """Return the refused computation's `run_id`, and `text`: the failed expectations as Markdown.

        Raises:
            AirflowFailException: The gate did not refuse the newest computation of the day.
            StepRefusedError: The gate has no result for the day.
        """
        ds = day_of(context)
        output = self.run_ledger(
            ["gate", "show"],
            [
                f"--cluster={self.cluster}",
                f"--ds={ds}",
                f"--warehouse={places(('warehouse',))['warehouse']}",
                "--format=json",
            ],
        )
        rows: list[dict[str, Any]] = json.loads("\n".join(output) or "[]")
        failed = [row for row in rows if row["outcome"] == "failed" and row["severity"] == "block"]
        if not failed:
            raise AirflowFailException(
                f"The gate did not refuse {self.cluster} {ds}: there is nothing to approve."
            )
        return {"run_id": failed[0]["run_id"], "text": refusal_text(failed)}


def refusal_text(failed: Sequence[Mapping[str, Any]]) -> str:
    """Return failed expectations as Markdown: the sentence, the number, examples. Names are in code spans."""
    parts = [_paragraph(row) for row in failed[:_MOST_EXPECTATIONS]]
    if len(failed) > len(parts):
        parts.append(f"{len(failed) - len(parts)} more expectations failed; see the Data Docs of the day.")
    return "\n\n".join(parts)


def _paragraph(row: Mapping[str, Any]) -> str:
    number = "not measured" if row["observed"] is None else f"found {row['observed']:g}"
    examples = _code_spans(row["examples"][:_MOST_EXAMPLES])
    return f"**{row['expectation_id']}**: {row['expectation']} ({number})" + (
        f"\n\n{examples}" if examples else ""
    )


def _code_spans(texts: Iterable[str]) -> str:
    """Return texts as a list of code spans, in which Markdown interprets nothing."""
    return "\n".join(f"- `{' '.join(text.replace('`', chr(0x2019)).split())}`" for text in texts)


class ApproveOperator(ClusterOperator):
    """Record a person's approval with `ledger gate approve`.

    Args:
        approved_by: Name of the person, a template.
        reason: The person's reason, a template.
        run_id: The refused computation that the person was shown, a template.
        kwargs: See `ClusterOperator`.
    """

    template_fields: Sequence[str] = (*ClusterOperator.template_fields, "approved_by", "reason", "run_id")

    def __init__(self, *, approved_by: str, reason: str, run_id: str, **kwargs: Any) -> None:  # noqa: ANN401  # Airflow's own arguments
        super().__init__(**kwargs)
        self.approved_by = approved_by
        self.reason = reason
        self.run_id = run_id

    def execute(self, context: Context) -> None:
        """Run the command.

        Raises:
            StepRefusedError: Name or reason is empty, or the day was computed again meanwhile.
        """
        self.run_ledger(
            ["gate", "approve"],
            [
                f"--cluster={self.cluster}",
                f"--ds={day_of(context)}",
                f"--warehouse={places(('warehouse',))['warehouse']}",
                f"--approved-by={self.approved_by}",
                f"--reason={self.reason}",
                f"--run-id={self.run_id}",
            ],
        )
