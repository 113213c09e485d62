"""`status.versions`: how many Machines have which version (#13341, #13871)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api import codec
from clusterwright.api.core import Machine
from clusterwright.api.core.shared import StatusVersion
from clusterwright.controllers import version_counts
from clusterwright.kubeadm.versions import compare, parse_version

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def a_machine(name: str, version: str, kubelet: str = "", age: int = 0) -> Machine:
    info = {"nodeInfo": {"kubeletVersion": kubelet}} if kubelet else {}
    created = (NOW - timedelta(seconds=age)).isoformat()
    return codec.convert({"metadata": {"name": name, "creationTimestamp": created}, "spec": {"version": version}, "status": info}, Machine)


def told(found: tuple[StatusVersion, ...]) -> list[tuple[str, int | None]]:
    return [(v.version, v.replicas) for v in found]


def test_machines_count_by_kubelet_version_if_known() -> None:
    machines = [a_machine("a", "v1.34.1"), a_machine("b", "v1.34.1", "v1.33.5"), a_machine("c", "v1.34.1", "v1.34.1"), a_machine("d", "")]

    assert told(version_counts.of_machines(machines)) == [("v1.33.5", 1), ("v1.34.1", 2)]


def test_without_machines_there_are_no_versions() -> None:
    assert version_counts.of_machines([]) == ()


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["v1.34.1", "v1.9.0", "v1.33.10", "v1.33.9"], ["v1.9.0", "v1.33.9", "v1.33.10", "v1.34.1"]),
        (["v1.34.0", "v1.34.0-rc.1", "v1.34.0-alpha.0"], ["v1.34.0-alpha.0", "v1.34.0-rc.1", "v1.34.0"]),
        (["1.34.0", "v1.34.0"], ["1.34.0", "v1.34.0"]),
        (["v1.34.0+b.2", "v1.34.0+b.10", "v1.34.0"], ["v1.34.0", "v1.34.0+b.2", "v1.34.0+b.10"]),
        (["zebra", "v1.34.0", "apple"], ["v1.34.0", "apple", "zebra"]),
    ],
)
def test_versions_are_sorted_from_the_oldest_and_unreadable_ones_are_last(versions: list[str], expected: list[str]) -> None:
    machines = [a_machine(f"m{n}", v) for n, v in enumerate(versions)]

    assert [v for v, _ in told(version_counts.of_machines(machines))] == expected


def test_builds_without_an_order_keep_the_order_of_their_machines() -> None:
    machines = [a_machine("new", "v1.34.0+blue", age=1), a_machine("old", "v1.34.0+red", age=9)]

    assert told(version_counts.of_machines(machines)) == [("v1.34.0+red", 1), ("v1.34.0+blue", 1)]


def test_counts_of_the_same_version_are_added_up() -> None:
    one, two = StatusVersion(version="v1.34.1", replicas=2), StatusVersion(version="v1.34.1", replicas=3)

    assert told(version_counts.aggregated([one, StatusVersion(version=""), two])) == [("v1.34.1", 5)]
    assert told(version_counts.aggregated([StatusVersion(version="v1.34.1")])) == [("v1.34.1", None)]


def test_kubelets_cannot_make_the_status_larger_than_the_api_allows() -> None:
    """Kubelets say of themselves what they are: a status that the API refuses would never be written again."""
    machines = [a_machine(f"m{n}", "v1.34.1", f"v1.34.{n}") for n in range(150)] + [a_machine("long", "v1.1.0", "v1." + "9" * 300)]

    found = version_counts.of_machines(machines)

    assert len(found) == version_counts.MOST
    assert told(found)[:2] == [("v1.1.0", 1), ("v1.34.0", 1)]
    assert len(version_counts.of_kubelets([f"v1.{n}.0" for n in range(150)] + ["x" * 300])) == version_counts.MOST
    assert len(version_counts.as_reported([StatusVersion(version=f"v1.{n}.0", replicas=0) for n in range(40)])) == 32


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", "-rc.1", "+a.1", "+a.2"])), max_size=12))
def test_readable_versions_are_always_in_order_and_none_is_lost(parts: list[tuple[int, int, str]]) -> None:
    machines = [a_machine(f"m{n}", f"v1.{minor}.{patch}{suffix}") for n, (minor, patch, suffix) in enumerate(parts)]

    found = told(version_counts.of_machines(machines))

    assert sum(replicas or 0 for _, replicas in found) == len(machines)
    read = [parse_version(v) for v, _ in found]
    assert all(compare(a, b, build=True) != 1 for a, b in pairwise(read))
