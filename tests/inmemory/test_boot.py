"""A simulated machine joins only with data that would let a real node join, in either format."""

import base64
from datetime import timedelta
from types import MappingProxyType

import pytest
import yaml

from clusterwright.api.copying import replace
from clusterwright.inmemory import boot, bootstrap
from clusterwright.inmemory.bootstrap import BootFailure
from clusterwright.kubeadm import certificates
from clusterwright.runtime.keys import sample_rsa_key

PKI = "/etc/kubernetes/pki"


def parsed(recorded, role):
    return bootstrap.parse(recorded.data[role], recorded.format, "node-1")


def changed(data, **documents):
    """The data with fields of its kubeadm documents replaced; None takes a field away."""
    out = []
    for document in data.documents:
        new = {**document, **documents.get(document["kind"], {})}
        out.append(MappingProxyType({k: v for k, v in new.items() if v is not None}))
    return replace(data, documents=tuple(out))


def with_files(data, files):
    merged = {**data.files, **files}
    return replace(data, files={path: content for path, content in merged.items() if content is not None})


def with_discovery(data, **token):
    join = data.document("JoinConfiguration")
    return changed(data, JoinConfiguration={"discovery": {"bootstrapToken": {**join["discovery"]["bootstrapToken"], **token}}})


def token_of(data):
    return data.document("JoinConfiguration")["discovery"]["bootstrapToken"]["token"]


def join(recorded, data, *, is_control_plane=False, now=None, version="v1.34.1", **seen):
    return boot.boot(data, recorded.after(**seen), now or recorded.now, is_control_plane=is_control_plane, version=version)


def test_the_first_machine_founds_the_cluster(recorded):
    data = parsed(recorded, "init")

    booted = boot.boot(data, recorded.before(), recorded.now, is_control_plane=True, version="v1.34.1")

    assert booted.founds
    assert booted.ca.certificate.strip() == recorded.ca.strip()
    assert booted.etcd_ca is not None
    assert yaml.safe_load(booted.cluster_configuration)["clusterName"] == "c"
    assert "localhost" in boot.certificate_names(booted.cluster_configuration)


def test_a_second_control_plane_machine_joins(recorded):
    booted = join(recorded, parsed(recorded, "control-plane"), is_control_plane=True)

    assert booted.is_control_plane
    assert not booted.founds


def test_a_worker_joins_with_the_taint_that_holds_pods_off(recorded):
    booted = join(recorded, parsed(recorded, "worker"))

    assert [t["key"] for t in booted.taints] == ["node.cluster.x-k8s.io/uninitialized"]


def test_node_labels_of_the_kubelet_are_registered(cloud_config):
    data = parsed(cloud_config, "worker")
    registration = data.document("JoinConfiguration")["nodeRegistration"]
    arguments = [*registration["kubeletExtraArgs"], {"name": "node-labels", "value": "tier=edge,zone=a"}]
    data = changed(data, JoinConfiguration={"nodeRegistration": {**registration, "kubeletExtraArgs": arguments}})

    assert join(cloud_config, data).labels == {"tier": "edge", "zone": "a"}


def test_an_empty_taint_list_leaves_a_control_plane_machine_untainted(cloud_config):
    data = parsed(cloud_config, "control-plane")
    registration = data.document("JoinConfiguration")["nodeRegistration"]

    assert join(cloud_config, data, is_control_plane=True).taints is None
    data = changed(data, JoinConfiguration={"nodeRegistration": {**registration, "taints": []}})
    assert join(cloud_config, data, is_control_plane=True).taints == ()


def test_a_machine_that_registers_again_brings_the_same_with_it(recorded):
    again = boot.reboot(parsed(recorded, "init"))
    once = boot.boot(parsed(recorded, "init"), recorded.before(), recorded.now, is_control_plane=True)

    assert (again.founds, again.taints, again.cluster_configuration) == (True, once.taints, once.cluster_configuration)
    assert boot.reboot(parsed(recorded, "worker")).taints == join(recorded, parsed(recorded, "worker")).taints


# ------------------------------------------------------------------------------------------------------- failures


def test_a_join_waits_for_the_api_server(recorded):
    with pytest.raises(BootFailure, match="connection refused") as failure:
        join(recorded, parsed(recorded, "worker"), is_serving=False)

    assert failure.value.is_transient


def test_another_endpoint_is_refused_for_good(recorded):
    data = with_discovery(parsed(recorded, "worker"), apiServerEndpoint="127.0.0.1:1")

    with pytest.raises(BootFailure, match=r"dial tcp 127\.0\.0\.1:1: connection refused") as failure:
        join(recorded, data, is_serving=False)

    assert not failure.value.is_transient


