"""RBAC: decide by the roles and bindings in the server's store; define the initial roles of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.auth.rules import Rule
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.storage.store import Entry, Gone, Table

GROUP: Final = "rbac.authorization.k8s.io"
_TABLES: Final = tuple(f"{plural}.{GROUP}" for plural in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"))
_KEPT: Final = 1000
"""The number of users whose rules are cached."""
_FEW: Final = 100
"""The number of rules that are scanned for every request without an index."""


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
        """Return a description of a binding: it gives a role to a subject."""
        name = f"{self.metadata.name}/{self.metadata.namespace}" if self.metadata.namespace else self.metadata.name
        who = subject.name
        if subject.kind == "ServiceAccount":
            who = f"{subject.name}/{subject.namespace or self.metadata.namespace}"
        return f'{kind} "{name}" of {self.role_ref.kind} "{self.role_ref.name}" to {subject.kind} "{who}"'


_role = msgspec.json.Decoder(_Role, strict=False)
_binding = msgspec.json.Decoder(_Binding, strict=False)


_Who = tuple[str, str]
"""A user or a group: the kind and the name."""


def _who(subject: _Subject, namespace: str) -> _Who:
    if subject.kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.namespace or namespace}:{subject.name}"
    return subject.kind, subject.name


class _Changes:
    """Follows one table: returns the objects that changed since the last call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._table: Table | None = None
        self._seen = 0

    def take(self, server: Core) -> tuple[Iterable[tuple[str, Entry | None]], bool] | None:
        """Return the changed keys with their entries, and whether these are all objects; None if nothing changed."""
        table = server.store.table(self.name)
        if table is self._table and table.rv == self._seen:
            return None
        try:
            if table is not self._table or table.rv < self._seen:
                raise Gone
            keys: Iterable[str] = dict.fromkeys(event.entry.key for event in table.since(self._seen))
            known = True
        except Gone:
            keys, known = list(table.objects), False
        self._table, self._seen = table, table.rv
        return [(key, table.objects.get(key)) for key in keys], not known


class _Bound:
    """A binding, decoded once for each of its versions."""

    __slots__ = ("binding", "number", "subjects")

    def __init__(self, binding: _Binding, number: int, namespace: str) -> None:
        self.binding = binding
        self.number = number
        """Bindings count in the order of their creation."""
        self.subjects: dict[_Who, int] = {}
        """The index of the first subject that names this user or group."""
        for index, subject in enumerate(binding.subjects or ()):
            self.subjects.setdefault(_who(subject, namespace), index)


class _Bindings:
    """All bindings of one kind by namespace and subject. Only changed ones are decoded."""

    def __init__(self, kind: str, plural: str) -> None:
        self.kind = kind
        self._changes = _Changes(f"{plural}.{GROUP}")
        self._bound: dict[str, _Bound] = {}
        self._index: dict[tuple[str, _Who], dict[str, _Bound]] = {}
        self._made = 0

    def of(self, server: Core, user: User, namespace: str) -> list[tuple[_Bound, _Subject]]:
        """Return the bindings that name the user, in the order of their creation, with the first matching subject."""
        if (changes := self._changes.take(server)) is not None:
            self._follow(*changes)
        found: dict[str, _Bound] = {}
        keys = [("User", user.name), *(("Group", group) for group in user.groups)]
        for key in keys:
            if (bound := self._index.get((namespace, key))) is not None:
                found.update(bound)
        if not found:
            return []
        made = sorted(found.values(), key=lambda bound: bound.number)
        first = (min(bound.subjects[key] for key in keys if key in bound.subjects) for bound in made)
        return [(bound, (bound.binding.subjects or ())[index]) for bound, index in zip(made, first, strict=True)]

    def _follow(self, changed: Iterable[tuple[str, Entry | None]], are_all: bool) -> None:
        if are_all:
            self._bound.clear()
            self._index.clear()
        for key, entry in changed:
            namespace = key.partition("/")[0] if self.kind == "RoleBinding" else ""
            old = self._bound.pop(key, None)
            for subject in old.subjects if old is not None else ():
                bound = self._index[namespace, subject]
                del bound[key]
                if not bound:
                    del self._index[namespace, subject]
            if entry is None:
                continue
            try:
                binding = _binding.decode(entry.raw)
            except msgspec.DecodeError:
                continue
            self._made += 1
            new = self._bound[key] = _Bound(binding, old.number if old is not None else self._made, namespace)
            for subject in new.subjects:
                self._index.setdefault((namespace, subject), {})[key] = new


