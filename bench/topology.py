"""Measure a pass over a topology, side by side with a pass over the same Cluster, and count the writes of idle topologies.

python -m bench.topology [--deployments 10] [--patches 20] [--passes 20] [--idle 0]
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import time
from random import Random
from typing import Any

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.kit import registry
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.reports import Reports
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START

KEY = ObjectKey("default", "c")


def patches(number: int) -> list[Json]:
    """Patches that all apply to every worker, each with a condition and a template."""

    def patch(n: int) -> Json:
        selector = {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfigTemplate",
            "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}},
        }
        template = f'echo "{n} {{{{ .builtin.machineDeployment.topologyName }}}} {{{{ .size | quote }}}}"'
        op = {"op": "add", "path": "/spec/template/spec/preKubeadmCommands/-", "valueFrom": {"template": f"'{template}'"}}
        return {
            "name": f"patch-{n}",
            "enabledIf": '{{ semverCompare ">= v1.24" .builtin.machineDeployment.version }}',
            "definitions": [{"selector": selector, "jsonPatches": [op]}],
        }

    return [patch(n) for n in range(number)]


def dependencies(p: Plane) -> Dependencies:
    """The dependencies of the plane's controllers."""
    manager = p.manager
    assert manager is not None
    return Dependencies(
        client=manager.client,
        clock=p.clock,
        random=Random(1),
        keys=FixedKeySource(1),
        events=manager.events,
        workload=_Nobody(),  # type: ignore[arg-type]
        dynamic=_Nobody(),
        features=EMBEDDED_FEATURES,
        enqueue=lambda _key, _reason: None,
        trace=lambda _key, _rows: None,
        reports=Reports(),
        options={},
    )


class _Nobody:
    """Watches are there already; no workload cluster is asked."""

    async def ensure(self, *_: Any, **_kw: Any) -> None:
        return

    def health(self, _: ObjectKey) -> Any:
        from clusterwright.workload.access import Health

        return Health(connected=True, last_probe_success=START, last_probe=START)

    async def client(self, _: ObjectKey) -> Any:
        from clusterwright.workload.access import NotConnected

        raise NotConnected("nobody")


def stored(p: Plane) -> dict[tuple[str, str], bytes]:
    """Every object as it is stored, but for Events, which end by themselves."""
    tables = p.server.store.tables.items()
    return {(name, str(key)): entry.raw for name, table in tables if name != "events" for key, entry in table.objects.items()}


async def cost(p: Plane, kind: str, name: str, passes: int) -> float:
    """Milliseconds of one pass that finds nothing to do. What is there already is frozen, as the manager does: nobody collects it again."""
    entry = registry.find(kind, name)
    assert entry is not None
    reconciler = registry.definition(entry).make(dependencies(p))
    await reconciler.reconcile(KEY)
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for _ in range(passes):
        await reconciler.reconcile(KEY)
    return (time.process_time() - began) / passes * 1000


async def measure(deployments: int, number: int, passes: int, idle: int) -> Json:
    clock = LoopClock(START)
    server = management_server(clock, Random(1), EMBEDDED_FEATURES)
    size = {"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "string", "default": "small"}}}
    objects = samples.cluster_class(seconds=1, variables=[size], patches=patches(number))
    for obj in objects:
        if obj["kind"] == "KubeadmConfigTemplate":
            obj["spec"]["template"]["spec"]["preKubeadmCommands"] = ["true"]
    async with plane(clock, server=server) as p:
        await p.apply(objects)
        await p.client.create(samples.topology("c", workers={f"md-{n}": 1 for n in range(deployments)}))
        await p.until_available("c", workers=deployments, within=3600)
        for n in range(idle):
            await p.client.create(samples.topology(f"idle-{n}", workers={}))
        for n in range(idle):
            await p.until_available(f"idle-{n}", workers=0, within=3600)
        await clock.sleep(1800)
        before = stored(p)
        await clock.sleep(1800)
        after = stored(p)
        answer = {
            "cluster pass, ms": round(await cost(p, "Cluster", "cluster", passes), 2),
            "topology pass, ms": round(await cost(p, "Cluster", "topology/cluster", passes), 2),
            "topologies at rest": idle + 1,
            "objects written in half an hour of rest": sum(before.get(k) != after.get(k) for k in before.keys() | after.keys()),
        }
        assert await p.client.find(Cluster, KEY) is not None
    server.close()
    return answer | {"ratio": round(answer["topology pass, ms"] / answer["cluster pass, ms"], 2)}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=10)
    parser.add_argument("--patches", type=int, default=20)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--idle", type=int, default=0, help="further Clusters of the class that do nothing")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(json.dumps(run_virtual(measure(arguments.deployments, arguments.patches, arguments.passes, arguments.idle)), indent=1))


if __name__ == "__main__":
    main()
