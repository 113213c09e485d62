"""Admission of KubeadmConfig and KubeadmConfigTemplate: a link for the API server's chain."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from clusterwright.admission.refusal import hook_name, invalid_object, read, unreadable
from clusterwright.admission.rules import template_metadata
from clusterwright.api.bootstrap import KubeadmConfig, KubeadmConfigTemplate
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import TOPOLOGY_DRY_RUN_ANNOTATION
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.status import FieldError, Verbatim, forbidden, invalid, required
from clusterwright.kubeadm.tokens import TokenError, parse_token
from clusterwright.kubeadm.validation import GATE, Problem, at, problems, with_former_defaults

GROUP = "bootstrap.cluster.x-k8s.io"


class KubeadmConfigAdmission:
    """Refuses specs that break a rule. Creates and updates alike; the old object is never asked."""

    def __init__(self, features: Mapping[str, bool]) -> None:
        self._ignition = features.get(GATE, False)

    async def mutate(self, attributes: Attributes) -> None:
        """Fill in former defaults, for a dry run of the topology controller only: it compares with what is stored."""
        obj = attributes.object
        if not _concerns(attributes, "KubeadmConfigTemplate") or obj is None:
            return
        read(attributes, obj, KubeadmConfigTemplate, "default")
        require_tokens(attributes, at(obj, "spec", "template", "spec") or {}, "default")
        if not attributes.dry_run or TOPOLOGY_DRY_RUN_ANNOTATION not in (obj["metadata"].get("annotations") or {}):
            return
        template = obj.setdefault("spec", {}).setdefault("template", {})
        template["spec"] = with_former_defaults(template.get("spec") or {})

    async def validate(self, attributes: Attributes) -> None:
        """Refuse with every broken rule at once."""
        obj = attributes.object
        if obj is None or not _concerns(attributes, "KubeadmConfig", "KubeadmConfigTemplate"):
            return
        spec, errors = obj.get("spec") or {}, list[FieldError]()
        if attributes.resource.kind == "KubeadmConfig":
            read(attributes, obj, KubeadmConfig, "validation")
            require_tokens(attributes, spec, "validation")
            errors += map(field_error, problems(spec, "spec", ignition=self._ignition))
        else:
            template: Json = spec.get("template") or {}
            errors += map(field_error, problems(template.get("spec") or {}, "spec.template.spec", ignition=self._ignition))
            errors += template_metadata(template.get("metadata"), "spec.template.metadata")
        if errors:
            raise invalid_object(hook_name("validation", attributes), GROUP, attributes, errors)


def require_tokens(attributes: Attributes, spec: Json, purpose: str) -> None:
    """Refuse a KubeadmConfigSpec with tokens of another form: their type cannot hold them."""
    try:
        for token in (spec.get("initConfiguration") or {}).get("bootstrapTokens") or ():
            parse_token(str(token.get("token") or ""))
    except TokenError as error:
        raise unreadable(hook_name(purpose, attributes), error) from None


def _concerns(attributes: Attributes, *kinds: str) -> bool:
    resource = attributes.resource
    return (
        resource.group == GROUP and resource.kind in kinds and not attributes.subresource and attributes.operation in ("CREATE", "UPDATE")
    )


def field_error(problem: Problem) -> FieldError:
    """A broken rule of a KubeadmConfigSpec as the API reports it."""
    if problem.kind == "Required":
        return required(problem.field, problem.text)
    if problem.kind == "Forbidden":
        return forbidden(problem.field, problem.text)
    value = problem.value
    return invalid(problem.field, Verbatim(_compact(value)) if isinstance(value, Mapping) else value, problem.text)


def _compact(value: Mapping[str, object]) -> str:
    """JSON with keys in the order of the API, as errors have always shown it."""
    return msgspec.json.encode(value).decode()
