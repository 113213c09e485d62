"""Clusters that have come up already, for tests that go on from there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline.live import lived
from support.moments import Moment, moment


@pytest.fixture(scope="session")
def settled() -> Iterator[Moment[Plane]]:
    """A control plane of one and a worker."""
    with moment(lambda: lived(plane(LoopClock(START)))) as made:
        yield made


@pytest.fixture(scope="session")
def three() -> Iterator[Moment[Plane]]:
    """A control plane of three."""
    with moment(lambda: lived(plane(LoopClock(START)), 3, 0)) as made:
        yield made
