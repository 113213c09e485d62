"""Admission of MachinePool."""

from __future__ import annotations

from typing import Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.machine import NODE_DELETION_TIMEOUT
from clusterwright.admission.rule import UPDATE, Rule
from clusterwright.admission.sets import (
    FORBIDDEN,
    IMMUTABLE,
    TAINTS_GATE,
    bootstrap,
    changed,
    cluster_name_label,
    fill_in,
    gated,
    kubernetes_version,
    replicas_default,
    same_cluster_name,
    template_metadata,
    version_default,
)
from clusterwright.api.core import MachinePool

_TAINTS: Final = "spec.template.spec.taints"
_TAINTS_PATH: Final = "spec.taints"
"""The path in errors, without its parents."""

MACHINE_POOL: Final = Hook(
    model=MachinePool,
    gate=gated("MP-1", "MachinePool"),
    defaults=(
        cluster_name_label("MP-D1"),
        replicas_default("MP-D2"),
        fill_in("MP-D3", NODE_DELETION_TIMEOUT, "spec", "template", "spec", "deletion", "nodeDeletionTimeoutSeconds"),
        version_default("MP-D4", "spec", "template", "spec"),
    ),
    rules=(
        bootstrap("MP-2", "spec.template.spec.bootstrap"),
        Rule("MP-3", FORBIDDEN, "spec.clusterName", changed("spec", "clusterName"), IMMUTABLE, on=UPDATE),
        same_cluster_name("MP-4"),
        *kubernetes_version("MP-5", "spec.template.spec.version", optional=True),
        Rule("MP-6", FORBIDDEN, _TAINTS, lambda _, v: bool(v), "taints feature for MachinePools is not yet implemented", path=_TAINTS_PATH),
        Rule(
            "MP-7",
            FORBIDDEN,
            _TAINTS,
            lambda r, v: bool(v) and not r.enabled(TAINTS_GATE),
            f"taints are not allowed to be set when the feature gate {TAINTS_GATE} is disabled",
            path=_TAINTS_PATH,
        ),
        *template_metadata("MP-8", "spec.template.metadata"),
    ),
)
