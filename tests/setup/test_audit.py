"""Results of an audit report: vulnerabilities, and packages that could not be checked."""

from __future__ import annotations

from setup.audit import verdict

SOUND = {"name": "a", "version": "1.0", "vulns": []}
WEAK = {"name": "b", "version": "2.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


def test_packages_without_a_known_vulnerability_pass() -> None:
    assert verdict([SOUND]) == (0, "Judged 1 of 1 locked packages: 0 with known weaknesses.")


def test_a_vulnerability_is_named_with_the_release_that_fixes_it() -> None:
    code, text = verdict([SOUND, WEAK, UNKNOWN])

    assert code == 1
    assert "b 2.0: PYSEC-1, corrected in 2.1." in text
    assert "Judged 2 of 3" in text


def test_packages_that_could_not_be_checked_do_not_pass() -> None:
    code, text = verdict([SOUND, UNKNOWN])

    assert code == 2
    assert "Not judged: c; the first for this reason: Dependency not found on PyPI." in text


def test_an_empty_report_does_not_pass() -> None:
    assert verdict([])[0] == 2
