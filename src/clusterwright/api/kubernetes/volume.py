"""Volumes of Pods and what they are filled from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, Default, Int32, Int64, Quantity
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.kubernetes.references import (
    KeyToPath,
    LocalObjectReference,
    ObjectFieldSelector,
    ResourceFieldSelector,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from clusterwright.api.meta import ALWAYS, LabelSelector, ObjectMeta


class HostPathVolumeSource(Builtin):
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    type: str | None = None


class EmptyDirVolumeSource(Builtin):
    medium: str = ""
    size_limit: Quantity | None = None
    mode: Int32 | None = None


class GCEPersistentDiskVolumeSource(Builtin):
    pd_name: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Builtin):
    volume_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="volumeID", default="")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class GitRepoVolumeSource(Builtin):
    repository: Annotated[str, ALWAYS, REQUIRED] = ""
    revision: str = ""
    directory: str = ""


class SecretVolumeSource(Builtin):
    secret_name: str = ""
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None


class NFSVolumeSource(Builtin):
    server: Annotated[str, ALWAYS, REQUIRED] = ""
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False


class ISCSIVolumeSource(Builtin):
    target_portal: Annotated[str, ALWAYS, REQUIRED] = ""
    iqn: Annotated[str, ALWAYS, REQUIRED] = ""
    lun: Annotated[Int32, ALWAYS, REQUIRED] = 0
    iscsi_interface: Annotated[str, Default("default")] = ""
    fs_type: str = ""
    read_only: bool = False
    portals: Annotated[tuple[str, ...], ATOMIC] = ()
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class GlusterfsVolumeSource(Builtin):
    endpoints: Annotated[str, ALWAYS, REQUIRED] = ""
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False


class PersistentVolumeClaimVolumeSource(Builtin):
    claim_name: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False


class RBDVolumeSource(Builtin):
    monitors: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    image: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str = ""
    pool: Annotated[str, Default("rbd")] = ""
    user: Annotated[str, Default("admin")] = ""
    keyring: Annotated[str, Default("/etc/ceph/keyring")] = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlexVolumeSource(Builtin):
    driver: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: Mapping[str, str] = {}


class CinderVolumeSource(Builtin):
    volume_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="volumeID", default="")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(Builtin):
    monitors: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlockerVolumeSource(Builtin):
    dataset_name: str = ""
    dataset_uuid: str = msgspec.field(name="datasetUUID", default="")


class DownwardAPIVolumeFile(Builtin):
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None
    user: Int64 | None = None


class DownwardAPIVolumeSource(Builtin):
    items: Annotated[tuple[DownwardAPIVolumeFile, ...], ATOMIC] = ()
    default_mode: Int32 | None = None
    default_user: Int64 | None = None


class FCVolumeSource(Builtin):
    target_ww_ns: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(name="targetWWNs", default=())
    lun: Int32 | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: Annotated[tuple[str, ...], ATOMIC] = ()


class AzureFileVolumeSource(Builtin):
    secret_name: Annotated[str, ALWAYS, REQUIRED] = ""
    share_name: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False


class ConfigMapVolumeSource(Builtin):
    name: Annotated[str, Default("")] = ""
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None


class VsphereVirtualDiskVolumeSource(Builtin):
    volume_path: Annotated[str, ALWAYS, REQUIRED] = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = msgspec.field(name="storagePolicyID", default="")


class QuobyteVolumeSource(Builtin):
    registry: Annotated[str, ALWAYS, REQUIRED] = ""
    volume: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class AzureDiskVolumeSource(Builtin):
    disk_name: Annotated[str, ALWAYS, REQUIRED] = ""
    disk_uri: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="diskURI", default="")
    caching_mode: str | None = None
    fs_type: Annotated[str | None, Default("ext4")] = None
    read_only: Annotated[bool | None, Default(False)] = None
    kind: str | None = None


class PhotonPersistentDiskVolumeSource(Builtin):
    pd_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="pdID", default="")
    fs_type: str = ""


class SecretProjection(Builtin):
    name: Annotated[str, Default("")] = ""
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    optional: bool | None = None


class DownwardAPIProjection(Builtin):
    items: Annotated[tuple[DownwardAPIVolumeFile, ...], ATOMIC] = ()


class ConfigMapProjection(Builtin):
    name: Annotated[str, Default("")] = ""
    items: Annotated[tuple[KeyToPath, ...], ATOMIC] = ()
    optional: bool | None = None


class ServiceAccountTokenProjection(Builtin):
    audience: str = ""
    expiration_seconds: Int64 | None = None
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    user: Int64 | None = None


class ClusterTrustBundleProjection(Builtin):
    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    user: Int64 | None = None


class PodCertificateProjection(Builtin):
    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: Int32 | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""
    user_annotations: Mapping[str, str] = {}
    user: Int64 | None = None


class VolumeProjection(Builtin):
    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = msgspec.field(name="downwardAPI", default=None)
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(Builtin):
    sources: Annotated[tuple[VolumeProjection, ...], ATOMIC] = ()
    default_mode: Int32 | None = None
    default_user: Int64 | None = None


class PortworxVolumeSource(Builtin):
    volume_id: Annotated[str, ALWAYS, REQUIRED] = msgspec.field(name="volumeID", default="")
    fs_type: str = ""
    read_only: bool = False


class ScaleIOVolumeSource(Builtin):
    gateway: Annotated[str, ALWAYS, REQUIRED] = ""
    system: Annotated[str, ALWAYS, REQUIRED] = ""
    secret_ref: Annotated[LocalObjectReference | None, REQUIRED] = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: Annotated[str, Default("ThinProvisioned")] = ""
    volume_name: str = ""
    fs_type: Annotated[str, Default("xfs")] = ""
    read_only: bool = False


class StorageOSVolumeSource(Builtin):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CSIVolumeSource(Builtin):
    driver: Annotated[str, ALWAYS, REQUIRED] = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: Mapping[str, str] = {}
    node_publish_secret_ref: LocalObjectReference | None = None


class VolumeResourceRequirements(Builtin):
    limits: Mapping[str, Quantity] = {}
    requests: Mapping[str, Quantity] = {}


class PersistentVolumeClaimSpec(Builtin):
    access_modes: Annotated[tuple[str, ...], ATOMIC] = ()
    selector: LabelSelector | None = None
    resources: Annotated[VolumeResourceRequirements, ALWAYS] = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Builtin):
    metadata: Annotated[ObjectMeta, ALWAYS] = ObjectMeta()
    spec: Annotated[PersistentVolumeClaimSpec, ALWAYS, REQUIRED] = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Builtin):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Builtin):
    reference: str = ""
    pull_policy: str = ""


class Volume(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = msgspec.field(name="downwardAPI", default=None)
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = msgspec.field(name="scaleIO", default=None)
    storageos: StorageOSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
