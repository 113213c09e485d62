"""Simulate the scheduler and the controllers of workloads in a simulated cluster: Pods of users' objects appear, and are counted.

Nothing runs, so every container is ready at once, and every Job succeeds. Objects in kube-system are kubeadm's and are left alone. The
work for one object is bounded, because users choose the numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.store import Entry, Event
from clusterwright.inmemory import placement
from clusterwright.inmemory.pods import BRIEF, address, claims, controller, digest, fresh, is_ready, number, ran, said, timed

MOST_PODS: Final = 200
"""The most Pods of one object. More are not created, and its status says so."""
_SYSTEM: Final = "kube-system"
_APPS: Final = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch")
_TABLE_OF: Final = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "Job": "jobs.batch",
}
_HASH: Final = "pod-template-hash"
_REVISION: Final = "controller-revision-hash"


class Workloads:
    """The workloads of one cluster, called for each write of them, of Pods, Nodes, claims and Services."""

    def __init__(self, server: ApiServer, make: Callable[[Json], bool], is_served: Callable[[str], bool]) -> None:
        """Create the controllers. `make` creates an object with its status; `is_served` says whether a Node's kubelet runs."""
        self._server, self._make, self._is_served = server, make, is_served
        self._pods, self._nodes = server.store.table("pods"), server.store.table("nodes")
        self._due: dict[tuple[str, str], None] = {}
        self._works = False
        self._owned: dict[str, set[str]] = {}
        """The keys of the Pods of each owner, by its uid."""
        self._room = placement.Room()
        for entry in list(self._pods.objects.values()):
            self._count(None, entry)
        for name in (*_APPS, "pods", "nodes", "persistentvolumeclaims", "services"):
            server.store.table(name).hooks.append(_Ear(name, self._hear))
        for name in (*_APPS, "pods", "persistentvolumeclaims", "services"):  # what was left undone before a restart
            for entry in list(server.store.table(name).objects.values()):
                if entry.namespace != _SYSTEM:
                    self._later(name, entry.key)

    def _hear(self, table: str, event: Event) -> None:
        entry = event.entry
        if table == "nodes":
            if event.old is None or BRIEF.decode(event.old.raw).spec != BRIEF.decode(entry.raw).spec:
                self._all_again()
            return
        if table == "pods":
            self._count(event.old, entry if event.type != "DELETED" else None)
        if entry.namespace == _SYSTEM:
            return
        if table == "pods":
            for owner in BRIEF.decode(entry.raw).metadata.owner_references:
                if owner.controller and owner.kind in _TABLE_OF:
                    self._later(_TABLE_OF[owner.kind], f"{entry.namespace}/{owner.name}")
        if table == "replicasets.apps":
            for owner in BRIEF.decode(entry.raw).metadata.owner_references:
                if owner.controller and owner.kind == "Deployment":
                    self._later("deployments.apps", f"{entry.namespace}/{owner.name}")
        if event.type != "DELETED":
            self._later(table, entry.key)

    def _all_again(self) -> None:
        """Look at what depends on Nodes: Pods without a Node, and DaemonSets."""
        for entry in list(self._pods.objects.values()):
            if entry.namespace != _SYSTEM:
                self._later("pods", entry.key)
        for entry in list(self._server.store.table("daemonsets.apps").objects.values()):
            if entry.namespace != _SYSTEM:
                self._later("daemonsets.apps", entry.key)

    def _count(self, old: Entry | None, new: Entry | None) -> None:
        """Keep up who owns a Pod, and what it takes of its Node."""
        for entry, is_there in ((old, False), (new, True)):
            for owner in BRIEF.decode(entry.raw).metadata.owner_references if entry is not None else ():
                if owner.controller and entry is not None:
                    keys = self._owned.setdefault(owner.uid, set())
                    (keys.add if is_there else keys.discard)(entry.key)
                    if not keys:
                        del self._owned[owner.uid]
        self._room.change(old.raw if old is not None else None, new.raw if new is not None else None)

    def _later(self, table: str, key: str) -> None:
        """Look at an object after the current request, once for all changes until then, in steps."""
        self._due[table, key] = None
        if not self._works:
            self._works = True
            self._server.in_steps(self._work())

    def _work(self) -> Iterator[int]:
        """Look at all objects that are due; each object and each Pod that is created or removed is a step."""
        try:
            while self._due:
                table, key = next(iter(self._due))
                del self._due[table, key]
                yield from self._look(table, key)
                yield 0
        finally:
            self._works = False

    def _look(self, table: str, key: str) -> Iterator[int]:
        entry = self._server.store.table(table).objects.get(key)
        if entry is None:
            return
        obj: Json = msgspec.json.decode(entry.raw)
        if obj["metadata"].get("deletionTimestamp"):
            return
        match table:
            case "pods":
                self._pod(entry, obj)
            case "deployments.apps":
                self._deployment(entry, obj)
            case "replicasets.apps":
                yield from self._replica_set(entry, obj)
            case "statefulsets.apps":
                yield from self._stateful_set(entry, obj)
            case "daemonsets.apps":
                yield from self._daemon_set(entry, obj)
            case "jobs.batch":
                yield from self._job(entry, obj)
            case "persistentvolumeclaims":
                amounts = ((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}
                modes = (obj.get("spec") or {}).get("accessModes") or []
                self._report(table, entry, obj, {"phase": "Bound", "accessModes": modes, "capacity": amounts})
            case "services":
                if (obj.get("spec") or {}).get("type") == "LoadBalancer":
                    ingress = {"ip": address(str(obj["metadata"].get("uid"))), "ipMode": "VIP"}
                    self._report(table, entry, obj, {"loadBalancer": {"ingress": [ingress]}})

    # ------------------------------------------------------------------------------------------------------ Pods

    def _pod(self, entry: Entry, pod: Json) -> None:
        """Bind a Pod to a Node, then let it run there."""
        status = pod.get("status") or {}
        if status.get("phase", "Pending") != "Pending":
            return
        if not pod["spec"].get("nodeName"):
            if pod["spec"].get("schedulingGates") or pod["spec"].get("schedulerName", "default-scheduler") != "default-scheduler":
                return
            nodes = [msgspec.json.decode(node.raw) for node in self._nodes.objects.values()]
            node, why = placement.choose(pod, [n for n in nodes if self._is_served(n["metadata"]["name"])], self._room)
            if not node:
                refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
                self._report(
                    "pods", entry, pod, {"phase": "Pending", "conditions": timed([refused], status.get("conditions"), self._now())}
                )
                return
            pod["spec"]["nodeName"] = node
        if not self._is_served(pod["spec"]["nodeName"]):
            return
        is_done = any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences") or ())
        self._report("pods", entry, pod, ran(pod, self._now(), is_done=is_done), changed=True)

    def _now(self) -> str:
        return self._server.timestamp()

    def _report(self, table: str, entry: Entry, obj: Json, status: Json, *, changed: bool = False) -> None:
        """Write fields of an object's status if they differ; `changed`: other fields differ."""
        before = obj.get("status") or {}
        whole = {**before, **status}
        if changed or whole != before:
            self._server.put_system(self._server.store.table(table), entry, {**obj, "status": whole})

    def _pods_of(self, owner: Json) -> list[tuple[Entry, Json]]:
        """Return the Pods that an object controls, and that are not being deleted, by name."""
        found = []
        for key in sorted(self._owned.get(owner["metadata"]["uid"], ())):
            entry = self._pods.objects.get(key)
            pod = msgspec.json.decode(entry.raw) if entry is not None else None
            if entry is not None and pod is not None and not pod["metadata"].get("deletionTimestamp"):
                found.append((entry, pod))
        return found

    def _create_pod(self, owner: Json, kind: str, name: str, labels: Mapping[str, str] = {}, **spec: Any) -> None:  # it is read
        template = owner["spec"]["template"]
        metadata = template.get("metadata") or {}
        self._make(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": owner["metadata"]["namespace"],
                    "labels": {**(metadata.get("labels") or {}), **labels},
                    "annotations": dict(metadata.get("annotations") or {}),
                    "ownerReferences": [controller(owner, kind)],
                },
                "spec": {**template["spec"], **spec},
            }
        )

    def _remove(self, pod: Entry) -> None:
        """Remove a Pod, if it is still there: requests are answered between steps."""
        if self._pods.objects.get(pod.key) is pod:
            self._server.remove_system(self._pods, pod)

    # ------------------------------------------------------------------------------------------------- workloads

    def _replica_set(self, entry: Entry, owner: Json) -> Iterator[int]:
        pods = self._pods_of(owner)
        wanted = min(number(owner["spec"].get("replicas"), 1), MOST_PODS)
        for surplus, _ in pods[wanted:]:
            self._remove(surplus)
            yield 1
        names = {pod.name for pod, _ in pods}
        names_left = fresh(owner["metadata"]["name"], str(owner["metadata"]["uid"]), names, self._server.store.revision)
        for _ in range(wanted - len(pods)):
            self._create_pod(owner, "ReplicaSet", next(names_left))
            yield 1
        count, ready = self._counted(owner)
        numbers = {"replicas": count, "fullyLabeledReplicas": count, "readyReplicas": ready, "availableReplicas": ready}
        self._conclude("replicasets.apps", entry.key, numbers)

    def _deployment(self, entry: Entry, owner: Json) -> None:
        sets = self._server.store.table("replicasets.apps")
        template, name = owner["spec"]["template"], owner["metadata"]["name"]
        mark = digest(template)
        own = f"{name}-{mark}"
        mine = [
            (one, msgspec.json.decode(one.raw))
            for one in list(sets.range(entry.namespace))
            if any(o.controller and o.uid == owner["metadata"]["uid"] for o in BRIEF.decode(one.raw).metadata.owner_references)
        ]
        wanted = number(owner["spec"].get("replicas"), 1)
        if own not in {one.name for one, _ in mine}:
            labels = {**((template.get("metadata") or {}).get("labels") or {}), _HASH: mark}
            selector = owner["spec"].get("selector") or {}
            self._make(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": {
                        "name": own,
                        "namespace": entry.namespace,
                        "labels": labels,
                        "annotations": {"deployment.kubernetes.io/revision": str(len(mine) + 1)},
                        "ownerReferences": [controller(owner, "Deployment")],
                    },
                    "spec": {
                        "replicas": wanted,
                        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), _HASH: mark}},
                        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
                    },
                }
            )
        for one, found in mine:
            size = wanted if one.name == own else 0
            if found["spec"].get("replicas") != size:
                found["spec"]["replicas"] = size
                found["metadata"]["generation"] = number(found["metadata"].get("generation"), 1) + 1
                self._server.put_system(sets, one, found)
        status = next((found.get("status") or {} for one, found in mine if one.name == own), {})
        ready = number(status.get("readyReplicas"), 0)
        count = number(status.get("replicas"), 0)
        conditions = [
            {"type": "Available", **said(ready >= wanted, "MinimumReplicasAvailable", "MinimumReplicasUnavailable")},
            {"type": "Progressing", **said(True, "NewReplicaSetAvailable" if ready >= wanted else "ReplicaSetUpdated", "")},
        ]
        numbers = {"replicas": count, "updatedReplicas": count, "readyReplicas": ready, "availableReplicas": ready}
        shown = {**numbers, "unavailableReplicas": max(wanted - ready, 0)}
        self._conclude("deployments.apps", entry.key, shown, conditions)

    def _stateful_set(self, entry: Entry, owner: Json) -> Iterator[int]:
        name, spec = owner["metadata"]["name"], owner["spec"]
        revision = f"{name}-{digest(spec['template'])}"
        first = number((spec.get("ordinals") or {}).get("start"), 0)
        wanted = min(number(spec.get("replicas"), 1), MOST_PODS)
        names = [f"{name}-{index}" for index in range(first, first + wanted)]
        is_rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
        partition = number(((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition"), 0)
        present = {}
        for pod, found in self._pods_of(owner):
            ordinal = pod.name.removeprefix(f"{name}-")
            is_old = (found["metadata"].get("labels") or {}).get(_REVISION) != revision
            if pod.name not in names or (is_old and is_rolling and ordinal.isdecimal() and int(ordinal) - first >= partition):
                self._remove(pod)
                yield 1
            else:
                present[pod.name] = found
        for index, own in enumerate(names, first):
            if own in present:
                continue
            volumes = [v for v in spec["template"]["spec"].get("volumes") or [] if v["name"] not in claims(spec)]
            for claim, template in claims(spec).items():
                self._claim(owner, f"{claim}-{own}", template)
                volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{own}"}})
            labels = {"statefulset.kubernetes.io/pod-name": own, "apps.kubernetes.io/pod-index": str(index), _REVISION: revision}
            more = {"volumes": volumes} if volumes else {}
            self._create_pod(owner, "StatefulSet", own, labels, hostname=own, subdomain=spec.get("serviceName", ""), **more)
            yield 1
        count, ready = self._counted(owner)
        updated = sum((pod["metadata"].get("labels") or {}).get(_REVISION) == revision for _, pod in self._pods_of(owner))
        before = (owner.get("status") or {}).get("currentRevision") or revision
        current = revision if updated == count == wanted else before
        numbers = {"replicas": count, "readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": updated}
        numbers["currentReplicas"] = updated if current == revision else count - updated
        self._conclude(
            "statefulsets.apps", entry.key, {**numbers, "currentRevision": current, "updateRevision": revision, "collisionCount": 0}
        )

    def _claim(self, owner: Json, name: str, template: Json) -> None:
        metadata = {**(template.get("metadata") or {}), "name": name, "namespace": owner["metadata"]["namespace"]}
        self._make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template.get("spec") or {}})

    def _daemon_set(self, entry: Entry, owner: Json) -> Iterator[int]:
        nodes = [msgspec.json.decode(node.raw) for node in self._nodes.objects.values()]
        probe = {"metadata": {}, "spec": owner["spec"]["template"]["spec"]}
        revision = digest(owner["spec"]["template"])
        hosts = [n["metadata"]["name"] for n in nodes if placement.fits(probe, n, is_daemon=True)][:MOST_PODS]
        present = set()
        for pod, found in self._pods_of(owner):
            is_old = (found["metadata"].get("labels") or {}).get(_REVISION) != revision
            if found["spec"].get("nodeName") not in hosts or is_old:
                self._remove(pod)
                yield 1
            else:
                present.add(found["spec"]["nodeName"])
        for host in hosts:
            if host not in present:
                name = f"{owner['metadata']['name'][:50]}-{hashlib.sha256(host.encode()).hexdigest()[:5]}"
                self._create_pod(owner, "DaemonSet", name, {_REVISION: revision}, nodeName=host)
                yield 1
        count, ready = self._counted(owner)
        numbers = {"desiredNumberScheduled": len(hosts), "currentNumberScheduled": count, "numberMisscheduled": 0}
        numbers |= {"numberReady": ready, "numberAvailable": ready, "updatedNumberScheduled": count}
        self._conclude("daemonsets.apps", entry.key, numbers)

    def _job(self, entry: Entry, owner: Json) -> Iterator[int]:
        if owner["spec"].get("suspend") or (owner.get("status") or {}).get("completionTime"):
            return
        wanted = min(number(owner["spec"].get("completions"), number(owner["spec"].get("parallelism"), 1)), MOST_PODS)
        pods = self._pods_of(owner)
        names_left = fresh(owner["metadata"]["name"], str(owner["metadata"]["uid"]), {p.name for p, _ in pods}, self._server.store.revision)
        labels = {"batch.kubernetes.io/job-name": owner["metadata"]["name"], "job-name": owner["metadata"]["name"]}
        for _ in range(wanted - len(pods)):
            self._create_pod(owner, "Job", next(names_left), labels)
            yield 1
        done = sum((pod.get("status") or {}).get("phase") == "Succeeded" for _, pod in self._pods_of(owner))
        status: Json = {"succeeded": done, "active": wanted - done, "ready": 0, "terminating": 0}
        status["startTime"] = (owner.get("status") or {}).get("startTime") or self._now()
        conditions = []
        if done >= wanted:
            status["completionTime"] = self._now()
            conditions = [{"type": one, **said(True, "CompletionsReached", "")} for one in ("SuccessCriteriaMet", "Complete")]
        self._conclude("jobs.batch", entry.key, status, conditions, is_observed=False)

    def _counted(self, owner: Json) -> tuple[int, int]:
        """Return how many Pods an object has, and how many of them are ready."""
        pods = [pod for _, pod in self._pods_of(owner)]
        return len(pods), sum(map(is_ready, pods))

    def _conclude(self, table: str, key: str, status: Json, conditions: list[Json] | None = None, *, is_observed: bool = True) -> None:
        """Write the status of an object as it is now stored."""
        entry = self._server.store.table(table).objects.get(key)
        if entry is None:
            return
        obj: Json = msgspec.json.decode(entry.raw)
        if is_observed:
            status = {**status, "observedGeneration": number(obj["metadata"].get("generation"), 1)}
        if conditions:
            status = {**status, "conditions": timed(conditions, (obj.get("status") or {}).get("conditions"), self._now())}
        self._report(table, entry, obj, status)


class _Ear:
    def __init__(self, table: str, tell: Callable[[str, Event], None]) -> None:
        self._table, self._tell = table, tell

    def offer(self, event: Event) -> None:
        self._tell(self._table, event)
