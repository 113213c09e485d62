"""`clusterwright move`: move the clusters of a namespace, with all that belongs to them, into another management cluster."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.cli import connect
from clusterwright.cli.errors import Usage
from clusterwright.moving import plan as moving
from clusterwright.moving.plan import CannotMove
from clusterwright.moving.transfer import gather, move, refusals


def run(arguments: argparse.Namespace) -> int:
    """Move, or print what would be moved. Return 1 if a move is impossible now; then nothing was changed."""
    try:
        return asyncio.run(_run(arguments))
    except CannotMove as error:
        for reason in error.args:
            print(f"clusterwright move: {reason}", file=sys.stderr)
        return 1


async def _run(arguments: argparse.Namespace) -> int:
    source = connect.resolve(arguments)
    target = connect.resolve(argparse.Namespace(kubeconfig=arguments.to_kubeconfig, context=arguments.to_context))
    if source.server == target.server:
        raise Usage(f"--to-kubeconfig: the clusters are already there: {target.server}")
    namespace = arguments.namespace or source.namespace
    async with connect.connected(source) as here, connect.connected(target) as there:
        moved = moving.in_order(await gather(here, namespace))
        clusters = [obj for obj in moved if obj.kind.gvk.group == CORE_GROUP and obj.json["kind"] == "Cluster"]
        if not clusters:
            raise CannotMove(f"there is no Cluster in namespace {namespace}")
        names = ", ".join(obj.json["metadata"]["name"] for obj in clusters)
        print(f"{len(clusters)} Cluster{'s' * (len(clusters) != 1)} ({names}) with {len(moved) - len(clusters)} other objects", flush=True)
        if arguments.dry_run:
            sys.stdout.writelines(f"  {obj.name}\n" for obj in moved)
            return 0
        if reasons := [*moving.unready(moved), *await refusals(there, moved)]:
            raise CannotMove(*reasons)
        began = time.monotonic()
        await move(here, there, namespace, arguments.timeout, lambda text: print(f"{time.monotonic() - began:6.1f}s  {text}", flush=True))
    print(f"moved to {target.server}")
    return 0
