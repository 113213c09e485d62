"""The observable facts about Machines, one by one, on the embedded API server.

The numbers in the names are those of the list of edge cases; what is pure is tested beside its module as well.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from clusterwright.api import codec
from clusterwright.runtime.errors import ApiError

CHECK_LOGS = "Please check controller logs for errors"
MD_LABEL = "cluster.x-k8s.io/deployment-name"


# ---------------------------------------------------------------------------------------------------------- nodes


def test_without_provider_id_the_node_phase_does_nothing(a: Any) -> None:
    answer = a.Build(machine=a.fresh(), infra=a.infra(spec={"providerID": None}, status=None), node=None).decide()

    assert answer.error == ""
    assert answer.v1beta1("NodeHealthy") == ("False", "Info", "WaitingForNodeRef")
    assert answer.condition("NodeHealthy") == (
        "Unknown",
        "InspectionFailed",
        "Waiting for GenericInfrastructureMachine to report spec.providerID",
    )


@pytest.mark.parametrize(
    ("machine", "fails", "status"),
    [
        pytest.param({"status": {"nodeRef": None}}, False, "Unknown", id="02-no-node-yet-is-waited-for"),
        pytest.param({}, True, "False", id="02-a-node-that-vanished-is-an-error"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-05-01T11:59:00Z"}}, False, "False", id="02-but-not-while-deleting"),
    ],
)
def test_no_node_matches_the_provider_id(a: Any, machine: Any, fails: bool, status: str) -> None:
    answer = a.Build(machine=a.machine(**machine), node=None, more=[a.other_control_plane()]).decide()

    assert bool(answer.error) is fails
    assert answer.condition("NodeReady")[0] == status


def test_nodes_that_cannot_be_listed_are_an_internal_error(a: Any) -> None:
    answer = a.Build(workload={"unlistable": ["Node"]}).decide()

    assert answer.error
    assert answer.condition("NodeReady") == answer.condition("NodeHealthy") == ("Unknown", "InternalError", CHECK_LOGS)


# ------------------------------------------------------------------------------------------------- provider objects


def test_a_missing_bootstrap_config_is_looked_for_again_after_30_seconds(a: Any) -> None:
    answer = a.Build(bootstrap=None).decide()

    assert (answer.error, answer.requeue) == ("", 30)


def test_a_missing_bootstrap_config_does_not_matter_while_deleting(a: Any) -> None:
    answer = a.Build(machine=a.deleted(), bootstrap=None, cluster=a.cluster(metadata={"deletionTimestamp": a.ago()})).decide()

    assert (answer.error, answer.requeue) == ("", None)


def test_a_bootstrap_config_that_cannot_be_read_is_an_error(a: Any) -> None:
    answer = a.Build(observation={"unreadable": [{"kind": "GenericBootstrapConfig", "namespace": "ns1", "name": "m1"}]}).decide()

    assert answer.error
    assert answer.condition("BootstrapConfigReady") == ("Unknown", "InternalError", CHECK_LOGS)


@pytest.mark.parametrize("name", [None, ""], ids=["05-absent", "05-empty"])
def test_bootstrap_data_without_a_secret_name_is_an_error(a: Any, name: str | None) -> None:
    answer = a.Build(machine=a.fresh(), bootstrap=a.bootstrap(status={"dataSecretName": name})).decide()

    assert "status.dataSecretName is empty" in answer.error
    assert "dataSecretName" not in answer.object["spec"]["bootstrap"]
    assert "bootstrapDataSecretCreated" not in answer.status.get("initialization", {})


def test_the_first_secret_name_is_kept(a: Any) -> None:
    answer = a.Build(bootstrap=a.bootstrap(status={"dataSecretName": "another"})).decide()

    assert answer.object["spec"]["bootstrap"]["dataSecretName"] == "m1-data"


def test_paused_provider_objects_are_still_read(a: Any) -> None:
    paused = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    answer = a.Build(machine=a.fresh(), bootstrap=a.bootstrap(**paused), infra=a.infra(**paused)).decide()

    assert answer.object["spec"]["bootstrap"]["dataSecretName"] == "m1-data"
    assert answer.object["spec"]["providerID"] == "generic:///m1"


def test_provisioned_without_provider_id_takes_nothing_over(a: Any) -> None:
    infra = a.infra(spec={"providerID": None}, status={"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]})
    answer = a.Build(machine=a.fresh(), infra=infra, node=None).decide()

    assert answer.error == ""
    assert "addresses" not in answer.status
    assert "infrastructureProvisioned" not in answer.status.get("initialization", {})


def test_provisioned_is_never_taken_back_and_details_are_refreshed(a: Any) -> None:
    infra = a.infra(
        status={
            "initialization": {"provisioned": False},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
            "failureDomain": "az-2",
        }
    )
    answer = a.Build(infra=infra).decide()

    assert answer.status["initialization"]["infrastructureProvisioned"] is True
    assert answer.status["addresses"] == [{"type": "InternalIP", "address": "10.0.0.9"}]
    assert answer.status["failureDomain"] == "az-2"


def test_infrastructure_that_vanished_after_provisioning_is_a_terminal_failure(a: Any) -> None:
    answer = a.Build(infra=None).decide()

    assert "could not find GenericInfrastructureMachine ns1/m1" in answer.error
    assert answer.status["deprecated"]["v1beta1"]["failureReason"] == "InvalidConfiguration"
    assert answer.condition("InfrastructureReady")[1] == "ObjectDeleted"


def test_missing_infrastructure_is_looked_for_again(a: Any) -> None:
    answer = a.Build(machine=a.fresh(), infra=None, node=None).decide()

    assert (answer.error, answer.requeue) == ("", 30)


@pytest.mark.parametrize("provisioned", [True, False], ids=["10-was-provisioned", "10-never-provisioned"])
def test_infrastructure_that_is_gone_does_not_matter_while_deleting(a: Any, provisioned: bool) -> None:
    machine = a.deleted(status={"initialization": {"infrastructureProvisioned": provisioned}})
    answer = a.Build(machine=machine, infra=None, cluster=a.cluster(metadata={"deletionTimestamp": a.ago()})).decide()

    assert answer.error == ""
    assert answer.condition("InfrastructureReady")[1] == ("ObjectDeleted" if provisioned else "ObjectDoesNotExist")


def test_both_failure_domains_go_to_their_own_fields(a: Any) -> None:
    answer = a.Build(infra=a.infra(spec={"failureDomain": "asked"}, status={"failureDomain": "actual"})).decide()

    assert answer.object["spec"]["failureDomain"] == "asked"
    assert answer.status["failureDomain"] == "actual"


EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"


@pytest.mark.parametrize(
    ("labels", "own", "config", "expected"),
    [
        pytest.param({}, "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", None, id="12-ignored-on-a-worker"),
        pytest.param(
            {"cluster.x-k8s.io/control-plane": ""}, "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", "2027-01-01T00:00:00Z", id="12-own-wins"
        ),
        pytest.param({"cluster.x-k8s.io/control-plane": ""}, None, "2028-01-01T00:00:00Z", "2028-01-01T00:00:00Z", id="12-config-else"),
        pytest.param({"cluster.x-k8s.io/control-plane": ""}, None, None, None, id="12-none-clears"),
    ],
)
def test_the_expiry_of_certificates_is_taken_over(a: Any, labels: Any, own: str | None, config: str | None, expected: str | None) -> None:
    machine = a.machine(
        metadata={"labels": labels, "annotations": {EXPIRY: own} if own else {}},
        status={"certificatesExpiryDate": "2026-06-01T00:00:00Z"} if labels else {},
    )
    answer = a.Build(machine=machine, bootstrap=a.bootstrap(metadata={"annotations": {EXPIRY: config} if config else {}})).decide()

    assert answer.status.get("certificatesExpiryDate") == expected


@pytest.mark.parametrize(
    ("metadata", "adopted"),
    [
        pytest.param({"ownerReferences": []}, True, id="13-stand-alone"),
        pytest.param({"ownerReferences": [], "labels": {"cluster.x-k8s.io/pool-name": "mp"}}, False, id="13-promised-to-a-pool"),
        pytest.param(
            {
                "ownerReferences": [
                    {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "uid-f", "controller": True},
                ]
            },
            False,
            id="13-controlled-by-another",
        ),
    ],
)
def test_only_stand_alone_machines_are_owned_by_the_cluster(a: Any, metadata: Any, adopted: bool) -> None:
    answer = a.Build(machine=a.machine(metadata=metadata)).decide()

    owners = [o["kind"] for o in answer.object["metadata"].get("ownerReferences", [])]
    assert ("Cluster" in owners) is adopted


def test_a_machine_that_the_cluster_owns_already_is_not_owned_twice(a: Any) -> None:
    from clusterwright.api.core import Cluster, Machine, MachineSpec
    from clusterwright.api.meta import ObjectMeta, OwnerReference
    from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Missing
    from clusterwright.controllers.machine.ownership import with_owner_and_label
    from clusterwright.controllers.machine.snapshot import ClusterFacts, MachineSnapshot

    older = OwnerReference(api_version="cluster.x-k8s.io/v1beta1", kind="Cluster", name="c1", uid="u")
    labels = {"cluster.x-k8s.io/cluster-name": "c1"}
    machine = Machine(metadata=ObjectMeta(name="m1", labels=labels, owner_references=(older,)), spec=MachineSpec(cluster_name="c1"))

    facts = ClusterFacts.of(Cluster())
    seen = MachineSnapshot(now=a.NOW, object=machine, cluster=facts, bootstrap=NOT_REFERENCED, infrastructure=Missing())

    assert with_owner_and_label(seen) is machine


def test_other_finalizers_are_kept_when_ours_is_added(a: Any) -> None:
    answer = a.Build(machine=a.machine(metadata={"finalizers": ["example.com/keep"]})).decide()

    assert answer.object["metadata"]["finalizers"] == ["example.com/keep", "machine.cluster.x-k8s.io"]


# -------------------------------------------------------------------------------------------------------- node sync


def test_a_node_with_two_addresses_of_one_type_is_still_patched(a: Any) -> None:
    addresses = [{"type": "InternalIP", "address": "10.1.0.4"}, {"type": "InternalIP", "address": "fd00::4"}]
    answer = a.Build(
        machine=a.machine(metadata={"labels": {"node-role.kubernetes.io/web": ""}}), node=a.node(status={"addresses": addresses})
    ).decide()

    assert answer.other("Node/node-1")["status"]["addresses"] == addresses
    assert answer.other("Node/node-1")["metadata"]["labels"] == {"node-role.kubernetes.io/web": ""}


async def test_a_label_that_the_node_had_becomes_tracked_and_goes_with_the_machines(a: Any) -> None:
    label = "node.cluster.x-k8s.io/tier"
    running = a.Build(
        machine=a.machine(metadata={"labels": {label: "gold"}}), node=a.node(metadata={"labels": {label: "gold", "mine": "yes"}})
    ).start()
    await running.run()
    tracked = (await running.remote_node()).metadata.annotations["cluster.x-k8s.io/labels-from-machine"]
    await running.world.client.patch(type(await running.machine()), (await running.machine()).key, {"metadata": {"labels": {label: None}}})
    await running.run(seconds=1)
    node = await running.remote_node()

    assert tracked == label
    assert node.metadata.labels == {"mine": "yes"}
    assert node.metadata.annotations["cluster.x-k8s.io/labels-from-machine"] == ""


def test_a_tracked_label_that_was_removed_by_hand_only_leaves_the_list(a: Any) -> None:
    node = a.node(metadata={"labels": {"mine": "yes"}, "annotations": {"cluster.x-k8s.io/labels-from-machine": "node.cluster.x-k8s.io/x"}})
    answer = a.Build(node=node).decide()

    assert answer.other("Node/node-1")["metadata"]["labels"] == {"mine": "yes"}
    assert answer.other("Node/node-1")["metadata"]["annotations"]["cluster.x-k8s.io/labels-from-machine"] == ""


async def test_bookkeeping_annotations_are_never_listed_as_the_machines(a: Any) -> None:
    running = a.Build(
        machine=a.machine(metadata={"annotations": {"node.cluster.x-k8s.io/note": "n"}}), node=a.node(metadata={"annotations": None})
    ).start()
    await running.run()
    await running.run(seconds=1)
    node = await running.remote_node()

    assert node.metadata.annotations["cluster.x-k8s.io/annotations-from-machine"] == "node.cluster.x-k8s.io/note"
    assert running.actions == []


def test_a_machine_without_owners_syncs_labels_but_never_the_outdated_taint(a: Any) -> None:
    answer = a.Build(
        machine=a.machine(metadata={"labels": {"node-role.kubernetes.io/web": ""}}), node=a.node(metadata={"annotations": None})
    ).decide()

    assert answer.other("Node/node-1")["metadata"]["labels"] == {"node-role.kubernetes.io/web": ""}
    assert "taints" not in answer.other("Node/node-1")["spec"]


def machine_set(a: Any, revision: str | None, *, deployment: bool = True, **changes: Any) -> Any:
    template = {"spec": {"clusterName": "c1", "version": "v1.33.1"}}
    base = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {
            "name": "ms1",
            "namespace": "ns1",
            "uid": "uid-ms1",
            "creationTimestamp": a.ago(hours=2),
            "labels": {MD_LABEL: "md1"} if deployment else {},
            "annotations": {"machinedeployment.clusters.x-k8s.io/revision": revision} if revision else {},
        },
        "spec": {"clusterName": "c1", "selector": {}, "template": template},
    }
    return a.merged(base, changes)


def deployment(a: Any, revision: str | None, **changes: Any) -> Any:
    base = machine_set(a, revision)
    base = a.merged(base, {"kind": "MachineDeployment", "metadata": {"name": "md1", "uid": "uid-md1", "labels": None}})
    return a.merged(base, changes)


def owned_by_set(a: Any, **changes: Any) -> Any:
    owned = {"metadata": {"ownerReferences": [a.owner("MachineSet", "ms1", "uid-ms1")]}}
    return a.merged(a.machine(**owned), changes)


OUTDATED = {"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}


@pytest.mark.parametrize(
    ("ours", "theirs", "before", "after"),
    [
        pytest.param("1", "2", [], [OUTDATED], id="18-behind-is-tainted"),
        pytest.param("2", "2", [OUTDATED], None, id="18-equal-is-cleared"),
        pytest.param("9", "10", [], [OUTDATED], id="18-revisions-are-numbers"),
        pytest.param("1", None, [OUTDATED], None, id="18-stand-alone-set-is-cleared"),
    ],
)
def test_the_outdated_taint_is_set(a: Any, ours: str, theirs: str | None, before: Any, after: Any) -> None:
    more = [machine_set(a, ours, deployment=theirs is not None), *([deployment(a, theirs)] if theirs else [])]
    owned = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "ms1"}
    node = a.node(metadata={"annotations": owned}, spec={"taints": before})
    answer = a.Build(machine=owned_by_set(a), more=more, node=node).decide()

    assert answer.other("Node/node-1")["spec"].get("taints") == after


# ------------------------------------------------------------------------------------------------------- conditions


def test_one_bad_node_condition_decides_although_others_are_unknown(a: Any) -> None:
    unknown = [a.condition(t, "Unknown", "Lost") for t in ("MemoryPressure", "PIDPressure")]
    bad = [a.condition("DiskPressure", "True", "Full", "disk is full"), a.condition("Ready")]
    answer = a.Build(node=a.node(status={"conditions": [*unknown, *bad]})).decide()

    assert answer.condition("NodeHealthy")[:2] == ("False", "NodeNotHealthy")


@pytest.mark.parametrize(
    ("success", "initialized", "had", "expected"),
    [
        pytest.param("minutes=4", "days=1", True, ("True", "NodeReady", ""), id="21-kept-within-the-grace-period"),
        pytest.param(
            "minutes=6", "days=1", True, ("Unknown", "ConnectionDown", "Last successful probe at 2026-05-01T11:54:00Z"), id="21-lost"
        ),
        pytest.param("minutes=6", "minutes=2", True, ("True", "NodeReady", ""), id="21-control-plane-is-young"),
        pytest.param(
            "minutes=4", "days=1", False, ("Unknown", "ConnectionDown", "Last successful probe at 2026-05-01T11:56:00Z"), id="21-never-set"
        ),
    ],
)
def test_a_lost_connection_makes_node_conditions_unknown(a: Any, success: str, initialized: str, had: bool, expected: Any) -> None:
    def since(text: str) -> str:
        unit, _, count = text.partition("=")
        return str(a.ago(**{unit: int(count)}))

    machine = a.machine() if had else a.machine(status={"conditions": [a.condition("Paused", "False", "NotPaused")]})
    cluster = a.cluster(status={"conditions": [a.condition("ControlPlaneInitialized", since=since(initialized))]})
    answer = a.Build(machine=machine, cluster=cluster, workload={"connected": False, "lastProbeSuccess": since(success)}).decide()

    assert answer.error
    assert answer.condition("NodeReady") == expected


@pytest.mark.parametrize(
    ("after", "created", "expected"),
    [
        pytest.param("2026-05-01T13:00:00Z", "2026-05-01T10:00:00Z", "True", id="22-in-the-future"),
        pytest.param("2026-05-01T11:00:00Z", "2026-05-01T10:00:00Z", "False", id="22-passed-and-set-is-older"),
        pytest.param("2026-05-01T11:00:00Z", "2026-05-01T11:00:00Z", "True", id="22-passed-and-set-is-as-old"),
    ],
)
def test_rollout_after_replaces_older_machines(a: Any, after: str, created: str, expected: str) -> None:
    more = [machine_set(a, "1", metadata={"creationTimestamp": created}), deployment(a, "1", spec={"rollout": {"after": after}})]
    answer = a.Build(machine=owned_by_set(a), more=more).decide()

    assert answer.condition("UpToDate")[0] == expected


@pytest.mark.parametrize(
    ("kubelet", "behind"), [("v1.33.1", False), ("v1.32.9", True), ("v1.33.1-eks-113cf36", False), ("v1.33.1+k3s1", False)]
)
def test_13871_a_machine_is_not_up_to_date_while_its_kubelet_runs_another_release(a: Any, kubelet: str, behind: bool) -> None:
    """The text is compared as a version: a distribution's suffix kept Machines outdated forever (#14086)."""
    machine = owned_by_set(a)
    machine["spec"]["version"] = "v1.33.1"
    sets = [machine_set(a, "1"), deployment(a, "1")]
    for made in sets:
        made["spec"]["template"]["spec"]["version"] = "v1.33.1"
    node = a.node(status={"nodeInfo": {"kubeletVersion": kubelet}})

    said = a.Build(machine=machine, node=node, more=sets).decide().condition("UpToDate")

    text = f"* Node.status.nodeInfo.kubeletVersion {kubelet}, v1.33.1 required"
    assert said == (("False", "Updating", text) if behind else ("True", "UpToDate", ""))


