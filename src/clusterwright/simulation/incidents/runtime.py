"""Incidents of the parts that all controllers use: queues, back-off, admission of older objects."""

from __future__ import annotations

from typing import Final

from clusterwright.api.bootstrap import KubeadmConfigTemplate
from clusterwright.api.core import MachineDeployment
from clusterwright.api.meta import Json
from clusterwright.runtime.errors import Invalid
from clusterwright.simulation.faults import NO_FAULTS, FaultPlan
from clusterwright.simulation.incidents.adversary import Fate
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import EMPTY, NEW, WORKERS
from clusterwright.simulation.plane import NAMESPACE


async def _back_off(scene: Scene) -> None:
    trap = scene.adversary.trap("PATCH", "w", Fate.REFUSED, times=100_000)
    await scene.patch(MachineDeployment, "w", {"spec": {"template": {"spec": {"version": NEW}}}})
    scene.did("The API server refuses every write to a MachineDeployment.")
    await scene.wait(600)
    scene.must(trap.sprung < 120, f"{trap.sprung} writes were tried in ten minutes")
    scene.must(trap.sprung > 3, f"only {trap.sprung} writes were tried in ten minutes")


async def _coalesced(scene: Scene) -> None:
    scene.process.transport.suffer(FaultPlan(slow=1.0, slowest=4.0))
    for replicas in (3, 1, 4, 2, 3):
        await scene.patch(MachineDeployment, "w", {"spec": {"replicas": replicas}})
        await scene.wait(scene.random.uniform(1, 5))
    scene.did("The number of replicas is changed five times, while each pass takes longer than that; in the end it is three.")
    await scene.wait(60)
    scene.process.transport.suffer(NO_FAULTS)
    await scene.until_machines(3, leaders=False, within=300)


async def _older_objects(scene: Scene) -> None:
    template: Json = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfigTemplate",
        "metadata": {"name": "old", "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"files": [{"path": "/etc/motd", "content": ""}]}}},
    }
    try:
        await scene.client.create(template)
        scene.must(False, "a file with an empty content is let pass today")
    except Invalid:
        scene.did("A template with an empty file is refused today.")
    scene.store_as_before(template)
    scene.did("A template is stored that an older version has let pass: a file of it has an empty content.")
    try:
        await scene.p.annotate(KubeadmConfigTemplate, "old", {"example.com/team": "blue"})
    except Invalid as error:
        scene.must(False, f"an annotation of the old template is refused: {error}")
    found = await scene.get(KubeadmConfigTemplate, "old")
    scene.must(found.metadata.annotations == {"example.com/team": "blue"}, "the template was not changed")


RUNTIME: Final = (
    Incident(
        number=13416,
        title="Back-off is defeated by rate limiting",
        there="A limit of the rate at which an object is reconciled replaced the growing wait after failures, so that what failed was "
        "tried again and again.",
        here="The wait after a failure doubles, whatever else limits the rate.",
        adversary="an API server that refuses every write to one object",
        stage=WORKERS,
        play=_back_off,
    ),
    Incident(
        project="kubernetes-sigs/cluster-api-provider-aws",
        number=6084,
        title="A change that comes during a pass is not seen before the next resync",
        there="Events of one object were taken together; a change of its spec that came while it was being reconciled was lost for hours.",
        here="An object that changes during its pass is reconciled again right after it.",
        adversary="requests that take seconds, and a user who is faster",
        stage=WORKERS,
        play=_coalesced,
    ),
    Incident(
        project="vexxhost/magnum-cluster-api",
        number=1121,
        also=("#1131",),
        title="Stricter validation blocks objects that are there already",
        there="A new version refused an empty content of a file; classes and templates from before could no longer be changed at all.",
        here="What an object had before does not keep it from being changed elsewhere.",
        adversary="an object that was stored under older rules",
        stage=EMPTY,
        play=_older_objects,
    ),
)
