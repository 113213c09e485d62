"""Whatever comes in, a clear Status goes out, nothing is half written, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.apiserver_testing import APPLY, JSON_PATCH, MERGE, WIDGETS, Api, configmap, make_server, widget, widget_crds
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.streams import Stream

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PARCELS = "/apis/widgets.example.com/v1/namespaces/default/parcels"
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "40"))
BOUNDED = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=12), children, max_size=4),
    max_leaves=25,
)
KEYS = st.sampled_from(["metadata", "spec", "status", "kind", "apiVersion", "name", "labels", "annotations", "finalizers", "color",
                        "ownerReferences", "managedFields", "resourceVersion", "uid", "generateName", "namespace", "data", "tags",
                        "parts", "nested", "config", "creationTimestamp", "deletionTimestamp"])  # fmt: skip
SHAPED = st.recursive(JSON_VALUES, lambda children: st.dictionaries(KEYS, children, max_size=6), max_leaves=40)


KINDS = {
    WIDGETS: ("widgets.example.com/v1", "Widget"),
    CONFIGMAPS: ("v1", "ConfigMap"),
    PARCELS: ("widgets.example.com/v1", "Parcel"),
    "/api/v1/namespaces": ("v1", "Namespace"),
    "/api/v1/namespaces/default/pods": ("v1", "Pod"),
    "/api/v1/namespaces/default/secrets": ("v1", "Secret"),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": ("coordination.k8s.io/v1", "Lease"),
    "/apis/events.k8s.io/v1/namespaces/default/events": ("events.k8s.io/v1", "Event"),
}


def fresh() -> ApiServer:
    server = make_server()
    server.ensure(widget_crds())
    return server


def play(requests: list[Request]) -> list[Response]:
    """Send all to a fresh server with two objects in it; then it must still work."""

    async def run() -> list[Response]:
        server = fresh()
        api = Api.of(server)
        await api.post(WIDGETS, widget("w", size=1))
        await api.post(CONFIGMAPS, configmap("m", data={"a": "b"}))
        answers = []
        for request in requests:
            answer = await server.handle(request)
            if isinstance(answer, Stream):
                answer.close()
                answer = answer.response
            answers.append(answer)
        assert (await api.get("/readyz")).status == 200
        for path in (WIDGETS, CONFIGMAPS):
            for item in (await api.get(path))["items"]:
                assert item["metadata"]["name"]
                assert item["metadata"]["uid"]
        return answers

    return asyncio.run(run())


def is_clear(answer: Response) -> bool:
    """A success, or a Status that says what was wrong; never 500 for what a client sent (but for the few that upstream has)."""
    if answer.status < 400:
        return True
    if answer.headers.get("content-type", "").startswith("text/plain"):
        return answer.status == 404
    status = json.loads(answer.body)
    fine = status["kind"] == "Status" and status["code"] == answer.status and bool(status["message"])
    return fine and "could not be served" not in status["message"]


@given(SHAPED, st.sampled_from(sorted(KINDS)), st.booleans())
@BOUNDED
def test_any_json_can_be_posted(body: Any, path: str, nearly: bool):
    if nearly and isinstance(body, dict):
        body["apiVersion"], body["kind"] = KINDS[path]
        if isinstance(body.setdefault("metadata", {}), dict):
            body["metadata"]["name"] = "fuzz"
    (answer,) = play([Api.request("POST", path, json.dumps(body).encode())])

    assert is_clear(answer), answer


@given(
    SHAPED,
    st.sampled_from([MERGE, JSON_PATCH, APPLY, "application/strategic-merge-patch+json"]),
    st.sampled_from(["", "/status", "/scale"]),
)
@BOUNDED
def test_any_json_can_be_a_patch(body: Any, media: str, subresource: str):
    raw = json.dumps(body).encode()
    requests = [
        Api.request("PATCH", f"{WIDGETS}/w{subresource}", raw, media, fieldManager="fuzz"),
        Api.request("PATCH", f"{CONFIGMAPS}/m", raw, media, fieldManager="fuzz"),
    ]

    for answer in play(requests):
        assert is_clear(answer), answer


@given(SHAPED, st.sampled_from(["", "/status"]))
@BOUNDED
def test_an_object_can_be_replaced_by_anything(body: Any, subresource: str):
    shaped = {"apiVersion": "widgets.example.com/v1", "kind": "Widget", **(body if isinstance(body, dict) else {"spec": body})}

    (answer,) = play([Api.request("PUT", f"{WIDGETS}/w{subresource}", json.dumps(shaped).encode())])

    assert is_clear(answer), answer


@given(st.binary(max_size=200), st.sampled_from(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "x/y", ""]))
@BOUNDED
def test_any_bytes_can_be_posted(body: bytes, media: str):
    for answer in play([Api.request("POST", CONFIGMAPS, body, media), Api.request("POST", CONFIGMAPS, b"k8s\0" + body, media)]):
        assert is_clear(answer), answer


@given(st.integers(0, 400))
@BOUNDED
def test_truncated_bodies_are_refused(length: int):
    whole = json.dumps(widget("t", title="ünï", tags=["a", "b"], nested={"a": "1"})).encode()
    (answer,) = play([Api.request("POST", WIDGETS, whole[: min(length, len(whole) - 1)])])

    assert answer.status == 400
    assert is_clear(answer)


@given(
    st.text(max_size=40),
    st.text(max_size=40),
    st.text(max_size=10),
    st.sampled_from(["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "timeoutSeconds",
                     "watch", "sendInitialEvents", "allowWatchBookmarks"]),
    st.text(max_size=12),
)  # fmt: skip
@BOUNDED
def test_any_query_can_be_asked(selector: str, fields: str, number: str, name: str, value: str):
    requests = [
        Api.request("GET", WIDGETS, labelSelector=selector, fieldSelector=fields),
        Api.request("GET", WIDGETS, limit=number, resourceVersion=value, **{"continue": selector}),
        Api.request("GET", CONFIGMAPS, **{name: value}),
        Api.request("GET", CONFIGMAPS, watch="true", **({name: value} if name != "watch" else {})),
        Api.request("DELETE", f"{WIDGETS}/w", gracePeriodSeconds=number, propagationPolicy=value),
    ]

    for answer in play(requests):
        assert is_clear(answer), answer


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60),
    st.sampled_from(["GET", "PUT", "DELETE", "PATCH", "POST", "HEAD", "TRACE"]),
)
@BOUNDED
def test_any_path_can_be_asked(path: str, method: str):
    for prefix in ("/", "/api/v1/", "/apis/", f"{WIDGETS}/", "/apis/widgets.example.com/"):
        for answer in play([Api.request(method, (prefix + path).partition("?")[0], b"{}", MERGE)]):
            assert is_clear(answer), (prefix + path, answer)


@pytest.mark.parametrize("deep", [b"[" * 5000 + b"]" * 5000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"[" * 100_000])
@pytest.mark.parametrize("media", ["application/json", "application/yaml", MERGE, JSON_PATCH, APPLY])
async def test_deep_nesting_is_refused(deep: bytes, media: str):
    api = Api.of(fresh())
    await api.post(WIDGETS, widget("w"))
    if media.startswith("application/yaml"):
        deep = deep[:2000]  # a YAML reader is slow, and this is deep enough
    method, path = ("POST", WIDGETS) if media in {"application/json", "application/yaml"} else ("PATCH", f"{WIDGETS}/w")
    if media == APPLY:
        deep = deep[:2000]

    answer = await api.do(method, path, deep, media, fieldManager="x")

    assert answer.status in {400, 422}
    assert answer["kind"] == "Status"


async def test_nesting_within_reason_is_kept():
    api = Api.of(fresh())
    value: Any = 1
    for _ in range(90):
        value = {"a": value}
    body = {"apiVersion": "widgets.example.com/v1", "kind": "Parcel", "metadata": {"name": "p"}, "spec": value}

    made = await api.post(PARCELS, body)

    assert made.status == 201
    assert made["spec"] == value


@pytest.mark.parametrize("text", ["\ud800", b"\xff\xfe", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a\xff"}}'])
async def test_invalid_utf8_is_refused(text: Any):
    raw = text if isinstance(text, bytes) else json.dumps({"metadata": {"name": text}}).encode()
    answer = await Api.of(fresh()).do("POST", CONFIGMAPS, raw)

    assert answer.status in {400, 422}


async def test_huge_selectors_are_parsed_or_refused_quickly():
    api = Api.of(fresh())
    many = ",".join(f"k{n} in (a,b,c)" for n in range(20_000))

    assert (await api.get(WIDGETS, labelSelector=many)).status == 200
    assert (await api.get(WIDGETS, labelSelector="(" * 100_000)).status == 400
    assert (await api.get(WIDGETS, labelSelector="a" * 2_000_000)).status == 400
    assert (await api.get(WIDGETS, fieldSelector="metadata.name=x," * 50_000)).status == 200
    assert (await api.get(WIDGETS, fieldSelector="=" * 100_000)).status == 400


async def test_a_body_of_4_mb_is_refused():
    answer = await Api.of(fresh()).do("POST", PARCELS, b'{"spec":"' + b"x" * 4_000_000 + b'"}')

    assert (answer.status, answer["reason"]) == (413, "RequestEntityTooLarge")
