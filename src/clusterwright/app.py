"""The composition root: the only module that knows every part. Commands, simulations and benchmarks build from here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import Any
from urllib.parse import urlsplit

import msgspec

from clusterwright.admission.workloads import Workloads
from clusterwright.api.core import Cluster
from clusterwright.api.crds import crds, embedded_crds
from clusterwright.api.ippools import GlobalInClusterIPPool, InClusterIPPool
from clusterwright.api.kubeconfig import inline
from clusterwright.api.kubernetes import MutatingWebhookConfiguration, Secret, ValidatingWebhookConfiguration
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wire import Transport
from clusterwright.containers import build as containers
from clusterwright.containers.build import Host
from clusterwright.controllers import crdmigrator
from clusterwright.controllers.crdmigrator import PHASES, Phase
from clusterwright.controllers.extensionconfig import readonly
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.inmemory.build import NAMES as INMEMORY
from clusterwright.controllers.inmemory.build import controllers as inmemory_controllers
from clusterwright.controllers.inmemory.build import declared as inmemory_declared
from clusterwright.controllers.ipam.build import NAMES as IPAM
from clusterwright.controllers.ipam.build import controllers as ipam_controllers
from clusterwright.controllers.kit import registry
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.controllers.wiring import ControllerDefinition, Dependencies, PassTools
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.loopback import LoopbackTransport
from clusterwright.providers import supervisor
from clusterwright.providers.installing import Ours
from clusterwright.providers.placing import Server
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.controller import Controller
from clusterwright.runtime.dynamic import OwnerWatches
from clusterwright.runtime.errors import AlreadyExists, ConnectionFailed, NotFound
from clusterwright.runtime.fence import Fence, Fenced
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.reconcile import Reconciler, Result, Watch
from clusterwright.runtimesdk.client import Post, RuntimeClient
from clusterwright.runtimesdk.https import HttpsPost
from clusterwright.runtimesdk.metrics import CallMetrics
from clusterwright.runtimesdk.registry import Registry
from clusterwright.runtimesdk.waiting import WokenByExtensions
from clusterwright.runtimesdk.warmup import WarmUp
from clusterwright.topology.extensions import Extensions, NoExtensions
from clusterwright.workload.clusters import ClusterCache, Connect, Reach, connection_matters, mapped_source, secret_to_cluster

CONNECTIONS = "clustercache"
"""The controller of the connections to workload clusters; a manager that only provides infrastructure has none."""
POOL_KINDS = (InClusterIPPool.__name__, GlobalInClusterIPPool.__name__)


async def install_crds(client: Client) -> None:
    """Make the API server serve our kinds; update a CRD that differs.

    Without a conversion webhook, only the stored version is served, unless the CRD has one already.
    """
    for crd in crds():
        key = ObjectKey("", crd["metadata"]["name"])
        gvk = GroupVersionKind.of(crd["apiVersion"], crd["kind"])
        found = await client.live.find(gvk, key)
        present = found.at("spec", "conversion") if found is not None else None
        if isinstance(present, Mapping) and present.get("strategy") == "Webhook":
            crd["spec"]["conversion"] = present
        else:
            crd["spec"]["versions"] = [version for version in crd["spec"]["versions"] if version.get("storage")]
            crd["spec"]["conversion"] = {"strategy": "None"}
        if found is None:
            with suppress(AlreadyExists):
                await client.create(crd)
                continue
        await client.patch(gvk, key, {"metadata": {"labels": crd["metadata"].get("labels", {})}, "spec": crd["spec"]})


def controller_names() -> frozenset[str]:
    """Return the names of all controllers, for options by controller."""
    return selectable_names() | {CONNECTIONS}


def selectable_names() -> frozenset[str]:
    """Return the controllers that can be switched off. The cache of connections is not among them: it runs whenever it is needed."""
    return frozenset({"crdmigrator", *(entry.name for entry in registry.ENTRIES)}) | inmemory_names() | ipam_names()


def inmemory_names() -> frozenset[str]:
    """Return the names of the in-memory provider's controllers."""
    return frozenset(INMEMORY)


def ipam_names() -> frozenset[str]:
    """Return the controllers of the IPAM provider, which runs in the embedded plane only."""
    return frozenset(IPAM)


def add_providers(manager: Manager, data_dir: Path, server: Server) -> None:
    """Add the supervision of other people's providers, whose records are in the data directory of the embedded plane.

    No provider may define a kind on which one of our controllers acts.
    """
    acting: dict[str, list[str]] = {}
    for controller in manager.controllers:
        # the controllers of pools work together: none of them may run next to another provider of pools
        kinds = POOL_KINDS if controller.name in IPAM else (gvk_of(controller.kind).kind,)
        for kind in kinds:
            acting.setdefault(kind, []).append(controller.name)
    own = crds()
    taken = {
        crd["metadata"]["name"]: f"its controllers act on {kind}; to run another provider of {kind}, "
        f"start the plane with --controllers '*,{','.join(f'-{name}' for name in names)}'"
        for crd in (*own, *embedded_crds())
        if (names := acting.get(kind := crd["spec"]["names"]["kind"]))
    }
    supervisor.add(manager, data_dir, server, Ours(taken, frozenset(crd["metadata"]["name"] for crd in own)))


