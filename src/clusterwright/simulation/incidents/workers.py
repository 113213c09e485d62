"""Incidents of MachineDeployments and MachineSets: too many or wrong Machines, and Machines that are not created or not removed."""

from __future__ import annotations

from typing import Final

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import DELETE_MACHINE_ANNOTATION, PRE_TERMINATE_HOOK_PREFIX
from clusterwright.inmemory import faults
from clusterwright.simulation import samples
from clusterwright.simulation.incidents.adversary import Fate
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import HOUR, Scene
from clusterwright.simulation.incidents.stages import EMPTY, NEW, OLD, WORKERS
from clusterwright.simulation.plane import NAMESPACE

TO_NEW: Final[Json] = {"spec": {"template": {"spec": {"version": NEW}}}}


async def _duplicate_machine_sets(scene: Scene) -> None:
    lag = scene.random.uniform(8, 12)
    scene.adversary.lag |= {"machinesets": lag, "machinedeployments": lag}
    for method in ("PATCH", "POST"):
        scene.adversary.trap(method, "machinesets", Fate.LOST_ANSWER, times=3)
    scene.did(f"Watches of MachineSets and MachineDeployments are {lag:.0f} s late from now on; three answers to writes are lost.")
    await scene.patch(MachineDeployment, "w", TO_NEW)
    scene.did(f"The workers are to become {NEW}.")
    for number in range(6):
        await scene.wait(scene.random.uniform(1, 4))
        await scene.p.annotate(MachineDeployment, "w", {"example.com/poke": str(number)})
        made = scene.made("machinesets")
        scene.must(len(made) <= 1, f"{len(made)} MachineSets were made for one template: {', '.join(made)}")
    await scene.until_machines(2, leaders=False, version=NEW)
    made = scene.made("machinesets")
    scene.must(len(made) == 1, f"{len(made)} MachineSets were made for one template: {', '.join(made)}")
    scene.must(len(scene.made("machines")) == 2, f"{len(scene.made('machines'))} Machines were made where 2 were needed")


async def _six_for_one(scene: Scene) -> None:
    lag = scene.random.uniform(8, 12)
    scene.adversary.lag |= {"machines": lag}
    scene.adversary.trap("PATCH", "machines", Fate.LOST_ANSWER, times=2)
    scene.adversary.trap("POST", "machines", Fate.LOST_ANSWER, times=2)
    scene.did(f"Watches of Machines are {lag:.0f} s late from now on; answers to writes of Machines are lost.")
    await scene.p.apply(samples.cluster("c", has_control_plane_object=True))
    await scene.p.apply(samples.control_plane("c", replicas=1, seconds=1))
    await scene.wait(scene.random.uniform(0.5, 1.5))
    scene.crash()
    await scene.p.until_available("c", within=HOUR)
    made = scene.made("machines")
    scene.must(len(made) == 1, f"{len(made)} control plane Machines were made for one replica")


async def _paused_without_machine_set(scene: Scene) -> None:
    await scene.patch(MachineDeployment, "w", {"spec": {"paused": True, "replicas": 3, **TO_NEW["spec"]}})
    scene.did("The MachineDeployment is paused, gets another template, and a replica more.")
    await scene.wait(60)
    scene.must(not scene.made("machinesets"), "a paused MachineDeployment began its rollout")
    await scene.until_machines(3, leaders=False, version=OLD)
    await scene.patch(MachineDeployment, "w", {"spec": {"paused": None}})
    scene.did("It is no longer paused.")
    await scene.until_machines(3, leaders=False, version=NEW)


async def _the_wrong_one(scene: Scene) -> None:
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 3}})
    await scene.until_machines(3, leaders=False)
    lag = scene.random.uniform(5, 10)
    scene.adversary.lag |= {"machines": lag}
    named = (await scene.machines(leaders=False))[-1].metadata.name
    scene.mark()
    await scene.p.annotate(Machine, named, {DELETE_MACHINE_ANNOTATION: "now"})
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 2}})
    scene.did(f"An autoscaler names {named} and asks for one replica less; watches of Machines are {lag:.0f} s late.")
    await scene.until_machines(2, leaders=False)
    scene.must(scene.deleted("machines") == [named], f"{named} was named, but {', '.join(scene.deleted('machines'))} went")


