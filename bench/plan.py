"""The cost of a plan: CPU seconds for the upgrade of one cluster, and for a changed class of many clusters.

python bench/plan.py [--machines 100] [--clusters 200]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.plan import Captured, Edit, plan
from clusterwright.plan.replica import content
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from clusterwright.testing import run_virtual, virtual_plane

DEPLOYMENT = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineDeployment")
CONTROL_PLANE = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")
CLASS = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "ClusterClass")


def _captured(p: Plane, names: list[str]) -> Captured:
    workloads = {ObjectKey("default", n): tuple(dict(o) for o in content(p.workload(n).server).values()) for n in names}
    return Captured(tuple(dict(o) for o in content(p.server).values()), p.clock.now(), workloads)


async def _one(machines: int) -> Captured:
    async with virtual_plane() as p:
        await p.apply(samples.cluster("c", has_control_plane_object=True))
        await p.apply(samples.control_plane("c", replicas=3, seconds=20, version="v1.34.0"))
        await p.apply(samples.workers("c", "w", replicas=machines - 3, seconds=20, version="v1.34.0"))
        await p.until_available("c", control_plane=3, workers=machines - 3, within=36000)
        await asyncio.sleep(60)
        return _captured(p, ["c"])


async def _many(clusters: int) -> Captured:
    async with virtual_plane() as p:
        await p.apply(samples.cluster_class(seconds=1))
        names = [f"c{n}" for n in range(clusters)]
        for name in names:
            await p.client.create(samples.topology(name, version="v1.34.0"))
        for name in names:
            await p.until_available(name, workers=1, within=36000)
        await asyncio.sleep(60)
        return _captured(p, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--clusters", type=int, default=200)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    captured = run_virtual(_one(arguments.machines))
    begin = time.process_time()
    upgrade = [
        Edit(CONTROL_PLANE, ObjectKey("default", "c"), (("spec.version", "v1.34.1"),)),
        Edit(DEPLOYMENT, ObjectKey("default", "w"), (("spec.template.spec.version", "v1.34.1"),)),
    ]
    made = plan(captured, upgrade, runs=1)
    print(f"upgrade of {arguments.machines} Machines: {time.process_time() - begin:.1f} CPU-s, {len(made.replaced)} replaced")
    captured = run_virtual(_many(arguments.clusters))
    begin = time.process_time()
    path = "spec.workers.machineDeployments[class=default-worker].metadata.labels.bench"
    made = plan(captured, [Edit(CLASS, ObjectKey("default", "in-memory"), ((path, "1"),))], runs=1)
    print(f"class of {arguments.clusters} Clusters: {time.process_time() - begin:.1f} CPU-s, {len(made.changed)} objects changed")


if __name__ == "__main__":
    main()
