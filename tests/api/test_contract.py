from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.contract import (
    ABSENT,
    CONTRACTS,
    Malformed,
    MalformedField,
    NoContract,
    Resolved,
    Value,
    condition,
    contract_of,
    crd_name,
    or_none,
    resolve_version,
    version_priority,
)
from clusterwright.api.core import APIEndpoint, FailureDomain, MachineAddress
from clusterwright.api.crds import crds

NEW, OLD = CONTRACTS["v1beta2"], CONTRACTS["v1beta1"]


@pytest.mark.parametrize(
    ("path", "json", "expected"),
    [
        (NEW.infra_cluster.provisioned, {"status": {"initialization": {"provisioned": False}}}, Value(False)),
        (NEW.infra_cluster.provisioned, {"status": {"ready": True}}, ABSENT),
        (NEW.infra_cluster.provisioned, {"status": {"initialization": None}}, ABSENT),
        (OLD.infra_cluster.provisioned, {"status": {"ready": True}}, Value(True)),
        (OLD.infra_cluster.provisioned, {"status": {"ready": "true"}}, Malformed("status.ready", "expected a boolean, found a string")),
        (OLD.infra_cluster.provisioned, {"status": []}, Malformed("status", "expected an object, found a list")),
        (
            NEW.infra_cluster.endpoint,
            {"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}},
            Value(APIEndpoint(host="h", port=6443)),
        ),
        (NEW.infra_cluster.endpoint, {"spec": {}}, ABSENT),
        (NEW.bootstrap_config.data_secret_created, {"status": {"initialization": {"dataSecretCreated": True}}}, Value(True)),
        (OLD.bootstrap_config.data_secret_created, {"status": {"ready": True}}, Value(True)),
        (NEW.bootstrap_config.data_secret_name, {"status": {"dataSecretName": ""}}, Value("")),
        (NEW.control_plane.initialized, {"status": {"initialization": {"controlPlaneInitialized": True}}}, Value(True)),
        (OLD.control_plane.initialized, {"status": {"initialized": True}}, Value(True)),
        (NEW.control_plane.up_to_date_replicas, {"status": {"upToDateReplicas": 0}}, Value(0)),
        (OLD.control_plane.up_to_date_replicas, {"status": {"updatedReplicas": 2}}, Value(2)),
        (NEW.control_plane.spec_replicas, {"spec": {"replicas": 3.0}}, Value(3)),
        (NEW.control_plane.spec_replicas, {"spec": {"replicas": True}}, Malformed("spec.replicas", "expected an integer, found a boolean")),
        (NEW.infra_machine.provider_id, {"spec": {"providerID": "p://1"}}, Value("p://1")),
        (NEW.infra_machine.failure_domain, {"status": {"failureDomain": "a"}}, Value("a")),
        (OLD.infra_machine.failure_domain, {"spec": {"failureDomain": "a"}}, Value("a")),
        (
            NEW.infra_machine.addresses,
            {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1", "new": 1}]}},
            Value((MachineAddress(type="InternalIP", address="10.0.0.1"),)),
        ),
        (NEW.infra_machine_pool.provider_id_list, {"spec": {"providerIDList": ["b", "a"]}}, Value(("b", "a"))),
    ],
)
def test_a_field_is_a_value_absent_or_malformed(path: Any, json: dict[str, Any], expected: object) -> None:
    assert path.read(json) == expected


def test_failure_domains_are_sorted_by_name_in_both_contracts() -> None:
    expected = Value((FailureDomain(name="a", control_plane=False), FailureDomain(name="b", control_plane=True, attributes={"k": "v"})))
    new = {
        "status": {"failureDomains": [{"name": "b", "controlPlane": True, "attributes": {"k": "v"}}, {"name": "a", "controlPlane": False}]}
    }
    old = {"status": {"failureDomains": {"b": {"controlPlane": True, "attributes": {"k": "v"}}, "a": {}}}}
    assert NEW.infra_cluster.failure_domains.read(new) == expected
    assert OLD.infra_cluster.failure_domains.read(old) == expected
    assert isinstance(OLD.infra_cluster.failure_domains.read(new), Malformed)
    assert isinstance(NEW.infra_cluster.failure_domains.read(old), Malformed)


def test_a_malformed_field_cannot_pass_for_an_absent_one() -> None:
    assert or_none(ABSENT) is None
    assert or_none(Value(0)) == 0
    with pytest.raises(MalformedField, match=r"status\.ready: expected a boolean"):
        or_none(OLD.infra_cluster.provisioned.read({"status": {"ready": 1}}))


def test_fields_of_an_endpoint_that_are_null_are_not_there_and_a_port_may_be_written_as_a_float() -> None:
    read = NEW.infra_cluster.endpoint.read
    assert read({"spec": {"controlPlaneEndpoint": {"host": "h", "port": None}}}) == Value(APIEndpoint(host="h"))
    assert read({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443.0}}}) == Value(APIEndpoint(host="h", port=6443))
    assert isinstance(read({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1.5}}}), Malformed)


