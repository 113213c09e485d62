"""The rules that CustomResourceDefinitions themselves must follow.

Error fields are those of kube-apiserver's internal form, in which a schema, subresources or columns that all versions share stand
at the top of the spec (`spec.validation`, `spec.subresources`, `spec.additionalPrinterColumns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label_1035, dns_subdomain
from clusterwright.apiserver.builtins.definitionparts import (
    check_columns,
    check_conversion,
    check_deprecation,
    check_names,
    check_one_of,
    check_schema,
    check_selectable,
    check_subresources,
)
from clusterwright.apiserver.builtins.internalform import shown_versions
from clusterwright.apiserver.builtins.structure import every_schema
from clusterwright.apiserver.status import FieldError, invalid, required, too_many
from clusterwright.cel.formats import format_check
from clusterwright.golang.quoting import quote

VERSIONS: Final = 100
"""The most versions of a CRD: each needs discovery, OpenAPI and conversions."""
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_NO_SETS: Final = "is not supported by server-side apply or CEL validation rules"


def validate(obj: Json) -> list[FieldError]:
    """Return all errors in a CRD."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names = spec.get("names") or {}
    errors: list[FieldError] = []
    name = obj["metadata"].get("name") or ""
    new = not obj["metadata"].get("resourceVersion")
    if new and name and name != f"{names.get('plural') or ''}.{spec.get('group') or ''}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors.extend(_spec(spec))
    errors.extend(check_names(status.get("acceptedNames") or {}, "status.acceptedNames"))
    errors.extend(_stored_versions(status.get("storedVersions") or [], spec.get("versions") or []))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, text))
    group = spec.get("group") or ""
    if group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io"):
        errors.extend(_approval(obj))
    return errors


_APPROVAL: Final = "api-approved.kubernetes.io"


def _approval(obj: Json) -> list[FieldError]:
    value = (obj["metadata"].get("annotations") or {}).get(_APPROVAL)
    if not value:
        return [
            required(
                f"metadata.annotations[{_APPROVAL}]",
                f'protected groups must have approval annotation "{_APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111',
            )
        ]
    return []


