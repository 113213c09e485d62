"""Faults of what stands beside the controllers: webhooks that are down, runtime extensions, rights, feature gates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from random import Random

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.auth.rbac import RbacAuthorizer
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.offline.verdict import State
from clusterwright.runtime.clock import Clock
from clusterwright.runtimesdk.client import PostFailed
from clusterwright.runtimesdk.registry import Handler
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane, management_server, plane, prepare
from clusterwright.webhooks import embedded
from offline.faulty import Fault, Make, Stage, in_cluster
from offline.live import CLUSTER, CONTROL_PLANE, DEPLOYMENT, key, whole
from support.extension import InProcess, example_module

HELD = frozenset({State.WAITING})
BROKEN = frozenset({State.BROKEN})
HOLD = "example.com/hold"
CONFIG = GroupVersionKind("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig")
RBAC = "rbac.authorization.k8s.io"

# ------------------------------------------------------------------------------------------------------- webhooks


def guarded(resources: Sequence[str], operations: Sequence[str], *, client: Json, group: str = "cluster.x-k8s.io") -> Json:
    """A webhook that must be asked before some resources of a group are written, and is down."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": list(resources)}
    hook = {
        "name": "guard.example.com",
        "rules": [rule],
        "clientConfig": client,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"}, "webhooks": [hook]}


NO_ENDPOINTS = {"service": {"namespace": "guard", "name": "guard"}}
DEAD_PORT = {"url": "https://127.0.0.1:9/validate"}


def webhook_down_then(configuration: Json, kind: GroupVersionKind, name: str, patch: Json) -> Make:
    @in_cluster
    async def make(p: Plane) -> None:
        await p.client.create(configuration)
        await p.client.patch(kind, key(name), patch)

    return make


def webhook_down_first(configuration: Json) -> Make:
    async def make(p: Plane) -> None:
        await p.client.create(configuration)
        await p.apply(whole())

    return make


# ----------------------------------------------------------------------------------------------------- extensions


class Extension(InProcess):
    """The example extension; `fault`, if there is one, is how it fails from now on: to be reached, or with an answer."""

    def __init__(self) -> None:
        super().__init__(example_module().example())
        self.fault = ""

    async def __call__(self, handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
        if self.fault == "Failure" and handler.hook != "Discovery":
            kind = f"{handler.hook}Response"
            api = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
            return 200, f'{{"apiVersion":"{api}","kind":"{kind}","status":"Failure","message":"the database is gone"}}'.encode()
        if self.fault and self.fault != "Failure":
            raise PostFailed(self.fault)
        return await super().__call__(handler, url, body)


REFUSED = 'Post "https://ext.example.com/": dial tcp 192.0.2.1:443: connect: connection refused'
WITH_EXTENSIONS = {**EMBEDDED_FEATURES, "RuntimeSDK": True}


@asynccontextmanager
async def extended(clock: Clock) -> AsyncIterator[Plane]:
    """A plane with topologies and runtime extensions."""
    server, post = management_server(clock, Random(1), WITH_EXTENSIONS), Extension()
    async with plane(clock, server=server, features=WITH_EXTENSIONS, post=post) as p:
        p.extension = post  # type: ignore[attr-defined]
        yield p
    server.close()


def config(name: str = "ext", url: str = "https://ext.example.com/") -> Json:
    spec = {"clientConfig": {"url": url}, "settings": {"retryAfterSeconds": "5", "kubernetesVersions": "v1.34.1,v1.35.0"}}
    return {"apiVersion": CONFIG.api_version, "kind": CONFIG.kind, "metadata": {"name": name}, "spec": spec}


def held_topology(hook: str = "") -> Json:
    made = samples.topology("c", version="v1.34.1")
    if hook:
        made["metadata"]["annotations"] = {HOLD: hook}
    return made


def held_in_creation() -> Make:
    async def make(p: Plane) -> None:
        await p.client.create(config())
        await asyncio.sleep(5)
        await p.apply([*samples.cluster_class(), held_topology("BeforeClusterCreate")])

    return make


async def extended_up(p: Plane) -> None:
    """A topology that is up, with the extension."""
    await p.client.create(config())
    await asyncio.sleep(5)
    await p.apply([*samples.cluster_class(), held_topology()])
    await p.until_available("c", workers=1, within=600)
    await asyncio.sleep(30)


def held_in_upgrade(hook: str) -> Make:
    async def make(p: Plane) -> None:
        await extended_up(p)
        patch = {"metadata": {"annotations": {HOLD: hook}}, "spec": {"topology": {"version": "v1.35.0"}}}
        await p.client.patch(CLUSTER, key("c"), patch)

    return make


async def held_in_deletion(p: Plane) -> None:
    await extended_up(p)
    await p.client.patch(CLUSTER, key("c"), {"metadata": {"annotations": {HOLD: "BeforeClusterDelete"}}})
    await p.client.delete(CLUSTER, key("c"))


def failing_in_upgrade(fault: str) -> Make:
    async def make(p: Plane) -> None:
        await extended_up(p)
        p.extension.fault = fault  # type: ignore[attr-defined]
        await p.client.patch(CLUSTER, key("c"), {"spec": {"topology": {"version": "v1.35.0"}}})

    return make


def patched_from_outside() -> list[Json]:
    external = {"generatePatchesExtension": "patch.ext"}
    return samples.cluster_class(patches=[{"name": "banner", "external": external}])


def never_reached(register: bool) -> Make:
    """A class whose patches come from an extension that nobody reaches, or that nobody has registered."""

    async def make(p: Plane) -> None:
        p.extension.fault = REFUSED  # type: ignore[attr-defined]
        if register:
            await p.client.create(config())
        await asyncio.sleep(5)
        await p.apply([*patched_from_outside(), held_topology()])

    return make


async def upgrade_held_by_annotation(p: Plane) -> None:
    await extended_up(p)
    annotation = {"before-upgrade.hook.cluster.cluster.x-k8s.io/backup": ""}
    await p.client.patch(CLUSTER, key("c"), {"metadata": {"annotations": annotation}, "spec": {"topology": {"version": "v1.35.0"}}})


# --------------------------------------------------------------------------------------------------------- rights

MANAGER = User("system:serviceaccount:clusterwright-system:clusterwright", ("system:serviceaccounts", "system:authenticated"))
_ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]


def lacking(*denied: tuple[str, str, str]) -> Stage:
    """A plane whose controllers may do everything but some things: group, resource, verb."""

    @asynccontextmanager
    async def stage(clock: Clock) -> AsyncIterator[Plane]:
        server = ApiServer(now=clock.now, random=Random(1), authorizer=RbacAuthorizer(), converters=embedded.converters)
        prepare(server)
        groups: dict[str, set[str]] = {}
        for resource in server.registry:
            groups.setdefault(resource.group, set()).add(resource.plural)
        rules = []
        for group, plurals in groups.items():
            for plural in sorted({*plurals, *(f"{p}/status" for p in plurals), *(f"{p}/finalizers" for p in plurals)}):
                verbs = [v for v in _ALL if (group, plural, v) not in denied]
                rules.append({"apiGroups": [group], "resources": [plural], "verbs": verbs})
        rules.append({"nonResourceURLs": ["*"], "verbs": ["get"]})
        role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "clusterwright"}, "rules": rules}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "clusterwright"}
        subject = {"apiGroup": RBAC, "kind": "User", "name": MANAGER.name}
        binding = {"metadata": {"name": "clusterwright"}, "roleRef": reference, "subjects": [subject]}
        server.ensure([role, {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", **binding}])
        async with plane(clock, server=server, transport=InProcessTransport(server, MANAGER)) as p:
            yield p
        server.close()

    return stage


async def made(p: Plane) -> None:
    await p.apply(whole())


CORE, INFRASTRUCTURE, CONTROL = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"

# ---------------------------------------------------------------------------------------------------------- gates


def without_gate(name: str) -> Callable[[Clock], AbstractAsyncContextManager[Plane]]:
    return partial(plane, features={**EMBEDDED_FEATURES, name: False})


async def topology_made(p: Plane) -> None:
    await p.apply([*samples.cluster_class(), samples.topology("c")])


@asynccontextmanager
async def ungated(clock: Clock) -> AsyncIterator[Plane]:
    """An API server whose admission knows extensions, and controllers that do not."""
    server = management_server(clock, Random(1), WITH_EXTENSIONS)
    async with plane(clock, server=server) as p:
        yield p
    server.close()


async def patched_without_gate(p: Plane) -> None:
    await p.apply([config(), *patched_from_outside(), held_topology()])


FAULTS = [
    Fault(
        "webhook without endpoints, workers scaled",
        webhook_down_then(guarded(["machines"], ["CREATE"], client=NO_ENDPOINTS), DEPLOYMENT, "md", {"spec": {"replicas": 2}}),
        "MachineDeployment/md|MachineSet/md-*|ValidatingWebhookConfiguration/guard",
        "whoever runs the webhook guard.example.com",
    ),
    Fault(
        "webhook behind a dead port, leaders scaled",
        webhook_down_then(guarded(["machines"], ["CREATE"], client=DEAD_PORT), CONTROL_PLANE, "c", {"spec": {"replicas": 3}}),
        "KubeadmControlPlane/c|ValidatingWebhookConfiguration/guard",
        "whoever runs the webhook guard.example.com",
    ),
    Fault(
        "webhook down before the first machine",
        webhook_down_first(guarded(["machines"], ["CREATE"], client=NO_ENDPOINTS)),
        "KubeadmControlPlane/c|ValidatingWebhookConfiguration/guard",
        "whoever runs the webhook guard.example.com",
    ),
    Fault(
        "webhook down for status of machines",
        webhook_down_first(guarded(["machines/status"], ["UPDATE"], client=NO_ENDPOINTS)),
        "Machine/*|ValidatingWebhookConfiguration/guard",
        "whoever runs the webhook guard.example.com",
    ),
    Fault(
        "webhook down for bootstrap configs",
        webhook_down_first(guarded(["kubeadmconfigs"], ["CREATE"], client=DEAD_PORT, group="bootstrap.cluster.x-k8s.io")),
        "KubeadmControlPlane/c|ValidatingWebhookConfiguration/guard",
        "whoever runs the webhook guard.example.com",
    ),
    Fault("hook holds creation", held_in_creation(), "ExtensionConfig/ext", "extension ext", HELD, extended),
    Fault("hook holds upgrade", held_in_upgrade("BeforeClusterUpgrade"), "ExtensionConfig/ext", "extension ext", HELD, extended),
    Fault("hook holds workers", held_in_upgrade("AfterControlPlaneUpgrade"), "ExtensionConfig/ext", "extension ext", HELD, extended),
    Fault("hook holds deletion", held_in_deletion, "ExtensionConfig/ext", "extension ext", HELD, extended),
    Fault("hook answers Failure", failing_in_upgrade("Failure"), "ExtensionConfig/ext", "extension ext", BROKEN, extended),
    Fault("hook not reached", failing_in_upgrade(REFUSED), "ExtensionConfig/ext", "extension ext", BROKEN, extended),
    Fault("extension never reached", never_reached(True), "ExtensionConfig/ext", "extension ext", BROKEN, extended),
    Fault("extension not registered", never_reached(False), "ExtensionConfig/ext", "author of", BROKEN, extended),
    Fault("annotation holds upgrade", upgrade_held_by_annotation, "Cluster/c", "before-upgrade.hook", HELD, extended),
    Fault(
        "machine sets may not be made",
        made,
        "MachineDeployment/md",
        "rights",
        stage=lacking((CORE, "machinesets", "create")),
    ),
    Fault("leaders may not be made", made, "KubeadmControlPlane/c", "rights", stage=lacking((CORE, "machines", "create"))),
    Fault("secrets may not be made", made, "KubeadmControlPlane/c", "rights", stage=lacking(("", "secrets", "create"))),
    Fault(
        "status may not be written",
        made,
        "KubeadmControlPlane/c",
        "rights",
        stage=lacking((CONTROL, "kubeadmcontrolplanes/status", "patch")),
    ),
    Fault(
        "machines may not be listed", made, "Cluster/c", "whoever runs the management cluster", stage=lacking((CORE, "machines", "list"))
    ),
    Fault(
        "topology without its gate",
        topology_made,
        "Cluster/c|ClusterClass/in-memory",
        "whoever runs",
        stage=without_gate("ClusterTopology"),
    ),
    Fault(
        "extension without its gate",
        patched_without_gate,
        "ExtensionConfig/ext|ClusterClass/in-memory",
        "whoever runs the management cluster",
        BROKEN,
        ungated,
    ),
]
