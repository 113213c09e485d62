"""`clusterwright record cluster/NAME`: write a bundle that can be explained and replayed elsewhere."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from random import SystemRandom

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli import connect, insight, subjects
from clusterwright.cli.errors import Failed
from clusterwright.offline.record import record
from clusterwright.offline.survey import Surveyor
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import PooledKeySource


def run(arguments: argparse.Namespace) -> int:
    """Write the bundle of a cluster to a file or to standard output; return 1 if that fails."""
    subject = subjects.parse_cluster(arguments.words)
    arguments.namespace = subject.namespace or arguments.namespace
    documents = asyncio.run(gather(arguments, subject.name))
    text = dump_all(documents)
    if arguments.file == "-":
        sys.stdout.write(text)
    else:
        Path(arguments.file).write_text(text)
    return 0


async def gather(arguments: argparse.Namespace, name: str, *, keep_secrets: bool = False) -> list[Json]:
    """Return the documents of the bundle of a live cluster; `name` may be NAMESPACE/NAME."""
    connection = connect.resolve(arguments)
    namespace, _, bare = name.rpartition("/")
    clock = SystemClock()

    async with connect.connected(connection) as client:
        key = ObjectKey(namespace or arguments.namespace or connection.namespace, bare)
        port = getattr(arguments, "health_port", None)
        running = await running_at(port, key.namespace, await insight.token(client)) if port else None
        keys = PooledKeySource()
        try:
            surveyor = Surveyor(client, connect.reach, clock=clock, random=SystemRandom(), keys=keys)
            return await record(client, key, clock.now(), surveyor, running=running, keep_secrets=keep_secrets)
        finally:
            await keys.close()


async def running_at(port: int, namespace: str, token: str) -> Json:
    """Return the status of the controllers of the plane with this health port; raises Failed."""
    import aiohttp  # only now: few ask

    url = f"http://127.0.0.1:{port}/traces"
    try:
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url, params={"namespace": namespace}) as response:
            if response.status != 200:
                raise ValueError(f"{response.status}: {(await response.text()).strip()}")
            told: Json = await response.json()
            return {"traces": told["traces"], "controllers": told["controllers"], **told}  # or it is somebody else
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
        raise Failed(f"--health-port {port}: no decisions from {url}: {error}") from None
