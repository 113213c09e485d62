from __future__ import annotations

import asyncio
import base64
import json
import random
import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from apiserver.apiserver_testing import Api, Clock, configmap, make_server
from clusterwright.apiserver.auth.authentication import user_of_certificate
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.auth.rules import Rule
from clusterwright.apiserver.auth.tokens import AUDIENCE, ServiceAccountTokens, bootstrap_token_source, new_token_key
from clusterwright.apiserver.identity import ANONYMOUS, User
from clusterwright.apiserver.requestinfo import parse
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.serve import RunningServer, ServeOptions, start
from clusterwright.apiserver.serving.tls import KeyPair, sign, write_private
from support.patience import PATIENCE

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> Any:
    options = ServeOptions(
        listen="127.0.0.1:0",
        kubeconfig=tmp_path / "config",
        audit_log=tmp_path / "audit.jsonl",
        now=lambda: datetime.now(UTC),
        random=random.Random(1),
    )
    server = await start(options)
    yield server
    await server.stop()


def client_context(running: RunningServer, tmp_path: Path, client: KeyPair | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=running.authority.certificate.decode())
    if client is not None:
        file = tmp_path / "client.pem"
        write_private(file, client.certificate + client.key)
        context.load_cert_chain(file)
    return context


async def fetch(running: RunningServer, context: ssl.SSLContext, path: str, method: str = "GET", **options: Any) -> tuple[int, Any]:
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session, session.request(method, running.url + path, **options) as response:
        text = await response.text()
        return response.status, json.loads(text) if text.startswith("{") else text


async def test_the_admin_kubeconfig_is_private_and_works(running: RunningServer, tmp_path: Path):
    file = tmp_path / "config"
    config = yaml.safe_load(file.read_text())
    user = config["users"][0]["user"]
    pair = KeyPair(base64.b64decode(user["client-certificate-data"]), base64.b64decode(user["client-key-data"]))

    status, body = await fetch(running, client_context(running, tmp_path, pair), "/api/v1/namespaces")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert config["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert status == 200
    assert "default" in {i["metadata"]["name"] for i in body["items"]}


async def test_requests_without_credentials_are_refused(running: RunningServer, tmp_path: Path):
    nobody = client_context(running, tmp_path, None)

    refused, body = await fetch(running, nobody, CONFIGMAPS)
    wrong, _ = await fetch(running, nobody, CONFIGMAPS, headers={"Authorization": "Bearer nonsense"})
    healthy, text = await fetch(running, nobody, "/livez")

    assert refused == 403
    assert body["message"].startswith('configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps"')
    assert wrong == 401
    assert (healthy, text) == (200, "ok")


async def test_a_certificate_names_user_and_groups(running: RunningServer, tmp_path: Path):
    alice = sign(running.authority, datetime.now(UTC), "alice", organizations=["devs", "ops"])
    context = client_context(running, tmp_path, alice)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    status, body = await fetch(running, context, "/apis/authentication.k8s.io/v1/selfsubjectreviews", "POST", json=review)
    refused, _ = await fetch(running, context, CONFIGMAPS)

    assert status == 201
    digest = x509.load_pem_x509_certificate(alice.certificate).fingerprint(hashes.SHA256()).hex()
    assert body["status"]["userInfo"] == {
        "username": "alice",
        "groups": ["devs", "ops", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"X509SHA256={digest}"]},
    }
    assert refused == 403


@pytest.mark.parametrize(
    ("authorization", "code"),
    [("Bearer nonsense", 401), ("bearer nonsense more", 401), ("Bearer ", 403), ("Bearer  x", 403), ("Basic eDp5", 403), ("x", 403)],
)
async def test_malformed_tokens_are_ignored_and_unknown_ones_refused(running: RunningServer, tmp_path: Path, authorization: str, code: int):
    status, _ = await fetch(running, client_context(running, tmp_path, None), CONFIGMAPS, headers={"Authorization": authorization})

    assert status == code


