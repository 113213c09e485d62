"""Which volumes are waited for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from clusterwright.api.kubernetes import (
    AttachedVolume,
    CSIPersistentVolumeSource,
    Node,
    NodeStatus,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
)
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.controllers.machine.volumes import AttachedVolumes, VolumeError, VolumeWait, attached_volumes, volume_wait


def a_node(*names: str) -> Node:
    attached = tuple(AttachedVolume(name=n) for n in names)
    return Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(volumes_attached=attached))


def an_attachment(volume: str | None, node: str = "n1", *, attached: bool = True) -> VolumeAttachment:
    spec = VolumeAttachmentSpec(attacher="d", node_name=node, source=VolumeAttachmentSource(persistent_volume_name=volume))
    return VolumeAttachment(metadata=ObjectMeta(name="va"), spec=spec, status=VolumeAttachmentStatus(attached=attached))


def a_volume(name: str, claim: str = "", kind: str = "PersistentVolumeClaim", handle: str = "") -> PersistentVolume:
    ref = ObjectReference(kind=kind, namespace="web", name=claim) if claim else None
    csi = CSIPersistentVolumeSource(driver="d", volume_handle=handle or name)
    return PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(csi=csi, claim_ref=ref))


def test_volumes_of_nodes_and_of_attachments_both_count() -> None:
    attachments = [an_attachment("pv1"), an_attachment("pv2", "n2"), an_attachment("pv3", attached=False)]

    assert attached_volumes(a_node("x"), attachments) == AttachedVolumes(frozenset({"x"}), frozenset({"pv1"}))


def test_an_attachment_without_a_volume_is_an_error_only_for_this_node() -> None:
    assert attached_volumes(a_node(), [an_attachment(None, "n2")]).empty
    with pytest.raises(VolumeError):
        attached_volumes(a_node(), [an_attachment(None)])


ATTACHED = AttachedVolumes(frozenset({"kubernetes.io/csi/d^pv1"}), frozenset({"pv2"}))


@pytest.mark.parametrize(
    ("volumes", "ignored", "expected"),
    [
        pytest.param(
            [a_volume("pv1", "a"), a_volume("pv2", "b")], (), VolumeWait((ObjectKey("web", "a"), ObjectKey("web", "b"))), id="claims"
        ),
        pytest.param([a_volume("pv1", "a"), a_volume("pv2", "a")], (), VolumeWait((ObjectKey("web", "a"),)), id="one-claim-once"),
        pytest.param([a_volume("pv1"), a_volume("pv2", "b", "Pod")], (), VolumeWait(unclaimed=("pv1", "pv2")), id="no-claims"),
        pytest.param([], (), VolumeWait((), (), ("kubernetes.io/csi/d^pv1",), ("pv2",)), id="no-volumes"),
        pytest.param(
            [a_volume("pv1", "a"), a_volume("pv2", "b")],
            {ObjectKey("web", "a"), ObjectKey("web", "b")},
            VolumeWait(),
            id="all-claims-ignored",
        ),
        pytest.param(
            [a_volume("pv1", "a"), a_volume("pv2", "b")],
            {ObjectKey("other", "a")},
            VolumeWait((ObjectKey("web", "a"), ObjectKey("web", "b"))),
            id="namespaces-count",
        ),
        pytest.param(
            [a_volume("pv9", "z"), a_volume("pv2", "b", handle="h")],
            (),
            VolumeWait((ObjectKey("web", "b"),), (), ("kubernetes.io/csi/d^pv1",)),
            id="foreign",
        ),
    ],
)
def test_attached_volumes_are_waited_for(volumes: Any, ignored: Any, expected: VolumeWait) -> None:
    assert volume_wait(ATTACHED, volumes, ignored) == expected


def test_the_wait_is_over_when_nothing_is_left() -> None:
    assert VolumeWait().over
    assert not VolumeWait(unclaimed=("x",)).over


def test_the_message_shows_five_names_of_each_group() -> None:
    wait = VolumeWait((ObjectKey("web", "data"),), ("pv1",), tuple(f"v{n}" for n in range(7)), ("pv2",))

    assert wait.message(datetime(2026, 5, 1, 12, tzinfo=UTC)) == (
        "Waiting for Node volumes to be detached (started at 2026-05-01T12:00:00Z)\n"
        "* PersistentVolumeClaims: web/data\n"
        "* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv1\n"
        "* Node with .status.volumesAttached entries not matching a PersistentVolume: v0, v1, v2, v3, v4, ... (2 more)\n"
        "* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: pv2"
    )
