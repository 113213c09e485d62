"""`up --demo`: three control planes under a KubeadmControlPlane, three workers under a MachineDeployment with a MachineHealthCheck."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli import samples
from clusterwright.cli.defaults import LOCAL
from clusterwright.cli.describe import look
from clusterwright.cli.program import as_called
from clusterwright.cli.tree import render
from clusterwright.conditions import get, is_true
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import AlreadyExists, ApiError

NAME, NAMESPACE = "demo", "default"
WORKERS = f"{NAME}-workers"
_STAGE_SECONDS = 0.5
_INTERVAL = 0.2


def manifests() -> list[Json]:
    """Everything that the demo applies."""
    objects = samples.cluster(NAME, NAMESPACE, has_control_plane_object=True)
    objects += samples.control_plane(NAME, NAMESPACE, replicas=3, seconds=_STAGE_SECONDS)
    objects += samples.workers(NAME, WORKERS, NAMESPACE, replicas=3, seconds=_STAGE_SECONDS)
    objects.append(samples.machine_health_check(NAME, WORKERS, NAMESPACE, labels={"pool": WORKERS}))
    return objects


async def show(client: Client, clock: Clock, flags: str) -> None:
    """Apply the demo, print a line whenever something changes until all is up, then say what to try next."""
    started = clock.monotonic()
    for obj in manifests():
        with suppress(AlreadyExists):  # it was there before a restart
            await client.create(obj)
    shown = ""
    while True:
        try:
            line, is_up = await _progress(client)
        except ApiError as error:
            line, is_up = f"cannot read the cluster: {error}", False
        if line != shown:
            print(f"{clock.monotonic() - started:6.1f}s  {line}", flush=True)
            shown = line
        if is_up:
            break
        await asyncio.sleep(_INTERVAL)
    tree = await look(client, ObjectKey(NAMESPACE, NAME))
    print(f"\n{render(tree, clock.now())}\n\n{_next(flags)}", flush=True)
    sys.stdout.flush()


async def _progress(client: Client) -> tuple[str, bool]:
    cluster = await client.get(Cluster, ObjectKey(NAMESPACE, NAME))
    machines = await client.list(Machine, namespace=NAMESPACE, labels={CLUSTER_NAME_LABEL: NAME})
    leaders, workers = cluster.status.control_plane, cluster.status.workers
    available = get(cluster.status.conditions, "Available")
    ready = ((leaders and leaders.ready_replicas) or 0, (workers and workers.ready_replicas) or 0)
    line = (
        f"cluster {NAME}: {cluster.status.phase or 'Pending':<12}  control plane {ready[0]}/3 ready  workers {ready[1]}/3 ready  "
        f"machines: {_phases(machines)}  available: {available.status if available else 'Unknown'}"
    )
    return line, ready == (3, 3) and is_true(cluster.status.conditions, "Available")


def _phases(machines: Sequence[Machine]) -> str:
    counts: dict[str, int] = {}
    for machine in machines:
        phase = machine.status.phase or "Pending"
        counts[phase] = counts.get(phase, 0) + 1
    return ", ".join(f"{n} {phase}" for phase, n in sorted(counts.items())) or "none"


def _next(flags: str) -> str:
    me = as_called()
    return f"""The plane keeps serving; Ctrl-C ends it. In another terminal, from this folder, try:
  {me} describe {flags}cluster {NAME}
  {me} explain {flags}cluster/{NAME}
  {me} get {flags}kubeconfig {NAME} > demo.kubeconfig && kubectl --kubeconfig demo.kubeconfig get nodes,pods -A
  kubectl {flags or f"--kubeconfig {LOCAL} "}get cluster-api
  {me} delete {flags}cluster {NAME}"""
