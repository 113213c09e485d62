"""What programs rely on: exit statuses, the JSON form and its schema, identifiers of causes."""

from __future__ import annotations

import asyncio
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from clusterwright.api.meta import Json
from clusterwright.cli.explain import EXIT_CODES
from clusterwright.cli.main import main
from clusterwright.offline import cause_ids
from clusterwright.offline.bundle import assemble
from clusterwright.offline.complaints import Tier
from clusterwright.offline.explain import explain
from clusterwright.offline.orphans import namespace_bundle
from clusterwright.offline.remedies import REMEDIES
from clusterwright.offline.verdict import State
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline.live import CLUSTER, DEPLOYMENT, DEV_TEMPLATE, NAMESPACE, SUBJECT, key, recorded, whole

SCHEMA: Json = json.loads(files("clusterwright.offline").joinpath("schemas/explain.json").read_text())
VALID = fastjsonschema.compile(json.loads(json.dumps(SCHEMA)))


async def fine(p: Plane) -> None:
    await p.apply(whole())
    await p.until_available("c", workers=1)
    await asyncio.sleep(60)


async def progressing(p: Plane) -> None:
    await p.apply(whole(seconds=100))
    await asyncio.sleep(30)


async def waiting(p: Plane) -> None:
    await fine(p)
    await p.client.patch(CLUSTER, key("c"), {"spec": {"paused": True}})
    await asyncio.sleep(60)


async def broken(p: Plane) -> None:
    await fine(p)
    await p.client.delete(DEV_TEMPLATE, key("md"))
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})
    await asyncio.sleep(120)


MOMENTS = {State.FINE: fine, State.PROGRESSING: progressing, State.WAITING: waiting, State.BROKEN: broken}


@pytest.fixture(scope="module")
def bundles() -> dict[State, list[Json]]:
    async def lived(make: Any) -> list[Json]:
        async with plane(LoopClock(START)) as p:
            await make(p)
            return await recorded(p, keep_secrets=False)

    return {state: run_virtual(lived(make)) for state, make in MOMENTS.items()}


def blind(documents: list[Json]) -> list[Json]:
    """The same, by somebody who may not list control planes."""
    seen = [d for d in documents if d["kind"] not in {"KubeadmControlPlane", "Observation"}]
    told = next(d for d in documents if d["kind"] == "Observation")
    return [
        *seen,
        {
            **told,
            "seen": [k for k in told["seen"] if k != "KubeadmControlPlane"],
            "unseen": [{"kind": "KubeadmControlPlane", "error": "forbidden"}],
        },
    ]


@pytest.mark.parametrize("state", list(State))
def test_the_exit_status_tells_the_verdict_if_it_is_asked_for(
    state: State, bundles: dict[State, list[Json]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = blind(bundles[State.FINE]) if state is State.UNSEEN else bundles[state]
    file = tmp_path / "bundle.json"
    file.write_text("\n---\n".join(json.dumps(d) for d in documents))

    assert main(["explain", "c", "--from", str(file), "--exit-code"]) == EXIT_CODES[state], capsys.readouterr().out
    assert main(["explain", "c", "--from", str(file)]) == 0
    capsys.readouterr()

    assert main(["explain", "c", "--from", str(file), "--exit-code", "-o", "json"]) == EXIT_CODES[state]
    answer = json.loads(capsys.readouterr().out)
    VALID(answer)
    assert answer["verdict"]["state"] == state
    assert (answer["verdict"]["cause"] is None) == (state is State.FINE)
    assert {c["cause"] for c in answer["causes"]} <= cause_ids.known_ids()


def test_every_status_is_another_one_and_none_is_that_of_an_error() -> None:
    assert set(EXIT_CODES) == set(State)
    assert len(set(EXIT_CODES.values())) == len(State)
    assert not {1, 2} & set(EXIT_CODES.values())


def test_errors_have_statuses_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    assert main(["explain", "c", "--from", str(empty), "--exit-code"]) == 1
    assert main(["explain", "c", "--from", str(empty), "--exit-code", "--watch"]) == 2
    assert "cannot be combined with --watch" in capsys.readouterr().err


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_the_schema_refuses_what_is_not_documented(bundles: dict[State, list[Json]]) -> None:
    answer = explain(assemble(bundles[State.BROKEN]), SUBJECT).to_json()
    VALID(answer)
    for wrong in ({"state": "sad"}, {"cause": "Not An Identifier"}, {"evidence": "one"}):
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            VALID({**answer, "verdict": {**answer["verdict"], **wrong}})
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        VALID({k: v for k, v in answer.items() if k != "verdict"})


def test_the_schema_names_every_field(bundles: dict[State, list[Json]]) -> None:
    answer = explain(assemble(bundles[State.BROKEN]), SUBJECT).to_json("Available")
    assert set(answer) == set(SCHEMA["properties"])
    assert set(answer["verdict"]) == set(SCHEMA["definitions"]["verdict"]["properties"])
    assert {k for c in answer["causes"] for k in c} == set(SCHEMA["properties"]["causes"]["items"]["properties"])
    assert set(SCHEMA["definitions"]["verdict"]["properties"]["state"]["enum"]) == {str(s) for s in State}


def test_every_cause_has_an_identifier_that_is_documented() -> None:
    page = Path("docs/tables/causes.md").read_text()
    assert set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)) == cause_ids.known_ids() == set(REMEDIES) | set(cause_ids.CLASSES)
    assert {cause_ids._CLASSES[tier] for tier in Tier} <= set(cause_ids.CLASSES)
    pattern = re.compile(SCHEMA["definitions"]["cause"]["pattern"])
    assert [c for c in cause_ids.known_ids() if not pattern.match(c)] == []


def test_every_cause_that_the_code_names_is_known() -> None:
    named = {
        match[1]
        for path in Path("src/clusterwright/offline").rglob("*.py")
        for match in re.finditer(r'cause="([a-z.-]+)"', path.read_text())
    }
    assert len(named) > 10
    assert named <= cause_ids.known_ids()


def test_an_object_whose_cluster_does_not_exist_gets_a_verdict() -> None:
    async def main() -> Any:
        async with plane(LoopClock(START)) as p:
            await p.apply([o for o in whole() if o["kind"] in {"MachineDeployment", "DevMachineTemplate", "KubeadmConfigTemplate"}])
            await asyncio.sleep(60)
            documents = await namespace_bundle(p.client, NAMESPACE, p.clock.now())
            return explain(assemble(documents), f"MachineDeployment/{NAMESPACE}/md")

    answer = run_virtual(main())
    VALID(answer.to_json())
    assert answer.verdict.state in {State.BROKEN, State.WAITING}, answer.verdict.headline
