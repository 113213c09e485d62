"""The runtime's promises, tried on a small controller with everything going wrong."""

import os
import subprocess
import sys

import pytest

from clusterwright.api.copying import replace
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.sample import broken, scenario, sound
from clusterwright.simulation.world import run

PLANS = {
    "all-faults": ALL_FAULTS,
    "twice-as-bad": ALL_FAULTS.scaled(2),
    "caches-minutes-old": replace(ALL_FAULTS, watch_late=0.4, latest=600.0),
}


def test_without_faults_the_desired_state_is_reached_with_few_requests():
    outcome = run(1, scenario(sound), NO_FAULTS)

    assert outcome.violation is None
    assert outcome.crashes == 0
    assert outcome.requests < 80


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_the_sample_controller_survives_seeded_runs(plan):
    outcomes = [run(seed, scenario(sound), plan) for seed in range(30)]

    assert [(o.seed, str(o.violation), o.trace[-30:]) for o in outcomes if o.violation] == []
    # the runs were hard: processes died in them
    assert sum(o.crashes for o in outcomes) > 5


def test_a_broken_controller_is_caught_by_the_same_runs():
    caught = [seed for seed in range(20) if run(seed, scenario(broken), ALL_FAULTS).violation]

    assert len(caught) > 10


def test_the_same_seed_gives_the_same_trace_and_another_seed_another():
    first, again, other = (run(seed, scenario(sound), ALL_FAULTS) for seed in (7, 7, 8))

    assert first == again
    assert first.digest != other.digest


def test_the_trace_does_not_depend_on_the_hash_seed_of_the_process():
    program = (
        "from clusterwright.simulation.faults import ALL_FAULTS\n"
        "from clusterwright.simulation.sample import scenario, sound\n"
        "from clusterwright.simulation.world import run\n"
        "print([run(seed, scenario(sound), ALL_FAULTS).digest for seed in range(5)])\n"
    )

    def digests(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", program], check=False, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert digests("1") == digests("2") != ""


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_the_sample_controller_survives_two_thousand_seeded_runs(block):
    for seed in range(block * 100, block * 100 + 100):
        for plan in (ALL_FAULTS, ALL_FAULTS.scaled(2)):
            outcome = run(seed, scenario(sound, steps=20), plan)
            assert outcome.violation is None, (seed, outcome.violation, outcome.trace[-30:])
