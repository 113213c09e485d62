"""Protobuf bodies: what clients send, and that reading and writing are inverse for every built-in."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.encoding import protobuf
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.gotypes import table

CONFIG_MAP = base64.b64decode("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEg0KAwoBbRIGCgFhEgEx")


def test_a_config_map_as_kubectl_sends_it():
    assert protobuf.decode(CONFIG_MAP) == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": {"a": "1"}}


def test_options_are_read_in_any_group():
    options = {"kind": "DeleteOptions", "apiVersion": "policy/v1", "gracePeriodSeconds": 0, "propagationPolicy": "Orphan"}
    body = protobuf.encode(options)
    assert body is not None
    assert protobuf.decode(body) == options


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
