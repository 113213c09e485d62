from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from clusterwright.api.bootstrap import ClusterConfiguration, InitConfiguration, JoinConfiguration
from clusterwright.api.codec import to_json
from clusterwright.api.copying import replace
from clusterwright.kubeadm.documents import (
    AdditionalData,
    UnknownDocument,
    cluster_document,
    init_document,
    join_document,
    marshal,
    parse_cluster_configuration,
)
from clusterwright.kubeadm.durations import format_duration, parse_seconds
from clusterwright.kubeadm.presence import is_defined

DATA = AdditionalData(
    kubernetes_version="v1.30.0",
    cluster_name="mycluster",
    dns_domain="myDNSDomain",
    service_subnet="myServiceSubnet",
    pod_subnet="myPodSubnet",
)
EMPTY: dict[str, Any] = {"controllerManager": {}, "dns": {}, "etcd": {}, "scheduler": {}}


def cluster(**spec: Any) -> ClusterConfiguration:
    return msgspec.convert(spec, ClusterConfiguration)


def init(**spec: Any) -> InitConfiguration:
    return msgspec.convert(spec, InitConfiguration)


def join(**spec: Any) -> JoinConfiguration:
    return msgspec.convert(spec, JoinConfiguration)


def with_health_check(seconds: int) -> AdditionalData:
    values = {f: getattr(DATA, f) for f in AdditionalData.__dataclass_fields__}
    return AdditionalData(**(values | {"control_plane_component_health_check_seconds": seconds}))


# ---------------------------------------------------------------------------------- the spec's edge cases

NETWORK = {"dnsDomain": "myDNSDomain", "podSubnet": "myPodSubnet", "serviceSubnet": "myServiceSubnet"}


def test_the_cluster_document_of_v1beta3_is_rendered() -> None:
    assert cluster_document(None, with_health_check(30), "v1beta3") == EMPTY | {
        "apiVersion": "kubeadm.k8s.io/v1beta3",
        "kind": "ClusterConfiguration",
        "apiServer": {"timeoutForControlPlane": "30s"},
        "clusterName": "mycluster",
        "kubernetesVersion": "v1.30.0",
        "networking": NETWORK,
    }


def test_the_cluster_document_of_v1beta4_is_rendered() -> None:
    assert cluster_document(None, with_health_check(30), "v1beta4") == EMPTY | {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "apiServer": {},
        "clusterName": "mycluster",
        "kubernetesVersion": "v1.30.0",
        "networking": NETWORK,
        "proxy": {},
    }


def test_init_document_of_v1beta3_drops_timeouts() -> None:
    config = init(
        nodeRegistration={"ignorePreflightErrors": ["some-preflight-check"]}, timeouts={"controlPlaneComponentHealthCheckSeconds": 50}
    )

    assert init_document(config, "v1beta3") == {
        "apiVersion": "kubeadm.k8s.io/v1beta3",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {},
        "nodeRegistration": {"taints": None, "ignorePreflightErrors": ["some-preflight-check"]},
    }


def test_timeouts_of_v1beta4_are_rendered() -> None:
    timeouts = {"controlPlaneComponentHealthCheckSeconds": 50}

    assert init_document(init(timeouts=timeouts), "v1beta4")["timeouts"] == {"controlPlaneComponentHealthCheck": "50s"}
    assert join_document(join(timeouts=timeouts), "v1beta4")["timeouts"] == {"controlPlaneComponentHealthCheck": "50s"}


@pytest.mark.parametrize("api", ["v1beta3", "v1beta4"])
def test_an_empty_join_document_is_rendered(api: Any) -> None:
    expected = {"apiVersion": f"kubeadm.k8s.io/{api}", "kind": "JoinConfiguration", "discovery": {}, "nodeRegistration": {"taints": None}}

    assert join_document(None, api) == expected
    assert join_document(join(discovery={}, timeouts={}), api) == expected


