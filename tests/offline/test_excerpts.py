"""Of a large YAML file only what matters is read, and nothing else is said than of the whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
import yaml

from clusterwright.api.meta import Json
from clusterwright.offline.bundle import parse
from clusterwright.offline.excerpts import LARGE, excerpt
from clusterwright.offline.explain import explain
from clusterwright.simulation.plane import Plane
from offline.live import CLUSTER, SUBJECT, key, recorded
from support.moments import Moment

ELSEWHERE = "elsewhere"


def as_list(objects: list[Json]) -> str:
    """As kubectl writes it."""
    return yaml.safe_dump({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {"resourceVersion": ""}})


def as_documents(objects: list[Json]) -> str:
    return "---\n".join(yaml.safe_dump(o) for o in objects)


@pytest.fixture(scope="module")
def objects(settled: Moment[Plane]) -> list[Json]:
    """A paused cluster among many objects of another namespace."""

    async def paused(p: Plane) -> list[Json]:
        await p.client.patch(CLUSTER, key("c"), {"spec": {"paused": True}})
        await asyncio.sleep(60)
        return await recorded(p, keep_secrets=False)

    text = "\n".join(["---", "kind: Cluster", "- apiVersion: v1", "namespace: default"] * 300)
    others = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"big-{n}", "namespace": ELSEWHERE}, "data": {"a": text}}
        for n in range(80)
    ]
    made: list[Json] = json.loads(json.dumps([*settled.then(paused), *others]))  # nothing is shared, so that YAML has no anchors
    return made


@pytest.mark.parametrize("written", [as_list, as_documents])
@pytest.mark.parametrize("namespace", ["default", ""])
def test_the_rest_is_left_out_and_the_answer_is_the_same(objects: list[Json], written: Callable[[list[Json]], str], namespace: str) -> None:
    text = written(objects)
    assert len(text) > LARGE
    part = excerpt(text, "c", namespace)

    assert len(part) < len(text) / 3
    assert all(o["metadata"].get("namespace") != ELSEWHERE for o in parse(part).objects)
    assert explain(parse(part), SUBJECT).to_json() == explain(parse(text), SUBJECT).to_json()


def test_a_name_that_is_nowhere_leaves_only_what_has_no_namespace(objects: list[Json]) -> None:
    found = parse(excerpt(as_list(objects), "nowhere")).objects
    assert {o["metadata"].get("namespace") for o in found} <= {None}


def test_a_short_text_and_one_with_anchors_are_left_whole(objects: list[Json]) -> None:
    short = as_list(objects[:5])
    shared = as_list(objects) + "anchored: &a {b: c}\nalias: *a\n"

    assert excerpt(short, "c") == short
    assert excerpt(shared, "c") == shared