async def test_a_certificate_counts_more_than_a_token(running: RunningServer, tmp_path: Path):
    status, _ = await fetch(
        running, client_context(running, tmp_path, running.admin), CONFIGMAPS, headers={"Authorization": "Bearer nonsense"}
    )

    assert status == 200


async def test_a_certificate_of_another_authority_is_refused(running: RunningServer, tmp_path: Path):
    from clusterwright.apiserver.serving.tls import make_authority

    stranger = sign(make_authority(datetime.now(UTC)), datetime.now(UTC), "kubernetes-admin", organizations=["system:masters"])

    with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
        await fetch(running, client_context(running, tmp_path, stranger), CONFIGMAPS)


async def test_every_request_is_audited_without_its_body(running: RunningServer, tmp_path: Path):
    context = client_context(running, tmp_path, running.admin)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "very-secret"}}
    await fetch(running, context, "/api/v1/namespaces/default/secrets", "POST", json=secret)

    text = (tmp_path / "audit.jsonl").read_text()
    record = json.loads(text.splitlines()[-1])

    assert (record["verb"], record["user"]["username"], record["responseStatus"]["code"]) == ("create", "kubernetes-admin", 201)
    assert record["objectRef"] == {"resource": "secrets", "namespace": "default", "apiVersion": "v1"}
    assert "very-secret" not in text


async def test_a_watch_is_audited_when_it_begins_and_when_it_ends(running: RunningServer, tmp_path: Path):
    context = client_context(running, tmp_path, running.admin)
    await fetch(running, context, f"{CONFIGMAPS}?watch=1&timeoutSeconds=1")

    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    watches = [record for record in records if record["verb"] == "watch"]

    assert [record["stage"] for record in watches] == ["ResponseStarted", "ResponseComplete"]
    assert watches[0]["auditID"] == watches[1]["auditID"]


async def test_it_listens_on_loopback_unless_told_otherwise():
    assert ServeOptions(now=lambda: datetime.now(UTC), random=random.Random(1)).listen.startswith("127.0.0.1:")


# ---------------------------------------------------------------------------------------------- RBAC


def admin_and(name: str, *groups: str) -> tuple[Api, Api]:
    server = make_server(authorizer=RbacAuthorizer())
    server.ensure(bootstrap_roles())
    return Api.of(server), Api(InProcessTransport(server, User(name, (*groups, "system:authenticated"))))


def role(name: str, *rules: Any, kind: str = "Role") -> dict[str, Any]:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, subject: dict[str, str], kind: str = "RoleBinding", of: str = "Role") -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": name},
    }


ALICE = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}


async def test_a_role_counts_in_its_namespace_only():
    admin, alice = admin_and("alice")
    await admin.post(
        f"{RBAC}/namespaces/default/roles", role("r", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]})
    )
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", binding("r", ALICE))

    assert (await alice.get(CONFIGMAPS)).status == 200
    assert (await alice.get("/api/v1/namespaces/kube-system/configmaps")).status == 403
    assert (await alice.get("/api/v1/configmaps")).status == 403
    assert (await alice.post(CONFIGMAPS, configmap("x"))).status == 403
    await admin.delete(f"{RBAC}/namespaces/default/rolebindings/r")
    assert (await alice.get(CONFIGMAPS)).status == 403


async def test_a_cluster_role_counts_everywhere_or_where_it_is_bound():
    admin, alice = admin_and("alice", "devs")
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}
    await admin.post(f"{RBAC}/clusterroles", role("reader", rule, kind="ClusterRole"))
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", binding("reader", ALICE, of="ClusterRole"))
    await admin.post(CONFIGMAPS, configmap("a"))

    assert (await alice.get(f"{CONFIGMAPS}/a")).status == 200
    assert (await alice.get("/api/v1/namespaces/kube-system/configmaps/a")).status == 403
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "devs"}
    await admin.post(f"{RBAC}/clusterrolebindings", binding("reader", group, "ClusterRoleBinding", "ClusterRole"))
    assert (await alice.get("/api/v1/namespaces/kube-system/configmaps/a")).status == 404


