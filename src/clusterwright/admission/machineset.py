"""Admission of MachineSet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.admission import selectors
from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import UPDATE, Default, Fault, Review, Rule, at
from clusterwright.admission.sets import (
    FORBIDDEN,
    IMMUTABLE,
    INVALID,
    SAMPLE_SUFFIX,
    below,
    bootstrap,
    changed,
    cluster_name_label,
    kubernetes_version,
    machine_naming,
    replicas_default,
    same_cluster_name,
    taints,
    template_metadata,
    version_default,
)
from clusterwright.api.core import MachineSet
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import MACHINE_SET_NAME_LABEL, SKIP_PREFLIGHT_CHECKS_ANNOTATION
from clusterwright.kubeadm.naming import label_value

PREFLIGHT_GATE: Final = "MachineSetPreflightChecks"
PREFLIGHT_CHECKS: Final = ("All", "ControlPlaneIsStable", "ControlPlaneVersionSkew", "KubeadmVersionSkew", "KubernetesVersionSkew")
NAMING_SAMPLE: Final = {"cluster": {"name": "cluster"}, "machineSet": {"name": "machineset"}, "random": SAMPLE_SUFFIX}


def _own_selector(obj: Json, review: Review) -> None:
    del review
    if selectors.is_empty(at(obj, "spec", "selector")):
        name = label_value(at(obj, "metadata", "name") or "")
        below(obj, "spec", "selector", "matchLabels")[MACHINE_SET_NAME_LABEL] = name
        below(obj, "spec", "template", "metadata", "labels")[MACHINE_SET_NAME_LABEL] = name


def unlike_selector(review: Review, value: Any) -> Iterator[Fault]:
    """Yield a fault if the selector is valid and does not match the template's labels."""
    selector = at(review.new, "spec", "selector")
    if selectors.is_valid(selector) and not selectors.fits(selector, value):
        yield Fault(value or {}, selector=selectors.as_text(selector))


def skipped_checks(ids: str) -> Rule:
    """Return the errors of skipped preflight checks: each must exist."""
    supported = " ".join(PREFLIGHT_CHECKS)
    path = f"metadata.annotations.{SKIP_PREFLIGHT_CHECKS_ANNOTATION}"
    text = f"skipped preflight check(s) must be among: [{supported}]"
    return Rule(ids, INVALID, "metadata.annotations", _unknown_checks, text, path=path)


def _unknown_checks(review: Review, value: Any) -> Iterator[Fault]:
    skipped = at(value, SKIP_PREFLIGHT_CHECKS_ANNOTATION)
    if not skipped or not review.enabled(PREFLIGHT_GATE):
        return
    unknown = [check for check in map(str.strip, skipped.split(",")) if check not in PREFLIGHT_CHECKS]
    if unknown:
        yield Fault(unknown)


MACHINE_SET: Final = Hook(
    model=MachineSet,
    defaults=(
        cluster_name_label("MS-D1"),
        replicas_default("MS-D2"),
        Default("MS-D3", "spec.selector", _own_selector),
        version_default("MS-D4", "spec", "template", "spec"),
    ),
    rules=(
        bootstrap("MS-1", "spec.template.spec.bootstrap"),
        selectors.valid_selector("MS-2", "spec.selector"),
        Rule("MS-3", INVALID, "spec.template.metadata.labels", unlike_selector, 'must match spec.selector "{selector}"'),
        skipped_checks("MS-4"),
        Rule("MS-5", FORBIDDEN, "spec.clusterName", changed("spec", "clusterName"), IMMUTABLE, on=UPDATE),
        same_cluster_name("MS-6"),
        *kubernetes_version("MS-7", "spec.template.spec.version", optional=True),
        *taints("MS-8", "spec.template.spec.taints", workers=lambda _: True),
        *machine_naming("MS-9", "spec.machineNaming", NAMING_SAMPLE),
        *template_metadata("MS-10", "spec.template.metadata"),
    ),
)
