"""The observable facts about MachinePools, one by one, on the embedded API server.

Numbers below 20 are those of the list on Machines' kinds, those above 50 of the list on pools; what a Node or an infrastructure machine
wakes (14) is in `test_node_watches`.
"""

from __future__ import annotations

from typing import Any

import pytest

GONE = {"deletionTimestamp": "2026-05-01T11:59:00Z"}


def test_phases_from_pending_to_running(a: Any) -> None:
    waiting = a.config(status={"initialization": {"dataSecretCreated": False}})
    idle = a.infra(spec=None, status=None)

    assert a.decide(waiting, idle).status["phase"] == "Pending"
    assert a.decide(idle).status["phase"] == "Provisioning"
    assert a.decide(idle, a.running(status={"initialization": {"infrastructureProvisioned": False}})).status["phase"] == "Provisioned"
    assert a.decide().status["phase"] == "Running"


@pytest.mark.parametrize("created", [True, False], ids=["another-ready-one", "one-that-is-not-ready"])
def test_a_swapped_config_leaves_the_pool_running(a: Any, created: bool) -> None:
    config = a.config(status={"dataSecretName": "fresh", "initialization": {"dataSecretCreated": created}})

    answer = a.decide(a.running(), config)

    assert answer.status["phase"] == "Running"
    assert answer.status["initialization"]["bootstrapDataSecretCreated"] is created
    assert answer.spec["template"]["spec"]["bootstrap"]["dataSecretName"] == ("fresh" if created else "data")


def test_a_data_secret_that_was_given_is_never_overwritten(a: Any) -> None:
    given = a.pool(spec={"template": {"spec": {"bootstrap": {"configRef": None, "dataSecretName": "mine"}}}})

    answer = a.decide(given, without=("Config",))

    assert (answer.error, answer.spec["template"]["spec"]["bootstrap"]) == ("", {"dataSecretName": "mine"})
    assert answer.v1beta1("BootstrapReady") == ("True", "", "")


def test_neither_config_nor_secret_is_an_error(a: Any) -> None:
    answer = a.decide(a.pool(spec={"template": {"spec": {"bootstrap": {"configRef": None}}}}))

    assert "neither .spec.bootstrap.configRef nor .spec.bootstrap.dataSecretName" in answer.error


@pytest.mark.parametrize("name", [None, ""], ids=["absent", "empty"])
def test_a_config_that_is_ready_without_a_secret_is_an_error(a: Any, name: str | None) -> None:
    answer = a.decide(a.config(status={"dataSecretName": name}))

    assert "failed to retrieve dataSecretName" in answer.error
    assert "observedGeneration" not in answer.status


def test_a_missing_config_is_an_error_and_the_other_phases_run(a: Any) -> None:
    answer = a.decide(without=("Config",))

    assert "could not find Config ns1/bc for MachinePool ns1/mp1" in answer.error
    assert answer.refs == ["node-1", "node-2", "node-3"]


@pytest.mark.parametrize("was", [True, False], ids=["after-provisioning", "before"])
def test_vanished_infrastructure_is_reported(a: Any, was: bool) -> None:
    answer = a.decide(a.running() if was else a.pool(), without=("Pool",))

    assert answer.error
    assert answer.v1beta1("InfrastructureReady") == ("False", "Error", "IncorrectExternalRef")
    failure = answer.status["deprecated"]["v1beta1"].get("failureReason")
    assert failure == ("InvalidConfiguration" if was else None)


def test_scaling_to_zero_and_back(a: Any) -> None:
    asked = a.decide(a.running(spec={"replicas": 0}))
    followed = a.decide(a.running(spec={"replicas": 0}), a.infra(spec={"providerIDList": []}, status={"replicas": 0}))
    back = a.decide(a.running(spec={"replicas": 5}))

    assert asked.status["phase"] == "ScalingDown"
    assert not [x for x in asked.actions if x[0] == "delete"]
    assert {x for x in followed.actions if x[0] == "delete"} == {("delete", "Node", f"node-{n}") for n in (1, 2, 3)}
    assert (followed.status["phase"], followed.refs) == ("Running", [])
    assert back.status["phase"] == "ScalingUp"


@pytest.mark.parametrize(("replicas", "phase"), [(0, "Running"), (2, "ScalingUp")])
def test_an_empty_list_is_legal_for_an_empty_pool_and_waited_for_otherwise(a: Any, replicas: int, phase: str) -> None:
    answer = a.decide(a.pool(spec={"replicas": replicas}), a.infra(spec={"providerIDList": []}, status={"replicas": replicas}))

    assert (answer.error, answer.requeue, answer.status["phase"]) == ("", None, phase)


