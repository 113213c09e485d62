"""Passes of both controllers on the embedded API server: what single recorded passes cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import GroupVersionKind
from clusterwright.conditions import get
from clusterwright.simulation import samples
from support.worker_passes import KEY, NOW, Plane, objects


class Behind:
    """A client whose cache never shows what was created since."""

    def __init__(self, inner: Any, *kinds: type) -> None:
        self._inner = inner
        self._kinds = kinds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def list(self, kind: Any, **options: Any) -> Sequence[Any]:
        return () if kind in self._kinds else await self._inner.list(kind, **options)


# --------------------------------------------------------------------------------------------------- MachineSets


async def test_machines_are_created_once_and_then_nothing_is_written() -> None:
    plane = Plane(objects("MachineSet", 3))

    await plane.reconcile("MachineSet", times=4)
    before = plane.writes()
    await plane.reconcile("MachineSet", times=3)

    assert len(await plane.machines()) == 3
    assert plane.writes() == before


async def test_a_restarted_process_writes_nothing() -> None:
    plane = Plane(objects("MachineSet", 3))
    await plane.reconcile("MachineSet", times=4)
    before = plane.writes()

    await plane.world.reports.complete(plane.reconciler("MachineSet"), KEY)

    assert plane.writes() == before


async def test_no_machine_is_created_for_one_that_only_the_cache_lacks() -> None:
    plane = Plane(objects("MachineSet", 3))
    await plane.reconcile("MachineSet", times=3)
    behind = plane.reconciler("MachineSet", Behind(plane.client, Machine))

    for _ in range(5):
        await plane.world.reports.complete(behind, KEY)

    assert len(await plane.machines()) == 3
    told = get((await plane.client.get(MachineSet, KEY)).status.conditions, "ScalingUp")
    assert told is not None
    assert told.message == "Scaling up from 0 to 3 replicas is blocked because:\n* 3 Machines exist already, 3 of them are not seen yet"


async def test_only_really_missing_machines_are_created() -> None:
    plane = Plane(objects("MachineSet", 2))
    await plane.reconcile("MachineSet", times=3)
    await plane.client.patch(MachineSet, KEY, {"spec": {"replicas": 3}})

    await plane.world.reports.complete(plane.reconciler("MachineSet", Behind(plane.client, Machine)), KEY)

    assert len(await plane.machines()) == 3


async def test_no_machine_is_created_beyond_the_deployments_surge() -> None:
    plane = Plane(objects("MachineDeployment", 3))
    await plane.reconcile("MachineDeployment", times=3)
    first = (await plane.machine_sets())[0].key
    await plane.reconcile("MachineSet", first, times=3)
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.99.0"}}}})
    await plane.reconcile("MachineDeployment")
    second = next(s.key for s in await plane.machine_sets() if s.key != first)
    await plane.client.patch(MachineSet, second, {"spec": {"replicas": 9}})  # as if somebody had miscounted

    await plane.reconcile("MachineSet", second, times=3)

    assert len(await plane.machines()) == 4
    told = get((await plane.client.get(MachineSet, second)).status.conditions, "ScalingUp")
    assert told is not None
    assert "the MachineDeployment has at least 4 Machines already, as many as it may" in told.message


async def test_13341_versions_go_up_from_machines_to_their_deployment() -> None:
    plane = Plane(objects("MachineDeployment", 2))
    await plane.reconcile("MachineDeployment", times=3)
    await plane.reconcile("MachineSet", (await plane.machine_sets())[0].key, times=4)
    one, _ = await plane.machines()
    info = {"nodeInfo": {"kubeletVersion": "v1.1.0"}}
    await plane.client.patch(Machine, one.key, {"status": info}, subresource="status")
    await plane.reconcile("MachineSet", (await plane.machine_sets())[0].key)
    await plane.reconcile("MachineDeployment")

    told = [o.status.versions for o in await plane.machine_sets()] + [(await plane.client.get(MachineDeployment, KEY)).status.versions]
    assert [[(v.version, v.replicas) for v in versions] for versions in told] == [[("v1.1.0", 1), (one.spec.version, 1)]] * 2


@pytest.mark.parametrize("kind", ["KubeadmConfig", "DevMachine", "Machine"])
async def test_clones_for_a_refused_machine_are_deleted(kind: str) -> None:
    refused = {"unwritable": [{"verb": verb, "kind": kind} for verb in ("create", "patch")]}
    plane = Plane(objects("MachineSet", 2), refused)

    error = await plane.reconcile("MachineSet", times=3)

    assert error
    assert await plane.machines() == []
    assert list(await plane.client.list(DevMachine)) == []


@pytest.mark.parametrize("gone", ["DevMachineTemplate", "KubeadmConfigTemplate"])
async def test_nothing_is_created_if_a_template_is_missing(gone: str) -> None:
    """What is made and taken away again wakes its MachineSet: it would be busy for ever."""
    plane = Plane([o for o in objects("MachineSet", 2) if o["kind"] != gone])

    error = await plane.reconcile("MachineSet", times=3)

    assert gone in error
    touched = {gvk.kind for _, gvk, _ in plane.world.journal.touched}
    assert not touched & {"KubeadmConfig", "DevMachine", "Machine"}


async def test_labels_that_leave_the_template_leave_machines_and_what_belongs_to_them_but_those_of_others_stay() -> None:
    plane = Plane(objects("MachineSet", 1))
    label = {"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}
    await plane.client.patch(MachineSet, KEY, label)
    await plane.reconcile("MachineSet", times=4)
    machine = (await plane.machines())[0]
    assert machine.metadata.labels["team"] == "a"
    for kind in (Machine, DevMachine):
        await plane.client.patch(kind, machine.key, {"metadata": {"labels": {"mine": "1"}}})

    label["spec"]["template"]["metadata"]["labels"]["team"] = None  # type: ignore[assignment]
    await plane.client.patch(MachineSet, KEY, label)
    await plane.reconcile("MachineSet", times=2)

    for kind in (Machine, DevMachine):
        labels = (await plane.client.get(kind, machine.key)).metadata.labels
        assert "team" not in labels
        assert labels["mine"] == "1"


async def test_a_machine_that_is_deleted_gets_timeouts_but_no_labels() -> None:
    plane = Plane(objects("MachineSet", 1))
    await plane.reconcile("MachineSet", times=3)
    machine = (await plane.machines())[0]
    await plane.client.delete(Machine, machine.key)
    change = {"metadata": {"labels": {"team": "a"}}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 7}}}
    await plane.client.patch(MachineSet, KEY, {"spec": {"template": change}})

    await plane.reconcile("MachineSet")

    after = await plane.client.get(Machine, machine.key)
    assert after.spec.deletion is not None
    assert (after.spec.deletion.node_drain_timeout_seconds, after.spec.deletion.node_deletion_timeout_seconds) == (7, 10)
    assert "team" not in after.metadata.labels


async def test_an_orphan_that_matches_is_adopted_before_one_is_created() -> None:
    plane = Plane(objects("MachineSet", 2))
    await plane.reconcile("MachineSet", times=3)
    orphan = (await plane.machines())[0]
    await plane.client.patch(Machine, orphan.key, {"metadata": {"ownerReferences": None}})

    await plane.reconcile("MachineSet")

    assert len(await plane.machines()) == 2
    assert [r.name for r in (await plane.client.get(Machine, orphan.key)).metadata.owner_references] == ["w"]


async def test_a_replacement_does_not_get_the_name_of_its_predecessor() -> None:
    plane = Plane(objects("MachineSet", 1))
    await plane.reconcile("MachineSet", times=4)
    gone = (await plane.machines())[0]
    await plane.client.patch(Machine, gone.key, {"metadata": {"finalizers": None}})
    await plane.client.delete(Machine, gone.key)

    await plane.reconcile("MachineSet", times=2)

    assert len(await plane.machines()) == 1
    assert (await plane.machines())[0].metadata.name != gone.metadata.name


async def test_leftovers_of_an_interrupted_creation_are_deleted() -> None:
    plane = Plane(objects("MachineSet", 1))
    await plane.reconcile("MachineSet", times=3)
    labels = {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/set-name": "w"}
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "w", "uid": "uid-3"}
    stray = {"name": "w-stray", "namespace": "default", "labels": labels, "ownerReferences": [owner]}
    await plane.client.create(
        {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine", "metadata": stray, "spec": {}}
    )
    await plane.client.patch(MachineSet, KEY, {"spec": {"replicas": 2}})

    await plane.reconcile("MachineSet")

    names = {m.metadata.name for m in await plane.client.list(DevMachine)}
    assert names == {m.metadata.name for m in await plane.machines()}


# -------------------------------------------------------------------------------------------- MachineDeployments


async def test_a_machine_set_is_made_once_and_then_nothing_is_written() -> None:
    plane = Plane(objects("MachineDeployment"))

    await plane.reconcile("MachineDeployment", times=4)
    before = plane.writes()
    await plane.reconcile("MachineDeployment", times=2)
    await plane.world.reports.complete(plane.reconciler("MachineDeployment"), KEY)

    assert len(await plane.machine_sets()) == 1
    assert plane.writes() == before


async def test_no_machine_set_is_created_for_one_that_only_the_cache_lacks() -> None:
    plane = Plane(objects("MachineDeployment"))
    await plane.reconcile("MachineDeployment", times=3)
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": "v1.99.0"}}}})
    behind = plane.reconciler("MachineDeployment", Behind(plane.client, MachineSet))

    for _ in range(3):
        await plane.world.reports.complete(behind, KEY)

    assert len(await plane.machine_sets()) == 1
    told = get((await plane.client.get(MachineDeployment, KEY)).status.conditions, "ScalingUp")
    assert told is not None
    assert told.message == "Scaling up from 0 to 2 replicas is blocked because 1 MachineSets exist that are not seen yet"


async def test_a_template_that_is_taken_back_finds_its_machine_set_again() -> None:
    plane = Plane(objects("MachineDeployment"))
    await plane.reconcile("MachineDeployment", times=3)
    first = (await plane.machine_sets())[0]
    for version in ("v1.99.0", samples.VERSION):
        await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": version}}}})
        await plane.reconcile("MachineDeployment")

    again = await plane.client.get(MachineSet, first.key)

    assert len(await plane.machine_sets()) == 2
    assert again.metadata.annotations["machinedeployment.clusters.x-k8s.io/revision"] == "3"
    assert again.metadata.annotations["machinedeployment.clusters.x-k8s.io/revision-history"] == "1"
    deployment = await plane.client.get(MachineDeployment, KEY)
    assert deployment.metadata.annotations["machinedeployment.clusters.x-k8s.io/revision"] == "3"


async def test_rollout_after_makes_one_more_machine_set_and_not_another() -> None:
    plane = Plane(objects("MachineDeployment"))
    await plane.reconcile("MachineDeployment", times=3)
    first = (await plane.machine_sets())[0]
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"rollout": {"after": "2026-05-01T12:00:00Z"}}})
    # the clock of this world stands: what is made now was made in that very second, what is there was not
    raw = (await plane.client.get(MachineSet, first.key)).metadata.creation_timestamp

    await plane.reconcile("MachineDeployment", times=3)

    assert raw == NOW
    assert len(await plane.machine_sets()) == 1


async def test_labels_and_timeouts_reach_every_machine_set_without_a_new_one() -> None:
    plane = Plane(objects("MachineDeployment"))
    await plane.reconcile("MachineDeployment", times=3)
    change = {"metadata": {"labels": {"team": "a"}}, "spec": {"minReadySeconds": 9, "deletion": {"nodeDrainTimeoutSeconds": 7}}}
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": change}})

    await plane.reconcile("MachineDeployment")

    only = (await plane.machine_sets())[0]
    assert len(await plane.machine_sets()) == 1
    assert only.spec.template.spec.min_ready_seconds == 9
    assert only.metadata.labels["team"] == "a"
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"metadata": {"labels": {"team": None}}}}})
    await plane.reconcile("MachineDeployment")
    assert "team" not in (await plane.machine_sets())[0].metadata.labels


async def test_a_deployment_that_goes_takes_only_its_own_machine_sets_along() -> None:
    plane = Plane(objects("MachineDeployment"))
    await plane.reconcile("MachineDeployment", times=3)
    other = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {"name": "other", "namespace": "default", "finalizers": ["x/y"]},
        "spec": {"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {}}},
    }
    await plane.client.create(other)
    await plane.client.delete(MachineDeployment, KEY)

    await plane.reconcile("MachineDeployment")

    going = {s.metadata.name: s.metadata.deletion_timestamp is not None for s in await plane.machine_sets()}
    assert going.pop("other") is False
    assert all(going.values())
    assert await plane.client.find(MachineDeployment, KEY) is not None


async def test_a_removed_template_does_not_block_a_rollout() -> None:
    gates = {"features": {"InPlaceUpdates": True, "RuntimeSDK": True}}
    plane = Plane(objects("MachineDeployment"), gates)
    await plane.reconcile("MachineDeployment", times=3)
    first = (await plane.machine_sets())[0].key
    await plane.reconcile("MachineSet", first, times=3)
    renamed = {**objects("MachineDeployment")[2], "metadata": {"name": "w2", "namespace": "default"}}
    await plane.client.create(renamed)
    await plane.client.delete(GroupVersionKind.of(renamed["apiVersion"], renamed["kind"]), KEY)
    change = {"spec": {"template": {"spec": {"infrastructureRef": {"name": "w2"}}}}}
    await plane.client.patch(MachineDeployment, KEY, change)

    once = await plane.reconcile("MachineDeployment")
    then = await plane.reconcile("MachineDeployment")

    assert "can be updated in-place" in once  # it may only be late
    assert then == ""
    assert len(await plane.machine_sets()) == 2


async def test_a_failed_in_place_update_is_reported_by_the_deployment() -> None:
    plane = Plane(objects("MachineDeployment", 1))
    await plane.reconcile("MachineDeployment", times=3)
    await plane.reconcile("MachineSet", (await plane.machine_sets())[0].key, times=3)
    machine = (await plane.machines())[0]
    said = [
        {"type": "UpToDate", "status": "False", "reason": "Updating", "message": "* In-place update in progress"},
        {"type": "Updating", "status": "True", "reason": "InPlaceUpdateFailed", "message": "no"},
    ]
    conditions = [{**c, "lastTransitionTime": "2026-05-01T11:00:00Z"} for c in said]
    await plane.client.patch(Machine, machine.key, {"status": {"conditions": conditions}}, subresource="status")

    await plane.reconcile("MachineDeployment")

    told = get((await plane.client.get(MachineDeployment, KEY)).status.conditions, "RollingOut")
    assert told is not None
    assert told.message.split("\n") == [
        "Rolling out 1 not up-to-date replicas",
        "* In-place update in progress",
        f"* In-place update of Machine {machine.metadata.name} failed",
    ]


async def test_while_machines_cannot_be_listed_none_is_made_and_no_finalizer_goes() -> None:
    plane = Plane(objects("MachineSet", 2), {"unlistable": ["Machine"]})

    error = await plane.reconcile("MachineSet", times=3)
    await plane.client.delete(MachineSet, KEY)
    await plane.reconcile("MachineSet")

    assert "failed to list Machines" in error
    assert list(await plane.client.list(DevMachine)) == []
    assert (await plane.client.get(MachineSet, KEY)).metadata.finalizers != ()
