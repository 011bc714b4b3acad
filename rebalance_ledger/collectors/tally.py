"""Counts of questions and failures of a capture, by kind, server and group.

Belongs here: the classification of answers as failures, and the quality by the thresholds. Does not belong here: calls (`live`) and
the lines of the export.
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

FORWARDED_KINDS: Final = frozenset({"consumer_running_info", "consumer_status"})
"""Kinds of questions that a broker forwards to a client."""

# RemotingSysResponseCode.SYSTEM_BUSY, ResponseCode.NO_PERMISSION.
SYSTEM_BUSY: Final = 2
_NO_PERMISSION: Final = 16
# REQUEST_CODE_NOT_SUPPORTED, TOPIC_NOT_EXIST, SUBSCRIPTION_GROUP_NOT_EXIST, CONSUMER_NOT_ONLINE, BROADCAST_CONSUMPTION: the
# server answers that the data does not exist.
_NEGATIVE_ANSWER_CODES: Final = frozenset({3, 17, 26, 206, 213})
_SUCCESS: Final = 0
_REFUSING_EXCEPTIONS: Final = ("AclException", "AuthenticationException", "AuthorizationException")
_MAX_WORST_COUNT: Final = 5


def is_refused(answer: Answer) -> bool:
    """Return whether a server refused the request for lack of permission."""
    if answer.payload is not None or answer.response_code is None:
        return False
    return answer.response_code == _NO_PERMISSION or any(
        name in answer.error_message for name in _REFUSING_EXCEPTIONS
    )


def is_failure(kind: str, answer: Answer) -> bool:
    """Return whether a question has failed, so that its answer is unknown.

    An error is an answer if it states that the topic, group or member does not exist, or that a client does not answer its
    broker.
    """
    if answer.payload is not None or answer.error_type == NOT_ASKED:
        return False
    if answer.response_code is None or is_refused(answer) or answer.response_code == SYSTEM_BUSY:
        return True
    if kind in FORWARDED_KINDS:
        return False
    return answer.response_code not in {_SUCCESS, *_NEGATIVE_ANSWER_CODES}


@dataclass(slots=True)
class Counts:
    """Counts of questions and failures by name.

    Attributes:
        total: All questions.
        failed: Failed questions.
    """

    total: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, *, has_failed: bool) -> None:
        """Count one question."""
        self.total[name] += 1
        self.failed[name] += has_failed

    def worst(self) -> dict[str, dict[str, int]]:
        """Return the names with the most failures, as a JSON document."""
        return {
            name: {"asked": self.total[name], "failed": count}
            for name, count in self.failed.most_common(_MAX_WORST_COUNT)
            if count
        }


class Tally:
    """Counts of the questions of one export; thread-safe.

    A question to several name servers counts once, and fails only if none of them answers it, because their answers are
    redundant. A question to a proxy counts only if the settings name the proxies, because a discovered proxy may be
    unreachable by design.
    """

    def __init__(self, *, counts_proxies: bool) -> None:
        self._counts_proxies = counts_proxies
        self._lock = threading.Lock()
        self._name_server_failures: dict[tuple[str, str], bool] = {}
        self._by_kind = Counts()
        self._by_server = Counts()
        self._by_group = Counts()
        self._has_answer_by_group: dict[str, bool] = {}
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
                self._name_server_failures[subject] = (
                    self._name_server_failures.get(subject, True) and has_failed
                )
                return
            if question.proxy and not self._counts_proxies:
                return
            self._by_kind.add(question.kind, has_failed=has_failed)
            self._by_server.add(question.proxy or question.broker_addr, has_failed=has_failed)
            if question.group:
                self._by_group.add(question.group, has_failed=has_failed)
            if question.kind == "consumer_connection":
                # Missing permissions are reported separately.
                has_answer = not has_failed or is_refused(answer)
                has_answer_so_far = self._has_answer_by_group.get(question.group, False) or has_answer
                self._has_answer_by_group[question.group] = has_answer_so_far

    @property
    def asked_count(self) -> int:
        """Number of questions."""
        return len(self._name_server_failures) + self._by_kind.total.total()

    @property
    def failed_count(self) -> int:
        """Number of failed questions."""
        return sum(self._name_server_failures.values()) + self._by_kind.failed.total()

    @property
    def unanswered_groups(self) -> list[str]:
        """Groups whose members no broker returned, sorted."""
        return sorted(group for group, has_answer in self._has_answer_by_group.items() if not has_answer)

    def verdict(self, thresholds: CaptureQuality) -> Verdict:
        """Return the quality of the capture."""
        failed_share = self.failed_count / max(self.asked_count, 1)
        if failed_share > thresholds.failed_above:
            return "failed"
        return (
            "degraded" if failed_share > thresholds.degraded_above or self.unanswered_groups else "complete"
        )

    def document(self) -> dict[str, Any]:
        """Return the counts, with the worst kinds, servers and groups, for the export."""
        by_kind = Counts(Counter(self._by_kind.total), Counter(self._by_kind.failed))
        for (kind, _), has_failed in self._name_server_failures.items():
            by_kind.add(kind, has_failed=has_failed)
        return {
            "asked_count": self.asked_count,
            "failed_count": self.failed_count,
            "failed_by_kind": by_kind.worst(),
            "failed_by_server": self._by_server.worst(),
            "failed_by_group": self._by_group.worst(),
            "unanswered_group_count": len(self.unanswered_groups),
        }
