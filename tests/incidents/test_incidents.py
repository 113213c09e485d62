"""Every incident ends as it must, and fails when our defence is taken out. A stage is brought up once; each run goes on from a fork of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from clusterwright.simulation.incidents.catalogue import INCIDENTS
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.replay import begun, played, replay
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import Stage
from incidents.planted import PLANTED
from support.moments import Moment

NAMES = [incident.name for incident in INCIDENTS]


class Stages(dict[str, Moment[Scene]]):
    """Stages by name, each brought up when it is first asked for."""

    def of(self, stage: Stage) -> Moment[Scene]:
        return self.setdefault(stage.name, Moment(lambda: begun(stage, 1)))


@pytest.fixture(scope="module")
def stages() -> Iterator[Stages]:
    made = Stages()
    yield made
    for moment in made.values():
        moment.close()


@pytest.mark.parametrize("incident", INCIDENTS, ids=NAMES)
def test_an_incident_ends_as_it_must(incident: Incident, stages: Stages) -> None:
    async def play(scene: Scene) -> str:
        gc.disable()
        return await played(incident, scene)

    assert stages.of(incident.stage).then(play) == ""


@pytest.mark.parametrize("incident", INCIDENTS, ids=NAMES)
def test_an_incident_fails_without_our_defence(incident: Incident, stages: Stages) -> None:
    async def play(scene: Scene) -> str:
        gc.disable()  # the fork ends soon
        PLANTED[incident.name].plant()
        return await played(incident, scene)

    assert PLANTED[incident.name].complaint in stages.of(incident.stage).then(play)


def test_every_incident_has_its_bug() -> None:
    assert sorted(PLANTED) == sorted(NAMES)
    assert all(bug.complaint for bug in PLANTED.values())


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("incident", INCIDENTS, ids=NAMES)
def test_an_incident_ends_as_it_must_whatever_the_seed(incident: Incident, seed: int) -> None:
    assert replay(incident, seed).violation == ""