def test_provider_ids_are_compared_as_a_whole(a: Any) -> None:
    twins = [a.node(1), a.node(2, spec={"providerID": "other:///ns1/vm-1"})]

    answer = a.decide(a.infra(spec={"providerIDList": ["other:///ns1/vm-1"]}, status={"replicas": 1}), nodes=twins)

    assert answer.refs == ["node-2"]


def test_nodes_and_entries_without_an_id_are_left_out(a: Any) -> None:
    listed = a.infra(spec={"providerIDList": ["", *a.ids(1)]}, status={"replicas": 1})

    answer = a.decide(listed, nodes=[a.node(1), a.node(2, spec={"providerID": ""})])

    assert answer.refs == ["node-1"]
    assert answer.spec["providerIDList"] == ["", *a.ids(1)]


def test_a_node_that_is_not_ready_does_not_count_and_is_looked_at_again(a: Any) -> None:
    answer = a.decide(nodes=[a.node(1), a.node(2, "False"), a.node(3, "Unknown")])

    assert answer.status["deprecated"]["v1beta1"]["readyReplicas"] == 1
    assert answer.v1beta1("ReplicasReady") == ("False", "Info", "WaitingForReplicasReady")
    assert answer.requeue == 30


@pytest.mark.parametrize(("seconds", "available"), [(599, 0), (600, 0), (601, 1)])
def test_available_is_ready_for_longer_than_min_ready_seconds(a: Any, seconds: int, available: int) -> None:
    pool = a.pool(spec={"template": {"spec": {"minReadySeconds": 600}}})
    ready = a.node(1, status={"conditions": [a.condition("Ready", since=seconds)]})

    answer = a.decide(pool, a.infra(spec={"providerIDList": a.ids(1)}, status={"replicas": 1}), nodes=[ready])

    assert answer.status["deprecated"]["v1beta1"].get("availableReplicas", 0) == available


def test_a_node_of_the_same_name_but_another_uid_is_noticed(a: Any) -> None:
    answer = a.decide(a.running(), nodes=[a.node(1, metadata={"uid": "another"}), a.node(2), a.node(3)])

    assert [r["uid"] for r in answer.status["nodeRefs"]] == ["another", "uid-n2", "uid-n3"]


