"""Edge cases of scaling, rollout and the up-to-date computation; quorum arithmetic."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, Unstructured
from clusterwright.api.wellknown import (
    CLONED_FROM_GROUP_KIND_ANNOTATION,
    CLONED_FROM_NAME_ANNOTATION,
    DELETE_MACHINE_ANNOTATION,
    REMEDIATE_MACHINE_ANNOTATION,
)
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import control_plane_survives, project_etcd, quorum
from clusterwright.controllers.kubeadmcontrolplane.machines.comparison import UP_TO_DATE, compare, config_matches, infrastructure_matches
from clusterwright.controllers.kubeadmcontrolplane.machines.desired import Owner, config_spec
from clusterwright.controllers.kubeadmcontrolplane.machines.in_place import IN_PLACE, InPlaceFacts, Rollout
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import NO_DIFFERENCE, ControlPlaneMachine, Differences
from clusterwright.controllers.kubeadmcontrolplane.machines.selection import domain_for_new, select_to_remove
from clusterwright.controllers.kubeadmcontrolplane.preflight import PREFLIGHT, PreflightFacts, Verdict, verdict
from clusterwright.kubeadm.naming import BadNamingTemplate, label_value, machine_name, render, suffix
from clusterwright.workload.access import EtcdMember
from support.control_planes import owned

from . import harness as h

API, MEMBER = "APIServerPodHealthy", "EtcdMemberHealthy"
UP_BLOCKED = "Scaling up from {0} to {1} replicas is blocked because:\n* {2}"

# ------------------------------------------------------------------------------------------- preflight


def test_the_first_machine_needs_no_preflight_checks() -> None:
    answer = h.run(
        h.World(
            [], replicas=3, members=None, missing_certificates=("sa",), initialized=False, initialized_condition=None, kubeadm_config=False
        )
    )

    assert len(answer.did("create", "Machine")) == 1


def test_a_topology_that_wants_another_version_blocks() -> None:
    gate = {"ClusterTopology": True}
    blocked = h.run(h.World(h.machines(3), replicas=5, topology="v1.35.0", features=gate))
    step = {"topology.internal.cluster.x-k8s.io/upgrade-step": "v1.34.1"}
    reached = h.run(h.World(h.machines(3), replicas=5, topology="v1.35.0", features=gate, cluster_annotations=step))
    other = {"topology.internal.cluster.x-k8s.io/upgrade-step": "v1.34.9"}
    not_reached = h.run(h.World(h.machines(3), replicas=5, topology="v1.35.0", features=gate, cluster_annotations=other))

    text = UP_BLOCKED.format(3, 5, "waiting for a version upgrade to {0} to be propagated")
    assert blocked.condition("ScalingUp") == ("True", "ScalingUp", text.format("v1.35.0"))
    assert blocked.requeue == 15
    assert len(reached.did("create", "Machine")) == 1
    assert not_reached.condition("ScalingUp") == ("True", "ScalingUp", text.format("v1.34.9"))


def test_missing_certificates_block_scaling_up_only() -> None:
    up = h.run(h.World(h.machines(3), replicas=5, missing_certificates=("proxy",)))
    down = h.run(h.World(h.machines(3), replicas=1, missing_certificates=("proxy",)))

    assert up.condition("ScalingUp") == ("True", "ScalingUp", UP_BLOCKED.format(3, 5, "cluster certificates are missing or unknown"))
    assert down.did("delete", "Machine") == ["m1"]


COMPONENTS = "waiting for control plane components to become healthy"
ETCD = "waiting for etcd cluster to become healthy"


@pytest.mark.parametrize(("type", "bullets"), [(API, [COMPONENTS]), ("EtcdPodHealthy", [COMPONENTS]), (MEMBER, [ETCD])])
@pytest.mark.parametrize("how", ["False", "Unknown", "missing"])
def test_unhealthy_components_and_unhealthy_etcd_set_different_flags(type: str, bullets: list[str], how: str) -> None:
    machines = h.machines(3)
    if how == "missing":
        machines[0].missing = (type,)
    else:
        machines[0].sick = {type: (how, 60)}

    found = h.run(h.World(machines, replicas=5)).condition("ScalingUp")

    assert found == ("True", "ScalingUp", UP_BLOCKED.format(3, 5, "\n* ".join(bullets)))


def test_a_machine_without_a_node_sets_both_flags() -> None:
    machines = [*h.machines(3), h.MachineSpec("m4", node=None, age=60)]

    found = h.run(h.World(machines, replicas=5)).condition("ScalingUp")

    assert found == ("True", "ScalingUp", UP_BLOCKED.format(4, 5, f"{COMPONENTS}\n* {ETCD}"))


LOCK = {"controlplane.cluster.x-k8s.io/remediation-in-progress": '{"machine":"m0","timestamp":"2026-05-01T11:59:00Z","retryCount":0}'}


@pytest.mark.parametrize(
    ("count", "sick", "allowed"), [(1, 0, True), (2, 0, True), (2, 1, False), (3, 1, False), (4, 1, True), (5, 2, False)]
)
def test_a_replacement_may_join_if_joining_cannot_cost_the_quorum(count: int, sick: int, allowed: bool) -> None:
    machines = h.machines(count)
    machines[-1].sick = {"SchedulerPodHealthy": ("False", 60)} if count > 1 else {}
    for machine in machines[:sick]:
        machine.sick = {MEMBER: ("False", 60)}

    answer = h.run(h.World(machines, replicas=count + 1, annotations=LOCK))

    assert bool(answer.did("create", "Machine")) == allowed
    found = answer.condition("ScalingUp")
    assert found is not None
    assert (ETCD in found[2]) != allowed
    assert COMPONENTS not in found[2]


def facts(*, sick: str = "", members: bool = True, remediation: bool = True, managed: bool = True) -> PreflightFacts:
    """Three Machines; of the last, one condition is not True."""
    types = (*names.pod_conditions(managed_etcd=managed), MEMBER)
    machines = [
        owned(
            f"m{n}",
            node=f"n{n}",
            conditions=tuple(Condition(type=t, status="False" if n == 2 and t == sick else "True") for t in types),
        )
        for n in range(3)
    ]
    return PreflightFacts(
        machines=machines, managed_etcd=managed, members=[EtcdMember(id=f"{n}", name=f"n{n}") for n in range(3)] if members else None,
        certificates_available=True, waits_for_topology_version=False, remediation_in_progress=remediation,
    )  # fmt: skip


def preflight(facts: PreflightFacts, **how: Any) -> Verdict:
    facts = replace(facts, **how)
    return verdict(facts, PREFLIGHT.decide(facts))


def test_only_a_replacement_may_join_an_unhealthy_control_plane() -> None:
    assert preflight(facts(sick=API), adding=True).passed
    assert not preflight(facts(sick=API, remediation=False), adding=True).passed
    assert not preflight(facts(sick=API), adding=False).passed
    assert preflight(facts(sick=API), adding=False, excluding="m2").passed


def test_a_replacement_waits_while_etcd_cannot_be_asked() -> None:
    blocked = preflight(facts(sick=API, members=False), adding=True)

    assert blocked.complaint == "cannot check etcd cluster health before adding a control plane Machine"
    assert not blocked.passed
    # where all are healthy nobody has to ask, and an external etcd is not asked
    assert preflight(facts(members=False), adding=True).passed
    assert preflight(facts(sick=API, members=False, managed=False), adding=True).passed


def test_a_replacement_takes_the_history_with_it_and_the_lock_goes() -> None:
    answer = h.run(h.World(h.machines(2), replicas=3, annotations=LOCK))

    created = next(o for k, o in answer.raw["others"].items() if k.startswith("Machine/kcp1-"))
    assert created["metadata"]["annotations"]["controlplane.cluster.x-k8s.io/remediation-for"] == next(iter(LOCK.values()))
    assert "annotations" not in answer.object["metadata"]


def test_scaling_down_ignores_the_health_of_the_removed_machine() -> None:
    own, other = h.machines(3), h.machines(3)
    own[0].sick = {API: ("False", 60)}
    other[1].sick = {API: ("False", 60)}

    assert h.run(h.World(own, replicas=1)).did("delete", "Machine") == ["m1"]
    assert h.run(h.World(other, replicas=1)).did("delete", "Machine") == []


# ------------------------------------------------------------------------------------------- selection


def machine(
    name: str, *, age: int = 0, domain: str = "", marked: bool = False, sick: bool = False, outdated: bool = False
) -> ControlPlaneMachine:
    conditions = tuple(Condition(type=t, status="False" if sick and t == API else "True") for t in (*names.COMPONENTS, MEMBER))
    return owned(
        name,
        node=f"n-{name}",
        created=h.NOW - timedelta(seconds=age),
        failure_domain=domain,
        annotations={DELETE_MACHINE_ANNOTATION: ""} if marked else {},
        conditions=conditions,
        differences=Differences(config=True) if outdated else NO_DIFFERENCE,
    )


def pick(*machines: ControlPlaneMachine, domains: tuple[str, ...] = ()) -> str:
    outdated = [m for m in machines if m.is_outdated]
    found = select_to_remove(machines, outdated, domains, managed_etcd=True)
    assert found is not None
    return found.name


def test_selection_prefers_marked_then_sick_then_outdated_then_any() -> None:
    old, young = machine("old", age=100), machine("young", age=10)

    assert pick(old, machine("x", age=5, marked=True, outdated=True), machine("y", age=50, marked=True)) == "x"
    assert pick(old, machine("x", age=5, outdated=True), machine("y", age=1, marked=True)) == "y"
    assert pick(machine("h", age=100, outdated=True), machine("s", age=1, outdated=True, sick=True)) == "s"
    assert pick(old, machine("x", age=5, outdated=True)) == "x"
    assert pick(young, old) == "old"


def test_failure_domains_decide_among_the_eligible() -> None:
    a1, a2, b1 = machine("a1", age=10, domain="a"), machine("a2", age=20, domain="a"), machine("b1", age=99, domain="b")

    assert pick(a1, a2, b1, domains=("a", "b")) == "a2"
    assert pick(a1, a2, b1, machine("z", age=1, domain="gone"), domains=("a", "b")) == "z"
    assert pick(a1, a2, b1, machine("z", age=1), domains=("a", "b")) == "z"


def test_no_machine_is_picked_if_none_is_eligible() -> None:
    assert select_to_remove([], [], (), managed_etcd=True) is None


def test_a_new_machine_goes_where_the_fewest_will_stay() -> None:
    machines = [machine("a", domain="a"), machine("b", domain="b", outdated=True), machine("c", domain="b", outdated=True)]

    assert domain_for_new(machines, ("a", "b")) == "b"
    assert domain_for_new(machines, ()) == ""
    assert domain_for_new([], ("b", "a")) == "a"


# --------------------------------------------------------------------------------------------- rollout


@pytest.mark.parametrize(("count", "surge", "verb"), [(3, 1, "create"), (4, 1, "delete"), (3, 0, "delete"), (2, 0, "create")])
def test_surge_decides_whether_a_new_one_comes_first(count: int, surge: int, verb: str) -> None:
    machines = h.machines(count)
    for spec in machines:
        spec.version = "v1.33.0"
    strategy = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}}

    answer = h.run(h.World(machines, replicas=3, spec={"rollout": strategy}))

    assert len(answer.did(verb, "Machine")) == 1
    assert answer.did("delete" if verb == "create" else "create", "Machine") == []


def test_a_rollout_prepares_the_workload_cluster_first() -> None:
    machines = h.machines(3)
    for spec in machines:
        spec.version = "v1.33.0"

    answer = h.run(h.World(machines, kubeadm_config=h.KUBEADM_CONFIG.replace("v1.34.1", "v1.33.0")))

    kinds = [a[1] for a in answer.actions if a[0] in {"create", "patch"} and a[1] in {"ConfigMap", "DevMachine"}]
    assert kinds == ["ConfigMap", "DevMachine"]
    assert "kubernetesVersion: v1.34.1" in answer.raw["data"]["ConfigMap/kubeadm-config/ClusterConfiguration"]


@pytest.mark.parametrize("case", ["candidate", "other"])
def test_in_place_updates_fall_back_to_deletion(case: str) -> None:
    machines = h.machines(4)
    for spec in machines[:3]:
        spec.version = "v1.33.0"
    machines[0 if case == "candidate" else 3].sick = {API: ("False", 60)}

    answer = h.run(h.World(machines, replicas=3, features={"InPlaceUpdates": True}))

    assert answer.did("delete", "Machine") == (["m1"] if case == "candidate" else [])
    assert answer.requeue == (20 if case == "candidate" else 15)


# ------------------------------------------------------------------------------------------- up to date


def owner(config: dict[str, Any], version: str = "v1.34.1", **spec: Any) -> Owner:
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "tmpl1"}
    body = {"version": version, "kubeadmConfigSpec": config, "machineTemplate": {"spec": {"infrastructureRef": ref}}, **spec}
    return Owner(name="kcp1", namespace="ns", uid="u", cluster="c1", api_version="x/v1beta2", managed_etcd=True, spec=body)


def with_config(spec: dict[str, Any]) -> ControlPlaneMachine:
    return owned("m1", version="v1.34.1", spec={"bootstrap": {"configRef": {"name": "m1"}}}, config=Unstructured({"spec": spec}))


GATE = {"featureGates": {"ControlPlaneKubeletLocalMode": True}}
REGISTRATION = {"nodeRegistration": {"name": "x"}}
EQUAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as created to join": (
        {"joinConfiguration": REGISTRATION},
        {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}, **REGISTRATION}},
    ),
    "as created to initialize": (
        {"initConfiguration": REGISTRATION, "joinConfiguration": REGISTRATION},
        {"clusterConfiguration": GATE, "initConfiguration": REGISTRATION},
    ),
    "equal to the init form only": (
        {"initConfiguration": {"nodeRegistration": {"name": "a"}}, "joinConfiguration": {"nodeRegistration": {"name": "b"}}},
        {"clusterConfiguration": GATE, "initConfiguration": {"nodeRegistration": {"name": "a"}}},
    ),
    "dns": (
        {"clusterConfiguration": {"dns": {"imageTag": "v1.12.0"}}},
        {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}}},
    ),
    "endpoint": ({}, {"clusterConfiguration": {**GATE, "controlPlaneEndpoint": "x:1"}, "joinConfiguration": {"controlPlane": {}}}),
    "discovery": (
        {},
        {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}, "discovery": {"bootstrapToken": {"token": "t"}}}},
    ),
    "health check timeout": (
        {"joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 5}}},
        {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}}},
    ),
    "historic defaults": (
        {"format": "cloud-config", "joinConfiguration": {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}},
        {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}}},
    ),
    "empty and absent": (
        {"files": [], "users": [], "clusterConfiguration": {"apiServer": {"extraArgs": [], "extraEnvs": []}}},
        {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}}},
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_differences_without_meaning_do_not_roll_out(name: str) -> None:
    wanted, found = EQUAL[name]

    assert config_matches(owner(wanted), with_config(found))


@pytest.mark.parametrize("wanted", [
    {"files": [{"path": "/a", "content": "b"}]},
    {"joinConfiguration": {"nodeRegistration": {"taints": []}}},
    {"clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "a", "value": "b"}]}}},
    {"clusterConfiguration": {"featureGates": {"X": True}}},
    {"clusterConfiguration": {"featureGates": {"ControlPlaneKubeletLocalMode": False}}},
])  # fmt: skip
def test_differences_that_matter_roll_out(wanted: dict[str, Any]) -> None:
    found = {"clusterConfiguration": GATE, "joinConfiguration": {"controlPlane": {}}}

    assert not config_matches(owner(wanted), with_config(found))


def cloned(name: str | None, group_kind: str | None) -> ControlPlaneMachine:
    annotations = {k: v for k, v in ((CLONED_FROM_NAME_ANNOTATION, name), (CLONED_FROM_GROUP_KIND_ANNOTATION, group_kind)) if v is not None}
    return owned("m", infrastructure=Unstructured({"metadata": {"name": "m", "annotations": annotations}}))


KIND = "DevMachineTemplate.infrastructure.cluster.x-k8s.io"


@pytest.mark.parametrize(("machine_", "matches"), [
    (owned("m"), True),
    (cloned(None, KIND), True),
    (cloned("tmpl1", None), True),
    (cloned("tmpl1", KIND), True),
    (cloned("other", KIND), False),
    (cloned("tmpl1", "Other.infrastructure.cluster.x-k8s.io"), False),
])  # fmt: skip
def test_infrastructure_is_compared_by_where_it_was_cloned_from(machine_: ControlPlaneMachine, matches: bool) -> None:
    assert infrastructure_matches(owner({}), machine_) == matches


def test_a_template_that_is_gone_is_tolerated_while_deleting_only() -> None:
    assert h.run(h.World(h.machines(3), template=False)).error
    deleting = h.run(h.World(h.machines(3), template=False, deleting=True))
    assert deleting.error is None
    assert len(deleting.did("delete", "Machine")) == 3


def rolled_out(machine: ControlPlaneMachine, **facts: bool) -> Any:
    """How the Machine, which is chosen by a rollout, becomes what the spec asks for."""
    given_ = {"is_enabled": True, "is_needed": True, "passed": True, "passed_without": True, **facts}
    machine = replace(machine, differences=compare(owner({}), machine, now=h.NOW))
    return IN_PLACE.decide(InPlaceFacts(machine=machine, **given_)).act


@pytest.mark.parametrize("annotation", [DELETE_MACHINE_ANNOTATION, REMEDIATE_MACHINE_ANNOTATION])
def test_marked_machines_are_outdated_but_not_to_be_updated_in_place(annotation: str) -> None:
    plain = owned("m", version="v1.33.0")
    marked = owned("m", version="v1.33.0", annotations={annotation: ""})

    for machine in (plain, marked):
        found = UP_TO_DATE.decide(replace(machine, differences=compare(owner({}), machine, now=h.NOW))).outcome
        assert found is not None
        assert (found.status, found.message) == ("False", "* Version v1.33.0, v1.34.1 required")
    assert rolled_out(plain) is Rollout.ASK
    assert rolled_out(marked) is Rollout.REPLACE


def test_a_machine_that_is_to_be_renewed_is_replaced() -> None:
    machine = owned("m", version="v1.33.0", created=h.NOW - timedelta(days=2), status={"certificatesExpiryDate": h.stamp(h.NOW)})
    after = owner({}, rollout={"after": h.ago(days=1)})
    before = owner({}, rollout={"before": {"certificatesExpiryDays": 3}})

    for found in (compare(after, machine, now=h.NOW), compare(before, machine, now=h.NOW)):
        facts = InPlaceFacts(machine=replace(machine, differences=found), is_enabled=True, is_needed=True, passed=True, passed_without=True)
        assert IN_PLACE.decide(facts).act is Rollout.REPLACE


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"is_enabled": False}, Rollout.REPLACE),
        ({"is_needed": False}, Rollout.REPLACE),
        ({"passed": False}, Rollout.REPLACE),
        ({"passed": False, "passed_without": False}, Rollout.WAIT),
    ],
)
def test_machines_that_cannot_be_updated_are_not_offered_to_extensions(facts: dict[str, bool], expected: Rollout) -> None:
    assert rolled_out(owned("m", version="v1.33.0"), **facts) is expected


@pytest.mark.parametrize(("version", "gates", "expected"), [
    ("v1.30.9", {}, None),
    ("v1.31.0", {}, {"ControlPlaneKubeletLocalMode": True}),
    ("v1.31.0-rc.1", {}, {"ControlPlaneKubeletLocalMode": True}),
    ("v1.35.9", {"X": False}, {"ControlPlaneKubeletLocalMode": True, "X": False}),
    ("v1.35.0", {"ControlPlaneKubeletLocalMode": False}, {"ControlPlaneKubeletLocalMode": False}),
    ("v1.36.0", {}, None),
])  # fmt: skip
def test_the_feature_gate_that_five_versions_want_is_set(version: str, gates: dict[str, bool], expected: dict[str, bool] | None) -> None:
    config = {"clusterConfiguration": {"featureGates": gates}} if gates else {}

    found = config_spec(owner(config, version), join=True).get("clusterConfiguration", {}).get("featureGates")

    assert found == expected


# ----------------------------------------------------------------------------------------------- names


def name(template: str = "", slot: str = "s", **changes: Any) -> str:
    return machine_name(**{"template": template, "cluster": "c1", "control_plane": "kcp1", "uid": "u", "slot": slot, **changes})


def test_a_template_without_random_is_refused() -> None:
    with pytest.raises(BadNamingTemplate, match="random"):
        name("{{ .cluster.name }}")


@pytest.mark.parametrize("template", ["{{ .random }}-{{ .nobody }}", "{{ .random }}-{{", "{{ .random }}-{{ call .x }}"])
def test_a_template_that_does_not_render_is_refused(template: str) -> None:
    with pytest.raises(BadNamingTemplate):
        name(template)


def test_a_long_name_is_cut_and_keeps_its_suffix() -> None:
    long = name("a" * 80 + "-{{ .random }}")

    assert len(long) == 63
    assert long.startswith("a" * 58)
    assert long[-5:] == suffix("u", "s")


def test_names_are_the_same_for_the_same_situation_and_differ_otherwise() -> None:
    assert name() == name()
    assert len({name(slot=s) for s in "abcdefgh"}) == 8
    assert name(uid="other") != name()
    assert name(taken={name()}) != name()
    assert render("x {{- .random -}} y", {"random": "R"}) == "xRy"


def test_a_second_pass_that_does_not_see_the_first_one_creates_nothing_new() -> None:
    world = h.World(h.machines(1), replicas=3)

    first, second = h.run(world), h.run(world)

    assert first.did("create", "Machine") == second.did("create", "Machine")


@pytest.mark.parametrize(("given_", "expected"), [("kcp1", "kcp1"), ("a" * 63, "a" * 63), ("a" * 64, "hash_2W8PhQ_z"), ("", "")])
def test_names_that_are_no_label_values_are_hashed(given_: str, expected: str) -> None:
    assert label_value(given_) == expected


# ---------------------------------------------------------------------------------------------- quorum


@pytest.mark.parametrize(("voting", "needed"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)])
def test_quorum(voting: int, needed: int) -> None:
    assert quorum(voting) == needed


def cluster(healthy: list[bool], learners: int = 0) -> tuple[list[EtcdMember], list[ControlPlaneMachine]]:
    members = [EtcdMember(id=str(n), name=f"n{n}", is_learner=n >= len(healthy) - learners) for n in range(len(healthy))]
    machines = [
        owned(f"m{n}", node=f"n{n}", conditions=(Condition(type=MEMBER, status="True" if good else "False"),))
        for n, good in enumerate(healthy)
    ]
    return members, machines


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(0, 8))
def test_a_removal_that_is_called_safe_leaves_a_quorum_of_healthy_voters(healthy: list[bool], victim: int) -> None:
    victim %= len(healthy)
    members, machines = cluster(healthy)

    safe = project_etcd(members, machines, remove=f"n{victim}").safe

    left = [good for n, good in enumerate(healthy) if n != victim]
    assert safe == (sum(left) >= len(left) // 2 + 1)


@given(st.lists(st.booleans(), max_size=9))
def test_an_addition_that_is_called_safe_keeps_the_quorum_while_the_new_one_is_not_ready(healthy: list[bool]) -> None:
    members, machines = cluster(healthy)

    safe = project_etcd(members, machines, add=True).safe

    newcomer = 0 if len(healthy) > 1 else 1
    assert safe == (sum(healthy) + newcomer >= (len(healthy) + 1) // 2 + 1)


@given(st.lists(st.booleans(), min_size=2, max_size=7), st.integers(1, 2))
def test_no_change_is_safe_while_a_learner_would_stay(healthy: list[bool], learners: int) -> None:
    members, machines = cluster(healthy, learners)

    assert not project_etcd(members, machines, add=True).safe
    assert not project_etcd(members, machines, remove="n0").safe or learners >= len(healthy)


def test_members_without_machines_are_judged_by_alarms_and_unnamed_ones_are_not_trusted() -> None:
    _, machines = cluster([True])
    base = [EtcdMember(id="0", name="n0")]

    assert project_etcd([*base, EtcdMember(id="8", name="x"), EtcdMember(id="9", name="y")], machines, remove="y").safe
    assert not project_etcd(
        [*base, EtcdMember(id="8", name="x", alarms=("CORRUPT",)), EtcdMember(id="9", name="y")], machines, remove="y"
    ).safe
    assert not project_etcd([*base, EtcdMember(id="9", name="")], machines, remove="none").safe


@pytest.mark.parametrize("change", [{"add": True}, {"remove": "n0"}, {"remove": "nobody"}])
def test_a_nameless_member_forbids_any_change_however_healthy_the_others_are(change: dict[str, Any]) -> None:
    members, machines = cluster([True] * 7)

    assert project_etcd(members, machines, **change).safe
    assert not project_etcd([*members, EtcdMember(id="9", name="")], machines, **change).safe


@given(st.lists(st.booleans(), max_size=5), st.integers(0, 4))
def test_the_control_plane_survives_if_a_healthy_machine_stays(healthy: list[bool], victim: int) -> None:
    machines = [
        owned(f"m{n}", conditions=tuple(Condition(type=t, status="True" if good else "False") for t in names.COMPONENTS))
        for n, good in enumerate(healthy)
    ]

    expected = any(good for n, good in enumerate(healthy) if n != victim)
    assert control_plane_survives(machines, managed_etcd=True, remove=f"m{victim}") == expected
