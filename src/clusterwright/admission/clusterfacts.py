"""Read the facts that the admission of a Cluster needs: its class, and the progress of its last upgrade."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from clusterwright.admission.classes import class_key, is_deleting, is_reconciled, topology_of
from clusterwright.admission.hook import Access, Unobserved
from clusterwright.admission.rule import Review, at, items
from clusterwright.admission.selectors import fits
from clusterwright.api.contract import NoContract, crd_name, resolve_version
from clusterwright.api.core import ClusterClass, Machine, MachineDeployment, MachinePool
from clusterwright.api.kubernetes import CustomResourceDefinition, Node
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    PAUSED_ANNOTATION,
    TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    TOPOLOGY_OWNED_LABEL,
    TOPOLOGY_POOL_NAME_LABEL,
)
from clusterwright.kubeadm.reached import is_any_older, reported_versions, runs
from clusterwright.kubeadm.versions import Version, compare, parse_version
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.topology.pinning import GATE, KINDS, Workers, pins

Pins = Mapping[Workers, Collection[str]]
"""Topology names of pinned workers, by kind."""
_NAME_LABELS: Final[Mapping[Workers, str]] = {
    "machineDeployments": TOPOLOGY_DEPLOYMENT_NAME_LABEL,
    "machinePools": TOPOLOGY_POOL_NAME_LABEL,
}
_INTERVAL: Final = 0.2
_TRIES: Final = 10
"""How long a class that was written just before its Cluster has to be seen and reconciled."""


@dataclass(frozen=True, slots=True)
class Found:
    """The facts that were read, or the reason why they could not be."""

    objects: tuple[Json, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """The facts; empty if none were needed."""

    cluster_class: Json | None = None
    is_reconciled: bool = False
    class_error: str = ""
    old_class: Json | None = None
    old_class_error: str = ""
    control_plane: Found = Found()
    deployments: Found = Found()
    machines: tuple[Json, ...] = ()
    """All Machines of the Cluster."""
    pools: Found = Found()
    nodes: Found = Found()
    """All Nodes of the workload cluster, if there are pools."""

    @property
    def definitions(self) -> Sequence[Json]:
        """Return the variables of the class."""
        return items(self.cluster_class, "status", "variables")

    def unfinished(self, version: Version, pinned: Pins = MappingProxyType({})) -> Iterator[str]:
        """Return violations of CL-36, CL-37, CL-38: parts that have not reached the topology's previous version; empty texts are none.

        Pinned workers do not count, because they do not follow that version.
        """
        yield self._control_plane(version)
        yield self._deployments(version, pinned.get("machineDeployments", ()))
        yield self._pools(version, pinned.get("machinePools", ()))

    @property
    def oldest_control_plane(self) -> str:
        """The oldest version that the control plane runs or is to run; empty if there is none."""
        for found in self.control_plane.objects:
            try:
                reported = reported_versions(found)
            except ValueError:
                return ""  # CL-36 reports it
            own = at(found, "spec", "version")
            return (reported[0] if reported else at(found, "status", "version")) or (own if isinstance(own, str) else "")
        return ""

    def worker_version(self, kind: Workers, name: str) -> Iterator[str]:
        """Return the version in the spec of a worker of the topology, if it exists."""
        for obj in self._worker(kind, name):
            yield at(obj, "spec", "template", "spec", "version") or ""

    def running(self, kind: Workers, name: str) -> Iterator[str]:
        """Return every version of a worker of the topology: that of its spec, then those of its Machines or Nodes."""
        yield from self.worker_version(kind, name)
        for obj in self._worker(kind, name):
            if kind == "machineDeployments":
                own = (m for m in self.machines if fits(at(obj, "spec", "selector"), at(m, "metadata", "labels")))
                yield from (at(m, "spec", "version") or "" for m in own)
            else:
                nodes = {ref.get("name") or "" for ref in items(obj, "status", "nodeRefs")}
                yield from (at(n, "status", "nodeInfo", "kubeletVersion") or "" for n in self.nodes.objects if _name(n) in nodes)

    def _worker(self, kind: Workers, name: str) -> Iterator[Json]:
        found = self.deployments if kind == "machineDeployments" else self.pools
        yield from (obj for obj in found.objects if _topology_name(obj, kind) == name)

    def _control_plane(self, version: Version) -> str:
        begin = "failed to check if control plane is upgrading"
        if self.control_plane.error:
            return f"{begin}: failed to get control plane object: {self.control_plane.error}"
        (found,) = self.control_plane.objects
        wanted, reached = at(found, "spec", "version"), at(found, "status", "version")
        if not isinstance(wanted, str):
            return f"{begin}: failed to get control plane version: path not found"
        try:
            asked = parse_version(wanted)
        except ValueError as error:
            return f"{begin}: failed to parse control plane version {wanted}: {error}"
        if str(asked) != str(version):
            text = f"Cluster.spec.topology.version {version} was not propagated to control plane yet"
            return f"{text} (control plane version {asked})"
        try:
            reported = reported_versions(found)
        except ValueError as error:
            return f"{begin}: failed to get control plane status.versions: {error}"
        if not reported and (not isinstance(reached, str) or not reached):
            return "control plane is currently provisioning"
        try:
            is_upgrading = is_any_older(reported, asked) if reported else compare(asked, parse_version(reached), build=True) == 1
        except ValueError as error:
            return f"{begin}: failed to parse control plane version {reached}: {error}"
        return "control plane is still completing a previous upgrade" if is_upgrading else ""

    def _deployments(self, version: Version, pinned: Collection[str]) -> str:
        if self.deployments.error:
            return f"failed to check if MachineDeployments are upgrading: failed to get MachineDeployments: {self.deployments.error}"
        names = []
        for deployment in self.deployments.objects:
            if _topology_name(deployment, "machineDeployments") in pinned:
                continue
            name, at_version = _name(deployment), at(deployment, "spec", "template", "spec", "version") or ""
            try:
                is_behind = str(parse_version(at_version)) != str(version)
            except ValueError as error:
                return f"failed to check if MachineDeployment {name} is upgrading: failed to parse version {at_version}: {error}"
            selector = at(deployment, "spec", "selector")
            own = (m for m in self.machines if fits(selector, at(m, "metadata", "labels")))
            if is_behind or any(_is_behind(m, at_version) for m in own):
                names.append(name)
        return f"there are still MachineDeployments completing a previous upgrade: [{', '.join(names)}]" if names else ""

    def _pools(self, version: Version, pinned: Collection[str]) -> str:
        begin = "failed to check if MachinePools are upgrading"
        if self.pools.error:
            return f"{begin}: failed to get MachinePools: {self.pools.error}"
        if self.pools.objects and self.nodes.error:
            return f"{begin}: unable to get client for workload cluster: {self.nodes.error}"
        kubelets = {_name(node): at(node, "status", "nodeInfo", "kubeletVersion") for node in self.nodes.objects}
        names = []
        for pool in self.pools.objects:
            if _topology_name(pool, "machinePools") in pinned:
                continue
            name, at_version = _name(pool), at(pool, "spec", "template", "spec", "version") or ""
            try:
                is_behind = str(parse_version(at_version)) != str(version)
            except ValueError as error:
                return f"failed to check if MachinePool {name} is upgrading: failed to parse version {at_version}: {error}"
            nodes = [ref.get("name") or "" for ref in items(pool, "status", "nodeRefs")]
            if is_behind or any(not kubelets.get(node) or not runs(kubelets[node], at_version) for node in nodes):
                names.append(name)
        return f"there are still MachinePools completing a previous upgrade: [{', '.join(names)}]" if names else ""


def _is_behind(machine: Json, version: str) -> bool:
    """Return whether a Machine, or its kubelet, has another version than its MachineDeployment."""
    kubelet = at(machine, "status", "nodeInfo", "kubeletVersion")
    return (at(machine, "spec", "version") or "") != version or (isinstance(kubelet, str) and bool(kubelet) and not runs(kubelet, version))


def _name(obj: Json) -> str:
    return at(obj, "metadata", "name") or ""


def _topology_name(obj: Json, kind: Workers) -> str:
    return (at(obj, "metadata", "labels") or {}).get(_NAME_LABELS[kind]) or ""


def facts_of(review: Review) -> ClusterFacts:
    """Return the facts of a review of a Cluster."""
    facts: ClusterFacts = review.facts if review.facts is not None else ClusterFacts()
    return facts


def kept_pins(review: Review) -> Pins:
    """Return the workers that were pinned before a write and still are after it."""
    if not review.enabled(GATE):
        return {}
    return {kind: pins(review.old, kind).keys() & pins(review.new, kind).keys() for kind in KINDS}


# ----------------------------------------------------------------------------------------- reading


async def observe_class(review: Review, access: Access) -> ClusterFacts:
    """Read for defaulting: the class, if the Cluster has one."""
    facts = await _with_class(review, access)
    if facts.class_error and not is_deleting(review.new):
        key = class_key(review.new, review.namespace)
        raise Unobserved(f"Cluster {review.name} can't be defaulted. ClusterClass {key.name} can not be retrieved: {facts.class_error}")
    return facts


async def observe(review: Review, access: Access) -> ClusterFacts:
    """Read for validation: the class, the previous class, and, when the version changes, the running objects."""
    if not review.enabled("ClusterTopology"):
        return ClusterFacts()
    facts = await _with_class(review, access)
    if review.operation != "UPDATE" or facts.cluster_class is None or topology_of(review.old) is None:
        return facts
    parts: dict[str, Any] = {name: getattr(facts, name) for name in ("cluster_class", "is_reconciled", "class_error")}
    old, new = (class_key(o, review.namespace) for o in (review.old, review.new))
    if old.name and old != new:
        try:
            found = await access.reader.get(SCHEME.gvk(ClusterClass), old)
            parts["old_class"] = dict(found.json)
        except NotFound:
            parts["old_class_error"] = f'ClusterClass.{SCHEME.gvk(ClusterClass).group} "{old.name}" not found'
        except ApiError as error:
            parts["old_class_error"] = str(error)
    are_pins_changed = review.enabled(GATE) and any(pins(review.old, kind) != pins(review.new, kind) for kind in KINDS)
    if are_pins_changed or at(review.old, "spec", "topology", "version") != at(review.new, "spec", "topology", "version"):
        parts |= await _what_runs(review, access)
    return ClusterFacts(**parts)


async def _with_class(review: Review, access: Access) -> ClusterFacts:
    key = class_key(review.new, review.namespace)
    if review.operation == "DELETE" or topology_of(review.new) is None or not key.name:
        return ClusterFacts()
    facts = ClusterFacts()
    for attempt in range(1 if is_deleting(review.new) else _TRIES):
        if attempt:
            await access.pause(_INTERVAL)
        try:
            found = await access.reader.find(SCHEME.gvk(ClusterClass), key)
        except ApiError as error:
            facts = ClusterFacts(class_error=str(error))
            continue
        if found is None:
            facts = ClusterFacts()
            continue
        facts = ClusterFacts(cluster_class=dict(found.json), is_reconciled=is_reconciled(found.json))
        if facts.is_reconciled or PAUSED_ANNOTATION in (at(found.json, "metadata", "annotations") or {}):
            break  # a paused class is not reconciled: after a move, each Cluster would wait for it twice, without success
    return facts


async def _what_runs(review: Review, access: Access) -> dict[str, Any]:
    owned = {CLUSTER_NAME_LABEL: review.name, TOPOLOGY_OWNED_LABEL: ""}
    deployments = await _list(access.reader, MachineDeployment, review.namespace, owned)
    machines = await _list(access.reader, Machine, review.namespace, {CLUSTER_NAME_LABEL: review.name}) if deployments.objects else Found()
    pools = await _list(access.reader, MachinePool, review.namespace, owned)
    return {
        "control_plane": await _control_plane(review, access.reader),
        "deployments": Found(error=machines.error) if machines.error else deployments,
        "machines": machines.objects,
        "pools": pools,
        "nodes": await _nodes(review, access) if pools.objects else Found(),
    }


async def _list(reader: Reader, kind: Any, namespace: str, labels: dict[str, str]) -> Found:
    try:
        found = await reader.list(SCHEME.gvk(kind), namespace=namespace, labels=labels)
    except ApiError as error:
        return Found(error=str(error))
    return Found(tuple(dict(obj.json) for obj in found))


async def _control_plane(review: Review, reader: Reader) -> Found:
    """Return the object of `spec.controlPlaneRef`, in the version of its contract."""
    reference = at(review.old, "spec", "controlPlaneRef") or {}
    group, kind, name = (reference.get(key) or "" for key in ("apiGroup", "kind", "name"))
    if not name:
        return Found(error="cannot get object - object reference not set")
    try:
        crd = await reader.get(SCHEME.gvk(CustomResourceDefinition), ObjectKey("", crd_name(group, kind)))
        version = resolve_version(crd.json.get("metadata") or {}).version
        found = await reader.get(GroupVersionKind(group, version, kind), ObjectKey(review.namespace, name))
    except (ApiError, NoContract) as error:
        return Found(error=str(error))
    return Found((dict(found.json),))


async def _nodes(review: Review, access: Access) -> Found:
    try:
        reader = await access.workloads.reader(ObjectKey(review.namespace, review.name))
    except ApiError as error:
        return Found(error=str(error))
    return await _list(reader, Node, "", {})