def test_up_to_date_of_stand_alone_machines_is_left_alone(a: Any) -> None:
    machine = a.machine()
    machine["status"]["conditions"].append(a.condition("UpToDate", "False", "Mine", "says its owner"))

    assert a.Build(machine=machine).decide().condition("UpToDate") == ("False", "Mine", "says its owner")
    assert a.Build().decide().condition("UpToDate") is None


def gated(a: Any, *gates: tuple[str, str], polarity: str = "Positive") -> Any:
    machine = a.machine(spec={"readinessGates": [{"conditionType": t, "polarity": polarity} for t, _ in gates]})
    status = "True" if polarity == "Negative" else "False"
    machine["status"]["conditions"] += [a.condition(t, status, "Broken", text) for t, text in gates]
    return machine


@pytest.mark.parametrize(
    ("gates", "polarity", "expected"),
    [
        pytest.param(
            [("APIServerPodHealthy", "m"), ("SchedulerPodHealthy", "m")], "Positive", "* Control plane components: m", id="23-equal"
        ),
        pytest.param(
            [("APIServerPodHealthy", "m"), ("EtcdPodHealthy", "m")], "Positive", "* Control plane components: m", id="23-etcd-pod-joins"
        ),
        pytest.param(
            [("APIServerPodHealthy", "m"), ("EtcdMemberHealthy", "m")],
            "Positive",
            "* APIServerPodHealthy: m\n* EtcdMemberHealthy: m",
            id="23-etcd-member-does-not",
        ),
        pytest.param([("Bad", "m")], "Negative", "* Bad: m", id="23-negative-polarity"),
    ],
)
def test_readiness_gates_count_for_ready(a: Any, gates: Any, polarity: str, expected: str) -> None:
    answer = a.Build(machine=gated(a, *gates, polarity=polarity)).decide()

    assert answer.condition("Ready") == ("False", "NotReady", expected)


