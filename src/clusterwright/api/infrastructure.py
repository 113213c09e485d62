"""The Dev kinds of the in-memory infrastructure provider.

The docker backend is part of the schema, because users have manifests that name it; its machines are simulated, too, unless an engine runs
them. The `Infra` classes are the common parts of Docker kinds (`api.docker`) and Dev kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import QUANTITY, REQUIRED, Doc, Each, Int32, Int64, IntOrString, Items, Len, ListMap, Props
from clusterwright.api.core.shared import APIEndpoint, FailureDomain, MachineAddress, TemplateObjectMeta
from clusterwright.api.kubernetes import LocalObjectReference
from clusterwright.api.meta import ALWAYS, KEEP_EMPTY, Conditions, Object, Struct, V1Beta1Conditions

FailureDomains = Annotated[
    tuple[FailureDomain, ...],
    Items(1, 100),
    ListMap("name"),
    Doc("The failure domains in which Machines can be placed. They are copied to the Cluster."),
]


class DevDeprecatedV1Beta1Status(Struct):
    conditions: V1Beta1Conditions = ()


class DevDeprecatedStatus(Struct):
    v1beta1: Annotated[DevDeprecatedV1Beta1Status | None, KEEP_EMPTY, Doc("The status in the form of v1beta1.")] = None


class DevInitializationStatus(Struct):
    """Part of the contract with the core controllers."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    provisioned: Annotated[bool | None, Doc("True after the infrastructure was completed for the first time. It is never set back.")] = None


class DockerLoadBalancer(Struct):
    image_repository: Annotated[str, Doc("The registry and path of the load balancer's image.")] = ""
    image_tag: Annotated[str, Doc("The tag of the load balancer's image.")] = ""
    custom_ha_proxy_config_template_ref: Annotated[
        LocalObjectReference | None, KEEP_EMPTY, Doc("A ConfigMap that holds a template of the configuration in its key `value`.")
    ] = msgspec.field(name="customHAProxyConfigTemplateRef", default=None)


class DockerClusterBackend(Struct):
    failure_domains: FailureDomains = ()
    load_balancer: Annotated[DockerLoadBalancer | None, Doc("The container of the load balancer.")] = None


class InMemoryClusterBackend(Struct):
    """The in-memory backend, which has no settings."""


class DevClusterBackend(Struct):
    docker: Annotated[
        DockerClusterBackend | None, KEEP_EMPTY, Doc("A cluster of containers. It is simulated if the plane has no container engine.")
    ] = None
    in_memory: Annotated[InMemoryClusterBackend | None, KEEP_EMPTY, Doc("A simulated cluster inside the process.")] = None


class InfraClusterSpec(Struct):
    control_plane_endpoint: Annotated[
        APIEndpoint | None, Doc("The address at which clients reach the API server. The provider sets it.")
    ] = None


class DevClusterSpec(InfraClusterSpec):
    backend: Annotated[
        DevClusterBackend, ALWAYS, REQUIRED, Doc("The form of the cluster: simulated, or made of containers. Exactly one is set.")
    ] = DevClusterBackend()


class DevClusterStatus(Struct):
    conditions: Conditions = ()
    initialization: Annotated[DevInitializationStatus | None, Doc("The steps of provisioning that are done. Each is never set back.")] = (
        None
    )
    failure_domains: FailureDomains = ()
    deprecated: Annotated[DevDeprecatedStatus | None, KEEP_EMPTY, Doc("The status in deprecated forms.")] = None


class InfraCluster(Object):
    """The infrastructure of a cluster, of any kind."""

    spec: Annotated[InfraClusterSpec, Doc("The desired state, which users set.")] = InfraClusterSpec()
    status: Annotated[DevClusterStatus, Doc("The observed state, which controllers write.")] = DevClusterStatus()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be simulated."""
        return False

    @property
    def declared_domains(self) -> tuple[FailureDomain, ...]:
        """The failure domains in the spec."""
        return ()


class DevCluster(InfraCluster):
    """The infrastructure of a simulated cluster."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevCluster"
    spec: Annotated[DevClusterSpec, Doc("The desired state, which users set.")] = DevClusterSpec()
    status: Annotated[DevClusterStatus, Doc("The observed state, which controllers write.")] = DevClusterStatus()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be simulated."""
        return self.spec.backend.in_memory is not None

    @property
    def declared_domains(self) -> tuple[FailureDomain, ...]:
        """The failure domains of its docker backend."""
        docker = self.spec.backend.docker
        return docker.failure_domains if docker is not None else ()


class DevClusterTemplateResource(Struct):
    metadata: Annotated[
        TemplateObjectMeta | None, Doc("The labels and annotations of the DevClusters that are created from the template.")
    ] = None
    spec: Annotated[DevClusterSpec, ALWAYS, REQUIRED, Doc("The spec of the DevClusters that are created from the template.")] = (
        DevClusterSpec()
    )


class DevClusterTemplateSpec(Struct):
    template: Annotated[DevClusterTemplateResource, ALWAYS, REQUIRED, Doc("The objects that are created from the template.")] = (
        DevClusterTemplateResource()
    )


class DevClusterTemplate(Object):
    """The template for the DevClusters of topologies."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevClusterTemplate"
    spec: Annotated[DevClusterTemplateSpec, Doc("The desired state, which users set.")] = DevClusterTemplateSpec()


