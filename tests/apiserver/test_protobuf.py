"""Protobuf bodies: what clients send, and that reading and writing are inverse for every built-in."""

from __future__ import annotations

import base64
import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.apiserver_testing import CRDS, WIDGETS, Api, Clock, configmap, make_server, widget, widget_crds
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.encoding import protobuf
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.gotypes import table
from clusterwright.streams.protobuf import fields

CONFIG_MAP = base64.b64decode("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEg0KAwoBbRIGCgFhEgEx")


def test_a_config_map_as_kubectl_sends_it():
    assert protobuf.decode(CONFIG_MAP) == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": {"a": "1"}}


def test_options_are_read_in_any_group():
    options = {"kind": "DeleteOptions", "apiVersion": "policy/v1", "gracePeriodSeconds": 0, "propagationPolicy": "Orphan"}
    body = protobuf.encode(options)
    assert body is not None
    assert protobuf.decode(body) == options


RESOURCES_OF_SCHEDULING = base64.b64decode(
    "azhzAAoVCgJ2MRIPQVBJUmVzb3VyY2VMaXN0EqUBChRzY2hlZHVsaW5nLms4cy5pby92MRKMAQoPcHJpb3JpdHljbGFzc2VzEAAaDVByaW9yaXR5Q2xhc3MiQwoGY3JlYXRl"
    "CgZkZWxldGUKEGRlbGV0ZWNvbGxlY3Rpb24KA2dldAoEbGlzdAoFcGF0Y2gKBnVwZGF0ZQoFd2F0Y2gqAnBjMg1wcmlvcml0eWNsYXNzQgBKAFIMMVF3anlhWmpqM1k9GgAiAA=="
)


def test_verbs_are_a_message_as_kube_apiserver_sends_them():
    """What v1.36.1 answers to GET /apis/scheduling.k8s.io/v1: Go's decoder reads a bare list of verbs as a broken message."""
    found = protobuf.decode(RESOURCES_OF_SCHEDULING)
    (resource,) = found["resources"]
    assert resource["verbs"] == ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    assert protobuf.encode(found) == RESOURCES_OF_SCHEDULING


@pytest.mark.parametrize(
    "body",
    [b"", b"x", b"k8s\0", b"k8s\0\xff\xff", CONFIG_MAP[:-3], CONFIG_MAP.replace(b"ConfigMap", b"ConfigMop"), b"k8s\0" + b"\x0a" * 50],
)
def test_garbage_is_refused(body: bytes):
    with pytest.raises(DecodeError):
        protobuf.decode(body)


@given(st.binary(max_size=80))
def test_no_bytes_crash_the_decoder(tail: bytes):
    for body in (b"k8s\0" + tail, CONFIG_MAP[:20] + tail):
        with contextlib.suppress(DecodeError):
            protobuf.decode(body)


def _value(kind: str, depth: int) -> st.SearchStrategy[Any]:
    kind = kind.lstrip("*")
    text = st.text(alphabet="abcäß€ -", max_size=6)
    if kind.startswith("[]"):
        return st.lists(_value(kind[2:], depth), min_size=1, max_size=2)
    if kind.startswith("{}"):
        return st.dictionaries(text, _value(kind[2:], depth), min_size=1, max_size=2)
    if kind in table():
        return _struct(kind, depth + 1)
    return {
        "string": text,
        "bool": st.booleans(),
        "byte": st.integers(0, 255),
        "int32": st.integers(-(2**31), 2**31 - 1),
        "int64": st.integers(-(2**63), 2**63 - 1),
        "float64": st.floats(allow_nan=False, allow_infinity=False),
        "bytes": st.binary(max_size=5).map(lambda b: base64.b64encode(b).decode()),
        "time": st.sampled_from(["2001-01-01T00:00:00Z", "1960-02-29T23:59:59Z"]),
        "microtime": st.sampled_from(["2001-01-01T00:00:00.000000Z", "2001-01-01T00:00:00.123456Z"]),
        "quantity": st.sampled_from(["1", "500m", "1Gi"]),
        "intstr": st.integers(-5, 70000) | st.sampled_from(["25%", "http"]),
        "raw": st.just({"a": [1, {"b": None}]}),
        "any": st.just({"f:a": {}}),
        "schema": st.just({"type": "object"}),
        "duration": st.nothing(),
    }[kind]


