"""Adopt stand-alone control plane Machines, with the Secrets of their KubeadmConfigs."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.codec import to_json
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey, ObjectMeta, OwnerReference
from clusterwright.api.wellknown import BOOTSTRAP_GROUP, CLUSTER_NAME_LABEL
from clusterwright.controllers.external import refers_to
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.patch import Patcher


def is_orphan(machine: Machine) -> bool:
    """Return whether the Machine has no controller."""
    return not any(r.controller for r in machine.metadata.owner_references)


async def adopt(deps: Dependencies, patcher: Patcher, seen: ControlPlaneSnapshot, orphans: Sequence[Machine]) -> None:
    """Become the controller of stand-alone control plane Machines, and of the Secrets that their KubeadmConfigs made.

    Adopt all or none: a Machine whose version is too different stops the adoption with an Event. Raises PassFailed.
    """
    key, wanted = seen.key, seen.object.spec.version
    try:
        fresh = await deps.client.live.get(KubeadmControlPlane, key)
    except ApiError as error:
        raise PassFailed(f"failed to adopt Machines: {error}") from error
    if fresh.metadata.deletion_timestamp is not None:
        raise PassFailed(f"{key} has just been deleted at {fresh.metadata.deletion_timestamp}")
    for machine in orphans:
        reference = machine.spec.bootstrap.config_ref
        if reference is None or not reference.name or reference.kind != "KubeadmConfig":
            raise PassFailed(f"unable to adopt Machine {machine.key}: expected a ConfigRef of kind KubeadmConfig")
        if machine.spec.version and not _within_one_minor(machine.spec.version, wanted):
            text = (
                f"Could not adopt Machine {machine.key}: its version "
                f'("{machine.spec.version}") is outside supported +/- one minor version skew from KCP\'s ("{wanted}")'
            )
            deps.events.record(seen.object, "Warning", "AdoptionFailed", text)
            return
    try:
        for machine in orphans:
            await _adopt_secrets(deps, seen, machine)
            await _adopt_machine(deps, patcher, seen, machine)
    except ApiError as error:
        raise PassFailed(f"failed to adopt Machines: {error}") from error


def _within_one_minor(version: str, wanted: str) -> bool:
    try:
        ours, theirs = parse_version(wanted), parse_version(version)
    except ValueError as error:
        raise PassFailed(f"failed to adopt Machines: {error}") from error
    return ours.major == theirs.major and abs(ours.minor - theirs.minor) <= 1


async def _adopt_secrets(deps: Dependencies, seen: ControlPlaneSnapshot, machine: Machine) -> None:
    reference = machine.spec.bootstrap.config_ref
    assert reference is not None
    namespace = machine.metadata.namespace
    config = await deps.client.get(KubeadmConfig, ObjectKey(namespace, reference.name))
    for secret in await deps.client.list(Secret, namespace=namespace, labels={CLUSTER_NAME_LABEL: seen.cluster.key.name}):
        if secret.metadata.name == config.status.data_secret_name:
            continue
        references = secret.metadata.owner_references
        others = [r for r in references if not refers_to(r, BOOTSTRAP_GROUP, "KubeadmConfig", config.metadata.name)]
        if len(others) < len(references):
            await own_secret(deps, secret.metadata, [*others, seen.owner.controller_reference])


async def _adopt_machine(deps: Dependencies, patcher: Patcher, seen: ControlPlaneSnapshot, machine: Machine) -> None:
    original = await deps.client.read(Machine, machine.key)
    if original is None:
        return
    references = (*original.object.metadata.owner_references, seen.owner.controller_reference)
    await patcher.patch(original, replace(original.object, metadata=replace(original.object.metadata, owner_references=references)))


async def own_secret(deps: Dependencies, secret: ObjectMeta, references: Sequence[OwnerReference]) -> None:
    """Replace a Secret's ownerReferences, unless it was changed meanwhile; unchanged ones cost no request. Raises ApiError."""
    if tuple(references) == secret.owner_references:
        return
    body: Json = {"metadata": {"ownerReferences": [to_json(r) for r in references], "resourceVersion": secret.resource_version}}
    await deps.client.patch(Secret, secret.key, body)
