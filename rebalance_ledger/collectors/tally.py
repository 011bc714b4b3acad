"""How much of a capture failed: counts of questions, by what was asked and of whom.

What belongs here: which answer is a failure of the capture, and the verdict by the thresholds. What does not: asking (`live`)
and what is written of it.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from rebalance_ledger.exports.contract import NOT_ASKED

if TYPE_CHECKING:
    from rebalance_ledger.collectors.admin import Answer, Question
    from rebalance_ledger.settings.model import CaptureQuality

Verdict = Literal["complete", "degraded", "failed"]

PASSED_ON: Final = frozenset({"consumer_running_info", "consumer_status"})
"""Kinds of questions that a broker passes on to a client."""

# RemotingSysResponseCode.SYSTEM_BUSY, ResponseCode.NO_PERMISSION.
SYSTEM_BUSY: Final = 2
_NO_PERMISSION: Final = 16
# REQUEST_CODE_NOT_SUPPORTED, TOPIC_NOT_EXIST, SUBSCRIPTION_GROUP_NOT_EXIST, CONSUMER_NOT_ONLINE, BROADCAST_CONSUMPTION: the
# server knows that there is nothing to answer.
_ANSWERING_CODES: Final = frozenset({3, 17, 26, 206, 213})
_SUCCESS: Final = 0
_REFUSING_EXCEPTIONS: Final = ("AclException", "AuthenticationException", "AuthorizationException")
_MOST_NAMED: Final = 5


def is_refused(answer: Answer) -> bool:
    """Return whether a server answered that the account may not ask this."""
    if answer.payload is not None or answer.response_code is None:
        return False
    return answer.response_code == _NO_PERMISSION or any(
        name in answer.error_message for name in _REFUSING_EXCEPTIONS
    )


def is_failure(kind: str, answer: Answer) -> bool:
    """Return whether a question has failed: nothing is known now that the answer would have said.

    That there is no such topic, group or member, or that a client does not answer its broker, is an answer.
    """
    if answer.payload is not None or answer.error_type == NOT_ASKED:
        return False
    if answer.response_code is None or is_refused(answer) or answer.response_code == SYSTEM_BUSY:
        return True
    if kind in PASSED_ON:
        return False
    return answer.response_code not in {_SUCCESS, *_ANSWERING_CODES}


@dataclass(slots=True)
class Counts:
    """Questions by what they have in common.

    Attributes:
        asked: All.
        failed: Those that failed.
    """

    asked: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, *, has_failed: bool) -> None:
        """Count one question."""
        self.asked[name] += 1
        self.failed[name] += has_failed

    def worst(self) -> dict[str, dict[str, int]]:
        """Return the names with the most failures, as a document."""
        return {
            name: {"asked": self.asked[name], "failed": count}
            for name, count in self.failed.most_common(_MOST_NAMED)
            if count
        }


class Tally:
    """The questions of one export; any thread may count.

    A question to name servers counts once, and fails if none of them answers it: what one of several has not said, the others
    say. A question to a proxy counts only if the settings name the proxies: where they were only found, a proxy may be out of
    reach for good.
    """

    def __init__(self, *, counts_proxies: bool) -> None:
        self._counts_proxies = counts_proxies
        self._lock = threading.Lock()
        self._of_name_servers: dict[tuple[str, str], bool] = {}
        self._by_kind = Counts()
        self._by_server = Counts()
        self._by_group = Counts()
        self._heard_of_group: dict[str, bool] = {}
        self.refused: Counter[str] = Counter()

    def add(self, question: Question, answer: Answer) -> None:
        """Count one question and its last answer."""
        if answer.error_type == NOT_ASKED:
            return
        has_failed = is_failure(question.kind, answer)
        with self._lock:
            if is_refused(answer):
                self.refused[question.kind] += 1
            if question.nameserver:
                subject = (question.kind, question.topic)
                self._of_name_servers[subject] = self._of_name_servers.get(subject, True) and has_failed
                return
            if question.proxy and not self._counts_proxies:
                return
            self._by_kind.add(question.kind, has_failed=has_failed)
            self._by_server.add(question.proxy or question.broker_addr, has_failed=has_failed)
            if question.group:
                self._by_group.add(question.group, has_failed=has_failed)
            if question.kind == "consumer_connection":
                # Missing permissions are reported separately.
                is_heard = not has_failed or is_refused(answer)
                heard = self._heard_of_group.get(question.group, False) or is_heard
                self._heard_of_group[question.group] = heard

    @property
    def asked_count(self) -> int:
        """Questions that were asked."""
        return len(self._of_name_servers) + self._by_kind.asked.total()

    @property
    def failed_count(self) -> int:
        """How many of them failed."""
        return sum(self._of_name_servers.values()) + self._by_kind.failed.total()

    @property
    def unanswered_groups(self) -> list[str]:
        """The groups of which no broker said who their members are, sorted."""
        return sorted(group for group, is_heard in self._heard_of_group.items() if not is_heard)

    def verdict(self, thresholds: CaptureQuality) -> Verdict:
        """Return how good the capture is."""
        share = self.failed_count / max(self.asked_count, 1)
        if share > thresholds.failed_above:
            return "failed"
        return "degraded" if share > thresholds.degraded_above or self.unanswered_groups else "complete"

    def document(self) -> dict[str, Any]:
        """Return the counts, with the worst kinds, servers and groups, for the export."""
        by_kind = Counts(Counter(self._by_kind.asked), Counter(self._by_kind.failed))
        for (kind, _), has_failed in self._of_name_servers.items():
            by_kind.add(kind, has_failed=has_failed)
        return {
            "asked_count": self.asked_count,
            "failed_count": self.failed_count,
            "failed_by_kind": by_kind.worst(),
            "failed_by_server": self._by_server.worst(),
            "failed_by_group": self._by_group.worst(),
            "unanswered_group_count": len(self.unanswered_groups),
        }
