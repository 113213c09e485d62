"""Edge cases 87 to 89 of the KubeadmControlPlane spec: each rule by its id, on the embedded API server."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterwright.admission import chain
from clusterwright.admission.mutability import MUTABLE, changed_paths, is_mutable
from clusterwright.api.controlplane import KubeadmControlPlane, KubeadmControlPlaneTemplate
from clusterwright.api.crds import crds
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.errors import ApiError, Invalid
from clusterwright.runtime.rest import RestClient

Json = dict[str, Any]
ON = {"ClusterTopology": True, "MachineTaintPropagation": True}
KEY = ObjectKey("default", "kcp")
EXTERNAL = {"etcd": {"external": {"endpoints": ["https://e:2379"], "caFile": "/a", "certFile": "/b", "keyFile": "/c"}}}
DEFINITIONS = [c for c in crds() if c["spec"]["group"] == "controlplane.cluster.x-k8s.io"]


async def server(features: Mapping[str, bool] = ON) -> RestClient:
    api = ApiServer(now=lambda: datetime(2030, 1, 1, tzinfo=UTC), random=random.Random(1), admission=chain(features))
    client = RestClient(InProcessTransport(api), clock=None)
    for definition in DEFINITIONS:
        await client.create(definition)
    return client


def control_plane(configuration: Json | None = None, **spec: Any) -> Json:
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "t"}
    config = {"kubeadmConfigSpec": {"clusterConfiguration": configuration}} if configuration else {}
    return {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"namespace": KEY.namespace, "name": KEY.name},
        "spec": {"version": "v1.34.1", "machineTemplate": {"spec": {"infrastructureRef": ref}}} | config | spec,
    }


def template(spec: Json, metadata: Json | None = None) -> Json:
    return {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlaneTemplate",
        "metadata": {"namespace": KEY.namespace, "name": KEY.name},
        "spec": {"template": {"spec": spec} | ({"metadata": metadata} if metadata else {})},
    }


def surge(value: int | str) -> Json:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": value}}}


async def causes(write: Any) -> set[tuple[str, str]]:
    """What a write is refused for: reasons and fields; nothing if it is taken."""
    try:
        await write
    except Invalid as error:
        return {(c["reason"].removeprefix("FieldValue"), c["field"]) for c in error.status["details"]["causes"]}
    return set()


async def test_defaults_are_filled_in() -> None:
    """KCP-D1 to KCP-D4."""
    client = await server()

    made = await client.create(control_plane(version="1.34.1"))

    assert {k: made.at("spec", k) for k in ("replicas", "version", "rollout")} == {
        "replicas": 1,
        "version": "v1.34.1",
        "rollout": surge(1),
    }


CREATE: list[tuple[str, Json, set[tuple[str, str]]]] = [
    ("KCP-2 and KCP-3 zero", control_plane(replicas=0), {("Forbidden", "spec.replicas")}),
    ("KCP-3 even", control_plane(replicas=2), {("Forbidden", "spec.replicas")}),
    ("KCP-3 even with external etcd", control_plane(EXTERNAL, replicas=2), set()),
    ("KCP-9 version", control_plane(version="v1.34"), {("Invalid", "spec.version")}),
    ("KCP-11 surge 0 with one", control_plane(rollout=surge(0)), {("Required", "spec.rollout.strategy.rollingUpdate")}),
    ("KCP-11 surge 0 with three", control_plane(rollout=surge(0), replicas=3), set()),
    ("KCP-12 surge as string", control_plane(rollout=surge("1")), set()),
    ("KCP-12 surge 3", control_plane(rollout=surge(3)), {("Required", "spec.rollout.strategy.rollingUpdate.maxSurge")}),
    ("KCP-12 a percentage counts as 0", control_plane(rollout=surge("10%"), replicas=3), set()),
    (
        "KCP-13 longer than its authority",
        control_plane({"certificateValidityPeriodDays": 100, "caCertificateValidityPeriodDays": 99}),
        {("Invalid", "spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays")},
    ),
    (
        "KCP-14 renewed before it begins",
        control_plane({"certificateValidityPeriodDays": 30}, rollout={"before": {"certificatesExpiryDays": 30}}),
        {("Invalid", "spec.rollout.before.certificatesExpiryDays")},
    ),
    ("KCP-15 no random", control_plane(machineNaming={"template": "x"}), {("Invalid", "spec.machineNaming.template")}),
    ("KCP-15 no name", control_plane(machineNaming={"template": "X-{{ .random }}"}), {("Invalid", "spec.machineNaming.template")}),
    ("KCP-15 not readable", control_plane(machineNaming={"template": "{{ .random }}{{"}), {("Invalid", "spec.machineNaming.template")}),
    (
        "KCP-16 and KCP-17 tag",
        control_plane({"dns": {"imageTag": "v1 2"}}),
        {("Forbidden", "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag"), ("Invalid", "dns.imageTag")},
    ),
    (
        "KCP-18 etcd tag",
        control_plane({"etcd": {"local": {"imageTag": "v1+2"}}}),
        {("Forbidden", "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag")},
    ),
    (
        "KCP-19 local and external",
        control_plane({"etcd": EXTERNAL["etcd"] | {"local": {"dataDir": "/d"}}}),
        {("Forbidden", "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local")},
    ),
    (
        "KCP-21 KS-19 health checks",
        control_plane(kubeadmConfigSpec={"initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 9}}}),
        {
            ("Invalid", f"spec.kubeadmConfigSpec.{c}Configuration.timeouts.controlPlaneComponentHealthCheckSeconds")
            for c in ("init", "join")
        },
    ),
]


@pytest.mark.parametrize(("name", "obj", "refused"), CREATE, ids=[c[0] for c in CREATE])
async def test_invalid_control_planes_are_refused(name: str, obj: Json, refused: set[tuple[str, str]]) -> None:
    client = await server()

    assert await causes(client.create(obj)) == refused


@pytest.mark.parametrize("change", [{"replicas": 2}, {"rollout": surge(3)}, {"machineNaming": {"template": "x"}}])
async def test_values_refused_on_create_are_refused_on_update(change: Json) -> None:
    client = await server()
    await client.create(control_plane())

    assert await causes(client.patch(KubeadmControlPlane, KEY, {"spec": change})) != set()
    assert (await client.get(KubeadmControlPlane, KEY)).spec.replicas == 1


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("node.cluster.x-k8s.io/uninitialized", "TNT-2"),
        ("node.cluster.x-k8s.io/outdated-revision", "TNT-3"),
        ("node.kubernetes.io/not-ready", "TNT-4"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "TNT-5"),
        ("node-role.kubernetes.io/master", "TNT-6"),
        ("-bad", "TNT-7"),
    ],
)
async def test_taints_that_belong_to_others_are_refused(key: str, text: str) -> None:
    client = await server()
    obj = control_plane()
    obj["spec"]["machineTemplate"]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule", "propagation": "Always"}]

    assert await causes(client.create(obj)) == {("Invalid", "spec.machineTemplate.spec.taints[0].key")}, text


@pytest.mark.parametrize(("features", "refused"), [(ON, set()), ({}, {("Forbidden", "spec.machineTemplate.spec.taints")})])
async def test_taints_need_their_gate(features: Mapping[str, bool], refused: set[tuple[str, str]]) -> None:
    """TNT-1; out-of-service and the control plane's own taint may be set."""
    client = await server(features)
    obj = control_plane()
    keys = ("node.kubernetes.io/out-of-service", "node-role.kubernetes.io/control-plane")
    obj["spec"]["machineTemplate"]["spec"]["taints"] = [{"key": k, "effect": "NoSchedule", "propagation": "Always"} for k in keys]

    assert await causes(client.create(obj)) == refused


