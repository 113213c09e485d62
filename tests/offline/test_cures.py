"""The next step of a verdict helps: it is performed in simulation, and then the cluster is fine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterwright.api.meta import Json
from clusterwright.offline.remedies import REMEDIES
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline.live import CLUSTER, key, lived, look
from offline.situations import steps
from offline.situations.gallery import SITUATIONS
from offline.situations.truth import Situation
from support.moments import Moment

CURES: list[Json] = yaml.safe_load((Path(steps.__file__).parent / "cures.yaml").read_text())
BY_NAME = {s.name: s for s in SITUATIONS}
UNTRIED: dict[str, str] = yaml.safe_load((Path(steps.__file__).parent / "untried.yaml").read_text())
SOON = 300.0


def _marks(cure: Json) -> list[pytest.MarkDecorator]:
    return [pytest.mark.soak] if cure.get("is_long") else []


def cured(situation: Situation, cure: Json, settled: Moment[Plane], three: Moment[Plane]) -> tuple[Verdict, Verdict]:
    """Return the verdicts before the next step and after it."""

    async def play(p: Plane) -> tuple[Verdict, Verdict]:
        await situation.make(p)
        await p.clock.sleep(situation.after)
        before = (await look(p)).verdict
        await steps.done(p, cure["do"])
        await p.clock.sleep(cure.get("after", SOON))
        if cure.get("is_gone"):
            assert await p.client.find(CLUSTER, key("c")) is None
            return before, Verdict(before.subject, State.FINE, "is gone, as was asked for")
        return before, (await look(p)).verdict

    async def all_of_it() -> tuple[Verdict, Verdict]:
        stage = situation.stage(LoopClock(START))
        async with lived(stage) if situation.needs_cluster else stage as p:
            return await play(p)

    if situation.needs_cluster and situation.stage is plane:
        return (three if situation.leaders == 3 else settled).then(play)
    return run_virtual(all_of_it())


def test_every_remedy_is_tried_or_says_why_not() -> None:
    tried = {c["cause"] for c in CURES}

    assert not set(REMEDIES) - tried - set(UNTRIED), "add a cure, or say why simulation cannot show it"
    assert not set(UNTRIED) & tried
    assert not set(UNTRIED) - set(REMEDIES)
    assert all(UNTRIED.values())


@pytest.mark.parametrize("cure", [pytest.param(c, marks=_marks(c), id=f"{c['cause']}: {c['situation']}") for c in CURES])
def test_the_next_step_helps(cure: Any, settled: Moment[Plane], three: Moment[Plane]) -> None:
    before, after = cured(BY_NAME[cure["situation"]], cure, settled, three)

    assert before.cause == cure["cause"], before.headline
    assert before.next
    assert after.state is State.FINE, f"{after.headline}\n  after: {before.next}"
