"""The way this program was called, for hints that can be pasted into a shell."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path


def as_called(original: Sequence[str] | None = None) -> str:
    """Return what to type to call the program again: its name if the shell finds it, else its path, or `PYTHON -m ...`."""
    words = list(sys.orig_argv if original is None else original)
    if "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        return f"{_shortest(words[0])} -m {module}" if module.partition(".")[0] == "clusterwright" else "clusterwright"
    # a script's interpreter is put before it
    script = next((word for word in words[:3] if Path(word).name == "clusterwright"), "")
    return _shortest(script) if script else "clusterwright"


def _shortest(command: str) -> str:
    found = shutil.which(Path(command).name)
    return Path(command).name if found is not None and Path(found).absolute() == Path(command).absolute() else shlex.quote(command)
