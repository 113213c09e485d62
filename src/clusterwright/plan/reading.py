"""Capture live clusters: read their objects and those of their workload clusters. Only reads, and only the secrets that are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import BOOTSTRAP_TOKEN_SECRET_TYPE, CLUSTER_SECRET_TYPE
from clusterwright.api.wire import UNREADABLE, Duplex, Request, Response, Transport
from clusterwright.kubeadm.certificates import Purpose, secret_name
from clusterwright.offline.complaints import is_built_in, references, secret_sources
from clusterwright.offline.listing import everything
from clusterwright.offline.ownership import name_of
from clusterwright.offline.record import CRD, ask_controllers
from clusterwright.plan.captured import Captured
from clusterwright.plan.summary import cluster_of
from clusterwright.runtime.errors import ApiError, ConnectionFailed
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.transports import Around
from clusterwright.workload.clusters import Reach

SECRET: Final = GroupVersionKind("", "v1", "Secret")
PATIENCE: Final = 30.0
"""Seconds that a workload cluster has to answer everything."""
_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_WORKLOAD: Final = (
    ("", "v1", "Node"), ("", "v1", "Pod"), ("", "v1", "Namespace"), ("", "v1", "ConfigMap"), ("policy", "v1", "PodDisruptionBudget"),
    ("apps", "v1", "Deployment"), ("apps", "v1", "ReplicaSet"), ("apps", "v1", "StatefulSet"), ("apps", "v1", "DaemonSet"),
    ("batch", "v1", "Job"), ("", "v1", "PersistentVolume"), ("", "v1", "PersistentVolumeClaim"),
    ("storage.k8s.io", "v1", "VolumeAttachment"),
)  # fmt: skip
"""The kinds of a workload cluster on which drains and upgrades depend."""
_ONLY_SYSTEM: Final = frozenset({"ConfigMap"})


class ReadOnly(Around):
    """A transport that refuses to write, so that no plan can ever change what it is about."""

    async def send(self, request: Request) -> Response:
        """Send a read."""
        if request.method not in {"GET", "HEAD"}:
            raise AssertionError(f"a plan must not send {request.method} {request.path}")
        return await self._inner.send(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Refuse: nothing that a plan reads is behind a port."""
        raise ConnectionFailed("a plan opens no ports")


async def capture(
    transport: Transport, namespaces: Collection[str], now: datetime, reach: Reach | None, touched: Collection[str]
) -> Captured:
    """Return the objects of namespaces, with the workload clusters of the Clusters that a change touches. Raises ApiError.

    `touched`: the changed objects, as `Kind/namespace/name`; empty: all Clusters.
    """
    client = RestClient(_WithoutSecrets(ReadOnly(transport)), user_agent="clusterwright-plan")
    found: dict[tuple[str, str], Json] = {}
    notes: list[str] = []
    features: dict[str, bool] = {}
    waiting = list(dict.fromkeys(namespaces))
    done: set[str] = set()
    while waiting:
        namespace = waiting.pop()
        done.add(namespace)
        listed = await everything(client, namespace)
        notes += [f"{u['kind']} of namespace {namespace} could not be listed: {u['error']}" for u in listed.unseen]
        for obj in listed.objects:
            named = _as_secret(obj)
            if named.kind != "Event":
                found[named.kind, str(named.key)] = dict(named.json)
            elsewhere = obj.at("spec", "topology", "classRef", "namespace")
            if obj.kind == "Cluster" and isinstance(elsewhere, str) and elsewhere and "" not in done and elsewhere not in {*done, *waiting}:
                waiting.append(elsewhere)
        features |= await _features(client, namespace)
    objects = list(found.values())
    objects += await _cluster_wide(client)
    objects += await _definitions(client, objects)
    captured = Captured(tuple(await _with_needed_secrets(client, objects)), now, {}, features, tuple(notes))
    affected = captured.limited_to(touched) if touched else captured
    workloads = {}
    for cluster in affected.clusters():
        content, why = await _workload(RestClient(ReadOnly(transport)), cluster.key, reach)
        if content is not None:
            workloads[cluster.key] = content
        elif why:
            notes.append(f"the workload cluster of {cluster.key} could not be read ({why}): drains are planned as if it had no Pods")
    return Captured(captured.objects, now, workloads, features, tuple(notes))


async def moved(transport: Transport, captured: Captured, touched: Collection[str]) -> list[str]:
    """Return which of the changed objects, and of their Clusters, have another spec now than when they were captured. Raises ApiError."""
    client = RestClient(ReadOnly(transport), user_agent="clusterwright-plan")
    objects = {name_of(o.kind, *o.key): o for o in map(Unstructured, captured.objects)}
    found = []
    for name in sorted({*touched, *(cluster_of(name, {n: o.json for n, o in objects.items()}) for name in touched)} & set(objects)):
        before = objects[name]
        now = await client.live.find(before.gvk, before.key)
        if now is None or now.metadata.uid != before.metadata.uid or now.metadata.generation != before.metadata.generation:
            found.append(name)
    return found


