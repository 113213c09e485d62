"""Classify requests by FlowSchemas and PriorityLevelConfigurations, stored and built-in ones.

Pure: from the bytes of stored objects to a classification. `serving.fairness` queues the flows, `system.flowcontrol` keeps the objects.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.requestinfo import RequestInfo

GROUP: Final = "flowcontrol.apiserver.k8s.io"
SCHEMAS: Final = f"flowschemas.{GROUP}"
LEVELS: Final = f"prioritylevelconfigurations.{GROUP}"
AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
MANDATORY: Final = frozenset({"exempt", "catch-all"})
_REMEMBERED: Final = 4096
"""The number of cached classifications."""
SEATS: Final = 245
"""The concurrent requests of all limited levels together: one for each share of the built-in levels."""


class _Camel(msgspec.Struct, rename="camel", frozen=True):
    """Fields in camel case; missing and null fields are empty."""


class _Name(_Camel, frozen=True):
    name: str = ""
    namespace: str = ""


class _Subject(_Camel, frozen=True):
    kind: str = ""
    user: _Name | None = None
    group: _Name | None = None
    service_account: _Name | None = None

    def matches(self, user: User) -> bool:
        match self.kind:
            case "User" if self.user is not None:
                return self.user.name in ("*", user.name)
            case "Group" if self.group is not None:
                return self.group.name == "*" or self.group.name in user.groups
            case "ServiceAccount" if self.service_account is not None:
                prefix = f"system:serviceaccount:{self.service_account.namespace}:"
                name = self.service_account.name
                return user.name.startswith(prefix) if name == "*" else user.name == prefix + name
        return False


def _has(wanted: tuple[str, ...] | None, value: str) -> bool:
    """Return whether a list contains a value; a wildcard is its only item."""
    return wanted is not None and (wanted == ("*",) or value in wanted)


class _ResourceRule(_Camel, frozen=True):
    verbs: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    cluster_scope: bool = False

    def matches(self, info: RequestInfo) -> bool:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        if not (_has(self.verbs, info.verb) and _has(self.resources, resource) and _has(self.api_groups, info.group)):
            return False
        return _has(self.namespaces, info.namespace) if info.namespace else self.cluster_scope


class _UrlRule(_Camel, frozen=True):
    verbs: tuple[str, ...] | None = None
    urls: tuple[str, ...] | None = msgspec.field(default=None, name="nonResourceURLs")

    def matches(self, info: RequestInfo) -> bool:
        if not _has(self.verbs, info.verb):
            return False
        return any(url in ("*", info.path) or info.path.startswith(url.removesuffix("*").rstrip("/") + "/") for url in self.urls or ())


class _Rules(_Camel, frozen=True):
    subjects: tuple[_Subject, ...] | None = None
    resource_rules: tuple[_ResourceRule, ...] | None = None
    non_resource_rules: tuple[_UrlRule, ...] | None = None

    def matches(self, user: User, info: RequestInfo) -> bool:
        if not any(subject.matches(user) for subject in self.subjects or ()):
            return False
        rules: Iterable[_ResourceRule | _UrlRule] = (self.resource_rules if info.is_resource else self.non_resource_rules) or ()
        return any(rule.matches(info) for rule in rules)


class _Method(_Camel, frozen=True):
    type: str = ""


class _Meta(_Camel, frozen=True):
    name: str
    uid: str = ""


class _SchemaSpec(_Camel, frozen=True):
    priority_level_configuration: _Name = _Name()
    matching_precedence: int = 1000
    distinguisher_method: _Method | None = None
    rules: tuple[_Rules, ...] | None = None


class _Schema(_Camel, frozen=True):
    metadata: _Meta
    spec: _SchemaSpec = _SchemaSpec()


class _Queuing(_Camel, frozen=True):
    queue_length_limit: int = 50


class _Response(_Camel, frozen=True):
    type: str = "Reject"
    queuing: _Queuing | None = None


class _Limited(_Camel, frozen=True):
    nominal_concurrency_shares: int | None = None
    limit_response: _Response = _Response()


class _LevelSpec(_Camel, frozen=True):
    type: str = "Limited"
    limited: _Limited | None = None


class _Level(_Camel, frozen=True):
    metadata: _Meta
    spec: _LevelSpec = _LevelSpec()

    @property
    def shares(self) -> int:
        if self.spec.type == "Exempt":
            return 0
        asked = self.spec.limited.nominal_concurrency_shares if self.spec.limited is not None else None
        return 30 if asked is None else asked


@dataclass(frozen=True, slots=True)
class Level:
    """A priority level: its seats (None: no limit), and how many requests of a flow may wait for one."""

    name: str
    uid: str
    seats: int | None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Flow:
    """The schema and level of a request, and the queue in which it waits."""

    schema: str
    schema_uid: str
    level: Level
    distinguisher: str

    @property
    def headers(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the headers that name schema and level."""
        return ("X-Kubernetes-Pf-Flowschema-Uid", self.schema_uid), ("X-Kubernetes-Pf-Prioritylevel-Uid", self.level.uid)


