"""Upstream's own managers as plain processes, from the folder that UPSTREAM_MANAGERS names.

The folder holds the binaries `core`, `bootstrap`, `controlplane` and `capd`, and beside them the files of their release that say what they
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
from clusterwright.runtime.errors import NotFound
from real.kube import Kube, free_port

COMPONENTS: Final = {
    "core": "core-components.yaml",
    "bootstrap": "bootstrap-components.yaml",
    "controlplane": "control-plane-components.yaml",
    "capd": "infrastructure-components-development.yaml",
}
"""By the name of the binary."""
MISSING = "UPSTREAM_MANAGERS names no folder with upstream's binaries and their components"


def folder() -> Path | None:
    """Where UPSTREAM_MANAGERS says that they are; None: nowhere."""
    named = Path(os.environ.get("UPSTREAM_MANAGERS") or "/nowhere")
    return named if all((named / file).exists() for pair in COMPONENTS.items() for file in pair) else None


class Upstream:
    """Upstream's managers on one kube-apiserver."""

    def __init__(self, kube: Kube) -> None:
        found = folder()
        assert found is not None
        self._kube, self._folder = kube, found
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

    async def start(self, *names: str) -> None:
        """Definitions and processes, and when they answer their webhooks: until then these would refuse everything."""
        for name in names:
            for obj in self._objects(name, webhooks=False):
                await self._kube.client.apply(obj, field_manager="release")
        for name in names:
            webhooks, diagnostics, health = self._ports[name]
            environ = {**os.environ, "POD_IP": "127.0.0.1", "POD_NAMESPACE": "capi-system", "POD_NAME": name, "POD_UID": name}
            with self.log(name).open("ab") as log:
                self._processes[name] = await asyncio.create_subprocess_exec(
                    str(self._folder / name), "--kubeconfig", str(self._kube.kubeconfig), "--leader-elect=false", "--webhook-port", str(webhooks),
                    "--webhook-cert-dir", str(self._certificates), "--diagnostics-address", f"127.0.0.1:{diagnostics}", "--insecure-diagnostics",
                    "--health-addr", f"127.0.0.1:{health}", stdout=log, stderr=log, env=environ,
                )  # fmt: skip
        for name in names:
            await _listens(self._ports[name][0])
            for obj in self._objects(name, webhooks=True):
                await self._kube.client.apply(obj, field_manager="release")

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


async def _listens(port: int) -> None:
    async with asyncio.timeout(300):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.5)
                continue
            writer.close()
            return
