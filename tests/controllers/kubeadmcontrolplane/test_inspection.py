"""Edge cases of connection and inspection."""

from __future__ import annotations

from typing import Any

import pytest

from . import harness as h

PODS = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy")
COMPONENT = dict(zip(PODS, ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"), strict=True))
UNKNOWN_EVERYWHERE = ("EtcdClusterHealthy", "ControlPlaneComponentsHealthy")


def pod(component: str, node: str, **status: Any) -> h.Json:
    ready = {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
            {"type": "Initialized", "status": "True"},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": h.metadata(f"{component}-{node}", namespace="kube-system"),
        "spec": {"nodeName": node, "containers": [{"name": component, "image": "x"}]},
        "status": {**ready, **status},
    }


def pods(*nodes: str, without: tuple[str, ...] = ()) -> list[h.Json]:
    return [p for n in nodes for c in COMPONENT.values() if (p := pod(c, n))["metadata"]["name"] not in without]


def world(count: int = 3, **changes: Any) -> h.World:
    machines = changes.pop("machines", None) or h.machines(count)
    objects = changes.pop("workload_objects", None)
    if objects is None:
        objects = pods(*(m.node_name for m in machines if m.node_name))
    return h.World(machines, inspected=False, workload_objects=objects, **changes)


# -------------------------------------------------------------------------------------------- connection


def test_before_initialization_every_condition_is_overwritten_and_nothing_fails() -> None:
    answer = h.run(world(1, initialized=False, initialized_condition=None, kubeadm_config=False))

    expected = ("Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")
    assert answer.error is None
    assert [answer.condition(t) for t in UNKNOWN_EVERYWHERE] == [expected] * 2
    assert [answer.on_machine("m1", t) for t in h.HEALTH] == [expected] * 6


def run_without(w: h.World, *types: str) -> h.Answer:
    import clusterwright

    objects = w.objects()
    for obj in objects:
        if obj["kind"] == "KubeadmControlPlane":
            obj["status"]["conditions"] = [c for c in obj["status"]["conditions"] if c["type"] not in types]
    return h.Answer(dict(clusterwright.decide(objects, "KubeadmControlPlane/ns/kcp1")))


def test_never_probed_keeps_what_is_known() -> None:
    answer = h.run(world(connected=False, probed=None))

    assert answer.condition("EtcdClusterHealthy") == ("True", "Healthy", "")
    assert answer.condition("ControlPlaneComponentsHealthy") == ("True", "Healthy", "")
    assert answer.did("patch", "Machine") == []


def test_never_probed_and_nothing_known_is_reported() -> None:
    answer = run_without(world(connected=False, probed=None), *UNKNOWN_EVERYWHERE)

    expected = ("Unknown", "ConnectionDown", "Remote connection not established yet")
    assert [answer.condition(t) for t in UNKNOWN_EVERYWHERE] == [expected] * 2
    assert answer.on_machine("m2", "EtcdMemberHealthy") == expected


def test_each_half_is_decided_for_itself() -> None:
    answer = run_without(world(connected=False, probed=None), "EtcdClusterHealthy")

    assert answer.condition("ControlPlaneComponentsHealthy") == ("True", "Healthy", "")
    assert answer.on_machine("m1", "EtcdMemberHealthy") == ("Unknown", "ConnectionDown", "Remote connection not established yet")
    assert answer.on_machine("m1", "APIServerPodHealthy") == ("True", "Running", "")


@pytest.mark.parametrize(("seconds", "overwritten"), [(180, False), (299, False), (300, False), (301, True), (360, True)])
def test_the_grace_period_ends_after_five_minutes(seconds: float, overwritten: bool) -> None:
    probed = h.ago(seconds=seconds)

    answer = h.run(world(connected=False, probed=probed))

    expected = ("Unknown", "ConnectionDown", f"Last successful probe at {probed}") if overwritten else ("True", "Healthy", "")
    assert answer.error is None
    assert answer.condition("ControlPlaneComponentsHealthy") == expected


def test_nothing_is_scaled_or_remediated_while_the_cluster_cannot_be_reached() -> None:
    answer = h.run(world(connected=False, replicas=5))

    assert answer.did("create", "Machine") == []
    assert answer.error is None


def test_without_the_etcd_authority_the_inspection_fails() -> None:
    answer = h.run(world(missing_certificates=("etcd",)))

    expected = ("Unknown", "InspectionFailed", "Please check controller logs for errors")
    assert answer.error
    assert [answer.condition(t) for t in UNKNOWN_EVERYWHERE] == [expected] * 2


def test_a_machine_that_is_updated_in_place_is_not_up_to_date_yet() -> None:
    machines = h.machines(3)
    machines[1].annotations = {
        "in-place-updates.internal.cluster.x-k8s.io/update-in-progress": "",
        "runtime.cluster.x-k8s.io/pending-hooks": "UpdateMachine",
    }

    answer = h.run(world(machines=machines))

    assert answer.on_machine("m2", "UpToDate") == ("False", "Updating", "* In-place update in progress")


# -------------------------------------------------------------------------------------------- Nodes


def test_nodes_that_cannot_be_listed_make_everything_unknown() -> None:
    answer = h.run(world(workload={"unlistable": [{"kind": "Node", "error": "etcdserver: request timed out"}]}))

    assert answer.condition("ControlPlaneComponentsHealthy") == (
        "Unknown",
        "InspectionFailed",
        "Failed to get Nodes hosting control plane components: etcdserver: request timed out",
    )
    assert answer.condition("EtcdClusterHealthy") == ("Unknown", "InspectionFailed", "Failed to get Nodes hosting the etcd cluster")
    assert answer.on_machine("m1", "SchedulerPodHealthy") == (
        "Unknown",
        "InspectionFailed",
        "Failed to get the Node hosting the Pod: etcdserver: request timed out",
    )
    assert answer.on_machine("m1", "EtcdMemberHealthy") == ("Unknown", "InspectionFailed", "Failed to get the Node hosting the etcd member")
    assert answer.on_machine("m1", "NodeKubeadmLabelsAndTaintsSet") == ("Unknown", "InspectionFailed", "Failed to get the Node")


def stray_node(name: str = "n9") -> h.Json:
    return h.node(h.MachineSpec("m9", node=name))


def test_a_stray_node_during_provisioning_is_not_an_error() -> None:
    machines = [*h.machines(3), h.MachineSpec("m4", node=None, provider_id=False, missing=h.HEALTH, age=30)]

    answer = h.run(world(machines=machines, workload_objects=[*pods("n1", "n2", "n3"), stray_node()]))

    assert answer.condition("ControlPlaneComponentsHealthy") == ("True", "Healthy", "")


def test_a_stray_node_without_machines_is_an_error() -> None:
    answer = h.run(h.World([], replicas=3, inspected=False, members=None, workload_objects=[stray_node()]))

    assert answer.condition("ControlPlaneComponentsHealthy") == (
        "False",
        "NotHealthy",
        "* Control plane Node n9 does not have a corresponding Machine",
    )


def relabelled(w: h.World, node: str, *, label: bool = True, taint: bool = True, **status: Any) -> h.Answer:
    import clusterwright

    objects = w.objects()
    cluster = objects[-1]["workloadClusters"]["ns/c1"]
    for obj in cluster["objects"]:
        if obj["kind"] == "Node" and obj["metadata"]["name"] == node:
            if not label:
                obj["metadata"]["labels"] = {}
            if not taint:
                obj["spec"]["taints"] = []
            obj["spec"]["taints"] = [*obj["spec"]["taints"], *status.get("taints", [])]
            if "ready" in status:
                obj["status"]["conditions"][0]["status"] = status["ready"]
    return h.Answer(dict(clusterwright.decide(objects, "KubeadmControlPlane/ns/kcp1")))


ROLE = "node-role.kubernetes.io/control-plane"


def test_a_node_without_the_label_still_has_its_pods_and_its_etcd_member_inspected() -> None:
    answer = relabelled(world(), "n1", label=False)

    assert answer.on_machine("m1", "NodeKubeadmLabelsAndTaintsSet") == ("False", "NotSet", f"Node n1 does not have the {ROLE} label")
    assert answer.condition("ControlPlaneComponentsHealthy") == ("True", "Healthy", "")
    assert answer.condition("EtcdClusterHealthy") == ("True", "Healthy", "")


@pytest.mark.parametrize(("label", "taint", "text"), [
    (True, False, f"Node n1 does not have the {ROLE}:NoSchedule taint"),
    (False, False, f"Node n1 does not have the {ROLE} label and the {ROLE}:NoSchedule taint"),
])  # fmt: skip
def test_missing_labels_and_taints_are_reported_in_one_sentence(label: bool, taint: bool, text: str) -> None:
    answer = relabelled(world(), "n1", label=label, taint=taint)

    assert answer.on_machine("m1", "NodeKubeadmLabelsAndTaintsSet") == ("False", "NotSet", text)


@pytest.mark.parametrize(
    ("taints", "expected"),
    [(None, True), ([], False), ([{"key": ROLE, "effect": "NoSchedule"}], True), ([{"key": "x", "effect": "NoSchedule"}], False)],
)
def test_the_taint_is_expected_where_kubeadm_sets_it(taints: list[h.Json] | None, expected: bool) -> None:
    from clusterwright.api.meta import Unstructured
    from clusterwright.controllers.kubeadmcontrolplane.machines.health import expects_control_plane_taint
    from support.control_planes import owned

    registration = {} if taints is None else {"taints": taints}
    config = Unstructured({"spec": {"joinConfiguration": {"controlPlane": {}, "nodeRegistration": registration}}})

    assert expects_control_plane_taint(owned("m", config=config)) == expected
    assert not expects_control_plane_taint(owned("m"))
    assert expects_control_plane_taint(owned("m", spec={"taints": [{"key": ROLE, "effect": "NoSchedule"}]}))


# -------------------------------------------------------------------------------------------- Pods

WAITING = [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
CRASHED = [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}]
ENDED = [{"name": "c", "state": {"terminated": {"reason": "Error", "exitCode": 1}}}]
UNREADY: list[h.Json] = [{"type": "Ready", "status": "False"}]
POD_STATES: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "pending-unscheduled": ({"phase": "Pending", "conditions": []}, ("False", "Provisioning", "Waiting to be scheduled")),
    "init": (
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        ("False", "Provisioning", "Running init containers"),
    ),
    "pending": ({"phase": "Pending"}, ("False", "Provisioning", "")),
    "ready": ({}, ("True", "Running", "")),
    "waiting": ({"conditions": UNREADY, "containerStatuses": WAITING}, ("False", "Provisioning", "CrashLoopBackOff")),
    "waiting-after-crash": ({"conditions": UNREADY, "containerStatuses": CRASHED}, ("False", "Failed", "CrashLoopBackOff")),
    "terminated": ({"conditions": UNREADY, "containerStatuses": ENDED}, ("False", "Failed", "Error")),
    "running-not-ready": ({"conditions": UNREADY}, ("False", "Provisioning", "Waiting for startup or readiness probes")),
    "failed": ({"phase": "Failed"}, ("False", "Failed", "All the containers have been terminated")),
    "succeeded": ({"phase": "Succeeded"}, ("False", "Failed", "All the containers have been terminated")),
    "unknown-phase": ({"phase": "Unknown"}, ("Unknown", "InspectionFailed", "Pod is reporting Unknown status")),
}


@pytest.mark.parametrize("name", POD_STATES)
@pytest.mark.parametrize("type", PODS)
def test_states_of_pods_decide_the_condition(name: str, type: str) -> None:
    status, expected = POD_STATES[name]
    component = COMPONENT[type]
    found = [p for p in pods("n1") if p["metadata"]["name"] != f"{component}-n1"]

    answer = h.run(world(1, workload_objects=[*found, pod(component, "n1", **status)]))

    assert (
        h.conditions_of({"status": answer.raw["others"].get("Machine/m1", {}).get("status", {})}).get(type, ("True", "Running", ""))
        == expected
    )


@pytest.mark.parametrize("type", PODS)
def test_a_pod_that_does_not_exist_or_cannot_be_read_is_reported(type: str) -> None:
    name = f"{COMPONENT[type]}-n1"
    gone = h.run(world(1, workload_objects=pods("n1", without=(name,))))
    unreadable = h.run(world(1, workload={"unreadable": [{"kind": "Pod", "namespace": "kube-system", "name": name}]}))

    assert gone.on_machine("m1", type) == ("False", "DoesNotExist", "Pod does not exist")
    assert unreadable.on_machine("m1", type) == ("Unknown", "InspectionFailed", "Please check controller logs for errors")


def test_pods_of_an_unreachable_node_may_be_stale() -> None:
    stale = relabelled(world(), "n1", ready="Unknown")
    unreachable = relabelled(world(), "n1", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])

    assert stale.on_machine("m1", "APIServerPodHealthy") == (
        "Unknown",
        "InspectionFailed",
        "Node Ready condition is Unknown, Pod data might be stale",
    )
    assert unreachable.on_machine("m1", "APIServerPodHealthy") == ("Unknown", "InspectionFailed", "Node n1 is unreachable")


