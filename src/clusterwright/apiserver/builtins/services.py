"""Services: their rules, and their addresses as far as those need no allocation, as in headless Services."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label
from clusterwright.apiserver.builtins.amounts import PORT_RANGE, ip_address
from clusterwright.apiserver.builtins.containers import port_name
from clusterwright.apiserver.status import FieldError, Verbatim, duplicate, forbidden, invalid, not_supported, required

HEADLESS = "None"
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def on_create(obj: Json) -> None:
    """Repeat the address in the list of addresses."""
    spec = obj.get("spec") or {}
    address = spec.get("clusterIP") or ""
    if not address:
        return
    spec.setdefault("clusterIPs", [address])


def on_update(obj: Json, old: Json) -> None:
    """Keep addresses that an update leaves out; a new first address becomes the first of the list, too.

    A Service that becomes an ExternalName loses the addresses that the update does not change.
    """
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    _drop_dependent(spec, before)
    if "ExternalName" in (spec.get("type"), before.get("type")):
        if before.get("type") != "ExternalName":
            for field in _ALLOCATED:
                if spec.get(field) == before.get(field):
                    spec.pop(field, None)
        return
    for field in _ALLOCATED:
        if not spec.get(field) and before.get(field):
            spec[field] = before[field]
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs") and spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"], *(before.get("clusterIPs") or ())[1:]]


_OUTSIDE = ("LoadBalancer", "NodePort")


def _is_balanced(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer"


_DEPENDENT: dict[str, Callable[[Json], bool]] = {
    "healthCheckNodePort": lambda spec: _is_balanced(spec) and spec.get("externalTrafficPolicy") == "Local",
    "allocateLoadBalancerNodePorts": _is_balanced,
    "loadBalancerClass": _is_balanced,
    "externalTrafficPolicy": lambda spec: spec.get("type") in _OUTSIDE or bool(spec.get("externalIPs")),
    "internalTrafficPolicy": lambda spec: spec.get("type") != "ExternalName",
}
"""Fields that only some types of Services have. An update to another type drops them unless it changes them."""


def _drop_dependent(spec: Json, before: Json) -> None:
    """Drop the fields that the new type does not have, unless the update changed them."""
    for field, has in _DEPENDENT.items():
        if has(before) and not has(spec) and spec.get(field) == before.get(field):
            spec.pop(field, None)
    if before.get("type") in _OUTSIDE and spec.get("type") not in _OUTSIDE:
        had = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") == had.get((port.get("protocol"), port.get("port"))):
                port.pop("nodePort", None)


def validate(obj: Json) -> list[FieldError]:
    """Check types, ports, and the fields that depend on them."""
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    kinds = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if spec.get("type") not in kinds:
        errors.append(not_supported("spec.type", spec.get("type"), kinds))
    ports = spec.get("ports") or ()
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and spec.get("type") != "ExternalName":
        errors.append(required("spec.ports"))
    if headless and spec.get("type") in ("LoadBalancer", "NodePort"):
        errors.append(invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {spec['type']} services"))
    if spec.get("type") == "ExternalName":
        given = (field for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(field))
        errors.extend(forbidden(f"spec.{field}", "may not be set for ExternalName services") for field in given)
    if spec.get("type") == "ExternalName" and not spec.get("externalName"):
        errors.append(required("spec.externalName"))
    names: set[str] = set()
    for i, port in enumerate(ports):
        path = f"spec.ports[{i}]"
        name = port.get("name") or ""
        if not name:
            if len(ports) > 1:
                errors.append(required(f"{path}.name"))
        else:
            errors.extend(invalid(f"{path}.name", name, p) for p in dns_label(name))
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
        number = port.get("port") or 0
        if not 1 <= number <= 65535:
            errors.append(invalid(f"{path}.port", number, PORT_RANGE))
        errors.extend(_target(port.get("targetPort"), f"{path}.targetPort"))
        if port.get("nodePort") and spec.get("type") == "ClusterIP":
            errors.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
            errors.append(not_supported(f"{path}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP")))
    errors.extend(_repeated(ports))
    errors.extend(_addresses(spec))
    errors.extend(_reach(spec))
    policy = spec.get("internalTrafficPolicy")
    if policy is not None and policy not in ("Cluster", "Local"):
        errors.append(not_supported("spec.internalTrafficPolicy", policy, ("Cluster", "Local")))
    affinity = spec.get("sessionAffinity")
    if affinity not in ("ClientIP", "None"):
        errors.append(not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None")))
    return errors


def warnings(obj: Json, old: Json | None) -> list[str]:
    """Return the fields that have no effect in a headless Service."""
    spec = obj.get("spec") or {}
    ignored = spec.get("clusterIP") == HEADLESS and spec.get("sessionAffinity") == "ClientIP"
    return ["spec.SessionAffinity is ignored for headless services"] if ignored else []


def _target(target: Any, path: str) -> Iterator[FieldError]:
    if isinstance(target, int) and not 1 <= target <= 65535:
        yield invalid(path, target, PORT_RANGE)
    elif isinstance(target, str):
        yield from (invalid(path, target, p) for p in port_name(target))


def _repeated(ports: Sequence[Json]) -> Iterator[FieldError]:
    """Check for two ports with the same number and protocol, which no other check reports."""
    seen: set[tuple[Any, Any]] = set()
    for i, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0}
            yield duplicate(f"spec.ports[{i}]", Verbatim(json.dumps(shown, separators=(",", ":"))))
        seen.add(key)


_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def _addresses(spec: Json) -> Iterator[FieldError]:
    """Yield the errors of addresses and their families, as far as they can be found without the cluster's ranges."""
    if spec.get("type") == "ExternalName":
        return
    addresses, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    if addresses and not spec.get("clusterIP"):
        yield invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")
    elif addresses and addresses[0] != spec.get("clusterIP"):
        yield invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    for i, family in enumerate(families):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{i}]", family, _FAMILIES)
        elif family in families[:i]:
            yield duplicate(f"spec.ipFamilies[{i}]", family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)


def _reach(spec: Json) -> Iterator[FieldError]:
    """Yield the errors of the policies for external traffic."""
    for i, address in enumerate(spec.get("clusterIPs") or ()):
        if address != HEADLESS:
            yield from ip_address(address, f"spec.clusterIPs[{i}]")
    policy = spec.get("externalTrafficPolicy")
    if policy is None:
        return
    if spec.get("type") not in ("NodePort", "LoadBalancer") and not spec.get("externalIPs"):
        yield invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    elif policy not in ("Cluster", "Local"):
        yield not_supported("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))


def validate_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that the first address does not change once it is set."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    first, was = (spec.get("clusterIPs") or [""])[0], (before.get("clusterIPs") or [""])[0]
    if was and first != was and "ExternalName" not in (spec.get("type"), before.get("type")):
        return [invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")]
    return []
