"""Updates in place at their edges, pass by pass.

27 to 30 stand with KubeadmControlPlanes (29 also with MachineSets), 31 and 32 with the Machine's own tests; 33 to 37 also happen, in
time, in `tests/scenarios/test_in_place_in_virtual_time.py`.
"""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import SCHEME
from support.extension import extension_config
from support.worker_passes import KEY, NOW, Json, Plane, objects

DOMAIN = "in-place-updates.internal.cluster.x-k8s.io/"
MOVE, RECEIVE, ACKNOWLEDGED = (
    DOMAIN + n for n in ("move-machines-to-machineset", "receive-machines-from-machinesets", "acknowledged-move")
)
UPDATING, AWAITING = DOMAIN + "update-in-progress", DOMAIN + "pending-acknowledge-move"
OLD, NEW = "v1.34.0", "v1.34.1"


def patch(operations: Any, kind: str = "JSONPatch") -> Json:
    return {"patchType": kind, "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


VERSION = patch([{"op": "replace", "path": "/spec/template/spec/version", "value": NEW}])


class Rollout:
    """A MachineDeployment whose Machines run, and whose version was changed; the extension answers so."""

    def __init__(self, *answers: Json, replicas: int = 2) -> None:
        handlers = {f"can-{n}": "CanUpdateMachineSet" for n in range(len(answers))}
        canned = {f"can-{n}": answer for n, answer in enumerate(answers)}
        config = extension_config("ext", "https://ext.example.com/", "", handlers)
        features = {"InPlaceUpdates": True, "RuntimeSDK": True}
        made = objects("MachineDeployment", replicas, version=OLD)
        self.plane = Plane([*made, config], {"features": features, "runtimeExtensions": canned})

    async def begin(self, **change: Any) -> Rollout:
        """Let Machines come up, then change what is wanted."""
        plane = self.plane
        await plane.reconcile("MachineDeployment", times=3)
        await plane.reconcile("MachineSet", (await plane.machine_sets())[0].key, times=3)
        for machine in await plane.machines():
            await self.ready(machine)
        await plane.reconcile("MachineSet", (await plane.machine_sets())[0].key)
        await plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": NEW, **change}}}})
        return self

    async def ready(self, machine: Machine, **annotations: str | None) -> None:
        conditions = [
            {"type": t, "status": "True", "reason": t, "message": "", "lastTransitionTime": "2026-05-01T11:00:00Z"}
            for t in ("Ready", "Available", "UpToDate")
        ]
        status = {"nodeRef": {"name": machine.metadata.name}, "conditions": conditions}
        await self.plane.client.patch(Machine, machine.key, {"status": status}, subresource="status")
        if annotations:
            await self.plane.client.patch(Machine, machine.key, {"metadata": {"annotations": annotations}})

    async def sets(self) -> tuple[MachineSet, MachineSet | None]:
        """The old one and the new one."""
        found = {s.spec.template.spec.version: s for s in await self.plane.machine_sets()}
        return found[OLD], found.get(NEW)

    async def marked(self) -> bool:
        """Whether the old MachineSet is to give its Machines away."""
        old, new = await self.sets()
        assert (MOVE in old.metadata.annotations) == (new is not None and RECEIVE in new.metadata.annotations)
        return MOVE in old.metadata.annotations


async def test_an_extension_that_changes_what_differs_lets_machines_move() -> None:
    rollout = await Rollout({"response": {"status": "Success", "machineSetPatch": VERSION}}).begin()
    assert await rollout.plane.reconcile("MachineDeployment") == ""
    old, new = await rollout.sets()
    assert new is not None
    assert old.metadata.annotations[MOVE] == new.metadata.name
    assert new.metadata.annotations[RECEIVE] == old.metadata.name


@pytest.mark.parametrize("may_go", [False, True], ids=["nothing may go yet", "something may go"])
async def test_the_largest_set_is_considered_first_until_machines_may_go_then_the_oldest(may_go: bool) -> None:
    rollout = await Rollout({"response": {"status": "Success"}}).begin()
    plane, (small, _) = rollout.plane, await rollout.sets()
    big = dict((await plane.client.get(SCHEME.gvk(MachineSet), small.key)).json)
    kept = {k: v for k, v in big["metadata"].items() if k in ("namespace", "labels", "ownerReferences")}
    big["metadata"], big["spec"]["replicas"] = kept | {"name": "z-big"}, 5  # as old, and later by name
    big["spec"]["template"]["spec"]["version"] = "v1.33.0"
    await plane.client.create(big)
    counts = {"replicas": 5, "readyReplicas": 5, "availableReplicas": 5}
    await plane.client.patch(MachineSet, ObjectKey(KEY.namespace, "z-big"), {"status": counts}, subresource="status")
    await plane.client.patch(MachineDeployment, KEY, {"spec": {"replicas": 6 if may_go else 9}})
    await plane.reconcile("MachineDeployment")
    asked = [call["body"]["current"]["machineSet"]["metadata"]["name"] for call in plane.world.canned.calls]

    assert asked == ([small.metadata.name, "z-big"] if may_go else ["z-big", small.metadata.name])


async def test_an_extension_without_patches_leaves_the_machines_to_be_replaced() -> None:
    rollout = await Rollout({"response": {"status": "Success"}}).begin()

    assert await rollout.plane.reconcile("MachineDeployment") == ""
    assert not await rollout.marked()


@pytest.mark.parametrize(
    ("operations", "moves"),
    [
        ([{"op": "add", "path": "/metadata/labels/x", "value": "y"}, {"op": "add", "path": "/status", "value": {"x": 1}}], False),
        ([{"op": "add", "path": "/metadata/labels/x", "value": "y"}, json.loads(base64.b64decode(VERSION["patch"]))[0]], True),
        ([{"op": "replace", "path": "/spec/replicas", "value": 9}], False),
    ],
)
async def test_only_the_spec_of_the_machines_is_taken_from_a_patch(operations: list[Json], moves: bool) -> None:
    rollout = await Rollout({"response": {"status": "Success", "machineSetPatch": patch(operations)}}).begin()

    assert await rollout.plane.reconcile("MachineDeployment") == ""
    assert await rollout.marked() is moves


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (patch([{"op": "test", "path": "/spec/template/spec/version", "value": "another"}]), "error applying json patch (RFC6902)"),
        (patch([{"op": "replace", "path": "/spec/nothing/here", "value": 1}]), "error applying json patch (RFC6902)"),
        ({"patchType": "JSONPatch", "patch": base64.b64encode(b"{").decode()}, "error decoding json patch (RFC6902)"),
        ({"patchType": "StrategicMerge", "patch": "e30="}, "unknown patchType StrategicMerge"),
        ({"patch": "e30="}, "patchType is not set"),
    ],
)
async def test_a_patch_that_cannot_be_applied_fails_the_pass_and_nothing_is_scaled(answer: Json, text: str) -> None:
    rollout = await Rollout({"response": {"status": "Success", "machineSetPatch": answer}}).begin()
    before = {s.metadata.name: s.spec.replicas for s in await rollout.plane.machine_sets()}
    error = await rollout.plane.reconcile("MachineDeployment")

    assert "can be updated in-place" in error
    assert text in error
    assert {s.metadata.name: s.spec.replicas for s in await rollout.plane.machine_sets()} == before


