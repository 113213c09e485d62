"""Random changes of random clusters: planned first, then made, then compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.plan import Apply, Delete, Edit, Plan, plan, quiet
from clusterwright.plan.changes import Change, apply
from clusterwright.plan.recorder import Recorder
from clusterwright.plan.replica import content
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from support.plans import CLASS, CLUSTER, CONTROL_PLANE, DEPLOYMENT, MACHINE, captured, key

VERSIONS = ("v1.34.0", "v1.34.1", "v1.34.2", "v1.35.0")
FEATURES = {"MachineTaintPropagation": True}
LONG = 6 * 3600.0
_VARIABLES = [
    {"name": "command", "required": False, "schema": {"openAPIV3Schema": {"type": "string", "default": "echo"}}},
    {"name": "size", "required": False, "schema": {"openAPIV3Schema": {"type": "integer", "default": 1, "maximum": 9}}},
]


def _patch(name: str, api: str, kind: str, matched: Json, path: str, value: Json) -> Json:
    selector = {"apiVersion": f"{api}/v1beta2", "kind": kind, "matchResources": matched}
    return {"name": name, "definitions": [{"selector": selector, "jsonPatches": [{"op": "add", "path": path, "valueFrom": value}]}]}


_PATCHES = [
    _patch(
        "command",
        "bootstrap.cluster.x-k8s.io",
        "KubeadmConfigTemplate",
        {"machineDeploymentClass": {"names": ["default-worker"]}},
        "/spec/template/spec/preKubeadmCommands",
        {"template": "- {{ .command }}"},
    ),
    _patch(
        "size",
        "controlplane.cluster.x-k8s.io",
        "KubeadmControlPlaneTemplate",
        {"controlPlane": True},
        "/spec/template/spec/kubeadmConfigSpec/preKubeadmCommands",
        {"template": "- echo {{ .size }}"},
    ),
]


@dataclass(slots=True)
class Scenario:
    """A cluster, and what may be changed in it."""

    random: Random
    is_topology: bool
    groups: list[str]
    control_plane: int
    version: str = VERSIONS[0]
    counter: int = 0

    async def build(self, p: Plane, seconds: float) -> None:
        """Create the cluster and wait for it."""
        if self.is_topology:
            await p.apply(samples.cluster_class(seconds=seconds, variables=_VARIABLES, patches=_PATCHES))
            workers = {name: self.random.randint(0, 3) for name in self.groups}
            await p.client.create(samples.topology("c", version=self.version, control_plane=self.control_plane, workers=workers))
        else:
            await p.apply(samples.cluster("c", has_control_plane_object=True))
            await p.apply(samples.control_plane("c", replicas=self.control_plane, seconds=seconds, version=self.version))
            workers = {}
            for name in self.groups:
                workers[name] = self.random.randint(0, 4)
                limits = self.random.choice(
                    ({"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}, {"maxSurge": 2, "maxUnavailable": 1})
                )
                rollout = {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}
                await p.apply(samples.workers("c", name, replicas=workers[name], seconds=seconds, version=self.version, rollout=rollout))
        await p.until_available("c", control_plane=self.control_plane, workers=sum(workers.values()), within=LONG)

    async def changes(self, p: Plane) -> list[Change]:
        """Return one to three random changes."""
        made: dict[str, Change] = {}
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            one = await (self._of_topology(p) if self.is_topology else self._of_objects(p))
            made.setdefault(one.name, one)
        return list(made.values())

    async def _of_topology(self, p: Plane) -> Change:
        pick = self.random.choice(("scale", "control-plane", "version", "variable", "variable", "group", "check", "machine", "class"))
        if pick == "machine" and (one := await self._machine(p)) is not None:
            return one
        if pick == "check":
            check = {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}
            return Edit(CLUSTER, key("c"), (("spec.topology.controlPlane.healthCheck.checks", check),))
        if pick == "version":
            self.version = VERSIONS[min(VERSIONS.index(self.version) + 1, len(VERSIONS) - 1)]
            return Edit(CLUSTER, key("c"), (("spec.topology.version", self.version),))
        if pick == "control-plane":
            self.control_plane = self.random.choice((1, 3))
            return Edit(CLUSTER, key("c"), (("spec.topology.controlPlane.replicas", self.control_plane),))
        if pick == "variable":
            name, value = self.random.choice((("command", f"echo {self.random.random()}"), ("size", self.random.randint(1, 9))))
            return Edit(CLUSTER, key("c"), ((f"spec.topology.variables[name={name}].value", value),))
        if pick == "class":
            self.counter += 1
            path = "spec.workers.machineDeployments[class=default-worker].metadata.labels.counter"
            return Edit(CLASS, key("in-memory"), ((path, str(self.counter)),))
        if pick == "group":
            self.counter += 1
            name = f"new{self.counter}"
            group = {"class": "default-worker", "name": name, "replicas": 1}
            self.groups.append(name)
            return Edit(CLUSTER, key("c"), ((f"spec.topology.workers.machineDeployments[name={name}]", group),))
        chosen = self.random.choice(self.groups)
        return Edit(CLUSTER, key("c"), ((f"spec.topology.workers.machineDeployments[name={chosen}].replicas", self.random.randint(0, 4)),))

    async def _of_objects(self, p: Plane) -> Change:
        pick = self.random.choice(
            ("scale", "scale", "control-plane", "version", "commands", "template", "taints", "check", "machine", "delete", "on-delete")
        )
        group = self.random.choice(self.groups)
        if pick == "machine" and (one := await self._machine(p)) is not None:
            return one
        if pick == "control-plane":
            return Edit(CONTROL_PLANE, key("c"), (("spec.replicas", self.random.choice((1, 3))),))
        if pick == "version":
            self.version = VERSIONS[min(VERSIONS.index(self.version) + 1, len(VERSIONS) - 1)]
            return Edit(CONTROL_PLANE, key("c"), (("spec.version", self.version),))
        if pick == "commands":
            command = f"echo {self.random.random()}"
            return Edit(CONTROL_PLANE, key("c"), (("spec.kubeadmConfigSpec.preKubeadmCommands", [command]),))
        if pick == "template":
            return Edit(DEPLOYMENT, key(group), (("spec.template.spec.version", self.version), ("spec.template.spec.failureDomain", "z")))
        if pick == "taints":
            taint = {"key": "x", "value": str(self.random.randint(0, 9)), "effect": "NoSchedule", "propagation": "Always"}
            return Edit(DEPLOYMENT, key(group), (("spec.template.spec.taints", [taint]),))
        if pick == "check":
            return Apply(samples.machine_health_check("c", "check", labels={"pool": group}))
        if pick == "delete" and len(self.groups) > 1:
            self.groups.remove(group)
            return Delete(DEPLOYMENT, key(group))
        if pick == "on-delete":
            kind = self.random.choice(("OnDelete", "RollingUpdate"))
            rolling = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}} if kind == "RollingUpdate" else {}
            return Edit(DEPLOYMENT, key(group), (("spec.rollout.strategy", {"type": kind, **rolling}),))
        return Edit(DEPLOYMENT, key(group), (("spec.replicas", self.random.randint(0, 5)),))

    async def _machine(self, p: Plane) -> Change | None:
        machines = sorted(m.key.name for m in await p.client.list(MACHINE, namespace="default"))
        return Delete(MACHINE, key(self.random.choice(machines))) if machines else None


@dataclass(slots=True)
class Done:
    """What happened when the change was made."""

    refused: bool
    before: dict[str, Any]
    after: dict[str, Any]
    recorder: Recorder
    endless: str
    unsettled: dict[str, str]


async def make(p: Plane, changes: list[Change], recorder: Recorder) -> Done:
    """Make the changes in the plane, and wait until nothing moves."""
    before = content(p.server)
    recorder.steps.clear()
    recorder.begin()
    refused = await apply(InProcessTransport(p.server), changes)
    endless = await quiet.until_quiet(recorder, p.clock, quiet.patience(before.values()))
    return Done(bool(refused), before, content(p.server), recorder, endless, quiet.unsettled(recorder))


def _root(obj: Json, objects: dict[str, Any]) -> str:
    """Return the object at the end of the owners, below the Cluster."""
    name = ""
    for _ in range(6):
        owners = [o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")]
        if not owners or owners[0]["kind"] == "Cluster":
            break
        name = f"{owners[0]['kind']}/{obj['metadata'].get('namespace')}/{owners[0]['name']}"
        if name not in objects:
            break
        obj = objects[name]
    return name


def differences(predicted: Plan, done: Done) -> list[str]:
    """Return how the execution differs from the plan."""
    if bool(predicted.refused) != done.refused:
        return [f"refused: {predicted.refused} predicted, {done.refused} in fact"]
    if done.refused:
        return []
    found = []
    gone = {n for n, o in done.before.items() if n not in done.after or done.after[n]["metadata"]["uid"] != o["metadata"]["uid"]}
    made = {n for n, o in done.after.items() if n not in done.before or done.before[n]["metadata"]["uid"] != o["metadata"]["uid"]}
    expected_gone = {n for t in predicted.deleted for n in (t.name, *t.parts)}
    if gone != expected_gone:
        found.append(f"deleted: missed {sorted(gone - expected_gone)}, wrong {sorted(expected_gone - gone)}")
    counted = Counter((n.partition("/")[0], _stable(_root(done.after[n], done.after), done.before)) for n in made)
    expected = Counter(_predicted_created(predicted, done))
    if counted != expected:
        found.append(f"created: missed {counted - expected}, wrong {expected - counted}")
    order = [
        s.name for s in done.recorder.steps if s.verb == "delete" and s.name.startswith("Machine/") and "KubeadmControlPlane" in s.owner
    ]
    told = [
        s["object"]
        for s in predicted.trace
        if s["verb"] == "delete" and s["object"].startswith("Machine/") and "KubeadmControlPlane" in s["owner"]
    ]
    if [n for n in order if n in done.before] != [n for n in told if n in done.before]:
        found.append(f"order: {told} predicted, {order} in fact")
    took, said = done.recorder.elapsed, predicted.duration.median
    if done.unsettled and predicted.stuck:
        pass  # neither ends
    elif predicted.stuck or done.unsettled or done.endless or said is None:
        found.append(f"not converging: {[(s.object, s.why) for s in predicted.stuck]} predicted; in fact {done.endless} {done.unsettled}")
    elif abs(took - said) > max(0.2 * took, 5.0):
        found.append(f"duration: {said:.1f} s predicted, {took:.1f} s in fact")
    return found


def _stable(root: str, before: dict[str, Any]) -> str:
    """Return the name of an owner; only its kind, if it is new: its name may be random."""
    return root if root in before or not root else root.partition("/")[0]


def _predicted_created(predicted: Plan, done: Done) -> list[tuple[str, str]]:
    """Return kind and root owner of everything that is created, from the owners that the plan tells."""
    owners = {n: t.owner for t in predicted.created for n in (t.name,)}
    owners |= {part: t.name for t in predicted.created for part in t.parts}
    found = []
    for name in owners:
        root, above = "", owners[name]
        for _ in range(6):
            if not above or above.startswith("Cluster/"):
                break
            root = above
            above = owners.get(above) or _owner_before(above, done)
        found.append((name.partition("/")[0], _stable(root, done.before)))
    return found


def _owner_before(name: str, done: Done) -> str:
    obj = done.before.get(name)
    owners = [o for o in ((obj or {}).get("metadata") or {}).get("ownerReferences") or () if o.get("controller")]
    return f"{owners[0]['kind']}/{obj['metadata'].get('namespace')}/{owners[0]['name']}" if obj and owners else ""


async def one_world(p: Plane, seed: int, rounds: int, *, small: bool = False) -> list[str]:
    """Bring up a random cluster, change it some times, and return how plans and executions differ."""
    random = Random(f"plans/{seed}")
    groups = ["a"] if small else ["a", "b"][: random.randint(1, 2)]
    scenario = Scenario(random, random.random() < 0.5, groups, 1 if small else random.choice((1, 3)))
    await scenario.build(p, seconds=random.choice((1, 5, 20, 60)))
    recorder = Recorder(p.clock.monotonic)
    recorder.follow(p.server)
    await quiet.until_quiet(recorder, p.clock, quiet.PATIENCE)
    recorder.follow_workload(p.workload("c").server)
    found = []
    for number in range(rounds):
        changes = await scenario.changes(p)
        predicted = plan(await captured(p), changes, runs=1)
        done = await make(p, changes, recorder)
        told = [f"{c}"[:300] for c in changes]
        found += [f"seed {seed}, change {number} {told}: {text}" for text in differences(predicted, done)]
        if found:
            break
        if done.endless or done.unsettled:
            break
    return found
