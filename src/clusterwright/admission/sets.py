"""Rules that several kinds share, as rows: taints, metadata, percentages, rollouts, health checks, names, replicas, versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from clusterwright.admission.rule import Default, Fault, Guard, Refused, Review, Rule, at
from clusterwright.admission.templates import BadTemplate, render_name
from clusterwright.api.meta import Json
from clusterwright.api.names import dns_subdomain, label_value, qualified_name
from clusterwright.api.wellknown import (
    AUTOSCALER_MAX_SIZE_ANNOTATION,
    AUTOSCALER_MIN_SIZE_ANNOTATION,
    CLUSTER_NAME_LABEL,
    OUTDATED_REVISION_TAINT,
    UNINITIALIZED_TAINT,
)
from clusterwright.apiserver.status import ErrorType
from clusterwright.golang.numbers import atoi, parse_int
from clusterwright.kubeadm.naming import shortened

FORBIDDEN, INVALID, REQUIRED = ErrorType.FORBIDDEN, ErrorType.INVALID, ErrorType.REQUIRED
IMMUTABLE: Final = "field is immutable"
_NUMBER, _PART = "(?:0|[1-9][0-9]*)", "[0-9A-Za-z-]+"
SEMANTIC_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-(?!0[0-9]+(?:[.+]|$))(?:{_PART})(?:\.(?!0[0-9]+(?:[.+]|$)){_PART})*)?(?:\+{_PART}(?:\.{_PART})*)?"
)
"""The pattern of a semantic version without `v`. Numbers have no leading zeros, also in pre-release parts."""
SAMPLE_SUFFIX: Final = "bcdfg"


def changed(*path: str) -> Guard:
    """Return whether the value changed."""

    def guard(review: Review, value: Any) -> bool:
        return bool(value != at(review.old, *path))

    return guard


def gate_off(gate: str) -> Guard:
    """Return whether a feature gate is off."""

    def guard(review: Review, _: Any) -> bool:
        return not review.enabled(gate)

    return guard


def gated(ids: str, gate: str, **options: Any) -> Rule:
    """Refuse writes of the kind while the gate is off."""
    return Rule(ids, FORBIDDEN, "spec", gate_off(gate), f"can be set only if the {gate} feature flag is enabled", **options)


# ----------------------------------------------------------------------------------------- taints

TAINTS_GATE: Final = "MachineTaintPropagation"
_RESERVED: Final = (
    ("TNT-2", re.compile(re.escape(UNINITIALIZED_TAINT)), "taint key is not allowed"),
    ("TNT-3", re.compile(re.escape(OUTDATED_REVISION_TAINT)), "taint key is not allowed"),
    (
        "TNT-4",
        re.compile(r"node\.kubernetes\.io/(?!out-of-service$).*", re.DOTALL),
        "taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service",
    ),
    (
        "TNT-5",
        re.compile(r"node\.cloudprovider\.kubernetes\.io/.*", re.DOTALL),
        "taint key must not have the prefix node.cloudprovider.kubernetes.io/",
    ),
    ("TNT-6", re.compile(r"node-role\.kubernetes\.io/master"), "taint is deprecated since 1.24 and should not be used anymore"),
)
"""The reserved prefixes. No key can have two of them."""


def taints(ids: str, field: str, *, workers: Callable[[Review], bool] | None = None, **options: Any) -> tuple[Rule, ...]:
    """Return the rows TNT-1 to TNT-7, for taints that Machines give to their Nodes; with `workers` also TNT-8."""
    key = f"{field}[].key"
    rows = [
        Rule(f"{ids} TNT-1", FORBIDDEN, field, _taints_gate, f"taints are not allowed to be set when the feature gate {TAINTS_GATE} is disabled",
             **options),
        *(Rule(f"{ids} {id}", INVALID, key, _matches(pattern), text, **options) for id, pattern, text in _RESERVED),
        Rule(f"{ids} TNT-7", INVALID, key, _each(qualified_name), "{text}", **options),
    ]  # fmt: skip
    if workers is not None:
        only = workers
        rows.append(
            Rule(
                f"{ids} TNT-8",
                INVALID,
                key,
                lambda r, v: v == "node-role.kubernetes.io/control-plane" and r.enabled(TAINTS_GATE) and only(r),
                "taint is not allowed for worker Machines",
                **options,
            )
        )
    return tuple(rows)


def _taints_gate(review: Review, value: Any) -> bool:
    return bool(value) and not review.enabled(TAINTS_GATE)


def _matches(pattern: re.Pattern[str]) -> Guard:
    return lambda _, value: pattern.fullmatch(value or "") is not None


def _each(problems: Callable[[str], Iterable[str]]) -> Guard:
    """Return a fault for each error of a text."""
    return lambda _, value: [Fault(value or "", text=text) for text in problems(value or "")]


def label_values(review: Review, value: Any) -> Iterator[Fault]:
    """Yield a fault for each reason why the text is an invalid label value."""
    del review
    for text in label_value(value or ""):
        yield Fault(value or "", text=text)


# ----------------------------------------------------------------------------------------- metadata of templates

_ANNOTATIONS_MAXIMUM: Final = 256 * 1024


def template_metadata(ids: str, field: str, path: str | None = None, **options: Any) -> tuple[Rule, ...]:
    """Return the rows MET-1 and MET-2: labels and annotations of objects made from a template."""
    shown = {"labels": f"{path}.labels", "annotations": f"{path}.annotations"} if path is not None else {}
    annotations: Any = options | {"path": shown.get("annotations")}
    return (
        Rule(f"{ids} MET-1", INVALID, f"{field}.labels", _labels, "{text}", path=shown.get("labels"), **options),
        Rule(f"{ids} MET-2", INVALID, f"{field}.annotations", _annotation_keys, "{text}", **annotations),
        Rule(
            f"{ids} MET-2", ErrorType.TOO_LONG, f"{field}.annotations", _annotations_size,
            f"may not be more than {_ANNOTATIONS_MAXIMUM} bytes", **annotations,
        ),
    )  # fmt: skip


def _labels(review: Review, value: Any) -> Iterator[Fault]:
    del review
    for key, text in (value or {}).items():
        for problem in qualified_name(key):
            yield Fault(key, text=problem)
        for problem in label_value(text or ""):
            yield Fault(text, text=problem)


def _annotation_keys(review: Review, value: Any) -> Iterator[Fault]:
    del review
    for key in value or ():
        for problem in qualified_name(key.lower()):
            yield Fault(key, text=problem)


def _annotations_size(review: Review, value: Any) -> bool:
    del review
    return sum(len(key.encode()) + len((text or "").encode()) for key, text in (value or {}).items()) > _ANNOTATIONS_MAXIMUM


# ----------------------------------------------------------------------------------------- integers or percentages


def int_or_percent(review: Review, value: Any) -> Iterator[Fault]:
    """Return the row IOP-1: a text must be an integer followed by a percent sign."""
    del review
    if not isinstance(value, str):
        return
    if not value.endswith("%"):
        yield Fault(value, error="invalid type: string is not a percentage")
        return
    try:
        atoi(value[:-1])
    except ValueError as error:
        yield Fault(value, error=f'invalid value "{value}": {error}')


def percentage(ids: str, field: str, **options: Any) -> Rule:
    """Return the row for a field with an integer or a percentage."""
    return Rule(
        f"{ids} IOP-1", INVALID, field, int_or_percent, "must be either an int or a percentage: invalid value for IntOrString: {error}",
        **options,
    )  # fmt: skip


def rollout(ids: str, strategy: str, **options: Any) -> tuple[Rule, ...]:
    """Return the rows ROL-1 to ROL-3: the strategy of a MachineDeployment."""
    rolling = f"{strategy}.rollingUpdate"
    return (
        percentage(f"{ids} ROL-1", f"{rolling}.maxUnavailable", **options),
        percentage(f"{ids} ROL-2", f"{rolling}.maxSurge", **options),
        Rule(f"{ids} ROL-3", INVALID, rolling, _both_zero, "maxUnavailable and maxSurge cannot both be 0", **options),
    )


def _both_zero(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if _is_zero(at(value, "maxUnavailable")) and _is_zero(at(value, "maxSurge")):
        yield Fault("0")


def _is_zero(value: Any) -> bool:
    return value == 0 and isinstance(value, int)


# ----------------------------------------------------------------------------------------- health checks


def health_check(ids: str, field: str, *, max_in_flight: bool = False, **options: Any) -> tuple[Rule, ...]:
    """Return the rows HC-1 and HC-2, with `max_in_flight` HC-3."""
    rows = (
        Rule(f"{ids} HC-1", INVALID, f"{field}.checks.nodeStartupTimeoutSeconds", _too_soon, "must be at least 30s", **options),
        percentage(f"{ids} HC-2", f"{field}.remediation.triggerIf.unhealthyLessThanOrEqualTo", **options),
    )
    return (*rows, percentage(f"{ids} HC-3", f"{field}.remediation.maxInFlight", **options)) if max_in_flight else rows


def is_health_check(value: Any) -> bool:
    """Return whether it has any checks or limits; one with only a maximum in flight, or only a switch, has none."""
    remediation = {key: part for key, part in (at(value, "remediation") or {}).items() if key != "maxInFlight"}
    return is_filled(at(value, "checks")) or is_filled(remediation)


def is_filled(value: Any) -> bool:
    """Return whether anything is set: empty objects, lists and texts count as absent."""
    if isinstance(value, dict):
        return any(map(is_filled, value.values()))
    return value is not None and value not in ("", [])


def _too_soon(review: Review, value: Any) -> bool:
    del review
    return value is not None and value != 0 and value < 30


# ----------------------------------------------------------------------------------------- names of Machines


def machine_naming(ids: str, field: str, sample: Mapping[str, Any], **options: Any) -> tuple[Rule, ...]:
    """Return the rows NAM-1 to NAM-3: a naming template must yield a valid name, and a different one each time. `sample` are its data."""
    template = f"{field}.template"
    wrong = "invalid template, generated names would not be valid Kubernetes object names: {text}"
    return (
        Rule(f"{ids} NAM-1", INVALID, template, _without_random, "invalid template, {{ .random }} is missing", **options),
        Rule(f"{ids} NAM-2", INVALID, template, _not_rendered(sample), "invalid template: {error}", **options),
        Rule(f"{ids} NAM-3", INVALID, template, _no_name(sample), wrong, **options),
    )


def class_naming(ids: str, field: str, of: str, sample: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rows NAM-2 and NAM-3: a naming template for a part of a Cluster; names need not differ each time."""
    return (
        Rule(f"{ids} NAM-2", INVALID, field, _not_rendered(sample), f"invalid {of} name template: {{error}}"),
        Rule(f"{ids} NAM-3", INVALID, field, _no_name(sample), "{text}"),
    )