async def _leftovers(scene: Scene) -> None:
    trap = scene.adversary.trap("PATCH", "machines", Fate.FORBIDDEN, times=4)
    scene.adversary.trap("POST", "machines", Fate.FORBIDDEN, times=4)
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 3}})
    scene.did("A third worker is asked for; a policy refuses its Machine.")

    async def refused() -> bool:
        return trap.sprung > 0 and len(scene.made("devmachines")) > 0

    await scene.until(refused, "the Machine is refused after its host was made")
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 2}})
    scene.did("It is not wanted any more.")
    await scene.wait(300)
    names = {m.metadata.name for m in await scene.client.list(Machine)}
    left = [m.metadata.name for m in await scene.client.list(DevMachine) if m.metadata.name not in names]
    scene.must(not left, f"{', '.join(left)} is left behind without a Machine")


async def _grows_while_deleted(scene: Scene) -> None:
    slow = (await scene.machines(leaders=False))[0].metadata.name
    await scene.p.annotate(Machine, slow, {f"{PRE_TERMINATE_HOOK_PREFIX}/slow": ""})
    scene.crash()
    await scene.client.delete(Cluster, ObjectKey(NAMESPACE, "c"))
    scene.did(f"The Cluster is deleted before the controllers are back; the end of {slow} takes a while.")
    await scene.wait(scene.random.uniform(60, 120))
    await scene.p.annotate(Machine, slow, {f"{PRE_TERMINATE_HOOK_PREFIX}/slow": None})
    await scene.p.until_gone(Cluster, "c", within=HOUR)
    made = scene.made("machines")
    scene.must(not made, f"{', '.join(made)} was made while the Cluster was being deleted")


async def _second_change(scene: Scene) -> None:
    known = {m.metadata.name for m in await scene.client.list(DevMachine)}
    await scene.patch(MachineDeployment, "w", TO_NEW)
    first = await scene.next_host(known)
    await scene.p.annotate(DevMachine, first, {faults.FAULT: faults.NEVER_BOOTS})
    scene.did(f"A rollout begins; its first machine {first} never boots.")
    await scene.wait(scene.random.uniform(20, 60))
    await scene.patch(MachineDeployment, "w", {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})
    scene.did("Meanwhile the user asks for v1.34.2.")
    await scene.until_machines(2, leaders=False, version="v1.34.2")
    scene.must(first in scene.deleted("machines"), f"{first} is still there")


async def _drifting_labels(scene: Scene) -> None:
    scene.did("Somebody takes the label of the pool off every worker, for half a minute.")
    for _ in range(8):
        for machine in await scene.client.list(Machine):
            if "pool" in machine.metadata.labels:
                await scene.patch(Machine, machine.metadata.name, {"metadata": {"labels": {"pool": None}}})
        await scene.wait(3)
        workers = await scene.machines(leaders=False)
        scene.must(len(workers) <= 3, f"there are {len(workers)} workers where two are wanted, and one more may be")
    await scene.wait(120)
    workers = await scene.machines(leaders=False)
    scene.must(len(workers) <= 3, f"there are {len(workers)} workers where two are wanted, and one more may be, after a while")


async def _by_another_manager(scene: Scene) -> None:
    before = {m.metadata.uid for m in await scene.client.list(Machine)}
    for machine_set in await scene.client.list(MachineSet):
        await scene.patch(MachineSet, machine_set.metadata.name, {"metadata": {"annotations": {"example.com/made-by": "another"}}})
    scene.crash()
    await scene.wait(60)
    await scene.patch(MachineDeployment, "w", {"spec": {"replicas": 3}})
    scene.did("The manager is replaced by another process; then a third worker is asked for.")
    await scene.until_machines(3, leaders=False)
    await scene.wait(300)
    after = {m.metadata.uid for m in await scene.client.list(Machine)}
    scene.must(before <= after, "Machines were replaced although nothing was changed but the number")
    scene.must(not scene.made("machinesets"), "another MachineSet was made")


