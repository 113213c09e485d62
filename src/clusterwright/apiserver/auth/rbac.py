"""RBAC: roles and bindings as the server's own objects hold them, and the roles every cluster begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.auth.identity import User
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import forbidden_error, not_found

GROUP: Final = "rbac.authorization.k8s.io"


class Rule(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """A PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def allows(self, info: RequestInfo) -> bool:
        """Whether this rule alone allows the request."""
        if info.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not info.is_resource:
            return any(_url_matches(u, info.path) for u in self.non_resource_urls)
        if info.group not in self.api_groups and "*" not in self.api_groups:
            return False
        if not self._resource_matches(info):
            return False
        return not self.resource_names or info.name in self.resource_names

    def _resource_matches(self, info: RequestInfo) -> bool:
        if "*" in self.resources:
            return True
        if not info.subresource:
            return info.resource in self.resources
        return f"{info.resource}/{info.subresource}" in self.resources or f"*/{info.subresource}" in self.resources

    def covers(self, other: Rule) -> bool:
        """Whether everything that `other` allows is allowed by this rule (for rules with one of each)."""
        return (
            _within(other.verbs, self.verbs)
            and _within(other.api_groups, self.api_groups)
            and (
                _within(other.resources, self.resources)
                or all(r in self.resources or f"*/{r.partition('/')[2]}" in self.resources for r in other.resources)
            )
            and (not self.resource_names or (bool(other.resource_names) and set(other.resource_names) <= set(self.resource_names)))
            and all(any(_url_matches(u, o) for u in self.non_resource_urls) for o in other.non_resource_urls)
        )


def _within(inner: Sequence[str], outer: Sequence[str]) -> bool:
    return "*" in outer or all(i in outer for i in inner)


def _url_matches(pattern: str, path: str) -> bool:
    return pattern in {"*", path} or (pattern.endswith("*") and path.startswith(pattern[:-1]))


class _Subject(msgspec.Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _RoleRef(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Role(msgspec.Struct):
    rules: tuple[Rule, ...] | None = None


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Binding(msgspec.Struct, rename="camel"):
    subjects: tuple[_Subject, ...] | None = None
    role_ref: _RoleRef = msgspec.field(default_factory=_RoleRef)
    metadata: _Named = msgspec.field(default_factory=_Named)

    def describe(self, kind: str, subject: _Subject) -> str:
        """Which binding gave whom which role."""
        name = f"{self.metadata.name}/{self.metadata.namespace}" if self.metadata.namespace else self.metadata.name
        who = subject.name
        if subject.kind == "ServiceAccount":
            who = f"{subject.name}/{subject.namespace or self.metadata.namespace}"
        return f'{kind} "{name}" of {self.role_ref.kind} "{self.role_ref.name}" to {subject.kind} "{who}"'


_role = msgspec.json.Decoder(_Role, strict=False)
_binding = msgspec.json.Decoder(_Binding, strict=False)


def _applies(subject: _Subject, user: User, namespace: str) -> bool:
    if subject.kind == "User":
        return subject.name == user.name
    if subject.kind == "Group":
        return subject.name in user.groups
    if subject.kind == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.namespace or namespace}:{subject.name}"
    return False


@dataclass(slots=True)
class _Grants:
    """All bindings, decoded; kept until any of the four kinds changes."""

    versions: tuple[int, ...] = ()
    cluster: list[tuple[_Binding, tuple[Rule, ...]]] = field(default_factory=list)
    namespaced: dict[str, list[tuple[_Binding, tuple[Rule, ...]]]] = field(default_factory=dict)


class RbacAuthorizer:
    """Allows what roles and bindings in the server's store allow; `system:masters` may do everything."""

    def __init__(self) -> None:
        self._grants = _Grants()

    def allows(self, server: Core, user: User, info: RequestInfo) -> bool:
        """Whether the user may do this."""
        if "system:masters" in user.groups:
            return True
        return any(rule.allows(info) for rule in self.rules(server, user, info.namespace))

    def reason(self, server: Core, user: User, info: RequestInfo) -> str:
        """Why it is allowed, in upstream's words; empty if no rule allows it (or none is needed)."""
        if "system:masters" in user.groups:
            return ""
        for rule, why in self._granted(server, user, info.namespace):
            if rule.allows(info):
                return f"RBAC: allowed by {why}"
        return ""

    def rules(self, server: Core, user: User, namespace: str) -> Iterable[Rule]:
        """All rules that apply to the user in a namespace (empty: cluster scope)."""
        return (rule for rule, _ in self._granted(server, user, namespace))

    def _granted(self, server: Core, user: User, namespace: str) -> Iterable[tuple[Rule, str]]:
        grants = self._current(server)
        for binding, rules in grants.cluster:
            subject = next((s for s in binding.subjects or () if _applies(s, user, "")), None)
            if subject is not None:
                yield from ((rule, binding.describe("ClusterRoleBinding", subject)) for rule in rules)
        for binding, rules in grants.namespaced.get(namespace, ()) if namespace else ():
            subject = next((s for s in binding.subjects or () if _applies(s, user, namespace)), None)
            if subject is not None:
                yield from ((rule, binding.describe("RoleBinding", subject)) for rule in rules)

    def _current(self, server: Core) -> _Grants:
        tables = [server.store.table(f"{n}.{GROUP}") for n in ("clusterroles", "roles", "clusterrolebindings", "rolebindings")]
        versions = tuple(t.rv for t in tables)
        if self._grants.versions == versions:
            return self._grants
        cluster_roles, roles, cluster_bindings, bindings = tables
        grants = _Grants(versions)

        def rules_of(table: Any, key: str) -> tuple[Rule, ...]:
            entry = table.objects.get(key)
            try:
                return (_role.decode(entry.raw).rules or ()) if entry is not None else ()
            except msgspec.DecodeError:
                return ()

        for entry in cluster_bindings.objects.values():
            try:
                binding = _binding.decode(entry.raw)
            except msgspec.DecodeError:
                continue
            grants.cluster.append((binding, rules_of(cluster_roles, binding.role_ref.name)))
        for entry in bindings.objects.values():
            try:
                binding = _binding.decode(entry.raw)
            except msgspec.DecodeError:
                continue
            name = binding.role_ref.name
            found = (
                rules_of(cluster_roles, name) if binding.role_ref.kind == "ClusterRole" else rules_of(roles, f"{entry.namespace}/{name}")
            )
            grants.namespaced.setdefault(entry.namespace, []).append((binding, found))
        self._grants = grants
        return grants


def _parts(rule: Rule) -> Iterable[Rule]:
    """A rule as many rules with one of each."""
    for verb in rule.verbs:
        for url in rule.non_resource_urls:
            yield Rule(verbs=(verb,), non_resource_urls=(url,))
        for group in rule.api_groups:
            for resource in rule.resources:
                for name in rule.resource_names or ("",):
                    names = (name,) if name else ()
                    yield Rule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=names)


