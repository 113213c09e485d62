"""Answer requests to paths that are not resources: discovery, version, health, metrics, OpenAPI."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth.tokens import AUDIENCE
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.discovery import groups, openapi, openapiv2
from clusterwright.apiserver.effort import aside
from clusterwright.apiserver.encoding import rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN, Form, accepted
from clusterwright.apiserver.registry import Registry
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import bad_request, generic

_encode = msgspec.json.Encoder().encode
_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
_HOOKS: Final = """
    start-apiserver-admission-initializer generic-apiserver-start-informers priority-and-fairness-config-consumer
    priority-and-fairness-filter storage-object-count-tracker-hook start-apiextensions-informers start-apiextensions-controllers
    crd-informer-synced start-system-namespaces-controller peer-endpoint-reconciler-controller
    start-cluster-authentication-info-controller start-kube-apiserver-identity-lease-controller
    start-kube-apiserver-identity-lease-garbage-collector storage-readiness start-legacy-token-tracking-controller
    start-service-ip-repair-controllers rbac/bootstrap-roles scheduling/bootstrap-system-priority-classes
    priority-and-fairness-config-producer bootstrap-controller start-kubernetes-service-cidr-controller
    start-kube-aggregator-informers apiservice-status-local-available-controller apiservice-status-remote-available-controller
    apiservice-registration-controller apiservice-discovery-controller kube-apiserver-autoregistration
    apiservice-openapi-controller apiservice-openapiv3-controller
