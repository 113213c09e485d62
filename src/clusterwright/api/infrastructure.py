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
    tuple[FailureDomain, ...], Items(1, 100), ListMap("name"), Doc("where Machines can be placed; copied to the Cluster")
]


class DevDeprecatedV1Beta1Status(Struct):
    conditions: V1Beta1Conditions = ()


class DevDeprecatedStatus(Struct):
    v1beta1: Annotated[DevDeprecatedV1Beta1Status | None, KEEP_EMPTY, Doc("status in the deprecated form")] = None


class DevInitializationStatus(Struct):
    """Part of the contract with the core controllers."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    provisioned: Annotated[bool | None, Doc("true once the infrastructure is complete; never goes back")] = None


class DockerLoadBalancer(Struct):
    image_repository: Annotated[str, Doc("registry and path of the load balancer image")] = ""
    image_tag: Annotated[str, Doc("tag of the load balancer image")] = ""
    custom_ha_proxy_config_template_ref: Annotated[
        LocalObjectReference | None, KEEP_EMPTY, Doc("ConfigMap with a configuration template under `value`")
    ] = msgspec.field(name="customHAProxyConfigTemplateRef", default=None)


class DockerClusterBackend(Struct):
    failure_domains: FailureDomains = ()
    load_balancer: Annotated[DockerLoadBalancer | None, Doc("the load balancer container")] = None


class InMemoryClusterBackend(Struct):
    """The in-memory backend, which has no settings."""


class DevClusterBackend(Struct):
    docker: Annotated[DockerClusterBackend | None, KEEP_EMPTY, Doc("containers; simulated where the plane has no engine")] = None
    in_memory: Annotated[InMemoryClusterBackend | None, KEEP_EMPTY, Doc("a simulated cluster inside the process")] = None


class InfraClusterSpec(Struct):
    control_plane_endpoint: Annotated[APIEndpoint | None, Doc("where the API server is reached; filled in by the provider")] = None


class DevClusterSpec(InfraClusterSpec):
    backend: Annotated[DevClusterBackend, ALWAYS, REQUIRED, Doc("what the cluster is made of")] = DevClusterBackend()


class DevClusterStatus(Struct):
    conditions: Conditions = ()
    initialization: Annotated[DevInitializationStatus | None, Doc("one-way latches")] = None
    failure_domains: FailureDomains = ()
    deprecated: Annotated[DevDeprecatedStatus | None, KEEP_EMPTY, Doc("status in deprecated forms")] = None


class InfraCluster(Object):
    """The infrastructure of a cluster, of any kind."""

    spec: Annotated[InfraClusterSpec, Doc("desired state")] = InfraClusterSpec()
    status: Annotated[DevClusterStatus, Doc("observed state")] = DevClusterStatus()

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
    spec: Annotated[DevClusterSpec, Doc("desired state")] = DevClusterSpec()
    status: Annotated[DevClusterStatus, Doc("observed state")] = DevClusterStatus()

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
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels and annotations of the DevClusters made from it")] = None
    spec: Annotated[DevClusterSpec, ALWAYS, REQUIRED, Doc("spec of the DevClusters made from it")] = DevClusterSpec()


class DevClusterTemplateSpec(Struct):
    template: Annotated[DevClusterTemplateResource, ALWAYS, REQUIRED, Doc("what is made from it")] = DevClusterTemplateResource()


class DevClusterTemplate(Object):
    """The template for the DevClusters of topologies."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevClusterTemplate"
    spec: Annotated[DevClusterTemplateSpec, Doc("desired state")] = DevClusterTemplateSpec()


class Mount(Struct):
    container_path: Annotated[str, Doc("path inside the container")] = ""
    host_path: Annotated[str, Doc("path on the host")] = ""
    read_only: Annotated[bool, Doc("whether the mount cannot be written to")] = False


