"""Admission of Machine."""

from __future__ import annotations

from typing import Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import UPDATE, Review, Rule, at, items
from clusterwright.admission.sets import (
    FORBIDDEN,
    IMMUTABLE,
    bootstrap,
    changed,
    cluster_name_label,
    fill_in,
    kubernetes_version,
    taints,
    version_default,
)
from clusterwright.api.core import Machine
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, MACHINE_POOL_NAME_LABEL

NODE_DELETION_TIMEOUT: Final = 10


def _of_a_pool(review: Review) -> bool:
    """Return whether the Machine belongs to a MachinePool, which bootstraps it."""
    owners = items(review.new, "metadata", "ownerReferences")
    return MACHINE_POOL_NAME_LABEL in (at(review.new, "metadata", "labels") or {}) or any(o.get("kind") == "MachinePool" for o in owners)


def _is_worker(review: Review) -> bool:
    return CONTROL_PLANE_LABEL not in (at(review.new, "metadata", "labels") or {})


MACHINE: Final = Hook(
    model=Machine,
    defaults=(
        cluster_name_label("MA-D1"),
        version_default("MA-D2", "spec"),
        fill_in("MA-D3", NODE_DELETION_TIMEOUT, "spec", "deletion", "nodeDeletionTimeoutSeconds"),
    ),
    rules=(
        bootstrap("MA-1", "spec.bootstrap", exempt=_of_a_pool),
        Rule("MA-2", FORBIDDEN, "spec.clusterName", changed("spec", "clusterName"), IMMUTABLE, on=UPDATE),
        *kubernetes_version("MA-3", "spec.version", optional=True),
        *taints("MA-4", "spec.taints", workers=_is_worker),
    ),
)
