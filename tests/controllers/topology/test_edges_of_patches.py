"""What patches do to the objects of a topology, at their edges. What single functions give is in
`tests/topology` and in the recorded calls (`tests/vectors/patches.jsonl.gz`); here they are seen from the objects that come of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from clusterwright.api.meta import Json
from controllers.topology.passes import Passes
from support.extension import extension_config

PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
INFRA = "infrastructure.cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
WORKER = {
    "apiVersion": BOOTSTRAP,
    "kind": "KubeadmConfigTemplate",
    "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}},
}
PATH = "/spec/template/spec/"


def selector(kind: str, api_version: str, **match: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "matchResources": match}


LEADERS = selector("KubeadmControlPlaneTemplate", PLANE, controlPlane=True)


def patch(*operations: Json, on: Json = WORKER, name: str = "p", **more: Any) -> Json:
    return {"name": name, "definitions": [{"selector": on, "jsonPatches": list(operations)}], **more}


def add(path: str, value: Any = None, op: str = "add", **value_from: Any) -> Json:
    return {"op": op, "path": PATH + path, **({"valueFrom": value_from} if value_from else {"value": value})}


def variable(name: str, **schema: Any) -> Json:
    return {"name": name, "required": False, "schema": {"openAPIV3Schema": schema or {"x-kubernetes-preserve-unknown-fields": True}}}


async def passed(*patches: Json, variables: dict[str, Any] | None = None, workers: Any = None, **more: Any) -> Passes:
    """One pass with these patches and inline variables of any type."""
    values = variables or {}
    types = {str: "string", int: "integer", float: "number", bool: "boolean"}
    made = [variable(n, type=types[type(v)]) if type(v) in types else variable(n, **_schema(v)) for n, v in values.items()]
    given: dict[str, Any] = {"variables": [{"name": n, "value": v} for n, v in values.items()]} if values else {}
    spec = {"patches": list(patches), "variables": [*made, *more.pop("definitions", [])]}
    return await Passes(
        *more.pop("objects", ()),
        class_spec=spec,
        workers={"a": 1} if workers is None else workers,
        **given,
        **more,
    ).run()


def _schema(value: Any) -> Json:
    if isinstance(value, list):
        return {"type": "array", "items": {"type": "string"}}
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def bootstrap(p: Passes) -> Json:
    """The spec of what bootstraps the worker."""
    assert p.error == ""
    found: Json = (await p.one("KubeadmConfigTemplate", BOOTSTRAP))["spec"]["template"]["spec"]
    return found


# --------------------------------------------------------------------------------------------------------- what they reach


async def test_a_later_patch_sees_what_an_earlier_one_did() -> None:
    p = await passed(patch(add("x", {"a": 1, "b": 1}), name="one"), patch(add("x/b", 2), add("x/c", 3), name="two"))

    assert (await bootstrap(p))["x"] == {"a": 1, "b": 2, "c": 3}


async def test_patches_do_not_write_a_status() -> None:
    before = await passed()
    after = await passed(patch({"op": "add", "path": "/status", "value": {"x": "y"}}))

    assert after.error == ""
    for kind, version in (("KubeadmConfigTemplate", BOOTSTRAP), ("KubeadmControlPlane", PLANE)):
        ours, theirs = await before.one(kind, version), await after.one(kind, version)
        assert (ours["spec"], ours["metadata"]["labels"]) == (theirs["spec"], theirs["metadata"]["labels"])


async def test_a_spec_cannot_be_removed() -> None:
    assert await bootstrap(await passed(patch({"op": "remove", "path": "/spec"}))) == await bootstrap(await passed())


async def test_patches_do_not_overrule_the_topology() -> None:
    operations = [add("version", "v9"), add("replicas", 9), add("machineTemplate", {"metadata": {"labels": {"x": "y"}}})]
    p = await passed(patch(*operations, on=LEADERS))
    made = (await p.one("KubeadmControlPlane", PLANE))["spec"]
    assert (made["version"], made["replicas"]) == ("v1.34.1", 1)

    def open_replicas(_objects: list[Json], cluster: Json) -> None:
        cluster["spec"]["topology"]["controlPlane"] = {}

    free = await passed(patch(*operations, on=LEADERS), alter=open_replicas)
    assert (await free.one("KubeadmControlPlane", PLANE))["spec"]["replicas"] == 9, "who leaves it open takes the patch's"


async def test_a_selector_of_another_version_reaches_nothing() -> None:
    other = {**WORKER, "apiVersion": BOOTSTRAP.replace("v1beta2", "v1beta1")}

    assert "x" not in await bootstrap(await passed(patch(add("x", 1), on=other)))


async def test_the_machines_of_the_control_plane_are_reached_by_their_kind() -> None:
    p = await passed(patch(add("x", 1), on=selector("DevMachineTemplate", INFRA, controlPlane=True)))
    reached = {
        t["metadata"]["name"].startswith("c-a-"): "x" in t["spec"]["template"]["spec"] for t in await p.all("DevMachineTemplate", INFRA)
    }

    assert reached == {False: True, True: False}


@pytest.mark.parametrize(
    ("names", "reached"),
    [(["*-worker"], {"a-worker"}), (["worker-*"], {"worker-b"}), (["*"], {"a-worker", "worker-b"}), ([], set()), (["a-*-r"], set())],
)
async def test_classes_are_selected_by_pattern(names: list[str], reached: set[str]) -> None:
    def two_classes(objects: list[Json], cluster: Json) -> None:
        workers = objects[-1]["spec"]["workers"]["machineDeployments"]
        objects[-1]["spec"]["workers"]["machineDeployments"] = [{**workers[0], "class": c} for c in ("a-worker", "worker-b")]
        entries = [{"class": c, "name": c, "replicas": 1} for c in ("a-worker", "worker-b")]
        cluster["spec"]["topology"]["workers"]["machineDeployments"] = entries

    on = selector("KubeadmConfigTemplate", BOOTSTRAP, machineDeploymentClass={"names": names})
    p = await passed(patch(add("x", 1), on=on), alter=two_classes)
    made = {
        t["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"]: "x" in t["spec"]["template"]["spec"]
        for t in await p.all("KubeadmConfigTemplate", BOOTSTRAP)
    }

    assert made == {c: c in reached for c in ("a-worker", "worker-b")}


# ------------------------------------------------------------------------------------------------------- whether they apply


@pytest.mark.parametrize(("condition", "enabled"), [("{{ .x }}", True), ("{{ .nothing }}", False), ("{{ eq .x `no` }}", False)])
async def test_patches_are_enabled_by_every_true_of_yaml(condition: str, enabled: bool) -> None:
    made = await bootstrap(await passed(patch(add("x", 1), enabledIf=condition), variables={"x": "yes"}))

    assert ("x" in made) is enabled


async def test_an_override_decides_for_its_worker_and_replaces_the_whole_value() -> None:
    def override(_objects: list[Json], cluster: Json) -> None:
        entry = cluster["spec"]["topology"]["workers"]["machineDeployments"][1]
        entry["variables"] = {"overrides": [{"name": "o", "value": {"on": "true"}}]}

    shown = patch(add("shown", template="{{ .o.other }}"), enabledIf="{{ .o.on }}")
    p = await passed(shown, variables={"o": {"on": "false", "other": "x"}}, workers={"a": 1, "b": 1}, alter=override)
    assert p.error == ""
    made = {
        t["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"]: t["spec"]["template"]["spec"].get("shown")
        for t in await p.all("KubeadmConfigTemplate", BOOTSTRAP)
    }

    assert made == {"a": None, "b": "<no value>"}, "b has no other: the override is the whole value"


async def test_a_variable_of_an_extension_is_not_seen_by_inline_templates() -> None:
    def discovered(objects: list[Json], _cluster: Json) -> None:
        definition = {"from": "ext", "required": False, "schema": {"openAPIV3Schema": {"type": "string"}}}
        objects[-1]["status"]["variables"] = [{"name": "theirs", "definitions": [definition]}]

    p = await passed(patch(add("x", template="'{{ .theirs }}'")), alter=discovered)
    await p.topology(variables=[{"name": "theirs", "value": "hello"}])
    await p.run()

    assert (await bootstrap(p))["x"] == "<no value>"


async def test_workers_do_not_see_the_control_plane() -> None:
    made = await bootstrap(await passed(patch(add("x", template="{{ .builtin.controlPlane.version }}"))))

    assert made["x"] == "<no value>"


async def test_a_worker_that_is_pending_sees_its_own_version() -> None:
    p = await passed(patch(add("x", template="{{ .builtin.machineDeployment.version }}")), version="v1.33.0")
    assert (await bootstrap(p))["x"] == "v1.33.0"
    await p.topology(version="v1.34.1")
    await p.run()

    assert (await bootstrap(p))["x"] == "v1.33.0"
    assert (await p.one("KubeadmControlPlane", PLANE))["spec"]["version"] in {"v1.33.0", "v1.34.1"}


# --------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("template", "variables", "value"),
    [
        ("{{ .tag }}", {"tag": "1.30"}, 1.3),
        ('"{{ .tag }}"', {"tag": "1.30"}, "1.30"),
        ("{{ .tag | quote }}", {"tag": "1.30"}, "1.30"),
        ("x-{{ .n }}", {"n": 1000000}, "x-1e+06"),
        ("{{ eq .n 4.0 }}", {"n": 4}, True),
        ("{{ eq (int .n) 4 }}", {"n": 4}, True),
    ],
)
async def test_values_of_templates_are_rendered(template: str, variables: dict[str, Any], value: Any) -> None:
    assert (await bootstrap(await passed(patch(add("x", template=template)), variables=variables)))["x"] == value


@pytest.mark.parametrize(
    ("operation", "variables", "text"),
    [
        pytest.param(add("x", template="{{ eq .n 4 }}"), {"n": 4}, "incompatible types for comparison", id="81"),
        pytest.param(add("nothing/here", 1), {}, "nothing", id="83"),
        pytest.param(add("x", variable="l[2]"), {"l": ["a"]}, "array does not have index 2", id="85"),
        pytest.param(add("x", variable="nope"), {}, 'variable "nope" does not exist', id="unknown"),
    ],
)
async def test_a_failing_patch_is_reported_and_nothing_is_written(operation: Json, variables: dict[str, Any], text: str) -> None:
    p = await passed(patch(operation), variables=variables)

    assert text in (await p.condition())[2]
    assert 'patch "p"' in (await p.condition())[2]
    assert p.actions == []


async def test_a_template_that_renders_nothing_adds_nothing() -> None:
    made = await bootstrap(await passed(patch(add("x", template="{{ if false }}y{{ end }}"))))

    assert made.get("x") is None


async def test_lists_grow_at_both_ends() -> None:
    p = await passed(patch(add("l", ["b"]), add("l/-", "c"), add("l/0", "a")))

    assert (await bootstrap(p))["l"] == ["a", "b", "c"]


# ----------------------------------------------------------------------------------------------------------- extensions

EXTERNAL = {"name": "ext", "external": {"generatePatchesExtension": "gen.ext"}}


def extension(answer: Json, hook: str = "GeneratePatches") -> dict[str, Any]:
    config = extension_config("ext", "https://h/", "", {"gen": hook})
    return {"objects": [config], "observation": {"features": {"RuntimeSDK": True}, "runtimeExtensions": {"gen": {"response": answer}}}}


def items(kind: str, content: Any) -> Json:
    text = json.dumps(content)
    holder = {"kind": "MachineDeployment", "fieldPath": "spec.template.spec.bootstrap.configRef"}
    return {"status": "Success", "items": [{"holder": holder, "patchType": kind, "patch": text}]}


async def test_an_answer_for_an_unknown_item_is_an_error() -> None:
    stray = {"uid": "nobody", "patchType": "JSONPatch", "patch": base64.b64encode(b"[]").decode()}
    p = await passed(EXTERNAL, **extension({"status": "Success", "items": [stray]}))

    assert "unable to find corresponding request item for patch" in p.error
    assert p.actions == []


async def test_a_null_in_a_merge_patch_removes() -> None:
    change = {"spec": {"template": {"spec": {"joinConfiguration": None, "x": 1}}}}
    made = await bootstrap(await passed(EXTERNAL, **extension(items("JSONMergePatch", change))))

    assert (made["x"], "joinConfiguration" in made) == (1, False)


async def test_a_topology_that_is_refused_is_not_written() -> None:
    validating = {"name": "ext", "external": {"validateTopologyExtension": "gen.ext"}}
    p = await passed(validating, **extension({"status": "Failure", "message": "no"}, "ValidateTopology"))

    assert 'validation of patch "ext" failed' in (await p.condition())[2]
    assert p.actions == []


# ------------------------------------------------------------------------------------------------------------- the rest


async def test_without_patches_variables_are_still_checked() -> None:
    definitions = [{"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "string", "enum": ["small"]}}}]
    p = await Passes(class_spec={"variables": definitions}, variables=[{"name": "size", "value": "huge"}]).run()

    assert "size" in (await p.condition())[2]
    assert p.actions == []


async def test_a_refusal_of_the_server_is_reported_without_a_random_name() -> None:
    refusal = {"verb": "create", "kind": "KubeadmConfigTemplate", "error": "Forbidden"}
    p = await passed(patch(add("x", 1)), observation={"unwritable": [refusal]})

    said = await p.condition()
    assert said[1] == "ReconcileFailed"
    assert said[2].endswith("failed to create kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io")
    await p.settle("v1.34.1")
    await p.run()
    assert await p.condition() == said


async def test_a_patch_that_comes_and_goes_rotates_twice() -> None:
    p = await passed(patch(add("x", template="{{ .on }}"), enabledIf="{{ .on }}"), variables={"on": False})
    await p.settle("v1.34.1")
    names = [(await p.one("KubeadmConfigTemplate", BOOTSTRAP))["metadata"]["name"]]
    for value in (True, False):
        await p.topology(variables=[{"name": "on", "value": value}])
        await p.run()
        assert p.error == ""
        used = (await p.one("MachineDeployment"))["spec"]["template"]["spec"]["bootstrap"]["configRef"]["name"]
        names.append(used)

    assert len(set(names)) == 3
