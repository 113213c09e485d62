"""A Cluster as a tree of the objects that make it up, with the condition that sums each up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from clusterwright.api.meta import Condition, Object, Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, UPGRADE_STEP_ANNOTATION
from clusterwright.conditions import get, v1beta1
from clusterwright.conditions.foreign import InvalidConditions, conditions_of

_COLUMNS = ("NAME", "STATUS", "REASON", "SINCE", "MESSAGE")


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree and what hangs below it."""

    label: str
    condition: Condition | None = None
    children: tuple[Branch, ...] = ()
    conditions: tuple[Condition, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Parts:
    """What a Cluster is made of, beside its infrastructure and control plane."""

    machines: Sequence[Machine] = ()
    machine_sets: Sequence[MachineSet] = ()
    deployments: Sequence[MachineDeployment] = ()
    pools: Sequence[MachinePool] = ()
    health_checks: Sequence[MachineHealthCheck] = ()


def cluster_tree(cluster: Cluster, infrastructure: Unstructured | None, control_plane: Unstructured | None, parts: Parts) -> Branch:
    """The tree of a Cluster."""
    leaders = [m for m in parts.machines if CONTROL_PLANE_LABEL in m.metadata.labels]
    children: list[Branch] = [_topology(cluster)] if cluster.spec.topology is not None else []
    if infrastructure is not None:
        children.append(_foreign("ClusterInfrastructure - ", infrastructure, "Ready"))
    if control_plane is not None:
        branch = _foreign("ControlPlane - ", control_plane, "Available")
        children.append(Branch(branch.label, branch.condition, tuple(map(_machine, leaders)), branch.conditions))
    elif leaders:
        children.append(Branch("ControlPlane", None, tuple(map(_machine, leaders))))
    if workers := tuple(_workers(parts)):
        children.append(Branch("Workers", None, workers))
    if parts.health_checks:
        checks = tuple(_object(c, "RemediationAllowed", ()) for c in parts.health_checks)
        children.append(Branch("HealthChecks", None, checks))
    return _object(cluster, "Available", tuple(children))


def _topology(cluster: Cluster) -> Branch:
    """Of which class the Cluster is, of which version it shall be, and how far an upgrade is."""
    topology = cluster.spec.topology
    assert topology is not None
    namespace = topology.class_ref.namespace
    name = f"{namespace}/{topology.class_ref.name}" if namespace else topology.class_ref.name
    step = cluster.metadata.annotations.get(UPGRADE_STEP_ANNOTATION, "")
    label = f"Topology - ClusterClass/{name} {topology.version}" + (f" (upgrade step {step})" if step else "")
    return Branch(label, get(cluster.status.conditions, "TopologyReconciled"))


def _workers(parts: Parts) -> Iterator[Branch]:
    """Deployments with their sets, sets without a deployment, pools, and the Machines that nobody controls."""
    workers = [m for m in parts.machines if CONTROL_PLANE_LABEL not in m.metadata.labels]

    def machine_set(obj: MachineSet) -> Branch:
        return _object(obj, "MachinesReady", tuple(map(_machine, _controlled(workers, obj))))

    owners: list[Object] = [*parts.deployments, *parts.machine_sets, *parts.pools]
    for deployment in parts.deployments:
        sets = [s for s in _controlled(parts.machine_sets, deployment) if s.spec.replicas or s.status.replicas]
        yield _object(deployment, "Available", tuple(map(machine_set, sets)))
    for alone in parts.machine_sets:
        if not any(_controls(d, alone) for d in parts.deployments):
            yield machine_set(alone)
    for pool in parts.pools:
        yield _pool(pool, tuple(map(_machine, _controlled(workers, pool))))
    yield from (_machine(m) for m in workers if not any(_controls(o, m) for o in owners))


def _pool(pool: MachinePool, children: tuple[Branch, ...]) -> Branch:
    """A pool: it says how it is by its deprecated conditions only."""
    branch = _object(pool, "Ready", children)
    old = v1beta1.get(v1beta1.reporter_conditions(pool), "Ready")
    if branch.condition is not None or old is None:
        return branch
    ready = Condition(
        type="Ready", status=old.status, reason=old.reason, message=old.message, last_transition_time=old.last_transition_time
    )
    return Branch(branch.label, ready, children, branch.conditions)


T = TypeVar("T", bound=Object)


def _controlled(objects: Sequence[T], owner: Object) -> list[T]:
    return [o for o in objects if _controls(owner, o)]


def _controls(owner: Object, obj: Object) -> bool:
    return any(r.controller and (r.kind, r.name) == (owner.kind, owner.metadata.name) for r in obj.metadata.owner_references)


def _machine(machine: Machine) -> Branch:
    return _object(machine, "Ready", ())


def _object(obj: Object, type_: str, children: tuple[Branch, ...]) -> Branch:
    conditions = tuple(getattr(getattr(obj, "status", None), "conditions", ()))
    suffix = " (deleting)" if obj.metadata.deletion_timestamp is not None else ""
    return Branch(f"{obj.kind}/{obj.metadata.name}{suffix}", get(conditions, type_), children, conditions)


def _foreign(prefix: str, obj: Unstructured, type_: str) -> Branch:
    try:
        conditions = conditions_of(obj)
    except InvalidConditions:
        conditions = ()
    suffix = " (deleting)" if obj.metadata.deletion_timestamp is not None else ""
    return Branch(f"{prefix}{obj.kind}/{obj.metadata.name}{suffix}", get(conditions, type_), (), conditions)


def render(root: Branch, now: datetime, *, show_conditions: bool = False) -> str:
    """The tree as aligned lines; with all conditions of every object, if wanted."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    rows += _rows(root, "", "", now, show_conditions=show_conditions)
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS) - 1)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows)


def _rows(branch: Branch, lead: str, below: str, now: datetime, *, show_conditions: bool) -> Iterator[tuple[str, ...]]:
    yield (lead + branch.label, *_cells(branch.condition, now))
    hanging = "│ " if branch.children else "  "
    if show_conditions:
        for condition in branch.conditions:
            if branch.condition is None or condition.type != branch.condition.type:
                yield (f"{below}{hanging}  {condition.type}", *_cells(condition, now))
    for index, child in enumerate(branch.children):
        is_last = index == len(branch.children) - 1
        yield from _rows(
            child, below + ("└─" if is_last else "├─"), below + ("  " if is_last else "│ "), now, show_conditions=show_conditions
        )


def _cells(condition: Condition | None, now: datetime) -> tuple[str, ...]:
    if condition is None:
        return "", "", "", ""
    message = condition.message.split("\n")[0]
    more = condition.message.count("\n")
    return (
        condition.status,
        condition.reason,
        age(condition.last_transition_time, now),
        message + (f" ... ({more} more)" if more else ""),
    )


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, as kubectl writes it."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
