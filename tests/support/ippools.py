"""A plane with admission, in virtual time, and the pools and claims that tests of the IPAM provider create on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START

IPAM = "ipam.cluster.x-k8s.io"
SPEC: Json = {"addresses": ["10.0.0.10-10.0.0.12"], "prefix": 24, "gateway": "10.0.0.1"}


def played(body: Callable[[Plane], Awaitable[Any]]) -> Any:
    async def main() -> Any:

        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        try:
            async with plane(clock, server=server) as p:
                return await body(p)
        finally:
            server.close()

    return run_virtual(main())


def pool(name: str = "pool", kind: str = "InClusterIPPool", **spec: Any) -> Json:
    namespace = {"namespace": "default"} if kind == "InClusterIPPool" else {}
    return {"apiVersion": f"{IPAM}/v1alpha2", "kind": kind, "metadata": {"name": name, **namespace}, "spec": SPEC | spec}


def claim(name: str, pool: str = "pool", kind: str = "InClusterIPPool", *, namespace: str = "default", **spec: Any) -> Json:
    ref = {"apiGroup": IPAM, "kind": kind, "name": pool}
    return {
        "apiVersion": f"{IPAM}/v1beta2",
        "kind": "IPAddressClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"poolRef": ref, **spec},
    }
