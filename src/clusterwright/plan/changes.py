"""Apply a change to a replica, as kubectl would: the API server judges it, with defaulting, conversion, admission and field ownership."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wire import Request, Response, Transport
from clusterwright.offline.ownership import name_of
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.transports import Around

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_STEP: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")
MOST_INDEX: Final = 10_000


class BadChange(ValueError):
    """A change cannot be understood; the text says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class Apply:
    """A manifest, applied as `kubectl apply` does. `server_side`: as `kubectl apply --server-side` does."""

    object: Json
    server_side: bool = False

    @property
    def name(self) -> str:
        """The object's name."""
        return _name_of(self.object)


@dataclass(frozen=True, slots=True)
class Edit:
    """Values to set in an existing object, by path."""

    kind: GroupVersionKind
    key: ObjectKey
    values: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """The object's name."""
        return name_of(self.kind.kind, *self.key)


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of an object."""

    kind: GroupVersionKind
    key: ObjectKey

    @property
    def name(self) -> str:
        """The object's name."""
        return name_of(self.kind.kind, *self.key)


Change = Apply | Edit | Delete


@dataclass(frozen=True, slots=True)
class Refused:
    """A change that the API server does not accept."""

    object: str
    message: str
    causes: tuple[Json, ...] = ()

    def to_json(self) -> Json:
        """Return the form of the schema."""
        return {"object": self.object, "message": self.message, "causes": list(self.causes)}


class Strict(Around):
    """A transport that asks for strict field validation, as kubectl does: an unknown field is refused."""

    async def send(self, request: Request) -> Response:
        """Send a request."""
        if request.method in {"POST", "PUT", "PATCH"}:
            request = replace(request, query=(*request.query, ("fieldValidation", "Strict")))
        return await self._inner.send(request)


async def apply(transport: Transport, changes: Sequence[Change]) -> list[Refused]:
    """Apply changes in their order; return those that were refused. The others are made."""
    client = RestClient(Strict(transport), user_agent="kubectl")
    refused = []
    for change in changes:
        try:
            match change:
                case Apply(server_side=True):
                    await client.apply(_bare(change.object), field_manager="kubectl", force=False)
                case Apply():
                    await _apply(client, _bare(change.object))
                case Edit():
                    await _edit(client, change)
                case Delete():
                    await client.delete(change.kind, change.key)
        except ApiError as error:
            refused.append(_refusal(change.name, error))
        except BadChange as error:
            refused.append(Refused(change.name, str(error)))
    return refused


def _refusal(name: str, error: ApiError) -> Refused:
    details = error.status.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    return Refused(name, str(error), tuple(dict(c) for c in causes or () if isinstance(c, Mapping)))


async def _apply(client: RestClient, wanted: Json) -> None:
    obj = Unstructured(wanted)
    if not (await client.resources.of(obj.gvk)).namespaced:
        wanted["metadata"].pop("namespace", None)
        obj = Unstructured(wanted)
    note = msgspec.json.encode(wanted, order="sorted").decode() + "\n"
    annotated = copy.deepcopy(wanted)
    annotated["metadata"].setdefault("annotations", {})[LAST_APPLIED] = note
    present = await client.find(obj.gvk, obj.key)
    if present is None:
        await client.create(annotated, field_manager="kubectl-client-side-apply")
        return
    before = present.metadata.annotations.get(LAST_APPLIED)
    try:
        last = msgspec.json.decode(before) if before else {}
    except msgspec.DecodeError:
        last = {}
    patch = three_way(last, annotated, dict(present.json))
    if patch:
        await client.patch(obj.gvk, obj.key, patch, field_manager="kubectl-client-side-apply")


def three_way(last: Any, wanted: Mapping[str, Any], present: Mapping[str, Any]) -> Json:
    """Return the JSON merge patch of `kubectl apply`: what is wanted and differs, and removals of what was applied last."""
    patch: Json = {}
    for key, value in wanted.items():
        there = present.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            before = last.get(key) if isinstance(last, Mapping) else None
            if inner := three_way(before if isinstance(before, Mapping) else {}, value, there):
                patch[key] = inner
        elif key not in present or there != value:
            patch[key] = value
    for key in last if isinstance(last, Mapping) else ():
        if key not in wanted and key in present:
            patch[key] = None
    return patch


def _bare(obj: Json) -> Json:
    """Return a manifest without what only servers write."""
    metadata = {
        k: v for k, v in obj["metadata"].items() if k not in {"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"}
    }
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = annotations
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}


