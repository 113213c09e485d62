"""apps/v1 workloads."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from clusterwright.api.constraints import ATOMIC, PRESERVE, REQUIRED, Doc, Int32, Int64, IntOrString, ListMap, Merge
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.kubernetes.pod import PodSpec
from clusterwright.api.kubernetes.storage import PersistentVolumeClaim
from clusterwright.api.meta import ALWAYS, LabelSelector, Object, ObjectMeta


class PodTemplateSpec(Builtin):
    metadata: Annotated[ObjectMeta, ALWAYS] = ObjectMeta()
    spec: Annotated[PodSpec, ALWAYS] = PodSpec()


class RollingUpdateDeployment(Builtin):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(Builtin):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Builtin):
    replicas: Int32 | None = None
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, ALWAYS, REQUIRED] = PodTemplateSpec()
    strategy: Annotated[DeploymentStrategy, ALWAYS, Merge(merge=False, retain_keys=True)] = DeploymentStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None


class DeploymentCondition(Builtin):
    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    last_update_time: Annotated[datetime | None, ALWAYS] = None
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class DeploymentStatus(Builtin):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: Annotated[tuple[DeploymentCondition, ...], ListMap("type"), Merge("type")] = ()
    collision_count: Int32 | None = None


class Deployment(Object):
    """apps/v1 Deployment."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "apps/v1"
    kind: str = "Deployment"
    spec: Annotated[DeploymentSpec, ALWAYS, Doc("desired state")] = DeploymentSpec()
    status: Annotated[DeploymentStatus, ALWAYS, Doc("observed state")] = DeploymentStatus()


class RollingUpdateDaemonSet(Builtin):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(Builtin):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Builtin):
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, ALWAYS, REQUIRED] = PodTemplateSpec()
    update_strategy: Annotated[DaemonSetUpdateStrategy, ALWAYS] = DaemonSetUpdateStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetCondition(Builtin):
    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class DaemonSetStatus(Builtin):
    current_number_scheduled: Annotated[Int32, ALWAYS, REQUIRED] = 0
    number_misscheduled: Annotated[Int32, ALWAYS, REQUIRED] = 0
    desired_number_scheduled: Annotated[Int32, ALWAYS, REQUIRED] = 0
    number_ready: Annotated[Int32, ALWAYS, REQUIRED] = 0
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: Annotated[tuple[DaemonSetCondition, ...], ListMap("type"), Merge("type")] = ()


class DaemonSet(Object):
    """apps/v1 DaemonSet."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "apps/v1"
    kind: str = "DaemonSet"
    spec: Annotated[DaemonSetSpec, ALWAYS, Doc("desired state")] = DaemonSetSpec()
    status: Annotated[DaemonSetStatus, ALWAYS, Doc("observed state")] = DaemonSetStatus()


class ReplicaSetSpec(Builtin):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, ALWAYS] = PodTemplateSpec()


class ReplicaSetCondition(Builtin):
    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class ReplicaSetStatus(Builtin):
    replicas: Annotated[Int32, ALWAYS, REQUIRED] = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: Annotated[tuple[ReplicaSetCondition, ...], ListMap("type"), Merge("type")] = ()


class ReplicaSet(Object):
    """apps/v1 ReplicaSet."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "apps/v1"
    kind: str = "ReplicaSet"
    spec: Annotated[ReplicaSetSpec, ALWAYS, Doc("desired state")] = ReplicaSetSpec()
    status: Annotated[ReplicaSetStatus, ALWAYS, Doc("observed state")] = ReplicaSetStatus()


class RollingUpdateStatefulSetStrategy(Builtin):
    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(Builtin):
    type: str = ""
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Builtin):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetOrdinals(Builtin):
    start: Annotated[Int32, ALWAYS] = 0


class StatefulSetSpec(Builtin):
    replicas: Int32 | None = None
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, ALWAYS, REQUIRED] = PodTemplateSpec()
    volume_claim_templates: Annotated[tuple[PersistentVolumeClaim, ...], ATOMIC] = ()
    service_name: Annotated[str, ALWAYS] = ""
    pod_management_policy: str = ""
    update_strategy: Annotated[StatefulSetUpdateStrategy, ALWAYS] = StatefulSetUpdateStrategy()
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetCondition(Builtin):
    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class StatefulSetStatus(Builtin):
    observed_generation: Int64 = 0
    replicas: Annotated[Int32, ALWAYS, REQUIRED] = 0
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    conditions: Annotated[tuple[StatefulSetCondition, ...], ListMap("type"), Merge("type")] = ()
    available_replicas: Annotated[Int32, ALWAYS] = 0


class StatefulSet(Object):
    """apps/v1 StatefulSet."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "apps/v1"
    kind: str = "StatefulSet"
    spec: Annotated[StatefulSetSpec, ALWAYS, Doc("desired state")] = StatefulSetSpec()
    status: Annotated[StatefulSetStatus, ALWAYS, Doc("observed state")] = StatefulSetStatus()


class ControllerRevision(Object):
    """apps/v1 ControllerRevision."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "apps/v1"
    kind: str = "ControllerRevision"
    data: Annotated[Any, REQUIRED, PRESERVE] = None
    revision: Annotated[Int64, ALWAYS] = 0
