"""Admission of KubeadmConfig and KubeadmConfigTemplate. The old object does not matter."""

from __future__ import annotations

from typing import Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.kubeadmconfigspec import kubeadm_config_spec, require_tokens, with_former_defaults
from clusterwright.admission.rule import Default, Review
from clusterwright.admission.sets import below, template_metadata
from clusterwright.api.bootstrap import KubeadmConfig, KubeadmConfigTemplate
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import TOPOLOGY_DRY_RUN_ANNOTATION

_TEMPLATE: Final = ("spec", "template", "spec")


def _former_defaults(obj: Json, review: Review) -> None:
    """Return the former defaults, only for a dry run of the topology controller, which compares with stored objects."""
    if review.dry_run and TOPOLOGY_DRY_RUN_ANNOTATION in review.annotations:
        template = below(obj, "spec", "template")
        template["spec"] = with_former_defaults(template.get("spec") or {})


KUBEADM_CONFIG: Final = Hook(
    model=KubeadmConfig,
    readable=require_tokens("spec"),
    rules=kubeadm_config_spec("KC-1", ("spec",)),
)

KUBEADM_CONFIG_TEMPLATE: Final = Hook(
    model=KubeadmConfigTemplate,
    readable=require_tokens(*_TEMPLATE),
    defaults=(Default("KT-D1", "spec.template.spec", _former_defaults),),
    rules=(
        *kubeadm_config_spec("KT-1", _TEMPLATE),
        *template_metadata("KT-2", "spec.template.metadata"),
    ),
)
