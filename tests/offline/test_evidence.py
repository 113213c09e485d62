"""What a verdict rests on is shown: conditions, rows, Events, absences and where they were looked for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from clusterwright.api.meta import Json
from clusterwright.cli.main import main
from clusterwright.offline.explain import Answer
from clusterwright.simulation.plane import Plane
from offline.live import CLUSTER, DEPLOYMENT, key, look, recorded
from offline.situations.making import fault, warn
from support.moments import Moment


def sorts(answer: Answer, name: str) -> dict[str, str]:
    """By sort: what is said of the objects whose name begins so."""
    return {p["sort"]: p["text"] for p in answer.evidence if p["object"].startswith(name)}


def test_a_condition_is_shown_with_the_row_that_decided_it_and_whom_it_asked(settled: Moment[Plane]) -> None:
    async def dead(p: Plane) -> Answer:
        await fault(p, "worker", "kubelet-stops")
        await asyncio.sleep(600)
        return await look(p)

    told = sorts(settled.then(dead), "Machine/default/md-")
    assert told["condition"].startswith("NodeHealthy=Unknown ")
    assert "table NodeHealthy, row " in told["row"]


def test_an_absence_says_where_it_was_looked_for(settled: Moment[Plane]) -> None:
    async def misspelt(p: Plane) -> Answer:
        reference = {"spec": {"template": {"spec": {"infrastructureRef": {"name": "typo"}}}}}
        await p.client.patch(DEPLOYMENT, key("md"), reference)
        await asyncio.sleep(120)
        return await look(p)

    told = sorts(settled.then(misspelt), "DevMachineTemplate/default/typo")
    assert told["absence"].startswith("all DevMachineTemplate objects of namespace default were listed; of this cluster are ")


def test_an_absence_of_a_kind_says_that_no_api_serves_it(settled: Moment[Plane]) -> None:
    async def not_installed(p: Plane) -> Answer:
        reference = {"spec": {"template": {"spec": {"infrastructureRef": {"kind": "AcmeMachineTemplate", "name": "typo"}}}}}
        await p.client.patch(DEPLOYMENT, key("md"), reference)
        await asyncio.sleep(120)
        return await look(p)

    told = sorts(settled.then(not_installed), "AcmeMachineTemplate/default/typo")
    assert told["absence"].startswith("no API of the management cluster serves AcmeMachineTemplate")


def test_a_pause_and_a_deletion_show_their_fields(settled: Moment[Plane]) -> None:
    async def paused(p: Plane) -> Answer:
        await p.client.patch(CLUSTER, key("c"), {"spec": {"paused": True}})
        await asyncio.sleep(60)
        return await look(p)

    assert sorts(settled.then(paused), "Cluster/default/c")["field"].startswith("spec.paused: ")


def test_a_warning_is_shown_with_its_time(settled: Moment[Plane]) -> None:
    async def refused(p: Plane) -> Answer:
        spec = {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "typo"}}
        await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2, "template": {"spec": spec}}})
        about = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "namespace": "default", "name": "md"}
        await asyncio.sleep(60)
        await warn(p, about, "FailedCreate", "failed to create: it does not exist")
        return await look(p)

    answer = settled.then(refused)
    assert answer.evidence
    assert {p["sort"] for p in answer.evidence} >= {"absence"}


def test_the_command_line_lists_it(settled: Moment[Plane], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def kept(p: Plane) -> list[Json]:
        await p.client.patch(CLUSTER, key("c"), {"spec": {"paused": True}})
        await asyncio.sleep(60)
        return await recorded(p, keep_secrets=False)

    file = tmp_path / "c.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": settled.then(kept)}))
    assert main(["explain", "cluster", "c", "--from", str(file), "--evidence"]) == 0
    assert "  Cluster/default/c: field: spec.paused: is paused" in capsys.readouterr().out.partition("Evidence:\n")[2]