def test_four_equal_messages_collapse() -> None:
    answer = relabelled(world(), "n1", ready="Unknown")

    assert answer.condition("ControlPlaneComponentsHealthy") == (
        "Unknown",
        "HealthUnknown",
        "* Machine m1:\n  * Control plane components: Node Ready condition is Unknown, Pod data might be stale",
    )


def test_groups_with_more_machines_come_first_and_unknown_is_still_listed() -> None:
    machines = h.machines(3)
    for machine in machines[:2]:
        machine.sick = {"SchedulerPodHealthy": ("False", 60)}
    machines[2].sick = {"SchedulerPodHealthy": ("Unknown", 60)}
    machines[2].conditions = [h.condition("SchedulerPodHealthy", "Unknown", "InspectionFailed", "who knows")]

    answer = h.run(h.World(machines))

    assert answer.condition("ControlPlaneComponentsHealthy") == (
        "False",
        "NotHealthy",
        "* Machines m1, m2:\n  * SchedulerPodHealthy: sick\n* Machine m3:\n  * SchedulerPodHealthy: who knows",
    )


def test_unknown_without_provider_id_is_fine() -> None:
    machine = h.MachineSpec("m1", node=None, provider_id=False, age=60)
    machine.sick = dict.fromkeys(h.HEALTH, ("Unknown", 30.0))

    answer = h.run(h.World([machine], members=[]))

    assert answer.condition("ControlPlaneComponentsHealthy") == ("True", "Healthy", "")


