"""Incidents of etcd: members that join, members that die, and who leads."""

from __future__ import annotations

from typing import Final

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.infrastructure import DevMachine
from clusterwright.inmemory import faults
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import ONE


async def _unnamed_learner(scene: Scene) -> None:
    await scene.patch(KubeadmControlPlane, "c", {"spec": {"replicas": 3}})
    scene.did("The control plane is scaled from one Machine to three.")
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    for _ in range(2):
        name = await scene.next_host(known)
        known.add(name)
        await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.ETCD_UNNAMED})
        await scene.until(lambda name=name: scene.has_node(name), f"{name} has a Node")  # type: ignore[misc]
        scene.did(f"The Node of {name} is there; its etcd is still a learner without a name.")
        await scene.wait(scene.random.uniform(5, 15))
        members = scene.p.workload("c").members()
        scene.must(any(m.name == name for m in members), f"the learner of {name} was removed before it had a name")
        await scene.p.annotate(DevMachine, name, {faults.FAULT: None})
    await scene.until_machines(3)
    scene.must(len(scene.p.workload("c").members()) == 3, "etcd does not have three members")


ETCD: Final = (
    Incident(
        number=14197,
        also=("#14199",),
        title="An etcd learner without a name is removed while its machine joins",
        there="The control plane controller took the learner that kubeadm had just added for a stray member, because its Node had "
        "registered and the member had no name yet; the new machine could never join and the rollout stopped.",
        here="A learner without a name is left alone for a while after a Node registered, and the Machine joins.",
        adversary="etcd starts seconds after the Node of its machine has registered",
        stage=ONE,
        play=_unnamed_learner,
    ),
)