class Mount(Struct):
    container_path: Annotated[str, Doc("The path inside the container.")] = ""
    host_path: Annotated[str, Doc("The path on the host.")] = ""
    read_only: Annotated[bool, Doc("If true, the container cannot write to the mount.")] = False


class DockerMachineBackend(Struct):
    custom_image: Annotated[str, Doc("The container image of the machine.")] = ""
    pre_load_images: Annotated[tuple[str, ...], Doc("The images that are loaded into the new machine.")] = ()
    extra_mounts: Annotated[tuple[Mount, ...], Doc("Further mounts of the container.")] = ()
    bootstrap_timeout: Annotated[str | None, Doc("The time that the bootstrap may take, for example 5m.")] = None


class ProvisioningSettings(Struct):
    """The startup time of a simulated part: startupDuration * (1 + random[0,1) * startupJitter)."""

    startup_duration: Annotated[str, ALWAYS, REQUIRED, Doc("The time until the part has started, for example 10s.")] = "0s"
    startup_jitter: Annotated[str, Doc("The share of the duration that may be added at random, for example 0.2.")] = ""


class InMemoryPart(Struct):
    """A simulated part of a machine."""

    provisioning: Annotated[ProvisioningSettings | None, KEEP_EMPTY, Doc("The time that the start takes.")] = None


class InMemoryMachineBackend(Struct):
    vm: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("The virtual machine.")] = None
    node: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("The Node, from the start of the kubelet until it is Ready.")] = None
    api_server: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("The API server of a control plane machine.")] = None
    etcd: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("The etcd member of a control plane machine.")] = None


class DevMachineBackend(Struct):
    docker: Annotated[
        DockerMachineBackend | None, KEEP_EMPTY, Doc("A container. It is simulated if the plane has no container engine.")
    ] = None
    in_memory: Annotated[InMemoryMachineBackend | None, KEEP_EMPTY, Doc("A simulated machine inside the process.")] = None


class InfraMachineSpec(Struct):
    provider_id: Annotated[str, Len(1, 512), Doc("The identity of the machine. It equals spec.providerID of its Node.")] = msgspec.field(
        name="providerID", default=""
    )


class DevMachineSpec(InfraMachineSpec):
    backend: Annotated[
        DevMachineBackend, ALWAYS, REQUIRED, Doc("The form of the machine: simulated, or a container. Exactly one is set.")
    ] = DevMachineBackend()


class DevMachineStatus(Struct):
    conditions: Conditions = ()
    initialization: Annotated[DevInitializationStatus | None, Doc("The steps of provisioning that are done. Each is never set back.")] = (
        None
    )
    addresses: Annotated[tuple[MachineAddress, ...], Doc("The addresses of the machine, which are copied to the Machine.")] = ()
    failure_domain: Annotated[str, Len(1, 256), Doc("The failure domain in which the machine was placed.")] = ""
    deprecated: Annotated[DevDeprecatedStatus | None, KEEP_EMPTY, Doc("The status in deprecated forms.")] = None


class InfraMachine(Object):
    """The infrastructure of a machine, of any kind."""

    spec: Annotated[InfraMachineSpec, Doc("The desired state, which users set.")] = InfraMachineSpec()
    status: Annotated[DevMachineStatus, Doc("The observed state, which controllers write.")] = DevMachineStatus()

    @property
    def in_memory(self) -> InMemoryMachineBackend | None:
        """The settings of the simulation, if it is to be simulated."""
        return None


class DevMachine(InfraMachine):
    """The infrastructure of a simulated machine."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachine"
    spec: Annotated[DevMachineSpec, Doc("The desired state, which users set.")] = DevMachineSpec()
    status: Annotated[DevMachineStatus, Doc("The observed state, which controllers write.")] = DevMachineStatus()

    @property
    def in_memory(self) -> InMemoryMachineBackend | None:
        """The settings of the simulation, if it is to be simulated."""
        return self.spec.backend.in_memory


class DevMachineTemplateResource(Struct):
    metadata: Annotated[
        TemplateObjectMeta | None, Doc("The labels and annotations of the DevMachines that are created from the template.")
    ] = None
    spec: Annotated[DevMachineSpec, ALWAYS, REQUIRED, Doc("The spec of the DevMachines that are created from the template.")] = (
        DevMachineSpec()
    )


class DevMachineTemplateSpec(Struct):
    template: Annotated[DevMachineTemplateResource, ALWAYS, REQUIRED, Doc("The objects that are created from the template.")] = (
        DevMachineTemplateResource()
    )


class DevMachineTemplateStatus(Struct):
    capacity: Annotated[
        Mapping[str, IntOrString], Each(QUANTITY), Doc("The resources of one machine. Autoscalers read them to scale from zero.")
    ] = {}


class DevMachineTemplate(Object):
    """The template for DevMachines."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachineTemplate"
    spec: Annotated[DevMachineTemplateSpec, Doc("The desired state, which users set.")] = DevMachineTemplateSpec()
    status: Annotated[DevMachineTemplateStatus, Doc("The observed state, which controllers write.")] = DevMachineTemplateStatus()


