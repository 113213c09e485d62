"""Looking into the workload cluster: whether we may, Nodes, static Pods, etcd; and what that means for conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from clusterwright.api.meta import ObjectKey, Unstructured
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.conditions import COMPONENTS_HEALTHY, ETCD_CLUSTER_HEALTHY, component_facts, etcd_facts
from clusterwright.controllers.kubeadmcontrolplane.health import (
    LABELS_AND_TAINTS_SET,
    MEMBER_HEALTHY,
    POD_HEALTHY,
    UNREADABLE,
    EtcdFacts,
    MemberFacts,
    PodFacts,
    Unreadable,
    is_unreachable,
    legacy_member_condition,
    legacy_pod_condition,
    match_members,
    node_ready_status,
)
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.scope import KUBE_SYSTEM, NODE, POD, EndOfPass, Scope
from clusterwright.controllers.kubeadmcontrolplane.snapshot import Inspection
from clusterwright.controllers.kubeadmcontrolplane.status import legacy_aggregate, legacy_machines_ready
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError
from clusterwright.workload.access import EtcdError, EtcdMember, NotConnected

WAITING_FOR_INITIALIZATION = "Waiting for Cluster control plane to be initialized"


def set_all(scope: Scope, reason: str, message: str, *, only_unset: bool = False) -> None:
    """Say on the control plane and all Machines that their health is unknown; `only_unset` spares a half that is known already."""
    etcd = not only_unset or scope.condition(names.ETCD_CLUSTER_HEALTHY) is None
    components = not only_unset or scope.condition(names.COMPONENTS_HEALTHY) is None
    if etcd and scope.managed_etcd:
        scope.set(names.ETCD_CLUSTER_HEALTHY, "Unknown", reason, message)
    if components:
        scope.set(names.COMPONENTS_HEALTHY, "Unknown", reason, message)
    for name in scope.machines:
        types: tuple[str, ...] = ()
        if components:
            types += (names.NODE_LABELS_AND_TAINTS, *names.pod_conditions(managed_etcd=scope.managed_etcd))
        if etcd and scope.managed_etcd:
            types += (names.ETCD_MEMBER,)
        for type in types:
            scope.set_on_machine(name, type, "Unknown", reason, message)


def set_up_to_date(scope: Scope) -> None:
    """Say on every Machine whether it is what the spec asks for."""
    for machine in scope.all_machines:
        if not machine.up_to_date.holds:
            text = "\n".join(f"* {m}" for m in machine.up_to_date.messages)
            scope.set_on_machine(machine.name, names.UP_TO_DATE, "False", "NotUpToDate", text)
        elif machine.update_in_progress or machine.update_pending:
            updating = machine.condition("Updating")
            said = updating.message if updating is not None and updating.status == "True" else ""
            scope.set_on_machine(machine.name, names.UP_TO_DATE, "False", "Updating", f"* {said or 'In-place update in progress'}")
        else:
            scope.set_on_machine(machine.name, names.UP_TO_DATE, "True", "UpToDate")


def set_legacy_machines_ready(scope: Scope) -> None:
    """The deprecated aggregate of the Machines' Ready."""
    condition = legacy_machines_ready(scope.all_machines, deleting=scope.deleting)
    if condition is not None:
        scope.v1beta1_conditions = v1beta1.set_condition(scope.v1beta1_conditions, condition, now=scope.now)


def drop_stale_etcd_condition(scope: Scope) -> None:
    """With external etcd its health is not ours to report; what an older version wrote goes."""
    if not scope.managed_etcd:
        scope.conditions = tuple(c for c in scope.conditions if c.type != names.ETCD_CLUSTER_HEALTHY)


async def reconcile_conditions(scope: Scope) -> None:
    """Refresh the health conditions of the control plane and its Machines, and write the Machines.

    Raises EndOfPass where there is no connection: its return wakes us. Raises PassFailed for other failures.
    """
    set_up_to_date(scope)
    drop_stale_etcd_condition(scope)
    outcome: EndOfPass | PassFailed | None = None
    try:
        await _inspect_if_possible(scope)
    except (EndOfPass, PassFailed) as end:
        outcome = end
    await scope.patch_machines(sorted(scope.machines), names.MACHINE_OWNED_CONDITIONS)
    if outcome is not None:
        raise outcome


async def _inspect_if_possible(scope: Scope) -> None:
    initialized = scope.condition(names.INITIALIZED)
    if not scope.initialized or initialized is None or initialized.status != "True":
        set_all(scope, "InspectionFailed", WAITING_FOR_INITIALIZATION)
        return
    health = scope.dependencies.workload.health(scope.cluster_key)
    if health.last_probe_success is None and health.consecutive_failures < 5:
        set_all(scope, "ConnectionDown", "Remote connection not established yet", only_unset=True)
        raise EndOfPass
    probed = health.last_probe_success
    text = f"Last successful probe at {probed.strftime('%Y-%m-%dT%H:%M:%SZ')}" if probed is not None else ""
    since = max((t for t in (probed, initialized.last_transition_time) if t is not None), default=None)
    if since is None or scope.now - since > grace_period(scope):
        set_all(scope, "ConnectionDown", text)
        raise EndOfPass
    try:
        client = await workload_client(scope)
    except NotConnected:
        set_all(scope, "ConnectionDown", text, only_unset=True)
        raise EndOfPass from None
    except WorkloadUnavailable as error:
        set_all(scope, "InspectionFailed", names.CHECK_LOGS)
        raise PassFailed(f"cannot get client for the workload cluster: {error}") from error
    await inspect(scope, client)


