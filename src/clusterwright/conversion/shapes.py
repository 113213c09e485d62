"""Shapes that several kinds share and that differ between versions: references, failure domains, arguments, statuses."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.conversion.pairs import Codec, Context, Row
from clusterwright.conversion.types import Go
from clusterwright.conversion.values import Unreadable


def _named(reference: Go, **more: str) -> Go:
    parts = {"kind": reference.get("kind", ""), "name": reference.get("name", ""), **more}
    return {key: value for key, value in parts.items() if value}


def _group(reference: Go) -> str:
    api_version = reference.get("apiVersion", "")
    if api_version.count("/") > 1:
        raise Unreadable(f"apiVersion {api_version!r} is not group/version")
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def _contract_up(reference: Go, context: Context) -> Any:
    return _named(reference, apiGroup=_group(reference))


def _contract_down(reference: Go, context: Context) -> Any:
    group, kind = reference.get("apiGroup", ""), reference.get("kind", "")
    if not (group or kind or reference.get("name")):
        return None
    return _named(reference, apiVersion=context.api_version(group, kind), namespace=context.namespace)


REFERENCE: Final = Codec(_contract_up, _contract_down)
"""A reference to a provider object: the hub has no version; it is that of the CRD's contract (CV-30, CV-31)."""


def _template_up(reference: Go, context: Context) -> Any:
    return _named(reference, apiVersion=reference.get("apiVersion", ""))


def _template_down(reference: Go, context: Context) -> Any:
    return _named(reference, apiVersion=reference.get("apiVersion", ""), namespace=context.namespace)


TEMPLATE_REFERENCE: Final = Codec(_template_up, _template_down)
"""A reference to a template: the whole apiVersion on both sides, the namespace only on the old one (CV-32)."""

NODE_REFERENCE: Final = Codec(
    lambda reference, _: {"name": reference["name"]} if reference.get("name") else {},
    lambda reference, _: {"apiVersion": "v1", "kind": "Node", "name": reference["name"]} if reference.get("name") else None,
)
"""A reference to a Node (CV-33)."""

FAILURE_DOMAINS: Final = Codec(
    lambda domains, _: [
        {**({"name": name} if name else {}), "controlPlane": domain.get("controlPlane", False), **_attributes(domain)}
        for name, domain in sorted(domains.items(), key=lambda item: item[0].encode())
    ],
    lambda domains, _: {
        domain.get("name", ""): {**({"controlPlane": True} if domain.get("controlPlane") else {}), **_attributes(domain)}
        for domain in domains
    },
)
"""Failure domains: a map by name, and a list (CV-50)."""


def _attributes(domain: Go) -> Go:
    return {"attributes": domain["attributes"]} if "attributes" in domain else {}


ARGUMENTS: Final = Codec(
    lambda arguments, _: [
        {**({"name": name} if name else {}), "value": value} for name, value in sorted(arguments.items(), key=lambda item: item[0].encode())
    ],
    lambda arguments, _: {argument.get("name", ""): argument.get("value") or "" for argument in arguments},
)
"""Arguments: a map, and a list (CV-51)."""

TIMEOUTS: Final = tuple(
    Row(f"{name}Timeout", f"deletion.{name}TimeoutSeconds") for name in ("nodeDrain", "nodeVolumeDetach", "nodeDeletion")
)
"""The time limits of the deletion of a Machine."""

CONDITIONS: Final = (
    Row("conditions", "deprecated.v1beta1.conditions"),
    Row("v1beta2.conditions", "conditions"),
)
"""Conditions: old ones stay old ones, new ones stay new ones (CV-40)."""

FAILURE: Final = (
    Row("failureReason", "deprecated.v1beta1.failureReason"),
    Row("failureMessage", "deprecated.v1beta1.failureMessage"),
)


def counters(*old: str, new: tuple[str, ...] = ("readyReplicas", "availableReplicas", "upToDateReplicas")) -> tuple[Row, ...]:
    """Return the rows of Machine counters: old ones move into `deprecated`, new ones come from `v1beta2` (CV-42)."""
    return (
        *(Row(name, f"deprecated.v1beta1.{name}") for name in old),
        *(Row(f"v1beta2.{name}", name) for name in new),
        Row("replicas", plain=True),
    )


def _with_deprecated(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    hub.setdefault("deprecated", {}).setdefault("v1beta1", {})


def status(*rows: Row, always: bool = False) -> Row:
    """Return the rows of a status: its conditions, and further rows; `always`: with a deprecated part even if that is empty (CV-41)."""
    return Row("status", rows=(*CONDITIONS, *rows), up=_with_deprecated if always else None)
