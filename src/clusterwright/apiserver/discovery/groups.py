"""Discovery of groups, versions and resources, in the old and the aggregated form."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.registry import Served

_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")
_SUBRESOURCES: Final[dict[str, tuple[str, str, str, tuple[str, ...]]]] = {
    # subresource: group, version, kind, verbs
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "binding": ("", "v1", "Binding", ("create",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
    "log": ("", "v1", "Pod", ("get",)),
    "portforward": ("", "v1", "PodPortForwardOptions", ("create", "get")),
    "proxy": ("", "v1", "NodeProxyOptions", ("create", "delete", "get", "patch", "update")),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "approval": ("certificates.k8s.io", "v1", "CertificateSigningRequest", ("get", "patch", "update")),
    "scale": ("autoscaling", "v1", "Scale", _SUBRESOURCE_VERBS),
}


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return a sort key by Kubernetes' preference: v2, v1, v1beta2, v1alpha1, others by name."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), version)


def versions_of(served: Served, group: str) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    return sorted(served.get(group, ()), key=version_order)


_STORED_AS: Final = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "apiextensions.k8s.io/v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "admissionregistration.k8s.io/v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "admissionregistration.k8s.io/v1beta1",
    ("events.k8s.io", "Event"): "/v1",
}
"""Kinds that kube-apiserver stores in another version than the served one; storage version hashes depend on it."""


def _hash(resource: Resource) -> str:
    version = (resource.storage or resource.api_version).rpartition("/")[2]
    text = f"{_STORED_AS.get((resource.group, resource.kind), f'{resource.group}/{version}')}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _verbs(resource: Resource) -> Sequence[str]:
    return _CUSTOM_VERBS if resource.custom else resource.verbs


def subresources(resource: Resource) -> Iterable[tuple[str, Json, Sequence[str]]]:
    """Yield each subresource with the kind of its answers and its verbs."""
    own = (resource.group, resource.version, resource.kind, _SUBRESOURCE_VERBS)
    names = [*(["status"] if resource.status else []), *(["scale"] if resource.scale is not None else []), *resource.subresources]
    for name in names if resource.custom else sorted(set(names)):
        group, version, kind, verbs = own if name == "status" else _SUBRESOURCES.get(name, own)
        yield name, {"group": group, "version": version, "kind": kind}, verbs


def resource_list(served: Served, group: str, version: str) -> Json | None:
    """Return the APIResourceList of a group version; None if it is not served."""
    found: list[Json] = []
    for resource in served.get(group, {}).get(version, ()):
        entry: Json = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(_verbs(resource)),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        if "create" in entry["verbs"] and "list" in entry["verbs"]:
            entry["storageVersionHash"] = _hash(resource)
        found.append(entry)
        for name, kind, verbs in subresources(resource):
            sub: Json = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
            if kind["group"] != resource.group:
                sub["group"], sub["version"] = kind["group"], kind["version"]
            sub["kind"] = kind["kind"]
            sub["verbs"] = list(verbs)
            found.append(sub)
    if not found:
        return None
    if not group:  # the list of the core group has no apiVersion
        return {"kind": "APIResourceList", "groupVersion": version, "resources": found}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": found}


def group_entry(served: Served, group: str) -> Json:
    """Return a group as it appears in /apis."""
    versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions_of(served, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_group(served: Served, group: str) -> Json | None:
    """Return the APIGroup; None if the group is not served."""
    if group not in served or not group:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **group_entry(served, group)}


def group_list(served: Served) -> Json:
    """Return the APIGroupList of all named groups."""
    groups = sorted(filter(None, served))
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group_entry(served, g) for g in groups]}


def api_versions() -> Json:
    """Return the APIVersions of the core group."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def aggregated(served: Served, *, core: bool, version: str) -> Json:
    """Return the APIGroupDiscoveryList of the core group or of all others."""
    groups = [""] if core else sorted(filter(None, served))
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_aggregated_group(served, g) for g in groups],
    }


def _aggregated_group(served: Served, group: str) -> Json:
    versions = []
    for version in versions_of(served, group):
        resources = [_aggregated(r) for r in served[group][version]]
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}, "versions": versions}


def _aggregated(resource: Resource) -> Json:
    # built-ins leave group and version of their own kind empty here: they are those of the list
    own = {"group": resource.group, "version": resource.version} if resource.custom else {"group": "", "version": ""}
    entry: Json = {
        "resource": resource.plural,
        "responseKind": {**own, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(_verbs(resource)),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subs = []
    for name, kind, verbs in subresources(resource):
        same = kind["group"] == resource.group and kind["version"] == resource.version and not resource.custom
        shown = {"group": "", "version": "", "kind": kind["kind"]} if same else kind
        subs.append({"subresource": name, "responseKind": shown, "verbs": list(verbs)})
    if subs:
        entry["subresources"] = subs
    return entry
