"""Fixtures for pytest, found through the entry point `clusterwright`: no import and no conftest.py is needed.

    def test_my_operator(plane):
        ... start it with KUBECONFIG=plane.kubeconfig ...

Nothing of Clusterwright is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from clusterwright.simulation.plane import Plane
    from clusterwright.testing.servers import Served, ServedPlane, WorkloadCluster


@pytest.fixture
def api_server() -> Iterator[Served]:
    """Serve an empty Kubernetes API over HTTPS: `url`, `kubeconfig`, `apply`, `get`."""
    from clusterwright.testing.servers import served_api_server

    with served_api_server() as made:
        yield made


@pytest.fixture
def plane() -> Iterator[ServedPlane]:
    """Serve a whole management plane with simulated machines over HTTPS, as `clusterwright up` does."""
    from clusterwright.testing.servers import served_plane

    with served_plane() as made:
        yield made


@pytest.fixture
def workload_cluster(plane: ServedPlane) -> WorkloadCluster:
    """Create a simulated workload cluster of one control-plane node and one worker on `plane`, and wait until it is Available."""
    return plane.workload_cluster()


@pytest.fixture
def virtual_plane() -> Callable[..., Any]:
    """Return `run(body, **options)`: it runs `await body(plane)` in virtual time and returns the result."""
    from clusterwright.simulation.loop import run_virtual
    from clusterwright.testing import planes

    def run(body: Callable[[Plane], Coroutine[Any, Any, Any]], **options: Any) -> Any:
        async def main() -> Any:
            async with planes.virtual_plane(**options) as made:
                return await body(made)

        return run_virtual(main())

    return run