def grace_period(scope: Scope) -> timedelta:
    """How long remote conditions keep their last value without a connection."""
    configured = scope.dependencies.options.get("remote-conditions-grace-period")
    return configured if isinstance(configured, timedelta) else names.REMOTE_CONDITIONS_GRACE


async def inspect(scope: Scope, client: Client) -> None:
    """Look at Nodes, Pods and etcd, and set every condition that follows."""
    inspected = scope.dependencies.workload.health(scope.cluster_key).inspected
    scope.inspection = await _look(scope, client, inspected=inspected)
    _aggregate(scope, legacy=not inspected)


async def _look(scope: Scope, client: Client, *, inspected: bool) -> Inspection:
    try:
        labelled = await client.list(NODE, labels={names.NODE_ROLE: ""})
    except ApiError as error:
        if not inspected:
            for machine in scope.all_machines:
                _set_pod_conditions(scope, machine, PodFacts(machine=machine, nodes_error=str(error)), {})
                _set_member_condition(scope, machine, nodes_listed=False, etcd=EtcdFacts())
        return Inspection(done=True, nodes_error=str(error))
    by_name = {n.key.name: n for n in labelled}
    nodes: dict[str, Unstructured] = {}
    for machine in scope.all_machines:
        await _look_at_machine(scope, client, machine, by_name, nodes, inspected=inspected)
    etcd = await _ask_etcd(scope, nodes) if scope.managed_etcd else EtcdFacts()
    matching = match_members(etcd.members, scope.all_machines, nodes, scope.now) if scope.managed_etcd else None
    if not inspected:
        for machine in scope.all_machines:
            _set_member_condition(scope, machine, nodes_listed=True, etcd=etcd)
    return Inspection(
        done=True,
        nodes=nodes,
        members=etcd.members,
        members_match=matching.holds if matching is not None else False,
        component_errors=_stray_nodes(scope.all_machines, labelled),
        etcd_errors=matching.errors if matching is not None and etcd.members is not None else (),
    )


async def _look_at_machine(
    scope: Scope,
    client: Client,
    machine: ControlPlaneMachine,
    labelled: dict[str, Unstructured],
    nodes: dict[str, Unstructured],
    *,
    inspected: bool,
) -> None:
    node: Unstructured | None = None
    error: str | None = None
    if machine.has_node:
        node = labelled.get(machine.node)
        if node is None:
            try:
                node = await client.find(NODE, ObjectKey("", machine.node))
            except ApiError as failure:
                error = str(failure)
        if node is not None:
            nodes[machine.node] = node
    if inspected:
        return
    facts = PodFacts(machine=machine, nodes_error=error, node=node)
    pods: dict[str, Unstructured | Unreadable | None] = {}
    if not machine.deleting and node is not None and not is_unreachable(node) and node_ready_status(node) != "Unknown":
        for type in names.pod_conditions(managed_etcd=scope.managed_etcd):
            pods[type] = await _find_pod(client, f"{names.COMPONENTS[type]}-{machine.node}")
    _set_pod_conditions(scope, machine, facts, pods)


async def _find_pod(client: Client, name: str) -> Unstructured | Unreadable | None:
    try:
        return await client.find(POD, ObjectKey(KUBE_SYSTEM, name))
    except ApiError:
        return UNREADABLE


def _set_pod_conditions(
    scope: Scope, machine: ControlPlaneMachine, facts: PodFacts, pods: dict[str, Unstructured | Unreadable | None]
) -> None:
    for type in names.pod_conditions(managed_etcd=scope.managed_etcd):
        about = PodFacts(
            machine=facts.machine,
            nodes_error=facts.nodes_error,
            node=facts.node,
            pod=pods.get(type),
            pod_name=f"{names.COMPONENTS[type]}-{machine.node}",
        )
        decision = POD_HEALTHY.decide(about)
        outcome = decision.outcome
        if outcome is not None:
            scope.set_on_machine(machine.name, type, outcome.status, outcome.reason, outcome.message)
            scope.set_v1beta1_on_machine(machine.name, type, legacy_pod_condition(decision.row, outcome.reason, outcome.message, about))
    outcome = LABELS_AND_TAINTS_SET.decide(facts).outcome
    if outcome is not None:
        scope.set_on_machine(machine.name, names.NODE_LABELS_AND_TAINTS, outcome.status, outcome.reason, outcome.message)


