"""A Cluster's whole life with the example extension over real HTTPS: every hook holds it back once, and lets it go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from clusterwright.api.bootstrap import KubeadmConfigTemplate
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.conditions import get
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.runtime.clock import SystemClock
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane, management_server, plane
from support.extension import Running, serving
from support.patience import PATIENCE

CLUSTER = ObjectKey("default", "c")
HOLD = "example.com/hold"
OLD, NEW = "v1.33.0", "v1.34.1"


@asynccontextmanager
async def managed() -> AsyncIterator[Plane]:
    clock = SystemClock()
    features = {**EMBEDDED_FEATURES, "RuntimeSDK": True, "InPlaceUpdates": True}
    server = management_server(clock, Random(1), features)
    async with plane(clock, server=server, features=features) as p:
        yield p
    server.close()


async def register(p: Plane, running: Running) -> None:
    """Tell the plane where the extension is, its CA in a Secret."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ca", "namespace": "default"}, "data": {"ca.crt": running.bundle}}
    await p.client.create(secret)
    config = {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": "ext", "annotations": {"runtime.cluster.x-k8s.io/inject-ca-from-secret": "default/ca"}},
        "spec": {"clientConfig": {"url": running.url}, "settings": {"retryAfterSeconds": "1", "kubernetesVersions": f"{OLD},{NEW}"}},
    }
    await p.client.create(config)


async def is_discovered(p: Plane) -> bool:
    """Whether the CA was taken over, and the handlers were told, of that generation."""
    config = await p.client.get(ExtensionConfig, ObjectKey("", "ext"))
    found = get(config.status.conditions, "Discovered")
    return (
        bool(config.spec.client_config.ca_bundle)
        and "hold-beforeclustercreate.ext" in [h.name for h in config.status.handlers]
        and found is not None
        and (found.status, found.observed_generation) == ("True", config.metadata.generation)
    )


def class_with_extension() -> list[Json]:
    extensions = {
        "generatePatchesExtension": "patch.ext",
        "validateTopologyExtension": "validate.ext",
        "discoverVariablesExtension": "variables.ext",
    }
    return samples.cluster_class(
        patches=[{"name": "banner", "external": extensions}],
        upgrade={"external": {"generateUpgradePlanExtension": "plan.ext"}},
    )


class Story:
    """What a test of a life says and asks."""

    def __init__(self, p: Plane) -> None:
        self.p = p

    async def hold(self, *hooks: str) -> None:
        await self.p.annotate(Cluster, "c", {HOLD: ",".join(hooks) or None})

    async def until_said(self, text: str) -> None:
        async def holds() -> bool:
            found = get((await self.p.cluster("c")).status.conditions, "TopologyReconciled")
            return found is not None and text in found.message

        await self.p.until(holds, f"TopologyReconciled says {text!r}", within=PATIENCE, step=0.05)

    async def held(self, what: str, hook: str) -> None:
        """Wait until the hook is what holds the Cluster back."""
        await self.until_said(f"Following hooks are blocking {what}: {hook}: held by the annotation {HOLD}")

    async def topology(self, **change: Any) -> None:
        await self.p.client.patch(Cluster, CLUSTER, {"spec": {"topology": change}})

    async def versions(self) -> tuple[str, str]:
        """Of the control plane and of the workers, as they are asked for."""
        (leader,) = await self.p.client.list(KubeadmControlPlane)
        (deployment,) = await self.p.client.list(MachineDeployment)
        return leader.spec.version, deployment.spec.template.spec.version

    async def workers(self) -> dict[str, str]:
        found = await self.p.client.list(Machine)
        return {m.metadata.name: m.spec.version for m in found if "cluster.x-k8s.io/control-plane" not in m.metadata.labels}


async def test_every_hook_is_called_and_can_hold_a_cluster_back(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        async with managed() as p:
            await register(p, running)
            await p.until(lambda: is_discovered(p), "the extension is discovered", within=PATIENCE, step=0.05)
            story = Story(p)
            cluster = samples.topology("c", version=OLD, workers={"md-0": 2}, variables=[{"name": "banner", "value": "hello there"}])
            cluster["metadata"]["annotations"] = {HOLD: "BeforeClusterCreate"}
            await p.apply(class_with_extension())
            await p.client.create(cluster)

            await story.held("Cluster topology creation", "BeforeClusterCreate")
            assert await p.client.list(KubeadmControlPlane) == []
            await story.hold()
            await p.until_available("c", workers=2, within=PATIENCE)
            templates = await p.client.list(KubeadmConfigTemplate)
            (made,) = [t for t in templates if t.metadata.name.startswith("c-md-0")]
            assert made.spec.template.spec.pre_kubeadm_commands == ("echo 'hello there'",)
            before = await story.workers()

            await story.hold("BeforeClusterUpgrade")
            await story.topology(version=NEW)
            await story.held("upgrade", "BeforeClusterUpgrade")
            await story.hold("BeforeControlPlaneUpgrade")
            await story.held("upgrade", "BeforeControlPlaneUpgrade")
            assert await story.versions() == (OLD, OLD)
            await story.hold("AfterControlPlaneUpgrade")
            await story.held("upgrade", "AfterControlPlaneUpgrade")
            await story.hold("BeforeWorkersUpgrade")
            await story.held("upgrade", "BeforeWorkersUpgrade")
            assert await story.versions() == (NEW, OLD)
            await story.hold("AfterWorkersUpgrade")
            await story.held("upgrade", "AfterWorkersUpgrade")
            await story.hold("AfterClusterUpgrade")
            await story.held("upgrade", "AfterClusterUpgrade")
            assert await story.versions() == (NEW, NEW)
            after = await story.workers()
            assert set(after.values()) == {NEW}
            assert len(before.keys() & after.keys()) >= 1, "workers were updated in place"
            await story.hold()

            await story.topology(variables=[{"name": "banner", "value": "x" * 81}])
            await story.until_said("validate.ext")
            await story.topology(variables=[])

            await story.hold("BeforeClusterDelete")
            await p.client.delete(Cluster, CLUSTER)
            await story.held("delete", "BeforeClusterDelete")
            await story.hold()
            await p.until_gone(Cluster, "c", within=PATIENCE)


async def test_a_cluster_that_was_there_before_its_extension_goes_on_when_that_comes(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        async with managed() as p:
            story = Story(p)
            await p.apply(samples.cluster_class(patches=[{"name": "banner", "external": {"generatePatchesExtension": "patch.ext"}}]))
            await p.client.create(samples.topology("c", workers={}))
            await story.until_said('handler with name "patch.ext" has not been registered')
            await p.clock.sleep(3)  # by now the next try of its own is seconds away, and later minutes
            await register(p, running)
            await p.until_available("c", within=PATIENCE)
