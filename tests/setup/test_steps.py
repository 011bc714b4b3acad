"""A step of the set-up is done once, and again when it has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from setup.steps import SetUpError, Step, content_key, perform, run_logged

if TYPE_CHECKING:
    from pathlib import Path


class Work:
    """A step's work, counted; the attempt of the number `fails_at` goes wrong in the way of `failure`."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.done = 0
        self.started_over = 0
        self.failure = failure

    def step(self, key: str = "k") -> Step:
        return Step("thing", "the thing", key, self._run, self._start_over)

    def _run(self) -> None:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.done += 1

    def _start_over(self) -> None:
        self.started_over += 1


def test_a_completed_step_is_not_repeated(tmp_path: Path) -> None:
    work = Work()
    assert [perform(work.step(), tmp_path) for _ in range(2)] == [True, False]
    assert work.done == 1


def test_a_step_is_repeated_when_its_key_changes(tmp_path: Path) -> None:
    work = Work()
    for key in ("old", "new", "new"):
        perform(work.step(key), tmp_path)
    assert (work.done, work.started_over) == (2, 0)


def test_a_step_is_repeated_when_its_result_is_gone(tmp_path: Path) -> None:
    made = tmp_path / "made"
    step = Step("thing", "the thing", "k", made.touch, made=made)

    assert [perform(step, tmp_path) for _ in range(2)] == [True, False]
    made.unlink()
    assert [perform(step, tmp_path) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("failure", [SetUpError("no network"), KeyboardInterrupt()])
def test_a_step_restarts_after_a_failure_or_a_kill(tmp_path: Path, failure: BaseException) -> None:
    work = Work(failure)
    with pytest.raises(type(failure)):
        perform(work.step(), tmp_path)
    perform(work.step(), tmp_path)
    perform(work.step(), tmp_path)
    assert (work.done, work.started_over) == (1, 1)


def test_a_step_interrupted_on_its_repetition_is_not_complete(tmp_path: Path) -> None:
    perform(Work().step("old"), tmp_path)
    cut_short = Work(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        perform(cut_short.step("new"), tmp_path)
    # Even with the old key: what the cut-short attempt left is neither.
    again = Work()
    perform(again.step("old"), tmp_path)
    assert again.done == 1


def test_a_key_distinguishes_texts_and_files(tmp_path: Path) -> None:
    file = tmp_path / "lock.txt"
    file.write_text("a==1")
    keys = [content_key("ab", "c"), content_key("a", "bc"), content_key("abc"), content_key(file)]
    file.write_text("a==2")
    assert len({*keys, content_key(file)}) == len(keys) + 1


def test_a_failing_program_is_reported_with_its_last_output_advice_and_log_file(
    tmp_path: Path,
) -> None:
    with pytest.raises(SetUpError) as caught:
        run_logged(
            ["sh", "-c", "echo first; echo 'no route to host' >&2; exit 4"],
            log="fetch",
            on_failure="Try again.",
            local=tmp_path,
        )
    assert "exit code 4" in str(caught.value)
    assert "no route to host" in str(caught.value)
    assert "Try again." in str(caught.value)
    assert (tmp_path / "logs" / "setup-fetch.log").read_text().endswith("first\nno route to host\n")


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetUpError, match=r"no-such-program is not there\. Install it\."):
        run_logged(["no-such-program"], log="x", on_failure="Install it.", local=tmp_path)


def test_another_projects_settings_do_not_leak_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    run_logged(
        ["sh", "-c", 'echo "<$PYTHONPATH$EXTRA>"'], log="x", on_failure="", env={"EXTRA": "e"}, local=tmp_path
    )
    assert "<e>" in (tmp_path / "logs" / "setup-x.log").read_text()
