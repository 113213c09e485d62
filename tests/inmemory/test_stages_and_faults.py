from datetime import UTC, datetime, timedelta

import pytest

from clusterwright.inmemory import faults, stages

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("1m30s", 90), ("0", 0), ("", 0), ("1.5h", 5400), ("250ms", 0.25), ("-2s", -2), ("+2s", 2)]
)
def test_go_durations_are_read(text, seconds):
    assert stages.parse_duration(text, "x").total_seconds() == seconds


@pytest.mark.parametrize("text", ["10", "s", "1 s", "1x", "1s2"])
def test_other_texts_are_refused_with_the_name_of_the_field(text):
    with pytest.raises(stages.BadDuration, match=r"vm\.startupDuration"):
        stages.delay(text, "", field="vm", seed="")


def test_jitter_adds_up_to_its_share_and_every_pass_sees_the_same():
    draws = {stages.delay("10s", "0.2", field="x", seed=str(n)) for n in range(200)}

    assert all(timedelta(seconds=10) <= d < timedelta(seconds=12) for d in draws)
    assert len(draws) > 150
    assert stages.delay("10s", "0.2", field="x", seed="a") == stages.delay("10s", "0.2", field="x", seed="a")
    assert stages.delay("10s", "", field="x", seed="a") == timedelta(seconds=10)


def test_a_jitter_that_is_not_a_number_is_refused():
    with pytest.raises(stages.BadDuration, match=r"x\.startupJitter: 'much'"):
        stages.delay("10s", "much", field="x", seed="")


def test_the_remaining_time_of_a_stage_is_exact():
    ten = timedelta(seconds=10)

    assert stages.remaining(NOW, ten, NOW + timedelta(seconds=4)) == timedelta(seconds=6)
    assert stages.remaining(NOW, ten, NOW + ten) is None
    assert stages.remaining(NOW, timedelta(), NOW) is None


def test_faults_are_read_from_the_annotation():
    annotations = {faults.FAULT: " node-dies, etcd-corrupt ,"}

    assert faults.requested(annotations, faults.MACHINE_FAULTS) == {faults.NODE_DIES, faults.ETCD_CORRUPT}
    assert faults.requested({}, faults.MACHINE_FAULTS) == frozenset()


def test_an_unknown_fault_is_refused_and_the_known_ones_named():
    with pytest.raises(faults.UnknownFault, match=r"explodes: no such fault; known: api-server-unreachable"):
        faults.requested({faults.FAULT: "explodes"}, faults.CLUSTER_FAULTS)


@pytest.mark.parametrize("text", ["fast", "-1", "inf", "nan"])
def test_slowness_is_a_number_from_zero_on(text):
    assert faults.slowness({}) == 1
    assert faults.slowness({faults.SLOW: "2.5"}) == 2.5
    with pytest.raises(faults.UnknownFault):
        faults.slowness({faults.SLOW: text})
