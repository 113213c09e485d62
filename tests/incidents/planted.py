"""For each incident a bug that takes our defence out: with it the scenario must fail."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from clusterwright.controllers.cluster import snapshot as cluster_snapshot
from clusterwright.controllers.cluster.snapshot import Descendants
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.etcd import removal
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import MembershipError
from clusterwright.tables import Table

C = "clusterwright.controllers"
KCP = f"{C}.kubeadmcontrolplane"


@dataclass(frozen=True)
class Bug:
    """What it does, in words; a part of what the scenario complains of; and the hand that plants it, for the life of the process."""

    what: str
    complaint: str
    plant: Callable[[], None]


def put(module: str, name: str, value: Any) -> Callable[[], None]:
    """Replace a name of a module, or `Class.name` in it."""

    def plant() -> None:
        holder: Any = import_module(module)
        *outer, last = name.split(".")
        for step in outer:
            holder = getattr(holder, step)
        assert hasattr(holder, last), f"{module}.{name} is not there any more"
        setattr(holder, last, value)

    return plant


def without_rows(module: str, table: str, *rows: str) -> Callable[[], None]:
    """Take rows out of a decision table."""

    def plant() -> None:
        found: Table[Any] = getattr(import_module(module), table)
        assert set(rows) <= {name for row in found.rows for name in row.names}, f"{table} has no rows {rows}"
        object.__setattr__(found, "rows", tuple(row for row in found.rows if not set(row.names) & set(rows)))

    return plant


def both(*plants: Callable[[], None]) -> Callable[[], None]:
    """Do all of it."""

    def plant() -> None:
        for each in plants:
            each()

    return plant


def forgetful() -> Callable[[], None]:
    """Let processes read their caches as they are: what they wrote themselves, answered or not, is not known there."""
    return both(
        put("clusterwright.runtime.informer", "Informer.wrote", lambda *_, **__: True),
        put("clusterwright.runtime.cache", "Cache.doubts", lambda *_: None),
    )


async def _cached_choice(self: Any, run: Any) -> Any:
    return [m for m in self._in_order(run)[: run.done.surplus] if m.metadata.deletion_timestamp is None]


async def _nothing(*_: Any, **__: Any) -> Any:
    return []


async def _without_limit(self: Any, run: Any, family: str) -> Any:
    return tuple(run.done.machines or ()), None


async def _not_behind(self: Any, run: Any) -> bool:
    return False


def _workers_first() -> Callable[[Any], tuple[Any, ...]]:
    """Return what deletes the Machines of MachineSets before anything else."""
    rightly, first = cluster_snapshot.owned_children, set[str]()

    def children(seen: Any) -> tuple[Any, ...]:
        workers = (seen.descendants or Descendants()).worker_machines
        if not first:
            first.update(m.metadata.name for m in workers)
        return tuple(m for m in workers if m.metadata.name in first) or rightly(seen)

    return children


def _shrink_alive(rollout: Any, state: Any, *, all_of_them: bool) -> None:
    """Count Machines that never came up as if they were available."""
    for old in rollout.old:
        if old.available == old.actual:
            rollout.intents[old.name] = max(old.wanted - state.budget, 0)


async def _not_moved(self: Any, leader: str, error: Exception) -> None:
    raise MembershipError("failed to move etcd leadership") from error


async def _must_be_a_member(writer: Any, run: Any, machine: Any) -> bool:
    if all(m.name != machine.node for m in run.done.inspection.members or ()):
        raise PassFailed(f"{machine.name} is not a member")
    return await LEAVE(writer, run, machine)


async def _left(*_: Any) -> bool:
    return True


def _unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


MS = f"{C}.machineset"
MD = f"{C}.machinedeployment"

LEAVE = removal._leave_etcd

PLANTED: dict[str, Bug] = {
    "cluster-api#14197": Bug(
        "a learner without a name is nobody's at once",
        "was removed before it had a name",
        put(f"{KCP}.guards", "LEARNER_GRACE", timedelta()),
    ),
    "cluster-api#12711": Bug(
        "a leader that does not answer keeps its Machine",
        "3 Machines are ready",
        put(f"{KCP}.etcd.membership", "Membership._require_another", _not_moved),
    ),
    "cluster-api#4365": Bug(
        "a member that is gone already is an error", "3 Machines are ready", put(f"{KCP}.etcd.removal", "_leave_etcd", _must_be_a_member)
    ),
    "k0smotron#991": Bug("nobody leaves etcd", "was never removed from etcd", put(f"{KCP}.etcd.removal", "_leave_etcd", _left)),
    "k0smotron#1481": Bug(
        "a member may go whoever is left, and etcd itself does not mind",
        "the voting members of etcd are []",
        both(
            without_rows(f"{KCP}.machines.member_health", "MEMBER_HEALTHY", "learner"),
            put(f"{KCP}.etcd.membership", "Membership._require_quorum", _nothing),
            put(f"{KCP}.etcd.removal", "forward_leadership", _nothing),
            put(f"{KCP}.etcd.removal", "project_etcd", lambda *_, **__: SimpleNamespace(safe=True)),
            put("clusterwright.inmemory.etcd", "check_removal", lambda *_: None),
        ),
    ),
    "cluster-api#13649": Bug(
        "names of MachineSets are random, and neither own writes nor what the API server has are looked at",
        "MachineSets were made for one template",
        both(
            put(f"{MD}.desired", "new_name", lambda maker, slot, taken: (_unique("w"), _unique("1"))),
            put(f"{MD}.reconciler", "MachineDeployments._is_behind", _not_behind),
            forgetful(),
        ),
    ),
    "k0smotron#1534": Bug(
        "names of control plane Machines are random, and own writes are not remembered",
        "control plane Machines were made for one replica",
        both(put(f"{KCP}.machines.creation", "machine_name", lambda **_: _unique("c")), forgetful()),
    ),
    "cluster-api#13827": Bug("a pause does not count", "began its rollout", without_rows(f"{MD}.plan", "STEPS", "paused")),
    "autoscaler#8494": Bug("the cache chooses", "was named, but", put(f"{MS}.reconciler", "MachineSets._to_delete", _cached_choice)),
    "cluster-api#13812": Bug(
        "nothing is cleaned up after a refusal",
        "is left behind without a Machine",
        both(put(f"{MS}.creation", "deleted_leftovers", _nothing), put(f"{MS}.creation", "Creator.sweep", _nothing)),
    ),
    "cluster-api#9629": Bug(
        "Clusters delete Machines, whoever owns these",
        "was made while the Cluster",
        put(f"{C}.cluster.plan", "owned_children", _workers_first()),
    ),
    "k0smotron#1489": Bug(
        "MachineSets whose Machines never came up are kept",
        "2 worker Machines are ready at v1.34.2",
        both(put(f"{MD}.rollout", "_shrink", _shrink_alive), put(f"{MD}.rollout", "break_deadlock", lambda _: None)),
    ),
    "cluster-api#14217": Bug(
        "a MachineDeployment may have any number of Machines",
        "workers where two are wanted",
        put(f"{MS}.reconciler", "MachineSets._existing", _without_limit),
    ),
    "cluster-api#13017": Bug(
        "a MachineSet that another manager has touched is of another template",
        "although nothing was changed but the number",
        put(
            f"{MD}.templates",
            "is_up_to_date",
            lambda machine_set, deployment: "example.com/made-by" not in machine_set.metadata.annotations,
        ),
    ),
}