async def test_two_handlers_stop_the_rollout() -> None:
    answer = {"response": {"status": "Success", "machineSetPatch": VERSION}}
    rollout = await Rollout(answer, answer).begin()
    error = await rollout.plane.reconcile("MachineDeployment")

    assert "found multiple CanUpdateMachineSet hooks (can-0.ext,can-1.ext): only one hook is supported" in error
    assert len(await rollout.plane.machine_sets()) == 1


async def _moved(replicas: int = 2) -> tuple[Rollout, Machine]:
    """One Machine was moved and waits to be counted."""
    rollout = await Rollout({"response": {"status": "Success", "machineSetPatch": VERSION}}, replicas=replicas).begin()
    plane = rollout.plane
    await plane.reconcile("MachineDeployment")
    old, new = await rollout.sets()
    assert new is not None
    await plane.reconcile("MachineSet", new.key, times=3)
    for machine in await plane.machines():
        await rollout.ready(machine)
    await plane.reconcile("MachineSet", new.key)
    await plane.reconcile("MachineDeployment")
    await plane.reconcile("MachineSet", old.key)
    (moved,) = [m for m in await plane.machines() if AWAITING in m.metadata.annotations]
    return rollout, moved


async def test_a_reverted_change_ends_the_move_and_the_update_continues() -> None:
    rollout, moved = await _moved()
    _, new = await rollout.sets()
    assert new is not None
    await rollout.plane.client.patch(MachineDeployment, KEY, {"spec": {"template": {"spec": {"version": OLD}}}})
    await rollout.plane.reconcile("MachineDeployment")
    assert not await rollout.marked()
    await rollout.plane.reconcile("MachineSet", new.key)
    machine = await rollout.plane.client.get(Machine, moved.key)
    assert AWAITING not in machine.metadata.annotations, "nobody waits for an acknowledgement that will not come"