def test_a_wrong_ca_hash_is_refused(recorded):
    data = with_discovery(parsed(recorded, "worker"), caCertHashes=["sha256:" + "0" * 64])

    with pytest.raises(BootFailure, match="none of the public keys matches caCertHashes"):
        join(recorded, data)


def test_without_hashes_verification_must_be_waived(recorded):
    data = parsed(recorded, "worker")

    with pytest.raises(BootFailure, match="unsafeSkipCAVerification"):
        join(recorded, with_discovery(data, caCertHashes=[]))
    assert join(recorded, with_discovery(data, caCertHashes=[], unsafeSkipCAVerification=True))


def test_an_unknown_token_is_refused(recorded):
    with pytest.raises(BootFailure, match="is unknown there"):
        join(recorded, with_discovery(parsed(recorded, "worker"), token="aaaaaa.0123456789abcdef"))


def test_a_token_with_another_secret_is_refused_without_telling_it(recorded):
    data = parsed(recorded, "worker")
    wrong = token_of(data).partition(".")[0] + ".0123456789abcdef"

    with pytest.raises(BootFailure, match="differs from the one in the cluster") as failure:
        join(recorded, with_discovery(data, token=wrong))

    assert "0123456789abcdef" not in str(failure.value)
    assert token_of(data) not in str(failure.value)


