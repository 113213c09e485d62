"""Start and end the process of a provider, with everything that it has started itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from clusterwright.apiserver.serving.tls import write_private
from clusterwright.providers.output import Output
from clusterwright.runtime.clock import Clock

_MARK: Final = "process"
_KILLED: Final = 5.0
"""Seconds that the system gets to end a killed process."""


class NotStarted(Exception):
    """The process could not be started; the text says why."""


class Process:
    """A running process. It has a process group of its own, so that its children end with it and Ctrl-C does not reach it."""

    def __init__(self, process: asyncio.subprocess.Process, output: Output, folder: Path, clock: Clock) -> None:
        self._process, self._output, self._folder, self._clock = process, output, folder, clock
        self._is_over = False

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], folder: Path, output: Output, clock: Clock) -> Process:
        """Start a program; raises NotStarted."""
        try:
            started = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.descriptor,
                stderr=output.descriptor,
                env=dict(env),
                cwd=folder / "work",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            output.abandon()
            why = getattr(error, "strerror", None) or error
            raise NotStarted(f"{command[0]} cannot be started: {why}") from None
        output.start()
        with suppress(OSError):  # the mark only helps after a crash of the plane
            await asyncio.to_thread(write_private, folder / _MARK, f"{started.pid} {_birth(started.pid)}\n".encode())
        return cls(started, output, folder, clock)

    @property
    def last_output(self) -> str:
        """The last lines of the output."""
        return self._output.last

    async def ended(self) -> str:
        """Wait for the end of the process, and return how it ended."""
        status = await self._process.wait()
        await self._closed()
        if status >= 0:
            return f"exit status {status}"
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"

    async def stop(self, grace: float) -> None:
        """End the process and its children: ask first, kill after `grace` seconds. An ended process is left alone: its number is free."""
        if self._is_over:
            return
        waiting = asyncio.create_task(self._process.wait())
        try:
            _signal(self._process.pid, signal.SIGTERM)
            await asyncio.wait([waiting], timeout=grace)
        finally:
            _signal(self._process.pid, signal.SIGKILL)
            await asyncio.wait([waiting], timeout=_KILLED)
            waiting.cancel()
        await self._closed()

    async def _closed(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        _signal(self._process.pid, signal.SIGKILL)  # what the process left behind
        await asyncio.to_thread(self._output.close)
        (self._folder / _MARK).unlink(missing_ok=True)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def end_leftover(folder: Path) -> bool:
    """End the process that a plane left running because it was killed. Return whether there was one."""
    try:
        pid_text, _, birth = (folder / _MARK).read_text(encoding="ascii", errors="replace").strip().partition(" ")
    except OSError:
        return False
    pid = int(pid_text) if pid_text.isdecimal() else 0
    found = bool(birth) and 1 < pid < 2**31 and _birth(pid) == birth
    if found:
        _signal(pid, signal.SIGKILL)
    (folder / _MARK).unlink(missing_ok=True)
    return found


def _birth(pid: int) -> str:
    """Return when a process was started, as the system tells it; numbers of processes are used again. Empty: not known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii", errors="replace").strip()
        return f"{stat.rpartition(')')[2].split()[19]}@{boot}"
    except (OSError, IndexError):
        return ""
