"""Nobody gets more than they were given: aggregation, audiences, bound objects, webhooks, what is written down about it."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.auth.tokens import AUDIENCE, ServiceAccountTokens, bootstrap_token_source, new_token_key
from clusterwright.apiserver.identity import ADMIN, User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.serve import ServeOptions, start

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
CORE = "/api/v1/namespaces/default"


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


class Api:
    def __init__(self) -> None:
        self.clock = Clock()
        self.server = ApiServer(now=self.clock, random=Random(1), authorizer=RbacAuthorizer())
        self.server.ensure(bootstrap_roles())
        self.server.start_controllers()

    async def __call__(
        self, method: str, path: str, body: Any = None, user: User = ADMIN, media: str = "application/json"
    ) -> tuple[int, Any]:
        content = json.dumps(body).encode() if body is not None else b""
        answer = await self.server.handle(Request(method=method, path=path, body=content, headers={"content-type": media}), user)
        assert isinstance(answer, Response)
        return answer.status, json.loads(answer.body)


@pytest.fixture
async def api() -> Api:
    return Api()


MALLORY = User("mallory", ("system:authenticated",))
EVERYTHING = {"clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}]}


async def as_role_manager(api: Api, *verbs: str) -> None:
    rules = [{"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["create", "update", "patch", "get", *verbs]}]
    meta = {"name": "role-manager"}
    subject = {"kind": "User", "apiGroup": GROUP, "name": "mallory"}
    ref = {"kind": "ClusterRole", "apiGroup": GROUP, "name": "role-manager"}
    await api("POST", f"{RBAC}/clusterroles", {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "metadata": meta, "rules": rules})
    await api(
        "POST",
        f"{RBAC}/clusterrolebindings",
        {"kind": "ClusterRoleBinding", "apiVersion": f"{GROUP}/v1", "metadata": meta, "roleRef": ref, "subjects": [subject]},
    )


async def test_an_aggregation_rule_needs_the_rights_of_an_administrator(api: Api) -> None:
    await as_role_manager(api)
    mine = {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "metadata": {"name": "mine"}, "rules": []}
    assert (await api("POST", f"{RBAC}/clusterroles", mine, MALLORY))[0] == 201

    patched = await api("PATCH", f"{RBAC}/clusterroles/mine", {"aggregationRule": EVERYTHING}, MALLORY, "application/merge-patch+json")
    created = await api("POST", f"{RBAC}/clusterroles", {**mine, "metadata": {"name": "other"}, "aggregationRule": EVERYTHING}, MALLORY)
    _, role = await api("GET", f"{RBAC}/clusterroles/mine")

    for status, answer in (patched, created):
        assert status == 403
        assert "must have cluster-admin privileges to use an aggregationRule" in answer["message"]
    assert not role.get("rules")


async def test_the_escalate_permission_allows_aggregation(api: Api) -> None:
    await as_role_manager(api, "escalate")
    role = {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "metadata": {"name": "mine"}, "aggregationRule": EVERYTHING}

    assert (await api("POST", f"{RBAC}/clusterroles", role, MALLORY))[0] == 201


# ------------------------------------------------------------------------------------------------------------------ tokens


async def account(api: Api) -> ServiceAccountTokens:
    tokens = ServiceAccountTokens(api.server, new_token_key(Random(3)))
    await api("POST", f"{CORE}/serviceaccounts", {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot"}})
    return tokens


async def token_for(api: Api, **spec: Any) -> tuple[int, Any]:
    return await api(
        "POST", f"{CORE}/serviceaccounts/robot/token", {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    )


async def review(api: Api, token: str, *audiences: str) -> Any:
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    return (await api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body))[1]["status"]


async def test_a_token_for_another_audience_is_refused(api: Api) -> None:
    tokens = await account(api)
    _, answer = await token_for(api, audiences=["vault"])
    token = answer["status"]["token"]

    assert tokens.user(token) is None
    assert api.server.token_user(token) is None
    assert "authenticated" not in await review(api, token)
    theirs = await review(api, token, "vault", "other")
    assert (theirs["authenticated"], theirs["audiences"]) == (True, ["vault"])


async def test_a_token_with_our_audience_is_accepted(api: Api) -> None:
    await account(api)
    _, answer = await token_for(api)
    token = answer["status"]["token"]

    user = api.server.token_user(token)
    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"
    assert (await review(api, token))["audiences"] == [AUDIENCE]
    assert "is invalid for the target audiences" in (await review(api, token, "vault"))["error"].replace("are", "is")
    api.clock.time += timedelta(hours=2)
    assert api.server.token_user(token) is None


POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p"},
    "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]},
}


async def test_a_token_lives_and_dies_with_what_it_is_bound_to(api: Api) -> None:
    await account(api)
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    missing, _ = await token_for(api, boundObjectRef=reference)
    _, pod = await api("POST", f"{CORE}/pods", POD)
    other, _ = await token_for(api, boundObjectRef={**reference, "uid": "another"})
    _, answer = await token_for(api, boundObjectRef=reference)
    token = answer["status"]["token"]
    before = api.server.token_user(token)
    await api("DELETE", f"{CORE}/pods/p", {"gracePeriodSeconds": 0, "kind": "DeleteOptions", "apiVersion": "v1"})

    assert (missing, other) == (404, 409)
    assert answer["spec"]["boundObjectRef"]["uid"] == pod["metadata"]["uid"]
    assert before is not None
    assert before.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert api.server.token_user(token) is None
    assert "authenticated" not in await review(api, token)


async def test_a_token_is_bound_to_a_pod_of_its_own_account_only(api: Api) -> None:
    await account(api)
    await api("POST", f"{CORE}/serviceaccounts", {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "other"}})
    pod = {**POD, "spec": {**POD["spec"], "serviceAccountName": "other"}}  # type: ignore[dict-item]
    await api("POST", f"{CORE}/pods", pod)

    status, answer = await token_for(api, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})

    assert status == 400
    assert "different serviceaccount name" in answer["message"]


def part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def test_other_programs_verify_our_tokens_with_our_public_key(api: Api) -> None:
    await account(api)
    _, answer = await token_for(api)
    header, claims, signature = answer["status"]["token"].split(".")

    status, keys = await api("GET", "/openid/v1/jwks")
    _, issuer = await api("GET", "/.well-known/openid-configuration")
    [key] = keys["keys"]
    public = ec.EllipticCurvePublicNumbers(int.from_bytes(part(key["x"])), int.from_bytes(part(key["y"])), ec.SECP256R1()).public_key()
    raw = part(signature)

    assert status == 200
    assert (json.loads(part(header))["kid"], json.loads(part(header))["alg"]) == (key["kid"], "ES256")
    assert issuer["issuer"] == json.loads(part(claims))["iss"]
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public.verify(der, f"{header}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("change", ["none", "hs256", "claims", "signature", "garbage", "empty"])
async def test_a_manipulated_token_is_refused(api: Api, change: str) -> None:
    tokens = await account(api)
    _, answer = await token_for(api)
    header, claims, signature = answer["status"]["token"].split(".")
    b64 = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()  # noqa: E731
    forged = {
        "none": f"{b64({'alg': 'none'})}.{claims}.",
        "hs256": f"{b64({'alg': 'HS256', 'typ': 'JWT'})}.{claims}.{signature}",
        "claims": f"{header}.{b64({**json.loads(part(claims)), 'sub': 'system:admin'})}.{signature}",
        "signature": f"{header}.{claims}.{'A' * 86}",
        "garbage": f"{header}.{claims}.!!!",
        "empty": "..",
    }[change]

    assert tokens.user(forged) is None


@pytest.mark.parametrize(
    ("expiration", "valid"),
    [("2030-01-01T00:00:00Z", True), ("2030-01-01T00:00:00", False), ("soon", False), ("2020-01-01T00:00:00Z", False)],
)
async def test_a_bootstrap_token_with_an_invalid_expiry_has_expired(api: Api, expiration: str, valid: bool) -> None:
    data = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "expiration": expiration}
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token"}
    await api("POST", "/api/v1/namespaces/kube-system/secrets", {**secret, "stringData": data})

    assert (bootstrap_token_source(api.server)("abcdef.0123456789abcdef") is not None) is valid


# ---------------------------------------------------------------------------------------------------------------- webhooks


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://hook.example/x", "'https' is the only allowed URL scheme"),
        ("https://user:pw@hook.example/x", "user information is not permitted in the URL"),
        ("https://hook.example/x?token=1", "query parameters are not permitted"),
        ("https://hook.example/x#f", "fragments are not permitted"),
        ("file:///etc/passwd", "'https' is the only allowed URL scheme"),
    ],
)
@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
async def test_webhooks_are_called_only_over_https_by_host_and_path(api: Api, kind: str, url: str, complaint: str) -> None:
    hook = {"name": "a.b.c", "clientConfig": {"url": url}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": []}
    body = {
        "kind": f"{kind}WebhookConfiguration",
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "h"},
        "webhooks": [hook],
    }

    status, answer = await api("POST", f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations", body)

    assert status == 422
    assert complaint in answer["message"]


# ------------------------------------------------------------------------------------------------------------------- audit


async def test_the_audit_log_has_real_users_refusals_and_writes_of_controllers(tmp_path: Path) -> None:
    tokens = {"good": User("root", ("system:masters",))}
    options = ServeOptions(
        listen="127.0.0.1:0", audit_log=tmp_path / "audit", tokens=tokens, now=lambda: datetime.now(UTC), random=Random(1)
    )
    running = await start(options)
    url, insecure = running.url, aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(connector=insecure) as session:
        root = {"Authorization": "Bearer good"}
        codes = []
        for headers in (
            {**root, "Impersonate-User": "alice"},
            {"Authorization": "Bearer bad"},
            {"Authorization": "Bearer \u00ff\u00fe"},
        ):
            async with session.get(f"{url}/api/v1/namespaces", headers=headers) as answer:
                codes.append((answer.status, answer.headers.get("Server", "")))
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{url}/api/v1/namespaces/default/pods/p/portforward", headers={"Authorization": "Bearer bad"})
    await InProcessTransport(running.server).send(
        Request(
            method="POST", path="/api/v1/namespaces", body=b'{"metadata":{"name":"made"}}', headers={"content-type": "application/json"}
        )
    )
    await running.stop()
    events = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]

    assert [code for code, _ in codes] == [403, 401, 401]
    assert not any("aiohttp" in server or "Python" in server for _, server in codes)
    assert [(e["user"]["username"], e.get("impersonatedUser", {}).get("username"), e["responseStatus"]["code"]) for e in events] == [
        ("root", "alice", 403),
        ("system:anonymous", None, 401),
        ("system:anonymous", None, 401),
        ("system:anonymous", None, 401),
        ("kubernetes-admin", None, 201),
    ]
    await asyncio.sleep(0)
