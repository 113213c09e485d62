"""`clusterwright delete KIND NAME`: delete an object and wait until it is gone, showing what still exists."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from clusterwright.api.core import Machine, MachineDeployment, MachinePool, MachineSet
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, PAUSED_ANNOTATION
from clusterwright.cli import connect, discovery, subjects
from clusterwright.cli.errors import Usage
from clusterwright.runtime.following import follow
from clusterwright.runtime.rest import RestClient

_COUNTED = (MachineDeployment, MachineSet, MachinePool, Machine)
_MOST_NAMES = 4


def run(arguments: argparse.Namespace) -> int:
    """Delete an object; wait until it is gone unless `--wait=false`. Return 1 if it did not exist or is not gone in time."""
    subject, rest = subjects.parse(arguments.words)
    if rest:
        raise Usage(f"unexpected argument {' '.join(rest)!r}: exactly one object is expected")
    return asyncio.run(_run(arguments, subject))


async def _run(arguments: argparse.Namespace, subject: subjects.Subject) -> int:
    connection = connect.resolve(arguments)
    began = time.monotonic()
    async with connect.connected(connection) as client:
        resource = await discovery.resource_of(client, subject.kind)
        key = subjects.key_of(subject, resource, arguments.namespace or connection.namespace)
        name = f"{resource.singular} {key.namespace}/{key.name}" if key.namespace else f"{resource.singular} {key.name}"
        obj = await client.get(resource.gvk, key)
        uid, is_cluster = obj.metadata.uid, resource.kind == "Cluster"
        if is_cluster:
            print(f"deleting {name}: {await _parts(client, key) or 'nothing belongs to it'}", flush=True)
        if obj.at("spec", "paused") is True or PAUSED_ANNOTATION in obj.metadata.annotations:
            what = "spec.paused" if obj.at("spec", "paused") is True else f"the annotation {PAUSED_ANNOTATION}"
            print(f"{name} is paused: it will not be deleted until {what} is removed", flush=True)
        await client.delete(resource.gvk, key)
        if arguments.no_wait:
            print(f"{name} is being deleted")
            return 0
        shown = ""
        try:
            async with asyncio.timeout(arguments.timeout or None), aclosing(follow(client, resource, key)) as states:
                async for state in states:
                    if state is None or state["metadata"].get("uid") != uid:
                        break
                    line = await _parts(client, key) if is_cluster else _condition(state)
                    if line and line != shown:
                        print(f"{time.monotonic() - began:6.1f}s  {line}", flush=True)
                        shown = line
        except TimeoutError:
            print(f"{name} still exists after {arguments.timeout:g} s" + (f": {shown}" if shown else ""))
            return 1
    print(f"{name} deleted after {time.monotonic() - began:.1f} s")
    return 0


async def _parts(client: RestClient, key: ObjectKey) -> str:
    """Return what still belongs to a cluster, counted, with the first names."""
    told = []
    for kind in _COUNTED:
        found: Sequence[Any] = await client.list(kind, namespace=key.namespace, labels={CLUSTER_NAME_LABEL: key.name})
        if not found:
            continue
        names = [obj.metadata.name for obj in found]
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        phases = Counter(obj.status.phase or "Pending" for obj in found) if kind is Machine else {}
        how = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items()))
        told.append(
            f"{len(names)} {kind.__name__}{'s' * (len(names) != 1)} ({', '.join(names[:_MOST_NAMES])}{more}{'; ' + how if how else ''})"
        )
    return ", ".join(told)


def _condition(state: Json) -> str:
    """Return the message of the object's deletion condition."""
    conditions = (state.get("status") or {}).get("conditions") or ()
    deleting = next((c for c in conditions if c.get("type") == "Deleting" and c.get("status") == "True"), None)
    return f"{deleting.get('reason', '')}: {deleting.get('message', '')}".strip(": ") if deleting else ""
