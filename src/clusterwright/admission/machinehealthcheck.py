"""Admission of MachineHealthCheck."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.admission import selectors
from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import UPDATE, Review, Rule, at
from clusterwright.admission.sets import FORBIDDEN, IMMUTABLE, INVALID, REQUIRED, changed, cluster_name_label, fill_in, health_check
from clusterwright.api.core import MachineHealthCheck
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL


def _other_cluster(review: Review, value: Any) -> bool:
    labels = at(value, "matchLabels") or {}
    return CLUSTER_NAME_LABEL in labels and labels[CLUSTER_NAME_LABEL] != (at(review.new, "spec", "clusterName") or "")


MACHINE_HEALTH_CHECK: Final = Hook(
    model=MachineHealthCheck,
    defaults=(
        cluster_name_label("MHC-D1"),
        fill_in("MHC-D2", 600, "spec", "checks", "nodeStartupTimeoutSeconds"),
    ),
    rules=(
        selectors.valid_selector("MHC-1", "spec.selector"),
        Rule("MHC-2", REQUIRED, "spec.selector", lambda _, v: selectors.is_empty(v), "selector must not be empty"),
        Rule("MHC-3", INVALID, "spec.selector", _other_cluster, "cannot specify a cluster selector other than the one specified by ClusterName"),
        Rule("MHC-4", FORBIDDEN, "spec.clusterName", changed("spec", "clusterName"), IMMUTABLE, on=UPDATE),
        *health_check("MHC-5", "spec"),
    ),
)  # fmt: skip