def test_documents_are_read_back() -> None:
    config = cluster(
        controlPlaneEndpoint="h:1",
        apiServer={"certSANs": ["a"], "extraArgs": [{"name": "z", "value": "1"}, {"name": "a", "value": ""}]},
        etcd={"local": {"imageTag": "v9", "extraArgs": [{"name": "b", "value": "2"}]}},
        dns={"imageTag": "v1.11.1"},
        featureGates={"X": True},
    )
    for api in ("v1beta3", "v1beta4"):
        text = marshal(cluster_document(config, with_health_check(50), api))
        back, data = parse_cluster_configuration(text)
        assert data == (with_health_check(50) if api == "v1beta3" else DATA)
        again = marshal(cluster_document(back, data, api))
        assert yaml.safe_load(again) == yaml.safe_load(text)


def test_additional_data_is_propagated() -> None:
    data = AdditionalData(
        kubernetes_version="v1.23.0",
        cluster_name="mycluster",
        dns_domain="d",
        service_subnet="s",
        pod_subnet="p",
        control_plane_component_health_check_seconds=10,
    )
    document = cluster_document(cluster(controlPlaneEndpoint="host:6443"), data, "v1beta3")

    assert document["controlPlaneEndpoint"] == "host:6443"
    assert document["networking"] == {"dnsDomain": "d", "serviceSubnet": "s", "podSubnet": "p"}
    assert document["kubernetesVersion"] == "v1.23.0"
    assert document["apiServer"] == {"timeoutForControlPlane": "10s"}


def test_an_empty_list_of_taints_is_not_null() -> None:
    assert init_document(init(nodeRegistration={"taints": []}), "v1beta4")["nodeRegistration"] == {"taints": []}
    assert init_document(init(nodeRegistration={}), "v1beta4")["nodeRegistration"] == {"taints": None}


# ------------------------------------------------------------------------------------------ every field


def test_arguments_are_a_map_or_a_list() -> None:
    config = cluster(scheduler={"extraArgs": [{"name": "b", "value": "1"}, {"name": "a"}, {"name": "b", "value": "2"}]})

    assert cluster_document(config, DATA, "v1beta3")["scheduler"]["extraArgs"] == {"b": "2", "a": ""}
    assert cluster_document(config, DATA, "v1beta4")["scheduler"]["extraArgs"] == [
        {"name": "b", "value": "1"}, {"name": "a", "value": ""}, {"name": "b", "value": "2"},
    ]  # fmt: skip


def test_fields_that_v1beta3_lacks_are_dropped() -> None:
    config = cluster(
        encryptionAlgorithm="ECDSA-P256",
        certificateValidityPeriodDays=365,
        caCertificateValidityPeriodDays=3650,
        apiServer={"extraEnvs": [{"name": "A", "value": "b"}]},
    )
    new, old = cluster_document(config, DATA, "v1beta4"), cluster_document(config, DATA, "v1beta3")

    assert new["encryptionAlgorithm"] == "ECDSA-P256"
    assert (new["certificateValidityPeriod"], new["caCertificateValidityPeriod"]) == ("8760h0m0s", "87600h0m0s")
    assert new["apiServer"] == {"extraEnvs": [{"name": "A", "value": "b"}]}
    assert "encryptionAlgorithm" not in old
    assert old["apiServer"] == {}


def test_discovery_timeout_moves_in_v1beta3() -> None:
    config = join(timeouts={"tlsBootstrapSeconds": 90, "discoverySeconds": 5})

    assert join_document(config, "v1beta3")["discovery"] == {"timeout": "1m30s"}
    assert "timeouts" not in join_document(config, "v1beta3")
    assert join_document(config, "v1beta4")["timeouts"] == {"tlsBootstrap": "1m30s", "discovery": "5s"}
    assert join_document(config, "v1beta4")["discovery"] == {}


def test_kubeconfig_of_a_file_discovery_stays_with_us() -> None:
    config = join(
        discovery={"file": {"kubeConfigPath": "/k", "kubeConfig": {"user": {"exec": {"command": "c"}}}}, "tlsBootstrapToken": "t"}
    )

    assert join_document(config, "v1beta4")["discovery"] == {"file": {"kubeConfigPath": "/k"}, "tlsBootstrapToken": "t"}


def test_skipping_verification_is_written_only_if_true() -> None:
    def section(value: bool) -> Any:
        return join_document(join(discovery={"bootstrapToken": {"unsafeSkipCAVerification": value}}), "v1beta4")["discovery"]

    assert section(True) == {"bootstrapToken": {"token": "", "unsafeSkipCAVerification": True}}
    assert section(False) == {"bootstrapToken": {"token": ""}}


