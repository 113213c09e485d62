"""More of the gallery: names, paths and headers, owners, roles, webhooks and definitions, and requests that only together do harm."""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from security.attacks import (
    _OK,
    APPLY,
    CONFIG_MAPS,
    CRDS,
    JSON,
    MERGE,
    NAMESPACE,
    PATCH,
    REVIEWS,
    SECRETS,
    TEXT,
    Attack,
    _config_map,
    _crd,
    _object,
    rules,
)

Send = Callable[..., Awaitable[tuple[int, bytes]]]
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ROLES: Final = f"{RBAC}/namespaces/default/roles"
NOWHERE: Final = "http://169.254.169.254/latest/meta-data"
SELF: Final = "https://127.0.0.1:6443/api/v1/secrets"
REFUSED: Final = (400, 403, 404, 405, 409, 413, 414, 415, 422, 431)


def _of(version: str, kind: str, name: str = "", **fields: Any) -> bytes:
    meta = {"name": name} if name else {"generateName": "x-"}
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": meta, **fields}).encode()


def _role(count: int) -> bytes:
    parts = {part: [f"{part[0]}{n}" for n in range(count)] for part in ("verbs", "apiGroups", "resources", "resourceNames")}
    return _of("rbac.authorization.k8s.io/v1", "Role", rules=[parts])