def declared(selected: Collection[str]) -> list[ControllerDefinition]:
    """Return the definitions of the selected controllers."""
    return [d for d in (*registry.controllers(), *inmemory_declared()) if d.name in selected]


async def missing_kinds(manager: Manager) -> list[str]:
    """Return our kinds that the controllers watch and the API server does not serve; raises ApiError."""
    missing: dict[str, None] = {}
    served: dict[str, set[str]] = {}
    for kind in {kind: None for controller in manager.controllers for kind in controller.kinds}:
        gvk = gvk_of(kind)
        if not gvk.group.endswith("cluster.x-k8s.io"):
            continue
        if gvk.api_version not in served:
            try:
                answer = msgspec.json.decode(await manager.rest.raw_get(f"/apis/{gvk.api_version}"))
                served[gvk.api_version] = {resource["kind"] for resource in answer["resources"]}
            except NotFound:
                served[gvk.api_version] = set()
        if gvk.kind not in served[gvk.api_version]:
            missing[f"{gvk.kind} ({gvk.api_version})"] = None
    return sorted(missing)


def add_migrator(manager: Manager, skip: Collection[Phase] = ()) -> None:
    """Add the storage-version migrator of our CRDs, unless all its phases are skipped."""
    if not set(PHASES) <= set(skip):
        manager.add_controller(
            "crdmigrator",
            CustomResourceDefinitionMeta,
            lambda controller: crdmigrator.make(_tools(manager, controller), skip),
            when=crdmigrator.is_due,
            concurrency=1,
        )


def _tools(manager: Manager, controller: Controller) -> PassTools:
    """Return the parts of a pass that are not controllers."""
    return PassTools(
        client=manager.client,
        clock=manager.clock,
        random=manager.random,
        events=manager.events,
        reports=controller.reports,
        trace=lambda key, rows: manager.traces.record(controller.name, controller.kind.__name__, key, rows),
    )


def watch_webhooks(manager: Manager, changed: Callable[[], None]) -> None:
    """Call `changed` when any webhook configuration or CRD changes."""

    class Waking:
        async def reconcile(self, key: ObjectKey) -> Result:
            changed()
            return Result.await_change()

    for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration, CustomResourceDefinitionMeta):
        manager.add_controller(f"webhooks/{kind.__name__.lower()}", kind, lambda _: Waking(), concurrency=1, everywhere=True)


def build_manager(
    transport: Transport,
    *,
    clock: Clock,
    random: Random,
    keys: KeySource,
    cloud: Cloud | None = None,
    docker: bool = False,
    ipam: bool = False,
    host: Host | None = None,
    reach: Reach | None = None,
    options: Options | None = None,
    features: Mapping[str, bool] | None = None,
    flags: Mapping[str, Any] | None = None,
    extensions: Extensions | None = None,
    workloads: Workloads | None = None,
    selected: Collection[str] | None = None,
    unfenced: Transport | None = None,
    lease_transport: Transport | None = None,
    post: Post | None = None,
) -> Manager:
    """Return all controllers on one API server. With a `cloud`, include the in-memory provider and reach its clusters in process.

    `docker`: simulate the Docker kinds too. Use it only where no real Docker provider runs. `host`: make those kinds containers of its
    engine. `ipam`: answer claims for addresses of InClusterIPPools, only where no other provider does.
    `flags` are the options of controllers (`wiring.Dependencies.options`). Decisions are kept in `Manager.traces`. `workloads`
    receives the connections to workload clusters. `selected` names the controllers to run; None: all. `post` sends the requests to runtime
    extensions; None: HTTPS.
    """
    options = options or Options()
    manager = Manager(transport, clock=clock, random=random, options=options, unfenced=unfenced, lease_transport=lease_transport)
    cache = ClusterCache(
        client=manager.client,
        clock=clock,
        random=_split(random),
        keys=keys,
        connect=_fenced(connector(cloud, reach), manager.fence),
        watch_filter=options.watch_filter,
        registry=manager.registry,
        events=manager.events,
    )
    manager.when_given_up(lambda is_lost: cache.forget(lambda key: is_lost(gvk_of(Cluster), key)))
    definitions = [d for d in registry.controllers() if selected is None or d.name in selected]
    if definitions:
        _add_connections(manager, cache, cloud)
        if workloads is not None:
            workloads.lend(cache.client)
    manager.features = gates = {**DEFAULT_FEATURES, **(features or {})}
    manager.idle = {
        d.name: (d.kind.__name__, "--controllers leaves it out")
        for d in registry.controllers()
        if selected is not None and d.name not in selected
    }
    runtime = None
    if definitions and extensions is None and gates["RuntimeSDK"]:
        extensions = runtime = add_runtime_client(manager, flags or {}, post)
    if cloud is not None:
        ours = inmemory_controllers(cloud, docker=docker and host is None, containers=host is not None)
        definitions += [d for d in ours if selected is None or d.name in selected]
    if ipam:
        definitions += [d for d in ipam_controllers() if selected is None or d.name in selected]
    for definition in definitions:
        if definition.gate and not gates[definition.gate]:
            manager.idle[definition.name] = (definition.kind.__name__, f"the feature gate {definition.gate} is off")
        elif definition.kind is not ExtensionConfig or runtime is not None:  # who brings their own extensions registers them, too
            _add(manager, definition, cache, keys, gates, flags or {}, extensions or NoExtensions(), runtime)
    if host is not None:
        containers.add(manager, host)
    return manager