def _set_member_condition(scope: Scope, machine: ControlPlaneMachine, *, nodes_listed: bool, etcd: EtcdFacts) -> None:
    if not scope.managed_etcd:
        return
    facts = MemberFacts(machine=machine, nodes_listed=nodes_listed, etcd=etcd)
    decision = MEMBER_HEALTHY.decide(facts)
    if decision.outcome is not None:
        outcome = decision.outcome
        scope.set_on_machine(machine.name, names.ETCD_MEMBER, outcome.status, outcome.reason, outcome.message)
        scope.set_v1beta1_on_machine(machine.name, names.ETCD_MEMBER, legacy_member_condition(decision.row, outcome.message, facts))


def _stray_nodes(machines: Sequence[ControlPlaneMachine], labelled: Sequence[Unstructured]) -> tuple[str, ...]:
    """Control plane Nodes of no Machine; while a Machine comes up, its Node is nobody's yet and that is no error."""
    if any(not m.has_node and not m.deleting for m in machines):
        return ()
    owned = {m.node for m in machines}
    return tuple(f"Control plane Node {n.key.name} does not have a corresponding Machine" for n in labelled if n.key.name not in owned)


async def _ask_etcd(scope: Scope, nodes: dict[str, Unstructured]) -> EtcdFacts:
    """Status, members and alarms from one member: a healthy one if there is any; one that leaves only if all do."""
    hosts = [m for m in scope.all_machines if m.has_node]
    candidates = [m for m in [m for m in hosts if not m.deleting] or hosts if m.node in nodes]
    ordered = [m.node for m in sorted(candidates, key=lambda m: (not m.is_true(names.ETCD_MEMBER), m.name))]
    if not ordered:
        return EtcdFacts()
    try:
        etcd = await scope.dependencies.workload.etcd(scope.cluster_key, ordered)
    except (EtcdError, ApiError) as error:
        return EtcdFacts(asked=True, connect_error=root_cause(error))
    try:
        endpoint = str(getattr(etcd, "endpoint", f"etcd-{ordered[0]}"))
        if etcd.status.errors:
            return EtcdFacts(asked=True, endpoint=endpoint, status_errors=tuple(etcd.status.errors))
        try:
            members = await etcd.members()
        except (EtcdError, ApiError) as error:
            return EtcdFacts(asked=True, endpoint=endpoint, members_error=root_cause(error))
        try:
            alarms = await etcd.alarms()
        except (EtcdError, ApiError) as error:
            return EtcdFacts(asked=True, endpoint=endpoint, alarms_error=root_cause(error))
    finally:
        await etcd.close()
    return EtcdFacts(asked=True, endpoint=endpoint, members=with_alarms(members, alarms), silent=await _silent(scope, candidates))


async def _silent(scope: Scope, machines: Sequence[ControlPlaneMachine]) -> dict[str, str]:
    """Of the members whose Pods are not known to be healthy, those that do not answer: others list them for as long as they are members."""
    found: dict[str, str] = {}
    for machine in machines:
        if scope.machines[machine.name].is_true(names.ETCD_POD):
            continue
        try:
            await (await scope.dependencies.workload.etcd(scope.cluster_key, [machine.node])).close()
        except (EtcdError, ApiError) as error:
            found[machine.node] = root_cause(error)
    return found


def with_alarms(members: Sequence[EtcdMember], alarms: Sequence[tuple[str, str]]) -> tuple[EtcdMember, ...]:
    """The members, each with its alarms."""
    return tuple(
        EtcdMember(
            id=m.id,
            name=m.name,
            is_learner=m.is_learner,
            is_leader=m.is_leader,
            peer_urls=m.peer_urls,
            alarms=tuple(alarm for member, alarm in alarms if member == m.id),
        )
        for m in members
    )


def root_cause(error: BaseException) -> str:
    """The innermost failure's text."""
    while error.__cause__ is not None and str(error.__cause__):
        error = error.__cause__
    return str(error) or type(error).__name__


def _aggregate(scope: Scope, *, legacy: bool) -> None:
    machines = scope.all_machines
    decision = COMPONENTS_HEALTHY.decide(component_facts(machines, scope.inspection, managed_etcd=scope.managed_etcd))
    scope.set_outcome(names.COMPONENTS_HEALTHY, decision.outcome)
    scope.rows[names.COMPONENTS_HEALTHY] = decision.row
    if scope.managed_etcd:
        decision = ETCD_CLUSTER_HEALTHY.decide(etcd_facts(machines, scope.inspection))
        scope.set_outcome(names.ETCD_CLUSTER_HEALTHY, decision.outcome)
        scope.rows[names.ETCD_CLUSTER_HEALTHY] = decision.row
    if legacy:
        for type, condition in legacy_aggregate(machines, scope.inspection, managed_etcd=scope.managed_etcd).items():
            scope.set_v1beta1(type, *condition)