def _hooks(kind: str, url: str, count: int = 1) -> bytes:
    hook = {
        "clientConfig": {"url": url},
        "rules": [{"operations": ["CREATE"], "apiGroups": ["nothing.dev"], "apiVersions": ["*"], "resources": ["nothings"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return _of("admissionregistration.k8s.io/v1", kind, webhooks=[{"name": f"h{n}.attack.dev", **hook} for n in range(count)])


def _policy(expression: str) -> bytes:
    match = {"resourceRules": [{"operations": ["CREATE"], "apiGroups": ["nothing.dev"], "apiVersions": ["*"], "resources": ["nothings"]}]}
    spec = {"matchConstraints": match, "validations": [{"expression": expression}]}
    return _of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", spec=spec)


def _definition(group: str, plural: str, kind: str, **spec: Any) -> bytes:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": plural, "kind": kind}
    whole = {"group": group, "scope": "Namespaced", "names": names, "versions": [version], **spec}
    return _of("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", spec=whole)


def _conversion(url: str) -> bytes:
    webhook = {"clientConfig": {"url": url}, "conversionReviewVersions": ["v1"]}
    return _definition("convert.dev", "converts", "Convert", conversion={"strategy": "Webhook", "webhook": webhook})


def _rule(text: str, **kind: Any) -> bytes:
    return _crd("bombs", _object(x={**TEXT, **kind, "x-kubernetes-validations": rules(text)}))


def _owner(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "seed", "uid": "0" * 8, **fields}


def _csr(request: bytes, signer: str = "kubernetes.io/kube-apiserver-client") -> bytes:
    spec = {"request": base64.b64encode(request).decode(), "signerName": signer, "usages": ["client auth"]}
    return _of("certificates.k8s.io/v1", "CertificateSigningRequest", spec=spec)


def _token(**spec: Any) -> bytes:
    return _of("authentication.k8s.io/v1", "TokenRequest", spec=spec)


def _as(**headers: str) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "-"), value) for name, value in headers.items())


_SIGNING: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
FURTHER: Final[tuple[Attack, ...]] = (
    # paths, queries and headers
    *(
        Attack(f"path-{n}", "anybody", "GET", path, codes=REFUSED)
        for n, path in enumerate((
            "/api/v1/namespaces/default/../kube-system/secrets", "/api/v1/namespaces/default/%2e%2e/kube-system/secrets", "//api/v1/secrets",
            "/api/v1/namespaces/kube-system%2Fsecrets", "/api//v1/secrets", "/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets",
            "/api/v1/secrets/", "/api/v1/secrets;x=y", "/api/v1/%73ecrets", "/api/v1/secrets%00", "/api/v1/watch/secrets", "/API/v1/secrets",
            "/api/v1/namespaces/%C0%AE%C0%AE/secrets", "/api/v1/proxy/namespaces/default/pods/x", "/api/v1/nodes/x/proxy/run",
        ))
    ),
    Attack("query-pairs", "admin", "GET", f"{CONFIG_MAPS}?" + "&".join(f"a{n}=b" for n in range(1100)), codes=(200, 400, 414)),
    Attack("query-repeated", "admin", "GET", f"{CONFIG_MAPS}?" + "limit=1&" * 900, codes=(200, 400, 414)),
    Attack("query-long", "admin", "GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name=" + "x" * 7000, codes=(200, 400, 414)),
    Attack("query-fields", "admin", "GET", f"{CONFIG_MAPS}?fieldSelector=" + ",".join(["metadata.name!=x"] * 400), codes=(200, 400, 414)),
    Attack("selector-parens", "admin", "GET", f"{CONFIG_MAPS}?labelSelector=" + "(" * 5000, codes=(400, 414)),
    Attack("limit-negative", "admin", "GET", f"{CONFIG_MAPS}?limit=-1", codes=(200, 400)),
    Attack("limit-text", "admin", "GET", f"{CONFIG_MAPS}?limit=" + "9" * 5000, codes=(200, 400, 414)),
    Attack("continue-old", "admin", "GET", f"{CONFIG_MAPS}?limit=1&continue=" + base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"a"}').decode(), codes=(400, 410)),
    Attack("continue-other", "admin", "GET", f"{CONFIG_MAPS}?limit=1&continue=" + base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":99999999,"start":"../../secrets/a"}').decode(), codes=(400, 410, 504)),
    Attack("revision-future", "admin", "GET", f"{CONFIG_MAPS}?resourceVersion=99999999999999999999", codes=(400, 504)),
    Attack("revision-digits", "admin", "GET", f"{CONFIG_MAPS}?resourceVersion=" + "9" * 5000, codes=(400, 414)),
    Attack("dry-run-unknown", "admin", "POST", f"{CONFIG_MAPS}?dryRun=Some", lambda: _config_map({"a": "b"})),
    Attack("dry-run-repeated", "admin", "POST", f"{CONFIG_MAPS}?" + "dryRun=All&" * 500, lambda: _config_map({"a": "b"}), codes=(201, 400, 422)),
    Attack("manager-long", "admin", "PATCH", f"{CONFIG_MAPS}/seed?fieldManager=" + "m" * 129, lambda: b"{}", APPLY),
    Attack("manager-control", "admin", "PATCH", f"{CONFIG_MAPS}/seed?fieldManager=%00%0A", lambda: b"{}", APPLY),
    Attack("host-rebound", "nobody", "GET", "/api/v1/secrets", codes=(400, 401, 403, 421), headers=_as(Host="evil.example")),
    Attack("origin-foreign", "nobody", "GET", "/api/v1/secrets", codes=(401, 403), headers=_as(Origin="https://evil.example")),
    Attack("header-flood", "anybody", "GET", "/api", codes=(200, 400, 431), headers=tuple((f"X-{n}", "v" * 40) for n in range(120))),
    Attack("cookie-large", "anybody", "GET", "/api", codes=(200, 400, 431), headers=_as(Cookie="a=" + "b" * 7000)),
    Attack("forwarded", "nobody", "GET", "/api/v1/secrets", codes=(401, 403), headers=_as(X_Remote_User="admin", X_Remote_Group="system:masters")),
    Attack("override-method", "anybody", "GET", "/api/v1/secrets", codes=(403,), headers=_as(X_HTTP_Method_Override="DELETE")),
    Attack("impersonate-group", "anybody", "GET", "/api/v1/secrets", codes=(400, 403, 500), headers=_as(Impersonate_Group="system:masters")),
    Attack("impersonate-uid", "anybody", "GET", "/api/v1/secrets", codes=(400, 403, 500), headers=_as(Impersonate_Uid="1")),
    Attack("impersonate-case", "anybody", "GET", "/api/v1/secrets", codes=(403,), headers=_as(iMPERSONATE_uSER="admin")),
    Attack("impersonate-self", "anybody", "GET", "/api/v1/secrets", codes=(403,), headers=_as(Impersonate_User="system:serviceaccount:default:anybody")),
    Attack("encoding-unknown", "admin", "POST", CONFIG_MAPS, lambda: b"xx", headers=_as(Content_Encoding="br, gzip, gzip")),
    Attack("gzip-nested", "anybody", "POST", REVIEWS, lambda: gzip.compress(gzip.compress(b" " * 20_000_000)), headers=_as(Content_Encoding="gzip")),
    Attack("gzip-broken", "anybody", "POST", REVIEWS, lambda: gzip.compress(b"{}" * 100)[:-9], headers=_as(Content_Encoding="gzip")),
    Attack("media-long", "admin", "POST", CONFIG_MAPS, lambda: b"{}", JSON + ";a=b" * 1500, codes=(400, 413, 415, 422, 431)),
    # bodies and names
    Attack("json-repeated-keys", "admin", "POST", CONFIG_MAPS, lambda: b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","name":"b"}' + b',"data":{}' * 50_000 + b"}", codes=_OK),
    Attack("name-nul", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, name="a\0b")),
    Attack("name-unicode", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, name="ａdmin\u202e")),
    Attack("name-dots", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, name="..")),
    Attack("name-slash", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, name="../secrets/a")),
    Attack("name-long", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, name="a" * 1_000_000)),
    Attack("namespace-other", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, namespace="kube-system"), codes=(400,)),
    Attack("surrogates", "admin", "POST", CONFIG_MAPS, lambda: b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"},"data":{"k":"\\ud800"}}', codes=_OK),
    Attack("protobuf-truncated", "admin", "POST", CONFIG_MAPS, lambda: b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\xff\x7f", PROTOBUF),
    Attack("protobuf-nested", "admin", "POST", CONFIG_MAPS, lambda: b"k8s\0" + b"\x0a\x7f" * 50_000, PROTOBUF),
    Attack("secret-too-large", "admin", "POST", SECRETS, lambda: _of("v1", "Secret", data={"k": base64.b64encode(b"x" * 1_200_000).decode()})),
    Attack("binary-data", "admin", "POST", CONFIG_MAPS, lambda: _of("v1", "ConfigMap", binaryData={f"k{n}": "%%%" for n in range(20_000)})),
    Attack("patch-tests", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: json.dumps([{"op": "test", "path": "/data", "value": {"a": "x" * 250}}] * 9_000).encode(), PATCH, _OK),
    Attack("patch-pointers", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: json.dumps([{"op": "test", "path": "/a" * 1_000_000, "value": 1}]).encode(), PATCH, _OK),
    Attack("patch-index", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: json.dumps([{"op": "add", "path": "/metadata/finalizers/99999999999", "value": "x"}]).encode(), PATCH, _OK),
    Attack("patch-finalizers", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: json.dumps({"metadata": {"finalizers": [f"a.b/{n}" for n in range(30_000)]}, "data": {"x": 1}}).encode(), MERGE),
    Attack("apply-fields", "admin", "PATCH", f"{CONFIG_MAPS}/applied?fieldManager=m&force=true", lambda: _of("v1", "ConfigMap", "applied", data={f"k{n}": "v" for n in range(3000)}), APPLY, _OK),
    Attack("delete-preconditions", "admin", "DELETE", f"{CONFIG_MAPS}/seed", lambda: b'{"preconditions":{"uid":"' + b"x" * 1_000_000 + b'"}}', codes=(409, 413)),
    # owners
    Attack("owner-empty", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, ownerReferences=[_owner(uid="")])),
    Attack("owner-two-controllers", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, ownerReferences=[_owner(controller=True), _owner(controller=True, uid="1")])),
    Attack("owner-kind", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, ownerReferences=[_owner(kind="X" * 100_000)]), codes=_OK),
    # roles and credentials
    Attack("role-bomb", "anybody", "POST", ROLES, lambda: _role(45), codes=(403,)),
    Attack("role-bomb-tenant", "tenant", "POST", ROLES, lambda: _role(20), codes=(403, 422)),
    Attack("role-bomb-tenant-wide", "tenant", "POST", ROLES, lambda: _of("rbac.authorization.k8s.io/v1", "Role", rules=[{"verbs": [f"v{n}" for n in range(400)], "apiGroups": [""], "resources": [f"r{n}" for n in range(400)]}]), codes=(403, 422)),
    Attack("binding-subjects", "tenant", "POST", f"{RBAC}/namespaces/default/rolebindings", lambda: _of("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, subjects=[{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"u{n}"} for n in range(10_000)]), codes=_OK),
    Attack("binding-escalates", "tenant", "POST", f"{RBAC}/namespaces/default/rolebindings", lambda: _of("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}, subjects=[]), codes=(403,)),
    Attack("role-bomb-admin", "admin", "POST", ROLES, lambda: _role(45), codes=_OK),
    Attack("role-rules", "admin", "POST", ROLES, lambda: _of("rbac.authorization.k8s.io/v1", "Role", rules=[{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{n}"]} for n in range(15_000)]), codes=_OK),
    Attack("role-grants", "anybody", "POST", f"{RBAC}/clusterroles", lambda: _of("rbac.authorization.k8s.io/v1", "ClusterRole", rules=[{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]), codes=(403,)),
    Attack("token-of-others", "anybody", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", _token, codes=(403,)),
    Attack("token-forever", "admin", "POST", f"{NAMESPACE}/serviceaccounts/anybody/token", lambda: _token(expirationSeconds=2**62)),
    Attack("token-audiences", "admin", "POST", f"{NAMESPACE}/serviceaccounts/anybody/token", lambda: _token(audiences=[f"a{n}" for n in range(1000)]), codes=(201, 400, 413, 422)),
    Attack("csr-garbage", "admin", "POST", _SIGNING, lambda: _csr(b"-----BEGIN CERTIFICATE REQUEST-----\n" + b"A" * 500_000), codes=_OK),
    Attack("csr-blocks", "admin", "POST", _SIGNING, lambda: _csr(b"-----BEGIN CERTIFICATE REQUEST-----\n" * 15_000), codes=_OK),
    Attack("csr-approve", "anybody", "PUT", f"{_SIGNING}/x/approval", lambda: _csr(b"x"), codes=(403,)),
    # definitions, webhooks and policies that lead elsewhere
    *(
        Attack(f"{name}-to-{target}", "admin", "POST", f"{_ADMISSION}/{plural}", lambda k=kind, u=url: _hooks(k, u), codes=(422,))  # type: ignore[misc]
        for name, plural, kind in (("validating", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"), ("mutating", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"))
        for target, url in (("metadata", NOWHERE), ("user", "https://a:b@127.0.0.1/"), ("query", SELF + "?limit=1"))
    ),
    Attack("hooks-many", "admin", "POST", f"{_ADMISSION}/validatingwebhookconfigurations", lambda: _hooks("ValidatingWebhookConfiguration", "https://127.0.0.1:9/", 3000), codes=_OK),
    Attack("conversion-metadata", "admin", "POST", CRDS, lambda: _conversion(NOWHERE)),
    Attack("policy-bomb", "admin", "POST", f"{_ADMISSION}/validatingadmissionpolicies", lambda: _policy("[1,2,3].all(a," * 12 + "true" + ")" * 12), codes=_OK),
    Attack("policy-deep", "admin", "POST", f"{_ADMISSION}/validatingadmissionpolicies", lambda: _policy("!" * 20_000 + "true"), codes=_OK),
    Attack("crd-shadows-core", "admin", "POST", CRDS, lambda: _definition("", "secrets", "Secret")),
    Attack("crd-shadows-apps", "admin", "POST", CRDS, lambda: _definition("apps", "deployments", "Deployment"), codes=(409, 422)),
    Attack("crd-shadows-rbac", "admin", "POST", CRDS, lambda: _definition("rbac.authorization.k8s.io", "clusterroles", "ClusterRole")),
    Attack("crd-protected-group", "admin", "POST", CRDS, lambda: _definition("evil.k8s.io", "evils", "Evil"), codes=(201, 409, 422)),
    Attack("crd-versions", "admin", "POST", CRDS, lambda: _definition("many.dev", "manies", "Many", versions=[{"name": f"v{n}", "served": True, "storage": n == 1, "schema": {"openAPIV3Schema": {"type": "object"}}} for n in range(1, 1500)]), codes=_OK),
    Attack("crd-columns", "admin", "POST", CRDS, lambda: _definition("columns.dev", "columns", "Column", versions=[{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}, "additionalPrinterColumns": [{"name": f"c{n}", "type": "string", "jsonPath": ".a" * 50} for n in range(3000)]}]), codes=_OK),
    Attack("crd-names", "admin", "POST", CRDS, lambda: _definition("names.dev", "names", "Name", names={"plural": "names", "kind": "Name", "shortNames": [f"n{n}" for n in range(20_000)], "categories": ["all"] * 20_000}), codes=_OK),
    Attack("crd-properties", "admin", "POST", CRDS, lambda: _crd("props", _object(**{f"p{n}": TEXT for n in range(20_000)})), codes=_OK),
    Attack("crd-enum", "admin", "POST", CRDS, lambda: _crd("enums", _object(x={**TEXT, "enum": [f"e{n}" for n in range(50_000)]})), codes=_OK),
    Attack("crd-all-of", "admin", "POST", CRDS, lambda: _crd("alls", _object(x={**TEXT, "allOf": [{"pattern": "a" * 20}] * 5000})), codes=_OK),
    Attack("crd-defaults", "admin", "POST", CRDS, lambda: _crd("defaults", _object(x={"type": "object", "properties": {f"p{n}": {**TEXT, "default": "d" * 100} for n in range(5000)}, "default": {}})), codes=_OK),
    Attack("cel-nested", "admin", "POST", CRDS, lambda: _rule("[self].all(a, " * 40 + "true" + ")" * 40), codes=_OK),
    Attack("cel-ternaries", "admin", "POST", CRDS, lambda: _rule("true ? " * 3000 + "true" + " : true" * 3000), codes=_OK),
    Attack("cel-quoted", "admin", "POST", CRDS, lambda: _rule("self == '" + "\\u0041" * 20_000 + "'"), codes=_OK),
    Attack("cel-regex", "admin", "POST", CRDS, lambda: _rule("self.matches('" + "(a?){100}" * 300 + "')", maxLength=1000), codes=_OK),
    # streams and what leads to other places
    *(Attack(f"stream-{verb}", "admin", "POST", f"{NAMESPACE}/pods/none/{verb}?command=sh&container=c", codes=REFUSED) for verb in ("exec", "attach", "portforward")),
    Attack("exec-upgrade", "anybody", "GET", f"{NAMESPACE}/pods/none/exec?command=sh", codes=REFUSED, headers=_as(Connection="Upgrade", Upgrade="SPDY/3.1")),
    Attack("proxy-service", "admin", "GET", f"{NAMESPACE}/services/https:127.0.0.1:6443/proxy/api", codes=(400, 403, 404, 405, 501, 503)),
    Attack("proxy-node", "admin", "GET", "/api/v1/nodes/169.254.169.254/proxy/", codes=(400, 403, 404, 405, 501, 503)),
    Attack("api-service", "admin", "POST", "/apis/apiregistration.k8s.io/v1/apiservices", lambda: _of("apiregistration.k8s.io/v1", "APIService", "v1.evil.dev", spec={"group": "evil.dev", "version": "v1", "service": {"namespace": "default", "name": "x"}, "groupPriorityMinimum": 1, "versionPriority": 1}), codes=(201, 409, 422)),
    Attack("api-service-asked", "admin", "GET", "/apis/evil.dev/v1/things", codes=(404, 503)),
    Attack("status-debug", "anybody", "GET", "/debug/pprof/profile?seconds=60", codes=REFUSED),
    Attack("trace-method", "nobody", "TRACE", "/api", codes=(400, 401, 403, 405, 501)),
)  # fmt: skip


# --------------------------------------------------------------------------------- requests that only together do harm


async def _each(
    send: Send, count: int, method: str, path: Callable[[int], str], body: Callable[[int], bytes], codes: tuple[int, ...]
) -> None:
    for start in range(0, count, 8):
        one = (send("admin", method, path(n), body(n)) for n in range(start, min(start + 8, count)))
        for status, _ in await asyncio.gather(*one):
            assert status in codes, status


def definitions(count: int) -> Callable[[Send], Awaitable[None]]:
    """Many kinds; they are deleted again."""

    async def play(send: Send) -> None:
        await _each(send, count, "POST", lambda n: CRDS, lambda n: _definition(f"g{n}.dev", "floods", f"Flood{n}"), (201,))
        await _each(send, count, "DELETE", lambda n: f"{CRDS}/floods.g{n}.dev", lambda n: b"", (200,))

    return play


def namespaces(count: int) -> Callable[[Send], Awaitable[None]]:
    """Many namespaces; they are deleted again."""

    plays = itertools.count()

    async def play(send: Send) -> None:
        turn = next(plays)  # those of the last one may not be gone yet
        await _each(send, count, "POST", lambda n: "/api/v1/namespaces", lambda n: _of("v1", "Namespace", f"flood-{turn}-{n}"), (201,))
        await _each(send, count, "DELETE", lambda n: f"/api/v1/namespaces/flood-{turn}-{n}", lambda n: b"", (200,))

    return play


def managers(count: int) -> Callable[[Send], Awaitable[None]]:
    """Many managers of fields of one object."""

    async def play(send: Send) -> None:
        for n in range(count):
            body = _of("v1", "ConfigMap", "managed", data={f"k{n}": "v"})
            status, _ = await send("admin", "PATCH", f"{CONFIG_MAPS}/managed?fieldManager=m{n}", body, APPLY)
            assert status in (200, 201), status
        await send("admin", "DELETE", f"{CONFIG_MAPS}/managed")

    return play


def events(count: int) -> Callable[[Send], Awaitable[None]]:
    """A flood of Events."""

    def event(n: int) -> bytes:
        about = {"kind": "ConfigMap", "namespace": "default", "name": "seed"}
        return _of("v1", "Event", involvedObject=about, reason="Flood", message="x" * 1000, type="Warning", count=n)

    async def play(send: Send) -> None:
        await _each(send, count, "POST", lambda n: f"{NAMESPACE}/events", event, (201, 422))

    return play


def watches(count: int) -> Callable[[Send], Awaitable[None]]:
    """Many small watches that end soon."""

    async def play(send: Send) -> None:
        path = f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1"
        tasks = []
        for _ in range(count):  # one after the other: each is a handshake, and whoever measures is in this very process
            tasks.append(asyncio.ensure_future(send("admin", "GET", path)))
            await asyncio.sleep(0.01)
        assert {status for status, _ in await asyncio.gather(*tasks)} <= {200, 429}

    return play


def cycle(count: int) -> Callable[[Send], Awaitable[None]]:
    """Objects that own each other in a ring, deleted in the foreground; none may be left."""

    async def play(send: Send) -> None:
        uids = []
        for n in range(count):
            status, answer = await send("admin", "POST", CONFIG_MAPS, _of("v1", "ConfigMap", f"ring-{n}"))
            assert status == 201
            uids.append(json.loads(answer)["metadata"]["uid"])
        for n in range(count):
            owner = _owner(name=f"ring-{(n + 1) % count}", uid=uids[(n + 1) % count], blockOwnerDeletion=True)
            body = json.dumps({"metadata": {"ownerReferences": [owner]}}).encode()
            assert (await send("admin", "PATCH", f"{CONFIG_MAPS}/ring-{n}", body, MERGE))[0] == 200
        await send("admin", "DELETE", f"{CONFIG_MAPS}/ring-0", b'{"propagationPolicy":"Background"}')
        for n in range(count):
            await send("admin", "DELETE", f"{CONFIG_MAPS}/ring-{n}")

    return play


def foreground(count: int) -> Callable[[Send], Awaitable[None]]:
    """One owner, half of its dependents with a finalizer, deleted in the foreground."""

    async def play(send: Send) -> None:
        status, answer = await send("admin", "POST", CONFIG_MAPS, _config_map({}))
        assert status == 201
        made = json.loads(answer)["metadata"]
        owner = _owner(name=made["name"], uid=made["uid"], blockOwnerDeletion=True)

        def body(n: int) -> bytes:
            return _config_map({}, generateName="kept-", ownerReferences=[owner], finalizers=["a.b/c"] if n % 2 else [])

        await _each(send, count, "POST", lambda n: CONFIG_MAPS, body, (201,))
        await send("admin", "DELETE", f"{CONFIG_MAPS}/{made['name']}", b'{"propagationPolicy":"Foreground"}')
        await asyncio.sleep(0.5)

    return play


SERIES: Final[dict[str, Callable[[Send], Awaitable[None]]]] = {
    "definitions-40": definitions(40),
    "namespaces-150": namespaces(150),
    "managers-60": managers(60),
    "events-400": events(400),
    "watches-100": watches(100),
    "owner-ring-20": cycle(20),
    "foreground-400": foreground(400),
}
"""Played by `make test`."""
LONG_SERIES: Final[dict[str, Callable[[Send], Awaitable[None]]]] = {
    "definitions-10000": definitions(10_000),
    "namespaces-2000": namespaces(2000),
    "managers-500": managers(500),
    "events-5000": events(5000),
    "watches-500": watches(500),
    "foreground-2000": foreground(2000),
}
"""Played by `make soak`."""
