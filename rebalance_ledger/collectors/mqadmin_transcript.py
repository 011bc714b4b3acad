"""Texts of `mqadmin` as people keep them: which command was given, when, and the lines that it answered.

What belongs here: command lines and their options, what is no part of an answer (log noise), Java stack traces. What does
not: what the lines of one command mean (`mqadmin_text`).

A transcript is one or more command lines, each followed by its answer; before a command line there may be a line with the
instant at which it was given:

    # 2026-11-16T01:55:40Z
    $ mqadmin topicRoute -t order-events -n 10.0.0.1:9876
    {…
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TextError(ValueError):
    """A text does not say what its command says.

    Attributes:
        line_number: The line, from 1; 0 for the text as a whole.
        reason: What was expected.
    """

    def __init__(self, line_number: int, reason: str) -> None:
        super().__init__(f"line {line_number}: {reason}" if line_number else reason)
        self.line_number = line_number
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text.

    Attributes:
        number: From 1.
        text: Without its line feed.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class JavaFailure:
    """A stack trace: what went wrong, without the frames.

    Attributes:
        line_number: Where it begins.
        thrown: The class that was thrown.
        type: The class of the innermost cause.
        message: Its message, with all of its lines; empty if it has none.
    """

    line_number: int
    thrown: str
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One command and what it answered.

    Attributes:
        line_number: The line of the command.
        command: The sub-command, such as `topicRoute`.
        options: Its options by their short names; a flag is an empty text.
        asked_at: When it was given (UTC), if the text says so.
        lines: What it printed, without noise, stack traces and the blank lines at its end.
        failures: The stack traces among its lines.
    """

    line_number: int
    command: str
    options: Mapping[str, str]
    asked_at: datetime | None
    lines: tuple[Line, ...]
    failures: tuple[JavaFailure, ...]

    @property
    def failure(self) -> JavaFailure | None:
        """What ended the command, if something did."""
        return next((each for each in self.failures if each.thrown == _COMMAND_FAILED), None)


_COMMAND_FAILED: Final = "org.apache.rocketmq.tools.command.SubCommandException"

# Short name -> long name; those in capitals of `_FLAGS` take no value.
_COMMON: Final = {"h": "help", "n": "namesrvAddr"}
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "topicList": {"c": "clusterModel"},
    "clusterList": {"c": "clusterName", "m": "moreStats", "i": "interval"},
    "topicRoute": {"t": "topic", "l": "list"},
    "topicStatus": {"t": "topic", "c": "cluster"},
    "consumerConnection": {"g": "consumerGroup", "b": "brokerAddr"},
    "consumerProgress": {"g": "groupName", "s": "showClientIP", "t": "topicName", "c": "cluster"},
    "consumerStatus": {"g": "consumerGroup", "i": "clientId", "b": "brokerAddr", "s": "jstack"},
    "producerConnection": {"g": "producerGroup", "t": "topic"},
    "getBrokerConfig": {"b": "brokerAddr", "c": "clusterName"},
    "exportMetadata": {
        "b": "brokerAddr",
        "c": "clusterName",
        "f": "filePath",
        "g": "subscriptionGroup",
        "s": "specialTopic",
        "t": "topic",
    },
}
"""The commands that are read, and their options."""

_FLAGS: Final = {
    ("topicList", "c"),
    ("clusterList", "m"),
    ("topicRoute", "l"),
    ("consumerStatus", "s"),
    ("exportMetadata", "g"),
    ("exportMetadata", "s"),
    ("exportMetadata", "t"),
}

_COMMAND_LINE: Final = re.compile(
    r"(?:[^$#>\n]{0,200}[$#>] *|\+ )?(?:(?:sh|bash) +)?(?:[^\s'\"]*/)?mqadmin(?:\.cmd)? +([A-Za-z]+)((?: .*)?)"
)
_INSTANT_LINE: Final = re.compile(
    r"# ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)Z"
)

# What loggers and the JVM print among the answers, depending on how mqadmin was installed.
_NOISE: Final = re.compile(
    r"RocketMQLog:WARN |SLF4J: |log4j:WARN |[0-9:]{8},[0-9]{3} \|-(?:INFO|WARN|ERROR) in |Picked up \w+: "
    r"|(?:OpenJDK|Java HotSpot\(TM\)) .* warning: "
)

_CLASS: Final = r"(?:[a-z_][\w$]*\.)+[A-Z][\w$]*"
_THROWN: Final = re.compile(rf"({_CLASS})(?:: (.*))?")
_CAUSE: Final = re.compile(rf"Caused by: ({_CLASS})(?:: (.*))?")
_FRAME: Final = re.compile(r"\s+(?:at [\w$.<>/@-]+\(|\.\.\. [0-9]+ (?:more|common))")
_MAX_MESSAGE_LINE_COUNT: Final = 20


