"""Find the reason why no controller reconciles an object: a gate, a Deployment, a right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CORE_GROUP, PROVIDER_LABEL, WATCH_FILTER_LABEL
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known
from clusterwright.offline.managers import TOPOLOGY_GATE, Idle, filtered, why_idle
from clusterwright.offline.unreconciled import TOPOLOGY

_PROVIDERS = {
    CORE_GROUP: "cluster-api",
    f"bootstrap.{CORE_GROUP}": "bootstrap-kubeadm",
    f"controlplane.{CORE_GROUP}": "control-plane-kubeadm",
}
"""By group: the provider of our kinds, for bundles without CRDs."""


def idle_controllers(known: Known) -> Iterator[Found]:
    """Yield unreconciled objects with the reason, where the controllers or their Deployments show it."""
    running = known.running
    for name, obj in known.objects.items():
        complaints = known.complaints.get(name, ())
        told = [c for c in complaints if c.tier is Tier.UNRECONCILED]
        made = obj.metadata.creation_timestamp
        if not complaints and not obj.at("status") and made is not None and running is not None and running.why_idle(obj.kind):
            told = [Complaint(Tier.UNRECONCILED, "nothing reconciles it", f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")]
        for complaint in told:
            about: dict[str, Any] = {
                "resource": f"{obj.kind.lower()}/{obj.key.name}",
                "namespace": obj.key.namespace,
                "kind": obj.kind,
                "name": obj.key.name,
            }
            better = _by_deployment(known, obj, complaint, about)
            better = better if better is not None else _by_report(known, obj, complaint, about)
            if better is not None:
                yield Found(object=name, complaint=better, replaces=complaint)


def _by_deployment(known: Known, obj: Unstructured, complaint: Complaint, about: dict[str, Any]) -> Complaint | None:
    group, kind = obj.gvk.group, obj.kind
    if known.running is not None and kind in known.running.controllers.values():
        return None
    definition = known.definitions.get((group, kind))
    provider = definition.metadata.labels.get(PROVIDER_LABEL, "") if definition is not None else _PROVIDERS.get(group, "")
    idle = why_idle(obj, provider, known.managers, TOPOLOGY_GATE if complaint.about == TOPOLOGY else "")
    return None if idle is None else _because(complaint, idle, about)


def _by_report(known: Known, obj: Unstructured, complaint: Complaint, about: dict[str, Any]) -> Complaint | None:
    running = known.running
    if running is None:
        return None
    topology = running.idle.get("topology/cluster") if complaint.about == TOPOLOGY else None
    if why := topology.why if topology is not None else running.why_idle(obj.kind):
        return _because(complaint, Idle(why, gate=why.partition("feature gate ")[2].partition(" ")[0]), about)
    if obj.kind in running.controllers.values() and (left := filtered(obj, running.watch_filter, "the controllers run")):
        return _because(complaint, left, about)
    if right := next(iter(running.rights), ""):
        bare = right.partition(" (")[0]
        facts = {**about, "right": bare, "asked": bare.partition(" in namespace")[0]}
        text = f"{complaint.text}: its controllers may not {right}"
        return replace(complaint, text=text, raw=right, cause="controller.rights", facts=facts)
    return None


def _because(complaint: Complaint, idle: Idle, about: dict[str, Any]) -> Complaint:
    where = f"kubectl -n {idle.namespace} describe deployment {idle.deployment}" if idle.deployment else ""
    where = where or f"kubectl -n {about['namespace']} get {about['resource']} -o yaml"
    facts = {**about, "gate": idle.gate, "why": idle.why, "where": where}
    facts |= {"label": f"{WATCH_FILTER_LABEL}={idle.wanted}", "object": f"{about['kind']} {about['name']}"}
    cause = "controller.gate" if idle.gate else "controller.filter" if idle.wanted else "controller.down"
    if idle.process:
        cause, facts["process"] = "controller.process", idle.process
    return replace(complaint, text=f"{complaint.text}: {idle.why}", raw=idle.why, cause=cause, facts=facts)