def test_a_path_writes_itself() -> None:
    assert NEW.infra_cluster.provisioned.json(True) == {"status": {"initialization": {"provisioned": True}}}


def test_conditions_of_the_newer_list_win_and_need_only_type_and_status() -> None:
    old = {"type": "Ready", "status": "False", "severity": "Info", "lastTransitionTime": ""}
    new = {"type": "Ready", "status": "True", "reason": None}
    found = condition({"status": {"conditions": [old], "v1beta2": {"conditions": [new]}}}, "Ready")
    assert isinstance(found, Value)
    assert found.value.status == "True"
    only_old = condition({"status": {"conditions": [None, 3, {"type": "Other"}, old]}}, "Ready")
    assert isinstance(only_old, Value)
    assert (only_old.value.status, only_old.value.reason, only_old.value.last_transition_time) == ("False", "", None)
    assert condition({"status": {"conditions": []}}, "Ready") is ABSENT
    assert condition({}, "Ready") is ABSENT
    assert isinstance(condition({"status": {"conditions": {}}}, "Ready"), Malformed)
    assert isinstance(condition({"status": {"conditions": [{"type": "Ready", "status": True}]}}, "Ready"), Malformed)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"cluster.x-k8s.io/v1beta2": "v1beta2"}, Resolved("v1beta2", "v1beta2")),
        ({"cluster.x-k8s.io/v1beta2": "v1beta1_v1_v2alpha1", "cluster.x-k8s.io/v1beta1": "v1alpha1"}, Resolved("v1", "v1beta2")),
        ({"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1beta1_v1beta10_v1beta2"}, Resolved("v1beta10", "v1beta1")),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1"}, Resolved("v1beta1", "v1beta1")),
    ],
)
def test_contract_labels_choose_version_and_contract(labels: dict[str, str], expected: Resolved) -> None:
    assert resolve_version({"name": "x", "labels": labels}) == expected


@pytest.mark.parametrize("metadata", [{}, {"labels": {}}, {"labels": None}, {"labels": {"cluster.x-k8s.io/v1alpha4": "v1"}}, {"labels": {"cluster.x-k8s.io/v1beta2": "_"}}])  # fmt: skip
def test_a_crd_without_contract_labels_is_an_error(metadata: dict[str, Any]) -> None:
    with pytest.raises(NoContract, match="cannot find any versions matching contract versions v1beta2, v1beta1"):
        resolve_version(metadata)


def test_the_contract_of_a_given_version_is_the_label_that_lists_it() -> None:
    metadata = {"labels": {"cluster.x-k8s.io/v1beta2": "v1_v2", "cluster.x-k8s.io/v1beta1": "v1beta1"}}
    assert contract_of(metadata, "v2") == "v1beta2"
    assert contract_of(metadata, "v1beta1") == "v1beta1"
    with pytest.raises(NoContract):
        contract_of(metadata, "v1beta")


def test_versions_sort_as_kubernetes_sorts_them() -> None:
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(sorted(order), key=version_priority, reverse=True) == order


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("DevCluster", "devclusters"),
        ("FooPolicy", "foopolicies"),
        ("ClusterClass", "clusterclasses"),
        ("Gateway", "gateways"),
        ("Box", "boxes"),
        ("RackK8s", "rackk8s"),
        ("HostDNS", "hostdns"),
        ("ServerBus", "serverbuses"),
        ("DiskShelf", "diskshelves"),
        ("SearchIndex", "searchindices"),
        ("NodeMetadata", "nodemetadata"),
        ("EdgeStudio", "edgestudios"),
    ],
)
def test_the_name_of_a_crd_is_computed_from_its_kind(kind: str, plural: str) -> None:
    assert crd_name("g.io", kind) == f"{plural}.g.io"


def test_our_own_crds_can_be_found_and_resolved_by_the_rules() -> None:
    for crd in crds():
        assert crd["metadata"]["name"] == crd_name(crd["spec"]["group"], crd["spec"]["names"]["kind"])
        if crd["spec"]["group"].split(".")[0] in {"bootstrap", "controlplane", "infrastructure"}:  # others follow no contract
            assert resolve_version(crd["metadata"]) == Resolved("v1beta2", "v1beta2")
