"""Point webhooks at the process of a provider: URLs on loopback, with an authority of ours. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from clusterwright.api.meta import Json

HOST: Final = "127.0.0.1"
CONFIGURATIONS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_INJECTED: Final = "cert-manager.io/"


def pointed(obj: Json, port: int, bundle: bytes) -> Json:
    """Return an object whose webhooks are called on a port of loopback. Other objects are returned as they are."""
    if not any(True for _ in _clients(obj)):
        return obj
    made = deepcopy(obj)
    annotations = made["metadata"].get("annotations") or {}
    made["metadata"]["annotations"] = {name: value for name, value in annotations.items() if not name.startswith(_INJECTED)}
    for holder in _clients(made):
        service = holder["clientConfig"].get("service") or {}
        path = str(service.get("path") or "/")
        url = f"https://{HOST}:{port}{path if path.startswith('/') else f'/{path}'}"
        holder["clientConfig"] = {"url": url, "caBundle": base64.b64encode(bundle).decode()}
    return made


def _clients(obj: Json) -> Iterator[dict[str, Any]]:
    """Yield the parts of an object that have a `clientConfig` with a Service."""
    spec = obj.get("spec")
    conversion = (spec or {}).get("conversion") if isinstance(spec, dict) else None
    holders: list[Any] = obj.get("webhooks") or [] if obj.get("kind") in CONFIGURATIONS else []
    if obj.get("kind") == "CustomResourceDefinition" and isinstance(conversion, dict):
        holders = [conversion.get("webhook"), conversion]  # the second one is the form of v1beta1
    for holder in holders:
        client = holder.get("clientConfig") if isinstance(holder, dict) else None
        if isinstance(client, dict) and isinstance(client.get("service"), dict):
            yield holder
