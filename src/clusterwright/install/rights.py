"""Derive roles from the reads and writes that controllers declare. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from clusterwright.api.crds import crds
from clusterwright.api.meta import Json
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers.wiring import Access, ControllerDefinition
from clusterwright.runtime.models import known_resource
from clusterwright.runtime.resources import Kind
from clusterwright.webhooks.configurations import NAME as CONFIGURATION

_READ: Final = "get list watch"
_CRDS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_CONFIGURATIONS: Final = tuple(f"{kind}webhookconfigurations.admissionregistration.k8s.io" for kind in ("mutating", "validating"))

# What is not a controller's own, by what it is for.
CONNECTIONS: Final = tuple(Access(r, _READ) for r in ("clusters.cluster.x-k8s.io", "secrets", _CRDS))
EVENTS: Final = (Access("events", "create patch"),)
CALLERS: Final = (Access("tokenreviews.authentication.k8s.io", "create"), Access("subjectaccessreviews.authorization.k8s.io", "create"))
LEASES: Final = (Access("leases.coordination.k8s.io", "get list watch create update delete"),)
CERTIFICATE: Final = (Access("secrets", "get create update"),)
_OURS: Final = tuple(crd["metadata"]["name"] for crd in crds())
MIGRATION: Final = (
    Access(_CRDS, _READ),
    Access(_CRDS, "patch", _OURS),
    Access(f"{_CRDS}/status", "patch", _OURS),
    *(
        Access(f"{crd['metadata']['name']}{tail}", verbs)
        for crd in crds()
        for tail, verbs in (("", "get list patch"), ("/status", "patch"))
    ),
)
WEBHOOKS: Final = (
    Access(_CRDS, _READ),
    Access(_CRDS, "patch", _OURS),
    Access("namespaces", "get"),
    *(Access(resource, _READ) for resource in _CONFIGURATIONS),
    *(Access(resource, "patch", (CONFIGURATION,)) for resource in _CONFIGURATIONS),
)
CLUSTER_SCOPED: Final = frozenset(
    {_CRDS, "namespaces", *_CONFIGURATIONS, *(access.resource for access in CALLERS)}
    | {crd["metadata"]["name"] for crd in crds() if crd["spec"]["scope"] == "Cluster"}
)
"""Resources that a Role of a namespace cannot grant."""


def declared(definition: ControllerDefinition) -> tuple[Access, ...]:
    """Return all accesses of a controller: its watches, its own kind and status, and its further declarations.

    If owners are to block the deletion of an object, the API server may require the right to their finalizers.
    """
    own = resource_name(definition.kind)
    watched = {resource_name(kind): None for kind in (definition.kind, *(watch.kind for watch in definition.watches))}
    return (
        *(Access(resource, _READ) for resource in watched),
        Access(own, "patch"),
        Access(f"{own}/status", "patch"),
        Access(f"{own}/finalizers", "update"),
        *definition.access,
    )


def resource_name(kind: Kind) -> str:
    """Return the name of a resource, as `machines.cluster.x-k8s.io`."""
    gvk = gvk_of(kind)
    resource = known_resource(gvk)
    plural = resource.plural if resource is not None else f"{gvk.kind.lower()}s"
    return f"{plural}.{gvk.group}" if gvk.group else plural


def merged(accesses: Iterable[Access]) -> dict[str, frozenset[str]]:
    """Return the verbs by resource, for all names; a resource that a `*` of its group covers is left out."""
    verbs: dict[str, frozenset[str]] = {}
    for access in accesses:
        verbs[access.resource] = verbs.get(access.resource, frozenset()) | frozenset(access.verbs.split())
    return {r: v for r, v in verbs.items() if r.startswith("*.") or not v <= verbs.get(f"*.{_group(r)}", frozenset())}


def allows(granted: Mapping[str, frozenset[str]], verb: str, resource: str) -> bool:
    """Return whether merged accesses contain this one."""
    return verb in granted.get(resource, ()) or verb in granted.get(f"*.{_group(resource)}", ())


def rules(accesses: Iterable[Access]) -> list[Json]:
    """Return the rules of a role, resources with equal verbs together, in a fixed order."""
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    given = list(accesses)
    for names in dict.fromkeys(access.names for access in given):
        for resource, verbs in merged(access for access in given if access.names == names).items():
            alike.setdefault((_group(resource), _ordered(verbs), names), []).append(_plural(resource))
    return [
        {"apiGroups": [group], "resources": sorted(found), **({"resourceNames": list(names)} if names else {}), "verbs": list(verbs)}
        for (group, verbs, names), found in sorted(alike.items())
    ]


def scoped(accesses: Iterable[Access]) -> tuple[list[Access], list[Access]]:
    """Return the accesses to objects in namespaces, and those to others."""
    inside: list[Access] = []
    outside: list[Access] = []
    for access in accesses:
        (outside if access.resource.partition("/")[0] in CLUSTER_SCOPED else inside).append(access)
    return inside, outside


_ORDER: Final = ("get", "list", "watch", "create", "update", "patch", "delete")


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=_ORDER.index))


def _plural(resource: str) -> str:
    name, slash, subresource = resource.partition("/")
    return name.partition(".")[0] + slash + subresource


def _group(resource: str) -> str:
    return resource.partition("/")[0].partition(".")[2]