class Flows:
    """All schemas and levels at one time."""

    def __init__(self, schemas: Iterable[bytes], levels: Iterable[bytes]) -> None:
        """Read stored objects and add the built-in ones that are not stored. Schemas whose level is missing are ignored."""
        known = {level.metadata.name: level for level in _with_defaults(levels, "PriorityLevelConfiguration", _Level)}
        total = sum(level.shares for level in known.values()) or 1
        self.levels = {name: _level(level, total) for name, level in known.items()}
        found = _with_defaults(schemas, "FlowSchema", _Schema)
        found.sort(key=lambda schema: (schema.spec.matching_precedence, schema.metadata.name))
        self._schemas = tuple(schema for schema in found if schema.spec.priority_level_configuration.name in self.levels)
        self._known: dict[tuple[object, ...], Flow] = {}

    def classify(self, user: User, info: RequestInfo) -> Flow:
        """Return the flow of a request by the first schema that matches; `catch-all` if none does."""
        path = "" if info.is_resource else info.path
        question = (user.name, user.groups, info.verb, info.group, info.resource, info.subresource, info.namespace, path)
        found = self._known.get(question)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[question] = self._classify(user, info)
        return found

    def _classify(self, user: User, info: RequestInfo) -> Flow:
        matching = (s for s in self._schemas if any(rules.matches(user, info) for rules in s.spec.rules or ()))
        schema = next(matching, None) or next(s for s in self._schemas if s.metadata.name == "catch-all")
        method = schema.spec.distinguisher_method
        distinguisher = {"ByUser": user.name, "ByNamespace": info.namespace}.get(method.type, "") if method is not None else ""
        level = self.levels[schema.spec.priority_level_configuration.name]
        return Flow(schema.metadata.name, _uid(schema.metadata), level, distinguisher)


def _level(level: _Level, total: int) -> Level:
    uid = _uid(level.metadata)
    if level.spec.type == "Exempt":
        return Level(level.metadata.name, uid, None)
    answer = level.spec.limited.limit_response if level.spec.limited is not None else _Response()
    queuing = answer.queuing or _Queuing()
    waiting = queuing.queue_length_limit if answer.type == "Queue" else 0
    return Level(level.metadata.name, uid, max(1, math.ceil(SEATS * level.shares / total)), waiting)


def _uid(meta: _Meta) -> str:
    return meta.uid or str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{meta.name}.{GROUP}"))


def _with_defaults(stored: Iterable[bytes], kind: str, model: Any) -> list[Any]:
    found: dict[str, Any] = {}
    for obj in defaults():
        if obj["kind"] == kind:
            found[obj["metadata"]["name"]] = msgspec.convert(obj, model)
    for raw in stored:
        with suppress(msgspec.ValidationError):  # objects that cannot be decoded do not count
            one = msgspec.json.decode(raw, type=model)
            found[one.metadata.name] = one
    return list(found.values())