def _struct(name: str, depth: int = 0) -> st.SearchStrategy[Any]:
    fields: dict[str, st.SearchStrategy[Any]] = {}

    def collect(owner: str) -> None:
        for key, field in table()[owner]["f"].items():
            if field.get("inline"):
                collect(field["t"].lstrip("*"))
            elif "n" in field and field["t"] != "duration" and not ("." in field["t"] and depth >= 2):
                fields[key] = _value(field["t"], depth)

    collect(name)
    chosen = dict(list(fields.items())[: 8 if depth else 40])
    return st.fixed_dictionaries({}, optional=chosen)


KINDS = sorted({(r.api_version, r.kind, r.handler.schema.go_type) for r in RESOURCES if r.kind != "CustomResourceDefinition"})


@pytest.mark.parametrize(("api_version", "kind", "go_type"), KINDS)
def test_reading_undoes_writing(api_version: str, kind: str, go_type: str):
    @settings(max_examples=12, deadline=None)
    @given(_struct(go_type))
    def check(parts: dict[str, Any]) -> None:
        obj = {"kind": kind, "apiVersion": api_version, **parts}
        body = protobuf.encode(obj)
        assert body is not None
        assert protobuf.decode(body) == obj

    check()


PROTOBUF = "application/vnd.kubernetes.protobuf"
EITHER = f"{PROTOBUF},application/json"


