"""A capture queries all servers and clients within the rate limits, and records every failure."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rebalance_ledger.collectors import live
from rebalance_ledger.collectors.admin import Answer, Question
from rebalance_ledger.collectors.errors import AdminClientError, CollectError, UnreachableError
from rebalance_ledger.collectors.live import NO_ANSWER, Collected, collect
from rebalance_ledger.exports.contract import NOT_ASKED, EnvelopeError
from rebalance_ledger.settings import CollectSettings
from tests.support.simulated_cluster import (
    BROKER_ERROR,
    NO_ANSWER_IN_TIME,
    NO_CONNECTION,
    Lines,
    SimulatedCluster,
    Steps,
    connections,
    refused,
    runtime_info,
    silence,
    small_cluster,
    success,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NAME_SERVERS = ["ns-1:9876", "ns-2:9876"]
A, B = "10.0.0.1:10911", "10.0.0.2:10911"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_PAUSE_S", 0.001)


class Run:
    """One capture of a simulated cluster."""

    def __init__(
        self, cluster: SimulatedCluster, now: Callable[[], datetime] = lambda: NOON, **settings: Any
    ) -> None:
        self.lines = Lines()
        self.steps = Steps()
        self.collected: Collected = collect(
            cluster,
            self.lines,
            NAME_SERVERS,
            CollectSettings(**{"calls_per_second": 1e6, **settings}),
            ds=date(2026, 11, 16),
            progress=self.steps,
            now=now,
        )


def answering(rule: Callable[[Question], Answer | None]) -> SimulatedCluster:
    cluster = small_cluster()
    cluster.instead = rule
    return cluster


def test_each_server_is_asked_separately_and_each_answer_is_a_line() -> None:
    run = Run(small_cluster())
    assert run.lines.counts() == {
        "nameserver_topic_list": 2,
        "nameserver_cluster_info": 2,
        "nameserver_route": 2 * 3,
        "broker_runtime_info": 2,
        "broker_topic_config": 2,
        "broker_subscription_group": 2,
        "broker_config": 2,
        "broker_message_request_mode": 2,
        "broker_producer_table": 2,
        "broker_topic_stats": 2 * 3,
        "consumer_connection": 2 * 2,
        "consumer_running_info": 2,
        "consume_stats": 2 * 2,
    }
    assert run.collected.line_counts == run.lines.counts()
    assert sum(run.collected.error_counts.values()) == 2  # a group without members, on two brokers
    assert all(done == total for done, total in run.steps.parts.values())
    assert not run.lines.events


def test_a_payload_is_written_unchanged() -> None:
    odd = ' {0:"caf\u00e9",\n"x":"\\ud83d\\ude00"}\t'
    cluster = answering(
        lambda question: (
            Answer(payload=odd.encode(), response_code=0)
            if question.kind == "consumer_running_info"
            else None
        )
    )
    lines = Run(cluster).lines.of("consumer_running_info", client_id="10.1.0.1@one")
    assert lines == [(odd, None, None)]


def test_all_name_servers_are_asked_for_a_topic_that_one_of_them_knows() -> None:
    cluster = small_cluster()
    cluster.topics["ns-2:9876"].append("only-there")
    lines = Run(cluster).lines
    assert lines.of("nameserver_route", nameserver="ns-2:9876", topic="only-there")[0][0] is not None
    ((payload, _, message),) = lines.of("nameserver_route", nameserver="ns-1:9876", topic="only-there")
    assert payload is None
    assert message is not None
    assert message.startswith("CODE: 17")


def test_a_topic_that_is_only_subscribed_to_is_requested_so_that_a_missing_route_is_recorded() -> None:
    cluster = small_cluster()
    cluster.subscribed = ["orders", "vanished"]
    lines = Run(cluster).lines
    assert lines.counts()["nameserver_route"] == 2 * (3 + 1)
    for nameserver in ("ns-1:9876", "ns-2:9876"):
        ((payload, _, message),) = lines.of("nameserver_route", nameserver=nameserver, topic="vanished")
        assert payload is None
        assert message is not None
        assert message.startswith("CODE: 17")


def test_members_listed_by_any_broker_are_asked_once() -> None:
    cluster = small_cluster()
    cluster.members["biller"] = {"both@x": [A, B], "ghost@x": [B]}
    cluster.instead = lambda question: (
        connections(["both@x", "both@x"], ["orders"])
        if (question.kind, question.address) == ("consumer_connection", A)
        else None
    )
    cluster.groups = {A: ["biller"], B: []}
    lines = Run(cluster).lines
    assert lines.counts()["consumer_running_info"] == 2
    assert len(lines.of("consumer_running_info", client_id="ghost@x", broker_addr=B)) == 1


def test_a_member_that_one_broker_cannot_reach_is_asked_through_another() -> None:
    cluster = answering(
        lambda question: (
            refused(1, "The Consumer <biller> <…> not online")
            if question.kind == "consumer_running_info" and question.broker_addr == A
            else None
        )
    )
    run = Run(cluster)
    assert [line[0] is None for line in run.lines.of("consumer_running_info")] == [False, False]
    assert len(cluster.calls_of("consumer_running_info", broker_addr=B)) == 2


def silent_at_first(failure: Answer, *, times: int = 1) -> SimulatedCluster:
    """Return the small cluster in which one of two members fails to answer so often, and each answer has its number."""
    asked: Counter[str] = Counter()

    def answer(question: Question) -> Answer | None:
        if question.kind != "consumer_running_info":
            return None
        asked[question.client_id] += 1
        if question.client_id == "10.1.0.1@one" and asked[question.client_id] <= times:
            return failure
        return success({"answer": asked[question.client_id]})

    return answering(answer)


@pytest.mark.parametrize(
    ("failure", "times"),
    [
        pytest.param(refused(207, "consumer <biller> <…> Timeout"), 1, id="the client is too slow"),
        pytest.param(silence(NO_ANSWER_IN_TIME), 2, id="both brokers are too slow"),
        pytest.param(refused(1, "The Consumer <biller> <…> not online"), 2, id="no broker reaches it"),
    ],
)
def test_a_group_with_a_member_that_does_not_answer_is_asked_a_second_time_as_a_whole(
    failure: Answer, times: int
) -> None:
    cluster = silent_at_first(failure, times=times)
    run = Run(cluster)
    (of_silent,) = run.lines.of("consumer_running_info", client_id="10.1.0.1@one")
    assert of_silent == (f'{{"answer": {times + 1}}}', None, None)
    # Members of one group are asked close together: the other member's first answer does not stand beside it.
    (of_other,) = run.lines.of("consumer_running_info", client_id="10.1.0.2@two")
    assert of_other == ('{"answer": 2}', None, None)
    assert len(cluster.calls_of("consumer_connection", group="biller")) == 2 * 2
    assert len(run.lines.of("consumer_connection", group="biller")) == 2
    assert run.collected.line_counts == run.lines.counts()


def test_a_member_that_does_not_answer_twice_is_a_line_with_its_error() -> None:
    cluster = silent_at_first(refused(207, "consumer <biller> <…> Timeout"), times=9)
    run = Run(cluster)
    assert len(cluster.calls_of("consumer_running_info", client_id="10.1.0.1@one")) == 2
    ((_, error_type, message),) = run.lines.of("consumer_running_info", client_id="10.1.0.1@one")
    assert (error_type, message) == (BROKER_ERROR, "CODE: 207  DESC: consumer <biller> <…> Timeout")


def test_a_client_that_does_not_know_the_question_is_asked_once() -> None:
    cluster = silent_at_first(refused(3, "request type 307 not supported"), times=9)
    Run(cluster)
    assert len(cluster.calls_of("consumer_connection", group="biller")) == 2


def test_a_second_pass_with_more_errors_does_not_replace_the_first() -> None:
    cluster = silent_at_first(refused(207, "Timeout"), times=9)
    usual, statistics = cluster.instead, Counter[str]()

    def worse(question: Question) -> Answer | None:
        if question.kind == "consume_stats" and question.group == "biller":
            statistics[question.address] += 1
            if statistics[question.address] > 1:
                return refused(16, "no permission")
        return usual(question)

    cluster.instead = worse
    run = Run(cluster)
    assert set(statistics.values()) == {2}
    assert all(payload is not None for payload, _, _ in run.lines.of("consume_stats", group="biller"))
    assert run.lines.of("consumer_running_info", client_id="10.1.0.2@two") == [('{"answer": 1}', None, None)]


def test_a_group_whose_answers_are_too_large_to_wait_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_MAX_HELD_GROUP_BYTES", 10)
    cluster = silent_at_first(refused(207, "Timeout"))
    run = Run(cluster)
    assert len(cluster.calls_of("consumer_running_info")) == 2
    assert run.collected.line_counts == run.lines.counts()
    assert run.lines.counts()["consumer_running_info"] == 2


def test_the_number_of_groups_that_are_asked_twice_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_MAX_REPEATED_GROUP_COUNT", 1)
    cluster = answering(
        lambda question: refused(207, "Timeout") if question.kind == "consumer_running_info" else None
    )
    groups = [f"group-{number}" for number in range(5)]
    cluster.groups = {A: groups, B: groups}
    cluster.members = {group: {"one@x": [A]} for group in groups}
    Run(cluster)
    assert len(cluster.calls_of("consumer_running_info")) == 5 + 1


def broadcasting(members: dict[str, list[str]]) -> SimulatedCluster:
    """Return the small cluster with a broadcasting group that subscribes to two topics."""
    cluster = small_cluster()
    cluster.members["biller"] = members

    def answer(question: Question) -> Answer | None:
        client_ids = [client for client, where in members.items() if question.broker_addr in where]
        if question.kind != "consumer_connection" or question.group != "biller" or not client_ids:
            return None
        return connections(client_ids, ["stock", "orders"], messageModel="BROADCASTING")

    cluster.instead = answer
    return cluster


def test_members_of_a_broadcasting_group_are_asked_for_in_memory_offsets_of_each_topic() -> None:
    cluster = broadcasting({"here@x": [A, B], "there@x": [B]})
    lines = Run(cluster).lines
    calls = sorted((call.client_id, call.topic) for call in cluster.calls_of("consumer_status"))
    assert calls == [(client, topic) for client in ("here@x", "there@x") for topic in ("orders", "stock")]
    assert lines.counts()["consumer_status"] == 4
    assert {call.broker_addr for call in cluster.calls_of("consumer_status", client_id="there@x")} == {B}


def test_a_member_that_does_not_report_its_queues_is_not_asked_further() -> None:
    cluster = broadcasting({"deaf@x": [A, B], "well@x": [A, B]})
    usual = cluster.instead
    cluster.instead = lambda question: (
        refused(207, "Timeout")
        if (question.kind, question.client_id) == ("consumer_running_info", "deaf@x")
        else usual(question)
    )
    Run(cluster)
    assert {call.client_id for call in cluster.calls_of("consumer_status")} == {"well@x"}


def test_a_group_that_only_mentions_broadcasting_in_a_text_is_not_asked_for_in_memory_offsets() -> None:
    expression = 'x","messageModel":"BROADCASTING'
    cluster = answering(
        lambda question: (
            connections(["10.1.0.1@one"], ["orders"], subString=expression)
            if question.kind == "consumer_connection"
            else None
        )
    )
    Run(cluster)
    assert cluster.calls_of("consumer_running_info")
    assert not cluster.calls_of("consumer_status")


def test_a_refusal_is_an_answer_and_is_not_asked_again() -> None:
    cluster = answering(
        lambda question: refused(16, "no permission") if question.kind == "broker_config" else None
    )
    run = Run(cluster)
    assert len(cluster.calls_of("broker_config")) == 2
    assert run.lines.of("broker_config", broker="broker-a") == [
        (None, BROKER_ERROR, "CODE: 16  DESC: no permission")
    ]


@pytest.mark.parametrize(
    "failure", [silence(NO_CONNECTION), silence(NO_ANSWER_IN_TIME), refused(2, "system busy")]
)
def test_transient_failures_are_retried(failure: Answer) -> None:
    failures = [failure, failure]
    cluster = answering(
        lambda question: failures.pop() if question.kind == "nameserver_topic_list" and failures else None
    )
    run = Run(cluster, retries=2, parallelism=1)
    assert [line[1] for line in run.lines.of("nameserver_topic_list")] == [None, None]
    assert not run.collected.silent


def test_after_the_last_attempt_the_failure_is_recorded() -> None:
    cluster = answering(
        lambda question: (
            silence(NO_ANSWER_IN_TIME)
            if question.kind == "consume_stats" and question.broker_addr == A
            else None
        )
    )
    run = Run(cluster, retries=1)
    assert set(run.lines.of("consume_stats", broker_addr=A)) == {(None, NO_ANSWER_IN_TIME, "nobody there")}
    assert len(cluster.calls_of("consume_stats", broker_addr=A)) == 2 * 2


def with_many_groups(count: int) -> SimulatedCluster:
    cluster = small_cluster()
    cluster.groups[B] = [f"group-{number:03}" for number in range(count)]
    cluster.groups[A] = cluster.groups[B]
    return cluster


def test_a_dead_broker_is_given_up_and_each_of_its_missing_answers_is_an_error_line() -> None:
    cluster = with_many_groups(200)
    cluster.instead = lambda question: silence() if question.address == A else None
    run = Run(cluster, unresponsive_after_s=1e-6, retries=0)
    owed = run.lines.of("consumer_connection", broker="broker-a") + run.lines.of(
        "consume_stats", broker="broker-a"
    )
    assert len(owed) == 400
    assert {error_type for _, error_type, _ in owed} == {NO_ANSWER}
    assert all(
        str(message).startswith(f"{A} was not called any more in this run, after") for *_, message in owed
    )
    assert "RemotingConnectException: nobody there" in run.collected.silent[A]
    assert len([call for call in cluster.calls if call.address == A]) < 50
    assert all(payload for payload, *_ in run.lines.of("consume_stats", broker="broker-b"))
    assert "The answer of broker-a at 10.0.0.1:10911 to broker_subscription_group was an error" in "\n".join(
        run.lines.events
    )


def test_answers_of_a_broker_that_stops_half_way_are_kept() -> None:
    cluster = with_many_groups(200)
    cluster.instead = lambda question: (
        silence(NO_ANSWER_IN_TIME) if question.address == A and question.group > "group-100" else None
    )
    run = Run(cluster, unresponsive_after_s=1e-6, retries=0, parallelism=1)
    lines = [
        line[1:] for line in run.lines.all if line[0] == "consume_stats" and line[1]["broker"] == "broker-a"
    ]
    earlier_payloads = [payload for request, payload, *_ in lines if request["group"] <= "group-100"]
    assert len(earlier_payloads) == 101
    assert all(earlier_payloads)
    assert all(error for request, _, error, _ in lines if request["group"] > "group-100")
    assert len(lines) == 200


def test_a_broker_that_is_slow_to_answer_now_and_then_is_not_given_up() -> None:
    cluster = with_many_groups(100)
    earlier_questions: set[Question] = set()

    def every_first_time(question: Question) -> Answer | None:
        if question.kind != "consume_stats" or question in earlier_questions:
            return None
        earlier_questions.add(question)
        return silence(NO_ANSWER_IN_TIME)

    cluster.instead = every_first_time
    run = Run(cluster, unresponsive_after_s=0.5, parallelism=2)
    assert not run.collected.silent
    assert run.collected.error_counts["consume_stats"] == 0


def test_one_name_server_down_does_not_affect_the_other() -> None:
    cluster = answering(lambda question: silence() if question.nameserver == "ns-1:9876" else None)
    run = Run(cluster, retries=0, unresponsive_after_s=0.001)
    assert run.lines.of("nameserver_topic_list", nameserver="ns-1:9876")[0][1] == NO_CONNECTION
    assert len(run.lines.of("nameserver_route", nameserver="ns-1:9876")) == 3
    assert all(payload for payload, *_ in run.lines.of("nameserver_route", nameserver="ns-2:9876"))
    assert run.lines.counts()["consumer_running_info"] == 2
    assert any("topics that only it knows were not asked for" in event for event in run.lines.events)


def test_all_name_servers_down_is_one_sentence() -> None:
    with pytest.raises(UnreachableError) as caught:
        Run(answering(lambda _: silence()), retries=0)
    assert str(caught.value) == (
        "None of the name servers (ns-1:9876, ns-2:9876) returns topics and brokers "
        "(ns-1:9876: RemotingConnectException: nobody there; ns-2:9876: RemotingConnectException: nobody there); "
        "check the addresses, the credentials, and whether they run."
    )


def test_brokers_that_refuse_to_list_groups_are_one_sentence() -> None:
    cluster = answering(
        lambda question: (
            refused(16, "no permission") if question.kind == "broker_subscription_group" else None
        )
    )
    with pytest.raises(UnreachableError, match=r"^No broker returns consumer groups \(.*CODE: 16"):
        Run(cluster)


def test_a_cluster_without_groups_is_one_sentence() -> None:
    cluster = small_cluster()
    cluster.groups = {A: [], B: []}
    with pytest.raises(CollectError, match="has no consumer group"):
        Run(cluster)


def test_answers_that_the_client_cannot_decode_are_kept_and_reported() -> None:
    cut = Answer(payload=b'{"connectionSet":[{"cli', response_code=0)
    cluster = answering(
        lambda question: cut if (question.kind, question.address) == ("consumer_connection", A) else None
    )
    run = Run(cluster)
    assert run.lines.of("consumer_connection", broker_addr=A, group="biller") == [
        ('{"connectionSet":[{"cli', None, None)
    ]
    assert run.collected.error_counts["consumer_connection"] == 1  # of the group without members
    assert any("for group 'biller' cannot be read (" in event for event in run.lines.events)
    assert run.lines.counts()["consumer_running_info"] == 2  # the other broker listed them


def test_invalid_utf_8_is_kept_with_replacement_characters() -> None:
    cluster = answering(
        lambda question: (
            Answer(payload=b"a=\xff\n", response_code=0) if question.kind == "broker_config" else None
        )
    )
    assert Run(cluster).lines.of("broker_config", broker_addr=A) == [("a=\ufffd\n", None, None)]


def test_an_answer_that_fits_no_envelope_is_reported_as_an_event() -> None:
    class Judging(Lines):
        def payload(self, kind: str, captured_at: datetime, payload: str, **request: str | int) -> None:
            if kind == "consumer_running_info" and "client_id" not in request:
                raise EnvelopeError("'client_id' is missing")
            super().payload(kind, captured_at, payload, **request)

    cluster = small_cluster()
    cluster.members["biller"] = {"": [A]}
    lines = Judging()
    collected = collect(
        cluster, lines, NAME_SERVERS, CollectSettings(), ds=NOON.date(), progress=Steps(), now=lambda: NOON
    )
    (event,) = lines.events
    assert event.endswith("is not in this export: 'client_id' is missing.")
    assert collected.remarks == [event]
    assert "consumer_running_info" not in lines.counts()


def test_the_master_is_asked_or_the_first_slave_if_there_is_no_master() -> None:
    cluster = small_cluster()
    brokers = [
        ("broker-a", "1", "10.0.0.11:10911"),
        ("broker-a", "0", A),
        ("broker-b", "3", "10.0.0.23:10911"),
        ("broker-b", "2", B),
    ]
    cluster.brokers = dict.fromkeys(NAME_SERVERS, brokers)
    assert {call.address for call in (Run(cluster), cluster)[1].calls} == {*NAME_SERVERS, A, B}


def test_both_masters_are_asked_if_name_servers_differ() -> None:
    cluster = small_cluster()
    cluster.brokers["ns-2:9876"] = [("broker-a", "0", "10.0.0.9:10911"), *cluster.brokers["ns-1:9876"][1:]]
    cluster.groups["10.0.0.9:10911"] = []
    lines = Run(cluster).lines
    assert len(lines.of("consumer_connection", broker="broker-a", group="biller")) == 2


def test_excluded_kinds_are_not_requested_and_have_no_line() -> None:
    excluded_groups = ["consume_stats", "broker_topic_stats", "broker_config", "consumer_running_info"]
    cluster = small_cluster()
    run = Run(cluster, exclude_kinds=excluded_groups)
    assert not run.lines.counts().keys() & set(excluded_groups)
    assert not {call.kind for call in cluster.calls} & set(excluded_groups)


def test_no_server_is_called_more_often_than_allowed() -> None:
    cluster = with_many_groups(20)
    Run(cluster, calls_per_second=200, parallelism=8)
    for address in (*NAME_SERVERS, A, B):
        times = [
            at for call, at in zip(cluster.calls, cluster.called_at, strict=True) if call.address == address
        ]
        # The first call is immediate. Each further call follows at least 1/200 s after the previous one.
        assert max(times) - min(times) >= (len(times) - 1) / 200 * 0.99


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    cluster = with_many_groups(100)
    started = time.monotonic()

    def busy(_: Question) -> None:
        # Wait long enough for the other calls to start if the limit permits them.
        while time.monotonic() - started < 0.2 and cluster.most_at_once < 4:
            pass

    cluster.instead = busy
    Run(cluster, parallelism=4)
    assert cluster.most_at_once <= 4


def test_a_past_day_is_never_asked() -> None:
    cluster = small_cluster()
    with pytest.raises(
        CollectError, match=r"^2026-11-16 is not today \(2026-11-17, UTC\), and a live cluster"
    ):
        Run(cluster, now=lambda: NOON + timedelta(days=1))
    assert cluster.calls == []


def test_a_capture_that_is_not_finished_at_midnight_ends_and_reports_it() -> None:
    cluster = small_cluster()
    with pytest.raises(
        CollectError, match=r"^It is 2026-11-17 \(UTC\), and the capture of 2026-11-16 is not done"
    ):
        Run(cluster, now=lambda: NOON + timedelta(days=len(cluster.calls) > 20))


def test_a_capture_that_cannot_end_before_midnight_does_not_begin() -> None:
    cluster = with_many_groups(200)
    just_in_time = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
    Run(cluster, now=lambda: just_in_time, calls_per_second=1000)
    cluster.calls.clear()
    with pytest.raises(CollectError, match=r"takes at least 3 minutes at 2.5 calls a second for each server"):
        Run(cluster, now=lambda: NOON.replace(hour=23, minute=58), calls_per_second=2.5)
    assert not cluster.calls_of("nameserver_route")


def test_the_capture_ends_when_the_client_ends() -> None:
    def ends(question: Question) -> Answer | None:
        if question.kind == "consumer_connection":
            raise AdminClientError("The JVM has ended.")
        return None

    with pytest.raises(AdminClientError, match=r"^The JVM has ended\.$"):
        Run(answering(ends))


def of_471(question: Question) -> Answer | None:
    """Answer like a broker of 4.7.1, which does not respond to unknown requests."""
    unknown = {"broker_producer_table", "broker_message_request_mode"}
    if question.address == A and question.kind in unknown:
        return silence(NO_ANSWER_IN_TIME)
    return runtime_info("4.7.1") if (question.address, question.kind) == (A, "broker_runtime_info") else None


def test_a_broker_is_not_asked_what_its_release_does_not_know() -> None:
    cluster = answering(of_471)
    run = Run(cluster, retries=0, unresponsive_after_s=1e-6)
    for kind in ("broker_producer_table", "broker_message_request_mode"):
        assert {call.address for call in cluster.calls_of(kind)} == {B}
        assert run.lines.of(kind, broker="broker-a") == [
            (None, NOT_ASKED, "not asked: release 4.7.1 does not know this question")
        ]
    assert run.collected.silent == {}
    assert run.collected.tally.failed_count == 0


@pytest.mark.parametrize("release", [(4, 9, 3), (4, 9, 4), (5, 0, 0)])
def test_each_release_is_asked_what_it_knows(release: tuple[int, int, int]) -> None:
    cluster = small_cluster()
    cluster.release = ".".join(map(str, release))
    Run(cluster)
    assert bool(cluster.calls_of("broker_producer_table")) == (release >= (4, 9, 4))
    assert bool(cluster.calls_of("broker_message_request_mode")) == (release >= (5, 0, 0))


@pytest.mark.parametrize(
    "answer",
    [refused(16, "no permission"), success({"table": {"brokerVersionDesc": "unheard-of"}}), success({})],
)
def test_a_timeout_on_a_request_that_a_release_may_not_know_does_not_mark_a_broker_dead(
    answer: Answer,
) -> None:
    cluster = answering(
        lambda question: (
            answer if question.kind == "broker_runtime_info" and question.address == A else of_471(question)
        )
    )
    run = Run(cluster, retries=3, unresponsive_after_s=1e-6)
    assert len(cluster.calls_of("broker_producer_table", broker_addr=A)) == 1
    ((_, error_type, message),) = run.lines.of("broker_producer_table", broker_addr=A)
    assert error_type == NO_ANSWER_IN_TIME
    assert message is not None
    assert "release is not known" in message
    assert run.collected.silent == {}
    assert run.lines.of("consumer_connection", broker_addr=A, group="biller")[0][0] is not None


def test_groups_that_no_broker_lists_are_taken_from_their_retry_topics() -> None:
    cluster = small_cluster()
    names = [
        "%RETRY%payer",
        "%RETRY%biller_orders",
        "%RETRY%biller+orders",
        "%RETRY%TOOLS_CONSUMER",
        "%RETRY%",
    ]
    cluster.topics["ns-1:9876"] += names
    cluster.instead = lambda question: (
        refused(16, "no permission") if question.kind == "broker_subscription_group" else None
    )
    lines = Run(cluster).lines
    # A name that ends with a topic name is a POP retry topic, and may belong to another group.
    assert {line[1]["group"] for line in lines.all if line[0] == "consumer_connection"} == {"payer"}


def test_a_retry_topic_names_no_group_where_every_broker_lists_its_groups() -> None:
    cluster = small_cluster()
    cluster.topics["ns-1:9876"].append("%RETRY%deleted-long-ago")
    lines = Run(cluster).lines
    assert "deleted-long-ago" not in {line[1].get("group") for line in lines.all}


def test_every_group_has_a_line_of_every_broker_including_failing_brokers() -> None:
    cluster = answering(
        lambda question: (
            refused(16, "Group:biller is denied")
            if question.group == "biller"
            else silence()
            if question.group == "idler" and question.address == B
            else None
        )
    )
    lines = Run(cluster, retries=0).lines
    for group in ("biller", "idler"):
        group_lines = [
            line for line in lines.all if line[0] == "consumer_connection" and line[1]["group"] == group
        ]
        assert {line[1]["broker"] for line in group_lines} == {"broker-a", "broker-b"}


def test_names_are_read_from_answers_that_rocketmqs_client_cannot_decode() -> None:
    # The answer of a 5.3.3 broker with a static topic, cut to one topic. fastjson2 rejects the mapping's integer keys.
    payload = (
        b'{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":1760000000000},"mappingDataVersion":{"counter":1},'
        b'"topicConfigTable":{"fixed":{"attributes":{},"order":false,"perm":6,"readQueueNums":2,"topicName":"fixed"}},'
        b'"topicQueueMappingDetailMap":{"fixed":{"bname":"broker-a","currIdMap":{},"epoch":1,"hostedQueues":'
        b'{0:[{"bname":"broker-a","endOffset":-1,"gen":0,"logicOffset":0,"queueId":0}]},"scope":"__global__"}},'
        b'"topicQueueMappingInfoMap":{"fixed":{"bname":"broker-a","currIdMap":{0:0},"dirty":false,"totalQueues":2}}}'
    )
    cluster = answering(
        lambda question: (
            Answer(payload=payload, response_code=0)
            if (question.kind, question.address) == ("broker_topic_config", A)
            else None
        )
    )
    run = Run(cluster)
    assert [call.topic for call in cluster.calls_of("broker_topic_stats", broker_addr=A)] == ["fixed"]
    assert not run.collected.remarks


def running_info(start: int) -> Answer:
    return success({"properties": {"PROP_CONSUMER_START_TIMESTAMP": f"{start}"}, "mqTable": {}})


def doubled(start_at: dict[str, int]) -> SimulatedCluster:
    """Return a cluster in which both brokers list a client id twice.

    Each broker forwards requests to the process with the given start time.
    """

    def answer(question: Question) -> Answer | None:
        if (question.kind, question.group) == ("consumer_connection", "biller"):
            return connections(["twice@x", "twice@x"], ["orders"])
        return running_info(start_at[question.address]) if question.kind == "consumer_running_info" else None

    return answering(answer)


def test_processes_with_one_client_id_are_distinguished_by_their_start_time() -> None:
    cluster = doubled({A: 1_000, B: 2_000})
    lines = Run(cluster).lines
    assert {call.address for call in cluster.calls_of("consumer_running_info")} == {A, B}
    assert len(lines.of("consumer_running_info")) == 1
    processes = [line[1] for line in lines.all if line[0] == "process_assignment"]
    assert {(line["process"], line["broker_addr"]) for line in processes} == {
        ("started 1000", A),
        ("started 2000", B),
    }


def test_an_id_listed_twice_with_one_start_time_is_one_process() -> None:
    lines = Run(doubled({A: 1_000, B: 1_000})).lines
    assert len(lines.of("consumer_running_info")) == 1
    assert not lines.of("process_assignment")


@pytest.mark.parametrize(
    "grpc", ["worker-7@4711@0@kd4a1x9z", "worker-7@4711@0@-1y2p0ij32e8e7", "blue@worker-7@4711@0@kd4a1x9z"]
)
def test_a_grpc_client_is_not_asked_what_it_cannot_answer(grpc: str) -> None:
    cluster = small_cluster()
    cluster.members["biller"] = {grpc: [A, B], "10.1.0.1@4711#12": [A]}
    run = Run(cluster)
    assert [call.client_id for call in cluster.calls_of("consumer_running_info")] == ["10.1.0.1@4711#12"]
    ((payload, error_type, message),) = run.lines.of("consumer_running_info", client_id=grpc)
    assert (payload, error_type) == (None, NOT_ASKED)
    assert message is not None
    assert "gRPC" in message
    assert run.collected.remarks == []


def test_members_are_asked_in_parallel_with_at_most_half_of_a_brokers_forwarding_limit() -> None:
    cluster = small_cluster()
    cluster.members["biller"] = {f"10.1.0.1@{number}": [A] for number in range(40)}
    under_way, most = [0], [0]
    lock = threading.Lock()
    started = time.monotonic()

    def slow(question: Question) -> Answer | None:
        if question.kind != "consumer_running_info":
            return None
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        while time.monotonic() - started < 5 and most[0] < 8:
            time.sleep(0.001)
        with lock:
            under_way[0] -= 1
        return refused(207, "Timeout")

    cluster.instead = slow
    Run(cluster, parallelism=32)
    assert most[0] == 8


def with_proxies(*hosts: str) -> SimulatedCluster:
    cluster = small_cluster()
    cluster.groups = {A: ["biller", "CID_DefaultHeartBeatSyncerTopic"], B: ["biller"]}

    def answer(question: Question) -> Answer | None:
        if question.group == "CID_DefaultHeartBeatSyncerTopic":
            ids = [f"{host}@1" for host in hosts]
            return connections(ids, ["DefaultHeartBeatSyncerTopic"], hosts=list(hosts))
        if question.kind == "proxy_consumer_connection":
            return connections(["worker@1@0@a"], ["orders"])
        return None

    cluster.instead = answer
    return cluster


def test_proxies_are_found_by_their_connections_and_asked_for_each_group() -> None:
    cluster = with_proxies("10.0.7.1", "10.0.7.2")
    run = Run(cluster)
    assert {(call.address, call.group) for call in cluster.calls_of("proxy_consumer_connection")} == {
        ("10.0.7.1:8080", "biller"),
        ("10.0.7.2:8080", "biller"),
    }
    assert len(run.lines.of("proxy_consumer_connection", proxy="10.0.7.1:8080", group="biller")) == 1
    # Of the proxies' own group, only the members are queried, on brokers that know the group.
    own = [call for call in cluster.calls if call.group == "CID_DefaultHeartBeatSyncerTopic"]
    assert [(call.kind, call.address) for call in own] == [("consumer_connection", A)]


def test_proxies_of_the_settings_override_discovered_ones() -> None:
    cluster = with_proxies("172.17.0.2", "172.17.0.3")
    run = Run(cluster, proxies=["proxy.example:18080"])
    assert {call.address for call in cluster.calls_of("proxy_consumer_connection")} == {"proxy.example:18080"}
    assert any("Proxies are connected from 2 hosts" in remark for remark in run.collected.remarks)


@pytest.mark.parametrize("configured", [[], ["10.0.7.1:8080"]])
def test_a_proxy_that_does_not_answer_is_reported_and_counts_as_a_failure_if_configured(
    configured: list[str],
) -> None:
    cluster = with_proxies("10.0.7.1")
    cluster.groups[A] += [f"group-{number}" for number in range(10)]
    usual = cluster.instead
    cluster.instead = lambda question: silence() if question.proxy else usual(question)
    run = Run(cluster, retries=0, unresponsive_after_s=1e-6, proxies=configured)
    assert {line[0] for line in run.lines.of("proxy_consumer_connection")} == {None}
    (remark,) = [each for each in run.collected.remarks if "proxy at 10.0.7.1:8080" in each]
    assert "collect.proxy_port" in remark
    assert (run.collected.tally.failed_count > 0) == bool(configured)


def test_missing_permissions_are_reported_by_kind_with_the_permission_to_grant() -> None:
    cluster = answering(
        lambda question: (
            refused(16, "User:me has no permission to access Group:biller") if question.group else None
        )
    )
    run = Run(cluster)
    (remark,) = [each for each in run.collected.remarks if "consumer_connection" in each]
    assert remark.startswith(
        "4 of 4 questions of kind consumer_connection were refused for lack of permission"
    )
    assert "Get and List on Group:*" in remark
    assert run.lines.events.count(remark) == 1


def test_an_unreadable_topic_list_does_not_affect_other_topic_lists() -> None:
    cluster = answering(
        lambda question: (
            success(["not an object"])
            if (question.kind, question.address) == ("nameserver_topic_list", "ns-1:9876")
            else None
        )
    )
    run = Run(cluster)
    assert run.lines.counts()["nameserver_route"] == 2 * 3
    assert any(
        "nameserver_topic_list cannot be read (it is not an object)" in each for each in run.lines.events
    )
    assert run.lines.of("nameserver_topic_list", nameserver="ns-1:9876") == [
        ('["not an object"]', None, None)
    ]
