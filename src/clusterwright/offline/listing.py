"""Everything in a namespace that clusters can be made of, listed; and what could not be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.api.wire import AGGREGATED_DISCOVERY
from clusterwright.offline import ownership
from clusterwright.offline.complaints import is_built_in
from clusterwright.offline.reported import WEBHOOK_CONFIGURATIONS
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError

_AT_ONCE = 8
_FAILED_WEBHOOK: Final = b"failed calling webhook"
_SKIPPED: Final = frozenset({"Lease", "Endpoints", "EndpointSlice", "ControllerRevision", "LocalSubjectAccessReview", "ServiceAccount"})


class _Resource(msgspec.Struct):
    name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _ResourceList(msgspec.Struct):
    resources: tuple[_Resource, ...] = ()


@dataclass(slots=True)
class Everything:
    """What could be listed in a namespace, and what could not."""

    objects: list[Unstructured] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """The kinds that were listed: of these, what is not there does not exist."""
    unseen: list[Json] = field(default_factory=list)
    """The kinds that were not, and why."""


async def everything(client: Client, namespace: str) -> Everything:
    """Every object of a namespace that may be listed, of every kind that a cluster can be made of; of all namespaces, if it is empty."""
    gate = asyncio.Semaphore(_AT_ONCE)
    found = Everything()
    objects: dict[str, list[Unstructured]] = {}

    async def listed(kind: _Kind) -> None:
        async with gate:
            try:
                raw = await client.raw_get(kind.path(namespace))
            except ApiError as error:
                found.unseen.append({"kind": kind.gvk.kind, "error": str(error)})
                return
        header = {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind}
        objects[str(kind.gvk)] = [Unstructured({**header, **item}) for item in msgspec.json.decode(raw).get("items") or ()]
        found.seen.append(kind.gvk.kind)

    kinds = await _kinds(client, found)
    await asyncio.gather(*(listed(k) for k in kinds))
    # what was made between two lists seems to be missing: it is looked for again before anybody says so
    there = {ownership.name_of(o.kind, *o.key) for listing in objects.values() for o in listing}
    named = {name for listing in objects.values() for o in listing for name in ownership.mentioned(o)}
    again = {name.partition("/")[0] for name in named - there} & set(found.seen)
    await asyncio.gather(*(listed(k) for k in kinds if k.gvk.kind in again))
    found.seen = list(dict.fromkeys(found.seen))
    found.objects = [o for kind in kinds for o in objects.get(str(kind.gvk), ())]
    found.unseen = [u for u in found.unseen if u["kind"] not in found.seen]
    return found


async def webhooks_and_extensions(client: Client, found: Everything) -> list[Unstructured]:
    """Return what belongs to no cluster and may hold one up: runtime extensions of topologies; webhooks, if somebody says that one failed.

    What may not be listed is left out.
    """
    wanted: list[GroupVersionKind] = []
    if any(o.kind == "Cluster" and o.at("spec", "topology") for o in found.objects):
        wanted.append(GroupVersionKind("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig"))
    if any(_FAILED_WEBHOOK in msgspec.json.encode([o.at("message"), o.at("status")]) for o in found.objects):
        wanted += [GroupVersionKind("admissionregistration.k8s.io", "v1", kind) for kind in WEBHOOK_CONFIGURATIONS]
    listed: list[Unstructured] = []
    for gvk in wanted:
        try:
            listed += await client.live.list(gvk)
        except ApiError:
            continue
        found.seen.append(gvk.kind)
    return listed


@dataclass(frozen=True, slots=True)
class _Kind:
    gvk: GroupVersionKind
    plural: str

    def path(self, namespace: str) -> str:
        root = f"/apis/{self.gvk.api_version}" if self.gvk.group else f"/api/{self.gvk.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


_CORE: Final = tuple(
    _Kind(GroupVersionKind("", "v1", kind), f"{kind.lower()}s") for kind in ("Secret", "ConfigMap", "Event", "ResourceQuota", "LimitRange")
)
"""The kinds of Kubernetes itself that matter to a cluster; all others that do are somebody's custom resources."""


async def _kinds(client: Client, found: Everything) -> list[_Kind]:
    """Return every namespaced kind that can be listed and may be part of a cluster, in the first version of its group that serves it."""
    answer = msgspec.json.decode(await client.raw_get("/apis", accept=f"{AGGREGATED_DISCOVERY},application/json"))
    kinds: dict[tuple[str, str], _Kind] = {}
    for group, version, served in _served(answer) if "items" in answer else await _served_one_by_one(client, answer, found):
        for resource in served:
            if resource.namespaced and "/" not in resource.name and "list" in resource.verbs and resource.kind not in _SKIPPED:
                kinds.setdefault((group, resource.kind), _Kind(GroupVersionKind(group, version, resource.kind), resource.name))
    return [*_CORE, *kinds.values()]


_Served = Iterable[tuple[str, str, Iterable[_Resource]]]
"""Groups with their versions, those that are preferred first, and what each serves."""


def _served(discovery: Json) -> _Served:
    """Yield what an API server serves that tells it all at once."""
    for item in discovery["items"]:
        group = item["metadata"].get("name") or ""
        for version in item["versions"] if not is_built_in(group) else ():
            told = [r for r in version.get("resources") or () if r.get("responseKind")]  # others are subresources of nothing
            made = [_Resource(r["resource"], r["responseKind"]["kind"], r.get("scope") == "Namespaced", tuple(r["verbs"])) for r in told]
            yield group, version["version"], made


async def _served_one_by_one(client: Client, listed: Json, found: Everything) -> _Served:
    """Return the same of one that does not, or not everything: what it does not tell is unseen."""
    versions: list[tuple[str, str]] = []
    for group in listed.get("groups") or ():
        if not is_built_in(group.get("name") or ""):
            preferred = (group.get("preferredVersion") or {}).get("version")
            versions += [(group["name"], v) for v in dict.fromkeys([preferred, *(v.get("version") for v in group["versions"])]) if v]

    async def resources(path: str) -> tuple[_Resource, ...]:
        try:
            return msgspec.json.decode(await client.raw_get(path), type=_ResourceList).resources
        except ApiError as error:
            found.unseen.append({"kind": path.removeprefix("/apis/"), "error": str(error)})
            return ()

    answers = await asyncio.gather(*(resources(f"/apis/{group}/{version}") for group, version in versions))
    return [(group, version, served) for (group, version), served in zip(versions, answers, strict=True)]
