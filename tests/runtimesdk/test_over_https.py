"""The example extension, called over real HTTPS: by the client, and by a plane whose Cluster it holds back."""

from __future__ import annotations

import asyncio
import base64
import datetime
import importlib.util
import ipaddress
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusterwright.api.meta import ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.https import HttpsPost
from clusterwright.runtimesdk.registry import Registry
from clusterwright.simulation.plane import plane
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extension" / "extension.py"
HOOKS = "hooks.runtime.cluster.x-k8s.io/v1alpha1"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_extension", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Running:
    url: str
    ca: bytes

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.ca).decode()


def certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "extension")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "tls.crt", folder / "tls.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


@pytest.fixture
def extension(tmp_path: Path) -> Iterator[Running]:
    module = example()
    crt, key = certificate(tmp_path)
    server = module.serve(module.example(), "127.0.0.1", 0, str(crt), str(key))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Running(f"https://127.0.0.1:{server.server_address[1]}", crt.read_bytes())
    server.shutdown()
    thread.join()
    server.server_close()


def config(running: Running, **changes: Any) -> dict[str, Any]:
    handler = {"requestHook": {"apiVersion": HOOKS, "hook": "BeforeClusterUpgrade"}, "failurePolicy": "Fail", "timeoutSeconds": 10}
    return {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": "hold", "resourceVersion": "1"},
        "spec": {
            "clientConfig": {"url": running.url, "caBundle": running.bundle},
            "namespaceSelector": {},
            "settings": {"retryAfterSeconds": "7"},
        },
        "status": {"handlers": [{**handler, "name": "hold-beforeclusterupgrade.hold", **changes}]},
    }


@asynccontextmanager
async def client(*configs: dict[str, Any]) -> AsyncIterator[RuntimeClient]:
    registry, post = Registry(), HttpsPost()
    registry.warm_up(configs)
    nobody: Any = None
    try:
        yield RuntimeClient(registry, post, nobody, lambda: 0.0)
    finally:
        await post.close()


def cluster(hold: str = "") -> dict[str, Any]:
    return {"metadata": {"name": "c", "namespace": "ns", "annotations": {"example.com/hold": hold}}}


def upgrade(hold: str = "") -> CallAll:
    return CallAll("BeforeClusterUpgrade", cluster(hold), {"cluster": cluster(hold)})


async def test_handlers_are_discovered(extension: Running) -> None:
    async with client() as c:
        found = await c.discover(config(extension))

    assert [(h.name, h.request_hook.hook) for h in found] == [
        ("hold-beforeclustercreate", "BeforeClusterCreate"),
        ("hold-beforeclusterupgrade", "BeforeClusterUpgrade"),
        ("hold-beforeclusterdelete", "BeforeClusterDelete"),
    ]


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


async def test_nobody_at_home_is_a_success_only_where_that_is_asked_for(extension: Running) -> None:
    gone = Running("https://127.0.0.1:1", extension.ca)

    async with client(config(gone, failurePolicy="Ignore")) as c:
        assert (await c.call_all(upgrade()))["status"] == "Success"
    async with client(config(gone)) as c:
        with pytest.raises(ExtensionError, match="http call failed"):
            await c.call_all(upgrade())


async def test_an_update_of_a_machine_is_never_taken_for_done(extension: Running) -> None:
    hook = {"apiVersion": HOOKS, "hook": "UpdateMachine"}
    gone = config(Running("https://127.0.0.1:1", extension.ca), failurePolicy="Ignore", requestHook=hook)

    async with client(gone) as c:
        with pytest.raises(ExtensionError):
            await c.call(CallHandler("UpdateMachine", "hold-beforeclusterupgrade.hold", cluster(), {}))


async def test_a_request_that_a_handler_stumbles_over_is_a_failure(extension: Running) -> None:
    async with client(config(extension)) as c:
        with pytest.raises(ExtensionError, match="got failure response, please check controller logs"):
            await c.call_all(CallAll("BeforeClusterUpgrade", cluster(), {}))


async def test_a_plane_discovers_and_registers_what_is_there(extension: Running) -> None:
    async with plane(SystemClock(), features={**EMBEDDED_FEATURES, "RuntimeSDK": True}) as p:
        made = config(extension)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "ca", "namespace": "default"},
            "data": {"ca.crt": extension.bundle},
        }
        await p.client.create(secret)
        annotations = {"runtime.cluster.x-k8s.io/inject-ca-from-secret": "default/ca"}
        spec = {**made["spec"], "clientConfig": {"url": extension.url}}
        await p.client.create({**made, "metadata": {"name": "hold", "annotations": annotations}, "spec": spec, "status": {}})
        while True:
            found = await p.client.live.get(ExtensionConfig, ObjectKey("", "hold"))
            if found.status.handlers:
                break
            await asyncio.sleep(0.05)

    assert found.spec.client_config.ca_bundle == extension.ca
    assert found.status.handlers[0].name == "hold-beforeclustercreate.hold"
    assert [(c.status, c.observed_generation) for c in found.status.conditions if c.type == "Discovered"] == [
        ("True", found.metadata.generation)
    ]
