"""The paths of OpenAPI documents: every operation of a resource, with the ids that generated clients use.

One row of `OPERATIONS` is one method at one kind of path. Operations that a resource does not offer are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.apiserver.encoding.negotiation import JSON, OFFERED, PROTOBUF, YAML
from clusterwright.apiserver.interfaces import Resource

Reference = Callable[[str], Json]
"""Add the schema of a built-in type to the document and return a reference to it."""

_LIST: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch",
    "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_STATUS, _OPTIONS = "meta.v1.Status", "meta.v1.DeleteOptions"
_COLLECTION, _ONE, _EVERYWHERE = "collection", "one", "everywhere"
_WHOLE: Final = frozenset({_COLLECTION, _ONE, _EVERYWHERE})


@dataclass(frozen=True, slots=True)
class Operation:
    """`where`: the kind of path, or the name of a subresource. `shape`: the type sent or answered, if it is not the object."""

    where: str
    method: str
    verb: str
    word: str
    query: tuple[str, ...] = ()
    codes: tuple[int, ...] = (200,)
    shape: str = ""
    answer: str = ""
    body: str = ""


OPERATIONS: Final = (
    Operation(_EVERYWHERE, "get", "list", "list", _LIST, answer="list"),
    Operation(_COLLECTION, "get", "list", "list", _LIST, answer="list"),
    Operation(_COLLECTION, "post", "create", "create", _WRITE, (200, 201, 202), body="object"),
    Operation(_COLLECTION, "delete", "deletecollection", "delete", (*_LIST[1:-1], *_DELETE), answer=_STATUS, body=_OPTIONS),
    Operation(_ONE, "get", "get", "read"),
    Operation(_ONE, "put", "update", "replace", _WRITE, (200, 201), body="object"),
    Operation(_ONE, "delete", "delete", "delete", _DELETE, (200, 202), answer=_STATUS, body=_OPTIONS),
    Operation(_ONE, "patch", "patch", "patch", (*_WRITE, "force"), (200, 201), body="patch"),
    *(
        row
        for where, shape in (("status", ""), ("scale", "autoscaling.v1.Scale"))
        for row in (
            Operation(where, "get", "get", "read", shape=shape),
            Operation(where, "put", "update", "replace", _WRITE, (200, 201), shape, body="object"),
            Operation(where, "patch", "patch", "patch", (*_WRITE, "force"), (200, 201), shape, body="patch"),
        )
    ),
    Operation("finalize", "put", "update", "replace", _WRITE, (200, 201), body="object"),
    Operation("approval", "get", "get", "read"),
    Operation("approval", "put", "update", "replace", _WRITE, (200, 201), body="object"),
    Operation("approval", "patch", "patch", "patch", (*_WRITE, "force"), (200, 201), body="patch"),
    Operation("binding", "post", "create", "create", _WRITE, (200, 201, 202), "core.v1.Binding", body="object"),
    Operation("eviction", "post", "create", "create", _WRITE, (200, 201, 202), "policy.v1.Eviction", body="object"),
    Operation("token", "post", "create", "create", _WRITE, (200, 201, 202), "authentication.v1.TokenRequest", body="object"),
)
_PATCHES: Final = (
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
)  # fmt: skip

_PARAMETERS: Final[dict[str, tuple[str, str]]] = {
    # clients compare these two texts with those of a real cluster
    "fieldValidation": (
        "string",
        (
            "fieldValidation instructs the server on how to handle objects in the request (POST/PUT/PATCH) containing unknown or duplicate "
            "fields. Valid values are: - Ignore: This will ignore any unknown fields that are silently dropped "
            "from the object, and will ignore "
            "all but the last duplicate field that the decoder encounters. This is the default behavior prior to "
            "v1.23. - Warn: This will send a "
            "warning via the standard warning response header for each unknown field that is dropped from the "
            "object, and for each duplicate "
            "field that is encountered. The request will still succeed if there are no other errors, and will only persist the last of any "
            "duplicate fields. This is the default in v1.23+ - Strict: This will fail the request with a "
            "BadRequest error if any unknown fields "
            "would be dropped from the object, or if any duplicate fields are present. The error returned from the server will contain all "
            "unknown and duplicate fields encountered."
        ),
    ),
    "force": (
        "boolean",
        (
            'Force is going to "force" Apply requests. It means user will re-acquire conflicting fields owned by '
            "other people. Force flag must be "
            "unset for non-apply patch requests."
        ),
    ),
    "dryRun": ("string", "All: run every stage of the request, but store nothing."),
    "fieldManager": ("string", "Who makes the change; the program in User-Agent if not given."),
    "labelSelector": ("string", "Only objects with these labels."),
    "fieldSelector": ("string", "Only objects with these fields."),
    "limit": ("integer", "At most so many objects; the rest is behind `continue`."),
    "continue": ("string", "Where the last page ended."),
    "watch": ("boolean", "Changes as they happen, instead of a list."),
    "allowWatchBookmarks": ("boolean", "Have a watch tell now and then how far it has come."),
    "sendInitialEvents": ("boolean", "Have a watch begin with what is there."),
    "resourceVersion": ("string", "The state that is asked for, or after which a watch begins."),
    "resourceVersionMatch": ("string", "Exact, or NotOlderThan: how `resourceVersion` is meant."),
    "timeoutSeconds": ("integer", "How long a list or watch may take."),
    "pretty": ("string", "true: the answer is indented."),
    "gracePeriodSeconds": ("integer", "Seconds before the object is gone."),
    "orphanDependents": ("boolean", "Whether dependents stay; `propagationPolicy` says more."),
    "propagationPolicy": ("string", "Orphan, Background or Foreground: what becomes of dependents."),
}


def root(group: str, version: str, reference: Reference, *, custom: bool) -> Json:
    """Return the discovery path of a group version; nothing if it only has `custom` resources."""
    if custom:
        return {}
    word = _group_word(group)
    content = {kind: {"schema": reference("meta.v1.APIResourceList")} for kind in sorted(OFFERED)}
    get = {
        "tags": [f"{word}_{version}"],
        "description": "what can be done to which resources",
        "operationId": f"get{_capital(word)}{_capital(version)}APIResources",
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
    }
    return {f"/apis/{group}/{version}/" if group else f"/api/{version}/": {"get": get}}


def paths(resource: Resource, own: Json, listed: Json, reference: Reference) -> Json:
    """Return the paths of a resource. `own`, `listed`: references to the schemas of its kind and of its list."""
    shapes = _Shapes(own, listed, reference)
    found: Json = {}
    for row in OPERATIONS:
        if _is_offered(row, resource):
            told = _of_custom(row) if resource.custom else row
            found.setdefault(_path(row, resource), _path_level(row, resource))[row.method] = _operation(told, resource, shapes)
    return found


def _of_custom(row: Operation) -> Operation:
    """Adapt an operation to custom resources, which kube-apiserver describes a little differently."""
    match row.verb:
        case "get":
            return replace(row, query=("resourceVersion",))
        case "deletecollection":
            return replace(row, query=_LIST, body="")
        case "patch":
            return replace(row, codes=(200,))
    return row


@dataclass(frozen=True, slots=True)
class _Shapes:
    own: Json
    listed: Json
    reference: Reference

    def of(self, row: Operation, what: str) -> Json:
        if what == "list":
            return self.listed
        if what == "patch":
            return {"type": "object", "description": "A patch, in the form that its media type says."}
        name = what if what not in ("", "object") else row.shape
        return self.reference(name) if name else self.own


def _is_offered(row: Operation, resource: Resource) -> bool:
    match row.where:
        case "everywhere":
            return resource.namespaced and row.verb in resource.verbs
        case "collection" | "one":
            return row.verb in resource.verbs
        case "status":
            return resource.status
        case "scale":
            return resource.scale is not None
    return row.where in resource.subresources


def _path(row: Operation, resource: Resource) -> str:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced and row.where != _EVERYWHERE:
        base += "/namespaces/{namespace}"
    base += f"/{resource.plural}"
    if row.where in (_COLLECTION, _EVERYWHERE):
        return base
    return f"{base}/{{name}}" if row.where == _ONE else f"{base}/{{name}}/{row.where}"


def _path_level(row: Operation, resource: Resource) -> Json:
    there = [_in_path("name", f"name of the {resource.kind}")] if row.where not in (_COLLECTION, _EVERYWHERE) else []
    if resource.namespaced and row.where != _EVERYWHERE:
        there.append(_in_path("namespace", "the namespace of the objects"))
    return {"parameters": [*there, _in_query("pretty")]}


def _in_path(name: str, description: str) -> Json:
    return {"name": name, "in": "path", "description": description, "required": True, "schema": {"type": "string", "uniqueItems": True}}


def _in_query(name: str) -> Json:
    kind, description = _PARAMETERS[name]
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _operation(row: Operation, resource: Resource, shapes: _Shapes) -> Json:
    answer = shapes.of(row, "" if row.verb == "delete" and resource.returns_deleted else row.answer)
    media = [kind for kind in OFFERED if kind != PROTOBUF or not resource.custom]
    if row.verb == "list" and not resource.custom:
        media += [f"{JSON};stream=watch", f"{PROTOBUF};stream=watch"]
    content = {kind: {"schema": answer} for kind in sorted(media)}
    out: Json = {
        "tags": [f"{_group_word(resource.group)}_{resource.version}"],
        "description": f"{row.word} {resource.kind}"
        if row.where in (_ONE, _COLLECTION, _EVERYWHERE)
        else f"{row.where} of {resource.kind}",
        "operationId": operation_id(row, resource),
        **({"parameters": [_in_query(name) for name in sorted(row.query)]} if row.query else {}),
        "responses": {
            **{str(code): {"description": _CODES[code], "content": content} for code in row.codes},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(row.verb, row.verb),
        "x-kubernetes-group-version-kind": _kind(row, resource),
    }
    if row.body:
        out["requestBody"] = {"content": {kind: {"schema": shapes.of(row, row.body)} for kind in _bodies(row, resource)}}
        if row.body != _OPTIONS:
            out["requestBody"]["required"] = True
    return out


_CODES: Final = {200: "OK", 201: "Created", 202: "Accepted"}


def _bodies(row: Operation, resource: Resource) -> Sequence[str]:
    if row.body == "patch":
        return _PATCHES[:-1] if resource.custom else _PATCHES
    return (JSON, YAML) if resource.custom else ("*/*",)


def _kind(row: Operation, resource: Resource) -> Json:
    if row.shape and not resource.custom:
        group, version, kind = row.shape.split(".")
        return {"group": {"core": "", "authentication": "authentication.k8s.io"}.get(group, group), "version": version, "kind": kind}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def operation_id(row: Operation, resource: Resource) -> str:
    """Return an operation id in kube-apiserver's form: `listAppsV1NamespacedDeployment`, `replaceCoreV1NodeStatus`."""
    words = [row.word, _capital(_group_word(resource.group)), _capital(resource.version)]
    if row.verb == "deletecollection":
        words.append("Collection")
    if resource.namespaced and row.where != _EVERYWHERE:
        words.append("Namespaced")
    words.append(resource.kind)
    if row.where == _EVERYWHERE:
        words.append("ForAllNamespaces")
    elif row.where not in _WHOLE:
        words.append(_capital(row.where))
    return "".join(words)


def _group_word(group: str) -> str:
    """Return a group for ids: `rbacAuthorization` for `rbac.authorization.k8s.io`, `core` for the core group."""
    return re.sub(r"\W+(\w?)", lambda found: found[1].upper(), group.removesuffix(".k8s.io")) or "core"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
