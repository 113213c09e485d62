"""Rules that several kinds share: taints, metadata of templates, names of Machines, versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.wellknown import OUTDATED_REVISION_TAINT, UNINITIALIZED_TAINT
from clusterwright.apiserver.metadata import validate_annotations, validate_labels
from clusterwright.apiserver.names import dns_subdomain, qualified_name
from clusterwright.apiserver.status import FieldError, forbidden, invalid
from clusterwright.kubeadm.naming import BadNamingTemplate, render, shortened

TAINTS_GATE: Final = "MachineTaintPropagation"
KUBERNETES_VERSION: Final = re.compile(r"v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_.+]*)?")
_RESERVED_TAINTS: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (re.escape(UNINITIALIZED_TAINT), "taint key is not allowed"),
        (re.escape(OUTDATED_REVISION_TAINT), "taint key is not allowed"),
        (
            r"node\.kubernetes\.io/(?!out-of-service$).*",
            "taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service",
        ),
        (r"node\.cloudprovider\.kubernetes\.io/.*", "taint key must not have the prefix node.cloudprovider.kubernetes.io/"),
        (r"node-role\.kubernetes\.io/master", "taint is deprecated since 1.24 and should not be used anymore"),
    )
)
"""TNT-2 to TNT-6: the first that holds is said."""


def taints(found: Sequence[Json], field: str, features: Mapping[str, bool]) -> Iterator[FieldError]:
    """TNT-1 to TNT-7: taints that Machines give to their Nodes."""
    if found and not features.get(TAINTS_GATE, False):
        yield forbidden(field, f"taints are not allowed to be set when the feature gate {TAINTS_GATE} is disabled")
    for n, taint in enumerate(found):
        key = str(taint.get("key", ""))
        reserved = next((text for pattern, text in _RESERVED_TAINTS if pattern.fullmatch(key)), None)
        if reserved is not None:
            yield invalid(f"{field}[{n}].key", key, reserved)
        for text in qualified_name(key):
            yield invalid(f"{field}[{n}].key", key, text)


def template_metadata(metadata: Json | None, field: str) -> Iterator[FieldError]:
    """MET-1, MET-2: labels and annotations that are given on to what is made from a template."""
    yield from validate_labels((metadata or {}).get("labels") or {}, f"{field}.labels")
    yield from validate_annotations((metadata or {}).get("annotations") or {}, f"{field}.annotations")


def machine_naming(naming: Json | None, field: str, sample: Mapping[str, Any]) -> Iterator[FieldError]:
    """NAM-1 to NAM-3: a template for names must give a valid name, and another one each time. `sample` is what it may ask for."""
    template = (naming or {}).get("template")
    if not template:
        return
    field = f"{field}.template"
    if "{{ .random }}" not in template:
        yield invalid(field, template, "invalid template, {{ .random }} is missing")
    try:
        name = shortened(render(template, sample), str(sample["random"]))
    except BadNamingTemplate as error:
        yield invalid(field, template, f"invalid template: {error}")
        return
    for text in dns_subdomain(name):
        yield invalid(field, template, f"invalid template, generated names would not be valid Kubernetes object names: {text}")


def kubernetes_version(version: str, field: str) -> Iterator[FieldError]:
    """VER-1: `v` and three numbers."""
    if KUBERNETES_VERSION.fullmatch(version) is None:
        yield invalid(field, version, "must be a valid semantic version")
