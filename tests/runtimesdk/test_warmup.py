"""How the registry becomes ready, what the ready probe says meanwhile, and the mode in which another manager discovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.app import build_manager
from clusterwright.controllers.extensionconfig import readonly
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.controllers.wiring import PassTools
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.reports import Reports
from clusterwright.runtimesdk.registry import Registry, RegistryError
from clusterwright.runtimesdk.warmup import WarmUp, undiscovered
from clusterwright.simulation.plane import Plane, management_server, plane
from support.extension import Running, extension_config, serving

KEY = ObjectKey("", "ext")
HANDLERS = {"hold-beforeclusterupgrade": "BeforeClusterUpgrade"}


@pytest.fixture
def extension(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path) as running:
        yield running


@asynccontextmanager
async def idle() -> AsyncIterator[Plane]:
    """An API server without controllers."""
    server = management_server(SystemClock(), Random(1))
    yield Plane(server, None, SystemClock())  # type: ignore[arg-type]
    server.close()


def registered(generation: int = 1, **condition: Any) -> dict[str, Any]:
    config = extension_config("ext", "https://ext.example.com/", "Y2E=", HANDLERS)
    config["metadata"]["generation"] = generation
    said = {"type": "Discovered", "status": "True", "reason": "Discovered", "message": "", "observedGeneration": 1, **condition}
    config["status"]["conditions"] = [{"lastTransitionTime": "2026-05-01T12:00:00Z", **said}]
    return config


async def store(p: Plane, config: dict[str, Any]) -> None:
    """Create a config with the status that it has."""
    await p.client.create({**config, "metadata": {k: v for k, v in config["metadata"].items() if k in {"name", "annotations"}}})
    await p.client.patch(ExtensionConfig, ObjectKey("", config["metadata"]["name"]), {"status": config["status"]}, subresource="status")


# -------------------------------------------------------------------------------------------------------------- warm-up


async def test_without_configs_the_registry_is_ready_at_once() -> None:
    async with idle() as p:
        registry = Registry()
        await WarmUp(p.client, p.clock, registry).run()

    assert registry.is_ready
    assert registry.list("BeforeClusterUpgrade") == ()


async def test_one_extension_that_is_not_discovered_holds_up_its_own_hooks_alone() -> None:
    async with idle() as p:
        await store(p, registered())
        paused = extension_config("paused", "https://other.example.com/", "Y2E=", {"del": "BeforeClusterDelete"})
        paused["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
        await store(p, paused)
        registry = Registry()
        warm_up = WarmUp(p.client, p.clock, registry)
        before = warm_up.readiness
        await warm_up.run()

    assert before is True, "who waits to lead calls nobody"
    with pytest.raises(RegistryError, match=r"hold-beforeclusterupgrade.ext is not discovered yet"):
        registry.list("BeforeClusterUpgrade")
    assert [h.name for h in registry.list("BeforeClusterDelete")] == ["del.paused"], "a paused one counts as its status stands"
    waiting = warm_up.readiness
    registry.add(registered())
    assert (waiting, warm_up.readiness) == ("not discovered yet: ext", True)


async def test_the_ready_probe_reports_a_dead_extension(extension: Running) -> None:
    features = {**EMBEDDED_FEATURES, "RuntimeSDK": True}
    async with idle() as p:
        dead = extension_config("ext", "https://127.0.0.1:1/", extension.bundle, HANDLERS)
        await store(p, dead)
        async with plane(SystemClock(), server=p.server, features=features) as running:
            assert running.manager is not None
            check = running.manager._readiness["runtime-extensions"]

            async def says(what: bool | str) -> bool:
                return check() == what

            await running.until(lambda: says("not discovered yet: ext"), "the probe tells", step=0.02)
            await p.client.patch(ExtensionConfig, KEY, {"spec": {"clientConfig": {"url": extension.url}}})
            await running.until(lambda: says(True), "the probe is content", step=0.02)


# ------------------------------------------------------------------------------------------------------------ read-only


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (extension_config("ext", "https://h/"), "caBundle is not set on ExtensionConfig ext"),
        (extension_config("ext", "https://h/", "Y2E="), "Discovered condition not yet set on ExtensionConfig ext"),
        (
            registered(status="False"),
            "Discovered condition on ExtensionConfig ext must have status: True (instead it has: False)",
        ),
        (
            registered(generation=2),
            "Discovered condition on ExtensionConfig ext must have observedGeneration: 2 (instead it has: 1)",
        ),
        (registered(), ""),
    ],
)
def test_another_managers_discovery_counts_once_complete(config: dict[str, Any], text: str) -> None:
    assert undiscovered(config) == text


class Events:
    """Keeps what is recorded."""

    def __init__(self) -> None:
        self.recorded: list[str] = []

    def record(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.recorded.append(message)


async def test_read_only_registers_what_is_there_and_writes_nothing() -> None:
    async with idle() as p:
        registry = Registry()
        events = Events()
        reconciler = readonly.make(PassTools(client=p.client, clock=p.clock, random=Random(1), events=events, reports=Reports()), registry)
        cold = await reconciler.reconcile(KEY)
        await WarmUp(p.client, p.clock, registry, read_only=True).run()
        await p.client.create(extension_config("ext", "https://h/", "Y2E="))
        with pytest.raises(ApiError, match="failed to validate ExtensionConfig: Discovered condition not yet set on ExtensionConfig ext"):
            await reconciler.reconcile(KEY)
        await p.client.patch(ExtensionConfig, KEY, {"status": registered()["status"]}, subresource="status")
        revision = p.server.store.revision
        await reconciler.reconcile(KEY)
        assert registry.names == ("hold-beforeclusterupgrade.ext",)

        said = [{**c, "type": t, "lastTransitionTime": "2026-05-01T12:00:00Z"} for t, c in _PAUSED.items()]
        assert p.server.store.revision == revision
        await p.client.patch(ExtensionConfig, KEY, {"status": {"handlers": [], "conditions": said}}, subresource="status")
        await reconciler.reconcile(KEY)
        assert registry.names == ("hold-beforeclusterupgrade.ext",), "12: one that is paused stays registered as it was"

        await p.client.delete(ExtensionConfig, KEY)
        await reconciler.reconcile(KEY)
        assert not registry.names

    assert cold.requeue_after is not None
    assert events.recorded == [], "an Event is a write, too"


_PAUSED: dict[str, Any] = {
    "Paused": {"status": "True", "reason": "Paused", "message": ""},
    "Discovered": {"status": "True", "reason": "Discovered", "message": "", "observedGeneration": 1},
}


async def test_two_managers_on_one_api_server_of_which_one_discovers(extension: Running) -> None:
    features = {**EMBEDDED_FEATURES, "RuntimeSDK": True}
    async with idle() as p:
        await p.client.create(extension_config("ext", extension.url, extension.bundle))
        async with plane(SystemClock(), server=p.server, features=features) as first:
            second = build_manager(
                InProcessTransport(p.server),
                clock=SystemClock(),
                random=Random(2),
                keys=FixedKeySource(2),
                features=features,
                flags={"runtime-extensions-read-only": True},
            )
            running = asyncio.create_task(second.run())

            async def both_are_content() -> bool:
                checks = [m._readiness["runtime-extensions"]() for m in (first.manager, second) if m is not None]
                config = await p.client.get(ExtensionConfig, KEY)
                return checks == [True, True] and bool(config.status.handlers)

            await first.until(both_are_content, "both know the extension", step=0.05)
            second.stop()
            await running
