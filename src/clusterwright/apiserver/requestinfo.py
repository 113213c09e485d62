"""Parse a path and a method into Kubernetes' terms: verb, group, version, namespace, resource, name, subresource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A request for authorisation and routing. If `is_resource` is false, only `path` and `verb` are set."""

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """The path parts after the subresource."""
    watch_path: bool = False
    """Whether the path has the deprecated /watch/ form."""


def parse(method: str, path: str, *, watch: bool = False, name_selector: str = "") -> RequestInfo:
    """Parse a path. `watch`: the query asks for a watch; `name_selector`: metadata.name of the field selector, if any."""
    parts = [p for p in path.split("/") if p]
    verb = _VERBS.get(method, "")  # resources have no verbs for other methods
    plain = RequestInfo(path=path, verb=method.lower())
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return plain
    watch_path = False
    if rest[0] == "watch":
        watch_path, rest = True, rest[1:]
        if not rest:
            return plain
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        name = name_selector if verb in {"get", "delete"} else ""
        if verb == "get":
            verb = "watch" if watch or watch_path else "list"
        elif verb == "delete":
            verb = "deletecollection"
    elif watch_path:
        verb = "watch"
    return RequestInfo(
        path=path,
        verb=verb,
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
        rest=tuple(rest[3:]),
        watch_path=watch_path,
    )


def query_of(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the query as a mapping; the first of repeated parameters counts."""
    query: dict[str, str] = {}
    for key, value in pairs:
        query.setdefault(key, value)
    return query
