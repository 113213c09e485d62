"""An offline world: embedded API servers that hold exactly a bundle's objects, at the time that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property, partial
from random import Random
from typing import Any, Final

from clusterwright.api.contract import pluralize
from clusterwright.api.copying import replace
from clusterwright.api.crds import crd
from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, Unstructured
from clusterwright.api.scheme import CUSTOM, ModelledResource
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.registry import ResourceKey, index
from clusterwright.apiserver.schema.kindschema import KindSchema
from clusterwright.apiserver.schema.mergetypes import MergeType
from clusterwright.apiserver.schema.permissive import permissive_resource
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.controllers.wiring import Dependencies
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.extensions import CannedExtensions, runtime_client
from clusterwright.offline.observation import Faults, faults
from clusterwright.offline.observed import Journal, ObservedClient
from clusterwright.offline.workload import ObservedWorkloadClusters
from clusterwright.offline.zeros import without_silent_zeros
from clusterwright.runtime.client import Client
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.reconcile import Mapper
from clusterwright.runtime.reports import Reports
from clusterwright.runtime.rest import RestClient


class _CoreSchema(KindSchema):
    """The merge rules of a core kind, built on the first write."""

    def __init__(self, resource: ModelledResource) -> None:
        super().__init__()
        self._resource = resource

    @cached_property
    def merge_type(self) -> MergeType:
        source = crd(self._resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        return KindSchema(node=Node(source)).merge_type


def _merged_as(resource: ModelledResource) -> KindSchema | None:
    """Return the merge rules of a kind. Core kinds merge as in the API server; kinds of providers have no known rules."""
    return _CoreSchema(resource) if resource.group == CORE_GROUP else None


@cache
def _lenient_resources() -> Mapping[ResourceKey, Resource]:
    """Return every known kind, served without validation, because a bundle is taken as it is."""
    made = [permissive_resource(r.gvk, plural=r.plural, namespaced=r.namespaced, status=r.status, schema=_merged_as(r)) for r in CUSTOM]
    built_in = (
        replace(
            permissive_resource(r.gvk, plural=r.plural, namespaced=r.namespaced, status=r.status), subresources=r.subresources, custom=False
        )
        for r in RESOURCES
    )
    return index(replace(r, unconditional_update=True) for r in (*made, *built_in))


class StandingClock:
    """A clock that stands at one moment."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the moment."""
        return self._now

    def monotonic(self) -> float:
        """Return 0: no interval ever passes."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Return at once: nothing can change during the wait."""


class World:
    """API servers with the objects of a bundle, for one pass."""

    def __init__(self, bundle: Bundle, now: datetime, keys: KeySource, *, like: World | None = None) -> None:
        """Make a world. `like`: an unused world of the same bundle, whose content is copied instead of loaded again."""
        observation = bundle.observation
        self.now = now
        self.journal = Journal()
        self.rows: dict[str, str] = {}
        self.events: list[Json] = []
        self.reports = Reports()
        self._random = Random(0)
        self._keys = keys
        self._features = {**DEFAULT_FEATURES, **observation.features}
        self._like = like
        self._servers: list[ApiServer] = []
        self.client: Client = self._cluster(bundle.objects, faults(observation))
        workload = {_key(name): cluster for name, cluster in observation.workload_clusters.items()}
        clients = {key: self._cluster(c.objects, faults(c), serves_all=True) for key, c in workload.items() if c.connected}
        self.workload = ObservedWorkloadClusters(workload, clients, self.journal)
        self.canned = CannedExtensions(observation.runtime_extensions, observation.extension_servers)
        self.extensions = runtime_client(bundle.objects, observation, self.client, self.canned)

    def _cluster(self, objects: tuple[Json, ...], failing: Faults, *, serves_all: bool = False) -> Client:
        server = ApiServer(
            now=lambda: self.now, random=self._random, resources=_lenient_resources(), namespaces=(), require_namespaces=False
        )
        if self._like is None:
            server.load(with_owners([without_silent_zeros(o) for o in objects]))
        else:
            server.load_from(self._like._servers[len(self._servers)])
        self._servers.append(server)
        serve = partial(_serve, server) if serves_all else None
        return ObservedClient(RestClient(InProcessTransport(server)), failing, self.journal, serve)

    def dependencies(self) -> Dependencies:
        """Return the dependencies of a reconciler in this world: the production parts, except time, keys and the network."""
        return Dependencies(
            client=self.client,
            clock=StandingClock(self.now),
            random=self._random,
            keys=self._keys,
            events=self,
            workload=self.workload,
            dynamic=self,
            features=self._features,
            enqueue=lambda _key, _reason: None,
            trace=lambda _key, rows: self.rows.update(rows),
            extensions=self.extensions,
            runtime=self.extensions,
            reports=self.reports,
            options={},
        )

    def record(self, obj: Object | Unstructured, type: str, reason: str, message: str) -> None:
        """Keep an Event for the explanation, without a write."""
        self.events.append({"object": f"{obj.kind}/{obj.key}", "type": type, "reason": reason, "message": message})

    async def ensure(self, kind: GroupVersionKind, also: Mapper | None = None, *, lasting: bool = False) -> None:
        """Do nothing: one pass needs no watch."""


SUPPOSED: Final = "saved-without-owners"
"""The field manager given to objects that were saved without managedFields."""


def with_owners(objects: Sequence[Json]) -> list[Json]:
    """Return the objects as an API server has them: if all were saved without managedFields, each gets an owner of its fields."""
    if any(isinstance(o.get("metadata"), dict) and o["metadata"].get("managedFields") for o in objects):
        return list(objects)
    return [_with_owner(o) if isinstance(o.get("metadata"), dict) else o for o in objects]


def _with_owner(obj: Json) -> Json:
    entry = {"manager": SUPPOSED, "operation": "Update", "apiVersion": obj.get("apiVersion", ""), "fieldsType": "FieldsV1"}
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [{**entry, "fieldsV1": {"f:metadata": {"f:name": {}}}}]}}


def without_owners(obj: Json) -> Json:
    """Return an object as it was saved: without managedFields if `with_owners` gave it any."""
    metadata = obj.get("metadata") or {}
    if not any(entry.get("manager") == SUPPOSED for entry in metadata.get("managedFields") or ()):
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _serve(server: ApiServer, gvk: GroupVersionKind, namespaced: bool) -> None:
    if server.registry.by_kind(gvk.group, gvk.version, gvk.kind) is None:
        server.registry.add([permissive_resource(gvk, plural=pluralize(gvk.kind.lower()), namespaced=namespaced)])


def _key(name: str) -> ObjectKey:
    namespace, _, bare = name.rpartition("/")
    return ObjectKey(namespace, bare)


def decoded(value: Any) -> str | None:
    """Return a Secret's value as text, with invalid bytes as surrogates."""
    import base64
    import binascii

    try:
        return base64.b64decode(value, validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError, TypeError):
        return None
