"""Upstream's own managers as plain processes, from the folders that UPSTREAM_MANAGERS names, separated by colons: one for each version.

A folder holds the binaries `core`, `bootstrap`, `controlplane` and `capd`, and beside them the files of their release that say what they
need of an API server: `core-components.yaml`, `bootstrap-components.yaml`, `control-plane-components.yaml` and
`infrastructure-components-development.yaml`. Of these, CustomResourceDefinitions, Namespaces and webhook configurations are
applied, with webhooks led to the loopback address; everything else is for Pods.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.yamlreader import load_all
from clusterwright.apiserver.serving.tls import make_authority, sign
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.simulation import samples
from real.kube import Kube, Manager, free_port, until

COMPONENTS: Final = {
    "core": "core-components.yaml",
    "bootstrap": "bootstrap-components.yaml",
    "controlplane": "control-plane-components.yaml",
    "capd": "infrastructure-components-development.yaml",
}
"""By the name of the binary."""
GATES = "ClusterTopology=true"
MISSING = "UPSTREAM_MANAGERS names no folder with upstream's binaries and their components"


def folders() -> list[Path]:
    """Return the folders that UPSTREAM_MANAGERS names; their names are the names of the versions in the results."""
    named = [Path(name) for name in (os.environ.get("UPSTREAM_MANAGERS") or "").split(":") if name]
    return [one for one in named if all((one / file).exists() for pair in COMPONENTS.items() for file in pair)]


class Upstream:
    """One version of upstream's managers on one kube-apiserver."""

    def __init__(self, kube: Kube, folder: Path) -> None:
        self._kube, self._folder = kube, folder
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._ports = {name: [free_port() for _ in range(3)] for name in COMPONENTS}
        now = SystemClock().now()
        authority = make_authority(now)
        serving = sign(authority, now, "webhooks", hosts=["127.0.0.1"])
        self._bundle = base64.b64encode(authority.certificate).decode()
        self._certificates = kube.folder / "upstream-certificates"
        self._certificates.mkdir()
        (self._certificates / "tls.crt").write_bytes(serving.certificate)
        (self._certificates / "tls.key").write_bytes(serving.key)

    def log(self, name: str) -> Path:
        return self._kube.folder / f"upstream-{name}.log"

    def _objects(self, name: str, *, webhooks: bool) -> Iterator[dict[str, Any]]:
        def here(client: dict[str, Any]) -> None:
            path = client.pop("service").get("path", "")
            client |= {"url": f"https://127.0.0.1:{self._ports[name][0]}{path}", "caBundle": self._bundle}

        for obj in load_all((self._folder / COMPONENTS[name]).read_text(), trusted=True):
            kind = obj["kind"] if obj else ""
            if kind.endswith("WebhookConfiguration") == webhooks and (webhooks or kind in {"CustomResourceDefinition", "Namespace"}):
                clients = [hook["clientConfig"] for hook in obj.get("webhooks") or ()]
                clients += [c["webhook"]["clientConfig"] for c in [obj.get("spec", {}).get("conversion") or {}] if c.get("webhook")]
                for client in clients:
                    here(client)
                yield obj

    async def start(self, *names: str, also_served: Sequence[str] = ()) -> None:
        """Definitions and processes, and when they answer their webhooks: until then these would refuse everything.

        `also_served`: whose definitions are needed though others act on them.
        """
        for name in dict.fromkeys((*names, *also_served)):
            for obj in self._objects(name, webhooks=False):
                await self._kube.client.apply(obj, field_manager="release")
                if obj["kind"] == "CustomResourceDefinition":
                    await self._is_served(obj["spec"])
        for name in names:
            await self._begin(name)
        for name in names:
            await self._listens(name)
            for obj in self._objects(name, webhooks=True):
                await self._kube.client.apply(obj, field_manager="release")

    async def _begin(self, name: str) -> None:
        webhooks, diagnostics, health = self._ports[name]
        environ = {**os.environ, "POD_IP": "127.0.0.1", "POD_NAMESPACE": "capi-system", "POD_NAME": name, "POD_UID": name}
        with self.log(name).open("ab") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                str(self._folder / name), "--kubeconfig", str(self._kube.kubeconfig), "--leader-elect=false", "--webhook-port", str(webhooks),
                "--webhook-cert-dir", str(self._certificates), "--diagnostics-address", f"127.0.0.1:{diagnostics}", "--insecure-diagnostics",
                "--health-addr", f"127.0.0.1:{health}", "--feature-gates", GATES, stdout=log, stderr=log, env=environ,
            )  # fmt: skip

    async def _listens(self, name: str) -> None:
        async def holds() -> bool:
            if self._processes[name].returncode is not None:  # it has ports of its own that may be taken
                await self._begin(name)
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self._ports[name][0])
            except OSError:
                return False
            writer.close()
            return True

        await until(holds, f"upstream's {name} listens", within=300, step=1.0)

    async def _is_served(self, definition: dict[str, Any]) -> None:
        stored = next(version["name"] for version in definition["versions"] if version["storage"])

        async def holds() -> bool:
            try:
                return bool(await self._kube.client.raw_get(f"/apis/{definition['group']}/{stored}/{definition['names']['plural']}"))
            except ApiError:
                return False

        await until(holds, f"{definition['names']['kind']} is served")

    async def stop(self, *names: str) -> None:
        """Processes and their webhook configurations; definitions stay."""
        for name in names:
            for obj in self._objects(name, webhooks=True):
                kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
                with suppress(NotFound):
                    await self._kube.client.delete(kind, ObjectKey("", obj["metadata"]["name"]))
            process = self._processes.pop(name, None)
            if process is not None and process.returncode is None:
                process.send_signal(signal.SIGTERM)
                try:
                    async with asyncio.timeout(60):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()

    async def close(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    @property
    def ended(self) -> Sequence[str]:
        """Who has ended without being told to."""
        return [name for name, process in self._processes.items() if process.returncode is not None]


async def create(kube: Kube, name: str, *, control_plane: int, workers: int) -> None:
    """A cluster as upstream's in-memory provider bears it: with RSA keys, and a DevCluster that has annotations."""
    leaders = samples.control_plane(name, replicas=control_plane)
    del leaders[1]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["encryptionAlgorithm"]
    objects = [*samples.cluster(name, has_control_plane_object=True), *leaders, *samples.workers(name, f"{name}-md", replicas=workers)]
    for obj in objects:
        await kube.client.create({**obj, "metadata": {**obj["metadata"], "annotations": {"example.com/kept": name}}})


async def create_of_class(kube: Kube, name: str, *, control_plane: int, workers: int) -> None:
    """Create a ClusterClass and a Cluster of it that upstream's in-memory provider supports: without pools, and with RSA keys."""
    for obj in samples.cluster_class(f"{name}-class"):
        if obj["kind"] == "DevMachinePoolTemplate":
            continue
        if obj["kind"] == "KubeadmControlPlaneTemplate":
            del obj["spec"]["template"]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["encryptionAlgorithm"]
        if obj["kind"] == "ClusterClass":
            del obj["spec"]["workers"]["machinePools"]
        await kube.client.create(obj)
    cluster = samples.topology(name, class_name=f"{name}-class", control_plane=control_plane, workers={"md-0": workers})
    await kube.client.create({**cluster, "metadata": {**cluster["metadata"], "annotations": {"example.com/kept": name}}})


async def ours(kube: Kube, controllers: str) -> Manager:
    """Some of our controllers, with the role that is generated for them and upstream's definitions."""
    for obj in load_all(await kube.command("install", "--controllers", controllers, "--no-webhooks"), trusted=True):
        if obj["kind"] in {"Namespace", "ServiceAccount"} or obj["apiVersion"].startswith("rbac."):
            await kube.client.apply(obj, field_manager="test")
    return await kube.manager("--controllers", controllers, "--leader-elect", "--feature-gates", GATES)