def test_a_missing_health_check_is_tolerated(a: Any) -> None:
    assert a.Build().decide().condition("Ready") == ("True", "Ready", "")


def test_a_gate_on_ready_itself_is_an_internal_error(a: Any) -> None:
    answer = a.Build(machine=a.machine(spec={"readinessGates": [{"conditionType": "Ready"}]})).decide()

    assert answer.condition("Ready") == ("Unknown", "InternalError", CHECK_LOGS)


@pytest.mark.parametrize(
    ("ready_for", "expected", "requeue"),
    [
        pytest.param(20, ("False", "WaitingForMinReadySeconds", ""), 40, id="24-waits-for-exactly-the-rest"),
        pytest.param(60, ("True", "Available", ""), None, id="24-long-enough"),
    ],
)
def test_min_ready_seconds_delay_availability(a: Any, ready_for: int, expected: Any, requeue: float | None) -> None:
    machine = a.machine(spec={"minReadySeconds": 60})
    machine["status"]["conditions"][1] = a.condition("Ready", since=a.ago(seconds=ready_for))
    answer = a.Build(machine=machine).decide()

    assert (answer.condition("Available"), answer.requeue) == (expected, requeue)


def test_with_everything_gone_and_a_hook_left_ready_is_still_well_formed(a: Any) -> None:
    machine = a.deleted(metadata={"annotations": {"pre-drain.delete.hook.machine.cluster.x-k8s.io/backup": ""}})
    answer = a.Build(machine=machine, bootstrap=None, infra=None, node=None, more=[a.other_control_plane()]).decide()

    assert answer.condition("Deleting")[1] == "WaitingForPreDrainHook"
    assert answer.condition("Ready") == ("False", "NotReady", "* Deleting: Machine deletion in progress, stage: WaitingForPreDrainHook")