async def test_a_machine_marked_for_deletion_is_moved_too() -> None:
    rollout = await Rollout({"response": {"status": "Success", "machineSetPatch": VERSION}}).begin()
    plane = rollout.plane
    asked = max(await plane.machines(), key=lambda m: m.metadata.name)
    await plane.client.patch(Machine, asked.key, {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}})
    await plane.reconcile("MachineDeployment")
    old, new = await rollout.sets()
    assert new is not None
    await plane.client.patch(MachineSet, old.key, {"spec": {"replicas": 1}})
    await plane.reconcile("MachineSet", old.key)
    machine = await plane.client.get(Machine, asked.key)
    assert [o.name for o in machine.metadata.owner_references if o.controller] == [new.metadata.name]
    assert UPDATING in machine.metadata.annotations


async def test_growth_beyond_the_surge_goes_through() -> None:
    rollout = await Rollout({"response": {"status": "Success", "machineSetPatch": VERSION}}).begin()
    await rollout.plane.client.patch(MachineDeployment, KEY, {"spec": {"replicas": 5}})
    await rollout.plane.reconcile("MachineDeployment")
    _, new = await rollout.sets()
    assert new is not None
    assert new.spec.replicas == 3, "three more are wanted; the surge of one is not needed where Machines are moved"


async def test_an_unacknowledged_machine_does_not_count_as_surplus() -> None:
    rollout, moved = await _moved()
    _, new = await rollout.sets()
    assert new is not None
    assert new.spec.replicas == 1
    await rollout.plane.reconcile("MachineSet", new.key, times=2)
    machine = await rollout.plane.client.get(Machine, moved.key)
    assert machine.metadata.deletion_timestamp is None
    assert AWAITING in machine.metadata.annotations
    host = await rollout.plane.client.get(DevMachine, ObjectKey("default", moved.spec.infrastructure_ref.name))
    assert UPDATING not in host.metadata.annotations, "its update has not begun"

    await rollout.plane.reconcile("MachineDeployment")
    _, new = await rollout.sets()
    assert new is not None
    assert (new.spec.replicas, new.metadata.annotations[ACKNOWLEDGED]) == (2, moved.metadata.name)
    await rollout.plane.reconcile("MachineSet", new.key)
    machine = await rollout.plane.client.get(Machine, moved.key)
    assert AWAITING not in machine.metadata.annotations
    assert machine.metadata.annotations["runtime.cluster.x-k8s.io/pending-hooks"] == "UpdateMachine"


@pytest.mark.parametrize(("minutes", "replaced"), [(9, False), (11, True)])
async def test_a_machine_does_not_wait_forever_for_an_update_that_never_comes(minutes: int, replaced: bool) -> None:
    """The feature gate was turned off in the middle: it is replaced."""
    plane = Plane(objects("MachineSet", 2))
    await plane.reconcile("MachineSet", times=3)
    waiting, other = sorted(await plane.machines(), key=lambda m: m.metadata.name)
    since = f"{NOW - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
    said = {"type": "Updating", "status": "True", "reason": "InPlaceUpdating", "message": "", "lastTransitionTime": since}
    await plane.client.patch(Machine, waiting.key, {"status": {"conditions": [said]}}, subresource="status")
    marks = {UPDATING: "", "runtime.cluster.x-k8s.io/pending-hooks": "UpdateMachine"}
    await plane.client.patch(Machine, waiting.key, {"metadata": {"annotations": marks}})

    await plane.reconcile("MachineSet")
    left = {m.metadata.name: m.metadata.deletion_timestamp is None for m in await plane.machines()}

    assert left.get(waiting.metadata.name, False) is not replaced
    assert left[other.metadata.name]
