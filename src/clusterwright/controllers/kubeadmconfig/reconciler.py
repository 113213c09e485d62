"""The KubeadmConfig's own steps of a pass: carry out what the tables of `plan` decide.

A missing owner or Cluster starts a pass when it is created. A failure is raised after the patch, so that values filled into the spec are
not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from clusterwright.api.bootstrap import ClusterConfiguration, JoinConfiguration, JoinControlPlane, KubeadmConfig, KubeadmConfigSpec
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.conditions import has
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kubeadmconfig import material
from clusterwright.controllers.kubeadmconfig.conditions import TABLES
from clusterwright.controllers.kubeadmconfig.discovery import discovery_of, fill, with_token
from clusterwright.controllers.kubeadmconfig.file_templates import prepare_files
from clusterwright.controllers.kubeadmconfig.init_lock import Attempt, InitLock, Lock
from clusterwright.controllers.kubeadmconfig.plan import DISCOVERY, LOCK, PRESENCE, STEP, TOKEN, Begin, Joining, Keeping, Locking, Step
from clusterwright.controllers.kubeadmconfig.snapshot import (
    Certificates,
    ClusterFacts,
    ConfigDone,
    ConfigSnapshot,
    Data,
    OwnerFacts,
    Presence,
    find_owner,
    owner_chain,
    token_discovery,
)
from clusterwright.controllers.kubeadmconfig.status import OWNED, OWNED_V1BETA1, with_data_secret, with_ready
from clusterwright.controllers.kubeadmconfig.token import Look, Token, TokenFound, create_token, look, prolong
from clusterwright.controllers.kubeadmconfig.worker import with_uninitialized_taint
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm import cloudinit, documents, ignition, tokens
from clusterwright.kubeadm.files import discovery_kubeconfig
from clusterwright.kubeadm.node import Node, Role
from clusterwright.kubeadm.presence import is_defined
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.logging import bound, get_logger
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.tables import Decision

log = get_logger("kubeadmconfig")

SHAPE = Shape(kind=KubeadmConfig, done=ConfigDone, owned=OWNED, owned_v1beta1=OWNED_V1BETA1)
ConfigPass = Pass[KubeadmConfig, ConfigSnapshot, ConfigDone]


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner of a config and its Cluster. `chain` holds the owners of the owner, for the log."""

    owner: OwnerFacts
    cluster: ClusterFacts
    chain: tuple[str, ...]

    @property
    def paused(self) -> bool:
        """Whether the Cluster is paused."""
        return self.cluster.paused


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of KubeadmConfigs."""
    return KindReconciler(deps, SHAPE, KubeadmConfigs(deps))


class KubeadmConfigs(Kind[KubeadmConfig, Owners, ConfigSnapshot, ConfigDone]):
    """Generates and maintains bootstrap data."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._lock = InitLock(deps.client)
        self._ttl: timedelta = deps.options.get("bootstrap-token-ttl") or tokens.DEFAULT_TTL

    async def owner(self, obj: KubeadmConfig) -> Owners | Decision:
        """Return the Machine or MachinePool with its Cluster, or the row that waits for one of them."""
        try:
            found = await find_owner(self._client, obj, self._deps.features)
        except ApiError as error:
            raise PassFailed(f"failed to get owner: {error}") from error
        chain = await owner_chain(self._client, found) if found is not None else ()
        owner = None if found is None else OwnerFacts.of(found)
        named = await self._client.find(Cluster, owner.cluster) if owner is not None and owner.cluster.name else None
        cluster = None if named is None else ClusterFacts.of(named)
        decision = PRESENCE.decide(Presence(owner, cluster))
        if decision.act is Begin.AWAIT_CLUSTER:
            log.info("Cluster does not exist yet, waiting until it is created", kubeadmconfig=str(obj.key))
        return decision if owner is None or cluster is None else Owners(owner, cluster, chain)

    async def observe(self, obj: KubeadmConfig, owner: Owners) -> ConfigSnapshot | Decision:
        """Return the config with its owner and Cluster, or the row that skips a config under deletion."""
        presence = PRESENCE.decide(Presence(owner.owner, owner.cluster, obj.metadata.deletion_timestamp is not None))
        if presence.act is not Begin.GO_ON:
            return presence
        return ConfigSnapshot(
            now=self._deps.clock.now(),
            object=obj,
            owner=owner.owner,
            cluster=owner.cluster,
            chain=owner.chain,
            reported=has(obj.status.conditions, "DataSecretAvailable"),
        )

    async def act(self, run: ConfigPass) -> None:
        """Run the step. A bad spec or certificate fails the pass like an API server error."""
        with bound(owners=",".join(run.seen.chain)):
            try:
                await self._step(run)
            except (ApiError, ValueError) as error:
                if error is run.done.cause:
                    return  # the row of a condition has this error
                raise error if isinstance(error, ApiError) else PassFailed(str(error)) from error

    async def _step(self, run: ConfigPass) -> None:
        await material.ensure_owner(self._client, run.object, run.seen.cluster)
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
                await self._keep_token(run, rotate=False)
            case Step.ROTATE_TOKEN:
                note(run, data=Data.AVAILABLE, certificates=Certificates.AVAILABLE)
                await self._keep_token(run, rotate=True)
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
        """Set the conditions from the outcome of the pass, and Ready."""
        cause = run.done.cause
        origin = cause.__cause__ if isinstance(cause, PassFailed) else None
        run.conclude(*TABLES, cause=origin if isinstance(origin, Exception) else cause)
        run.become(with_ready(run.object, run.seen.now))

    # ------------------------------------------------------------------------------------------------- init

    async def _init(self, run: ConfigPass) -> None:
        """Generate data for `kubeadm init` under the lock. It stays locked after success, because the control plane is not up yet."""
        cluster, machine = run.seen.cluster, run.seen.owner.key.name
        lock = await self._lock.acquire(cluster, machine)
        try:
            taken = lock in {Lock.FREE, Lock.STALE} and await self._initialized_meanwhile(cluster)
            match run.decide_on(LOCK, Attempt(lock, taken)).chosen(Locking):
                case Locking.GENERATE:
                    await self._generate_init(run)
                case Locking.RELEASE:
                    await self._lock.release(cluster, held_by=machine)
                case Locking.WAIT:
                    log.info("A control plane is already being initialized", kubeadmconfig=str(run.object.key))
                case Locking.WAIT_SILENTLY | None:
                    pass
                case never:
                    assert_never(never)
        except material.OutcomeUnknown:
            raise  # the data may be there: only this Machine may go on
        except Exception as error:
            # as long as data for `kubeadm init` may be around, no other Machine may generate any
            if lock is Lock.OURS and not await material.discard_unused(self._client, run.object):
                raise
            if not await self._lock.release(cluster, held_by=machine):
                locked = PassFailed(f"[{error}, failed to unlock the kubeadm init lock]")
                if error is run.done.cause:
                    note(run, cause=locked)
                raise locked from error
            raise

    async def _initialized_meanwhile(self, cluster: ClusterFacts) -> bool:
        """Return whether our view of the Cluster is out of date. The first join releases the lock, so a free lock proves nothing."""
        latest = await self._client.live.find(Cluster, cluster.key)
        return latest is None or ClusterFacts.of(latest).initialized

    async def _generate_init(self, run: ConfigPass) -> None:
        seen = run.seen
        version = _version(seen.owner)
        settings = run.object.spec.cluster_configuration or ClusterConfiguration()
        if not settings.control_plane_endpoint and seen.cluster.endpoint:
            settings = replace(settings, control_plane_endpoint=seen.cluster.endpoint)
            fill_in(run, replace(run.object.spec, cluster_configuration=settings))
        api = documents.api_version_for(version)
        data = _additional_data(run.done)
        texts = (
            documents.marshal(documents.cluster_document(run.object.spec.cluster_configuration, data, api)),
            documents.marshal(documents.init_document(run.object.spec.init_configuration, api)),
        )
        slots = material.control_plane_slots(run.object)
        with failing_as(run, certificates=Certificates.GENERATION_FAILED):
            found = await material.look_up(self._client, seen.cluster, slots)
            if seen.cluster.control_plane_ref is None:
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
        """Generate data for `kubeadm join`."""
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
        filled = fill(run.object.spec, seen.cluster.endpoint, found.get(pki.Purpose.CA), is_worker=not control_plane)
        fill_in(run, filled.spec)
        match run.decide_on(DISCOVERY, replace(filled, ttl=self._ttl)).chosen(Joining):
            case Joining.GENERATE:
                pass
            case Joining.CREATE_TOKEN:
                if not await self._new_token(run):
                    return
            case Joining.WAIT:
                log.info("Waiting for Cluster Controller to set Cluster.Spec.ControlPlaneEndpoint", kubeadmconfig=str(run.object.key))
                return
            case None:
                return
            case never:
                assert_never(never)
        api = documents.api_version_for(_version(seen.owner))
        settings = run.object.spec.join_configuration
        document = documents.join_document(settings if control_plane else with_uninitialized_taint(settings), api)
        role = Role.JOIN_CONTROL_PLANE if control_plane else Role.JOIN_WORKER
        certificate_files = pki.files(slots, found) if control_plane else ()
        await self._render_and_store(run, role, (documents.marshal(document),), certificate_files)

    async def _render_and_store(self, run: ConfigPass, role: Role, texts: tuple[str, ...], certificate_files: tuple[Any, ...]) -> None:
        namespace = run.object.metadata.namespace
        with failing_as(run, data=Data.FILES_UNRESOLVED):
            files = await prepare_files(self._client, namespace, run.object.spec.files, run.seen.cluster)
        with failing_as(run, data=Data.USERS_UNRESOLVED):
            users = await material.resolve_users(self._client, namespace, run.object.spec.users)
        discovery = discovery_of(run.object.spec).file if role is not Role.INIT else None
        if discovery is not None and is_defined(discovery.kube_config):
            with failing_as(run, data=Data.KUBECONFIG_FAILED):
                files = (*files, discovery_kubeconfig(discovery))
        node = Node.of(run.object.spec, role, documents=texts, files=(*certificate_files, *files), users=users)
        data = ignition.render(node).data if run.object.spec.format == "ignition" else cloudinit.render(node)
        try:
            await material.store(self._client, run.object, run.seen.cluster, data)
        except material.SecretInTheWay as error:
            note(run, data=Data.SECRET_IN_THE_WAY, detail=error.advice, cause=error)
            raise
        run.become(with_data_secret(run.object, run.object.metadata.name))
        note(run, data=Data.AVAILABLE)

    # ----------------------------------------------------------------------------------------------- tokens

    async def _keep_token(self, run: ConfigPass, *, rotate: bool) -> None:
        """Keep the token alive until the node has joined; with `rotate`, replace a pool's token in time for later nodes."""
        remote = await self._remote(run, Token.UNREADABLE)
        if remote is None:
            return
        found = await look(remote, _token(run.object), self._deps.clock.now(), self._ttl, rotate=rotate)
        choice = self._decide_token(run, found)
        if choice is Keeping.PROLONG and found.secret is not None:
            failed = await prolong(remote, found.secret, self._deps.clock.now(), self._ttl)
            if failed is not None:
                choice = self._decide_token(run, failed)
            else:
                log.info("bootstrap token prolonged", kubeadmconfig=str(run.object.key))
        match choice:
            case Keeping.KEEP | Keeping.PROLONG:
                await self._join_with_current_token(run)
            case Keeping.REPLACE:
                if found.state is Token.GONE:
                    log.info("Bootstrap token secret not found, creating a new token", kubeadmconfig=str(run.object.key))
                if await self._new_token(run):
                    await self._join(run)
            case None:
                pass
            case never:
                assert_never(never)

    async def _join_with_current_token(self, run: ConfigPass) -> None:
        """Generate the data again if it has another token, unless a machine was already created with it."""
        if not run.seen.owner.has_consumed_data and await material.holds_other_token(self._client, run.object, _token(run.object)):
            await self._join(run)

    async def _new_token(self, run: ConfigPass) -> bool:
        """Create a token and write it into the spec at once: an unrecorded token cannot be prolonged."""
        remote = await self._remote(run, Token.NOT_CREATED)
        if remote is None:
            return False
        try:
            token = await create_token(remote, self._deps.random, self._deps.clock.now(), self._ttl)
        except ApiError as error:
            detail = f"failed to create new bootstrap token: {error}"
            self._decide_token(run, Look(state=Token.NOT_CREATED, detail=detail, error=error))
            return False
        fill_in(run, with_token(run.object.spec, token))
        await run.save(replace(run.original.object, spec=run.object.spec))
        return True

    async def _remote(self, run: ConfigPass, otherwise: Token) -> Client | None:
        """Return a client of the workload cluster; None if it cannot be reached, which the token table then reports."""
        try:
            return await self._deps.workload.client(run.seen.cluster.key)
        except ApiError as error:
            self._decide_token(run, Look(state=otherwise, detail=str(error), error=error))
            return None

    def _decide_token(self, run: ConfigPass, found: Look) -> Keeping | None:
        owner = run.seen.owner
        facts = TokenFound(
            state=found.state,
            detail=found.detail,
            ttl=self._ttl,
            used=owner.has_consumed_data,
            join_impossible=not owner.is_machine_pool and not run.seen.cluster.initialized,
        )
        return run.decide_on(TOKEN, facts, found.error).chosen(Keeping)


