"""Machines that are containers: create, boot from bootstrap data, watch, remove."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar

from clusterwright.api.core import Machine, MachineAddress
from clusterwright.api.docker import DockerMachine
from clusterwright.api.infrastructure import DevMachine, DockerMachineBackend, InfraMachine
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, DEV_MACHINE_FINALIZER
from clusterwright.containers import bootscript, naming, preparation
from clusterwright.containers.conditions import TABLES, Reached, Stage
from clusterwright.containers.site import Site
from clusterwright.engine import Conflict, Container, EngineError, Missing, Mount
from clusterwright.golang.times import parse_duration
from clusterwright.kubeadm import cloudconfig, ignitionconfig
from clusterwright.provider import Gone, InfraMachines, Pending, ProvisionFailed, Server
from clusterwright.runtime.client import Client

KUBELET_CONFIG = "/etc/kubernetes/kubelet.conf"
MOST_RESTARTS = 3
"""How often the engine may have restarted a container that is not up yet, before that counts as a failure."""
LOADED = f"{bootscript.STATE}/preloaded"
"""The file in a node that shows that its images are loaded."""


class _Containers(InfraMachines[Any]):
    """Machines as containers. Nothing is kept in memory: every pass asks the engine."""

    finalizer = DEV_MACHINE_FINALIZER
    look: ClassVar[timedelta] = timedelta(seconds=2)
    look_when_up: ClassVar[timedelta | None] = timedelta(seconds=30)
    longest_wait: ClassVar[timedelta] = timedelta(minutes=1)
    conditions = TABLES

    def __init__(self, client: Client, site: Site) -> None:
        super().__init__(client)
        self._site = site
        self._engine = site.engine
        site.providers.append(self)

    async def provision(self, obj: InfraMachine, machine: Machine) -> Server | Gone | Pending:
        """Create the container, boot it, and check it."""
        name = naming.container_name(obj.key)
        try:
            seen = await self._engine.inspect(name)
            was_up = obj.status.initialization is not None and bool(obj.status.initialization.provisioned)
            if seen is None and was_up:
                return Gone(f"the container {name} was removed")
            if seen is None:
                with reaching(Stage.CONTAINER):
                    return await self._create(obj, machine, name)
            demand_labels(seen, await self._identity(obj), name)
            if not was_up and seen.get("RestartCount", 0) >= MOST_RESTARTS:
                with reaching(Stage.CONTAINER):
                    raise ProvisionFailed(f"the container {name} stops right after its start; see: docker logs {name}")
            if not seen["State"]["Running"] or seen["State"].get("Restarting"):
                if was_up:
                    return _stopped(seen, name, obj)
                if not seen["State"].get("Restarting"):
                    await self._engine.start(name)  # an earlier pass was interrupted before it did
                return _waiting(f"the container {name} to start", Stage.CONTAINER)
            if not was_up and (pending := await self._booted(obj, machine, name)):
                return pending
            return await self._server(seen, name, obj, machine)
        except EngineError as error:
            raise ProvisionFailed(str(error)) from error

    async def remove(self, obj: InfraMachine, machine: Machine | None) -> bool:
        """Remove the container with its volumes, in any state."""
        name = naming.container_name(obj.key)
        try:
            seen = await self._engine.inspect(name)
            if seen is None or not has_labels(seen, await self._identity(obj)):
                return True
            await self._engine.remove(name)
            return await self._engine.inspect(name) is None
        except EngineError as error:
            raise ProvisionFailed(str(error)) from error

    # ------------------------------------------------------------------------------------------------ creation

    async def _create(self, obj: InfraMachine, machine: Machine, name: str) -> Pending:
        backend = _backend(obj)
        if not self._site.allows_host_mounts and any(mount.host_path for mount in backend.extra_mounts):
            raise ProvisionFailed(
                "extraMounts: paths of the host are refused, because they give access to the host: "
                "remove hostPath, or start the plane with --engine-allow-host-mounts"
            )
        image = backend.custom_image or self._site.image(machine.spec.version)
        if not await self._engine.has_image(image):
            return Pending(await self._site.pull(image, obj.key, self.wake), Reached(Stage.CONTAINER))
        network = await self._site.network()
        try:
            await self._engine.create(await self._spec(obj, machine, name, image, network, backend))
        except Conflict:
            return Pending("", Reached(Stage.CONTAINER))  # an earlier pass, which was interrupted, made it: the next one looks whose it is
        except Missing as error:
            raise ProvisionFailed(f"{image}: {error}") from error
        await self._engine.start(name)
        return _waiting(f"the container {name} to start", Stage.CONTAINER)

    async def _spec(
        self, obj: InfraMachine, machine: Machine, name: str, image: str, network: str, backend: DockerMachineBackend
    ) -> Container:
        is_control_plane = CONTROL_PLANE_LABEL in machine.metadata.labels
        labels = {
            **(await self._place(obj, machine)).labels,
            naming.KIND_LABEL: obj.kind,
            naming.OBJECT_LABEL: obj.metadata.name,
            naming.ROLE_LABEL: naming.CONTROL_PLANE if is_control_plane else naming.WORKER,
        }
        if machine.spec.failure_domain:
            labels[naming.FAILURE_DOMAIN_LABEL] = machine.spec.failure_domain
        extra = [
            Mount(target=m.container_path, source=m.host_path, is_host_path=bool(m.host_path), is_read_only=m.read_only)
            for m in backend.extra_mounts
        ]
        modules = Mount(target="/lib/modules", source="/lib/modules", is_host_path=True, is_read_only=True)
        return Container(
            name=name,
            image=image,
            labels=labels,
            hostname=obj.metadata.name,
            entrypoint=self._site.entrypoint,
            environment={"container": "docker"},
            network=network,
            is_privileged=True,
            has_host_cgroups=await self._site.has_old_cgroups(),
            restarts=True,
            tmpfs=preparation.TMPFS,
            mounts=[*(Mount(target=path) for path in preparation.VOLUMES), *([modules] if self._site.has_modules else []), *extra],
            sysctls=preparation.IPV6 if await self._site.has_ipv6() else {},
        )

    async def _place(self, obj: InfraMachine, machine: Machine) -> naming.Place:
        cluster = machine.spec.cluster_name or obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
        return naming.Place(await self._site.plane(), ObjectKey(obj.metadata.namespace, cluster))

    async def _identity(self, obj: InfraMachine) -> dict[str, str]:
        """Return the labels that identify the machine's container."""
        return {
            naming.PLANE_LABEL: await self._site.plane(),
            naming.NAMESPACE_LABEL: obj.metadata.namespace,
            naming.KIND_LABEL: obj.kind,
            naming.OBJECT_LABEL: obj.metadata.name,
        }

    # ------------------------------------------------------------------------------------------------ boot

    async def _booted(self, obj: InfraMachine, machine: Machine, name: str) -> Pending | None:
        """Start the bootstrap script, or check its progress. Return that; None: it has succeeded. Raises ProvisionFailed."""
        looked = await self._engine.run(name, ["/bin/sh", "-c", bootscript.LOOK])
        found = bootscript.progress(looked.text)
        if found.failure:
            raise ProvisionFailed(f"bootstrapping failed: {found.failure}", facts=Reached(Stage.BOOTSTRAP, is_final=True))
        backend = _backend(obj)
        if found.is_started:
            _demand_in_time(found, backend.bootstrap_timeout)
            return None if found.is_over else _waiting(found.step, Stage.BOOTSTRAP)
        if (await self._engine.run(name, ["/bin/sh", "-c", bootscript.SYSTEM_IS_UP])).code:
            return _waiting("systemd to be up in the container", Stage.SYSTEM)
        with reaching(Stage.IMAGES):
            if backend.pre_load_images and not await self._loaded(name, obj, backend.pre_load_images):
                return _waiting("images to be loaded into the node", Stage.IMAGES)
        with reaching(Stage.BOOTSTRAP):
            await self._boot(obj, machine, name)
        return _waiting("the bootstrap script", Stage.BOOTSTRAP)

    async def _boot(self, obj: InfraMachine, machine: Machine, name: str) -> None:
        """Start the bootstrap script. Raises ProvisionFailed."""
        data = await self.bootstrap_data(machine)
        try:
            is_ignition = data.format == "ignition"
            config = ignitionconfig.read(data.value) if is_ignition else cloudconfig.read(data.value, obj.metadata.name)
        except cloudconfig.BadUserData as error:
            raise ProvisionFailed(f"bootstrap data: {error}") from error
        settings = preparation.Settings(has_old_cgroups=await self._site.has_old_cgroups(), name_servers=self._site.name_servers)
        content = bootscript.script(preparation.prepared(config, settings))
        started = await self._engine.run(name, ["/bin/sh", "-c", bootscript.START], input=content)
        if started.code:
            raise ProvisionFailed(f"the bootstrap script cannot be started: {bootscript.essence(started.text)}")

    async def _loaded(self, name: str, obj: InfraMachine, images: Sequence[str]) -> bool:
        """Load images into the node before it boots. Return whether they are there."""
        marked = await self._engine.run(name, ["/bin/sh", "-c", f"test -f {LOADED}"])
        if marked.code == 0:
            return True
        if not await self._site.load(images, name, obj.key, self.wake):
            return False
        await self._engine.run(name, ["/bin/sh", "-c", f"mkdir -p {bootscript.STATE} && : > {LOADED}"])
        return True

    # ------------------------------------------------------------------------------------------------ what is there

    async def _server(self, seen: dict[str, Any], name: str, obj: InfraMachine, machine: Machine) -> Server:
        identity = obj.spec.provider_id or await self._identify(name, obj.metadata.name)
        addresses = _addresses(seen, obj.metadata.name)
        domain = machine.spec.failure_domain or ""
        return Server(provider_id=identity, addresses=addresses, failure_domain=domain, facts=Reached(Stage.DONE))

    async def _identify(self, container: str, node: str) -> str:
        """Write the machine's identity on its Node, unless kubelet was given one. Return the identity of the Node."""
        kubectl = f"kubectl --kubeconfig {KUBELET_CONFIG}"
        patch = shlex.quote(json.dumps({"spec": {"providerID": naming.provider_id(container)}}))
        read = f"{kubectl} get node {node} -o 'jsonpath={{.spec.providerID}}'"
        line = f'id=$({read}) || exit 1; test -n "$id" || {kubectl} patch node {node} -p {patch} >/dev/null || exit 1; {read}'
        answered = await self._engine.run(container, ["/bin/sh", "-c", line])
        if answered.code:
            raise ProvisionFailed(f"the providerID of Node {node} cannot be set: {bootscript.essence(answered.text)}")
        return answered.text.strip() or naming.provider_id(container)