# ------------------------------------------------------------------------------------------------- built-in objects

_ALL: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
_EVERYTHING: Final = {"resourceRules": [_ALL], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
_PROBES: Final = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}
_LEASES: Final = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
_ELECTION: Final = {"resourceRules": [{**_LEASES, "verbs": ["get", "create", "update"]}]}
_NODES: Final = {"resourceRules": [{**_ALL, "apiGroups": [""], "resources": ["nodes", "nodes/status"]}, {**_LEASES, "verbs": ["*"]}]}


def _groups(*names: str) -> list[Json]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Json]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


_EVERYBODY: Final = _groups("system:unauthenticated", "system:authenticated")
_MANAGER, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_KUBELETS: Final = _groups("system:nodes")
_SYSTEM_ACCOUNTS: Final = [{"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}}]

_ELECTED: Final = [*_users(_MANAGER, _SCHEDULER), *_SYSTEM_ACCOUNTS]

# fmt: off
_SCHEMAS: Final = (
    # name                           level              rank   by             of whom                     what
    ("exempt",                       "exempt",              1, "",            _groups("system:masters"),          _EVERYTHING),
    ("probes",                       "exempt",              2, "",            _EVERYBODY,                         _PROBES),
    ("system-leader-election",       "leader-election",   100, "ByUser",      _ELECTED,                           _ELECTION),
    ("system-node-high",             "node-high",         400, "ByUser",      _KUBELETS,                          _NODES),
    ("system-nodes",                 "system",            500, "ByUser",      _KUBELETS,                          _EVERYTHING),
    ("kube-controller-manager",      "workload-high",     800, "ByNamespace", _users(_MANAGER),                   _EVERYTHING),
    ("kube-scheduler",               "workload-high",     800, "ByNamespace", _users(_SCHEDULER),                 _EVERYTHING),
    ("kube-system-service-accounts", "workload-high",     900, "ByNamespace", _SYSTEM_ACCOUNTS,                   _EVERYTHING),
    ("service-accounts",             "workload-low",     9000, "ByUser",      _groups("system:serviceaccounts"),  _EVERYTHING),
    ("global-default",               "global-default",   9900, "ByUser",      _EVERYBODY,                         _EVERYTHING),
    ("catch-all",                    "catch-all",       10000, "ByUser",      _EVERYBODY,                         _EVERYTHING),
)
_LEVELS: Final = (
    # name            shares  lendable %  queues  hand size; none: requests without a seat are refused
    ("system",            30,         33,     64, 6),
    ("node-high",         40,         25,     64, 6),
    ("leader-election",   10,          0,     16, 4),
    ("workload-high",     40,         50,    128, 6),
    ("workload-low",     100,         90,    128, 6),
    ("global-default",    20,         50,    128, 6),
    ("catch-all",          5,          0,      0, 0),
)
# fmt: on


def defaults() -> list[Json]:
    """Return the built-in objects: two of each kind are mandatory, the others suggested."""

    def made(kind: str, name: str, spec: Json) -> Json:
        metadata = {"name": name, "annotations": {AUTO_UPDATE: "true"}}
        return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}

    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    found = [made("PriorityLevelConfiguration", "exempt", exempt)]
    for name, shares, lendable, queues, hand in _LEVELS:
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": 50}
        answer: Json = {"type": "Queue", "queuing": queuing} if queues else {"type": "Reject"}
        limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": answer}
        found.append(made("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited}))
    for name, level, precedence, method, subjects, rules in _SCHEMAS:
        spec = {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            **({"distinguisherMethod": {"type": method}} if method else {}),
            "rules": [{"subjects": subjects, **rules}],
        }
        found.append(made("FlowSchema", name, spec))
    return found
