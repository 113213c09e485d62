"""`clusterwright delete cluster NAME`: delete a cluster and wait until it is gone."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from clusterwright.api.core import Cluster
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.meta import ObjectKey
from clusterwright.cli import connect
from clusterwright.conditions import get
from clusterwright.runtime.errors import ApiError

_INTERVAL = 0.5


def run(argv: Sequence[str]) -> int:
    """Delete a cluster; wait until it is gone unless told not to."""
    parser = argparse.ArgumentParser(prog="clusterwright delete", description="Delete a cluster and wait until it is gone.")
    parser.add_argument("kind", choices=("cluster",))
    parser.add_argument("name")
    parser.add_argument("--no-wait", action="store_true", help="return once the deletion has been accepted")
    connect.add_arguments(parser)
    arguments = parser.parse_args(list(argv))
    try:
        return asyncio.run(_run(arguments))
    except (InvalidKubeconfig, ApiError) as error:
        print(f"clusterwright delete: {error}", file=sys.stderr)
        return 1


async def _run(arguments: argparse.Namespace) -> int:
    connection = connect.resolve(arguments)
    key = ObjectKey(arguments.namespace or connection.namespace, arguments.name)
    async with connect.connected(connection) as client:
        await client.delete(Cluster, key)
        shown = ""
        while not arguments.no_wait and (cluster := await client.find(Cluster, key)) is not None:
            deleting = get(cluster.status.conditions, "Deleting")
            progress = f"{deleting.reason}: {deleting.message}" if deleting and deleting.message else deleting.reason if deleting else ""
            if progress != shown:
                print(progress, flush=True)
                shown = progress
            await asyncio.sleep(_INTERVAL)
    print(f"cluster {key} deleted" if not arguments.no_wait else f"cluster {key} is being deleted")
    return 0
