"""What of a Cluster's status its topology writes."""

from __future__ import annotations

from clusterwright.api.core import Cluster, ReplicaCounters
from clusterwright.controllers.topology.status import with_upgrade_plan
from clusterwright.topology.model import Progress


def plan_of(counters: ReplicaCounters | None) -> list[str]:
    return [v.version for v in counters.upgrade_plan] if counters is not None else []


def test_13923_the_plan_of_machine_pools_is_that_of_the_workers() -> None:
    progress = Progress()
    progress.control_plane.plan = ["v1.33.0", "v1.34.0"]
    progress.machine_deployments.plan = ["v1.33.0"]

    of_deployments = with_upgrade_plan(Cluster(), progress).status
    progress.machine_pools.plan = ["v1.34.0"]
    of_pools = with_upgrade_plan(Cluster(), progress).status

    assert plan_of(of_deployments.control_plane) == ["v1.33.0", "v1.34.0"]
    assert plan_of(of_deployments.workers) == ["v1.33.0"]
    assert plan_of(of_pools.workers) == ["v1.34.0"]


def test_13923_no_upgrade_has_no_plan_and_adds_no_status() -> None:
    assert with_upgrade_plan(Cluster(), Progress()) == Cluster()


def test_13923_a_plan_is_never_longer_than_the_api_allows() -> None:
    progress = Progress()
    progress.control_plane.plan = [f"v1.{n}.0" for n in range(40)]

    assert len(plan_of(with_upgrade_plan(Cluster(), progress).status.control_plane)) == 32
