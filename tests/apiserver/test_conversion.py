"""Kinds whose versions differ: converted by a webhook over real TLS, or by a function of this process."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
import pytest_asyncio

from apiserver.apiserver_testing import CRDS, Api, Hook, make_server
from clusterwright.apiserver.admission.webhooks import Webhooks
from clusterwright.apiserver.conversion import ConversionFailed, InProcess
from clusterwright.apiserver.serving.inprocess import InProcessTransport

OLD, NEW = "example.com/v1beta1", "example.com/v1"
OLD_BOXES = f"/apis/{OLD}/namespaces/default/boxes"
NEW_BOXES = f"/apis/{NEW}/namespaces/default/boxes"


def version(name: str, **spec: Any) -> dict[str, Any]:
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": status}}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.length"}] if "length" in spec else [],
    }


def crd(client: dict[str, Any] | None = None) -> dict[str, Any]:
    """v1beta1 has one text (`10cm`) where v1, in which objects are stored, has a number and a unit."""
    versions = [
        version("v1", size={"type": "integer"}, unit={"type": "string", "default": "cm"}),
        version("v1beta1", length={"type": "string"}),
    ]
    hook = {"clientConfig": client or {"url": "https://127.0.0.1:1/nobody"}, "conversionReviewVersions": ["v2", "v1", "v1beta1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Box", "plural": "boxes"},
            "scope": "Namespaced",
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": hook},
        },
    }


def convert(obj: dict[str, Any], to: str) -> dict[str, Any]:
    made = copy.deepcopy(obj)
    made["apiVersion"] = to
    spec = made.get("spec") or {}
    if to == NEW and "length" in spec:
        text = spec.pop("length")
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        if not digits:
            raise ConversionFailed(f"{text} is no length")
        spec |= {"size": int(digits), "unit": text[len(digits) :]}
    elif to == OLD and "size" in spec:
        spec["length"] = f"{spec.pop('size')}{spec.pop('unit', '')}"
    made["spec"] = spec
    return made


def answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        made = [convert(o, request["desiredAPIVersion"]) for o in request["objects"]]
    except ConversionFailed as e:
        return {"result": {"status": "Failure", "message": str(e)}}
    return {"result": {"status": "Success"}, "convertedObjects": made}


@pytest_asyncio.fixture(params=["webhook", "in process"])
async def api(request: pytest.FixtureRequest, hook: Hook) -> Any:
    ours = InProcess(convert) if request.param == "in process" else None
    server = make_server(converters=lambda _, group, kind: ours if (group, kind) == ("example.com", "Box") else None)
    hook.respond = answer
    server.ensure([crd({"url": hook.url, "caBundle": hook.bundle})])
    server.admission.append(Webhooks(server))
    yield Api.of(server)
    server.close()
    await server.callouts.close()


@pytest_asyncio.fixture
async def asking(hook: Hook) -> Any:
    """A server that has nobody but the webhook."""
    server = make_server()
    hook.respond = answer
    server.ensure([crd({"url": hook.url, "caBundle": hook.bundle})])
    yield Api.of(server)
    server.close()
    await server.callouts.close()


def old_box(name: str, length: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": OLD, "kind": "Box", "metadata": {"name": name, **meta}, "spec": {"length": length}}


def new_box(name: str, size: int, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": NEW, "kind": "Box", "metadata": {"name": name}, "spec": {"size": size, **spec}}


async def test_an_object_is_stored_in_one_version_and_read_in_all(api: Api):
    made = await api.post(OLD_BOXES, old_box("b", "10mm"))
    assert (made.status, made["apiVersion"], made["spec"]) == (201, OLD, {"length": "10mm"})

    assert (await api.get(f"{NEW_BOXES}/b"))["spec"] == {"size": 10, "unit": "mm"}
    assert (await api.get(f"{OLD_BOXES}/b"))["spec"] == {"length": "10mm"}
    again = await api.put(f"{OLD_BOXES}/b", {**made.json, "spec": {"length": "12mm"}})
    assert (again.status, again["spec"], again["metadata"]["generation"]) == (200, {"length": "12mm"}, 2)
    assert (await api.get(f"{NEW_BOXES}/b"))["spec"] == {"size": 12, "unit": "mm"}


async def test_every_verb_speaks_the_version_that_is_asked_for(api: Api):
    await api.post(NEW_BOXES, new_box("b", 5))

    patched = await api.merge(f"{OLD_BOXES}/b", {"spec": {"length": "6in"}})
    assert (patched.status, patched["spec"]) == (200, {"length": "6in"})
    status = await api.merge(f"{OLD_BOXES}/b/status", {"status": {"phase": "Up"}})
    assert (status.status, status["spec"], status["status"]) == (200, {"length": "6in"}, {"phase": "Up"})
    applied = await api.apply(f"{OLD_BOXES}/b", old_box("b", "7in"), "me", force="true")
    assert (applied.status, applied["spec"]) == (200, {"length": "7in"})
    listed = await api.get(OLD_BOXES)
    assert [(i["apiVersion"], i["spec"]) for i in listed["items"]] == [(OLD, {"length": "7in"})]
    selected = await api.get(OLD_BOXES, fieldSelector="spec.length=7in")
    assert selected.names == ["b"]
    assert (await api.get(OLD_BOXES, fieldSelector="spec.length=8in")).names == []
    table = await api.do("GET", OLD_BOXES, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert [row["cells"][0] for row in table["rows"]] == ["b"]
    held = await api.merge(f"{OLD_BOXES}/b", {"metadata": {"finalizers": ["example.com/hold"]}})
    assert held.status == 200
    gone = await api.delete(f"{OLD_BOXES}/b")
    assert (gone.status, gone["spec"], gone["apiVersion"]) == (200, {"length": "7in"}, OLD)
    released = await api.merge(f"{OLD_BOXES}/b", {"metadata": {"finalizers": None}})
    assert released.status == 200
    assert (await api.get(f"{NEW_BOXES}/b")).status == 404


async def test_a_watch_shows_the_version_that_is_asked_for_in_order(api: Api):
    await api.post(NEW_BOXES, new_box("first", 1))
    watch = await api.watch(OLD_BOXES, allowWatchBookmarks="true", sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    for size in range(2, 12):
        await api.post(NEW_BOXES, new_box(f"b{size}", size))
    await api.delete(f"{NEW_BOXES}/b11")

    events = [await asyncio.wait_for(watch.next(), 30) for _ in range(13)]

    shown = [(kind, obj["metadata"].get("name"), obj.get("spec", {}).get("length")) for kind, obj in events]
    assert shown[:2] == [("ADDED", "first", "1cm"), ("BOOKMARK", None, None)]
    assert shown[2:12] == [("ADDED", f"b{size}", f"{size}cm") for size in range(2, 12)]
    assert shown[12] == ("DELETED", "b11", "11cm")
    assert {obj["apiVersion"] for _, obj in events} == {OLD}
    await watch.close()


async def test_a_watch_resumes_in_another_version(api: Api):
    made = await api.post(NEW_BOXES, new_box("a", 1))
    await api.post(NEW_BOXES, new_box("b", 2))
    watch = await api.watch(OLD_BOXES, resourceVersion=made.rv, fieldSelector="spec.length=2cm")
    await api.merge(f"{NEW_BOXES}/b", {"spec": {"size": 3}})

    assert (await asyncio.wait_for(watch.next(), 30))[0] == "ADDED"
    kind, obj = await asyncio.wait_for(watch.next(), 30)
    assert (kind, obj["spec"]) == ("DELETED", {"length": "2cm"})
    await watch.close()


async def test_no_rendering_for_a_watch_is_kept_in_the_history(api: Api):
    watches = [await api.watch(version, allowWatchBookmarks="true") for version in (OLD_BOXES, NEW_BOXES, OLD_BOXES)]
    made = [await api.post(NEW_BOXES, new_box(f"b{size}", size)) for size in range(5)]
    watches.append(await api.watch(OLD_BOXES, resourceVersion=made[0].rv))
    for watch, count in zip(watches, (5, 5, 5, 4), strict=True):
        for _ in range(count):
            assert (await asyncio.wait_for(watch.next(), 30))[0] == "ADDED"
        await watch.close()

    assert isinstance(api.transport, InProcessTransport)
    assert [event.lines for event in api.transport.server.store.table("boxes.example.com").history] == [None] * 5


async def test_owners_of_fields_are_kept_in_the_version_they_wrote(api: Api):
    assert (await api.apply(f"{OLD_BOXES}/b", old_box("b", "1cm"), "old")).status == 201
    refused = await api.apply(f"{NEW_BOXES}/b", new_box("b", 2), "new")
    assert refused.status == 409
    taken = await api.apply(f"{NEW_BOXES}/b", new_box("b", 2), "new", force="true")
    assert taken.status == 200

    owners = {e["manager"]: (e["apiVersion"], e["fieldsV1"]) for e in taken["metadata"]["managedFields"]}

    assert owners["new"] == (NEW, {"f:spec": {"f:size": {}}})
    assert "old" not in owners  # its length is not what it was


async def test_fields_missing_in_the_versions_schema_are_pruned(api: Api):
    made = await api.post(OLD_BOXES, {**old_box("b", "1cm"), "spec": {"length": "1cm", "size": 4}}, fieldValidation="Warn")

    assert made["spec"] == {"length": "1cm"}
    assert made.warnings == ('unknown field "spec.size"',)


async def test_a_failed_conversion_is_reported_and_nothing_is_stored(api: Api):
    refused = await api.post(OLD_BOXES, old_box("b", "long"))

    assert refused.status == 500
    assert "long is no length" in refused["message"]
    assert (await api.get(f"{NEW_BOXES}/b")).status == 404


async def test_an_equivalent_webhook_is_asked_in_the_version_that_it_knows(api: Api, hook: Hook):
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["boxes"]}
    conversion = hook.respond

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        return conversion(request) if "desiredAPIVersion" in request else refuse(request)

    def refuse(request: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": request["object"]["spec"]["size"] < 100, "status": {"message": "too large"}}

    hook.respond = respond
    webhook = {
        "name": "boxes.example.com",
        "clientConfig": {"url": hook.url, "caBundle": hook.bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    base = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "boxes"}}
    assert (await api.post(path, {**base, "webhooks": [webhook]})).status == 201

    refused = await api.post(OLD_BOXES, old_box("b", "100cm"))

    assert refused.status == 400
    assert refused["message"] == 'admission webhook "boxes.example.com" denied the request: too large'
    assert (await api.post(OLD_BOXES, old_box("b", "99cm"))).status == 201
    asked = [r for r in hook.reviews if "operation" in r]
    assert (asked[-1]["kind"]["version"], asked[-1]["requestKind"]["version"]) == ("v1", "v1beta1")
    assert (asked[-1]["resource"]["version"], asked[-1]["requestResource"]["version"]) == ("v1", "v1beta1")
    exact = {**webhook, "matchPolicy": "Exact"}
    await api.merge(f"{path}/boxes", {"webhooks": [exact]})
    assert (await api.post(OLD_BOXES, old_box("c", "100cm"))).status == 201


async def test_changes_of_an_equivalent_webhook_are_converted_back(api: Api, hook: Hook):
    conversion = hook.respond
    patch = [{"op": "replace", "path": "/spec/size", "value": 77}]

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        import base64

        if "desiredAPIVersion" in request:
            return conversion(request)
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}

    hook.respond = respond
    webhook = {
        "name": "boxes.example.com",
        "clientConfig": {"url": hook.url, "caBundle": hook.bundle},
        "rules": [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["boxes"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    base = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "boxes"}}
    assert (await api.post(path, {**base, "webhooks": [webhook]})).status == 201

    assert (await api.post(OLD_BOXES, old_box("b", "1mm")))["spec"] == {"length": "77mm"}


async def test_each_object_is_sent_once_over_one_connection(asking: Api, hook: Hook):
    for size in range(5):
        await asking.post(NEW_BOXES, new_box(f"b{size}", size))
    assert hook.reviews == []  # nothing but the storage version was asked for

    await asyncio.gather(*(asking.get(OLD_BOXES) for _ in range(4)))
    await asking.get(f"{OLD_BOXES}/b1")

    assert [len(r["objects"]) for r in hook.reviews] == [5]
    assert len(hook.connections) == 1
    assert hook.reviews[0]["desiredAPIVersion"] == OLD


@pytest.mark.parametrize(
    ("respond", "said"),
    [
        (lambda r: {"result": {"status": "Success"}, "convertedObjects": []}, "returned 0 objects, expected 1"),
        (lambda r: {"result": {"status": "Failure"}}, "response.result.status was 'Failure', not 'Success'"),
        (lambda r: {**answer(r), "uid": "another"}, "failed: expected response.uid="),
        (
            lambda r: {"result": {"status": "Success"}, "convertedObjects": r["objects"]},
            f"invalid groupVersion (expected {OLD}, received {NEW})",
        ),
        (
            lambda r: {"result": {"status": "Success"}, "convertedObjects": [{**answer(r)["convertedObjects"][0], "kind": "Ball"}]},
            "invalid kind (expected Box, received Ball)",
        ),
        (
            lambda r: {"result": {"status": "Success"}, "convertedObjects": [_named(answer(r)["convertedObjects"][0], name="x")]},
            "must have the same name: b != x",
        ),
        (
            lambda r: {"result": {"status": "Success"}, "convertedObjects": [_named(answer(r)["convertedObjects"][0], labels={"a": "!"})]},
            'metadata.labels: Invalid value: "!"',
        ),
    ],
)
async def test_an_answer_that_is_wrong_is_refused(asking: Api, hook: Hook, respond: Any, said: str):
    await asking.post(NEW_BOXES, new_box("b", 1))
    hook.respond = respond

    refused = await asking.get(f"{OLD_BOXES}/b")

    assert refused.status == 500
    assert refused["message"].startswith("conversion webhook for example.com/v1, Kind=Box ")
    assert said in refused["message"]
    hook.respond = answer
    assert (await asking.get(f"{OLD_BOXES}/b")).status == 200


def _named(obj: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **meta}}


async def test_metadata_but_labels_and_annotations_is_not_the_webhooks_to_change(asking: Api, hook: Hook):
    made = await asking.post(NEW_BOXES, new_box("b", 1))
    extra = {"annotations": {"seen": "yes"}, "finalizers": ["none"], "resourceVersion": "7"}
    hook.respond = lambda r: {"result": {"status": "Success"}, "convertedObjects": [_named(answer(r)["convertedObjects"][0], **extra)]}

    shown = await asking.get(f"{OLD_BOXES}/b")

    assert shown["metadata"]["annotations"] == {"seen": "yes"}
    assert "finalizers" not in shown["metadata"]
    assert shown.rv == made.rv


async def test_a_webhook_without_an_answer_fails_clearly(asking: Api):
    changed = await asking.merge(f"{CRDS}/boxes.example.com", {"spec": crd()["spec"]})
    assert changed.status == 200, changed
    await asking.post(NEW_BOXES, new_box("b", 1))

    refused = await asking.get(OLD_BOXES)

    assert refused.status == 500
    assert refused["message"] == (
        'conversion webhook for example.com/v1, Kind=Box failed: Post "https://127.0.0.1:1/nobody": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )
    assert (await asking.get(NEW_BOXES)).status == 200
    watch = await asking.get(OLD_BOXES, watch="true")
    assert (watch.status, watch["reason"]) == (429, "TooManyRequests")
    assert watch["message"].startswith("storage is (re)initializing: failed to list example.com/v1beta1, Kind=Box: conversion webhook")


async def test_a_changed_webhook_is_called_again(asking: Api, hook: Hook):
    await asking.post(NEW_BOXES, new_box("b", 1))
    await asking.get(f"{OLD_BOXES}/b")
    spec = crd({"url": hook.url + "/other", "caBundle": hook.bundle})["spec"]
    assert (await asking.merge(f"{CRDS}/boxes.example.com", {"spec": spec})).status == 200

    await asking.get(f"{OLD_BOXES}/b")

    assert len(hook.reviews) == 2


async def test_a_changed_definition_ends_watches_which_begin_again_under_it(asking: Api):
    await asking.post(NEW_BOXES, new_box("b", 1))
    definition = f"{CRDS}/boxes.example.com"
    spec = (await asking.get(definition))["spec"]
    spec["versions"][0]["storage"], spec["versions"][1]["storage"] = False, True
    watch = await asking.watch(NEW_BOXES)
    assert (await asyncio.wait_for(watch.next(), 30))[0] == "ADDED"

    assert (await asking.merge(definition, {"spec": spec})).status == 200

    assert await watch.ended()
    again = await asking.watch(NEW_BOXES)
    await asking.post(OLD_BOXES, old_box("c", "3mm"))
    events = [await asyncio.wait_for(again.next(), 30) for _ in range(2)]
    assert [(obj["apiVersion"], obj["spec"]["size"]) for _, obj in events] == [(NEW, 1), (NEW, 3)]
    await again.close()


async def test_owners_that_have_written_in_several_versions_give_up_what_they_no_longer_apply(api: Api):
    first = {**old_box("b", "1cm"), "metadata": {"name": "b", "labels": {"a": "b"}}}
    assert (await api.apply(f"{OLD_BOXES}/b", first, "me")).status == 201
    await api.merge(f"{NEW_BOXES}/b", {"metadata": {"annotations": {"other": "yes"}}}, fieldManager="other")
    second = {"apiVersion": NEW, "kind": "Box", "metadata": {"name": "b"}, "spec": {}}

    answer = await api.apply(f"{NEW_BOXES}/b", second, "me")

    assert (answer.status, "labels" in answer["metadata"]) == (200, False), answer
    assert answer["metadata"]["annotations"] == {"other": "yes"}
