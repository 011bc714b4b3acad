"""Lookup of strategies by name: known and unknown names, and error messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strategies import (
    MessageQueue,
    RocketMQError,
    RoomPart,
    UnknownNameError,
    get_strategy,
    has_one_rule,
    strategy_names,
)

REPOSITORY = Path(__file__).parents[2]
QUEUES = [MessageQueue("TopicTest", "broker-a", number) for number in range(4)]


def test_the_strategy_of_a_plain_java_client() -> None:
    strategy = get_strategy("AVG", client_language="JAVA", client_version="5.3.3")
    assert strategy.name == "AVG"
    assert strategy.allocate("G", "b", QUEUES, ["a", "b", "c"]) == [QUEUES[2]]


def test_returned_queues_are_the_elements_that_were_given() -> None:
    queue = MessageQueue("TopicTest", "broker-a", 0)
    taken = get_strategy("AVG").allocate("G", "a", [queue], ["a"])
    assert taken is not None
    assert taken[0] is queue


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
def test_the_error_for_an_unknown_name_lists_the_known_names(
    name: str, language: str, version: str, sentence: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_strategy(name, client_language=language, client_version=version)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("release", ["2.1.2", "v2.1.1", "4.5.2", "4.9.3", ""])
@pytest.mark.parametrize("name", ["AVG", "CONSISTENT_HASH", "MACHINE_ROOM"])
def test_the_release_of_a_go_client_means_nothing_for_any_strategy(name: str, release: str) -> None:
    """Test Go's own version, the Java constant that it reports, and none, also with a blank id, which only Java 4.9.3 refuses."""
    rooms = {"consumer_idcs": ["hz"]} if name == "MACHINE_ROOM" else {}
    listed = [MessageQueue("TopicTest", "hz@broker-a", number) for number in range(4)]
    plain = get_strategy(name, client_language="GO", **rooms)
    of_release = get_strategy(name, client_language="GO", client_version=release, **rooms)

    for client_id in (" ", "a", "b"):
        assert of_release.allocate("G", client_id, listed, [" ", "a", "b"]) == plain.allocate(
            "G", client_id, listed, [" ", "a", "b"]
        )


@pytest.mark.parametrize("language", ["JAVA", "GO", "CPP"])
def test_a_strategy_with_one_rule_is_the_same_for_every_release(language: str) -> None:
    listed = [MessageQueue("T", broker, number) for broker in ("hz@a", "sh@b", "sh@c") for number in range(5)]
    ids = ["a", "b", "c", "d"]
    parameters: dict[str, dict[str, Any]] = {
        "AVG": {},
        "AVG_BY_CIRCLE": {},
        "CONFIG": {"message_queues": listed[:2]},
        "CONSISTENT_HASH": {},
        "MACHINE_ROOM": {"consumer_idcs": ["sh"]},
        "MACHINE_ROOM_NEARBY": {
            "inner": get_strategy("AVG"),
            "broker_room": RoomPart("@"),
            "consumer_room": {"a": "hz", "b": "hz", "c": "sh", "d": "sh"},
        },
    }
    for name, of_strategy in parameters.items():
        if name not in strategy_names(language):
            continue
        divisions = {
            tuple(tuple(strategy.allocate("G", client_id, listed, ids) or ()) for client_id in ids)
            for release in ("4.1.0", "4.7.1", "4.8.0", "4.9.3", "4.9.8", "5.0.0", "5.3.3", "5.5.0")
            for strategy in [
                get_strategy(name, client_language=language, client_version=release, **of_strategy)
            ]
        }
        assert (len(divisions) == 1) == has_one_rule(name, language), name


def test_empty_arguments_are_refused_as_the_language_refuses_them() -> None:
    with pytest.raises(RocketMQError, match=r"^mqAll is null or mqAll empty$") as java:
        get_strategy("AVG").allocate("G", "a", [], ["a"])
    assert java.value.java_class == "IllegalArgumentException"
    with pytest.raises(RocketMQError, match=r"^mqAll is empty$") as cpp:
        get_strategy("AVG", client_language="CPP").allocate("G", "a", [], ["a"])
    assert cpp.value.java_class == "MQClientException"
    assert get_strategy("AVG", client_language="GO").allocate("G", "a", [], ["a"]) == []


def test_without_parameters_that_a_strategy_needs_the_missing_one_is_named() -> None:
    with pytest.raises(TypeError, match="consumer_idcs"):
        get_strategy("MACHINE_ROOM")


PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "their-strategies"
version = "1"
[project.entry-points."rebalance_ledger.strategies"]
LAST_TAKES_ALL = "their_strategies:LastTakesAll"
AVG = "their_strategies:LastTakesAll"
[tool.setuptools]
py-modules = ["their_strategies"]
"""
MODULE = """
from strategies import Strategy

class LastTakesAll(Strategy):
    name = "LAST_TAKES_ALL"

    def __init__(self, client, *, greedy=True):
        self.greedy = greedy

    def allocate(self, consumer_group, current_cid, mq_all, cid_all):
        return list(mq_all) if self.greedy and current_cid == cid_all[-1] else []
"""
PROGRAM = """
from strategies import MessageQueue, SubscriptionBatch, get_strategy, strategy_names
queues = [MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)]
theirs = get_strategy("LAST_TAKES_ALL", greedy=True)
owners = theirs.allocate_batch(SubscriptionBatch.of([(queues, ["x", "y"])]))
print("LAST_TAKES_ALL" in strategy_names(), owners.client_index.tolist(), get_strategy("AVG").name)
"""


def test_an_installed_package_adds_a_strategy_and_cannot_replace_one(tmp_path: Path) -> None:
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    (project / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (project / "their_strategies.py").write_text(MODULE, encoding="utf-8")
    # Use the installer of the setup, whose environment has no pip. Setuptools is in the lock file, so nothing is downloaded.
    installer = [
        str(REPOSITORY / ".local" / "uv" / "bin" / "uv"),
        "pip",
        "install",
        "--python",
        sys.executable,
    ]
    options = ["--quiet", "--offline", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*installer, *options, str(project)], check=True)
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(REPOSITORY)])},
    )
    assert answer.stdout.split("\n")[0] == "True [1, 1] AVG"
