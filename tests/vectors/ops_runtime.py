"""Vectors of the runtime client, translated to calls of `clusterwright.runtimesdk`."""

from __future__ import annotations

import asyncio
from typing import Any

from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtimesdk import openapi
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError, ListHandlers

NOW = "2026-05-01T12:00:00Z"


def world(inputs: dict[str, Any]) -> World:
    known: dict[str, Any] = {k: inputs[k] for k in ("runtimeExtensions", "runtimeRegistry") if k in inputs}
    observation: dict[str, Any] = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "now": NOW, **known}
    bundle = assemble([*inputs["objects"], observation])
    assert bundle.observation.now
    return World(bundle, bundle.observation.now, sample_keys())


def calls(made: World) -> list[dict[str, Any]]:
    return [{"url": c["url"], "settings": c["body"].get("settings", {})} for c in made.canned.calls]


async def _called(client: RuntimeClient, inputs: dict[str, Any]) -> dict[str, Any]:
    given = inputs.get("request") or {}
    request = {k: v for k, v in given.items() if k != "settings"}
    settings = given.get("settings") or {}
    if "handler" in inputs:
        return await client.call(CallHandler(inputs["hook"], inputs["handler"], inputs["for"], request, settings=settings))
    return await client.call_all(CallAll(inputs["hook"], inputs["for"], request))


RETRY = ("Before", "AfterControlPlaneUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade", "UpdateMachine")


def call(inputs: dict[str, Any]) -> dict[str, Any]:
    made = world(inputs)
    try:
        response = asyncio.run(_called(made.extensions, inputs))
    except ExtensionError:
        return {"error": True, "calls": calls(made)}
    shown = {k: v for k, v in response.items() if v not in (None, "", [], {}, 0)}
    if inputs["hook"].startswith(RETRY):
        shown["retryAfterSeconds"] = response.get("retryAfterSeconds", 0)
    return {"calls": calls(made), "response": shown}


def listed(inputs: dict[str, Any]) -> dict[str, Any]:
    made = world(inputs)
    try:
        names = asyncio.run(made.extensions.handlers(ListHandlers(inputs["hook"], inputs["for"])))
    except ExtensionError:
        return {"error": True, "calls": calls(made)}
    return {"calls": calls(made), "handlers": list(names)}


def described(inputs: dict[str, Any]) -> dict[str, Any]:
    made = openapi.document()
    schemas = made["components"]["schemas"]
    return {
        "openapi": made["openapi"],
        "paths": {path: _operation(item["post"]) for path, item in made["paths"].items()},
        "components": sorted(schemas),
        "schemas": {name: _bare(schema) for name, schema in schemas.items() if name.startswith(openapi.HOOKS_PACKAGE)},
    }


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    def name(content: dict[str, Any]) -> str:
        return str(content["content"]["application/json"]["schema"]["$ref"]).rpartition("/")[2]

    return {
        "operationId": operation["operationId"],
        "tags": operation["tags"],
        "parameters": [p["name"] for p in operation.get("parameters", ())],
        "request": name(operation["requestBody"]),
        "responses": {code: name(response) for code, response in operation["responses"].items()},
    }


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _bare(v) for k, v in schema.items() if k not in {"description", "default"}}
    return [_bare(v) for v in schema] if isinstance(schema, list) else schema


OPERATIONS = {"runtime-call": call, "runtime-list": listed, "runtime-openapi": described}
