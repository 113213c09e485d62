"""Addresses of Services, as far as they do not have to be allocated: those of headless ones."""

from __future__ import annotations

from clusterwright.api.meta import Json
from clusterwright.apiserver.status import FieldError, invalid

HEADLESS = "None"
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def on_create(obj: Json) -> None:
    """A headless Service says so twice; without a selector it is of both address families, as upstream has it."""
    spec = obj.get("spec") or {}
    address = spec.get("clusterIP") or ""
    if spec.get("type") == "ExternalName" or not address:
        return
    spec.setdefault("clusterIPs", [address])
    if address != HEADLESS:
        return
    if spec.get("selector"):
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("ipFamilies", ["IPv4"])
    else:
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])


def on_update(obj: Json, old: Json) -> None:
    """What an update leaves out of the addresses stays; a new first address is the first of the list, too."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    for field in _ALLOCATED:
        if not spec.get(field) and before.get(field):
            spec[field] = before[field]
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs") and spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"], *(before.get("clusterIPs") or ())[1:]]


def validate_update(obj: Json, old: Json) -> list[FieldError]:
    """The first address may not change once it is set."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    first, was = (spec.get("clusterIPs") or [""])[0], (before.get("clusterIPs") or [""])[0]
    if was and first != was and "ExternalName" not in (spec.get("type"), before.get("type")):
        return [invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")]
    return []
