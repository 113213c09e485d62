"""Edge cases of MachineSets and MachineDeployments. More are with the pure choices that they are about, and in `test_passes`."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.conditions import get
from clusterwright.controllers.external import get_external
from clusterwright.simulation import samples
from support.worker_passes import KEY, Json, Plane, objects

SINCE = "2026-05-01T11:00:00Z"


def conditions(**statuses: str) -> list[Json]:
    return [{"type": t, "status": s, "reason": t, "message": "", "lastTransitionTime": SINCE} for t, s in statuses.items()]


async def say(plane: Plane, machine: Machine, **statuses: str) -> None:
    status = {"nodeRef": {"name": machine.metadata.name}, "conditions": conditions(**statuses)}
    await plane.client.patch(Machine, machine.key, {"status": status}, subresource="status")


async def started(replicas: int = 3, observation: Json | None = None, **spec: Any) -> Plane:
    """A MachineSet with its Machines."""
    plane = Plane(objects("MachineSet", replicas, **spec), observation)
    await plane.reconcile("MachineSet", times=3)
    return plane


async def deployed(replicas: int = 2, **spec: Any) -> Plane:
    """A MachineDeployment with its MachineSet and Machines, all ready."""
    plane = Plane(objects("MachineDeployment", replicas, **spec))
    await plane.reconcile("MachineDeployment", times=3)
    await settle(plane)
    return plane


async def settle(plane: Plane) -> None:
    """Every MachineSet has what it wants, and says so."""
    for _ in range(2):
        for machine_set in await plane.machine_sets():
            await plane.reconcile("MachineSet", machine_set.key, times=3)
        await gone(plane)
        for machine in await plane.machines():
            await say(plane, machine, Ready="True", Available="True", UpToDate="True")


async def gone(plane: Plane) -> None:
    """Machines that were deleted are let go."""
    for machine in await plane.machines():
        if machine.metadata.deletion_timestamp is not None:
            await plane.client.patch(Machine, machine.key, {"metadata": {"finalizers": None}})


async def the_set(plane: Plane) -> MachineSet:
    return await plane.client.get(MachineSet, KEY)


async def condition(plane: Plane, of: type[Any], type: str) -> tuple[str, str, str]:
    found = get((await plane.client.get(of, KEY)).status.conditions, type)
    assert found is not None
    return found.status, found.reason, found.message


# ----------------------------------------------------------------------------------------------------------- MachineSet


async def test_deleting_machines_count_as_gone() -> None:
    plane = await started(4)
    going = sorted(await plane.machines(), key=lambda m: m.metadata.name)[:2]
    for machine in going:
        await plane.client.patch(Machine, machine.key, {"metadata": {"finalizers": ["example.com/stay"]}})
        await plane.client.delete(Machine, machine.key)
    for replicas, left in ((2, 2), (1, 1)):
        await plane.client.patch(MachineSet, KEY, {"spec": {"replicas": replicas}})
        await plane.reconcile("MachineSet")
        assert len([m for m in await plane.machines() if m.metadata.deletion_timestamp is None]) == left


async def test_a_machine_that_cannot_be_deleted_does_not_stop_the_others() -> None:
    plane = await started(3)
    stays = min(m.metadata.name for m in await plane.machines())
    other = Plane([], {"unwritable": [{"verb": "delete", "kind": "Machine", "name": stays}]})
    plane.client._faults = other.client._faults  # type: ignore[attr-defined]
    await plane.client.patch(MachineSet, KEY, {"spec": {"replicas": 0}})
    error = await plane.reconcile("MachineSet")

    assert stays in error
    assert [m.metadata.name for m in await plane.machines() if m.metadata.deletion_timestamp is None] == [stays]


async def test_machines_of_others_are_neither_counted_nor_adopted() -> None:
    plane = await started(1)
    (own,) = await plane.machines()
    reference = {"apiVersion": "example.com/v1", "kind": "Other", "name": "o", "uid": "u", "controller": True}
    metadata = {"name": "foreign", "namespace": "default", "labels": dict(own.metadata.labels), "ownerReferences": [reference]}
    spec = {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {}}
    await plane.client.create({"apiVersion": own.api_version, "kind": "Machine", "metadata": metadata, "spec": spec})
    await plane.reconcile("MachineSet", times=2)

    foreign = await plane.client.get(Machine, ObjectKey("default", "foreign"))
    assert [o.kind for o in foreign.metadata.owner_references] == ["Other"]
    assert ((await the_set(plane)).status.replicas, len(await plane.machines())) == (1, 2)


async def test_a_set_without_labels_gets_its_cluster_s() -> None:
    made = objects("MachineSet", 1)
    made[-1]["metadata"].pop("labels", None)
    plane = Plane(made)
    assert await plane.reconcile("MachineSet", times=3) == ""

    assert (await the_set(plane)).metadata.labels["cluster.x-k8s.io/cluster-name"] == "c"


async def test_a_check_that_fails_holds_creation_up_unless_it_is_skipped() -> None:
    made = objects("MachineSet", 1, version="v1.36.0")
    reference = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c"}
    made[0]["spec"]["controlPlaneRef"] = reference
    control_plane = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "c", "namespace": "default", "uid": "u-kcp", "creationTimestamp": SINCE},
        "spec": {"version": "v1.34.1", "replicas": 1},
        "status": {"version": "v1.34.1", "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "upToDateReplicas": 1},
    }
    plane = Plane([*made, control_plane])
    await plane.reconcile("MachineSet", times=3)
    assert await plane.machines() == []
    assert "MachineSet version (1.36.0) and ControlPlane version (1.34.1)" in (await condition(plane, MachineSet, "ScalingUp"))[2]

    skip = {"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"}
    await plane.client.patch(MachineSet, KEY, {"metadata": {"annotations": skip}})
    await plane.reconcile("MachineSet")
    assert len(await plane.machines()) == 1


async def test_machines_that_are_updated_count_as_replicas_alone() -> None:
    plane = await started(2)
    for machine in await plane.machines():
        await say(plane, machine, Ready="True", Available="True", UpToDate="True")
    first = (await plane.machines())[0]
    marks = {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": "", "runtime.cluster.x-k8s.io/pending-hooks": "UpdateMachine"}
    await plane.client.patch(Machine, first.key, {"metadata": {"annotations": marks}})
    await plane.reconcile("MachineSet")
    status = (await the_set(plane)).status

    assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (2, 1, 1, 1)


async def test_a_machine_that_falls_sick_while_it_is_updated_goes_first() -> None:
    """The number is that of the list of updates in place."""
    plane = await started(3)
    for machine in await plane.machines():
        await say(plane, machine, Ready="True", Available="True", UpToDate="True")
    sick = (await plane.machines())[1]
    marks = {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": "", "runtime.cluster.x-k8s.io/pending-hooks": "UpdateMachine"}
    await plane.client.patch(Machine, sick.key, {"metadata": {"annotations": marks}})
    await say(plane, sick, Ready="True", Available="True", UpToDate="True", HealthCheckSucceeded="False", OwnerRemediated="False")
    await plane.client.patch(MachineSet, KEY, {"spec": {"replicas": 2}})
    await plane.reconcile("MachineSet")

    assert [m.metadata.name for m in await plane.machines() if m.metadata.deletion_timestamp is not None] == [sick.metadata.name]


async def test_machines_of_an_old_revision_are_not_remediated() -> None:
    plane = await deployed(1)
    (old,) = await plane.machine_sets()
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})
    await plane.reconcile("MachineDeployment", times=2)
    (sick,) = await plane.machines()
    await say(plane, sick, Ready="True", Available="True", UpToDate="True", HealthCheckSucceeded="False", OwnerRemediated="False")
    await plane.reconcile("MachineSet", old.key)
    after = await plane.client.get(Machine, sick.key)
    told = get(after.status.conditions, "OwnerRemediated")

    assert told is not None
    assert (told.status, told.reason) == ("False", "CannotBeRemediated")
    assert after.metadata.deletion_timestamp is None


@pytest.mark.parametrize("target", ["nowhere", "w"], ids=["missing", "does not agree"])
async def test_machines_are_not_moved_to_a_set_that_does_not_accept_them(target: str) -> None:
    plane = await started(2)
    for machine in await plane.machines():
        await say(plane, machine, Ready="True", Available="True", UpToDate="True")
    move = {"in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset": target}
    await plane.client.patch(MachineSet, KEY, {"metadata": {"annotations": move}, "spec": {"replicas": 1}})

    assert target in await plane.reconcile("MachineSet")
    assert [m.metadata.deletion_timestamp for m in await plane.machines()] == [None, None]


@pytest.mark.parametrize("gate", [True, False])
async def test_a_machine_that_cannot_be_moved_does_not_stop_the_others(gate: bool) -> None:
    plane = await started(3, {"features": {"InPlaceUpdates": gate}})
    old = await the_set(plane)
    labels = {**old.metadata.labels, "machine-template-hash": "new"}
    receives = {"in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets": KEY.name}
    metadata = {"name": "new", "namespace": KEY.namespace, "labels": labels, "annotations": receives}
    spec = samples.workers("c", "w", kind="MachineSet", replicas=0)[-1]["spec"]
    await plane.client.create({"apiVersion": old.api_version, "kind": "MachineSet", "metadata": metadata, "spec": spec})
    for machine in await plane.machines():
        await say(plane, machine, Ready="True", Available="True", UpToDate="True")
    move = {"in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset": "new"}
    await plane.client.patch(MachineSet, KEY, {"metadata": {"annotations": move}, "spec": {"replicas": 0}})
    broken = (await plane.machines())[0]
    infra = await get_external(plane.client, broken.spec.infrastructure_ref, KEY.namespace)
    await plane.client.delete(infra.object.gvk, infra.object.key)
    error = await plane.reconcile("MachineSet")
    left = [m.metadata.name for m in await plane.machines() if m.metadata.owner_references[0].name == KEY.name]

    assert broken.metadata.name in error
    assert len(left) == (0 if gate else 3)


async def test_a_machine_that_no_longer_matches_the_selector_is_released_and_replaced() -> None:
    plane = await started(2)
    released = (await plane.machines())[0]
    selector = (await the_set(plane)).spec.selector.match_labels
    label = next(k for k in selector if k != "cluster.x-k8s.io/cluster-name")
    await plane.client.patch(Machine, released.key, {"metadata": {"labels": {label: "looked-at"}}})
    await plane.reconcile("MachineSet", times=2)

    assert len(await plane.machines()) == 3
    assert (await the_set(plane)).status.replicas == 2


async def test_new_machines_have_no_up_to_date_condition_yet() -> None:
    plane = await started(1)
    assert (await condition(plane, MachineSet, "MachinesUpToDate"))[:2] == ("True", "NoReplicas")

    await say(plane, (await plane.machines())[0], Ready="True", UpToDate="False")
    await plane.reconcile("MachineSet")
    assert (await condition(plane, MachineSet, "MachinesUpToDate"))[:2] == ("False", "NotUpToDate")


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "Machine m0 is in"), (3, "Machines m0, m1, m2 are in"), (5, "Machines m0, m1, m2, ... (2 more) are in")],
)
async def test_machines_that_take_long_to_go_are_named(count: int, text: str) -> None:
    made = objects("MachineSet", 0)
    owner = made[-1]
    reference = {"apiVersion": owner["apiVersion"], "kind": "MachineSet", "name": "w", "uid": owner["metadata"]["uid"], "controller": True}
    metadata = {
        "namespace": "default",
        "labels": owner["spec"]["selector"]["matchLabels"],
        "ownerReferences": [reference],
        "finalizers": ["machine.cluster.x-k8s.io"],
        "creationTimestamp": SINCE,
        "deletionTimestamp": "2026-05-01T11:30:00Z",
    }
    spec = {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {}}
    going = [
        {"apiVersion": owner["apiVersion"], "kind": "Machine", "metadata": {**metadata, "name": f"m{n}", "uid": f"u-{n}"}, "spec": spec}
        for n in range(count)
    ]
    plane = Plane([*made, *going])
    await plane.reconcile("MachineSet", times=3)

    assert f"* {text} deletion since more than 15m" in (await condition(plane, MachineSet, "ScalingDown"))[2]


async def test_a_deleted_set_removes_its_machines_and_then_itself() -> None:
    plane = await started(2)
    alien = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "alien", "namespace": "default"}}
    await plane.client.create({**alien, "spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {}}})
    await plane.client.delete(MachineSet, KEY)
    await plane.reconcile("MachineSet", times=2)
    assert [m.metadata.name for m in await plane.machines() if m.metadata.deletion_timestamp is None] == ["alien"]
    assert await plane.client.find(MachineSet, KEY) is not None, "its Machines are not gone yet"

    await gone(plane)
    await plane.reconcile("MachineSet")
    assert await plane.client.find(MachineSet, KEY) is None
    assert await plane.reconcile("MachineSet") == "", "one that is gone is nobody's business"


# --------------------------------------------------------------------------------------------------- MachineDeployment


async def test_changes_during_a_rollout_end_in_the_state_of_the_last_one() -> None:
    plane = await deployed(2)
    for change in (
        {"template": {"spec": {"version": "v1.34.2"}}},
        {"replicas": 4},
        {"template": {"spec": {"version": "v1.34.3"}}},
        {"replicas": 3},
    ):
        await plane.client.patch(MachineDeployment, KEY, {"spec": change})
        await plane.reconcile("MachineDeployment")
        for machine_set in await plane.machine_sets():
            await plane.reconcile("MachineSet", machine_set.key)
    for _ in range(10):
        await plane.reconcile("MachineDeployment")
        await settle(plane)

    assert [m.spec.version for m in await plane.machines()] == ["v1.34.3"] * 3
    assert max(s.spec.replicas or 0 for s in await plane.machine_sets()) == 3


async def test_a_set_that_has_lost_its_hash_is_an_error() -> None:
    plane = await deployed(1)
    (own,) = await plane.machine_sets()
    await plane.client.patch(MachineSet, own.key, {"metadata": {"labels": {"machine-template-hash": None}}})

    assert own.metadata.name in await plane.reconcile("MachineDeployment")


async def test_on_delete_old_sets_make_no_machines_until_the_strategy_changes() -> None:
    plane = await deployed(rollout={"strategy": {"type": "OnDelete"}})
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})
    await plane.reconcile("MachineDeployment")

    async def blocked() -> set[bool]:
        sets = [s for s in await plane.machine_sets() if s.spec.template.spec.version != "v1.34.2"]
        return {s.metadata.annotations.get("cluster.x-k8s.io/disable-machine-create") == "true" for s in sets}

    assert await blocked() == {True}
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"rollout": {"strategy": {"type": "RollingUpdate"}}}})
    await plane.reconcile("MachineDeployment", times=2)
    assert await blocked() == {False}


async def test_a_set_belongs_to_its_controller() -> None:
    plane = await deployed(1)
    (own,) = await plane.machine_sets()

    def copy(name: str, **metadata: Any) -> Json:
        kept: Json = {"name": name, "namespace": "default", "labels": dict(own.metadata.labels), **metadata}
        template = {"metadata": {"labels": dict(own.spec.template.metadata.labels)}, "spec": {"clusterName": "c", "version": "v1.1.1"}}
        spec = {"clusterName": "c", "replicas": 0, "selector": {"matchLabels": dict(own.metadata.labels)}, "template": template}
        return {"apiVersion": own.api_version, "kind": "MachineSet", "metadata": kept, "spec": spec}

    foreign = {"apiVersion": "example.com/v1", "kind": "Other", "name": "o", "uid": "u", "controller": True}
    await plane.client.create(copy("orphan"))
    await plane.client.create(copy("foreign", ownerReferences=[foreign]))
    await plane.reconcile("MachineDeployment")
    owners = {s.metadata.name: [o.kind for o in s.metadata.owner_references if o.controller] for s in await plane.machine_sets()}

    assert owners["foreign"] == ["Other"]
    assert owners.get("orphan", ["MachineDeployment"]) == ["MachineDeployment"], "adopted, and gone if it is old and empty"


async def test_before_any_set_has_reported_nothing_is_counted() -> None:
    plane = Plane(objects("MachineDeployment", 2))
    await plane.reconcile("MachineDeployment", times=3)
    status = (await plane.client.get(MachineDeployment, KEY)).status

    assert (status.replicas or None, status.available_replicas) == (None, None)
    assert (await condition(plane, MachineDeployment, "Available"))[:2] == ("Unknown", "WaitingForAvailableReplicasSet")


@pytest.mark.parametrize(("unavailable", "available"), [(1, "True"), (0, "False")])
async def test_a_deployment_within_its_budget_is_available(unavailable: int, available: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 1}}
    plane = await deployed(2, rollout={"strategy": strategy})
    await say(plane, (await plane.machines())[0], Ready="False", Available="False", UpToDate="True")
    await plane.reconcile("MachineSet", (await plane.machine_sets())[0].key)
    await plane.reconcile("MachineDeployment")

    assert (await condition(plane, MachineDeployment, "Available"))[0] == available


async def test_old_empty_sets_go_when_the_rollout_is_over() -> None:
    plane = await deployed(1)
    first = (await plane.machine_sets())[0].metadata.name
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.34.2"}}}})
    seen = []
    for _ in range(6):
        await plane.reconcile("MachineDeployment")
        seen.append(first in {s.metadata.name for s in await plane.machine_sets()})
        await settle(plane)

    assert seen[0], "while Machines are replaced it stays"
    assert not seen[-1]


async def test_a_revision_is_written_after_all_its_sets() -> None:
    plane = await deployed(2)
    (old,) = await plane.machine_sets()
    other = Plane([], {"unwritable": [{"verb": "patch", "kind": "MachineSet", "name": old.metadata.name}]})
    faults, plane.client._faults = plane.client._faults, other.client._faults  # type: ignore[attr-defined]
    change = {"spec": {"replicas": 3, "template": {"spec": {"version": "v1.34.2"}}}}
    await plane.client.patch(MachineDeployment, KEY, change)
    revisions = []
    for _ in range(2):
        error = await plane.reconcile("MachineDeployment")
        told = (await plane.client.get(MachineDeployment, KEY)).metadata.annotations
        revisions.append((bool(error), told["machinedeployment.clusters.x-k8s.io/revision"]))
        plane.client._faults = faults  # type: ignore[attr-defined]

    assert revisions == [(True, "1"), (False, "2")]


async def test_if_no_new_set_can_be_created_no_old_one_is_deleted() -> None:
    plane = await deployed(0)
    (current,) = await plane.machine_sets()
    spent = dict((await plane.client.get(SCHEME.gvk(MachineSet), current.key)).json)
    spent["metadata"] = {k: v for k, v in spent["metadata"].items() if k in ("namespace", "labels", "ownerReferences")} | {"name": "spent"}
    spent["spec"]["template"]["spec"]["version"] = "v1.33.0"
    await plane.client.create(spent)
    await plane.client.patch(MachineSet, ObjectKey(KEY.namespace, "spent"), {"status": {"observedGeneration": 1}}, subresource="status")
    template = await get_external(plane.client, current.spec.template.spec.infrastructure_ref, KEY.namespace)
    for gvk, key in ((SCHEME.gvk(MachineSet), current.key), (template.object.gvk, template.object.key)):
        await plane.client.patch(gvk, key, {"metadata": {"finalizers": None}})
        await plane.client.delete(gvk, key)

    assert "failed to create a new MachineSet" in await plane.reconcile("MachineDeployment")
    assert [(s.metadata.name, s.metadata.deletion_timestamp) for s in await plane.machine_sets()] == [("spent", None)]


async def test_a_paused_cluster_is_left_alone() -> None:
    plane = await deployed(1)
    await plane.client.patch(Cluster, ObjectKey("default", "c"), {"spec": {"paused": True}})
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"replicas": 5}})
    await plane.reconcile("MachineDeployment", times=2)

    assert [s.spec.replicas for s in await plane.machine_sets()] == [1]
