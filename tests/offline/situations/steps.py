"""Situations as data: how each of `tables/*.yaml` breaks a simulated cluster, step by step.

A situation starts with a cluster that is up (`one`: a control plane and a worker; `three`: a control plane of three), or makes it from
changed samples (`made`, `class`), or is nothing but a file (`file`). Then its steps are done, one after the other.
"""

from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.scheme import BUILT_IN, CUSTOM
from clusterwright.inmemory.faults import FAULT
from clusterwright.kubeadm import certificates as pki
from clusterwright.offline.verdict import State
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from offline.live import DEV_CLUSTER, DEV_MACHINE, MACHINE, NAMESPACE, admitting, key, machines, whole
from offline.situations.making import INFRASTRUCTURE, budget, condition, definition, fault, pod, scale, warn, with_provider
from offline.situations.truth import BAD, Make, Situation

TABLES: Final = Path(__file__).parent / "tables"
HELD_OUT: Final = Path(__file__).parent / "held_out"
"""Their truth was written down and committed before they were first run."""
_STATES: Final = {"broken": State.BROKEN, "waiting": State.WAITING, "progressing": State.PROGRESSING, "fine": State.FINE}
_KINDS: Final = {r.gvk.kind: r.gvk for r in (*BUILT_IN, *CUSTOM)} | {
    "PodDisruptionBudget": GroupVersionKind("policy", "v1", "PodDisruptionBudget"),
    "Deployment": GroupVersionKind("apps", "v1", "Deployment"),
    "DaemonSet": GroupVersionKind("apps", "v1", "DaemonSet"),
    "Node": GroupVersionKind("", "v1", "Node"),
    "Pod": GroupVersionKind("", "v1", "Pod"),
    "ResourceQuota": GroupVersionKind("", "v1", "ResourceQuota"),
    "ValidatingWebhookConfiguration": GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    "VolumeAttachment": GroupVersionKind("storage.k8s.io", "v1", "VolumeAttachment"),
    "InClusterIPPool": GroupVersionKind("ipam.cluster.x-k8s.io", "v1alpha2", "InClusterIPPool"),
}
_CLUSTER_WIDE: Final = frozenset(
    {
        "Node",
        "Namespace",
        "CustomResourceDefinition",
        "ExtensionConfig",
        "PersistentVolume",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
    }
)


def laid_over(below: Any, above: Any) -> Any:
    """Return a value with a merge patch laid over it."""
    if not isinstance(above, Mapping):
        return copy.deepcopy(above)
    result = dict(below) if isinstance(below, Mapping) else {}
    for name, value in above.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = laid_over(result.get(name), value)
    return result


def kind_of(word: str) -> GroupVersionKind:
    """Return the kind that a table names: one that we serve, `Kind.group`, or one of the provider Acme."""
    kind, _, group = word.partition(".")
    return _KINDS.get(word) or GroupVersionKind(group or INFRASTRUCTURE, "v1beta2", kind)


async def target(p: Plane, text: str, client: Any = None) -> tuple[GroupVersionKind, ObjectKey]:
    """Return what `Kind/name` or `Kind/namespace/name` means; `worker`, `worker2`, `leader` ... stand for Machines, `*` for the only one."""
    word, _, rest = text.partition("/")
    namespace, _, name = rest.rpartition("/")
    gvk = kind_of(word)
    for part, is_leader in (("worker", False), ("leader", True)):
        if name.rstrip("0123456789") == part:
            name = (await machines(p, control_plane=is_leader))[int(name.removeprefix(part) or "1") - 1]
    if name.endswith("*"):
        found = await (client or p.client).list(gvk, namespace="" if word in _CLUSTER_WIDE else NAMESPACE)
        name = min(o.key.name for o in found if o.key.name.startswith(name[:-1]))
    return gvk, ObjectKey("" if word in _CLUSTER_WIDE else namespace or NAMESPACE, name)


def whole_object(given: Json) -> Json:
    """Return an object of a table with what it leaves out: `is: Kind/name`, then fields."""
    rest = {k: v for k, v in given.items() if k not in {"is", "metadata"}}
    word, _, name = str(given["is"]).partition("/")
    namespace, _, name = name.rpartition("/")
    gvk = kind_of(word)
    metadata = {"name": name, **({} if word in _CLUSTER_WIDE else {"namespace": namespace or NAMESPACE}), **given.get("metadata", {})}
    metadata = {k: v for k, v in metadata.items() if v is not None}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **rest}


def conditions(lines: list[str], **more: str) -> list[Json]:
    """Return conditions from `Type=Status Reason: message`, of long ago unless `lastTransitionTime` is given."""
    found = []
    for line in lines:
        head, _, message = line.partition(": ")
        said, _, reason = head.partition(" ")
        type_, _, status = said.partition("=")
        found.append({**condition(type_, status, reason or "AsSaid", message), **more})
    return found


