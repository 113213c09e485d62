"""`clusterwright timeline cluster/NAME`: what happened to a cluster, by time: conditions, Events, and what controllers decided."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import aclosing

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.cli import connect, subjects
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_bundle
from clusterwright.cli.following import changes, of_cluster
from clusterwright.cli.record import gather
from clusterwright.offline.bundle import Bundle, assemble
from clusterwright.offline.timeline import Moment, timeline
from clusterwright.runtime.errors import NotFound


def run(arguments: argparse.Namespace) -> int:
    """Print the moments, oldest first; with --watch continue as things happen. 1: the cluster does not exist."""
    subject = subjects.parse_cluster(arguments.words)
    arguments.namespace = subject.namespace or arguments.namespace
    if arguments.source:
        if arguments.watch:
            raise Usage("--from and --watch together mean nothing: a file does not change")
        _tell(arguments, moments_of(read_bundle(arguments.source), subject.name))
        return 0
    return asyncio.run(_run(arguments, subject))


def moments_of(bundle: Bundle, name: str) -> list[Moment]:
    """Return what the objects and Events of a bundle, and decisions about them, tell; raises Failed for a Cluster that is not in it."""
    if not any(o["kind"] == "Cluster" and o["metadata"]["name"] == name for o in bundle.objects):
        raise Failed(f"cluster {name!r} not found in the file")
    events = [o for o in bundle.objects if o["kind"] == "Event"]
    objects = [Unstructured(o) for o in bundle.objects if o["kind"] != "Event"]
    known = {(o.kind, o.key) for o in objects}
    running = bundle.observation.running
    return timeline(objects, events, [d for d in (running.traces if running is not None else ()) if (d.kind, d.key) in known])


async def _run(arguments: argparse.Namespace, subject: subjects.Subject) -> int:
    connection = connect.resolve(arguments)
    key = ObjectKey(arguments.namespace or connection.namespace, subject.name)
    told: dict[Moment, None] = {}

    async def look() -> None:
        found = moments_of(assemble(await gather(arguments, str(key))), key.name)
        _tell(arguments, [moment for moment in found if moment not in told])
        told.update(dict.fromkeys(found))

    if not arguments.watch:
        await look()
        return 0
    events = (f"/api/v1/namespaces/{key.namespace}/events", ())
    async with connect.connected(connection) as client, aclosing(changes(client, [*of_cluster(key), events], settle=0.5)) as changed:
        async for _ in changed:
            try:
                await look()
            except NotFound:
                if not told:
                    raise
                print(f"cluster {key} is gone", flush=True)
                break
    return 0


def _tell(arguments: argparse.Namespace, moments: Iterable[Moment]) -> None:
    for line in _json(moments) if arguments.output == "json" else _text(moments):
        print(line, flush=True)


def _json(moments: Iterable[Moment]) -> Iterator[str]:
    for moment in moments:
        line: Json = moment.to_json()
        yield json.dumps(line)


def _text(moments: Iterable[Moment]) -> Iterator[str]:
    for moment in moments:
        kind, _, rest = moment.object.partition("/")
        what = " ".join(filter(None, (moment.about, " ".join(moment.text.split()))))
        yield f"{moment.at}  {moment.sort:<9}  {kind}/{rest.rpartition('/')[2]}  {what}"
