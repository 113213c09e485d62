"""Clusters whose machines are containers: a load balancer in a container, in front of the API servers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, ClassVar

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.docker import DockerCluster, DockerMachine
from clusterwright.api.infrastructure import DevCluster, DevMachine, DockerLoadBalancer, InfraCluster, InfraMachine
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.wellknown import (
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    DEV_CLUSTER_FINALIZER,
    LOAD_BALANCER_WEIGHT_ANNOTATION,
)
from clusterwright.containers import loadbalancer, naming
from clusterwright.containers.machines import demand_labels, has_labels
from clusterwright.containers.site import Site
from clusterwright.engine import Conflict, Container, EngineError, PortMapping
from clusterwright.engine.archive import archive
from clusterwright.provider import InfraClusters, Pending, ProvisionFailed
from clusterwright.provider import Site as Infrastructure
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.reconcile import Mapper, Watch


def _of_machine(kind: type[InfraCluster]) -> Mapper:
    """Return the infrastructure of a machine's Cluster."""

    async def map(machine: Object, reader: Reader) -> Sequence[ObjectKey]:
        key = ObjectKey(machine.metadata.namespace, machine.metadata.labels.get(CLUSTER_NAME_LABEL, ""))
        cluster = await reader.find(Cluster, key) if key.name else None
        reference = cluster.spec.infrastructure_ref if cluster is not None else None
        return (ObjectKey(key.namespace, reference.name),) if reference is not None and reference.kind == kind.__name__ else ()

    return map


def _address_matters(old: Any, new: Any) -> bool:
    """Return whether a machine appeared, is deleted, or has another address."""
    return (
        old is None
        or new is None
        or (old.status.addresses, old.metadata.deletion_timestamp) != (new.status.addresses, new.metadata.deletion_timestamp)
    )


def _begins_to_leave(old: Machine | None, new: Machine | None) -> bool:
    """Return whether a Machine of the control plane appeared, is deleted, or is gone."""
    one = new or old
    if one is None or CONTROL_PLANE_LABEL not in one.metadata.labels:
        return False
    return old is None or new is None or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp


