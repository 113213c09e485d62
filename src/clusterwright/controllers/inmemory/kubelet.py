"""The kubelet of a simulated machine that is updated in place: an extension reports the update, but only we change the Node."""

from __future__ import annotations

from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.controllers.owned_machines import is_updating
from clusterwright.inmemory import faults
from clusterwright.kubeadm.reached import runs


async def follow_machine(scene: Scene) -> None:
    """Set the kubelet version to that of its Machine, once the update is over; leave other fields of the Node alone."""
    info = scene.machine.status.node_info
    if scene.pool is not None or info is None or not info.kubelet_version or is_updating(scene.machine):
        return
    if runs(info.kubelet_version, scene.version) or scene.faults & {faults.NODE_DIES, faults.KUBELET_STOPS}:
        return
    versions = {"kubeletVersion": scene.version, "kubeProxyVersion": scene.version}
    await scene.simulated.client.patch(Node, ObjectKey("", scene.name), {"status": {"nodeInfo": versions}}, subresource="status")
