"""The guards of the Machine's tables. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from clusterwright.api.core import MachineTemplateSpec
from clusterwright.conditions import InvalidConditions, conditions_of, get, has
from clusterwright.controllers.kit.lookup import Found, Lookup, Missing, NotReferenced, Unreadable, core_subject, subject
from clusterwright.controllers.machine.snapshot import (
    MachineDone,
    MachineSnapshot,
    NodeFound,
    NodeMissing,
    NodeOutOfReach,
    NodeUnreadable,
    NodeUnsought,
)
from clusterwright.controllers.owned_machines import is_updating
from clusterwright.kubeadm.reached import runs
from clusterwright.tables import Subject, guard

PROBE_FAILURES = 5
"""The number of failed probes in a row after which a cluster that was never reached counts as unreachable."""


def the_config(s: MachineSnapshot) -> tuple[Subject, ...]:
    """Return the bootstrap config as the subject of guards."""
    return subject(s.machine.spec.bootstrap.config_ref, s.machine.metadata.namespace)


def the_infrastructure(s: MachineSnapshot) -> tuple[Subject, ...]:
    """Return the infrastructure machine as the subject of guards."""
    return subject(s.machine.spec.infrastructure_ref, s.machine.metadata.namespace)


def the_cluster(s: MachineSnapshot) -> tuple[Subject, ...]:
    """Return the Cluster as the subject of guards."""
    return (core_subject("Cluster", s.cluster.key),)


@guard("metadata.deletionTimestamp is set")
def deleting(s: MachineSnapshot) -> bool:
    return s.deleting


def conditions_are_valid(lookup: Lookup) -> bool:
    """Return whether the conditions of a found object can be parsed."""
    if not isinstance(lookup, Found):
        return True
    try:
        conditions_of(lookup.object)
    except InvalidConditions:
        return False
    return True


@guard("spec.bootstrap.configRef is not set")
def no_config_ref(s: MachineSnapshot) -> bool:
    return isinstance(s.bootstrap, NotReferenced)


@guard("the bootstrap config was read", about=the_config)
def config_found(s: MachineSnapshot) -> bool:
    return isinstance(s.bootstrap, Found)


@guard("the bootstrap config could not be read", about=the_config)
def config_unreadable(s: MachineSnapshot) -> bool:
    return isinstance(s.bootstrap, Unreadable)


@guard("the bootstrap config does not exist", about=the_config)
def config_missing(s: MachineSnapshot) -> bool:
    return isinstance(s.bootstrap, Missing)


@guard("its conditions are well-formed", about=the_config)
def config_conditions_valid(s: MachineSnapshot) -> bool:
    return conditions_are_valid(s.bootstrap)


@guard("bootstrap data was created")
def data_secret_created(s: MachineSnapshot) -> bool:
    return s.data_secret_created


@guard("the infrastructure machine was read", about=the_infrastructure)
def infra_found(s: MachineSnapshot) -> bool:
    return isinstance(s.infrastructure, Found)


@guard("the infrastructure machine could not be read", about=the_infrastructure)
def infra_unreadable(s: MachineSnapshot) -> bool:
    return isinstance(s.infrastructure, Unreadable)


@guard("the infrastructure machine does not exist", about=the_infrastructure)
def infra_missing(s: MachineSnapshot) -> bool:
    return isinstance(s.infrastructure, Missing | NotReferenced)


@guard("its conditions are well-formed", about=the_infrastructure)
def infra_conditions_valid(s: MachineSnapshot) -> bool:
    return conditions_are_valid(s.infrastructure)


@guard("infrastructure was provisioned")
def provisioned(s: MachineSnapshot) -> bool:
    return s.provisioned


@guard("Cluster status.initialization.infrastructureProvisioned", about=the_cluster)
def cluster_provisioned(s: MachineSnapshot) -> bool:
    return s.cluster.provisioned


@guard("Cluster ControlPlaneInitialized is True", about=the_cluster)
def control_plane_initialized(s: MachineSnapshot) -> bool:
    return s.cluster.initialized


def _initialized_at(s: MachineSnapshot) -> datetime | None:
    return (s.cluster.initialized_at or s.now) if s.cluster.initialized else None


@guard("no probe ever succeeded, and fewer than 5 failed in a row")
def not_probed_yet(s: MachineSnapshot) -> bool:
    return s.health.last_probe_success is None and s.health.consecutive_failures < PROBE_FAILURES


@guard("both conditions are reported")
def both_reported(s: MachineSnapshot) -> bool:
    return has(s.machine.status.conditions, "NodeReady") and has(s.machine.status.conditions, "NodeHealthy")


@guard("neither a probe succeeded nor the control plane became initialized within the grace period")
def grace_passed(s: MachineSnapshot) -> bool:
    moments = [t for t in (s.health.last_probe_success, _initialized_at(s)) if t is not None]
    return bool(moments) and s.now - max(moments) > s.grace_period


@guard("there is no connection to the workload cluster")
def out_of_reach(s: MachineDone) -> bool:
    return isinstance(s.node, NodeOutOfReach)


@guard("reading the Node failed")
def node_unreadable(s: MachineDone) -> bool:
    return isinstance(s.node, NodeUnreadable)


@guard("the Node was read")
def node_found(s: MachineDone) -> bool:
    return isinstance(s.node, NodeFound)


@guard("there is no Node")
def node_missing(s: MachineDone) -> bool:
    return isinstance(s.node, NodeMissing | NodeUnsought)


@guard("status.nodeRef is set")
def node_ref(s: MachineSnapshot) -> bool:
    return s.machine.status.node_ref is not None


@guard("spec.providerID is set")
def provider_id(s: MachineSnapshot) -> bool:
    return bool(s.machine.spec.provider_id)


@guard("deletion was worked on in this pass")
def deletion_worked_on(s: MachineDone) -> bool:
    return s.deletion is not None


@guard("an in-place update is in progress")
def updating(s: MachineSnapshot) -> bool:
    return is_updating(s.machine)


@guard("the update had something to say in this pass")
def update_spoke(s: MachineDone) -> bool:
    return s.updating is not None


@guard("a MachineSet of a MachineDeployment owns the Machine")
def deployed(s: MachineSnapshot) -> bool:
    return s.machine_set is not None and s.deployment is not None


def templates(s: MachineSnapshot) -> tuple[MachineTemplateSpec, MachineTemplateSpec]:
    """Return the template of the MachineSet, and the one that its MachineDeployment wants."""
    if s.machine_set is None or s.deployment is None:
        return MachineTemplateSpec(), MachineTemplateSpec()
    return s.machine_set.template, s.deployment.template


@guard("versions differ")
def version_differs(s: MachineSnapshot) -> bool:
    mine, wanted = templates(s)
    return mine.spec.version != wanted.spec.version


@guard("bootstrap templates differ")
def bootstrap_differs(s: MachineSnapshot) -> bool:
    mine, wanted = templates(s)
    return mine.spec.bootstrap != wanted.spec.bootstrap


@guard("the MachineSet has a bootstrap template")
def has_bootstrap_template(s: MachineSnapshot) -> bool:
    return templates(s)[0].spec.bootstrap.config_ref is not None


@guard("infrastructure templates differ")
def infrastructure_differs(s: MachineSnapshot) -> bool:
    mine, wanted = templates(s)
    return mine.spec.infrastructure_ref != wanted.spec.infrastructure_ref


@guard("failure domains differ")
def failure_domain_differs(s: MachineSnapshot) -> bool:
    mine, wanted = templates(s)
    return mine.spec.failure_domain != wanted.spec.failure_domain


@guard("MachineDeployment spec.rollout.after has passed, and the MachineSet was created before it")
def rollout_due(s: MachineSnapshot) -> bool:
    after = s.deployment.rollout_after if s.deployment is not None else None
    created = s.machine_set.created if s.machine_set is not None else None
    return after is not None and created is not None and after < s.now and created < after


@guard("the kubelet runs another release than spec.version")
def kubelet_differs(s: MachineSnapshot) -> bool:
    info = s.machine.status.node_info
    return info is not None and bool(info.kubelet_version) and not runs(info.kubelet_version, s.machine.spec.version)


@guard("Updating is True")
def updating_reported(s: MachineSnapshot) -> bool:
    found = get(s.machine.status.conditions, "Updating")
    return found is not None and found.status == "True"


@guard("a readiness gate names Ready itself")
def gates_name_ready(s: MachineSnapshot) -> bool:
    return any(gate.condition_type == "Ready" for gate in s.machine.spec.readiness_gates)


@guard("Ready is reported")
def ready_reported(s: MachineSnapshot) -> bool:
    return has(s.machine.status.conditions, "Ready")


@guard("Ready is True")
def ready(s: MachineSnapshot) -> bool:
    found = get(s.machine.status.conditions, "Ready")
    return found is not None and found.status == "True"


@guard("Ready has been True for spec.minReadySeconds")
def ready_long_enough(s: MachineSnapshot) -> bool:
    return ready(s) and remaining_min_ready(s) <= timedelta(0)


def remaining_min_ready(s: MachineSnapshot) -> timedelta:
    """Return how long the Machine must still stay Ready before it is Available."""
    found = get(s.machine.status.conditions, "Ready")
    since = found.last_transition_time if found is not None else None
    return timedelta(seconds=s.machine.spec.min_ready_seconds or 0) - (s.now - (since or s.now))
