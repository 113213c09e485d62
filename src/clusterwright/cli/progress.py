"""A cluster coming up, for people who wait for it: a tree that changes in its place on a terminal, a line per change elsewhere."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TextIO

from clusterwright.api.core import Cluster, Machine, ReplicaCounters
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli.describe import look
from clusterwright.cli.errors import Failed
from clusterwright.cli.following import changes, of_cluster
from clusterwright.cli.tree import render
from clusterwright.conditions import get
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.rest import RestClient


class Screen:
    """Where a text is shown that changes: on a terminal the new one replaces the old one."""

    def __init__(self, out: TextIO | None = None, size: Callable[[], tuple[int, int]] = shutil.get_terminal_size) -> None:
        self._out = out or sys.stdout
        self._size = size
        self._lines = 0
        self.is_terminal = self._out.isatty()

    def show(self, text: str) -> None:
        """Replace what is shown; only as much as the terminal has room for."""
        columns, rows = self._size()
        lines = [line[: columns - 1] for line in text.splitlines()]
        if len(lines) > rows - 2:
            lines = [*lines[: rows - 3], f"... {len(lines) - rows + 3} more"]
        back = f"\x1b[{self._lines}F\x1b[J" if self._lines else ""
        self._out.write(back + "".join(f"{line}\n" for line in lines))
        self._out.flush()
        self._lines = len(lines)

    def say(self, line: str) -> None:
        """Say something that stays."""
        self._lines = 0
        self._out.write(f"{line}\n")
        self._out.flush()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a cluster is."""

    line: str
    is_up: bool


async def until_up(
    client: RestClient, key: ObjectKey, clock: Clock, *, timeout: float | None = None, screen: Screen | None = None
) -> float:
    """Show how a cluster comes up until it is available with all its machines; after how many seconds. Raises Failed, ApiError."""
    screen, began, shown = screen or Screen(), clock.monotonic(), ""
    try:
        async with asyncio.timeout(timeout), aclosing(changes(client, of_cluster(key))) as changed:
            async for _ in changed:
                try:
                    cluster = await client.get(Cluster, key)
                except NotFound:
                    raise Failed(f"cluster {key} is gone") from None
                machines = await client.list(Machine, namespace=key.namespace, labels={CLUSTER_NAME_LABEL: key.name})
                now = progress(cluster, Counter(m.status.phase or "Pending" for m in machines))
                elapsed = clock.monotonic() - began
                if screen.is_terminal:
                    screen.show(f"{elapsed:6.1f}s  {now.line}\n\n{render(await look(client, key), clock.now())}")
                elif now.line != shown:
                    screen.say(f"{elapsed:6.1f}s  {now.line}")
                shown = now.line
                if now.is_up:
                    return elapsed
    except TimeoutError:
        raise Failed(f"cluster {key} is not available after {timeout:g} s: {shown}") from None
    raise AssertionError("a watch has no end")


def progress(cluster: Cluster, phases: Counter[str]) -> Progress:
    """How far a cluster is whose Machines are in these phases. Pure."""
    status = cluster.status
    leaders, all_leaders = _counts(status.control_plane)
    workers, all_workers = _counts(status.workers)
    available = get(status.conditions, "Available")
    machines = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items())) or "none"
    line = (
        f"cluster {cluster.metadata.name}: {status.phase or 'Pending':<12}  "
        f"control plane {leaders}/{all_leaders or 0} ready  workers {workers}/{all_workers or 0} ready  "
        f"machines: {machines}  available: {available.status if available else 'Unknown'}"
    )
    is_complete = None not in {all_leaders, all_workers} and (leaders, workers) == (all_leaders, all_workers)
    return Progress(line, is_complete and available is not None and available.status == "True")


def _counts(numbers: ReplicaCounters | None) -> tuple[int, int | None]:
    return ((numbers.ready_replicas or 0), numbers.desired_replicas) if numbers is not None else (0, None)
