"""A transcript is parsed into commands, times and answers; other text is not treated as an answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rebalance_ledger.collectors.mqadmin_transcript import Answer, TextError, read_transcript
from tests.support.offline_captures import RELEASES, text


def only(transcript: str) -> Answer:
    (answer,) = read_transcript(transcript)
    return answer


def body(answer: Answer) -> list[str]:
    return [line.text for line in answer.lines]


class TestCommandLines:
    @pytest.mark.parametrize(
        "line",
        [
            "$ mqadmin topicRoute -t orders -n 10.0.0.1:9876",
            "mqadmin topicRoute -t orders -n 10.0.0.1:9876",
            "sh mqadmin topicRoute -n 10.0.0.1:9876 -t orders",
            "+ mqadmin topicRoute -t orders -n 10.0.0.1:9876",
            "[root@host bin]# sh ./mqadmin topicRoute -t orders -n 10.0.0.1:9876",
            "me@host:~/rocketmq-4.9.7$ bin/mqadmin topicRoute --topic orders --namesrvAddr '10.0.0.1:9876'",
            "$ mqadmin topicRoute --topic=orders -n 10.0.0.1:9876 2>&1 | tee route.txt",
            r"$ mqadmin topicRoute -t orders -n 10.0.0.1:9876 > C:\\route.txt",
        ],
    )
    def test_are_found_however_they_were_typed(self, line: str) -> None:
        answer = only(f"{line}\nanswer\n")
        assert (answer.command, answer.line_number) == ("topicRoute", 1)
        assert answer.options == {"t": "orders", "n": "10.0.0.1:9876"}
        assert body(answer) == ["answer"]

    def test_several_name_servers_and_odd_ids_survive_the_shells_quotes(self) -> None:
        answer = only(
            r"""$ mqadmin consumerStatus -n a:1\;b:2 -g g -i 1.2.3.4@\$\(touch\ x\)\;\ \'\<b\>\" -s"""
        )
        assert answer.options == {"n": "a:1;b:2", "g": "g", "i": "1.2.3.4@$(touch x); '<b>\"", "s": ""}

    def test_an_option_means_what_it_means_to_its_command(self) -> None:
        assert only("$ mqadmin consumerStatus -s -g g").options == {"s": "", "g": "g"}
        assert only("$ mqadmin consumerProgress -s true -g g").options == {"s": "true", "g": "g"}
        assert only("$ mqadmin topicStatus -t t -c c").options == {"t": "t", "c": "c"}
        assert only("$ mqadmin topicList -c").options == {"c": ""}

    def test_commands_that_are_not_read_may_have_any_options(self) -> None:
        assert only("$ mqadmin updateTopic -t t -w 8 'and more\nanswer").command == "updateTopic"

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("$ mqadmin topicRoute -t", "a value is expected after '-t'"),
            ("$ mqadmin topicRoute -t ' ' -n a:1", "a value is expected after '-t'"),
            ("$ mqadmin topicRoute -x 1", "an option of topicRoute is expected, and '-x' is none"),
            ("$ mqadmin topicRoute orders", "an option of topicRoute is expected, and 'orders' is none"),
            ("$ mqadmin topicRoute -t 'orders", "a command line of a shell is expected"),
        ],
    )
    def test_that_cannot_be_read_are_named(self, line: str, reason: str) -> None:
        with pytest.raises(TextError) as caught:
            read_transcript(f"$ mqadmin topicList -n a:1\n{line}\n")
        assert caught.value.line_number == 2
        assert caught.value.reason.startswith(reason)

    def test_a_text_without_one_is_no_transcript(self) -> None:
        assert read_transcript("#Topic\nmqadminext is a class\nusage: mqadmin topicRoute -t <arg>\n") == []

    def test_text_before_the_first_command_is_refused(self) -> None:
        with pytest.raises(TextError, match="line 2: a command line such as"):
            read_transcript("\norder-events\n$ mqadmin topicList -n a:1\n")


class TestTimes:
    def test_the_line_before_a_command_is_its_time(self) -> None:
        first, second, third = read_transcript(
            "# 2026-11-16T01:55:40Z\n$ mqadmin topicList -n a:1\nt\n\n"
            "# 2026-11-16T01:55:41.250Z\n$ mqadmin topicList -n b:1\nt\n"
            "$ mqadmin topicList -n c:1\nt\n"
        )
        assert first.asked_at == datetime(2026, 11, 16, 1, 55, 40, tzinfo=UTC)
        assert second.asked_at == datetime(2026, 11, 16, 1, 55, 41, 250_000, tzinfo=UTC)
        assert third.asked_at is None
        assert [body(answer) for answer in (first, second, third)] == [["t"], ["t"], ["t"]]

    def test_a_time_that_does_not_exist_is_named(self) -> None:
        with pytest.raises(TextError, match="line 1: an instant that exists"):
            read_transcript("# 2026-11-31T01:55:40Z\n$ mqadmin topicList -n a:1\n")


class TestAnswers:
    def test_keep_their_line_numbers_and_lose_trailing_blanks(self) -> None:
        answer = only("\n$ mqadmin topicList -n a:1\r\none\r\n\r\ntwo\r\n\r\n\r\n")
        assert [(line.number, line.text) for line in answer.lines] == [(3, "one"), (4, ""), (5, "two")]

    def test_exclude_output_of_loggers_and_the_jvm(self) -> None:
        answer = only(
            "$ mqadmin topicList -n a:1\n"
            "RocketMQLog:WARN No appenders could be found for logger (io.netty.util.internal.Platform).\n"
            "OpenJDK 64-Bit Server VM warning: Option UseBiasedLocking was deprecated in version 15.0.\n"
            "05:10:25,125 |-INFO in org.apache.rocketmq.logging.ch.qos.logback.classic.LoggerContext[default] - This\n"
            "SLF4J: Class path contains multiple SLF4J bindings.\n"
            "orders\n"
        )
        assert body(answer) == ["orders"]

    @pytest.mark.parametrize("release", RELEASES)
    def test_a_failure_is_its_innermost_cause_with_its_whole_message(self, release: str) -> None:
        answers = read_transcript(text(release, "mqadmin/consumerConnection.txt"))
        failures = [answer.failure for answer in answers if answer.options["g"] == "gone"]
        assert len(failures) == 2
        for failure in failures:
            assert failure is not None
            assert failure.type.startswith("org.apache.rocketmq.client.exception.MQ")
            assert failure.message.startswith("CODE: 206  DESC: ")
            assert "\nFor more information" in failure.message
            assert "\tat" not in failure.message
        assert all(answer.lines == () for answer in answers if answer.failure)
        assert all(answer.lines for answer in answers if not answer.failure)

    def test_a_stack_trace_among_lines_is_removed_and_does_not_fail_the_command(self) -> None:
        answer = only(
            "$ mqadmin clusterList -n a:1\n"
            "#Cluster Name\n"
            "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to 10.0.0.3:10911 failed\n"
            "\tat org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeSync(NettyRemotingClient.java:584)\n"
            "\t... 2 more\n"
            "c  b  0  10.0.0.1:10911\n"
        )
        assert answer.failure is None
        assert [failure.message for failure in answer.failures] == ["connect to 10.0.0.3:10911 failed"]
        assert body(answer) == ["#Cluster Name", "c  b  0  10.0.0.1:10911"]

    def test_a_line_that_only_looks_like_an_exception_is_kept(self) -> None:
        line = "org.apache.rocketmq.client.exception.MQClientException: a topic could be called so"
        assert body(only(f"$ mqadmin topicList -n a:1\n{line}\nother\n")) == [line, "other"]
