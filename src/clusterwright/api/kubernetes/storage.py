"""PersistentVolume(Claim), and storage.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, ATOMIC_MAP, REQUIRED, SET, Default, Doc, Int32, Int64, ListMap, Merge, Quantity
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.kubernetes.pod import VolumeHealthCondition
from clusterwright.api.kubernetes.references import NodeSelector, ObjectReference, SecretReference
from clusterwright.api.kubernetes.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimSpec,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from clusterwright.api.meta import ALWAYS, Object


class GlusterfsPersistentVolumeSource(Builtin):
    endpoints: Annotated[str, ALWAYS, REQUIRED] = ""
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False
    endpoints_namespace: str | None = None


class RBDPersistentVolumeSource(Builtin):
    monitors: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    image: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str = ""
    pool: Annotated[str, Default("rbd")] = ""
    user: Annotated[str, Default("admin")] = ""
    keyring: Annotated[str, Default("/etc/ceph/keyring")] = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class ISCSIPersistentVolumeSource(Builtin):
    target_portal: Annotated[str, ALWAYS, REQUIRED] = ""
    iqn: Annotated[str, ALWAYS, REQUIRED] = ""
    lun: Annotated[Int32, ALWAYS, REQUIRED] = 0
    iscsi_interface: Annotated[str, Default("default")] = ""
    fs_type: str = ""
    read_only: bool = False
    portals: Annotated[tuple[str, ...], ATOMIC] = ()
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: SecretReference | None = None
    initiator_name: str | None = None


class CinderPersistentVolumeSource(Builtin):
    volume_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="volumeID", default="")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None


class CephFSPersistentVolumeSource(Builtin):
    monitors: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class FlexPersistentVolumeSource(Builtin):
    driver: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False
    options: Mapping[str, str] = {}


class AzureFilePersistentVolumeSource(Builtin):
    secret_name: Annotated[str, ALWAYS, REQUIRED] = ""
    share_name: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False
    secret_namespace: str | None = None


class ScaleIOPersistentVolumeSource(Builtin):
    gateway: Annotated[str, ALWAYS, REQUIRED] = ""
    system: Annotated[str, ALWAYS, REQUIRED] = ""
    secret_ref: Annotated[SecretReference | None, REQUIRED] = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: Annotated[str, Default("ThinProvisioned")] = ""
    volume_name: str = ""
    fs_type: Annotated[str, Default("xfs")] = ""
    read_only: bool = False


class LocalVolumeSource(Builtin):
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str | None = None


class StorageOSPersistentVolumeSource(Builtin):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None


class CSIPersistentVolumeSource(Builtin):
    driver: Annotated[str, ALWAYS, REQUIRED] = ""
    volume_handle: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: Mapping[str, str] = {}
    controller_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    controller_expand_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class VolumeNodeAffinity(Builtin):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Builtin):
    capacity: Mapping[str, Quantity] = {}
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = msgspec.field(name="scaleIO", default=None)
    local: LocalVolumeSource | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: Annotated[tuple[str, ...], ATOMIC] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: Annotated[tuple[str, ...], ATOMIC] = ()
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Builtin):
    phase: str = ""
    message: str = ""
    reason: str = ""
    last_phase_transition_time: datetime | None = None


class PersistentVolume(Object):
    """v1 PersistentVolume."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "PersistentVolume"
    spec: Annotated[PersistentVolumeSpec, ALWAYS, Doc("desired state")] = PersistentVolumeSpec()
    status: Annotated[PersistentVolumeStatus, ALWAYS, Doc("observed state")] = PersistentVolumeStatus()


