"""The example extension as tests use it: served over HTTPS with a certificate of its own, or called in process."""

from __future__ import annotations

import base64
import datetime
import importlib.util
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusterwright.runtimesdk.registry import Handler

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extension" / "extension.py"
HOOKS = "hooks.runtime.cluster.x-k8s.io/v1alpha1"


def example_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_extension", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def certificate(folder: Path, name: str = "tls") -> tuple[Path, Path]:
    """A self-signed pair for 127.0.0.1, in files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.crt", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


@dataclass(frozen=True)
class Running:
    """An extension that is served. `extension` is what answers."""

    url: str
    ca: bytes
    extension: Any = None

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.ca).decode()


@contextmanager
def serving(folder: Path, extension: Any = None, clients: Path | None = None) -> Iterator[Running]:
    """The example, or another extension, over HTTPS; with `clients`, only to who has a certificate of that file."""
    module = example_module()
    made = extension or module.example()
    crt, key = certificate(folder)
    server = module.serve(made, "127.0.0.1", 0, str(crt), str(key))
    if clients is not None:
        context: ssl.SSLContext = server.socket.context
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Running(f"https://127.0.0.1:{server.server_address[1]}", crt.read_bytes(), made)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def extension_config(name: str, url: str, ca: str = "", handlers: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """An ExtensionConfig with handlers by name, as if they had been discovered: each the hook that it handles."""
    spec = {"clientConfig": {"url": url, **({"caBundle": ca} if ca else {})}, "namespaceSelector": {}, **more.pop("spec", {})}
    found = [
        {
            "name": f"{handler}.{name}",
            "requestHook": {"apiVersion": HOOKS, "hook": hook},
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            **more,
        }
        for handler, hook in (handlers or {}).items()
    ]
    return {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"handlers": found},
    }


class InProcess:
    """Calls an extension without a network: for virtual time. `calls` are the hooks that were called, with their requests."""

    def __init__(self, extension: Any) -> None:
        self.extension = extension
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
        self.calls.append((handler.hook, json.loads(body)))
        response = self.extension.answer(urlsplit(url).path, body)
        return (404, b"") if response is None else (200, json.dumps(response).encode())

    @property
    def config(self) -> dict[str, Any]:
        """An ExtensionConfig `ext` with all handlers of the extension."""
        described = self.extension.answer(f"/{HOOKS}/discovery", b"{}")["handlers"]
        made = extension_config("ext", "https://ext.example.com/")
        made["status"]["handlers"] = [{**h, "name": f"{h['name']}.ext"} for h in described]
        return made
