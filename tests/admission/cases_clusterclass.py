"""Cases of ClusterClass: classes, templates, patches, variables, and what uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.admission_cases import (
    MD_TOPOLOGY,
    WORKERS,
    Case,
    Json,
    case,
    merge,
    user,
    without,
)
from admission.cases_kinds import MAX, _health, _metadata, _rollout, _taints
from clusterwright.admission.clusterclass import Users

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
    relies: Json
    own: Json
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


CLASS_CASES = [*_class(), *_patches(), *_variables()]