class PersistentVolumeClaimCondition(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    last_probe_time: Annotated[datetime | None, ALWAYS] = None
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class ModifyVolumeStatus(Builtin):
    target_volume_attributes_class_name: str = ""
    status: Annotated[str, ALWAYS, REQUIRED] = ""


class VolumeHealthStatus(Builtin):
    health_conditions: Annotated[tuple[VolumeHealthCondition, ...], ListMap("status", "reason"), Merge("status")] = ()
    last_transition_time: Annotated[datetime | None, ALWAYS] = None


class PersistentVolumeClaimStatus(Builtin):
    phase: str = ""
    access_modes: Annotated[tuple[str, ...], ATOMIC] = ()
    capacity: Mapping[str, Quantity] = {}
    conditions: Annotated[tuple[PersistentVolumeClaimCondition, ...], ListMap("type"), Merge("type")] = ()
    allocated_resources: Mapping[str, Quantity] = {}
    allocated_resource_statuses: Mapping[str, str] = {}
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    health_status: VolumeHealthStatus | None = None


class PersistentVolumeClaim(Object):
    """v1 PersistentVolumeClaim."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"
    spec: Annotated[PersistentVolumeClaimSpec, ALWAYS, Doc("desired state")] = PersistentVolumeClaimSpec()
    status: Annotated[PersistentVolumeClaimStatus, ALWAYS, Doc("observed state")] = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    values: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()


class TopologySelectorTerm(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    match_label_expressions: Annotated[tuple[TopologySelectorLabelRequirement, ...], ATOMIC] = ()


class StorageClass(Object):
    """storage.k8s.io/v1 StorageClass."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "storage.k8s.io/v1"
    kind: str = "StorageClass"
    provisioner: Annotated[str, ALWAYS, REQUIRED] = ""
    parameters: Mapping[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: Annotated[tuple[str, ...], ATOMIC] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: Annotated[tuple[TopologySelectorTerm, ...], ATOMIC] = ()


class VolumeAttachmentSource(Builtin):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Builtin):
    attacher: Annotated[str, ALWAYS, REQUIRED] = ""
    source: Annotated[VolumeAttachmentSource, ALWAYS, REQUIRED] = VolumeAttachmentSource()
    node_name: Annotated[str, ALWAYS, REQUIRED] = ""


class VolumeError(Builtin):
    time: Annotated[datetime | None, ALWAYS] = None
    message: str = ""
    error_code: Int32 | None = None


class VolumeAttachmentStatus(Builtin):
    attached: Annotated[bool, ALWAYS, REQUIRED] = False
    attachment_metadata: Mapping[str, str] = {}
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Object):
    """storage.k8s.io/v1 VolumeAttachment."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "storage.k8s.io/v1"
    kind: str = "VolumeAttachment"
    spec: Annotated[VolumeAttachmentSpec, ALWAYS, REQUIRED, Doc("desired state")] = VolumeAttachmentSpec()
    status: Annotated[VolumeAttachmentStatus, ALWAYS, Doc("observed state")] = VolumeAttachmentStatus()


class CSITokenRequest(Builtin):
    audience: Annotated[str, ALWAYS, REQUIRED] = ""
    expiration_seconds: Int64 | None = None


class CSIDriverSpec(Builtin):
    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: Annotated[tuple[str, ...], SET] = ()
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    token_requests: Annotated[tuple[CSITokenRequest, ...], ATOMIC] = ()
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    service_account_token_in_secrets: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object):
    """storage.k8s.io/v1 CSIDriver."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIDriver"
    spec: Annotated[CSIDriverSpec, ALWAYS, REQUIRED, Doc("desired state")] = CSIDriverSpec()


class VolumeNodeResources(Builtin):
    count: Int32 | None = None


class CSINodeDriver(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    node_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="nodeID", default="")
    topology_keys: Annotated[tuple[str, ...], ATOMIC] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Builtin):
    drivers: Annotated[tuple[CSINodeDriver, ...], REQUIRED, ListMap("name"), Merge("name")] = ()


class StorageHealthCondition(Builtin):
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    reason: Annotated[str, ALWAYS, REQUIRED] = ""
    message: str = ""
    access_mode: str | None = None
    volume_mode: str | None = None
    last_transition_time: Annotated[datetime | None, ALWAYS] = None


class StorageHealth(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    health_conditions: Annotated[tuple[StorageHealthCondition, ...], ATOMIC] = ()


class CSINodeStatus(Builtin):
    storage_health: Annotated[tuple[StorageHealth, ...], ListMap("name"), Merge("name")] = ()


class CSINode(Object):
    """storage.k8s.io/v1 CSINode."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSINode"
    spec: Annotated[CSINodeSpec, ALWAYS, REQUIRED, Doc("desired state")] = CSINodeSpec()
