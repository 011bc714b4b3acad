"""What must hold of `gold.finding`: closed lists, a subject, and words to act on.

What does not belong here: whether a finding is bad news. It is, and it is published.
"""

from __future__ import annotations

from typing import Final

from expectations.model import Breach, Expectation, Suite, breaches_in, quoted_list
from expectations.thresholds import FINDING_KINDS, FINDING_KINDS_WITHOUT_SUBJECT, FINDING_SEVERITIES
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
WORDS_GIVEN: Final = Expectation(FINDING, "words_given", "A finding has evidence and advice.")

SUITE: Final = Suite("finding", (SEVERITY_KNOWN, KIND_KNOWN, SUBJECT_GIVEN, WORDS_GIVEN))

_SUBJECT = (
    "concat_ws(', ', concat('kind ', kind), concat('group ', consumer_group), concat('topic ', topic), "
    "concat('broker ', broker_name), concat('queue ', queue_id), concat('client ', client_id))"
)

BREACH_QUERY: Final = breaches_in(
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
            "trim(coalesce(evidence, '')) = '' OR trim(coalesce(advice, '')) = ''",
            _SUBJECT,
        ),
    ),
)
