"""`clusterwright describe cluster NAME`: show the cluster as a tree."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import to_builtins

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import Object, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli import connect, subjects
from clusterwright.cli.errors import Usage
from clusterwright.cli.layout import Layout, foot, render
from clusterwright.cli.record import gather
from clusterwright.cli.screen import Screen
from clusterwright.cli.tree import Branch, Parts, cluster_tree
from clusterwright.conditions import is_true
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.offline.complaints import references
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.following import changes, of_cluster
from clusterwright.runtime.rest import RestClient

if TYPE_CHECKING:
    from clusterwright.offline.verdict import Verdict


def run(arguments: argparse.Namespace) -> int:
    """Show a cluster as a tree with its conditions; with --watch, again whenever it changes."""
    if arguments.watch and arguments.output == "json":
        raise Usage("--watch and -o json cannot be combined: a tree is shown once")
    return asyncio.run(_run(arguments, subjects.parse_cluster(arguments.words)))


async def _run(arguments: argparse.Namespace, subject: subjects.Subject) -> int:
    connection = connect.resolve(arguments)
    key = ObjectKey(subject.namespace or arguments.namespace or connection.namespace, subject.name)
    layout = layout_of(arguments, os.environ)

    async with connect.connected(connection) as client:
        if arguments.output == "json":
            tree = await look(client, key, whole=arguments.all)
            verdict = await _verdict(arguments, key)
            print(json.dumps({"tree": tree.to_json(), "verdict": verdict.to_json()}, indent=2))
            return 0
        if arguments.watch:
            await _watch(client, key, layout, whole=arguments.all)
            return 0
        print(render(await look(client, key, whole=arguments.all), SystemClock().now(), layout), flush=True)
    verdict = await _verdict(arguments, key)
    print(f"\n{foot(verdict.state, verdict.headline, layout)}")
    return 0


async def _watch(client: RestClient, key: ObjectKey, layout: Layout, *, whole: bool) -> None:
    """Show the tree and its verdict whenever they change, until the Cluster is gone; on a terminal, redraw in place."""
    from clusterwright.offline import glance  # only now: it takes its time

    screen, shown = Screen(), None
    async with aclosing(changes(client, of_cluster(key))) as changed:
        async for _ in changed:
            now = SystemClock().now()
            try:
                tree = await look(client, key, whole=whole)
                verdict = (await glance.read(client, key.namespace, now)).verdict(key)
            except (NotFound, KeyError):
                if shown is None:
                    raise
                screen.say(f"cluster {key} is gone")
                return
            if (tree, verdict.brief) != shown:
                shown = (tree, verdict.brief)
                screen.show(f"{render(tree, now, layout)}\n\n{foot(verdict.state, verdict.headline, layout)}")


def layout_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Layout:
    """Return the layout of the tree: on a terminal it fits the width and has colours unless NO_COLOR is set."""
    is_terminal = sys.stdout.isatty()
    asked = arguments.show_conditions
    conditions = asked == "all" or [subjects.kind_of(kind) for kind in (asked or "").split(",") if kind]
    return Layout(
        width=shutil.get_terminal_size().columns if is_terminal else 0,
        colour=is_terminal and not environment.get("NO_COLOR"),
        grouping=not arguments.no_grouping and not arguments.all,
        conditions=conditions,
    )


async def _verdict(arguments: argparse.Namespace, key: ObjectKey) -> Verdict:
    """Return the headline with which `explain` begins."""
    from clusterwright.offline.bundle import assemble  # only now: it needs every controller
    from clusterwright.offline.explain import explain

    bundle = assemble(await gather(arguments, str(key), keep_secrets=True))
    return explain(bundle, f"Cluster/{key}").verdict


async def look(client: Client, key: ObjectKey, *, whole: bool = False) -> Branch:
    """Return the tree of a Cluster as it is now; raises NotFound.

    Objects that Machines name are shown below Machines that are not ready; with `whole` below all of them, with templates.
    """
    cluster = await client.get(Cluster, key)
    mine = {CLUSTER_NAME_LABEL: key.name}
    control_plane = await _referenced(client, key.namespace, cluster.spec.control_plane_ref)
    parts = Parts(
        machines=await client.list(Machine, namespace=key.namespace, labels=mine),
        machine_sets=await client.list(MachineSet, namespace=key.namespace, labels=mine),
        deployments=await client.list(MachineDeployment, namespace=key.namespace, labels=mine),
        pools=await client.list(MachinePool, namespace=key.namespace, labels=mine),
        health_checks=await client.list(MachineHealthCheck, namespace=key.namespace, labels=mine),
    )
    speakers: list[Object | Unstructured] = [m for m in parts.machines if whole or not is_true(m.status.conditions, "Ready")]
    if whole:
        speakers += [*parts.deployments, *parts.pools, *([control_plane] if control_plane is not None else [])]
    infrastructure = await _referenced(client, key.namespace, cluster.spec.infrastructure_ref)
    return cluster_tree(cluster, infrastructure, control_plane, replace(parts, others=await _named(client, key.namespace, speakers)))


async def _named(client: Client, namespace: str, speakers: Sequence[Object | Unstructured]) -> dict[tuple[str, str], Unstructured]:
    """Return the provider objects that the specs of these objects name."""
    specs = [o.at("spec") if isinstance(o, Unstructured) else to_builtins(getattr(o, "spec", None)) for o in speakers]
    named = {(r.kind, r.name): r for spec in specs for r in references(spec)}
    wanted = [ContractVersionedObjectReference(api_group=r.group, kind=r.kind, name=r.name) for r in named.values()]
    found = await asyncio.gather(*(_referenced(client, namespace, reference) for reference in wanted))
    return {name: obj for name, obj in zip(named, found, strict=True) if obj is not None}


async def _referenced(client: Client, namespace: str, reference: ContractVersionedObjectReference | None) -> Unstructured | None:
    if reference is None or not reference.name:
        return None
    try:
        return (await get_external(client, reference, namespace)).object
    except (ApiError, ContractUnknown):
        return None  # the tree shows what can be seen
