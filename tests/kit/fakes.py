"""A small provider of machines and of cluster infrastructure, correct unless one switch breaks it.

It polls with a plain client, keeps its memory in the process and its servers in a cloud that outlives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from clusterwright.api.contract import CONTRACTS, ContractVersion
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, ApiError

POLL = 2.0
_PAUSED = "cluster.x-k8s.io/paused"
_MANAGED = "cluster.x-k8s.io/managed-by"
_CLUSTER = "cluster.x-k8s.io/cluster-name"


class Fake:
    """One process of the provider. `cloud` holds its servers by UID and outlives it."""

    def __init__(self, client: Client, gvk: GroupVersionKind, role: str, contract: ContractVersion, switch: str, cloud: dict[str, str]):
        self.client, self.gvk, self.role, self.switch, self.cloud = client, gvk, role, switch, cloud
        self.finalizer = f"{gvk.kind.lower()}.{gvk.group}"
        fields = CONTRACTS[contract]
        self.latch = {
            "InfraMachine": fields.infra_machine.provisioned,
            "InfraCluster": fields.infra_cluster.provisioned,
            "InfraMachinePool": fields.infra_machine_pool.provisioned,
            "BootstrapConfig": fields.bootstrap_config.data_secret_created,
            "ControlPlane": fields.control_plane.initialized,
        }[role]
        self.contract = contract
        self.is_restarted = False
        self.seen: dict[str, int] = {}
        self.given_up: set[str] = set()
        self.was_paused: set[str] = set()
        self.first_generation: dict[str, int] = {}

    def has(self, *switches: str) -> bool:
        """Return whether the provider is broken in one of these ways."""
        return self.switch in switches

    async def run(self) -> None:
        """Reconcile all objects again and again."""
        while True:
            for obj in await self.client.list(self.gvk):
                await self._attempt(dict(obj.json))
            await asyncio.sleep(POLL)

    async def _attempt(self, obj: Json) -> None:
        uid = obj["metadata"]["uid"]
        if uid in self.given_up:
            return
        for _ in range(200 if self.has("hammers-when-refused") else 1):
            try:
                await self._reconcile(obj)
                return
            except ApiError:
                if self.has("gives-up-when-refused"):
                    self.given_up.add(uid)

    async def _write(self, obj: Json, patch: Json, subresource: str = "") -> None:
        """Send a patch unless it changes nothing."""
        if _covers(obj, patch) and not self.has("writes-same-again"):
            return
        meta = obj["metadata"]
        written = await self.client.patch(self.gvk, ObjectKey(meta["namespace"], meta["name"]), patch, subresource=subresource)
        obj.clear()
        obj.update(written.json)

    async def _owner(self, obj: Json) -> tuple[Machine | MachinePool | None, Cluster | None]:
        references = {r["kind"]: r["name"] for r in obj["metadata"].get("ownerReferences", ())}
        namespace = obj["metadata"]["namespace"]
        if self.role in {"InfraCluster", "ControlPlane"}:
            name = references.get("Cluster")
            return None, await self.client.find(Cluster, ObjectKey(namespace, name)) if name else None
        if self.role == "InfraMachinePool":
            name = references.get("MachinePool")
            pool = await self.client.find(MachinePool, ObjectKey(namespace, name)) if name else None
            return pool, await self.client.find(Cluster, ObjectKey(namespace, pool.spec.cluster_name)) if pool else None
        name = references.get("Machine")
        machine = await self.client.find(Machine, ObjectKey(namespace, name)) if name else None
        return machine, await self.client.find(Cluster, ObjectKey(namespace, machine.spec.cluster_name)) if machine else None

    async def _reconcile(self, obj: Json) -> None:
        meta = obj["metadata"]
        machine, cluster = await self._owner(obj)
        annotations = meta.get("annotations") or {}
        is_owned = cluster is not None
        is_paused = (_PAUSED in annotations and not self.has("ignores-paused-annotation")) or (
            cluster is not None and bool(cluster.spec.paused) and not self.has("ignores-paused-cluster")
        )
        if self.role == "InfraCluster" and _MANAGED in annotations and not self.has("touches-managed"):
            return
        if "deletionTimestamp" in meta:
            await self._remove(obj, is_paused=is_paused)
            return
        if self.has("unowned-not-deletable"):
            await self._add_finalizer(obj)
        if not is_owned and not self.has("acts-without-owner", "touches-managed"):
            return
        if is_paused:
            self.was_paused.add(meta["uid"])
            return
        if self.has("never-resumes") and meta["uid"] in self.was_paused:
            return
        if self.has("restart-stops-provisioning") and self.is_restarted and meta["uid"] not in self.cloud:
            return
        if not self.has("finalizer-never", "finalizer-late"):
            await self._add_finalizer(obj)
        if self.role in {"InfraMachine", "InfraMachinePool"} and not self._may_create(machine, cluster):
            return
        looks = self.seen[meta["uid"]] = self.seen.get(meta["uid"], 0) + 1
        if looks < 2:
            return  # a server takes one look to come
        await self._provision(obj, machine, looks)

    def _may_create(self, owner: Machine | MachinePool | None, cluster: Cluster | None) -> bool:
        if self.has("acts-without-owner"):
            return True
        has_data = bool(_data_secret(owner))
        latch = cluster.status.initialization if cluster else None
        return (has_data or self.has("acts-without-data")) and latch is not None and bool(latch.infrastructure_provisioned)

    async def _add_finalizer(self, obj: Json) -> None:
        present = obj["metadata"].get("finalizers") or []
        if self.finalizer not in present:
            kept = [] if self.has("drops-other-finalizers") else present
            await self._write(obj, {"metadata": {"finalizers": [*kept, self.finalizer]}})

    async def _remove(self, obj: Json, *, is_paused: bool) -> None:
        if is_paused and not self.has("deletes-while-paused"):
            return
        never_made = obj["metadata"]["uid"] not in self.cloud
        if self.has("finalizer-stays") or (self.has("unowned-not-deletable") and never_made):
            return
        self.cloud.pop(obj["metadata"]["uid"], None)
        kept = [name for name in obj["metadata"].get("finalizers") or () if name != self.finalizer]
        if kept != (obj["metadata"].get("finalizers") or []):
            await self._write(obj, {"metadata": {"finalizers": kept}})

    async def _provision(self, obj: Json, machine: Machine | MachinePool | None, looks: int) -> None:
        uid = obj["metadata"]["uid"]
        if self.has("restart-loses-machines") and self.is_restarted and uid in self.cloud and looks == 2:
            self.cloud.pop(uid)
            uid_now = f"{uid}-again"
        else:
            uid_now = self.cloud.get(uid, uid)
        self.cloud[uid] = uid_now
        if self.has("provider-id-changes", "endpoint-changes", "name-changes", "list-changes") and looks > 6:
            uid_now = f"{uid}-{looks}"
        metadata = self._metadata(obj)
        if metadata:
            await self._write(obj, {"metadata": metadata})
        spec, status = await self._state(obj, machine, uid_now, looks)
        if self.has("provisioned-before-provider-id", "endpoint-after-provisioned"):
            await self._write(obj, {"status": status}, "status")
            await asyncio.sleep(POLL)
            await self._write(obj, {"spec": spec})
            return
        if spec:
            await self._write(obj, {"spec": spec})
        await self._write(obj, {"status": status}, "status")
        if self.has("finalizer-late"):
            await self._add_finalizer(obj)

    def _metadata(self, obj: Json) -> Json:
        changes: Json = {}
        if self.has("drops-labels"):
            changes["labels"] = {name: None for name in obj["metadata"].get("labels") or {} if "x-k8s.io" not in name}
        if self.has("reverts-metadata"):
            changes["annotations"] = {name: None for name in obj["metadata"].get("annotations") or {} if name.endswith("in-place")}
        if self.has("drops-owner"):
            changes["ownerReferences"] = None
        return {name: value for name, value in changes.items() if value != {}}

    async def _state(self, obj: Json, machine: Machine | MachinePool | None, identity: str, looks: int) -> tuple[Json, Json]:
        is_up = not (self.has("provisioned-flips-back") and looks > 6)
        conditions = self._conditions(obj, looks)
        status: dict[str, Any] = {} if self.has("provisioned-never") else dict(self.latch.json(is_up)["status"])
        if self.has("ready-before-provisioned") and looks < 6:
            status = {}
        status["conditions"] = conditions
        if self.has("failure-while-well"):
            status |= {"failureReason": "CreateError", "failureMessage": "no more room"}
        if self.has("writes-heartbeat"):
            status["failureMessage"] = f"look {looks}"
        if self.role == "InfraCluster":
            return self._cluster_state(obj, identity, status)
        if self.role == "ControlPlane":
            return await self._plane_state(obj, identity, status)
        if self.role == "BootstrapConfig":
            return {}, await self._config_status(obj, identity, status)
        data = await self._data(machine)
        if self.has("secret-in-status"):
            status["failureMessage"] = f"booted with {data}"
        if self.has("secret-in-event") and looks == 2:
            await self._event(obj, f"booted with {data}")
        if self.has("provider-id-shared", "list-shared"):
            identity = "one"
        if self.role == "InfraMachinePool":
            return self._pool_state(obj, machine, identity, status, looks)
        wanted = machine.spec.failure_domain if isinstance(machine, Machine) else ""
        if wanted or self.has("failure-domain-ignored"):
            status["failureDomain"] = "elsewhere" if self.has("failure-domain-ignored") else wanted
        kind, text = ("Nickname" if self.has("address-type-unknown") else "InternalIP"), ("" if self.has("address-empty") else "10.0.0.1")
        status["addresses"] = [{"type": kind, "address": text}]
        if self.has("provider-id-never"):
            return {}, status
        return {"providerID": f"fake://{identity}" + ("x" * 600 if self.has("provider-id-too-long") else "")}, status

    def _pool_state(
        self, obj: Json, pool: Machine | MachinePool | None, identity: str, status: dict[str, Any], looks: int
    ) -> tuple[Json, Json]:
        """Return the state of a pool whose machines appear and go at once."""
        wanted = (pool.spec.replicas or 0) if isinstance(pool, MachinePool) else 1
        listed = (obj.get("spec") or {}).get("providerIDList") or []
        if self.has("list-never-grows"):
            wanted = min(wanted, 1)
        if self.has("list-never-shrinks"):
            wanted = max(wanted, len(listed))
        ids = [f"fake://{identity}/{number}" for number in range(wanted)]
        status["instances"] = [{"providerID": "fake://elsewhere" if self.has("instance-unknown") else one} for one in ids]
        if self.has("machines-missing"):
            status["infrastructureMachineKind"] = self.gvk.kind.removesuffix("Pool")
        if not self.has("replicas-missing"):
            status["replicas"] = 0 if self.has("replicas-stale") else len(ids)
        ending = "x" * 600 if self.has("pool-id-too-long") else str(looks) if self.has("pool-id-changes") and looks > 6 else ""
        spec: dict[str, Any] = {"providerID": f"fake:///pools/{obj['metadata']['uid']}{ending}"}
        if not self.has("list-never"):
            spec["providerIDList"] = ids + ids if self.has("list-twice") else ids
        return spec, status

    def _cluster_state(self, obj: Json, identity: str, status: dict[str, Any]) -> tuple[Json, Json]:
        host = (
            f"{identity}.example.com" if self.has("endpoint-changes", "restart-loses-machines") else f"{obj['metadata']['uid']}.example.com"
        )
        endpoint = {"host": host, "port": 70000 if self.has("endpoint-port-too-big") else 6443}
        names = ["", "b"] if self.has("failure-domain-without-name") else ["a", "a"] if self.has("failure-domain-twice") else ["a", "b"]
        if self.contract == "v1beta1":
            status["failureDomains"] = {name: {"controlPlane": True} for name in names}
        else:
            status["failureDomains"] = [{"name": name, "controlPlane": True} for name in names]
        return {} if self.has("endpoint-given") else {"controlPlaneEndpoint": endpoint}, status

    async def _plane_state(self, obj: Json, identity: str, status: dict[str, Any]) -> tuple[Json, Json]:
        """Return the state of a control plane, after its kubeconfig was made."""
        meta = obj["metadata"]
        labels = {} if self.has("kubeconfig-without-label") else {_CLUSTER: meta["name"]}
        text = "no kubeconfig" if self.has("kubeconfig-unreadable") else "apiVersion: v1\nkind: Config\nclusters: []\n"
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": f"{meta['name']}-kubeconfig", "namespace": meta["namespace"], "labels": labels},
            "stringData": {"value": text},
        }
        if not self.has("kubeconfig-never"):
            with suppress(AlreadyExists):
                await self.client.create(secret)
        counts = (
            ("updatedReplicas", "readyReplicas")
            if self.contract == "v1beta1"
            else ("upToDateReplicas", "availableReplicas", "readyReplicas")
        )
        if not self.has("replicas-missing"):
            status |= dict.fromkeys(("replicas", *counts), 1)
        if self.contract == "v1beta1":
            status["unavailableReplicas"] = 0
        if not self.has("selector-missing"):
            status["selector"] = "role=control-plane"
        if not self.has("version-missing"):
            status["version"] = "v1.34.1"
        if self.has("versions-unordered"):
            status["versions"] = [{"version": "v1.34.1", "replicas": 1}, {"version": "v1.33.0", "replicas": 1}]
        host = f"{identity}.example.com"
        return {"controlPlaneEndpoint": {"host": host, "port": 70000 if self.has("endpoint-port-too-big") else 6443}}, status

    async def _config_status(self, obj: Json, identity: str, status: dict[str, Any]) -> dict[str, Any]:
        """Return the status of a bootstrap config, after its Secret was made."""
        meta = obj["metadata"]
        name = f"{meta['name']}-{identity[-6:]}" if self.has("name-changes", "restart-loses-machines") else f"{meta['name']}-data"
        labels = {} if self.has("secret-without-label") else {_CLUSTER: (meta.get("labels") or {}).get(_CLUSTER, "")}
        owner = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "labels": labels,
                "ownerReferences": [] if self.has("secret-without-owner") else [owner],
            },
            "stringData": {"data" if self.has("secret-without-value") else "value": "#cloud-config\n"},
        }
        if not self.has("secret-never"):
            with suppress(AlreadyExists):
                await self.client.create(secret)
        if self.has("flag-before-name") and not (obj.get("status") or {}):
            return status
        return {**status, "dataSecretName": name}

    def _conditions(self, obj: Json, looks: int) -> list[Json]:
        generation = obj["metadata"].get("generation", 1)
        first = self.first_generation.setdefault(obj["metadata"]["uid"], generation)
        if self.has("observed-generation-ahead"):
            generation += 5
        if self.has("observed-generation-stale"):
            generation = first
        ready = {
            "type": "Ready",
            "status": "Yes" if self.has("condition-status-yes") else "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": obj["metadata"]["creationTimestamp"],
            "observedGeneration": generation,
        }
        return [ready, {**ready, "status": "False"}] if self.has("condition-twice") else [ready]

    async def _data(self, owner: Machine | MachinePool | None) -> str:
        name = _data_secret(owner)
        secret = await self.client.find(Secret, ObjectKey(owner.metadata.namespace, name)) if owner and name else None
        return bytes(secret.data["value"]).decode() if secret else ""

    async def _event(self, obj: Json, message: str) -> None:
        meta = obj["metadata"]
        about = {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        }
        head = {"generateName": f"{meta['name']}-", "namespace": meta["namespace"]}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": head, "involvedObject": about, "reason": "Booted", "message": message}
        await self.client.create({**event, "type": "Normal"})


def _data_secret(owner: Machine | MachinePool | None) -> str:
    """Return the name of the Secret with the bootstrap data of a Machine, or of the machines of a pool."""
    if owner is None:
        return ""
    spec = owner.spec.template.spec if isinstance(owner, MachinePool) else owner.spec
    return spec.bootstrap.data_secret_name or ""


def _covers(obj: Any, patch: Any) -> bool:
    """Return whether a merge patch would change nothing."""
    if isinstance(patch, dict):
        return all(_covers(obj.get(name) if isinstance(obj, dict) else None, value) for name, value in patch.items())
    return bool(obj == patch) or (patch is None and obj is None)


class Process:
    """The provider as a process that can be restarted."""

    def __init__(self, make: Callable[[], Fake]) -> None:
        self._make = make
        self._task: asyncio.Task[None] | None = None
        self._is_restarted = False

    def start(self) -> None:
        """Start it."""
        fake = self._make()
        fake.is_restarted = self._is_restarted
        self._task = asyncio.create_task(fake.run())

    async def stop(self) -> None:
        """End it."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def restart(self) -> None:
        """End it anywhere, and start it again with an empty memory."""
        await self.stop()
        self._is_restarted = True
        self.start()
