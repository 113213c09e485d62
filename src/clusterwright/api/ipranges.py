"""Ranges of IP addresses as pools write them: `10.0.0.5`, `10.0.0.5-10.0.0.9`, `10.0.0.0/24`. Pure.

A set of addresses is a few ranges, whatever number of addresses they hold: a pool may be an IPv6 network.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address


class Range(NamedTuple):
    """The addresses from `first` to `last`, both included."""

    version: int
    first: int
    last: int

    @staticmethod
    def of(first: Address, last: Address | None = None) -> Range:
        """Return the range between two addresses of one family, or of one address."""
        return Range(first.version, int(first), int(first if last is None else last))

    @property
    def lowest(self) -> Address:
        """Its first address."""
        return IPv4Address(self.first) if self.version == 4 else IPv6Address(self.first)

    @property
    def size(self) -> int:
        """The number of addresses in it."""
        return self.last - self.first + 1


def parse_address(text: str) -> Address | None:
    """Return an address without a zone, or None if the text is not one."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return None if getattr(found, "scope_id", None) else found


def parse_range(text: str) -> Range | None:
    """Return the range that an entry of a pool means, or None if the entry is not an address, a range or a CIDR."""
    if "-" in text:
        ends = [parse_address(end) for end in text.split("-")]
        if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0].version != ends[1].version or int(ends[0]) > int(ends[1]):
            return None
        return Range.of(ends[0], ends[1])
    if "/" in text:
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            return None
        address, _, length = text.partition("/")
        if not length.isdecimal() or parse_address(address) is None:  # a netmask is not a CIDR
            return None
        return Range.of(network.network_address, network.broadcast_address)
    address_ = parse_address(text)
    return None if address_ is None else Range.of(address_)


def network(address: Address, prefix: int) -> Range | None:
    """Return the network of an address, or None if the prefix is too long for its family."""
    try:
        found = ip_network(f"{address}/{prefix}", strict=False)
    except ValueError:
        return None
    return Range.of(found.network_address, found.broadcast_address)


class AddressSet:
    """Addresses as ranges in order that neither overlap nor touch."""

    __slots__ = ("_starts", "ranges")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self.ranges: tuple[Range, ...] = tuple(_merged(ranges))
        self._starts = [(r.version, r.first) for r in self.ranges]

    def __contains__(self, address: Address) -> bool:
        at = bisect_right(self._starts, (address.version, int(address))) - 1
        found = self.ranges[at] if at >= 0 else None
        return found is not None and found.version == address.version and int(address) <= found.last

    @property
    def size(self) -> int:
        """The number of addresses in it."""
        return sum(r.size for r in self.ranges)

    def without(self, others: Iterable[Range]) -> AddressSet:
        """Return the addresses that are not in `others`."""
        taken = _merged(others)
        left: list[Range] = []
        at = 0
        for version, first, last in self.ranges:
            while at < len(taken) and (taken[at].version, taken[at].last) < (version, first):
                at += 1
            n = at
            while n < len(taken) and taken[n].version == version and taken[n].first <= last and first <= last:
                if taken[n].first > first:
                    left.append(Range(version, first, taken[n].first - 1))
                first = max(first, taken[n].last + 1)
                n += 1
            if first <= last:
                left.append(Range(version, first, last))
        return AddressSet(left)

    def first_free(self, used: Collection[Address]) -> Address | None:
        """Return the lowest address that is not in use, or None. It costs as much as there are addresses in use."""
        taken = {(a.version, int(a)) for a in used}
        for version, first, last in self.ranges:
            while first <= last and (version, first) in taken:
                first += 1
            if first <= last:
                return Range(version, first, last).lowest
        return None


def _merged(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for one in sorted(ranges):
        before = merged[-1] if merged else None
        if before is not None and before.version == one.version and one.first <= before.last + 1:
            merged[-1] = Range(before.version, before.first, max(before.last, one.last))
        else:
            merged.append(one)
    return merged
