"""The example extension, called over real HTTPS by the client."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clusterwright.runtime.metrics import Registry as Metrics
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.hooks import HOOKS as HOOKS_OF
from clusterwright.runtimesdk.https import HttpsPost
from clusterwright.runtimesdk.metrics import CallMetrics
from clusterwright.runtimesdk.registry import Registry
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError
from support.extension import HOOKS, Running, certificate, extension_config, serving


@pytest.fixture
def extension(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path) as running:
        yield running


def config(running: Running, hook: str = "BeforeClusterUpgrade", **changes: Any) -> dict[str, Any]:
    settings = {"settings": {"retryAfterSeconds": "7"}}
    return extension_config("ext", running.url, running.bundle, {f"hold-{hook.lower()}": hook}, spec=settings, **changes)


@asynccontextmanager
async def client(*configs: dict[str, Any], pair: tuple[Path, Path] | None = None, metrics: Any = None) -> AsyncIterator[RuntimeClient]:
    registry, post = Registry(), HttpsPost(*map(str, pair or ("", "")))
    registry.warm_up(configs)
    nobody: Any = None
    try:
        yield RuntimeClient(registry, post, nobody, lambda: 0.0, metrics)
    finally:
        await post.close()


def cluster(hold: str = "") -> dict[str, Any]:
    return {"metadata": {"name": "c", "namespace": "ns", "annotations": {"example.com/hold": hold}}}


def upgrade(hold: str = "") -> CallAll:
    return CallAll("BeforeClusterUpgrade", cluster(hold), {"cluster": cluster(hold)})


async def test_handlers_are_discovered(extension: Running) -> None:
    async with client() as c:
        found = await c.discover(config(extension))

    assert {h.request_hook.hook for h in found} == HOOKS_OF.keys() - {"Discovery"}, "there is an example of everything"
    assert {h.name for h in found} >= {"hold-beforeclustercreate", "patch", "update-machine"}


async def test_a_handler_blocks_and_lets_go(extension: Running) -> None:
    async with client(config(extension)) as c:
        held, free = await c.call_all(upgrade("BeforeClusterUpgrade")), await c.call_all(upgrade())

    assert held["retryAfterSeconds"] == 7
    assert free["retryAfterSeconds"] == 0


async def test_a_certificate_of_somebody_else_is_refused(extension: Running, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = certificate(tmp_path / "other")[0].read_bytes()

    async with client(config(Running(extension.url, other))) as c:
        with pytest.raises(ExtensionError, match="http call failed"):
            await c.call_all(upgrade())


async def test_a_bundle_without_certificate_is_an_error_whatever_the_policy(extension: Running) -> None:
    async with client(config(Running(extension.url, b"nothing"), failurePolicy="Ignore")) as c:
        with pytest.raises(ExtensionError, match="failed to get http client: failed to create tls config"):
            await c.call_all(upgrade())


async def test_an_unreachable_extension_is_a_success_only_with_policy_ignore(extension: Running) -> None:
    gone = Running("https://127.0.0.1:1", extension.ca)

    async with client(config(gone, failurePolicy="Ignore")) as c:
        assert (await c.call_all(upgrade()))["status"] == "Success"
    async with client(config(gone)) as c:
        with pytest.raises(ExtensionError, match="http call failed"):
            await c.call_all(upgrade())


async def test_an_update_of_a_machine_is_never_taken_for_done(extension: Running) -> None:
    gone = config(Running("https://127.0.0.1:1", extension.ca), "UpdateMachine", failurePolicy="Ignore")

    async with client(gone) as c:
        with pytest.raises(ExtensionError):
            await c.call(CallHandler("UpdateMachine", "hold-updatemachine.ext", cluster(), {}))


async def test_a_request_that_crashes_a_handler_is_a_failure(extension: Running) -> None:
    async with client(config(extension)) as c:
        with pytest.raises(ExtensionError, match="got failure response with message: "):
            await c.call_all(CallAll("BeforeClusterUpgrade", cluster(), {}))


# --------------------------------------------------------------------------------------------------- client certificate


async def test_a_client_certificate_is_presented_and_the_pair_may_change_on_disk(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    known, unknown = certificate(tmp_path, "known"), certificate(tmp_path, "unknown")
    with serving(tmp_path / "server", clients=known[0]) as running:
        async with client(config(running)) as c:
            with pytest.raises(ExtensionError, match="http call failed"):
                await c.call_all(upgrade())
        async with client(config(running), pair=unknown) as c:
            with pytest.raises(ExtensionError, match="http call failed"):
                await c.call_all(upgrade())
            for good, used in zip(known, unknown, strict=True):
                before = used.stat().st_mtime_ns
                used.write_bytes(good.read_bytes())
                os.utime(used, ns=(before + 10**9, before + 10**9))
            assert (await c.call_all(upgrade()))["status"] == "Success"


async def test_an_unloadable_key_pair_fails_under_any_policy(extension: Running, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")

    async with client(config(extension, failurePolicy="Ignore"), pair=(broken, broken)) as c:
        with pytest.raises(ExtensionError, match="the client certificate cannot be loaded"):
            await c.call_all(upgrade())


# -------------------------------------------------------------------------------------------------------------- metrics


async def test_calls_are_measured_by_result(extension: Running) -> None:
    registry = Metrics()
    host = extension.url.removeprefix("https://")
    gone = config(Running("https://127.0.0.1:1", extension.ca), "BeforeClusterDelete", failurePolicy="Ignore")
    missing = extension_config("other", extension.url, extension.bundle, {"nobody": "AfterClusterUpgrade"}, failurePolicy="Ignore")

    async with client(config(extension), missing, metrics=CallMetrics(registry)) as c:
        await c.discover(config(extension))
        await c.call_all(upgrade())
        with pytest.raises(ExtensionError):
            await c.call_all(CallAll("BeforeClusterUpgrade", cluster(), {}))
        await c.call_all(CallAll("AfterClusterUpgrade", cluster(), {"cluster": cluster()}))
    async with client(gone, metrics=CallMetrics(registry)) as c:
        await c.call_all(CallAll("BeforeClusterDelete", cluster(), {"cluster": cluster()}))

    text = registry.render()

    def counted(code: str, host: str, hook: str, status: str) -> str:
        group, version = HOOKS.split("/")
        labels = f'code="{code}",host="{host}",group="{group}",version="{version}",hook="{hook}",status="{status}"'
        return f"capi_runtime_sdk_requests_total{{{labels}}} 1"

    for line in (
        counted("200", host, "Discovery", "Success"),
        counted("200", host, "BeforeClusterUpgrade", "Success"),
        counted("200", host, "BeforeClusterUpgrade", "Failure"),
        counted("404", host, "AfterClusterUpgrade", "Unknown"),
        counted("<error>", "127.0.0.1:1", "BeforeClusterDelete", "Unknown"),
    ):
        assert line in text.splitlines()
    assert f'capi_runtime_sdk_request_duration_seconds_count{{host="{host}"' in text
