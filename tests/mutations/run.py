"""`python tests/mutations/run.py [WORD ...]`: plant each bug in a copy of the code and see whether its tests notice.

Not part of `make test`: it takes half an hour. Prints a line for each bug, and which were not caught; 1 if more than three were not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planted import BUGS, Bug

ROOT = Path(__file__).parents[2]
SECONDS = 900
ALLOWED = 3


def play(bug: Bug, folder: Path) -> str:
    """`caught`, `survived`, `overdue` where the tests did not end, or `stale` where the code to be changed is not there (once)."""
    copy = folder / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / bug.file
    text = file.read_text()
    for before, after in ((bug.before, bug.after), bug.also):
        if before and text.count(before) != 1:
            return "stale"
        text = text.replace(before, after) if before else text
    file.write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:logging",
        "-m",
        "not soak",
        *(t for t in bug.tests if (ROOT / t).exists()),
    ]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(copy)}, timeout=SECONDS, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "overdue"
    return {0: "survived", 5: "stale"}.get(done.returncode, "caught")


def main(words: list[str]) -> int:
    """Play those whose names have one of the words; all without words."""
    chosen = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    outcomes: dict[str, str] = {}
    for bug in chosen:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            outcomes[bug.name] = play(bug, Path(folder))
        print(f"{outcomes[bug.name]:<18} {time.monotonic() - started:5.0f} s  {bug.name}", flush=True)  # noqa: T201 - its result
    missed = [name for name, outcome in outcomes.items() if not outcome.startswith("caught")]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught; not: {', '.join(missed) or 'none'}")  # noqa: T201 - its result
    return 1 if len(missed) > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
