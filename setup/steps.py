"""Doing each step of the set-up once, and again when what it depends on has changed.

Belongs here: stamp files, progress lines, running a program with its output kept in a log.
Does not belong here: what any one step does (see the other modules of this package).

Standard library only: this code runs before there is a virtual environment.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"


class SetUpError(Exception):
    """A step failed; the message is one sentence with the reason and the fix."""


@dataclass(frozen=True)
class Step:
    """One thing that set-up brings about.

    Attributes:
        name: Names the stamp and the log file.
        title: What the reader of the progress sees.
        key: Changes whenever the step has to be done again.
        run: Does it.
        start_over: Clears away what an interrupted attempt may have left half done.
        made: A file that the step makes; without it the step is done again. None if the stamp says enough.
    """

    name: str
    title: str
    key: str
    run: Callable[[], None]
    start_over: Callable[[], None] = lambda: None
    made: Path | None = None


def content_key(*parts: str | Path) -> str:
    """Return a digest of some texts and of the contents of some files, to be used as a step's key."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def perform(step: Step, local: Path = LOCAL) -> bool:
    """Run a step unless its stamp shows that it is done.

    A second file marks the time between start and end. If it is there at the start, an earlier attempt failed or
    was killed, and the step starts over.

    Returns:
        Whether anything was done.

    Raises:
        SetUpError: What the step raised. The stamp stays away, so the next run tries again.
    """
    stamp = local / "stamps" / step.name
    started = stamp.with_name(f"{step.name}.started")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    unfinished = started.exists()
    is_there = step.made is None or step.made.exists()
    if not unfinished and is_there and stamp.is_file() and stamp.read_text() == step.key:
        return False
    stamp.unlink(missing_ok=True)
    started.touch()
    say(f"  {step.title} … ", end="")
    begin = time.monotonic()
    try:
        if unfinished:
            step.start_over()
        step.run()
    except SetUpError:
        say("failed")
        raise
    write_whole(stamp, step.key)
    started.unlink()
    say(f"{time.monotonic() - begin:.0f} s")
    return True


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)


def run_logged(
    argv: Sequence[str | Path],
    *,
    log: str,
    on_failure: str,
    env: Mapping[str, str] | None = None,
    local: Path = LOCAL,
) -> None:
    """Run a program with its output in `.local/logs/setup-<log>.log`.

    Args:
        argv: The program and its arguments; no shell is involved.
        log: Names the log file.
        on_failure: What the reader can do, printed after the program's last output.
        env: Variables to add to (or take, by an empty value, from) the environment.
        local: The project-local folder.

    Raises:
        SetUpError: If the program is missing or does not end well.
    """
    log_file = local / "logs" / f"setup-{log}.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in argv]
    with log_file.open("ab") as output:
        output.write(f"\n$ {words}\n".encode())
        output.flush()
        try:
            code = subprocess.run(  # noqa: S603  # an argument list made in this package
                words,
                cwd=ROOT,
                env=clean_environment(env),
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                check=False,
            ).returncode
        except FileNotFoundError:
            raise SetUpError(f"{words[0]} is not there. {on_failure}") from None
    if code != 0:
        lines = [line for line in log_file.read_text(errors="replace").splitlines() if line.strip()]
        last = "\n    ".join(lines[-5:])
        raise SetUpError(
            f"{Path(words[0]).name} ended with exit code {code}:\n    {last}\n  {on_failure}\n"
            f"  All of its output: {log_file.relative_to(ROOT) if log_file.is_relative_to(ROOT) else log_file}"
        )


def clean_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make an environment in which another Python project's settings cannot leak into this one's."""
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    for name, value in (changes or {}).items():
        if value:
            env[name] = value
        else:
            env.pop(name, None)
    return env


_FOREIGN = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "CONDA_PREFIX"}


def say(text: str, end: str = "\n") -> None:
    """Print progress at once, also into a pipe."""
    sys.stdout.write(f"{text}{end}")
    sys.stdout.flush()
