"""The hooks as an OpenAPI document, for authors of extensions in any language. Pure.

Names of components and operations are those of existing generated clients and servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, get_args, get_origin

import msgspec

from clusterwright.api.codec import encoded_names, field_hints, field_metadata, without_metadata
from clusterwright.api.constraints import EMBEDDED, REQUIRED, IntOrString
from clusterwright.api.core import ClusterClassVariable
from clusterwright.api.meta import Json, Object
from clusterwright.api.schema import value_schema
from clusterwright.runtimesdk.hooks import HOOKS, Hook
from clusterwright.topology.extensions import HOOKS_API_VERSION

HOOKS_PACKAGE: Final = "sigs.k8s.io.cluster-api.api.runtime.hooks.v1alpha1"
CORE_PACKAGE: Final = "sigs.k8s.io.cluster-api.api.core.v1beta2"
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
_PACKAGES: Final = {
    "clusterwright.runtimesdk": HOOKS_PACKAGE,
    "clusterwright.api.core": CORE_PACKAGE,
    "clusterwright.api.kubernetes": "k8s.io.api.core.v1",
    "clusterwright.api.meta": _META,
}
_CALLED: Final[Mapping[str, str]] = {
    "TemplateObjectMeta": f"{CORE_PACKAGE}.ObjectMeta",
    "V1Beta1Condition": f"{CORE_PACKAGE}.Condition",
}
"""Models with another name in the document."""
_CALLED_HERE: Final[Mapping[tuple[str, str], str]] = {
    ("ClusterSpec", "availabilityGates"): "ClusterAvailabilityGate",
    ("ClusterStatus", "controlPlane"): "ClusterControlPlaneStatus",
    ("ClusterStatus", "workers"): "WorkersStatus",
    ("ControlPlaneTopology", "deletion"): "ControlPlaneTopologyMachineDeletionSpec",
    ("ControlPlaneTopology", "variables"): "ControlPlaneVariables",
    ("ControlPlaneTopologyHealthCheck", "checks"): "ControlPlaneTopologyHealthCheckChecks",
    ("ControlPlaneTopologyHealthCheckRemediation", "templateRef"): "MachineHealthCheckRemediationTemplateReference",
    ("ControlPlaneTopologyHealthCheckRemediation", "triggerIf"): "ControlPlaneTopologyHealthCheckRemediationTriggerIf",
    ("MachineDeploymentTopology", "deletion"): "MachineDeploymentTopologyMachineDeletionSpec",
    ("MachineDeploymentTopology", "variables"): "MachineDeploymentVariables",
    ("MachineDeploymentTopologyHealthCheck", "checks"): "MachineDeploymentTopologyHealthCheckChecks",
    ("MachineDeploymentTopologyHealthCheckRemediation", "templateRef"): "MachineHealthCheckRemediationTemplateReference",
    ("MachineDeploymentTopologyHealthCheckRemediation", "triggerIf"): "MachineDeploymentTopologyHealthCheckRemediationTriggerIf",
    ("MachineDeploymentTopologyRolloutSpec", "strategy"): "MachineDeploymentTopologyRolloutStrategy",
    ("MachineDeploymentTopologyRolloutStrategy", "rollingUpdate"): "MachineDeploymentTopologyRolloutStrategyRollingUpdate",
    ("MachinePoolTopology", "deletion"): "MachinePoolTopologyMachineDeletionSpec",
    ("MachinePoolTopology", "variables"): "MachinePoolVariables",
}
"""Models that are several components in the document, by their holder and field."""
_TIME: Final = f"{_META}.Time"
_JSON: Final = "k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_RAW: Final = "k8s.io.apimachinery.pkg.runtime.RawExtension"
_INT_OR_STRING: Final = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"
_MANAGED_FIELDS: Final = f"{_META}.ManagedFieldsEntry"
_FIELDS: Final = f"{_META}.FieldsV1"
_LEAVES: Final[Mapping[str, Json]] = {
    _TIME: {"type": "string", "format": "date-time"},
    _JSON: {"description": "any JSON value"},
    _RAW: {"type": "object", "description": "an object of any kind"},
    _INT_OR_STRING: {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    _FIELDS: {"type": "object"},
    _MANAGED_FIELDS: {
        "type": "object",
        "properties": {
            **{name: {"type": "string"} for name in ("apiVersion", "fieldsType", "manager", "operation", "subresource")},
            "fieldsV1": {"$ref": f"#/components/schemas/{_FIELDS}"},
            "time": {"$ref": f"#/components/schemas/{_TIME}"},
        },
    },
}
"""Schemas without models of ours."""


def document() -> Json:
    """Return the whole document."""
    components: dict[str, Json] = {}
    paths = {_path(hook): {"post": _operation(hook, components)} for hook in HOOKS.values()}
    return {
        "openapi": "3.0.0",
        "info": {
            "title": "Cluster API - Runtime SDK",
            "description": "What an extension is asked, and what it may answer.",
            "version": HOOKS_API_VERSION.rpartition("/")[2],
            "license": {"name": "Apache 2.0", "url": "http://www.apache.org/licenses/LICENSE-2.0.html"},
        },
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _path(hook: Hook) -> str:
    base = f"/{HOOKS_API_VERSION}/{hook.name.lower()}"
    return base if hook.name == "Discovery" else f"{base}/{{name}}"


def _operation(hook: Hook, components: dict[str, Json]) -> Json:
    request, response = (f"{HOOKS_PACKAGE}.{hook.name}{what}" for what in ("Request", "Response"))
    _add(components, request, hook.request)
    _add(components, response, hook.response)
    operation: Json = {
        "tags": [hook.tag],
        "operationId": f"hooksRuntimeCluster{HOOKS_API_VERSION.rpartition('/')[2].capitalize()}{hook.name.capitalize()}",
        "requestBody": {"content": {"application/json": {"schema": _reference(request)}}},
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": _reference(response)}}}},
    }
    if hook.name != "Discovery":
        named = {"name": "name", "in": "path", "description": "the handler", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [named]
    return operation


def _reference(component: str) -> Json:
    return {"$ref": f"#/components/schemas/{component}"}


def _add(components: dict[str, Json], name: str, model: type[msgspec.Struct]) -> None:
    """Add a model, and all models that it refers to, once."""
    if name in components:
        return
    hints, short = field_hints(model), name.rpartition(".")[2]
    properties: Json = {}
    components[name] = schema = {"type": "object", "properties": properties}
    if name.startswith(HOOKS_PACKAGE) and short.endswith(("Request", "Response")):
        properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    for field, attribute in encoded_names(model):
        properties[field] = _property(components, (short, field), hints[attribute])
    if name == f"{_META}.ObjectMeta":
        properties["managedFields"] = {"type": "array", "items": _leaf(components, _MANAGED_FIELDS)}
    if issubclass(model, Object):
        schema["description"] = (model.__doc__ or "").partition("\n")[0]
    required = [field for field, attribute in encoded_names(model) if REQUIRED in field_metadata(hints[attribute])]
    if required:
        schema["required"] = required


def _property(components: dict[str, Json], at: tuple[str, str], hint: Any) -> Json:
    schema = value_schema(hint)
    if at == ("DiscoverVariablesResponse", "variables"):  # they stay JSON here; the caller reads them
        return {**schema, "items": _model(components, at, ClusterClassVariable)}
    inner = _inner(hint)
    if inner is Any:
        described = _leaf(components, _RAW if EMBEDDED in field_metadata(hint) else _JSON)
    elif inner is datetime:
        described = _leaf(components, _TIME)
    elif {*get_args(inner)} - {type(None)} == {*get_args(IntOrString)}:
        described = _leaf(components, _INT_OR_STRING)
    elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        described = _model(components, at, inner)
    else:
        return schema
    for whole in ("items", "additionalProperties"):
        if whole in schema:
            return {**schema, whole: described}
    return described


def _model(components: dict[str, Json], at: tuple[str, str], model: type[msgspec.Struct]) -> Json:
    package = next(package for module, package in _PACKAGES.items() if model.__module__.startswith(module))
    name = _CALLED.get(model.__name__) or f"{package}.{_CALLED_HERE.get(at, model.__name__)}"
    _add(components, name, model)
    return _reference(name)


def _leaf(components: dict[str, Json], name: str) -> Json:
    components[name] = _LEAVES[name]
    if name == _MANAGED_FIELDS:
        _leaf(components, _FIELDS)
    return _reference(name)


def _inner(hint: Any) -> Any:
    """Return the type in a field: of the single value, the list items or the map values."""
    bare = without_metadata(hint)
    members = [m for m in get_args(bare) if m is not type(None)]
    if type(None) in get_args(bare) and len(members) == 1:
        return _inner(members[0])
    origin = get_origin(bare)
    if origin is tuple:
        return _inner(get_args(bare)[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _inner(get_args(bare)[1])
    return bare
