"""Find other Cluster API controllers on a management cluster: their Deployments, Leases, webhooks and conversions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from clusterwright.api.crds import WEBHOOK_SERVICE
from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.api.wellknown import PROVIDER_LABEL
from clusterwright.golang.times import parse_rfc3339
from clusterwright.install.manifests import LABELS
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import Forbidden, NotFound

_GROUPS: Final = "cluster.x-k8s.io"
_DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")
_LEASE: Final = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
_DEFINITION: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_WEBHOOKS: Final = tuple(
    GroupVersionKind("admissionregistration.k8s.io", "v1", kind)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An object of another installation: what it is, and what it does."""

    object: str
    text: str

    def to_json(self) -> Json:
        """Return the entry as `adopt -o json` shows it."""
        return {"object": self.object, "text": self.text}


async def find(client: Reader, now: datetime) -> tuple[list[Neighbour], list[str]]:
    """Return what other installations run and have registered, and the kinds that we may not list."""
    found: list[Neighbour] = []
    unseen: list[str] = []
    for kind, told in (
        (_DEPLOYMENT, _deployment),
        (_LEASE, lambda obj: _lease(obj, now)),
        *((kind, _webhooks) for kind in _WEBHOOKS),
        (_DEFINITION, _conversion),
    ):
        try:
            objects = await client.list(kind)
        except (Forbidden, NotFound) as error:
            unseen.append(f"{kind.kind}: {error}")
            continue
        for obj in objects:
            name = f"{obj.kind}/{obj.key}"
            found += [Neighbour(name, text) for text in told(obj) if not _is_ours(obj)]
    return found, unseen


def _is_ours(obj: Unstructured) -> bool:
    return LABELS.items() <= obj.metadata.labels.items()


def _deployment(obj: Unstructured) -> Iterator[str]:
    provider = obj.metadata.labels.get(PROVIDER_LABEL)
    replicas = obj.at("spec", "replicas")
    if provider and replicas:
        yield f"runs {provider} with {replicas} replicas: kubectl -n {obj.key.namespace} scale deployment {obj.key.name} --replicas 0"


def _lease(obj: Unstructured, now: datetime) -> Iterator[str]:
    """Yield a Lease of another manager that is still renewed."""
    if not obj.key.name.endswith("leader-election-capi"):
        return
    renewed, seconds = obj.at("spec", "renewTime"), obj.at("spec", "leaseDurationSeconds")
    at = parse_rfc3339(renewed) if isinstance(renewed, str) else None
    if at is not None and isinstance(seconds, int) and now - at < timedelta(seconds=seconds):
        yield f"is held by {obj.at('spec', 'holderIdentity')}, renewed {(now - at).total_seconds():.0f} s ago"


def _webhooks(obj: Unstructured) -> Iterator[str]:
    for hook in obj.at("webhooks") or ():
        groups = {group for rule in hook.get("rules") or () for group in rule.get("apiGroups") or ()}
        config = hook.get("clientConfig") or {}
        if any(str(group).endswith(_GROUPS) for group in groups) and not _asks_us(config):
            yield f"webhook {hook.get('name')} asks {_where(config)}, policy {hook.get('failurePolicy', 'Fail')}"


def _conversion(obj: Unstructured) -> Iterator[str]:
    conversion = obj.at("spec", "conversion")
    if not str(obj.at("spec", "group")).endswith(_GROUPS) or not isinstance(conversion, Mapping) or conversion.get("strategy") != "Webhook":
        return
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    if not _asks_us(config):
        yield f"is converted by {_where(config)}"


def _asks_us(config: Mapping[str, Any]) -> bool:
    """Return whether the webhook points to our own Service, in any namespace."""
    service = config.get("service")
    return isinstance(service, Mapping) and service.get("name") == WEBHOOK_SERVICE[1]


def _where(config: Mapping[str, Any]) -> str:
    service = config.get("service")
    if isinstance(service, Mapping):
        return f"Service {service.get('namespace')}/{service.get('name')}"
    return str(config.get("url") or "nobody")
