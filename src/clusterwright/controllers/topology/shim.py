"""The shim: a Secret that owns objects before the Cluster refers to them, so that garbage collection finds leftovers."""

from __future__ import annotations

from contextlib import suppress

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_SECRET_TYPE
from clusterwright.controllers.topology.failures import TopologyFailed, failing
from clusterwright.controllers.topology.object_writing import ObjectWriter, key_of
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, NotFound
from clusterwright.topology import objects
from clusterwright.topology.model import Current, Desired

SECRET = GroupVersionKind.of("v1", "Secret")


class Shim:
    """Creates and deletes the shim of one Cluster."""

    def __init__(self, client: Client, writer: ObjectWriter, cluster: Json) -> None:
        self._client = client
        self._writer = writer
        self._cluster = cluster
        self._key = ObjectKey(key_of(cluster).namespace, objects.shim_name(cluster))

    async def ensure(self, current: Current, desired: Desired) -> None:
        """Let the shim own objects that are about to be created, or delete it when the Cluster owns both. Raises TopologyFailed."""
        if current.infrastructure_cluster is None or current.control_plane is None:
            owner = await self._created()
            for made in (desired.infrastructure_cluster, desired.control_plane):
                owners = [o for o in made["metadata"].get("ownerReferences") or () if o.get("uid") != owner["uid"]]
                made["metadata"]["ownerReferences"] = [*owners, owner]
            return
        parts = (current.infrastructure_cluster, current.control_plane)
        has_shim = any(objects.shim_owners(self._cluster, part) for part in parts)
        if has_shim and all(self._is_owned_by_cluster(part) for part in parts):
            with failing("failed to delete the cluster shim object"), suppress(NotFound):
                shim = await self._client.live.find(SECRET, self._key)
                if shim is not None and self._is_shim(shim):
                    await self._client.delete(SECRET, self._key, uid=shim.metadata.uid)

    async def _created(self) -> Json:
        """Return a reference to the shim; create it if it does not exist."""
        await self._writer.require_cluster()
        shim = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self._key.name,
                "namespace": self._key.namespace,
                "ownerReferences": [objects.owner_reference(self._cluster)],
            },
            "type": CLUSTER_SECRET_TYPE,
        }
        made: Unstructured | None = None
        with failing("failed to create the cluster shim object"), suppress(AlreadyExists):
            made = await self._client.create(shim)
        if made is None:
            with failing("failed to read the cluster shim object"):
                made = await self._client.live.get(SECRET, self._key)
            if not self._is_shim(made):
                text = f"Secret {self._key} is in the way: it is not the shim of this Cluster"
                raise TopologyFailed(f"{text}. Delete it, or use another name for the Cluster")
        return {"apiVersion": "v1", "kind": "Secret", "name": self._key.name, "uid": made.metadata.uid}

    def _is_shim(self, secret: Unstructured) -> bool:
        """Return whether a Secret with the name of the shim is the shim: empty, of our type and owned by this Cluster."""
        owners = secret.metadata.owner_references
        owned = any(o.kind == "Cluster" and o.uid == self._cluster["metadata"].get("uid") for o in owners)
        return owned and secret.json.get("type") == CLUSTER_SECRET_TYPE and not secret.json.get("data")

    def _is_owned_by_cluster(self, obj: Json) -> bool:
        name = self._cluster["metadata"]["name"]
        return any(o.get("kind") == "Cluster" and o.get("name") == name for o in obj["metadata"].get("ownerReferences") or ())
