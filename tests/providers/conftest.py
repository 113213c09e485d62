"""A provider's release, a program that plays a provider, and an API server that supervises it."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest

from clusterwright.api.crds import embedded_crds
from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import Json, ObjectKey, ObjectMeta
from clusterwright.api.providers import Provider
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.providers.installing import Ours
from clusterwright.providers.placing import Server
from clusterwright.providers.records import Place, Record, place
from clusterwright.providers.release import read
from clusterwright.providers.supervisor import Supervisor
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import AlreadyExists
from clusterwright.runtime.rest import RestClient
from support.patience import PATIENCE

NAME = "infrastructure-acme"
NAMESPACE = "acme-system"


class Hurried(SystemClock):
    """A clock on which no wait is long: pauses of minutes are tried within a test."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(min(seconds, 0.02))


def crd(conversion: Json | None = None, labels: Json | None = None) -> Json:
    """A definition, as a release has it."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "acmemachines.infrastructure.cluster.x-k8s.io",
            "labels": {"cluster.x-k8s.io/v1beta2": "v1", **(labels or {})},
        },
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "acmemachines", "singular": "acmemachine", "kind": "AcmeMachine", "listKind": "AcmeMachineList"},
            "versions": [version],
            **({"conversion": conversion} if conversion else {}),
        },
    }


def deployment(container: Json | None = None, **spec: Any) -> Json:
    """The Deployment of a release; `container` replaces fields of its container."""
    manager = {"name": "manager", "image": "example.com/acme/manager:v1.2.3", "command": ["/manager"], "args": ["--leader-elect"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "acme-controller-manager", "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/provider": NAME}},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"serviceAccountName": "acme", "containers": [{**manager, **(container or {})}], **spec},
            },
        },
    }


def hook(kind: str = "ValidatingWebhookConfiguration") -> Json:
    """A webhook configuration of a release, which calls a Service."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "acme-hooks", "annotations": {"cert-manager.io/inject-ca-from": "acme-system/serving", "kept": "yes"}},
        "webhooks": [
            {
                "name": "check.acme.example.com",
                "clientConfig": {"service": {"namespace": NAMESPACE, "name": "webhooks", "path": "/check", "port": 443}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                "objectSelector": {"matchLabels": {"acme": "yes"}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def objects() -> list[Json]:
    """A whole release, in no particular order."""
    rbac = "rbac.authorization.k8s.io"
    subject = [{"kind": "ServiceAccount", "name": "acme", "namespace": NAMESPACE}]
    return [
        hook(),
        deployment(),
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "acme"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "acme"},
            "subjects": subject,
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "acme"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "acme", "namespace": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "webhooks", "namespace": NAMESPACE},
            "spec": {"ports": [{"port": 443}]},
        },
        {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme", "namespace": NAMESPACE}, "spec": {}},
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": "serving", "namespace": NAMESPACE},
            "spec": {"secretName": "webhook-cert"},
        },
        crd(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    ]


def script(folder: Path, body: str, name: str = "provider") -> Path:
    """An executable program in Python; it starts without site packages, which is fast."""
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\nimport os, sys, time, signal\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Rig:
    """An API server with a supervisor, whose providers are recorded as `clusterwright provider add` does."""

    def __init__(self, data_dir: Path, client: RestClient, server: Server, clock: Hurried) -> None:
        self.data_dir, self.client, self.server, self.clock = data_dir, client, server, clock
        self.ours = Ours()
        self.supervisor: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the supervisor."""
        self.supervisor = Supervisor(self.data_dir, self.client, self.clock, self.server, self.ours)
        self._task = asyncio.create_task(self.supervisor.run())
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stop it, as a plane that ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def place(self) -> Place:
        return place(self.data_dir, NAME)

    async def add(self, binary: Path, release: list[Json] | None = None, **more: Any) -> str:
        """Record a provider, and make the supervisor look."""
        found = read(objects() if release is None else release)
        record = Record(
            **{
                "name": found.name,
                "provider": found.provider,
                "type": found.type,
                "namespace": found.namespace,
                "objects": found.objects,
                "program": found.program,
                "binary": (str(binary),),
                **more,
            }
        )
        digest = self.place.write(record)
        with suppress(AlreadyExists):
            await self.client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        assert self.supervisor is not None
        await self.supervisor.look(NAME)
        return digest

    async def state(self) -> Provider | None:
        found: Provider | None = await self.client.find(Provider, ObjectKey(NAMESPACE, NAME))
        return found

    async def until(self, holds: Callable[[Provider | None], bool]) -> Provider | None:
        """Wait until the Provider is as it must be."""
        found = None
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while not holds(found := await self.state()):  # noqa: ASYNC110 - as other tests here look at objects
                    await asyncio.sleep(0.02)
                return found
        raise AssertionError(found)

    async def until_reason(self, reason: str, *, restarts: int = 0) -> Provider:
        """Wait for a state of the process."""
        found = await self.until(lambda p: p is not None and reason_of(p) == reason and p.status.restarts >= restarts)
        assert found is not None
        return found

    def output(self) -> str:
        return self.place.log.read_text() if self.place.log.exists() else ""

    async def until_said(self, text: str) -> str:
        """Wait until the process has written a text."""
        async with asyncio.timeout(PATIENCE):
            while text not in self.output():  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.02)
        return self.output()


def reason_of(provider: Provider) -> str:
    return next((c.reason for c in provider.status.conditions if c.type == "Running"), "")


def message_of(provider: Provider) -> str:
    return next((c.message for c in provider.status.conditions if c.type == "Running"), "")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock, data_dir = Hurried(), tmp_path / "data"
    running = await serve.start(
        serve.ServeOptions(listen="127.0.0.1:0", data_dir=data_dir, crds=tuple(embedded_crds()), now=clock.now, random=SystemRandom())
    )
    client = RestClient(InProcessTransport(running.server), clock=clock)
    rig = Rig(data_dir, client, Server(running.url, running.authority.certificate), clock)
    await rig.start()
    try:
        yield rig
    finally:
        await rig.stop()
        await client.close()
        await running.stop()
