"""Machines that the API server does not take: tried again at leisure, without making and taking away what belongs to them."""

from __future__ import annotations

import asyncio

from clusterwright.api.core import Machine, MachineDeployment
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START

_POLICY = "admissionregistration.k8s.io/v1"


def _gvk(kind: str) -> GroupVersionKind:
    return GroupVersionKind.of(_POLICY, kind)


def test_creations_refused_by_a_policy_are_not_retried_forever() -> None:
    async def main() -> tuple[int, int, int]:
        async with plane(LoopClock(START)) as p:
            await p.apply([*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1)])
            await p.apply(samples.workers("c", "md", replicas=1))
            await p.until_available("c", workers=1, within=600)
            rule = {"apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["machines"]}
            spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "no more"}]}
            name = {"name": "no-more"}
            await p.client.create({"apiVersion": _POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": name, "spec": spec})
            spec = {"policyName": "no-more", "validationActions": ["Deny"]}
            await p.client.create({"apiVersion": _POLICY, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name, "spec": spec})
            await p.client.patch(MachineDeployment, ObjectKey("default", "md"), {"spec": {"replicas": 2}})
            before = p.server.store.revision
            await asyncio.sleep(600)
            written = p.server.store.revision - before
            left = len(await p.client.list(DevMachine))
            for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
                await p.client.delete(_gvk(kind), ObjectKey("", "no-more"))
            await p.until_available("c", workers=2, within=3600)
            return written, left, len(await p.client.list(Machine))

    written, left, machines = run_virtual(main())
    assert written < 200
    assert left == 2
    assert machines == 3
