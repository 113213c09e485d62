"""Rollout and scale: add a Machine, remove one, or update one in place."""

from __future__ import annotations

from typing import Final, assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.conditions import v1beta1
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.addons import kubeadm_config
from clusterwright.controllers.kubeadmcontrolplane.addons.permissions import ensure_permissions
from clusterwright.controllers.kubeadmcontrolplane.addons.upkeep import maintain
from clusterwright.controllers.kubeadmcontrolplane.conditions_v1beta1 import mark
from clusterwright.controllers.kubeadmcontrolplane.etcd import removal
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import MembershipError
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run
from clusterwright.controllers.kubeadmcontrolplane.machines.creation import create_machine
from clusterwright.controllers.kubeadmcontrolplane.machines.in_place import IN_PLACE, InPlaceFacts, Rollout, begin_update, can_update
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.selection import select_to_remove
from clusterwright.controllers.kubeadmcontrolplane.plan import SCALE, Scale
from clusterwright.controllers.kubeadmcontrolplane.preflight import PREFLIGHT, PreflightFacts, Verdict, verdict
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.workload.access import NotConnected

_PERMISSIONS_UNTIL: Final = (1, 38, 0)


async def scale(writer: MachineWriter, run: Run) -> None:
    """Carry out the decision of SCALE. Raises PassFailed."""
    choice = run.decide(SCALE).chosen(Scale)
    is_settled = not run.done.outdated and not any(m.is_updating for m in run.done.owned)
    if is_settled and v1beta1.get(run.done.v1beta1_conditions, "MachinesSpecUpToDate") is not None:
        run.mark(mark("MachinesSpecUpToDate", "True"))
    match choice:
        case Scale.PREPARE_ROLLOUT:
            await _prepare_rollout(writer, run)
        case Scale.SURGE:
            if await _prepare_rollout(writer, run):
                await _create(writer, run)
        case Scale.REPLACE:
            if await _prepare_rollout(writer, run):
                await _replace(writer, run)
        case Scale.INITIALIZE:
            run.mark(mark("Available", "False", "Info", "WaitingForKubeadmInit"))
            await create_machine(writer, run, join=False)
        case Scale.CREATE:
            await _create(writer, run)
        case Scale.DELETE:
            await _delete_one(writer, run, _chosen(run, ()))
        case Scale.TEND:
            await maintain(writer, run)
        case Scale.WAIT | None:
            pass
        case never:
            assert_never(never)


async def _prepare_rollout(writer: MachineWriter, run: Run) -> bool:
    """Prepare the workload cluster for the rollout. Return False without a connection: the pass ends."""
    seen = run.done
    text = f"Rolling {len(seen.outdated)} replicas with outdated spec ({seen.up_to_date} replicas up to date)"
    run.mark(mark("MachinesSpecUpToDate", "False", "Warning", "RollingUpdateInProgress", text))
    try:
        client = await workload_client(writer.deps, seen.cluster.key)
        if parse_version(seen.object.spec.version).release < _PERMISSIONS_UNTIL:
            await ensure_permissions(client)
        await kubeadm_config.update(client, seen.owner.version, kubeadm_config.mutator(seen.owner))
    except NotConnected:
        return False
    except (WorkloadUnavailable, ApiError, ValueError) as error:
        raise PassFailed(f"failed to update control plane: {error}") from error
    return True


async def _create(writer: MachineWriter, run: Run) -> None:
    facts = PreflightFacts.of(run.done, adding=True)
    if _may_go_on(run, verdict(facts, run.decide_on(PREFLIGHT, facts))):
        await create_machine(writer, run, join=True)


def _may_go_on(run: Run, found: Verdict) -> bool:
    run.done = replace(run.done, blockers=found.blockers)
    if found.complaint:
        text = f"Waiting for control plane to pass preflight checks to continue reconciliation: {found.complaint}"
        run.record("Warning", "ControlPlaneUnhealthy", text)
    return found.passed


def _chosen(run: Run, outdated: tuple[ControlPlaneMachine, ...]) -> ControlPlaneMachine:
    seen = run.done
    machine = select_to_remove(seen.owned, outdated, seen.cluster.failure_domains, managed_etcd=seen.managed_etcd)
    if machine is None:
        raise PassFailed("failed to pick control plane Machine to delete")
    return machine


async def _replace(writer: MachineWriter, run: Run) -> None:
    """Update the chosen Machine in place if possible, or delete it."""
    seen, machine = run.done, _chosen(run, run.done.outdated)
    every, others = PreflightFacts.of(seen), PreflightFacts.of(seen, excluding=machine.name)
    found, without = verdict(every, PREFLIGHT.decide(every)), verdict(others, PREFLIGHT.decide(others))
    facts = InPlaceFacts(
        machine=machine,
        is_enabled=bool(seen.features.get("InPlaceUpdates")),
        is_needed=seen.up_to_date < seen.desired,
        passed=found.passed,
        passed_without=without.passed,
    )
    match run.decide_on(IN_PLACE, facts).chosen(Rollout):
        case Rollout.WAIT:
            _may_go_on(run, without)  # what is said to be waited for is what the others need
            run.vote(found.wait)
        case Rollout.ASK if await can_update(writer, run, machine):
            await begin_update(writer, run, machine.name)
        case Rollout.REPLACE | Rollout.ASK | None:
            await _delete_one(writer, run, machine)
        case never:
            assert_never(never)


async def _delete_one(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> None:
    """Delete a Machine once the others are healthy and etcd has another leader. Raises PassFailed."""
    facts = PreflightFacts.of(run.done, excluding=machine.name)
    if not _may_go_on(run, verdict(facts, run.decide_on(PREFLIGHT, facts))):
        return
    seen = run.done
    try:
        await workload_client(writer.deps, seen.cluster.key)
        if seen.managed_etcd:
            if seen.inspection.nodes_error is not None:
                raise PassFailed(f"unable to forward etcd leadership: {seen.inspection.nodes_error}")
            await removal.forward_leadership(writer, run, machine)
        await writer.deps.client.delete(Machine, machine.key, uid=machine.uid)
    except (NotFound, NotConnected):
        return
    except WorkloadUnavailable as error:
        raise PassFailed(f"failed to create client to workload cluster: {error}") from error
    except MembershipError as error:
        raise PassFailed(str(error)) from error
    except PassFailed:
        raise
    except ApiError as error:
        text = f"Failed to delete control plane Machine {machine.name} for cluster {seen.cluster.key} control plane: {error}"
        run.record("Warning", "FailedScaleDown", text)
        raise PassFailed(text) from error
    known = run.done.machine(machine.name)
    metadata = replace(known.object.metadata, deletion_timestamp=seen.now)
    run.done = run.done.with_machine(replace(known, object=replace(known.object, metadata=metadata)))
