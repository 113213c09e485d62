"""Admission webhooks declared by objects, asked over real TLS."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.apiserver_testing import WIDGETS, Api, Hook, make_server, widget, widget_crds
from clusterwright.apiserver.admission.webhooks import Webhooks
from clusterwright.apiserver.serving.tls import KeyPair, make_authority

GROUP = "/apis/admissionregistration.k8s.io/v1"


@pytest_asyncio.fixture
async def api() -> Any:
    server = make_server()
    server.ensure(widget_crds())
    server.admission.append(Webhooks(server))
    yield Api.of(server)
    await server.callouts.close()


def configuration(hook: Hook, kind: str, **options: Any) -> dict[str, Any]:
    rule = {
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "apiGroups": ["widgets.example.com"],
        "apiVersions": ["v1"],
        "resources": ["widgets"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "h"},
        "webhooks": [
            {
                "name": "widgets.hook.example.com",
                "clientConfig": {"url": hook.url, "caBundle": hook.bundle},
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                **options,
            }
        ],
    }


async def install(api: Api, hook: Hook, kind: str = "ValidatingWebhookConfiguration", **options: Any) -> None:
    made = await api.post(f"{GROUP}/{kind.lower()}s", configuration(hook, kind, **options))
    assert made.status == 201, made


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


async def test_a_mutating_webhook_changes_what_is_stored(api: Api, hook: Hook):
    hook.respond = lambda request: patch({"op": "add", "path": "/spec/title", "value": "from " + request["userInfo"]["username"]})
    await install(api, hook, "MutatingWebhookConfiguration")

    made = await api.post(WIDGETS, widget("w"))

    assert made["spec"]["title"] == "from kubernetes-admin"
    assert (await api.get(f"{WIDGETS}/w"))["spec"]["title"] == "from kubernetes-admin"
    review = hook.reviews[0]
    assert (review["operation"], review["kind"]["kind"], review["resource"]["resource"], review["oldObject"]) == (
        "CREATE",
        "Widget",
        "widgets",
        None,
    )


async def test_the_result_of_a_webhook_is_validated(api: Api, hook: Hook):
    hook.respond = lambda request: patch({"op": "replace", "path": "/spec/color", "value": "pink"})
    await install(api, hook, "MutatingWebhookConfiguration")

    refused = await api.post(WIDGETS, widget("w"))

    assert refused.status == 422
    assert refused["details"]["causes"][0]["field"] == "spec.color"


async def test_a_validating_webhook_refuses_with_its_own_words(api: Api, hook: Hook):
    hook.respond = lambda request: {
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "not on a Sunday"},
        "warnings": ["really"],
    }
    await install(api, hook)

    refused = await api.post(WIDGETS, widget("w"))

    assert refused.status == 403
    assert refused["message"] == 'admission webhook "widgets.hook.example.com" denied the request: not on a Sunday'
    assert refused.warnings == ("really",)
    assert (await api.get(f"{WIDGETS}/w")).status == 404


async def test_webhooks_get_the_old_object_of_updates_and_deletions(api: Api, hook: Hook):
    await install(api, hook)
    await api.post(WIDGETS, widget("w"))
    await api.merge(f"{WIDGETS}/w", {"spec": {"size": 5}})
    await api.delete(f"{WIDGETS}/w")

    assert [(r["operation"], (r["oldObject"] or {}).get("spec", {}).get("size")) for r in hook.reviews] == [
        ("CREATE", None),
        ("UPDATE", None),
        ("DELETE", 5),
    ]
    assert hook.reviews[2]["object"] is None


async def test_webhooks_see_status_writes_only_if_a_rule_names_them(api: Api, hook: Hook):
    await install(api, hook)
    await api.post(WIDGETS, widget("w"))
    await api.merge(f"{WIDGETS}/w/status", {"status": {"phase": "Up"}})

    assert len(hook.reviews) == 1


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_that_does_not_answer_fails(api: Api, hook: Hook, policy: str, status: int):
    await install(api, hook, failurePolicy=policy, clientConfig={"url": "https://127.0.0.1:1/none"})

    answer = await api.post(WIDGETS, widget("w"))

    assert answer.status == status
    if policy == "Fail":
        assert answer["message"].startswith(
            'Internal error occurred: failed calling webhook "widgets.hook.example.com": failed to call webhook: '
        )


@pytest.mark.parametrize("answered", [b"<html>", b'{"response": "\xff"}', b"[" * 100_000])
async def test_a_webhook_with_an_unreadable_answer_fails(api: Api, hook: Hook, answered: bytes):
    hook.raw = answered
    await install(api, hook, failurePolicy="Ignore")

    answer = await api.post(WIDGETS, widget("w"))

    assert answer.status == 201
    assert 'failed calling webhook "widgets.hook.example.com", failing open' in str(answer.warnings)


async def test_a_slow_webhook_fails(api: Api, hook: Hook):
    hook.delay = 5
    await install(api, hook, timeoutSeconds=1)

    answer = await api.post(WIDGETS, widget("w"))

    assert answer.status == 500
    assert "context deadline exceeded" in answer["message"]


async def test_a_webhook_with_the_wrong_certificate_is_not_trusted(api: Api, hook: Hook):
    other = base64.b64encode(make_authority(datetime.now(UTC)).certificate).decode()
    await install(api, hook, clientConfig={"url": hook.url, "caBundle": other})

    assert (await api.post(WIDGETS, widget("w"))).status == 500
    assert hook.reviews == []


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, ["labelled"]),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, ["plain"]),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, ["plain", "labelled"]),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}]
                }
            },
            [],
        ),
        ({"matchConditions": [{"name": "x", "expression": "object.metadata.name.startsWith('l')"}]}, ["labelled"]),
        ({"matchConditions": [{"name": "x", "expression": "request.operation == 'DELETE'"}]}, []),
    ],
)
async def test_selectors_and_conditions_choose_the_writes_for_a_webhook(api: Api, hook: Hook, options: Any, asked: list[str]):
    await install(api, hook, **options)
    assert (await api.post(WIDGETS, widget("plain"))).status == 201
    assert (await api.post(WIDGETS, widget("labelled", {"a": "b"}))).status == 201

    assert [r["name"] for r in hook.reviews] == asked


async def test_a_dry_run_is_not_sent_to_webhooks_with_side_effects(api: Api, hook: Hook):
    await install(api, hook, sideEffects="NoneOnDryRun")
    dry = await api.post(WIDGETS, widget("w"), dryRun="All")

    assert dry.status == 201
    assert hook.reviews[0]["dryRun"] is True


async def test_a_webhook_is_reached_through_its_service(api: Api, hook: Hook):
    port = int(hook.url.split(":")[2].split("/")[0])
    endpoints = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "hook"},
        "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": port}]}],
    }
    assert (await api.post("/api/v1/namespaces/default/endpoints", endpoints)).status == 201
    service = {"namespace": "default", "name": "hook", "path": "/review"}
    await install(api, hook, clientConfig={"service": service, "caBundle": hook.bundle})

    assert (await api.post(WIDGETS, widget("w"))).status == 201
    assert len(hook.reviews) == 1


async def test_webhooks_are_never_called_for_webhook_configurations(api: Api, hook: Hook):
    everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]
    hook.respond = lambda request: {"allowed": False}
    await install(api, hook, rules=everything)

    assert (await api.delete(f"{GROUP}/validatingwebhookconfigurations/h")).status == 200


async def test_reviews_share_one_connection(api: Api, hook: Hook):
    await install(api, hook)
    for name in ("a", "b", "c"):
        assert (await api.post(WIDGETS, widget(name))).status == 201

    assert len(hook.reviews) == 3
    assert len(hook.connections) == 1


async def test_an_authority_need_not_be_self_signed(api: Api):
    root = make_authority(datetime.now(UTC), "root")
    async with Hook.serving(root, intermediate(root)) as hook:
        await install(api, hook)

        assert (await api.post(WIDGETS, widget("w"))).status == 201
        assert len(hook.reviews) == 1


async def test_with_a_bundle_no_other_authority_is_trusted(api: Api, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The system trusts the hook's authority, the configuration names another."""
    (tmp_path / "system.pem").write_bytes(base64.b64decode(hook.bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    other = base64.b64encode(make_authority(datetime.now(UTC)).certificate).decode()
    await install(api, hook, clientConfig={"url": hook.url, "caBundle": other})

    refused = await api.post(WIDGETS, widget("w"))

    assert refused.status == 500
    assert "tls: failed to verify certificate: x509: " in refused["message"]
    assert hook.reviews == []
    named = configuration(hook, "ValidatingWebhookConfiguration", clientConfig={"url": hook.url})
    assert (await api.merge(f"{GROUP}/validatingwebhookconfigurations/h", {"webhooks": named["webhooks"]})).status == 200
    assert (await api.post(WIDGETS, widget("w"))).status == 201  # without a bundle the system's word counts


async def test_doubled_slashes_are_made_one(api: Api, hook: Hook):
    await install(api, hook, clientConfig={"url": hook.url.replace("/review", "//a/../review"), "caBundle": hook.bundle})

    assert (await api.post(WIDGETS, widget("w"))).status == 201
    assert hook.paths == ["/review"]


async def test_a_failure_shows_nothing_of_python(api: Api, hook: Hook):
    await install(api, hook, clientConfig={"url": "https://127.0.0.1:1/none"})

    refused = await api.post(WIDGETS, widget("w"))

    assert refused["message"] == (
        'Internal error occurred: failed calling webhook "widgets.hook.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:1/none?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


def intermediate(root: KeyPair) -> KeyPair:
    """An authority that another one signed."""
    issuer = x509.load_pem_x509_certificate(root.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(root.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "intermediate")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(issuer.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(signer, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(made.public_bytes(serialization.Encoding.PEM), pem)