C = "spec.kubeadmConfigSpec.clusterConfiguration"
BEFORE = {
    "controlPlaneEndpoint": "a:6443",
    "certificatesDir": "/pki",
    "caCertificateValidityPeriodDays": 1000,
    "dns": {"imageTag": "v1.9.3"},
}
UPDATE: list[tuple[str, Json, set[tuple[str, str]]]] = [
    ("KCP-22 endpoint", {"controlPlaneEndpoint": "b:6443"}, {("Forbidden", f"{C}.controlPlaneEndpoint")}),
    ("KCP-22 endpoint unset", {"controlPlaneEndpoint": None}, {("Forbidden", f"{C}.controlPlaneEndpoint")}),
    ("KCP-22 certificatesDir", {"certificatesDir": "/x"}, {("Forbidden", f"{C}.certificatesDir")}),
    ("KCP-22 validity of the authority", {"caCertificateValidityPeriodDays": 999}, {("Forbidden", f"{C}.caCertificateValidityPeriodDays")}),
    ("KCP-22 imageRepository may change", {"imageRepository": "example.com"}, set()),
    ("KCP-22 featureGates may change", {"featureGates": {"A": True}}, set()),
    ("KCP-22 etcd.local may change", {"etcd": {"local": {"dataDir": "/d"}}}, set()),
    ("KCP-20 external etcd", EXTERNAL, {("Forbidden", f"{C}.etcd.external")}),
    ("KCP-26 CoreDNS up", {"dns": {"imageTag": "v1.12.0"}}, set()),
    ("KCP-26 CoreDNS down", {"dns": {"imageTag": "v1.8.6"}}, {("Forbidden", f"{C}.dns.imageTag")}),
    ("KCP-26 CoreDNS unknown", {"dns": {"imageTag": "v1.99.0"}}, {("Forbidden", f"{C}.dns.imageTag")}),
    ("KCP-26 CoreDNS the same, built otherwise", {"dns": {"imageTag": "v1.9.3_x.1"}}, set()),
    ("KCP-25 CoreDNS not a version", {"dns": {"imageTag": "latest"}}, {("Invalid", f"{C}.dns.imageTag"), ("Invalid", "dns.imageTag")}),
]


