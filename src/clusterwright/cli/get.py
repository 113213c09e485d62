"""`clusterwright get clusters|machines|kubeconfig`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

import msgspec

from clusterwright.api import codec
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.cli import connect
from clusterwright.cli.tree import age, table
from clusterwright.conditions import get as get_condition
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError


def run(argv: Sequence[str]) -> int:
    """List clusters or machines, or print a cluster's kubeconfig."""
    parser = argparse.ArgumentParser(prog="clusterwright get", description="List clusters or machines, or print a cluster's kubeconfig.")
    parser.add_argument("what", choices=("clusters", "machines", "kubeconfig"))
    parser.add_argument("name", nargs="?", default="", help="the cluster; needed for kubeconfig, a filter for machines")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    connect.add_arguments(parser)
    arguments = parser.parse_args(list(argv))
    if arguments.what == "kubeconfig" and not arguments.name:
        parser.error("get kubeconfig needs the name of a cluster")
    try:
        return asyncio.run(_run(arguments))
    except (InvalidKubeconfig, ApiError) as error:
        print(f"clusterwright get: {error}", file=sys.stderr)
        return 1


async def _run(arguments: argparse.Namespace) -> int:
    connection = connect.resolve(arguments)
    namespace = "" if arguments.all_namespaces else arguments.namespace or connection.namespace
    async with connect.connected(connection) as client:
        if arguments.what == "kubeconfig":
            secret = await client.get(Secret, ObjectKey(namespace, f"{arguments.name}-kubeconfig"))
            sys.stdout.write(secret.data.get("value", b"").decode())
            return 0
        objects: Sequence[Object] = await _list(client, arguments.what, namespace, arguments.name)
    if arguments.output == "json":
        items = [codec.to_json(o) for o in objects]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})).decode() + "\n")
        return 0
    if not objects:
        print(f"No {arguments.what} found" + (f" in namespace {namespace}." if namespace else "."), file=sys.stderr)
        return 0
    print(table([_HEADS[arguments.what], *(_row(o) for o in objects)]))
    return 0


async def _list(client: Client, what: str, namespace: str, name: str) -> Sequence[Object]:
    if what == "clusters":
        clusters = await client.list(Cluster, namespace=namespace)
        return [c for c in clusters if not name or c.metadata.name == name]
    labels = {CLUSTER_NAME_LABEL: name} if name else {}
    return await client.list(Machine, namespace=namespace, labels=labels)


_HEADS = {
    "clusters": ("NAMESPACE", "NAME", "PHASE", "AVAILABLE", "CONTROL PLANE", "WORKERS", "AGE"),
    "machines": ("NAMESPACE", "NAME", "CLUSTER", "ROLE", "PHASE", "READY", "NODE", "VERSION", "AGE"),
}


def _row(obj: Object) -> Sequence[str]:
    metadata = obj.metadata
    since = age(metadata.creation_timestamp, SystemClock().now())
    if isinstance(obj, Cluster):
        leaders, workers = obj.status.control_plane, obj.status.workers
        return (
            metadata.namespace,
            metadata.name,
            obj.status.phase,
            _status(obj, "Available"),
            f"{(leaders and leaders.ready_replicas) or 0}/{(leaders and leaders.desired_replicas) or 0}",
            f"{(workers and workers.ready_replicas) or 0}/{(workers and workers.desired_replicas) or 0}",
            since,
        )
    assert isinstance(obj, Machine)
    return (
        metadata.namespace,
        metadata.name,
        obj.spec.cluster_name,
        "control-plane" if CONTROL_PLANE_LABEL in metadata.labels else "worker",
        obj.status.phase,
        _status(obj, "Ready"),
        obj.status.node_ref.name if obj.status.node_ref else "",
        obj.spec.version,
        since,
    )


def _status(obj: Cluster | Machine, type_: str) -> str:
    condition = get_condition(obj.status.conditions, type_)
    return condition.status if condition else ""
