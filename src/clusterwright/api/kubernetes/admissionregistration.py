"""admissionregistration.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, REQUIRED, Int32, ListMap, Merge
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS, LabelSelector, Object


class WebhookServiceReference(Builtin):
    namespace: Annotated[str, ALWAYS, REQUIRED] = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    path: str | None = None
    port: Int32 | None = None


class WebhookClientConfig(Builtin):
    url: str | None = None
    service: WebhookServiceReference | None = None
    ca_bundle: bytes = b""


class RuleWithOperations(Builtin):
    operations: Annotated[tuple[str, ...], ATOMIC] = ()
    api_groups: Annotated[tuple[str, ...], ATOMIC] = ()
    api_versions: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    scope: str | None = None


class MatchCondition(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    expression: Annotated[str, ALWAYS, REQUIRED] = ""


class MutatingWebhook(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    client_config: Annotated[WebhookClientConfig, ALWAYS, REQUIRED] = WebhookClientConfig()
    rules: Annotated[tuple[RuleWithOperations, ...], ATOMIC] = ()
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: Annotated[str | None, REQUIRED] = None
    timeout_seconds: Int32 | None = None
    admission_review_versions: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    reinvocation_policy: str | None = None
    match_conditions: Annotated[tuple[MatchCondition, ...], ListMap("name"), Merge("name")] = ()


class MutatingWebhookConfiguration(Object):
    """admissionregistration.k8s.io/v1 MutatingWebhookConfiguration."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "admissionregistration.k8s.io/v1"
    kind: str = "MutatingWebhookConfiguration"
    webhooks: Annotated[tuple[MutatingWebhook, ...], ListMap("name"), Merge("name")] = ()


class ValidatingWebhook(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    client_config: Annotated[WebhookClientConfig, ALWAYS, REQUIRED] = WebhookClientConfig()
    rules: Annotated[tuple[RuleWithOperations, ...], ATOMIC] = ()
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: Annotated[str | None, REQUIRED] = None
    timeout_seconds: Int32 | None = None
    admission_review_versions: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    match_conditions: Annotated[tuple[MatchCondition, ...], ListMap("name"), Merge("name")] = ()


class ValidatingWebhookConfiguration(Object):
    """admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "admissionregistration.k8s.io/v1"
    kind: str = "ValidatingWebhookConfiguration"
    webhooks: Annotated[tuple[ValidatingWebhook, ...], ListMap("name"), Merge("name")] = ()