class _LoadBalancers(InfraClusters[Any]):
    machine: ClassVar[type[InfraMachine]]
    """The kind of the machines behind it."""
    finalizer = DEV_CLUSTER_FINALIZER
    look: ClassVar[timedelta] = timedelta(seconds=2)
    look_when_up: ClassVar[timedelta | None] = timedelta(seconds=30)
    longest_wait: ClassVar[timedelta] = timedelta(minutes=1)

    def __init__(self, client: Client, site: Site) -> None:
        super().__init__(client)
        self._site = site
        self._engine = site.engine
        site.providers.append(self)

    async def provision(self, obj: InfraCluster, cluster: Cluster) -> Infrastructure | Pending | None:
        """Create and configure a load balancer for the control plane's containers."""
        place = await self._place(obj, cluster)
        name = _name(place)
        try:
            seen = await self._engine.inspect(name)
            if seen is None:
                return await self._create(obj, place, name)
            demand_labels(seen, self._labels(place), name)
            if seen["State"].get("Restarting"):
                raise ProvisionFailed(f"the load balancer {name} stops right after its start; see: docker logs {name}")
            if not seen["State"]["Running"]:
                await self._engine.start(name)
                return None
            servers, leaving = await self._servers(place), await self._leaving(place.cluster)
            await self._configure(name, loadbalancer.configuration(servers, leaving=leaving, has_ipv6=_has_ipv6(seen)))
        except EngineError as error:
            raise ProvisionFailed(str(error)) from error
        await self._report(place.cluster, servers, leaving)
        address = _address(seen)
        if not address:
            return None
        present = obj.spec.control_plane_endpoint
        moved = f"the load balancer {name} has the address {address} now" if present and present.host and present.host != address else ""
        return Infrastructure(host=address, port=loadbalancer.PORT, failure_domains=obj.declared_domains, stopped=moved)

    async def remove(self, obj: InfraCluster, cluster: Cluster | None) -> bool:
        """Remove the load balancer."""
        place = await self._place(obj, cluster)
        name = _name(place)
        try:
            seen = await self._engine.inspect(name)
            if seen is None or not has_labels(seen, self._labels(place)):
                return True
            await self._engine.remove(name)
            return await self._engine.inspect(name) is None
        except EngineError as error:
            raise ProvisionFailed(str(error)) from error

    async def _place(self, obj: InfraCluster, cluster: Cluster | None) -> naming.Place:
        label = obj.metadata.labels.get(CLUSTER_NAME_LABEL, "") or obj.metadata.name
        return naming.Place(await self._site.plane(), cluster.key if cluster is not None else ObjectKey(obj.metadata.namespace, label))

    def _labels(self, place: naming.Place) -> dict[str, str]:
        return {**place.labels, naming.ROLE_LABEL: naming.LOAD_BALANCER}

    def _names(self, obj: InfraCluster) -> dict[str, str]:
        return {naming.KIND_LABEL: obj.kind, naming.OBJECT_LABEL: obj.metadata.name}

    async def _create(self, obj: InfraCluster, place: naming.Place, name: str) -> Pending:
        wanted = _load_balancer(obj) or DockerLoadBalancer()
        image = f"{wanted.image_repository or loadbalancer.IMAGE}:{wanted.image_tag or loadbalancer.TAG}"
        if not wanted.image_repository and not wanted.image_tag and self._site.load_balancer_image:
            image = self._site.load_balancer_image
        if not await self._engine.has_image(image):
            return Pending(await self._site.pull(image, obj.key, self.wake))
        network = await self._site.network()
        spec = Container(
            name=name,
            image=image,
            labels={**self._labels(place), **self._names(obj)},
            hostname=name[:63],
            entrypoint=loadbalancer.COMMAND,
            network=network,
            restarts=True,
            ports=[PortMapping(container_port=loadbalancer.PORT)],
        )
        try:
            await self._engine.create(spec)
        except Conflict:
            return Pending("")  # an earlier pass, which was interrupted, made it: the next one looks whose it is
        text = loadbalancer.configuration(await self._servers(place))
        await self._engine.put(name, "/", archive({loadbalancer.PATH: text.encode()}, mode=0o644))
        await self._engine.start(name)
        return Pending(f"Waiting for the load balancer {name} to start")

    async def _servers(self, place: naming.Place) -> dict[str, str]:
        """Return the addresses of the control plane's running containers."""
        found = await self._engine.containers({**place.labels, naming.ROLE_LABEL: naming.CONTROL_PLANE})
        servers = {str(c["Names"][0]).lstrip("/"): _address(c) for c in found if c.get("State") == "running"}
        return {name: address for name, address in servers.items() if address}

    async def _leaving(self, cluster: ObjectKey) -> set[str]:
        """Return the containers whose Machines are deleted: new connections go to the others. Empty if there are no others."""
        labels = {CLUSTER_NAME_LABEL: cluster.name, CONTROL_PLANE_LABEL: ""}
        machines = await self.client.list(Machine, namespace=cluster.namespace, labels=labels)
        deleted = [m.spec.infrastructure_ref.name for m in machines if m.metadata.deletion_timestamp is not None]
        if len(deleted) == len(machines):
            return set()
        return {naming.container_name(ObjectKey(cluster.namespace, name)) for name in deleted}

    async def _report(self, cluster: ObjectKey, servers: Collection[str], leaving: Collection[str]) -> None:
        """Write the weights of the machines into their annotations."""
        for one in await self.client.list(self.machine, namespace=cluster.namespace, labels={CLUSTER_NAME_LABEL: cluster.name}):
            name = naming.container_name(one.key)
            weight = str(loadbalancer.weight(name, leaving))
            if name in servers and one.metadata.annotations.get(LOAD_BALANCER_WEIGHT_ANNOTATION) != weight:
                with suppress(NotFound):
                    annotations = {LOAD_BALANCER_WEIGHT_ANNOTATION: weight}
                    await self.client.patch(self.machine, one.key, {"metadata": {"annotations": annotations}})

    async def _configure(self, name: str, text: str) -> None:
        """Configure a load balancer, if its configuration differs. Open connections stay open."""
        path = loadbalancer.PATH
        present = await self._engine.run(name, ["cat", path])
        if present.text == text:
            return
        await self._engine.put(name, "/", archive({path: text.encode()}, mode=0o644))
        await self._engine.kill(name, loadbalancer.RELOAD)


def _has_ipv6(seen: dict[str, Any]) -> bool:
    return any(network.get("GlobalIPv6Address") for network in seen["NetworkSettings"]["Networks"].values())


def _name(place: naming.Place) -> str:
    return f"{naming.container_name(place.cluster)}-lb"


def _load_balancer(obj: InfraCluster) -> DockerLoadBalancer | None:
    if isinstance(obj, DevCluster):
        return obj.spec.backend.docker.load_balancer if obj.spec.backend.docker is not None else None
    return obj.spec.load_balancer if isinstance(obj, DockerCluster) else None


def _address(seen: dict[str, Any]) -> str:
    networks = ((seen.get("NetworkSettings") or {}).get("Networks") or {}).values()
    return next((str(a) for network in networks for a in (network.get("IPAddress"), network.get("GlobalIPv6Address")) if a), "")


class DevLoadBalancers(_LoadBalancers):
    """DevClusters with the backend `docker`."""

    kind = DevCluster
    machine = DevMachine
    watches = (
        Watch(DevMachine, _of_machine(DevCluster), when=_address_matters),
        Watch(Machine, _of_machine(DevCluster), when=_begins_to_leave),
    )

    def concerns(self, obj: DevCluster) -> bool:
        """Return whether the cluster consists of containers."""
        return obj.spec.backend.docker is not None


class DockerLoadBalancers(_LoadBalancers):
    """DockerClusters."""

    kind = DockerCluster
    machine = DockerMachine
    watches = (
        Watch(DockerMachine, _of_machine(DockerCluster), when=_address_matters),
        Watch(Machine, _of_machine(DockerCluster), when=_begins_to_leave),
    )
