"""Edge cases of the Cluster controller, one test each; and providers that misbehave."""

from __future__ import annotations

import base64
import copy
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from clusterwright.kubeadm.certificates import decode_certificate
from seeds.seed_scenarios import DELETING, INITIALIZED, NEW, PROVIDERS, STANDALONE, ca_secret, kubeconfig_secret, up_to_date
from seeds.seed_worlds import (
    BEFORE,
    CLUSTER_CLASS,
    CONTROL_PLANE,
    CRDS,
    FINALIZER,
    INFRASTRUCTURE,
    LABEL,
    NAME,
    OLD_CRDS,
    TOPOLOGY,
    Json,
    actions_of,
    child,
    cluster,
    condition,
    conditions_of,
    control_plane,
    crd,
    infrastructure,
    machine,
    old_conditions_of,
    one_pass,
    owner,
    secret,
)

LOGS = "Please check controller logs for errors"
READY = [condition(t, "True") for t in ("Ready",)]
NO_ENDPOINT: dict[str, Any] = {"controlPlaneEndpoint": None}


class Seen:
    """A pass, and short questions about it."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer
        self.object: Json = answer["object"] or {}
        self.status: Json = self.object.get("status", {})
        self.spec: Json = self.object.get("spec", {})
        self.conditions = conditions_of(answer)
        self.old = old_conditions_of(answer)
        self.actions = actions_of(answer)
        self.requeue = answer["requeueAfterSeconds"]
        self.error = answer["error"]
        self.initialization: Json = self.status.get("initialization", {})
        self.workers: Json = {k: v for k, v in self.status.get("workers", {}).items() if v is not None}
        self.plane: Json = {k: v for k, v in self.status.get("controlPlane", {}).items() if v is not None}


def look(*objects: Json, **more: Any) -> Seen:
    return Seen(one_pass(*objects, **more))


# ------------------------------------------------------------------------ entry, pause, finalizer, phases


def test_another_finalizer_deleting_own_finalizer_not_added() -> None:
    s = look(cluster(deleting=True, finalizers=["other.example.com/x"]), *PROVIDERS)

    assert s.object["metadata"]["finalizers"] == ["other.example.com/x"]
    assert ("delete", "ExampleControlPlane", "cp") in s.actions


def test_finalizer_already_there_pass_continues() -> None:
    assert look(cluster(), *PROVIDERS).answer["rows"]["reconcile"] == "normal"


def test_second_pass_nothing_changed_no_write() -> None:
    first = look(cluster(), *PROVIDERS)
    second = look(first.object, *PROVIDERS)

    assert second.object == first.object
    assert second.actions == []


def test_generation_bumped_not_paused_same_pass_observedgeneration_raised() -> None:
    s = look(cluster(generation=3), *PROVIDERS)
    paused = next(c for c in s.status["conditions"] if c["type"] == "Paused")

    assert paused["observedGeneration"] == 3
    assert s.status["observedGeneration"] == 3


def test_generation_bumped_paused_patched_at_once_pass_stops() -> None:
    paused = condition("Paused", "True", "Paused", "Cluster spec.paused is set to true") | {"observedGeneration": 2}
    s = look(cluster(paused, spec={"paused": True}, generation=3), *PROVIDERS)
    written = next(c for c in s.status["conditions"] if c["type"] == "Paused")

    assert written["observedGeneration"] == 3
    assert "phase" not in s.status


def test_annotation_paused_with_value_false_paused() -> None:
    s = look(cluster(annotations={"cluster.x-k8s.io/paused": "false"}), *PROVIDERS)

    assert s.conditions["Paused"] == ("True", "Paused", "Cluster has the cluster.x-k8s.io/paused annotation")


def test_spec_paused_and_annotation_both_sentences() -> None:
    s = look(cluster(spec={"paused": True}, annotations={"cluster.x-k8s.io/paused": ""}), *PROVIDERS)

    assert s.conditions["Paused"][2] == "Cluster spec.paused is set to true, Cluster has the cluster.x-k8s.io/paused annotation"


def test_deleting_and_paused_nothing_is_deleted() -> None:
    s = look(cluster(deleting=True, spec={"paused": True}), *PROVIDERS)

    assert s.actions == []
    assert s.conditions["Paused"][0] == "True"


def test_infrastructure_errors_control_plane_waits_all_phases_run_error_without_requeue() -> None:
    s = look(
        cluster(status=NEW), infrastructure(), observed_only(), unreadable=[{"kind": "ExampleCluster", "namespace": "ns", "name": "infra"}]
    )

    assert bool(s.error)
    assert s.requeue is None
    assert s.conditions["ControlPlaneAvailable"][1] == "DoesNotExist"


def observed_only() -> Json:
    """Nothing: a Secret that nobody asks for."""
    return secret("unrelated")


def test_topology_deleting_class_gone_deletion_goes_on_ruling() -> None:
    s = look(cluster(INITIALIZED, spec={"topology": TOPOLOGY}, deleting=True))

    assert s.answer["object"] is None
    assert not s.error


def test_provisioned_without_endpoint_endpoint_stays_empty() -> None:
    s = look(cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(), control_plane(initialized=False))

    assert "controlPlaneEndpoint" not in s.spec
    assert s.initialization["infrastructureProvisioned"] is True


def test_provisioned_with_endpoint_copied() -> None:
    s = look(
        cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}), control_plane()
    )

    assert s.spec["controlPlaneEndpoint"] == {"host": "h", "port": 1}


def test_endpoint_valid_infrastructure_shows_another_and_is_no_longer_provisioned_unchanged() -> None:
    s = look(cluster(), infrastructure(provisioned=False, spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}), control_plane())

    assert s.spec["controlPlaneEndpoint"]["host"] == "10.0.0.10"
    assert s.initialization["infrastructureProvisioned"] is True


def test_infrastructure_deleting_never_provisioned_endpoint_not_copied() -> None:
    infra = infrastructure(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}, deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)
    s = look(cluster(spec=NO_ENDPOINT, status=NEW), infra, control_plane(initialized=False))

    assert "controlPlaneEndpoint" not in s.spec
    assert "infrastructureProvisioned" not in s.initialization


def test_no_failuredomains_any_more_emptied() -> None:
    assert "failureDomains" not in look(cluster(status={"failureDomains": [{"name": "old", "controlPlane": True}]}), *PROVIDERS).status


def test_other_failuredomains_replaced() -> None:
    s = look(
        cluster(status={"failureDomains": [{"name": "old"}]}),
        infrastructure(status={"failureDomains": [{"name": "n", "attributes": {"a": "b"}}]}),
        control_plane(),
    )

    assert s.status["failureDomains"] == [{"name": "n", "controlPlane": False, "attributes": {"a": "b"}}]


def test_failuredomains_of_the_other_contract_error_both_ways() -> None:
    new = look(cluster(), infrastructure(status={"failureDomains": {"a": {}}}), control_plane())
    old = look(
        cluster(),
        infrastructure(provisioned=None, status={"ready": True, "failureDomains": [{"name": "a"}]}),
        control_plane(initialized=None, status={"initialized": True}),
        crds=OLD_CRDS,
    )

    assert "failureDomains" in new.error
    assert "failureDomains" in old.error


def test_only_the_v1beta1_label_v1beta1_paths() -> None:
    infra = infrastructure(provisioned=None, status={"ready": True, "failureDomains": {"b": {"controlPlane": True}, "a": {}}})
    s = look(cluster(status=NEW), infra, control_plane(initialized=None, status={"initialized": True}), crds=OLD_CRDS)

    assert s.initialization == {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
    assert [d["name"] for d in s.status["failureDomains"]] == ["a", "b"]


def test_both_labels_v1beta2_wins_highest_version_of_its_list() -> None:
    definition = crd(INFRASTRUCTURE, v1beta2="v1alpha9_v1_v1beta3", v1beta1="v2")
    s = look(cluster(status=NEW), *PROVIDERS, crds=[definition, CRDS[1]])

    assert s.initialization["infrastructureProvisioned"] is True


def test_crd_missing_or_without_labels_an_error_no_30_s() -> None:
    missing = look(cluster(), *PROVIDERS, crds=[CRDS[1]])
    bare = look(cluster(), *PROVIDERS, crds=[crd(INFRASTRUCTURE), CRDS[1]])

    assert all(s.error and s.requeue is None and s.conditions["InfrastructureReady"][1] == "InternalError" for s in (missing, bare))


def test_topology_the_cluster_is_the_controller_of_both() -> None:
    s = look(cluster(spec={"topology": TOPOLOGY}), CLUSTER_CLASS, *PROVIDERS)
    owners = [o["metadata"]["ownerReferences"][0] for o in s.answer["others"].values()]

    assert len(owners) == 2
    assert all(o["controller"] is True and o["blockOwnerDeletion"] is True for o in owners)


def test_no_topology_plain_owner_and_the_label() -> None:
    bare: Json = {"labels": None, "ownerReferences": []}
    s = look(cluster(), infrastructure(**bare), control_plane(**bare))

    assert all(
        "controller" not in o["metadata"]["ownerReferences"][0] and o["metadata"]["labels"][LABEL] == NAME
        for o in s.answer["others"].values()
    )


def test_control_plane_annotated_as_paused_the_phase_works() -> None:
    assert (
        look(cluster(status=NEW), infrastructure(), control_plane(annotations={"cluster.x-k8s.io/paused": ""})).initialization[
            "controlPlaneInitialized"
        ]
        is True
    )


def test_initialized_without_ready_condition_both_v1beta1_conditions_true() -> None:
    s = look(cluster(status=NEW), infrastructure(), control_plane(conditions=[]))

    assert s.old["ControlPlaneReady"][0] == s.old["ControlPlaneInitialized"][0] == "True"


def test_no_longer_initialized_latched_endpoint_unchanged() -> None:
    s = look(
        cluster(INITIALIZED), infrastructure(), control_plane(initialized=False, spec={"controlPlaneEndpoint": {"host": "h", "port": 1}})
    )

    assert s.initialization["controlPlaneInitialized"] is True
    assert s.spec["controlPlaneEndpoint"]["host"] == "10.0.0.10"


def test_control_plane_deleting_nothing_is_taken_from_it() -> None:
    plane = control_plane(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}, deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)
    s = look(cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(), plane)

    assert "controlPlaneEndpoint" not in s.spec
    assert "controlPlaneInitialized" not in s.initialization
    assert "ControlPlaneInitialized" not in s.old


def test_control_plane_reference_v1beta1_stand_alone_check_skipped() -> None:
    assert "ControlPlaneInitialized" not in look(cluster(status=NEW), infrastructure(), machine("m", control_plane=True)).old


# ------------------------------------------------------------------------------------------------ deletion


def many(kind: str, prefix: str, count: int) -> list[Json]:
    return [child(kind, f"{prefix}-{n}", deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0) for n in range(count)]


def crowd() -> list[Json]:
    gone: Json = {"deletionTimestamp": BEFORE, "deletionGracePeriodSeconds": 0}
    workers = [machine(f"w-{n}", **gone) for n in range(8)]
    planes = [machine(f"cp-{n}", control_plane=True, **gone) for n in range(3)]
    return [*many("MachineDeployment", "md", 2), *many("MachineSet", "ms", 2), *many("MachinePool", "mp", 2), *workers, *planes]


WAITING = "* MachineDeployments: md-0, md-1\n* MachineSets: ms-0, ms-1\n* MachinePools: mp-0, mp-1\n* Worker Machines: w-0, w-1, w-2, w-3, w-4, ... (3 more)"


def test_seventeen_pending_without_control_plane_reference() -> None:
    s = look(cluster(deleting=True, spec=STANDALONE), infrastructure(), *crowd())

    assert s.conditions["Deleting"] == ("True", "WaitingForWorkersDeletion", "* Control plane Machines: cp-0, cp-1, cp-2\n" + WAITING)
    assert s.requeue == 5


def test_the_same_with_control_plane_reference() -> None:
    assert look(DELETING, *PROVIDERS, *crowd()).conditions["Deleting"][2] == WAITING


def test_owned_children_in_order_control_plane_machines_last() -> None:
    objects = [
        child("MachineSet", "ms"),
        child("MachinePool", "mp"),
        child("MachineDeployment", "md"),
        machine("w"),
        machine("cp", control_plane=True),
        machine("free", owned=False),
    ]
    s = look(cluster(deleting=True, spec=STANDALONE), infrastructure(), *objects)

    assert [(k, n) for _, k, n in s.actions] == [
        ("MachinePool", "mp"),
        ("MachineDeployment", "md"),
        ("MachineSet", "ms"),
        ("Machine", "w"),
        ("Machine", "cp"),
    ]


def test_only_machinesets_of_others_left_nothing_deleted_still_5_s() -> None:
    s = look(DELETING, *PROVIDERS, child("MachineSet", "ms", owned=False))

    assert s.actions == []
    assert s.requeue == 5


def test_child_already_deleting_not_deleted_again() -> None:
    s = look(DELETING, *PROVIDERS, child("MachineSet", "ms", deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0))

    assert s.actions == []
    assert s.requeue == 5


def test_the_last_finalizer_goes_no_error_although_the_object_is_gone() -> None:
    s = look(DELETING)

    assert s.answer["object"] is None
    assert not s.error


# ---------------------------------------------------------------------------------------------- conditions


def test_ready_true_without_reason() -> None:
    s = look(cluster(), infrastructure(conditions=[{"type": "Ready", "status": "True", "message": "m"}]), control_plane())

    assert s.conditions["InfrastructureReady"] == ("True", "Ready", "m")


def test_read_error_while_deleting() -> None:
    s = look(DELETING, *PROVIDERS, unreadable=[{"kind": "ExampleCluster", "namespace": "ns", "name": "infra"}])

    assert s.conditions["InfrastructureReady"] == ("Unknown", "InternalError", LOGS)


def test_control_plane_without_the_field() -> None:
    assert (
        look(cluster(status=NEW), infrastructure(), control_plane(initialized=None)).conditions["ControlPlaneInitialized"][1]
        == "NotInitialized"
    )


def test_two_false_one_unknown_one_true_issues_first_true_not_shown() -> None:
    machines = [
        machine("a", condition("Ready", "Unknown", "R", "hm")),
        machine("b", condition("Ready", "False", "R", "no")),
        machine("c", condition("Ready", "False", "R", "never")),
        machine("d", condition("Ready", "True", "R", "yes")),
    ]
    s = look(cluster(INITIALIZED), *PROVIDERS, *machines)

    assert s.conditions["WorkerMachinesReady"] == ("False", "NotReady", "* Machine b: no\n* Machine c: never\n* Machine a: hm")


def test_two_silent_machines_one_created_5_s_ago_only_the_older_counts() -> None:
    s = look(cluster(INITIALIZED), *PROVIDERS, machine("old"), machine("new", creationTimestamp="2026-05-01T11:59:55Z"))

    assert s.conditions["WorkerMachinesUpToDate"][2] == "* Machine old: Condition UpToDate not yet reported"


def test_same_issue_twice_two_silent_grouped_issues_first() -> None:
    no = up_to_date("False", "R", "no")
    s = look(cluster(INITIALIZED), *PROVIDERS, machine("a", no), machine("b", no), machine("c"), machine("d"))

    assert s.conditions["WorkerMachinesUpToDate"][2] == "* Machines a, b: no\n* Machines c, d: Condition UpToDate not yet reported"


def test_neither_reports_rollingout_only_the_machinedeployment_line() -> None:
    s = look(cluster(INITIALIZED), *PROVIDERS, child("MachineDeployment", "md"))

    assert s.conditions["RollingOut"] == ("Unknown", "RollingOutUnknown", "* MachineDeployment md: Condition RollingOut not yet reported")


def test_control_plane_missing_no_workers_nothing_scales() -> None:
    s = look(cluster(status=NEW), infrastructure())

    assert all(s.conditions[t][0] == "False" for t in ("RollingOut", "ScalingUp", "ScalingDown"))


def test_three_kinds_and_an_owned_machineset_scaling_budget_of_three() -> None:
    up = condition("ScalingUp", "True", "R", "up")
    more = [
        child("MachineDeployment", "md", condition("ScalingUp", "True", "R", "md up")),
        child("MachinePool", "mp", condition("ScalingUp", "True", "R", "mp up")),
        child("MachineSet", "ms", condition("ScalingUp", "True", "R", "ms up")),
    ]
    s = look(cluster(INITIALIZED), infrastructure(), control_plane(conditions=[up]), *more)

    assert (
        s.conditions["ScalingUp"][2]
        == "* ExampleControlPlane cp: up\n* MachineDeployment md: md up\n* MachinePool mp: mp up\nAnd 1 MachineSet with other issues"
    )


def test_machineset_of_another_owner_scaling_ignored() -> None:
    s = look(cluster(INITIALIZED), *PROVIDERS, child("MachineSet", "ms", condition("ScalingUp", "True", "R", "x"), owned=False))

    assert s.conditions["ScalingUp"] == ("False", "NotScalingUp", "")


def test_available_of_a_cluster_that_reports_nothing_else_computed_from_this_pass() -> None:
    assert look(cluster(), *PROVIDERS).conditions["Available"] == ("True", "Available", "")


def test_topology_topologyreconciled_missing_unknown_one_line() -> None:
    bound = [owner() | {"controller": True}]
    s = look(
        cluster(INITIALIZED, spec={"topology": TOPOLOGY}),
        CLUSTER_CLASS,
        infrastructure(ownerReferences=bound),
        control_plane(ownerReferences=bound),
    )

    assert s.conditions["Available"] == ("Unknown", "AvailableUnknown", "* TopologyReconciled: Condition not yet reported")


def test_topology_behind_information_with_an_issue_it_is_dropped() -> None:
    behind = condition("TopologyReconciled", "False", "ClusterUpgrading", "upgrading")
    fine = look(cluster(INITIALIZED, behind), *PROVIDERS).conditions["Available"]
    broken = look(
        cluster(INITIALIZED, behind), infrastructure(), control_plane(conditions=[condition("Available", "False", "R", "no")])
    ).conditions["Available"]

    assert fine == ("True", "Available", "* TopologyReconciled: upgrading")
    assert broken[2] == "* ControlPlaneAvailable: no"


def test_clusterclass_not_reconciled_an_issue() -> None:
    assert (
        look(cluster(INITIALIZED, condition("TopologyReconciled", "False", "ClusterClassNotReconciled", "no")), *PROVIDERS).conditions[
            "Available"
        ][0]
        == "False"
    )


def test_gates_on_cluster_and_class_only_the_cluster_s() -> None:
    bound = [owner() | {"controller": True}]
    class_ = copy.deepcopy(CLUSTER_CLASS) | {"spec": {"availabilityGates": [{"conditionType": "OfClass"}]}}
    providers = (infrastructure(ownerReferences=bound), control_plane(ownerReferences=bound))
    done = condition("TopologyReconciled", "True")
    own = look(cluster(INITIALIZED, done, spec={"topology": TOPOLOGY, "availabilityGates": [{"conditionType": "Own"}]}), class_, *providers)
    inherited = look(cluster(INITIALIZED, done, spec={"topology": TOPOLOGY}), class_, *providers)

    assert own.conditions["Available"][2] == "* Own: Condition not yet reported"
    assert inherited.conditions["Available"][2] == "* OfClass: Condition not yet reported"


def test_gate_of_negative_polarity_that_is_true_an_issue() -> None:
    s = look(
        cluster(
            INITIALIZED,
            condition("Frozen", "True", "R", "ice"),
            spec={"availabilityGates": [{"conditionType": "Frozen", "polarity": "Negative"}]},
        ),
        *PROVIDERS,
    )

    assert s.conditions["Available"] == ("False", "NotAvailable", "* Frozen: ice")


def test_deleting_both_objects_gone_only_the_deleting_line() -> None:
    s = look(cluster(INITIALIZED, deleting=True), child("MachineSet", "ms"))

    assert s.conditions["Available"] == ("False", "NotAvailable", "* Deleting:\n  * MachineSets: ms")


# ----------------------------------------------------------------------------------------- counters, phase


def test_control_plane_missing_no_counters() -> None:
    assert look(cluster(INITIALIZED, status={"controlPlane": {"replicas": 3}}), infrastructure()).plane == {}


def of(obj: Json, *versions: tuple[str, int]) -> Json:
    """The object, with these versions in its status."""
    obj["status"]["versions"] = [{"version": v, "replicas": n} for v, n in versions]
    return obj


def test_13341_the_versions_that_a_control_plane_reports_are_shown_and_the_upgrade_plan_stays() -> None:
    before = {"controlPlane": {"upgradePlan": [{"version": "v1.35.0"}], "versions": [{"version": "v1.1.0"}]}}
    told = of(control_plane(), ("v1.33.0", 1), ("v1.34.0", 2))

    seen = look(cluster(status=before), infrastructure(), told).plane
    wrong = look(cluster(status=before), infrastructure(), of(control_plane(), ("v1.34.0", 2), ("v1.33.0", 1))).plane
    silent = look(cluster(status=before), infrastructure(), control_plane()).plane
    gone = look(cluster(INITIALIZED, status=before), infrastructure()).plane

    assert seen["versions"] == [{"version": "v1.33.0", "replicas": 1}, {"version": "v1.34.0", "replicas": 2}]
    assert wrong["versions"] == [{"version": "v1.1.0"}], "what breaks the contract changes nothing"
    assert "versions" not in silent
    assert [s["upgradePlan"] for s in (seen, wrong, silent, gone)] == [[{"version": "v1.35.0"}]] * 4


def test_13341_versions_of_workers_are_added_up_over_all_that_belong_to_the_cluster() -> None:
    workers = [
        of(child("MachineDeployment", "md"), ("v1.33.0", 1), ("v1.34.0", 2)),
        of(child("MachinePool", "mp"), ("v1.34.0", 3)),
        of(child("MachineSet", "ms"), ("v1.32.0", 1)),
        of(child("MachineSet", "of-md", owned=False), ("v1.33.0", 9)),
        machine("m"),
    ]
    workers[-1]["spec"]["version"] = "v1.34.1"
    plane = machine("cp", control_plane=True)
    plane["status"]["nodeInfo"] = {"kubeletVersion": "v1.33.5"}

    s = look(cluster(spec=STANDALONE, status={"workers": {"upgradePlan": [{"version": "v1.35.0"}]}}), infrastructure(), *workers, plane)

    found = [(v["version"], v["replicas"]) for v in s.workers["versions"]]
    assert found == [("v1.32.0", 1), ("v1.33.0", 1), ("v1.34.0", 5), ("v1.34.1", 1)]
    assert s.plane["versions"] == [{"version": "v1.33.5", "replicas": 1}]
    assert s.workers["upgradePlan"] == [{"version": "v1.35.0"}]


def test_zero_is_zero() -> None:
    assert look(cluster(), infrastructure(), control_plane(status={"upToDateReplicas": 0})).plane["upToDateReplicas"] == 0


def test_stand_alone_five_machines_two_ready_one_available_three_up_to_date() -> None:
    yes = [["Ready", "UpToDate"], ["Ready", "UpToDate", "Available"], ["UpToDate"], [], []]
    machines = [machine(f"m{n}", *(condition(t, "True") for t in types), control_plane=True) for n, types in enumerate(yes)]
    s = look(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig"), *machines)

    assert s.plane == {"desiredReplicas": 5, "replicas": 5, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3}


def test_stand_alone_without_machines_no_counters() -> None:
    assert look(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig")).plane == {}


def test_nobody_counts_no_worker_counters() -> None:
    s = look(
        cluster(),
        *PROVIDERS,
        child("MachineDeployment", "md", replicas=None),
        child("MachineSet", "ms", replicas=None),
        machine("m", owned=False),
    )

    assert s.workers == {}


def test_provisioned_no_endpoint_provisioning_until_initialized_ruling() -> None:
    assert look(cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(), control_plane(initialized=False)).status["phase"] == "Provisioning"


def test_no_infrastructure_reference_control_plane_initialized_provisioned() -> None:
    assert look(cluster(spec={"infrastructureRef": None}, status=NEW), control_plane()).status["phase"] == "Provisioned"


def test_kubeconfig_of_an_ipv6_endpoint() -> None:
    s = look(cluster(spec=STANDALONE | {"controlPlaneEndpoint": {"host": "fd00::1", "port": 6443}}), infrastructure(), ca_secret())
    document = yaml.safe_load(s.answer["data"]["Secret/c1-kubeconfig/value"])
    certificate = base64.b64decode(document["users"][0]["user"]["client-certificate-data"])

    assert document["clusters"][0]["cluster"]["server"] == "https://[fd00::1]:6443"
    assert b"CERTIFICATE" in certificate


def test_a_renewed_client_certificate_is_good_for_a_year_and_the_server_stays() -> None:
    s = look(
        cluster(spec=STANDALONE | {"controlPlaneEndpoint": {"host": "elsewhere", "port": 1}}),
        infrastructure(),
        ca_secret(),
        kubeconfig_secret(days_left=100),
    )
    document = yaml.safe_load(s.answer["data"]["Secret/c1-kubeconfig/value"])
    certificate = decode_certificate(base64.b64decode(document["users"][0]["user"]["client-certificate-data"]))
    left = certificate.not_valid_after_utc - datetime.fromisoformat("2026-05-01T12:00:00Z")

    assert left == timedelta(days=365)
    assert document["clusters"][0]["cluster"]["server"] == "https://10.0.0.10:6443"


# -------------------------------------------------------------------------------- providers that misbehave

HUGE = "x" * 40_000
BAD_STATUSES: list[Any] = [
    "text",
    7,
    [],
    ["x"],
    {"conditions": "x"},
    {"conditions": {"a": 1}},
    {"conditions": [None, 1, [], {}]},
    {"v1beta2": 5},
]


@pytest.mark.parametrize("status", BAD_STATUSES, ids=repr)
def test_a_provider_with_a_status_of_any_type_gets_a_truthful_condition(status: Any) -> None:
    infra = infrastructure()
    infra["status"] = status
    s = look(cluster(INITIALIZED), infra, control_plane())

    assert s.conditions["InfrastructureReady"] != ("", "", "")
    assert "Traceback" not in (s.error or "")


@pytest.mark.parametrize(
    "spec",
    ["text", 7, [], {"controlPlaneEndpoint": []}, {"controlPlaneEndpoint": {"host": {}, "port": "x"}}, {"replicas": "three"}],
    ids=repr,
)
def test_a_provider_with_a_spec_of_any_type_gets_all_conditions(spec: Any) -> None:
    infra, plane = infrastructure(), control_plane()
    infra["spec"] = plane["spec"] = spec
    s = look(cluster(INITIALIZED, spec=NO_ENDPOINT, status=NEW), infra, plane)

    assert {"Available", "InfrastructureReady", "ControlPlaneAvailable"} <= s.conditions.keys()


def test_conditions_without_reasons_and_with_absurd_sizes() -> None:
    loud = [{"type": "Ready", "status": "False", "message": HUGE}, *({"type": f"T{n}", "status": "True"} for n in range(500))]
    s = look(cluster(INITIALIZED), infrastructure(conditions=loud), control_plane(conditions=[{"type": "Available", "status": "False"}]))

    assert s.conditions["InfrastructureReady"][:2] == ("False", "NoReasonReported")
    assert s.conditions["ControlPlaneAvailable"] == ("False", "NoReasonReported", "")
    assert not s.error


def test_messages_are_cut_to_what_the_api_server_takes() -> None:
    loud = condition("Ready", "False", "R", HUGE)
    s = look(cluster(INITIALIZED), infrastructure(conditions=[loud]), control_plane(), machine("m", loud))

    assert all(len(message) <= 32768 for _, _, message in s.conditions.values())


def test_reasons_that_the_api_server_would_refuse_are_replaced() -> None:
    s = look(cluster(INITIALIZED), infrastructure(conditions=[condition("Ready", "False", "not a reason!", "m")]), control_plane())

    assert s.conditions["InfrastructureReady"] == ("False", "InvalidReasonReported", "not a reason!: m")


def test_failure_domains_that_the_cluster_could_not_hold() -> None:
    twice = look(cluster(), infrastructure(status={"failureDomains": [{"name": "a"}, {"name": "a"}]}), control_plane())
    nameless = look(cluster(), infrastructure(status={"failureDomains": [{"controlPlane": True}]}), control_plane())

    assert all("failureDomains" in s.error and "failureDomains" not in s.status and "Available" in s.conditions for s in (twice, nameless))


def test_a_descendant_that_cannot_be_understood_unknown_not_a_crash() -> None:
    odd = machine("odd")
    odd["status"] = {"conditions": "none of your business"}
    s = look(cluster(INITIALIZED), *PROVIDERS, odd)

    assert "failed to list Machines" in s.error
    assert s.conditions["WorkerMachinesReady"] == ("Unknown", "InternalError", LOGS)


def test_a_secret_that_cannot_be_understood() -> None:
    odd = secret("kubeconfig") | {"data": {"value": 7}}
    s = look(cluster(spec=STANDALONE), infrastructure(), odd)

    assert "kubeconfig" in s.error.lower()
    assert "Available" in s.conditions


def test_failurereason_of_a_wrong_type() -> None:
    s = look(cluster(INITIALIZED), infrastructure(status={"failureReason": {"a": 1}}), control_plane())

    assert s.conditions["InfrastructureReady"] == ("Unknown", "InternalError", LOGS)
    assert "failureReason" in s.error


def test_references_that_name_nothing_that_can_be() -> None:
    strange = {**CONTROL_PLANE, "kind": "", "name": "cp"}
    s = look(cluster(INITIALIZED, spec={"controlPlaneRef": strange}), infrastructure())

    assert s.conditions["ControlPlaneAvailable"][0] == "Unknown"
    assert bool(s.error)


def test_metadata_of_a_provider_that_cannot_be_understood() -> None:
    infra = infrastructure(labels={LABEL: NAME})
    infra["metadata"]["annotations"] = {"a": "b"}
    infra["metadata"]["ownerReferences"] = [owner() | {"controller": False}]
    s = look(cluster(INITIALIZED, finalizers=[FINALIZER]), infra, control_plane())

    assert not s.error


def test_a_reference_without_a_name_no_object_can_have_it_and_nothing_else_is_taken_for_it() -> None:
    nameless = {**INFRASTRUCTURE, "name": ""}
    s = look(cluster(INITIALIZED, spec={"infrastructureRef": nameless}, deleting=True), infrastructure(), control_plane())
    t = look(cluster(spec={"infrastructureRef": nameless}, status=NEW), infrastructure(), control_plane())

    assert s.conditions["InfrastructureReady"][1] in {"ObjectDeleted", "DoesNotExist"}
    assert not any(kind == INFRASTRUCTURE["kind"] for _, kind, _ in s.actions)
    assert t.conditions["InfrastructureReady"][:2] == ("False", "DoesNotExist")


def test_unhealthy_pool_machines_are_their_pool_s_concern_labelled_control_plane_or_not() -> None:
    unhealthy = condition("HealthCheckSucceeded", "False")
    pooled = {LABEL: NAME, "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/pool-name": "pool"}
    s = look(cluster(INITIALIZED), *PROVIDERS, machine("a", unhealthy, labels=pooled), machine("b", unhealthy))

    assert s.conditions["Remediating"] == ("False", "NotRemediating", "Machine b is not healthy (not to be remediated)")


def test_where_only_the_label_is_missing_the_owner_reference_becomes_what_we_would_write() -> None:
    infra = infrastructure(labels={LABEL: "another"}, ownerReferences=[owner() | {"controller": False, "blockOwnerDeletion": True}])
    metadata = look(cluster(INITIALIZED), infra, control_plane()).answer["others"][f"{INFRASTRUCTURE['kind']}/{INFRASTRUCTURE['name']}"][
        "metadata"
    ]

    assert metadata["labels"][LABEL] == NAME
    assert metadata["ownerReferences"] == [owner()]


def test_a_kubeconfig_secret_that_appears_while_ours_is_made_the_pass_fails_and_looks_again() -> None:
    refused = [{"verb": "create", "kind": "Secret", "error": "AlreadyExists"}]
    s = look(cluster(INITIALIZED, spec=STANDALONE), infrastructure(), ca_secret(), machine("m", control_plane=True), unwritable=refused)

    assert bool(s.error)
    assert not s.actions


def test_fields_of_an_endpoint_or_a_failure_domain_that_are_null_are_not_there() -> None:
    said = {"failureDomains": [{"name": "a", "controlPlane": None, "attributes": None}]}
    infra = infrastructure(spec={"controlPlaneEndpoint": {"host": "h", "port": None}}, status=said)
    s = look(cluster(INITIALIZED, spec=NO_ENDPOINT), infra, control_plane())

    assert not s.error
    assert s.status["failureDomains"] == [{"name": "a", "controlPlane": False}]


def test_a_definition_whose_spec_is_nonsense_still_tells_its_contract_by_its_labels() -> None:
    def broken(path: str, value: Any) -> list[Json]:
        made = copy.deepcopy(CRDS)
        for definition in made:
            definition["spec"][path] = value
        return made

    odd = [
        ("versions", []),
        ("versions", ["v1"]),
        ("versions", [{"name": "v1", "schema": 7}]),
        ("names", {}),
        ("names", {"kind": 1}),
        ("group", []),
    ]
    passes = [look(cluster(INITIALIZED), *PROVIDERS, crds=broken(path, value)) for path, value in odd]

    assert all(s.conditions["InfrastructureReady"][0] == "True" and not s.error for s in passes)


def test_an_annotation_without_a_value_is_an_empty_one() -> None:
    s = look(cluster(INITIALIZED, annotations={"example.com/note": None}), *PROVIDERS)

    assert not s.error
    assert s.object["metadata"]["annotations"] == {"example.com/note": ""}


def test_the_last_successful_probe_is_told_in_utc() -> None:
    late = {"workloadClusters": {f"ns/{NAME}": {"connected": True, "lastProbeSuccess": "2026-05-01T13:00:00+02:00"}}}
    s = look(cluster(INITIALIZED), *PROVIDERS, **late)

    assert s.conditions["RemoteConnectionProbe"][2].endswith("probe last succeeded at 2026-05-01T11:00:00Z")
