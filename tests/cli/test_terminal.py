"""What `up` writes while users make mistakes: a line for what lasts, none for what heals, never a trace."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from cli.conftest import start, stop
from clusterwright.api.core import Cluster, ClusterClass, MachineDeployment
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.cli import connect
from clusterwright.conditions import is_true
from clusterwright.runtime.digest import LASTING
from clusterwright.simulation import samples

MISTAKE = "machinedeployment default/md: failed to create a new MachineSet: DevMachineTemplate does not exist"


def test_permanent_failures_are_printed_once_and_transient_ones_are_not(tmp_path: Path) -> None:
    process = start(tmp_path, "--in-memory")
    try:
        healed_after = asyncio.run(_mistakes(tmp_path))
        deadline = time.monotonic() + 600  # a net
        while MISTAKE not in (tmp_path / "err").read_text():
            assert time.monotonic() < deadline, (tmp_path / "err").read_text()
            time.sleep(0.2)
        time.sleep(3)
    finally:
        stop(process)
    lines = (tmp_path / "err").read_text().splitlines()
    assert not [line for line in lines if "Traceback" in line or "stacktrace" in line]
    assert len([line for line in lines if MISTAKE in line]) <= 2, lines  # the second where it was tried ten times as often
    assert all(len(line) < 400 for line in lines)
    told = [line for line in lines if "in-memory" in line]
    assert not told or healed_after >= LASTING, "the class was there a little before its templates"


async def _mistakes(folder: Path) -> float:
    """Files that arrive in the wrong order, and a template that never does; then a Cluster that goes. How long the order mattered."""
    arguments = argparse.Namespace(kubeconfig=str(folder / ".clusterwright" / "kubeconfig"), context="", namespace="")
    async with connect.connected(connect.resolve(arguments)) as client:
        *templates, cluster_class = samples.cluster_class()
        workers = samples.workers("c", "md", replicas=1)
        for obj in workers:
            if obj["kind"] == "MachineDeployment":
                obj["spec"]["template"]["spec"]["infrastructureRef"]["name"] = "nowhere"
        objects: list[Json] = [
            *samples.cluster("c", has_control_plane_object=True),
            *samples.control_plane("c", replicas=1),
            *workers,
            samples.machine_health_check("c", "mhc", labels={"pool": "md"}),
            cluster_class,
            *templates,
            *samples.cluster("gone", has_control_plane_object=True),
            samples.machine_health_check("gone", "mhc-of-gone", labels={"pool": "md"}),
        ]
        begun = time.monotonic()
        for obj in objects:
            begun = time.monotonic() if obj is cluster_class else begun
            await client.create(obj)
        await client.delete(Cluster, ObjectKey("default", "gone"))
        await client.get(MachineDeployment, ObjectKey("default", "md"))
        key = ObjectKey("default", cluster_class["metadata"]["name"])
        while not is_true((await client.get(ClusterClass, key)).status.conditions, "RefVersionsUpToDate"):  # noqa: ASYNC110 - it heals in its own time
            await asyncio.sleep(0.05)
        return time.monotonic() - begun
