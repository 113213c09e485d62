"""How many Machines each MachineSet shall have: single steps, and whole rollouts played to their end."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.api.copying import replace
from clusterwright.api.core import MachineDeployment
from clusterwright.api.core.machineset import MachineDeploymentRolloutSpec, MachineDeploymentSpec
from clusterwright.api.core.shared import MachineDeploymentRolloutStrategy, MachineDeploymentRolloutStrategyRollingUpdate
from clusterwright.controllers.intstr import scaled
from clusterwright.controllers.machinedeployment.rollout import (
    Limits,
    Rollout,
    Sized,
    break_deadlock,
    grow_new,
    limits,
    on_delete,
    proportional,
    shrink_old,
)


def deployment(replicas: int, surge: Any, unavailable: Any, kind: str = "RollingUpdate") -> MachineDeployment:
    update = MachineDeploymentRolloutStrategyRollingUpdate(max_surge=surge, max_unavailable=unavailable)
    strategy = MachineDeploymentRolloutStrategy(type=kind, rolling_update=update)
    return MachineDeployment(spec=MachineDeploymentSpec(replicas=replicas, rollout=MachineDeploymentRolloutSpec(strategy=strategy)))


def step(rollout: Rollout) -> dict[str, int]:
    grow_new(rollout)
    shrink_old(rollout)
    break_deadlock(rollout)
    return rollout.intents


def steady(name: str, size: int) -> Sized:
    return Sized(name, wanted=size, actual=size, available=size, up_to_date=size)


# ------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "39%", "39%", (4, 3)),
        (10, 0, 0, (0, 1)),
        (3, "0%", "1%", (0, 1)),
        (3, 1, 9, (1, 3)),
        (0, 1, 1, (1, 0)),
        (3, None, None, (0, 1)),
        (3, 2, None, (2, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down(replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]) -> None:
    assert limits(deployment(replicas, surge, unavailable)) == Limits(*expected)


@pytest.mark.parametrize("value", ["5", "oops", "%", "1.5%", ""])
def test_a_value_that_is_not_a_percentage_is_an_error(value: str) -> None:
    with pytest.raises(ValueError, match="percentage"):
        scaled(value, 10, round_up=True)


def test_only_a_rolling_update_has_limits() -> None:
    assert limits(deployment(3, 1, 1, "OnDelete")) == Limits(0, 0)
    assert limits(MachineDeployment()) == Limits(0, 0)


# -------------------------------------------------------------------------------------------------------- steps


def test_a_machine_counts_until_it_is_gone() -> None:
    going = Sized("old", wanted=1, actual=3, available=1)

    assert "new" not in step(Rollout(3, Limits(1, 0), Sized("new", 1, 1, 1), (going,)))


def test_the_new_one_shrinks_without_regard_to_availability() -> None:
    assert step(Rollout(2, Limits(1, 0), Sized("new", 5, 5, 0))) == {"new": 2}


def test_old_ones_do_not_shrink_while_new_machines_use_up_the_budget() -> None:
    assert step(Rollout(3, Limits(1, 0), Sized("new", 1, 1, 0), (steady("old", 3),))) == {}


def test_unavailable_machines_go_first_across_all_old_ones() -> None:
    old = (steady("oldest", 3), Sized("older", 3, 3, 1))

    assert step(Rollout(6, Limits(2, 2), Sized("new", 2, 2, 2), old)) == {"older": 1, "oldest": 2}


def test_a_pending_scale_down_uses_the_budget() -> None:
    under_way = Sized("old", wanted=2, actual=3, available=3)

    assert step(Rollout(3, Limits(1, 1), Sized("new", 1, 1, 1), (under_way,))) == {}


def test_a_set_without_available_machines_may_always_shrink() -> None:
    assert step(Rollout(4, Limits(0, 1), Sized("new", 0, 0, 0), (Sized("broken", 2, 2, 0), steady("old", 2))))["broken"] < 2


def test_the_deadlock_is_broken_by_one_and_only_when_nothing_moves() -> None:
    stuck = (Sized("old", 3, 3, 1),)

    assert step(Rollout(3, Limits(1, 0), steady("new", 1), stuck)) == {"old": 2}
    assert step(Rollout(3, Limits(1, 0), Sized("new", 1, 1, 0), stuck)) == {}
    assert step(Rollout(3, Limits(1, 0), Sized("new", 1, 0, 0), stuck)) == {}


# ----------------------------------------------------------------------------------------------- whole rollouts


def play(replicas: int, found: Limits, old: int, seed: int) -> int:
    """Carry out every intent, one Machine at a time and in any order, and check the budgets at each of them."""
    random, new, former = Random(seed), Sized("new"), steady("old", old)
    least = replicas - found.unavailable
    for passes in range(1, 2000):
        intents = step(Rollout(replicas, found, new, (former,)))
        new = replace(new, wanted=intents.get("new", new.wanted))
        former = replace(former, wanted=intents.get("old", former.wanted))
        for _ in range(random.randrange(1, 4)):
            match random.randrange(3):
                case 0 if new.actual < new.wanted:
                    new = replace(new, actual=new.actual + 1)
                    assert new.actual + former.actual <= max(replicas + found.surge, old)
                case 1 if new.available < new.actual:
                    new = replace(new, available=new.available + 1)
                case 2 if former.actual > former.wanted:
                    former = replace(former, actual=former.actual - 1, available=former.available - 1)
                    assert new.available + former.available >= min(least, old)
        if new.available == replicas and former.actual == 0:
            return passes
    raise AssertionError(f"not complete: {new} {former}")


@settings(max_examples=150, deadline=None)
@given(
    replicas=st.integers(1, 12),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    old=st.integers(0, 12),
    seed=st.integers(0, 1000),
)
def test_every_rollout_ends_within_its_budgets(replicas: int, surge: int, unavailable: int, old: int, seed: int) -> None:
    found = limits(deployment(replicas, surge, unavailable))

    assert play(replicas, found, old, seed) > 0


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Limits(1, 0), [(3, 1), (2, 1), (2, 2), (1, 2), (1, 3), (0, 3)]),
        (Limits(0, 1), [(2, 0), (2, 1), (1, 1), (1, 2), (0, 2), (0, 3)]),
    ],
)
def test_three_healthy_machines_are_replaced_one_by_one(found: Limits, expected: list[tuple[int, int]]) -> None:
    new, old, seen = Sized("new"), steady("old", 3), []
    for _ in expected:
        intents = step(Rollout(3, found, new, (old,)))
        new, old = steady("new", intents.get("new", new.wanted)), steady("old", intents.get("old", old.wanted))
        seen.append((old.wanted, new.wanted))

    assert seen == expected


# ---------------------------------------------------------------------------------------------- OnDelete, paused


def test_on_delete_nothing_shrinks_by_itself() -> None:
    rollout = Rollout(3, Limits(), Sized("new"), (steady("old", 3),))

    on_delete(rollout)

    assert rollout.intents == {}


def test_on_delete_a_deleted_machine_is_replaced_by_a_new_one() -> None:
    gone = Rollout(3, Limits(), Sized("new"), (Sized("old", 3, 2, 2),))
    on_delete(gone)
    then = Rollout(3, Limits(), Sized("new"), (Sized("old", 2, 2, 2),))
    on_delete(then)

    assert gone.intents == {"old": 2}
    assert then.intents == {"new": 1}


def test_on_delete_scaling_down_takes_from_the_oldest() -> None:
    rollout = Rollout(2, Limits(), steady("new", 1), (steady("oldest", 1), steady("older", 2)))

    on_delete(rollout)

    assert rollout.intents == {"oldest": 0, "older": 1}


def paused(replicas: int, surge: int, new: str, *sets: Sized) -> dict[str, int]:
    return proportional(replicas=replicas, surge=surge, is_rolling=True, new=new, sets=sets)


def test_paused_one_active_set_gets_everything() -> None:
    assert paused(5, 1, "", steady("a", 3), Sized("b")) == {"a": 5}
    assert paused(5, 1, "b", Sized("a"), Sized("b"), Sized("c")) == {"b": 5}
    assert paused(5, 1, "", Sized("a"), Sized("c")) == {"c": 5}
    assert paused(5, 1, "") == {}


def test_paused_a_saturated_set_needs_no_old_sets() -> None:
    new = replace(steady("new", 3), annotated_desired="3")

    assert paused(3, 1, "new", steady("old", 2), new) == {"old": 0}


def test_paused_growth_is_shared_by_size() -> None:
    sets = [replace(steady(name, size), annotated_max="10") for name, size in (("a", 6), ("b", 3), ("c", 1))]

    grown = paused(20, 0, "c", *sets)
    shrunk = paused(5, 0, "c", *sets)

    assert grown == {"a": 12, "b": 6, "c": 2}
    assert sum(shrunk.get(s.name, s.wanted) for s in sets) == 5


def test_paused_scaled_to_zero() -> None:
    sets = [replace(steady(name, size), annotated_max="4") for name, size in (("a", 2), ("b", 1))]

    assert paused(0, 1, "b", *sets) == {"a": 0, "b": 0}


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    replicas=st.integers(0, 20),
    surge=st.integers(0, 3),
    before=st.integers(0, 30),
)
def test_paused_nothing_is_lost_and_nothing_is_below_zero(sizes: list[int], replicas: int, surge: int, before: int) -> None:
    sets = [replace(steady(f"s{n}", size), annotated_max=str(before)) for n, size in enumerate(sizes)]

    intents = paused(replicas, surge, "s0", *sets)

    after = [intents.get(s.name, s.wanted) for s in sets]
    active = [s for s in sets if s.wanted > 0]
    assert min(after) >= 0
    assert sum(after) == (replicas if len(active) <= 1 else replicas + surge if replicas else 0)
