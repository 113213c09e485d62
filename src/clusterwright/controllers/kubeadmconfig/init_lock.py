"""The init lock: a ConfigMap that names the Machine that runs `kubeadm init`, so that no other runs it.

    free      there is no ConfigMap: the Machine that creates it holds the lock
    held      it names a Machine: only that Machine may go on (as often as it needs, if its passes fail or the process dies)
    stale     it names a Machine that is gone: it is deleted and created again in one pass

Every delete names the ConfigMap that was read by uid and resourceVersion, so that no pass removes a lock that changed
hands in between. The API server, not a cache, says whether the holder exists. The table `plan.LOCK` decides on the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import msgspec

from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.api.wire import UNREADABLE
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, Conflict, NotFound
from clusterwright.runtime.logging import get_logger

INFORMATION_KEY = "lock-information"
NAME_SUFFIX = "-lock"

log = get_logger("kubeadmconfig.initlock")


class Lock(Enum):
    """The state in which a Machine found the lock. The Machine holds the lock after FREE, OURS and STALE."""

    FREE = "nobody held it"
    OURS = "the Machine held it before"
    HELD = "another Machine holds it"
    STALE = "a Machine that is gone held it"
    DENIED = "it could not be taken"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to take the lock. `initialized`: the lock was free only because the control plane is already up."""

    lock: Lock
    initialized: bool = False


@dataclass(frozen=True, slots=True)
class LockInformation:
    """The holder of the lock."""

    machine_name: str


def lock_key(cluster: ClusterFacts) -> ObjectKey:
    """Return the key of a Cluster's lock."""
    return ObjectKey(cluster.namespace, cluster.name + NAME_SUFFIX)


def lock_config_map(cluster: ClusterFacts, machine: str) -> Json:
    """Return the lock as held by a Machine."""
    namespace, name = lock_key(cluster)
    reference = cluster.reference
    owner = {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name, "uid": reference.uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner],
        },
        "data": {INFORMATION_KEY: msgspec.json.encode({"machineName": machine}).decode()},
    }


def is_lock(found: ConfigMap, cluster: ClusterFacts) -> bool:
    """Return whether a ConfigMap with the name of the lock is the Cluster's lock; another one is never deleted."""
    owned = any(r.kind == "Cluster" and r.name == cluster.name for r in found.metadata.owner_references)
    return owned or found.metadata.labels.get(CLUSTER_NAME_LABEL) == cluster.name or set(found.data) == {INFORMATION_KEY}


def read_information(lock: ConfigMap) -> LockInformation | None:
    """Return the holder of the lock, or None if the ConfigMap does not name one."""
    try:
        information = msgspec.json.decode(lock.data.get(INFORMATION_KEY, ""))
    except UNREADABLE:
        return None
    name = information.get("machineName") if isinstance(information, dict) else None
    return LockInformation(name) if isinstance(name, str) else None


class InitLock:
    """Takes and releases the lock. Neither raises an ApiError: a lock that cannot be taken is an ordinary answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def acquire(self, cluster: ClusterFacts, machine: str) -> Lock:
        """Take the lock for the Machine if it is free, stale or the Machine's own; return how it was found."""
        key = lock_key(cluster)
        try:
            lock = await self._client.live.find(ConfigMap, key)
        except ApiError as error:
            return _denied(key, "cannot be read", error)
        if lock is None:
            return Lock.FREE if await self._create(cluster, machine) else Lock.DENIED
        information = read_information(lock)
        if not is_lock(lock, cluster):
            return _denied(key, "is another ConfigMap: delete it, or use another name for the Cluster")
        if information is None:
            return _denied(key, "does not say who holds it")
        if information.machine_name == machine:
            return Lock.OURS
        if not await self._is_gone(ObjectKey(cluster.namespace, information.machine_name)):
            return Lock.HELD
        log.info("init lock is stale: its holder is gone", lock=str(key), holder=information.machine_name)
        return Lock.STALE if await self._delete(lock) and await self._create(cluster, machine) else Lock.DENIED

    async def release(self, cluster: ClusterFacts, *, held_by: str = "") -> bool:
        """Remove the lock; with `held_by`, only if that Machine holds it. Return whether that Machine no longer holds it."""
        key = lock_key(cluster)
        try:
            lock = await self._client.live.find(ConfigMap, key)
        except ApiError as error:
            _denied(key, "cannot be read", error)
            return False
        if lock is None or not is_lock(lock, cluster):
            return True
        if held_by and read_information(lock) != LockInformation(held_by):
            return True
        return await self._delete(lock)

    async def _create(self, cluster: ClusterFacts, machine: str) -> bool:
        try:
            await self._client.create(lock_config_map(cluster, machine))
        except ApiError as error:
            _denied(lock_key(cluster), "cannot be created", error)
            return False
        log.info("init lock acquired", lock=str(lock_key(cluster)), machine=machine)
        return True

    async def _delete(self, lock: ConfigMap) -> bool:
        try:
            await self._client.delete(ConfigMap, lock.key, uid=lock.metadata.uid, resource_version=lock.metadata.resource_version)
        except NotFound:
            return True
        except Conflict as error:
            _denied(lock.key, "changed hands", error)
            return False
        except ApiError as error:
            _denied(lock.key, "cannot be deleted", error)
            return False
        return True

    async def _is_gone(self, machine: ObjectKey) -> bool:
        try:
            return await self._client.live.find(Machine, machine) is None
        except ApiError as error:
            log.warning("cannot read the holder of the init lock", machine=str(machine), error=str(error))
            return False


def _denied(key: ObjectKey, why: str, error: ApiError | None = None) -> Lock:
    log.info("Cannot acquire the init lock", lock=str(key), why=why, error=str(error or ""))
    return Lock.DENIED
