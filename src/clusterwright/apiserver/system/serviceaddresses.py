"""Cluster IPs and node ports of Services, allocated by the server itself as kube-apiserver does.

The ranges of addresses are those of the ServiceCIDRs. The stored Services alone define which addresses and ports are taken, so none can
leak: a write takes those of its object, and a deletion frees them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final, NamedTuple

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.status import FieldError, failure, invalid
from clusterwright.apiserver.storage.store import Event, object_key

SERVICES: Final = "services"
CIDRS: Final = "servicecidrs.networking.k8s.io"
DEFAULT_CIDR: Final = "10.0.0.0/24"
NODE_PORTS: Final = range(30000, 32768)
HEADLESS: Final = "None"
_TRIES: Final = 16
"""How many random draws precede the search in order."""
_WITH_NODE_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Ranges = dict[str, list[Network]]
"""Address ranges by family."""


class _Port(msgspec.Struct, rename="camel"):
    node_port: int = 0


class _Spec(msgspec.Struct, rename="camel"):
    cluster_ips: tuple[str, ...] | None = msgspec.field(default=None, name="clusterIPs")
    ports: tuple[_Port, ...] | None = None
    health_check_node_port: int = 0


class _Service(msgspec.Struct):
    spec: _Spec | None = None


_decode = msgspec.json.Decoder(_Service, strict=False).decode


class _CidrSpec(msgspec.Struct):
    cidrs: tuple[str, ...] | None = None


class _Cidr(msgspec.Struct):
    spec: _CidrSpec | None = None


_decode_cidr = msgspec.json.Decoder(_Cidr, strict=False).decode


class _Taken(NamedTuple):
    addresses: frozenset[str]
    ports: frozenset[int]


_NOTHING: Final = _Taken(frozenset(), frozenset())


def _taken(raw: bytes) -> _Taken:
    spec = _decode(raw).spec or _Spec()
    ports = {port.node_port for port in spec.ports or ()} | {spec.health_check_node_port}
    return _Taken(frozenset(spec.cluster_ips or ()) - {HEADLESS, ""}, frozenset(ports - {0}))


class ServiceAddresses:
    """Allocates addresses and ports for the Services of one server."""

    def __init__(self, server: Core) -> None:
        self._server = server
        self._addresses: dict[str, str] = {}
        """The key of the Service that has an address."""
        self._ports: dict[int, str] = {}
        self._follows = False

    def _begin(self) -> None:
        """Read the stored Services when the first one is written: many servers never have any."""
        self._follows = True
        table = self._server.store.table(SERVICES)
        for entry in table.objects.values():
            self._follow(entry.key, _NOTHING, _taken(entry.raw))
        table.hooks.append(self)

    def offer(self, event: Event) -> None:
        """Update the allocations after a change of a Service."""
        old = _taken(event.old.raw) if event.old is not None else _NOTHING
        self._follow(event.entry.key, old, _NOTHING if event.type == "DELETED" else _taken(event.entry.raw))

    def _follow(self, key: str, old: _Taken, new: _Taken) -> None:
        for address in old.addresses - new.addresses:
            if self._addresses.get(address) == key:
                del self._addresses[address]
        for port in old.ports - new.ports:
            if self._ports.get(port) == key:
                del self._ports[port]
        self._addresses.update(dict.fromkeys(new.addresses, key))
        self._ports.update(dict.fromkeys(new.ports, key))

    def ranges(self) -> Ranges:
        """Return the ranges of addresses by family, the default family first."""
        texts: list[str] = []
        for _, entry in sorted(self._server.store.table(CIDRS).objects.items(), key=lambda item: item[1].rv):
            texts += (_decode_cidr(entry.raw).spec or _CidrSpec()).cidrs or ()
        found: Ranges = {}
        for text in texts or [DEFAULT_CIDR]:
            network = ipaddress.ip_network(text, strict=False)
            found.setdefault(f"IPv{network.version}", []).append(network)
        return found

    def fill(self, obj: Json, old: Json | None, *, dry_run: bool) -> list[FieldError]:
        """Set the addresses and ports of a valid Service, in place. Return the errors in the requested ones."""
        if not self._follows:
            self._begin()
        key = object_key(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        spec: Json = obj.setdefault("spec", {})
        if spec.get("type") == "ExternalName":
            return []
        ranges = self.ranges()
        errors = self._families(spec, old, ranges)
        if errors:
            return errors
        if spec.get("clusterIP") != HEADLESS:
            errors += self._fill_addresses(spec, key, ranges, dry_run=dry_run)
        return errors + self._fill_ports(spec, key, (old or {}).get("spec") or {})

    # ------------------------------------------------------------------ addresses

    def _families(self, spec: Json, old: Json | None, ranges: Ranges) -> list[FieldError]:
        default = next(iter(ranges))
        other = "IPv6" if default == "IPv4" else "IPv4"
        given: list[str] = [a for a in spec.get("clusterIPs") or () if a and a != HEADLESS]
        families: list[str] = list(spec.get("ipFamilies") or ())
        if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
            # its addresses are those of the endpoints that its author makes, whatever the cluster's own are
            spec["ipFamilyPolicy"] = policy = spec.get("ipFamilyPolicy") or "RequireDualStack"
            spec["ipFamilies"] = families or ([default] if policy == "SingleStack" else [default, other])
            return []
        policy = spec.get("ipFamilyPolicy") or "SingleStack"
        if policy == "SingleStack" and len(families) > 1 and len(families) == len(((old or {}).get("spec") or {}).get("ipFamilies") or ()):
            families, spec["clusterIPs"] = families[:1], (spec.get("clusterIPs") or [])[:1]
        errors: list[FieldError] = []
        if policy == "SingleStack" and len(families) > 1:
            text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
            return [invalid("spec.ipFamilyPolicy", policy, text)]
        if policy == "RequireDualStack" and len(ranges) < 2:
            errors.append(invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services"))
        for i, family in enumerate(families):
            if family not in ranges:
                errors.append(invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster"))
        for i, address in enumerate(given):
            family = _family(address)
            if i >= len(families):
                families.append(family)
                if family not in ranges:
                    errors.append(invalid(f"spec.clusterIPs[{i}]", given, f"{family} is not configured on this cluster"))
            elif family != families[i]:
                text = f"expected an {families[i]} value as indicated by `ipFamilies[{i}]`"
                errors.append(invalid(f"spec.clusterIPs[{i}]", given, text))
        if errors:
            return errors
        families = families or [default]
        if policy != "SingleStack" and len(families) < 2 and len(ranges) > 1:
            families.append(other if families[0] == default else default)
        spec["ipFamilyPolicy"], spec["ipFamilies"] = policy, families
        return []

    def _fill_addresses(self, spec: Json, key: str, ranges: Ranges, *, dry_run: bool) -> list[FieldError]:
        given: list[str] = [a for a in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []) if a]
        for address in given:
            if problem := self._problem(address, key, ranges):
                return [invalid("spec.clusterIPs", given, f"failed to allocate IP {address}: {problem}")]
        found = list(given)
        found += [
            str(ranges[family][0].network_address) if dry_run else self._next_address(ranges[family])
            for family in spec["ipFamilies"][len(given) :]
        ]
        spec["clusterIP"], spec["clusterIPs"] = found[0], found
        return []

    def _problem(self, address: str, key: str, ranges: Ranges) -> str:
        """Return why a Service cannot have an address; empty if it can."""
        holder = self._addresses.get(address)
        if holder == key:
            return ""
        parsed = ipaddress.ip_address(address)
        networks = ranges.get(_family(address), [])
        if not any(parsed in network and _has(network, parsed) for network in networks):
            return "the provided network does not match the current range"
        return "provided IP is already allocated" if holder is not None else ""

    def _next_address(self, networks: Iterable[Network]) -> str:
        for network in networks:
            size = network.num_addresses - (2 if network.version == 4 else 1)
            for offset in _offsets(self._server.random, size, min(max(16, size // 16), 256), len(self._addresses)):
                address = str(network.network_address + 1 + offset)
                if address not in self._addresses:
                    return address
        raise failure(500, "InternalError", "Internal error occurred: failed to allocate a serviceIP: range is full")

    # ------------------------------------------------------------------ ports

    def _fill_ports(self, spec: Json, key: str, before: Json) -> list[FieldError]:
        wants = spec.get("type") in _WITH_NODE_PORTS and not (
            spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False
        )
        ports: list[Json] = spec.get("ports") or []
        if before and spec.get("type") in _WITH_NODE_PORTS:
            kept = {_identity(port): port.get("nodePort") for port in before.get("ports") or ()}
            for port in ports:
                if not port.get("nodePort") and (was := kept.get(_identity(port))):
                    port["nodePort"] = was
        errors: list[FieldError] = []
        mine: set[int] = set()
        seen: set[tuple[int, str]] = set()
        for i, port in enumerate(ports):
            number = port.get("nodePort")
            if not number:
                continue
            if number not in NODE_PORTS:
                valid = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
                text = f"provided port is not in the valid range. The range of valid ports is {valid}"
                errors.append(invalid(f"spec.ports[{i}].nodePort", number, text))
            elif self._ports.get(number, key) != key or (number, port.get("protocol") or "TCP") in seen:
                errors.append(invalid(f"spec.ports[{i}].nodePort", number, "provided port is already allocated"))
            mine.add(number)
            seen.add((number, port.get("protocol") or "TCP"))
        if errors or not wants:
            return errors
        shared: dict[int, int] = {port.get("port") or 0: port["nodePort"] for port in ports if port.get("nodePort")}
        for port in ports:
            if port.get("nodePort"):
                continue
            number = shared.get(port.get("port") or 0)
            if number is None:  # ports of one number and several protocols share their node port
                number = shared[port.get("port") or 0] = self._next_port(mine)
            port["nodePort"] = number
            mine.add(number)
        if spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local" and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = before.get("healthCheckNodePort") or self._next_port(mine)
        return []

    def _next_port(self, mine: set[int]) -> int:
        for offset in _offsets(self._server.random, len(NODE_PORTS), 86, len(self._ports) + len(mine)):
            if (number := NODE_PORTS.start + offset) not in self._ports and number not in mine:
                return number
        raise failure(500, "InternalError", "Internal error occurred: failed to allocate a nodePort: range is full")


def _identity(port: Json) -> tuple[object, object]:
    return port.get("protocol") or "TCP", port.get("port")


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def _has(network: Network, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether Services may have the address: not the network's own nor, in IPv4, its broadcast address."""
    return address != network.network_address and (network.version == 6 or address != network.broadcast_address)


def _offsets(random: Random, size: int, reserved: int, taken: int) -> Iterator[int]:
    """Yield offsets to try: random ones above the part for addresses chosen by users, then that part as well.

    As many as are taken may fail, so one more than those finds a free one if there is any.
    """
    above = size - reserved
    if above > 0:
        for _ in range(_TRIES):
            yield reserved + random.randrange(above)
        start = random.randrange(above)
        for step in range(min(above, taken + 1)):
            yield reserved + (start + step) % above
    yield from range(min(reserved, size))
