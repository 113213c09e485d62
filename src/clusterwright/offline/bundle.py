"""Bundles: objects as `kubectl get -o yaml` gives them, with at most one Observation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec
import yaml

from clusterwright import conversion
from clusterwright.api import yamlreader
from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.versions import HUB
from clusterwright.offline.observation import Observation
from clusterwright.runtime.clock import Clock, SystemClock


class BadBundle(ValueError):
    """The bundle cannot be understood; the message names the document and its mistake."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Whole objects and the Observation that was recorded with them."""

    objects: tuple[Json, ...]
    observation: Observation
    clock: Clock = field(default_factory=SystemClock, compare=False, repr=False)
    """Gives the time if the Observation does not."""

    def moment(self) -> datetime:
        """Return the time of the bundle: the one in the Observation, else now."""
        return self.observation.now or self.clock.now().replace(microsecond=0)


def parse(text: str, *, clock: Clock | None = None) -> Bundle:
    """Read a multi-document YAML (or JSON) text; `List` documents are taken apart. `clock`: for a text that names no time."""
    try:
        documents = yamlreader.load_all(text, trusted=True)
    except yaml.YAMLError as error:
        raise BadBundle(f"not YAML: {error}") from error
    return assemble((d for d in documents if d is not None), clock=clock)


def assemble(documents: Iterable[Any], *, clock: Clock | None = None, as_they_are: bool = False) -> Bundle:
    """Sort documents into objects and the Observation. `clock`: as for `parse`; the machine's, if none is given.

    `as_they_are`: keep values whose shape no reader expects, for a pass that must fail on them as it would in a cluster.
    """
    objects: list[Json] = []
    observation: Observation | None = None
    for index, document in enumerate(_flatten(documents)):
        if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
            raise BadBundle(f"document {index}: not an object with a kind")
        if document["kind"] == "Observation":
            if observation is not None:
                raise BadBundle(f"document {index}: a second Observation; at most one is allowed")
            try:
                observation = msgspec.convert(dict(document), Observation)
            except msgspec.ValidationError as error:
                raise BadBundle(f"document {index}: Observation: {error}") from error
            continue
        if not isinstance(document.get("apiVersion"), str):
            raise BadBundle(f"document {index}: {document['kind']} without apiVersion")
        metadata = document.get("metadata")
        if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
            raise BadBundle(f"document {index}: {document['kind']} without metadata.name")
        try:
            msgspec.json.encode(document)
        except (UnicodeEncodeError, TypeError) as error:
            raise BadBundle(f"document {index}: {document['kind']} holds what JSON cannot: {error}") from error
        objects.append(_newest(index, dict(document) if as_they_are else shaped(document)))
    return Bundle(tuple(objects), observation or Observation(), clock or SystemClock())


_MAPS: Final = (("metadata", "labels"), ("metadata", "annotations"), ("spec",), ("status",), ("involvedObject",), ("regarding",))
_LISTS: Final[tuple[tuple[tuple[str, ...], type], ...]] = (
    (("metadata", "ownerReferences"), Mapping), (("metadata", "finalizers"), str), (("status", "conditions"), Mapping),
    (("status", "v1beta2", "conditions"), Mapping), (("status", "deprecated", "v1beta1", "conditions"), Mapping),
)  # fmt: skip
"""The fields that every reader expects to be lists, with the type of their items."""


def shaped(document: Mapping[str, Any]) -> Json:
    """Return a copy of an object without values whose shape no reader expects: foreign providers may give them any meaning."""
    made = dict(document)
    for *outer, last in _MAPS:
        holder = _opened(made, outer)
        if holder is not None and last in holder and not isinstance(holder[last], Mapping):
            del holder[last]
    for (*outer, last), kind in _LISTS:
        holder = _opened(made, outer)
        if holder is not None and last in holder:
            items = holder[last]
            holder[last] = [item for item in items if isinstance(item, kind)] if isinstance(items, list) else []
    return made


def _opened(json: Json, path: Iterable[str]) -> Json | None:
    """Return the map at a path after copying each map on the way, or None if there is none."""
    for step in path:
        inner = json.get(step)
        if not isinstance(inner, Mapping):
            return None
        json[step] = json = dict(inner)
    return json


def _newest(index: int, document: Json) -> Json:
    """Convert a document of a core kind from an old version to the version that controllers read."""
    gvk = GroupVersionKind.of(document["apiVersion"], document["kind"])
    if gvk.version == HUB or gvk.group not in _NO_PROVIDERS or not conversion.convertible(gvk.group, gvk.kind):
        return document
    try:
        return conversion.convert(document, f"{gvk.group}/{HUB}", _no_look_up)
    except conversion.ConversionFailed as error:
        raise BadBundle(f"document {index}: {error}") from error


_NO_PROVIDERS: Final = frozenset(f"{part}cluster.x-k8s.io" for part in ("", "addons.", "ipam.", "runtime."))


def _no_look_up(group: str, kind: str) -> str:
    raise AssertionError("nothing is looked up on the way to the newest version")


def _flatten(documents: Iterable[Any]) -> Iterable[Any]:
    for document in documents:
        if isinstance(document, Mapping) and isinstance(document.get("items"), list) and str(document.get("kind", "")).endswith("List"):
            yield from document["items"]
        elif isinstance(document, Mapping) and isinstance(document.get("objects"), list) and "kind" not in document:
            yield from document["objects"]  # a recorded world: {"subject", "truth", "objects"}
        else:
            yield document
