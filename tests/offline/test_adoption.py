"""Taking over what upstream runs: recorded installations of upstream, and what our controllers would write into them."""

from __future__ import annotations

import copy

import pytest

from clusterwright.api.wellknown import UPGRADE_STEP_ANNOTATION
from clusterwright.controllers.kit import registry
from clusterwright.offline.adoption import Forecast, forecast
from clusterwright.offline.bundle import assemble
from worlds import recorded

ALL = frozenset(entry.name for entry in registry.ENTRIES)
HEALTHY = [name for name in recorded.NAMES if name.startswith("healthy-")] + ["standalone", "topology"]


def foreseen(world: recorded.World, controllers: frozenset[str] = ALL) -> Forecast:
    return forecast(assemble(world["objects"]), controllers)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_installation_of_upstream_is_taken_over_without_a_write_that_matters(name: str) -> None:
    made = foreseen(recorded.load(name))

    assert [write for write in made.writes if write.matters] == []
    beyond = {field for write in made.writes for field in write.fields if not field.startswith("status.")}
    assert beyond <= {f"metadata.annotations.{UPGRADE_STEP_ANNOTATION}"}  # v1.13 leaves it there empty, v1.14 does not
    assert made.passes >= 8


def test_a_rollout_that_would_begin_is_told_as_what_matters() -> None:
    world = recorded.load("healthy-three")
    recorded.find(world, "MachineDeployment")["spec"]["template"]["spec"]["version"] = "v1.99.0"

    made = foreseen(world, frozenset({"machinedeployment"}))

    assert any(write.verb == "create" and write.object.startswith("MachineSet/") and write.matters for write in made.writes)


def test_what_would_be_lost_matters_and_what_would_be_added_does_not() -> None:
    world = recorded.load("healthy-small")
    machine = recorded.find(world, "Machine")
    before = copy.deepcopy(machine["metadata"])
    machine["metadata"]["finalizers"] = []

    added = [w for w in foreseen(world, frozenset({"machine"})).writes if w.object.endswith(f"/{before['name']}")]

    assert [(w.fields, w.matters) for w in added if "metadata.finalizers" in w.fields] == [(("metadata.finalizers",), False)]


def test_only_the_controllers_that_take_over_are_asked() -> None:
    assert foreseen(recorded.load("healthy-small"), frozenset({"cluster"})).passes == 1
    assert foreseen(recorded.load("healthy-small"), frozenset()).passes == 0
