"""`up --demo`: three control planes under a KubeadmControlPlane, three workers under a MachineDeployment with a MachineHealthCheck."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.cli import samples
from clusterwright.cli.defaults import LOCAL
from clusterwright.cli.describe import look
from clusterwright.cli.layout import render
from clusterwright.cli.program import as_called
from clusterwright.cli.progress import until_up
from clusterwright.cli.screen import Screen
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import AlreadyExists
from clusterwright.runtime.rest import RestClient

NAME, NAMESPACE = "demo", "default"
WORKERS = f"{NAME}-workers"
_STAGE_SECONDS = 0.5


def manifests() -> list[Json]:
    """Everything that the demo applies."""
    objects = samples.cluster(NAME, NAMESPACE, has_control_plane_object=True)
    objects += samples.control_plane(NAME, NAMESPACE, replicas=3, seconds=_STAGE_SECONDS)
    objects += samples.workers(NAME, WORKERS, NAMESPACE, replicas=3, seconds=_STAGE_SECONDS)
    objects.append(samples.machine_health_check(NAME, WORKERS, NAMESPACE, labels={"pool": WORKERS}))
    return objects


async def show(client: RestClient, clock: Clock, flags: str, link: Callable[[], str]) -> ObjectKey:
    """Apply the demo, show how it comes up, then say what to try next; the cluster."""
    for obj in manifests():
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
  {me} get {flags}kubeconfig {NAME} > demo.kubeconfig && kubectl --kubeconfig demo.kubeconfig get nodes,pods -A
  kubectl {flags or f"--kubeconfig {LOCAL} "}get cluster-api
  {me} delete {flags}cluster {NAME}{view}"""
