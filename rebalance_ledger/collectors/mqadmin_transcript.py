"""Transcripts of `mqadmin`: command lines, the time of each command, and its output.

Belongs here: command lines and their options, log noise, Java stack traces. Does not belong here: the output formats of the commands
(`mqadmin_text`).

A transcript is one or more command lines, each followed by its output. A line before a command line may hold the instant at
which the command ran:

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
    """A text does not have the format of its command.

    Attributes:
        line_number: Line number from 1; 0 for the text as a whole.
        reason: The expected content.
    """

    def __init__(self, line_number: int, reason: str) -> None:
        super().__init__(f"line {line_number}: {reason}" if line_number else reason)
        self.line_number = line_number
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text.

    Attributes:
        number: Line number from 1.
        text: Text without the line feed.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class JavaFailure:
    """A stack trace without its frames.

    Attributes:
        line_number: Line number of its first line.
        thrown: Class of the thrown exception.
        type: Class of the innermost cause.
        message: Message of the innermost cause, possibly of several lines; empty if it has none.
    """

    line_number: int
    thrown: str
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One command and its output.

    Attributes:
        line_number: Line number of the command line.
        command: Subcommand, such as `topicRoute`.
        options: Options by short name; a flag has an empty value.
        asked_at: Time at which the command ran (UTC), if the text has it.
        lines: Output without log noise, stack traces and trailing blank lines.
        failures: Stack traces in the output.
    """

    line_number: int
    command: str
    options: Mapping[str, str]
    asked_at: datetime | None
    lines: tuple[Line, ...]
    failures: tuple[JavaFailure, ...]

    @property
    def failure(self) -> JavaFailure | None:
        """The failure that ended the command, if any."""
        return next((each for each in self.failures if each.thrown == _COMMAND_FAILED), None)


_COMMAND_FAILED: Final = "org.apache.rocketmq.tools.command.SubCommandException"

# Short name -> long name; options in `_FLAGS` take no value.
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
"""Supported commands and their options."""

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

# Output of loggers and the JVM, which depends on the installation of mqadmin.
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
    """Split a text at its command lines.

    Returns:
        The answers in the order of the text; an empty list if it has no command line.

    Raises:
        TextError: A command line cannot be parsed, or other text precedes the first one.
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
    """Split a text into lines, with LF or CRLF line ends."""
    return [Line(number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), start=1)]


def _answer(command_line: Line, line_before: Line | None, lines: Sequence[Line]) -> Answer:
    match = _COMMAND_LINE.fullmatch(command_line.text)
    if match is None:
        raise AssertionError("only command lines begin an answer")
    command = match[1]
    body, failures = _split_failures([line for line in lines if not _NOISE.match(line.text)])
    if body and _INSTANT_LINE.fullmatch(body[-1].text):
        body.pop()  # It belongs to the next command.
    while body and not body[-1].text.strip():
        body.pop()
    return Answer(
        line_number=command_line.number,
        command=command,
        options=_options(command, match[2], command_line.number),
        asked_at=None if line_before is None else _instant(line_before),
        lines=tuple(body),
        failures=tuple(failures),
    )


def _instant(line: Line) -> datetime | None:
    match = _INSTANT_LINE.fullmatch(line.text)
    if match is None:
        return None
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        raise TextError(
            line.number, "an instant that exists is expected, such as 2026-11-16T01:55:40Z"
        ) from None


def _options(command: str, text: str, line_number: int) -> dict[str, str]:
    """Parse a command's options as commons-cli does; return none for unsupported commands."""
    if command not in _OPTIONS:
        return {}
    long_names = {**_COMMON, **_OPTIONS[command]}
    short_names = {long: short for short, long in long_names.items()}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TextError(line_number, f"a command line of a shell is expected ({error})") from None
    options: dict[str, str] = {}
    remaining = iter(words)
    for word in remaining:
        name, has_value, value = word.lstrip("-").partition("=")
        short = short_names.get(name, name)
        if word.startswith(("|", ">", "2>", "&")):
            break  # Redirection of the output.
        if not word.startswith("-") or short not in long_names:
            raise TextError(line_number, f"an option of {command} is expected, and {word!r} is none")
        if (command, short) in _FLAGS or short == "h":
            options[short] = ""
            continue
        if not has_value:
            value = next(remaining, "")
        if not value.strip():
            raise TextError(line_number, f"a value is expected after {word!r}")
        options[short] = value.strip()
    return options


@dataclass(slots=True)
class _Trace:
    """A stack trace during parsing."""

    line_number: int
    thrown: str
    type: str
    message: list[str] = field(default_factory=list)

    def finished(self) -> JavaFailure:
        return JavaFailure(self.line_number, self.thrown, self.type, "\n".join(self.message))


def _split_failures(lines: Sequence[Line]) -> tuple[list[Line], list[JavaFailure]]:
    """Separate the stack traces from the other lines of an answer."""
    rest: list[Line] = []
    traces: list[JavaFailure] = []
    index = 0
    while index < len(lines):
        match = _THROWN.fullmatch(lines[index].text)
        end = _end_of_message(lines, index)
        if match is None or end is None:
            rest.append(lines[index])
            index += 1
            continue
        trace = _Trace(lines[index].number, match[1], match[1], _message(match[2], lines[index + 1 : end]))
        index = end
        while index < len(lines):
            cause = _CAUSE.fullmatch(lines[index].text)
            if cause is not None:
                end = _end_of_message(lines, index)
                if end is None:
                    break  # Truncated within the cause: the remaining lines are not output either.
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
    """Return the index of a trace's first frame; None if there is none, so that the lines are not a trace."""
    for index in range(start + 1, min(start + 1 + _MAX_MESSAGE_LINE_COUNT, len(lines))):
        if _FRAME.match(lines[index].text):
            return index
    return None
