"""Find Pods and volumes that block the drain of a Machine's Node or the detachment of its volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Tier, condition_path
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of, selects

_PODS: Final = ("* Pod ", "* Pods ")
"""Beginnings of the drain's lines. Example: `* Pod shop/web-0: cannot evict pod as it would violate the pod's disruption budget.`"""
_VOLUMES: Final = "WaitingForVolumeDetach"


def drains(known: Known) -> Iterator[Found]:
    """Yield Machines that are being deleted and name a Pod or a volume that keeps them."""
    for name, machine in known.of_kind("Machine"):
        said = known.said(name, "Deleting")
        if machine.metadata.deletion_timestamp is None or said is None or said.status != "True":
            continue
        cluster = known.cluster.metadata.name if known.cluster is not None else ""
        begun = str(machine.at("metadata", "deletionTimestamp"))
        told = [line.partition(" ")[2].partition(" ")[2] for line in said.message.splitlines() if line.startswith(_PODS)]
        lines = [(pods, why) for pods, _, why in (line.partition(": ") for line in told) if why]
        if said.reason == _VOLUMES:
            volume, driver = _volume(known, machine, said.message)
            node = str(machine.at("status", "nodeRef", "name") or "")
            text = f"is being deleted, and Node {node} still has volume {volume} attached"
            facts = {"cluster": cluster, "volume": volume, "driver": driver, "node": node}
            yield _found(name, "drain.volume", text, begun, facts)
        elif lines:
            # a Pod that is blocked comes before one that is terminating
            listed, why = min(lines, key=lambda line: "not removed" in line[1])
            pod = listed.partition(",")[0].strip()
            namespace, _, bare = pod.rpartition("/")
            cause, more = _cause(known, pod, why)
            others = f" (and {listed.count(',')} more)" if "," in listed else ""
            text = f"is being deleted, but its Node cannot be drained: Pod {pod}{others}: {why}"
            yield _found(name, cause, text, begun, {"cluster": cluster, "pod": pod, "namespace": namespace, "name": bare, **more})


def _found(name: str, cause: str, text: str, begun: str, facts: dict[str, str]) -> Found:
    complaint = Complaint(Tier.DELETING, text, begun, "Deleting", path=condition_path("Deleting"), cause=cause, facts=facts)
    return Found(object=name, complaint=complaint, is_all=True)


def _cause(known: Known, pod: str, why: str) -> tuple[str, dict[str, str]]:
    """Return the kind of cause that keeps a Pod, and the object or person behind it."""
    namespace, _, bare = pod.rpartition("/")
    there = known.workload.get(name_of("Pod", namespace, bare))
    if "more than one PodDisruptionBudget" in why:
        names = [str(o.key) for o in known.workload.values() if _covers(o, there)]
        return "drain.budgets", {"budgets": " and ".join(sorted(names)) or f"that cover Pod {pod}"}
    if "budget" in why:
        budgets = [o for o in known.workload.values() if o.kind == "PodDisruptionBudget" and o.key.namespace == namespace]
        fitting = [o for o in budgets if _covers(o, there)]
        named = [o for o in budgets if f" {o.key.name} " in f"{why} "]
        found = next(iter((*named, *fitting)), None)
        return "drain.budget", {"budget": str(found.key) if found is not None else f"that covers Pod {pod}"}
    if "completion" in why:
        return "drain.completion", {"rule": "a MachineDrainRule, or the Pod's label cluster.x-k8s.io/drain,"}
    if "not removed" in why:
        finalizers = there.metadata.finalizers if there is not None else ()
        return ("drain.finalizer", {"finalizers": ", ".join(finalizers)}) if finalizers else ("drain.termination", {})
    return "drain.eviction", {}


def _covers(budget: Unstructured, pod: Unstructured | None) -> bool:
    is_near = budget.kind == "PodDisruptionBudget" and pod is not None and budget.key.namespace == pod.key.namespace
    return is_near and pod is not None and selects(budget.at("spec", "selector"), pod)


def _volume(known: Known, machine: Unstructured, message: str) -> tuple[str, str]:
    """Return a volume that is still attached to the Machine's Node, and its driver."""
    node = machine.at("status", "nodeRef", "name")
    for attachment in (o for o in known.workload.values() if o.kind == "VolumeAttachment" and o.at("spec", "nodeName") == node):
        return str(attachment.at("spec", "source", "persistentVolumeName")), str(attachment.at("spec", "attacher"))
    told = [line.rpartition(": ")[2] for line in message.splitlines() if line.startswith("* ")]
    return (told or ["that its Node reports"])[0], "that made it"