def _shown(rules: Iterable[Rule]) -> str:
    """Rules as Go prints them, one a line; those that differ in their verbs only are one."""
    verbs: dict[tuple[tuple[str, ...], ...], dict[str, None]] = {}
    for rule in rules:
        key = (rule.api_groups, rule.resources, rule.non_resource_urls, rule.resource_names)
        verbs.setdefault(key, {}).update(dict.fromkeys(rule.verbs))
    lines = []
    for fields, found in verbs.items():
        parts = [*zip(("APIGroups", "Resources", "NonResourceURLs", "ResourceNames"), fields, strict=True), ("Verbs", tuple(found))]
        lines.append("{" + ", ".join(f"{name}:{_quoted(items)}" for name, items in parts if items) + "}")
    return "\n".join(sorted(lines))


def _quoted(items: Iterable[str]) -> str:
    return "[" + " ".join(f'"{i}"' for i in items) + "]"


def check_grants(server: Core, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    """Nobody grants what they do not have, unless they may `escalate` the role or `bind` it; raises StatusError (403)."""
    authorizer = server.authorizer
    if not isinstance(authorizer, RbacAuthorizer) or "system:masters" in user.groups:
        return
    name = obj["metadata"].get("name") or ""
    if plural in {"roles", "clusterroles"}:
        aggregates = bool(obj.get("aggregationRule") or (old or {}).get("aggregationRule")) and not _only_collected(obj, old)
        if old is not None and old.get("rules") == obj.get("rules") and not aggregates:
            return
        wanted: list[Rule] | None = msgspec.convert(obj.get("rules") or [], list[Rule], strict=False)
        verb, role_plural, role_name = "escalate", plural, name
    else:
        aggregates = False
        if old is not None and (old.get("subjects"), old.get("roleRef")) == (obj.get("subjects"), obj.get("roleRef")):
            return
        reference = obj.get("roleRef") or {}
        role_name = reference.get("name") or ""
        of_cluster = reference.get("kind") == "ClusterRole"
        verb, role_plural = "bind", "clusterroles" if of_cluster else "roles"
        table = server.store.table(f"{role_plural}.{GROUP}")
        entry = table.objects.get(role_name if of_cluster else f"{namespace}/{role_name}")
        wanted = list(_role.decode(entry.raw).rules or ()) if entry is not None else None
    asked = RequestInfo(
        path="", verb=verb, is_resource=True, group=GROUP, version="v1", namespace=namespace, resource=role_plural, name=role_name
    )
    if authorizer.allows(server, user, asked):
        return
    if wanted is None:
        raise not_found(GROUP, plural, role_name)
    held = list(authorizer.rules(server, user, namespace))
    missing = [part for rule in wanted for part in _parts(rule) if not any(h.covers(part) for h in held)]
    if missing:
        who = f'user "{user.name}" (groups={_quoted(user.groups)})'
        text = f"{who} is attempting to grant RBAC permissions not currently held:\n{_shown(missing)}"
        raise forbidden_error(GROUP, plural, name, text)
    if aggregates and not all(any(h.covers(part) for h in held) for rule in _EVERYTHING for part in _parts(rule)):
        # it can gather anything, now or later
        raise forbidden_error(GROUP, plural, name, "must have cluster-admin privileges to use an aggregationRule")


_EVERYTHING: Final = (Rule(verbs=("*",), api_groups=("*",), resources=("*",)), Rule(verbs=("*",), non_resource_urls=("*",)))


def _only_collected(obj: Json, old: Json | None) -> bool:
    """Whether nothing changes but what the garbage collector needs to change."""
    if old is None:
        return False
    kept = ({k: v for k, v in o["metadata"].items() if k not in _COLLECTED} for o in (obj, old))
    new_meta, old_meta = kept
    return new_meta == old_meta and {**obj, "metadata": None} == {**old, "metadata": None}


_COLLECTED: Final = frozenset({"finalizers", "ownerReferences", "managedFields", "resourceVersion", "generation"})


def _cluster_role(name: str, rules: list[Json], **extra: Any) -> Json:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults", **extra.pop("labels", {})}
    meta = {"name": name, "labels": labels, "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}}
    return {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "metadata": meta, "rules": rules, **extra}


def _cluster_binding(name: str, *groups: str) -> Json:
    meta = {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    return {
        "kind": "ClusterRoleBinding",
        "apiVersion": f"{GROUP}/v1",
        "metadata": meta,
        "subjects": [{"kind": "Group", "apiGroup": GROUP, "name": g} for g in groups],
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
    }


ISSUER_PATHS: Final = (
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
)
"""Where others learn how to check our tokens."""
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "delete", "deletecollection", "patch", "update"]
_NAMESPACED: Final = ["configmaps", "endpoints", "persistentvolumeclaims", "pods", "services", "serviceaccounts", "events"]


def bootstrap_roles() -> list[Json]:
    """The ClusterRoles and bindings that a cluster has from the start."""
    discovery = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"]
    public = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    view = [
        {"apiGroups": [""], "resources": [*_NAMESPACED, "namespaces"], "verbs": _READ},
        {"apiGroups": ["apps"], "resources": ["deployments", "daemonsets", "replicasets", "statefulsets"], "verbs": _READ},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": _READ},
    ]
    edit = [
        {"apiGroups": [""], "resources": [r for r in _NAMESPACED if r != "events"], "verbs": _WRITE},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": [*_READ, *_WRITE]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "daemonsets", "replicasets", "statefulsets"], "verbs": _WRITE},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": _WRITE},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [*_READ, *_WRITE]},
    ]
    admin = [{"apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "verbs": [*_READ, *_WRITE]}]
    return [
        _cluster_role(
            "cluster-admin",
            [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}],
        ),
        _cluster_role("system:discovery", [{"nonResourceURLs": discovery, "verbs": ["get"]}]),
        _cluster_role("system:public-info-viewer", [{"nonResourceURLs": public, "verbs": ["get"]}]),
        _cluster_role(
            "system:basic-user",
            [
                {"apiGroups": ["authorization.k8s.io"], "resources": reviews, "verbs": ["create"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
            ],
        ),
        _cluster_role("system:service-account-issuer-discovery", [{"nonResourceURLs": list(ISSUER_PATHS), "verbs": ["get"]}]),
        _cluster_role("view", view),
        _cluster_role("edit", [*view, *edit]),
        _cluster_role("admin", [*view, *edit, *admin]),
        _cluster_binding("cluster-admin", "system:masters"),
        _cluster_binding("system:discovery", "system:authenticated"),
        _cluster_binding("system:service-account-issuer-discovery", "system:serviceaccounts"),
        _cluster_binding("system:basic-user", "system:authenticated"),
        _cluster_binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
    ]
