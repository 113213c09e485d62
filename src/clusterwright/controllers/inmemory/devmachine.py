"""DevMachine and DockerMachine: a machine that boots from its bootstrap data and becomes a Node.

A pass completes every stage whose time is over: each stage begins where the one before it ended, and the first unfinished one sets the
requeue. With durations of zero a machine is up in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterwright import conditions
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.infrastructure import InfraMachine
from clusterwright.api.kubernetes import DaemonSet, Lease, Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, DEV_MACHINE_FINALIZER
from clusterwright.controllers.inmemory.breaking import show_faults
from clusterwright.controllers.inmemory.conditions import Progress
from clusterwright.controllers.inmemory.control_plane import ControlPlane
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts, Owners, PoolFacts
from clusterwright.controllers.inmemory.kinds import Family, Simulated
from clusterwright.controllers.inmemory.kubelet import follow_machine
from clusterwright.controllers.inmemory.revival import addressed, arrived, has_booted, known_address, refounded
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.controllers.inmemory.status import conclude
from clusterwright.controllers.kit.owners import find_owner
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.inmemory import boot, bootstrap, faults, objects, stages
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.cluster import SimulatedCluster
from clusterwright.inmemory.distributions import UNIDENTIFIED
from clusterwright.kubeadm.certificates import CertificateError, Purpose
from clusterwright.runtime.errors import ApiError, ConnectionFailed, Terminal
from clusterwright.runtime.finalizers import with_finalizer, without_finalizer
from clusterwright.runtime.reconcile import Reconciler

VM_STARTED = "inmemory.clusterwright.dev/vm-started"
"""When the VM was requested; only if it takes time to start."""
RETRY = timedelta(seconds=10)
"""How long to wait for a cluster if no event arrives."""
_OWNED = ("Ready", "VMProvisioned", "NodeProvisioned", "EtcdProvisioned", "APIServerProvisioned", "Paused")


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Snapshot[InfraMachine]):
    """A machine with its Cluster and surroundings. None for a machine that is being deleted."""

    cluster: ObjectKey
    scene: Scene | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDone(View):
    """The machine at the end of the pass, and its progress. None: no stage was run."""

    progress: Progress | None = None
    address: str = ""


MachinePass = Pass[InfraMachine, View, MachineDone]


@dataclass(slots=True)
class _Run:
    """The stages of one pass."""

    scene: Scene
    obj: InfraMachine
    progress: Progress
    address: str = ""
    stage: str = "VMProvisioned"
    """The condition of the current stage."""


def make(deps: Dependencies, cloud: Cloud, family: Family, simulated: Simulated) -> Reconciler:
    """Return the reconciler of a family's machine kind, on a cloud."""
    shape = Shape(
        kind=family.machine,
        done=MachineDone,
        finalizer=DEV_MACHINE_FINALIZER,
        finalizer_in_act=True,
        owned=_OWNED,
        owned_v1beta1=_OWNED,
    )
    return KindReconciler(deps, shape, DevMachines(deps, cloud, family, simulated))


