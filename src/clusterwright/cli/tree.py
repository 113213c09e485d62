"""A Cluster as a tree of the objects that make it up, with the condition that sums each up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.meta import Condition, Object, Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, MACHINE_DEPLOYMENT_NAME_LABEL
from clusterwright.conditions import get
from clusterwright.conditions.foreign import InvalidConditions, conditions_of

_COLUMNS = ("NAME", "STATUS", "REASON", "SINCE", "MESSAGE")


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree and what hangs below it."""

    label: str
    condition: Condition | None = None
    children: tuple[Branch, ...] = ()
    conditions: tuple[Condition, ...] = field(default=())


def cluster_tree(
    cluster: Cluster,
    infrastructure: Unstructured | None,
    control_plane: Unstructured | None,
    machines: Sequence[Machine],
    deployments: Sequence[MachineDeployment],
) -> Branch:
    """The tree of a Cluster."""
    leaders = [m for m in machines if CONTROL_PLANE_LABEL in m.metadata.labels]
    workers = [m for m in machines if CONTROL_PLANE_LABEL not in m.metadata.labels]
    children: list[Branch] = []
    if infrastructure is not None:
        children.append(_foreign("ClusterInfrastructure - ", infrastructure, "Ready"))
    if control_plane is not None:
        branch = _foreign("ControlPlane - ", control_plane, "Available")
        children.append(Branch(branch.label, branch.condition, tuple(map(_machine, leaders)), branch.conditions))
    elif leaders:
        children.append(Branch("ControlPlane", None, tuple(map(_machine, leaders))))
    if workers or deployments:
        children.append(Branch("Workers", None, tuple(_workers(workers, deployments))))
    return _object(cluster, "Available", tuple(children))


def _workers(workers: Sequence[Machine], deployments: Sequence[MachineDeployment]) -> Iterator[Branch]:
    for deployment in deployments:
        name = deployment.metadata.name
        mine = [m for m in workers if m.metadata.labels.get(MACHINE_DEPLOYMENT_NAME_LABEL) == name]
        yield _object(deployment, "Available", tuple(map(_machine, mine)))
    yield from (_machine(m) for m in workers if MACHINE_DEPLOYMENT_NAME_LABEL not in m.metadata.labels)


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


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells, aligned; the first is the head."""
    listed = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in listed) for i in range(len(listed[0]))]
    return "\n".join("   ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in listed)