async def _edit(client: RestClient, change: Edit) -> None:
    present = await client.get(change.kind, change.key)
    wanted = copy.deepcopy(dict(present.json))
    for path, value in change.values:
        put(wanted, path, value)
    await client.update(wanted)


def put(obj: Json, path: str, value: Any) -> None:
    """Set a value at a path such as `spec.list[0].x`, `spec.list[name=a].x` or `metadata.labels["a.b/c"]`; None removes it.

    Raises BadChange.
    """
    steps = _steps(path)
    here: Any = obj
    for index, step in enumerate(steps[:-1]):
        here = _entered(here, step, steps[index + 1], path)
    _set(here, steps[-1], value, path)


def _steps(path: str) -> list[str]:
    text = path.removeprefix(".")
    steps = _STEP.findall(text)
    if not steps or not _is_whole(text, steps):
        raise BadChange(f"--set {path}: a path such as spec.replicas or spec.list[0].name is expected")
    return steps


def _is_whole(text: str, steps: Sequence[str]) -> bool:
    rest = text
    for step in steps:
        rest = rest.removeprefix(".")
        if not rest.startswith(step):
            return False
        rest = rest.removeprefix(step)
    return not rest


def _entered(here: Any, step: str, following: str, path: str) -> Any:
    if step.startswith("["):
        found = _item(here, step, path)
        return here[found] if isinstance(found, int | str) else found
    if not isinstance(here, dict):
        raise BadChange(f"--set {path}: {step} is inside a value that has no fields")
    if here.get(step) is None:
        here[step] = [] if following.startswith("[") and not following.startswith('["') else {}
    return here[step]


def _item(here: Any, step: str, path: str) -> int | str:
    inner = step[1:-1]
    if inner.startswith('"') and inner.endswith('"') and len(inner) > 1:
        if not isinstance(here, dict):
            raise BadChange(f"--set {path}: {step} names a key, but the value has none")
        here.setdefault(inner[1:-1], {})
        return inner[1:-1]
    if not isinstance(here, list):
        raise BadChange(f"--set {path}: {step} selects an item, but the value is not a list")
    if inner.isdecimal():
        if int(inner) > len(here) or int(inner) > MOST_INDEX:
            raise BadChange(f"--set {path}: {step} is behind the end of the list, which has {len(here)} items")
        if int(inner) == len(here):
            here.append({})
        return int(inner)
    key, equal, wanted = inner.partition("=")
    for index, item in enumerate(here):
        if equal and isinstance(item, dict) and str(item.get(key)) == wanted:
            return index
    if not equal:
        raise BadChange(f'--set {path}: {step} is neither a number, nor field=value, nor "key"')
    here.append({key: wanted})
    return len(here) - 1


def _set(here: Any, step: str, value: Any, path: str) -> None:
    key: int | str = _item(here, step, path) if step.startswith("[") else step
    if isinstance(key, str) and not isinstance(here, dict):
        raise BadChange(f"--set {path}: {step} is inside a value that has no fields")
    if value is None:
        if isinstance(key, int):
            here.pop(key)
        else:
            here.pop(key, None)
    else:
        here[key] = value


def parse_set(text: str, load: Any) -> tuple[str, Any]:
    """Return path and value of `path=value`; the value is YAML. Raises BadChange. `load` parses YAML."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth == 0:
            return text[:index], load(text[index + 1 :])
    raise BadChange(f"--set {text}: path=value is expected")


def checked(documents: Iterable[Any], source: str, namespace: str) -> list[Apply]:
    """Return the manifests of a file, each with a namespace. Raises BadChange for a document that is not an object."""
    found = []
    for index, document in enumerate(_flat(documents)):
        where = f"{source}: document {index + 1}"
        if not isinstance(document, Mapping):
            raise BadChange(f"{where}: an object with apiVersion, kind and metadata.name is expected")
        for field in ("apiVersion", "kind"):
            if not isinstance(document.get(field), str) or not document[field]:
                raise BadChange(f"{where}: {field} is missing")
        metadata = document.get("metadata")
        if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
            raise BadChange(f"{where}: {document['kind']} without metadata.name")
        found.append(Apply({**document, "metadata": {"namespace": namespace, **metadata}}))
    return found


def _flat(documents: Iterable[Any]) -> Iterable[Any]:
    for document in documents:
        if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
            yield from document["items"]
        elif document is not None:
            yield document


def _name_of(obj: Mapping[str, Any]) -> str:
    one = Unstructured(obj)
    return name_of(one.kind, *one.key)
