"""Lifecycle hooks: their names, the pending ones, and the effect of their answers on the pass."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from clusterwright.api.meta import Json
from clusterwright.api.wellknown import BEFORE_UPGRADE_HOOK_PREFIX, COPIES_OF_THE_OBJECT, PENDING_HOOKS_ANNOTATION
from clusterwright.topology.answers import Answer
from clusterwright.topology.extensions import Question

T = TypeVar("T")

BEFORE_CLUSTER_CREATE: Final = "BeforeClusterCreate"
AFTER_CONTROL_PLANE_INITIALIZED: Final = "AfterControlPlaneInitialized"
BEFORE_CLUSTER_UPGRADE: Final = "BeforeClusterUpgrade"
BEFORE_CONTROL_PLANE_UPGRADE: Final = "BeforeControlPlaneUpgrade"
AFTER_CONTROL_PLANE_UPGRADE: Final = "AfterControlPlaneUpgrade"
BEFORE_WORKERS_UPGRADE: Final = "BeforeWorkersUpgrade"
AFTER_WORKERS_UPGRADE: Final = "AfterWorkersUpgrade"
AFTER_CLUSTER_UPGRADE: Final = "AfterClusterUpgrade"
BEFORE_CLUSTER_DELETE: Final = "BeforeClusterDelete"

LIFECYCLE: Final = (
    BEFORE_CLUSTER_CREATE,
    AFTER_CONTROL_PLANE_INITIALIZED,
    BEFORE_CLUSTER_UPGRADE,
    BEFORE_CONTROL_PLANE_UPGRADE,
    AFTER_CONTROL_PLANE_UPGRADE,
    BEFORE_WORKERS_UPGRADE,
    AFTER_WORKERS_UPGRADE,
    AFTER_CLUSTER_UPGRADE,
    BEFORE_CLUSTER_DELETE,
)
"""All lifecycle hooks, in the order of a cluster's life."""

ANNOTATION_RETRY: Final = 1200


@dataclass(frozen=True, slots=True)
class AskHook:
    """Call all handlers of a hook, unless a blocking answer is still valid. The result is an `Answer`.

    `version` is the subject of the answer: an answer about another version is not valid.
    """

    hook: str
    request: Json
    version: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """Record which hooks are pending now, and the step of the upgrade if there is one. The result is None."""

    pending: frozenset[str]
    step: str | None = None


Computing = Generator[Question | AskHook | Mark, Any, T]
"""A computation that calls extensions, and records pending hooks."""


def pending_hooks(cluster: Mapping[str, Any]) -> frozenset[str]:
    """Return the hooks that are still to be called."""
    annotations = (cluster.get("metadata") or {}).get("annotations") or {}
    return frozenset(filter(None, (annotations.get(PENDING_HOOKS_ANNOTATION) or "").split(",")))


def as_annotation(pending: Iterable[str]) -> str | None:
    """Return the annotation's value; None removes it."""
    return ",".join(sorted(pending)) or None


def note_pending(cluster: Json, pending: Iterable[str]) -> None:
    """Record the pending hooks on a Cluster, in place."""
    annotations = {k: v for k, v in (cluster["metadata"].get("annotations") or {}).items() if k != PENDING_HOOKS_ANNOTATION}
    value = as_annotation(pending)
    cluster["metadata"]["annotations"] = annotations if value is None else {**annotations, PENDING_HOOKS_ANNOTATION: value}


def clean_cluster(cluster: Json) -> Json:
    """Return the Cluster in the form for extensions."""
    metadata = {k: v for k, v in cluster["metadata"].items() if k != "managedFields"}
    if metadata.get("annotations"):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k not in COPIES_OF_THE_OBJECT}
    return {**{k: v for k, v in cluster.items() if k != "status"}, "metadata": metadata}


def blocked_by_annotations(cluster: Json) -> Answer:
    """Return the blocking answer in the Cluster's annotations, which replaces a handler of BeforeClusterUpgrade."""
    names = sorted(k for k in cluster["metadata"].get("annotations") or {} if k.startswith(BEFORE_UPGRADE_HOOK_PREFIX))
    if not names:
        return Answer()
    text = f"annotation {names[0]} is set" if len(names) == 1 else f"annotations {', '.join(names)} are set"
    return Answer(ANNOTATION_RETRY, text)


def steps(plan: Sequence[str]) -> list[Json]:
    """Return a plan in the form of requests."""
    return [{"version": version} for version in plan]


def blocking_text(answers: Mapping[str, Answer]) -> str:
    """Return the hooks that block, in lifecycle order, with their messages."""
    blocking = [(hook, answers[hook]) for hook in LIFECYCLE if hook in answers and answers[hook].is_blocking]
    return "; ".join(f"{hook}: {a.message}" if a.message else hook for hook, a in blocking)
