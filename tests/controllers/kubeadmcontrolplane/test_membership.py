"""Edge cases of etcd members and the pre-terminate hook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import Membership, MembershipError, NotSafe
from clusterwright.workload.access import EtcdError, EtcdMember, EtcdStatus

from . import harness as h

HOOK = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"
MEMBER = "EtcdMemberHealthy"


def members(*names: str) -> list[h.Json]:
    return [h.member(n, leader=i == 0) for i, n in enumerate(names)]


# ------------------------------------------------------------------------------------------- strays


def test_a_stray_member_is_removed_when_that_is_safe_and_we_look_again_in_a_second() -> None:
    answer = h.run(h.World(h.machines(3), members=members("n1", "n2", "n3", "n9")))

    assert answer.did("delete", "EtcdMember") == ["n9"]
    assert answer.requeue == 1


def test_an_unnamed_member_is_removed_without_a_projection() -> None:
    machines = h.machines(3)
    for machine in machines[:2]:
        machine.sick = {MEMBER: ("False", 60)}

    answer = h.run(h.World(machines, members=[*members("n1", "n2", "n3"), h.member("", id="99")]))

    assert answer.did("delete", "EtcdMember") == ["99"]


@pytest.mark.parametrize(("node_age", "removed"), [(5, False), (19, False), (21, True)])
@pytest.mark.parametrize("other", [None, "n9"])
def test_an_unnamed_learner_is_kept_for_twenty_seconds_after_its_node_registered(node_age: float, removed: bool, other: str | None) -> None:
    """A Node registers before the etcd Pod beside it starts: until then, kubeadm's learner has no name."""
    machines = h.machines(4)
    machines[3].node_age = node_age
    listed = [*members("n1", "n2", "n3"), h.member("", id="99"), *([h.member(other, id="98")] if other else [])]

    answer = h.run(h.World(machines, members=listed))

    assert answer.did("delete", "EtcdMember") == (["99"] if removed else [])
    assert answer.error is None


def test_the_node_of_a_machine_that_is_being_deleted_keeps_no_learner() -> None:
    machines = h.machines(4)
    machines[3].node_age, machines[3].deleting = 10, 5

    answer = h.run(h.World(machines, members=[*members("n1", "n2", "n3"), h.member("", id="99")]))

    assert answer.did("delete", "EtcdMember") == ["99"]


def test_a_new_node_keeps_no_member_with_a_name() -> None:
    machines = h.machines(4)
    machines[3].node_age = 10

    assert h.run(h.World(machines, members=members("n1", "n2", "n3", "n9"))).did("delete", "EtcdMember") == ["n9"]


@pytest.mark.parametrize("stray", ["n9", ""])
def test_a_provisioning_machine_blocks_both(stray: str) -> None:
    machines = [*h.machines(3), h.MachineSpec("m4", node=None, provider_id=False, age=30)]

    answer = h.run(h.World(machines, members=[*members("n1", "n2", "n3"), h.member(stray, id="99")]))

    assert answer.did("delete", "EtcdMember") == []
    assert answer.error is None


def test_an_unhealthy_remaining_member_forbids_the_removal() -> None:
    machines = h.machines(2)
    machines[1].sick = {MEMBER: ("False", 60)}

    answer = h.run(h.World(machines, members=members("n1", "n2", "n9")))

    assert answer.did("delete", "EtcdMember") == []
    assert answer.error is not None
    assert "can lead to quorum loss" in answer.error


@pytest.mark.parametrize(("alarmed", "allowed"), [("na", True), ("nb", False)])
def test_an_alarm_counts_on_a_stray_that_stays_and_not_on_the_one_that_goes(alarmed: str, allowed: bool) -> None:
    strays = [h.member(n, alarms=["NOSPACE"] if n == alarmed else []) for n in ("na", "nb")]

    answer = h.run(h.World(h.machines(1), members=[*members("n1"), *strays]))

    assert bool(answer.did("delete", "EtcdMember")) == allowed
    assert bool(answer.error) != allowed


def test_the_first_stray_by_name_goes_first() -> None:
    answer = h.run(h.World(h.machines(3), members=members("n1", "n2", "n3", "foo", "bar")))

    assert answer.did("delete", "EtcdMember") == ["bar"]


