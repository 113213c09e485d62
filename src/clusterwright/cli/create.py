"""`clusterwright create cluster NAME`: create a cluster of simulated machines or containers, or print its manifests."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from clusterwright.admission.sets import SEMANTIC_VERSION
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli import connect, subjects
from clusterwright.cli.containers import Choice, as_containers
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_text
from clusterwright.cli.program import as_called
from clusterwright.cli.progress import until_up
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.defaults import KUBERNETES_VERSION


def _plain(options: argparse.Namespace, namespace: str) -> list[Json]:
    name, version = options.name, options.kubernetes_version
    objects = samples.cluster(name, namespace, has_control_plane_object=True)
    objects += samples.control_plane(name, namespace, replicas=options.control_plane_machines, version=version)
    return objects + samples.workers(name, f"{name}-md-0", namespace, replicas=options.worker_machines, version=version)


def _healthy(options: argparse.Namespace, namespace: str) -> list[Json]:
    pool = f"{options.name}-md-0"
    is_small = not isinstance(options.worker_machines, int) or options.worker_machines <= _SMALL_POOL  # a template's number is a variable
    at_most = "100%" if is_small else "40%"
    check = samples.machine_health_check(options.name, pool, namespace, labels={"pool": pool}, at_most=at_most)
    return [*_plain(options, namespace), check]


def _topology(options: argparse.Namespace, namespace: str) -> list[Json]:
    name = "in-memory" if options.choice is None else "containers"
    cluster = samples.topology(
        options.name,
        namespace,
        class_name=name,
        version=options.kubernetes_version,
        control_plane=options.control_plane_machines,
        workers={"md-0": options.worker_machines},
    )
    return [*samples.cluster_class(name, namespace), cluster]


_SMALL_POOL: Final = 2
"""The largest pool in which one unhealthy machine is more than 40 %; with that limit it would never be replaced."""
KINDNET, NO_CNI = "kindnet", "none"
FLAVORS: dict[str, Callable[[argparse.Namespace, str], list[Json]]] = {
    "plain": _plain,
    "health-check": _healthy,
    "topology": _topology,
}


def run(options: argparse.Namespace) -> int:
    """Create a cluster; wait for it if asked to. Return 1 if it exists already or is not up in time."""
    subject = subjects.parse_cluster(options.words)
    options.name, options.namespace = subject.name, subject.namespace or options.namespace
    if options.control_plane_machines < 1 or options.control_plane_machines % 2 == 0:
        raise Usage("--control-plane-machines: an odd number is expected, because etcd needs a majority")
    if options.worker_machines < 0:
        raise Usage("--worker-machines: a number of at least 0 is expected")
    if not options.kubernetes_version.startswith("v") or not SEMANTIC_VERSION.fullmatch(options.kubernetes_version[1:]):
        raise Usage(f"--kubernetes-version {options.kubernetes_version}: a full version is expected, for example {KUBERNETES_VERSION}")
    options.choice = _choice(options)
    if options.dry_run:
        sys.stdout.write(as_yaml(_objects(options, options.namespace or "default")))
        return 0
    return asyncio.run(_run(options))


def _choice(options: argparse.Namespace) -> Choice | None:
    """Return the options for containers; None: machines are simulated. Raises Usage, Failed, OSError."""
    if options.infrastructure != "docker":
        given = [flag for flag in ("cni", "node_image", "load_balancer_image") if getattr(options, flag)]
        if given:
            raise Usage(f"--{given[0].replace('_', '-')}: only for containers; add --infrastructure docker")
        return None
    images = {"node_image": options.node_image, "load_balancer_image": options.load_balancer_image}
    if options.cni in {"", KINDNET, NO_CNI}:
        return Choice(has_cni=options.cni != NO_CNI, **images)
    return Choice(cni=read_text(options.cni), **images)


def _objects(options: argparse.Namespace, namespace: str) -> list[Json]:
    objects = FLAVORS[options.flavor](options, namespace)
    return objects if options.choice is None else as_containers(objects, options.choice)


def as_yaml(objects: Sequence[Json]) -> str:
    """Return objects as YAML."""
    return dump_all(objects)


async def _run(options: argparse.Namespace) -> int:
    connection = connect.resolve(options)
    key = ObjectKey(options.namespace or connection.namespace, options.name)
    async with connect.connected(connection) as client:
        await _create(client, _objects(options, key.namespace), key, shares_class=options.flavor == "topology")
        print(f"cluster {key} created", flush=True)
        if options.wait:
            elapsed = await until_up(client, key, SystemClock(), timeout=options.timeout)
            print(f"cluster {key} is available after {elapsed:.1f} s")
    return 0


async def _create(client: RestClient, objects: Sequence[Json], cluster: ObjectKey, *, shares_class: bool) -> None:
    """Create all objects or none: check all of them with the API server before writing the first. Raises Failed, ApiError."""
    missing = []
    for obj in objects:
        try:
            await client.create(obj, dry_run=True)
        except AlreadyExists:
            if not shares_class or obj["kind"] == "Cluster":
                remedy = f"choose another name, or delete the cluster first: {as_called()} delete {cluster.name} -n {cluster.namespace}"
                raise Failed(f"{obj['kind']} {cluster.namespace}/{obj['metadata']['name']} already exists; {_NOTHING}; {remedy}") from None
        except ApiError as error:
            raise Failed(f"{error}; {_NOTHING}") from error
        else:
            missing.append(obj)
    created: list[Unstructured] = []
    try:
        for obj in missing:
            created.append(await client.create(obj))  # noqa: PERF401  what was created is undone if the next one fails
    except ApiError:
        for made in reversed(created):
            with suppress(NotFound):
                await client.delete(made.gvk, made.key, uid=made.metadata.uid)
        raise


_NOTHING: Final = "nothing was created"
