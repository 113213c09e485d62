"""ObjectMeta: validation on create and update, normal form, owner references and finalizers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label, dns_label_1035, dns_subdomain, label_value, path_segment, qualified_name
from clusterwright.apiserver.interfaces import Checks, NameRule
from clusterwright.apiserver.status import FieldError, Verbatim, forbidden, invalid, required, too_long

_NAME_RULES: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    "subdomain": dns_subdomain,
    "label": dns_label,
    "label1035": dns_label_1035,
    "path": path_segment,
    "none": lambda _: (),
}
_ANNOTATIONS_MAXIMUM: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def rfc3339(time: datetime) -> str:
    """Return a time in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def normalize(meta: Json) -> None:
    """Drop the values that Go omits, in place: null and empty lists, maps and texts."""
    for key in [k for k, v in meta.items() if v is None or v in ("", [], {})]:
        del meta[key]


def validate_create(meta: Json, *, namespaced: bool, rule: NameRule, loose: bool) -> list[FieldError]:
    """Return the errors in the metadata of a new object; `loose` allows finalizers without a domain."""
    check = _NAME_RULES[rule]
    errors: list[FieldError] = []
    prefix = meta.get("generateName") or ""
    if prefix:
        masked = prefix[:-2] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix  # the last two, as upstream does
        errors.extend(invalid("metadata.generateName", prefix, p) for p in check(masked))
    name = meta.get("name") or ""
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors.extend(invalid("metadata.name", name, p) for p in check(name))
    if namespaced:
        namespace = meta.get("namespace") or ""
        if not namespace:
            errors.append(required("metadata.namespace"))
        else:
            errors.extend(invalid("metadata.namespace", namespace, p) for p in dns_label(namespace))
    elif meta.get("namespace"):
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    errors.extend(_common(meta, Checks(content=1, finalizers=0 if loose else 1)))
    return errors


def validate_update(meta: Json, old: Json, checks: Checks) -> list[FieldError]:
    """Return the errors in changed metadata, as often as kube-apiserver repeats them. `generation` must be set."""
    errors: list[FieldError] = []
    for field in _IMMUTABLE:
        if (meta.get(field) or None) != (old.get(field) or None):
            errors.append(invalid(f"metadata.{field}", meta.get(field), "field is immutable"))  # noqa: PERF401
    before, after = old.get("finalizers") or [], meta.get("finalizers") or []
    if meta.get("deletionTimestamp"):
        new = sorted(set(after) - set(before))
        if new:
            shown = ", ".join(f'"{f}"' for f in new)
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
            errors.append(forbidden("metadata.finalizers", text))
    return [*errors * checks.changes, *_common(meta, checks)]


def _common(meta: Json, checks: Checks) -> list[FieldError]:
    errors: list[FieldError] = []
    generation = meta.get("generation") or 0
    if isinstance(generation, int) and generation < 0:
        errors.append(invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    labels = meta.get("labels")
    if labels:
        errors.extend(validate_labels(labels, "metadata.labels"))
    annotations = meta.get("annotations")
    if annotations:
        errors.extend(validate_annotations(annotations, "metadata.annotations"))
    references = meta.get("ownerReferences")
    if references:
        errors.extend(_owner_references(references))
    errors *= checks.content
    finalizers = meta.get("finalizers")
    if finalizers:
        errors.extend(_finalizers(finalizers, checks.finalizers))
    return errors


def validate_labels(labels: Mapping[str, str], field: str) -> Iterable[FieldError]:
    """Check that keys are qualified names and values are label values."""
    for key, value in labels.items():
        for problem in qualified_name(key):
            yield invalid(field, key, problem)
        for problem in label_value(value):
            yield invalid(field, value, problem)


def validate_annotations(annotations: Mapping[str, str], field: str) -> Iterable[FieldError]:
    """Check that keys are qualified names (upper or lower case) and that the total size is at most 256 KiB."""
    size = 0
    for key, value in annotations.items():
        for problem in qualified_name(key.lower()):
            yield invalid(field, key, problem)
        size += len(key.encode()) + len(value.encode())
    if size > _ANNOTATIONS_MAXIMUM:
        yield too_long(field, _ANNOTATIONS_MAXIMUM)


_REFERENCE_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def _owner_references(references: Sequence[Json]) -> Iterable[FieldError]:
    path = "metadata.ownerReferences"
    controller = ""
    shown = [{k: r[k] for k in _REFERENCE_FIELDS if r.get(k) is not None} for r in references]
    for reference, clean in zip(references, shown, strict=True):
        api_version = reference.get("apiVersion") or ""
        group, _, version = api_version.rpartition("/")
        if not version or api_version.count("/") > 1:
            yield invalid(f"{path}.apiVersion", api_version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not reference.get(field):
                yield invalid(f"{path}.{field}", "", "must not be empty")
        if api_version == "v1" and reference.get("kind") == "Event":
            text = f"{group}/{version}, Kind=Event is disallowed from being an owner"
            yield invalid(path, Verbatim(json.dumps(clean, separators=(",", ":"))), text)
        if reference.get("controller"):
            this = f"{reference.get('kind')}/{reference.get('name')}"
            if controller:
                text = f'Only one reference can have Controller set to true. Found "true" in references for {controller} and {this}'
                yield invalid(path, Verbatim(json.dumps(shown, separators=(",", ":"), ensure_ascii=False)), text)
            else:
                controller = this


def _finalizers(finalizers: Sequence[str], times: int) -> Iterable[FieldError]:
    path = "metadata.finalizers"
    for index, finalizer in enumerate(finalizers):
        problems = qualified_name(finalizer)
        yield from (invalid(path, finalizer, p) for p in problems)
        if times and not problems and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield from [invalid(f"{path}[{index}]", finalizer, text)] * times
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield invalid(path, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set")


def finalizer_problems(finalizer: str) -> tuple[str, ...]:
    """Return the errors in a finalizer of a built-in."""
    problems = qualified_name(finalizer)
    if not problems and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        return ("name is neither a standard finalizer name nor is it fully qualified",)
    return problems


def finalizer_warnings(finalizers: Sequence[str], old: Sequence[str]) -> list[str]:
    """Return warnings for new finalizers of custom resources that have no domain."""
    text = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    new = [f for f in finalizers if f not in old and f not in _STANDARD_FINALIZERS and "/" not in f]
    return [f'metadata.finalizers: "{f}": {text}' for f in new]


def dedup_owner_references(meta: Json) -> list[str]:
    """Drop repeated owner references in place; return the warnings about them."""
    references = meta.get("ownerReferences")
    if not isinstance(references, list) or len(references) < 2:
        return []
    kept: list[Any] = []
    seen: dict[str, Any] = {}
    duplicated: dict[str, None] = {}
    for reference in references:
        uid = reference.get("uid") if isinstance(reference, dict) else None
        if isinstance(uid, str) and seen.get(uid) == reference:
            duplicated[uid] = None
            continue
        if isinstance(uid, str):
            seen.setdefault(uid, reference)
        kept.append(reference)
    if not duplicated:
        return []
    meta["ownerReferences"] = kept
    return [
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such "
        "requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " + ", ".join(duplicated)
    ]