class _WithoutSecrets(Around):
    """A transport whose lists of Secrets have no values: the server is asked for names only."""

    async def send(self, request: Request) -> Response:
        """Send a read."""
        parts = request.path.split("/")
        if parts[-1] == "secrets" and request.path.startswith("/api/v1/"):
            headers = {**request.headers, "accept": _NAMES_ONLY}
            request = Request(method=request.method, path=request.path, query=request.query, headers=headers)
        return await self._inner.send(request)


def _as_secret(obj: Unstructured) -> Unstructured:
    """Return a Secret of which only the metadata was read as a Secret of Cluster API's type."""
    if obj.kind != "PartialObjectMetadata":
        return obj
    return Unstructured({**obj.json, "apiVersion": "v1", "kind": "Secret", "type": CLUSTER_SECRET_TYPE})


async def _with_needed_secrets(client: RestClient, objects: list[Json]) -> list[Json]:
    """Return the objects, with the Secrets that ClusterResourceSets apply as a whole, and the keys that others refer to."""
    applied = {
        (str(o["metadata"].get("namespace")), str(r.get("name")))
        for o in objects
        if o["kind"] == "ClusterResourceSet"
        for r in (o.get("spec") or {}).get("resources") or ()
        if r.get("kind") == "Secret"
    }
    keys: dict[tuple[str, str], dict[str, str]] = {}
    for obj in objects:
        for source in secret_sources(obj.get("spec")):
            keys.setdefault((str(obj["metadata"].get("namespace")), source.name), {})[source.key] = ""
    made = []
    for obj in objects:
        place = (str(obj["metadata"].get("namespace")), str(obj["metadata"].get("name")))
        if obj["kind"] != "Secret":
            made.append(obj)
        elif place in applied:
            whole = await client.find(SECRET, ObjectKey(*place))
            made.append(obj if whole is None else dict(whole.json))
        else:
            made.append({**obj, "data": keys.get(place, {})})
    return made


async def _features(client: RestClient, namespace: str) -> Mapping[str, bool]:
    running = await ask_controllers(client, namespace)
    features = (running or {}).get("features")
    return {str(k): bool(v) for k, v in features.items()} if isinstance(features, Mapping) else {}


async def _cluster_wide(client: RestClient) -> list[Json]:
    """Return the objects outside of namespaces that controllers read, as far as they may be read."""
    found: list[Json] = []
    for gvk in (GroupVersionKind("", "v1", "Namespace"), GroupVersionKind("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig")):
        try:
            found += [dict(o.json) for o in await client.live.list(gvk)]
        except ApiError:
            continue
    return found


async def _definitions(client: RestClient, objects: Collection[Json]) -> list[Json]:
    """Return the CRDs of the kinds in play, with their schemas."""
    wanted = {(o.gvk.group, o.kind) for o in map(Unstructured, objects) if "." in o.gvk.group and not is_built_in(o.gvk.group)}
    wanted |= {(r.group, r.kind) for o in objects for r in references(o.get("spec")) if "." in r.group}
    wanted |= {(group, kind.removesuffix("Template")) for group, kind in wanted}
    found = []
    for group, kind in sorted(wanted):
        try:
            found.append(dict((await client.live.get(CRD, ObjectKey("", crd_name(group, kind)))).json))
        except ApiError:
            continue
    return found


async def _workload(client: RestClient, cluster: ObjectKey, reach: Reach | None) -> tuple[tuple[Json, ...] | None, str]:
    """Return the objects of a workload cluster; or None, and why it could not be read: empty if it does not exist yet."""
    if reach is None:
        return None, ""
    try:
        secret = await client.live.find(Secret, ObjectKey(cluster.namespace, secret_name(cluster.name, Purpose.KUBECONFIG)))
        if secret is None:
            return None, ""
        transport = await reach(bytes(secret.data.get("value") or b""))
    except (ApiError, OSError, ValueError) as error:
        return None, str(error)
    remote = RestClient(ReadOnly(transport))
    objects: list[Json] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for group, version, kind in _WORKLOAD:
                gvk = GroupVersionKind(group, version, kind)
                listed = await remote.list(gvk, namespace="kube-system" if kind in _ONLY_SYSTEM else "")
                objects += [{"apiVersion": gvk.api_version, "kind": kind, **o.json} for o in listed]
    except (ApiError, OSError, TimeoutError, ValueError, *UNREADABLE) as error:
        return None, str(error) or "no answer in time"
    finally:
        await transport.close()
    return tuple(o for o in objects if o.get("type") != BOOTSTRAP_TOKEN_SECRET_TYPE), ""
