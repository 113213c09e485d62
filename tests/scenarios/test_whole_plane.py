"""The whole plane, seed by seed: a control plane and workers come up, grow, are upgraded, shrink and go, whatever goes wrong."""

from __future__ import annotations

from random import Random

import pytest

from clusterwright.api.core import Machine, MachineDeployment
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START
from support.lives import SEVERITIES, SIZES, WORKERS, play, plot, severity


def test_scaling_down_takes_no_more_than_it_should() -> None:
    """That the right number is there in the end is not enough: one too many, made again, would look the same."""

    async def story() -> None:
        async with plane(LoopClock(START)) as p:
            await p.apply(samples.cluster("c", has_control_plane_object=True) + samples.control_plane("c", replicas=1))
            await p.apply(samples.workers("c", "w", replicas=4))
            await p.until_available("c", control_plane=1, workers=4)
            before = {m.metadata.uid for m in await p.client.list(Machine)}
            await p.client.patch(MachineDeployment, WORKERS, {"spec": {"replicas": 3}}, subresource="scale")

            async def is_smaller() -> bool:
                deployment = await p.client.get(MachineDeployment, WORKERS)
                return deployment.status.replicas == 3 == deployment.status.available_replicas

            await p.until(is_smaller, "three workers are left")
            after = {m.metadata.uid for m in await p.client.list(Machine)}

            assert len(before) == 5
            assert len(after) == 4
            assert after < before

    run_virtual(story())


@pytest.mark.parametrize("seed", [3, 4, 121])
def test_a_life_while_everything_goes_wrong(seed: int) -> None:
    outcome = play(seed)

    assert outcome.violation is None, (seed, str(outcome.violation), outcome.trace[-30:])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000))
def test_two_thousand_lives_while_everything_goes_wrong(seed: int) -> None:
    outcome = play(seed)

    assert outcome.violation is None, (seed, str(outcome.violation), outcome.trace[-30:])


def test_lives_are_of_every_kind() -> None:
    """What two thousand of them are: with and without a class, small and large, calm and rough, with every change."""
    plots = [plot(Random(seed)) for seed in range(2000)]
    changes = [(before, after) for p in plots for before, after in zip(p.shapes, p.shapes[1:], strict=False)]

    assert {p.is_topology for p in plots} == {True, False}
    assert {(p.shapes[0].leaders, p.shapes[0].workers) for p in plots} == {size for size, _ in SIZES}
    assert {loss for p in plots for loss in p.losses} == {"leaders", "workers"}
    assert {severity(seed) for seed in range(2000)} == {ALL_FAULTS.scaled(factor) for factor in SEVERITIES}
    for role in ("leaders", "workers"):
        assert {(getattr(a, role) > getattr(b, role)) - (getattr(a, role) < getattr(b, role)) for b, a in changes} == {-1, 0, 1}
        assert any(getattr(b, f"{role}_version") != getattr(a, f"{role}_version") for b, a in changes)