# -------------------------------------------------------------------------------------------- etcd


def test_errors_in_the_status_of_an_endpoint_do_not_count() -> None:
    answer = h.run(world(workload={"etcdErrors": {"status": ["memberID:1 alarm:NOSPACE"]}}))

    assert [answer.on_machine(f"m{n}", "EtcdMemberHealthy") for n in (1, 2, 3)] == [("True", "Healthy", "")] * 3


def test_a_failed_member_list_is_unknown_here_and_false_in_the_deprecated_form() -> None:
    answer = h.run(world(1, workload={"etcdErrors": {"members": "etcdserver: request timed out"}}))

    legacy = {c["type"]: c for c in answer.raw["others"]["Machine/m1"]["status"]["deprecated"]["v1beta1"]["conditions"]}
    assert answer.on_machine("m1", "EtcdMemberHealthy") == (
        "Unknown",
        "InspectionFailed",
        "Failed to get etcd members: etcdserver: request timed out",
    )
    assert (legacy["EtcdMemberHealthy"]["status"], legacy["EtcdMemberHealthy"]["message"]) == ("False", "Failed to get etcd members")


@pytest.mark.parametrize(("seconds", "matching"), [(60, True), (110, True), (120, True), (121, False), (3600, False)])
def test_a_node_has_two_minutes_for_its_member(seconds: float, matching: bool) -> None:
    import clusterwright

    w = world(members=[h.member("n1", leader=True), h.member("n2")])
    objects = w.objects()
    for obj in objects[-1]["workloadClusters"]["ns/c1"]["objects"]:
        if obj["kind"] == "Node" and obj["metadata"]["name"] == "n3":
            obj["metadata"]["creationTimestamp"] = h.ago(seconds=seconds)

    answer = h.Answer(dict(clusterwright.decide(objects, "KubeadmControlPlane/ns/kcp1")))

    assert answer.on_machine("m3", "EtcdMemberHealthy") == ("False", "NotHealthy", "Etcd doesn't have an etcd member for Node n3")
    assert (answer.raw["rows"]["Available"] != "etcd-mismatch") == matching


def test_an_unnamed_member_is_an_error_and_a_mismatch_unless_a_machine_is_coming_up() -> None:
    members = [h.member("n1", leader=True), h.member("", id="99")]
    alone = h.run(world(1, members=members))
    machines = [*h.machines(1), h.MachineSpec("m2", node=None, provider_id=False, missing=h.HEALTH, age=30)]
    joining = h.run(world(machines=machines, members=members))

    assert alone.did("delete", "EtcdMember") == ["99"]
    assert joining.did("delete", "EtcdMember") == []
    error = "* Etcd member 99 (Name not yet assigned) does not have a corresponding Machine"
    assert joining.condition("EtcdClusterHealthy") == ("False", "NotHealthy", error)
    assert joining.raw["rows"]["Available"] == "available"


def test_external_etcd_has_no_conditions_on_machines() -> None:
    answer = h.run(
        world(external_etcd=True, workload_objects=[p for p in pods("n1", "n2", "n3") if not p["metadata"]["name"].startswith("etcd")])
    )

    assert answer.condition("EtcdClusterHealthy") is None
    assert answer.condition("ControlPlaneComponentsHealthy") == ("True", "Healthy", "")
    assert answer.on_machine("m1", "EtcdMemberHealthy") is None
