"""Ranges of addresses as pools write them."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.ipranges import AddressSet, Range, network, parse_address, parse_range


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("10.0.0.5", "10.0.0.5", "10.0.0.5"),
        ("10.0.0.5-10.0.0.9", "10.0.0.5", "10.0.0.9"),
        ("10.0.0.7/24", "10.0.0.0", "10.0.0.255"),
        ("fd00::1-fd00::ff", "fd00::1", "fd00::ff"),
        ("fd00::/64", "fd00::", "fd00::ffff:ffff:ffff:ffff"),
    ],
)
def test_an_entry_is_an_address_a_range_or_a_cidr(text: str, first: str, last: str) -> None:
    assert parse_range(text) == Range.of(ip_address(first), ip_address(last))


@pytest.mark.parametrize(
    "text",
    ["", "x", "10.0.0", "10.0.0.9-10.0.0.5", "10.0.0.1-fd00::1", "10.0.0.1-", "1-2-3", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "fe80::1%eth0"],
)
def test_anything_else_is_refused(text: str) -> None:
    assert parse_range(text) is None


def test_a_zone_is_not_part_of_an_address() -> None:
    assert parse_address("fe80::1%eth0") is None


def test_the_network_of_an_address_has_a_prefix_that_fits_its_family() -> None:
    assert network(ip_address("10.0.0.7"), 24) == parse_range("10.0.0.0/24")
    assert network(ip_address("10.0.0.7"), 33) is None
    assert network(ip_address("fd00::7"), 64) == parse_range("fd00::/64")


SMALL = ip_network("10.0.0.0/27")
RANGES = st.lists(
    st.tuples(st.integers(0, 31), st.integers(0, 31)).map(lambda ends: Range(4, int(SMALL[0]) + min(ends), int(SMALL[0]) + max(ends))),
    max_size=6,
)


def spelled(ranges: list[Range]) -> set[int]:
    return {number for one in ranges for number in range(one.first, one.last + 1)}


@given(RANGES, RANGES)
def test_sets_of_ranges_are_sets_of_addresses(wanted: list[Range], unwanted: list[Range]) -> None:
    left = AddressSet(wanted).without(unwanted)

    assert {int(one) for one in SMALL if one in left} == spelled(wanted) - spelled(unwanted)
    assert left.size == len(spelled(wanted) - spelled(unwanted))
    assert all(a.last + 1 < b.first for a, b in zip(left.ranges, left.ranges[1:], strict=False))


@given(RANGES, st.sets(st.integers(0, 31)))
def test_the_lowest_free_address_is_found(ranges: list[Range], used: set[int]) -> None:
    taken = [SMALL[n] for n in used]
    free = spelled(ranges) - {int(one) for one in taken}

    assert AddressSet(ranges).first_free(taken) == (IPv4Address(min(free)) if free else None)


def test_a_large_network_costs_nothing() -> None:
    whole = AddressSet([one for text in ("fd00::/8", "2001:db8::/32") if (one := parse_range(text)) is not None])

    assert whole.size == 2**120 + 2**96
    assert whole.first_free([ip_address("2001:db8::")]) == ip_address("2001:db8::1")
