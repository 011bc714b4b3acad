"""What is known against the locked packages, by the registry's own data: `make audit`.

The tool, pip-audit, has its own environment in `.local/audit`; every package is checked by hash. It ends with 0 where the
registry does not know a package, so packages it could not check are read from its report.

Belongs here: setting the tool up, and reading its report. Does not belong here: what to do about a weakness.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any, Final

from setup import python_environment
from setup.steps import LOCAL, ROOT, SetUpError, Step, content_key, perform, say

FOLDER: Final = LOCAL / "audit"
_PINS: Final = ROOT / "requirements" / "audit.txt"
_EXIT_WEAKNESS: Final = 1
_EXIT_NOT_JUDGED: Final = 2
_MOST_NAMED: Final = 5


def step() -> Step:
    """Return the step for the tool's environment, which is created again when a pin changes."""

    def run() -> None:
        shutil.rmtree(FOLDER, ignore_errors=True)
        python_environment.uv("venv", "--quiet", "--python", sys.executable, str(FOLDER))
        python_environment.uv(
            "pip", "sync", "--require-hashes", "--python", str(FOLDER / "bin" / "python"), str(_PINS)
        )

    return Step("audit", "pip-audit, pinned by hash", content_key(_PINS, str(ROOT)), run)


def verdict(dependencies: list[dict[str, Any]]) -> tuple[int, str]:
    """Return the verdict on a report.

    Args:
        dependencies: `dependencies` of pip-audit's JSON: name with `vulns`, or with `skip_reason`.

    Returns:
        The exit code (0, 1 for a known weakness, 2 where a package could not be judged), and the sentences to print.
    """
    weak = [
        (package["name"], package["version"], package["vulns"])
        for package in dependencies
        if package.get("vulns")
    ]
    skipped = [package for package in dependencies if "skip_reason" in package]
    lines = [
        f"{name} {version}: {vulnerability['id']}, corrected in {', '.join(vulnerability['fix_versions']) or 'no release yet'}."
        for name, version, vulnerabilities in weak
        for vulnerability in vulnerabilities
    ]
    judged = len(dependencies) - len(skipped)
    lines.append(
        f"Judged {judged} of {len(dependencies)} locked packages: {len(weak)} with known weaknesses."
    )
    if skipped:
        names = ", ".join(package["name"] for package in skipped[:_MOST_NAMED])
        more = f" and {len(skipped) - _MOST_NAMED} more" if len(skipped) > _MOST_NAMED else ""
        lines.append(
            f"Not judged: {names}{more}; the first for this reason: {skipped[0]['skip_reason']}. "
            "Ask a registry that has advisories (PyPI's JSON API)."
        )
    return _EXIT_WEAKNESS if weak else _EXIT_NOT_JUDGED if skipped or not dependencies else 0, "\n".join(
        lines
    )


def main() -> int:
    """Set the tool up if need be, ask, and say what was known and what could not be judged."""
    report = LOCAL / "audit.json"
    report.unlink(missing_ok=True)
    try:
        perform(step())
    except SetUpError as error:
        sys.stderr.write(f"The packages cannot be audited. {error}\n")
        return _EXIT_NOT_JUDGED
    completed = subprocess.run(  # noqa: S603  # an argument list made here
        [
            FOLDER / "bin" / "pip-audit",
            *("--no-deps", "--disable-pip", "--progress-spinner", "off"),
            *("--format", "json", "--output", report),
            *("--requirement", python_environment.LOCK),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        dependencies = json.loads(report.read_text())["dependencies"]
    except (OSError, ValueError, KeyError):
        last = (completed.stderr.strip() or "it wrote nothing").splitlines()[-1]
        sys.stderr.write(f"Nothing could be judged: pip-audit wrote no report ({last}). Try again.\n")
        return _EXIT_NOT_JUDGED
    code, text = verdict(dependencies)
    say(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
