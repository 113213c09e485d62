"""`clusterwright record cluster/NAME`: a bundle that can be explained and replayed elsewhere."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from random import SystemRandom

import yaml

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.cli import connect, subjects
from clusterwright.offline.record import record
from clusterwright.offline.survey import Surveyor
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import PooledKeySource


def run(arguments: argparse.Namespace) -> int:
    """Write the bundle of a cluster to a file or to standard output; 1 where that fails."""
    subject = subjects.parse_cluster(arguments.words)
    arguments.namespace = subject.namespace or arguments.namespace
    documents = asyncio.run(gather(arguments, subject.name))
    text = yaml.dump_all(documents, sort_keys=False, explicit_start=True, width=140, allow_unicode=True)
    if arguments.file == "-":
        sys.stdout.write(text)
    else:
        Path(arguments.file).write_text(text)
    return 0


async def gather(arguments: argparse.Namespace, name: str, *, keep_secrets: bool = False) -> list[Json]:
    """The documents of the bundle of a live cluster; `name` may be NAMESPACE/NAME."""
    connection = connect.resolve(arguments)
    namespace, _, bare = name.rpartition("/")
    clock = SystemClock()

    async with connect.connected(connection) as client:
        key = ObjectKey(namespace or arguments.namespace or connection.namespace, bare)
        keys = PooledKeySource()
        try:
            surveyor = Surveyor(client, connect.reach, clock=clock, random=SystemRandom(), keys=keys)
            return await record(client, key, clock.now(), surveyor, keep_secrets=keep_secrets)
        finally:
            await keys.close()
