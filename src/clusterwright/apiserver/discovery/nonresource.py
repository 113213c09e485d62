"""Answer requests to paths that are not resources: discovery, version, health, metrics, OpenAPI."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth.tokens import AUDIENCE
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.discovery import groups, openapi, openapiv2
from clusterwright.apiserver.effort import in_worker
from clusterwright.apiserver.encoding import rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN, Form, accepted
from clusterwright.apiserver.registry import Served
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
R = TypeVar("R")
_NOT_FOUND: Final = Response(status=404, headers=_TEXT, body=b"404 page not found\n")


async def answer(server: Core, request: Request, info: RequestInfo, query: Mapping[str, str]) -> Response:
    """Answer a request to a path that is not a resource. Raises StatusError."""
    parts = [p for p in request.path.split("/") if p]
    head = parts[0] if parts else ""
    if head in {"healthz", "livez", "readyz"}:
        return _health(server, head, parts[1:], query)
    known = head in {"", "api", "apis", "version", "metrics", "openapi", "openid", ".well-known"}
    if known and parts != ["apis"] and (request.method != "GET" if head in _ROUTED else request.method not in {"GET", "HEAD"}):
        if head == "apis" and parts[1] not in server.registry.served():
            return _NOT_FOUND
        raise generic(405, "", "", "", "")
    form = PLAIN
    if head in {"api", "apis"}:
        root = len(parts) == 1
        form = accepted(request.headers.get("accept", ""), custom=False, discovery=root)
        return await _discovery(server, parts, form)
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
    documents = server.registry.documents
    found: list[str] | None = documents.get("paths")
    if found is None:
        found = documents["paths"] = _made_paths(server.registry.served())
    return found


def _made_paths(served: Served) -> list[str]:
    found = ["/api", "/api/v1", "/apis", "/apis/"]
    for group in sorted(filter(None, served)):
        found.append(f"/apis/{group}")
        found.extend(f"/apis/{group}/{v}" for v in groups.versions_of(served, group))
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


async def _discovery(server: Core, parts: list[str], form: Form) -> Response:
    """Answer with a discovery document. The worker builds it on first use, and it is cached until the served kinds change."""
    served = server.registry.served()
    found = await _document(server, ("/".join(parts), form), lambda: _discovered(served, parts, form))
    if found is not None:
        return found
    if parts[0] == "api" or any(not r.custom for version in served.get(parts[1], {}).values() for r in version):
        raise generic(404, "", "", "", "")
    return _NOT_FOUND


def _discovered(served: Served, parts: list[str], form: Form) -> Response | None:
    value: Json | None
    if parts == ["api"]:
        value = groups.aggregated(served, core=True, version=form.version) if form.render else groups.api_versions()
    elif parts == ["apis"]:
        value = groups.aggregated(served, core=False, version=form.version) if form.render else groups.group_list(served)
    elif parts[0] == "api":
        value = groups.resource_list(served, "", parts[1])
    elif len(parts) == 2:
        value = groups.api_group(served, parts[1])
    else:
        value = groups.resource_list(served, parts[1], parts[2])
    return None if value is None else rendering.write(200, value, form)


async def _document(server: Core, key: Hashable, make: Callable[[], R]) -> R:
    """Return a document about the served kinds.

    The worker builds it, because there may be many kinds; it is cached while they stay the same.
    """
    documents = server.registry.documents
    if key not in documents:
        made = await in_worker(server.worker, make)
        if made is None:
            return made
        documents[key] = made
    return cast(R, documents[key])


def _health(server: Core, kind: str, rest: list[str], query: Mapping[str, str]) -> Response:
    """Answer a probe. A store that is no longer writable fails the checks with which kube-apiserver reports on its etcd."""
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
    """Answer with all kinds in one document."""
    is_protobuf, resources = _OPENAPI_V2 in accept, list(server.registry)
    write = openapiv2.protobuf if is_protobuf else openapiv2.text
    media = f"application/{_OPENAPI_V2}.v1.0+protobuf" if is_protobuf else "application/json"
    body = await _document(server, ("openapi/v2", is_protobuf, server.version), lambda: write(server.version, resources))
    return Response(status=200, headers={"content-type": media}, body=body)


async def _openapi(server: Core, rest: list[str]) -> Response:
    served, generation = server.registry.served(), server.registry.generation
    if not rest:
        body = await _document(server, ("openapi/v3", generation), lambda: _openapi_index(served, generation))
        return Response(status=200, headers=_TEXT, body=body)
    if rest[0] == "api" and len(rest) == 2:
        group, version = "", rest[1]
    elif rest[0] == "apis" and len(rest) == 3:
        group, version = rest[1], rest[2]
    else:
        return Response(status=404)
    found = served.get(group, {}).get(version)
    if not found:
        return Response(status=404)
    return await in_worker(server.worker, lambda: _data(server, openapi.document(group, version, found)))


def _openapi_index(served: Served, generation: int) -> bytes:
    """Return the list of the documents of OpenAPI v3, with hashes that change when the kinds do."""
    paths: Json = {}
    for group in sorted(served):
        for version in groups.versions_of(served, group):
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            seed = sorted(resource.plural + repr(resource.handler.gvk) for resource in served[group][version])
            digest = hashlib.sha256(repr((seed, generation if group else 0)).encode()).hexdigest()[:32].upper()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return msgspec.json.encode({"paths": paths})


def _metrics(server: Core) -> bytes:
    if server.metrics is None:
        return b""
    stored = {name: len(table.objects) for name, table in server.store.tables.items()}
    return server.metrics.text(watches=server.watches.open(), objects=stored, inflight=server.inflight)
