"""Admission of InClusterIPPool and GlobalInClusterIPPool: their ranges make sense, and addresses in use stay in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.admission.hook import Access, Hook, Unobserved
from clusterwright.admission.rule import DELETE, UPDATE, WRITE, Fault, Review, Rule, at
from clusterwright.admission.sets import FORBIDDEN, INVALID
from clusterwright.api.ipam import IPAddress
from clusterwright.api.ippools import GlobalInClusterIPPool, InClusterIPPool, Pool, in_use, refers_to
from clusterwright.api.ipranges import Address, AddressSet, Range, network, parse_address, parse_range
from clusterwright.runtime.errors import ApiError

SKIP_DELETE: Final = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook"
"""An annotation: the pool may be deleted while addresses of it are in use."""
_SHOWN: Final = 10
_NOT_A_RANGE: Final = "provided address is not a valid IP, range, nor CIDR"
_MIXED: Final = "provided addresses are of mixed IP families"


async def _in_use(review: Review, access: Access) -> frozenset[Address]:
    """Return the addresses in use of a pool that is deleted, or whose spec changes."""
    old = review.old or {}
    if not old or (review.operation == "UPDATE" and at(old, "spec") == at(review.new, "spec")):
        return frozenset()
    try:
        found = await access.reader.list(IPAddress, namespace=at(old, "metadata", "namespace") or "")
    except ApiError as error:
        raise Unobserved(f"failed to list IPAddresses: {error}") from error
    kind, name = at(old, "kind"), at(old, "metadata", "name")
    return frozenset(in_use(one for one in found if refers_to(one, kind, name)))


def _ranges(value: Any) -> list[Range]:
    return [one for entry in value or () if (one := parse_range(entry)) is not None]


def _invalid_range(review: Review, value: Any) -> bool:
    return value is not None and parse_range(value) is None


def _versions(review: Review, field: str) -> set[int]:
    return {one.version for one in _ranges(at(review.new, "spec", field))}


def _mixed(review: Review, value: Any) -> bool:
    return len({one.version for one in _ranges(value)}) > 1


def _other_family(review: Review, value: Any) -> bool:
    """Return whether the excluded addresses have another family than the addresses."""
    excluded, addresses = {one.version for one in _ranges(value)}, _versions(review, "addresses")
    return len(excluded) == len(addresses) == 1 and excluded != addresses


def _gateway_of_other_family(review: Review, value: Any) -> bool:
    gateway, addresses = parse_address(value or ""), _versions(review, "addresses")
    return gateway is not None and bool(addresses) and gateway.version not in addresses


def _subnet(review: Review) -> Range | None:
    """Return the network of the lowest address, or None if there is none."""
    ranges = AddressSet(_ranges(at(review.new, "spec", "addresses"))).ranges
    prefix = at(review.new, "spec", "prefix")
    return network(ranges[0].lowest, prefix) if ranges and isinstance(prefix, int) else None


def _prefix_too_long(review: Review, value: Any) -> bool:
    return bool(_ranges(at(review.new, "spec", "addresses"))) and _subnet(review) is None


def _outside(review: Review, value: Any) -> Iterator[Fault]:
    """Yield the entries of the network's family that leave the network. Other rules tell of the other entries."""
    whole = _subnet(review)
    for number, entry in enumerate(value or () if whole else ()):
        one = parse_range(entry)
        if one and whole and one.version == whole.version and not whole.first <= one.first <= one.last <= whole.last:
            yield Fault(entry, at=(number,))


def _lost(review: Review, value: Any) -> Iterator[Fault]:
    """Yield the addresses in use that the new spec does not have."""
    if not review.facts:
        return
    kept = AddressSet(_ranges(at(value, "addresses"))).without(_ranges(at(value, "excludedAddresses")))
    lost = sorted((one for one in review.facts if one not in kept), key=lambda one: (one.version, int(one)))
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        yield Fault(lost=", ".join(map(str, lost[:_SHOWN])) + more)


def _used(review: Review, value: Any) -> bool:
    return bool(review.facts) and SKIP_DELETE not in (at(review.old, "metadata", "annotations") or {})


def _hook(model: type[Pool]) -> Hook:
    return Hook(
        model=model,
        on=WRITE | DELETE,
        observe=_in_use,
        rules=(
            Rule("IPP-1", INVALID, "spec.addresses", lambda _, v: not v, "addresses is required"),
            Rule("IPP-2", INVALID, "spec.addresses[]", _invalid_range, _NOT_A_RANGE),
            Rule("IPP-3", INVALID, "spec.addresses", _mixed, _MIXED),
            Rule("IPP-4", INVALID, "spec.prefix", _prefix_too_long, "provided prefix is not valid"),
            Rule("IPP-5", INVALID, "spec.addresses", _outside, "provided address belongs to a different subnet than others",
                 path="spec.addresses[{}]"),
            Rule("IPP-6", INVALID, "spec.gateway", lambda _, v: bool(v) and parse_address(v) is None, "not a valid IP address"),
            Rule("IPP-7", INVALID, "spec.gateway", _gateway_of_other_family, "provided gateway and addresses are of mixed IP families"),
            Rule("IPP-8", INVALID, "spec.excludedAddresses[]", _invalid_range, _NOT_A_RANGE),
            Rule("IPP-9", INVALID, "spec.excludedAddresses", _mixed, _MIXED),
            Rule("IPP-10", INVALID, "spec.excludedAddresses", _other_family,
                 "addresses and excluded addresses are of mixed IP families"),
            Rule("IPP-11", FORBIDDEN, "spec", _lost, "pool addresses do not contain allocated addresses: {lost}", on=UPDATE),
            Rule("IPP-12", FORBIDDEN, "", _used,
                 "Pool has IPAddresses allocated. Cannot delete Pool until all IPAddresses have been removed", on=DELETE),
        ),
    )  # fmt: skip


IN_CLUSTER_IP_POOL: Final = _hook(InClusterIPPool)
GLOBAL_IN_CLUSTER_IP_POOL: Final = _hook(GlobalInClusterIPPool)
