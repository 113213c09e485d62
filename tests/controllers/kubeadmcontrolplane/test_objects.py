"""Edge cases of objects, Secrets, add-ons and deletion, and entry."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest

import clusterwright
from clusterwright.controllers import field_ownership as ownership
from clusterwright.controllers.kubeadmcontrolplane.addons.coredns import coredns_upgrade
from clusterwright.controllers.kubeadmcontrolplane.addons.images import Image, tag_for
from clusterwright.controllers.kubeadmcontrolplane.addons.kube_proxy import kube_proxy_image
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.corefile import RELEASES, CannotMigrate, check_upgrade, migrate, parse, require_migration
from clusterwright.kubeadm.versions import parse_version

from . import harness as h


def decide(objects: list[h.Json]) -> h.Answer:
    return h.Answer(dict(clusterwright.decide(objects, f"KubeadmControlPlane/{h.NAMESPACE}/{h.NAME}")))


def refuse(verb: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"unwritable": [{"verb": verb, "kind": kind, **more}]}


def legacy(answer: h.Answer, type: str) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = answer.object["status"]["deprecated"]["v1beta1"]["conditions"]
    return next((c for c in found if c["type"] == type), None)


# ------------------------------------------------------------------------------------------- creation


@pytest.mark.parametrize(("kind", "reason"), [
    ("DevMachine", "InfrastructureTemplateCloningFailed"),
    ("KubeadmConfig", "BootstrapTemplateCloningFailed"),
    ("Machine", "MachineGenerationFailed"),
])  # fmt: skip
def test_a_refused_creation_leaves_nothing_behind_and_says_what_failed(kind: str, reason: str) -> None:
    answer = h.run(h.World(h.machines(1), replicas=3, observation=refuse("create", kind)))

    created = {(k, n) for v, k, n in answer.actions if v == "create"}
    deleted = {(k, n) for v, k, n in answer.actions if v == "delete"}
    assert answer.error
    assert created == deleted
    condition = legacy(answer, "MachinesCreated")
    assert condition is not None
    assert (condition["status"], condition["severity"], condition["reason"]) == ("False", "Error", reason)


def test_the_three_objects_share_a_name_and_know_each_other() -> None:
    answer = h.run(h.World(h.machines(1), replicas=3))

    [name] = answer.did("create", "Machine")
    machine = answer.raw["others"][f"Machine/{name}"]
    assert answer.did("create", "DevMachine") == answer.did("create", "KubeadmConfig") == [name]
    assert machine["spec"]["infrastructureRef"] == {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name}
    assert machine["spec"]["bootstrap"]["configRef"]["name"] == name
    assert machine["metadata"]["ownerReferences"] == [h.control_plane_owner()]
    assert [a[1] for a in answer.actions if a[0] == "create"] == ["DevMachine", "KubeadmConfig", "Machine"]


# ------------------------------------------------------------------------------------------- adoption


def orphaned(world: h.World, version: str = "v1.34.1") -> list[h.Json]:
    objects = world.objects()
    for obj in objects:
        if obj["kind"] == "Machine":
            obj["metadata"].pop("ownerReferences")
            obj["spec"]["version"] = version
        if obj["kind"] == "Secret" and obj["metadata"]["name"] == "c1-ca":
            obj["metadata"]["ownerReferences"] = [h.owner("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "m1", "uid-m1")]
    return objects


def test_machines_and_the_secrets_of_their_configs_are_adopted_and_nothing_else_happens() -> None:
    answer = decide(orphaned(h.World(h.machines(1), replicas=3)))

    assert answer.actions == [("patch", "Secret", "c1-ca"), ("patch", "Machine", "m1")]
    assert answer.raw["others"]["Machine/m1"]["metadata"]["ownerReferences"] == [h.control_plane_owner()]
    assert answer.raw["others"]["Secret/c1-ca"]["metadata"]["ownerReferences"] == [h.control_plane_owner()]


@pytest.mark.parametrize(
    ("version", "adopted"), [("v1.32.0", False), ("v1.33.9", True), ("v1.35.0", True), ("v1.36.0", False), ("v2.34.0", False)]
)
def test_only_versions_within_one_minor_are_adopted(version: str, adopted: bool) -> None:
    answer = decide(orphaned(h.World(h.machines(1)), version))

    assert bool(answer.did("patch", "Machine")) == adopted
    assert answer.error is None


def test_a_deleting_control_plane_adopts_no_machines() -> None:
    answer = decide(orphaned(h.World(h.machines(1), deleting=True)))

    assert answer.did("patch", "Machine") == []


def test_mixed_ownership_is_refused() -> None:
    objects = h.World(h.machines(2)).objects()
    for obj in objects:
        if obj["kind"] == "Machine" and obj["metadata"]["name"] == "m2":
            obj["metadata"]["ownerReferences"] = [h.owner("x/v1", "Other", "o", "u")]

    assert "mixed management mode" in (decide(objects).error or "")


# ----------------------------------------------------------------------------------------- certificates

ALL = ("ca", "sa", "proxy", "etcd")


def test_certificates_are_made_once() -> None:
    fresh: h.Json = {"initialized": False, "initialized_condition": None, "kubeadm_config": False, "missing_certificates": ALL}
    answer = h.run(h.World([], replicas=1, members=None, **fresh))

    assert answer.did("create", "Secret") == [f"c1-{p}" for p in ALL]
    for purpose in ALL:
        secret = answer.raw["others"][f"Secret/c1-{purpose}"]
        assert (secret["type"], secret["metadata"]["ownerReferences"]) == ("cluster.x-k8s.io/secret", [h.control_plane_owner()])


def test_certificates_are_never_made_again_after_initialization() -> None:
    one = h.run(h.World(h.machines(1), missing_certificates=("ca",)))
    two = h.run(h.World(h.machines(1), missing_certificates=("ca", "sa")))

    assert one.did("create", "Secret") == two.did("create", "Secret") == []
    assert one.condition("CertificatesAvailable") == (
        "False",
        "NotAvailable",
        "Cluster certificate for ca is not available, please check cluster certificate secrets",
    )
    assert two.condition("CertificatesAvailable") == (
        "False",
        "NotAvailable",
        "Cluster certificates for ca, sa are not available, please check cluster certificate secrets",
    )


def owned_by(world: h.World, purpose: str, references: list[h.Json], type: str) -> list[h.Json]:
    objects = world.objects()
    for obj in objects:
        if obj["kind"] == "Secret" and obj["metadata"]["name"] == f"c1-{purpose}":
            obj["metadata"]["ownerReferences"] = references
            obj["type"] = type
    return objects


def test_secrets_of_users_and_of_foreign_controllers_keep_their_owners() -> None:
    """Upstream takes Secrets of our type from any controller; we take them only from the kinds that make them."""
    foreign = [h.owner("x/v1", "Other", "o", "u")]
    other_plane = [h.owner("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", "o", "u")]
    users = decide(owned_by(h.World(h.machines(1)), "sa", foreign, "Opaque"))
    others = decide(owned_by(h.World(h.machines(1)), "sa", foreign, "cluster.x-k8s.io/secret"))
    ours = decide(owned_by(h.World(h.machines(1)), "sa", other_plane, "cluster.x-k8s.io/secret"))

    assert users.did("patch", "Secret") == []
    assert others.did("patch", "Secret") == []
    assert ours.did("patch", "Secret") == ["c1-sa"]
    assert ours.raw["others"]["Secret/c1-sa"]["metadata"]["ownerReferences"] == [h.control_plane_owner()]


# ----------------------------------------------------------------------------------------- kubeconfig


def without_kubeconfig(world: h.World) -> list[h.Json]:
    return [o for o in world.objects() if o.get("metadata", {}).get("name") != "c1-kubeconfig"]


def test_without_an_endpoint_there_is_no_kubeconfig() -> None:
    answer = decide(without_kubeconfig(h.World([], replicas=1, members=None, endpoint=False)))

    assert answer.did("create", "Secret") == []
    assert answer.condition("ControlPlaneComponentsHealthy") == (
        "Unknown",
        "InspectionFailed",
        "Waiting for Cluster spec.controlPlaneEndpoint to be set",
    )


def test_a_kubeconfig_waits_for_the_authority() -> None:
    answer = decide(without_kubeconfig(h.World(h.machines(1), external_etcd=True, missing_certificates=("ca",))))

    assert answer.requeue == 30
    assert answer.did("create", "Secret") == []


def test_a_kubeconfig_is_made_for_the_endpoint() -> None:
    answer = decide(without_kubeconfig(h.World(h.machines(1))))

    text = answer.raw["data"]["Secret/c1-kubeconfig/value"]
    assert "server: https://10.0.0.10:6443" in text
    assert "name: c1-admin@c1" in text


def kubeconfig_of(days: float, server: str = "https://elsewhere:1") -> str:
    import asyncio

    from clusterwright.runtime.keys import sample_keys

    async def make() -> bytes:
        key = await sample_keys().new_key("RSA-2048")
        ca = pki.KeyPair(*(base64.b64decode(v) for v in h.authority("ca").values()))
        client = pki.sign(
            ca, key, common_name="x", serial=3, not_before=h.NOW - timedelta(days=400), not_after=h.NOW + timedelta(days=days), client=True
        )
        return pki.new_kubeconfig("c1", server, ca, client)

    return base64.b64encode(asyncio.run(make())).decode()


@pytest.mark.parametrize(("days", "type", "rotated"), [
    (182, "cluster.x-k8s.io/secret", True),
    (183, "cluster.x-k8s.io/secret", False),
    (1, "Opaque", False),
])  # fmt: skip
def test_a_kubeconfig_is_renewed_in_time_unless_the_user_made_it(days: float, type: str, rotated: bool) -> None:
    objects = h.World(h.machines(1)).objects()
    for obj in objects:
        if obj.get("metadata", {}).get("name") == "c1-kubeconfig":
            obj["type"], obj["data"] = type, {"value": kubeconfig_of(days)}
            if type != "Opaque":
                obj["metadata"]["ownerReferences"] = [h.control_plane_owner()]

    answer = decide(objects)

    assert answer.did("patch", "Secret") == (["c1-kubeconfig"] if rotated else [])
    if rotated:
        assert "server: https://elsewhere:1" in answer.raw["data"]["Secret/c1-kubeconfig/value"]


# ------------------------------------------------------------------------------------------- expiries


def test_expiries_are_written_where_they_are_missing_and_can_be_known() -> None:
    world = h.World(
        h.machines(3),
        workload={"apiServerCertificateExpiry": {"n1": "2027-01-01T00:00:00Z", "n2": "2027-01-01T00:00:00Z", "n3": "2027-01-01T00:00:00Z"}},
    )
    world.machines[2].config = False
    objects = world.objects()
    for obj in objects:
        if obj["kind"] == "KubeadmConfig" and obj["metadata"]["name"] == "m1":
            obj["metadata"]["annotations"] = {}

    answer = decide(objects)

    assert answer.did("patch", "KubeadmConfig") == ["m1"]
    assert answer.raw["others"]["KubeadmConfig/m1"]["metadata"]["annotations"] == {
        "machine.cluster.x-k8s.io/certificates-expiry": "2027-01-01T00:00:00Z"
    }


# ----------------------------------------------------------------------------------------- metadata in place


def test_labels_and_annotations_reach_all_three_objects_and_nothing_else_of_them() -> None:
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    world = h.World(h.machines(1), spec={"machineTemplate": template})
    before = {
        (o["kind"], o["metadata"].get("name")): o.get("spec") for o in world.objects() if o["kind"] in {"DevMachine", "KubeadmConfig"}
    }

    answer = h.run(world)

    for kind in ("Machine", "DevMachine", "KubeadmConfig"):
        found = answer.raw["others"][f"{kind}/m1"]
        assert found["metadata"]["labels"]["a"] == "b"
        assert found["metadata"]["annotations"]["c"] == "d"
        if kind != "Machine":
            assert found["spec"] == before[kind, "m1"]


def test_a_deleting_machine_only_follows_timeouts() -> None:
    machines = h.machines(2)
    machines[1].deleting = 60
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "deletion": {"nodeDrainTimeoutSeconds": 77},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "tmpl1"},
        },
    }

    answer = h.run(h.World(machines, replicas=2, spec={"machineTemplate": template}))

    leaving = answer.raw["others"]["Machine/m2"]
    assert leaving["spec"]["deletion"] == {"nodeDrainTimeoutSeconds": 77, "nodeDeletionTimeoutSeconds": 10}
    assert "a" not in leaving["metadata"]["labels"]
    assert answer.did("patch", "DevMachine") == ["m1"]


LIVE: h.Json = {
    "apiVersion": "v1",
    "kind": "X",
    "metadata": {
        "name": "x",
        "resourceVersion": "5",
        "labels": {"a": "1", "b": "2"},
        "managedFields": [{"manager": "us", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}}}],
    },
}


def test_an_apply_is_left_out_only_if_nothing_would_change_and_nothing_of_ours_would_go() -> None:
    both = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    fewer = {"metadata": {"labels": {"a": "1"}}}
    other = {"metadata": {"labels": {"a": "9", "b": "2"}}}

    assert ownership.is_in_force(LIVE, both, "us")
    assert not ownership.is_in_force(LIVE, fewer, "us")
    assert not ownership.is_in_force(LIVE, other, "us")
    assert not ownership.is_in_force(LIVE, both, "somebody else")


def test_lost_managed_fields_are_repaired() -> None:
    guessed = {
        **LIVE,
        "metadata": {
            **LIVE["metadata"],
            "managedFields": [{"manager": "before-first-apply", "operation": "Update"}, {"manager": "y", "operation": "Update"}],
        },
    }

    patch = ownership.repaired(guessed, "us")

    assert patch is not None
    assert [e["manager"] for e in patch[0]["value"]] == ["y", "us"]
    assert patch[1]["value"] == "5"
    assert ownership.repaired(LIVE, "us") is None


# ------------------------------------------------------------------------------------------- deletion


def worker(name: str) -> h.Json:
    meta = h.metadata(name)
    meta["labels"] = {"cluster.x-k8s.io/cluster-name": h.CLUSTER}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": meta,
        "spec": {"clusterName": h.CLUSTER, "bootstrap": {"dataSecretName": "x"}, "infrastructureRef": {}},
    }


def pool(name: str) -> h.Json:
    return {**worker(name), "kind": "MachinePool", "spec": {"clusterName": h.CLUSTER}}


def test_all_machines_go_at_once_with_their_hooks() -> None:
    answer = h.run(h.World(h.machines(3), deleting=True))

    assert answer.did("delete", "Machine") == ["m1", "m2", "m3"]
    assert answer.condition("Deleting") == ("True", "WaitingForMachineDeletion", "Deleting 3 Machines")
    assert [a for a in answer.actions if a[1] == "EtcdMember"] == []


def test_workers_and_pools_block_the_deletion_of_a_control_plane() -> None:
    extra = [*(worker(f"w{n}") for n in range(7)), pool("p1")]

    answer = h.run(h.World(h.machines(1), deleting=True, extra=extra))

    assert answer.did("delete", "Machine") == []
    assert answer.condition("Deleting") == (
        "True",
        "WaitingForWorkersDeletion",
        "KubeadmControlPlane deletion blocked because following objects still exist:\n* MachinePools: p1\n* Machines: w0, w1, w2, w3, w4, ... (2 more)",
    )


def test_with_nothing_left_the_finalizer_goes() -> None:
    assert h.run(h.World([], deleting=True, members=None)).raw["object"] is None


# ------------------------------------------------------------------------------------------- kubeadm-config


def rolled(**changes: Any) -> h.World:
    machines = h.machines(1)
    machines[0].version = "v1.33.0"
    return h.World(machines, **changes)


@pytest.mark.parametrize("broken", [False, "not: [yaml", "kind: Other\n"])
def test_a_kubeadm_config_that_cannot_be_used_is_an_error(broken: bool | str) -> None:
    answer = h.run(rolled(kubeadm_config=broken))

    assert answer.error
    assert answer.did("create", "Machine") == []


def test_without_a_change_there_is_no_write() -> None:
    assert h.run(rolled()).did("patch", "ConfigMap") == []


def test_the_newer_form_keeps_unknown_fields() -> None:
    old = h.KUBEADM_CONFIG.replace("v1beta4", "v1beta3").replace("v1.34.1", "v1.30.0")

    text = h.run(rolled(kubeadm_config=old)).raw["data"]["ConfigMap/kubeadm-config/ClusterConfiguration"]

    assert "apiVersion: kubeadm.k8s.io/v1beta4" in text
    assert "kubernetesVersion: v1.34.1" in text
    for kept in ("clusterName: c1", "podSubnet: 192.168.0.0/16", "serviceSubnet: 10.128.0.0/12", "dnsDomain: cluster.local"):
        assert kept in text


# ------------------------------------------------------------------------------------------- CoreDNS


def upgrade(current: str, **configuration: Any) -> str | None:
    found = coredns_upgrade(current, configuration)
    return found.image if found is not None else None


DEFAULT = "registry.k8s.io/coredns/coredns"


@pytest.mark.parametrize(("current", "configuration", "expected"), [
    (f"{DEFAULT}:v1.10.1", {}, None),
    (f"{DEFAULT}:v1.10.1", {"dns": {"imageTag": "v1.12.0"}}, f"{DEFAULT}:v1.12.0"),
    ("k8s.gcr.io/coredns:1.7.0", {"dns": {"imageTag": "v1.8.0"}}, "k8s.gcr.io/coredns/coredns:v1.8.0"),
    ("k8s.gcr.io/coredns:1.6.7", {"dns": {"imageTag": "1.7.0"}}, "k8s.gcr.io/coredns:1.7.0"),
    ("my.io/coredns:1.7.0", {"dns": {"imageTag": "v1.8.0"}}, "my.io/coredns:v1.8.0"),
    ("my.io/coredns:v1.8.0", {"imageRepository": "other.io/x/"}, "other.io/x/coredns:v1.8.0"),
])  # fmt: skip
def test_coredns_gets_the_image_of_its_repository(current: str, configuration: dict[str, Any], expected: str | None) -> None:
    assert upgrade(current, **configuration) == expected


@pytest.mark.parametrize(("current", "tag", "text"), [
    (f"{DEFAULT}:v1.10.1", "v1.9.0", "must be greater than or equal to"),
    (f"{DEFAULT}:v1.10.7", "v1.12.0", "is not a compatible coredns version"),
    (DEFAULT, "v1.12.0", "valid image tag"),
    (f"{DEFAULT}:latest", "v1.12.0", "failed to parse CoreDNS version"),
])  # fmt: skip
def test_a_coredns_that_cannot_be_upgraded_is_an_error(current: str, tag: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        upgrade(current, dns={"imageTag": tag})


OLD_COREFILE = """.:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        upstream
        resyncperiod 5m
        transfer to 1.2.3.4
    }
    prometheus :9153
    proxy . /etc/resolv.conf
    cache 30
}
"""


def test_a_corefile_is_migrated_through_all_versions() -> None:
    text = migrate(OLD_COREFILE, parse_version("1.2.0"), parse_version("1.12.0"))

    [server] = parse(text)
    plugins = {p.name: p for p in server.plugins}
    assert "proxy" not in plugins
    assert plugins["forward"].arguments == [".", "/etc/resolv.conf"]
    assert [(o.name, o.arguments) for o in plugins["forward"].options] == [("max_concurrent", ["1000"])]
    assert [o.name for o in plugins["kubernetes"].options] == ["pods"]
    assert [(o.name, o.arguments) for o in plugins["health"].options] == [("lameduck", ["5s"])]
    assert {"loop", "ready"} <= plugins.keys()
    assert [(o.name, o.arguments) for o in plugins["transfer"].options] == [("to", ["1.2.3.4"])]


def test_a_recent_corefile_is_left_as_it_is_but_for_its_form() -> None:
    recent = ".:53 {\n    errors\n    ready\n    kubernetes cluster.local {\n        pods insecure\n    }\n}\n"

    assert migrate(recent, parse_version("1.10.1"), parse_version("1.12.0")) == recent
    assert migrate("anything at all {", parse_version("1.12.0"), parse_version("1.12.0")) == "anything at all {"


@pytest.mark.parametrize("broken", ["a {", "}", 'a "b'])
def test_a_corefile_that_cannot_be_read_is_not_guessed_at(broken: str) -> None:
    with pytest.raises(CannotMigrate):
        migrate(broken, parse_version("1.10.1"), parse_version("1.12.0"))


def test_releases_are_in_order_and_only_upwards() -> None:
    versions = [parse_version(r) for r in RELEASES]

    assert versions == sorted(versions)
    require_migration(parse_version("1.8.0"), parse_version("1.8.3"))
    for before, after in (("1.8.0", "1.8.1"), ("1.9.0", "1.8.0"), ("1.99.0", "1.99.0")):
        with pytest.raises(CannotMigrate):
            require_migration(parse_version(before), parse_version(after))
    check_upgrade(parse_version("1.9.0"), parse_version("1.9.0"))


# ------------------------------------------------------------------------------------------- kube-proxy


@pytest.mark.parametrize(("current", "version", "repository", "expected"), [
    ("registry.k8s.io/kube-proxy:v1.33.0", "v1.34.1", "", "registry.k8s.io/kube-proxy:v1.34.1"),
    ("registry.k8s.io/kube-proxy:v1.33.0", "v1.34.1+build.5", "", "registry.k8s.io/kube-proxy:v1.34.1_build.5"),
    ("registry.k8s.io/kube-proxy:v1.33.0", "v1.34.1", "my.io/k8s/", "my.io/k8s/kube-proxy:v1.34.1"),
    ("localhost:5000/kube-proxy:v1", "v1.34.1", "", "localhost:5000/kube-proxy:v1.34.1"),
])  # fmt: skip
def test_kube_proxy_gets_the_image_of_its_repository(current: str, version: str, repository: str, expected: str) -> None:
    assert kube_proxy_image(current, version, repository) == expected


@pytest.mark.parametrize(
    ("current", "repository"),
    [("registry.k8s.io/kube-proxy@sha256:" + "a" * 64, ""), ("registry.k8s.io/kube-proxy:v1", "Not A Repository")],
)
def test_an_image_that_cannot_be_parsed_is_an_error(current: str, repository: str) -> None:
    with pytest.raises(ValueError, match="parse image name"):
        kube_proxy_image(current, "v1.34.1", repository)


def test_images_survive_a_round_trip() -> None:
    assert str(Image.parse("a.io:5000/b/c:v1")) == "a.io:5000/b/c:v1"
    assert tag_for("v1+x y") == "v1_x_y"


# ------------------------------------------------------------------------------------------- permissions


@pytest.mark.parametrize(("version", "created"), [("v1.37.9", True), ("v1.38.0", False)])
def test_bindings_are_made_below_1_38_only(version: str, created: bool) -> None:
    world = rolled(version=version)
    objects = world.objects()
    cluster = objects[-1]["workloadClusters"]["ns/c1"]
    cluster["objects"] = [o for o in cluster["objects"] if o["kind"] != "ClusterRoleBinding"]

    answer = decide(objects)

    expected = ["kubeadm:apiserver-kubelet-client"] if created else []
    assert answer.did("create", "ClusterRoleBinding") == expected


# ----------------------------------------------------------------------------------------------- leftovers


def test_clones_for_a_machine_that_was_never_created_are_deleted() -> None:
    left: list[h.Json] = []
    for obj in h.machine_objects(h.MachineSpec("kcp1-lost", age=600))[1:]:
        obj["metadata"]["ownerReferences"] = [
            {k: v for k, v in h.control_plane_owner().items() if k not in {"controller", "blockOwnerDeletion"}}
        ]
        left.append(obj)

    answer = h.run(h.World(h.machines(3), extra=left))

    assert answer.actions == [("delete", "KubeadmConfig", "kcp1-lost"), ("delete", "DevMachine", "kcp1-lost")]


def test_a_machine_that_is_gone_when_its_conditions_are_written_is_not_a_failure() -> None:
    machines = h.machines(3)
    machines[1].version = "v1.33.0"
    gone = {"unwritable": [{"verb": "patch", "kind": "Machine", "name": "m2", "error": "NotFound"}]}

    assert h.run(h.World(machines, observation=gone)).error is None


@pytest.mark.parametrize(("spec", "port"), [
    ({}, 6443),
    ({"initConfiguration": {"localAPIEndpoint": {"bindPort": 1}}, "joinConfiguration": {"controlPlane": {"localAPIEndpoint": {"bindPort": 2}}}}, 1),
    ({"joinConfiguration": {"controlPlane": {"localAPIEndpoint": {"bindPort": 2}}}}, 2),
    ({"joinConfiguration": {"controlPlane": {}}}, 6443),
])  # fmt: skip
def test_the_port_of_the_api_server_is_the_one_of_its_config(spec: dict[str, Any], port: int) -> None:
    from clusterwright.api.meta import Unstructured
    from clusterwright.controllers.kubeadmcontrolplane.addons.upkeep import api_server_port

    assert api_server_port(Unstructured({"spec": spec})) == port
