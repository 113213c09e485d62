"""Cases of Cluster and ClusterClass: topologies, classes, patches, variables and their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission_cases import (
    BASES,
    CLASS_SPEC,
    FACTS,
    MD_TOPOLOGY,
    MP_TOPOLOGY,
    TOPOLOGY,
    WORKERS,
    Case,
    Json,
    case,
    merge,
    of_class,
    plane,
    user,
    variable,
    without,
    worker,
)
from cases_kinds import MAX, MIN, _health, _metadata, _rollout, _taints

from clusterwright.admission.clusterclass import Users
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
    yield from case("CL-9", "Cluster", topology(classRef={"name": ""}), f"{T}.class", **kind)
    yield from case("CL-D2", "Cluster", topology(classRef={"name": ""}), f"{T}.classRef.name", **kind)
    yield from case("CL-10", "Cluster", topology(version="v1.33"), f"{T}.version", **kind)
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


# ----------------------------------------------------------------------------------------- ClusterClass

SMALL, POOL = WORKERS["machineDeployments"][0], WORKERS["machinePools"][0]
KIND = "ClusterClass"


def spec(**parts: Any) -> Json:
    return {"spec": parts}


def md_class(**parts: Any) -> Json:
    return spec(workers={"machineDeployments": [merge(SMALL, parts)]})


def mp_class(**parts: Any) -> Json:
    return spec(workers={"machinePools": [merge(POOL, parts)]})


def _templates() -> Iterator[Case]:
    places: list[tuple[Any, str]] = [
        (lambda r: spec(infrastructure={"templateRef": r}), "spec.infrastructure"),
        (lambda r: spec(controlPlane={"templateRef": r}), "spec.controlPlane"),
        (lambda r: spec(controlPlane={"machineInfrastructure": {"templateRef": r}}), "spec.controlPlane.machineInfrastructure"),
        (lambda r: md_class(bootstrap={"templateRef": r}), "spec.workers.machineDeployments[0].template.bootstrap"),
        (lambda r: md_class(infrastructure={"templateRef": r}), "spec.workers.machineDeployments[0].template.infrastructure"),
        (lambda r: mp_class(bootstrap={"templateRef": r}), "spec.workers.machinePools[0].template.bootstrap"),
        (lambda r: mp_class(infrastructure={"templateRef": r}), "spec.workers.machinePools[0].template.infrastructure"),
    ]
    for put, at in places:
        yield from case("CC-2", KIND, put({"name": None}), f"{at}.ref.name")
        yield from case("CC-3", KIND, put({"kind": "Template"}), f"{at}.ref.kind")
        yield from case("CC-4", KIND, put({"apiVersion": "a/b/c"}), f"{at}.ref.apiVersion")
        yield from case("CC-5", KIND, put({"apiVersion": None}), f"{at}.ref.apiVersion")


def _class() -> Iterator[Case]:
    mds, mps = "spec.workers.machineDeployments", "spec.workers.machinePools"
    check = {"checks": {"nodeStartupTimeoutSeconds": 60}}
    yield from case("CC-1", KIND, {}, "spec", gates=without("ClusterTopology"))
    yield from _templates()
    yield from case("CC-6", KIND, spec(workers={"machineDeployments": [SMALL, SMALL]}), f"{mds}[1].class")
    yield from case("CC-7", KIND, spec(workers={"machinePools": [POOL, POOL]}), f"{mps}[1].class")
    yield from _rollout(
        "CC-8", KIND, lambda r: md_class(rollout={"strategy": {"rollingUpdate": r}}), f"{mds}[small].rollout.strategy.rollingUpdate"
    )
    yield from _health("CC-9", KIND, lambda h: spec(controlPlane={"healthCheck": h}), "spec.controlPlane.healthCheck")
    yield from case(
        "CC-10",
        KIND,
        spec(controlPlane={"healthCheck": check, "machineInfrastructure": None}),
        "spec.controlPlane.healthCheck",
        spec(controlPlane={"healthCheck": check}),
    )
    yield from _health("CC-11", KIND, lambda h: md_class(healthCheck=h), f"{mds}[small].healthCheck")
    for id, put, at, known in (
        ("CC-12", lambda n: spec(infrastructure={"naming": n}), "spec.infrastructure.naming", ".cluster.name"),
        ("CC-13", lambda n: spec(controlPlane={"naming": n}), "spec.controlPlane.naming", ".cluster.name"),
        ("CC-14", lambda n: md_class(naming=n), f"{mds}[small].naming", ".machineDeployment.topologyName"),
        ("CC-15", lambda n: mp_class(naming=n), f"{mps}[pool].naming", ".machinePool.topologyName"),
    ):
        good = put({"template": f"{{{{ {known} }}}}"})
        for bad in ("{{ .nothing }}", "{{", "{{ .cluster.name | trunc 3 }}", "{{ .machineSet.name }}"):
            yield from case(f"{id} NAM-2", KIND, put({"template": bad}), f"{at}.template", good)
        yield from case("NAM-3", KIND, put({"template": "A"}), f"{at}.template", good)
    for put, at in (
        (lambda t: spec(controlPlane={"taints": t}), "spec.controlPlane.taints"),
        (lambda t: md_class(taints=t), f"{mds}[small].taints"),
        (lambda t: mp_class(taints=t), f"{mps}[pool].taints"),
    ):
        yield from _taints("CC-16", KIND, put, at)
    for put, at in (
        (lambda m: spec(controlPlane={"metadata": m}), "spec.controlPlane.metadata"),
        (lambda m: md_class(metadata=m), f"{mds}[small].template.metadata"),
        (lambda m: mp_class(metadata=m), f"{mps}[pool].template.metadata"),
    ):
        yield from _metadata("CC-19", KIND, put, at)
    good = spec(kubernetesVersions=["v1.33.0", "v1.33.0+a", "v1.33.0+b", "v1.33.4", "v1.34.0"])
    yield from case("CC-20", KIND, spec(kubernetesVersions=["v1.33.0", "x"]), "spec.kubernetesVersion[1]", good)
    yield from case("CC-21", KIND, spec(kubernetesVersions=["v1.33.1", "v1.33.0"]), "spec.kubernetesVersion[1]", good)
    yield from case("CC-21", KIND, spec(kubernetesVersions=["v1.33.0+a.2", "v1.33.0+a.1"]), "spec.kubernetesVersion[1]", good)
    yield from case("CC-22", KIND, spec(kubernetesVersions=["v1.33.0", "v1.35.0"]), "spec.kubernetesVersion[1]", good)
    yield from _used(check, mds, mps)  # fmt: skip


def _used(check: Json, mds: str, mps: str) -> Iterator[Case]:
    """What a class may not lose while Clusters use it, and what it may not become."""
    update: Any = {"old": {}, "facts": user(), "keeps_facts": user()}
    nobody: Any = {"old": {}, "facts": user(), "keeps_facts": Users()}
    yield from case("CC-23", KIND, {}, "", old={}, facts=Users(error="no connection"), keeps_facts=Users())
    yield from case(
        "CC-24", KIND, spec(kubernetesVersions=["v1.34.0"]), "spec.kubernetesVersions", spec(kubernetesVersions=["v1.33.4"]), **update
    )
    yield from case("CC-25", KIND, spec(workers={"machineDeployments": None}), mds, spec(workers={"machineDeployments": None}), **nobody)
    yield from case("CC-26", KIND, spec(workers={"machinePools": None}), mps, spec(workers={"machinePools": None}), **nobody)
    defined = spec(controlPlane={"healthCheck": check})
    relies, own = ({"controlPlane": {"healthCheck": {"enabled": True} | more}} for more in ({}, check))
    yield from case("CC-27", KIND, {}, "spec.controlPlane.healthCheck", {}, old=defined, facts=user(relies), keeps_facts=user(own))
    relies, own = ({"workers": {"machineDeployments": [MD_TOPOLOGY | {"healthCheck": {"enabled": True} | more}]}} for more in ({}, check))
    yield from case(
        "CC-28", KIND, {}, f"{mds}[small].healthCheck", {}, old=md_class(healthCheck=check), facts=user(relies), keeps_facts=user(own)
    )
    replicas = user({"workers": {"machineDeployments": [MD_TOPOLOGY | {"replicas": 2}]}})
    scaled = {"metadata": {"annotations": {MAX: "3"}}}
    yield from case("CC-29", KIND, md_class(**scaled), "spec.topology.workers.machineDeployments[md].replicas", {}, old={}, facts=replicas)
    itself = user({"workers": {"machineDeployments": [MD_TOPOLOGY | {"replicas": 2} | scaled]}})
    yield from case(
        "CC-29 CL-28", KIND, {}, "spec.topology.workers.machineDeployments[md].replicas", {}, old={}, facts=itself, keeps_facts=user()
    )
    for id, put, at in (
        ("CC-30", lambda r: spec(infrastructure={"templateRef": r}), "spec.infrastructure"),
        ("CC-31", lambda r: spec(controlPlane={"templateRef": r}), "spec.controlPlane"),
        ("CC-32", lambda r: spec(controlPlane={"machineInfrastructure": {"templateRef": r}}), "spec.controlPlane.machineInfrastructure"),
        ("CC-33", lambda r: md_class(infrastructure={"templateRef": r}), f"{mds}[0].infrastructure"),
        ("CC-34", lambda r: mp_class(infrastructure={"templateRef": r}), f"{mps}[0].infrastructure"),
    ):
        other = put(
            {"apiVersion": "infrastructure.cluster.x-k8s.io/v9" if id != "CC-31" else "controlplane.cluster.x-k8s.io/v9", "name": "o"}
        )
        yield from case(id, KIND, put({"apiVersion": "other.io/v1"}), f"{at}.templateRef.apiVersion", other, old={}, facts=Users())
        yield from case(id, KIND, put({"kind": "OtherTemplate"}), f"{at}.templateRef.kind", other, old={}, facts=Users())
    gone = spec(controlPlane={"machineInfrastructure": None})
    yield from case("CC-32", KIND, gone, "spec.controlPlane.machineInfrastructure.templateRef.kind", {}, old={}, facts=Users())
    yield from case("CC-35", KIND, {}, "spec", {}, operation="DELETE", facts=user(), keeps_facts=Users())


def _patches() -> Iterator[Case]:
    plane_selector = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlaneTemplate",
        "matchResources": {"controlPlane": True},
    }
    write = {"op": "add", "path": "/spec/template/spec/x", "value": 1}
    patch = {"name": "p", "definitions": [{"selector": plane_selector, "jsonPatches": [write]}]}
    variables = [{"name": "v", "schema": {"openAPIV3Schema": {"type": "string"}}}]

    def patches(*found: Json) -> Json:
        return spec(patches=list(found), variables=variables)

    def of(json_patch: Json) -> Json:
        return patches({"name": "p", "definitions": [{"selector": plane_selector, "jsonPatches": [json_patch]}]})

    def selecting(selector: Json) -> Json:
        return patches({"name": "p", "definitions": [{"selector": merge(plane_selector, selector), "jsonPatches": [write]}]})

    at, good = "spec.patches[0]", patches(patch)
    j, s = f"{at}.definitions[0].jsonPatches[0]", f"{at}.definitions[0].selector"
    external = {"name": "p", "external": {"generatePatchesExtension": "g"}}
    yield from case("CC-18 PA-1", KIND, patches(patch | {"name": ""}), f"{at}.name", good)
    yield from case("PA-2", KIND, patches(patch | {"name": "inline"}), f"{at}.name", good)
    yield from case("PA-3", KIND, patches(patch, patch), "spec.patches[1].name", patches(patch, patch | {"name": "q"}))
    yield from case(
        "PA-4",
        KIND,
        patches(patch | {"enabledIf": '{{ env "HOME" }}'}),
        f"{at}.enabledIf",
        patches(patch | {"enabledIf": "{{ .v | upper | quote }}"}),
    )
    yield from case("PA-5", KIND, patches({"name": "p"}), at, good)
    yield from case("PA-6", KIND, patches(patch | external), at, patches(external))
    yield from case("PA-7", KIND, patches(external), f"{at}.external", patches(external), gates=without("RuntimeSDK"))
    yield from case(
        "PA-8",
        KIND,
        patches({"name": "p", "external": {"discoverVariablesExtension": "d"}}),
        f"{at}.external",
        patches({"name": "p", "external": {"validateTopologyExtension": "v"}}),
    )
    yield from case("PA-9", KIND, of(write | {"op": "move"}), f"{j}.op", good)
    yield from case("PA-10", KIND, of(write | {"path": "/metadata/labels"}), f"{j}.path", good)
    yield from case("PA-11", KIND, of(write | {"path": "/spec/list/1"}), f"{j}.path", of(write | {"path": "/spec/list/0"}))
    yield from case("PA-12", KIND, of({"op": "remove", "path": "/spec/list/0"}), f"{j}.path", of({"op": "remove", "path": "/spec/list/-"}))
    yield from case("PA-13", KIND, of({"op": "add", "path": "/spec/a"}), j, of({"op": "remove", "path": "/spec/a"}))
    yield from case("PA-14", KIND, of(write | {"valueFrom": {"variable": "v"}}), j, good)
    source = {"op": "replace", "path": "/spec/a"}
    yield from case("PA-16", KIND, of(source | {"valueFrom": {}}), f"{j}.valueFrom", of(source | {"valueFrom": {"variable": "v"}}))
    yield from case(
        "PA-17",
        KIND,
        of(source | {"valueFrom": {"variable": "v", "template": "a"}}),
        f"{j}.valueFrom",
        of(source | {"valueFrom": {"template": "a"}}),
    )
    yield from case(
        "PA-18",
        KIND,
        of(source | {"valueFrom": {"template": "{{ nope }}"}}),
        f"{j}.valueFrom.template",
        of(source | {"valueFrom": {"template": "{{ .v | trunc 3 }}"}}),
    )
    for bad in ("builtin.nope", "builtin.cluster.metadata", "builtin."):
        yield from case(
            "PA-19",
            KIND,
            of(source | {"valueFrom": {"variable": bad}}),
            f"{j}.valueFrom.variable",
            of(source | {"valueFrom": {"variable": "builtin.cluster.name"}}),
        )
    for bad in ("w", "builtin", "w.v", "[", "."):
        yield from case(
            "PA-20",
            KIND,
            of(source | {"valueFrom": {"variable": bad}}),
            f"{j}.valueFrom.variable",
            of(source | {"valueFrom": {"variable": ".v[0].a"}}),
        )
    yield from case("PA-21", KIND, selecting({"matchResources": {"controlPlane": False}}), s, good)
    cluster = {"matchResources": {"controlPlane": None, "infrastructureCluster": True}}
    infra = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevClusterTemplate"}
    yield from case("PA-22", KIND, selecting(cluster), f"{s}.matchResources.infrastructureCluster", selecting(cluster | infra))
    machines = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate"}
    yield from case("PA-23", KIND, selecting({"kind": "Other"}), f"{s}.matchResources.controlPlane", selecting(machines))
    for n, key, right, known in (
        (24, "machineDeploymentClass", machines, "small"),
        (26, "machinePoolClass", machines | {"kind": "DevMachinePoolTemplate"}, "pool"),
    ):
        names = f"{s}.matchResources.{key}.names[0]"

        def select(*found: str, key: str = key, right: Json = right) -> Json:
            return selecting(right | {"matchResources": {"controlPlane": None, key: {"names": list(found)}}})

        for bad in ("a*b", "**", "*a b"):
            yield from case(f"PA-{n}", KIND, select(bad), names, select(f"{known[:2]}*", "*", f"*{known[1:]}"))
        yield from case(f"PA-{n + 1}", KIND, select("nope"), names, select(known))
        yield from case(f"PA-{n + 1}", KIND, select("x*"), names, select("*"))  # fmt: skip


def _variables() -> Iterator[Case]:
    """CC-17 and VAR-1 to VAR-24."""
    v = "spec.variables[v]"
    s = f"{v}.schema.openAPIV3Schema"

    def defined(schema: Json, name: str = "v", **more: Any) -> Json:
        return {"name": name, "schema": {"openAPIV3Schema": schema}, **more}

    def of(schema: Json, **more: Any) -> Json:
        return spec(variables=[defined(schema, **more)])

    def ruled(**rule: Any) -> Json:
        return of(
            {
                "type": "object",
                "properties": {"a": {"type": "string", "maxLength": 9}},
                "x-kubernetes-validations": [{"rule": "true"} | rule],
            }
        )

    def rule(ids: str, breaks: Json, at: str, keeps: Json | None = None, **more: Any) -> Iterator[Case]:
        yield from case(ids, KIND, breaks, at, good if keeps is None else keeps, **more)

    string = {"type": "string"}
    good, r = of(string), f"{s}.x-kubernetes-validations[0]"
    yield from rule("CC-17 VAR-3", of(string, name="builtin"), "spec.variables[builtin].name")
    yield from rule("VAR-1", spec(variables=[defined(string), defined(string)]), f"{v}.name")
    yield from rule("VAR-2", of(string, name=""), "spec.variables[].name")
    yield from rule("VAR-4", of(string, name="a.b"), "spec.variables[a.b].name")
    yield from rule("VAR-5", of(string, deprecatedV1Beta1Metadata={"labels": {"a": "$"}}), f"{v}.deprecatedV1Beta1Metadata.labels")
    deep = {"type": "object", "properties": {"a": {"type": "string", "x-metadata": {"annotations": {"a b": "c"}}}}}
    yield from rule("VAR-6", of(deep), f"{s}.properties[a].x-metadata.annotations")
    yield from rule("VAR-8", of({"type": "array"}), f"{s}.items", of({"type": "array", "items": string}))
    yield from rule("VAR-9", of({"type": "integer", "default": "x"}), f"{s}.default", of({"type": "integer", "default": 1}))
    yield from rule("VAR-10", of({"type": "object", "properties": {"a": {"type": "str"}}}), f"{s}.properties[a].type")
    yield from rule("VAR-11", of({"type": "string", "pattern": "("}), f"{s}.pattern", of({"type": "string", "pattern": "^a$"}))
    yield from rule(
        "VAR-12", of({"type": "integer", "maximum": 3, "example": 4}), f"{s}.example", of({"type": "integer", "maximum": 3, "example": 3})
    )
    yield from rule("VAR-12", of({"type": "string", "enum": ["a", 1]}), f"{s}.enum[1]", of({"type": "string", "enum": ["a"]}))
    yield from rule(
        "VAR-13",
        of({"type": "object", "properties": {"a": string}, "additionalProperties": string}),
        s,
        of({"type": "object", "properties": {"a": string}}),
    )
    fine = ruled()
    yield from rule("VAR-14", ruled(rule=" "), f"{r}.rule", fine)
    yield from rule("VAR-15", ruled(message=" "), f"{r}.message", fine)
    yield from rule("VAR-15", ruled(message="a\nb"), f"{r}.message", ruled(message="a b"))
    yield from rule("VAR-16", ruled(rule="true &&\ntrue"), f"{r}.message", ruled(rule="true &&\ntrue", message="m"))
    yield from rule("VAR-17", ruled(messageExpression=" "), f"{r}.messageExpression", ruled(messageExpression="'a'"))
    yield from rule("VAR-18", ruled(reason="Other"), f"{r}.reason", ruled(reason="FieldValueForbidden"))
    for bad in (" ", ".zz", "a"):
        yield from rule("VAR-19", ruled(fieldPath=bad), f"{r}.fieldPath", ruled(fieldPath=".a"))
    yield from rule("VAR-20", ruled(rule="self.a +"), f"{r}.rule", ruled(rule="self.a == 'x'"))
    yield from rule("VAR-21", ruled(messageExpression="self.zz"), f"{r}.messageExpression", ruled(messageExpression="self.a"))
    items = {"type": "array", "items": {"type": "string", "maxLength": 10}}
    nested = {"x-kubernetes-validations": [{"rule": "self.list.all(x, self.list.all(y, x == y))"}]}
    dear, cheap = ({"type": "object", "properties": {"list": items | more}} | nested for more in ({}, {"maxItems": 10}))
    yield from rule("VAR-22", of(dear), f"{r}.rule", of(cheap))
    yield from rule("VAR-24", of(dear), s, of(cheap))
    old = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    yield from rule("VAR-23", of({"type": "array", "maxItems": 3, "items": old}), f"{s}.items.x-kubernetes-validations[0].rule", of(old))


CLUSTER_CASES = [*_cluster(), *_values(), *_class(), *_patches(), *_variables()]
assert TOPOLOGY
assert CLASS_SPEC
