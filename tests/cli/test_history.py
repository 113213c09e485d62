"""What a plane remembers of its clusters, through a restart, as its users see it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.conftest import Run, run_in, start, stop
from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.cli.connect import connected
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.simulation import samples


def said(run: Run, *arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def verdicts(run: Run) -> list[Any]:
    lines = said(run, "timeline", "c", "-o", "json").splitlines()
    return [m for m in map(json.loads, lines) if m["sort"] == "verdict"]


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 300  # a net, not a measurement
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


async def pause_and_make_an_orphan(folder: Path) -> None:
    connection = Kubeconfig.load([folder / ".clusterwright" / "kubeconfig"]).resolve()
    async with connected(connection) as client:
        await client.patch(Cluster, ObjectKey("default", "c"), {"spec": {"paused": True}})
        for obj in samples.workers("nowhere", "orphan", replicas=1):
            await client.create(obj)


def test_a_restart_forgets_no_verdict_and_orphans_are_explained(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    process = start(tmp_path)
    try:
        said(run, "create", "c", "--worker-machines", "0", "--wait")
        until(lambda: any(m["text"].startswith("Fine") for m in verdicts(run)), "the plane judges it")
        asyncio.run(pause_and_make_an_orphan(tmp_path))
        until(lambda: verdicts(run)[-1]["text"].startswith("Waiting"), "the pause is seen")
        before = verdicts(run)
        orphan = run("explain", "machinedeployment/orphan", "-o", "json")
        assert orphan.returncode == 0, orphan.stderr
        assert json.loads(orphan.stdout)["subject"] == "MachineDeployment/default/orphan"
        since = json.loads(said(run, "explain", "c", "-o", "json"))["verdict"]["since"]
    finally:
        stop(process)
    assert (tmp_path / ".clusterwright" / "verdicts.sqlite").stat().st_mode & 0o077 == 0

    process = start(tmp_path)
    try:
        until(lambda: bool(verdicts(run)), "the history is served")
        assert verdicts(run)[: len(before)] == before
        assert json.loads(said(run, "explain", "c", "-o", "json"))["verdict"]["since"] == since
        assert run("explain", "c", "--exit-code").returncode == 4
        text = said(run, "timeline", "c")
        assert "  decision  " not in text
        assert "  verdict    Cluster/c  Waiting: Cluster/default/c" in text
        assert "  decision   " in said(run, "timeline", "c", "--all")
        assert said(run, "timeline", "c", "--kind", "machine").count("Cluster/c") == 0
        assert run("timeline", "c", "--since", "yesterday").returncode == 2
    finally:
        stop(process)