async def _with_names(p: Plane, value: Any) -> Any:
    """Return a value with the names of Machines for `@worker`, `@leader2` and the like."""
    if isinstance(value, dict):
        return {k: await _with_names(p, v) for k, v in value.items()}
    if isinstance(value, list):
        return [await _with_names(p, v) for v in value]
    if isinstance(value, str) and value.startswith("@"):
        return (await target(p, f"Machine/{value[1:]}"))[1].name
    return value


async def _written(p: Plane, client: Any, verb: str, given: Any) -> None:
    if verb == "create":
        for obj in given:
            await client.create(await _with_names(p, whole_object(obj)))
        return
    for text in given if isinstance(given, list) else [given] if isinstance(given, str) else given:
        gvk, name = await target(p, text, client)
        if verb == "delete":
            await client.delete(gvk, name)
        elif verb == "finalize":
            there = await client.get(gvk, name)
            await client.patch(gvk, name, {"metadata": {"finalizers": [*there.metadata.finalizers, given[text]]}})
        elif verb == "say":
            await client.patch(gvk, name, {"status": {"conditions": conditions(given[text])}}, subresource="status")
        elif verb == "status":
            await client.patch(gvk, name, {"status": given[text]}, subresource="status")
        else:
            await client.patch(gvk, name, given[text])


async def _fault(p: Plane, given: Json) -> None:
    for name, what in given.items():
        if name == "cluster":
            await p.annotate(DEV_CLUSTER, "c", {FAULT: what})
        else:
            await fault(p, (await target(p, f"Machine/{name}"))[1].name, what)


async def _node(p: Plane, given: Json) -> None:
    """Let Nodes say something; their kubelets, which would say something else, say no more."""
    for name, said in given.items():
        node = (await target(p, f"Machine/{name}"))[1].name
        await fault(p, node, "kubelet-stops")
        await asyncio.sleep(2)
        now = f"{p.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        told = [{**one, "lastTransitionTime": now, "lastHeartbeatTime": now} for one in conditions(said)]
        types = {one["type"] for one in told}
        told += [{"type": t, "status": "False"} for t in ("MemoryPressure", "DiskPressure", "PIDPressure") if t not in types]
        told += [] if "Ready" in types else [{"type": "Ready", "status": "True"}]
        client = p.workload("c").client
        await client.patch(kind_of("Node"), ObjectKey("", node), {"status": {"conditions": told}}, subresource="status")


async def _provider(p: Plane, given: Json) -> None:
    """Have machines of another provider, which all report the same."""
    options = {k: given[k] for k in ("kind", "group", "labels", "replicas", "spec") if k in given}
    kind, group = given.get("kind", "AcmeMachine"), given.get("group", INFRASTRUCTURE)
    gvk = GroupVersionKind(group, "v1beta2", kind)
    for n, name in enumerate(await with_provider(p, **options)):
        status = copy.deepcopy(given.get("status", {}))
        if "says" in given:
            fresh = {"lastTransitionTime": f"{p.clock.now():%Y-%m-%dT%H:%M:%SZ}"} if given.get("fresh") else {}
            status["conditions"] = conditions(given["says"], **fresh)
        if provider_id := given.get("id"):
            await p.client.patch(gvk, key(name), {"spec": {"providerID": provider_id.replace("#", str(n))}})
        if given.get("node"):
            spec = {"providerID": given["id"].replace("#", str(n))}
            told = [
                {"type": t, "status": "True" if t == "Ready" else "False"}
                for t in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
            ]
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
            node = laid_over(node, given["node"]) if isinstance(given["node"], dict) else node
            await p.workload("c").client.create({**node, "status": {"conditions": told}})
        if status:
            await p.client.patch(gvk, key(name), {"status": status}, subresource="status")


async def _warn(p: Plane, given: Json) -> None:
    gvk, name = await target(p, given["about"])
    involved = {"apiVersion": gvk.api_version, "kind": gvk.kind, "namespace": name.namespace, "name": name.name}
    for _ in range(given.get("times", 1)):
        await warn(p, involved, f"{given['reason']}", given["message"])
        await asyncio.sleep(given.get("every", 0))


async def _check(p: Plane, given: Json) -> None:
    made = samples.machine_health_check("c", given.get("name", "mhc"), labels=given.get("labels", {"pool": "md"}))
    made["spec"]["checks"]["unhealthyNodeConditions"] = [
        {"type": "Ready", "status": s, "timeoutSeconds": given.get("seconds", 5)} for s in ("Unknown", "False")
    ]
    made["spec"]["remediation"] = {"triggerIf": {"unhealthyLessThanOrEqualTo": given.get("limit", "100%")}, **given.get("remediation", {})}
    made["metadata"] |= given.get("metadata", {})
    await p.apply([made])


async def _define(p: Plane, given: list[str]) -> None:
    for word in given:
        kind, _, group = word.partition(".")
        await p.client.create(definition(kind, group=group or INFRASTRUCTURE))


