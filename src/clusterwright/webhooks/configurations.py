"""Webhook configurations: which webhook handles which writes, and which certificates the API server trusts."""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from clusterwright.admission.hook import Hook
from clusterwright.admission.registry import HOOKS, UNMODELLED
from clusterwright.api.crds import CONVERT_PATH, WEBHOOK_SERVICE, crds, webhook_conversion
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, ApiError

log = logging.getLogger(__name__)
SERVICE: Final = ObjectKey(*WEBHOOK_SERVICE)
NAME: Final = "clusterwright"
"""The name of both configurations."""
_GROUP: Final = "admissionregistration.k8s.io/v1"
_CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class Target:
    """The way from the API server to us: a URL, or a Service of its cluster."""

    url: str = ""
    service: ObjectKey = SERVICE
    port: int = 443

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names in the serving certificate."""
        if self.url:
            return (urlsplit(self.url).hostname or "",)
        return tuple(f"{self.service.name}.{self.service.namespace}.svc{tail}" for tail in ("", ".cluster.local"))

    def client(self, path: str, bundle: bytes) -> Json:
        """Return the `clientConfig` of a webhook; without a bundle, `caBundle` is left to whatever mounted the certificate."""
        trusted = {"caBundle": base64.b64encode(bundle).decode()} if bundle else {}
        if self.url:
            return {"url": self.url.rstrip("/") + path, **trusted}
        name = {"namespace": self.service.namespace, "name": self.service.name, "path": path, "port": self.port}
        return {"service": name, **trusted}


def configurations(target: Target, bundle: bytes) -> tuple[Json, Json]:
    """Return the configurations of the mutating and of the validating webhooks."""
    mutating = [_webhook(hook, target, bundle, mutating=True) for hook in (*HOOKS, *UNMODELLED) if hook.is_mutating]
    validating = [_webhook(hook, target, bundle, mutating=False) for hook in HOOKS if hook.on]
    return (
        {"apiVersion": _GROUP, "kind": "MutatingWebhookConfiguration", "metadata": {"name": NAME}, "webhooks": mutating},
        {"apiVersion": _GROUP, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": NAME}, "webhooks": validating},
    )


def _webhook(hook: Hook, target: Target, bundle: bytes, *, mutating: bool) -> Json:
    resource = hook.resource
    tail = f"/{hook.subresource}" if hook.subresource else ""
    path = f"/{'mutate' if mutating else 'validate'}/{resource.group}/{resource.kind}{tail}"
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": ["CREATE", "UPDATE"] if mutating else sorted(hook.on),
        "resources": [f"{resource.plural}{tail}"],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }
    return {
        "name": hook.name("default" if mutating else ""),
        "clientConfig": target.client(path, bundle),
        "rules": [rule],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    }


async def install(client: Client, target: Target, bundle: bytes) -> None:
    """Make the API server serve our kinds and call our webhooks; update existing objects that differ."""
    for crd in definitions(target, bundle):
        patch = {"metadata": {"labels": crd["metadata"]["labels"]}, "spec": _replacing(crd["spec"])}
        await _ensure(client, crd, patch, _definition_fits)
    for configuration in configurations(target, bundle):
        await _ensure(client, configuration, {"webhooks": configuration["webhooks"]}, _configuration_fits)


def _replacing(spec: Json) -> Json:
    """Return a merge patch of a CRD's spec that removes any other way to its converter."""
    webhook = spec["conversion"].get("webhook")
    if webhook is None:
        return {**spec, "conversion": {**spec["conversion"], "webhook": None}}
    client = {"url": None, "service": None, **webhook["clientConfig"]}
    return {**spec, "conversion": {**spec["conversion"], "webhook": {**webhook, "clientConfig": client}}}


def definitions(target: Target, bundle: bytes) -> Iterable[Json]:
    """Return our CRDs, with our conversion webhook."""
    for crd in crds():
        if len(crd["spec"]["versions"]) > 1:
            crd["spec"]["conversion"] = webhook_conversion(**target.client(CONVERT_PATH, bundle))
        yield crd


async def _ensure(client: Client, wanted: Json, patch: Json, fits: Callable[[Json, Json], bool]) -> None:
    key = ObjectKey("", wanted["metadata"]["name"])
    gvk = GroupVersionKind.of(wanted["apiVersion"], wanted["kind"])
    found = await client.live.find(gvk, key)
    if found is None:
        try:
            await client.create(wanted)
            return
        except AlreadyExists:
            pass  # another replica was faster
    elif fits(dict(found.json), wanted):
        return
    await client.patch(gvk, key, patch)


def _definition_fits(found: Json, wanted: Json) -> bool:
    return contains(found.get("spec"), wanted["spec"]) and contains(found["metadata"].get("labels"), wanted["metadata"]["labels"])


def _configuration_fits(found: Json, wanted: Json) -> bool:
    return contains(found.get("webhooks"), wanted["webhooks"])


def contains(found: Any, wanted: Any) -> bool:
    """Return whether every wanted field is there; additions of the API server do not count as differences."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(contains(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(contains, found, wanted))
    return bool(found == wanted) or (found is None and wanted in (False, "", 0))


async def trust(client: Client, target: Target, bundle: bytes) -> None:
    """Set the trusted authority in configurations of others that call us; change nothing else."""
    if not bundle:
        return
    for crd in crds():
        key = ObjectKey("", crd["metadata"]["name"])
        found = await client.live.find(_CRD, key)
        asked = found.at("spec", "conversion", "webhook", "clientConfig") if found is not None else None
        if _is_untrusting(asked, target, bundle):
            wanted = {"caBundle": base64.b64encode(bundle).decode()}
            await client.patch(_CRD, key, {"spec": {"conversion": {"webhook": {"clientConfig": wanted}}}})
    for configuration in configurations(target, bundle):
        gvk, key = GroupVersionKind.of(configuration["apiVersion"], configuration["kind"]), ObjectKey("", NAME)
        found = await client.live.find(gvk, key)
        hooks = [dict(hook) for hook in (found.at("webhooks") if found is not None else None) or ()]
        due = [hook for hook in hooks if _is_untrusting(hook.get("clientConfig"), target, bundle)]
        if due and found is not None:
            for hook in due:
                hook["clientConfig"] = {**hook["clientConfig"], "caBundle": base64.b64encode(bundle).decode()}
            metadata = {"resourceVersion": found.metadata.resource_version}
            await client.patch(gvk, key, {"metadata": metadata, "webhooks": hooks})


def _is_untrusting(asked: Any, target: Target, bundle: bytes) -> bool:
    """Return whether a client configuration calls us without trusting our certificate."""
    if not isinstance(asked, dict):
        return False
    path = urlsplit(asked.get("url") or "").path if target.url else (asked.get("service") or {}).get("path") or ""
    return contains(asked, target.client(path, b"")) and not contains(asked, target.client(path, bundle))


Tell = Callable[[Client, Target, bytes], Awaitable[None]]
"""`install` or `trust`."""


async def check(tell: Tell, client: Client, target: Target, bundle: bytes) -> str:
    """Update the API server again; a failure is only logged, because it is retried."""
    try:
        await tell(client, target, bundle)
    except ApiError as error:
        log.warning("webhook configurations could not be updated: %s", error)
        return str(error)
    return ""