"""
"""The start hooks that kube-apiserver reports; here they are always complete."""
_CHECKS: Final = (
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    *(f"poststarthook/{hook}" for hook in _HOOKS.split()),
    "autoregister-completion",
    "shutdown",
)
_READINESS: Final = frozenset({"informer-sync", "etcd-readiness", "shutdown"})
_STORAGE: Final = frozenset({"etcd", "etcd-readiness"})
_ROUTED: Final = frozenset({"api", "apis", "version"})
"""Paths that only answer GET; the list of groups answers any method."""
_OPENAPI_V2: Final = "com.github.proto-openapi.spec.v2"
_V2_DOCUMENTS: WeakKeyDictionary[Registry, tuple[int, dict[str, bytes]]] = WeakKeyDictionary()
_NOT_FOUND: Final = Response(status=404, headers=_TEXT, body=b"404 page not found\n")


async def answer(server: Core, request: Request, info: RequestInfo, query: Mapping[str, str]) -> Response:
    """Answer a request to a path that is not a resource. Raises StatusError."""
    parts = [p for p in request.path.split("/") if p]
    head = parts[0] if parts else ""
    if head in {"healthz", "livez", "readyz"}:
        return _health(server, head, parts[1:], query)
    known = head in {"", "api", "apis", "version", "metrics", "openapi", "openid", ".well-known"}
    if known and parts != ["apis"] and (request.method != "GET" if head in _ROUTED else request.method not in {"GET", "HEAD"}):
        if head == "apis" and all(resource.group != parts[1] for resource in server.registry):
            return _NOT_FOUND
        raise generic(405, "", "", "", "")
    form = PLAIN
    if head in {"api", "apis"}:
        root = len(parts) == 1
        form = accepted(request.headers.get("accept", ""), custom=False, discovery=root)
        return _discovery(server, parts, form)
    if not parts:
        return _data(server, {"paths": _paths(server)})
    if head == "version" and len(parts) == 1:
        return _data(server, _version(server))
    if head == "metrics" and len(parts) == 1:
        return Response(status=200, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"}, body=_metrics(server))
    if parts == ["traces"] and server.report is not None and request.method == "GET":
        return _traces(server.report, query)
    if parts == ["openid", "v1", "jwks"] and server.tokens is not None:
        return Response(status=200, headers={"content-type": "application/jwk-set+json"}, body=_encode(server.tokens.key_set()))
    if parts == [".well-known", "openid-configuration"] and server.tokens is not None:
        return _data(server, _issuer())
    if head == "openapi" and parts[1:2] == ["v3"]:
        return await _openapi(server, parts[2:])
    if parts == ["openapi", "v2"]:
        return await _openapi_v2(server, request.headers.get("accept", ""))
    del info
    return _NOT_FOUND


def _data(server: Core, value: Any, form: Form = PLAIN) -> Response:
    del server
    return rendering.write(200, value, form)


def _traces(report: Callable[[Mapping[str, str]], Json], query: Mapping[str, str]) -> Response:
    try:
        return Response(status=200, headers={"content-type": "application/json"}, body=_encode(report(query)))
    except ValueError as error:
        raise bad_request(str(error)) from None


def _issuer() -> Json:
    return {
        "issuer": AUDIENCE,
        "jwks_uri": f"{AUDIENCE}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


def _paths(server: Core) -> list[str]:
    """Return all served paths; cached, because clients probe connections with this request."""
    registry = server.registry
    generation, found = _PATHS.get(registry, (-1, []))
    if generation != registry.generation:
        found = _made_paths(registry)
        _PATHS[registry] = registry.generation, found
    return found


_PATHS: WeakKeyDictionary[Registry, tuple[int, list[str]]] = WeakKeyDictionary()


def _made_paths(registry: Registry) -> list[str]:
    found = ["/api", "/api/v1", "/apis", "/apis/"]
    versions: dict[str, set[str]] = {}
    for resource in registry:
        versions.setdefault(resource.group, set()).add(resource.version)
    for group in sorted(g for g in versions if g):
        found.append(f"/apis/{group}")
        found.extend(f"/apis/{group}/{v}" for v in sorted(versions[group], key=groups.version_order))
    return [*found, "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/readyz", "/version"]


def _version(server: Core) -> Json:
    major, minor = server.version.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": server.version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "clusterwright",
        "platform": "linux/amd64",
    }


def _discovery(server: Core, parts: list[str], form: Form) -> Response:
    registry = server.registry
    value: Json | None
    if parts == ["api"]:
        value = groups.aggregated(registry, core=True, version=form.version) if form.render else groups.api_versions()
    elif parts == ["apis"]:
        value = groups.aggregated(registry, core=False, version=form.version) if form.render else groups.group_list(registry)
    elif parts[0] == "api":
        value = groups.resource_list(registry, "", parts[1])
        if value is None:
            raise generic(404, "", "", "", "")
    elif len(parts) == 2:
        value = groups.api_group(registry, parts[1])
    else:
        value = groups.resource_list(registry, parts[1], parts[2])
    if value is None:
        if any(r.group == parts[1] and not r.custom for r in registry):
            raise generic(404, "", "", "", "")
        return _NOT_FOUND
    return _data(server, value, form)


def _health(server: Core, kind: str, rest: list[str], query: Mapping[str, str]) -> Response:
    """Answer a probe. A store that can no longer be written fails the checks by which kube-apiserver reports on its etcd."""
    name = "/".join(rest)
    own = {check: problem() for check, problem in server.checks.items()} if kind == "readyz" else {}
    if name and name not in _CHECKS and name not in own:
        return _NOT_FOUND
    problems = {check: problem for check, problem in own.items() if problem}
    if server.store.is_broken:
        problems |= dict.fromkeys(_STORAGE, "the store can no longer be written")
    left_out = frozenset[str]() if kind == "readyz" else _READINESS
    checks = [name] if name else [c for c in (*_CHECKS, *own) if c not in left_out]
    failed = problems.keys() & checks
    if not failed and (name or "verbose" not in query):
        return Response(status=200, headers=_TEXT, body=b"ok")
    lines = [f"[-]{c} failed: {problems[c]}" if c in failed else f"[+]{c} ok" for c in checks]
    lines.append(f"{kind} check {'failed' if failed else 'passed'}")
    return Response(status=500 if failed else 200, headers=_TEXT, body=("\n".join(lines) + "\n").encode())


async def _openapi_v2(server: Core, accept: str) -> Response:
    """Answer with all kinds in one document. It is made by the worker when it is first asked for, and kept until other kinds are served."""
    wanted = "protobuf" if _OPENAPI_V2 in accept else "json"
    kept = _V2_DOCUMENTS.get(server.registry)
    if kept is None or kept[0] != server.registry.generation:
        kept = _V2_DOCUMENTS[server.registry] = (server.registry.generation, {})
    documents, served = kept[1], list(server.registry)

    def make() -> None:
        if wanted not in documents:  # it may have been made for another request meanwhile
            documents[wanted] = (openapiv2.protobuf if wanted == "protobuf" else openapiv2.text)(server.version, served)

    if wanted not in documents:
        await aside(server.worker, make)
    media = f"application/{_OPENAPI_V2}.v1.0+protobuf" if wanted == "protobuf" else "application/json"
    return Response(status=200, headers={"content-type": media}, body=documents[wanted])


async def _openapi(server: Core, rest: list[str]) -> Response:
    registry = server.registry
    if not rest:
        paths: Json = {}
        served: dict[tuple[str, str], list[str]] = {}
        for resource in registry:
            served.setdefault((resource.group, resource.version), []).append(resource.plural + repr(resource.handler.gvk))
        for group in sorted(registry.groups()):
            for version in groups.versions_of(registry, group):
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                seed = sorted(served.get((group, version), ()))
                digest = hashlib.sha256(repr((seed, registry.generation if group else 0)).encode()).hexdigest()[:32].upper()
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return Response(status=200, headers=_TEXT, body=msgspec.json.encode({"paths": paths}))
    if rest[0] == "api" and len(rest) == 2:
        group, version = "", rest[1]
    elif rest[0] == "apis" and len(rest) == 3:
        group, version = rest[1], rest[2]
    else:
        return Response(status=404)
    found = [r for r in registry if r.group == group and r.version == version]
    if not found:
        return Response(status=404)
    return await aside(server.worker, lambda: _data(server, openapi.document(group, version, found)))


def _metrics(server: Core) -> bytes:
    if server.metrics is None:
        return b""
    stored = {name: len(table.objects) for name, table in server.store.tables.items()}
    return server.metrics.text(watches=server.watches.open(), objects=stored, inflight=server.inflight)