WORKER_INCIDENTS: Final = (
    Incident(
        number=13649,
        also=("#13720", "#13725"),
        title="A late cache makes several MachineSets of one template",
        there="A MachineDeployment was reconciled again before the cache had seen its new MachineSet; the name was random, so that every "
        "pass made one more, with Machines of its own.",
        here="One MachineSet is made: its name follows from the template, and what the process wrote itself is known without the cache.",
        adversary="watches are about 10 s late, and answers to writes are lost",
        stage=WORKERS,
        play=_duplicate_machine_sets,
    ),
    Incident(
        project="k0sproject/k0smotron",
        number=1534,
        also=("#1535", "#1545"),
        title="Six control plane Machines for one replica",
        there="The control plane controller counted Machines in a cache that was late, and made one more with a random name in every pass.",
        here="One Machine is made: its name follows from what there is, also after a crash.",
        adversary="watches of Machines are about 10 s late, answers are lost, and the controllers crash",
        stage=EMPTY,
        play=_six_for_one,
    ),
    Incident(
        number=13827,
        title="A paused MachineDeployment without a new MachineSet",
        there="The controller crashed over a paused MachineDeployment whose template had no MachineSet yet.",
        here="It is scaled in proportion, and not rolled out before the pause ends.",
        adversary="a user who pauses, changes the template and scales in one write",
        stage=WORKERS,
        play=_paused_without_machine_set,
    ),
    Incident(
        project="kubernetes/autoscaler",
        number=8494,
        also=("#5465",),
        title="A healthy machine goes instead of the one that the autoscaler named",
        there="The autoscaler named a Machine and asked for one less; another Machine, which was healthy and in use, was deleted.",
        here="The Machine that was named goes, and no other.",
        adversary="the cache of Machines is late, so that the mark is not seen there when the number is",
        stage=WORKERS,
        play=_the_wrong_one,
    ),
    Incident(
        number=13812,
        title="Hosts and bootstrap configurations of Machines that never came to be",
        there="The creation of a Machine failed after its infrastructure machine and bootstrap configuration had been made; nobody ever "
        "deleted these.",
        here="What was made for a Machine that was refused is deleted again.",
        adversary="an admission policy that refuses the Machine",
        stage=WORKERS,
        play=_leftovers,
    ),
    Incident(
        number=9629,
        title="Machines are made while their Cluster is being deleted",
        there="After a restart the MachineSet controller made new Machines while the Cluster was being deleted, and the deletion stalled.",
        here="Nothing is made for a Cluster that is being deleted, and the deletion ends.",
        adversary="the controllers crash, the Cluster is deleted before they are back, and one machine takes its time",
        stage=WORKERS,
        play=_grows_while_deleted,
    ),
    Incident(
        project="k0sproject/k0smotron",
        number=1489,
        title="A second change in the middle of a rollout",
        there="A rollout was changed while its first new machine was still coming up; the rollout then waited for the address of that "
        "machine forever.",
        here="The machine of the first change is given up, and the rollout goes on to the second.",
        adversary="the first new machine never boots",
        stage=WORKERS,
        play=_second_change,
    ),
    Incident(
        number=14217,
        also=("#14216", "outscale/cluster-api-provider-outscale#543"),
        title="A MachineSet makes Machines without end because their labels drift",
        there="Labels of Machines were changed so that the MachineSet no longer counted them; it made new ones in every pass, thousands in "
        "one report.",
        here="A MachineDeployment never has more Machines than its replicas and its surge, whatever their labels say.",
        adversary="somebody removes the label from every new Machine",
        stage=WORKERS,
        play=_drifting_labels,
    ),
    Incident(
        number=13017,
        also=("#12990",),
        title="Everything is rolled out after an upgrade of the manager",
        there="A new version of the manager compared Machines differently, or took a change of replicas for a change of the "
        "template, and replaced all Machines.",
        here="No Machine is replaced unless its template means something else; `adopt --dry-run` tells before.",
        adversary="another process takes over, and only the number of replicas changes",
        stage=WORKERS,
        play=_by_another_manager,
    ),
)
