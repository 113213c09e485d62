"""Cases of Cluster: references, topologies, versions, values of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.admission_cases import (
    BASES,
    FACTS,
    MD_TOPOLOGY,
    MP_TOPOLOGY,
    WORKERS,
    Case,
    Json,
    case,
    merge,
    of_class,
    plane,
    variable,
    without,
    worker,
)
from admission.cases_kinds import MAX, MIN, _health, _metadata, _rollout, _taints
from clusterwright.admission.clusterfacts import ClusterFacts, Found

T = "spec.topology"


def topology(**parts: Any) -> Json:
    return {"spec": {"topology": parts}}


def deployment(**parts: Any) -> Json:
    return topology(workers={"machineDeployments": [MD_TOPOLOGY | parts]})


def pool(**parts: Any) -> Json:
    return topology(workers={"machinePools": [MP_TOPOLOGY | parts]})


def annotated(key: str, value: str) -> Json:
    return {"metadata": {"annotations": {key: value}}}


def _cluster() -> Iterator[Case]:
    kind: Any = {"facts": FACTS}
    plain: Json = {"topology": None, "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}
    both = plain | {"controlPlaneRef": {"apiGroup": "g", "kind": "K", "name": "n"}}
    mds, mps = f"{T}.workers.machineDeployments", f"{T}.workers.machinePools"
    yield from case("CL-1", "Cluster", {"metadata": {"name": "x" * 64}}, "metadata.name", **kind)
    yield from case(
        "CL-2",
        "Cluster",
        {"spec": both | {"infrastructureRef": None}},
        "spec.infrastructureRef",
        {"spec": plain},
        old={"spec": both},
        **kind,
    )
    yield from case("CL-3", "Cluster", {"spec": {"topology": None, "paused": True}}, "spec", {"spec": plain}, **kind)
    yield from case("CL-4", "Cluster", {"spec": plain}, "spec.controlPlaneRef", {"spec": both}, old={"spec": both}, **kind)
    for n, which in ((5, "pods"), (6, "services")):
        for bad in (
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/255.0.0.0",
            "x/8",
            "fe80::1%eth0/64",
            "::/129",
            "10.0.0.0/99999999999",
        ):
            yield from case(
                f"CL-{n}",
                "Cluster",
                {"spec": {"clusterNetwork": {which: {"cidrBlocks": ["::/0", bad]}}}},
                f"spec.clusterNetwork.{which}.cidrBlocks[1]",
                {"spec": {"clusterNetwork": {which: {"cidrBlocks": ["10.0.0.1/08", "fd00::/128"]}}}},
                **kind,
            )
    yield from case("CL-7", "Cluster", {"spec": plain}, T, {}, old={}, **kind)
    yield from case("CL-8", "Cluster", {}, T, gates=without("ClusterTopology"), **kind)
    elsewhere = topology(classRef={"name": "class", "namespace": "elsewhere"})
    closed = {**without("CrossNamespaceClasses"), "CrossNamespaceClasses": False}
    yield from case("CL-41", "Cluster", elsewhere, f"{T}.classRef.namespace", elsewhere, gates=closed, **kind)
    yield from case("CL-41", "Cluster", elsewhere, f"{T}.classRef.namespace", topology(), gates=closed, keeps_gates=closed, **kind)
    yield from case("CL-9", "Cluster", topology(classRef={"name": ""}), f"{T}.class", **kind)
    yield from case("CL-D2", "Cluster", topology(classRef={"name": ""}), f"{T}.classRef.name", **kind)
    yield from case("CL-10", "Cluster", topology(version="v1.33"), f"{T}.version", **kind)
    put: Any
    for put, at in (
        (lambda m: topology(controlPlane={"metadata": m}), f"{T}.controlPlane.metadata"),
        (lambda m: deployment(metadata=m), f"{mds}[md].metadata"),
        (lambda m: pool(metadata=m), f"{mps}[mp].metadata"),
    ):
        yield from _metadata("CL-11", "Cluster", put, at, **kind)
    yield from _rollout(
        "CL-12", "Cluster", lambda r: deployment(rollout={"strategy": {"rollingUpdate": r}}), f"{mds}[md].rollout.strategy.rollingUpdate"
    )
    for put, at in (
        (lambda t: topology(controlPlane={"taints": t}), f"{T}.controlPlane.taints"),
        (lambda t: deployment(taints=t), f"{mds}[md].taints"),
        (lambda t: pool(taints=t), f"{mps}[mp].taints"),
    ):
        yield from _taints("CL-13", "Cluster", put, at)
    concurrency = "topology.cluster.x-k8s.io/upgrade-concurrency"
    for bad in ("0", "x", "", "1.5", "99999999999999999999"):
        yield from case(
            "CL-14", "Cluster", annotated(concurrency, bad), f"metadata.annotations.{concurrency}", annotated(concurrency, "2"), **kind
        )
    yield from case("CL-15", "Cluster", {}, f"{T}.class", facts=ClusterFacts(class_error="no connection"), keeps_facts=ClusterFacts())
    versions = of_class({"kubernetesVersions": ["v1.33.4", "v1.34.0"]})
    yield from case("CL-16", "Cluster", topology(version="v1.33.4+x"), f"{T}.version", facts=versions)
    yield from case(
        "CL-16", "Cluster", topology(version="v1.33.5"), f"{T}.version", topology(version="v1.33.5"), facts=versions, keeps_facts=FACTS
    )
    for ids, put, at in ((("CL-17", "CL-18", "CL-19"), deployment, mds), (("CL-20", "CL-21", "CL-22"), pool, mps)):
        key, entry = ("machineDeployments", MD_TOPOLOGY) if at == mds else ("machinePools", MP_TOPOLOGY)
        yield from case(ids[0], "Cluster", put(**{"class": "nope"}), f"{at}[0].class", **kind)
        yield from case(ids[1], "Cluster", put(name=""), f"{at}[0].name", **kind)
        yield from case(
            ids[2],
            "Cluster",
            topology(workers={key: [entry, entry]}),
            f"{at}[1].name",
            topology(workers={key: [entry, entry | {"name": "other"}]}),
            **kind,
        )
    check = {"checks": {"nodeStartupTimeoutSeconds": 60}}
    machineless = of_class({"controlPlane": {"machineInfrastructure": None}})
    yield from case(
        "CL-23",
        "Cluster",
        topology(controlPlane={"healthCheck": check}),
        f"{T}.controlPlane.healthCheck",
        topology(controlPlane={"healthCheck": check}),
        facts=machineless,
        keeps_facts=FACTS,
    )
    yield from _health("CL-24", "Cluster", lambda h: topology(controlPlane={"healthCheck": h}), f"{T}.controlPlane.healthCheck", **kind)
    enabled = topology(controlPlane={"healthCheck": {"enabled": True}})
    yield from case(
        "CL-25",
        "Cluster",
        enabled,
        f"{T}.controlPlane.healthCheck.enable",
        topology(controlPlane={"healthCheck": {"enabled": True} | check}),
        **kind,
    )
    yield from case(
        "CL-25",
        "Cluster",
        enabled,
        f"{T}.controlPlane.healthCheck.enable",
        enabled,
        facts=FACTS,
        keeps_facts=of_class({"controlPlane": {"healthCheck": check}}),
    )
    yield from _health("CL-26", "Cluster", lambda h: deployment(healthCheck=h), f"{mds}[md].healthCheck", **kind)
    yield from case(
        "HC-3",
        "Cluster",
        deployment(healthCheck={"remediation": {"maxInFlight": "2"}}),
        f"{mds}[md].healthCheck.remediation.maxInFlight",
        deployment(healthCheck={"remediation": {"maxInFlight": 2}}),
        **kind,
    )
    # how many at a time is no definition of what is checked
    few = deployment(healthCheck={"enabled": True, "remediation": {"maxInFlight": 2}})
    yield from case("CL-27", "Cluster", few, f"{mds}[md].healthCheck.enable", deployment(healthCheck={"enabled": True} | check), **kind)
    yield from case(
        "CL-27", "Cluster", few, f"{mds}[md].healthCheck.enable", deployment(**{"class": "nope", "healthCheck": {"enabled": True}}), **kind
    )
    for annotation in (MIN, MAX):
        scaled = {"metadata": {"annotations": {annotation: "1"}}}
        yield from case("CL-28", "Cluster", deployment(replicas=2, **scaled), f"{mds}[md].replicas", deployment(**scaled), **kind)
        by_class = of_class({"workers": {"machineDeployments": [WORKERS["machineDeployments"][0] | scaled]}})
        yield from case("CL-29", "Cluster", deployment(replicas=2), f"{mds}[md].replicas", deployment(), facts=by_class)
    yield from case("CL-30", "Cluster", {}, f"{T}.class", facts=ClusterFacts(), keeps_facts=FACTS, old={})
    # what is being deleted must be able to lose its finalizers
    deleting = {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}
    yield from case("CL-30", "Cluster", {}, f"{T}.class", deleting, facts=ClusterFacts(), old=deleting)
    yield from case("CL-15", "Cluster", {}, f"{T}.class", deleting, facts=ClusterFacts(class_error="no connection"), old=deleting)
    off = without("ClusterTopology")
    yield from case("CL-8", "Cluster", {}, T, deleting, facts=ClusterFacts(), old=deleting, gates=off, keeps_gates=off)
    yield from case(
        "CL-31",
        "Cluster",
        {},
        f"{T}.class",
        annotated("unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check", ""),
        old={"spec": plain},
        **kind,
    )
    yield from _versions(topology)
    other = topology(classRef={"name": "dd"})
    yield from case(
        "CL-39",
        "Cluster",
        other,
        f"{T}.class",
        facts=of_class(old_class_error="gone"),
        keeps_facts=of_class(old_class=BASES["ClusterClass"]),
        old={},
    )
    moved = merge(BASES["ClusterClass"], {"spec": {"infrastructure": {"templateRef": {"kind": "OtherTemplate"}}}})
    yield from case("CL-40", "Cluster", other, "spec.infrastructure.templateRef.kind", other, facts=of_class(old_class=moved),
                    keeps_facts=of_class(old_class=BASES["ClusterClass"]), old={})  # fmt: skip


def _versions(topology: Any) -> Iterator[Case]:
    """CL-32 to CL-38."""
    at, ready = f"{T}.version", of_class(control_plane=plane())
    up, skip = topology(version="v1.34.0"), annotated("unsafe.topology.cluster.x-k8s.io/disable-update-version-check", "")
    update: Any = {"old": {}}
    yield from case("CL-32", "Cluster", topology(version="vx"), at, topology(version="1.33.4"), facts=ready, **update)
    yield from case("CL-33", "Cluster", topology(version="v1.33.3"), at, topology(version="v1.33.4-rc.1"), facts=ready, **update)
    yield from case("CL-33", "Cluster", topology(version="v1.33.3"), at, topology(version="v1.33.3") | skip, facts=ready, **update)
    yield from case("CL-34", "Cluster", topology(version="v1.35.0-beta.0"), at, topology(version="v1.34.9"), facts=ready, **update)
    planned = of_class({"kubernetesVersions": ["v1.33.4", "v1.35.0"]}, control_plane=plane())
    yield from case(
        "CL-34", "Cluster", topology(version="v1.35.0"), at, topology(version="v1.35.0"), facts=ready, keeps_facts=planned, **update
    )
    pending = annotated("runtime.cluster.x-k8s.io/pending-hooks", "BeforeClusterUpgrade,AfterClusterUpgrade")
    yield from case(
        "CL-35",
        "Cluster",
        up | pending,
        at,
        up | annotated("runtime.cluster.x-k8s.io/pending-hooks", "BeforeClusterUpgrade"),
        facts=ready,
        **update,
    )
    for found, says in (
        (Found(error="not found"), "failed to get control plane object"),
        (plane("v1.33.3"), "was not propagated"),
        (plane("x"), "failed to parse control plane version"),
        (plane(status=None), "currently provisioning"),
        (plane(status="v1.33.3"), "still completing a previous upgrade"),
        (plane("v1.33.4", "v1.33.4-rc.0"), "still completing a previous upgrade"),
    ):
        yield from case("CL-36", "Cluster", up, at, up, facts=of_class(control_plane=found), keeps_facts=ready, says=says, **update)
    current = worker("MachineDeployment", "v1.33.4")
    machine = {"metadata": {"labels": {"a": "b"}}, "spec": {"version": "v1.33.3"}}
    good = of_class(control_plane=plane(), deployments=current, machines=(merge(machine, {"spec": {"version": "v1.33.4"}}),))
    parts: Any
    for parts in (
        {"deployments": worker("MachineDeployment", "v1.33.3")},
        {"deployments": current, "machines": (machine,)},
        {"deployments": Found(error="no connection")},
        {"deployments": worker("MachineDeployment", "x")},
    ):
        yield from case(
            "CL-37",
            "Cluster",
            up,
            at,
            up,
            facts=of_class(control_plane=plane(), **parts),
            keeps_facts=good,
            says="MachineDeployment",
            **update,
        )
    running = worker("MachinePool", "v1.33.4", status={"nodeRefs": [{"name": "node"}]})
    node = {"metadata": {"name": "node"}, "status": {"nodeInfo": {"kubeletVersion": "v1.33.4"}}}
    good = of_class(control_plane=plane(), pools=running, nodes=Found((node,)))
    for parts in (
        {"pools": worker("MachinePool", "v1.33.3")},
        {"pools": running, "nodes": Found((merge(node, {"status": {"nodeInfo": {"kubeletVersion": "v1.33.3"}}}),))},
        {"pools": running, "nodes": Found(error="no connection")},
        {"pools": Found(error="no connection")},
        {"pools": worker("MachinePool", "x")},
    ):
        yield from case(
            "CL-38", "Cluster", up, at, up, facts=of_class(control_plane=plane(), **parts), keeps_facts=good, says="MachinePool", **update
        )


def _values() -> Iterator[Case]:
    """CL-D5 and VAL-1 to VAL-9."""

    def rule(ids: str, values: list[Json], field: str, schema: Json, keeps: list[Json], **more: Any) -> Iterator[Case]:
        facts = of_class(variables=variable(schema, required=more.pop("required", False)))
        yield from case(ids, "Cluster", topology(variables=values), f"{T}.variables{field}", topology(variables=keeps), facts=facts, **more)

    one = [{"name": "v", "value": 1}]
    integer = {"type": "integer", "maximum": 3}
    obj = {"type": "object", "properties": {"a": {"type": "integer"}}}
    yield from rule("CL-D5 VAL-6", [{"name": "v", "value": 4}], "[v].value", integer, one)
    yield from rule("VAL-1", [*one, *one], "[v]", integer, one)
    yield from rule("VAL-3", [], "", integer, one, required=True)
    yield from rule("VAL-4", [{"name": "w", "value": 1}], "[w]", integer, one)
    yield from rule(
        "VAL-6",
        [{"name": "v", "value": [1, "x"]}],
        "[v].value.[1]",
        {"type": "array", "items": {"type": "integer"}},
        [{"name": "v", "value": [1]}],
    )
    yield from rule("VAL-7", [{"name": "v", "value": {"z": 1}}], "[v]", obj, [{"name": "v", "value": {"a": 1}}])
    fixed = integer | {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    yield from rule("VAL-8", [{"name": "v", "value": 2}], "[v].value", fixed, one, old=topology(variables=one))
    broken = integer | {"x-kubernetes-validations": [{"rule": "self +"}]}
    yield from case(
        "VAL-9",
        "Cluster",
        topology(variables=one),
        f"{T}.variables[v].value",
        topology(variables=one),
        facts=of_class(variables=variable(broken)),
        keeps_facts=of_class(variables=variable(integer)),
    )
    conflict = [variable(integer)[0] | {"definitionsConflict": True}]
    yield from case(
        "VAL-2",
        "Cluster",
        topology(variables=one),
        f"{T}.variables",
        topology(variables=one),
        facts=of_class(variables=conflict),
        keeps_facts=of_class(variables=variable(integer)),
    )
    overridden = deployment(variables={"overrides": [{"name": "v", "value": 4}]})
    yield from case("VAL-6", "Cluster", overridden, f"{T}.workers.machineDeployments[md].variables.overrides[v].value",
                    deployment(variables={"overrides": one}), facts=of_class(variables=variable(integer)))  # fmt: skip


CLUSTER_CASES = [*_cluster(), *_values()]
