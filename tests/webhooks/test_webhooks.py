"""Our webhooks, asked over HTTPS as an API server asks them, and the embedded API server told of them."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from clusterwright.admission.registry import HOOKS
from clusterwright.api.crds import crds
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.apiserver.patchtypes.jsonpatch import json_patch
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.tls import KeyPair, make_authority, sign
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.rest import RestClient
from clusterwright.streams.tls import use_certificate
from clusterwright.webhooks import certificates, reviews
from clusterwright.webhooks.configurations import Target, configurations, contains
from clusterwright.webhooks.running import WebhookOptions, serving
from clusterwright.webhooks.server import WebhookServer

CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
VALIDATING = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def running(**more: Any) -> AsyncIterator[tuple[RestClient, WebhookServer]]:
    api = ApiServer(now=SystemClock().now, random=Random(1))
    client = RestClient(InProcessTransport(api))
    options = WebhookOptions(host="127.0.0.1", port=0, url="https://127.0.0.1:0", **more)
    async with serving(client, SystemClock(), options, DEFAULT_FEATURES) as webhooks:
        yield client, webhooks.server


async def bundle_of(client: RestClient) -> bytes:
    found = await client.get(VALIDATING, ObjectKey("", "clusterwright"))
    return base64.b64decode(found.json["webhooks"][0]["clientConfig"]["caBundle"])


async def ask(port: int, path: str, body: Any, authority: bytes) -> tuple[int, Any]:
    context = ssl.create_default_context(cadata=authority.decode())
    async with aiohttp.ClientSession() as session, session.post(f"https://127.0.0.1:{port}{path}", json=body, ssl=context) as response:
        return response.status, await response.json() if response.content_type == "application/json" else await response.text()


def admission(**request: Any) -> dict[str, Any]:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1", **request}}


MACHINE_KIND = {"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": "Machine"}


def machine(**spec: Any) -> dict[str, Any]:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default"},
        "spec": {"clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": reference, **spec},
    }


async def test_our_webhooks_are_registered_and_trusted() -> None:
    async with running() as (client, server):
        bundle = await bundle_of(client)
        status, answer = await ask(
            server.port, "/validate/cluster.x-k8s.io/Machine", admission(kind=MACHINE_KIND, operation="CREATE", object=machine()), bundle
        )
        crd = await client.get(CRD, ObjectKey("", "clusters.cluster.x-k8s.io"))
        url = f"https://127.0.0.1:{server.port}/convert"
    assert (status, answer["response"]) == (200, {"uid": "u1", "allowed": True})
    conversion = crd.json["spec"]["conversion"]
    assert conversion["strategy"] == "Webhook"
    assert conversion["webhook"]["clientConfig"]["url"] == url
    assert base64.b64decode(conversion["webhook"]["clientConfig"]["caBundle"]) == bundle


async def test_definitions_with_another_converter_are_taken_over() -> None:
    api = ApiServer(now=SystemClock().now, random=Random(1))
    client = RestClient(InProcessTransport(api))
    theirs = next(crd for crd in crds() if crd["metadata"]["name"] == "clusters.cluster.x-k8s.io")
    theirs["spec"]["conversion"]["webhook"]["clientConfig"] = {
        "service": {"namespace": "capi-system", "name": "capi-webhook-service", "path": "/convert"},
        "caBundle": base64.b64encode(make_authority(SystemClock().now()).certificate).decode(),
    }
    await client.create(theirs)
    options = WebhookOptions(host="127.0.0.1", port=0, url="https://127.0.0.1:0")
    async with serving(client, SystemClock(), options, DEFAULT_FEATURES):
        crd = await client.get(CRD, ObjectKey("", "clusters.cluster.x-k8s.io"))
        bundle = await bundle_of(client)
    found = crd.at("spec", "conversion", "webhook", "clientConfig")
    assert set(found) == {"url", "caBundle"}
    assert base64.b64decode(found["caBundle"]) == bundle


async def test_a_write_is_defaulted_by_a_patch() -> None:
    async with running() as (client, server):
        body = admission(kind=MACHINE_KIND, operation="CREATE", namespace="default", name="m", object=machine(version="1.30.0"))
        _, answer = await ask(server.port, "/mutate/cluster.x-k8s.io/Machine", body, await bundle_of(client))
    patch = base64.b64decode(answer["response"]["patch"])
    patched = json_patch(machine(version="1.30.0"), json.loads(patch))
    assert answer["response"]["patchType"] == "JSONPatch"
    assert patched["spec"]["version"] == "v1.30.0"


async def test_a_refusal_names_the_field_and_leaves_the_prefix_to_the_api_server() -> None:
    async with running() as (client, server):
        body = admission(kind=MACHINE_KIND, operation="CREATE", namespace="default", name="m", object=machine(version="latest"))
        _, answer = await ask(server.port, "/validate/cluster.x-k8s.io/Machine", body, await bundle_of(client))
    status = answer["response"]["status"]
    assert answer["response"]["allowed"] is False
    assert "denied the request" not in status["message"]
    assert status["code"] == 422
    assert [cause["field"] for cause in status["details"]["causes"]] == [
        "spec.version"
    ] * 2  # it lacks the v, and is not a semantic version


def review(to: str, *objects: Any) -> dict[str, Any]:
    request = {"uid": "u2", "desiredAPIVersion": to, "objects": list(objects)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def test_objects_are_converted_with_the_versions_of_the_server_s_definitions() -> None:
    async with running() as (client, server):
        _, down = await ask(server.port, "/convert", review("cluster.x-k8s.io/v1beta1", machine(), machine()), await bundle_of(client))
        objects = down["response"]["convertedObjects"]
        _, up = await ask(server.port, "/convert", review("cluster.x-k8s.io/v1beta2", *objects), await bundle_of(client))
    assert down["response"]["result"] == {"status": "Success"}
    assert [obj["spec"]["infrastructureRef"]["apiVersion"] for obj in objects] == ["infrastructure.cluster.x-k8s.io/v1beta2"] * 2
    assert up["response"]["convertedObjects"] == [machine(), machine()]


async def test_one_object_that_cannot_be_converted_fails_the_review() -> None:
    unknown = machine(infrastructureRef={"apiGroup": "nowhere.io", "kind": "Thing", "name": "m"})
    async with running() as (client, server):
        _, answer = await ask(server.port, "/convert", review("cluster.x-k8s.io/v1beta1", machine(), unknown), await bundle_of(client))
    assert "convertedObjects" not in answer["response"]
    assert answer["response"]["result"]["status"] == "Failure"
    assert "things.nowhere.io" in answer["response"]["result"]["message"]


BODIES: list[Any] = [[], {}, {"apiVersion": "v1"}, review("x") | {"request": None}, review("x") | {"request": {}}]


async def test_a_body_that_is_not_a_review_is_refused() -> None:
    paths = ("/convert", "/validate/cluster.x-k8s.io/Machine", "/mutate/cluster.x-k8s.io/Machine")
    async with running() as (client, server):
        bundle = await bundle_of(client)
        answers = {(await ask(server.port, path, body, bundle))[0] for path in paths for body in BODIES}
        nowhere, _ = await ask(server.port, "/validate/nowhere.io/Thing", {}, bundle)
    assert answers == {400}
    assert nowhere == 404


async def test_a_configuration_that_was_changed_is_put_right() -> None:
    async with running(interval=0.01) as (client, _):
        bundle = await bundle_of(client)
        key = ObjectKey("", "clusterwright")
        await client.patch(VALIDATING, key, [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "YQ=="}], type="json")
        while await bundle_of(client) != bundle:
            await SystemClock().sleep(0.01)


async def test_a_mounted_certificate_is_used_and_followed(tmp_path: Path) -> None:
    async def connect(port: int, authority: bytes) -> bool:
        try:
            await ask(port, "/convert", {}, authority)
        except aiohttp.ClientConnectorCertificateError:
            return False
        return True

    def mount() -> bytes:
        authority = make_authority(SystemClock().now())
        serving_pair = sign(authority, SystemClock().now(), "x", hosts=["127.0.0.1"])
        (tmp_path / "tls.key").write_bytes(serving_pair.key)
        (tmp_path / "tls.crt").write_bytes(serving_pair.certificate)
        (tmp_path / "ca.crt").write_bytes(authority.certificate)
        return authority.certificate

    first = mount()
    async with running(certificates=tmp_path, interval=0.01) as (client, server):
        assert await connect(server.port, first)
        second = mount()
        while await bundle_of(client) != second or not await connect(server.port, second):
            await SystemClock().sleep(0.01)
        assert not await connect(server.port, first)


async def test_replicas_share_one_certificate() -> None:
    api = ApiServer(now=SystemClock().now, random=Random(1))
    clients = [RestClient(InProcessTransport(api)) for _ in range(2)]
    key = ObjectKey("ours", "webhooks")
    one, other = [await certificates.Made(client, key, ["a.svc"], SystemClock().now).current() for client in clients]
    assert one == other
    assert (await clients[0].get(Secret, key)).type == "kubernetes.io/tls"


def test_certificates_are_renewed_in_time_and_authorities_overlap() -> None:
    first = certificates.renew({}, ["a.svc"], NOW)
    assert certificates.renew(first, ["a.svc"], NOW + timedelta(days=59)) == first
    second = certificates.renew(first, ["a.svc"], NOW + timedelta(days=61))
    assert (second["tls.crt"] != first["tls.crt"], second["ca.crt"]) == (True, first["ca.crt"])
    assert certificates.renew(first, ["b.svc"], NOW)["tls.crt"] != first["tls.crt"]
    third = certificates.renew(second, ["a.svc"], NOW + timedelta(days=2500))
    assert third["ca.crt"].count(b"BEGIN") == 2
    assert third["ca.crt"].endswith(second["ca.crt"])
    assert (
        certificates.renew({"ca.crt": b"x", "ca.key": b"y", "tls.crt": b"z", "tls.key": b""}, ["a.svc"], NOW)["ca.crt"].count(b"BEGIN") == 1
    )


def test_every_hook_has_a_webhook_of_its_own_name() -> None:
    mutating, validating = configurations(Target(), b"ca")
    for configuration in (mutating, validating):
        names = [webhook["name"] for webhook in configuration["webhooks"]]
        assert len(set(names)) == len(names)
        assert all(webhook["clientConfig"]["service"]["name"] == "clusterwright-webhooks" for webhook in configuration["webhooks"])
    assert len(validating["webhooks"]) == len(HOOKS)
    assert Target().hosts == (
        "clusterwright-webhooks.clusterwright-system.svc",
        "clusterwright-webhooks.clusterwright-system.svc.cluster.local",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [({"a": 1}, {"a": 2, "b/c": 3}), ({"a": {"~x": 1}, "b": 1}, {"a": {}}), ({"a": [1, 2]}, {"a": [2]}), ({"a": 1}, {"a": True}), ({}, {})],
)
def test_a_difference_is_a_patch(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert json_patch(dict(before), reviews.difference(before, after)) == after


def test_additions_of_a_server_are_not_a_difference() -> None:
    assert contains({"a": [{"b": 1, "c": 2}], "d": 1}, {"a": [{"b": 1}]})
    assert not contains({"a": [{"b": 1}, {}]}, {"a": [{"b": 1}]})
    assert not contains({"a": 1}, {"a": 2})


@pytest.mark.parametrize("part", [{"kind": 5}, {"object": []}, {"oldObject": "x"}])
def test_a_review_without_an_object_is_refused(part: dict[str, Any]) -> None:
    review = {"apiVersion": reviews.ADMISSION, "kind": "AdmissionReview", "request": {"uid": "u", **part}}

    with pytest.raises(reviews.BadReview, match="is not an object"):
        reviews.read(json.dumps(review).encode(), reviews.ADMISSION, "AdmissionReview")


def without_names() -> dict[str, bytes]:
    good = certificates.renew({}, ["a.svc"], NOW)
    serving = sign(KeyPair(good["ca.crt"], good["ca.key"]), NOW, "nameless", hosts=[])
    return {"tls.crt": serving.certificate, "tls.key": serving.key}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: {"ca.key": b""},
        lambda good: {"ca.key": b"x"},
        lambda good: {"ca.key": good["tls.key"]},
        lambda good: {"tls.key": b""},
        lambda good: {"tls.key": good["ca.key"]},
        lambda good: without_names(),
    ],
)
def test_a_damaged_secret_is_repaired(spoil: Callable[[dict[str, bytes]], dict[str, bytes]]) -> None:
    """Without that no server could listen with it, and no replica ever start again."""
    good = certificates.renew({}, ["a.svc"], NOW)

    mended = certificates.renew({**good, **spoil(good)}, ["a.svc"], NOW)

    assert certificates.renew(mended, ["a.svc"], NOW) == mended
    use_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), mended["tls.crt"], mended["tls.key"])


async def test_running_webhooks_repair_a_damaged_secret() -> None:
    async with running(interval=0.02) as (client, server):
        del server
        (found,) = [s for s in await client.list(Secret) if "ca.key" in s.data]
        await client.update(Secret(metadata=found.metadata, type=found.type, data={**found.data, "ca.key": b"", "tls.key": b"x"}))

        while not (now := await client.get(Secret, found.key)).data["ca.key"]:
            await SystemClock().sleep(0.01)

    assert now.data["tls.key"].startswith(b"-----BEGIN")