class DockerMachinePoolBackend(Struct):
    custom_image: Annotated[str, Doc("The container image of the machines.")] = ""
    pre_load_images: Annotated[tuple[str, ...], Doc("The images that are loaded into new machines.")] = ()
    extra_mounts: Annotated[tuple[Mount, ...], Doc("Further mounts of the container.")] = ()


class DevMachinePoolBackend(Struct):
    docker: Annotated[
        DockerMachinePoolBackend | None, KEEP_EMPTY, Doc("A cluster of containers. It is simulated if the plane has no container engine.")
    ] = None
    in_memory: Annotated[InMemoryMachineBackend | None, KEEP_EMPTY, Doc("Simulated machines inside the process.")] = None


class InfraMachinePoolSpec(Struct):
    provider_id: Annotated[str, Doc("The identity of the pool.")] = msgspec.field(name="providerID", default="")
    provider_id_list: Annotated[tuple[str, ...], Doc("The identities of the machines of the pool.")] = msgspec.field(
        name="providerIDList", default=()
    )


class DevMachinePoolSpec(InfraMachinePoolSpec):
    backend: Annotated[
        DevMachinePoolBackend, ALWAYS, Doc("The form of the pool: simulated, or made of containers. Exactly one is set.")
    ] = DevMachinePoolBackend()


class DevMachinePoolInstance(Struct):
    addresses: Annotated[tuple[MachineAddress, ...], Doc("The addresses of the machine.")] = ()
    instance_name: Annotated[str, Doc("The name of the machine in the pool.")] = ""
    provider_id: Annotated[str | None, Doc("The identity of the machine.")] = msgspec.field(name="providerID", default=None)
    version: Annotated[str | None, Doc("The Kubernetes version of the machine.")] = None
    ready: Annotated[bool, ALWAYS, Doc("Whether the machine has started.")] = False


class DevMachinePoolStatus(Struct):
    conditions: Conditions = ()
    ready: Annotated[bool, ALWAYS, Doc("Whether the pool is complete.")] = False
    replicas: Annotated[Int32, ALWAYS, Doc("The number of machines that exist.")] = 0
    observed_generation: Annotated[Int64, Doc("The generation of the object that was last processed.")] = 0
    infrastructure_machine_kind: Annotated[str, Doc("The kind of the infrastructure objects of the pool's Machines.")] = ""
    instances: Annotated[tuple[DevMachinePoolInstance, ...], Doc("The machines of the pool.")] = ()


class InfraMachinePool(Object):
    """The infrastructure of a pool of machines, of any kind."""

    spec: Annotated[InfraMachinePoolSpec, Doc("The desired state, which users set.")] = InfraMachinePoolSpec()
    status: Annotated[DevMachinePoolStatus, Doc("The observed state, which controllers write.")] = DevMachinePoolStatus()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be simulated."""
        return False


class DevMachinePool(InfraMachinePool):
    """The infrastructure of a pool of machines."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachinePool"
    spec: Annotated[DevMachinePoolSpec, Doc("The desired state, which users set.")] = DevMachinePoolSpec()
    status: Annotated[DevMachinePoolStatus, Doc("The observed state, which controllers write.")] = DevMachinePoolStatus()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be simulated."""
        return self.spec.backend.in_memory is not None


class DevMachinePoolTemplateResource(Struct):
    metadata: Annotated[
        TemplateObjectMeta | None, Doc("The labels and annotations of the DevMachinePools that are created from the template.")
    ] = None
    spec: Annotated[DevMachinePoolSpec, ALWAYS, REQUIRED, Doc("The spec of the DevMachinePools that are created from the template.")] = (
        DevMachinePoolSpec()
    )


class DevMachinePoolTemplateSpec(Struct):
    template: Annotated[DevMachinePoolTemplateResource, ALWAYS, REQUIRED, Doc("The objects that are created from the template.")] = (
        DevMachinePoolTemplateResource()
    )


class DevMachinePoolTemplate(Object):
    """The template for the DevMachinePools of topologies."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachinePoolTemplate"
    spec: Annotated[DevMachinePoolTemplateSpec, Doc("The desired state, which users set.")] = DevMachinePoolTemplateSpec()
