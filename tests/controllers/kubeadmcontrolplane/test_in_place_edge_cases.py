"""Updates in place of control planes, at their edges, pass by pass."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import clusterwright
from controllers.kubeadmcontrolplane import harness as h
from support.extension import extension_config

UPDATING = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
PENDING = "runtime.cluster.x-k8s.io/pending-hooks"
OLD, NEW = "v1.34.0", "v1.34.1"
WHOLE = {UPDATING: "", PENDING: "UpdateMachine"}
UNHEALTHY = [
    h.condition("HealthCheckSucceeded", "False", "UnhealthyNode", since=h.ago(seconds=60)),
    h.condition("OwnerRemediated", "False", "WaitingForRemediation", since=h.ago(seconds=60)),
]


def world(machines: list[h.MachineSpec], replicas: int = 3, **more: Any) -> h.World:
    """A rollout without surge, and an extension that can change the version of Machines."""
    patch = {"patchType": "JSONMergePatch", "patch": base64.b64encode(json.dumps({"spec": {"version": NEW}}).encode()).decode()}
    can = {"response": {"status": "Success", "machinePatch": patch}}
    return h.World(
        machines,
        replicas=replicas,
        version=NEW,
        spec={"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}}},
        features={"InPlaceUpdates": True, "RuntimeSDK": True},
        observation={"runtimeExtensions": {"can": can}},
        extra=[extension_config("ext", "https://ext.example.com/", "", {"can": "CanUpdateMachine"})],
        **more,
    )


def outdated(count: int = 3) -> list[h.MachineSpec]:
    machines = h.machines(count)
    for spec in machines:
        spec.version = OLD
    return machines


def begun(answer: h.Answer) -> list[str]:
    """The Machines whose update the pass has begun, and that wholly: all three objects marked, the new version, the hook pending."""
    written = answer.raw["others"]
    found = [name for name in ("m1", "m2", "m3") if UPDATING in annotations_of(written.get(f"DevMachine/{name}"))]
    for name in found:
        assert UPDATING in annotations_of(written[f"KubeadmConfig/{name}"])
        assert WHOLE.items() <= annotations_of(written[f"Machine/{name}"]).items()
        assert written[f"Machine/{name}"]["spec"]["version"] == NEW
    return found


def annotations_of(obj: h.Json | None) -> h.Json:
    found: h.Json = ((obj or {}).get("metadata") or {}).get("annotations") or {}
    return found


def test_the_oldest_machine_is_updated_as_the_extension_allows() -> None:
    answer = h.run(world(outdated()))

    assert answer.error is None
    assert begun(answer) == ["m1"]
    assert answer.did("delete", "Machine") == []


def test_the_extension_gets_comparable_configs() -> None:
    """Both as the config of a Machine that joins, with the defaults of old, so that only what users changed differs."""
    machines = outdated()
    objects = world(machines).objects()
    plane = next(o for o in objects if o["kind"] == "KubeadmControlPlane")
    plane["spec"]["kubeadmConfigSpec"]["files"] = [{"path": "/etc/motd", "content": "hi"}]
    first = next(o for o in objects if o["kind"] == "KubeadmConfig" and o["metadata"]["name"] == "m1")
    first["spec"]["initConfiguration"] = first["spec"].pop("joinConfiguration")
    del first["spec"]["initConfiguration"]["controlPlane"]

    (call,) = clusterwright.decide(objects, f"KubeadmControlPlane/{h.NAMESPACE}/{h.NAME}")["calls"]
    current, desired = (call["body"][side]["bootstrapConfig"]["spec"] for side in ("current", "desired"))

    for spec in (current, desired):
        assert spec["format"] == "cloud-config"
        assert spec["initConfiguration"] == {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}
        assert spec["joinConfiguration"]["nodeRegistration"]["imagePullPolicy"] == "IfNotPresent"
        assert spec["joinConfiguration"]["controlPlane"] == {}
    assert {k: v for k, v in desired.items() if current.get(k) != v} == {"files": [{"path": "/etc/motd", "content": "hi"}]}
    assert current.keys() <= desired.keys()


def test_an_interrupted_start_is_completed_with_the_present_spec() -> None:
    """The mark is all that was written; since then the spec has changed again, and nobody asks the extension any more."""
    machines = outdated()
    machines[1].annotations = {UPDATING: ""}
    objects = world(machines).objects()
    plane = next(o for o in objects if o["kind"] == "KubeadmControlPlane")
    plane["spec"]["kubeadmConfigSpec"]["files"] = [{"path": "/etc/motd", "content": "later"}]

    answer = h.Answer(dict(clusterwright.decide(objects, f"KubeadmControlPlane/{h.NAMESPACE}/{h.NAME}")))

    assert (answer.error, answer.requeue) == (None, None)
    assert begun(answer) == ["m2"]
    assert answer.raw["others"]["KubeadmConfig/m2"]["spec"]["files"] == [{"path": "/etc/motd", "content": "later"}]
    assert answer.raw["calls"] == []
    assert answer.did("delete", "Machine") == answer.did("create", "Machine") == []


@pytest.mark.parametrize(("sick", "replaced"), [("m1", ["m1"]), ("m2", ["m2"])])
def test_the_only_unhealthy_machine_is_replaced_and_not_updated(sick: str, replaced: list[str]) -> None:
    machines = outdated()
    next(m for m in machines if m.name == sick).sick = {"SchedulerPodHealthy": ("False", 60)}

    answer = h.run(world(machines))

    assert answer.did("delete", "Machine") == replaced
    assert begun(answer) == []
    assert answer.raw["calls"] == []


def test_a_machine_that_falls_sick_while_it_is_updated_is_remediated() -> None:
    machines = outdated()
    machines[1].annotations, machines[1].conditions = WHOLE, UNHEALTHY

    answer = h.run(world(machines))

    assert answer.did("delete", "Machine") == ["m2"]
    assert begun(answer) == []


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_whatever_the_replicas_an_update_that_runs_is_waited_for(replicas: int) -> None:
    machines = outdated()
    machines[1].annotations, machines[1].version = WHOLE, NEW

    answer = h.run(world(machines, replicas))

    assert (answer.error, answer.requeue, answer.raw["calls"]) == (None, None, [])
    assert answer.did("create", "Machine") == answer.did("delete", "Machine") == []
    assert begun(answer) == []
