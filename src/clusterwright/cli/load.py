"""`clusterwright load image CLUSTER IMAGE...`: copy images from the container engine into all nodes of a cluster."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from clusterwright.api.meta import ObjectKey
from clusterwright.cli import subjects
from clusterwright.cli.engine import Plane
from clusterwright.cli.engines import located
from clusterwright.cli.errors import Failed, Usage
from clusterwright.containers import images, inventory, naming
from clusterwright.containers.inventory import Found
from clusterwright.engine import EngineError


def run(options: argparse.Namespace) -> int:
    """Load images. Return 1 if the cluster has no running node or an image is missing."""
    subject, wanted = subjects.parse(options.words)
    if subject.kind != "Cluster":
        raise Usage(f"load image: a cluster is expected, not a {subject.kind}")
    if not wanted:
        raise Usage("load image: an image is expected after the cluster's name")
    key = ObjectKey(subject.namespace or options.namespace or "default", subject.name)
    try:
        return asyncio.run(_run(options, key, wanted))
    except (EngineError, images.NotLoaded) as error:
        raise Failed(str(error)) from error


async def _run(options: argparse.Namespace, key: ObjectKey, wanted: Sequence[str]) -> int:
    engine, _ = await located(options.engine)
    try:
        plane = await Plane.ask(options)
        nodes = nodes_of(await inventory.containers(engine), key, plane.uid)
        await images.load(engine, wanted, nodes)
    finally:
        await engine.close()
    print(f"{', '.join(wanted)}: loaded into {', '.join(nodes)}")
    return 0


def nodes_of(found: Sequence[Found], key: ObjectKey, plane: str) -> list[str]:
    """Return the names of a cluster's running nodes; raises Failed if the cluster is ambiguous or has none."""
    nodes = [f for f in found if f.cluster == key and f.role in {naming.CONTROL_PLANE, naming.WORKER}]
    planes = {f.plane for f in nodes}
    if plane:
        nodes = [f for f in nodes if f.plane == plane]
    elif len(planes) > 1:
        raise Failed(f"{len(planes)} planes have a cluster {key} here, and none answers: select one with --kubeconfig")
    running = [f.name for f in nodes if f.state == "running"]
    if not running:
        raise Failed(f"cluster {key} has no running node on this engine")
    return running