# --------------------------------------------------------------------------------------------------------- deletion

PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"


@pytest.mark.parametrize("kind", ["KubeadmControlPlane", "RKE2ControlPlane"])
@pytest.mark.parametrize("waited", [False, True])
def test_a_control_plane_machine_is_not_drained_again_after_its_pre_terminate_wait(a: Any, kind: str, waited: bool) -> None:
    """Its etcd member is gone by then, and its API server with it: an eviction would never be answered."""
    machine = a.deleted(
        metadata={
            "labels": {"cluster.x-k8s.io/control-plane": ""},
            "ownerReferences": [a.owner(kind, "kcp", "uid-kcp", "controlplane.cluster.x-k8s.io")],
        },
        status={"deletion": {"waitForPreTerminateHookStartTime": a.ago(seconds=90)}} if waited else {},
    )
    answer = a.Build(machine=machine, remote=[a.pod("web")], more=[a.other_control_plane()]).decide()

    assert (("create", "Eviction", "web") in answer.actions) is not waited
    assert ("nodeDrainStartTime" in answer.status.get("deletion", {})) is not waited


@pytest.mark.parametrize(
    ("hook", "field"), [(PRE_DRAIN, "waitForPreDrainHookStartTime"), (PRE_TERMINATE, "waitForPreTerminateHookStartTime")]
)
async def test_the_start_of_a_wait_for_hooks_is_written_down_once(a: Any, hook: str, field: str) -> None:
    running = a.Build(machine=a.deleted(metadata={"annotations": {hook: ""}}), more=[a.other_control_plane()]).start()

    await running.run()
    first = codec.to_json((await running.machine()).status.deletion)[field]
    await running.run(seconds=30)

    assert codec.to_json((await running.machine()).status.deletion)[field] == first == a.ago()