@pytest.mark.parametrize(
    ("rule", "method", "path", "allowed"),
    [
        (Rule(verbs=("get",), api_groups=("",), resources=("pods",)), "GET", "/api/v1/namespaces/a/pods/p", True),
        (Rule(verbs=("get",), api_groups=("",), resources=("pods",)), "GET", "/api/v1/namespaces/a/pods/p/status", False),
        (Rule(verbs=("get",), api_groups=("",), resources=("pods/status",)), "GET", "/api/v1/namespaces/a/pods/p/status", True),
        (Rule(verbs=("get",), api_groups=("",), resources=("*/status",)), "GET", "/api/v1/namespaces/a/pods/p/status", True),
        (Rule(verbs=("get",), api_groups=("apps",), resources=("pods",)), "GET", "/api/v1/namespaces/a/pods/p", False),
        (Rule(verbs=("*",), api_groups=("*",), resources=("*",)), "DELETE", "/apis/x.y/v1/namespaces/a/things/p/scale", True),
        (Rule(verbs=("get",), api_groups=("",), resources=("pods",), resource_names=("q",)), "GET", "/api/v1/namespaces/a/pods/p", False),
        (Rule(verbs=("get",), api_groups=("",), resources=("pods",), resource_names=("p",)), "GET", "/api/v1/namespaces/a/pods/p", True),
        (Rule(verbs=("get",), non_resource_urls=("/healthz/*",)), "GET", "/healthz/ping", True),
        (Rule(verbs=("get",), non_resource_urls=("/healthz/*",)), "GET", "/metrics", False),
        (Rule(verbs=("*",), api_groups=("*",), resources=("*",)), "GET", "/metrics", False),
        (Rule(verbs=("list",), api_groups=("",), resources=("namespaces",)), "GET", "/api/v1/namespaces", True),
        (Rule(verbs=("get",), api_groups=("",), resources=("namespaces",)), "GET", "/api/v1/namespaces/a", True),
        (Rule(verbs=("deletecollection",), api_groups=("",), resources=("pods",)), "DELETE", "/api/v1/namespaces/a/pods", True),
    ],
)
def test_rules(rule: Rule, method: str, path: str, allowed: bool):
    assert rule.allows(parse(method, path)) is allowed


async def test_resource_names_allow_a_list_of_that_one_name():
    admin, alice = admin_and("alice")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"], "resourceNames": ["one"]}
    await admin.post(f"{RBAC}/namespaces/default/roles", role("r", rule))
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", binding("r", ALICE))

    assert (await alice.get(CONFIGMAPS, fieldSelector="metadata.name=one")).status == 200
    assert (await alice.get(CONFIGMAPS, fieldSelector="metadata.name=two")).status == 403


async def test_update_permission_does_not_allow_creation_by_apply_or_put():
    admin, alice = admin_and("alice")
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]},
    ]
    await admin.post(f"{RBAC}/namespaces/default/roles", role("r", *rules))
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", binding("r", ALICE))
    await admin.post(CONFIGMAPS, configmap("there"))
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    changed = await alice.apply(f"{CONFIGMAPS}/there", configmap("there"), "alice")
    made = await alice.apply(f"{CONFIGMAPS}/new", configmap("new"), "alice")
    put = await alice.put(f"{leases}/new", {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "new"}})

    assert (changed.status, made.status, put.status) == (200, 403, 403)
    assert 'User "alice" cannot create resource "configmaps" in API group "" in the namespace "default"' in made["message"]
    assert 'cannot create resource "leases"' in put["message"]


