"""What must hold of `gold.finding`: closed lists, a subject, evidence, words to act on; and that no drift goes untold.

What does not belong here: whether a finding is bad news. It is, and it is published.
"""

# ruff: noqa: S608 - the SQL is put together from this package's own constants; no name from outside gets in.
from __future__ import annotations

from typing import Final

from expectations.model import Breach, Expectation, Suite, breaches_in, quoted, quoted_list, subject_columns
from expectations.thresholds import (
    DRIFT_FINDING_KINDS,
    FINDING_CAUSES,
    FINDING_KINDS,
    FINDING_KINDS_WITHOUT_SUBJECT,
    FINDING_SEVERITIES,
)
from tables import FINDING

SEVERITY_KNOWN: Final = Expectation(
    FINDING, "severity_known", f"The severity is one of {', '.join(FINDING_SEVERITIES)}."
)
KIND_KNOWN: Final = Expectation(FINDING, "kind_known", "The kind is on the closed list.")
SUBJECT_GIVEN: Final = Expectation(
    FINDING,
    "subject_given",
    "A finding names a group, topic, broker, queue or client, except where a name server or a file is concerned.",
)
WORDS_GIVEN: Final = Expectation(
    FINDING, "words_given", "A finding has evidence, advice, and the page of its kind."
)
EVIDENCE_GIVEN: Final = Expectation(
    FINDING, "evidence_given", "A finding has its evidence in at least one column, and not in words only."
)
CAUSE_KNOWN: Final = Expectation(FINDING, "cause_known", "The likely cause is on the closed list.")
DRIFT_TOLD: Final = Expectation(
    FINDING,
    "drift_told",
    "Each group and topic with queues that are not owned as they should be has a finding of it for each cause, with "
    "their number, and no other has one; an offline group has its own.",
)
DIVERGENCE_TOLD: Final = Expectation(
    FINDING,
    "divergence_told",
    "Each topic whose readable queues or order configuration differ between name servers has a finding, and no other.",
)

_ABSENT: Final = {
    kind: Expectation(FINDING, f"no_{kind}", f"The cluster has no finding {kind}.", severity=None)
    for kind in FINDING_KINDS
}
"""Kind -> that there is none of it: judged only where settings raise the kind, for a finding is no fault of the ledger."""

SUITE: Final = Suite(
    "finding",
    (
        SEVERITY_KNOWN,
        KIND_KNOWN,
        SUBJECT_GIVEN,
        WORDS_GIVEN,
        EVIDENCE_GIVEN,
        CAUSE_KNOWN,
        DRIFT_TOLD,
        DIVERGENCE_TOLD,
    ),
)
ABSENCE_SUITE: Final = Suite("no_finding", tuple(_ABSENT.values()))

_KIND_OF: Final = {expectation.expectation_id: kind for kind, expectation in _ABSENT.items()}


def kind_of(expectation: Expectation) -> str | None:
    """The kind of finding whose absence is expected; None for any other expectation."""
    return _KIND_OF.get(expectation.expectation_id)


_EVIDENCE_COLUMNS = tuple(
    column.name
    for column in FINDING.columns
    if column.name.endswith(("_count", "_per_client")) or column.type == "array<string>"
)
_SUBJECT = (
    "concat_ws(', ', concat('kind ', kind), concat('group ', consumer_group), concat('topic ', topic), "
    "concat('broker ', broker_name), concat('queue ', queue_id), concat('client ', client_id))"
)

