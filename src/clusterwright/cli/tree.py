"""Return a Cluster as a tree of its objects, each with the condition that summarises it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from msgspec import to_builtins

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from clusterwright.api.meta import Condition, Json, Object, Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, UPGRADE_STEP_ANNOTATION
from clusterwright.conditions import get, is_false, v1beta1
from clusterwright.conditions.foreign import InvalidConditions, conditions_of
from clusterwright.offline.complaints import references


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree and its children."""

    label: str
    condition: Condition | None = None
    children: tuple[Branch, ...] = ()
    conditions: tuple[Condition, ...] = field(default=())
    kind: str = ""
    """The kind of the object; empty for a line that only groups others."""
    replicas: str = ""
    """The ready and wanted replicas of an object that has replicas."""
    version: str = ""
    """The Kubernetes version that the object wants."""
    up_to_date: str = ""
    """The up-to-date and wanted replicas where not all are up to date; `no` for a Machine that is not."""
    is_deleting: bool = False

    def to_json(self) -> Json:
        """Return the branch and its children; `name` is the object, or the words of a line that only groups others."""
        found: Json = {"name": self.label, "kind": self.kind, "isDeleting": self.is_deleting}
        facts = {"ready": self.replicas, "upToDate": self.up_to_date, "version": self.version}
        found |= {name: value for name, value in facts.items() if value}
        if self.condition is not None:
            found["condition"] = to_builtins(self.condition)
        return {**found, "conditions": to_builtins(self.conditions), "children": [child.to_json() for child in self.children]}


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a Cluster other than its infrastructure and control plane."""

    machines: Sequence[Machine] = ()
    machine_sets: Sequence[MachineSet] = ()
    deployments: Sequence[MachineDeployment] = ()
    pools: Sequence[MachinePool] = ()
    health_checks: Sequence[MachineHealthCheck] = ()
    others: Mapping[tuple[str, str], Unstructured] = field(default_factory=dict)
    """Provider objects to show because these name them, by kind and name."""


def cluster_tree(cluster: Cluster, infrastructure: Unstructured | None, control_plane: Unstructured | None, parts: Parts) -> Branch:
    """Return the tree of a Cluster."""
    leaders = [m for m in parts.machines if CONTROL_PLANE_LABEL in m.metadata.labels]
    children: list[Branch] = [_topology(cluster)] if cluster.spec.topology is not None else []
    if infrastructure is not None:
        children.append(_foreign("ClusterInfrastructure - ", infrastructure, "Ready"))
    if control_plane is not None:
        below = (*_named(control_plane.at("spec", "machineTemplate"), parts), *(_machine(m, parts) for m in leaders))
        children.append(replace(_foreign("ControlPlane - ", control_plane, "Available"), children=below))
    elif leaders:
        children.append(Branch("ControlPlane", None, tuple(_machine(m, parts) for m in leaders)))
    if workers := tuple(_workers(parts)):
        children.append(Branch("Workers", None, workers))
    if parts.health_checks:
        checks = tuple(_object(c, "RemediationAllowed", ()) for c in parts.health_checks)
        children.append(Branch("HealthChecks", None, checks))
    return _object(cluster, "Available", tuple(children))


def _topology(cluster: Cluster) -> Branch:
    """Return the branch of the Cluster's class, the wanted version, and the progress of an upgrade."""
    topology = cluster.spec.topology
    assert topology is not None
    namespace = topology.class_ref.namespace
    name = f"{namespace}/{topology.class_ref.name}" if namespace else topology.class_ref.name
    step = cluster.metadata.annotations.get(UPGRADE_STEP_ANNOTATION, "")
    label = f"Topology - ClusterClass/{name} {topology.version}" + (f" (upgrade step {step})" if step else "")
    return Branch(label, get(cluster.status.conditions, "TopologyReconciled"))


