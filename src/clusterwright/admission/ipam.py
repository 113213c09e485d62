"""Admission of IPAddress and IPAddressClaim. Refusals are 403 with one message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from clusterwright.admission.hook import Access, Hook
from clusterwright.admission.mutability import differences
from clusterwright.admission.rule import CREATE, UPDATE, Fault, Guard, Review, Rule, at
from clusterwright.admission.sets import FORBIDDEN, INVALID
from clusterwright.api.codec import convert, to_json
from clusterwright.api.ipam import IPAddress, IPAddressClaim
from clusterwright.api.meta import Json, Object, ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.apiserver.status import ErrorType
from clusterwright.runtime.errors import ApiError


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of an address, or why it could not be read; neither, if there is none."""

    json: Json | None = None
    error: str = ""


async def _claim(review: Review, access: Access) -> Claim:
    name = at(review.new, "spec", "claimRef", "name")
    if review.operation != "CREATE" or not name:
        return Claim()
    try:
        found = await access.reader.find(SCHEME.gvk(IPAddressClaim), ObjectKey(review.namespace, name))
    except ApiError as error:
        return Claim(error=str(error))
    return Claim() if found is None else Claim(dict(found.json))


def address(text: Any) -> IPv4Address | IPv6Address | None:
    """Return an IP literal; None for any other text."""
    try:
        return ip_address(text or "")
    except ValueError:
        return None


def _above(kind: type[IPv4Address | IPv6Address], most: int) -> Guard:
    def guard(review: Review, value: Any) -> bool:
        return value is not None and value > most and isinstance(address(at(review.new, "spec", "address")), kind)

    return guard


def _other_pool(review: Review, value: Any) -> bool:
    claim: Claim = review.facts
    pool = at(claim.json, "spec", "poolRef")
    return claim.json is not None and any((at(pool, key) or "") != (at(value, key) or "") for key in ("apiGroup", "kind", "name"))


def _unread_claim(review: Review, _: Any) -> Iterator[Fault]:
    if review.facts.error:
        yield Fault(error=review.facts.error)


def _immutable(kind: type[Object]) -> Guard:
    """Return whether the spec changed, compared as the type writes it."""

    def guard(review: Review, value: Any) -> Iterator[Fault]:
        before, after = (at(to_json(convert(obj, kind)), "spec") for obj in (review.old or {}, review.new))
        if before != after:
            yield Fault(value, paths=", ".join(differences(before or {}, after or {})))

    return guard


_NO_ADDRESS: Final = "not a valid IP address"

IP_ADDRESS: Final = Hook(
    model=IPAddress,
    form="bare",
    observe=_claim,
    rules=(
        Rule("IP-1", INVALID, "spec.address", lambda _, v: address(v) is None, _NO_ADDRESS, on=CREATE),
        Rule("IP-2", INVALID, "spec.prefix", lambda _, v: v is not None and v < 0, "prefix cannot be negative", on=CREATE),
        Rule("IP-3", INVALID, "spec.prefix", _above(IPv4Address, 32), "prefix is too large for an IPv4 address", on=CREATE),
        Rule("IP-4", INVALID, "spec.prefix", _above(IPv6Address, 128), "prefix is too large for an IPv6 address", on=CREATE),
        Rule("IP-5", INVALID, "spec.gateway", lambda _, v: bool(v) and address(v) is None, _NO_ADDRESS, on=CREATE),
        Rule("IP-6", ErrorType.INTERNAL, "spec.claimRef", _unread_claim, "failed to fetch claim: {error}", on=CREATE),
        Rule("IP-7", INVALID, "spec.poolRef", _other_pool,
             "the referenced pool is different from the pool referenced by the claim this address should fulfill", on=CREATE),
        Rule("IP-8", FORBIDDEN, "spec", _immutable(IPAddress), "IPAddress spec is immutable. Diff: {paths}", on=UPDATE),
    ),
)  # fmt: skip

IP_ADDRESS_CLAIM: Final = Hook(
    model=IPAddressClaim,
    form="bare",
    rules=(Rule("IPC-1", FORBIDDEN, "spec", _immutable(IPAddressClaim), "IPAddressClaim spec is immutable. Diff: {paths}", on=UPDATE),),
)