class DevMachines(Kind[InfraMachine, Owners, View, MachineDone]):
    """Advances machines through their stages, or removes them."""

    def __init__(self, deps: Dependencies, cloud: Cloud, family: Family, simulated: Simulated) -> None:
        self._client = deps.client
        self._clock = deps.clock
        self._processes = ControlPlane(deps.client, deps.random)
        self._events = deps.events
        self._enqueue = deps.enqueue
        self._cloud = cloud
        self._simulated = simulated
        self._waiting: dict[ObjectKey, set[ObjectKey]] = {}
        self._moments: dict[ObjectKey, dict[str, datetime]] = {}
        cloud.subscribe(family.machine.__name__.lower(), self._wake)
        cloud.watch_nodes(family.machine.__name__.lower(), self._register_again)

    def forget(self, key: ObjectKey) -> None:
        """Forget a machine that is gone."""
        self._moments.pop(key, None)

    def concerns(self, obj: InfraMachine) -> bool:
        """Return whether the machine is simulated: others are not handled here."""
        return self._simulated.has_machine(obj)

    async def owner(self, obj: InfraMachine) -> Owners | None:
        """Return the Machine and its Cluster, waiting for both, unless the object is deleted."""
        machine = await find_owner(self._client, obj, Machine)
        name = machine.spec.cluster_name if machine else obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
        key = ObjectKey(obj.metadata.namespace, name)
        cluster = await self._client.find(Cluster, key) if name else None
        if obj.metadata.deletion_timestamp is None and (machine is None or cluster is None):
            return None
        if machine is None or cluster is None:  # a pause does not keep a machine from being cleaned up that has outlived its Machine
            return Owners(cluster=None, cluster_key=key)
        return Owners(cluster=ClusterFacts.of(cluster), cluster_key=key, machine=MachineFacts.of(machine))

    async def observe(self, obj: InfraMachine, owner: Owners) -> View | None:
        """Return the machine and its cluster, waiting for the cluster."""
        now, key, cluster, machine = self._clock.now(), obj.key, owner.cluster, owner.machine
        if obj.metadata.deletion_timestamp is not None:
            return View(object=obj, now=now, cluster=owner.cluster_key) if DEV_MACHINE_FINALIZER in obj.metadata.finalizers else None
        reference = cluster.infrastructure_ref if cluster is not None else None
        # a provider with a cluster kind of its own orders a cluster of ours besides; then its being there is all that counts
        kind = self._simulated.cluster_kind(reference.kind) if reference is not None else None
        if kind is not None and reference is not None and await self._client.find(kind, ObjectKey(key.namespace, reference.name)) is None:
            return None
        simulated = self._cloud.find(owner.cluster_key)
        if simulated is None or machine is None or cluster is None:
            self._waiting.setdefault(owner.cluster_key, set()).add(key)
            return None
        pool = await find_owner(self._client, machine, MachinePool)
        scene = Scene(obj, machine, cluster, simulated, now, self._moments.get(key, {}), None if pool is None else PoolFacts.of(pool))
        return View(object=obj, now=now, cluster=owner.cluster_key, scene=scene)

    def _wake(self, cluster: ObjectKey) -> None:
        """Requeue the machines that wait for a cluster when it appears, or starts or stops to answer."""
        for machine in sorted(self._waiting.pop(cluster, ())):
            self._enqueue(machine, f"workload cluster of {cluster} changed")

    def _register_again(self, cluster: ObjectKey, node: str) -> None:
        """Requeue the machine of a deleted Node: its running kubelet registers again."""
        self._enqueue(ObjectKey(cluster.namespace, node), "its Node was deleted")

    # -------------------------------------------------------------------------------------------------- stages

    async def act(self, run: MachinePass) -> None:
        """Run the stages, or remove the machine."""
        scene = run.seen.scene
        if scene is None:
            await self._tear_down(run)
            return
        if scene.machine.metadata.deletion_timestamp is not None:
            await self._processes.keep_running(scene)
            return
        under_way = _Run(scene, arrived(scene.obj, scene.machine), self._gates(scene))
        error: Exception | None = None
        try:
            run.vote(await self._stages(run, under_way))
        except (ApiError, CertificateError) as failure:
            error = failure
        except OSError as failure:  # the endpoint's port cannot be opened: another process may have it, and may let it go
            error = ConnectionFailed(f"the API server cannot listen at {scene.simulated.endpoint}: {failure.strerror or failure}")
        except (stages.BadDuration, faults.UnknownFault) as failure:
            error = Terminal(str(failure))
            error.__cause__ = failure
        if error is not None:
            under_way.progress = replace(under_way.progress, failed=under_way.stage)
            run.record("Warning", "StageFailed", f"{under_way.stage}: {error}")
            run.fail(error)
        run.done = replace(run.done, object=under_way.obj, progress=under_way.progress, address=under_way.address)

    def conclude(self, run: MachinePass) -> None:
        """Set the machine's progress; nothing for one that is being removed."""
        scene, progress = run.seen.scene, run.done.progress
        if scene is None or progress is None:
            return
        obj, rows = conclude(scene, run.object, progress, run.done.address)
        run.become(obj)
        run.rows.update(rows)
        for condition in obj.status.conditions:
            if condition.status == "True" and not scene.had(condition.type):
                self._moments.setdefault(obj.key, {})[condition.type] = scene.now

    def _gates(self, scene: Scene) -> Progress:
        return Progress(
            is_control_plane=scene.is_control_plane,
            cluster_infrastructure_provisioned=scene.cluster.provisioned,
            control_plane_initialized=scene.cluster.initialized,
            has_bootstrap_data=scene.data_secret_name is not None,
        )

    async def _stages(self, whole: MachinePass, run: _Run) -> timedelta | None:
        """Run the stages; return how long the unfinished one still takes."""
        if not run.progress.may_start:
            return None
        await self._start_vm(run)
        if DEV_MACHINE_FINALIZER not in run.obj.metadata.finalizers:  # from here on there is something to clean up
            run.obj = with_finalizer(run.obj, DEV_MACHINE_FINALIZER)
            await whole.save(replace(run.obj, status=whole.original.object.status))
        if not run.progress.vm_provisioned:
            return run.progress.vm_left
        run.stage = "NodeProvisioned"
        await self._join(run)
        if not run.progress.node_provisioned:
            return run.progress.node_left or (RETRY if run.progress.boot_is_waiting else None)
        vote = None
        if run.scene.is_control_plane:
            vote = await self._start_control_plane(run)
        await follow_machine(run.scene)
        await show_faults(run.scene)
        return vote

    async def _start_vm(self, run: _Run) -> None:
        scene, obj = run.scene, run.obj
        if not obj.spec.provider_id:
            if faults.NEVER_BOOTS in scene.faults:
                run.progress = replace(run.progress, never_boots=True)
                return
            started = obj.metadata.annotations.get(VM_STARTED)
            since = datetime.fromisoformat(started) if started else scene.now
            if left := stages.remaining(since, scene.delay("vm"), scene.now):
                if not started:
                    annotations = {**obj.metadata.annotations, VM_STARTED: scene.now.isoformat()}
                    run.obj = replace(obj, metadata=replace(obj.metadata, annotations=annotations))
                run.progress = replace(run.progress, vm_left=left)
                return
            run.obj = replace(obj, spec=replace(obj.spec, provider_id=objects.provider_id(scene.name)))
        known = known_address(obj)
        others = [] if known else await self._machines_of(scene)
        run.address = scene.simulated.address_of(scene.name, known, (known_address(o) for o in others))
        run.obj = addressed(run.obj, run.address)

    async def _machines_of(self, scene: Scene) -> list[InfraMachine]:
        """Return all machines of the cluster, of any kind."""
        namespace, labels = scene.obj.metadata.namespace, {CLUSTER_NAME_LABEL: scene.cluster.name}
        return [m for f in self._simulated.families for m in await self._client.list(f.machine, namespace=namespace, labels=labels)]

    async def _join(self, run: _Run) -> None:
        """Run the Node stage: wait for its time, run kubeadm on the bootstrap data, register the Node."""
        scene = run.scene
        if scene.simulated.has("v1", "Node", "", scene.name):
            return
        if scene.had("NodeProvisioned") and scene.faults & {faults.NODE_DIES, faults.KUBELET_STOPS}:
            return  # nobody is there to register it again
        if left := stages.remaining(scene.since("VMProvisioned"), scene.delay("node"), scene.now):
            run.progress = replace(run.progress, node_left=left)
            return
        before = conditions.get(scene.obj.status.conditions, "NodeProvisioned")
        if before is not None and before.reason == "BootstrapFailed":
            run.progress = replace(run.progress, boot_failure=before.message)  # cloud-init does not run twice
            return
        try:
            booted = await self._boot(scene)
        except bootstrap.BootFailure as failure:
            if failure.is_transient:
                self._waiting.setdefault(scene.cluster.key, set()).add(scene.obj.key)
            else:
                self._events.record(scene.obj, "Warning", "BootstrapFailed", str(failure))
            run.progress = replace(run.progress, boot_failure=str(failure), boot_is_waiting=failure.is_transient)
            return
        await self._register(run, booted)

    async def _boot(self, scene: Scene) -> boot.Boot:
        if faults.BOOTSTRAP_FAILS in scene.faults:
            raise bootstrap.BootFailure("kubeadm: the fault bootstrap-fails is set")
        data = await self._processes.user_data(scene)
        again, simulated = has_booted(arrived(scene.obj, scene.machine)), scene.simulated
        if again and isinstance(data, bootstrap.BootstrapData):
            return await refounded(self._client, scene, boot.reboot(data), await self._processes.authority(scene, Purpose.CA))
        seen = boot.Neighbourhood(
            endpoint=simulated.endpoint,
            is_serving=simulated.is_serving,
            is_founded=simulated.is_founded,
            ca=simulated.serving.authority.certificate if simulated.serving else b"",
            find_token=simulated.token,
        )
        if not isinstance(data, bootstrap.BootstrapData):
            return boot.as_is(seen, data, is_control_plane=scene.is_control_plane, again=again)
        return boot.boot(data, seen, scene.now, is_control_plane=scene.is_control_plane, version=scene.version)

    async def _register(self, run: _Run, booted: boot.Boot) -> None:
        scene, simulated = run.scene, run.scene.simulated
        simulated.ensure(
            objects.node(
                scene.name,
                is_control_plane=scene.is_control_plane,
                version=scene.version,
                address=run.address,
                now=scene.now,
                taints=booted.taints,
                labels=booted.labels,
                zone=scene.machine.spec.failure_domain,
                provider=None if UNIDENTIFIED in run.obj.metadata.annotations else run.obj.spec.provider_id,
            )
        )
        simulated.ensure(objects.node_lease(scene.name, scene.now))
        if booted.founds:
            ca = booted.ca.certificate if booted.ca else b""
            for obj in objects.kubeadm_objects(booted.cluster_configuration, scene.version, ca, simulated.endpoint):
                simulated.ensure(obj)
        daemon_set = await simulated.client.find(DaemonSet, ObjectKey("kube-system", "kube-proxy"))
        if daemon_set is not None:
            uid = daemon_set.metadata.uid
            simulated.ensure(objects.kube_proxy_pod(scene.name, version=scene.version, now=scene.now, daemon_set_uid=uid))

    async def _start_control_plane(self, run: _Run) -> timedelta | None:
        """Start etcd, then the API server; both count from the registration of the Node."""
        scene, since = run.scene, run.scene.since("NodeProvisioned")
        run.stage = "EtcdProvisioned"
        etcd_left = stages.remaining(since, scene.delay("etcd"), scene.now)
        if etcd_left is None:
            await self._processes.start_etcd(scene)
        run.stage = "APIServerProvisioned"
        left = max((t for t in (etcd_left, stages.remaining(since, scene.delay("api_server"), scene.now)) if t), default=None)
        is_dead = faults.NODE_DIES in scene.faults
        run.progress = replace(
            run.progress,
            etcd_left=etcd_left,
            api_server_left=left,
            etcd_stopped=is_dead or faults.ETCD_STOPS in scene.faults,
            api_server_stopped=is_dead or faults.API_SERVER_STOPS in scene.faults,
        )
        if left is None:
            await self._processes.start_api_server(scene)
        return etcd_left or left

    # ---------------------------------------------------------------------------------------------------- end

    async def _tear_down(self, run: MachinePass) -> None:
        """Remove the machine, with all that ran on it."""
        cluster = run.seen.cluster
        if self._cloud.expects(cluster):  # after a restart; its objects are to go as well
            self._waiting.setdefault(cluster, set()).add(run.object.key)
            run.vote(RETRY)
            return
        simulated = self._cloud.find(cluster)
        if simulated is not None:
            await _remove_machine(simulated, run.object.metadata.name)
        run.become(without_finalizer(run.object, DEV_MACHINE_FINALIZER))


async def _remove_machine(simulated: SimulatedCluster, name: str) -> None:
    await simulated.stop_api_server(name)
    await simulated.remove(Node, "", name)
    await simulated.remove(Lease, "kube-node-lease", name)
    # what ran there goes with it: the Pod garbage collector would not leave Pods of a Node that is gone
    for pod in await simulated.client.list(Pod, fields=f"spec.nodeName={name}"):
        await simulated.remove(Pod, pod.metadata.namespace, pod.metadata.name)
    simulated.drop_etcd_certificate(name)
    simulated.release_address(name)
    await simulated.settle()