# --------------------------------------------------------------------------------------------- hook


def leaving(
    name: str, *, reason: str = "WaitingForPreTerminateHook", status: str = "True", seconds: float = 100, **changes: Any
) -> h.MachineSpec:
    machine = h.MachineSpec(name, deleting=seconds, age=50000, **changes)
    machine.conditions = [h.condition("Deleting", status, reason)]
    return machine


def hook_removed(answer: h.Answer, name: str) -> bool:
    machine = answer.raw["others"].get(f"Machine/{name}")
    return machine is not None and HOOK not in machine["metadata"].get("annotations", {})


def test_a_deleting_machine_without_the_annotation_blocks_the_others() -> None:
    machines = [*h.machines(3), leaving("m4"), leaving("m5", annotations={HOOK: None})]

    answer = h.run(h.World(machines, replicas=3))

    assert answer.requeue == 30
    assert answer.did("delete", "EtcdMember") == []
    assert not hook_removed(answer, "m4")


@pytest.mark.parametrize(("version", "waits"), [("v1.30.9", False), ("v1.31.0-rc.1", True), ("v1.31.0", True), ("v1.34.1", True)])
def test_another_hook_is_waited_for_from_1_31(version: str, waits: bool) -> None:
    other = {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/other": ""}
    machines = [*h.machines(3), leaving("m4", annotations=other)]
    for machine in machines:
        machine.version = version

    answer = h.run(h.World(machines, replicas=3, version=version))

    assert hook_removed(answer, "m4") != waits
    assert answer.requeue == 30


@pytest.mark.parametrize(
    ("status", "reason"), [("True", "DrainingNode"), ("False", "NotDeleting"), ("Unknown", "WaitingForPreTerminateHook")]
)
def test_a_machine_that_does_not_wait_for_the_hook_yet_is_left_alone(status: str, reason: str) -> None:
    answer = h.run(h.World([*h.machines(3), leaving("m4", status=status, reason=reason)], replicas=3))

    assert not hook_removed(answer, "m4")
    assert answer.requeue == 30


def test_the_leadership_moves_the_member_goes_the_annotation_goes() -> None:
    machines = [leaving("m1"), *h.machines(2)[1:]]

    answer = h.run(h.World(machines, replicas=1, members=members("n1", "n2")))

    assert [a for a in answer.actions if a[1] == "EtcdMember"] == [("patch", "EtcdMember", "n2"), ("delete", "EtcdMember", "n1")]
    assert hook_removed(answer, "m1")


@pytest.mark.parametrize("type", ["APIServerPodHealthy", MEMBER])
def test_an_unhealthy_survivor_keeps_the_annotation(type: str) -> None:
    machines = [leaving("m1"), *h.machines(2)[1:]]
    machines[1].sick = {type: ("False", 60)}

    answer = h.run(h.World(machines, replicas=1, members=members("n1", "n2")))

    assert not hook_removed(answer, "m1")
    assert answer.did("delete", "EtcdMember") == []
    assert answer.requeue in {20, 30}


def test_when_all_are_leaving_nobody_can_lead_but_the_oldest_still_goes() -> None:
    machines = [leaving("m1", seconds=300), leaving("m2", seconds=200)]

    answer = h.run(h.World(machines, replicas=1, members=members("n1", "n2")))

    assert answer.did("patch", "EtcdMember") == []
    assert answer.did("delete", "EtcdMember") == ["n1"]
    assert hook_removed(answer, "m1")


@pytest.mark.parametrize("case", ["single", "external", "no-node"])
def test_where_there_is_no_member_to_remove_only_the_annotation_goes(case: str) -> None:
    if case == "single":
        world = h.World([leaving("m1")], replicas=1)
    elif case == "external":
        world = h.World([*h.machines(2), leaving("m3")], replicas=2, external_etcd=True)
    else:
        world = h.World([*h.machines(3), leaving("m4", node=None, provider_id=False, infrastructure=False)], replicas=3)
    name = world.machines[-1].name

    answer = h.run(world)

    assert hook_removed(answer, name)
    assert [a for a in answer.actions if a[1] == "EtcdMember"] == []


def test_the_member_is_found_by_the_provider_id_where_the_node_is_not_known() -> None:
    machine = leaving("m4", node=None)
    world = h.World(
        [*h.machines(3), machine], replicas=3, members=members("n1", "n2", "n3", "n4"), workload_objects=[h.node(h.MachineSpec("m4"))]
    )

    answer = h.run(world)

    assert answer.did("delete", "EtcdMember") == ["n4"]
    assert hook_removed(answer, "m4")


# ------------------------------------------------------------------------- the calls, one by one


@dataclass
class ScriptedEtcd:
    """An etcd that answers as told; removals and moves are kept."""

    names: list[str]
    leader: str
    fail: str = ""
    refused: tuple[str, ...] = ()
    status: EtcdStatus = field(default_factory=EtcdStatus)
    did: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.status = EtcdStatus(leader_id=self.leader)

    async def members(self) -> Sequence[EtcdMember]:
        self._check("members")
        return [EtcdMember(id=n.removeprefix("n"), name=n) for n in self.names]

    async def remove_member(self, member_id: str) -> None:
        self._check("remove")
        self.did.append(("remove", member_id))

    async def move_leader(self, member_id: str) -> None:
        self._check("move")
        if member_id in self.refused:
            raise EtcdError("not ready")
        self.did.append(("move", member_id))

    async def alarms(self) -> Sequence[tuple[str, str]]:
        return []

    async def close(self) -> None: ...

    def _check(self, call: str) -> None:
        if self.fail == call:
            raise EtcdError(f"{call} failed")


class Scripted:
    """`WorkloadClusters` with one etcd, or one for each Node; Nodes named `dead` do not answer."""

    def __init__(self, etcd: ScriptedEtcd | dict[str, ScriptedEtcd], dead: tuple[str, ...] = ()) -> None:
        self.answering, self.dead = etcd, dead
        self.asked: list[list[str]] = []

    async def etcd(self, _cluster: ObjectKey, nodes: Sequence[str]) -> ScriptedEtcd:
        self.asked.append(list(nodes))
        if not [n for n in nodes if n not in self.dead]:
            raise EtcdError("nobody answers")
        return self.answering[nodes[0]] if isinstance(self.answering, dict) else self.answering


def membership(etcd: ScriptedEtcd | dict[str, ScriptedEtcd], nodes: Sequence[str], dead: tuple[str, ...] = ()) -> Any:
    workload: Any = Scripted(etcd, dead)
    return Membership(workload, ObjectKey("ns", "c1"), nodes)


async def test_a_member_is_removed_through_another_one() -> None:
    etcd = ScriptedEtcd(["n1", "n2"], "1")
    scope = membership(etcd, ["n1", "n2"])

    await scope.remove(EtcdMember(id="1", name="n1"))

    assert etcd.did == [("remove", "1")]
    assert scope.workload.asked == [["n2"], ["n2"]]  # to remove it, and to count who answers


@pytest.mark.parametrize(("total", "dead", "allowed"), [(2, 0, True), (3, 0, True), (3, 1, False), (5, 1, True), (5, 2, False)])
async def test_a_member_is_removed_only_if_those_that_stay_and_answer_are_a_quorum(total: int, dead: int, allowed: bool) -> None:
    """Whatever the Machines' conditions say: a member that has stopped is still listed, and raises no alarm."""
    nodes = [f"n{n}" for n in range(1, total + 1)]
    etcd = ScriptedEtcd(nodes, "1")
    scope = membership(etcd, nodes, dead=tuple(nodes[1 : 1 + dead]))

    if allowed:
        await scope.remove(EtcdMember(id=str(total), name=f"n{total}"))
    else:
        with pytest.raises(NotSafe, match="required for etcd quorum"):
            await scope.remove(EtcdMember(id=str(total), name=f"n{total}"))

    assert bool(etcd.did) == allowed


async def test_a_member_that_is_gone_is_not_an_error() -> None:
    etcd = ScriptedEtcd(["n1", "n2"], "1")

    await membership(etcd, ["n1", "n2"]).remove(EtcdMember(id="7", name="n7"))

    assert etcd.did == []


async def test_the_last_member_is_never_removed() -> None:
    etcd = ScriptedEtcd(["n1"], "1")

    with pytest.raises(MembershipError, match="cannot remove the last etcd member in the cluster"):
        await membership(etcd, ["n1", "n2"]).remove(EtcdMember(id="1", name="n1"))

    assert etcd.did == []


@pytest.mark.parametrize("call", ["members", "remove"])
async def test_failures_of_membership_are_passed_on(call: str) -> None:
    with pytest.raises(MembershipError, match=f"{call} failed"):
        await membership(ScriptedEtcd(["n1", "n2"], "1", fail=call), ["n1", "n2"]).remove(EtcdMember(id="1", name="n1"))


async def test_no_node_to_ask_is_an_error() -> None:
    with pytest.raises(MembershipError, match="failed to create etcd client"):
        await membership(ScriptedEtcd(["n1", "n2"], "1"), ["n1"]).remove(EtcdMember(id="1", name="n1"))


async def test_a_member_is_removed_through_the_next_one_if_the_first_is_cut_off() -> None:
    """A member without its majority still answers a status call."""
    cut_off, whole = ScriptedEtcd(["n1", "n2", "n3"], "1", fail="members"), ScriptedEtcd(["n1", "n2", "n3"], "1")
    scope = membership({"n1": cut_off, "n2": whole, "n3": whole}, ["n1", "n2", "n3"])

    await scope.remove(EtcdMember(id="3", name="n3"))

    assert whole.did == [("remove", "3")]


async def test_a_member_that_does_not_lead_hands_nothing_over() -> None:
    etcd = ScriptedEtcd(["n1", "n2"], "2")

    await membership(etcd, ["n1", "n2"]).forward_leadership("n1", ["n2"])

    assert etcd.did == []


async def test_the_leader_itself_is_asked_to_hand_over() -> None:
    etcd = ScriptedEtcd(["n1", "n2"], "1")
    scope = membership(etcd, ["n1", "n2"])

    await scope.forward_leadership("n1", ["n2"])

    assert etcd.did == [("move", "2")]
    assert scope.workload.asked == [["n1"]]


async def test_candidates_are_tried_in_turn() -> None:
    etcd = ScriptedEtcd(["n1", "n2", "n3"], "1", refused=("2",))

    await membership(etcd, ["n1", "n2", "n3"]).forward_leadership("n1", ["n9", "n2", "n3"])

    assert etcd.did == [("move", "3")]


@pytest.mark.parametrize(("candidates", "fail"), [(["n9"], ""), (["n2", "n3"], "move"), (["n2"], "members")])
async def test_an_error_is_raised_if_no_candidate_takes_over(candidates: list[str], fail: str) -> None:
    with pytest.raises(MembershipError, match=r"^failed to move etcd leadership$"):
        await membership(ScriptedEtcd(["n1", "n2", "n3"], "1", fail=fail), ["n1", "n2", "n3"]).forward_leadership("n1", candidates)


async def test_a_leader_that_cannot_be_reached_keeps_the_leadership_until_others_remove_it() -> None:
    """Its kubelet is dead, and with it the way to its etcd, which goes on: nobody but the leader itself can hand over."""
    etcd = ScriptedEtcd(["n1", "n2", "n3"], "1")
    scope = membership(etcd, ["n1", "n2", "n3"], dead=("n1",))

    await scope.forward_leadership("n1", ["n2", "n3"])
    await scope.remove(EtcdMember(id="1", name="n1"))

    assert etcd.did == [("remove", "1")]


@pytest.mark.parametrize(("dead", "fail"), [(("n1", "n2", "n3"), ""), (("n1",), "members")])
async def test_a_leader_is_not_skipped_while_no_other_member_answers(dead: tuple[str, ...], fail: str) -> None:
    etcd = ScriptedEtcd(["n1", "n2", "n3"], "1", fail=fail)

    with pytest.raises(MembershipError, match="failed to move etcd leadership"):
        await membership(etcd, ["n1", "n2", "n3"], dead=dead).forward_leadership("n1", ["n2", "n3"])
