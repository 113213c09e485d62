"""Admission of KubeadmControlPlaneTemplate: the rules of control planes on creation; afterwards it is immutable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.kubeadmconfigspec import require_tokens, with_former_defaults
from clusterwright.admission.kubeadmcontrolplane import DENIALS_GROUP, shared
from clusterwright.admission.mutability import differences
from clusterwright.admission.rule import CREATE, UPDATE, Fault, Review, Rule, at
from clusterwright.admission.sets import INVALID, gated, template_metadata
from clusterwright.api.codec import convert, to_json
from clusterwright.api.controlplane import KubeadmControlPlaneTemplate
from clusterwright.api.meta import Json

_TEMPLATE: Final = ("spec", "template", "spec")
_FORMER_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}


def _changed(review: Review, value: Any) -> Iterator[Fault]:
    """Yield changes, without defaults of former releases."""
    del value
    before, after = (_comparable(o) for o in (review.old or {}, review.new))
    if at(before, "rollout", "strategy") == _FORMER_STRATEGY and not at(after, "rollout", "strategy"):
        after["rollout"] = (after.get("rollout") or {}) | {"strategy": _FORMER_STRATEGY}
    if before != after:
        yield Fault(review.new, paths=", ".join(differences(before, after)))


def _comparable(template: Json) -> Json:
    spec: Json = dict(at(template, *_TEMPLATE) or {})
    spec["kubeadmConfigSpec"] = with_former_defaults(spec.get("kubeadmConfigSpec") or {})
    typed = convert(template | {"spec": {"template": {"spec": spec}}}, KubeadmControlPlaneTemplate)
    return at(to_json(typed), *_TEMPLATE) or {}


_IDS: Final = {
    "rollout": "KCT-2 {}", "naming": "KCT-3", "taints": "KCT-4", "metadata": "KCT-5", "images": "KCT-6 {}", "kubeadm": "KCT-7",
}  # fmt: skip

KUBEADM_CONTROL_PLANE_TEMPLATE: Final = Hook(
    model=KubeadmControlPlaneTemplate,
    denials_group=DENIALS_GROUP,
    readable=require_tokens(*_TEMPLATE, "kubeadmConfigSpec"),
    gate=gated("KCT-1", "ClusterTopology", on=CREATE),
    rules=(
        *shared(_IDS, _TEMPLATE, replicas=False, on=CREATE),
        *template_metadata("KCT-8", "spec.template.metadata", on=CREATE),
        Rule(
            "KCT-9",
            INVALID,
            "spec.template.spec",
            _changed,
            "KubeadmControlPlaneTemplate spec.template.spec field is immutable. Please create new resource instead. Diff: {paths}",
            on=UPDATE,
        ),
    ),
)
