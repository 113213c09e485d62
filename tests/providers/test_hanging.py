"""A provider whose webhooks accept connections and never answer holds up its own kinds, and nothing else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, ObjectMeta
from clusterwright.runtime.errors import ApiError
from providers.conftest import Rig, crd, hook
from support.patience import PATIENCE

ACME = "infrastructure.cluster.x-k8s.io"
SEVERAL = 20


@pytest.fixture
async def deaf() -> AsyncIterator[int]:
    """The port of a program that accepts connections and never answers."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await asyncio.Event().wait()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for writer in held:
        writer.close()


def client_config(rig: Rig, port: int) -> Json:
    return {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(rig.server.authority).decode()}


async def others_work(rig: Rig) -> None:
    """Write, read and list objects of other kinds."""
    await rig.client.create(ConfigMap(metadata=ObjectMeta(name="x", namespace="default")))
    assert await rig.client.find(ConfigMap, ObjectKey("default", "x")) is not None
    assert await rig.client.list(ConfigMap, namespace="default")


async def while_hanging(rig: Rig, requests: list[asyncio.Task[object]]) -> None:
    """Check that everything else works while requests hang."""
    try:
        done, _ = await asyncio.wait(requests, timeout=0.2)
        assert not done, [task.exception() for task in done]
        async with asyncio.timeout(PATIENCE):
            await others_work(rig)
    finally:
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)


async def test_a_hanging_admission_webhook_stops_no_other_kind(rig: Rig, deaf: int) -> None:
    hanging = hook()
    hanging["webhooks"][0] |= {"clientConfig": client_config(rig, deaf), "timeoutSeconds": 30}
    await rig.client.create(hanging)

    def asked(number: int) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=f"hooked-{number}", namespace="default", labels={"acme": "yes"}))

    await while_hanging(rig, [asyncio.create_task(rig.client.create(asked(number))) for number in range(SEVERAL)])


async def test_a_hanging_conversion_webhook_stops_no_other_kind(rig: Rig, deaf: int) -> None:
    definition = crd(
        {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client_config(rig, deaf)}},
    )
    (version,) = definition["spec"]["versions"]
    definition["spec"]["versions"].append({**version, "name": "v2", "storage": False})
    await rig.client.create(definition)
    await rig.client.create({"apiVersion": f"{ACME}/v1", "kind": "AcmeMachine", "metadata": {"name": "one", "namespace": "default"}})
    newer = GroupVersionKind(ACME, "v2", "AcmeMachine")

    await while_hanging(rig, [asyncio.create_task(rig.client.list(newer)) for _ in range(SEVERAL)])
    assert await rig.client.list(GroupVersionKind(ACME, "v1", "AcmeMachine"))


async def test_a_webhook_that_hangs_is_given_up_after_its_timeout(rig: Rig, deaf: int) -> None:
    hanging = hook()
    hanging["webhooks"][0] |= {"clientConfig": client_config(rig, deaf), "timeoutSeconds": 1}
    await rig.client.create(hanging)

    with pytest.raises(ApiError, match=r"check\.acme\.example\.com.*(deadline|timeout|timed out)"):
        await rig.client.create(ConfigMap(metadata=ObjectMeta(name="hooked", namespace="default", labels={"acme": "yes"})))


async def test_the_plane_keeps_nothing_of_names_that_tenants_choose(rig: Rig, tmp_path: Path) -> None:
    assert rig.supervisor is not None

    def kept() -> int:
        return sum(len(value) for value in vars(rig.supervisor).values() if isinstance(value, dict))

    before = kept()
    for number in range(50):
        await rig.supervisor.reconcile(ObjectKey(f"tenant-{number}", f"provider-{number}"))

    assert kept() == before
    assert not (rig.data_dir / "providers").exists()
