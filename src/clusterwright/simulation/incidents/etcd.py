"""Incidents of etcd: members that join, members that die, and changes of the leader."""

from __future__ import annotations

from typing import Final

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.api.wire import Request
from clusterwright.apiserver.storage.store import Event, Table
from clusterwright.inmemory import etcd, faults, objects
from clusterwright.simulation import samples
from clusterwright.simulation.incidents.adversary import Fate
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import NEW, OLD, ONE, THREE
from clusterwright.simulation.plane import NAMESPACE


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


def _leader(scene: Scene) -> str:
    """Return the machine whose member leads."""
    found = etcd.leader(scene.p.workload("c").members())
    scene.must(found is not None, "nobody leads etcd")
    assert found is not None
    return found.name


async def _health_check(scene: Scene) -> None:
    """Have control plane Machines replaced whose Node is not ready."""
    await scene.client.create(samples.machine_health_check("c", "leaders", labels={CONTROL_PLANE_LABEL: ""}))


async def _dead_leader(scene: Scene) -> None:
    await _health_check(scene)
    victim = _leader(scene)
    scene.cut_off(victim)
    await scene.p.annotate(DevMachine, victim, {faults.FAULT: faults.KUBELET_STOPS})
    scene.did(f"The kubelet of {victim}, whose etcd member leads, stops: nobody can reach the member from outside, and it goes on leading.")
    await scene.until_machines(3, without=[victim])
    names = sorted(m.name for m in scene.p.workload("c").members())
    scene.must(victim not in names and len(names) == 3, f"the members of etcd are {', '.join(names)}")


async def _crash_after_removal(scene: Scene) -> None:
    victim = scene.random.choice([m.metadata.name for m in await scene.machines() if m.metadata.name != _leader(scene)])

    def has_left(_: Request) -> bool:
        return all(m.name != victim for m in scene.p.workload("c").members())

    scene.adversary.trap("PATCH", victim, Fate.CRASH_BEFORE, when=has_left)
    await scene.client.delete(Machine, ObjectKey(NAMESPACE, victim))
    scene.did(f"{victim} is deleted; the controllers crash as soon as its member has left etcd, before they can write that down.")
    await scene.until_machines(3, without=[victim])
    scene.must(len(scene.p.workload("c").members()) == 3, "etcd does not have three members")


async def _deleted_by_hand(scene: Scene) -> None:
    victim = _leader(scene)
    await scene.client.delete(Machine, ObjectKey(NAMESPACE, victim))
    scene.did(f"A user deletes {victim}, whose member leads etcd.")

    removed: list[str] = []

    def hear(table: Table, event: Event) -> None:
        if table.name == "pods" and event.entry.name == f"etcd-{victim}" and etcd.REMOVED.encode() in event.entry.raw:
            removed.append(victim)

    scene.p.workload("c").server.store.listeners.append(hear)
    await scene.until(lambda: scene.is_gone(DevMachine, victim), f"the host of {victim} is gone", step=0.25)
    scene.must(bool(removed), f"the member of {victim} was never removed from etcd")
    await scene.until_machines(3, without=[victim])


async def _learner_is_no_voter(scene: Scene) -> None:
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    await scene.patch(KubeadmControlPlane, "c", {"spec": {"version": NEW}})
    name = await scene.next_host(known)
    await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.ETCD_LEARNER})
    seconds = scene.random.uniform(120, 240)
    scene.did(f"A rollout begins; the member of {name} stays a learner for {seconds:.0f} s.")
    await scene.wait(seconds)
    voters = [m.name for m in scene.p.workload("c").members() if not m.is_learner]
    scene.must(set(voters) == known, f"the voting members of etcd are {voters}, and the only other one is a learner")
    scene.must(scene.p.workload("c").is_serving, "the cluster does not answer")
    await scene.p.annotate(DevMachine, name, {faults.FAULT: None})
    scene.did("It is promoted.")
    await scene.until_machines(1, version=NEW)


async def _left_behind(scene: Scene) -> None:
    simulated = scene.p.workload("c")
    annotations = {**etcd.new_member(simulated.members(), scene.random, scene.world.clock.now()), etcd.UNNAMED: ""}
    simulated.ensure(objects.static_pod("etcd", "gone", version=OLD, now=scene.world.clock.now(), annotations=annotations))
    scene.did("A machine was replaced before its etcd started; its learner, which has no name, is still a member.")
    await scene.p.annotate(KubeadmControlPlane, "c", {"example.com/poke": "1"})

    async def is_removed() -> bool:
        return len(simulated.members()) == 1

    await scene.until(is_removed, "the learner is removed")
    await scene.until_says(KubeadmControlPlane, "c", "EtcdClusterHealthy", "True")


ETCD: Final = (
    Incident(
        number=13667,
        also=("#13221",),
        title="A learner outlives the machine that never started it",
        there="A new control plane machine was replaced before its etcd had started; the learner that kubeadm had announced stayed, and "
        "etcd takes no second one.",
        here="A learner of no Machine is removed, once all Machines have their Nodes.",
        adversary="a machine that goes between the announcement of its member and the start of etcd",
        stage=ONE,
        play=_left_behind,
    ),
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
    Incident(
        number=12711,
        also=("#8465", "#13848"),
        title="The kubelet of the etcd leader dies",
        there="Only the leader itself can hand over the leadership; its kubelet was dead, so nobody could ask it, and the remediation "
        "of its Machine failed again and again.",
        here="The member is removed through another one, etcd elects the next leader, and the Machine is replaced.",
        adversary="the kubelet of the leader stops, and with it the way to its etcd",
        stage=THREE,
        play=_dead_leader,
    ),
    Incident(
        number=4365,
        title="The controllers crash after a member was removed and before its Machine was deleted",
        there="The new process found two members where it expected three, and refused to go on with the Machine.",
        here="A member that is gone already is success; the Machine goes, and another takes its place.",
        adversary="a crash between the removal of the member and the write that follows",
        stage=THREE,
        play=_crash_after_removal,
    ),
    Incident(
        project="k0sproject/k0smotron",
        number=991,
        also=("kubernetes-sigs/cluster-api#2818",),
        title="A deleted control plane Machine stays a member of etcd",
        there="Somebody deleted a control plane Machine; its etcd member stayed, and no machine could take its place.",
        here="The member is removed before the host goes, and the leadership moves first.",
        adversary="a user who deletes the Machine of the leader",
        stage=THREE,
        play=_deleted_by_hand,
    ),
    Incident(
        project="k0sproject/k0smotron",
        number=1481,
        title="A voting member is removed while its successor is still a learner",
        there="A rollout took the next machine away before the new member had a vote; etcd lost its quorum for good.",
        here="The member of the old Machine stays until the new one has a vote.",
        adversary="a member that stays a learner for minutes",
        stage=ONE,
        play=_learner_is_no_voter,
    ),
)
