"""`clusterwright up --against` an API server that knows nothing of our kinds: it is told everything, and asks."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, Invalid
from clusterwright.runtime.rest import RestClient
from support.forks import program
from support.patience import PATIENCE

OLD = GroupVersionKind("cluster.x-k8s.io", "v1beta1", "MachineHealthCheck")
NEW = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineHealthCheck")
CONFIGURATION = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def check(**spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "False", "timeout": "5m"}]
    spec = {"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}, "unhealthyConditions": conditions, **spec}
    return {"apiVersion": OLD.api_version, "kind": OLD.kind, "metadata": {"name": "m", "namespace": "default"}, "spec": spec}


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():
            await SystemClock().sleep(0.05)


async def test_a_foreign_api_server_is_configured_and_calls_our_webhooks(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "admin.conf"
    running = await serve.start(
        serve.ServeOptions(listen="127.0.0.1:0", kubeconfig=kubeconfig, controllers=False, now=SystemClock().now, random=Random(1))
    )
    client = RestClient(InProcessTransport(running.server))
    process = await asyncio.create_subprocess_exec(
        *program(), "up", "--against", str(kubeconfig), "--webhook-host", "127.0.0.1",
        "--webhook-port", "0", "--webhook-url", "https://127.0.0.1:0", "--no-inmemory", "--install-crds",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=dict(os.environ), cwd=tmp_path,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while b"webhooks on port" not in (line := await process.stdout.readline()):
                assert line, "it ended"

        await client.create(check())
        stored = await client.get(NEW, ObjectKey("default", "m"))
        assert stored.at("spec", "checks", "unhealthyNodeConditions") == [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]
        assert stored.at("spec", "checks", "nodeStartupTimeoutSeconds") == 600  # defaulted by a webhook
        assert stored.at("metadata", "labels") == {"cluster.x-k8s.io/cluster-name": "c"}
        with pytest.raises(Invalid, match=r'admission webhook "validation\.machinehealthcheck.*spec\.clusterName'):
            await client.patch(OLD, ObjectKey("default", "m"), {"spec": {"clusterName": "other"}})
        with pytest.raises(ApiError, match="is not a duration"):
            await client.patch(OLD, ObjectKey("default", "m"), {"spec": {"nodeStartupTimeout": "soon"}})

        async def whole() -> bool:
            found = await client.find(CONFIGURATION, ObjectKey("", "clusterwright"))
            return found is not None and len(found.at("webhooks")) > 20

        async def noted() -> bool:
            crd = await client.get(CRD, ObjectKey("", "machinehealthchecks.cluster.x-k8s.io"))
            return "crd-migration.cluster.x-k8s.io/observed-generation" in (crd.at("metadata", "annotations") or {})

        await until(noted)  # the controllers run
        await client.delete(CONFIGURATION, ObjectKey("", "clusterwright"))
        await until(whole)
    finally:
        process.terminate()
        await process.wait()
        await running.stop()