def _without_random(review: Review, value: Any) -> bool:
    del review
    return bool(value) and "{{ .random }}" not in value


def _not_rendered(sample: Mapping[str, Any]) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        try:
            render_name(value or "", sample)
        except BadTemplate as error:
            yield Fault(value, error=error)

    return guard


def _no_name(sample: Mapping[str, Any]) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        if not value:
            return
        try:
            name = shortened(render_name(value, sample), SAMPLE_SUFFIX)
        except BadTemplate:
            return
        for text in dns_subdomain(name):
            yield Fault(value, text=text)

    return guard


# ----------------------------------------------------------------------------------------- versions


def kubernetes_version(
    ids: str, field: str, *, optional: bool = False, text: str = "must be a valid semantic version", **options: Any
) -> tuple[Rule, Rule]:
    """Return the rows VER-1 and VER-2: `v` and a semantic version."""

    def version_of(value: Any) -> str | None:
        return None if optional and not value else value or ""

    def lacks_v(review: Review, value: Any) -> Iterator[Fault]:
        version = version_of(value)
        if version is not None and not version.startswith("v"):
            yield Fault(version)

    def is_not_semantic(review: Review, value: Any) -> Iterator[Fault]:
        version = version_of(value)
        if version is not None and SEMANTIC_VERSION.fullmatch(version.removeprefix("v")) is None:
            yield Fault(version)

    return (
        Rule(f"{ids} VER-2", INVALID, field, lacks_v, "must start with v", **options),
        Rule(f"{ids} VER-1", INVALID, field, is_not_semantic, text, **options),
    )


