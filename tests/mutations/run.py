"""`python tests/mutations/run.py [WORD ...]`: plant each bug in a copy of the code and see whether its tests notice.

Not part of `make test`: it takes half an hour. Prints a line for each bug, and which were not caught; 1 if more than three were not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planted import BUGS, Bug

ROOT = Path(__file__).parents[2]
SECONDS = 1800
ALLOWED = 3


def play(bug: Bug, folder: Path) -> str:
    """What became of a bug, in a word.

    `caught` with the test that failed, and that passes without the bug; `survived`; `overdue` where the tests did not end; `stale` where
    the code to be changed is not there (once) or a test is not; `unclear` where the tests could not run, or fail without the bug, too.
    """
    copy = folder / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / bug.file
    text = file.read_text()
    for before, after in ((bug.before, bug.after), bug.also):
        if before and text.count(before) != 1:
            return "stale"
        text = text.replace(before, after) if before else text
    if not all((ROOT / test).exists() for test in bug.tests):
        return "stale"
    file.write_text(text)
    try:
        code, said = _pytest(copy, *bug.tests)
        failed = re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", said, re.MULTILINE)
        if code != 1 or not failed:
            return "survived" if code == 0 else "unclear"
        code, _ = _pytest(ROOT / "src", failed[0])
    except subprocess.TimeoutExpired:
        return "overdue"
    return f"caught by {failed[0]}" if code == 0 else "unclear"


def _pytest(src: Path, *tests: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "-p", "no:cacheprovider", "-m", "not soak", *tests]
    environment = {**os.environ, "PYTHONPATH": str(src), "COLUMNS": "1000"}
    done = subprocess.run(command, cwd=ROOT, env=environment, timeout=SECONDS, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def main(words: list[str]) -> int:
    """Play those whose names have one of the words; all without words."""
    chosen = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    outcomes: dict[str, str] = {}
    for bug in chosen:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            outcomes[bug.name] = play(bug, Path(folder))
        print(f"{time.monotonic() - started:5.0f} s  {bug.name}: {outcomes[bug.name]}", flush=True)  # noqa: T201 - its result
    missed = [name for name, outcome in outcomes.items() if not outcome.startswith("caught")]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught; not: {', '.join(missed) or 'none'}")  # noqa: T201 - its result
    return 1 if len(missed) > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
