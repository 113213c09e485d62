# ruff: noqa: E501 - tables are laid out to be read as such
"""Inspect the workload cluster: whether that is possible, Nodes, static Pods, etcd; and the resulting conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import assert_never

from clusterwright.api.copying import replace
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import NODE_ROLE_CONTROL_PLANE_LABEL
from clusterwright.conditions import has, is_true
from clusterwright.controllers.kit.conditions import CHECK_LOGS, decided, with_outcome
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.conditions import COMPONENTS_HEALTHY, ETCD_CLUSTER_HEALTHY, component_facts, etcd_facts
from clusterwright.controllers.kubeadmcontrolplane.conditions_v1beta1 import COMPONENTS_V1BETA1, ETCD_V1BETA1, mark
from clusterwright.controllers.kubeadmcontrolplane.etcd.matching import match_members
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run, say, say_decided
from clusterwright.controllers.kubeadmcontrolplane.machines.comparison import UP_TO_DATE
from clusterwright.controllers.kubeadmcontrolplane.machines.health import (
    LABELS_AND_TAINTS_SET,
    POD_HEALTHY,
    UNREADABLE,
    PodFacts,
    Unreadable,
    is_unreachable,
    node_ready_status,
)
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.member_health import MEMBER_HEALTHY, EtcdFacts, MemberFacts
from clusterwright.controllers.kubeadmcontrolplane.snapshot import Inspection, grace_period
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError
from clusterwright.tables import KEEP, OTHERWISE, Outcome, Row, Table, guard, message, unknown
from clusterwright.workload.access import EtcdError, EtcdMember, NotConnected

_FAILURES_UNTIL_DOWN = 5


# --------------------------------------------------------------------------------------------- whether we may


class Look(Enum):
    """The action on the health conditions of the control plane and its Machines."""

    NOT_YET = "say that health is unknown, and go on"
    KEEP = "say that health is unknown where nothing was said before, and end"
    FORGET = "say that health is unknown, and end"
    INSPECT = "look at Nodes, static Pods and etcd, and go on"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFacts:
    """The facts that decide whether the workload cluster is inspected. `initialized_since` is None before initialization."""

    initialized: bool
    initialized_since: datetime | None = None
    probed: datetime | None = None
    failures: int = 0
    now: datetime
    grace: timedelta
    connected: bool = False
    unusable: str = ""
    """Why the workload cluster cannot be used despite a connection."""


@guard("status.initialization.controlPlaneInitialized, and Initialized says so")
def initialized(f: ConnectionFacts) -> bool:
    return f.initialized


@guard("never probed with success, and few failures yet")
def never_probed(f: ConnectionFacts) -> bool:
    return f.probed is None and f.failures < _FAILURES_UNTIL_DOWN


@guard("last probe with success is longer ago than the grace period, and so is initialization")
def grace_over(f: ConnectionFacts) -> bool:
    since = max((t for t in (f.probed, f.initialized_since) if t is not None), default=None)
    return since is None or f.now - since > f.grace


@guard("connected")
def connected(f: ConnectionFacts) -> bool:
    return f.connected


@guard("what etcd needs is not there")
def unusable(f: ConnectionFacts) -> bool:
    return bool(f.unusable)


@message("Last successful probe at <time>")
def last_probe(f: ConnectionFacts) -> str:
    return f"Last successful probe at {f.probed.strftime('%Y-%m-%dT%H:%M:%SZ')}" if f.probed is not None else ""


@message("cannot get client for the workload cluster: <error>")
def unusable_text(f: ConnectionFacts) -> str:
    return f"cannot get client for the workload cluster: {f.unusable}"


# fmt: off
INSPECT: Table[ConnectionFacts] = Table(
    "Inspect",
    Row("not-initialized", ~initialized, unknown("InspectionFailed", "Waiting for Cluster control plane to be initialized"), act=Look.NOT_YET),
    Row("never-probed",    never_probed, unknown("ConnectionDown", "Remote connection not established yet"),                act=Look.KEEP),
    Row("grace-over",      grace_over,   unknown("ConnectionDown", last_probe),                                            act=Look.FORGET),
    Row("disconnected",    ~connected,   unknown("ConnectionDown", last_probe),                                            act=Look.KEEP),
    Row("unusable",        unusable,     unknown("InspectionFailed", CHECK_LOGS),                                          act=Look.FORGET, error=unusable_text),
    Row("inspect",         OTHERWISE,    KEEP,                                                                             act=Look.INSPECT),
    about="Whether the workload cluster is inspected; if not, the content of EtcdClusterHealthy, ControlPlaneComponentsHealthy and the health conditions of the Machines. A new connection starts a pass.",
    assuming=[~unusable | connected],
)
# fmt: on


async def _connection(writer: MachineWriter, run: Run) -> tuple[ConnectionFacts, Client | None, Exception | None]:
    seen, deps = run.done, writer.deps
    said = seen.condition(names.INITIALIZED)
    health = deps.workload.health(seen.cluster.key)
    facts = ConnectionFacts(
        initialized=seen.initialized and is_true(seen.conditions, names.INITIALIZED),
        initialized_since=said.last_transition_time if said is not None else None,
        probed=health.last_probe_success,
        failures=health.consecutive_failures,
        now=seen.now,
        grace=grace_period(deps.options),
    )
    if not facts.initialized:
        return facts, None, None
    try:
        client = await workload_client(deps, seen.cluster.key)
    except NotConnected:
        return facts, None, None
    except WorkloadUnavailable as error:
        return replace(facts, connected=True, unusable=str(error)), None, error
    return replace(facts, connected=True), client, None


async def inspect(writer: MachineWriter, run: Run) -> bool:
    """Refresh the health conditions of the control plane and its Machines, and write the Machines.

    Return False if the pass must end. Raises PassFailed if the Machines cannot be written.
    """
    for machine in run.done.owned:
        say_decided(run, machine.name, names.UP_TO_DATE, UP_TO_DATE.decide(machine))
    facts, client, cause = await _connection(writer, run)
    decision = run.decide_on(INSPECT, facts, cause)
    look = decision.chosen(Look)
    match look:
        case Look.NOT_YET | Look.FORGET:
            say_unknown(run, decision.outcome)
        case Look.KEEP:
            say_unknown(run, decision.outcome, only_unset=True)
        case Look.INSPECT if client is not None:
            await _inspect(writer, run, client)
        case Look.INSPECT | None:
            pass
        case never:
            assert_never(never)
    await writer.patch(run, [m.name for m in run.done.owned], names.MACHINE_OWNED_CONDITIONS)
    return look in {Look.NOT_YET, Look.INSPECT}


def say_unknown(run: Run, outcome: Outcome | None, *, only_unset: bool = False) -> None:
    """Set unknown health on the control plane and all Machines; with `only_unset`, keep what is already known."""
    seen, now = run.done, run.seen.now
    etcd = seen.managed_etcd and not (only_unset and has(seen.conditions, names.ETCD_CLUSTER_HEALTHY))
    components = not (only_unset and has(seen.conditions, names.COMPONENTS_HEALTHY))
    types: tuple[str, ...] = ()
    if components:
        run.become(with_outcome(run.object, names.COMPONENTS_HEALTHY, outcome, now))
        types += (names.NODE_LABELS_AND_TAINTS, *names.pod_conditions(managed_etcd=seen.managed_etcd))
    if etcd:
        run.become(with_outcome(run.object, names.ETCD_CLUSTER_HEALTHY, outcome, now))
        types += (names.ETCD_MEMBER,)
    for machine in seen.owned:
        for type in types:
            say(run, machine.name, type, outcome)


# ------------------------------------------------------------------------------------------------- looking


async def _inspect(writer: MachineWriter, run: Run, client: Client) -> None:
    """Inspect Nodes, Pods and etcd, and set every condition that follows.

    Conditions of Machines that are still valid are kept.
    """
    fresh = not writer.deps.workload.health(run.seen.cluster.key).inspected
    try:
        labelled = await client.list(Node, labels={NODE_ROLE_CONTROL_PLANE_LABEL: ""})
    except ApiError as error:
        run.done = replace(run.done, inspection=Inspection(nodes_error=str(error)))
        if fresh:
            for machine in run.done.owned:
                _say_pods(run, PodFacts(machine=machine, nodes_error=str(error)), {})
            _say_members(run, EtcdFacts(), nodes_listed=False)
    else:
        found = await _looked(writer, run, client, labelled, fresh=fresh)
        run.done = replace(run.done, inspection=found)
    _put_together(run, fresh=fresh)


async def _looked(writer: MachineWriter, run: Run, client: Client, labelled: Sequence[Node], *, fresh: bool) -> Inspection:
    by_name = {n.metadata.name: n for n in labelled}
    nodes: dict[str, Node] = {}
    for machine in run.done.owned:
        await _look_at_machine(run, client, machine, by_name, nodes, fresh=fresh)
    managed = run.done.managed_etcd
    etcd = await _ask_etcd(writer, run, nodes) if managed else EtcdFacts()
    matching = match_members(etcd.members, run.done.owned, nodes, run.seen.now) if managed else None
    if fresh:
        _say_members(run, etcd, nodes_listed=True)
    return Inspection(
        nodes=nodes,
        members=etcd.members,
        members_match=matching.holds if matching is not None else False,
        component_errors=_stray_nodes(run.done.owned, labelled),
        etcd_errors=matching.errors if matching is not None and etcd.members is not None else (),
    )


async def _look_at_machine(
    run: Run, client: Client, machine: ControlPlaneMachine, labelled: Mapping[str, Node], nodes: dict[str, Node], *, fresh: bool
) -> None:
    node: Node | None = None
    error: str | None = None
    if machine.has_node:
        node = labelled.get(machine.node)
        if node is None:
            try:
                node = await client.find(Node, ObjectKey("", machine.node))
            except ApiError as failure:
                error = str(failure)
        if node is not None:
            nodes[machine.node] = node
    if not fresh:
        return
    pods: dict[str, Pod | Unreadable | None] = {}
    if not machine.deleting and node is not None and not is_unreachable(node) and node_ready_status(node) != "Unknown":
        for type in names.pod_conditions(managed_etcd=run.done.managed_etcd):
            pods[type] = await _find_pod(client, _pod_name(type, machine))
    _say_pods(run, PodFacts(machine=machine, nodes_error=error, node=node), pods)


def _pod_name(type: str, machine: ControlPlaneMachine) -> str:
    return f"{names.COMPONENTS[type]}-{machine.node}"


async def _find_pod(client: Client, name: str) -> Pod | Unreadable | None:
    try:
        return await client.find(Pod, ObjectKey(names.KUBE_SYSTEM, name))
    except ApiError:
        return UNREADABLE


def _say_pods(run: Run, facts: PodFacts, pods: Mapping[str, Pod | Unreadable | None]) -> None:
    name = facts.machine.name
    for type in names.pod_conditions(managed_etcd=run.done.managed_etcd):
        about = replace(facts, pod=pods.get(type), pod_name=_pod_name(type, facts.machine))
        say_decided(run, name, type, POD_HEALTHY.decide(about))
    say_decided(run, name, names.NODE_LABELS_AND_TAINTS, LABELS_AND_TAINTS_SET.decide(facts))


def _say_members(run: Run, etcd: EtcdFacts, *, nodes_listed: bool) -> None:
    if not run.done.managed_etcd:
        return
    for machine in run.done.owned:
        facts = MemberFacts(machine=machine, nodes_listed=nodes_listed, etcd=etcd)
        say_decided(run, machine.name, names.ETCD_MEMBER, MEMBER_HEALTHY.decide(facts))


def _stray_nodes(machines: Sequence[ControlPlaneMachine], labelled: Sequence[Node]) -> tuple[str, ...]:
    """Return control plane Nodes without a Machine; none while a Machine comes up, because its Node is not linked yet."""
    if any(not m.has_node and not m.deleting for m in machines):
        return ()
    owned = {m.node for m in machines}
    strays = (n.metadata.name for n in labelled if n.metadata.name not in owned)
    return tuple(f"Control plane Node {name} does not have a corresponding Machine" for name in strays)


def _put_together(run: Run, *, fresh: bool) -> None:
    """Set the conditions of the control plane from those of its Machines."""
    now, components = run.seen.now, component_facts(run.done)
    run.become(decided(run.object, COMPONENTS_HEALTHY, run.decide_on(COMPONENTS_HEALTHY, components), now))
    if fresh:
        run.become(decided(run.object, COMPONENTS_V1BETA1, run.decide_on(COMPONENTS_V1BETA1, components), now))
    if run.done.managed_etcd:
        etcd = etcd_facts(run.done)
        run.become(decided(run.object, ETCD_CLUSTER_HEALTHY, run.decide_on(ETCD_CLUSTER_HEALTHY, etcd), now))
        if fresh:
            run.become(decided(run.object, ETCD_V1BETA1, run.decide_on(ETCD_V1BETA1, etcd), now))
    elif fresh:
        run.mark(mark(names.ETCD_CLUSTER_HEALTHY, "True"))


# ---------------------------------------------------------------------------------------------------- etcd


async def _ask_etcd(writer: MachineWriter, run: Run, nodes: Mapping[str, Node]) -> EtcdFacts:
    """Read status, members and alarms from one member: a healthy one if possible; one under deletion only if all are."""
    hosts = [m for m in run.done.owned if m.has_node]
    candidates = [m for m in [m for m in hosts if not m.deleting] or hosts if m.node in nodes]
    ordered = [m.node for m in sorted(candidates, key=lambda m: (not m.is_true(names.ETCD_MEMBER), m.name))]
    if not ordered:
        return EtcdFacts()
    try:
        etcd = await writer.deps.workload.etcd(run.seen.cluster.key, ordered)
    except (EtcdError, ApiError) as error:
        return EtcdFacts(asked=True, connect_error=root_cause(error))
    try:
        try:
            members = await etcd.members()
        except (EtcdError, ApiError) as error:
            return EtcdFacts(asked=True, members_error=root_cause(error))
        if not any(m.is_leader for m in members):
            return EtcdFacts(asked=True, leaderless=True)
        try:
            alarms = await etcd.alarms()
        except (EtcdError, ApiError) as error:
            return EtcdFacts(asked=True, alarms_error=root_cause(error))
    finally:
        await etcd.close()
    return EtcdFacts(asked=True, members=with_alarms(members, alarms), silent=await _silent(writer, run, candidates))


async def _silent(writer: MachineWriter, run: Run, machines: Sequence[ControlPlaneMachine]) -> dict[str, str]:
    """Return the members that do not answer, among those with unhealthy Pods: other members list them as long as they are members."""
    found: dict[str, str] = {}
    for machine in machines:
        if run.done.machine(machine.name).is_true(names.ETCD_POD):
            continue
        try:
            await (await writer.deps.workload.etcd(run.seen.cluster.key, [machine.node])).close()
        except (EtcdError, ApiError) as error:
            found[machine.node] = root_cause(error)
    return found


def with_alarms(members: Sequence[EtcdMember], alarms: Sequence[tuple[str, str]]) -> tuple[EtcdMember, ...]:
    """Return the members, each with its alarms."""
    return tuple(replace(m, alarms=tuple(alarm for member, alarm in alarms if member == m.id)) for m in members)


def root_cause(error: BaseException) -> str:
    """Return the text of the innermost failure."""
    while error.__cause__ is not None and str(error.__cause__):
        error = error.__cause__
    return str(error) or type(error).__name__
