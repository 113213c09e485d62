from __future__ import annotations

import msgspec
import pytest

from clusterwright.api import kubernetes as k8s
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.meta import GroupVersionKind
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.api.scheme import BUILT_IN, CUSTOM, SCHEME


def test_a_resource_is_found_by_model_kind_and_plural() -> None:
    gvk = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster")
    resource = SCHEME.of(Cluster)
    assert resource.gvk == gvk == SCHEME.gvk(Cluster)
    assert SCHEME.by_gvk(gvk) is resource
    assert SCHEME.by_plural("cluster.x-k8s.io", "clusters") is resource
    assert SCHEME.model(gvk) is Cluster
    assert SCHEME.by_gvk(GroupVersionKind("cluster.x-k8s.io", "v1beta1", "Cluster")) is None
    assert SCHEME.by_plural("", "clusters") is None


def test_kinds_plurals_and_short_names_are_unambiguous() -> None:
    assert len({resource.gvk for resource in SCHEME.resources}) == len(SCHEME.resources)
    assert len({(resource.group, resource.plural) for resource in SCHEME.resources}) == len(SCHEME.resources)
    short = [name for resource in SCHEME.resources for name in resource.short_names if resource.kind != "Event"]
    assert len(short) == len(set(short))
    assert len(CUSTOM) == 23
    assert {"Namespace", "Secret", "Lease", "Pod", "Node", "CustomResourceDefinition"} <= {resource.kind for resource in BUILT_IN}


def test_paths() -> None:
    assert SCHEME.of(Machine).path("ns", "m", "status") == "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m/status"
    assert SCHEME.of(Machine).path() == "/apis/cluster.x-k8s.io/v1beta2/machines"
    assert SCHEME.of(k8s.Pod).path("ns") == "/api/v1/namespaces/ns/pods"
    assert SCHEME.of(k8s.Node).path("ignored", "n") == "/api/v1/nodes/n"
    assert SCHEME.of(ExtensionConfig).path("", "e") == "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs/e"


def test_subresources() -> None:
    pool = SCHEME.of(MachinePool)
    assert pool.status
    assert pool.scale is not None
    assert pool.scale.selector == ""
    assert SCHEME.of(k8s.Secret).status is False


@pytest.mark.parametrize("resource", SCHEME.resources, ids=lambda resource: f"{resource.kind}.{resource.group}")
def test_models_are_frozen_and_hold_no_shared_mutable_state(resource: object) -> None:
    one, two = resource.model(), resource.model()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        one.kind = "x"
    for field in msgspec.structs.fields(one):
        assert not isinstance(getattr(one, field.name), list | set), field.name
        assert not isinstance(getattr(one, field.name), dict) or getattr(one, field.name) is not getattr(two, field.name)
