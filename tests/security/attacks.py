"""The attack gallery: what a hostile client sends, and what it may be answered. Each is one request (or one connection's worth)."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

NAMESPACE: Final = "/api/v1/namespaces/default"
CONFIG_MAPS: Final = f"{NAMESPACE}/configmaps"
SECRETS: Final = f"{NAMESPACE}/secrets"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS: Final = "/apis/attack.dev/v1/namespaces/default/things"
JSON, YAML, MERGE, PATCH, APPLY, STRATEGIC = (
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
)


@dataclass(frozen=True)
class Attack:
    """One request. `who`: nobody (no credential), anybody (an account without a role), tenant (`admin` of one namespace), admin."""

    name: str
    who: str
    method: str
    path: str
    body: Callable[[], bytes] = lambda: b""
    media: str = JSON
    codes: tuple[int, ...] = (400, 413, 415, 422)
    headers: tuple[tuple[str, str], ...] = ()


def _aliases(levels: int, width: int = 10) -> bytes:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


def _merges(levels: int) -> bytes:
    lines = ["a0: &a0 {k: v}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, levels)]
    return "\n".join(lines).encode()


def _config_map(data: Any, **meta: Any) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-", **meta}, "data": data}).encode()


def _thing(**spec: Any) -> bytes:
    return json.dumps({"apiVersion": "attack.dev/v1", "kind": "Thing", "metadata": {"generateName": "x-"}, "spec": spec}).encode()


def _crd(plural: str, schema: Any) -> bytes:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.capitalize()}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.attack.dev"},
            "spec": {"group": "attack.dev", "scope": "Namespaced", "names": names, "versions": [version]},
        }
    ).encode()


def _object(**properties: Any) -> Any:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


TEXT: Final = {"type": "string"}
TEXTS: Final = {"type": "array", "items": TEXT}


def rules(*expressions: str) -> Any:
    """What a schema says of its rules."""
    return [{"rule": e} for e in expressions]


THING: Final = _object(
    plain=TEXT,
    nested={"type": "string", "pattern": "^(a+)+$"},
    alternatives={"type": "string", "pattern": "^(a|a)*$"},
    counted={"type": "string", "pattern": "(x+x+)+y"},
    mail={"type": "string", "format": "email"},
    span={"type": "string", "format": "duration"},
    list={
        "type": "array",
        "maxItems": 60,
        "items": {**TEXT, "maxLength": 5},
        "x-kubernetes-validations": rules("self.all(x, self.all(y, self.all(z, x + y + z != 'never')))"),
    },
    matched={**TEXT, "maxLength": 50_000, "x-kubernetes-validations": rules("!self.matches('^(([a-z])+.)+[A-Z]([a-z])+$')")},
    bag={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
"""A kind whose author meant no harm, or did: its users must not be able to stop the server with it."""


_TENFOLD: Final = "[1,2,3,4,5,6,7,8,9,10]"
COSTLY: Final[dict[str, tuple[Any, str, Any]]] = {
    "cubed": (TEXTS, "self.all(x, self.all(y, self.all(z, x + y + z != 'never')))", [f"s{n}" for n in range(300)]),
    "replace": (TEXT, "self.replace('', self).replace('', self).size() > 0", "x" * 2000),
    "map": (TEXT, f"{_TENFOLD}.map(a, {_TENFOLD}.map(b, self + self)).size() > 0", "x" * 1_000_000),
    "matches": (TEXT, "self.matches('" + "(a|b|c|d)+" * 20 + "')", "a" * 500_000),
    "join": (TEXTS, "self.map(x, self.join(self.join(','))).size() >= 0", ["x" * 100] * 500),
    "format": (TEXT, "'%s%s%s%s'.format([self, self, self, self]).replace('a', self).size() >= 0", "a" * 20_000),
    "sets": ({"type": "array", "items": {"type": "integer"}}, "sets.equivalent(self, self.reverse())", list(range(5000))),
    "doubled": (TEXT, "self" + "+self" * 60 + " != 'x'", "x" * 1_000_000),
    "members": (TEXTS, "self.all(x, x in self)", [f"s{n}" for n in range(5000)]),
}
"""Rules that would run away: of what, the rule, and a value that makes it."""


def _copies(count: int) -> bytes:
    steps = [{"op": "add", "path": "/data/a", "value": "x" * 100}]
    return json.dumps(steps + [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(count)]).encode()


def _nested_objects(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def _small_yaml() -> bytes:
    """As much as fits into a request that is meant to be small."""
    return b"a:\n" + b"- {x: y}\n" * 1700


def _wide(count: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % n for n in range(count)) + b"}"


def _costly(kind: Any, rule: str) -> Any:
    return _crd("costs", _object(x={**kind, "x-kubernetes-validations": rules(rule)}))


def _long_rule(text: str) -> bytes:
    return _crd("rules", _object(x={**TEXT, "x-kubernetes-validations": rules(text)}))


def _schema_of(depth: int) -> Any:
    schema: Any = TEXT
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


_OK: Final = (200, 201, 400, 403, 404, 409, 413, 415, 422, 500)
ATTACKS: Final[tuple[Attack, ...]] = (
    # bodies, of an account that may do nothing but ask about itself
    Attack("yaml-aliases", "anybody", "POST", REVIEWS, lambda: _aliases(8), YAML),
    Attack("yaml-aliases-deep", "anybody", "POST", REVIEWS, lambda: _aliases(40), YAML),
    Attack("yaml-merges", "anybody", "POST", REVIEWS, lambda: _merges(12), YAML),
    Attack("yaml-self-alias", "anybody", "POST", REVIEWS, lambda: b"a: &a [*a]", YAML),
    Attack("yaml-sequences", "anybody", "POST", REVIEWS, lambda: b"- " * 8000, YAML),
    Attack("yaml-flow", "anybody", "POST", REVIEWS, lambda: b"[" * 16000, YAML),
    Attack("yaml-keys", "anybody", "POST", REVIEWS, lambda: b"? " * 8000, YAML),
    Attack("yaml-16k", "anybody", "POST", REVIEWS, _small_yaml, YAML),
    Attack("yaml-1m", "anybody", "POST", REVIEWS, lambda: b"a:\n" + b"- {x: y, z: [1, 2]}\n" * 50000, YAML),
    Attack("yaml-number", "anybody", "POST", REVIEWS, lambda: b"a: " + b"9" * 15000, YAML),
    Attack("yaml-date", "anybody", "POST", REVIEWS, lambda: b"spec: 2020-13-45", YAML),
    Attack("yaml-not-utf8", "anybody", "POST", REVIEWS, lambda: b"a: \xff\xfe", YAML),
    Attack("json-3m-review", "anybody", "POST", REVIEWS, lambda: _wide(240_000)),
    Attack("json-deep-review", "anybody", "POST", REVIEWS, lambda: _nested_objects(2000)),
    Attack("json-repeated-review", "anybody", "POST", REVIEWS, lambda: _wide(1200)[:-1] + b',"k1":2}', codes=_OK),
    Attack("json-nan", "anybody", "POST", REVIEWS, lambda: b'{"spec":NaN}'),
    Attack("json-big-number", "anybody", "POST", REVIEWS, lambda: b'{"spec":' + b"9" * 15000 + b"}"),
    Attack("protobuf-garbage", "anybody", "POST", REVIEWS, lambda: b"k8s\0" + b"\xff" * 15000, "application/vnd.kubernetes.protobuf"),
    Attack("protobuf-length", "anybody", "POST", REVIEWS, lambda: b"k8s\0\x0a\xff\xff\xff\xff\x0f", "application/vnd.kubernetes.protobuf"),
    Attack("gzip-bomb", "anybody", "POST", REVIEWS, lambda: gzip.compress(b" " * 50_000_000), headers=(("Content-Encoding", "gzip"),)),
    Attack("not-allowed-3m", "anybody", "POST", CONFIG_MAPS, lambda: b"x" * 3_000_000, codes=(403,)),
    Attack("not-allowed-patch", "anybody", "PATCH", f"{CONFIG_MAPS}/seed", lambda: b"x" * 3_000_000, PATCH, (403,)),
    Attack("delete-options-1m", "anybody", "DELETE", f"{CONFIG_MAPS}/seed", lambda: b"x" * 1_000_000, codes=(403,)),
    Attack("anonymous-3m", "nobody", "POST", REVIEWS, lambda: b"x" * 3_000_000, codes=(401, 403)),
    Attack("anonymous-yaml", "nobody", "POST", REVIEWS, lambda: _aliases(8), YAML, (401, 403)),
    Attack("long-path", "nobody", "GET", "/" + "a" * 7000, codes=(401, 403, 404, 414)),
    Attack("odd-path", "nobody", "GET", '/apis/x"}\n1/..%2f..%2fetc/passwd', codes=(401, 403, 404)),
    Attack("odd-method", "nobody", "BREW", "/api", codes=(400, 401, 403, 405)),
    Attack("impersonate", "anybody", "GET", "/api/v1/secrets", codes=(403,), headers=(("Impersonate-User", "system:admin"),)),
    Attack("impersonate-extras", "anybody", "GET", "/api", codes=(400, 403), headers=tuple((f"Impersonate-Extra-X{n}", "v") for n in range(90))),
    Attack("bearer-not-utf8", "nobody", "GET", "/api", codes=(401,), headers=(("Authorization", "Bearer \xff\xfe"),)),
    Attack("bearer-dots", "nobody", "GET", "/api", codes=(401,), headers=(("Authorization", "Bearer " + "." * 7000),)),
    # bodies, of somebody who may write
    Attack("json-2.5m", "admin", "POST", CONFIG_MAPS, lambda: _config_map({f"k{n}": "v" for n in range(90_000)}), codes=(400, 413, 422, 500)),
    Attack("json-values", "admin", "POST", CONFIG_MAPS, lambda: b'{"apiVersion":"v1","kind":"ConfigMap","x":[' + b"[]," * 900_000 + b"0]}"),
    Attack("json-unterminated", "admin", "POST", CONFIG_MAPS, lambda: b'["' + b',\\"' * 900_000),
    Attack("json-deep", "admin", "POST", CONFIG_MAPS, lambda: _nested_objects(400_000)),
    Attack("json-unknown", "admin", "POST", CONFIG_MAPS, lambda: _config_map({})[:-1] + b"," + _wide(20_000)[1:], codes=_OK),
    Attack("json-unknown-repeated", "admin", "POST", CONFIG_MAPS, lambda: _config_map({})[:-1] + b"," + _wide(10_000)[1:-1] + b',"k7":1}', codes=_OK),
    Attack("json-unknown-strict", "admin", "POST", CONFIG_MAPS + "?fieldValidation=Strict", lambda: _config_map({})[:-1] + b"," + _wide(20_000)[1:]),
    Attack("yaml-40k-values", "admin", "POST", CONFIG_MAPS, lambda: b"data:\n" + b"".join(b" k%d: v\n" % n for n in range(20_000)), YAML),
    Attack("yaml-3m", "admin", "POST", CONFIG_MAPS, lambda: b"data:\n" + b"".join(b" k%d: v\n" % n for n in range(250_000)), YAML),
    Attack("yaml-delete", "admin", "DELETE", f"{CONFIG_MAPS}/nobody", _small_yaml, YAML, _OK),
    Attack("yaml-token", "admin", "POST", f"{NAMESPACE}/serviceaccounts/nobody/token", _small_yaml, YAML, _OK),
    Attack("yaml-eviction", "admin", "POST", f"{NAMESPACE}/pods/nobody/eviction", _small_yaml, YAML, _OK),
    Attack("yaml-scale", "admin", "PUT", "/apis/apps/v1/namespaces/default/deployments/nobody/scale", _small_yaml, YAML, _OK),
    Attack("yaml-signing", "admin", "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", _small_yaml, YAML, _OK),
    Attack("yaml-apply", "admin", "PATCH", f"{CONFIG_MAPS}/seed?fieldManager=m", lambda: _aliases(9), APPLY),
    Attack("labels", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, labels={f"k{n}": "v" for n in range(50_000)}), codes=_OK),
    Attack("annotations", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, annotations={f"k{n}": "v" for n in range(50_000)})),
    Attack("owners", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": str(n)} for n in range(20_000)]), codes=_OK),
    Attack("finalizers", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, finalizers=[f"a.b/f{n}" for n in range(50_000)]), codes=_OK),
    Attack("managed-fields", "admin", "POST", CONFIG_MAPS, lambda: _config_map({}, managedFields=[{"manager": f"m{n}", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}} for n in range(10_000)]), codes=_OK),
    Attack("large-object", "admin", "POST", SECRETS, lambda: json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "x-"}, "stringData": {"k": "x" * 2_900_000}}).encode()),
    Attack("bag-of-values", "admin", "POST", THINGS, lambda: _thing(bag={f"k{n}": [1, {"a": n}] for n in range(20_000)}), codes=_OK),
    # patches
    Attack("patch-copies", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: _copies(25), PATCH),
    Attack("patch-10001", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: json.dumps([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001).encode(), PATCH),
    Attack("patch-10000-moves", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: json.dumps([{"op": "move", "from": "/data", "path": "/data"}] * 10_000).encode(), PATCH, _OK),
    Attack("patch-merge-deep", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: _nested_objects(300_000), MERGE),
    Attack("patch-merge-wide", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: b'{"data":' + _wide(90_000) + b"}", MERGE, _OK),
    Attack("patch-strategic", "admin", "PATCH", f"{CONFIG_MAPS}/seed", lambda: b'{"data":' + _wide(90_000) + b"}", STRATEGIC, _OK),
    # patterns and rules
    Attack("pattern-nested", "admin", "POST", THINGS, lambda: _thing(nested="a" * 60 + "!")),
    Attack("pattern-nested-long", "admin", "POST", THINGS, lambda: _thing(nested="a" * 1_000_000 + "!")),
    Attack("pattern-alternatives", "admin", "POST", THINGS, lambda: _thing(alternatives="a" * 60 + "!")),
    Attack("pattern-counted", "admin", "POST", THINGS, lambda: _thing(counted="x" * 500_000)),
    Attack("format-email", "admin", "POST", THINGS, lambda: _thing(mail="a" * 1_000_000 + "!")),
    Attack("format-duration", "admin", "POST", THINGS, lambda: _thing(span="1" * 1_000_000)),
    Attack("cel-cubed", "admin", "POST", THINGS, lambda: _thing(list=[f"s{n}" for n in range(60)])),
    Attack("cel-matches", "admin", "POST", THINGS, lambda: _thing(matched="a" * 50_000), codes=_OK),
    # definitions
    Attack("crd-lookahead", "admin", "POST", CRDS, lambda: _crd("looks", _object(x={**TEXT, "pattern": "(?=a)b"}))),
    Attack("crd-backreference", "admin", "POST", CRDS, lambda: _crd("backs", _object(x={**TEXT, "pattern": r"(a)\1"}))),
    Attack("crd-repeat", "admin", "POST", CRDS, lambda: _crd("repeats", _object(x={**TEXT, "pattern": "((a{100}){100}){100}"}))),
    Attack("crd-deep-schema", "admin", "POST", CRDS, lambda: _crd("deeps", _schema_of(90)), codes=_OK),
    Attack("crd-deep-rule", "admin", "POST", CRDS, lambda: _long_rule("(" * 5000 + "true" + ")" * 5000)),
    Attack("crd-long-rule", "admin", "POST", CRDS, lambda: _long_rule(" && ".join(["self != 'x'"] * 20_000)), codes=_OK),
    Attack("crd-many-rules", "admin", "POST", CRDS, lambda: _crd("manies", _object(x={**TEXT, "x-kubernetes-validations": rules(*[f"self != '{n}'" for n in range(3000)])})), codes=_OK),
    *(
        Attack(f"crd-rule-{name}", "admin", "POST", CRDS, partial(_costly, kind, rule), codes=(422,))
        for name, (kind, rule, _) in COSTLY.items()
    ),
    # reading
    Attack("selector-long", "admin", "GET", f"{CONFIG_MAPS}?labelSelector=" + ",".join(f"k{n}!=v" for n in range(700)), codes=(200, 400, 414)),
    Attack("selector-set", "admin", "GET", f"{CONFIG_MAPS}?labelSelector=k+in+(" + ",".join(f"v{n}" for n in range(900)) + ")", codes=(200, 400, 414)),
    Attack("continue-garbage", "admin", "GET", f"{CONFIG_MAPS}?limit=1&continue=" + "A" * 7000, codes=(400, 410, 414)),
    Attack("limit-garbage", "admin", "GET", f"{CONFIG_MAPS}?limit=99999999999999999999", codes=(200, 400)),
    Attack("accept-long", "admin", "GET", CONFIG_MAPS, codes=(200, 406), headers=(("Accept", ",".join(f"a/b{n};q=0.1" for n in range(500))),)),
)  # fmt: skip


# ------------------------------------------------------------------------------------------- connections, rather than requests

Raw = Callable[[str, int, ssl.SSLContext], Awaitable[None]]


async def _hold(host: str, port: int, context: ssl.SSLContext | None, text: bytes, seconds: float, *, drip: bytes = b"") -> None:
    """Say something, then (almost) nothing, until the server has had enough or the time is over."""
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(text)
        await writer.drain()
        async with asyncio.timeout(seconds):
            while not reader.at_eof():
                try:
                    async with asyncio.timeout(0.25):
                        if not await reader.read(1024):
                            return
                except TimeoutError:
                    if drip:
                        writer.write(drip)
    except (TimeoutError, OSError):
        pass
    finally:
        writer.close()


HEAD: Final = b"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def many(count: int, one: Raw) -> Raw:
    """The same, on many connections at a time."""

    async def run(host: str, port: int, context: ssl.SSLContext) -> None:
        tasks = []
        for _ in range(count):  # one after the other: who measures shakes hands in this very process
            tasks.append(asyncio.ensure_future(one(host, port, context)))
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks, return_exceptions=True)

    return run


CONNECTIONS: Final[dict[str, Raw]] = {
    "tcp-silent": many(50, lambda h, p, c: _hold(h, p, None, b"", 1.0)),
    "tls-silent": many(50, lambda h, p, c: _hold(h, p, c, b"", 1.0)),
    "half-a-head": many(50, lambda h, p, c: _hold(h, p, c, HEAD[:60], 1.0)),
    "dripping-head": many(50, lambda h, p, c: _hold(h, p, c, HEAD, 1.0, drip=b"X: y\r\n")),
    "body-never-comes": many(50, lambda h, p, c: _hold(h, p, c, HEAD + b"Content-Length: 3000000\r\n\r\n", 1.0)),
    "body-drips": many(50, lambda h, p, c: _hold(h, p, c, HEAD + b"Content-Length: 3000000\r\n\r\n", 1.0, drip=b"x")),
    "two-lengths": lambda h, p, c: _hold(h, p, c, HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 1.0),
    "length-and-chunks": lambda h, p, c: _hold(h, p, c, HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1.0),
    "chunk-without-end": lambda h, p, c: _hold(h, p, c, HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFF\r\n", 1.0, drip=b"x" * 1000),
    "many-headers": lambda h, p, c: _hold(h, p, c, HEAD + b"".join(b"H%d: x\r\n" % n for n in range(2000)), 1.0),
    "long-header": lambda h, p, c: _hold(h, p, c, HEAD + b"H: " + b"x" * 100_000, 1.0),
    "no-http": lambda h, p, c: _hold(h, p, c, b"\x16\x03\x01" * 1000, 1.0),
    "pipelined": lambda h, p, c: _hold(h, p, c, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 500, 1.5),
}
