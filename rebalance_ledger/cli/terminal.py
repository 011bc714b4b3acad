"""Sentences on a terminal: names of a cluster and answers of its servers are in them, and either may hold any character.

What belongs here: what every sentence goes through on its way out. What does not: tables (`result_formats`).
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from rebalance_ledger.printable import visible
from rebalance_ledger.warehouse.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class SentenceConsole(Console):
    """A console that prints texts as they are, but for characters that do not print: Rich passes escape sequences on."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401  # as Rich's own
        """Print as Rich does; in a text, characters that do not print are escapes."""
        super().print(
            *(visible(each, keep="\n") if isinstance(each, str) else each for each in objects), **options
        )


def echo(sentence: str) -> None:
    """Write a sentence on standard output; characters that do not print are escapes.

    A reader who has left (`| head`) does not end the command, which may have more to do than to write.
    """
    with until_reader_leaves():
        typer.echo(visible(sentence, keep="\n"))


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """End the block when the reader of standard output has seen enough (`| head`); what is written later goes nowhere."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_arguments(arguments: Sequence[str]) -> None:
    """Check that the arguments of this process are text; Python has half a surrogate pair for each byte that is none.

    Raises:
        QueryError: One is not: no name in a warehouse or an export is like it, and no table can be asked for it.
    """
    for argument in arguments:
        if not _is_text(argument):
            raise QueryError(
                f"The argument {argument!r} is not {sys.getfilesystemencoding()}: write it in this charset, or set another "
                "locale (LC_ALL=C.UTF-8); for a file with such a name, give its folder or another name."
            )


def read_standard_input() -> str:
    """Return the text of standard input, empty if it is closed.

    Raises:
        QueryError: It is no text.
    """
    if sys.stdin is None:
        return ""
    try:
        text = sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = "\ud800"
    if not _is_text(text):
        raise QueryError(f"What standard input holds is not {sys.stdin.encoding}: write it in this charset.")
    return text


def escape_unencodable() -> None:
    """Let standard output write escapes for characters that its charset lacks, as standard error does."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
