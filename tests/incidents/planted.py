"""For each incident a bug that takes our defence out: with it the scenario must fail."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.apiserver.schema import validation
from clusterwright.controllers.cluster import snapshot as cluster_snapshot
from clusterwright.controllers.cluster.snapshot import Descendants
from clusterwright.controllers.clusterresourceset import bindings
from clusterwright.controllers.kit.lookup import Missing
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import observing
from clusterwright.controllers.kubeadmcontrolplane.etcd import removal
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import MembershipError
from clusterwright.controllers.kubeadmcontrolplane.machines import comparison
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.controllers.machineset.moves import Fate
from clusterwright.controllers.topology import applying
from clusterwright.runtime.workqueue import WorkQueue
from clusterwright.tables import Table
from clusterwright.topology.extensions import ExtensionError
from clusterwright.workload import clusters, credentials

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


def _due_at_once(owner: Any, machine: Any, *, now: Any) -> Any:
    after = (owner.spec.get("rollout") or {}).get("after")
    found = COMPARE(owner, machine, now=now)
    return replace(found, rollout_due=bool(after) and machine.created < datetime.fromisoformat(str(after)))


async def _unverified(self: Any, cluster: Any) -> Any:
    context = await CONTEXT(self, cluster)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _kept_kubeconfig() -> Any:
    kept: dict[Any, bytes] = {}

    async def kubeconfig(self: Any, key: Any) -> bytes:
        if key not in kept:
            kept[key] = await KUBECONFIG(self, key)
        return kept[key]

    return kubeconfig


def _template_needed(self: Any, seen: Any, template: Any) -> Any:
    if isinstance(template, Missing):
        raise PassFailed("the template does not exist")
    return COMPARED(self, seen, template)


def _raw(kubelet: str, version: str) -> bool:
    return kubelet == version


def _refuse_silently(answer: Any, context: str) -> None:
    if answer.status != "Success":
        raise ExtensionError(f"{context}: got failure response, please check controller logs")


async def _all_is_spec(self: Any, *arguments: Any) -> Any:
    found = await CHANGE(self, *arguments)
    return replace(found, spec=found.any)


def _always_moved(machine: Any) -> Fate:
    return Fate.GONE if machine.metadata.deletion_timestamp is not None else Fate.MOVED


def _unlocked(self: Any) -> Any:
    patch = PATCH(self)
    if patch is not None:
        patch["metadata"] = {k: v for k, v in patch["metadata"].items() if k not in ("resourceVersion", "uid")}
    return patch


def _awaited(self: Any) -> str:
    sick = any(m.needs_remediation for m in self.owned)
    return "v1.36.0" if sick else AWAITED.fget(self)


def _deaf(self: Any, key: Any, *arguments: Any) -> None:
    if key not in self._processing:
        ADD(self, key, *arguments)


def _without_mercy(self: Any, node: Any, value: Any, path: str, old: Any, out: Any) -> int:
    return CHECK(self, node, value, path, validation.ABSENT, out)


CHECK = validation._Finder.check
ADD = WorkQueue.add
AWAITED: Any = ControlPlaneSnapshot.awaited_version
CHANGE = applying.Applier.change
PATCH = bindings.Binding.patch
COMPARED = observing.Observer._compared
COMPARE = comparison.compare
CONTEXT = credentials.EtcdAccess.context
KUBECONFIG = clusters.ClusterCache._kubeconfig
LEAVE = removal._leave_etcd

PLANTED: dict[str, Bug] = {
    "cluster-api#14197": Bug(
        "a learner without a name is nobody's at once",
        "was removed before it had a name",
        put(f"{KCP}.guards", "LEARNER_GRACE", timedelta()),
    ),
    "cluster-api#13667": Bug("no member is ever a stray", "the learner is removed", put(f"{KCP}.guards", "stray_member", lambda _: None)),
    "cluster-api#3113": Bug(
        "kubeconfigs are not renewed", "the kubeconfig is renewed", put(f"{KCP}.certificates", "ROTATE_BEFORE", timedelta())
    ),
    "cluster-api#13416": Bug(
        "the wait after failures does not grow",
        "writes were tried in ten minutes",
        put("clusterwright.runtime.workqueue", "Backoff.delay", lambda *_: 3.0),
    ),
    "cluster-api-provider-aws#6084": Bug(
        "what changes during a pass is lost", "3 worker Machines are ready", put("clusterwright.runtime.workqueue", "WorkQueue.add", _deaf)
    ),
    "magnum-cluster-api#1121": Bug(
        "what an object had before is judged again",
        "an annotation of the old template is refused",
        put("clusterwright.apiserver.schema.validation", "_Finder.check", _without_mercy),
    ),
    "cluster-api-provider-metal3#3603": Bug(
        "finalizers stay when objects are moved", "left in the source", put("clusterwright.moving.plan", "LET_GO", {"metadata": {}})
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
    "cluster-api#13558": Bug(
        "a template is needed to delete, too", "Cluster c is gone", put(f"{KCP}.observing", "Observer._compared", _template_needed)
    ),
    "cluster-api#13404": Bug(
        "the time in rolloutAfter is not waited for", "began before its time", put(f"{KCP}.observing", "compare", _due_at_once)
    ),
    "cluster-api#14086": Bug(
        "versions are compared as strings",
        "UpToDate of",
        both(put(f"{KCP}.machines.comparison", "runs", _raw), put(f"{C}.topology.current", "runs", _raw)),
    ),
    "cluster-api#13939": Bug(
        "nothing ends a call to etcd",
        "3 Machines are ready",
        both(put("clusterwright.workload.etcd", "DIAL_TIMEOUT", 1e6), put("clusterwright.workload.etcd", "CALL_TIMEOUT", 1e6)),
    ),
    "cluster-api#13765": Bug(
        "any certificate will do", "says 'certificate'", put("clusterwright.workload.credentials", "EtcdAccess.context", _unverified)
    ),
    "cluster-api#13949": Bug(
        "a kubeconfig in a Secret may ask for anything",
        "names a program",
        put("clusterwright.api.kubeconfig", "_FOREIGN_TO_INLINE", {"clusters": {}, "users": {}}),
    ),
    "cluster-api-provider-rke2#919": Bug(
        "a kubeconfig is read once",
        "RemoteConnectionProbe",
        put("clusterwright.workload.clusters", "ClusterCache._kubeconfig", _kept_kubeconfig()),
    ),
    "cluster-api#11591": Bug(
        "a Machine is drained as long as it is there", "Machine w-", put(f"{C}.machine.node_access", "_is_past_the_node", lambda *_: False)
    ),
    "cluster-api#13508": Bug("no wait is ever over", "Machine w-", put(f"{C}.machine.node_access", "is_over", lambda *_: False)),
    "cluster-api#13768": Bug(
        "Machines may take any time to start",
        "3 worker Machines are ready",
        without_rows(f"{C}.machinehealthcheck.conditions", "HEALTH_CHECK_SUCCEEDED", "node-startup-timeout"),
    ),
    "cluster-api#5451": Bug(
        "remediation has no limit", "although too many are down", put(f"{C}.machinehealthcheck.limits", "Limit.allows", lambda *_: True)
    ),
    "cluster-api#13937": Bug(
        "any Secret of that name will do",
        "the Secret was replaced",
        both(
            put(f"{C}.kubeadmconfig.material", "why_foreign", lambda *_: ""), put(f"{C}.kubeadmconfig.material", "ensure_owner", _nothing)
        ),
    ),
    "cluster-api#13315": Bug(
        "files are written as they are",
        "do not name the version",
        put(f"{C}.kubeadmconfig.file_templates", "rendered", lambda file, *_, **__: file),
    ),
    "cluster-api#1351": Bug(
        "Nodes are deleted though their cluster goes",
        "Cluster c is gone",
        both(
            without_rows(f"{C}.machine.node_access", "NODE_HANDLING", "cluster-deleting", "control-plane-deleting", "last-control-plane"),
            put(f"{C}.machine.node_access", "node_may_stay", lambda *_: False),
        ),
    ),
    "cluster-api#13506": Bug(
        "an upgrade plan has its last version only",
        "2 Machines are ready at v1.36.0",
        put("clusterwright.topology.planning", "_from_list", lambda versions, own, wanted: list(versions[-1:])),
    ),
    "cluster-api#13869": Bug(
        "nothing is remediated before the version of the topology is reached",
        "is gone",
        put(f"{KCP}.snapshot", "ControlPlaneSnapshot.awaited_version", property(_awaited)),
    ),
    "cluster-api#13303": Bug(
        "pinned workers follow the topology as all others",
        "2 worker Machines are ready at v1.34.0",
        put("clusterwright.topology.desired", "pins", lambda *_: {}),
    ),
    "cluster-api#13813": Bug(
        "what an extension says stays in the log",
        "no capacity is left in zone b",
        put("clusterwright.runtimesdk.client", "refuse_failures", _refuse_silently),
    ),
    "cluster-api#5413": Bug(
        "every change of a template rotates it", "for a label", put(f"{C}.topology.applying", "Applier.change", _all_is_spec)
    ),
    "cluster-api#13983": Bug(
        "an update in place uses the whole surge",
        "Machines were made to update two in place",
        put(f"{MD}.inplace", "limit_growth", lambda *_, **__: None),
    ),
    "cluster-api#13886": Bug(
        "Machines without Nodes are updated in place, too", "3 worker Machines are ready", put(f"{MS}.moves", "fate", _always_moved)
    ),
    "cluster-api#3357": Bug(
        "bindings stay",
        "outlives its Cluster",
        without_rows(f"{C}.clusterresourcesetbinding.plan", "FATE", "cluster-gone", "cluster-deleting"),
    ),
    "cluster-api#10655": Bug(
        "bindings are written unlocked", "was overwritten", put(f"{C}.clusterresourceset.bindings", "Binding.patch", _unlocked)
    ),
    "cluster-api#3453": Bug(
        "nobody looks for a set's entries",
        "the binding names two",
        put(f"{C}.clusterresourceset.reconciler", "ResourceSets._unbind", _nothing),
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