async def _pod(p: Plane, given: Json) -> None:
    spec = dict(given)
    await pod(p, spec.pop("name"), spec.pop("namespace", NAMESPACE), **spec)


async def _ready(p: Plane, given: Json) -> None:
    await p.until_available("c", control_plane=given.get("leaders", 1), workers=given.get("workers", 1), within=900)


async def _pair(p: Plane, given: Json) -> None:
    """Put a new CA and its key into Secrets, in the place of what `given` names there."""
    for name, others in given.items():
        made = pki.new_ca(await sample_keys().new_key(pki.DEFAULT_ALGORITHM), now=p.clock.now(), serial=9)
        data = {"tls.crt": made.certificate, "tls.key": made.key}
        told = {k: base64.b64encode(v).decode() for k, v in data.items()}
        await p.client.patch(kind_of("Secret"), key(name), {"data": {**dict.fromkeys(others), **told}})


async def _failed(p: Plane, _: Any) -> None:
    """Delete the Machines that have no Node."""
    for name in await machines(p, control_plane=False):
        if not (await p.client.get(MACHINE, key(name))).at("status", "nodeRef"):
            await p.client.delete(MACHINE, key(name))


async def _end_faults(p: Plane, _: Any) -> None:
    for found in await p.client.list(DEV_MACHINE, namespace=NAMESPACE):
        await p.annotate(DEV_MACHINE, found.key.name, {FAULT: None})


async def _scale_acme(p: Plane, replicas: int) -> None:
    await p.client.patch(kind_of("MachineDeployment"), key("acme"), {"spec": {"replicas": replicas}})


async def _missing_samples(p: Plane, given: list[str]) -> None:
    """Create samples that were left out."""
    made = [o for o in whole() if f"{o['kind']}/{o['metadata']['name']}" in given]
    assert len(made) == len(given)
    await p.apply(made)


async def _workload(p: Plane, given: Json) -> None:
    for verb, value in given.items():
        await _written(p, p.workload("c").client, verb, value)


_STEPS: Final[dict[str, Callable[[Plane, Any], Awaitable[None]]]] = {
    "fault": _fault,
    "node": _node,
    "provider": _provider,
    "warn": _warn,
    "check": _check,
    "define": _define,
    "pod": _pod,
    "budget": budget,
    "scale": scale,
    "wait": lambda _, given: asyncio.sleep(given),
    "ready": _ready,
    "workload": _workload,
    "pair": _pair,
    "failed": _failed,
    "end_faults": _end_faults,
    "scale_acme": _scale_acme,
    "samples": _missing_samples,
}
VERBS: Final = ("create", "delete", "patch", "status", "say", "finalize")


async def done(p: Plane, steps: list[Json]) -> None:
    """Do the steps, one after the other."""
    for step in steps:
        for verb, given in step.items():
            if verb in VERBS:
                await _written(p, p.client, verb, given)
            else:
                await _STEPS[verb](p, given)


def _samples(case: Json) -> list[Json]:
    """Return the samples that a cluster is made from, changed as the table says."""
    if "class" in case:
        objects = [*samples.cluster_class(), samples.topology("c")]
    else:
        objects = whole(replicas=case.get("leaders", 1), workers=case.get("workers", 1))
    objects = copy.deepcopy(objects)
    changes = case.get("class") or case.get("made") or {}
    unused = set(changes)
    result = []
    for obj in objects:
        name = f"{obj['kind']}/{obj['metadata']['name']}"
        unused.discard(name)
        if changes.get(name, {}) != "left out":
            result.append(laid_over(obj, changes.get(name, {})))
    assert not unused, f"{case['name']}: no sample {', '.join(sorted(unused))}"
    return [*map(whole_object, case.get("before", ())), *result]


async def _play(case: Json, p: Plane) -> None:
    await _define(p, case.get("definitions", []))
    if "made" in case or "class" in case:
        await p.apply(_samples(case))
    await done(p, case.get("do", []))


def situation(case: Json) -> Situation:
    """Return one row of a table as a situation."""
    make: Make = partial(_play, case)
    states = frozenset(_STATES[word] for word in str(case.get("state", "")).split("|") if word) or BAD
    told = {k: case[k] for k in ("object", "field", "who", "next", "what", "never", "after", "subject", "is_lost") if k in case}
    more: Json = {"stage": admitting} if "class" in case or case.get("stage") == "admitting" else {}
    is_new = "made" in case or "class" in case
    return Situation(
        name=case["name"],
        is_long=case.get("soak", False),
        file=tuple(map(whole_object, case.get("file", ()))),
        make=make,
        states=states,
        needs_cluster=not is_new,
        leaders=1 if is_new else case.get("leaders", 1),
        **told,
        **more,
    )


def tables() -> Iterator[Situation]:
    """Yield the situations of all tables."""
    for path in (*sorted(TABLES.glob("*.yaml")), *sorted(HELD_OUT.glob("*.yaml"))):
        for case in yaml.safe_load(path.read_text()):
            if "void" not in case:
                yield situation(case)
