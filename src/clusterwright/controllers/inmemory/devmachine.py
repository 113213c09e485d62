"""DevMachine: a machine that boots from its bootstrap data and becomes a Node.

A pass goes as far as time permits: each stage begins where the one before it ended, and the first that is not over says when to come
back. With durations of zero a machine is up in one pass.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as with_
from datetime import datetime, timedelta

from msgspec.structs import replace

from clusterwright import conditions
from clusterwright.api.core import Cluster, Machine, MachineAddress
from clusterwright.api.infrastructure import (
    DevCluster,
    DevDeprecatedStatus,
    DevDeprecatedV1Beta1Status,
    DevInitializationStatus,
    DevMachine,
    InMemoryPart,
)
from clusterwright.api.kubernetes import Node, Pod, Secret
from clusterwright.api.meta import Condition, Json, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, DEV_MACHINE_FINALIZER
from clusterwright.conditions import v1beta1
from clusterwright.controllers.inmemory.conditions import CONTROL_PLANE_TABLES, WORKER_TABLES, Progress
from clusterwright.controllers.inmemory.owners import find_owner
from clusterwright.controllers.wiring import Dependencies
from clusterwright.inmemory import boot, bootstrap, etcd, faults, objects, stages
from clusterwright.inmemory.cloud import Cloud, SimulatedCluster
from clusterwright.kubeadm.certificates import KeyPair, Purpose, secret_name
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result

VM_STARTED = "inmemory.clusterwright.dev/vm-started"
"""When the VM was asked for; only where it takes time to start."""
APPLIED_FAULTS = "inmemory.clusterwright.dev/applied-faults"
"""On the Node: the faults that it shows, so that what a test breaks by hand is left alone."""
_OWNED = ("Ready", "VMProvisioned", "NodeProvisioned", "EtcdProvisioned", "APIServerProvisioned", "Paused")


@dataclass(frozen=True, slots=True)
class _Scene:
    """Everything that a pass has read."""

    obj: DevMachine
    machine: Machine
    cluster: Cluster
    simulated: SimulatedCluster
    faults: frozenset[str]
    slowness: float
    now: datetime

    @property
    def name(self) -> str:
        return self.obj.metadata.name

    @property
    def is_control_plane(self) -> bool:
        return CONTROL_PLANE_LABEL in self.machine.metadata.labels

    @property
    def version(self) -> str:
        return self.machine.spec.version


class DevMachineReconciler:
    """One pass over a DevMachine."""

    def __init__(self, dependencies: Dependencies, cloud: Cloud) -> None:
        self._client = dependencies.client
        self._clock = dependencies.clock
        self._random = dependencies.random
        self._trace = dependencies.trace
        self._enqueue = dependencies.enqueue
        self._patcher = Patcher(dependencies.client, dependencies.clock, dependencies.random)
        self._cloud = cloud
        self._subscribed: set[ObjectKey] = set()
        self._waiting: dict[ObjectKey, set[ObjectKey]] = {}

    async def reconcile(self, key: ObjectKey) -> Result:
        """Take the machine as far as time permits, or away."""
        original = await self._client.read(DevMachine, key)
        if original is None or original.object.spec.backend.in_memory is None:
            return Result.await_change()
        finalization = await ensure_finalizer(self._patcher, original, DEV_MACHINE_FINALIZER)
        if finalization in {Finalization.ADDED, Finalization.ABSENT}:
            return Result.await_change()
        machine = await find_owner(self._client, original.object, Machine)
        if machine is None:
            if finalization is Finalization.CLEANUP:
                await self._tear_down(original)
            return Result.await_change()
        cluster = await self._client.find(Cluster, ObjectKey(key.namespace, machine.spec.cluster_name))
        if cluster is None:
            if finalization is Finalization.CLEANUP:
                await self._tear_down(original)
            return Result.await_change()
        check = await ensure_paused_condition(self._patcher, self._clock, original, cluster_paused=bool(cluster.spec.paused))
        if check.ends_pass:
            return Result.await_change()
        if finalization is Finalization.CLEANUP:
            await self._tear_down(original)
            return Result.await_change()
        scene = await self._look(check.object, machine, cluster)
        if scene is None:
            return Result.await_change()
        return await self._advance(original, scene)

    async def _look(self, obj: DevMachine, machine: Machine, cluster: Cluster) -> _Scene | None:
        """What the pass works on; None while the infrastructure of the Cluster is not there."""
        reference = cluster.spec.infrastructure_ref
        if reference is None or await self._client.find(DevCluster, ObjectKey(obj.metadata.namespace, reference.name)) is None:
            return None
        simulated = self._cloud.find(cluster.key)
        if simulated is None:
            if not (cluster.status.initialization and cluster.status.initialization.infrastructure_provisioned):
                endpoint = None
            else:
                endpoint = cluster.spec.control_plane_endpoint
            if endpoint is None or not endpoint.host or not endpoint.port:
                return None
            simulated = await self._cloud.ensure(cluster.key, (endpoint.host, endpoint.port))  # after a restart
        return _Scene(
            obj,
            machine,
            cluster,
            simulated,
            faults.requested(obj.metadata.annotations, faults.MACHINE_FAULTS),
            faults.slowness(obj.metadata.annotations),
            self._clock.now(),
        )

    # -------------------------------------------------------------------------------------------------- stages

    async def _advance(self, original: Original[DevMachine], scene: _Scene) -> Result:
        obj, vote = scene.obj, None
        progress = self._gates(scene)
        if progress.may_start and not progress.never_boots:
            obj, progress = self._start_vm(scene, obj, progress)
            vote = progress.vm_left
        if progress.vm_provisioned and scene.machine.metadata.deletion_timestamp is None:
            progress = await self._join(scene, progress)
            vote = vote or progress.node_left or (timedelta(seconds=10) if progress.boot_is_waiting else None)
        if progress.node_provisioned and scene.machine.metadata.deletion_timestamp is None:
            if scene.is_control_plane:
                progress = await self._control_plane(scene, progress)
                vote = vote or min((t for t in (progress.etcd_left, progress.api_server_left) if t), default=None)
            await self._show_faults(scene)
        obj = self._conclude(scene, obj, progress)
        await self._patcher.patch(original, obj, owned_conditions=_OWNED, owned_v1beta1_conditions=_OWNED)
        return Result.soonest(vote)

    def _gates(self, scene: _Scene) -> Progress:
        initialization = scene.cluster.status.initialization
        return Progress(
            is_control_plane=scene.is_control_plane,
            cluster_infrastructure_provisioned=bool(initialization and initialization.infrastructure_provisioned),
            control_plane_initialized=conditions.is_true(scene.cluster.status.conditions, "ControlPlaneInitialized"),
            has_bootstrap_data=scene.machine.spec.bootstrap.data_secret_name is not None,
            never_boots=faults.NEVER_BOOTS in scene.faults and not scene.obj.spec.provider_id,
        )

    def _start_vm(self, scene: _Scene, obj: DevMachine, progress: Progress) -> tuple[DevMachine, Progress]:
        if obj.spec.provider_id:
            return obj, progress
        needed = self._delay(scene, "vm")
        started = obj.metadata.annotations.get(VM_STARTED)
        since = datetime.fromisoformat(started) if started else scene.now
        if left := stages.remaining(since, needed, scene.now):
            if not started:
                annotations = {**obj.metadata.annotations, VM_STARTED: scene.now.isoformat()}
                obj = replace(obj, metadata=replace(obj.metadata, annotations=annotations))
            return obj, with_(progress, vm_left=left)
        return replace(obj, spec=replace(obj.spec, provider_id=objects.provider_id(scene.name))), progress

    async def _join(self, scene: _Scene, progress: Progress) -> Progress:
        """The Node stage: wait its time, run kubeadm on the bootstrap data, register the Node."""
        if await scene.simulated.client.find(Node, ObjectKey("", scene.name)) is not None:
            return progress
        if left := stages.remaining(self._since(scene, "VMProvisioned"), self._delay(scene, "node"), scene.now):
            return with_(progress, node_left=left)
        failed = conditions.get(scene.obj.status.conditions, "NodeProvisioned")
        if failed is not None and failed.reason == "BootstrapFailed":
            return with_(progress, boot_failure=failed.message)  # cloud-init does not run twice
        try:
            booted = await self._boot(scene)
        except bootstrap.BootFailure as failure:
            waiting = failure.is_transient
            if waiting:
                self._wait_for(scene)
            return with_(progress, boot_failure=str(failure), boot_is_waiting=waiting)
        taints: list[Json] = [] if scene.is_control_plane else [dict(t) for t in booted.taints]
        node = objects.node(
            scene.name,
            is_control_plane=scene.is_control_plane,
            version=scene.version,
            address=_address(scene),
            now=scene.now,
            taints=taints,
        )
        await scene.simulated.ensure(node)
        await scene.simulated.ensure(objects.node_lease(scene.name, scene.now))
        if booted.founds:
            assert booted.ca is not None
            founded = objects.kubeadm_objects(booted.cluster_configuration, scene.version, booted.ca.certificate, scene.simulated.endpoint)
            for obj in founded:
                await scene.simulated.ensure(obj)
        return progress

    async def _boot(self, scene: _Scene) -> boot.Boot:
        if faults.BOOTSTRAP_FAILS in scene.faults:
            raise bootstrap.BootFailure("kubeadm: the fault bootstrap-fails is set")
        name = scene.machine.spec.bootstrap.data_secret_name or ""
        secret = await self._client.find(Secret, ObjectKey(scene.obj.metadata.namespace, name))
        if secret is None or "value" not in secret.data:
            raise bootstrap.BootFailure(f"user data: Secret {name} has no value")
        data = bootstrap.parse(secret.data["value"], secret.data.get("format", b"").decode())
        token = await scene.simulated.token(_token_id(data))
        simulated = scene.simulated
        seen = boot.Neighbourhood(
            endpoint=simulated.endpoint,
            is_serving=simulated.is_serving,
            ca=simulated.serving.authority.certificate if simulated.serving else b"",
            find_token=lambda _id: token,
        )
        return boot.boot(data, seen, scene.now, is_control_plane=scene.is_control_plane)

    def _wait_for(self, scene: _Scene) -> None:
        """Wake this machine when its cluster begins to answer."""
        key = scene.cluster.key
        self._waiting.setdefault(key, set()).add(scene.obj.key)
        if key not in self._subscribed:
            self._subscribed.add(key)
            scene.simulated.on_change(lambda: self._wake(key))

    def _wake(self, cluster: ObjectKey) -> None:
        for machine in sorted(self._waiting.pop(cluster, ())):
            self._enqueue(machine, f"workload cluster of {cluster} has changed")

    async def _control_plane(self, scene: _Scene, progress: Progress) -> Progress:
        since = self._since(scene, "NodeProvisioned")
        if left := stages.remaining(since, self._delay(scene, "etcd"), scene.now):
            progress = with_(progress, etcd_left=left)
        else:
            await self._start_etcd(scene)
        if progress.etcd_left is None and (left := stages.remaining(since, self._delay(scene, "api_server"), scene.now)):
            return with_(progress, api_server_left=left)
        if progress.etcd_left is not None:
            return with_(progress, api_server_left=progress.etcd_left)
        await self._start_api_server(scene)
        return progress

    async def _start_etcd(self, scene: _Scene) -> None:
        authority = await self._authority(scene, Purpose.ETCD_CA)
        if authority is None or not authority.key:
            return  # etcd is external
        await scene.simulated.add_etcd_certificate(scene.name, authority)
        key = ObjectKey("kube-system", f"etcd-{scene.name}")
        if await scene.simulated.client.find(Pod, key) is None:
            everyone = await scene.simulated.members()
            annotations = etcd.new_member(everyone, self._random, scene.now)
            await scene.simulated.ensure(
                objects.static_pod("etcd", scene.name, version=scene.version, now=scene.now, annotations=annotations)
            )
            await scene.simulated.check_quorum()

    async def _start_api_server(self, scene: _Scene) -> None:
        authority = await self._authority(scene, Purpose.CA)
        if authority is None:
            return
        for component in ("kube-apiserver", "kube-scheduler", "kube-controller-manager"):
            key = ObjectKey("kube-system", f"{component}-{scene.name}")
            if await scene.simulated.client.find(Pod, key) is None:
                await scene.simulated.ensure(
                    objects.static_pod(component, scene.name, version=scene.version, now=scene.now, annotations={})
                )
        if not scene.faults & {faults.NODE_DIES, faults.API_SERVER_STOPS}:
            await scene.simulated.start_api_server(scene.name, authority)

    async def _authority(self, scene: _Scene, purpose: Purpose) -> KeyPair | None:
        key = ObjectKey(scene.cluster.metadata.namespace, secret_name(scene.cluster.metadata.name, purpose))
        secret = await self._client.find(Secret, key)
        if secret is None:
            return None
        return KeyPair(secret.data.get("tls.crt", b""), secret.data.get("tls.key", b""))

    # -------------------------------------------------------------------------------------------------- faults

    async def _show_faults(self, scene: _Scene) -> None:
        """Make Node, etcd and API server look as the faults demand; only when the demand has changed."""
        client, key = scene.simulated.client, ObjectKey("", scene.name)
        node = await client.find(Node, key)
        wanted = ",".join(sorted(scene.faults - {faults.NEVER_BOOTS, faults.BOOTSTRAP_FAILS}))
        if node is None or node.metadata.annotations.get(APPLIED_FAULTS, "") == wanted:
            return
        is_dead = faults.NODE_DIES in scene.faults
        is_silent = is_dead or faults.KUBELET_STOPS in scene.faults
        await client.patch(
            Node, key, {"status": {"conditions": objects.node_conditions(scene.now, is_ready=not is_silent)}}, subresource="status"
        )
        if scene.is_control_plane:
            await self._show_component(scene, "etcd", is_down=is_dead or faults.ETCD_STOPS in scene.faults)
            await self._show_component(scene, "kube-apiserver", is_down=is_dead or faults.API_SERVER_STOPS in scene.faults)
            corrupt = "CORRUPT" if faults.ETCD_CORRUPT in scene.faults else None
            stopped = "" if is_dead or faults.ETCD_STOPS in scene.faults else None
            with suppress(NotFound):  # etcd is external
                await scene.simulated.annotate_etcd(scene.name, {etcd.ALARMS: corrupt, etcd.STOPPED: stopped})
            if scene.faults & {faults.NODE_DIES, faults.API_SERVER_STOPS}:
                await scene.simulated.stop_api_server(scene.name)
        await client.patch(Node, key, {"metadata": {"annotations": {APPLIED_FAULTS: wanted or None}}})

    async def _show_component(self, scene: _Scene, component: str, *, is_down: bool) -> None:
        status = "False" if is_down else "True"
        stamp = objects.timestamp(scene.now)
        patch = {"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": stamp}]}}
        key = ObjectKey("kube-system", f"{component}-{scene.name}")
        with suppress(NotFound):
            await scene.simulated.client.patch(Pod, key, patch, type="strategic", subresource="status")

    # ---------------------------------------------------------------------------------------------------- end

    def _conclude(self, scene: _Scene, obj: DevMachine, progress: Progress) -> DevMachine:
        generation, now = obj.metadata.generation, scene.now
        present = obj.status.conditions
        deprecated = (
            obj.status.deprecated.v1beta1 if obj.status.deprecated and obj.status.deprecated.v1beta1 else DevDeprecatedV1Beta1Status()
        )
        legacy = deprecated.conditions
        rows: dict[str, str] = {}
        tables = CONTROL_PLANE_TABLES if scene.is_control_plane else WORKER_TABLES
        for table in tables:
            decision = table.decide(progress)
            rows[table.name] = decision.row
            outcome = decision.outcome
            assert outcome is not None
            condition = Condition(type=table.name, status=outcome.status, reason=outcome.reason, message=outcome.message)
            present = conditions.set_condition(present, condition, generation=generation, now=now)
            twin = (
                v1beta1.true(table.name)
                if outcome.status == "True"
                else v1beta1.false(table.name, outcome.reason, outcome.severity, outcome.message)
            )
            legacy = v1beta1.set_condition(legacy, twin, now=now)
        types = [table.name for table in tables]
        source = conditions.Reporter(kind="DevMachine", name=scene.name, conditions=present)
        reasons = conditions.Reasons(issue="NotReady", unknown="ReadyUnknown", info="Ready")
        ready = conditions.summary(source, types, target="Ready", strategy=conditions.Strategy(reasons=reasons))
        present = conditions.set_condition(present, ready, generation=generation, now=now)
        self._trace(obj.key, rows)
        is_provisioned = bool(obj.spec.provider_id)
        return replace(
            obj,
            status=replace(
                obj.status,
                conditions=present,
                initialization=DevInitializationStatus(provisioned=True) if is_provisioned else obj.status.initialization,
                addresses=_addresses(scene) if is_provisioned else obj.status.addresses,
                failure_domain=scene.machine.spec.failure_domain if is_provisioned else obj.status.failure_domain,
                deprecated=DevDeprecatedStatus(v1beta1=replace(deprecated, conditions=legacy)),
            ),
        )

    async def _tear_down(self, original: Original[DevMachine]) -> None:
        obj = original.object
        key = ObjectKey(obj.metadata.namespace, obj.metadata.labels.get(CLUSTER_NAME_LABEL, ""))
        simulated = self._cloud.find(key)
        if simulated is not None:
            name = obj.metadata.name
            await simulated.stop_api_server(name)
            await simulated.remove(Node, "", name)
            for component in objects.CONTROL_PLANE_COMPONENTS:
                await simulated.remove(Pod, "kube-system", f"{component}-{name}")
            await simulated.check_quorum()
        await self._patcher.patch(original, without_finalizer(obj, DEV_MACHINE_FINALIZER))

    def _delay(self, scene: _Scene, part: str) -> timedelta:
        backend = scene.obj.spec.backend.in_memory
        chosen: InMemoryPart | None = getattr(backend, part)
        if chosen is None or chosen.provisioning is None:
            return timedelta()
        settings, seed = chosen.provisioning, f"{scene.obj.metadata.uid}/{part}"
        field = f"spec.backend.inMemory.{part}.provisioning"
        return scene.slowness * stages.delay(settings.startup_duration, settings.startup_jitter, field=field, seed=seed)

    @staticmethod
    def _since(scene: _Scene, type_: str) -> datetime:
        """When a stage ended; now, if it ends in this pass."""
        condition = conditions.get(scene.obj.status.conditions, type_)
        if condition is None or condition.status != "True" or condition.last_transition_time is None:
            return scene.now
        return condition.last_transition_time


def _token_id(data: bootstrap.BootstrapData) -> str:
    for document in data.documents:
        token = ((document.get("discovery") or {}).get("bootstrapToken") or {}).get("token", "")
        if token:
            return str(token).partition(".")[0]
    return ""


def _address(scene: _Scene) -> str:
    """A stable address for a machine; nothing listens there."""
    number = sum(scene.name.encode()) % 250 + 2
    return f"10.244.0.{number}"


def _addresses(scene: _Scene) -> tuple[MachineAddress, ...]:
    return (
        MachineAddress(type="InternalDNS", address=scene.name),
        MachineAddress(type="InternalIP", address=_address(scene)),
    )
