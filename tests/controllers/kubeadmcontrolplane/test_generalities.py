"""Behaviour at the edges of ordinary worlds: what is missing, unreadable, foreign, or on its way out."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import clusterwright
from clusterwright.api.meta import Unstructured
from clusterwright.controllers.kubeadmcontrolplane.addons.coredns import coredns_upgrade
from clusterwright.controllers.kubeadmcontrolplane.addons.kube_proxy import kube_proxy_image
from clusterwright.controllers.kubeadmcontrolplane.machines.desired import Owner, metadata_intent

from . import harness as h

LOCK = "controlplane.cluster.x-k8s.io/remediation-in-progress"


def objects_of(world: h.World, kind: str, name: str) -> tuple[list[h.Json], h.Json]:
    objects = world.objects()
    return objects, next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)


def decide(objects: list[h.Json]) -> h.Answer:
    return h.Answer(dict(clusterwright.decide(objects, "KubeadmControlPlane/ns/kcp1")))


def outdated(count: int = 1, **changes: Any) -> h.World:
    machines = h.machines(count)
    for machine in machines:
        machine.version = "v1.33.9"
    return h.World(machines, **changes)


def test_a_lock_without_a_time_is_older_than_any_machine() -> None:
    answer = h.run(h.World(h.machines(3), annotations={LOCK: "{}"}))

    assert LOCK not in (answer.object["metadata"].get("annotations") or {})


@pytest.mark.parametrize("initialized", [True, False])
@pytest.mark.parametrize("purpose", ["apiserver-etcd-client", "etcd"])
def test_a_missing_certificate_of_external_etcd_is_an_error_and_nothing_is_generated(purpose: str, initialized: bool) -> None:
    condition = h.condition("Initialized", "True", "Initialized") if initialized else None
    missing = (purpose,) if initialized else (purpose, "ca")
    answer = h.run(
        h.World(h.machines(1), external_etcd=True, initialized=initialized, initialized_condition=condition, missing_certificates=missing)
    )

    assert answer.error
    assert answer.condition("CertificatesAvailable") == ("Unknown", "InternalError", "Please check controller logs for errors")
    assert not [a for a in answer.actions if a[1] == "Secret"]


def test_secrets_are_not_adopted_while_a_certificate_is_missing() -> None:
    world = h.World(h.machines(1), missing_certificates=("sa",))
    objects, authority = objects_of(world, "Secret", "c1-ca")
    authority["metadata"]["ownerReferences"] = []

    answer = decide(objects)

    available = answer.condition("CertificatesAvailable")
    assert available is not None
    assert available[:2] == ("False", "NotAvailable")
    assert ("patch", "Secret", "c1-ca") not in answer.actions


def test_a_kubeconfig_of_ours_without_a_client_certificate_is_an_error() -> None:
    objects, kubeconfig = objects_of(h.World(h.machines(1)), "Secret", "c1-kubeconfig")
    kubeconfig["type"] = "cluster.x-k8s.io/secret"
    text = "apiVersion: v1\nkind: Config\nusers:\n- name: c1-admin\n  user:\n    token: t\n"
    kubeconfig["data"] = {"value": base64.b64encode(text.encode()).decode()}

    assert decide(objects).error


@pytest.mark.parametrize("part", ["tls.crt", "tls.key"])
def test_an_etcd_authority_that_cannot_be_read_keeps_us_from_inspecting(part: str) -> None:
    objects, authority = objects_of(h.World(h.machines(1)), "Secret", "c1-etcd")
    authority["data"] = {**authority["data"], part: base64.b64encode(b"no PEM").decode()}

    answer = decide(objects)

    assert answer.error
    assert answer.condition("ControlPlaneComponentsHealthy") == ("Unknown", "InspectionFailed", "Please check controller logs for errors")


def test_owners_and_finalizers_of_others_survive_a_sync() -> None:
    world = h.World(h.machines(1))
    objects, machine = objects_of(world, "Machine", "m1")
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "z", "uid": "z"}
    machine["metadata"]["ownerReferences"].append(foreign)
    control_plane = next(o for o in objects if o["kind"] == "KubeadmControlPlane")
    control_plane["spec"]["machineTemplate"]["metadata"] = {"labels": {"team": "a"}}

    after = decide(objects).raw["others"]["Machine/m1"]

    assert after["metadata"]["labels"]["team"] == "a"
    assert foreign in after["metadata"]["ownerReferences"]
    assert after["metadata"]["finalizers"] == machine["metadata"]["finalizers"]


@pytest.mark.parametrize(("strategy", "rolls"), [({}, True), ({"rollingUpdate": {"maxSurge": 1}}, True), ({"type": "Other"}, False)])
def test_only_another_strategy_rolls_nothing_out_and_none_means_the_default(strategy: h.Json, rolls: bool) -> None:
    """Admission fills it in; an API server without our admission must not mean that nothing is ever rolled out."""
    objects, control_plane = objects_of(outdated(), "KubeadmControlPlane", "kcp1")
    control_plane["spec"]["rollout"]["strategy"] = strategy

    answer = decide(objects)

    assert not answer.error
    assert bool([a for a in answer.actions if a[0] in {"create", "delete"} and a[1] == "Machine"]) is rolls


def test_an_empty_kubeadm_config_has_all_defaults() -> None:
    world = outdated()
    objects = world.objects()
    observation = objects[-1]["workloadClusters"]["ns/c1"]
    config = next(o for o in observation["objects"] if o["metadata"]["name"] == "kubeadm-config")
    config["data"] = {"ClusterConfiguration": ""}

    answer = decide(objects)

    assert not answer.error
    assert "kubernetesVersion: v1.34.1" in answer.raw["others"]["ConfigMap/kubeadm-config"]["data"]["ClusterConfiguration"]


def test_an_invalid_surge_leaves_no_room_for_another_machine() -> None:
    objects, control_plane = objects_of(outdated(3), "KubeadmControlPlane", "kcp1")
    control_plane["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"] = "100%"

    answer = decide(objects)

    assert answer.did("create", "Machine") == []
    assert answer.did("delete", "Machine") == ["m1"]


def test_a_deleting_control_plane_takes_along_machines_that_it_owns_without_controlling_them() -> None:
    objects, machine = objects_of(h.World(h.machines(2), deleting=True), "Machine", "m2")
    machine["metadata"]["ownerReferences"][0]["controller"] = False

    assert decide(objects).did("delete", "Machine") == ["m1", "m2"]


def test_an_update_in_place_is_not_completed_where_the_template_of_the_infrastructure_is_unknown() -> None:
    machines = h.machines(1)
    machines[0].annotations = {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}
    objects, infrastructure = objects_of(h.World(machines), "DevMachine", "m1")
    infrastructure["metadata"].pop("annotations", None)

    answer = decide(objects)

    assert answer.error
    assert answer.did("patch", "DevMachine") == []


@pytest.mark.parametrize(
    ("current", "repository", "wanted"),
    [
        ("kube-proxy:v1", "", "docker.io/library/kube-proxy:v1.34.1"),
        ("foo/kube-proxy:v1", "", "docker.io/foo/kube-proxy:v1.34.1"),
        ("localhost:5000/kube-proxy", "", "localhost:5000/kube-proxy:v1.34.1"),
        ("registry.k8s.io/kube-proxy:v1", "", "registry.k8s.io/kube-proxy:v1.34.1"),
        ("registry.k8s.io/kube-proxy:v1", "docker.io/foo", "foo/kube-proxy:v1.34.1"),
        ("registry.k8s.io/kube-proxy:v1", "images.example.com/k8s/", "images.example.com/k8s/kube-proxy:v1.34.1"),
    ],
)
def test_an_image_that_names_no_registry_is_on_docker_hub(current: str, repository: str, wanted: str) -> None:
    assert kube_proxy_image(current, "v1.34.1", repository) == wanted


def test_a_coredns_image_without_registry_is_an_error() -> None:
    with pytest.raises(ValueError, match="registry"):
        coredns_upgrade("x/coredns:v1.10.1", {"dns": {"imageTag": "v1.11.1"}})


@pytest.mark.parametrize("order", [1, -1])
def test_a_member_that_two_machines_claim_is_healthy_only_if_both_say_so(order: int) -> None:
    machines = h.machines(3)
    machines[0].sick = {"EtcdMemberHealthy": ("False", 60)}
    machines[1].node = "n1"
    members = [h.member(n, leader=n == "n3") for n in ("n1", "n2", "n3")]

    answer = h.run(h.World(machines[::order], members=members))

    assert answer.error
    assert answer.did("delete", "EtcdMember") == []


def test_a_machine_that_leaves_is_not_asked_for_members_while_another_stays() -> None:
    machines = h.machines(2)
    machines[1].deleting = 30.0
    objects = h.World(machines, inspected=False, workload={"etcdErrors": {"connect": "boom"}}).objects()
    cluster = objects[-1]["workloadClusters"]["ns/c1"]
    cluster["objects"] = [o for o in cluster["objects"] if o["metadata"]["name"] != "n1"]

    found = decide(objects).on_machine("m1", "EtcdMemberHealthy")

    text = "Etcd reports the cluster is composed by [], but the etcd member hosted on Machine m1 (n1) is not included"
    assert found == ("False", "NotHealthy", text)


def test_without_a_corefile_the_deployment_of_coredns_is_not_looked_at() -> None:
    world = h.World(h.machines(1), workload={"unreadable": [{"kind": "Deployment"}]})
    objects, control_plane = objects_of(world, "KubeadmControlPlane", "kcp1")
    control_plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"] = {"dns": {"imageTag": "v1.12.0"}}

    assert decide(objects).error is None


def test_a_coredns_version_that_the_corefile_cannot_be_brought_to_stops_coredns_alone() -> None:
    world = h.World(h.machines(1))
    objects, control_plane = objects_of(world, "KubeadmControlPlane", "kcp1")
    control_plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"] = {"dns": {"imageTag": "v1.99.0"}}
    system = {"namespace": "kube-system"}
    container = {"name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.11.1"}
    known = objects[-1]["workloadClusters"]["ns/c1"]["objects"]
    known[:] = [o for o in known if o["metadata"]["name"] not in {"coredns", "kubeadm-config"}]
    known += [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", **system}, "data": {"Corefile": ".:53 {\n    errors\n}\n"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coredns", **system}, "spec": {"template": {"spec": {"containers": [container]}}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeadm-config", **system}, "data": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"}},
    ]  # fmt: skip

    answer = decide(objects)

    assert "cannot migrate up to '1.99.0' from '1.11.1'" in str(answer.error)
    assert answer.did("patch", "ConfigMap") == ["kubeadm-config"]
    assert answer.did("patch", "Deployment") == []


def test_members_missing_in_the_record_could_not_be_listed() -> None:
    answer = h.run(h.World(h.machines(1), inspected=False, members=None))

    found = answer.on_machine("m1", "EtcdMemberHealthy")
    assert found == ("Unknown", "InspectionFailed", "Failed to get etcd members: the etcd members could not be listed")


def test_an_in_place_update_waits_until_the_other_machines_are_healthy() -> None:
    world = outdated(3, features={"InPlaceUpdates": True})
    world.machines[0].sick = {"EtcdMemberHealthy": ("False", 60)}
    world.machines[2].sick = {"SchedulerPodHealthy": ("False", 60)}
    objects, control_plane = objects_of(world, "KubeadmControlPlane", "kcp1")
    control_plane["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"] = 0
    control_plane["spec"]["replicas"] = 2

    found = decide(objects).condition("ScalingDown")

    assert found is not None
    assert found[2].splitlines()[1:] == ["* waiting for control plane components to become healthy"]


def test_the_map_of_annotations_is_applied_also_where_the_template_has_none() -> None:
    """Another Cluster API's manager of our name may own the map: left out, all annotations in it would go."""
    obj = Unstructured({"apiVersion": "x/v1", "kind": "Infra", "metadata": {"name": "m", "namespace": "ns", "uid": "u"}})
    owner = Owner(name="k", namespace="ns", uid="u", cluster="c", api_version="x/v1", managed_etcd=True, spec={})

    assert metadata_intent(owner, obj)["metadata"]["annotations"] == {}
