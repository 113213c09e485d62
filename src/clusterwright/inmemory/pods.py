"""Pods of simulated workloads: their names, owners and status. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json


def ran(pod: Json, now: str, *, is_done: bool) -> Json:
    """Return the status of a Pod whose containers run, or have succeeded."""
    state = (
        {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        if is_done
        else {"running": {"startedAt": now}}
    )
    ready = "False" if is_done else "True"
    conditions = [
        {"type": "PodReadyToStartContainers", "status": "True"},
        {"type": "Initialized", "status": "True"},
        {"type": "Ready", "status": ready},
        {"type": "ContainersReady", "status": ready},
        {"type": "PodScheduled", "status": "True"},
    ]
    containers = [
        {
            "name": one["name"],
            "image": one.get("image", ""),
            "imageID": one.get("image", ""),
            "ready": not is_done,
            "started": not is_done,
            "restartCount": 0,
            "state": state,
        }
        for one in pod["spec"].get("containers") or ()
    ]
    conditions = timed(conditions, (pod.get("status") or {}).get("conditions"), now)
    phase = "Succeeded" if is_done else "Running"
    return {"phase": phase, "conditions": conditions, "containerStatuses": containers, "startTime": now}


def timed(conditions: list[Json], before: Any, now: str) -> list[Json]:
    """Return conditions with their times, which stay while the status is the same."""
    known = {one.get("type"): one for one in before or ()}
    made = []
    for one in conditions:
        old = known.pop(one["type"], {})
        made.append({"lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == one["status"] else now, **one})
    return [*made, *known.values()]


def said(holds: bool, reason: str, otherwise: str) -> Json:
    """Return status and reason of a condition."""
    return {"status": "True" if holds else "False", "reason": reason if holds else otherwise}


def is_ready(pod: Json) -> bool:
    """Return whether a Pod is ready."""
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in (pod.get("status") or {}).get("conditions") or ())


def controller(owner: Json, kind: str) -> Json:
    """Return an ownerReference to the controller of a Pod or ReplicaSet."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    meta = owner["metadata"]
    return {"apiVersion": group, "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True, "blockOwnerDeletion": True}


def claims(spec: Json) -> dict[str, Json]:
    """Return the claim templates of a StatefulSet, by name."""
    return {one["metadata"]["name"]: one for one in spec.get("volumeClaimTemplates") or ()}


def digest(value: Any) -> str:
    """Return a short digest of a value."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:10]


def fresh(base: str, uid: str, taken: set[str], start: int) -> Iterator[str]:
    """Yield names of new Pods."""
    number = start
    while True:
        number += 1
        name = f"{base[:52]}-{hashlib.sha256(f'{uid}{number}'.encode()).hexdigest()[:5]}"
        if name not in taken:
            taken.add(name)
            yield name


def address(uid: str) -> str:
    """Return the address of a load balancer."""
    digest = hashlib.sha256(uid.encode()).digest()
    return f"10.255.{digest[0]}.{digest[1] % 254 + 1}"


def number(value: Any, default: int) -> int:
    """Return a whole number, or the default for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel"):
    owner_references: tuple[_Owner, ...] = ()


class Brief(msgspec.Struct):
    metadata: _Metadata
    spec: msgspec.Raw = msgspec.Raw(b"{}")


BRIEF: Final = msgspec.json.Decoder(Brief)
