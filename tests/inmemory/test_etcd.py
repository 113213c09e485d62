"""Membership of simulated etcd clusters."""

from datetime import UTC, datetime
from random import Random

import pytest

from clusterwright.inmemory import etcd

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def grown(count, **extra):
    """Pods of a cluster that has grown member by member."""
    random, pods = Random(1), []
    for number in range(count):
        annotations = etcd.new_member(etcd.members(pods), random, NOW)
        pods.append((f"etcd-m{number}", {**annotations, **extra.get(f"m{number}", {})}))
    return pods


def test_the_first_member_founds_the_cluster_and_leads_it():
    (first,) = etcd.members(grown(1))

    assert first.cluster_id not in {"", "0"}
    assert first.id not in {"", "0"}
    assert first.leader_from == "2026-01-01T00:00:00Z"
    assert etcd.leader((first,)) == first


def test_further_members_share_the_cluster_but_not_the_id_nor_the_lead():
    first, second, third = etcd.members(grown(3))

    assert first.cluster_id == second.cluster_id == third.cluster_id
    assert len({first.id, second.id, third.id}) == 3
    assert second.leader_from == third.leader_from == ""
    assert etcd.leader((first, second, third)) == first


def test_member_ids_are_never_given_twice():
    class Same(Random):
        answers = iter([5, 7, 5, 5, 9])

        def randint(self, low, high):
            return next(self.answers)

    random = Same()
    first = etcd.new_member((), random, NOW)
    second = etcd.new_member(etcd.members([("etcd-a", first)]), random, NOW)

    assert first[etcd.MEMBER_ID] != second[etcd.MEMBER_ID]


def test_removed_members_do_not_count():
    pods = grown(3, m0={etcd.REMOVED: ""})

    everyone = etcd.members(pods)
    assert [m.name for m in everyone] == ["m1", "m2"]
    assert etcd.leader(everyone) is not None
    with pytest.raises(etcd.EtcdRefused, match="connection refused"):
        etcd.addressed(everyone, "m0")


@pytest.mark.parametrize(("members", "stopped", "has_quorum"), [(1, 1, False), (3, 1, True), (3, 2, False), (5, 2, True), (5, 3, False)])
def test_quorum_is_more_than_half_of_the_voters(members, stopped, has_quorum):
    everyone = etcd.members(grown(members, **{f"m{n}": {etcd.STOPPED: ""} for n in range(stopped)}))

    assert etcd.has_quorum(everyone) is has_quorum
    assert (etcd.leader(everyone) is not None) is has_quorum


def test_learners_have_no_vote_and_never_lead():
    everyone = etcd.members(grown(2, m0={etcd.STOPPED: ""}, m1={etcd.LEARNER: ""}))

    assert etcd.leader(everyone) is None
    assert not etcd.has_quorum(everyone)


def test_a_stopped_leader_is_followed_by_another():
    everyone = etcd.members(grown(3, m0={etcd.STOPPED: ""}))

    assert etcd.leader(everyone).name in {"m1", "m2"}


def test_a_removal_that_would_cost_quorum_is_refused():
    everyone = etcd.members(grown(3, m2={etcd.STOPPED: ""}))
    by_name = {m.name: m for m in everyone}

    with pytest.raises(etcd.EtcdRefused, match="not enough started members"):
        etcd.check_removal(etcd.members(grown(2, m1={etcd.STOPPED: ""})), by_name["m0"])
    etcd.check_removal(everyone, by_name["m2"])


def test_an_unknown_id_is_refused():
    with pytest.raises(etcd.EtcdRefused, match="member not found"):
        etcd.by_id(etcd.members(grown(1)), "1")


def test_alarms_are_kept_with_the_member():
    (member,) = etcd.members(grown(1, m0={etcd.ALARMS: "CORRUPT,NOSPACE"}))

    assert member.alarms == ("CORRUPT", "NOSPACE")