class DockerMachineBackend(Struct):
    custom_image: Annotated[str, Doc("container image of the machine")] = ""
    pre_load_images: Annotated[tuple[str, ...], Doc("images loaded into the new machine")] = ()
    extra_mounts: Annotated[tuple[Mount, ...], Doc("further mounts")] = ()
    bootstrap_timeout: Annotated[str | None, Doc("how long bootstrapping may take, as in 5m")] = None


class ProvisioningSettings(Struct):
    """The startup time of a simulated part: startupDuration * (1 + random[0,1) * startupJitter)."""

    startup_duration: Annotated[str, ALWAYS, REQUIRED, Doc("time until the part is up, as in 10s")] = "0s"
    startup_jitter: Annotated[str, Doc("share of the duration that may be added, as in 0.2")] = ""


class InMemoryPart(Struct):
    """A simulated part of a machine."""

    provisioning: Annotated[ProvisioningSettings | None, KEEP_EMPTY, Doc("how long it takes to start")] = None


class InMemoryMachineBackend(Struct):
    vm: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("the virtual machine")] = None
    node: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("the Node, from start of the kubelet to Ready")] = None
    api_server: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("the API server of a control-plane machine")] = None
    etcd: Annotated[InMemoryPart | None, KEEP_EMPTY, Doc("the etcd member of a control-plane machine")] = None


class DevMachineBackend(Struct):
    docker: Annotated[DockerMachineBackend | None, KEEP_EMPTY, Doc("a container; simulated where the plane has no engine")] = None
    in_memory: Annotated[InMemoryMachineBackend | None, KEEP_EMPTY, Doc("a simulated machine inside the process")] = None


class InfraMachineSpec(Struct):
    provider_id: Annotated[str, Len(1, 512), Doc("identity of the machine; equals spec.providerID of its Node")] = msgspec.field(
        name="providerID", default=""
    )


class DevMachineSpec(InfraMachineSpec):
    backend: Annotated[DevMachineBackend, ALWAYS, REQUIRED, Doc("what the machine is made of")] = DevMachineBackend()


class DevMachineStatus(Struct):
    conditions: Conditions = ()
    initialization: Annotated[DevInitializationStatus | None, Doc("one-way latches")] = None
    addresses: Annotated[tuple[MachineAddress, ...], Doc("copied to the Machine")] = ()
    failure_domain: Annotated[str, Len(1, 256), Doc("where the machine was placed")] = ""
    deprecated: Annotated[DevDeprecatedStatus | None, KEEP_EMPTY, Doc("status in deprecated forms")] = None


class InfraMachine(Object):
    """The infrastructure of a machine, of any kind."""

    spec: Annotated[InfraMachineSpec, Doc("desired state")] = InfraMachineSpec()
    status: Annotated[DevMachineStatus, Doc("observed state")] = DevMachineStatus()

    @property
    def in_memory(self) -> InMemoryMachineBackend | None:
        """The settings of the simulation, if it is to be simulated."""
        return None


class DevMachine(InfraMachine):
    """The infrastructure of a simulated machine."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachine"
    spec: Annotated[DevMachineSpec, Doc("desired state")] = DevMachineSpec()
    status: Annotated[DevMachineStatus, Doc("observed state")] = DevMachineStatus()

    @property
    def in_memory(self) -> InMemoryMachineBackend | None:
        """The settings of the simulation, if it is to be simulated."""
        return self.spec.backend.in_memory


class DevMachineTemplateResource(Struct):
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels and annotations of the DevMachines made from it")] = None
    spec: Annotated[DevMachineSpec, ALWAYS, REQUIRED, Doc("spec of the DevMachines made from it")] = DevMachineSpec()


class DevMachineTemplateSpec(Struct):
    template: Annotated[DevMachineTemplateResource, ALWAYS, REQUIRED, Doc("what is made from it")] = DevMachineTemplateResource()


class DevMachineTemplateStatus(Struct):
    capacity: Annotated[Mapping[str, IntOrString], Each(QUANTITY), Doc("resources of a machine, for scaling from zero")] = {}


class DevMachineTemplate(Object):
    """The template for DevMachines."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachineTemplate"
    spec: Annotated[DevMachineTemplateSpec, Doc("desired state")] = DevMachineTemplateSpec()
    status: Annotated[DevMachineTemplateStatus, Doc("observed state")] = DevMachineTemplateStatus()


