"""Show faults: the state of a machine's Node, Pods, etcd and API server while it is broken."""

from __future__ import annotations

from contextlib import suppress

from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.inmemory import etcd, faults, objects
from clusterwright.runtime.errors import NotFound

APPLIED_FAULTS = "inmemory.clusterwright.dev/applied-faults"
"""The Node annotation with the faults that are shown, so that manual changes by tests are left alone."""


async def show_faults(scene: Scene) -> None:
    """Make the machine show its faults; only when they have changed."""
    client, key = scene.simulated.client, ObjectKey("", scene.name)
    node = await client.find(Node, key)
    asked = scene.faults
    wanted = ",".join(sorted(asked - {faults.NEVER_BOOTS, faults.BOOTSTRAP_FAILS}))
    if node is None or node.metadata.annotations.get(APPLIED_FAULTS, "") == wanted:
        return
    is_dead = faults.NODE_DIES in asked
    is_silent = is_dead or faults.KUBELET_STOPS in asked
    if scene.is_control_plane:
        is_etcd_down = is_dead or bool(asked & {faults.ETCD_STOPS, faults.ETCD_UNNAMED})
        await _show_component(scene, "etcd", is_down=is_etcd_down)
        await _show_component(scene, "kube-apiserver", is_down=is_dead or faults.API_SERVER_STOPS in asked)
        alarms = [name for fault, name in ((faults.ETCD_CORRUPT, "CORRUPT"), (faults.ETCD_NO_SPACE, "NOSPACE")) if fault in asked]
        with suppress(NotFound):  # etcd is external
            await scene.simulated.annotate_etcd(
                scene.name,
                {
                    etcd.ALARMS: ",".join(alarms) or None,
                    etcd.STOPPED: "" if is_etcd_down else None,
                    etcd.UNNAMED: "" if faults.ETCD_UNNAMED in asked else None,
                    etcd.LEARNER: "" if faults.ETCD_LEARNER in asked else None,
                },
            )
        if asked & {faults.NODE_DIES, faults.API_SERVER_STOPS}:
            await scene.simulated.stop_api_server(scene.name)
    conditions = objects.node_conditions(scene.now, is_ready=not is_silent)
    await client.patch(Node, key, {"status": {"conditions": conditions}}, subresource="status")
    present: list[Json] = [
        {"key": t.key, "effect": t.effect} | ({"value": t.value} if t.value else {})
        for t in node.spec.taints
        if t.key != objects.UNREACHABLE_TAINT
    ]
    taints = objects.unreachable_taints(present, scene.now, is_reachable=not is_silent)
    annotations = {APPLIED_FAULTS: wanted or None, objects.KUBELET_STOPPED: "" if is_silent else None}
    await client.patch(Node, key, {"metadata": {"annotations": annotations}, "spec": {"taints": taints or None}})


async def _show_component(scene: Scene, component: str, *, is_down: bool) -> None:
    status = "False" if is_down else "True"
    stamp = objects.timestamp(scene.now)
    conditions = [{"type": t, "status": status, "lastTransitionTime": stamp} for t in ("Ready", "ContainersReady")]
    key = ObjectKey("kube-system", f"{component}-{scene.name}")
    container: Json = {"name": component, "ready": not is_down}
    if is_down:  # as the kubelet reports what it starts again and again
        ended = {"exitCode": 1, "reason": "Error", "startedAt": stamp, "finishedAt": stamp}
        container |= {"state": {"running": None, "waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}
    else:
        container |= {"state": {"waiting": None, "running": {"startedAt": stamp}}, "lastState": {"terminated": None}}
    status_ = {"conditions": conditions, "containerStatuses": [container]}
    with suppress(NotFound):
        await scene.simulated.client.patch(Pod, key, {"status": status_}, type="strategic", subresource="status")
