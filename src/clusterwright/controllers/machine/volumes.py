"""Find the volumes that must be detached from a Node before its machine is deleted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterwright.api.kubernetes import Node, PersistentVolume, VolumeAttachment
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.machine.drain import names

RETRY = timedelta(seconds=20)
"""The interval of checks while volumes are attached."""

NAMES_SHOWN = 5


class VolumeError(Exception):
    """The attached volumes cannot be determined."""


@dataclass(frozen=True, slots=True)
class AttachedVolumes:
    """The attached volumes by both sources: the Node, by volume name, and VolumeAttachments, by name of the PersistentVolume."""

    by_node: frozenset[str] = frozenset()
    by_attachment: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether nothing is attached."""
        return not (self.by_node or self.by_attachment)


def attached_volumes(node: Node, attachments: Iterable[VolumeAttachment]) -> AttachedVolumes:
    """Return the volumes attached to a Node; pass no attachments to ignore them."""
    held = [a for a in attachments if a.spec.node_name == node.metadata.name and a.status.attached]
    for attachment in held:
        if not attachment.spec.source.persistent_volume_name:
            raise VolumeError(f"VolumeAttachment {attachment.key} has no spec.source.persistentVolumeName")
    return AttachedVolumes(
        frozenset(v.name for v in node.status.volumes_attached), frozenset(str(a.spec.source.persistent_volume_name) for a in held)
    )


@dataclass(frozen=True, slots=True)
class VolumeWait:
    """The volumes that are still waited for, by their known names."""

    claims: tuple[ObjectKey, ...] = ()
    unclaimed: tuple[str, ...] = ()
    unmatched_by_node: tuple[str, ...] = ()
    unmatched_by_attachment: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for."""
        return not (self.claims or self.unclaimed or self.unmatched_by_node or self.unmatched_by_attachment)

    def message(self, started: datetime) -> str:
        """Return the Deleting condition's message while volumes are waited for."""
        lines = [f"Waiting for Node volumes to be detached (started at {started:%Y-%m-%dT%H:%M:%SZ})"]
        groups = (
            ("PersistentVolumeClaims", self.claims),
            ("PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim", self.unclaimed),
            ("Node with .status.volumesAttached entries not matching a PersistentVolume", self.unmatched_by_node),
            ("VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume", self.unmatched_by_attachment),
        )
        lines += [f"* {what}: {names(items, NAMES_SHOWN)}" for what, items in groups if items]
        return "\n".join(lines)


def volume_wait(attached: AttachedVolumes, volumes: Iterable[PersistentVolume], ignored: Collection[ObjectKey]) -> VolumeWait:
    """Return what to wait for: everything attached, except claims of Pods that the drain leaves on the Node (`ignored`)."""
    claims: set[ObjectKey] = set()
    unclaimed: list[str] = []
    by_node, by_attachment = set(attached.by_node), set(attached.by_attachment)
    for volume in volumes:
        name, node_name = volume.metadata.name, _name_on_node(volume)
        if name not in attached.by_attachment and node_name not in attached.by_node:
            continue
        by_attachment.discard(name)
        by_node.discard(node_name)
        claim = volume.spec.claim_ref
        if claim is None or claim.kind != "PersistentVolumeClaim":
            unclaimed.append(name)
        elif (key := ObjectKey(claim.namespace, claim.name)) not in ignored:
            claims.add(key)
    return VolumeWait(tuple(sorted(claims)), tuple(unclaimed), tuple(sorted(by_node)), tuple(sorted(by_attachment)))


def _name_on_node(volume: PersistentVolume) -> str:
    csi = volume.spec.csi
    return "" if csi is None else f"kubernetes.io/csi/{csi.driver}^{csi.volume_handle}"
