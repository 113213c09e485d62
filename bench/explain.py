"""Measure the CPU time of `clusterwright explain`: of a file of many clusters, and of one live cluster. python -m bench.explain.

The clusters are brought up in virtual time, each in a namespace of its own, and listed as `kubectl get -A` lists them. The time is that of
a whole process, with its start. `live` is the cost of one answer in a process that runs already: of recording and of explaining.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import yaml

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.record import record
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START

WORKERS = 2


async def everything(p: Plane) -> list[Json]:
    """Return all objects of the plane by kind, as `kubectl get -A` has them."""
    lists = await p.client.raw_get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    definitions = msgspec.json.decode(lists)["items"]
    kinds = [GroupVersionKind("", "v1", kind) for kind in ("Namespace", "Secret", "ConfigMap", "Event")]
    for definition in definitions:
        spec = definition["spec"]
        version = next(v["name"] for v in spec["versions"] if v["storage"])
        kinds.append(GroupVersionKind(spec["group"], version, spec["names"]["kind"]))
    found: list[Json] = []
    for kind in kinds:
        found += [_without_owners(dict(o.json)) for o in await p.client.list(kind)]
    return found


def _without_owners(obj: Json) -> Json:
    """Return an object as kubectl prints it: without managedFields."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


async def fleet(clusters: int) -> list[Json]:
    """Return the objects of a fleet that is up."""
    async with plane(LoopClock(START)) as p:
        for n in range(clusters):
            namespace, name = f"team-{n % 20:02}", f"shop-{n:03}"
            if n < 20:
                await p.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            objects = [
                *samples.cluster(name, namespace, has_control_plane_object=True),
                *samples.control_plane(name, namespace, replicas=1),
                *samples.workers(name, f"{name}-md", namespace, replicas=WORKERS),
            ]
            await p.apply(objects)
        await asyncio.sleep(600)
        return await everything(p)


def of_a_process(arguments: list[str]) -> float:
    """Return the CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "clusterwright", *arguments], check=True, stdout=subprocess.DEVNULL, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def live(rounds: int) -> list[float]:
    """Return the CPU seconds that one answer about a live cluster takes."""
    async with plane(LoopClock(START)) as p:
        await p.apply(
            [
                *samples.cluster("c", has_control_plane_object=True),
                *samples.control_plane("c", replicas=3),
                *samples.workers("c", "md", replicas=WORKERS),
            ]
        )
        await asyncio.sleep(600)
        times = []
        for _ in range(rounds):
            begun = time.process_time()
            explain(assemble(await record(p.client, ObjectKey("default", "c"), p.clock.now(), keep_secrets=True)), "Cluster/default/c")
            times.append(time.process_time() - begun)
        return times


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a directory for the files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = arguments.keep or Path(scratch)
        items = {"apiVersion": "v1", "kind": "List", "items": run_virtual(fleet(arguments.clusters))}
        (where / "fleet.json").write_bytes(msgspec.json.encode(items))
        (where / "fleet.yaml").write_text(yaml.dump(items, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))
        for name in ("fleet.json", "fleet.yaml"):
            file = where / name
            command = ["explain", "cluster", "shop-017", "-n", "team-17", "--from", str(file)]
            times = [of_a_process(command) for _ in range(arguments.rounds)]
            size = f"{file.stat().st_size / 1e6:.1f} MB, {len(items['items'])} objects"
            print(f"{name} ({size}): {statistics.median(times):.2f} CPU-s, at most {max(times):.2f}")
    answers = run_virtual(live(arguments.rounds))
    print(f"live, one cluster of 3 and {WORKERS}: {statistics.median(answers):.2f} CPU-s, at most {max(answers):.2f}")


if __name__ == "__main__":
    main()
