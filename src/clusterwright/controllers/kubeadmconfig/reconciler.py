"""One pass over a KubeadmConfig: read, decide the step, take it, say what came of it in one patch.

Numbered, as a pass runs:

1. the config, its owner, its Cluster; whoever is missing brings us back by being created
2. Paused; deletion (nothing is to be done: the Secret goes with its owner)
3. the Secret's owner reference is repaired
4. the step that the STEP table names
5. conditions by their tables, and one patch of spec and status, also after a failure: what was filled into the spec (a token that
   now exists, say) must not be lost

A failure is raised after the patch, for the queue to try again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from clusterwright.api.bootstrap import ClusterConfiguration, JoinConfiguration, JoinControlPlane, KubeadmConfig, KubeadmConfigSpec
from clusterwright.api.codec import convert
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.api.reasons import KubeadmConfigCondition as Type
from clusterwright.conditions import has
from clusterwright.controllers.kubeadmconfig import material
from clusterwright.controllers.kubeadmconfig.conditions import CONTROL_PLANE_POLL, ENDPOINT_POLL, STEP, Certificates, Data, Findings
from clusterwright.controllers.kubeadmconfig.discovery import discovery_of, fill, with_token
from clusterwright.controllers.kubeadmconfig.init_lock import InitLock
from clusterwright.controllers.kubeadmconfig.snapshot import Owner, Snapshot, find_owner, is_initialized, owner_chain, token_discovery
from clusterwright.controllers.kubeadmconfig.status import OWNED_CONDITIONS, OWNED_V1BETA1_CONDITIONS, conclude, with_data_secret
from clusterwright.controllers.kubeadmconfig.token import TokenGone, create_token, needs_rotation, refresh_token
from clusterwright.controllers.kubeadmconfig.worker import with_uninitialized_taint
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm import cloudinit, documents, ignition, tokens
from clusterwright.kubeadm.files import discovery_kubeconfig
from clusterwright.kubeadm.node import Node, Role
from clusterwright.kubeadm.presence import is_defined
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.runtime.client import Original
from clusterwright.runtime.logging import bound, get_logger
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.runtime.reconcile import Result

log = get_logger("kubeadmconfig")


class ReconcileFailed(Exception):
    """A pass that could not do its step."""


@dataclass(slots=True)
class Work:
    """A pass under way: the snapshot it started from, the config as it should become, and what was found so far."""

    original: Original[KubeadmConfig]
    seen: Snapshot
    config: KubeadmConfig
    findings: Findings
    rows: dict[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> KubeadmConfigSpec:
        """The spec as filled so far."""
        return self.config.spec

    @spec.setter
    def spec(self, spec: KubeadmConfigSpec) -> None:
        self.config = replace(self.config, spec=spec)

    def found(self, *, data: Data | None = None, certificates: Certificates | None = None, detail: str = "") -> None:
        """Note how far the pass came."""
        known = self.findings
        self.findings = Findings(
            data=data or known.data, certificates=certificates or known.certificates, detail=detail or known.detail, reported=known.reported
        )

    @contextmanager
    def failing_as(self, *, data: Data | None = None, certificates: Certificates | None = None) -> Iterator[None]:
        """Note a failure of the block as this finding, and let it go on."""
        try:
            yield
        except Exception as error:
            self.found(data=data, certificates=certificates, detail=str(error))
            raise


class KubeadmConfigReconciler:
    """Generates and keeps bootstrap data."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._deps = dependencies
        self._client = dependencies.client
        self._patcher = Patcher(dependencies.client, dependencies.clock, dependencies.random)
        self._lock = InitLock(dependencies.client)
        self._ttl: timedelta = dependencies.options.get("bootstrap-token-ttl") or tokens.DEFAULT_TTL

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        original = await self._client.read(KubeadmConfig, key)
        if original is None:
            return Result.await_change()
        owner = await self._owner(original.object)
        if owner is None:
            return Result.await_change()
        with bound(owners=",".join(await owner_chain(self._client, owner))):
            return await self._reconcile(original, owner)

    async def _reconcile(self, original: Original[KubeadmConfig], owner: Owner) -> Result:
        key = original.object.key
        cluster = await self._client.find(Cluster, owner.cluster) if owner.cluster.name else None
        if cluster is None:
            log.info("Cluster does not exist yet, waiting until it is created", kubeadmconfig=str(key))
            return Result.await_change()
        check = await ensure_paused_condition(self._patcher, self._deps.clock, original, cluster_paused=bool(cluster.spec.paused))
        if check.ends_pass or original.object.metadata.deletion_timestamp is not None:
            return Result.await_change()
        seen = Snapshot(config=check.object, owner=owner, cluster=cluster, now=self._deps.clock.now())
        reported = has(check.object.status.conditions, Type.DATA_SECRET_AVAILABLE)
        work = Work(original, seen, check.object, Findings(reported=reported))
        return await self._run(work)

    async def _owner(self, config: KubeadmConfig) -> Owner | None:
        try:
            return await find_owner(self._client, config, self._deps.features)
        except Exception as error:
            raise ReconcileFailed(f"failed to get owner: {error}") from error

    async def _run(self, work: Work) -> Result:
        """Take the step and report, whether it worked or not."""
        failure: Exception | None = None
        result = Result.await_change()
        try:
            result = await self._step(work)
        except Exception as error:
            failure = error
            self._deps.events.record(work.config, "Warning", "ReconcileFailed", str(error))
        after, rows = conclude(work.config, work.findings, work.seen.now)
        self._deps.trace(work.config.key, {**work.rows, **rows})
        try:
            await self._patcher.patch(
                work.original,
                after,
                owned_conditions=OWNED_CONDITIONS,
                owned_v1beta1_conditions=OWNED_V1BETA1_CONDITIONS,
                observed_generation=failure is None,
            )
        except Exception as error:
            if failure is not None:
                raise ReconcileFailed(f"[{failure}, {error}]") from failure
            raise
        if failure is not None:
            raise failure
        return result

    async def _step(self, work: Work) -> Result:
        await material.ensure_owner(self._client, work.config)
        decision = STEP.decide(work.seen)
        work.rows[STEP.name] = decision.row
        match decision.row:
            case "infrastructure-not-provisioned":
                log.info("Cluster infrastructure is not ready, waiting", kubeadmconfig=str(work.config.key))
                work.found(data=Data.INFRASTRUCTURE_NOT_PROVISIONED)
            case "restore-status":
                work.config = with_data_secret(work.config, work.seen.owner.data_secret_name)
                work.found(data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
            case "generated":
                work.found(data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
            case "refresh-token":
                work.found(data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
                return await self._refresh(work)
            case "rotate-token":
                work.found(data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
                return await self._rotate(work)
            case "await-control-plane":
                work.found(data=Data.CONTROL_PLANE_NOT_INITIALIZED)
            case "init-control-plane":
                work.found(data=Data.CONTROL_PLANE_NOT_INITIALIZED)
                return await self._init(work)
            case "join-control-plane" | "join-worker":
                await self._lock.release(work.seen.cluster)  # a join does not depend on it
                return await self._join(work)
            case never:  # a row that this script does not know
                raise AssertionError(never)
        return Result.soonest(decision.requeue)

    # ------------------------------------------------------------------------------------------------- init

    async def _init(self, work: Work) -> Result:
        """Data for `kubeadm init`, under the lock. It stays held after success: the control plane is not up yet."""
        cluster, machine = work.seen.cluster, work.seen.owner.object.metadata.name
        acquired = await self._lock.acquire(cluster, machine)
        if not acquired:
            log.info("A control plane is already being initialized", kubeadmconfig=str(work.config.key))
            return Result.after(CONTROL_PLANE_POLL)
        try:
            if acquired != "held-before" and await self._initialized_meanwhile(cluster):
                await self._lock.release(cluster, held_by=machine)
                return Result.after(CONTROL_PLANE_POLL)
            await self._generate_init(work)
        except material.OutcomeUnknown:
            raise  # the data may be there: only this Machine may go on
        except Exception as error:
            # as long as data for `kubeadm init` may be around, nobody else may make any
            if acquired == "held-before" and not await material.discard_unused(self._client, work.config):
                raise
            if not await self._lock.release(cluster, held_by=machine):
                raise ReconcileFailed(f"[{error}, failed to unlock the kubeadm init lock]") from error
            raise
        return Result.await_change()

    async def _initialized_meanwhile(self, cluster: Cluster) -> bool:
        """Whether the Cluster that we know is out of date. The lock is released by the first join, so a free lock proves nothing."""
        latest = await self._client.live.find(Cluster, cluster.key)
        return latest is None or is_initialized(latest)

    async def _generate_init(self, work: Work) -> None:
        seen = work.seen
        version = _version(seen.owner)
        settings = work.spec.cluster_configuration or ClusterConfiguration()
        if not settings.control_plane_endpoint and seen.endpoint:
            settings = replace(settings, control_plane_endpoint=seen.endpoint)
            work.spec = replace(work.spec, cluster_configuration=settings)
        api = documents.api_version_for(version)
        data = _additional_data(seen)
        texts = (
            documents.marshal(documents.cluster_document(work.spec.cluster_configuration, data, api)),
            documents.marshal(documents.init_document(work.spec.init_configuration, api)),
        )
        slots = material.control_plane_slots(work.config)
        with work.failing_as(certificates=Certificates.GENERATION_FAILED):
            found = await material.look_up(self._client, seen.cluster, slots)
            if not seen.has_control_plane_provider:
                found = await material.generate(
                    self._client,
                    self._deps.keys,
                    self._deps.random,
                    cluster=seen.cluster,
                    config=work.config,
                    slots=slots,
                    found=found,
                    now=seen.now,
                )
        work.found(certificates=Certificates.AVAILABLE)
        await self._render_and_store(work, Role.INIT, texts, pki.files(slots, found))

    # ------------------------------------------------------------------------------------------------- join

    async def _join(self, work: Work) -> Result:
        """Data for `kubeadm join`."""
        seen = work.seen
        control_plane = seen.owner.is_control_plane
        join = work.spec.join_configuration or JoinConfiguration()
        if control_plane and join.control_plane is None:
            work.spec = replace(work.spec, join_configuration=replace(join, control_plane=JoinControlPlane()))
        slots = material.control_plane_slots(work.config) if control_plane else pki.worker_slots(join.ca_cert_path)
        with work.failing_as(certificates=Certificates.LOOKUP_FAILED):
            found = await material.look_up(self._client, seen.cluster, slots)
            pki.ensure_all_exist(slots, found)
        work.found(certificates=Certificates.AVAILABLE)
        if not control_plane and join.control_plane is not None:
            raise ReconcileFailed("Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object")
        filled = fill(work.spec, seen.endpoint, found.get(pki.Purpose.CA))
        work.spec = filled.spec
        if filled.needs_endpoint:
            log.info("Waiting for Cluster Controller to set Cluster.Spec.ControlPlaneEndpoint", kubeadmconfig=str(work.config.key))
            return Result.after(ENDPOINT_POLL)
        if filled.needs_token:
            await self._new_token(work)
        api = documents.api_version_for(_version(seen.owner))
        settings = work.spec.join_configuration
        document = documents.join_document(settings if control_plane else with_uninitialized_taint(settings), api)
        role = Role.JOIN_CONTROL_PLANE if control_plane else Role.JOIN_WORKER
        certificate_files = pki.files(slots, found) if control_plane else ()
        await self._render_and_store(work, role, (documents.marshal(document),), certificate_files)
        return Result.after(tokens.check_interval(self._ttl))

    async def _new_token(self, work: Work) -> None:
        """Make a token, and write it into the spec at once: a token that nobody remembers cannot be prolonged."""
        remote = await self._deps.workload.client(work.seen.cluster.key)
        token = await create_token(remote, self._deps.random, self._deps.clock.now(), self._ttl)
        work.spec = with_token(work.spec, token)
        answer = await self._patcher.patch(work.original, replace(work.original.object, spec=work.spec))
        if answer is not None:
            work.original = _as_read(answer.json, generation=work.config.metadata.generation)
            work.config = replace(work.config, metadata=work.original.object.metadata)

    async def _render_and_store(self, work: Work, role: Role, texts: tuple[str, ...], certificate_files: tuple[Any, ...]) -> None:
        namespace = work.config.metadata.namespace
        with work.failing_as(data=Data.FILES_UNRESOLVED):
            files = await material.resolve_files(self._client, namespace, work.spec.files)
        with work.failing_as(data=Data.USERS_UNRESOLVED):
            users = await material.resolve_users(self._client, namespace, work.spec.users)
        discovery = discovery_of(work.spec).file if role is not Role.INIT else None
        if discovery is not None and is_defined(discovery.kube_config):
            with work.failing_as(data=Data.KUBECONFIG_FAILED):
                files = (*files, discovery_kubeconfig(discovery))
        node = Node.of(work.spec, role, documents=texts, files=(*certificate_files, *files), users=users)
        data = ignition.render(node).data if work.spec.format == "ignition" else cloudinit.render(node)
        await material.store(self._client, work.config, work.seen.cluster, data)
        work.config = with_data_secret(work.config, work.config.metadata.name)
        work.found(data=Data.AVAILABLE)

    # ----------------------------------------------------------------------------------------------- tokens

    async def _refresh(self, work: Work) -> Result:
        """Keep the token alive until the node has joined."""
        remote = await self._deps.workload.client(work.seen.cluster.key)
        try:
            if await refresh_token(remote, _token(work.config), self._deps.clock.now(), self._ttl):
                log.info("bootstrap token prolonged", kubeadmconfig=str(work.config.key))
        except TokenGone as error:
            return await self._replace_lost_token(work, error)
        return await self._with_current_token(work)

    async def _with_current_token(self, work: Work) -> Result:
        """The token is good; so must be the data, unless a machine was already made with it."""
        if not work.seen.owner.has_consumed_data and await material.holds_other_token(self._client, work.config, _token(work.config)):
            return await self._join(work)
        return Result.after(tokens.check_interval(self._ttl))

    async def _replace_lost_token(self, work: Work, lost: TokenGone) -> Result:
        """Make token and data anew where nobody has used them yet."""
        owner = work.seen.owner
        if owner.has_consumed_data:
            raise ReconcileFailed(
                f"{lost}; the machine was already created with this token and can no longer join: delete the Machine to replace it"
            )
        if not owner.is_machine_pool and not work.seen.control_plane_initialized:
            raise lost
        log.info("Bootstrap token secret not found, creating a new token", kubeadmconfig=str(work.config.key))
        await self._new_token(work)
        return await self._join(work)

    async def _rotate(self, work: Work) -> Result:
        """Replace a pool's token in time, for nodes that may still come."""
        remote = await self._deps.workload.client(work.seen.cluster.key)
        if not await needs_rotation(remote, _token(work.config), self._deps.clock.now(), self._ttl):
            return await self._with_current_token(work)
        await self._new_token(work)
        return await self._join(work)


def _token(config: KubeadmConfig) -> str:
    section = token_discovery(config)
    return section.token if section is not None else ""


def _version(owner: Owner) -> Version:
    try:
        return parse_version(owner.version)
    except ValueError as error:
        raise ReconcileFailed(f'failed to parse kubernetes version "{owner.version}": {error}') from None


def _additional_data(seen: Snapshot) -> documents.AdditionalData:
    network = seen.cluster.spec.cluster_network
    init = seen.config.spec.init_configuration
    timeouts = init.timeouts if init is not None else None
    return documents.AdditionalData(
        kubernetes_version=seen.owner.version,
        cluster_name=seen.cluster.metadata.name,
        dns_domain=network.service_domain if network else "",
        service_subnet=",".join(network.services.cidr_blocks) if network and network.services else "",
        pod_subnet=",".join(network.pods.cidr_blocks) if network and network.pods else "",
        control_plane_component_health_check_seconds=timeouts.control_plane_component_health_check_seconds if timeouts else None,
    )


def _as_read(json: Any, *, generation: int) -> Original[KubeadmConfig]:
    """What the API server answered, as the new base of the patch at the end; the pass still speaks for the generation that it read."""
    obj = convert(json, KubeadmConfig)
    return Original(replace(obj, metadata=replace(obj.metadata, generation=generation)), msgspec.json.encode(json))
