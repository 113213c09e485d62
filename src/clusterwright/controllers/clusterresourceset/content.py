"""The content of a ConfigMap or Secret: objects, in the order of application, and a hash over all of it. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import Json
from clusterwright.golang.yaml import BadYaml, to_json

_FIRST: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "LimitRange",
    "Pod",
    "ReplicaSet",
    "Endpoint",
)
"""Kinds that others need; they are created first, in this order."""
_RANK: Final = {kind: rank for rank, kind in enumerate(_FIRST)}
_SEPARATOR: Final = re.compile(r"(?m)^---[ \t]*\r?$")
_LOOKED_AT: Final = 32
"""How many bytes are searched for the start of a list."""


class BadContent(ValueError):
    """The resource holds something that cannot be applied; the text says what, and never quotes a Secret."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a resource."""

    objects: tuple[Json, ...]
    hash: str


def content_of(resource: ConfigMap | Secret) -> Content:
    """Return the objects of a resource; raises BadContent. Values are in the order of their keys; binaryData is ignored."""
    data: Mapping[str, str | bytes] = resource.data
    if not data:
        raise BadContent(f"failed to get data field from resource {resource.key}")
    values = [_bytes(value) for _, value in sorted(data.items(), key=lambda item: item[0].encode())]
    objects = tuple(obj for value in values for obj in _by_need(_objects(value)))
    return Content(objects, "sha256:" + hashlib.sha256(b"".join(values)).hexdigest())


def _bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _by_need(objects: Sequence[Json]) -> list[Json]:
    return sorted(objects, key=lambda o: _RANK.get(str(o.get("kind")), len(_FIRST)))


def _objects(value: bytes) -> list[Json]:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise BadContent("failed converting data to unstructured objects: the text is not UTF-8") from None
    if value[:_LOOKED_AT].lstrip().startswith(b"["):
        return list(_of_list(text))
    return list(_of_stream(text))


def _of_list(text: str) -> Iterator[Json]:
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        raise BadContent("failed converting data to unstructured objects: the text begins like a JSON list and is none") from None
    for n, item in enumerate(items, start=1):
        yield _checked(item, f"{ordinal(n)} item")


def _of_stream(text: str) -> Iterator[Json]:
    for n, document in enumerate(_SEPARATOR.split(text), start=1):
        try:
            found = to_json(document)
        except BadYaml:
            # the parser's own words quote the text, which may be a Secret's
            raise _bad(f"{ordinal(n)} yaml document", "it is not YAML that JSON can say") from None
        if found is not None and found != {}:
            yield _checked(found, f"{ordinal(n)} yaml document")


def _checked(found: Any, place: str) -> Json:
    """Return a decoded value if it is an object; raises BadContent."""
    if not isinstance(found, dict):
        raise _bad(place, "it is not an object")
    return found


def flaw_of(obj: Json) -> str:
    """Return why an object cannot be sent to any server; empty if it can be."""
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            return f"{field} is missing"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return "metadata is missing"
    wrong = (f for f in ("name", "namespace", "generateName") if not isinstance(metadata.get(f) or "", str))
    return next((f"metadata.{field} is not a string" for field in wrong), "")


def _bad(place: str, why: str) -> BadContent:
    return BadContent(f"failed converting data to unstructured objects: failed to unmarshal the {place}: {why}")


def ordinal(n: int) -> str:
    """Return `1st`, `2nd` and so on."""
    suffix = "th" if n % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"
