"""The workload clusters of a replica: Nodes and Pods as they were read, under the names that simulated machines have. Pure.

A simulated machine registers a Node of its own name, other machines often do not. So Nodes get the names of their Machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.inmemory import objects as simulated
from clusterwright.inmemory.etcd import MEMBER_ID
from clusterwright.inmemory.kubelets import MIRROR
from clusterwright.kubeadm.yamltext import dump

_LEFT_OUT: Final = frozenset({"Event", "Namespace", "ClusterRole", "ClusterRoleBinding", "Lease"})


def as_simulated(
    objects: Sequence[Json], workloads: Mapping[ObjectKey, Sequence[Json]], now: datetime
) -> tuple[list[Json], dict[ObjectKey, list[Json]]]:
    """Return the objects of the management cluster, and the contents of the simulated workload clusters."""
    joined: dict[ObjectKey, list[Unstructured]] = {}
    for machine in (o for o in map(Unstructured, objects) if o.kind == "Machine"):
        cluster = machine.at("spec", "clusterName") or machine.metadata.labels.get(CLUSTER_NAME_LABEL)
        if isinstance(machine.at("status", "nodeRef", "name"), str) and isinstance(cluster, str):
            joined.setdefault(ObjectKey(machine.key.namespace, cluster), []).append(machine)
    renamed = [_machine(o) if o.get("kind") == "Machine" else o for o in objects]
    clusters = {o.key: o for o in map(Unstructured, objects) if o.kind == "Cluster"}
    contents: dict[ObjectKey, list[Json]] = {}
    for key in {*workloads, *joined} & set(clusters):
        machines = joined.get(key, [])
        names = {str(m.at("status", "nodeRef", "name")): m.key.name for m in machines}
        content = list(_content(workloads.get(key, ()), names))
        contents[key] = [*content, *_missing(content, clusters[key], machines, now)]
    return renamed, contents


def _missing(content: Sequence[Json], cluster: Unstructured, machines: Sequence[Unstructured], now: datetime) -> Iterable[Json]:
    """Yield what a workload cluster must have according to its Machines, if nobody could read it."""
    present = {(o["kind"], o["metadata"]["name"]) for o in content}
    for machine in machines:
        if ("Node", machine.key.name) not in present:
            addresses = machine.at("status", "addresses") or ()
            yield simulated.node(
                machine.key.name,
                is_control_plane=CONTROL_PLANE_LABEL in machine.metadata.labels,
                version=str(machine.at("status", "nodeInfo", "kubeletVersion") or machine.at("spec", "version") or ""),
                address=next((str(a.get("address")) for a in addresses if a.get("type") == "InternalIP"), "10.0.0.2"),
                now=now,
                taints=None,
                zone=str(machine.at("spec", "failureDomain") or ""),
                provider=str(machine.at("spec", "providerID") or ""),
            )
    if machines and ("ConfigMap", "kubeadm-config") not in present:
        version = next((str(m.at("spec", "version")) for m in machines if CONTROL_PLANE_LABEL in m.metadata.labels), "")
        host, port = (cluster.at("spec", "controlPlaneEndpoint", part) for part in ("host", "port"))
        made = simulated.kubeadm_objects(_configuration(cluster, version), version, b"", f"{host}:{port}")
        yield from (o for o in made if (o["kind"], o["metadata"]["name"]) not in present)


def _configuration(cluster: Unstructured, version: str) -> str:
    return dump(
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ClusterConfiguration",
            "clusterName": cluster.key.name,
            "kubernetesVersion": version,
        }
    )


def _machine(obj: Json) -> Json:
    status = obj.get("status")
    if not isinstance(status, Mapping) or not isinstance(status.get("nodeRef"), Mapping):
        return obj
    return {**obj, "status": {**status, "nodeRef": {**status["nodeRef"], "name": obj["metadata"]["name"]}}}


def _content(objects: Iterable[Json], names: Mapping[str, str]) -> Iterable[Json]:
    for obj in objects:
        kind = obj.get("kind")
        if kind in _LEFT_OUT or _is_foreign_static_pod(obj):
            continue
        if kind == "Node" and (name := names.get(obj["metadata"]["name"])) is not None:
            yield {**obj, "metadata": {**obj["metadata"], "name": name}}
        elif kind == "Pod" and (name := names.get((obj.get("spec") or {}).get("nodeName", ""))) is not None:
            yield _pod(obj, name)
        elif kind == "Secret":
            yield {**obj, "data": dict.fromkeys(obj.get("data") or {}, "")}
        else:
            yield obj


def _pod(obj: Json, node: str) -> Json:
    old, name = obj["spec"]["nodeName"], obj["metadata"]["name"]
    if name.endswith(f"-{old}"):  # static Pods have the name of their Node
        name = f"{name.removesuffix(old)}{node}"
    return {**obj, "metadata": {**obj["metadata"], "name": name}, "spec": {**obj["spec"], "nodeName": node}}


def _is_foreign_static_pod(obj: Json) -> bool:
    """Return whether a Pod is that of a real kubelet for a component that the simulated machine starts itself."""
    annotations = obj["metadata"].get("annotations") or {}
    return (
        obj.get("kind") == "Pod" and MIRROR in annotations and obj["metadata"]["name"].startswith("etcd-") and MEMBER_ID not in annotations
    )