def read_transcript(text: str) -> list[Answer]:
    """Splits a text at its command lines.

    Returns:
        The answers in the order of the text; none if it has no command line.

    Raises:
        TextError: A command line cannot be read, or something stands before the first one.
    """
    lines = lines_of(text)
    starts = [index for index, line in enumerate(lines) if _COMMAND_LINE.fullmatch(line.text)]
    if not starts:
        return []
    for line in lines[: starts[0]]:
        if line.text.strip() and not _INSTANT_LINE.fullmatch(line.text) and not _NOISE.match(line.text):
            raise TextError(line.number, "a command line such as '$ mqadmin topicList' is expected first")
    ends = [*starts[1:], len(lines)]
    return [
        _answer(lines[start], lines[start - 1] if start else None, lines[start + 1 : end])
        for start, end in zip(starts, ends, strict=True)
    ]


def lines_of(text: str) -> list[Line]:
    """Splits a text into lines, whichever system it was kept on."""
    return [Line(number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), start=1)]


def _answer(command_line: Line, line_before: Line | None, lines: Sequence[Line]) -> Answer:
    found = _COMMAND_LINE.fullmatch(command_line.text)
    if found is None:
        raise AssertionError("only command lines begin an answer")
    command = found[1]
    body, failures = _split_failures([line for line in lines if not _NOISE.match(line.text)])
    if body and _INSTANT_LINE.fullmatch(body[-1].text):
        body.pop()  # That is the next command's.
    while body and not body[-1].text.strip():
        body.pop()
    return Answer(
        line_number=command_line.number,
        command=command,
        options=_options(command, found[2], command_line.number),
        asked_at=None if line_before is None else _instant(line_before),
        lines=tuple(body),
        failures=tuple(failures),
    )


def _instant(line: Line) -> datetime | None:
    found = _INSTANT_LINE.fullmatch(line.text)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        raise TextError(
            line.number, "an instant that exists is expected, such as 2026-11-16T01:55:40Z"
        ) from None


def _options(command: str, text: str, line_number: int) -> dict[str, str]:
    """Read a command's options as commons-cli does; those of commands that are not read are not looked at."""
    if command not in _OPTIONS:
        return {}
    long_names = {**_COMMON, **_OPTIONS[command]}
    short_names = {long: short for short, long in long_names.items()}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TextError(line_number, f"a command line of a shell is expected ({error})") from None
    options: dict[str, str] = {}
    waiting = iter(words)
    for word in waiting:
        name, has_value, value = word.lstrip("-").partition("=")
        short = short_names.get(name, name)
        if word.startswith(("|", ">", "2>", "&")):
            break  # Where its output went.
        if not word.startswith("-") or short not in long_names:
            raise TextError(line_number, f"an option of {command} is expected, and {word!r} is none")
        if (command, short) in _FLAGS or short == "h":
            options[short] = ""
            continue
        if not has_value:
            value = next(waiting, "")
        if not value.strip():
            raise TextError(line_number, f"a value is expected after {word!r}")
        options[short] = value.strip()
    return options


@dataclass(slots=True)
class _Trace:
    """A stack trace that is being read."""

    line_number: int
    thrown: str
    type: str
    message: list[str] = field(default_factory=list)

    def finished(self) -> JavaFailure:
        return JavaFailure(self.line_number, self.thrown, self.type, "\n".join(self.message))


def _split_failures(lines: Sequence[Line]) -> tuple[list[Line], list[JavaFailure]]:
    """Take the stack traces out of an answer."""
    rest: list[Line] = []
    traces: list[JavaFailure] = []
    index = 0
    while index < len(lines):
        found = _THROWN.fullmatch(lines[index].text)
        end = _end_of_message(lines, index)
        if found is None or end is None:
            rest.append(lines[index])
            index += 1
            continue
        trace = _Trace(lines[index].number, found[1], found[1], _message(found[2], lines[index + 1 : end]))
        index = end
        while index < len(lines):
            cause = _CAUSE.fullmatch(lines[index].text)
            if cause is not None:
                end = _end_of_message(lines, index)
                if end is None:
                    break  # Cut within the cause: what is left is no part of an answer either.
                trace.type = cause[1]
                trace.message = _message(cause[2], lines[index + 1 : end])
                index = end
            elif _FRAME.match(lines[index].text):
                index += 1
            else:
                break
        traces.append(trace.finished())
    return rest, traces


def _message(first: str | None, more: Sequence[Line]) -> list[str]:
    return [first or "", *(line.text for line in more)] if first or more else []


def _end_of_message(lines: Sequence[Line], start: int) -> int | None:
    """Return where the frames of a trace begin; None if there are none, so that it is no trace."""
    for index in range(start + 1, min(start + 1 + _MAX_MESSAGE_LINE_COUNT, len(lines))):
        if _FRAME.match(lines[index].text):
            return index
    return None