def fill_in(run: ConfigPass, spec: KubeadmConfigSpec) -> None:
    """Set the spec of the config."""
    run.become(replace(run.object, spec=spec))


def note(run: ConfigPass, **done: Any) -> None:
    """Record progress: fields of `ConfigDone`."""
    run.done = replace(run.done, **done)


@contextmanager
def failing_as(run: ConfigPass, **done: Any) -> Iterator[None]:
    """Record a failure inside the block in these fields of `ConfigDone`, and end the step."""
    try:
        yield
    except Exception as error:
        note(run, detail=str(error), cause=error, **done)
        raise


def _token(config: KubeadmConfig) -> str:
    section = token_discovery(config)
    return section.token if section is not None else ""


def _version(owner: OwnerFacts) -> Version:
    try:
        return parse_version(owner.version)
    except ValueError as error:
        raise PassFailed(f'failed to parse kubernetes version "{owner.version}": {error}') from None


def _additional_data(seen: ConfigSnapshot) -> documents.AdditionalData:
    network = seen.cluster.network
    init = seen.config.spec.init_configuration
    timeouts = init.timeouts if init is not None else None
    return documents.AdditionalData(
        kubernetes_version=seen.owner.version,
        cluster_name=seen.cluster.name,
        dns_domain=network.service_domain if network else "",
        service_subnet=",".join(network.services.cidr_blocks) if network and network.services else "",
        pod_subnet=",".join(network.pods.cidr_blocks) if network and network.pods else "",
        control_plane_component_health_check_seconds=timeouts.control_plane_component_health_check_seconds if timeouts else None,
    )
