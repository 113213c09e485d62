"""Decide which writes a webhook or policy applies to, and in which version it sees them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterwright.api.meta import Json
from clusterwright.api.selectors import Matcher
from clusterwright.apiserver.attributes import Attributes
from clusterwright.apiserver.conversion import convert_for_admission
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.identity import user_info
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.registry import Registry


@dataclass(frozen=True, slots=True)
class Seen:
    """A write as a webhook or policy sees it: in the version of its rules, which can differ from that of the request."""

    attributes: Attributes
    resource: Resource
    object: Json | None
    old_object: Json | None


def targeted(rules: Sequence[Json], policy: str, attributes: Attributes, registry: Registry) -> Resource | None:
    """Return the resource that matches these rules: that of the request, or another version of the same objects; None if none does."""
    if covered(rules, attributes, attributes.resource):
        return attributes.resource
    if policy != "Equivalent":
        return None
    others = registry.equivalents(attributes.resource)
    return next((r for r in others if r is not attributes.resource and covered(rules, attributes, r)), None)


def covered(rules: Iterable[Json], attributes: Attributes, resource: Resource) -> bool:
    """Return whether a rule names this operation on this resource and, if the rule has resourceNames, this object."""
    plural = f"{resource.plural}/{attributes.subresource}" if attributes.subresource else resource.plural
    for rule in rules:
        scope, names = rule.get("scope") or "*", rule.get("resourceNames")
        if (
            _any(rule.get("operations"), attributes.operation)
            and _any(rule.get("apiGroups"), resource.group)
            and _any(rule.get("apiVersions"), resource.version)
            and any(_resource(r, plural) for r in rule.get("resources") or ())
            and (scope == "*" or (scope == "Namespaced") == resource.namespaced)
            and (not names or attributes.name in names)
        ):
            return True
    return False


def _any(values: Iterable[str] | None, wanted: str) -> bool:
    return any(v in {"*", wanted} for v in values or ())


def _resource(pattern: str, plural: str) -> bool:
    if pattern in {"*/*", plural}:
        return True
    name, _, sub = pattern.partition("/")
    resource, _, subresource = plural.partition("/")
    if not sub:
        return not subresource and name == "*"
    return (name in {"*", resource}) and sub in {"*", subresource}


def selected(server: Core, namespaces: Matcher, objects: Matcher, attributes: Attributes) -> bool:
    """Return whether the selectors match the labels of the object (old or new) and of its namespace."""
    candidates = [o for o in (attributes.object, attributes.old_object) if o is not None]
    if candidates and not any(objects(_labels(o)) for o in candidates):
        return False
    if attributes.resource.namespaced:
        entry = server.store.table("namespaces").objects.get(attributes.namespace)
        return bool(namespaces(entry.labels if entry is not None else {}))
    if (attributes.resource.group, attributes.resource.plural) == ("", "namespaces"):
        return any(namespaces(_labels(o)) for o in candidates)
    return True


def _labels(obj: Json) -> Json:
    return (obj.get("metadata") or {}).get("labels") or {}


async def seen_as(server: Core, target: Resource, attributes: Attributes) -> Seen:
    """Return the write with its objects in the version of a resource."""
    if target is attributes.resource:
        return Seen(attributes, target, attributes.object, attributes.old_object)
    versions = server.registry.versions(target)
    objects = [copy.deepcopy(o) for o in (attributes.object, attributes.old_object) if o is not None]
    made = iter(await convert_for_admission(versions, objects, target.api_version))
    obj = next(made) if attributes.object is not None else None
    return Seen(attributes, target, obj, next(made) if attributes.old_object is not None else None)


def request_of(server: Core, seen: Seen) -> Json:
    """Return the write as an AdmissionRequest."""
    attributes = seen.attributes
    request: Json = {
        "uid": server.new_uid(),
        "kind": _kind(seen.resource),
        "resource": _named(seen.resource),
        "requestKind": _kind(attributes.resource),
        "requestResource": _named(attributes.resource),
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": user_info(attributes.user),
        "object": seen.object,
        "oldObject": seen.old_object,
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    return request


def _kind(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _named(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
