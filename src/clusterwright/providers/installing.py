"""Install the objects of a provider in the plane, and remove them again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.apiserver.serving.tls import write_private
from clusterwright.providers.hooks import CONFIGURATIONS, pointed
from clusterwright.providers.records import Record
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.rest import RestClient

FIELD_MANAGER: Final = "clusterwright-provider"
_KEPT: Final = frozenset({"CustomResourceDefinition", "Namespace"})
"""Kinds whose removal removes objects of users: only on request."""


class KindsTaken(Exception):
    """The release defines kinds on which controllers of the plane act; the text says what to do."""


class _Installed(msgspec.Struct, frozen=True):
    """The last installation."""

    digest: str
    objects: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ours:
    """The definitions of the plane itself, by name."""

    taken: Mapping[str, str] = field(default_factory=dict)
    """Those of kinds on which controllers of the plane act, with the remedy."""
    served: Collection[str] = ()
    """Those that the plane always serves in its own form: they are not installed."""


class Installing:
    """Installs the objects of one provider."""

    def __init__(self, folder: Path, client: RestClient, ours: Ours) -> None:
        self._path, self._client, self._ours = folder / "installed.json", client, ours

    async def install(self, record: Record, digest: str, port: int, bundle: bytes) -> None:
        """Apply all objects unless that was done before; delete those of an older release. Raises KindsTaken, ApiError."""
        for obj in record.objects:
            if _is_definition(obj) and (remedy := self._ours.taken.get(obj["metadata"]["name"])):
                raise KindsTaken(f"{obj['metadata']['name']} belongs to this plane: {remedy}")
        before = self._before()
        whole = hashlib.sha256(f"{digest} {port} ".encode() + bundle).hexdigest()
        if before.digest == whole:
            return
        objects = self._objects(record)
        for obj in objects:
            await self._client.apply(pointed(obj, port, bundle), field_manager=FIELD_MANAGER)
        names = tuple(map(_name, objects))
        for name in reversed([name for name in before.objects if name not in names and name[1] not in _KEPT]):
            await self._delete(name)
        await asyncio.to_thread(write_private, self._path, msgspec.json.encode(_Installed(whole, names)))

    async def disconnect(self, record: Record) -> None:
        """Delete the webhook configurations: writes would fail while no process answers them. Raises ApiError."""
        for obj in self._objects(record):
            if obj["kind"] in CONFIGURATIONS:
                await self._delete(_name(obj))

    async def remove(self, record: Record) -> None:
        """Delete the objects; definitions and the namespace only if that is wanted. Raises ApiError."""
        removal = record.removal
        wanted = {
            "CustomResourceDefinition": removal is not None and removal.definitions,
            "Namespace": removal is not None and removal.namespace,
        }
        current = map(_name, self._objects(record))
        for name in reversed(list(dict.fromkeys((*self._before().objects, *current)))):
            if wanted.get(name[1], True):
                await self._delete(name)

    def _objects(self, record: Record) -> list[Json]:
        """Return the objects of a record that are installed, each in its namespace."""
        own = self._ours.served
        return [_placed(obj, record.namespace) for obj in record.objects if not (_is_definition(obj) and obj["metadata"]["name"] in own)]

    async def _delete(self, name: Sequence[str]) -> None:
        api_version, kind, namespace, own = name
        with suppress(NotFound):
            await self._client.delete(GroupVersionKind.of(api_version, kind), ObjectKey(namespace, own))

    def _before(self) -> _Installed:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Installed)
        except (OSError, msgspec.MsgspecError):
            return _Installed("")


_CLUSTER_WIDE: Final = frozenset(
    {
        "Namespace",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "PriorityClass",
        "StorageClass",
        "APIService",
    }
)


def _is_definition(obj: Json) -> bool:
    return bool(obj["kind"] == "CustomResourceDefinition")


def _placed(obj: Json, namespace: str) -> Json:
    """Return an object with the provider's namespace if it needs one and names none, as `kubectl apply -n` does."""
    group = GroupVersionKind.of(obj["apiVersion"], obj["kind"]).group
    is_ours_to_place = "." not in group or group.endswith(".k8s.io")
    if obj["metadata"].get("namespace") or obj["kind"] in _CLUSTER_WIDE or not is_ours_to_place or "cluster.x-k8s.io" in group:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _name(obj: Json) -> tuple[str, str, str, str]:
    return str(obj["apiVersion"]), str(obj["kind"]), str(obj["metadata"].get("namespace") or ""), str(obj["metadata"]["name"])
