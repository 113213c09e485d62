"""Objects stored in an old version are rewritten; owners of versions that are gone are forgotten."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wellknown import CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.crdmigrator import PHASES, is_due, make
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.wiring import NoEvents, PassTools
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import Forbidden
from clusterwright.runtime.reports import Reports
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks import embedded

CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NAME = ObjectKey("", "machinehealthchecks.cluster.x-k8s.io")
OLD = GroupVersionKind("cluster.x-k8s.io", "v1beta1", "MachineHealthCheck")
NEW = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineHealthCheck")


def definition(storage: str, *, served: tuple[str, ...] = ("v1beta1", "v1beta2")) -> dict[str, Any]:
    crd = next(crd for crd in crds() if crd["metadata"]["name"] == NAME.name)
    for version in crd["spec"]["versions"]:
        version["storage"], version["served"] = version["name"] == storage, version["name"] in served
    return crd


def check(name: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "False", "timeout": "5m0s"}]
    spec = {"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}, "unhealthyConditions": conditions}
    return {"apiVersion": OLD.api_version, "kind": OLD.kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def tools(client: RestClient) -> PassTools:
    return PassTools(client=client, clock=SystemClock(), random=Random(1), events=NoEvents(), reports=Reports())


class World:
    """A server with some objects that were written when v1beta1 was stored."""

    def __init__(self) -> None:
        self.server = ApiServer(now=SystemClock().now, random=Random(1), converters=embedded.converters)
        self.client = RestClient(InProcessTransport(self.server))
        self.migrator = make(tools(self.client))

    async def begin(self, objects: int = 3) -> None:
        await self.client.create(definition("v1beta1"))
        for number in range(objects):
            await self.client.create(check(f"m{number}"), field_manager="old")
        await self.client.patch(CRD, NAME, {"spec": definition("v1beta2")["spec"]})

    def stored(self) -> list[dict[str, Any]]:
        return [json.loads(entry.raw) for entry in self.server.store.table(NAME.name).objects.values()]

    async def stored_versions(self) -> Any:
        return (await self.client.get(CRD, NAME)).at("status", "storedVersions")


@pytest.fixture
async def world() -> World:
    world = World()
    await world.begin()
    return world


async def test_every_object_is_rewritten_and_nothing_else_changes(world: World) -> None:
    before = [dict(obj.json) for obj in await world.client.list(NEW)]
    assert {obj["apiVersion"] for obj in world.stored()} == {OLD.api_version}
    assert await world.stored_versions() == ["v1beta1", "v1beta2"]

    await world.migrator.reconcile(NAME)

    after = [dict(obj.json) for obj in await world.client.list(NEW)]
    assert {obj["apiVersion"] for obj in world.stored()} == {NEW.api_version}
    assert await world.stored_versions() == ["v1beta2"]
    for one, other in zip(before, after, strict=True):
        assert int(other["metadata"].pop("resourceVersion")) > int(one["metadata"].pop("resourceVersion"))
        assert other == one


async def test_finished_work_is_recorded_and_not_repeated(world: World) -> None:
    await world.migrator.reconcile(NAME)
    crd = await world.client.get(CustomResourceDefinitionMeta, NAME)
    assert crd.metadata.annotations[CRD_MIGRATION_OBSERVED_GENERATION_ANNOTATION] == str(crd.metadata.generation)
    assert not is_due(None, crd)
    before = world.server.store.revision
    await world.migrator.reconcile(NAME)
    assert world.server.store.revision == before
    await world.client.patch(CRD, NAME, {"spec": {"names": {"shortNames": ["mhc", "mhcs", "check"]}}})
    assert is_due(crd, await world.client.get(CustomResourceDefinitionMeta, NAME))


async def test_owners_of_a_version_that_is_no_longer_served_are_forgotten(world: World) -> None:
    await world.client.patch(NEW, ObjectKey("default", "m0"), {"metadata": {"labels": {"x": "y"}}}, field_manager="new")
    await world.migrator.reconcile(NAME)
    await world.client.patch(CRD, NAME, {"spec": definition("v1beta2", served=("v1beta2",))["spec"]})
    await world.migrator.reconcile(NAME)
    owners = {obj.metadata.name: obj.at("metadata", "managedFields") for obj in await world.client.list(NEW)}
    assert [entry["manager"] for entry in owners["m0"]] == ["new"]
    assert [(entry["manager"], entry["apiVersion"], entry["fieldsV1"]) for entry in owners["m1"]] == [
        ("old", NEW.api_version, {"f:metadata": {"f:name": {}}})
    ]


async def test_a_failure_leaves_the_definition_unchanged_and_is_retried_later(world: World) -> None:
    refused = {"m1"}

    class Refusing(RestClient):
        async def patch(self, kind: Any, key: ObjectKey, patch: Any, **options: Any) -> Any:
            if key.name in refused:
                raise Forbidden("no")
            return await super().patch(kind, key, patch, **options)

    migrator = make(tools(Refusing(InProcessTransport(world.server))))
    with pytest.raises(PassFailed, match="no"):
        await migrator.reconcile(NAME)
    assert await world.stored_versions() == ["v1beta1", "v1beta2"]
    rewritten = next(obj["metadata"]["resourceVersion"] for obj in world.stored() if obj["metadata"]["name"] == "m0")
    refused.clear()
    await migrator.reconcile(NAME)
    assert await world.stored_versions() == ["v1beta2"]
    assert rewritten == next(obj["metadata"]["resourceVersion"] for obj in world.stored() if obj["metadata"]["name"] == "m0")


@pytest.mark.parametrize("skipped", PHASES)
async def test_phases_can_be_skipped(skipped: Any, world: World) -> None:
    await make(tools(world.client), [skipped]).reconcile(NAME)
    migrated = {obj["apiVersion"] for obj in world.stored()} == {NEW.api_version}
    assert migrated is (skipped != "StorageVersionMigration")


async def test_definitions_of_others_are_left_alone(world: World) -> None:
    theirs: Any = {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}}
    schema = {"openAPIV3Schema": {"type": "object"}}
    theirs["versions"] = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    name = "things.example.com"
    await world.client.create({"apiVersion": CRD.api_version, "kind": CRD.kind, "metadata": {"name": name}, "spec": theirs})
    before = world.server.store.revision
    await world.migrator.reconcile(ObjectKey("", name))
    await world.migrator.reconcile(ObjectKey("", "nothing.example.com"))
    assert world.server.store.revision == before
