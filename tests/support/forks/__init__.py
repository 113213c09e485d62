"""Commands as processes, without the cost of importing the program for each: forks of one process that has imported it.

A command is what it would be otherwise: a process with its own files, folder and environment, that can be waited for and signalled. That
a fresh interpreter can run the program is tested by those tests that start one.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
KILL = signal.SIGUSR1
"""What to send instead of SIGKILL to have the command killed, and gone before it can be waited for."""


def program() -> list[str]:
    """How to call `clusterwright`, for `subprocess`."""
    # without site-packages: what is called only hands over
    return [sys.executable, "-S", "-E", str(_HERE / "call.py"), _server()]


@cache
def _server() -> str:
    """Where the process listens; it ends with this one."""
    folder = tempfile.TemporaryDirectory(prefix="forks")
    address = str(Path(folder.name) / "s")
    process = subprocess.Popen([sys.executable, str(_HERE / "server.py"), address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.read(1) == b"!", "the process that forks did not start"

    def end() -> None:
        process.stdin.close()
        process.stdout.close()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return address
