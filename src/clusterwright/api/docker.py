"""The parts of the Docker kinds that controllers read and write; the whole kinds and their CRDs are data (`api.versions`).

Fields for the container engine (images, mounts, the load balancer) are used if machines are containers, and ignored if they are simulated.
"""

from __future__ import annotations

from typing import Annotated

from clusterwright.api.core.shared import FailureDomain
from clusterwright.api.infrastructure import (
    DevClusterStatus,
    DevMachinePoolStatus,
    DevMachineStatus,
    DockerLoadBalancer,
    DockerMachinePoolBackend,
    FailureDomains,
    InfraCluster,
    InfraClusterSpec,
    InfraMachine,
    InfraMachinePool,
    InfraMachinePoolSpec,
    InfraMachineSpec,
    Mount,
)
from clusterwright.api.meta import ALWAYS


class DockerClusterSpec(InfraClusterSpec):
    failure_domains: FailureDomains = ()
    load_balancer: DockerLoadBalancer | None = None


class DockerCluster(InfraCluster):
    """The infrastructure of a cluster of containers."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DockerCluster"
    spec: DockerClusterSpec = DockerClusterSpec()
    status: DevClusterStatus = DevClusterStatus()

    @property
    def declared_domains(self) -> tuple[FailureDomain, ...]:
        """The failure domains in the spec."""
        return self.spec.failure_domains


class DockerMachineSpec(InfraMachineSpec):
    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()
    bootstrap_timeout: str | None = None


class DockerMachine(InfraMachine):
    """The infrastructure of a machine that is a container."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DockerMachine"
    spec: DockerMachineSpec = DockerMachineSpec()
    status: DevMachineStatus = DevMachineStatus()


class DockerMachinePoolSpec(InfraMachinePoolSpec):
    template: Annotated[DockerMachinePoolBackend, ALWAYS] = DockerMachinePoolBackend()


class DockerMachinePool(InfraMachinePool):
    """The infrastructure of a pool of such machines."""

    api_version: str = "infrastructure.cluster.x-k8s.io/v1beta2"
    kind: str = "DockerMachinePool"
    spec: DockerMachinePoolSpec = DockerMachinePoolSpec()
    status: DevMachinePoolStatus = DevMachinePoolStatus()