def test_an_expired_token_is_refused_from_the_second_of_its_expiry(recorded):
    data = parsed(recorded, "worker")
    token_id = token_of(data).partition(".")[0]
    expires = recorded.now + timedelta(minutes=1)
    known = {**recorded.tokens[token_id], "expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}

    assert join(recorded, data, now=expires - timedelta(seconds=1), find_token=lambda _: known)
    with pytest.raises(BootFailure, match="has expired"):
        join(recorded, data, now=expires, find_token=lambda _: known)


@pytest.mark.parametrize("usage", ["usage-bootstrap-authentication", "usage-bootstrap-signing"])
def test_a_token_for_other_uses_is_refused(recorded, usage):
    data = parsed(recorded, "worker")
    known = {**recorded.tokens[token_of(data).partition(".")[0]], usage: "false"}

    with pytest.raises(BootFailure, match="may not be used for joining"):
        join(recorded, data, find_token=lambda _: known)


def test_a_worker_with_control_plane_settings_is_refused(recorded):
    data = changed(parsed(recorded, "worker"), JoinConfiguration={"controlPlane": {}})

    with pytest.raises(BootFailure, match=r"a worker must not have joinConfiguration\.controlPlane"):
        join(recorded, data)


def test_a_control_plane_machine_without_control_plane_settings_is_refused(recorded):
    data = changed(parsed(recorded, "control-plane"), JoinConfiguration={"controlPlane": None})

    with pytest.raises(BootFailure, match=r"needs joinConfiguration\.controlPlane"):
        join(recorded, data, is_control_plane=True)


FILES = ["ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key", "front-proxy-ca.key", "sa.pub", "sa.key"]


@pytest.mark.parametrize("name", FILES)
def test_init_needs_every_certificate_and_key(recorded, name):
    data = with_files(parsed(recorded, "init"), {f"{PKI}/{name}": None})

    with pytest.raises(BootFailure, match=f"{PKI}/{name}: no such file or directory"):
        boot.boot(data, recorded.before(), recorded.now, is_control_plane=True)


def test_a_key_of_another_certificate_is_refused(recorded):
    other = certificates.encode_private_key(sample_rsa_key(2048, 0))
    for name in ("ca.key", "sa.key"):
        data = with_files(parsed(recorded, "init"), {f"{PKI}/{name}": other})
        with pytest.raises(BootFailure, match="is not the key of"):
            boot.boot(data, recorded.before(), recorded.now, is_control_plane=True)


def test_an_expired_authority_is_refused(recorded):
    with pytest.raises(BootFailure, match="has expired or is not yet valid"):
        boot.boot(parsed(recorded, "init"), recorded.before(), recorded.now + timedelta(days=4000), is_control_plane=True)


def test_a_garbled_certificate_is_refused(recorded):
    data = with_files(parsed(recorded, "init"), {f"{PKI}/ca.crt": b"-----BEGIN CERTIFICATE-----\nnonsense\n"})

    with pytest.raises(BootFailure, match="cannot be read"):
        boot.boot(data, recorded.before(), recorded.now, is_control_plane=True)


def test_a_control_plane_machine_with_another_authority_is_refused(recorded):
    other = certificates.new_ca(sample_rsa_key(2048, 1), now=recorded.now, serial=7)
    data = parsed(recorded, "control-plane")
    data = with_files(data, {f"{PKI}/ca.crt": other.certificate, f"{PKI}/ca.key": other.key})

    with pytest.raises(BootFailure, match="is not the certificate authority of the cluster"):
        join(recorded, data, is_control_plane=True)


def test_a_cluster_is_not_initialized_twice(recorded):
    data = parsed(recorded, "init")
    for seen in (recorded.after(), replace(recorded.before(), is_founded=True)):
        with pytest.raises(BootFailure, match="has been initialized before"):
            boot.boot(data, seen, recorded.now, is_control_plane=True)


def test_init_with_another_endpoint_is_refused(recorded):
    data = changed(parsed(recorded, "init"), ClusterConfiguration={"controlPlaneEndpoint": "127.0.0.1:9"})

    with pytest.raises(BootFailure, match="is not the address of the load balancer"):
        boot.boot(data, recorded.before(), recorded.now, is_control_plane=True)


def test_external_etcd_needs_its_files_and_no_authority_of_its_own(recorded):
    external = {
        "external": {"endpoints": ["https://etcd:2379"], "caFile": "/etcd/ca.crt", "certFile": "/etcd/c.crt", "keyFile": "/etcd/c.key"}
    }
    data = changed(parsed(recorded, "init"), ClusterConfiguration={"etcd": external})
    data = with_files(data, {f"{PKI}/etcd/ca.crt": None, f"{PKI}/etcd/ca.key": None, "/etcd/ca.crt": b"x", "/etcd/c.crt": b"x"})

    with pytest.raises(BootFailure, match=r"etcd\.external: /etcd/c\.key: no such file"):
        boot.boot(data, recorded.before(), recorded.now, is_control_plane=True)
    data = with_files(data, {"/etcd/c.key": b"x"})
    assert boot.boot(data, recorded.before(), recorded.now, is_control_plane=True).etcd_ca is None


def test_kubeadm_does_not_read_documents_that_are_newer_than_itself(recorded):
    with pytest.raises(BootFailure, match=r"no kind 'JoinConfiguration' is registered for 'kubeadm\.k8s\.io/v1beta4'"):
        join(recorded, parsed(recorded, "worker"), version="v1.30.4")


def test_unknown_documents_are_refused(recorded):
    data = changed(parsed(recorded, "worker"), JoinConfiguration={"apiVersion": "kubeadm.k8s.io/v1alpha1"})

    with pytest.raises(BootFailure, match=r"is registered for 'kubeadm\.k8s\.io/v1alpha1'"):
        join(recorded, data)


def test_a_missing_document_is_refused(recorded):
    data = parsed(recorded, "init")
    data = replace(data, documents=tuple(d for d in data.documents if d["kind"] != "ClusterConfiguration"))

    with pytest.raises(BootFailure, match="holds no ClusterConfiguration"):
        boot.boot(data, recorded.before(), recorded.now, is_control_plane=True)


# ---------------------------------------------------------------------------------------- discovery by kubeconfig


def discovery_file(recorded, server, authority):
    config = {"clusters": [{"name": "", "cluster": {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}}]}
    data = parsed(recorded, "worker")
    data = changed(data, JoinConfiguration={"discovery": {"file": {"kubeConfigPath": "/etc/kubernetes/bootstrap.conf"}}})
    return with_files(data, {"/etc/kubernetes/bootstrap.conf": yaml.safe_dump(config).encode()})


def test_a_discovery_file_is_as_good_as_a_token(recorded):
    assert join(recorded, discovery_file(recorded, f"https://{recorded.endpoint}", recorded.ca))


def test_a_discovery_file_is_checked(recorded):
    other = certificates.new_ca(sample_rsa_key(2048, 1), now=recorded.now, serial=7).certificate
    good = discovery_file(recorded, f"https://{recorded.endpoint}", recorded.ca)
    path = "/etc/kubernetes/bootstrap.conf"
    for data, complaint in (
        (with_files(good, {path: None}), "no such file or directory"),
        (with_files(good, {path: b"clusters: []"}), "is not a kubeconfig with a cluster"),
        (discovery_file(recorded, "https://127.0.0.1:1", recorded.ca), "connection refused"),
        (discovery_file(recorded, f"https://{recorded.endpoint}", other), "certificate signed by unknown authority"),
    ):
        with pytest.raises(BootFailure, match=complaint):
            join(recorded, data)
