"""Show a cluster coming up: a tree that is redrawn on a terminal, else one line per change."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass

from clusterwright.api.core import Cluster, Machine, ReplicaCounters
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli.describe import look
from clusterwright.cli.errors import Failed
from clusterwright.cli.layout import render
from clusterwright.cli.screen import Screen
from clusterwright.conditions import get
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.following import changes, of_cluster
from clusterwright.runtime.rest import RestClient


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a cluster."""

    line: str
    is_up: bool


async def until_up(
    client: RestClient, key: ObjectKey, clock: Clock, *, timeout: float | None = None, screen: Screen | None = None
) -> float:
    """Show how a cluster comes up until it and all its machines are available; return the seconds. Raises Failed, ApiError."""
    from clusterwright.offline import glance  # only now: it takes its time

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
                fleet = await glance.read(client, key.namespace, clock.now())
                if key not in fleet.clusters:
                    continue  # it goes just now
                verdict = fleet.verdict(key)
                line = f"{now.line}  {verdict.brief}"
                if screen.is_terminal:
                    screen.show(f"{elapsed:6.1f}s  {now.line}\n\n{render(await look(client, key), clock.now())}\n\n{verdict.headline}")
                elif line != shown:
                    screen.say(f"{elapsed:6.1f}s  {line}")
                shown = line
                if now.is_up:
                    return elapsed
    except TimeoutError:
        raise Failed(f"cluster {key} is not available after {timeout:g} s: {shown}") from None
    raise AssertionError("the watch ended")


def progress(cluster: Cluster, phases: Counter[str]) -> Progress:
    """Return the progress of a cluster whose Machines are in these phases. Pure."""
    status = cluster.status
    leaders, all_leaders = _counts(status.control_plane)
    workers, all_workers = _counts(status.workers)
    available = get(status.conditions, "Available")
    machines = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items())) or "none"
    line = (
        f"cluster {cluster.metadata.name}: {status.phase or 'Pending':<12}  "
        f"control plane {leaders}/{all_leaders or 0} ready  workers {workers}/{all_workers or 0} ready  "
        f"machines: {machines}"
    )
    is_complete = None not in {all_leaders, all_workers} and (leaders, workers) == (all_leaders, all_workers)
    return Progress(line, is_complete and available is not None and available.status == "True")


def _counts(numbers: ReplicaCounters | None) -> tuple[int, int | None]:
    return ((numbers.ready_replicas or 0), numbers.desired_replicas) if numbers is not None else (0, None)