@contextmanager
def reaching(stage: Stage) -> Iterator[None]:
    """Tell the stage with a failure to complete it."""
    try:
        yield
    except (EngineError, ProvisionFailed) as error:
        raise ProvisionFailed(str(error), facts=Reached(stage)) from error


def _waiting(what: str, stage: Stage) -> Pending:
    return Pending(f"Waiting for {what}", Reached(stage))


def has_labels(seen: dict[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether an inspected container has these labels."""
    return labels.items() <= (seen["Config"].get("Labels") or {}).items()


def demand_labels(seen: dict[str, Any], labels: Mapping[str, str], name: str) -> None:
    """Raise ProvisionFailed unless a container has the expected labels."""
    if not has_labels(seen, labels):
        raise ProvisionFailed(f"the name {name} is taken by a container of another plane or user: remove it, or choose another name")


def _demand_in_time(found: bootscript.Progress, timeout: str | None) -> None:
    """Raise ProvisionFailed if a machine exceeds its boot time limit."""
    most = parse_duration(timeout) if timeout else None
    if most is not None and not found.is_over and found.seconds * 10**9 > most:
        text = f"bootstrapping takes longer than bootstrapTimeout ({timeout}); it is at {found.step}"
        raise ProvisionFailed(text, facts=Reached(Stage.BOOTSTRAP))


def _stopped(seen: dict[str, Any], name: str, obj: InfraMachine) -> Server:
    """Return a machine whose container has ended."""
    state = seen["State"]
    why = f"the container {name} has stopped with code {state.get('ExitCode')}"
    if state.get("OOMKilled"):
        why += ", because it ran out of memory"
    return Server(
        provider_id=obj.spec.provider_id,
        addresses=obj.status.addresses,
        failure_domain=obj.status.failure_domain,
        stopped=f"{why}; to start it: docker start {name}",
    )


def _backend(obj: InfraMachine) -> DockerMachineBackend:
    """Return the container settings of a machine."""
    if isinstance(obj, DevMachine):
        return obj.spec.backend.docker or DockerMachineBackend()
    if isinstance(obj, DockerMachine):
        spec = obj.spec
        return DockerMachineBackend(
            custom_image=spec.custom_image,
            pre_load_images=spec.pre_load_images,
            extra_mounts=spec.extra_mounts,
            bootstrap_timeout=spec.bootstrap_timeout,
        )
    return DockerMachineBackend()


def _addresses(seen: dict[str, Any], node: str) -> tuple[MachineAddress, ...]:
    networks = (seen.get("NetworkSettings") or {}).get("Networks") or {}
    found = [network.get(key) for network in networks.values() for key in ("IPAddress", "GlobalIPv6Address")]
    internal = [MachineAddress(type=kind, address=address) for address in found if address for kind in ("InternalIP", "ExternalIP")]
    return (MachineAddress(type="Hostname", address=node), *internal, MachineAddress(type="InternalDNS", address=node))


class DevContainers(_Containers):
    """DevMachines with the backend `docker`."""

    kind = DevMachine

    def concerns(self, obj: DevMachine) -> bool:
        """Return whether the machine is to be a container."""
        return obj.spec.backend.docker is not None


class DockerContainers(_Containers):
    """DockerMachines."""

    kind = DockerMachine