def version_default(ids: str, *parents: str, also_empty: bool = False) -> Default:
    """Return the row VER-D: add `v` to a version."""

    def fill(obj: Json, review: Review) -> None:
        del review
        parent = at(obj, *parents)
        version = at(parent, "version") or ""
        if isinstance(parent, dict) and (version or also_empty) and not version.startswith("v"):
            parent["version"] = f"v{version}"

    return Default(f"{ids} VER-D", ".".join((*parents, "version")), fill)


# ----------------------------------------------------------------------------------------- objects below objects


def below(obj: Json, *path: str) -> Json:
    """Return the object at these keys, created if it is missing."""
    for step in path:
        found = obj.get(step)
        if not isinstance(found, dict):
            found = obj[step] = {}
        obj = found
    return obj


def fill_in(ids: str, value: Any, *path: str) -> Default:
    """Return a row that sets a missing value."""

    def fill(obj: Json, review: Review) -> None:
        del review
        parent = below(obj, *path[:-1])
        if parent.get(path[-1]) is None:
            parent[path[-1]] = value

    return Default(ids, ".".join(path), fill)


def cluster_name_label(ids: str) -> Default:
    """Return the row that sets the label with the name of the object's Cluster."""

    def fill(obj: Json, review: Review) -> None:
        del review
        below(obj, "metadata", "labels")[CLUSTER_NAME_LABEL] = at(obj, "spec", "clusterName") or ""

    return Default(ids, f"metadata.labels.{CLUSTER_NAME_LABEL}", fill)