def test_bootstrap_tokens_at_init() -> None:
    config = init(
        bootstrapTokens=[{"token": "abcdef.0123456789abcdef", "ttlSeconds": 0, "expires": "2030-01-02T03:04:05Z", "usages": ["signing"]}]
    )

    text = marshal(init_document(config, "v1beta4"))
    assert yaml.safe_load(text)["bootstrapTokens"] == [
        {"token": "abcdef.0123456789abcdef", "ttl": "0s", "expires": "2030-01-02T03:04:05Z", "usages": ["signing"]}
    ]


@pytest.mark.parametrize(
    "text", ["a: b", "kind: ClusterConfiguration\napiVersion: kubeadm.k8s.io/v1beta1", "x: [", "- a", "kind: ClusterConfiguration"]
)
def test_other_texts_are_not_documents(text: str) -> None:
    with pytest.raises(UnknownDocument, match="unknown kubeadm types"):
        parse_cluster_configuration(text)


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
def test_an_empty_text_has_all_defaults(text: str) -> None:
    assert to_json(parse_cluster_configuration(text)[0]) == {}


def test_a_broken_document_is_refused_without_being_quoted() -> None:
    with pytest.raises(UnknownDocument) as caught:
        parse_cluster_configuration("discovery: {bootstrapToken: {token: abcdef.0123456789abcdef}\n")

    assert "0123456789abcdef" not in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (50, "50s"), (60, "1m0s"), (240, "4m0s"), (3600, "1h0m0s"), (31536000, "8760h0m0s"), (3661, "1h1m1s")]
)
def test_durations(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("1.9s", 1), ("500ms", 0), ("1h0.5m", 3630), ("0", 0), ("-2m", -120), ("1500ms", 1)])
def test_durations_are_truncated(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1", "1x", "1h1", "--1s", "tomorrow"])
def test_other_texts_are_not_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_seconds(text)


def test_long_validities_survive_reading_back() -> None:
    text = marshal(cluster_document(cluster(caCertificateValidityPeriodDays=36500), DATA, "v1beta4"))

    assert parse_cluster_configuration(text)[0].ca_certificate_validity_period_days == 36500


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, False),
        ({"etcd": {"local": {}, "external": {}}, "dns": {}}, False),
        ({"etcd": {"local": {"dataDir": "x"}}}, True),
        ({"featureGates": {}}, False),
        ({"featureGates": {"a": False}}, True),
    ],
)
def test_defined_means_that_a_value_is_set(spec: dict[str, Any], expected: bool) -> None:
    assert is_defined(cluster(**spec)) is expected


def test_an_explicit_false_or_zero_counts_as_set() -> None:
    assert is_defined(join(controlPlane={}))
    assert is_defined(join(timeouts={"discoverySeconds": 0}))
    assert not is_defined(join(timeouts={}))
    assert is_defined(init(nodeRegistration={"taints": []}))


@pytest.mark.skipif(shutil.which("kubeadm") is None, reason="kubeadm is not installed: see tests/README.md")
@pytest.mark.parametrize("api", ["v1beta3", "v1beta4"])
def test_kubeadm_validates_our_documents(api: Any, tmp_path: Path) -> None:
    ours = subprocess.run(["kubeadm", "version", "-o", "short"], check=True, capture_output=True, text=True).stdout.strip()
    data = replace(
        DATA, kubernetes_version=ours, dns_domain="cluster.local", service_subnet="10.96.0.0/12", pod_subnet="10.244.0.0/16"
    )  # a kubeadm deploys only its own version and the one before
    token = {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "10.0.0.1:6443", "caCertHashes": ["sha256:" + "0" * 64]}
    documents = [
        cluster_document(cluster(controlPlaneEndpoint="10.0.0.1:6443"), data, api),
        init_document(init(nodeRegistration={"taints": []}), api),
        join_document(join(discovery={"bootstrapToken": token}), api),
    ]
    for document in documents:
        (tmp_path / "config").write_text(marshal(document))
        done = subprocess.run(
            ["kubeadm", "config", "validate", "--config", tmp_path / "config"], check=False, capture_output=True, text=True
        )
        if "old API spec" in done.stderr:
            pytest.skip(f"kubeadm {ours} no longer reads {api}")
        assert done.returncode == 0, done.stderr
