"""`clusterwright engine list|prune`: list or remove containers that planes left on an engine, found by their labels."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from clusterwright.api.docker import DockerCluster, DockerMachine
from clusterwright.api.infrastructure import DevCluster, DevMachine
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.cli import connect, tabular
from clusterwright.cli.engines import located
from clusterwright.cli.errors import Failed
from clusterwright.containers import inventory
from clusterwright.containers.inventory import Found
from clusterwright.engine import Engine, EngineError
from clusterwright.runtime.errors import ApiError

KINDS: Sequence[type[Object]] = (DevMachine, DevCluster, DockerMachine, DockerCluster)


def run(options: argparse.Namespace) -> int:
    """List or remove containers. Return 1 if the engine or the plane does not answer, or the user did not confirm."""
    try:
        return asyncio.run(_run(options))
    except EngineError as error:
        raise Failed(f"--engine {options.engine}: {error}") from error


async def _run(options: argparse.Namespace) -> int:
    engine, _ = await located(options.engine)
    try:
        return await (_list if options.command == "list" else _prune)(options, engine)
    finally:
        await engine.close()


async def _list(options: argparse.Namespace, engine: Engine) -> int:
    found = await inventory.containers(engine)
    plane = await Plane.ask(options)
    if not found:
        print("no plane has containers here")
        return 0
    rows = [(f.name, f.role, str(f.cluster), f.state, f.plane, plane.owner_of(f)) for f in found]
    print(tabular.table([("NAME", "ROLE", "CLUSTER", "STATE", "PLANE", "OWNER"), *rows]))
    return 0


async def _prune(options: argparse.Namespace, engine: Engine) -> int:
    found = await inventory.containers(engine)
    plane = await Plane.ask(options)
    if options.plane:
        if options.plane == plane.uid:
            raise Failed(
                f"plane {options.plane} is running: delete its clusters, or omit --plane to remove only containers without an object"
            )
        unwanted = inventory.of_plane(found, options.plane)
    elif not plane.uid:
        raise Failed(f"no plane answers ({plane.complaint}): start the plane, or name one that will not come back with --plane UID")
    else:
        unwanted = inventory.ownerless(found, plane.uid, plane.objects)
    for one in unwanted:
        print(f"{one.name}  ({one.role} of {one.cluster}, {one.state})")
    if unwanted and not options.yes and not _confirmed(f"remove {len(unwanted)} containers with their volumes?"):
        print("nothing was removed")
        return 1
    await inventory.remove(engine, unwanted)
    print(f"{len(unwanted)} containers removed" if unwanted else "no container to remove")
    if await inventory.remove_network(engine):
        print("removed the unused network of the nodes")
    return 0


def _confirmed(question: str) -> bool:
    """Ask for confirmation at the terminal; only yes confirms."""
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


class Plane:
    """The plane that the kubeconfig names, if it answers, and the objects that own its containers."""

    def __init__(self, uid: str = "", objects: frozenset[tuple[str, ObjectKey]] = frozenset(), complaint: str = "") -> None:
        self.uid = uid
        self.objects = objects
        self.complaint = complaint

    @classmethod
    async def ask(cls, options: argparse.Namespace) -> Plane:
        """Return the plane that answers, or one with the reason why none does."""
        try:
            async with connect.connected(connect.resolve(options)) as client:
                uid = (await client.get(Namespace, ObjectKey("", "kube-system"))).metadata.uid
                objects = {(kind.__name__, obj.key) for kind in KINDS for obj in await client.list(kind)}
                return cls(uid, frozenset(objects))
        except (ApiError, InvalidKubeconfig, OSError) as error:
            return cls(complaint=" ".join(str(error).split()))

    def owner_of(self, found: Found) -> str:
        """Return the name of the object that a container was made for, or why it is unknown."""
        if found.plane != self.uid:
            return "another plane" if self.uid else "unknown"
        return f"{found.kind}/{found.object}" if found.owner in self.objects else "none"
