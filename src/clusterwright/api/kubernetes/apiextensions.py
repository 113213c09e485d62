"""apiextensions.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, PRESERVE, REQUIRED, Doc, Int32, Int64, ListMap
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS, Object


class CustomResourceDefinitionNames(Builtin):
    plural: Annotated[str, ALWAYS, REQUIRED] = ""
    singular: str = ""
    short_names: Annotated[tuple[str, ...], ATOMIC] = ()
    kind: Annotated[str, ALWAYS, REQUIRED] = ""
    list_kind: str = ""
    categories: Annotated[tuple[str, ...], ATOMIC] = ()


class CustomResourceValidation(Builtin):
    open_api_v3_schema: Annotated[Any, PRESERVE] = msgspec.field(name="openAPIV3Schema", default=None)


class CustomResourceSubresourceScale(Builtin):
    spec_replicas_path: Annotated[str, ALWAYS, REQUIRED] = ""
    status_replicas_path: Annotated[str, ALWAYS, REQUIRED] = ""
    label_selector_path: str | None = None


class CustomResourceSubresources(Builtin):
    status: Mapping[str, Any] | None = None
    scale: CustomResourceSubresourceScale | None = None


class CustomResourceColumnDefinition(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    format: str = ""
    description: str = ""
    priority: Int32 = 0
    json_path: Annotated[str, ALWAYS, REQUIRED] = ""


class SelectableField(Builtin):
    json_path: Annotated[str, ALWAYS, REQUIRED] = ""


class CustomResourceDefinitionVersion(Builtin):
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    served: Annotated[bool, ALWAYS, REQUIRED] = False
    storage: Annotated[bool, ALWAYS, REQUIRED] = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: Annotated[tuple[CustomResourceColumnDefinition, ...], ATOMIC] = ()
    selectable_fields: Annotated[tuple[SelectableField, ...], ATOMIC] = ()


class ConversionServiceReference(Builtin):
    namespace: Annotated[str, ALWAYS, REQUIRED] = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    path: str | None = None
    port: Int32 | None = None


class ConversionWebhookClientConfig(Builtin):
    url: str | None = None
    service: ConversionServiceReference | None = None
    ca_bundle: bytes = b""


class WebhookConversion(Builtin):
    client_config: ConversionWebhookClientConfig | None = None
    conversion_review_versions: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()


class CustomResourceConversion(Builtin):
    strategy: Annotated[str, ALWAYS, REQUIRED] = ""
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(Builtin):
    group: Annotated[str, ALWAYS, REQUIRED] = ""
    names: Annotated[CustomResourceDefinitionNames, ALWAYS, REQUIRED] = CustomResourceDefinitionNames()
    scope: Annotated[str, ALWAYS, REQUIRED] = ""
    versions: Annotated[tuple[CustomResourceDefinitionVersion, ...], REQUIRED, ATOMIC] = ()
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool = False


class CustomResourceDefinitionCondition(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class CustomResourceDefinitionStatus(Builtin):
    conditions: Annotated[tuple[CustomResourceDefinitionCondition, ...], ListMap("type")] = ()
    accepted_names: Annotated[CustomResourceDefinitionNames, ALWAYS] = CustomResourceDefinitionNames()
    stored_versions: Annotated[tuple[str, ...], ATOMIC] = ()
    observed_generation: Int64 = 0


class CustomResourceDefinition(Object):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "CustomResourceDefinition"
    spec: Annotated[CustomResourceDefinitionSpec, ALWAYS, REQUIRED, Doc("desired state")] = CustomResourceDefinitionSpec()
    status: Annotated[CustomResourceDefinitionStatus, ALWAYS, Doc("observed state")] = CustomResourceDefinitionStatus()
