"""Admission of KubeadmConfig and KubeadmConfigTemplate: a link for the API server's chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from clusterwright.api.bootstrap import KubeadmConfig, KubeadmConfigTemplate
from clusterwright.api.codec import DecodeError, convert
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import TOPOLOGY_DRY_RUN_ANNOTATION
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.metadata import validate_annotations, validate_labels
from clusterwright.apiserver.status import FieldError, StatusError, Verbatim, failure, forbidden, invalid, invalid_error, required
from clusterwright.kubeadm.tokens import TokenError, parse_token
from clusterwright.kubeadm.validation import GATE, Problem, problems, with_former_defaults

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
        _read(attributes, obj, KubeadmConfigTemplate, "default")
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
            _read(attributes, obj, KubeadmConfig, "validation")
            errors += map(_field_error, problems(spec, "spec", ignition=self._ignition))
        else:
            template: Json = spec.get("template") or {}
            errors += map(_field_error, problems(template.get("spec") or {}, "spec.template.spec", ignition=self._ignition))
            metadata = template.get("metadata") or {}
            errors += validate_labels(metadata.get("labels") or {}, "spec.template.metadata.labels")
            errors += validate_annotations(metadata.get("annotations") or {}, "spec.template.metadata.annotations")
        if errors:
            raise _denied(attributes, errors)


def _read(attributes: Attributes, obj: Json, model: type[KubeadmConfig] | type[KubeadmConfigTemplate], hook: str) -> None:
    """Refuse what the model cannot hold, tokens of another form among it."""
    try:
        read = convert(obj, model)
        spec = read.spec if isinstance(read, KubeadmConfig) else read.spec.template.spec
        init = spec.init_configuration if spec is not None else None
        for token in init.bootstrap_tokens if init is not None else ():
            parse_token(token.token)
    except (DecodeError, TokenError) as error:
        name = f"{hook}.{attributes.resource.kind.lower()}.{GROUP}"
        raise failure(400, "", f'admission webhook "{name}" denied the request: {error}') from None


def _denied(attributes: Attributes, errors: Sequence[FieldError]) -> StatusError:
    """Refused, in the words that a webhook's refusal has."""
    kind = attributes.resource.kind
    refusal = invalid_error(GROUP, kind, attributes.name, errors)
    hook = f"validation.{kind.lower()}.{GROUP}"
    return StatusError(refusal.status | {"message": f'admission webhook "{hook}" denied the request: {refusal}'})


def _concerns(attributes: Attributes, *kinds: str) -> bool:
    resource = attributes.resource
    return (
        resource.group == GROUP and resource.kind in kinds and not attributes.subresource and attributes.operation in ("CREATE", "UPDATE")
    )


def _field_error(problem: Problem) -> FieldError:
    if problem.kind == "Required":
        return required(problem.field, problem.text)
    if problem.kind == "Forbidden":
        return forbidden(problem.field, problem.text)
    value = problem.value
    return invalid(problem.field, Verbatim(_compact(value)) if isinstance(value, Mapping) else value, problem.text)


def _compact(value: Mapping[str, object]) -> str:
    """JSON with keys in the order of the API, as errors have always shown it."""
    return msgspec.json.encode(value).decode()
