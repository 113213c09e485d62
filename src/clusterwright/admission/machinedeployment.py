"""Admission of MachineDeployment."""

from __future__ import annotations

from typing import Final

from clusterwright.admission import selectors
from clusterwright.admission.hook import Hook
from clusterwright.admission.machineset import NAMING_SAMPLE, skipped_checks, unlike_selector
from clusterwright.admission.rule import UPDATE, Default, Review, Rule, at
from clusterwright.admission.sets import (
    FORBIDDEN,
    IMMUTABLE,
    INVALID,
    below,
    bootstrap,
    changed,
    cluster_name_label,
    kubernetes_version,
    label_values,
    machine_naming,
    percentage,
    replicas_default,
    rollout,
    same_cluster_name,
    taints,
    template_metadata,
    version_default,
)
from clusterwright.api.core import MachineDeployment
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_DEPLOYMENT_NAME_LABEL


def _strategy(obj: Json, review: Review) -> None:
    del review
    strategy = below(obj, "spec", "rollout", "strategy")
    strategy["type"] = strategy.get("type") or "RollingUpdate"


def _rolling_update(obj: Json, review: Review) -> None:
    del review
    strategy = below(obj, "spec", "rollout", "strategy")
    if strategy["type"] != "RollingUpdate":
        return
    rolling = below(strategy, "rollingUpdate")
    for key, value in (("maxSurge", 1), ("maxUnavailable", 0)):
        if rolling.get(key) is None:
            rolling[key] = value


def _own_selector(obj: Json, review: Review) -> None:
    del review
    if selectors.is_empty(at(obj, "spec", "selector")):
        _label(obj, MACHINE_DEPLOYMENT_NAME_LABEL, at(obj, "metadata", "name") or "")


def _cluster_selector(obj: Json, review: Review) -> None:
    del review
    _label(obj, CLUSTER_NAME_LABEL, at(obj, "spec", "clusterName") or "")


def _label(obj: Json, label: str, value: str) -> None:
    """Add a label to the selector, and to the template."""
    below(obj, "spec", "selector", "matchLabels")[label] = value
    below(obj, "spec", "template", "metadata", "labels")[label] = value


MACHINE_DEPLOYMENT: Final = Hook(
    model=MachineDeployment,
    defaults=(
        cluster_name_label("MD-D1"),
        replicas_default("MD-D2"),
        Default("MD-D3", "spec.rollout.strategy.type", _strategy),
        Default("MD-D4", "spec.rollout.strategy.rollingUpdate", _rolling_update),
        Default("MD-D5", "spec.selector", _own_selector),
        Default("MD-D6", f"spec.selector.matchLabels.{CLUSTER_NAME_LABEL}", _cluster_selector),
        version_default("MD-D7", "spec", "template", "spec"),
    ),
    rules=(
        Rule("MD-1", INVALID, "metadata.name", label_values, "must be a valid label value: {text}"),
        bootstrap("MD-2", "spec.template.spec.bootstrap"),
        selectors.valid_selector("MD-3", "spec.selector"),
        Rule("MD-4", FORBIDDEN, "spec.template.metadata.labels", unlike_selector, 'must match spec.selector "{selector}"'),
        skipped_checks("MD-5"),
        Rule("MD-6", FORBIDDEN, "spec.clusterName", changed("spec", "clusterName"), IMMUTABLE, on=UPDATE),
        same_cluster_name("MD-7"),
        *rollout("MD-8", "spec.rollout.strategy"),
        percentage("MD-9", "spec.remediation.maxInFlight"),
        *kubernetes_version("MD-10", "spec.template.spec.version", optional=True),
        *machine_naming("MD-11", "spec.machineNaming", NAMING_SAMPLE),
        *taints("MD-12", "spec.template.spec.taints", workers=lambda _: True),
        *template_metadata("MD-13", "spec.template.metadata"),
    ),
)
