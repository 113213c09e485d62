"""Read the parts of a workload cluster that our controllers would read, for a bundle."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import BOOTSTRAP_TOKEN_SECRET_TYPE, NODE_ROLE_CONTROL_PLANE_LABEL
from clusterwright.kubeadm.certificates import Purpose, secret_name
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import KeySource
from clusterwright.workload.access import EtcdError
from clusterwright.workload.clusters import Reach
from clusterwright.workload.connection import KUBE_SYSTEM, Connection
from clusterwright.workload.credentials import EtcdAccess

PATIENCE: Final = 30.0
"""Seconds that a workload cluster has to answer everything."""
_NODE: Final = GroupVersionKind("", "v1", "Node")
_POD: Final = GroupVersionKind("", "v1", "Pod")
_WHOLE: Final = (
    (_NODE, ""),
    (_POD, KUBE_SYSTEM),
    (GroupVersionKind("", "v1", "ConfigMap"), KUBE_SYSTEM),
    (GroupVersionKind("apps", "v1", "DaemonSet"), KUBE_SYSTEM),
    (GroupVersionKind("apps", "v1", "Deployment"), KUBE_SYSTEM),
    (GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"), ""),
)
_OF_VOLUMES: Final = (
    GroupVersionKind("", "v1", "PersistentVolume"),
    GroupVersionKind("", "v1", "PersistentVolumeClaim"),
    GroupVersionKind("storage.k8s.io", "v1", "VolumeAttachment"),
)
_OF_DRAINS: Final = (GroupVersionKind("", "v1", "Namespace"), GroupVersionKind("policy", "v1", "PodDisruptionBudget"))
_SECRET: Final = GroupVersionKind("", "v1", "Secret")


class Surveyor:
    """Reads workload clusters with the credentials that their management cluster has for them."""

    def __init__(self, management: Client, reach: Reach, *, clock: Clock, random: Random, keys: KeySource) -> None:
        self._management = management
        self._reach = reach
        self._clock = clock
        self._random = random
        self.failure = ""
        """Why the last workload cluster could not be read although it has a kubeconfig."""
        self._etcd = EtcdAccess(management, clock=clock, random=random, keys=keys)

    async def survey(self, cluster: ObjectKey, leaving: Sequence[str]) -> Json | None:
        """Return the cluster's entry in an Observation, or None if it cannot be reached from here. Controllers may still reach it.

        `leaving`: Nodes that are about to be drained, of which all Pods and volumes matter.
        """
        try:
            secret = await self._management.live.get(Secret, ObjectKey(cluster.namespace, secret_name(cluster.name, Purpose.KUBECONFIG)))
            kubeconfig = bytes(secret.data.get("value") or b"")
            transport = await self._reach(kubeconfig)
        except (ApiError, OSError, ValueError):
            return None
        self.failure = ""
        connection = Connection(transport, kubeconfig, clock=self._clock, random=self._random, failed=lambda: None)
        try:
            async with asyncio.timeout(PATIENCE):
                await connection.probe()
                return await self._look(cluster, connection, leaving)
        except (ApiError, OSError, TimeoutError, ValueError) as error:
            self.failure = str(error) or "no answer in time"
            return None
        finally:
            await connection.close()

    async def _look(self, cluster: ObjectKey, connection: Connection, leaving: Sequence[str]) -> Json:
        found: Json = {"connected": True, "lastProbeSuccess": f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}", "objects": []}
        kinds = [*_WHOLE, *((kind, "") for kind in (*_OF_VOLUMES, *_OF_DRAINS) if leaving)]
        lists = await asyncio.gather(*(_listed(connection, kind, namespace, found) for kind, namespace in kinds))
        pods = await asyncio.gather(*(_listed(connection, _POD, "", found, f"spec.nodeName={node}") for node in leaving))
        tokens = await _listed(connection, _SECRET, KUBE_SYSTEM, found, f"type={BOOTSTRAP_TOKEN_SECRET_TYPE}")
        objects = {(o.kind, o.key): o for o in (*(o for one in (*lists, *pods) for o in one), *tokens)}
        found["objects"] = [o.json for o in objects.values()]
        nodes = [o.key.name for o in lists[0] if NODE_ROLE_CONTROL_PLANE_LABEL in o.metadata.labels]
        await self._ask_etcd(cluster, connection, nodes, found)
        found["apiServerCertificateExpiry"] = await _expiries(connection, nodes)
        return found

    async def _ask_etcd(self, cluster: ObjectKey, connection: Connection, nodes: list[str], found: Json) -> None:
        errors: Json = {}
        step = "connect"
        try:
            etcd = await connection.etcd(nodes, await self._etcd.context(cluster))
            try:
                if etcd.status.errors:
                    errors["status"] = list(etcd.status.errors)
                step = "members"
                members = await etcd.members()
                step = "alarms"
                alarms = await etcd.alarms()
            finally:
                await etcd.close()
            found["etcdMembers"] = [
                {
                    "name": m.name,
                    "id": m.id,
                    "isLearner": m.is_learner,
                    "leader": m.is_leader,
                    "alarms": [a for i, a in alarms if i == m.id],
                }
                for m in members
            ]
        except (EtcdError, ApiError) as error:
            errors[step] = str(error)
        if errors:
            found["etcdErrors"] = errors


async def _listed(connection: Connection, kind: GroupVersionKind, namespace: str, found: Json, fields: str = "") -> list[Unstructured]:
    """Return the objects of a kind. A kind that cannot be listed is reported as unseen."""
    try:
        return list(await connection.rest.list(kind, namespace=namespace, fields=fields))
    except ApiError as error:
        found.setdefault("unlistable", []).append({"kind": kind.kind, "error": str(error)})
        return []


async def _expiries(connection: Connection, nodes: Sequence[str]) -> Json:
    async def one(node: str) -> tuple[str, str] | None:
        try:
            return node, f"{await connection.serving_certificate_expiry(node, 6443):%Y-%m-%dT%H:%M:%SZ}"
        except ApiError:
            return None

    return dict(filter(None, await asyncio.gather(*(one(node) for node in nodes))))