def test_the_uninitialized_taint_goes_and_everything_else_stays(a: Any) -> None:
    taints = [
        {"key": "node.cluster.x-k8s.io/uninitialized", "value": "x", "effect": "NoSchedule"},
        {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoExecute"},
        {"key": "mine", "value": "y", "effect": "NoSchedule"},
    ]

    answer = a.decide(nodes=[a.node(1, metadata={"annotations": {"a": "b"}}, spec={"taints": taints}), a.node(2), a.node(3)])

    node = answer.other("Node/node-1")
    assert node["spec"]["taints"] == taints[1:]
    assert node["metadata"]["annotations"] == {
        "a": "b",
        "cluster.x-k8s.io/cluster-name": "c1",
        "cluster.x-k8s.io/cluster-namespace": "ns1",
        "cluster.x-k8s.io/owner-kind": "MachinePool",
        "cluster.x-k8s.io/owner-name": "mp1",
    }


# ------------------------------------------------------------------------------------------------------------ Machines


def shown(a: Any) -> Any:
    return a.infra(status={"infrastructureMachineKind": "Vm"})


def test_infrastructure_that_keeps_its_machines_to_itself_has_no_machines(a: Any) -> None:
    answer = a.decide(a.infra_machine(1))

    assert not [x for x in answer.actions if x[1] == "Machine"]
    assert (answer.status["readyReplicas"], answer.status["upToDateReplicas"]) == (3, 3)


def test_every_infrastructure_machine_gets_a_machine_and_those_that_are_there_are_left_alone(a: Any) -> None:
    template = {"metadata": {"labels": {"a": "b", "cluster.x-k8s.io/pool-name": "lie"}, "annotations": {"c": "d"}}}

    answer = a.decide(a.pool(spec={"template": template}), shown(a), a.infra_machine(1), a.infra_machine(2))

    assert {x for x in answer.actions if x[1] == "Machine"} == {("create", "Machine", "vm-1"), ("create", "Machine", "vm-2")}
    made = answer.other("Machine/vm-1")
    assert made["metadata"]["labels"] == {
        "a": "b",
        "cluster.x-k8s.io/cluster-name": "c1",
        "cluster.x-k8s.io/pool-name": "mp1",
    }
    assert made["metadata"]["ownerReferences"] == [a.owner("MachinePool", "mp1", "uid-mp1")]
    assert made["spec"] == {
        "clusterName": "c1",
        "bootstrap": {"dataSecretName": ""},
        "infrastructureRef": {"apiGroup": a.INFRA, "kind": "Vm", "name": "vm-1"},
        "version": "v1.33.1",
    }
    assert answer.of("vm-1", "UpToDate") == ("True", "UpToDate", "")
    assert a.decide(shown(a), a.infra_machine(1), a.machine(1)).actions & {("create", "Machine", "vm-1")} == set()


def test_counters_come_from_machines_where_there_are_some(a: Any) -> None:
    unready = a.machine(2, status={"conditions": [a.condition("Ready", "False")]})
    foreign = a.machine(3, metadata={"ownerReferences": [a.owner("MachineSet", "ms", "uid-ms")]})

    answer = a.decide(shown(a), a.machine(1), unready, foreign)

    assert [answer.status[f"{x}Replicas"] for x in ("ready", "available", "upToDate")] == [1, 1, 2]


def test_a_machine_that_is_deleted_is_not_up_to_date(a: Any) -> None:
    answer = a.decide(shown(a), a.machine(1, metadata=GONE))

    assert answer.of("vm-1", "UpToDate") == ("False", "NotUpToDate", "Machine is being deleted")


def test_a_long_name_is_a_hash_in_labels(a: Any) -> None:
    import clusterwright
    from clusterwright.kubeadm.naming import label_value

    name = "p" * 70
    pool = a.pool(metadata={"name": name})
    world = [a.cluster(), pool, a.config(), shown(a), a.infra_machine(1, label_value(name))]
    for obj in world[2:4]:
        obj["metadata"]["ownerReferences"][0]["name"] = name
    world += [a.crd("Config", a.BOOT), a.crd("Pool", a.INFRA), a.crd("Vm", a.INFRA)]
    seen = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "now": a.ago(0)}
    seen["workloadClusters"] = {"ns1/c1": {"connected": True, "objects": [a.node(1)]}}

    answer = a.Answer(dict(clusterwright.decide([*world, seen], f"MachinePool/ns1/{name}")))

    label = answer.other("Machine/vm-1")["metadata"]["labels"]["cluster.x-k8s.io/pool-name"]
    assert label.startswith("hash_")
    assert label.endswith("_z")


def test_a_machine_that_cannot_be_created_does_not_stop_the_others(a: Any) -> None:
    answer = a.decide(
        shown(a),
        a.infra_machine(1),
        a.infra_machine(2),
        observed={"unwritable": [{"verb": "create", "kind": "Machine", "name": "vm-1"}]},
    )

    assert 'failed to create new Machine for infraMachine "vm-1"' in answer.error
    assert ("create", "Machine", "vm-2") in answer.actions


# ------------------------------------------------------------------------------------------------------------ deletion


@pytest.mark.parametrize("left", ["Config", "Pool"])
def test_a_deleted_pool_waits_while_either_object_exists(a: Any, left: str) -> None:
    other = {"Config": "Pool", "Pool": "Config"}[left]

    answer = a.decide(a.running(metadata=GONE), without=(other,))

    assert ("delete", left, "bc" if left == "Config" else "ip") in answer.actions
    assert answer.metadata["finalizers"] == ["machinepool.cluster.x-k8s.io"]
    assert answer.status["phase"] == "Deleting"


@pytest.mark.parametrize(
    ("timeout", "kept"),
    [
        pytest.param(30, False, id="passed"),
        pytest.param(60, True, id="exactly"),
        pytest.param(0, True, id="never"),
        pytest.param(None, True, id="unset"),
    ],
)
def test_nodes_that_cannot_be_deleted_keep_the_finalizer_until_the_timeout(a: Any, timeout: int | None, kept: bool) -> None:
    deletion = {"nodeDeletionTimeoutSeconds": timeout} if timeout is not None else {}
    pool = a.running(metadata=GONE, spec={"providerIDList": [], "template": {"spec": {"deletion": deletion}}})

    answer = a.decide(pool, without=("Config", "Pool"), in_cluster={"connected": False})

    assert bool(answer.error) is kept
    assert (answer.json["object"] is not None) is kept


def test_retired_nodes_are_deleted_with_the_pool(a: Any) -> None:
    answer = a.decide(a.running(metadata=GONE, spec={"providerIDList": a.ids(1)}), without=("Config", "Pool"))

    assert answer.actions == {("delete", "Node", "node-2"), ("delete", "Node", "node-3")}
    assert answer.json["object"] is None