def _workers(parts: Parts) -> Iterator[Branch]:
    """Return MachineDeployments with their MachineSets, MachineSets without owner, MachinePools, and Machines without controller."""
    workers = [m for m in parts.machines if CONTROL_PLANE_LABEL not in m.metadata.labels]

    def machine_set(obj: MachineSet) -> Branch:
        return _object(obj, "MachinesReady", tuple(_machine(m, parts) for m in _controlled(workers, obj)))

    owners: list[Object] = [*parts.deployments, *parts.machine_sets, *parts.pools]
    for deployment in parts.deployments:
        sets = [s for s in _controlled(parts.machine_sets, deployment) if s.spec.replicas or s.status.replicas]
        yield _object(deployment, "Available", (*_named(to_builtins(deployment.spec), parts), *map(machine_set, sets)))
    for alone in parts.machine_sets:
        if not any(_controls(d, alone) for d in parts.deployments):
            yield machine_set(alone)
    for pool in parts.pools:
        below = (*_named(to_builtins(pool.spec), parts), *(_machine(m, parts) for m in _controlled(workers, pool)))
        yield _pool(pool, below)
    yield from (_machine(m, parts) for m in workers if not any(_controls(o, m) for o in owners))


def _pool(pool: MachinePool, children: tuple[Branch, ...]) -> Branch:
    """Return the branch of a pool, whose state is only in its deprecated conditions."""
    branch = _object(pool, "Ready", children)
    old = v1beta1.get(v1beta1.reporter_conditions(pool), "Ready")
    if branch.condition is not None or old is None:
        return branch
    ready = Condition(
        type="Ready", status=old.status, reason=old.reason, message=old.message, last_transition_time=old.last_transition_time
    )
    return replace(branch, condition=ready)


T = TypeVar("T", bound=Object)


def _controlled(objects: Sequence[T], owner: Object) -> list[T]:
    return [o for o in objects if _controls(owner, o)]


def _controls(owner: Object, obj: Object) -> bool:
    return any(r.controller and (r.kind, r.name) == (owner.kind, owner.metadata.name) for r in obj.metadata.owner_references)


def _machine(machine: Machine, parts: Parts) -> Branch:
    return _object(machine, "Ready", tuple(_named(to_builtins(machine.spec), parts)))


def _named(spec: Any, parts: Parts) -> Iterator[Branch]:
    """Yield the provider objects that a spec names, if they are to be shown."""
    for reference in references(spec):
        found = parts.others.get((reference.kind, reference.name))
        if found is not None:
            yield _foreign("", found, "Ready")


def _object(obj: Object, type_: str, children: tuple[Branch, ...]) -> Branch:
    status = getattr(obj, "status", None)
    conditions = tuple(getattr(status, "conditions", ()))
    is_deleting = obj.metadata.deletion_timestamp is not None
    spec = getattr(obj, "spec", None)
    wanted = getattr(spec, "replicas", None)
    counts = _counts(wanted, getattr(status, "ready_replicas", None))
    template = getattr(getattr(spec, "template", None), "spec", None)
    version = str(getattr(spec, "version", "") or getattr(template, "version", "") or "")
    current = _outdated(wanted, getattr(status, "up_to_date_replicas", None)) or ("no" if is_false(conditions, "UpToDate") else "")
    label = f"{obj.kind}/{obj.metadata.name}{' (deleting)' if is_deleting else ''}"
    return Branch(label, get(conditions, type_), children, conditions, obj.kind, counts, version, current, is_deleting)


def _foreign(prefix: str, obj: Unstructured, type_: str) -> Branch:
    try:
        conditions = conditions_of(obj)
    except InvalidConditions:
        conditions = ()
    is_deleting = obj.metadata.deletion_timestamp is not None
    label = f"{prefix}{obj.kind}/{obj.metadata.name}{' (deleting)' if is_deleting else ''}"
    counts = _counts(obj.at("spec", "replicas"), obj.at("status", "readyReplicas"))
    version = obj.at("spec", "version")
    current = _outdated(obj.at("spec", "replicas"), obj.at("status", "upToDateReplicas"))
    return Branch(
        label, get(conditions, type_), (), conditions, obj.kind, counts, version if isinstance(version, str) else "", current, is_deleting
    )


def _counts(wanted: Any, ready: Any) -> str:
    return f"{ready if isinstance(ready, int) else 0}/{wanted}" if isinstance(wanted, int) else ""


def _outdated(wanted: Any, current: Any) -> str:
    """Return how many replicas are up to date, if not all are."""
    return f"{current}/{wanted}" if isinstance(wanted, int) and isinstance(current, int) and current < wanted else ""


def age(since: datetime | None, now: datetime) -> str:
    """Return an age, formatted as kubectl does."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