class _Roles:
    """The rules of all roles of one kind, decoded on first use."""

    def __init__(self, plural: str) -> None:
        self._changes = _Changes(f"{plural}.{GROUP}")
        self._rules: dict[str, tuple[Rule, ...]] = {}

    def rules(self, server: Core, key: str) -> tuple[Rule, ...]:
        """Return the rules of a role; none if it does not exist."""
        if (changes := self._changes.take(server)) is not None:
            changed, are_all = changes
            if are_all:
                self._rules.clear()
            for other, _ in changed:
                self._rules.pop(other, None)
        rules = self._rules.get(key)
        if rules is None:
            entry = server.store.table(self._changes.name).objects.get(key)
            rules = decoded_rules(entry) if entry is not None else ()
            if entry is not None:
                self._rules[key] = rules
        return rules


def decoded_rules(entry: Entry) -> tuple[Rule, ...]:
    """Return the rules of a stored role; none if it is malformed."""
    try:
        return _role.decode(entry.raw).rules or ()
    except msgspec.DecodeError:
        return ()


class RbacAuthorizer:
    """Allows what the roles and bindings in the server's store allow; `system:masters` may do everything."""

    def __init__(self) -> None:
        self._cluster = _Bindings("ClusterRoleBinding", "clusterrolebindings")
        self._namespaced = _Bindings("RoleBinding", "rolebindings")
        self._cluster_roles, self._roles = _Roles("clusterroles"), _Roles("roles")
        self._kept: dict[tuple[str, tuple[str, ...], str], tuple[Rule, ...]] = {}
        """The rules of users in namespaces, valid until a role or binding changes."""
        self._matching: dict[tuple[str, ...], tuple[Rule, ...]] = {}
        """The cached rules that may allow a verb for a resource."""
        self._kept_at: tuple[object, ...] = ()

    def allows(self, server: Core, user: User, info: RequestInfo) -> bool:
        """Return whether the user may do this."""
        if "system:masters" in user.groups:
            return True
        return any(rule.allows(info) for rule in self._candidates(server, user, info))

    def _candidates(self, server: Core, user: User, info: RequestInfo) -> Sequence[Rule]:
        """Return the user's rules that may allow the request. An index keeps this fast for users with many rules."""
        rules = self.rules(server, user, info.namespace)
        if len(rules) <= _FEW:
            return rules
        where = (info.group, info.resource, info.subresource) if info.is_resource else (info.path,)
        key = (info.namespace, info.verb, *where, user.name, *user.groups)
        found = self._matching.get(key)
        if found is None:
            if len(self._matching) >= _KEPT:
                self._matching.clear()
            found = self._matching[key] = tuple(rule for rule in rules if rule.allows(info, any_name=True))
        return found

    def reason(self, server: Core, user: User, info: RequestInfo) -> str:
        """Return why the request is allowed, in upstream's words; empty if no rule allows it (or none is needed)."""
        if "system:masters" in user.groups:
            return ""
        for bindings, bound, subject, rules in self._granted(server, user, info.namespace):
            if any(rule.allows(info) for rule in rules):
                return f"RBAC: allowed by {bound.binding.describe(bindings.kind, subject)}"
        return ""

    def rules(self, server: Core, user: User, namespace: str) -> Sequence[Rule]:
        """Return the rules that apply to the user in a namespace (empty: cluster scope); those of each role once."""
        table = server.store.table
        now = (server.store, *(table(name).rv for name in _TABLES))
        if now != self._kept_at or len(self._kept) >= _KEPT:
            self._kept.clear()
            self._matching.clear()
            self._kept_at = now
        key = user.name, user.groups, namespace
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = tuple(rule for _, _, _, rules in self._granted(server, user, namespace) for rule in rules)
        return found

    def _granted(self, server: Core, user: User, namespace: str) -> Iterator[tuple[_Bindings, _Bound, _Subject, tuple[Rule, ...]]]:
        """Yield the roles that the user has, each with the first binding that gives it."""
        seen: set[tuple[bool, str]] = set()
        for bindings, where in ((self._cluster, ""), (self._namespaced, namespace)) if namespace else ((self._cluster, ""),):
            for bound, subject in bindings.of(server, user, where):
                reference = bound.binding.role_ref
                of_cluster = not where or reference.kind == "ClusterRole"
                role = of_cluster, reference.name if of_cluster else f"{where}/{reference.name}"
                if role not in seen:
                    seen.add(role)
                    yield bindings, bound, subject, (self._cluster_roles if of_cluster else self._roles).rules(server, role[1])


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
"""Public paths with which other programs verify our tokens."""
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "delete", "deletecollection", "patch", "update"]
_NAMESPACED: Final = ["configmaps", "endpoints", "persistentvolumeclaims", "pods", "services", "serviceaccounts", "events"]


def bootstrap_roles() -> list[Json]:
    """Return the initial ClusterRoles and ClusterRoleBindings."""
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