_BREACHES = breaches_in(
    "gold_finding",
    (
        Breach(
            SEVERITY_KNOWN,
            f"NOT coalesce(severity, '') IN {quoted_list(FINDING_SEVERITIES)}",
            f"concat({_SUBJECT}, ': severity ', coalesce(severity, 'null'))",
        ),
        Breach(KIND_KNOWN, f"NOT coalesce(kind, '') IN {quoted_list(FINDING_KINDS)}", _SUBJECT),
        Breach(
            SUBJECT_GIVEN,
            "coalesce(consumer_group, topic, broker_name, CAST(queue_id AS STRING), client_id) IS NULL "
            f"AND NOT coalesce(kind, '') IN {quoted_list(FINDING_KINDS_WITHOUT_SUBJECT)}",
            f"concat({_SUBJECT}, ': ', coalesce(evidence, 'null'))",
        ),
        Breach(
            WORDS_GIVEN,
            "trim(coalesce(evidence, '')) = '' OR trim(coalesce(advice, '')) = '' "
            "OR NOT page <=> concat('docs/findings/', kind, '.md')",
            _SUBJECT,
        ),
        Breach(EVIDENCE_GIVEN, " AND ".join(f"{name} IS NULL" for name in _EVIDENCE_COLUMNS), _SUBJECT),
        Breach(
            CAUSE_KNOWN,
            f"NOT coalesce(likely_cause, {quoted(FINDING_CAUSES[0])}) IN {quoted_list(FINDING_CAUSES)}",
            f"concat({_SUBJECT}, ': ', likely_cause)",
        ),
    ),
    ("consumer_group", "topic", "broker_name"),
)

_KIND_OF_STATE = " ".join(
    f"WHEN kind IN {quoted_list(kinds)} THEN {quoted(state)}" for state, kinds in DRIFT_FINDING_KINDS.items()
)

QUERIES: Final = (
    _BREACHES,
    breaches_in(
        f"""(
  SELECT consumer_group, topic, state, likely_cause, sum(queue_count) AS queue_count, sum(told_count) AS told_count
  FROM (
    SELECT consumer_group, topic, state, likely_cause, 1 AS queue_count, 0 AS told_count
    FROM gold_ownership_drift
    WHERE state IN {quoted_list(DRIFT_FINDING_KINDS)} AND NOT likely_cause <=> 'group_offline'
    UNION ALL
    SELECT consumer_group, topic, CASE {_KIND_OF_STATE} END, likely_cause, 0, queue_count
    FROM gold_finding
    WHERE CASE {_KIND_OF_STATE} END IS NOT NULL
  )
  GROUP BY consumer_group, topic, state, likely_cause
)""",
        [
            Breach(
                DRIFT_TOLD,
                "NOT queue_count <=> told_count",
                "concat('group ', consumer_group, ', topic ', topic, ': ', queue_count, ' queues are ', state, ' (', "
                "coalesce(likely_cause, 'no cause'), '), findings tell of ', coalesce(told_count, 0))",
            )
        ],
        ("consumer_group", "topic"),
    ),
    breaches_in(
        """(
  SELECT topic, kind, max(is_there) AS is_there, max(is_told) AS is_told
  FROM (
    SELECT topic, kind, TRUE AS is_there, FALSE AS is_told
    FROM gold_route_divergence
    LATERAL VIEW explode(array_compact(array(
      IF(is_read_affected, 'route_differs', NULL),
      IF(array_contains(differences, 'order_conf'), 'order_conf_differs', NULL)
    ))) AS kind
    WHERE state = 'differs'
    UNION ALL
    SELECT topic, kind, FALSE, TRUE FROM gold_finding WHERE kind IN ('route_differs', 'order_conf_differs')
  )
  GROUP BY topic, kind
)""",
        [
            Breach(
                DIVERGENCE_TOLD,
                "is_there <> is_told",
                "concat('topic ', topic, ': ', kind, IF(is_told, ' is told and not there', ' is there and not told'))",
            )
        ],
        ("topic",),
    ),
)
"""What is seen of each finding, and of the drift and the divergence that findings tell of."""

ABSENCE_QUERY: Final = f"""
SELECT
  concat({quoted(f"{FINDING.name}.no_")}, kind) AS expectation_id, 1D AS amount,
  concat({_SUBJECT}, ': ', coalesce(evidence, 'null')) AS example,
  {subject_columns(("consumer_group", "topic", "broker_name"))}
FROM gold_finding
WHERE kind IN {quoted_list(FINDING_KINDS)}"""
"""Every finding, as a breach of the expectation that there is none of its kind."""