def test_nodes_of_listed_machines_stay(a: Any) -> None:
    answer = a.decide(a.running(metadata=GONE), without=("Config", "Pool"))

    assert (answer.actions, answer.json["object"]) == (set(), None)


# -------------------------------------------------------------------------------------------------------- v1beta1 Ready


def test_all_three_conditions_feed_ready(a: Any) -> None:
    assert a.decide().v1beta1("Ready") == ("True", "", "")
    assert a.decide(nodes=[a.node(1)]).v1beta1("Ready") == ("False", "Info", "WaitingForReplicasReady")
    assert a.decide(a.infra(status={"ready": False})).v1beta1("Ready") == ("False", "Info", "WaitingForInfrastructure")
    assert a.decide(a.config(status=None)).v1beta1("Ready") == ("False", "Info", "WaitingForDataSecret")


def test_a_fresh_pool_whose_parts_are_ready_runs_after_one_pass(a: Any) -> None:
    answer = a.decide()

    assert (answer.status["phase"], answer.refs) == ("Running", ["node-1", "node-2", "node-3"])
    assert answer.spec["template"]["spec"]["bootstrap"]["dataSecretName"] == "data"


def test_infrastructure_that_is_no_longer_ready_is_reported(a: Any) -> None:
    answer = a.decide(a.running(), a.infra(status={"ready": False}))

    assert answer.status["initialization"]["infrastructureProvisioned"] is False
    assert answer.status["phase"] == "Provisioned"


def test_nodes_of_others_are_neither_counted_nor_deleted(a: Any) -> None:
    answer = a.decide(a.pool(spec={"replicas": 0}), a.infra(spec={"providerIDList": []}, status={"replicas": 0}))

    assert (answer.refs, answer.status["phase"], answer.actions) == ([], "Running", set())


def test_a_node_that_is_not_ready_any_more_is_not_noticed_while_the_counters_fit(a: Any) -> None:
    answer = a.decide(a.running(), nodes=[a.node(1, "False"), a.node(2), a.node(3)])

    assert answer.v1beta1("ReplicasReady") == ("True", "", "")


@pytest.mark.parametrize(("value", "phase"), [("", "Scaling"), ("someone", "Scaling"), ("false", "ScalingUp")])
def test_replicas_that_others_manage_are_scaling(a: Any, value: str, phase: str) -> None:
    answer = a.decide(a.running(metadata={"annotations": {"cluster.x-k8s.io/replicas-managed-by": value}}, spec={"replicas": 5}))

    assert answer.status["phase"] == phase


def test_a_pass_that_knows_nothing_new_writes_nothing(a: Any) -> None:
    first = a.decide()
    nodes = [first.other(f"Node/node-{n}") for n in (1, 2, 3)]

    settled = a.decide(first.json["object"], nodes=nodes)  # the first pass changed the spec, and with it the generation
    again = a.decide(settled.json["object"], nodes=nodes)

    assert again.actions == set()
    assert again.metadata["resourceVersion"] == settled.metadata["resourceVersion"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param(
            {"config": {"status": {"failureReason": 3}}}, "Config ns1/bc: status.failureReason: expected a string", id="config-failure"
        ),
        pytest.param({"infra": {"status": {"ready": "yes"}}}, "Pool ns1/ip: status.ready: expected a boolean", id="infra-flag"),
        pytest.param({"infra": {"status": {"infrastructureMachineKind": 5}}}, "status.infrastructureMachineKind", id="machine-kind"),
    ],
)
def test_an_unreadable_value_is_named(a: Any, changes: Any, text: str) -> None:
    answer = a.decide(a.config(**changes.get("config", {})), a.infra(**changes.get("infra", {})))

    assert text in answer.error


def test_13341_a_pool_counts_its_machines_by_version_or_the_nodes_that_it_has(a: Any) -> None:
    newer = {"status": {"nodeInfo": {"kubeletVersion": "v1.34.0"}}}

    of_nodes = a.decide(a.pool(status=a.running()["status"]), nodes=[a.node(1), a.node(2, **newer), a.node(3)])
    of_machines = a.decide(
        a.infra(status={"infrastructureMachineKind": "Vm"}),
        a.machine(1),
        a.machine(2, **newer),
        *(a.infra_machine(n) for n in (1, 2)),
    )

    assert of_nodes.status["versions"] == [{"version": "v1.33.1", "replicas": 2}, {"version": "v1.34.0", "replicas": 1}]
    assert of_machines.status["versions"] == [{"version": "v1.33.1", "replicas": 1}, {"version": "v1.34.0", "replicas": 1}]
