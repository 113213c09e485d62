"""The observable facts about MachineHealthChecks, one by one, on the embedded API server.

The numbers in the names are those of the list of edge cases; 17 and 18 (which checks a Node starts a pass of) are in `test_node_watches`.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.passes import crd

HANDED_OVER = ("False", "WaitingForRemediation", "Waiting for remediation")
SICK = "Health check failed:\n  * Condition Ready on Node is reporting status False with reason Kubelet for more than 5m0s"
MANY = "Remediation is not allowed, the number of not started or unhealthy machines"


def fleet(a: Any, total: int, sick: int) -> tuple[list[Any], list[Any]]:
    """So many Machines, of which so many have a Node that is not ready for long."""
    names = [f"m{n}" for n in range(total)]
    return [a.machine(n) for n in names], [a.node(n, "False" if i < sick else "True") for i, n in enumerate(names)]


@pytest.mark.parametrize("labels", [{}, {"cluster.x-k8s.io/cluster-name": "other"}], ids=["missing", "wrong"])
def test_the_label_is_corrected_and_the_cluster_becomes_an_additional_owner(a: Any, labels: Any) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "uid-x"}
    answer = a.decide(a.check(metadata={"labels": labels, "ownerReferences": [other]}))

    assert answer.metadata["labels"] == {"cluster.x-k8s.io/cluster-name": "c1"}
    assert [o["name"] for o in answer.metadata["ownerReferences"]] == ["x", "c1"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"labels": {"pool": "b"}}, id="not-selected"),
        pytest.param({"labels": {"cluster.x-k8s.io/cluster-name": "c2"}}, id="of-another-cluster"),
        pytest.param({"annotations": {"cluster.x-k8s.io/paused": ""}}, id="paused"),
        pytest.param({"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}, id="skipped"),
        pytest.param({"annotations": {"cluster.x-k8s.io/skip-remediation": "", "cluster.x-k8s.io/remediate-machine": ""}}, id="both"),
    ],
)
def test_machines_that_are_not_looked_after_do_not_count(a: Any, more: Any) -> None:
    answer = a.decide(a.machine("m0", **more), a.machine("m1"), nodes=[a.node("m0", "False"), a.node("m1")])

    assert (answer.status["expectedMachines"], answer.status["targets"]) == (1, ["m1"])
    assert "Machine/m0" not in answer.json["others"]


def test_before_the_infrastructure_is_ready_no_machine_is_unhealthy_but_all_are_expected(a: Any) -> None:
    answer = a.decide(
        a.cluster(InfrastructureReady=a.condition("InfrastructureReady", "False")), a.machine("m0"), nodes=[a.node("m0", "False")]
    )

    assert answer.status["expectedMachines"] == 1
    assert answer.of("m0", "HealthCheckSucceeded") == ("True", "HealthCheckSucceeded", "")


def test_before_the_control_plane_is_initialized_only_its_machines_are_judged(a: Any) -> None:
    worker = a.machine("m0", node=False)
    leader = a.machine("m1", node=False, labels={"cluster.x-k8s.io/control-plane": ""})

    answer = a.decide(a.cluster(ControlPlaneInitialized=None), worker, leader, in_cluster={"connected": False})

    assert answer.error == ""
    assert answer.of("m0", "HealthCheckSucceeded") is None
    assert answer.of("m1", "HealthCheckSucceeded") == (
        "False",
        "NodeStartupTimeout",
        "Health check failed:\n  * Node failed to report startup in 10m0s",
    )


@pytest.mark.parametrize(
    ("timeout", "created", "requeue", "verdict"),
    [
        pytest.param(600, 599, 2, None, id="not-yet"),
        pytest.param(600, 600, 1, None, id="exactly"),
        pytest.param(600, 601, None, "NodeStartupTimeout", id="passed"),
        pytest.param(None, 601, None, "NodeStartupTimeout", id="ten-minutes-by-default"),
        pytest.param(0, 86_400, None, None, id="off"),
    ],
)
def test_a_node_must_appear_within_the_startup_timeout(
    a: Any, timeout: int | None, created: int, requeue: int | None, verdict: str | None
) -> None:
    rules = {} if timeout is None else {"nodeStartupTimeoutSeconds": timeout}

    answer = a.decide(a.check(**rules), a.machine("m0", node=False, created=created))

    assert answer.requeue == requeue
    found = answer.of("m0", "HealthCheckSucceeded")
    assert (found and found[1]) == verdict


@pytest.mark.parametrize("late", ["cluster", "control-plane", "machine", "machine-not-ready"])
def test_the_startup_clock_begins_when_the_last_thing_that_a_node_needs_was_ready(a: Any, late: str) -> None:
    cluster = a.cluster(
        **({"InfrastructureReady": a.condition("InfrastructureReady", since=100)} if late == "cluster" else {}),
        **({"ControlPlaneInitialized": a.condition("ControlPlaneInitialized", since=100)} if late == "control-plane" else {}),
    )
    ready = a.condition("InfrastructureReady", "False" if late == "machine-not-ready" else "True", since=100)

    answer = a.decide(cluster, a.machine("m0", node=False, conditions=[ready] if late.startswith("machine") else []))

    assert answer.requeue == (None if late == "machine-not-ready" else 501)
    assert bool(answer.of("m0", "OwnerRemediated")) is (late == "machine-not-ready")


def test_a_node_that_is_gone_is_unhealthy_at_once_even_without_rules(a: Any) -> None:
    answer = a.decide(a.check(unhealthyNodeConditions=None, nodeStartupTimeoutSeconds=0), a.machine("m0"))

    assert answer.of("m0", "HealthCheckSucceeded") == ("False", "NodeDeleted", "Health check failed:\n  * Node node-m0 has been deleted")
    assert answer.of("m0", "OwnerRemediated") == HANDED_OVER


def test_the_smallest_wait_of_all_machines_counts(a: Any) -> None:
    answer = a.decide(a.machine("m0"), a.machine("m1"), nodes=[a.node("m0", "Unknown", since=200), a.node("m1", "False", since=50)])

    assert answer.requeue == 101
    assert (answer.of("m0", "HealthCheckSucceeded"), answer.status["currentHealthy"]) == (None, 0)


def test_violations_of_both_kinds_of_rules_are_reported_and_the_machines_gives_the_reason(a: Any) -> None:
    rule = {"type": "NodeReady", "status": "Unknown", "timeoutSeconds": 60}
    bad = a.condition("NodeReady", "Unknown", 61, "Lost")

    answer = a.decide(a.check(unhealthyMachineConditions=[rule]), a.machine("m0", conditions=[bad]), nodes=[a.node("m0", "False")])

    status, reason, text = answer.of("m0", "HealthCheckSucceeded")
    assert (status, reason) == ("False", "UnhealthyMachine")
    assert text.splitlines()[1:] == [
        "  * Condition NodeReady on Machine is reporting status Unknown with reason Lost for more than 1m0s",
        "  * Condition Ready on Node is reporting status False with reason Kubelet for more than 5m0s",
    ]


@pytest.mark.parametrize("world", ["healthy", "no-node", "cluster-not-up"])
def test_the_remediate_annotation_wins_over_everything(a: Any, world: str) -> None:
    machine = a.machine("m0", node=world != "no-node", annotations={"cluster.x-k8s.io/remediate-machine": "false"})
    cluster = a.cluster(**({"InfrastructureReady": None, "ControlPlaneInitialized": None} if world == "cluster-not-up" else {}))

    answer = a.decide(cluster, machine, nodes=[a.node("m0")])

    assert answer.of("m0", "HealthCheckSucceeded")[1] == "HasRemediateAnnotation"
    assert answer.of("m0", "OwnerRemediated") == HANDED_OVER


@pytest.mark.parametrize(
    ("limit", "total", "sick", "left"),
    [
        pytest.param("40%", 5, 2, 0, id="40%-of-5-is-2"),
        pytest.param("60%", 7, 4, 0, id="60%-of-7-is-4"),
        pytest.param("60%", 7, 5, None, id="rounded-down"),
        pytest.param("50%", 5, 3, None, id="50%-of-5-is-2"),
        pytest.param(None, 3, 3, 0, id="unset-allows-all"),
        pytest.param(4, 3, 1, 3, id="more-than-there-are"),
    ],
)
def test_unhealthy_machines_up_to_the_limit_are_remediated(a: Any, limit: Any, total: int, sick: int, left: int | None) -> None:
    machines, nodes = fleet(a, total, sick)
    remediation = {"triggerIf": {"unhealthyLessThanOrEqualTo": limit}} if limit is not None else None

    answer = a.decide(a.check(remediation=remediation), *machines, nodes=nodes)

    assert answer.status["remediationsAllowed"] == (left or 0)
    assert answer.of("m0", "OwnerRemediated") == (HANDED_OVER if left is not None else None)


def test_an_invalid_limit_is_an_error_and_nothing_is_remediated(a: Any) -> None:
    machines, nodes = fleet(a, 2, 1)

    answer = a.decide(
        a.check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": "many"}}, status={"observedGeneration": 1}), *machines, nodes=nodes
    )

    assert "unhealthyLessThanOrEqualTo" in answer.error
    assert answer.actions == set()
    assert answer.status["observedGeneration"] == 1


@pytest.mark.parametrize(("sick", "allowed"), [(2, False), (3, True), (5, True), (6, False)])
def test_a_range_has_two_ends(a: Any, sick: int, allowed: bool) -> None:
    machines, nodes = fleet(a, 6, sick)

    answer = a.decide(a.check(remediation={"triggerIf": {"unhealthyInRange": "[3-5]"}}), *machines, nodes=nodes)

    assert (answer.condition("RemediationAllowed")[0] == "True") is allowed
    if not allowed:
        assert answer.condition("RemediationAllowed")[2] == (
            f"{MANY} does not fall within the range (total: 6, unhealthy: {sick}, unhealthyRange: [3-5])"
        )


def test_machines_beyond_the_limit_are_marked_unhealthy_but_not_remediated(a: Any) -> None:
    machines, nodes = fleet(a, 3, 2)

    answer = a.decide(a.check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": 1}}), *machines, nodes=nodes)

    assert answer.condition("RemediationAllowed") == (
        "False",
        "TooManyUnhealthy",
        f"{MANY} exceeds maxUnhealthy (total: 3, unhealthy: 2, maxUnhealthy: 1)",
    )
    assert answer.of("m0", "HealthCheckSucceeded") == ("False", "UnhealthyNode", SICK)
    assert answer.of("m0", "OwnerRemediated") is None
    assert (answer.status["remediationsAllowed"], answer.requeue) == (0, None)


def test_a_machine_that_is_deleted_already_is_not_handed_over(a: Any) -> None:
    answer = a.decide(a.machine("m0", deleting=True), nodes=[a.node("m0", "False")])

    assert answer.of("m0", "HealthCheckSucceeded") == ("False", "UnhealthyNode", SICK)
    assert answer.of("m0", "OwnerRemediated") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, HANDED_OVER, id="created"),
        pytest.param("True", HANDED_OVER, id="reset-when-the-owner-has-finished"),
        pytest.param("False", ("False", "RemediationInProgress", ""), id="left-alone-while-it-is-at-work"),
    ],
)
def test_conditions_that_the_owner_writes_meanwhile_are_kept(a: Any, before: str | None, after: Any) -> None:
    conditions = [a.condition("OwnerRemediated", before, reason="RemediationInProgress")] if before else []

    answer = a.decide(a.machine("m0", conditions=conditions), nodes=[a.node("m0", "False")])

    assert answer.of("m0", "OwnerRemediated") == after


# ------------------------------------------------------------------------------------------------- external remediation


def external(a: Any, *objects: Any, ready: str = "False", names: tuple[str, ...] = ("m0",), observed: Any = None) -> Any:
    machines = [a.machine(n) for n in names]
    crds = [crd(kind, "infrastructure.cluster.x-k8s.io") for kind in ("RebootTemplate", "Reboot")]
    check = a.check(remediation=a.TEMPLATE_REF)
    return a.decide(check, *crds, *machines, *objects, nodes=[a.node(n, ready) for n in names], observed=observed)


def test_a_request_is_made_from_the_template_and_named_like_the_machine(a: Any) -> None:
    answer = external(a, a.template())

    request = answer.json["others"]["Reboot/m0"]
    assert request["spec"] == {"times": 3}
    assert request["metadata"]["labels"] == {"a": "b", "cluster.x-k8s.io/cluster-name": "c1"}
    assert request["metadata"]["ownerReferences"][0]["uid"] == "uid-m0"
    assert answer.of("m0", "ExternallyRemediated") == ("False", "WaitingForRemediation", "")
    assert answer.of("m0", "OwnerRemediated") is None


def test_an_existing_request_is_not_made_again_and_does_not_block_others(a: Any) -> None:
    answer = external(a, a.template(), a.request("m0"), names=("m0", "m1"))

    assert [(x["verb"], x["name"]) for x in answer.json["actions"] if x["kind"] == "Reboot"] == [("create", "m1")]
    assert answer.of("m0", "HealthCheckSucceeded")[0] == "False"


def test_the_request_of_a_machine_that_recovered_is_deleted(a: Any) -> None:
    answer = external(a, a.template(), a.request("m0"), ready="True")

    assert ("delete", "Reboot", "m0") in answer.actions
    assert answer.of("m0", "HealthCheckSucceeded")[0] == "True"


def test_without_template_there_is_a_condition_and_an_error(a: Any) -> None:
    answer = external(a)

    assert answer.error
    assert answer.of("m0", "ExternallyRemediated") == (
        "False",
        "RemediationTemplateNotFound",
        "Error retrieving remediation template RebootTemplate ns1/rt",
    )


def test_a_request_that_is_refused_shows_on_the_machine_and_on_the_check(a: Any) -> None:
    answer = external(a, a.template(), observed={"unwritable": [{"verb": "create", "kind": "Reboot"}]})

    assert answer.error
    assert answer.of("m0", "ExternallyRemediated")[1] == "RemediationRequestCreationFailed"
    deprecated = answer.status["deprecated"]["v1beta1"]["conditions"]
    assert [c["reason"] for c in deprecated if c["type"] == "ExternalRemediationRequestAvailable"] == [
        "ExternalRemediationRequestCreationFailed"
    ]


def test_without_rules_a_node_that_is_not_ready_is_healthy(a: Any) -> None:
    answer = a.decide(a.check(unhealthyNodeConditions=None), a.machine("m0"), nodes=[a.node("m0", "False")])

    assert answer.of("m0", "HealthCheckSucceeded") == ("True", "HealthCheckSucceeded", "")


def test_failure_fields_of_v1beta1_have_no_influence(a: Any) -> None:
    failed = {"deprecated": {"v1beta1": {"failureReason": "CreateError", "failureMessage": "no"}}}

    answer = a.decide(a.machine("m0", status=failed), nodes=[a.node("m0")])

    assert answer.of("m0", "HealthCheckSucceeded") == ("True", "HealthCheckSucceeded", "")


# ----------------------------------------------------------------------------------------------------------- failures


def test_a_machine_that_cannot_be_written_does_not_stop_the_others(a: Any) -> None:
    machines, nodes = fleet(a, 3, 3)

    answer = a.decide(*machines, nodes=nodes, observed={"unwritable": [{"verb": "patch", "kind": "Machine", "name": "m0"}]})

    assert answer.error
    assert [answer.of(m, "OwnerRemediated") for m in ("m1", "m2")] == [HANDED_OVER, HANDED_OVER]


def test_a_pass_that_knows_nothing_new_writes_nothing(a: Any) -> None:
    machine, nodes = a.machine("m0"), [a.node("m0", "False")]
    first = a.decide(machine, nodes=nodes)

    second = a.decide(first.json["object"], first.json["others"]["Machine/m0"], nodes=nodes)

    assert second.actions == set()
    assert second.json["object"]["metadata"]["resourceVersion"] == first.json["object"]["metadata"]["resourceVersion"]


def test_without_a_connection_nothing_is_concluded(a: Any) -> None:
    answer = a.decide(a.machine("m0"), in_cluster={"connected": False})

    assert "connection to the workload cluster is down" in answer.error
    assert answer.actions == set()
    assert "expectedMachines" not in answer.status
