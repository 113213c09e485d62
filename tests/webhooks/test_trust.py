"""Somebody else has told the API server to ask us: we keep our certificate trusted there, and touch nothing else."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest_asyncio

from clusterwright import app
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli import connect, grammar, install
from clusterwright.install.manifests import Settings, manifests
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks.configurations import NAME, SERVICE, Target, trust

CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
VALIDATING = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
CLUSTERS, MACHINES = ObjectKey("", "clusters.cluster.x-k8s.io"), ObjectKey("", "machines.cluster.x-k8s.io")
BUNDLE = b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


class Counting:
    def __init__(self, inner: Any) -> None:
        self.inner, self.writes = inner, 0

    async def send(self, request: Any) -> Any:
        self.writes += request.method != "GET"
        return await self.inner.send(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest_asyncio.fixture
async def installed(tmp_path: Path) -> AsyncIterator[tuple[RestClient, Counting, Path]]:
    clock = SystemClock()
    kubeconfig = tmp_path / "admin"
    options = serve.ServeOptions(listen="127.0.0.1:0", kubeconfig=kubeconfig, controllers=False, now=clock.now, random=Random(1))
    running = await serve.start(options)
    counting = Counting(InProcessTransport(running.server))
    client = RestClient(counting)
    for obj in manifests(Settings(), app.declared(["cluster"])):
        if obj["kind"] == "CustomResourceDefinition" or "Webhook" in obj["kind"]:
            await client.apply(obj, field_manager="install")
    yield client, counting, kubeconfig
    await running.stop()


async def bundles(client: RestClient) -> dict[str, Any]:
    found = {}
    for key in (CLUSTERS, MACHINES):
        found[key.name] = (await client.get(CRD, key)).at("spec", "conversion", "webhook", "clientConfig", "caBundle")
    hooks = (await client.get(VALIDATING, ObjectKey("", NAME))).at("webhooks")
    found["hooks"] = {hook["clientConfig"].get("caBundle") for hook in hooks}
    return found


async def test_our_certificate_is_trusted_wherever_our_webhooks_are_called(installed: tuple[RestClient, Counting, Path]) -> None:
    client, counting, _ = installed
    elsewhere = {"service": {"namespace": "capi-system", "name": "capi-webhook-service", "path": "/convert", "port": 443}, "url": None}
    await client.patch(CRD, MACHINES, {"spec": {"conversion": {"webhook": {"clientConfig": elsewhere}}}})
    before = await client.get(CRD, MACHINES)

    await trust(client, Target(service=SERVICE), BUNDLE)

    told = base64.b64encode(BUNDLE).decode()
    assert await bundles(client) == {CLUSTERS.name: told, MACHINES.name: None, "hooks": {told}}
    assert (await client.get(CRD, MACHINES)).metadata.resource_version == before.metadata.resource_version
    writes = counting.writes
    await trust(client, Target(service=SERVICE), BUNDLE)
    await trust(client, Target(service=SERVICE), b"")
    assert counting.writes == writes


async def test_installing_again_keeps_trust_and_removes_old_webhooks(installed: tuple[RestClient, Counting, Path]) -> None:
    client, _, kubeconfig = installed
    await trust(client, Target(service=SERVICE), BUNDLE)
    found = await client.get(VALIDATING, ObjectKey("", NAME))
    stale = {**dict(found.at("webhooks")[0]), "name": "gone.cluster.x-k8s.io"}
    await client.patch(VALIDATING, found.key, {"webhooks": [*found.at("webhooks"), stale]})

    arguments = grammar.parse("install", ["--apply", "--kubeconfig", str(kubeconfig)])

    assert await install._apply(connect.resolve(arguments), manifests(Settings(), app.declared(["cluster"]))) == 0

    again = await client.get(VALIDATING, ObjectKey("", NAME))
    assert [hook["name"] for hook in again.at("webhooks")] == [hook["name"] for hook in found.at("webhooks")]
    told = base64.b64encode(BUNDLE).decode()
    assert await bundles(client) == {CLUSTERS.name: told, MACHINES.name: told, "hooks": {told}}
