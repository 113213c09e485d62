"""Reviews of authentication.k8s.io/v1 and authorization.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Int64
from clusterwright.api.kubernetes.base import Builtin, SensitiveBuiltin
from clusterwright.api.meta import ALWAYS, FieldSelectorRequirement, LabelSelectorRequirement, Object


class TokenReviewSpec(SensitiveBuiltin):
    token: str = ""
    audiences: Annotated[tuple[str, ...], ATOMIC] = ()


class UserInfo(Builtin):
    username: str = ""
    uid: str = ""
    groups: Annotated[tuple[str, ...], ATOMIC] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class TokenReviewStatus(Builtin):
    authenticated: bool = False
    user: Annotated[UserInfo, ALWAYS] = UserInfo()
    audiences: Annotated[tuple[str, ...], ATOMIC] = ()
    error: str = ""


class TokenReview(Object):
    """authentication.k8s.io/v1 TokenReview."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenReview"
    spec: Annotated[TokenReviewSpec, ALWAYS, REQUIRED, Doc("desired state")] = TokenReviewSpec()
    status: Annotated[TokenReviewStatus, ALWAYS, Doc("observed state")] = TokenReviewStatus()


class BoundObjectReference(Builtin):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Builtin):
    audiences: Annotated[tuple[str, ...], ATOMIC] = ()
    expiration_seconds: Int64 | None = None
    bound_object_ref: BoundObjectReference | None = None
    attestations: Mapping[str, tuple[str, ...]] = {}


class TokenRequestStatus(SensitiveBuiltin):
    token: Annotated[str, ALWAYS] = ""
    expiration_timestamp: Annotated[datetime | None, ALWAYS] = None


class TokenRequest(Object):
    """authentication.k8s.io/v1 TokenRequest."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenRequest"
    spec: Annotated[TokenRequestSpec, ALWAYS, Doc("desired state")] = TokenRequestSpec()
    status: Annotated[TokenRequestStatus, ALWAYS, Doc("observed state")] = TokenRequestStatus()


class SelfSubjectReviewStatus(Builtin):
    user_info: Annotated[UserInfo, ALWAYS] = UserInfo()


class SelfSubjectReview(Object):
    """authentication.k8s.io/v1 SelfSubjectReview."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "SelfSubjectReview"
    status: Annotated[SelfSubjectReviewStatus, ALWAYS, Doc("observed state")] = SelfSubjectReviewStatus()


class FieldSelectorAttributes(Builtin):
    raw_selector: str = ""
    requirements: Annotated[tuple[FieldSelectorRequirement, ...], ATOMIC] = ()


class LabelSelectorAttributes(Builtin):
    raw_selector: str = ""
    requirements: Annotated[tuple[LabelSelectorRequirement, ...], ATOMIC] = ()


class ResourceAttributes(Builtin):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class NonResourceAttributes(Builtin):
    path: str = ""
    verb: str = ""


class SubjectAccessReviewSpec(Builtin):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: Annotated[tuple[str, ...], ATOMIC] = ()
    extra: Mapping[str, tuple[str, ...]] = {}
    uid: str = ""


class SubjectAccessReviewStatus(Builtin):
    allowed: Annotated[bool, ALWAYS, REQUIRED] = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SubjectAccessReview(Object):
    """authorization.k8s.io/v1 SubjectAccessReview."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SubjectAccessReview"
    spec: Annotated[SubjectAccessReviewSpec, ALWAYS, REQUIRED, Doc("desired state")] = SubjectAccessReviewSpec()
    status: Annotated[SubjectAccessReviewStatus, ALWAYS, Doc("observed state")] = SubjectAccessReviewStatus()


class LocalSubjectAccessReview(Object):
    """authorization.k8s.io/v1 LocalSubjectAccessReview."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "LocalSubjectAccessReview"
    spec: Annotated[SubjectAccessReviewSpec, ALWAYS, REQUIRED, Doc("desired state")] = SubjectAccessReviewSpec()
    status: Annotated[SubjectAccessReviewStatus, ALWAYS, Doc("observed state")] = SubjectAccessReviewStatus()


class SelfSubjectAccessReviewSpec(Builtin):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectAccessReview(Object):
    """authorization.k8s.io/v1 SelfSubjectAccessReview."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectAccessReview"
    spec: Annotated[SelfSubjectAccessReviewSpec, ALWAYS, REQUIRED, Doc("desired state")] = SelfSubjectAccessReviewSpec()
    status: Annotated[SubjectAccessReviewStatus, ALWAYS, Doc("observed state")] = SubjectAccessReviewStatus()


class SelfSubjectRulesReviewSpec(Builtin):
    namespace: str = ""


class ResourceRule(Builtin):
    verbs: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    api_groups: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    resource_names: Annotated[tuple[str, ...], ATOMIC] = ()


class NonResourceRule(Builtin):
    verbs: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    non_resource_urls: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(name="nonResourceURLs", default=())


class SubjectRulesReviewStatus(Builtin):
    resource_rules: Annotated[tuple[ResourceRule, ...], REQUIRED, ATOMIC] = ()
    non_resource_rules: Annotated[tuple[NonResourceRule, ...], REQUIRED, ATOMIC] = ()
    incomplete: Annotated[bool, ALWAYS, REQUIRED] = False
    evaluation_error: str = ""


class SelfSubjectRulesReview(Object):
    """authorization.k8s.io/v1 SelfSubjectRulesReview."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectRulesReview"
    spec: Annotated[SelfSubjectRulesReviewSpec, ALWAYS, REQUIRED, Doc("desired state")] = SelfSubjectRulesReviewSpec()
    status: Annotated[SubjectRulesReviewStatus, ALWAYS, Doc("observed state")] = SubjectRulesReviewStatus()
