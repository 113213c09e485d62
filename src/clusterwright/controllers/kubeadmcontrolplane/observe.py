"""Reading what a pass needs from the management cluster; and adopting stand-alone control plane Machines."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from clusterwright.api.codec import to_json
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import Json, ObjectKey, OwnerReference, Unstructured
from clusterwright.controllers.external import ContractUnknown, Reference, get_external, refers_to
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, UpToDate
from clusterwright.controllers.kubeadmcontrolplane.scope import KUBEADM_CONFIG, SECRET, Scope, machine_view
from clusterwright.controllers.kubeadmcontrolplane.uptodate import is_cloned, up_to_date
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.client import Client, Original
from clusterwright.runtime.errors import ApiError, NotFound

_GROUP, _KIND = "controlplane.cluster.x-k8s.io", "KubeadmControlPlane"


async def owner_cluster(client: Client, control_plane: KubeadmControlPlane) -> Cluster | None:
    """The Cluster that owns the control plane; None before there is an owner. Raises PassFailed, also where it is gone."""
    for reference in control_plane.metadata.owner_references:
        if reference.kind == "Cluster" and reference.api_version.rpartition("/")[0] == "cluster.x-k8s.io":
            try:
                return await client.get(Cluster, ObjectKey(control_plane.metadata.namespace, reference.name))
            except ApiError as error:
                raise PassFailed(f"failed to retrieve owner Cluster: {error}") from error
    return None


async def find_external(dependencies: Dependencies, reference: Reference, namespace: str) -> Unstructured | None:
    """A provider's object; None if it does not exist. Raises PassFailed.

    Its kind is watched from then on, so that the next read costs no request.
    """
    if not reference.kind or not reference.name:
        return None
    try:
        found = (await get_external(dependencies.client, reference, namespace)).object
        await dependencies.dynamic.ensure(found.gvk)
        return found
    except NotFound:
        return None
    except (ApiError, ContractUnknown) as error:
        raise PassFailed(f"failed to get {reference.kind} {namespace}/{reference.name}: {error}") from error


async def observe_machines(scope: Scope) -> bool:
    """Fill the scope with owned Machines; False if stand-alone ones were found instead and the pass must end.

    Raises PassFailed where the Machines, or what belongs to them, cannot be read or are not ours alone.
    """
    if not scope.infrastructure_provisioned or not scope.endpoint_valid:
        return True
    client = scope.dependencies.client
    selector = {names.CLUSTER_NAME: scope.cluster.metadata.name, names.CONTROL_PLANE: ""}
    try:
        found = await client.list(Machine, namespace=scope.key.namespace, labels=selector)
    except ApiError as error:
        raise PassFailed(f"failed to list control plane Machines: {error}") from error
    if not scope.deleting:
        orphans = [m for m in found if _controller_of(m) is None]
        if orphans:
            await adopt(scope, orphans)
            return False
    owned = [m for m in found if _is_ours(scope, m)]
    if not scope.deleting and len(owned) != len(found):
        raise PassFailed(
            "not all control plane machines are owned by this KubeadmControlPlane, refusing to operate in mixed management mode"
        )
    for machine in owned:
        original = await client.read(Machine, machine.key)
        if original is not None:
            scope.originals[machine.metadata.name] = original
            scope.machines[machine.metadata.name] = await _with_neighbours(scope, original)
    await _judge_up_to_date(scope)
    return True


def _controller_of(machine: Machine) -> OwnerReference | None:
    return next((r for r in machine.metadata.owner_references if r.controller), None)


def _is_ours(scope: Scope, machine: Machine) -> bool:
    return any(refers_to(r, _GROUP, _KIND, scope.key.name) for r in machine.metadata.owner_references)


async def _with_neighbours(scope: Scope, original: Original[Machine]) -> ControlPlaneMachine:
    machine = original.object
    client, namespace = scope.dependencies.client, machine.metadata.namespace
    infrastructure = await find_external(scope.dependencies, machine.spec.infrastructure_ref, namespace)
    reference = machine.spec.bootstrap.config_ref
    config: Unstructured | None = None
    if reference is not None and reference.name:
        try:
            config = await client.find(KUBEADM_CONFIG, ObjectKey(namespace, reference.name))
        except ApiError as error:
            raise PassFailed(f"failed to get KubeadmConfig {namespace}/{reference.name}: {error}") from error
    return machine_view(original).with_(infrastructure=infrastructure, config=config)


async def _judge_up_to_date(scope: Scope) -> None:
    any_cloned = any(is_cloned(m) for m in scope.machines.values())
    if any_cloned and scope.template is None:
        reference = scope.control_plane.spec.machine_template.spec.infrastructure_ref
        scope.template = await find_external(scope.dependencies, reference, scope.key.namespace)
        if scope.template is None and not scope.deleting:
            raise PassFailed(f"failed to compute desired InfraMachine: {reference.kind} {reference.name} does not exist")
    owner = scope.owner
    for name, machine in scope.machines.items():
        judged = machine if scope.template is not None else machine.with_(infrastructure=None)
        try:
            verdict: UpToDate = up_to_date(owner, judged, now=scope.now)
        except ValueError as error:
            raise PassFailed(f"failed to compute whether Machine {name} is up-to-date: {error}") from error
        scope.machines[name] = machine.with_(up_to_date=verdict)


# ----------------------------------------------------------------------------------------- adoption


async def adopt(scope: Scope, orphans: list[Machine]) -> None:
    """Become the controller of stand-alone control plane Machines, and of the Secrets that their KubeadmConfigs made.

    All or none: a Machine whose version is too far away stops the adoption with an Event. Raises PassFailed.
    """
    client = scope.dependencies.client
    try:
        fresh = await client.live.get(KubeadmControlPlane, scope.key)
    except ApiError as error:
        raise PassFailed(f"failed to adopt Machines: {error}") from error
    if fresh.metadata.deletion_timestamp is not None:
        raise PassFailed(f"{scope.key.namespace}/{scope.key.name} has just been deleted at {fresh.metadata.deletion_timestamp}")
    for machine in orphans:
        reference = machine.spec.bootstrap.config_ref
        if reference is None or not reference.name or reference.kind != "KubeadmConfig":
            raise PassFailed(f"unable to adopt Machine {machine.key}: expected a ConfigRef of kind KubeadmConfig")
        wanted = scope.control_plane.spec.version
        if machine.spec.version and not _within_one_minor(machine.spec.version, wanted):
            text = (
                f"Could not adopt Machine {machine.key}: its version "
                f'("{machine.spec.version}") is outside supported +/- one minor version skew from KCP\'s ("{wanted}")'
            )
            scope.dependencies.events.record(scope.control_plane, "Warning", "AdoptionFailed", text)
            return
    try:
        for machine in orphans:
            await _adopt_secrets(scope, machine)
            await _adopt_machine(scope, machine)
    except ApiError as error:
        raise PassFailed(f"failed to adopt Machines: {error}") from error


def _within_one_minor(version: str, wanted: str) -> bool:
    try:
        ours, theirs = parse_version(wanted), parse_version(version)
    except ValueError as error:
        raise PassFailed(f"failed to adopt Machines: {error}") from error
    return ours.major == theirs.major and abs(ours.minor - theirs.minor) <= 1


async def _adopt_secrets(scope: Scope, machine: Machine) -> None:
    client, reference = scope.dependencies.client, machine.spec.bootstrap.config_ref
    assert reference is not None
    config = await client.get(KUBEADM_CONFIG, ObjectKey(machine.metadata.namespace, reference.name))
    data_secret = config.at("status", "dataSecretName")
    secrets = await client.list(SECRET, namespace=machine.metadata.namespace, labels={names.CLUSTER_NAME: scope.cluster.metadata.name})
    for secret in secrets:
        if secret.key.name == data_secret:
            continue
        references = secret.metadata.owner_references
        others = [r for r in references if not refers_to(r, "bootstrap.cluster.x-k8s.io", "KubeadmConfig", config.key.name)]
        if len(others) == len(references):
            continue
        await patch_owners(client, secret, [*others, scope.owner.controller_reference])


async def _adopt_machine(scope: Scope, machine: Machine) -> None:
    original = await scope.dependencies.client.read(Machine, machine.key)
    if original is None:
        return
    references = (*original.object.metadata.owner_references, scope.owner.controller_reference)
    after = replace(original.object, metadata=replace(original.object.metadata, owner_references=references))
    await scope.patcher.patch(original, after)


async def patch_owners(client: Client, obj: Unstructured, references: list[OwnerReference]) -> Unstructured:
    """Replace an object's ownerReferences, unless it was changed meanwhile; unchanged ones cost no request."""
    wanted = [to_json(r) for r in references]
    if wanted == (obj.at("metadata", "ownerReferences") or []):
        return obj
    body: Json = {"metadata": {"ownerReferences": wanted, "resourceVersion": obj.metadata.resource_version}}
    return await client.patch(obj.gvk, obj.key, msgspec.to_builtins(body))
