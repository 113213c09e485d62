"""Edge cases of status and Available, each on one pass of the real controller."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.copying import replace

from . import harness as h

API, MEMBER, POD = "APIServerPodHealthy", "EtcdMemberHealthy", "EtcdPodHealthy"


def sick(machine: h.MachineSpec, *types: str, status: str = "False", seconds: float = 60.0) -> h.MachineSpec:
    for type in types:
        machine.sick[type] = (status, seconds)
    return machine


def available(world: h.World) -> tuple[str, str, str] | None:
    return h.run(world).condition("Available")


@pytest.mark.parametrize("count", [1, 3])
def test_healthy_machines_and_matching_members_are_available(count: int) -> None:
    assert available(h.World(h.machines(count))) == ("True", "Available", "")


@pytest.mark.parametrize(("seconds", "text"), [
    (0, ""),
    (11, ("* 2 of 3 etcd members are healthy, at least 2 healthy member required for etcd quorum\n"
         "* 2 of 3 Machines have healthy control plane components, at least 1 required")),
])  # fmt: skip
def test_one_unhealthy_member_of_three_is_reported_after_ten_seconds(seconds: float, text: str) -> None:
    machines = h.machines(3)
    sick(machines[2], MEMBER, seconds=seconds)

    assert available(h.World(machines)) == ("True", "Available", text)


def test_two_unhealthy_members_of_three_report_only_the_lost_quorum() -> None:
    machines = h.machines(3)
    sick(machines[1], MEMBER, seconds=0)
    sick(machines[2], MEMBER, seconds=0)

    expected = "* 1 of 3 etcd members is healthy, at least 2 healthy member required for etcd quorum"
    assert available(h.World(machines)) == ("False", "NotAvailable", expected)


def test_a_machine_without_provider_id_is_ignored() -> None:
    machines = [*h.machines(3), h.MachineSpec("m4", node=None, provider_id=False, sick={API: ("Unknown", 60)}, age=20)]

    assert available(h.World(machines)) == ("True", "Available", "")


def test_an_unnamed_member_is_a_healthy_learner() -> None:
    machines = [*h.machines(3), h.MachineSpec("m4", node=None, provider_id=False, missing=h.HEALTH, age=20)]
    sick(machines[2], MEMBER, seconds=11)
    members = [h.member("n1", leader=True), h.member("n2"), h.member("n3"), h.member("", id="9")]

    expected = (
        "* 3 of 4 etcd members are healthy, 1 learner etcd member, at least 2 healthy member required for etcd quorum\n"
        "* 2 of 4 Machines have healthy control plane components, at least 1 required"
    )
    assert available(h.World(machines, members=members)) == ("True", "Available", expected)


@pytest.mark.parametrize(("status", "text"), [
    ("True", ""),
    ("False", "* 3 of 4 etcd members are healthy, at least 3 healthy member required for etcd quorum"),
])  # fmt: skip
def test_a_named_member_without_node_is_bound_to_the_single_provisioning_machine(status: str, text: str) -> None:
    machines = [*h.machines(3), h.MachineSpec("m4", node=None, provider_id=False, age=300)]
    machines[3].sick = {MEMBER: (status, 60.0)}
    members = [h.member("n1", leader=True), h.member("n2"), h.member("n3"), h.member("n4")]

    assert available(h.World(machines, members=members)) == ("True", "Available", text)


def test_a_member_without_a_machine_is_unhealthy_at_once() -> None:
    """Without a provisioning Machine such a member breaks matching too, which is said first."""
    members = [h.member("n1", leader=True), h.member("n2"), h.member("n9")]

    found = h.run(h.World(h.machines(2), members=members))

    assert found.condition("Available") == (
        "False",
        "NotAvailable",
        "The list of etcd members does not match the list of Machines and Nodes",
    )
    assert found.condition("EtcdClusterHealthy") == ("False", "NotHealthy", "* Etcd member n9 does not have a corresponding Machine")


def test_a_learner_counts_in_the_total_but_not_for_quorum() -> None:
    machines = h.machines(4)
    sick(machines[2], MEMBER)
    sick(machines[3], MEMBER)
    members = [h.member("n1", leader=True), h.member("n2"), h.member("n3"), h.member("n4", learner=True)]

    found = available(h.World(machines, members=members))

    assert found is not None
    assert found[0] == "True"
    assert (
        found[2].split("\n")[0]
        == "* 2 of 4 etcd members are healthy, 1 learner etcd member, at least 2 healthy member required for etcd quorum"
    )


def test_of_two_sick_api_servers_only_the_one_that_is_sick_for_long_is_counted() -> None:
    machines = h.machines(3)
    sick(machines[0], API, seconds=0)
    sick(machines[1], API, seconds=11)

    expected = "* 2 of 3 Machines have healthy control plane components, at least 1 required"
    assert available(h.World(machines)) == ("True", "Available", expected)


def test_with_unnamed_members_only_missing_components_are_reported() -> None:
    machines = [h.MachineSpec(f"m{n}", node=None, sick={API: ("False", 60)}, age=100 * n) for n in range(1, 4)]
    members = [h.member("", id=str(n)) for n in range(1, 4)]
    machines[0].node = "n1"
    members.append(h.member("n1", leader=True))

    found = available(h.World(machines, members=members))

    assert found == ("False", "NotAvailable", "* There are no Machines with healthy control plane components, at least 1 required")


def test_external_etcd_is_not_inspected() -> None:
    assert available(h.World(h.machines(3), external_etcd=True)) == ("True", "Available", "")


def test_only_matching_bullets_are_reported() -> None:
    missing = h.World(h.machines(1), missing_certificates=("proxy",))
    deleting = h.World(h.machines(1), deleting=True)

    assert available(missing) == ("False", "NotAvailable", "* Control plane certificates are not available")
    assert available(deleting) == ("False", "NotAvailable", "* Control plane metadata.deletionTimestamp is set")


@pytest.mark.parametrize(("seconds", "status"), [(5, "False"), (300, "Unknown")])
def test_unknown_members_are_waited_for_and_then_reported(seconds: float, status: str) -> None:
    since = h.condition("Initialized", "True", "Initialized", since=h.ago(seconds=seconds))

    found = available(h.World(h.machines(3), members=None, initialized_condition=since))

    assert found is not None
    assert found[0] == status


@pytest.mark.parametrize("members", [[], [h.member("n1"), h.member("n2"), h.member("n3")]])
def test_members_of_which_none_leads_count_as_unknown(members: Any) -> None:
    assert available(h.World(h.machines(3), members=members)) == ("Unknown", "AvailableInspectionFailed", "Failed to get etcd members")


@pytest.mark.parametrize(("change", "initialized"), [
    ({}, True),
    ({"kubeadm_config": False}, None),
    ({"connected": False}, None),
])  # fmt: skip
def test_initialized_once_kubeadm_config_is_there(change: dict[str, Any], initialized: bool | None) -> None:
    answer = h.run(h.World(h.machines(1), initialized=False, initialized_condition=None, inspected=False, **change))

    assert answer.error is None
    assert (answer.object["status"].get("initialization") or {}).get("controlPlaneInitialized") == initialized


MARKS = [h.condition("HealthCheckSucceeded", "False", "UnhealthyNode"), h.condition("OwnerRemediated", "False", "WaitingForRemediation")]


@pytest.mark.parametrize("doomed", ["marked", "deleting"])
def test_a_single_machine_about_to_be_replaced_is_not_inspected(doomed: str) -> None:
    machine = h.machines(1)[0]
    if doomed == "marked":
        machine.conditions = list(MARKS)
    else:
        machine.deleting = 10

    answer = h.run(h.World([machine], initialized=False, initialized_condition=None, inspected=False))

    assert "initialization" not in answer.object["status"]


DATA = '{{"machine":"{0}","timestamp":"{1}","retryCount":{2}}}'


def test_last_remediation_is_the_one_in_progress_else_the_newest_remembered() -> None:
    machines = h.machines(3)
    machines[0].annotations = {"controlplane.cluster.x-k8s.io/remediation-for": DATA.format("old1", h.ago(hours=3), 1)}
    machines[1].annotations = {"controlplane.cluster.x-k8s.io/remediation-for": DATA.format("old2", h.ago(hours=2), 2)}
    remembered = h.run(h.World(machines)).object["status"]["lastRemediation"]
    lock = {"controlplane.cluster.x-k8s.io/remediation-in-progress": DATA.format("now", h.ago(seconds=5), 0)}
    in_progress = h.run(h.World(machines, annotations=lock)).object["status"]["lastRemediation"]

    assert remembered == {"machine": "old2", "time": h.ago(hours=2), "retryCount": 2}
    assert in_progress == {"machine": "now", "time": h.ago(seconds=5), "retryCount": 0}


def test_history_that_cannot_be_read_is_an_error_and_the_rest_of_status_is_written() -> None:
    machines = h.machines(3)
    machines[0].annotations = {"controlplane.cluster.x-k8s.io/remediation-for": "{"}

    answer = h.run(h.World(machines))

    assert answer.error
    assert answer.object["status"]["replicas"] == 3


def test_rolling_out_counts_the_outdated_and_lists_their_reasons_versions_first() -> None:
    machines = h.machines(3)
    machines[0].version = machines[1].version = "v1.33.0"
    machines[1].expiry = h.ago(days=1)

    answer = h.run(h.World(machines, spec={"rollout": {"before": {"certificatesExpiryDays": 10}}}))

    assert answer.condition("RollingOut") == (
        "True",
        "RollingOut",
        "Rolling out 2 not up-to-date replicas\n* Version v1.33.0, v1.34.1 required\n* Certificates will expire soon",
    )


def test_a_missing_template_is_reported_at_size_and_while_scaling_up() -> None:
    machines = h.machines(1)
    machines[0].infrastructure = False
    at_size = h.run(h.World(machines, template=False))
    growing = h.run(h.World(machines, replicas=3, template=False))

    assert at_size.condition("ScalingUp") == (
        "False",
        "NotScalingUp",
        "Scaling up would be blocked because DevMachineTemplate does not exist",
    )
    assert growing.condition("ScalingUp") == (
        "True",
        "ScalingUp",
        "Scaling up from 1 to 3 replicas is blocked because:\n* DevMachineTemplate does not exist",
    )
    assert growing.error


def test_a_deleting_control_plane_scales_down_to_nothing() -> None:
    answer = h.run(h.World(h.machines(3), replicas=5, deleting=True))

    assert answer.condition("ScalingUp") == ("False", "NotScalingUp", "")
    assert answer.condition("ScalingDown") == ("True", "ScalingDown", "Scaling down from 3 to 0 replicas")


def test_every_blocker_is_a_bullet_in_a_fixed_order() -> None:
    from clusterwright.controllers.kubeadmcontrolplane.conditions import SCALING_UP
    from clusterwright.controllers.kubeadmcontrolplane.snapshot import Blockers
    from support.control_planes import CLUSTER, control_plane

    blockers = Blockers(
        topology_version_mismatch=True, has_deleting_machine=True, certificates_missing=True, components_unhealthy=True, etcd_unhealthy=True
    )
    cluster = replace(CLUSTER, topology_version="v1.35.0")
    snapshot = control_plane(now=h.NOW, replicas=3, blockers=blockers, cluster=cluster, features={"ClusterTopology": True})

    outcome = SCALING_UP.decide(snapshot).outcome

    assert outcome is not None
    assert outcome.message.split("\n") == [
        "Scaling up from 0 to 3 replicas is blocked because:",
        "* waiting for a version upgrade to v1.35.0 to be propagated",
        "* waiting for a control plane Machine to complete deletion",
        "* cluster certificates are missing or unknown",
        "* waiting for control plane components to become healthy",
        "* waiting for etcd cluster to become healthy",
    ]


DRAIN = (
    "cannot evict pod as it would violate the pod's disruption budget. deletionTimestamp set, but still not removed from the Node "
    "failed to evict Pod waiting for completion"
)


def drained(name: str) -> h.MachineSpec:
    machine = h.MachineSpec(name, deleting=1200, age=90000)
    machine.conditions = [h.condition("Deleting", "True", "DrainingNode", DRAIN)]
    return machine


def test_a_stale_deletion_names_its_causes() -> None:
    from datetime import timedelta

    from clusterwright.api.core import Machine
    from clusterwright.api.meta import Condition
    from clusterwright.controllers.owned_machines import stale_text
    from support.control_planes import owned

    def stale(name: str, drain_minutes: float = 10) -> Machine:
        return owned(
            name,
            deletion_timestamp=h.NOW - timedelta(minutes=20),
            status={"deletion": {"nodeDrainStartTime": h.ago(minutes=drain_minutes)}},
            conditions=(Condition(type="Deleting", status="True", reason="DrainingNode", message=DRAIN),),
        ).object

    assert stale_text([stale("m1")], h.NOW) == (
        "Machine m1 is in deletion since more than 15m, delay likely due to "
        "PodDisruptionBudgets, Pods not terminating, Pod eviction errors, Pods not completed yet"
    )
    assert stale_text([stale("m1", 3), stale("m2", 3)], h.NOW) == "Machines m1, m2 are in deletion since more than 15m"
    assert stale_text([], h.NOW) == ""


@pytest.mark.parametrize(("age", "expected"), [
    (5, ("True", "NoReplicas", "")),
    (60, ("Unknown", "UpToDateUnknown", "* Machine m1: Condition UpToDate not yet reported")),
])  # fmt: skip
def test_a_young_machine_without_up_to_date_is_not_counted_yet(age: float, expected: tuple[str, str, str]) -> None:
    machine = h.MachineSpec("m1", age=age)
    machine.conditions = []
    world = h.World(
        [machine], missing_certificates=("ca",), observation={"unreadable": [{"kind": "Secret", "namespace": "ns", "name": "c1-sa"}]}
    )
    objects = world.objects()
    for obj in objects:
        if obj["kind"] == "Machine":
            obj["status"]["conditions"] = [c for c in obj["status"]["conditions"] if c["type"] != "UpToDate"]

    import clusterwright

    answer = h.Answer(dict(clusterwright.decide(objects, "KubeadmControlPlane/ns/kcp1")))

    assert answer.error
    assert answer.condition("MachinesUpToDate") == expected


def test_unhealthy_machines_without_a_remediation_request_are_named() -> None:
    machines = h.machines(3)
    for machine in machines[:2]:
        machine.conditions = [MARKS[0]]

    found = h.run(h.World(machines)).condition("Remediating")

    assert found == ("False", "NotRemediating", "Machines m1, m2 are not healthy (not to be remediated by KubeadmControlPlane)")


def test_a_settled_control_plane_writes_nothing_at_all() -> None:
    world = h.World(h.machines(3))
    first = h.run(world)
    objects = [o for o in world.objects() if o["kind"] != "KubeadmControlPlane"] + [first.object]

    import clusterwright

    second = clusterwright.decide(objects, "KubeadmControlPlane/ns/kcp1")

    assert second["actions"] == []
    assert second["object"] == first.object
    assert second["requeueAfterSeconds"] is None


def test_unset_replicas_are_reported_and_nothing_is_done() -> None:
    answer = h.run(h.World(h.machines(1), replicas_set=False))

    assert answer.condition("ScalingUp") == ("Unknown", "WaitingForReplicasSet", "Waiting for spec.replicas set")
    assert answer.condition("ScalingDown") == ("Unknown", "WaitingForReplicasSet", "Waiting for spec.replicas set")
    assert answer.actions == []


# ------------------------------------------------------------------------------------------------------------ versions


@pytest.mark.parametrize(
    ("kubelets", "versions", "lowest"),
    [
        (["", "", ""], [("v1.34.1", 3)], "v1.34.1"),
        (["v1.34.1", "v1.33.5", ""], [("v1.33.5", 1), ("v1.34.1", 2)], "v1.33.5"),
        (["v1.34.1+k3s1", "v1.34.1", ""], [("v1.34.1", 2), ("v1.34.1+k3s1", 1)], "v1.34.1"),
    ],
)
def test_13341_status_versions_count_machines_and_status_version_is_the_lowest(
    kubelets: list[str], versions: list[tuple[str, int]], lowest: str
) -> None:
    machines = h.machines(3)
    for machine, kubelet in zip(machines, kubelets, strict=True):
        machine.kubelet = kubelet

    status = h.run(h.World(machines)).object["status"]

    assert [(v["version"], v["replicas"]) for v in status["versions"]] == versions
    assert status["version"] == lowest


@pytest.mark.parametrize(("kubelet", "behind"), [("v1.34.1", False), ("v1.33.5", True), ("v1.34.1-eks-113cf36", False), ("", False)])
def test_13871_a_machine_is_not_up_to_date_while_its_kubelet_runs_another_release(kubelet: str, behind: bool) -> None:
    machines = h.machines(1)
    machines[0].kubelet = kubelet

    said = h.run(h.World(machines)).on_machine("m1", "UpToDate")

    text = "* Node.status.nodeInfo.kubeletVersion v1.33.5, v1.34.1 required"
    assert said == (("False", "Updating", text) if behind else None), "it is up to date already"