@pytest.mark.parametrize(
    ("seconds", "started", "drains"),
    [
        pytest.param(0, "hours=20", True, id="27-zero-is-no-limit"),
        pytest.param(600, "seconds=599", True, id="27-not-over"),
        pytest.param(600, "seconds=600", False, id="27-over"),
        pytest.param(600, None, True, id="27-counted-from-the-recorded-start-only"),
    ],
)
def test_the_drain_timeout_ends_the_drain(a: Any, seconds: int, started: str | None, drains: bool) -> None:
    unit, _, count = (started or "").partition("=")
    status = {"deletion": {"nodeDrainStartTime": a.ago(**{unit: int(count)})}} if started else {}
    machine = a.deleted(at=a.ago(days=2), spec={"deletion": {"nodeDrainTimeoutSeconds": seconds}}, status=status)
    answer = a.Build(machine=machine, remote=[a.pod("web")], more=[a.other_control_plane()]).decide()

    assert (("create", "Eviction", "web") in answer.actions) is drains


def test_terminating_pods_and_volumes_on_an_unreachable_node_do_not_block(a: Any) -> None:
    gone = a.pod("web", metadata={"deletionTimestamp": a.ago(seconds=2), "finalizers": ["x/y"]})
    node = a.node(ready="Unknown", status={"volumesAttached": [{"name": "v", "devicePath": ""}]})
    answer = a.Build(machine=a.deleted(), node=node, remote=[gone], more=[a.other_control_plane()]).decide()

    assert answer.condition("Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_a_second_look_within_20_seconds_does_not_ask_the_workload_cluster(a: Any) -> None:
    blocked = {"verb": "create", "kind": "Eviction", "status": {"code": 429, "reason": "TooManyRequests", "message": "budget"}}
    build = a.Build(machine=a.deleted(), remote=[a.pod("web")], more=[a.other_control_plane()], workload={"unwritable": [blocked]})
    running = build.start()
    first = await running.run()
    said = [c.message for c in (await running.machine()).status.conditions if c.type == "Deleting"]
    asked = count_lists(running)
    second = await running.run(seconds=5)
    resting = asked()
    third = await running.run(seconds=15)

    assert [r.requeue_after.total_seconds() for r in (first, second, third)] == [20, 15, 20]
    assert (resting, asked()) == (0, 1)
    assert [c.message for c in (await running.machine()).status.conditions if c.type == "Deleting"] == said


def count_lists(running: Any) -> Any:
    """How often Pods of the workload cluster are listed from now on."""
    from clusterwright.api.kubernetes import Pod

    client = next(iter(running.world.workload._clients.values()))
    listed, inner = [], client.list

    async def list_(kind: Any, **options: Any) -> Any:
        listed.append(kind)
        return await inner(kind, **options)

    client.list = list_
    return lambda: listed.count(Pod)


def test_a_pod_of_a_daemon_set_that_is_gone_is_evicted(a: Any) -> None:
    orphan = a.pod("agent", "kube-system", metadata={"ownerReferences": [a.owner("DaemonSet", "ds", "uid-ds", "apps")]})
    static = a.pod("etcd", "kube-system", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    answer = a.Build(machine=a.deleted(), remote=[orphan, static], more=[a.other_control_plane()]).decide()

    assert {name for _, kind, name in answer.actions if kind == "Eviction"} == {"agent"}


def test_a_daemon_set_that_cannot_be_looked_up_fails_the_drain(a: Any) -> None:
    owned = a.pod("agent", "kube-system", metadata={"ownerReferences": [a.owner("DaemonSet", "ds", "uid-ds", "apps")]})
    faults = {"unreadable": [{"kind": "DaemonSet"}]}
    answer = a.Build(machine=a.deleted(), remote=[owned], more=[a.other_control_plane()], workload=faults).decide()

    assert answer.error
    assert not [x for x in answer.actions if x[1] == "Eviction"]


def rule(behavior: str, name: str = "r", **spec: Any) -> Any:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDrainRule",
        "metadata": {"name": name, "namespace": "ns1"},
        "spec": {"drain": {"behavior": behavior}, **spec},
    }


@pytest.mark.parametrize(
    ("rules", "pod"),
    [
        pytest.param([rule("Perhaps")], {}, id="31-unknown-behavior"),
        pytest.param([rule("Drain")], {"metadata": {"namespace": "ghost"}}, id="31-pod-in-a-missing-namespace"),
        pytest.param(
            [rule("Drain", pods=[{"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}])],
            {},
            id="31-invalid-selector",
        ),
        pytest.param(
            [
                rule(
                    "Drain",
                    machines=[{"selector": {"matchLabels": {"never": "matches"}}}],
                    pods=[{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}],
                )
            ],
            {},
            id="31-invalid-selector-in-a-rule-for-other-machines",
        ),
    ],
)
def test_a_drain_is_never_partial(a: Any, rules: Any, pod: Any) -> None:
    answer = a.Build(machine=a.deleted(), remote=[a.pod("good"), a.pod("odd", **pod)], more=[a.other_control_plane(), *rules]).decide()

    assert answer.error
    assert answer.condition("Deleting")[1:] == ("DrainingNode", "Error draining Node, please check controller logs for errors")
    assert not [x for x in answer.actions if x[1] == "Eviction"]


def volume(a: Any, name: str, claim: str | None = None) -> Any:
    spec: Any = {"csi": {"driver": "d", "volumeHandle": name}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "web", "name": claim}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def attachment(name: str, volume: str) -> Any:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": "d", "nodeName": "node-1", "source": {"persistentVolumeName": volume}},
        "status": {"attached": True},
    }


@pytest.mark.parametrize(
    ("attached", "remote", "features", "line"),
    [
        pytest.param(
            ["loose"], [], {}, "* Node with .status.volumesAttached entries not matching a PersistentVolume: loose", id="32-no-pv"
        ),
        pytest.param(
            ["kubernetes.io/csi/d^pv1"],
            [("volume", "pv1", None)],
            {},
            "* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv1",
            id="32-no-claim",
        ),
        pytest.param(
            [], [("volume", "pv1", "data"), ("attachment", "va", "pv1")], {}, "* PersistentVolumeClaims: web/data", id="32-attachment"
        ),
        pytest.param(
            [],
            [("volume", "pv1", "data"), ("attachment", "va", "pv1")],
            {"MachineWaitForVolumeDetachConsiderVolumeAttachments": False},
            "",
            id="32-gate-off-ignores-attachments",
        ),
        pytest.param(
            ["kubernetes.io/csi/d^pv1"], [("volume", "pv1", "data"), ("skipped", "data", "")], {}, "", id="32-claim-of-a-skipped-pod"
        ),
    ],
)
def test_volumes(a: Any, attached: Any, remote: Any, features: Any, line: str) -> None:
    daemon_set = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ds", "namespace": "web"}, "spec": {}}
    made: list[Any] = [daemon_set]
    for what, name, other in remote:
        match what:
            case "volume":
                made.append(volume(a, name, other))
            case "attachment":
                made.append(attachment(name, other))
            case _:
                claim = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
                owned = {"ownerReferences": [a.owner("DaemonSet", "ds", "uid-ds", "apps")]}
                made.append(a.pod("agent", "web", metadata=owned, spec={"volumes": [claim]}))
    node = a.node(status={"volumesAttached": [{"name": n, "devicePath": ""} for n in attached]})
    answer = a.Build(
        machine=a.deleted(), node=node, remote=made, more=[a.other_control_plane()], observation={"features": features}
    ).decide()

    _, reason, message = answer.condition("Deleting")
    assert (reason, message.partition("\n")[2]) == (("WaitingForVolumeDetach", line) if line else ("WaitingForInfrastructureDeletion", ""))


def generic_control_plane(a: Any, **changes: Any) -> Any:
    base = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "GenericControlPlane",
        "metadata": {"name": "cp", "namespace": "ns1", "uid": "uid-cp", "finalizers": ["x/y"]},
        "status": {},
    }
    return a.merged(base, changes)


EXTERNAL = {"status": {"externalManagedControlPlane": True}}
GOING = {"metadata": {"deletionTimestamp": "2026-05-01T11:59:00Z"}}


@pytest.mark.parametrize(
    ("parts", "others", "control_plane", "allowed"),
    [
        pytest.param(
            {"machine": {"status": {"nodeRef": None}, "spec": {"providerID": None}}, "infra": {"spec": None}},
            1,
            None,
            False,
            id="33-no-node",
        ),
        pytest.param({}, 0, None, False, id="33-last-control-plane"),
        pytest.param({"cluster": GOING}, 1, None, False, id="33-cluster-deleting"),
        pytest.param({}, 1, GOING, False, id="33-control-plane-deleting"),
        pytest.param({}, 1, {**EXTERNAL, **GOING}, False, id="33-managed-externally-and-deleting"),
        pytest.param({}, 0, EXTERNAL, True, id="33-managed-externally"),
        pytest.param({}, 1, None, True, id="33-another-control-plane-stays"),
        pytest.param(
            {"machine": {"status": {"nodeRef": None, "initialization": None}, "spec": {"providerID": None}}, "infra": {"status": None}},
            1,
            None,
            True,
            id="33-provider-id-of-the-infrastructure-is-enough",
        ),
    ],
)
def test_the_node_is_touched_only_if_an_api_server_remains(a: Any, parts: Any, others: int, control_plane: Any, allowed: bool) -> None:
    build = a.Build(
        machine=a.deleted(**parts.get("machine", {})),
        cluster=a.cluster(**parts.get("cluster", {})),
        infra=a.infra(**parts.get("infra", {})),
        more=[a.other_control_plane()] * others,
    )
    if control_plane is not None:
        ref = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "GenericControlPlane", "name": "cp"}
        build.cluster = a.merged(build.cluster, {"spec": {"controlPlaneRef": ref}})
        build.more = [*build.more, generic_control_plane(a, **control_plane)]
        build.crds = [*build.crds, a.crd("GenericControlPlane", "controlplane.cluster.x-k8s.io")]
    answer = build.decide()

    assert answer.error == ""
    assert (answer.other("Node/node-1").get("spec", {}).get("unschedulable") is True) is allowed
    assert answer.condition("Deleting")[1] == "WaitingForInfrastructureDeletion"


def test_machines_that_cannot_be_listed_stop_the_deletion(a: Any) -> None:
    answer = a.Build(machine=a.deleted(), observation={"unlistable": ["Machine"]}).decide()

    assert answer.error
    assert answer.condition("Deleting") == ("True", "InternalError", CHECK_LOGS)


@pytest.mark.parametrize(
    ("limit", "since", "fails"),
    [
        pytest.param(10, 9, True, id="34-before-the-timeout"),
        pytest.param(10, 10, False, id="34-after-the-timeout"),
        pytest.param(0, 100_000, True, id="34-zero-is-for-ever"),
    ],
)
def test_a_node_that_cannot_be_deleted(a: Any, limit: int, since: int, fails: bool) -> None:
    machine = a.deleted(
        at=a.ago(seconds=since),
        metadata={"finalizers": ["machine.cluster.x-k8s.io", "example.com/keep"]},
        spec={"deletion": {"nodeDeletionTimeoutSeconds": limit}},
    )
    build = a.Build(machine=machine, bootstrap=None, infra=None, more=[a.other_control_plane()])
    build.workload = {"unwritable": [{"verb": "delete", "kind": "Node"}]}
    answer = build.decide()

    assert bool(answer.error) is fails
    assert answer.v1beta1("NodeHealthy") == ("False", "Warning", "DeletionFailed")
    assert answer.condition("Deleting")[1] == ("DeletingNode" if fails else "DeletionCompleted")
    assert ("machine.cluster.x-k8s.io" in answer.object["metadata"]["finalizers"]) is fails


# -------------------------------------------------------------------------------------------------------- contracts


@pytest.mark.parametrize(
    ("labels", "version", "flag"),
    [
        pytest.param({"cluster.x-k8s.io/v1beta1": "v1beta2"}, "v1beta2", {"ready": True}, id="contract-01-only-v1beta1"),
        pytest.param(
            {"cluster.x-k8s.io/v1beta1": "v1beta2", "cluster.x-k8s.io/v1beta2": "v1beta2"},
            "v1beta2",
            {"initialization": {"provisioned": True}},
            id="contract-01-both-means-v1beta2",
        ),
        pytest.param(
            {"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta2_v1"}, "v1", {"initialization": {"provisioned": True}}, id="contract-01-newest"
        ),
        pytest.param(
            {"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1beta2"}, "v1beta2", {"ready": True}, id="contract-01-empty"
        ),
    ],
)
def test_both_contract_versions_are_read(a: Any, labels: Any, version: str, flag: Any) -> None:
    group = "infrastructure.cluster.x-k8s.io"
    infra = a.infra(apiVersion=f"{group}/{version}", status={"initialization": None, "ready": None, **flag})
    crds = [a.crd("GenericBootstrapConfig", "bootstrap.cluster.x-k8s.io"), a.crd("GenericInfrastructureMachine", group, labels=labels)]
    answer = a.Build(machine=a.fresh(), infra=infra, crds=crds).decide()

    assert answer.error == ""
    assert answer.object["spec"]["providerID"] == "generic:///m1"


def test_contract_01_no_label_is_an_error(a: Any) -> None:
    crds = [
        a.crd("GenericBootstrapConfig", "bootstrap.cluster.x-k8s.io"),
        a.crd("GenericInfrastructureMachine", "infrastructure.cluster.x-k8s.io", labels={}),
    ]
    answer = a.Build(crds=crds).decide()

    assert "contract versions" in answer.error
    assert answer.condition("InfrastructureReady") == ("Unknown", "InternalError", CHECK_LOGS)


def test_contract_09_without_failure_fields_there_is_not_a_failure(a: Any) -> None:
    answer = a.Build().decide()

    assert "failureReason" not in answer.status.get("deprecated", {}).get("v1beta1", {})


def test_contract_10_ready_of_v1beta2_conditions_beats_the_others(a: Any) -> None:
    status = {"v1beta2": {"conditions": [a.condition("Ready", "False", "New", "new")]}, "conditions": [a.condition("Ready", "True", "Old")]}
    answer = a.Build(infra=a.infra(status=status)).decide()

    assert answer.condition("InfrastructureReady") == ("False", "New", "new")


def test_contract_11_an_object_of_another_controller_is_never_taken_over(a: Any) -> None:
    theirs = [{"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "uid-f", "controller": True}]
    answer = a.Build(infra=a.infra(metadata={"ownerReferences": theirs})).decide()

    assert "already owned by another Fleet controller f" in answer.error
    assert answer.actions == set()


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        pytest.param("GenericPolicy", "genericpolicies", id="contract-13-y"),
        pytest.param("GenericClass", "genericclasses", id="contract-13-s"),
        pytest.param("GenericBox", "genericboxes", id="contract-13-x"),
    ],
)
def test_contract_13_names_of_crds_are_computed(a: Any, kind: str, plural: str) -> None:
    group = "infrastructure.cluster.x-k8s.io"
    machine = a.fresh(spec={"infrastructureRef": {"kind": kind}})
    crds = [a.crd("GenericBootstrapConfig", "bootstrap.cluster.x-k8s.io"), a.crd(kind, group, plural)]
    answer = a.Build(machine=machine, infra=a.infra(kind=kind), crds=crds).decide()

    assert answer.error == ""
    assert answer.object["spec"]["providerID"] == "generic:///m1"


def test_contract_14_an_owner_reference_of_an_old_version_is_replaced(a: Any) -> None:
    old = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "m1", "uid": "uid-m1", "controller": True}
    answer = a.Build(infra=a.infra(metadata={"ownerReferences": [old]})).decide()

    owners = answer.other("GenericInfrastructureMachine/m1")["metadata"]["ownerReferences"]
    assert [(o["apiVersion"], o["kind"]) for o in owners] == [("cluster.x-k8s.io/v1beta2", "Machine")]


# ----------------------------------------------------------------------------------------------------------- errors


async def test_a_missing_connection_alone_is_not_retried_in_a_hurry(a: Any) -> None:
    running = a.Build(workload={"connected": False}).start()

    with pytest.raises(ApiError) as raised:
        await running.run()

    assert (raised.value.retry_after, raised.value.is_expected) == (20, True)


async def test_other_failures_together_with_a_missing_connection_are_retried_soon(a: Any) -> None:
    faults = {"unreadable": [{"kind": "GenericBootstrapConfig", "namespace": "ns1", "name": "m1"}]}
    running = a.Build(workload={"connected": False}, observation=faults).start()

    with pytest.raises(ApiError, match=r"cannot be read; .*connection to the workload cluster is down") as raised:
        await running.run()

    assert (raised.value.retry_after, raised.value.is_expected) == (None, False)


# ------------------------------------------------------------------------------------- what providers may report


@pytest.mark.parametrize("reason", ["Quota exceeded!", "", "-", "x" * 2000], ids=["words", "empty", "dash", "endless"])
def test_a_reason_that_the_api_would_refuse_does_not_block_the_status(a: Any, reason: str) -> None:
    reported = a.condition("Ready", "False", reason, "no disk left") | {"reason": reason}
    answer = a.Build(infra=a.infra(status={"conditions": [reported]})).decide()

    written = next(c for c in answer.object["status"]["conditions"] if c["type"] == "InfrastructureReady")
    assert written["status"] == "False"
    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", written["reason"])
    assert len(written["reason"]) <= 1024
    assert "no disk left" in written["message"]
    assert reason in written["message"]
