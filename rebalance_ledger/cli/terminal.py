"""Messages on a terminal or in a pipe. They contain names of clusters and answers of servers, which may contain any character.

Belongs here: escapes, charsets and closed pipes. Does not belong here: tables (`result_formats`).
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from rebalance_ledger.printable import visible
from rebalance_ledger.warehouse.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_STANDARD_ERROR: Final = 2
"""The highest number of a standard stream."""


class SentenceConsole(Console):
    """A console that escapes non-printing characters; Rich itself writes escape sequences unchanged."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401  # as Rich's own
        """Print as Rich does, with non-printing characters of strings as escapes."""
        super().print(
            *(visible(each, keep="\n") if isinstance(each, str) else each for each in objects), **options
        )


def echo(sentence: str) -> None:
    """Write a sentence to standard output, with non-printing characters as escapes.

    A closed pipe (`| head`) does not end the command, which may have more to do than to write.
    """
    with until_reader_leaves():
        typer.echo(visible(sentence, keep="\n"))


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """End the block without an error if the reader of standard output closes the pipe (`| head`); discard later output."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_arguments(arguments: Sequence[str]) -> None:
    """Check that the arguments of this process are valid text; Python represents each byte that is not by a surrogate.

    Raises:
        QueryError: An argument is not valid text. No name in a warehouse or an export is like it.
    """
    for argument in arguments:
        if not _is_text(argument):
            raise QueryError(
                f"The argument {argument!r} is not {sys.getfilesystemencoding()}: write it in this charset, or set another "
                "locale (LC_ALL=C.UTF-8); for a file with such a name, give its folder or another name."
            )


def read_standard_input() -> str:
    """Return the text of standard input.

    Raises:
        QueryError: Standard input is not valid text.
    """
    try:
        text = sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = "\ud800"
    if not _is_text(text):
        raise QueryError(f"Standard input is not {sys.stdin.encoding}: write it in this charset.")
    return text


def open_closed_streams() -> None:
    """Open standard streams that the caller closed (`>&-`) on the null device.

    Otherwise the first files that this process or its children open take their numbers, and messages end up in these files.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(descriptor, True)  # noqa: FBT003  # positional only
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # until the process ends
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def escape_unencodable() -> None:
    """Let standard output write escapes for characters that are not in its charset, as standard error does."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