def validate_update(obj: Json, old: Json) -> list[FieldError]:
    """Return forbidden changes, besides the errors of `validate`."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    names, names_before = spec.get("names") or {}, before.get("names") or {}
    errors: list[FieldError] = []
    text = "field is immutable"
    if any(c.get("type") == "Established" and c.get("status") == "True" for c in (old.get("status") or {}).get("conditions") or ()):
        if spec.get("scope") != before.get("scope"):
            errors.append(invalid("spec.scope", spec.get("scope"), text))
        if names.get("kind") != names_before.get("kind"):
            errors.append(invalid("spec.names.kind", names.get("kind"), text))
    if spec.get("group") != before.get("group"):
        errors.append(invalid("spec.group", spec.get("group"), text))
    if names.get("plural") != names_before.get("plural"):
        errors.append(invalid("spec.names.plural", names.get("plural"), text))
    return errors


def validate_status(obj: Json, old: Json) -> list[FieldError]:
    """Check that accepted names are valid."""
    return check_names((obj.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def warnings(obj: Json, old: Json | None) -> list[str]:
    """Return warnings about unknown formats, and sets whose items apply cannot distinguish; not about unchanged ones."""
    before = set(_schema_warnings(old)) if old is not None else set()
    return [w for w in _schema_warnings(obj) if w not in before]


def _schema_warnings(crd: Json) -> list[str]:
    formats: dict[str, None] = {}
    sets: set[str] = set()
    for version in (crd.get("spec") or {}).get("versions") or ():
        source = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(source, Mapping):
            for schema in every_schema(source):
                kind, shape = schema.get("type") or "", schema.get("format") or ""
                if shape and not _is_known_format(kind, shape):
                    formats[f"unrecognized format {quote(shape)}"] = None
                items = schema.get("items")
                if (
                    schema.get("x-kubernetes-list-type") == "set"
                    and isinstance(items, Mapping)
                    and items.get("type") in ("object", "array")
                ):
                    shown = quote(items["type"])
                    sets.add(f"x-kubernetes-list-type: set for items of type {shown} {_NO_SETS}")
    return [*formats, *sorted(sets)]


def _is_known_format(kind: str, name: str) -> bool:
    if kind in ("", "string"):
        return format_check(name) is not None
    return name in {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())


def record_storage_version(obj: Json) -> None:
    """Add the storage version to status.storedVersions."""
    status = obj.setdefault("status", {})
    stored = list(status.get("storedVersions") or [])
    first = next((v.get("name") for v in (obj.get("spec") or {}).get("versions") or () if v.get("storage")), None)
    if first is not None and first not in stored:
        stored.append(first)
    status["storedVersions"] = stored


def _stored_versions(stored: list[str], versions: list[Json]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, None, "must have at least one stored version")]
    left = set(stored)
    errors: list[FieldError] = []
    for version in versions:
        name = version.get("name")
        if version.get("storage") and name not in left:
            errors.append(invalid(path, stored, f"must have the storage version {name}"))
        left.discard(name)
    for i, name in enumerate(stored):
        if name in left:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage "
                f"migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            )
            errors.append(invalid(f"{path}[{i}]", name, text))
    return errors


def _spec(spec: Json) -> list[FieldError]:
    versions: list[Json] = spec.get("versions") or []
    if len(versions) > VERSIONS:
        return [too_many("spec.versions", len(versions), VERSIONS)]
    shared = {key: _shared(versions, key) for key in _SHARED}
    names = spec.get("names") or {}
    return [
        *_group(spec.get("group") or ""),
        *check_one_of("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced")),
        *_missing_schemas(versions),
        *_unwanted_defaults(spec, versions),
        *(error for i, version in enumerate(versions) for error in _version(version, i, versions, shared)),
        *_version_set(spec, versions, shared),
        *(required(f"spec.names.{f}") for f in ("plural", "singular", "kind", "listKind") if not names.get(f)),
        *check_names(names, "spec.names"),
        *_shared_parts(versions, shared),
        *_conversion_of(spec),
    ]


def _shared(versions: list[Json], key: str) -> Any:
    """Return the value of a key that all versions share, or None."""
    first = versions[0].get(key) if versions else None
    return first if first and all(v.get(key) == first for v in versions) else None


def _group(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    if problems := dns_subdomain(group):
        return [invalid("spec.group", group, ",".join(problems))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _missing_schemas(versions: list[Json]) -> Iterator[FieldError]:
    for i, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield required(f"spec.versions[{i}].schema.openAPIV3Schema")


def _unwanted_defaults(spec: Json, versions: list[Json]) -> list[FieldError]:
    if spec.get("preserveUnknownFields") and any(_has_default(version) for version in versions):
        return [invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")]
    return []


def _version(version: Json, index: int, versions: list[Json], shared: Json) -> Iterator[FieldError]:
    """Yield the errors of one version, without the parts that all versions share."""
    path, name = f"spec.versions[{index}]", version.get("name") or ""
    if problems := dns_label_1035(name):
        yield invalid(f"{path}.name", name, ",".join(problems))
        if index == 0 and name:
            yield invalid("spec.version", name, ",".join(problems))
    yield from check_deprecation(version, path)
    own_schema = None if shared["schema"] else version.get("schema")
    if own_schema:
        first = next(v for v in versions if v.get("name") == version.get("name"))
        yield from check_schema(own_schema, f"{path}.schema", "status" in (first.get("subresources") or {}))
    if not shared["subresources"]:
        yield from check_subresources(version.get("subresources"), f"{path}.subresources")
    if not shared["additionalPrinterColumns"]:
        yield from check_columns(version.get("additionalPrinterColumns"), f"{path}.additionalPrinterColumns")
    if not shared["selectableFields"] and version.get("selectableFields"):
        here = f"{path}.selectableFields"
        if (own_schema or {}).get("openAPIV3Schema"):
            yield from check_selectable(version["selectableFields"], own_schema or {}, here)
        else:
            yield invalid(here, "", "may only be set when `version.schema.openAPIV3Schema` is not included")


def _version_set(spec: Json, versions: list[Json], shared: Json) -> Iterator[FieldError]:
    """Yield the errors of the set of versions."""
    found = [key for key in _SHARED if shared[key]]
    if len({version.get("name") or "" for version in versions}) != len(versions):
        yield invalid("spec.versions", shown_versions(spec.get("versions"), found), "must contain unique version names")
    if sum(1 for v in versions if v.get("storage")) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", shown_versions(spec.get("versions"), found), text)


def _shared_parts(versions: list[Json], shared: Json) -> Iterator[FieldError]:
    schema, selectable = shared["schema"], shared["selectableFields"]
    if schema:
        yield from check_schema(schema, "spec.validation", any("status" in (v.get("subresources") or {}) for v in versions))
    if shared["subresources"]:
        yield from check_subresources(shared["subresources"], "spec.subresources")
    if shared["additionalPrinterColumns"]:
        yield from check_columns(shared["additionalPrinterColumns"], "spec.additionalPrinterColumns")
    if selectable and schema:
        yield from check_selectable(selectable, schema, "spec.selectableFields")
    elif selectable:
        yield invalid("spec.selectableFields", "", "may only be set when validations.schema is included")


def _conversion_of(spec: Json) -> list[FieldError]:
    conversion = spec.get("conversion")
    strategy = (conversion or {}).get("strategy") or ""
    errors = check_conversion(conversion)
    if conversion and strategy != "None" and spec.get("preserveUnknownFields"):
        errors = [invalid("spec.conversion.strategy", strategy, "must be None if spec.preserveUnknownFields is true"), *errors]
    return errors


def _has_default(version: Json) -> bool:
    source = (version.get("schema") or {}).get("openAPIV3Schema")
    return isinstance(source, Mapping) and any(schema.get("default") is not None for schema in every_schema(source))
