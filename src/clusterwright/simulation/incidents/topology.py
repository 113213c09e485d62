"""Incidents of topologies, upgrades and updates in place."""

from __future__ import annotations

from typing import Final

from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.infrastructure import DevMachine, DevMachineTemplate
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, SKIP_PREFLIGHT_CHECKS_ANNOTATION, TOPOLOGY_DEPLOYMENT_NAME_LABEL
from clusterwright.conditions import is_true
from clusterwright.inmemory import faults
from clusterwright.simulation import samples
from clusterwright.simulation.incidents.extension import Scripted
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import HOUR, Scene
from clusterwright.simulation.incidents.stages import CHAINED, HOOKED, IN_PLACE, NEW, OLD, PINNING, TOPOLOGY


def _to(version: str) -> Json:
    return {"spec": {"topology": {"version": version}}}


async def _step_by_step(scene: Scene) -> None:
    await scene.patch(Cluster, "c", _to("v1.36.0"))
    scene.did("The Cluster is upgraded by two minor versions at once; its class lists those between.")
    await scene.until_machines(2, version="v1.36.0", within=HOUR)
    leaders = [
        w.json for w in scene.history if w.table == "machines" and w.type == "ADDED" and CONTROL_PLANE_LABEL in w.json["metadata"]["labels"]
    ]
    versions = [m["spec"]["version"] for m in leaders]
    scene.must(versions == ["v1.34.0", "v1.35.0", "v1.36.0"], f"the control plane went through {', '.join(versions)}")


async def _sick_between_steps(scene: Scene) -> None:
    await scene.client.create(samples.machine_health_check("c", "leaders", labels={CONTROL_PLANE_LABEL: ""}, at_most="100%"))
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    await scene.patch(Cluster, "c", _to("v1.36.0"))
    name = await scene.next_host(known)
    await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.NEVER_BOOTS})
    scene.did(f"In the first of two steps of an upgrade the new control plane machine {name} never boots.")
    await scene.p.until_gone(Machine, name, within=1200)

    async def went_on() -> bool:
        return any(m.spec.version == "v1.35.0" and is_true(m.status.conditions, "Ready") for m in await scene.machines(leaders=True))

    await scene.until(went_on, "the step goes on with another machine", within=300)


def _pinned(replicas: int) -> Json:
    """Return the workers, pinned; their images are taken to bring the kubeadm of the control plane."""
    entry = {"class": "default-worker", "name": "w", "replicas": replicas, "version": OLD}
    entry["metadata"] = {"annotations": {SKIP_PREFLIGHT_CHECKS_ANNOTATION: "KubeadmVersionSkew"}}
    return {"workers": {"machineDeployments": [entry]}}


async def _stays_behind(scene: Scene) -> None:
    await scene.client.create(samples.machine_health_check("c", "workers", labels={TOPOLOGY_DEPLOYMENT_NAME_LABEL: "w"}, at_most="100%"))
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    (worker,) = await scene.machines(leaders=False)
    await scene.patch(Cluster, "c", {"spec": {"topology": {"version": "v1.36.0", **_pinned(1)}}})
    scene.did(f"The Cluster is upgraded by two minor versions; its workers are pinned to {OLD}.")
    await scene.next_host(known)
    await scene.p.annotate(DevMachine, worker.metadata.name, {faults.FAULT: faults.NODE_DIES})
    await scene.patch(Cluster, "c", {"spec": {"topology": _pinned(2)}})
    scene.did(f"Meanwhile the worker {worker.metadata.name} dies, and its group is scaled to two.")
    await scene.until_machines(1, leaders=True, version="v1.36.0", within=HOUR)
    await scene.until_machines(2, leaders=False, version=OLD, without=[worker.metadata.name], within=HOUR)
    await scene.until_says(Cluster, "c", "TopologyReconciled", "True")
    made = [w.json for w in scene.history if w.table == "machines" and w.type == "ADDED"]
    other = [m["metadata"]["name"] for m in made if CONTROL_PLANE_LABEL not in m["metadata"]["labels"] and m["spec"]["version"] != OLD]
    scene.must(not other, f"pinned workers got another version: {', '.join(other)}")


async def _told_in_conditions(scene: Scene) -> None:
    assert isinstance(scene.extension, Scripted)
    scene.extension.failure = "no capacity is left in zone b"
    await scene.patch(Cluster, "c", _to(NEW))
    scene.did("An extension refuses an upgrade, and says why.")
    await scene.until_says(Cluster, "c", "TopologyReconciled", "no capacity is left in zone b")
    scene.must(not scene.made("machines"), "the upgrade began although the extension refused it")
    scene.extension.failure = ""
    scene.did("It lets the upgrade pass.")

    async def begun() -> bool:
        return bool(scene.made("machines"))

    await scene.until(begun, "the upgrade begins")


