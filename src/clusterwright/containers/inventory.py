"""List and remove everything that planes have on an engine, found by its labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.api.meta import ObjectKey
from clusterwright.containers import naming
from clusterwright.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A container of some plane."""

    id: str
    name: str
    state: str
    plane: str
    cluster: ObjectKey
    kind: str
    object: str
    """The name of the object that it was made for, with kind and the cluster's namespace."""
    role: str

    @property
    def owner(self) -> tuple[str, ObjectKey]:
        """The object that it was made for."""
        return self.kind, ObjectKey(self.cluster.namespace, self.object)


async def containers(engine: Engine) -> list[Found]:
    """Return the containers of all planes, by plane, cluster and name; raises EngineError."""
    found = [_read(one) for one in await engine.containers({naming.PLANE_LABEL: ""})]
    return sorted(found, key=lambda f: (f.plane, f.cluster, f.name))


def _read(seen: dict[str, Any]) -> Found:
    labels = seen.get("Labels") or {}
    return Found(
        id=str(seen["Id"]),
        name=str((seen.get("Names") or [seen["Id"][:12]])[0]).lstrip("/"),
        state=str(seen.get("State") or "unknown"),
        plane=str(labels.get(naming.PLANE_LABEL, "")),
        cluster=ObjectKey(str(labels.get(naming.NAMESPACE_LABEL, "")), str(labels.get(naming.CLUSTER_LABEL, ""))),
        kind=str(labels.get(naming.KIND_LABEL, "")),
        object=str(labels.get(naming.OBJECT_LABEL, "")),
        role=str(labels.get(naming.ROLE_LABEL, "")),
    )


def ownerless(found: Iterable[Found], plane: str, objects: Collection[tuple[str, ObjectKey]]) -> list[Found]:
    """Return the containers of a plane whose objects no longer exist. Pure."""
    return [one for one in found if one.plane == plane and one.owner not in objects]


def of_plane(found: Iterable[Found], plane: str) -> list[Found]:
    """Return the containers of a plane. Pure."""
    return [one for one in found if one.plane == plane]


async def remove(engine: Engine, unwanted: Sequence[Found]) -> None:
    """Remove containers with their volumes; raises EngineError at the first that cannot be removed."""
    for one in unwanted:
        await engine.remove(one.id)


async def remove_network(engine: Engine, name: str = naming.NETWORK) -> bool:
    """Remove the network of all nodes if it belongs to a plane and has no container left. All planes of an engine share it."""
    network = await engine.network(name)
    if network is None or naming.PLANE_LABEL not in (network.get("Labels") or {}):
        return False
    if network.get("Containers") or await engine.containers({naming.PLANE_LABEL: ""}):  # one that is stopped is not in the network
        return False
    await engine.remove_network(name)
    return True
