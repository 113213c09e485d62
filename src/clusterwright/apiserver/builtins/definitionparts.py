"""The rules for the parts of a CustomResourceDefinition: schema, subresources, columns, names, conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label_1035
from clusterwright.apiserver.builtins.structure import validate_schema
from clusterwright.apiserver.builtins.validation import webhook_url
from clusterwright.apiserver.schema.rules import field_path
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.status import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many

COLUMNS: Final = 100
"""The most columns of a version: every row of a Table has a cell for each of them."""
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAXIMUM_SELECTABLE: Final = 8


def check_one_of(path: str, value: str, accepted: tuple[str, ...]) -> list[FieldError]:
    """Check that a value is one of the accepted ones."""
    if not value:
        return [required(path)]
    return [] if value in accepted else [not_supported(path, value, accepted)]


def check_deprecation(version: Json, path: str) -> list[FieldError]:
    """Check the deprecation warning of a version."""
    warning = version.get("deprecationWarning")
    field = f"{path}.deprecationWarning"
    if warning is None:
        return []
    if not version.get("deprecated"):
        return [invalid(field, warning, "can only be set for deprecated versions")]
    errors = []
    if len(warning.encode()) > 256:
        errors.append(invalid(field, warning, "must be <= 256 characters long"))
    if not warning:
        errors.append(invalid(field, warning, "must not be an empty string"))
    bad = next((i for i, c in enumerate(warning) if not c.isprintable()), None)
    if bad is not None:
        text = f"must only contain printable UTF-8 characters; non-printable character found at index {bad}"
        errors.append(invalid(field, warning, text))
    return errors


def check_names(names: Json, path: str) -> list[FieldError]:
    """Check the names of a kind."""
    errors = []
    for field in ("plural", "singular"):
        value = names.get(field) or ""
        if value and (problems := dns_label_1035(value)):
            errors.append(invalid(f"{path}.{field}", value, ",".join(problems)))
    for field in ("kind", "listKind"):
        value = names.get(field) or ""
        if value and (problems := dns_label_1035(value.lower())):
            text = "may have mixed case, but should otherwise match: " + ",".join(problems)
            errors.append(invalid(f"{path}.{field}", value, text))
    for field in ("shortNames", "categories"):
        for i, value in enumerate(names.get(field) or ()):
            if problems := dns_label_1035(value):
                errors.append(invalid(f"{path}.{field}[{i}]", value, ",".join(problems)))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return errors


def check_columns(columns: Any, path: str) -> list[FieldError]:
    """Check the columns of a version."""
    if len(columns or ()) > COLUMNS:
        return [too_many(path, len(columns), COLUMNS)]
    errors = []
    for i, column in enumerate(columns or ()):
        here = f"{path}[{i}]"
        if not column.get("name"):
            errors.append(required(f"{here}.name"))
        kind = column.get("type") or ""
        text = "must be one of " + ",".join(_COLUMN_TYPES)
        if not kind:
            errors.append(required(f"{here}.type", text))
        elif kind not in _COLUMN_TYPES:
            errors.append(invalid(f"{here}.type", kind, text))
        shape = column.get("format") or ""
        if shape and shape not in _COLUMN_FORMATS:
            errors.append(invalid(f"{here}.format", shape, "must be one of " + ",".join(_COLUMN_FORMATS)))
        json_path = column.get("jsonPath") or ""
        if not json_path:
            errors.append(required(f"{here}.JSONPath"))
        else:
            errors.extend(_simple_path(json_path, f"{here}.JSONPath"))
    return errors


def _simple_path(path: str, field: str) -> list[FieldError]:
    return [] if path.startswith(".") else [invalid(field, path, "must be a simple json path starting with .")]


def check_subresources(subresources: Any, path: str) -> list[FieldError]:
    """Check the subresources of a version."""
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    errors: list[FieldError] = []
    rules = (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
    )
    for key, prefixes, text in rules:
        value = scale.get(key) or ""
        field = f"{path}.scale.{key}"
        if not value:
            errors.append(required(field))
        elif found := _simple_path(value, field):
            errors.extend(found)
        elif not value.startswith(prefixes):
            errors.append(invalid(field, value, text))
    selector = scale.get("labelSelectorPath") or ""
    if selector:
        field = f"{path}.scale.labelSelectorPath"
        found = _simple_path(selector, field)
        errors.extend(found)
        if not found and not selector.startswith((".spec.", ".status.")):
            errors.append(invalid(field, selector, "should be a json path under either .spec or .status"))
    return errors


def check_selectable(fields: list[Json], schema: Json, path: str) -> list[FieldError]:
    """Check the selectable fields of a version against its schema."""
    errors: list[FieldError] = []
    root = Node(schema["openAPIV3Schema"])
    seen: set[str] = set()
    for i, item in enumerate(fields):
        json_path = item.get("jsonPath") or ""
        field = f"{path}[{i}].jsonPath"
        if not json_path:
            errors.append(required(field))
            continue
        try:
            shown, found = field_path(json_path, root, allow_brackets=False)
        except ValueError as e:
            errors.append(invalid(field, json_path, f"is an invalid path: {e}"))
            continue
        if shown.split(".")[0] == "metadata":
            errors.append(invalid(field, json_path, "must not point to fields in metadata"))
        if found.type not in ("string", "boolean", "integer"):
            text = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
            errors.append(invalid(field, json_path, text))
        if shown in seen:
            errors.append(duplicate(field, json_path))
        seen.add(shown)
    if len(seen) > _MAXIMUM_SELECTABLE:
        errors.append(too_many(path, len(seen), _MAXIMUM_SELECTABLE))
    return errors


def check_conversion(conversion: Any) -> list[FieldError]:
    """Check the conversion between versions."""
    if not conversion:
        return []
    path = "spec.conversion"
    strategy = conversion.get("strategy") or ""
    errors = check_one_of(f"{path}.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(forbidden(f"{path}.webhookClientConfig", text))
        if versions:
            errors.append(forbidden(f"{path}.conversionReviewVersions", text))
        return errors
    if client is None:
        errors.append(required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    elif (client.get("url") is None) == (client.get("service") is None):
        errors.append(required(f"{path}.webhookClientConfig", "exactly one of url or service is required"))
    elif client.get("service") is not None:
        errors.extend(_service(client["service"], f"{path}.webhookClientConfig.service"))
    else:
        errors.extend(webhook_url(client["url"], f"{path}.webhookClientConfig.url"))
    if not versions:
        errors.append(required(f"{path}.conversionReviewVersions"))
        return errors
    seen: set[str] = set()
    for i, version in enumerate(versions):
        field = f"{path}.conversionReviewVersions[{i}]"
        if version in seen:
            errors.append(invalid(field, version, "duplicate version"))
            continue
        seen.add(version)
        errors.extend(invalid(field, version, p) for p in dns_label_1035(version))
    if not seen & {"v1", "v1beta1"}:
        errors.append(invalid(f"{path}.conversionReviewVersions", versions, "must include at least one of v1, v1beta1"))
    return errors


def _service(service: Json, path: str) -> list[FieldError]:
    # kube-apiserver mixes up the two names here, and so do its errors
    errors = [] if service.get("name") else [required(f"{path}.namespace")]
    if not service.get("namespace"):
        errors.append(required(f"{path}.name"))
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        errors.append(invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    where = service.get("path")
    if where is not None:
        if not where.startswith("/"):
            errors.append(invalid(f"{path}.path", where, "must start with a '/'"))
        steps = where.strip("/").split("/") if where.startswith("/") else [""]
        errors.extend(
            invalid(f"{path}.path", where, f"segment[{i}] may not be empty") for i, s in enumerate(steps) if not s and where != "/"
        )
    return errors


def check_schema(validation: Mapping[str, Any], path: str, has_status: bool) -> list[FieldError]:
    """Check the schema of a version."""
    source = validation.get("openAPIV3Schema")
    if not isinstance(source, Mapping):
        return []
    return validate_schema(source, f"{path}.openAPIV3Schema", has_status)
