"""A test program that takes seconds to start, and therefore answers several requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class AnsweringProcess:
    """A Python program that reads requests from standard input and writes answers to a pipe, as lines of JSON.

    Attributes:
        output: The file with stdout and stderr of the program.
    """

    def __init__(
        self, program: Path, *arguments: str | Path, environment: Mapping[str, str], output: Path
    ) -> None:
        """Start the program, with the pipe's descriptor as its last argument."""
        self.output = output
        answers, of_program = os.pipe()
        with output.open("w") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-u", program, *arguments, str(of_program)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                pass_fds=[of_program],
                text=True,
            )
        os.close(of_program)
        self._answers = os.fdopen(answers)

    def ask(self, question: object) -> Any:
        """Return the answer to a request."""
        assert self._process.stdin
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        answer = self._answers.readline()
        assert answer, self.output.read_text()[-3000:]
        return json.loads(answer)

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait() == 0, self.output.read_text()[-3000:]
        self._answers.close()
