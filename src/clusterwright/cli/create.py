"""`clusterwright create cluster NAME`: a cluster on in-memory infrastructure, from nothing; or its manifests."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import yaml

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.cli import connect, samples, subjects
from clusterwright.cli.errors import Usage
from clusterwright.cli.following import follow
from clusterwright.runtime.errors import AlreadyExists
from clusterwright.runtime.rest import RestClient


def _plain(options: argparse.Namespace, namespace: str) -> list[Json]:
    name, version = options.name, options.kubernetes_version
    objects = samples.cluster(name, namespace, has_control_plane_object=True)
    objects += samples.control_plane(name, namespace, replicas=options.control_plane_machines, version=version)
    return objects + samples.workers(name, f"{name}-md-0", namespace, replicas=options.worker_machines, version=version)


def _healthy(options: argparse.Namespace, namespace: str) -> list[Json]:
    pool = f"{options.name}-md-0"
    return [*_plain(options, namespace), samples.machine_health_check(options.name, pool, namespace, labels={"pool": pool})]


def _topology(options: argparse.Namespace, namespace: str) -> list[Json]:
    cluster = samples.topology(
        options.name,
        namespace,
        version=options.kubernetes_version,
        control_plane=options.control_plane_machines,
        workers={"md-0": options.worker_machines},
    )
    return [*samples.cluster_class(namespace=namespace), cluster]


FLAVORS: dict[str, Callable[[argparse.Namespace, str], list[Json]]] = {
    "plain": _plain,
    "health-check": _healthy,
    "topology": _topology,
}


def run(options: argparse.Namespace) -> int:
    """Create a cluster, and wait for it if wanted. 1: it is there already, or not up in time."""
    subject = subjects.parse_cluster(options.words)
    options.name, options.namespace = subject.name, subject.namespace or options.namespace
    if options.control_plane_machines < 1 or options.control_plane_machines % 2 == 0:
        raise Usage("--control-plane-machines: an odd number is expected, for etcd's sake")
    if options.worker_machines < 0:
        raise Usage("--worker-machines: a number from 0 is expected")
    if options.dry_run:
        objects = FLAVORS[options.flavor](options, options.namespace or "default")
        sys.stdout.write(as_yaml(objects))
        return 0
    return asyncio.run(_run(options))


def as_yaml(objects: Sequence[Json]) -> str:
    """Manifests as people write them."""
    return str(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, explicit_start=True, width=140))


class _Plain(yaml.SafeDumper):
    """Without anchors: what is used twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


async def _run(options: argparse.Namespace) -> int:
    connection = connect.resolve(options)
    key = ObjectKey(options.namespace or connection.namespace, options.name)
    async with connect.connected(connection) as client:
        for obj in FLAVORS[options.flavor](options, key.namespace):
            try:
                await client.create(obj)
            except AlreadyExists:
                # classes and their templates are shared
                if options.flavor != "topology" or obj["kind"] == "Cluster":
                    raise
        print(f"cluster {key} created", flush=True)
        return await _wait(client, key, options.timeout) if options.wait else 0


async def _wait(client: RestClient, key: ObjectKey, timeout: float) -> int:
    """Tell how it goes until the Cluster is up; 1: not in time, or gone."""
    began, shown = time.monotonic(), ""
    resource = subjects.resource_of("cluster")
    assert resource is not None
    try:
        async with asyncio.timeout(timeout), aclosing(follow(client, resource, key)) as states:
            async for state in states:
                if state is None:
                    print(f"cluster {key} is gone")
                    return 1
                line, is_up = _progress(state)
                if line != shown:
                    print(f"{time.monotonic() - began:6.1f}s  {line}", flush=True)
                    shown = line
                if is_up:
                    print(f"cluster {key} is available after {time.monotonic() - began:.1f} s")
                    return 0
    except TimeoutError:
        print(f"cluster {key} is not available after {timeout:g} s: {shown}")
    return 1


def _progress(cluster: Json) -> tuple[str, bool]:
    status = cluster.get("status") or {}
    counts = []
    for part in ("controlPlane", "workers"):
        numbers = status.get(part) or {}
        counts.append((numbers.get("readyReplicas") or 0, numbers.get("desiredReplicas")))
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    available = conditions.get("Available", "Unknown")
    (leaders, all_leaders), (workers, all_workers) = counts
    line = (
        f"{status.get('phase') or 'Pending'}: control plane {leaders}/{all_leaders or 0} ready, workers {workers}/{all_workers or 0} ready"
    )
    is_up = (
        available == "True" and all_leaders is not None and all_workers is not None and leaders == all_leaders and workers == all_workers
    )
    return f"{line}, available: {available}", is_up
