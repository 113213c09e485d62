"""Convert one object from one version to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from clusterwright.api.contract import NoContract, crd_name, resolve_version
from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.versions import HUB
from clusterwright.api.wire import UNREADABLE
from clusterwright.conversion import kinds
from clusterwright.conversion.pairs import Context
from clusterwright.conversion.types import STRING, Go, Map
from clusterwright.conversion.values import Unreadable

DATA_ANNOTATION: Final = "cluster.x-k8s.io/conversion-data"
CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"

Versions = Callable[[str, str], str]
"""Returns the `apiVersion` for group and kind of a provider object; raises ConversionFailed."""


class ConversionFailed(ValueError):
    """An object cannot be converted; the text names the field."""


def convertible(group: str, kind: str) -> bool:
    """Return whether this package converts versions of the kind."""
    return (group, kind) in kinds.names()


def versions_from_crds(metadata: Callable[[str], Mapping[str, Any] | None]) -> Versions:
    """Return a function that finds versions of references by the contract labels of CRDs, whose `metadata` is looked up by name."""

    def api_version(group: str, kind: str) -> str:
        name = crd_name(group, kind)
        found = metadata(name)
        if found is None:
            missing = f'failed to get CustomResourceDefinition metadata: CustomResourceDefinition.apiextensions.k8s.io "{name}" not found'
            raise ConversionFailed(f"failed to get apiVersion for kind {kind}: {missing}")
        try:
            return f"{group}/{resolve_version(found).version}"
        except NoContract as error:
            raise ConversionFailed(f"failed to get apiVersion for kind {kind}: {error}") from None

    return api_version


def convert(obj: Json, to: str, versions: Versions) -> Json:
    """Return a new object in the version `to` (`group/version`); raises ConversionFailed.

    Two old versions are converted over the hub.
    """
    if not isinstance(obj, dict):
        raise ConversionFailed("not an object")
    gvk = GroupVersionKind.of(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
    group, _, wanted = to.rpartition("/")
    if group != gvk.group or not convertible(group, gvk.kind):
        raise ConversionFailed(f'no kind "{gvk.kind}" is registered for version "{to}"')
    if wanted == gvk.version:
        raise ConversionFailed(f"conversion is not allowed between same type {gvk.api_version}, Kind={gvk.kind}")
    for version in (gvk.version, wanted):
        if version != HUB and kinds.version(group, gvk.kind, version) is None:
            raise ConversionFailed(f'no kind "{gvk.kind}" is registered for version "{group}/{version}"')
    try:
        if gvk.version != HUB:
            obj = _up(obj, gvk, versions)
        return obj if wanted == HUB else _down(obj, GroupVersionKind(group, wanted, gvk.kind), versions)
    except Unreadable as error:
        raise ConversionFailed(f"{gvk.kind} {_key(obj)}: {error}") from None
    except RecursionError:
        raise ConversionFailed(f"{gvk.kind} {_key(obj)}: it nests too deeply") from None
    except UnicodeEncodeError:
        raise ConversionFailed(f"{gvk.kind} {_key(obj)}: it holds text that is not Unicode") from None


def _key(obj: Json) -> str:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)


_STRINGS: Final = Map(STRING)


def _metadata(obj: Json) -> Json:
    """Return a copy whose labels and annotations may be changed."""
    metadata = obj.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise Unreadable("expected an object").under("metadata")
    copy = dict(metadata)
    for part in ("labels", "annotations"):
        try:
            found = _STRINGS.read(copy.get(part))
        except Unreadable as error:
            raise error.under(part).under("metadata") from None
        if found is not None:
            copy[part] = found
    return copy


def _take(metadata: Json, part: str, key: str) -> str | None:
    """Remove an annotation or label, and the map if that was the last."""
    found: str | None = metadata.get(part, {}).pop(key, None)
    if found is not None and not metadata[part]:
        del metadata[part]
    return found


def _context(metadata: Json, versions: Versions) -> Context:
    namespace = metadata.get("namespace")
    return Context(namespace if isinstance(namespace, str) else "", versions)


def _up(obj: Json, gvk: GroupVersionKind, versions: Versions) -> Json:
    version = kinds.version(gvk.group, gvk.kind, gvk.version)
    assert version is not None
    metadata = _metadata(obj)
    spoke = version.pair.spoke.read(obj)
    restored: Go | None = None
    if version.rules.annotated:
        text = _take(metadata, "annotations", DATA_ANNOTATION)
        if text is not None:
            restored = _restored(text, version.pair.hub.read)
    context = _context(metadata, versions)
    hub = version.pair.to_hub(spoke, restored, context)
    if version.rules.up is not None:
        version.rules.up(spoke, hub, restored, context)
    if version.rules.metadata_up is not None:
        version.rules.metadata_up(metadata, hub)
    return _written(GroupVersionKind(gvk.group, HUB, gvk.kind), metadata, version.pair.hub.write(hub))


def _restored(text: str, read: Callable[[Any], Go]) -> Go:
    try:
        data = msgspec.json.decode(text)
    except UNREADABLE as error:
        raise Unreadable(f"annotation {DATA_ANNOTATION} is not JSON: {error}").under("metadata.annotations") from None
    if data is not None and not isinstance(data, dict):
        raise Unreadable(f"annotation {DATA_ANNOTATION} is not an object").under("metadata.annotations")
    try:
        return read(data)
    except Unreadable as error:
        raise Unreadable(f"annotation {DATA_ANNOTATION}: {error}").under("metadata.annotations") from None


def _down(obj: Json, gvk: GroupVersionKind, versions: Versions) -> Json:
    version = kinds.version(gvk.group, gvk.kind, gvk.version)
    assert version is not None
    metadata = _metadata(obj)
    hub = version.pair.hub.read(obj)
    context = _context(metadata, versions)
    spoke = version.pair.to_spoke(hub, context)
    if version.rules.down is not None:
        version.rules.down(hub, spoke, context)
    if version.rules.metadata_down is not None:
        version.rules.metadata_down(metadata, hub)
    if version.rules.annotated:
        data = {"apiVersion": f"{gvk.group}/{HUB}", "kind": gvk.kind, **version.pair.hub.write(hub)}
        metadata["annotations"] = {**metadata.get("annotations", {}), DATA_ANNOTATION: msgspec.json.encode(data, order="sorted").decode()}
    return _written(gvk, metadata, version.pair.spoke.write(spoke))


def _written(gvk: GroupVersionKind, metadata: Json, parts: Json) -> Json:
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **parts}
