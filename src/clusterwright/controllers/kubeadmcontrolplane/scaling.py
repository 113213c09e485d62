"""Rollout and scale: one Machine more or one less, when the preflight checks allow it."""

from __future__ import annotations

from dataclasses import replace

from clusterwright.api.core import Machine
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import addons, kubeadm_config_map, membership, objects
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, newest
from clusterwright.controllers.kubeadmcontrolplane.membership import MembershipError
from clusterwright.controllers.kubeadmcontrolplane.rollout import Step, max_surge, rollout_step
from clusterwright.controllers.kubeadmcontrolplane.scale import Preflight, preflight, select_to_remove
from clusterwright.controllers.kubeadmcontrolplane.scope import EndOfPass, Scope
from clusterwright.controllers.kubeadmcontrolplane.workload import WorkloadUnavailable, workload_client
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.workload.access import NotConnected

MACHINE = gvk_of(Machine)
_PERMISSIONS_UNTIL = (1, 38, 0)


async def reconcile_rollout(scope: Scope, outdated: tuple[ControlPlaneMachine, ...]) -> None:
    """Prepare the workload cluster for the new version, then replace Machines one at a time."""
    current = sum(m.up_to_date.holds for m in scope.all_machines)
    scope.set_v1beta1(
        "MachinesSpecUpToDate",
        "False",
        "Warning",
        "RollingUpdateInProgress",
        f"Rolling {len(outdated)} replicas with outdated spec ({current} replicas up to date)",
    )
    try:
        client = await workload_client(scope)
        version = parse_version(scope.control_plane.spec.version)
        if version.release < _PERMISSIONS_UNTIL:
            await addons.ensure_permissions(client)
        await kubeadm_config_map.update(client, scope.owner.version, kubeadm_config_map.mutator(scope.owner))
    except NotConnected:
        raise EndOfPass from None
    except (WorkloadUnavailable, ApiError, ValueError) as error:
        raise PassFailed(f"failed to update control plane: {error}") from error
    rollout = scope.control_plane.spec.rollout
    strategy = rollout.strategy if rollout is not None else None
    if strategy is not None and strategy.type not in {"", "RollingUpdate"}:
        raise EndOfPass
    # admission fills the strategy in; where it did not run, its defaults hold all the same
    update = strategy.rolling_update if strategy is not None else None
    surge = max_surge(update.max_surge if update is not None else None)
    await take(scope, rollout_step(current=len(scope.machines), desired=scope.desired, surge=surge), outdated)


async def take(scope: Scope, step: Step, outdated: tuple[ControlPlaneMachine, ...]) -> None:
    """Create or delete one Machine; raises EndOfPass while the preflight checks do not pass, PassFailed if it fails."""
    if step is Step.INITIALIZE:
        scope.set_v1beta1("Available", "False", "Info", "WaitingForKubeadmInit")
        await objects.create_machine(scope, join=False)
    elif step is Step.SCALE_UP:
        await _pass_or_end(scope, preflight(scope.preflight_facts, scale_up=True))
        await objects.create_machine(scope, join=True)
    else:
        machine = select_to_remove(scope.all_machines, outdated, scope.failure_domains, managed_etcd=scope.managed_etcd)
        if machine is None:
            raise PassFailed("failed to pick control plane Machine to delete")
        if outdated and await _wants_in_place_update(scope, machine):
            await objects.trigger_in_place_update(scope, machine.name)
            raise EndOfPass
        await _scale_down(scope, machine)


async def _pass_or_end(scope: Scope, verdict: Preflight) -> None:
    scope.blockers = verdict.blockers
    if verdict.passed:
        return
    if verdict.errors:
        text = f"Waiting for control plane to pass preflight checks to continue reconciliation: {'; '.join(verdict.errors)}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "ControlPlaneUnhealthy", text)
    raise EndOfPass(verdict.wait)


async def _wants_in_place_update(scope: Scope, machine: ControlPlaneMachine) -> bool:
    """Whether the Machine can be updated where it is instead of being replaced.

    A Machine that alone keeps the preflight checks from passing is better replaced. An extension has to say that it can do the
    update; none is registered with this process, so that the answer is no once the checks have passed.
    """
    up_to_date = sum(m.up_to_date.holds for m in scope.all_machines)
    if not scope.feature("InPlaceUpdates") or not machine.up_to_date.in_place or up_to_date >= scope.desired:
        return False
    verdict, others = preflight(scope.preflight_facts), preflight(scope.preflight_facts, excluding=machine.name)
    if not verdict.passed and not others.passed:
        await _pass_or_end(scope, replace(others, wait=verdict.wait))  # what is said to be waited for is what the others need
    return False


async def _scale_down(scope: Scope, machine: ControlPlaneMachine) -> None:
    await _pass_or_end(scope, preflight(scope.preflight_facts, excluding=machine.name))
    try:
        await workload_client(scope)
        if scope.managed_etcd:
            if scope.inspection.nodes_error is not None:
                raise PassFailed(f"unable to forward etcd leadership: {scope.inspection.nodes_error}")
            await membership.forward_leadership(scope, machine, newest(scope.all_machines))
        await scope.dependencies.client.delete(MACHINE, machine.key, uid=machine.uid)
        scope.machines[machine.name] = scope.machines[machine.name].with_(deletion_timestamp=scope.now)
    except NotFound:
        return
    except NotConnected:
        raise EndOfPass from None
    except WorkloadUnavailable as error:
        raise PassFailed(f"failed to create client to workload cluster: {error}") from error
    except MembershipError as error:
        raise PassFailed(f"failed to move leadership to another Machine: {error}") from error
    except ApiError as error:
        text = f"Failed to delete control plane Machine {machine.name} for cluster {scope.cluster_key} control plane: {error}"
        scope.dependencies.events.record(scope.control_plane, "Warning", "FailedScaleDown", text)
        raise PassFailed(text) from error