async def _only_metadata(scene: Scene) -> None:
    team = {"example.com/team": f"team-{scene.random.randrange(100)}"}
    for name in ("in-memory-worker", "in-memory-control-plane"):
        await scene.patch(DevMachineTemplate, name, {"metadata": {"labels": team, "annotations": team}})
    scene.did("Templates of the class get a label and an annotation.")

    async def labelled() -> bool:
        return sum(team.items() <= t.metadata.labels.items() for t in await scene.client.list(DevMachineTemplate)) == 4

    await scene.until(labelled, "the label reaches the templates of the Cluster", within=180)
    await scene.wait(120)
    scene.must(not scene.made("devmachinetemplates"), "templates were rotated for a label")
    scene.must(not scene.made("machines"), "Machines were replaced for a label")


def _rolling(surge: int, unavailable: int) -> Json:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}, "template": {"spec": {"version": NEW}}}


async def _surge_in_place(scene: Scene) -> None:
    before = {m.metadata.uid for m in await scene.machines(leaders=False)}
    await scene.patch(MachineDeployment, "w", {"spec": _rolling(2, 0)})
    scene.did("Two workers are updated in place, with a surge of two.")
    await scene.until_machines(2, leaders=False, version=NEW)
    made = scene.made("machines")
    scene.must(len(made) <= 1, f"{len(made)} Machines were made to update two in place, where one sets it going")
    after = {m.metadata.uid for m in await scene.machines(leaders=False)}
    scene.must(bool(before & after), "no Machine was updated in place")


async def _without_node(scene: Scene) -> None:
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 3}})
    name = await scene.next_host(known)
    await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.NEVER_BOOTS})
    await scene.wait(30)
    await scene.patch(MachineDeployment, "w", {"spec": _rolling(1, 0)})
    scene.did(f"A rollout in place begins while {name} has no Node.")
    await scene.until_machines(3, leaders=False, version=NEW, without=[name])


TOPOLOGIES: Final = (
    Incident(
        number=13506,
        also=("#13463",),
        title="A chained upgrade stands still, or takes a wrong way",
        there="Without runtime extensions an upgrade by several minor versions stood still and said nothing; in another report the plan "
        "left steps out.",
        here="The control plane goes through every minor version of the class, then the workers follow.",
        adversary="an upgrade by two minor versions at once, without runtime extensions",
        stage=CHAINED,
        play=_step_by_step,
    ),
    Incident(
        number=13869,
        title="An unhealthy control plane Machine in a chained upgrade is never replaced",
        there="Remediation waited until the version of the topology was reached, which an unhealthy Machine in a step before prevented.",
        here="Between the steps of an upgrade Machines are remediated as ever.",
        adversary="the first new machine of a step never boots",
        stage=CHAINED,
        play=_sick_between_steps,
    ),
    Incident(
        number=13303,
        also=("#12466", "#13892"),
        title="One pool of workers stays behind, and still scales and heals",
        there="All workers of a topology have its version. A pool whose upgrade was deferred was frozen: it was neither scaled nor "
        "changed until it was upgraded, and the upgrade of the Cluster did not end before.",
        here="A pool that is pinned to a version is left out of upgrades, which do not wait for it; new Machines get its version.",
        adversary="a worker that dies in the middle of a chained upgrade, and a user who scales its pool",
        stage=PINNING,
        play=_stays_behind,
    ),
    Incident(
        number=13813,
        also=("#6921",),
        title="The error of an extension is only in the log of the manager",
        there="A runtime extension refused an upgrade with a good explanation; the Cluster said only that something had failed.",
        here="The condition repeats the message of the extension.",
        adversary="an extension that fails",
        stage=HOOKED,
        play=_told_in_conditions,
    ),
    Incident(
        number=5413,
        title="A label replaces all Machines",
        there="Every change of a template of the class made new templates, a change of labels alone, too, and so a rollout.",
        here="Nothing is rotated unless the spec of the template means something else.",
        adversary="a user who labels the templates of the class",
        stage=TOPOLOGY,
        play=_only_metadata,
    ),
    Incident(
        number=13983,
        title="An update in place makes as many machines as the surge allows",
        there="The surge was counted by what was planned and not by the Machines that there were, so that rollouts in place made too many "
        "or none.",
        here="One Machine more sets the rollout going; the others are updated where they are.",
        adversary="a surge as large as the MachineDeployment",
        stage=IN_PLACE,
        play=_surge_in_place,
    ),
    Incident(
        number=13886,
        title="A rollout in place stands still for a Machine without a Node",
        there="A Machine of the old MachineSet had no Node and could not be updated in place; it was never deleted either.",
        here="It is replaced, and the rollout ends.",
        adversary="a machine that never boots",
        stage=IN_PLACE,
        play=_without_node,
    ),
)
