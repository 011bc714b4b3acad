"""Asking for a strategy by name: what there is, what there is not, and what is said then."""

from __future__ import annotations

import pytest

from strategies import MessageQueue, RocketMQError, UnknownNameError, get_strategy

QUEUES = [MessageQueue("TopicTest", "broker-a", number) for number in range(4)]


def test_the_strategy_of_a_plain_java_client() -> None:
    strategy = get_strategy("AVG", client_language="JAVA", client_version="5.3.3")
    assert strategy.name == "AVG"
    assert strategy.allocate("G", "b", QUEUES, ["a", "b", "c"]) == [QUEUES[2]]


def test_returned_queues_are_the_elements_that_were_given() -> None:
    twin = MessageQueue("TopicTest", "broker-a", 0)
    taken = get_strategy("AVG").allocate("G", "a", [twin], ["a"])
    assert taken is not None
    assert taken[0] is twin


@pytest.mark.parametrize(
    ("name", "language", "version", "sentence"),
    [
        ("AVERAGE", "JAVA", "5.3.3", "Unknown strategy for JAVA 'AVERAGE': there is AVG, AVG_BY_CIRCLE"),
        ("AVG_BY_CIRCLE", "CPP", "5.3.3", "Unknown strategy for CPP 'AVG_BY_CIRCLE': there is AVG"),
        ("AVG", "DOTNET", "5.3.3", "Unknown client language 'DOTNET': there is JAVA, GO, CPP."),
        ("AVG", "JAVA", "3.2.6", "Unknown client version '3.2.6': there is every release from 4.1.0 to 5.x"),
        (
            "AVG",
            "JAVA",
            "latest",
            "Unknown client version 'latest': there is every release from 4.1.0 to 5.x",
        ),
        ("AVG", "JAVA", "6.0.0", "Unknown client version '6.0.0'"),
    ],
)
def test_an_unknown_name_is_answered_with_what_there_is(
    name: str, language: str, version: str, sentence: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_strategy(name, client_language=language, client_version=version)
    assert str(caught.value).startswith(sentence)


def test_empty_arguments_are_refused_as_the_language_refuses_them() -> None:
    with pytest.raises(RocketMQError, match=r"^mqAll is null or mqAll empty$") as java:
        get_strategy("AVG").allocate("G", "a", [], ["a"])
    assert java.value.java_class == "IllegalArgumentException"
    with pytest.raises(RocketMQError, match=r"^mqAll is empty$") as cpp:
        get_strategy("AVG", client_language="CPP").allocate("G", "a", [], ["a"])
    assert cpp.value.java_class == "MQClientException"
    assert get_strategy("AVG", client_language="GO").allocate("G", "a", [], ["a"]) == []
