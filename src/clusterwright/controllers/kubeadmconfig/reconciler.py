"""The KubeadmConfig's own steps of a pass: its owner and Cluster, then the step that the STEP table names.

Whoever is missing brings us back by being created. Where the config is deleted nothing is to be done: the Secret goes with its
owner. A failure is told after the patch, so that what was filled into the spec is not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_
from datetime import timedelta
from typing import Any, assert_never

from msgspec.structs import replace

from clusterwright.api.bootstrap import ClusterConfiguration, JoinConfiguration, JoinControlPlane, KubeadmConfig, KubeadmConfigSpec
from clusterwright.api.core import Cluster
from clusterwright.conditions import has
from clusterwright.controllers.kit.conditions import decided
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kubeadmconfig import material
from clusterwright.controllers.kubeadmconfig.conditions import TABLES
from clusterwright.controllers.kubeadmconfig.discovery import discovery_of, fill, with_token
from clusterwright.controllers.kubeadmconfig.init_lock import InitLock
from clusterwright.controllers.kubeadmconfig.plan import CONTROL_PLANE_POLL, ENDPOINT_POLL, STEP, Step
from clusterwright.controllers.kubeadmconfig.snapshot import (
    Certificates,
    Data,
    Findings,
    Owner,
    Snapshot,
    find_owner,
    is_initialized,
    owner_chain,
    token_discovery,
)
from clusterwright.controllers.kubeadmconfig.status import OWNED, OWNED_V1BETA1, with_data_secret, with_ready
from clusterwright.controllers.kubeadmconfig.token import TokenGone, create_token, needs_rotation, refresh_token
from clusterwright.controllers.kubeadmconfig.worker import with_uninitialized_taint
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm import cloudinit, documents, ignition, tokens
from clusterwright.kubeadm.files import discovery_kubeconfig
from clusterwright.kubeadm.node import Node, Role
from clusterwright.kubeadm.presence import is_defined
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.logging import bound, get_logger

log = get_logger("kubeadmconfig")

SHAPE = Shape(kind=KubeadmConfig, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)
ConfigPass = Pass[KubeadmConfig, Snapshot]


@dataclass(frozen=True, slots=True)
class Home:
    """What a config belongs to. `chain` is who its owner belongs to, for the log."""

    owner: Owner
    cluster: Cluster
    chain: tuple[str, ...]


def make(deps: Dependencies) -> KindReconciler[KubeadmConfig, Home, Snapshot]:
    """The reconciler of KubeadmConfigs."""
    return KindReconciler(deps, SHAPE, KubeadmConfigs(deps))


class KubeadmConfigs(Kind[KubeadmConfig, Home, Snapshot]):
    """Generates and keeps bootstrap data."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._lock = InitLock(deps.client)
        self._ttl: timedelta = deps.options.get("bootstrap-token-ttl") or tokens.DEFAULT_TTL

    async def owner(self, obj: KubeadmConfig) -> Home | None:
        """The Machine or MachinePool, and its Cluster."""
        try:
            owner = await find_owner(self._client, obj, self._deps.features)
        except ApiError as error:
            raise PassFailed(f"failed to get owner: {error}") from error
        if owner is None:
            return None
        chain = await owner_chain(self._client, owner)
        cluster = await self._client.find(Cluster, owner.cluster) if owner.cluster.name else None
        if cluster is None:
            log.info("Cluster does not exist yet, waiting until it is created", kubeadmconfig=str(obj.key))
            return None
        return Home(owner, cluster, chain)

    def is_paused(self, owner: Home) -> bool:
        """Whether the Cluster is."""
        return bool(owner.cluster.spec.paused)

    async def observe(self, obj: KubeadmConfig, owner: Home) -> Snapshot | None:
        """The config with its owner and Cluster; nothing is to be done for one that is deleted."""
        if obj.metadata.deletion_timestamp is not None:
            return None
        findings = Findings(reported=has(obj.status.conditions, "DataSecretAvailable"))
        now = self._deps.clock.now()
        return Snapshot(object=obj, owner=owner.owner, cluster=owner.cluster, chain=owner.chain, now=now, findings=findings)

    async def act(self, run: ConfigPass) -> None:
        """Take the step. What is wrong with a spec, a certificate or a token fails the pass like an answer of an API server."""
        with bound(owners=",".join(run.seen.chain)):
            try:
                await self._step(run)
            except ValueError as error:
                raise PassFailed(str(error)) from error

    async def _step(self, run: ConfigPass) -> None:
        await material.ensure_owner(self._client, run.object, run.seen.owner, run.seen.cluster)
        match run.decide(STEP).chosen(Step):
            case Step.AWAIT_INFRASTRUCTURE:
                log.info("Cluster infrastructure is not ready, waiting", kubeadmconfig=str(run.object.key))
                note(run, data=Data.INFRASTRUCTURE_NOT_PROVISIONED)
            case Step.RESTORE_STATUS:
                run.become(with_data_secret(run.object, run.seen.owner.data_secret_name))
                note(run, data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
            case Step.KEEP_DATA:
                note(run, data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
            case Step.REFRESH_TOKEN:
                note(run, data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
                await self._refresh(run)
            case Step.ROTATE_TOKEN:
                note(run, data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
                await self._rotate(run)
            case Step.AWAIT_CONTROL_PLANE:
                note(run, data=Data.CONTROL_PLANE_NOT_INITIALIZED)
            case Step.INIT:
                note(run, data=Data.CONTROL_PLANE_NOT_INITIALIZED)
                await self._init(run)
            case Step.JOIN:
                await self._lock.release(run.seen.cluster)  # a join does not depend on it
                await self._join(run)
            case None:
                pass
            case never:
                assert_never(never)

    def conclude(self, run: ConfigPass) -> None:
        """The conditions that the findings mean, and Ready."""
        for table in TABLES:
            run.become(decided(run.object, table, run.decide_on(table, run.seen.findings), run.seen.now))
        run.become(with_ready(run.object, run.seen.now))

    # ------------------------------------------------------------------------------------------------- init

    async def _init(self, run: ConfigPass) -> None:
        """Data for `kubeadm init`, under the lock. It stays held after success: the control plane is not up yet."""
        cluster, machine = run.seen.cluster, run.seen.owner.object.metadata.name
        acquired = await self._lock.acquire(cluster, machine)
        if not acquired:
            log.info("A control plane is already being initialized", kubeadmconfig=str(run.object.key))
            run.vote(CONTROL_PLANE_POLL)
            return
        try:
            if acquired != "held-before" and await self._initialized_meanwhile(cluster):
                await self._lock.release(cluster, held_by=machine)
                run.vote(CONTROL_PLANE_POLL)
                return
            await self._generate_init(run)
        except material.OutcomeUnknown:
            raise  # the data may be there: only this Machine may go on
        except Exception as error:
            # as long as data for `kubeadm init` may be around, nobody else may make any
            if acquired == "held-before" and not await material.discard_unused(self._client, run.object):
                raise
            if not await self._lock.release(cluster, held_by=machine):
                raise PassFailed(f"[{error}, failed to unlock the kubeadm init lock]") from error
            raise

    async def _initialized_meanwhile(self, cluster: Cluster) -> bool:
        """Whether the Cluster that we know is out of date. The lock is released by the first join, so a free lock proves nothing."""
        latest = await self._client.live.find(Cluster, cluster.key)
        return latest is None or is_initialized(latest)

    async def _generate_init(self, run: ConfigPass) -> None:
        seen = run.seen
        version = _version(seen.owner)
        settings = run.object.spec.cluster_configuration or ClusterConfiguration()
        if not settings.control_plane_endpoint and seen.endpoint:
            settings = replace(settings, control_plane_endpoint=seen.endpoint)
            fill_in(run, replace(run.object.spec, cluster_configuration=settings))
        api = documents.api_version_for(version)
        data = _additional_data(seen)
        texts = (
            documents.marshal(documents.cluster_document(run.object.spec.cluster_configuration, data, api)),
            documents.marshal(documents.init_document(run.object.spec.init_configuration, api)),
        )
        slots = material.control_plane_slots(run.object)
        with failing_as(run, certificates=Certificates.GENERATION_FAILED):
            found = await material.look_up(self._client, seen.cluster, slots)
            if not seen.has_control_plane_provider:
                found = await material.generate(
                    self._client,
                    self._deps.keys,
                    self._deps.random,
                    cluster=seen.cluster,
                    config=run.object,
                    slots=slots,
                    found=found,
                    now=seen.now,
                )
        note(run, certificates=Certificates.AVAILABLE)
        await self._render_and_store(run, Role.INIT, texts, pki.files(slots, found))

    # ------------------------------------------------------------------------------------------------- join

    async def _join(self, run: ConfigPass) -> None:
        """Data for `kubeadm join`."""
        seen = run.seen
        control_plane = seen.owner.is_control_plane
        join = run.object.spec.join_configuration or JoinConfiguration()
        if control_plane and join.control_plane is None:
            fill_in(run, replace(run.object.spec, join_configuration=replace(join, control_plane=JoinControlPlane())))
        slots = material.control_plane_slots(run.object) if control_plane else pki.worker_slots(join.ca_cert_path)
        with failing_as(run, certificates=Certificates.LOOKUP_FAILED):
            found = await material.look_up(self._client, seen.cluster, slots)
            pki.ensure_all_exist(slots, found)
        note(run, certificates=Certificates.AVAILABLE)
        if not control_plane and join.control_plane is not None:
            raise PassFailed("Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object")
        filled = fill(run.object.spec, seen.endpoint, found.get(pki.Purpose.CA))
        fill_in(run, filled.spec)
        if filled.needs_endpoint:
            log.info("Waiting for Cluster Controller to set Cluster.Spec.ControlPlaneEndpoint", kubeadmconfig=str(run.object.key))
            run.vote(ENDPOINT_POLL)
            return
        if filled.needs_token:
            await self._new_token(run)
        api = documents.api_version_for(_version(seen.owner))
        settings = run.object.spec.join_configuration
        document = documents.join_document(settings if control_plane else with_uninitialized_taint(settings), api)
        role = Role.JOIN_CONTROL_PLANE if control_plane else Role.JOIN_WORKER
        certificate_files = pki.files(slots, found) if control_plane else ()
        await self._render_and_store(run, role, (documents.marshal(document),), certificate_files)
        run.vote(tokens.check_interval(self._ttl))

    async def _new_token(self, run: ConfigPass) -> None:
        """Make a token, and write it into the spec at once: a token that nobody remembers cannot be prolonged."""
        remote = await self._deps.workload.client(run.seen.cluster.key)
        token = await create_token(remote, self._deps.random, self._deps.clock.now(), self._ttl)
        fill_in(run, with_token(run.object.spec, token))
        await run.save(replace(run.original.object, spec=run.object.spec))

    async def _render_and_store(self, run: ConfigPass, role: Role, texts: tuple[str, ...], certificate_files: tuple[Any, ...]) -> None:
        namespace = run.object.metadata.namespace
        with failing_as(run, data=Data.FILES_UNRESOLVED):
            files = await material.resolve_files(self._client, namespace, run.object.spec.files)
        with failing_as(run, data=Data.USERS_UNRESOLVED):
            users = await material.resolve_users(self._client, namespace, run.object.spec.users)
        discovery = discovery_of(run.object.spec).file if role is not Role.INIT else None
        if discovery is not None and is_defined(discovery.kube_config):
            with failing_as(run, data=Data.KUBECONFIG_FAILED):
                files = (*files, discovery_kubeconfig(discovery))
        node = Node.of(run.object.spec, role, documents=texts, files=(*certificate_files, *files), users=users)
        data = ignition.render(node).data if run.object.spec.format == "ignition" else cloudinit.render(node)
        try:
            await material.store(self._client, run.object, run.seen.owner, run.seen.cluster, data)
        except material.SecretInTheWay as error:
            note(run, data=Data.SECRET_IN_THE_WAY, detail=str(error))
            raise
        run.become(with_data_secret(run.object, run.object.metadata.name))
        note(run, data=Data.AVAILABLE)

    # ----------------------------------------------------------------------------------------------- tokens

    async def _refresh(self, run: ConfigPass) -> None:
        """Keep the token alive until the node has joined."""
        remote = await self._deps.workload.client(run.seen.cluster.key)
        try:
            if await refresh_token(remote, _token(run.object), self._deps.clock.now(), self._ttl):
                log.info("bootstrap token prolonged", kubeadmconfig=str(run.object.key))
        except TokenGone as error:
            await self._replace_lost_token(run, error)
            return
        await self._with_current_token(run)

    async def _with_current_token(self, run: ConfigPass) -> None:
        """The token is good; so must be the data, unless a machine was already made with it."""
        if not run.seen.owner.has_consumed_data and await material.holds_other_token(self._client, run.object, _token(run.object)):
            await self._join(run)
            return
        run.vote(tokens.check_interval(self._ttl))

    async def _replace_lost_token(self, run: ConfigPass, lost: TokenGone) -> None:
        """Make token and data anew where nobody has used them yet."""
        owner = run.seen.owner
        if owner.has_consumed_data:
            raise PassFailed(
                f"{lost}; the machine was already created with this token and can no longer join: delete the Machine to replace it"
            )
        if not owner.is_machine_pool and not run.seen.control_plane_initialized:
            raise lost
        log.info("Bootstrap token secret not found, creating a new token", kubeadmconfig=str(run.object.key))
        await self._new_token(run)
        await self._join(run)

    async def _rotate(self, run: ConfigPass) -> None:
        """Replace a pool's token in time, for nodes that may still come."""
        remote = await self._deps.workload.client(run.seen.cluster.key)
        if not await needs_rotation(remote, _token(run.object), self._deps.clock.now(), self._ttl):
            await self._with_current_token(run)
            return
        await self._new_token(run)
        await self._join(run)


def fill_in(run: ConfigPass, spec: KubeadmConfigSpec) -> None:
    """The spec is to become this."""
    run.become(replace(run.object, spec=spec))


def note(run: ConfigPass, *, data: Data | None = None, certificates: Certificates | None = None, detail: str = "") -> None:
    """Note how far the pass came."""
    known = run.seen.findings
    findings = with_(known, data=data or known.data, certificates=certificates or known.certificates, detail=detail or known.detail)
    run.seen = with_(run.seen, findings=findings)


@contextmanager
def failing_as(run: ConfigPass, *, data: Data | None = None, certificates: Certificates | None = None) -> Iterator[None]:
    """Note a failure of the block as this finding, and let it go on."""
    try:
        yield
    except Exception as error:
        note(run, data=data, certificates=certificates, detail=str(error))
        raise


def _token(config: KubeadmConfig) -> str:
    section = token_discovery(config)
    return section.token if section is not None else ""


def _version(owner: Owner) -> Version:
    try:
        return parse_version(owner.version)
    except ValueError as error:
        raise PassFailed(f'failed to parse kubernetes version "{owner.version}": {error}') from None


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