def frames(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The events of a watch, as client-go's framer and decoder take them apart."""
    found = []
    while data:
        (size,) = struct.unpack(">I", data[:4])
        event, data = data[4 : 4 + size], data[4 + size :]
        assert len(event) == size
        parts: dict[int, Any] = dict(fields(event))
        inner: dict[int, Any] = dict(fields(parts[2]))
        found.append((parts[1].decode(), protobuf.decode(inner[1])))
    return found


@pytest.mark.parametrize("accept", [PROTOBUF, EITHER])
async def test_a_watch_in_protobuf_is_framed_and_says_so(api: Api, accept: str):
    made = await api.post("/api/v1/namespaces/default/configmaps", configmap("a", data={"k": "v"}))
    watch = await api.watch("/api/v1/namespaces/default/configmaps", headers={"accept": accept}, allowWatchBookmarks="true",
                            sendInitialEvents="true", resourceVersionMatch="NotOlderThan")  # fmt: skip
    await api.delete("/api/v1/namespaces/default/configmaps/a")

    events = frames(b"".join([await anext(watch.lines) for _ in range(3)]))

    assert watch.response.headers["content-type"] == f"{PROTOBUF};stream=watch"
    assert [(kind, obj["metadata"].get("name")) for kind, obj in events] == [("ADDED", "a"), ("BOOKMARK", None), ("DELETED", "a")]
    assert (events[0][1]["data"], events[0][1]["metadata"]["resourceVersion"]) == ({"k": "v"}, made.rv)
    assert events[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    await watch.close()


async def test_an_expired_watch_says_so_in_protobuf(clock: Clock):
    server = make_server(clock, history=2)
    api = Api.of(server)
    for i in range(6):
        await api.post("/api/v1/namespaces/default/configmaps", configmap(f"c{i}"))
    watch = await api.watch("/api/v1/configmaps", headers={"accept": PROTOBUF}, resourceVersion="1")

    ((kind, status),) = frames(await anext(watch.lines))

    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.ended()


async def test_failures_are_protobuf_on_request(api: Api):
    missing = await api.do("GET", "/api/v1/namespaces/default/configmaps/none", headers={"accept": PROTOBUF})

    assert missing.headers["content-type"] == PROTOBUF
    status = protobuf.decode(missing.raw)
    assert (missing.status, status["kind"], status["reason"], status["details"]["name"]) == (404, "Status", "NotFound", "none")


async def test_scales_and_discovery_are_protobuf_on_request(api: Api):
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    assert (await api.post("/apis/apps/v1/namespaces/default/deployments", deployment)).status == 201
    headers = {"accept": EITHER}

    scale = await api.do("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", headers=headers)
    groups = await api.do("GET", "/apis", headers=headers)
    resources = await api.do("GET", "/apis/apps/v1", headers=headers)
    versions = await api.do("GET", "/api", headers=headers)

    for answer in (scale, groups, resources, versions):
        assert answer.headers["content-type"] == PROTOBUF
    assert protobuf.decode(scale.raw)["spec"] == {"replicas": 3}
    assert "apps" in [g["name"] for g in protobuf.decode(groups.raw)["groups"]]
    assert "deployments/scale" in [r["name"] for r in protobuf.decode(resources.raw)["resources"]]
    assert protobuf.decode(versions.raw)["versions"] == ["v1"]


async def test_metadata_alone_has_a_protobuf_form_also_for_custom_resources(api: Api):
    await api.post(WIDGETS, widget("w"))
    partial = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

    one = await api.do("GET", f"{WIDGETS}/w", headers={"accept": partial})
    many = await api.do("GET", WIDGETS, headers={"accept": partial.replace("Metadata;", "MetadataList;")})
    watch = await api.watch(WIDGETS, headers={"accept": f"{partial};stream=watch"})

    assert (one.headers["content-type"], many.headers["content-type"]) == (PROTOBUF, PROTOBUF)
    assert protobuf.decode(one.raw)["metadata"]["name"] == "w"
    assert [i["metadata"]["name"] for i in protobuf.decode(many.raw)["items"]] == ["w"]
    assert [(kind, obj["kind"]) for kind, obj in frames(await anext(watch.lines))] == [("ADDED", "PartialObjectMetadata")]
    await watch.close()


@pytest.mark.parametrize("path", [WIDGETS, "/api/v1/namespaces/default/configmaps"])
async def test_tables_have_no_protobuf_form(api: Api, path: str):
    table = "as=Table;g=meta.k8s.io;v=v1"
    assert (await api.do("GET", path, headers={"accept": f"{PROTOBUF};{table}"})).status == 406
    answer = await api.do("GET", path, headers={"accept": f"{PROTOBUF};{table},application/json;{table}"})
    assert (answer.status, answer.headers["content-type"], answer["kind"]) == (200, "application/json", "Table")


async def test_whole_custom_resources_have_no_protobuf_form(api: Api):
    assert (await api.do("GET", WIDGETS, headers={"accept": PROTOBUF})).status == 406
    answer = await api.do("GET", WIDGETS, headers={"accept": EITHER})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


async def test_definitions_are_taken_as_protobuf():
    api = Api.of(make_server())
    for crd in widget_crds():
        body = protobuf.encode(crd)
        assert body is not None
        made = await api.do("POST", CRDS, body, PROTOBUF)
        assert made.status == 201, made
        assert made["spec"]["versions"] == crd["spec"]["versions"]
    assert (await api.post(WIDGETS, widget("w"))).status == 201
    assert (await api.post(WIDGETS, widget("x", color="pink"))).status == 422


SCHEMA = {
    "type": "object",
    "$ref": "x",
    "required": ["a"],
    "properties": {
        "a": {"type": "array", "items": {"type": "string", "enum": ["x", 1, None, {"y": [2]}]}, "default": {"deep": [1.5, False]}},
        "b": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},
        "c": {"additionalProperties": {"type": "integer"}, "minimum": -1.5, "maxLength": 0, "nullable": True},
        "d": {"additionalProperties": True, "dependencies": {"e": ["f", "g"], "h": {"type": "string"}}},
        "i": {"x-kubernetes-validations": [{"rule": "true", "message": "m", "optionalOldSelf": False}], "not": {"type": "string"}},
    },
}


def test_schemas_are_read_as_they_were_written():
    crd = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": SCHEMA}}]},
    }
    body = protobuf.encode(crd)
    assert body is not None
    assert protobuf.decode(body) == crd


@pytest.mark.parametrize("year", ["0001", "0999", "1969", "2026", "9999"])
def test_times_of_all_years(year: str):
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"creationTimestamp": f"{year}-02-03T04:05:06Z"}}
    body = protobuf.encode(obj)
    assert body is not None
    assert protobuf.decode(body) == obj


@pytest.mark.parametrize("year", ["0001", "0999", "1969", "9999"])
async def test_a_lease_of_any_year(api: Api, year: str):
    """Go's zero time and what is little more than that are times, too, whichever form they come and go in."""
    spec = {"acquireTime": f"{year}-01-01T00:00:02.000000Z", "renewTime": f"{year}-01-01T00:00:05.000001Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "default"}, "spec": spec}
    made = await api.do("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", lease, headers={"accept": PROTOBUF})
    assert made.status == 201
    assert protobuf.decode(made.raw)["spec"] == spec
    assert (await api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/l")).json["spec"] == spec