def _add_connections(manager: Manager, cache: ClusterCache, cloud: Cloud | None) -> None:
    """Add the cache of connections to workload clusters."""
    connections = manager.add_controller(
        CONNECTIONS,
        Cluster,
        lambda _: cache,
        # CRDs are watched only to have them in the cache: every pass asks for the contract of the kinds it meets
        watches=(Watch(Secret, secret_to_cluster), Watch(CustomResourceDefinitionMeta, _nobody)),
        when=connection_matters,
    )
    cache.bind(connections.enqueue)
    manager.add_part("connections", cache.run, needs_leadership=False)
    if cloud is not None:
        cloud.subscribe(CONNECTIONS, cache.wake)


def _fenced(connect: Connect, fence: Fence) -> Connect:
    """Return a client that refuses writes to a workload cluster when writes to the management cluster are refused."""

    async def connected(cluster: ObjectKey, kubeconfig: bytes) -> Transport:
        return Fenced(await connect(cluster, kubeconfig), fence)

    return connected


def add_runtime_client(manager: Manager, flags: Mapping[str, Any], post: Post | None = None) -> RuntimeClient:
    """Return the client of runtime extensions; requests use HTTPS unless `post` is given.

    Its registry is ready as soon as the list of extensions is complete.
    """
    https = HttpsPost(flags.get("runtime-extension-client-cert-file") or "", flags.get("runtime-extension-client-key-file") or "")
    client = RuntimeClient(Registry(), post or https, manager.client, manager.clock.monotonic, CallMetrics(manager.registry))
    # of those that share the work one discovers; all use what it found
    shared = manager.options.shards is not None
    read_only = shared or bool(flags.get("runtime-extensions-read-only"))
    warm_up = WarmUp(manager.client, manager.clock, client.registry, read_only=read_only)
    if shared:
        manager.add_controller(
            "extensionconfig/follower",
            ExtensionConfig,
            lambda controller: readonly.make(_tools(manager, controller), client.registry),
            everywhere=True,
        )

    async def run() -> None:
        try:
            await warm_up.run()
            await asyncio.Event().wait()
        finally:
            await https.close()

    manager.add_part("runtime-extensions", run)
    manager.add_readiness("runtime-extensions", lambda: warm_up.readiness)
    return client


def _add(
    manager: Manager,
    definition: ControllerDefinition,
    cache: ClusterCache,
    keys: KeySource,
    features: Mapping[str, bool],
    flags: Mapping[str, Any],
    extensions: Extensions,
    runtime: RuntimeClient | None,
) -> None:
    def trace(key: ObjectKey, rows: Mapping[str, str]) -> None:
        manager.traces.record(definition.name, definition.kind.__name__, key, rows)

    def make(controller: Controller) -> Reconciler:
        made = definition.make(
            Dependencies(
                client=manager.client,
                clock=manager.clock,
                random=_split(manager.random),
                keys=keys,
                events=manager.events,
                workload=cache,
                dynamic=OwnerWatches(controller),
                features=features,
                enqueue=controller.enqueue,
                enqueue_after=controller.enqueue_after,
                reports=controller.reports,
                trace=trace,
                extensions=extensions,
                runtime=runtime,
                options=flags,
            )
        )
        return made if runtime is None else WokenByExtensions(made, runtime.registry, controller.enqueue)

    controller = manager.add_controller(
        definition.name,
        definition.kind,
        make,
        watches=definition.watches,
        concurrency=definition.concurrency,
        look=definition.look,
    )
    wake = definition.workload_wake
    if wake is not None:
        cache.add_source(mapped_source(manager.client, wake.map, controller.enqueue, wake.failing_for))


def _split(random: Random) -> Random:
    """Return a random source for one part of the program. The system's source is shared: tokens from a seed could be guessed."""
    return random if isinstance(random, SystemRandom) else Random(random.getrandbits(64))


async def _nobody(obj: object, reader: Reader) -> Sequence[ObjectKey]:
    return ()


def connector(cloud: Cloud | None, reach: Reach | None) -> Connect:
    """Return how to connect to workload clusters: in process to simulated ones, over the network to others."""

    async def connect(cluster: ObjectKey, kubeconfig: bytes) -> Transport:
        if cloud is not None:
            entry = inline(kubeconfig)
            url = urlsplit(entry.server)
            simulated = cloud.at(url.hostname or "", url.port or 443, cluster)
            if simulated is not None:
                return LoopbackTransport(simulated, entry.certificate_authority, entry.client_certificate)
        if reach is None:
            raise ConnectionFailed(f"the workload cluster of {cluster} is not simulated, and simulations have no network")
        return await reach(kubeconfig)

    return connect
