"""Move the objects of a namespace from one management cluster to another: pause, create there, delete here, resume there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import BLOCK_MOVE_ANNOTATION, CLUSTERCTL_LABEL
from clusterwright.moving import plan as moving
from clusterwright.moving.plan import CannotMove, Moved, MovedKind
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.following import until_all
from clusterwright.runtime.rest import RestClient

_CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_BUILT_IN = [MovedKind(GroupVersionKind("", "v1", kind)) for kind in ("Secret", "ConfigMap")]


async def gather(client: RestClient, namespace: str) -> list[tuple[MovedKind, Json]]:
    """Return all objects of the namespace that a move may concern; raises CannotMove if they cannot be listed completely."""
    definitions = await client.list(_CRD, labels=CLUSTERCTL_LABEL)
    found: list[tuple[MovedKind, Json]] = []
    known = [*moving.kinds(dict(crd.json) for crd in definitions), *_BUILT_IN]
    if len(known) == len(_BUILT_IN):
        raise CannotMove(f"no CustomResourceDefinition is labelled {CLUSTERCTL_LABEL}: the kinds to move are unknown")
    for kind in known:
        listed = await client.list(kind.gvk, namespace=namespace if kind.is_namespaced else "")
        found += [(kind, {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind, **obj.json}) for obj in listed]
    elsewhere = {c for kind, json in found if kind.gvk.kind == "Cluster" and (c := moving.class_of(json)) and c[0] != namespace}
    if elsewhere:
        told = ", ".join(f"{ns}/{name}" for ns, name in sorted(elsewhere))
        raise CannotMove(f"ClusterClass {told} is in another namespace: move that one first, or give the Clusters their own class")
    return found


async def refusals(client: RestClient, moved: Sequence[Moved]) -> list[str]:
    """Return the reasons why the other management cluster cannot take the objects."""
    reasons: dict[str, None] = {}
    for obj in moved:
        key = _key(obj)
        try:
            if await client.find(obj.kind.gvk, key) is not None and obj.kind.is_namespaced:
                reasons[f"{obj.name} already exists there"] = None
        except ApiError as error:
            reasons[f"{obj.kind.gvk.kind} cannot be read there: {error}"] = None
    return list(reasons)


async def move(here: RestClient, there: RestClient, namespace: str, timeout: float, tell: Callable[[str], None] = lambda _: None) -> None:
    """Pause, create there, delete here, resume there. Undo everything if a step before the first deletion fails.

    `tell` is called with each completed step.
    """
    moved = moving.in_order(await gather(here, namespace))
    arrived: list[Moved] = []
    try:
        await _pause(here, moved, paused=True)
        await _settled(here, moved, timeout)
        tell("paused in the source")
        moved = moving.in_order(await gather(here, namespace))  # what came until then comes along, as all is now
        if reasons := moving.unready(moved, paused=True):
            raise CannotMove(*reasons)
        await _create(there, moved, arrived)
        tell(f"{len(arrived)} objects created in the target")
    except (ApiError, CannotMove, TimeoutError, asyncio.CancelledError) as error:
        await asyncio.shield(_undo(here, there, moved, arrived))
        if isinstance(error, TimeoutError):
            raise CannotMove(f"some objects were not ready to move within {timeout:g} s; nothing was changed") from error
        raise
    left = await _delete(here, moved)
    tell("deleted in the source")
    await _pause(there, moved, paused=False)  # what is left here is paused, and stays so
    tell("resumed in the target")
    if left:
        raise CannotMove(*left)


async def _pause(client: RestClient, moved: Sequence[Moved], *, paused: bool) -> None:
    for obj in moved:
        if (patch := moving.pausing(obj, paused=paused)) is not None:
            await client.patch(obj.kind.gvk, _key(obj), patch)


async def _settled(client: RestClient, moved: Sequence[Moved], timeout: float) -> None:
    """Wait until every object that reports Paused is paused, and none blocks the move; raises TimeoutError."""

    def is_settled(mine: set[str], json: Json) -> bool:
        if json["metadata"]["uid"] not in mine:
            return True
        conditions = (json.get("status") or {}).get("conditions") or ()
        is_awake = any(c["type"] == "Paused" and c["status"] != "True" for c in conditions)
        return not is_awake and BLOCK_MOVE_ANNOTATION not in (json["metadata"].get("annotations") or {})

    async with asyncio.timeout(timeout):
        for kind in dict.fromkeys(obj.kind for obj in moved):
            of_kind = [obj for obj in moved if obj.kind == kind]
            namespace = of_kind[0].json["metadata"].get("namespace", "")
            await until_all(client, await client.resources.of(kind.gvk), namespace, partial(is_settled, {obj.uid for obj in of_kind}))


async def _create(client: RestClient, moved: Sequence[Moved], arrived: list[Moved]) -> None:
    uids: dict[str, str] = {}
    for namespace in dict.fromkeys(obj.json["metadata"].get("namespace", "") for obj in moved):
        if namespace and await client.find(_NAMESPACE, ObjectKey("", namespace)) is None:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for obj in moved:
        try:
            made = await client.create(moving.arriving(obj, uids))
            arrived.append(obj)
        except AlreadyExists:
            if obj.kind.is_namespaced:
                raise
            made = await client.get(obj.kind.gvk, _key(obj))  # what is for the whole cluster is shared
        uids[obj.uid] = made.metadata.uid
        if fields := moving.applied_fields(obj):
            await client.patch(obj.kind.gvk, _key(obj), {"metadata": {"managedFields": fields}})


async def _delete(client: RestClient, moved: Sequence[Moved]) -> list[str]:
    """Delete the objects without cleanup by controllers, owners last. Return what could not be deleted, and why."""
    failures = []
    for obj in reversed(moved):
        if not obj.kind.is_namespaced:
            continue
        try:
            await client.patch(obj.kind.gvk, _key(obj), moving.MARK)
            await client.delete(obj.kind.gvk, _key(obj))
            await client.patch(obj.kind.gvk, _key(obj), moving.LET_GO)
        except NotFound:
            pass  # it had no finalizer
        except ApiError as error:
            failures.append(f"{obj.name} was moved, but still exists in the source: {error}")
    return failures


async def _undo(here: RestClient, there: RestClient, moved: Sequence[Moved], arrived: Sequence[Moved]) -> None:
    await _delete(there, arrived)
    with suppress(ApiError):
        await _pause(here, moved, paused=False)


def _key(obj: Moved) -> ObjectKey:
    return ObjectKey(obj.json["metadata"].get("namespace", ""), obj.json["metadata"]["name"])