@pytest.mark.parametrize(("name", "change", "refused"), UPDATE, ids=[c[0] for c in UPDATE])
async def test_a_change_of_the_configuration(name: str, change: Json, refused: set[tuple[str, str]]) -> None:
    client = await server()
    await client.create(control_plane(BEFORE))

    patch = client.patch(KubeadmControlPlane, KEY, {"spec": {"kubeadmConfigSpec": {"clusterConfiguration": change}}})

    assert await causes(patch) == refused


async def test_coredns_is_not_checked_when_it_is_skipped() -> None:
    client = await server()
    await client.create(control_plane(BEFORE))
    skip = {"metadata": {"annotations": {"controlplane.cluster.x-k8s.io/skip-coredns": ""}}}
    change = {"spec": {"kubeadmConfigSpec": {"clusterConfiguration": {"dns": {"imageTag": "v1.8.6"}}}}}

    assert await causes(client.patch(KubeadmControlPlane, KEY, skip | change)) == set()


async def test_an_unknown_version_of_coredns_may_stay() -> None:
    client = await server()
    await client.create(control_plane({"dns": {"imageTag": "v1.99.0"}}))

    assert await causes(client.patch(KubeadmControlPlane, KEY, {"spec": {"replicas": 3}})) == set()


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        ("v1.34.9", set()),
        ("v1.35.0", set()),
        ("v1.20.0", set()),
        ("v1.36.0", {("Forbidden", "spec.version")}),
        ("v1.36.0-rc.0", {("Forbidden", "spec.version")}),
        ("v2.0.0", {("Forbidden", "spec.version")}),
        ("x", {("Invalid", "spec.version"), ("InternalError", "spec.version")}),
    ],
)
async def test_a_version_rises_by_one_minor_at_most(version: str, refused: set[tuple[str, str]]) -> None:
    """KCP-23, KCP-24."""
    client = await server()
    await client.create(control_plane())

    assert await causes(client.patch(KubeadmControlPlane, KEY, {"spec": {"version": version}})) == refused


@pytest.mark.parametrize("what", ["clusterConfiguration", "initConfiguration", "joinConfiguration", None])
async def test_whole_parts_cannot_be_removed(what: str | None) -> None:
    client = await server()
    config = {"clusterConfiguration": {"certificatesDir": "/pki"}, "initConfiguration": {"skipPhases": ["a"]}}
    config["joinConfiguration"] = {"skipPhases": ["a"]}
    await client.create(control_plane(kubeadmConfigSpec=config))

    patch = {"spec": {"kubeadmConfigSpec": {what: None} if what else None}}

    field = f"spec.kubeadmConfigSpec.{what}" if what else "spec.kubeadmConfigSpec"
    assert await causes(client.patch(KubeadmControlPlane, KEY, patch)) == {("Forbidden", field)}


def test_a_mutable_field_is_mutable_below_and_an_immutable_one_has_no_mutable_parent() -> None:
    assert all(is_mutable((*path, "below")) for path in MUTABLE)
    assert not is_mutable(("spec",))
    assert not is_mutable(("metadata",))
    assert not any(is_mutable(path[:-1]) for path in MUTABLE)


