"""What belongs to a cluster, and what only lives in the same namespace."""

from __future__ import annotations

from typing import Any

from clusterwright.api.meta import Unstructured
from clusterwright.offline.ownership import class_of, related

Json = dict[str, Any]
CORE = "cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io"


def thing(kind: str, name: str, spec: Json | None = None, *, version: str = CORE, owner: str = "", label: str = "") -> Unstructured:
    metadata: Json = {"name": name, "namespace": "ns"}
    if owner:
        owner_kind, _, owner_name = owner.partition("/")
        metadata["ownerReferences"] = [{"apiVersion": CORE, "kind": owner_kind, "name": owner_name, "uid": "1"}]
    if label:
        metadata["labels"] = {"cluster.x-k8s.io/cluster-name": label}
    return Unstructured({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec or {}})


def cluster(name: str, spec: Json | None = None) -> Unstructured:
    return thing("Cluster", name, spec)


def kin(subject: Unstructured, *others: Unstructured) -> set[str]:
    return related([subject, *others], subject) - {f"Cluster/ns/{subject.key.name}"}


def test_what_carries_the_name_belongs() -> None:
    mine = cluster("c")
    others = (
        thing("Machine", "labelled", label="c"),
        thing("MachineHealthCheck", "named", {"clusterName": "c"}),
        thing("Secret", "c-kubeconfig", version="v1"),
        thing("Machine", "other", label="d"),
        thing("Secret", "c-notes", version="v1"),
        cluster("d"),
    )

    assert kin(mine, *others) == {"Machine/ns/labelled", "MachineHealthCheck/ns/named", "Secret/ns/c-kubeconfig"}


def test_what_is_owned_or_named_by_those_belongs() -> None:
    config = {"files": [{"path": "/x", "contentFrom": {"secret": {"name": "registry", "key": "k"}}}]}
    machine = {"bootstrap": {"configRef": {"apiGroup": BOOTSTRAP, "kind": "KubeadmConfig", "name": "m"}, "dataSecretName": "data"}}
    others = (
        thing("Machine", "m", machine, label="c"),
        thing("KubeadmConfig", "m", config, version=f"{BOOTSTRAP}/v1beta2"),
        thing("Secret", "registry", version="v1"),
        thing("Secret", "data", version="v1"),
        thing("IPAddressClaim", "ip", owner="Machine/m"),
        thing("Secret", "unrelated", version="v1"),
    )

    found = kin(cluster("c"), *others)

    assert found == {"Machine/ns/m", "KubeadmConfig/ns/m", "Secret/ns/registry", "Secret/ns/data", "IPAddressClaim/ns/ip"}


def test_resources_belong_through_their_binding() -> None:
    others = (
        thing("ClusterResourceSetBinding", "c", {"clusterName": "c", "bindings": [{"clusterResourceSetName": "cni"}]}),
        thing("ClusterResourceSet", "cni", {"resources": [{"kind": "ConfigMap", "name": "calico"}]}),
        thing("ClusterResourceSet", "csi", {"resources": [{"kind": "ConfigMap", "name": "disks"}]}),
        thing("ConfigMap", "calico", version="v1"),
        thing("ConfigMap", "disks", version="v1"),
    )

    assert kin(cluster("c"), *others) == {"ClusterResourceSetBinding/ns/c", "ClusterResourceSet/ns/cni", "ConfigMap/ns/calico"}


def test_clusters_of_one_class_do_not_belong_to_each_other() -> None:
    topology = {"topology": {"classRef": {"name": "small", "namespace": "ns"}, "version": "v1.35.0"}}
    template = {"templateRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevClusterTemplate", "name": "t"}}
    others = (
        thing("ClusterClass", "small", {"infrastructure": template}),
        thing("DevClusterTemplate", "t", owner="ClusterClass/small"),
        cluster("d", topology),
        thing("MachineDeployment", "d-md", {"clusterName": "d"}, owner="Cluster/d"),
    )

    assert kin(cluster("c", topology), *others) == {"ClusterClass/ns/small", "DevClusterTemplate/ns/t"}


def test_a_quota_concerns_everybody() -> None:
    assert kin(cluster("c"), thing("ResourceQuota", "few", version="v1")) == {"ResourceQuota/ns/few"}


def test_the_class_is_read_in_both_spellings() -> None:
    new = cluster("c", {"topology": {"classRef": {"name": "small"}}})
    old = cluster("c", {"topology": {"class": "small"}})
    elsewhere = cluster("c", {"topology": {"classRef": {"name": "small", "namespace": "shared"}}})

    assert [r.name for r in class_of(new)] == [r.name for r in class_of(old)] == ["small"]
    assert [(r.namespace, r.name) for r in class_of(elsewhere)] == [("shared", "small")]


def test_others_may_mean_something_else_by_a_name() -> None:
    odd = (thing("Widget", "list", {"clusterName": ["c"]}), thing("Widget", "map", {"clusterName": {"name": "c"}}))

    assert kin(cluster("c"), *odd, thing("Machine", "named", {"clusterName": "c"})) == {"Machine/ns/named"}