async def test_users_cannot_grant_more_than_they_have():
    admin, alice = admin_and("alice")
    rules = [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "update"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]
    await admin.post(f"{RBAC}/namespaces/default/roles", role("r", *rules))
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", binding("r", ALICE))
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}

    more = await alice.post(f"{RBAC}/namespaces/default/roles", role("more", secrets))
    same = await alice.post(f"{RBAC}/namespaces/default/roles", role("same", rules[1]))
    everything = await alice.post(f"{RBAC}/namespaces/default/rolebindings", binding("cluster-admin", ALICE, of="ClusterRole"))

    assert (more.status, same.status, everything.status) == (403, 201, 403)
    assert 'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held' in more["message"]


async def test_anonymous_may_ask_for_health_only():
    server = make_server(authorizer=RbacAuthorizer())
    server.ensure(bootstrap_roles())
    nobody = Api(InProcessTransport(server, ANONYMOUS))

    assert (await nobody.get("/healthz")).status == 200
    assert (await nobody.get("/version")).status == 200
    assert (await nobody.get("/apis")).status == 403
    assert (await nobody.get("/metrics")).status == 403


# ---------------------------------------------------------------------------------------------- tokens


async def test_a_service_account_token_works_until_it_expires_or_its_account_goes():
    clock = Clock()
    server = make_server(clock)
    tokens = ServiceAccountTokens(server, new_token_key(random.Random(1)))
    api = Api.of(server)
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.post(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 1200}}

    answer = await api.post(f"{accounts}/robot/token", request)
    token = answer["status"]["token"]
    user = tokens.user(token)

    assert answer["status"]["expirationTimestamp"] == "2026-05-01T12:20:00Z"
    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert tokens.user(token[:-2] + ("aa" if token[-2:] != "aa" else "bb")) is None
    assert ServiceAccountTokens(make_server(clock), new_token_key(random.Random(2))).user(token) is None
    clock.pass_(seconds=1201)
    assert tokens.user(token) is None
    again = (await api.post(f"{accounts}/robot/token", request))["status"]["token"]
    await api.delete(f"{accounts}/robot")
    assert tokens.user(again) is None


async def test_a_token_review_returns_the_user_of_the_token():
    server = make_server()
    server.token_sources.append(lambda token: User("bob", ("devs",)) if token == "good" else None)
    api = Api.of(server)
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}

    good = await api.post(path, {**kind, "spec": {"token": "good"}})
    bad = await api.post(path, {**kind, "spec": {"token": "bad"}})

    assert good["status"] == {"authenticated": True, "user": {"username": "bob", "groups": ["devs"]}, "audiences": [AUDIENCE]}
    assert "authenticated" not in bad["status"]


async def test_bootstrap_tokens_are_secrets():
    clock = Clock()
    server = make_server(clock)
    source = bootstrap_token_source(server)
    data = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "expiration": "2026-05-01T13:00:00Z",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token,other",
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": data,
    }
    assert (await Api.of(server).post("/api/v1/namespaces/kube-system/secrets", secret)).status == 201

    user = source("abcdef.0123456789abcdef")

    assert user is not None
    assert user.name == "system:bootstrap:abcdef"
    assert user.groups == ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated")
    assert source("abcdef.0000000000000000") is None
    assert source("nothing") is None
    clock.pass_(hours=2)
    assert source("abcdef.0123456789abcdef") is None


def test_a_certificate_without_a_name_is_anonymous():
    assert user_of_certificate({"subject": ((("organizationName", "x"),),)}, b"") is None


async def test_stopping_ends_open_watches(running: RunningServer, tmp_path: Path):
    context = client_context(running, tmp_path, running.admin)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        response = await session.get(running.url + CONFIGMAPS.replace("configmaps", "pods"), params={"watch": "1"})
        async with asyncio.timeout(PATIENCE):
            await running.http.stop()
            try:
                rest = await response.read()
            except aiohttp.ClientError:
                rest = b""
    assert rest == b""