def test_a_change_is_described_by_its_leaves() -> None:
    old = {"a": {"b": 1, "c": [1]}, "gone": {"x": 1}, "same": 1}
    new = {"a": {"b": 2, "c": [1, 2]}, "same": 1, "added": {"x": {"y": 1}, "empty": {}}}

    assert set(changed_paths(old, new)) == {("a", "b"), ("a", "c"), ("gone",), ("added", "x", "y")}


# --------------------------------------------------------------------------------------------------------- templates


async def test_a_template_needs_the_gate() -> None:
    client = await server({})

    with pytest.raises(ApiError, match="ClusterTopology") as refused:
        await client.create(template({"rollout": surge(1)}))

    assert refused.value.status["code"] == 403


@pytest.mark.parametrize(
    ("spec", "metadata", "refused"),
    [
        ({"rollout": surge(1)}, None, set()),
        ({"rollout": surge(0)}, None, set()),
        ({"rollout": surge(3)}, None, {("Required", "spec.template.spec.rollout.strategy.rollingUpdate.maxSurge")}),
        ({"machineNaming": {"template": "x"}}, None, {("Invalid", "spec.template.spec.machineNaming.template")}),
        ({"rollout": surge(1)}, {"labels": {"a": "$"}}, {("Invalid", "spec.template.metadata.labels")}),
        (
            {"machineTemplate": {"metadata": {"labels": {"a": "$"}}}},
            None,
            {("Invalid", "spec.template.spec.machineTemplate.metadata.labels")},
        ),
    ],
)
async def test_a_template_follows_the_same_rules(spec: Json, metadata: Json | None, refused: set[tuple[str, str]]) -> None:
    client = await server()

    assert await causes(client.create(template(spec, metadata))) == refused


FORMER = {"initConfiguration": {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}, "format": "cloud-config"}


@pytest.mark.parametrize(
    ("before", "after", "is_change"),
    [
        ({"kubeadmConfigSpec": {"verbosity": 1}}, {"kubeadmConfigSpec": FORMER | {"verbosity": 1}}, False),
        ({"kubeadmConfigSpec": FORMER | {"verbosity": 1}}, {"kubeadmConfigSpec": {"verbosity": 1}}, False),
        ({"kubeadmConfigSpec": {"verbosity": 1}}, {"kubeadmConfigSpec": {"verbosity": 2}}, True),
        (
            {"rollout": surge(1), "kubeadmConfigSpec": {"verbosity": 1}},
            {"kubeadmConfigSpec": {"verbosity": 1}},
            False,
        ),
        ({"rollout": surge(0), "kubeadmConfigSpec": {"verbosity": 1}}, {"kubeadmConfigSpec": {"verbosity": 1}}, True),
    ],
)
async def test_a_template_is_immutable_except_for_former_defaults(before: Json, after: Json, is_change: bool) -> None:
    client = await server()
    made = await client.create(template(before))
    changed = template(after, {"labels": {"new": "label"}})
    changed["metadata"]["resourceVersion"] = made.metadata.resource_version

    assert await causes(client.update(changed)) == ({("Invalid", "spec.template.spec")} if is_change else set())


async def test_the_metadata_of_a_template_may_change() -> None:
    client = await server()
    await client.create(template({"rollout": surge(1)}))

    patch = client.patch(KubeadmControlPlaneTemplate, KEY, {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}})

    assert await causes(patch) == set()


# ------------------------------------------------------------------------------------------------------------- scale


@pytest.mark.parametrize(
    ("configuration", "replicas", "code"),
    [(None, 0, 403), (None, 2, 403), (None, 3, None), (EXTERNAL, 2, None), (EXTERNAL, 0, 403), (None, -1, 422)],
)
async def test_a_scale_of_a_control_plane_is_validated(configuration: Json | None, replicas: int, code: int | None) -> None:
    """SC-1, SC-2; nothing changes where it is refused."""
    client = await server()
    await client.create(control_plane(configuration))
    scale = client.patch(KubeadmControlPlane, KEY, {"spec": {"replicas": replicas}}, subresource="scale")

    if code is None:
        await scale
    else:
        with pytest.raises(ApiError) as refused:
            await scale
        assert refused.value.status["code"] == code

    stored = await client.get(KubeadmControlPlane, KEY)
    assert stored.spec.replicas == (replicas if code is None else 1)
