"""`up --demo`: a KubeadmControlPlane, and a MachineDeployment with a MachineHealthCheck.

Three machines of each are simulated; with an engine, one of each is a container.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.cli.containers import Choice, as_containers
from clusterwright.cli.defaults import LOCAL
from clusterwright.cli.describe import look
from clusterwright.cli.layout import render
from clusterwright.cli.program import as_called
from clusterwright.cli.progress import until_up
from clusterwright.cli.screen import Screen
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import AlreadyExists
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.defaults import KUBERNETES_VERSION

NAME, NAMESPACE = "demo", "default"
WORKERS = f"{NAME}-workers"
_STAGE_SECONDS = 0.5


def manifests(*, are_real: bool = False, version: str = KUBERNETES_VERSION) -> list[Json]:
    """Return all manifests that the demo applies."""
    replicas = 1 if are_real else 3
    objects = samples.cluster(NAME, NAMESPACE, has_control_plane_object=True)
    objects += samples.control_plane(NAME, NAMESPACE, replicas=replicas, seconds=_STAGE_SECONDS, version=version)
    objects += samples.workers(NAME, WORKERS, NAMESPACE, replicas=replicas, seconds=_STAGE_SECONDS, version=version)
    objects.append(samples.machine_health_check(NAME, WORKERS, NAMESPACE, labels={"pool": WORKERS}))
    return as_containers(objects, Choice()) if are_real else objects


async def show(client: RestClient, clock: Clock, flags: str, link: Callable[[], str], objects: Sequence[Json]) -> ObjectKey:
    """Apply the demo, show how it comes up, then print what to try next. Return the cluster."""
    for obj in objects:
        with suppress(AlreadyExists):  # it was there before a restart
            await client.create(obj)
    key, screen = ObjectKey(NAMESPACE, NAME), Screen()
    await until_up(client, key, clock, screen=screen)
    if not screen.is_terminal:
        screen.say(f"\n{render(await look(client, key), clock.now())}")
    screen.say(f"\n{_next(flags, link())}")
    return key


def _next(flags: str, link: str) -> str:
    me = as_called()
    view = f"\nOr look at it in a browser; the link works once:\n  {link}" if link else ""
    return f"""The plane keeps serving; Ctrl-C ends it. In another terminal, from this folder, try:
  {me} describe {flags}cluster {NAME}
  {me} explain {flags}cluster/{NAME}
  (umask 077; {me} get {flags}kubeconfig {NAME} > demo.kubeconfig); kubectl --kubeconfig demo.kubeconfig get nodes,pods -A
  kubectl {flags or f"--kubeconfig {LOCAL} "}get cluster-api
  {me} delete {flags}cluster {NAME}{view}"""
