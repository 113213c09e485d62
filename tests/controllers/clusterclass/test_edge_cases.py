"""Passes over a ClusterClass at the edges."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterwright.api.codec import convert
from clusterwright.api.core import ClusterClass
from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.conditions import get
from clusterwright.controllers.clusterclass.build import CONTROLLER, classes_of_extension
from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from support.extension import extension_config

KEY = ObjectKey("default", "in-memory")
INFRA = "infrastructure.cluster.x-k8s.io/v1beta2"
NOT_PAUSED = {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "observedGeneration": 1}


class Passes:
    """Passes over one class. `error` is how the last one failed."""

    def __init__(
        self,
        objects: list[Json] | None = None,
        *more: Json,
        answers: dict[str, Any] | None = None,
        gate: bool = True,
        definitions: list[Json] | None = None,
    ) -> None:
        made = copy.deepcopy(objects or samples.cluster_class())
        for n, obj in enumerate(made):
            obj["metadata"] |= {"uid": f"uid-{n}", "generation": 1}
            if obj["kind"] == "ClusterClass":
                obj.setdefault("status", {}).setdefault("conditions", [NOT_PAUSED])
        observation = {
            "apiVersion": "clusterwright.dev/v1alpha1",
            "kind": "Observation",
            "features": {"RuntimeSDK": gate, "ClusterTopology": True},
            "runtimeExtensions": answers or {},
        }
        bundle = assemble([*(crds() if definitions is None else definitions), *made, *more, observation])
        self.world = World(bundle, datetime(2026, 5, 1, 12, tzinfo=UTC), sample_keys())
        self.client = self.world.client
        self.reconciler = CONTROLLER.make(self.world.dependencies())
        self.error = ""

    async def run(self, key: ObjectKey = KEY) -> Passes:
        self.world.journal.actions.clear()
        try:
            await self.world.reports.complete(self.reconciler, key)
            self.error = ""
        except ApiError as error:
            self.error = str(error)
        return self

    async def object(self) -> ClusterClass:
        return await self.client.get(ClusterClass, KEY)

    async def condition(self, type: str) -> tuple[str, str, str]:
        found = get((await self.object()).status.conditions, type)
        assert found is not None
        return found.status, found.reason, found.message

    async def owners(self, kind: str, name: str, api_version: str = INFRA) -> list[Json]:
        found = await self.client.get(GroupVersionKind.of(api_version, kind), ObjectKey("default", name))
        return list(found.json["metadata"].get("ownerReferences") or [])

    @property
    def written(self) -> list[tuple[str, str]]:
        """What the last pass wrote beside the class."""
        return [(a.kind, a.name) for a in self.world.journal.actions if a.kind != "ClusterClass"]


def schema(**more: Any) -> Json:
    return {"openAPIV3Schema": {"type": "string", **more}}


def variable(name: str, **more: Any) -> Json:
    return {"name": name, "required": False, "schema": schema(), **more}


def discovering(*handlers: str, settings: dict[str, str] | None = None) -> list[Json]:
    return [
        {"name": f"p-{h}", "external": {"discoverVariablesExtension": f"{h}.ext", **({"settings": settings} if settings else {})}}
        for h in handlers
    ]


def config(*handlers: str, **spec: Any) -> Json:
    return extension_config("ext", "https://ext.example.com/", "", dict.fromkeys(handlers, "DiscoverVariables"), spec=spec)


def variables(*made: Json) -> Json:
    return {"response": {"status": "Success", "variables": list(made)}}


# ---------------------------------------------------------------------------------------------------------- templates


async def test_every_template_is_owned_once() -> None:
    objects = samples.cluster_class()
    workers = objects[-1]["spec"]["workers"]["machineDeployments"]
    workers.append({**workers[0], "class": "second"})
    p = await Passes(objects).run()

    assert sorted(p.written) == sorted((o["kind"], o["metadata"]["name"]) for o in objects[:-1]), "shared ones are written once"
    (owner,) = await p.owners("DevMachineTemplate", "in-memory-worker")
    assert (owner["kind"], owner["name"], owner.get("controller")) == ("ClusterClass", "in-memory", None)
    assert (await p.run()).written == []


async def test_an_old_reference_to_the_class_becomes_a_new_one() -> None:
    objects = samples.cluster_class()
    old = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass", "name": "in-memory", "uid": "uid-6"}
    objects[0]["metadata"]["ownerReferences"] = [old]
    p = await Passes(objects).run()

    owners = await p.owners("DevClusterTemplate", "in-memory-cluster")
    assert [o["apiVersion"] for o in owners] == ["cluster.x-k8s.io/v1beta2"]


async def test_two_classes_own_one_template() -> None:
    second = copy.deepcopy(samples.cluster_class()[-1])
    second["metadata"] |= {"name": "second", "uid": "uid-second", "generation": 1}
    second["status"] = {"conditions": [NOT_PAUSED]}
    p = await (await Passes(None, second).run()).run(ObjectKey("default", "second"))

    assert {o["name"] for o in await p.owners("DevClusterTemplate", "in-memory-cluster")} == {"in-memory", "second"}


async def test_a_missing_template_does_not_block_the_others_and_is_found_when_created() -> None:
    objects = samples.cluster_class(variables=[variable("a")])
    missing = objects.pop(0)
    p = await Passes(objects).run()

    assert "Could not find external object for the ClusterClass" in p.error
    assert (await p.condition("RefVersionsUpToDate"))[:2] == ("Unknown", "InternalError")
    assert (await p.condition("VariablesReady"))[:2] == ("True", "VariablesReady")
    assert len(p.written) == 5
    found = await p.object()
    assert ([v.name for v in found.status.variables], found.status.observed_generation) == (["a"], 0)

    await p.client.create(missing)
    await p.run()
    assert p.error == ""
    assert (await p.condition("RefVersionsUpToDate"))[0] == "True"
    assert (await p.object()).status.observed_generation == 1


async def test_a_kind_without_contract_is_an_error() -> None:
    made = [c for c in crds() if "devclustertemplates" not in c["metadata"]["name"]]
    (bare,) = [c for c in crds() if "devclustertemplates" in c["metadata"]["name"]]
    bare["metadata"]["labels"] = {}
    p = await Passes(definitions=[*made, bare]).run()

    assert p.error
    assert (await p.condition("RefVersionsUpToDate"))[:2] == ("Unknown", "InternalError")


async def test_a_reference_to_an_old_version_is_reported_and_kept() -> None:
    made = crds()
    (definition,) = [c for c in made if c["metadata"]["name"] == "devclustertemplates.infrastructure.cluster.x-k8s.io"]
    definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] = "v1beta2_v1beta3"
    p = await Passes(definitions=made).run()

    status, reason, message = await p.condition("RefVersionsUpToDate")
    assert (status, reason) == ("False", "RefVersionsNotUpToDate")
    assert message.count("* ") == 1
    found = await p.object()
    assert (p.error, found.status.observed_generation) == ("", 1)
    assert found.spec.infrastructure.template_ref.api_version == INFRA


# ---------------------------------------------------------------------------------------------------------- variables


async def test_variables_are_published_in_order_and_go_with_the_spec() -> None:
    p = await Passes(samples.cluster_class(variables=[variable("b"), variable("a")])).run()
    published = (await p.object()).status.variables
    assert [(v.name, v.definitions_conflict, [d.from_ for d in v.definitions]) for v in published] == [
        ("a", False, ["inline"]),
        ("b", False, ["inline"]),
    ]

    await p.client.patch(ClusterClass, KEY, {"spec": {"variables": [variable("b")]}})
    await p.run()
    assert [v.name for v in (await p.object()).status.variables] == ["b"]


@pytest.mark.parametrize(
    ("number", "theirs", "conflict"),
    [
        (10, {"type": "array", "items": {"type": "string", "uniqueItems": False}}, False),
        (11, {"type": "array", "items": {"type": "string"}, "description": "another"}, True),
    ],
)
async def test_one_variable_may_have_two_origins(number: int, theirs: Json, conflict: bool) -> None:
    ours = {"type": "array", "items": {"type": "string"}}
    inline = [variable("x", schema={"openAPIV3Schema": ours})]
    objects = samples.cluster_class(variables=inline, patches=discovering("v"))
    p = await Passes(objects, config("v"), answers={"v": variables(variable("x", schema={"openAPIV3Schema": theirs}))}).run()

    (published,) = (await p.object()).status.variables
    assert [d.from_ for d in published.definitions] == ["inline", "p-v"]
    assert bool(published.definitions_conflict) is conflict
    text = "VariableDiscovery failed: the following variables have conflicting schemas: x"
    assert ((await p.condition("VariablesReady"))[2] == text) is conflict
    assert ((await p.object()).status.observed_generation == 1) is not conflict


async def test_after_the_first_failure_nothing_else_is_validated() -> None:
    objects = samples.cluster_class(variables=[variable("a")], patches=discovering("one", "two", "three"))
    answers = {"one": {"error": "no"}, "two": variables(), "three": variables(variable("bad", schema=schema(type="nonsense")))}
    p = await Passes(objects, config("one", "two", "three"), answers=answers).run()

    message = (await p.condition("VariablesReady"))[2]
    assert "failed to call DiscoverVariables for patch p-one" in message
    assert "p-three" not in message
    assert (await p.object()).status.variables == ()


async def test_a_name_that_is_discovered_twice_is_an_error() -> None:
    objects = samples.cluster_class(patches=discovering("v"))
    p = await Passes(objects, config("v"), answers={"v": variables(variable("x"), variable("x"))}).run()

    assert "p-v.variables[x].name" in (await p.condition("VariablesReady"))[2]
    assert (await p.object()).status.variables == ()


async def test_a_failure_counts_under_any_policy() -> None:
    ignoring = extension_config("ext", "https://h/", "", {"v": "DiscoverVariables"}, failurePolicy="Ignore")
    p = await Passes(samples.cluster_class(patches=discovering("v")), ignoring, answers={"v": {"response": {"status": "Failure"}}}).run()

    assert (await p.condition("VariablesReady"))[0] == "False"


async def test_with_the_gate_off_no_extension_is_called() -> None:
    p = await Passes(samples.cluster_class(variables=[variable("a")], patches=discovering("v")), config("v"), gate=False).run()

    assert (p.error, p.world.canned.calls) == ("", [])
    assert [v.name for v in (await p.object()).status.variables] == ["a"]


async def test_the_same_question_is_asked_once_until_the_config_changes() -> None:
    second = copy.deepcopy(samples.cluster_class("second", patches=discovering("v")))
    second[-1]["status"] = {"conditions": [NOT_PAUSED]}
    p = Passes(samples.cluster_class(patches=discovering("v")), *second, config("v"), answers={"v": variables(variable("x"))})
    await p.run()
    await p.run(ObjectKey("default", "second"))
    assert len(p.world.canned.calls) == 1

    changed = config("v")
    changed["metadata"]["resourceVersion"] = "77"
    p.world.extensions.registry.add(changed)
    await p.run()
    assert len(p.world.canned.calls) == 2


async def test_an_extension_wakes_only_classes_in_its_namespaces() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}}
    p = Passes(samples.cluster_class(patches=discovering("v")), namespace, config("v"))

    async def woken(selector: Json) -> list[ObjectKey]:
        made = {**config("v", namespaceSelector=selector), "metadata": {"name": "ext"}}
        return list(await classes_of_extension(convert(made, ExtensionConfig), p.client))

    assert await woken({"matchLabels": {"team": "b"}}) == []
    assert await woken({"matchLabels": {"team": "a"}}) == [KEY]
    assert await woken({}) == [KEY]


# --------------------------------------------------------------------------------------------------- paused, deleting


async def test_a_paused_class_reports_only_that() -> None:
    objects = samples.cluster_class(variables=[variable("a")])
    objects[-1]["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
    p = await Passes(objects).run()
    await p.run()

    found = await p.object()
    assert (await p.condition("Paused"))[0] == "True"
    assert (found.status.variables, found.status.observed_generation, p.written) == ((), 0, [])


async def test_a_class_under_deletion_is_left_alone() -> None:
    objects = samples.cluster_class()
    objects[-1]["metadata"] |= {"finalizers": ["example.com/stay"], "deletionTimestamp": "2026-05-01T11:00:00Z"}
    p = await Passes(objects).run()

    assert p.written == []
    assert {c.type for c in (await p.object()).status.conditions} == {"Paused"}


async def test_a_class_without_workers_and_machine_infrastructure_is_ready() -> None:
    objects = samples.cluster_class(workers={})
    objects[-1]["spec"]["controlPlane"].pop("machineInfrastructure")
    p = await Passes(objects).run()

    assert p.error == ""
    assert (await p.condition("RefVersionsUpToDate"))[0] == (await p.condition("VariablesReady"))[0] == "True"
