"""Expectations that compare `gold.finding` with the facts: existence, severity, numbers and evidence of findings.

Belongs here: the comparison of the published findings with those recomputed from facts (`finding_sources`). Does not belong here:
findings on the queues of groups, on topics and on offset files, which `finding.py` and `broadcast_offset.py` compare.
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from typing import Final

from expectations.suites.finding_sources import FACT_TABLES, SOURCES, SUBJECT
from expectations.suites.finding_text import EVIDENCE_IS_OF_ROW
from expectations.suites.model import Expectation, Suite, Violation, quoted, quoted_list, violations_in
from expectations.suites.thresholds import FINDING_KINDS, FINDING_SEVERITIES, MEASURES_OF_KIND
from rebalance_ledger.tables import FINDING
from rebalance_ledger.tables.finding_advice import (
    ADVICE,
    ADVICE_BY_CAUSE,
    ADVICE_OF_CASES,
    DELETE_GROUP,
    KINDS_WITH_ADVICE_BY_CAUSE,
)

COMPLETE: Final = Expectation(
    FINDING,
    "complete",
    "Every problem that other tables show for a group, its members and load, or for routes, "
    "brokers and the export has its finding.",
)
NONE_BESIDES: Final = Expectation(
    FINDING,
    "none_besides",
    "No finding on a group, its members and load, or on routes, brokers and the export lacks "
    "proof in other tables.",
)
NUMBERS_EXACT: Final = Expectation(
    FINDING,
    "numbers_exact",
    "The numbers and lists of these findings equal those that plain SQL computes, and no finding has numbers or lists that its "
    "kind does not have.",
    judges=(
        "queue_count",
        "queue_total_count",
        "client_count",
        "client_total_count",
        "process_count",
        "group_count",
        "topic_count",
        "record_count",
        "max_queues_per_client",
        "mean_queues_per_client",
        "min_queues_per_client",
        "value_count",
        "seen_values",
        "examples",
    ),
)
SEVERITY_OF_FACTS: Final = Expectation(
    FINDING,
    "severity_of_facts",
    "Every root of a kind with several severities is as severe as the facts require, unless a "
    "finding below it is worse.",
)
EVIDENCE_FOLLOWS: Final = Expectation(
    FINDING,
    "evidence_follows",
    "The evidence of every finding is the sentence of its kind, with the numbers and names of its row.",
    judges=("evidence", "examples", "seen_values"),
)

ADVICE_OF_KIND: Final = Expectation(
    FINDING,
    "advice_of_kind",
    "Every advice is one of its kind, or that of the likely cause if the cause has its own.",
    judges=("advice",),
)
DELETION_PROVEN: Final = Expectation(
    FINDING,
    "deletion_proven",
    "Deleting a group is advised exactly where it was also offline on the baseline day, both days have the offsets of "
    "all queues with progress, and none has moved since.",
)

SUITE: Final = Suite(
    "finding_facts",
    (
        COMPLETE,
        NONE_BESIDES,
        NUMBERS_EXACT,
        SEVERITY_OF_FACTS,
        EVIDENCE_FOLLOWS,
        ADVICE_OF_KIND,
        DELETION_PROVEN,
    ),
)

_FACTS: Final = {kind: fact for source in SOURCES for kind, fact in source.facts.items()}

KINDS_RECOMPUTED: Final = tuple(_FACTS)
"""Kinds whose findings this module recomputes completely."""

_KEY: Final = ", ".join((*SUBJECT, "kind", "likely_cause"))
_PUBLISHED_MEASURES: Final = (
    "CASE kind "
    + " ".join(f"WHEN {quoted(kind)} THEN {fact.published}" for kind, fact in _FACTS.items())
    + " END"
)
_IS_ADVICE_OF_KIND: Final = (
    "CASE kind "
    + " ".join(
        f"WHEN {quoted(kind)} THEN advice IN {quoted_list((usual, *ADVICE_OF_CASES.get(kind, ())))}"
        for kind, usual in ADVICE.items()
    )
    + " END"
)
_ADVICE_OF_CAUSE: Final = (
    f"CASE WHEN kind IN {quoted_list(KINDS_WITH_ADVICE_BY_CAUSE)} THEN CASE likely_cause "
    + " ".join(f"WHEN {quoted(cause)} THEN {quoted(advice)}" for cause, advice in ADVICE_BY_CAUSE.items())
    + " END END"
)
_FOREIGN_MEASURES: Final = (
    "array_compact(array("
    + ", ".join(
        f"IF({column.name} IS NOT NULL AND kind IN "
        f"{quoted_list(kind for kind, names in MEASURES_OF_KIND.items() if column.name not in names)}, {quoted(column.name)}, NULL)"
        for column in FINDING.columns
        if column.type in {"int", "bigint", "double", "array<string>"}
    )
    + "))"
)
"""The numbers and lists of a finding that its kind does not have."""
_ALL_FACTS: Final = "\n  UNION ALL\n  ".join(source.query() for source in SOURCES)


def _rank(severity: str) -> str:
    return f"nullif(array_position(array{quoted_list(FINDING_SEVERITIES)}, {severity}), 0)"


COMMON_TABLES: Final = f"""{FACT_TABLES},
finding_of_facts AS (
  {_ALL_FACTS}
),
compared_finding AS (
  SELECT
    {_KEY}, bool_or(is_fact) AS is_fact, bool_or(is_certain) AS is_certain, bool_or(NOT is_fact) AS is_published,
    array_sort(collect_list(measures) FILTER (WHERE is_certain)) AS counted,
    array_sort(collect_list(measures) FILTER (WHERE NOT is_fact)) AS published,
    min(severity) FILTER (WHERE is_fact) AS own_severity, min(severity) FILTER (WHERE NOT is_fact) AS severity,
    bool_or(is_root) AS is_root, bool_or(has_findings_below) AS has_findings_below,
    bool_or(has_left_out_groups) AS has_left_out_groups
  FROM (
    SELECT
      *, TRUE AS is_fact, FALSE AS is_root, FALSE AS has_findings_below, FALSE AS has_left_out_groups
    FROM finding_of_facts
    UNION ALL
    SELECT
      {_KEY}, FALSE AS is_certain, severity, {_PUBLISHED_MEASURES} AS measures, FALSE, parent_finding_id IS NULL, root.id IS NOT NULL,
      has_left_out_groups
    FROM gold_finding
    LEFT JOIN (SELECT DISTINCT root_finding_id AS id FROM gold_finding) AS root ON finding_id = root.id
    CROSS JOIN (SELECT count(*) > 0 AS has_left_out_groups FROM excluded_group)
    WHERE kind IN {quoted_list(KINDS_RECOMPUTED)}
  )
  GROUP BY {_KEY}
),
absent_group AS (
  SELECT consumer_group, TRUE AS is_absent
  FROM silver_consume_progress AS now
  FULL OUTER JOIN (
    SELECT consumer_group, topic, broker_name, queue_id, consumer_offset AS old_offset, last_consumed_at AS old_consumed_at
    FROM baseline_consume_progress
    WHERE consumer_offset IS NOT NULL
  ) USING (consumer_group, topic, broker_name, queue_id)
  JOIN (
    SELECT consumer_group
    FROM baseline_queue_assignment
    GROUP BY consumer_group
    HAVING count_if(reason = 'group_offline') > 0 AND count_if(is_effective) = 0
  ) USING (consumer_group)
  GROUP BY consumer_group
  HAVING count(old_offset) > 0 AND bool_and(IF(old_offset IS NULL, coalesce(consumer_offset <= 0, FALSE),
    consumer_offset <=> old_offset AND NOT coalesce(last_consumed_at > old_consumed_at, FALSE)))
)"""

_SUBJECT: Final = (
    "concat_ws(', ', concat('kind ', kind), concat('group ', consumer_group), concat('topic ', topic), "
    "concat('broker ', broker_name), concat('client ', client_id), concat('cause ', likely_cause))"
)

QUERIES: Final = (
    violations_in(
        "compared_finding",
        (
            Violation(
                COMPLETE,
                "is_certain AND NOT is_published",
                f"concat({_SUBJECT}, ' is missing: ', array_join(counted, ', '))",
            ),
            Violation(
                NONE_BESIDES,
                # The topic may have only quarantined subscribers.
                "NOT is_fact AND NOT (kind = 'route_missing' AND has_left_out_groups)",
                f"concat({_SUBJECT}, ' is not in the facts: ', array_join(published, ', '))",
            ),
            Violation(
                NUMBERS_EXACT,
                "is_certain AND is_published AND size(counted) > 0 AND counted <> published",
                f"concat({_SUBJECT}, ': ', array_join(published, ', '), ', counted ', array_join(counted, ', '))",
            ),
            Violation(
                SEVERITY_OF_FACTS,
                f"is_certain AND is_root AND ({_rank('severity')} > {_rank('own_severity')} "
                f"OR {_rank('severity')} < {_rank('own_severity')} AND NOT has_findings_below)",
                f"concat({_SUBJECT}, ': severity ', severity, ', expected ', own_severity)",
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
    violations_in(
        "gold_finding LEFT JOIN absent_group USING (consumer_group)",
        (
            Violation(
                NUMBERS_EXACT,
                f"size({_FOREIGN_MEASURES}) > 0",
                f"concat({_SUBJECT}, ': a finding of this kind has no ', array_join({_FOREIGN_MEASURES}, ', '))",
            ),
            Violation(
                ADVICE_OF_KIND,
                f"NOT coalesce(advice = {_ADVICE_OF_CAUSE}, {_IS_ADVICE_OF_KIND}, TRUE)",
                f"concat({_SUBJECT}, ': ', coalesce(advice, 'null'))",
            ),
            Violation(
                DELETION_PROVEN,
                f"IF(kind <=> 'group_offline', coalesce(is_absent, FALSE), FALSE) <> (advice <=> {quoted(DELETE_GROUP)}) "
                "OR kind = 'group_offline' AND contains(evidence, ' It was offline on ') <> coalesce(is_absent, FALSE)",
                f"concat({_SUBJECT}, ': ', coalesce(advice, 'null'))",
            ),
            Violation(
                EVIDENCE_FOLLOWS,
                f"kind IN {quoted_list(FINDING_KINDS)} AND NOT {EVIDENCE_IS_OF_ROW}",
                f"concat({_SUBJECT}, ': ', coalesce(evidence, 'null'))",
            ),
        ),
        ("consumer_group", "topic", "broker_name"),
    ),
)
