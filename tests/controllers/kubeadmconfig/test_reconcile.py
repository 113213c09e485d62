"""Edge cases 12 to 40, 84 and 103 to 105 of the spec: what one pass does. Each test is named after its number."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.errors import Invalid

NS = "default"
WAITING = ("False", "NotAvailable", "Waiting for Cluster control plane to be initialized")
TRUE = ("True", "Available", "")
GENERATED = {"initialization": {"dataSecretCreated": True}, "dataSecretName": "m1"}


async def _joinable(world: Any, **how: Any) -> None:
    await world.cluster(initialized=True, **how)
    await world.certificates()


async def test_generated_config_is_left_alone(world: Any) -> None:
    await _joinable(world)
    await world.config(owner=await world.machine(), status=GENERATED)

    assert await world.reconcile() is None


@pytest.mark.parametrize("infrastructure", [True, False])
async def test_a_secret_without_owner_becomes_ours(world: Any, infrastructure: bool) -> None:
    await world.cluster(infrastructure=infrastructure)
    config = await world.worker()
    labels = {"cluster.x-k8s.io/cluster-name": "c1"}
    await world.secret("m1", {"value": "x", "format": "cloud-config"}, type="cluster.x-k8s.io/secret", labels=labels)

    await world.reconcile()
    (owner,) = (await world.judge.get(Secret, ObjectKey(NS, "m1"))).metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("KubeadmConfig", config["metadata"]["uid"], True)

    world.transport.writes.clear()
    await world.reconcile()
    assert not any("secrets" in path for _, path in world.transport.writes)


async def test_references_that_do_not_control_stay(world: Any) -> None:
    await world.cluster(infrastructure=False)
    config = await world.worker()
    machine = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m1", "uid": "u"}
    data = {"value": "x", "format": "cloud-config"}
    labels = {"cluster.x-k8s.io/cluster-name": "c1"}
    await world.secret("m1", data, type="cluster.x-k8s.io/secret", ownerReferences=[machine], labels=labels)

    await world.reconcile()

    owners = (await world.judge.get(Secret, ObjectKey(NS, "m1"))).metadata.owner_references
    assert [(o.kind, o.uid) for o in owners] == [("Machine", "u"), ("KubeadmConfig", config["metadata"]["uid"])]


async def test_status_is_restored_from_the_owner(world: Any) -> None:
    await _joinable(world)
    await world.worker(data_secret="something")

    assert await world.reconcile() is None
    assert (await world.conditions())["DataSecretAvailable"] == TRUE


async def test_data_wait_for_the_infrastructure(world: Any) -> None:
    await world.cluster(infrastructure=None)
    await world.worker()

    assert await world.reconcile() is None
    assert (await world.conditions())["DataSecretAvailable"][:2] == ("False", "NotAvailable")


async def test_a_config_without_a_cluster_is_left_alone_without_an_error(world: Any) -> None:
    await world.worker()

    assert await world.reconcile() is None


async def test_a_worker_waits_for_the_control_plane(world: Any) -> None:
    await world.cluster()
    await world.worker()

    assert await world.reconcile() == 30
    assert (await world.conditions())["DataSecretAvailable"] == WAITING


async def test_of_two_control_plane_machines_only_one_gets_data(world: Any) -> None:
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine("m1")
    await world.control_plane_machine("m2")

    assert await world.reconcile("m1") is None
    assert await world.reconcile("m2") == 30
    assert (await world.read("m1")).status.data_secret_name == "m1"
    assert (await world.read("m2")).status.data_secret_name == ""
    assert (await world.conditions("m2"))["DataSecretAvailable"] == WAITING


@pytest.mark.parametrize("spec", [None, {"joinConfiguration": {"nodeRegistration": {"name": "n"}}}])
async def test_a_joining_control_plane_machine_gets_its_data(world: Any, spec: Any) -> None:
    await _joinable(world)
    await world.control_plane_machine(spec=spec)

    assert await world.reconcile() == 300
    said = await world.conditions()
    assert said["DataSecretAvailable"] == said["CertificatesAvailable"] == TRUE
    assert len(await world.tokens()) == 1
    join = (await world.read()).spec.join_configuration
    assert join.control_plane is not None


@pytest.mark.parametrize("kind", ["worker", "pool_config"])
async def test_joining_workers_and_pools_get_their_data(world: Any, kind: str) -> None:
    await _joinable(world)
    name = {"worker": "m1", "pool_config": "mp1"}[kind]
    await getattr(world, kind)(name)

    assert await world.reconcile(name) == 300
    assert len(await world.tokens()) == 1


async def test_a_joining_machine_waits_for_the_endpoint(world: Any) -> None:
    await _joinable(world, endpoint=None)
    await world.worker()

    assert await world.reconcile() == 10
    said = await world.conditions()
    assert said["CertificatesAvailable"] == TRUE
    assert "DataSecretAvailable" not in said


async def test_a_second_pass_after_a_join_changes_nothing(world: Any) -> None:
    await _joinable(world)
    token = {"bootstrapToken": {"caCertHashes": ["sha256:" + "0" * 64]}}
    await world.control_plane_machine(spec={"joinConfiguration": {"controlPlane": {}, "discovery": token}})
    await world.reconcile()
    data = await world.data()
    await world.reconcile()  # brings observedGeneration up to the spec that the first pass wrote
    world.transport.writes.clear()

    assert await world.reconcile() == 300
    assert await world.data() == data
    assert world.transport.writes == []
    assert "sha256:" + "0" * 64 in data


async def test_certificates_without_tls_crt_at_init(world: Any) -> None:
    await world.cluster()
    await world.secret("c1-ca", {"tls.key": "k"})
    await world.control_plane_machine()

    assert "missing data for key tls.crt" in await world.failing()
    assert (await world.conditions())["CertificatesAvailable"][:2] == ("Unknown", "InternalError")
    assert await world.lock() is None


async def test_an_invalid_certificate_is_not_parsed_at_init(world: Any) -> None:
    await world.cluster()
    await world.certificates("ca", "proxy", "sa")
    await world.secret("c1-etcd", {"tls.crt": "garbage", "tls.key": "garbage"})
    await world.control_plane_machine()

    assert await world.reconcile() is None
    assert (await world.files())["/etc/kubernetes/pki/etcd/ca.crt"]["content"] == "garbage\n"


async def test_a_secret_of_an_unfinished_pass_is_overwritten(world: Any) -> None:
    await _joinable(world)
    await world.worker()
    await world.secret("m1", None, type="cluster.x-k8s.io/secret")

    assert await world.reconcile() == 300
    assert "kubeadm join" in await world.data()
    assert (await world.read()).status.data_secret_name == "m1"


@pytest.mark.parametrize("form", ["cloud-config", "ignition", None])
@pytest.mark.parametrize("role", ["init", "control-plane", "worker"])
async def test_data_are_rendered_in_every_format(world: Any, form: str | None, role: str) -> None:
    await world.cluster(initialized=role != "init")
    await world.certificates()
    spec = {"format": form} if form else None
    await (world.worker(spec=spec) if role == "worker" else world.control_plane_machine(spec=spec))

    await world.reconcile()

    secret = await world.judge.get(Secret, ObjectKey(NS, "m1"))
    assert secret.data["format"].decode() == (form or "cloud-config")
    assert secret.data["value"].startswith(b'{"ignition"' if form == "ignition" else b"## template: jinja\n#cloud-config\n")
    assert secret.type == "cluster.x-k8s.io/secret"
    assert secret.metadata.labels == {"cluster.x-k8s.io/cluster-name": "c1"}
    (owner,) = secret.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == ("KubeadmConfig", "m1", True, None)


SETTLED = {
    "Ready": ("True", "Ready", ""),
    "CertificatesAvailable": TRUE,
    "DataSecretAvailable": TRUE,
    "Paused": ("False", "NotPaused", ""),
}


async def test_conditions_are_true_after_a_join(world: Any) -> None:
    await _joinable(world)
    await world.worker()
    await world.reconcile()

    assert await world.conditions() == SETTLED
    assert list(await world.conditions()) == ["Ready", "CertificatesAvailable", "DataSecretAvailable", "Paused"]
    assert {c[0] for c in (await world.v1beta1()).values()} == {"True"}


@pytest.mark.parametrize("status", [{}, {"initialization": {"dataSecretCreated": True}}])
async def test_conditions_are_kept_after_a_restore_and_an_upgrade(world: Any, status: Any) -> None:
    await _joinable(world)
    await world.config(owner=await world.machine(data_secret="m1"), status=status)

    await world.reconcile()

    assert await world.conditions() == SETTLED
    assert {t: c[0] for t, c in (await world.v1beta1()).items()} == {
        "Ready": "True",
        "CertificatesAvailable": "True",
        "DataSecretAvailable": "True",
    }


async def test_a_paused_config_is_left_alone(world: Any) -> None:
    await world.cluster(paused=True)
    await world.worker()

    assert await world.reconcile() is None
    assert await world.conditions() == {"Paused": ("True", "Paused", "Cluster spec.paused is set to true")}
    assert (await world.read()).status.observed_generation == 0


async def test_a_config_that_is_deleted_is_left_alone(world: Any) -> None:
    await _joinable(world)
    await world.config(owner=await world.machine(), finalizers=["example.com/x"])
    await world.delete(KubeadmConfig, "m1")

    assert await world.reconcile() is None
    assert world.transport.writes == []  # ruling: no further condition changes


async def test_a_failing_init_releases_the_lock(world: Any) -> None:
    await world.cluster()
    await world.control_plane_machine(version="bogus")

    assert 'failed to parse kubernetes version "bogus"' in await world.failing()
    assert await world.lock() is None
    assert "CertificatesAvailable" not in await world.conditions()


async def test_a_lock_that_cannot_be_released_is_reported(world: Any) -> None:
    await world.cluster()
    await world.control_plane_machine(version="bogus")
    world.refuse("DELETE", "/configmaps/")

    error = await world.failing()
    assert "failed to unlock the kubeadm init lock" in error
    assert "bogus" in error


async def test_a_control_plane_provider_brings_its_own_certificates(world: Any) -> None:
    await world.cluster(control_plane_ref=True)
    await world.control_plane_machine()

    assert await world.reconcile() is None
    assert not any(path.startswith("/etc/kubernetes/pki") for path in await world.files())
    assert (await world.conditions())["CertificatesAvailable"] == TRUE


async def test_a_stand_alone_control_plane_gets_certificates_once(world: Any) -> None:
    await world.cluster(control_plane_ref=False)
    config = await world.control_plane_machine("m1")
    await world.control_plane_machine("m2")
    await world.reconcile("m1")

    made = {s.metadata.name: s for s in await world.judge.list(Secret, namespace=NS) if s.metadata.name.startswith("c1-")}
    assert set(made) == {"c1-ca", "c1-etcd", "c1-proxy", "c1-sa"}
    for secret in made.values():
        (owner,) = secret.metadata.owner_references
        assert (owner.uid, owner.controller, owner.block_owner_deletion) == (config["metadata"]["uid"], True, True)
    await world.set_initialized()
    await world.reconcile("m2")
    assert (await world.files("m2"))["/etc/kubernetes/pki/ca.key"]["content"] == made["c1-ca"].data["tls.key"].decode()


async def test_a_worker_with_a_control_plane_section_is_an_error(world: Any) -> None:
    await _joinable(world)
    await world.worker(spec={"joinConfiguration": {"controlPlane": {}}})

    assert await world.failing() == "Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object"
    assert set(await world.conditions()) == {"Ready", "CertificatesAvailable", "Paused"}


async def test_the_uninitialized_taint_is_not_doubled(world: Any) -> None:
    await _joinable(world)
    taint = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule", "value": "x"}
    await world.worker(spec={"joinConfiguration": {"nodeRegistration": {"taints": [taint]}}})

    await world.reconcile()

    assert (await world.documents())[0]["nodeRegistration"]["taints"] == [taint]
    assert len((await world.read()).spec.join_configuration.node_registration.taints) == 1


async def test_infrastructure_that_goes_away_again(world: Any) -> None:
    await _joinable(world)
    await world.worker()
    await world.reconcile()
    change = {"status": {"initialization": {"infrastructureProvisioned": False}}}
    await world.judge.patch(Cluster, ObjectKey(NS, "c1"), change, subresource="status")

    await world.reconcile()

    assert (await world.conditions())["DataSecretAvailable"][0] == "False"
    assert (await world.read()).status.data_secret_name == "m1"


async def test_every_kubernetes_version_gets_its_kubeadm_api(world: Any) -> None:
    await _joinable(world)
    await world.worker("old", version="v1.21.5")
    await world.worker("new", version="1.31.0-rc.1")

    assert "lower than v1.22.0" in await world.failing("old")
    assert not await world.has_data("old")
    await world.reconcile("new")
    assert (await world.documents("new"))[0]["apiVersion"] == "kubeadm.k8s.io/v1beta4"


async def test_networks_and_endpoint_of_the_cluster_reach_the_configuration(world: Any) -> None:
    network = {
        "pods": {"cidrBlocks": ["10.0.0.0/16", "fd00::/56"]},
        "services": {"cidrBlocks": ["10.1.0.0/16"]},
        "serviceDomain": "x.local",
    }
    await world.cluster(network=network)
    await world.certificates()
    await world.control_plane_machine("m1", spec={"clusterConfiguration": {"controlPlaneEndpoint": "mine:1"}})
    await world.reconcile()

    cluster, _ = await world.documents()
    assert cluster["networking"] == {"podSubnet": "10.0.0.0/16,fd00::/56", "serviceSubnet": "10.1.0.0/16", "dnsDomain": "x.local"}
    assert cluster["controlPlaneEndpoint"] == "mine:1"
    assert (cluster["clusterName"], cluster["kubernetesVersion"]) == ("c1", "v1.33.2")


FROM = {"secret": {"name": "s", "key": "k"}}


async def test_contents_of_files_come_from_secrets(world: Any) -> None:
    await _joinable(world)
    await world.secret("s", {"k": "from the secret"})
    files = [
        {"path": "/a", "content": "inline"},
        {"path": "/b", "contentFrom": FROM, "permissions": "0600"},
        {"path": "/c", "content": "last"},
    ]
    await world.worker(spec={"files": files})

    await world.reconcile()

    written = (await world.cloud_config())["write_files"]
    assert [(f["path"], f["content"]) for f in written[:3]] == [("/a", "inline\n"), ("/b", "from the secret\n"), ("/c", "last\n")]
    kept = (await world.read()).spec.files[1]
    assert (kept.content, kept.content_from.secret.name) == ("", "s")


async def test_passwords_of_users_come_from_secrets(world: Any) -> None:
    await _joinable(world)
    await world.secret("s", {"k": "$6$hash"})
    await world.worker(spec={"users": [{"name": "a", "passwd": "inline"}, {"name": "b", "passwdFrom": FROM}]})

    await world.reconcile()

    assert [u["passwd"] for u in (await world.cloud_config())["users"]] == ["inline", "$6$hash"]
    assert (await world.read()).spec.users[1].passwd == ""


@pytest.mark.parametrize("role", ["init", "worker"])
@pytest.mark.parametrize("what", ["files", "users"])
@pytest.mark.parametrize(
    ("data", "text"), [(None, "secret not found: default/s"), ({"other": "x"}, 'secret references non-existent secret key: "k"')]
)
async def test_missing_secrets_are_named(world: Any, role: str, what: str, data: Any, text: str) -> None:
    await world.cluster(initialized=role != "init")
    await world.certificates()
    if data is not None:
        await world.secret("s", data)
    entry = {"path": "/a", "contentFrom": FROM} if what == "files" else {"name": "u", "passwdFrom": FROM}
    await (world.worker if role == "worker" else world.control_plane_machine)(spec={what: [entry]})

    assert text in await world.failing()
    said = (await world.conditions())["DataSecretAvailable"][2]
    if what == "files":
        assert said.startswith(f"Failed to prepare spec.files: failed to resolve file source: {text}")
    else:
        assert said == "Failed to read password from secrets for spec.users"
    old = (await world.v1beta1())["DataSecretAvailable"]
    assert old[:3] == ("False", "Warning", "DataSecretGenerationFailed")
    assert text in old[3]
    assert not await world.has_data()
    assert await world.lock() is None


# ------------------------------------------------------------------------------------------- bad input


async def test_an_unknown_format_never_gets_past_the_api_server(world: Any) -> None:
    with pytest.raises(Invalid) as caught:
        await world.config(spec={"format": "cloud-init"})

    assert [c["field"] for c in caught.value.status["details"]["causes"] if c["field"] != "<nil>"] == ["spec.format"]


async def test_an_unreachable_workload_cluster_is_an_error_and_nothing_is_half_written(world: Any) -> None:
    await _joinable(world)
    await world.worker()
    world.workload.connected = False

    assert "connection to the workload cluster is down" in await world.failing()
    assert not await world.has_data()
    assert await world.token() == ""
    assert "DataSecretAvailable" not in await world.conditions()


async def test_data_that_is_too_large_is_refused_and_the_lock_released(world: Any) -> None:
    await world.cluster()
    await world.certificates()
    await world.secret("s", {"k": "x" * 700_000})
    files = [{"path": f"/big{n}", "contentFrom": FROM} for n in range(2)]
    await world.control_plane_machine(spec={"files": files})

    assert (await world.failing()).startswith("failed to create bootstrap data secret for KubeadmConfig default/m1: ")
    assert await world.lock() is None
    assert not await world.has_data()


async def test_a_megabyte_below_the_limit_is_fine(world: Any) -> None:
    await _joinable(world)
    await world.secret("s", {"k": "x" * 500_000})
    await world.worker(spec={"files": [{"path": f"/big{n}", "contentFrom": FROM} for n in range(2)]})

    assert await world.reconcile() == 300


async def test_certificates_use_the_algorithm_of_the_spec(world: Any) -> None:
    await world.cluster(control_plane_ref=False)
    await world.control_plane_machine(spec={"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}})
    await world.reconcile()
    secret = await world.judge.get(Secret, ObjectKey(NS, "c1-ca"))

    assert secret.data["tls.key"].startswith(b"-----BEGIN EC PRIVATE KEY-----")


async def test_status_is_written_for_the_generation_that_the_pass_itself_made(world: Any) -> None:
    await _joinable(world)
    await world.worker()
    await world.reconcile()
    first = await world.read()

    assert first.metadata.generation == 2  # the pass itself filled in the discovery
    assert first.status.observed_generation == 2


async def test_a_failed_pass_does_not_move_observed_generation(world: Any) -> None:
    await _joinable(world)
    await world.worker(version="bogus")

    await world.failing()

    assert (await world.read()).status.observed_generation == 0


async def test_a_failed_pass_keeps_the_token_that_it_made(world: Any) -> None:
    await _joinable(world)
    await world.worker(version="bogus")
    await world.failing()
    token = await world.token()
    await world.failing()

    assert token
    assert await world.token() == token
    assert len(await world.tokens()) == 1


async def test_a_spec_that_cannot_be_written_leaves_no_status_behind(world: Any) -> None:
    """A token that nobody remembers could not be prolonged: the pass must not pretend to be done."""
    await _joinable(world)
    await world.worker()
    world.refuse("PATCH", "/kubeadmconfigs/m1$", 409, "Conflict", times=5)

    await world.failing()
    assert (await world.read()).status.data_secret_name == ""
    world.transport.refusals.clear()
    assert await world.reconcile() == 300
    assert await world.token() in await world.data()


async def test_external_etcd(world: Any) -> None:
    await world.cluster(control_plane_ref=False)
    etcd = {"external": {"endpoints": ["https://e"], "caFile": "/e/ca", "certFile": "/e/crt", "keyFile": "/e/key"}}
    await world.control_plane_machine(spec={"clusterConfiguration": {"etcd": etcd}})

    assert "external certificate not found: default/c1-apiserver-etcd-client" in await world.failing()
    await world.secret("c1-apiserver-etcd-client", {"tls.crt": "crt", "tls.key": "key"})
    await world.secret("c1-etcd", {"tls.crt": "ca"})
    assert await world.reconcile() is None
    files = await world.files()
    assert (files["/e/ca"]["content"], files["/e/crt"]["content"], files["/e/key"]["content"]) == ("ca\n", "crt\n", "key\n")
    assert (await world.documents())[0]["etcd"]["external"]["endpoints"] == ["https://e"]
