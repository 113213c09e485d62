"""`clusterwright describe cluster NAME`: the cluster as a tree."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import aclosing

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli import connect, subjects
from clusterwright.cli.following import changes, of_cluster
from clusterwright.cli.record import gather
from clusterwright.cli.screen import Screen
from clusterwright.cli.tree import Branch, Parts, cluster_tree, render
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.rest import RestClient


def run(arguments: argparse.Namespace) -> int:
    """Show a cluster as a tree with its conditions; with --watch, again whenever it changes."""
    return asyncio.run(_run(arguments, subjects.parse_cluster(arguments.words)))


async def _run(arguments: argparse.Namespace, subject: subjects.Subject) -> int:
    connection = connect.resolve(arguments)
    key = ObjectKey(subject.namespace or arguments.namespace or connection.namespace, subject.name)

    def drawn(tree: Branch) -> str:
        return render(tree, SystemClock().now(), show_conditions=arguments.show_conditions)

    async with connect.connected(connection) as client:
        if arguments.watch:
            await _watch(client, key, drawn)
            return 0
        print(drawn(await look(client, key)), flush=True)
    print(f"\n{await _verdict(arguments, key)}")
    return 0


async def _watch(client: RestClient, key: ObjectKey, drawn: Callable[[Branch], str]) -> None:
    """Show the tree whenever it is another one, until the Cluster is gone; in its place on a terminal."""
    screen, shown = Screen(), await look(client, key)
    screen.show(drawn(shown))
    async with aclosing(changes(client, of_cluster(key))) as changed:
        async for _ in changed:
            try:
                tree = await look(client, key)
            except NotFound:
                screen.say(f"cluster {key} is gone")
                return
            if tree != shown:
                shown = tree
                screen.show(drawn(tree))


async def _verdict(arguments: argparse.Namespace, key: ObjectKey) -> str:
    """The same words with which `explain` begins."""
    from clusterwright.offline.bundle import assemble  # only now: it needs every controller
    from clusterwright.offline.explain import explain

    bundle = assemble(await gather(arguments, str(key), keep_secrets=True))
    return explain(bundle, f"Cluster/{key}").verdict.headline


async def look(client: Client, key: ObjectKey) -> Branch:
    """The tree of a Cluster as it is now; raises NotFound."""
    cluster = await client.get(Cluster, key)
    mine = {CLUSTER_NAME_LABEL: key.name}
    return cluster_tree(
        cluster,
        await _referenced(client, key.namespace, cluster.spec.infrastructure_ref),
        await _referenced(client, key.namespace, cluster.spec.control_plane_ref),
        Parts(
            machines=await client.list(Machine, namespace=key.namespace, labels=mine),
            machine_sets=await client.list(MachineSet, namespace=key.namespace, labels=mine),
            deployments=await client.list(MachineDeployment, namespace=key.namespace, labels=mine),
            pools=await client.list(MachinePool, namespace=key.namespace, labels=mine),
            health_checks=await client.list(MachineHealthCheck, namespace=key.namespace, labels=mine),
        ),
    )


async def _referenced(client: Client, namespace: str, reference: ContractVersionedObjectReference | None) -> Unstructured | None:
    if reference is None or not reference.name:
        return None
    try:
        return (await get_external(client, reference, namespace)).object
    except (ApiError, ContractUnknown):
        return None  # the tree shows what can be seen