def same_cluster_name(ids: str) -> Rule:
    """Return the row that requires the same Cluster in a template and the object."""
    text = "spec.clusterName and spec.template.spec.clusterName must be set to the same value"

    def guard(review: Review, value: Any) -> bool:
        return bool((value or "") != (at(review.new, "spec", "template", "spec", "clusterName") or ""))

    return Rule(ids, INVALID, "spec.clusterName", guard, text)


def bootstrap(ids: str, field: str, exempt: Callable[[Review], bool] = lambda _: False) -> Rule:
    """Return the row that requires bootstrap data, or a reference to an object that creates them."""

    def guard(review: Review, value: Any) -> bool:
        return not at(value, "configRef") and at(value, "dataSecretName") is None and not exempt(review)

    return Rule(ids, REQUIRED, field, guard, f"expected either {field}.dataSecretName or {field}.configRef to be populated")


# ----------------------------------------------------------------------------------------- replicas


def replicas_default(ids: str) -> Default:
    """Return the rows REP-0 to REP-5, REP-E: a write without replicas does not undo an autoscaler's decision."""
    return Default(f"{ids} REP-0 REP-1 REP-2 REP-3 REP-4 REP-5 REP-E", "spec.replicas", _fill_replicas)


def _fill_replicas(obj: Json, review: Review) -> None:
    spec = below(obj, "spec")
    if spec.get("replicas") is not None:
        return
    spec["replicas"] = _replicas(review)


def _replicas(review: Review) -> int:
    annotations = (AUTOSCALER_MIN_SIZE_ANNOTATION, AUTOSCALER_MAX_SIZE_ANNOTATION)
    if not all(annotation in review.annotations for annotation in annotations):
        return 1
    least, most = (_bound(review, annotation) for annotation in annotations)
    before = at(review.old, "spec", "replicas")
    if before is None or before < least:
        return least
    return most if before > most else int(before)


def _bound(review: Review, annotation: str) -> int:
    kind = review.model.__name__ if review.model is not None else ""
    try:
        return parse_int(review.annotations[annotation], 32)
    except ValueError as error:
        # spelled like this by everyone who has reported it so far
        text = f'failed to caculate {kind} replicas value: could not parse the value of the "{annotation}" annotation: {error}'
        raise Refused(text) from None