class DockerMachinePoolBackend(Struct):
    custom_image: Annotated[str, Doc("container image of the machines")] = ""
    pre_load_images: Annotated[tuple[str, ...], Doc("images loaded into new machines")] = ()
    extra_mounts: Annotated[tuple[Mount, ...], Doc("further mounts")] = ()


class DevMachinePoolBackend(Struct):
    docker: Annotated[DockerMachinePoolBackend | None, KEEP_EMPTY, Doc("containers; simulated where the plane has no engine")] = None
    in_memory: Annotated[InMemoryMachineBackend | None, KEEP_EMPTY, Doc("simulated machines inside the process")] = None


class InfraMachinePoolSpec(Struct):
    provider_id: Annotated[str, Doc("identity of the pool")] = msgspec.field(name="providerID", default="")
    provider_id_list: Annotated[tuple[str, ...], Doc("identities of its machines")] = msgspec.field(name="providerIDList", default=())


class DevMachinePoolSpec(InfraMachinePoolSpec):
    backend: Annotated[DevMachinePoolBackend, ALWAYS, Doc("what the pool is made of")] = DevMachinePoolBackend()


class DevMachinePoolInstance(Struct):
    addresses: Annotated[tuple[MachineAddress, ...], Doc("addresses of the machine")] = ()
    instance_name: Annotated[str, Doc("name of the machine in the pool")] = ""
    provider_id: Annotated[str | None, Doc("identity of the machine")] = msgspec.field(name="providerID", default=None)
    version: Annotated[str | None, Doc("Kubernetes version")] = None
    ready: Annotated[bool, ALWAYS, Doc("whether the machine is up")] = False


class DevMachinePoolStatus(Struct):
    conditions: Conditions = ()
    ready: Annotated[bool, ALWAYS, Doc("whether the pool is up")] = False
    replicas: Annotated[Int32, ALWAYS, Doc("observed number of machines")] = 0
    observed_generation: Annotated[Int64, Doc("last metadata.generation processed")] = 0
    infrastructure_machine_kind: Annotated[str, Doc("kind of the infrastructure objects behind the pool's Machines")] = ""
    instances: Annotated[tuple[DevMachinePoolInstance, ...], Doc("the machines")] = ()


class InfraMachinePool(Object):
    """The infrastructure of a pool of machines, of any kind."""

    spec: Annotated[InfraMachinePoolSpec, Doc("desired state")] = InfraMachinePoolSpec()
    status: Annotated[DevMachinePoolStatus, Doc("observed state")] = DevMachinePoolStatus()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be simulated."""
        return False


class DevMachinePool(InfraMachinePool):
    """The infrastructure of a pool of machines."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachinePool"
    spec: Annotated[DevMachinePoolSpec, Doc("desired state")] = DevMachinePoolSpec()
    status: Annotated[DevMachinePoolStatus, Doc("observed state")] = DevMachinePoolStatus()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be simulated."""
        return self.spec.backend.in_memory is not None


class DevMachinePoolTemplateResource(Struct):
    metadata: Annotated[TemplateObjectMeta | None, Doc("labels and annotations of the DevMachinePools made from it")] = None
    spec: Annotated[DevMachinePoolSpec, ALWAYS, REQUIRED, Doc("spec of the DevMachinePools made from it")] = DevMachinePoolSpec()


class DevMachinePoolTemplateSpec(Struct):
    template: Annotated[DevMachinePoolTemplateResource, ALWAYS, REQUIRED, Doc("what is made from it")] = DevMachinePoolTemplateResource()


class DevMachinePoolTemplate(Object):
    """The template for the DevMachinePools of topologies."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DevMachinePoolTemplate"
    spec: Annotated[DevMachinePoolTemplateSpec, Doc("desired state")] = DevMachinePoolTemplateSpec()
