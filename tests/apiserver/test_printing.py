"""Tables: cells by JSONPath, ages, and what rows carry."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.apiserver_testing import widget_crds
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.encoding import printing
from clusterwright.apiserver.schema.customresource import compile_crd
from clusterwright.apiserver.status import StatusError

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HANDLERS = {r.kind: r.handler for r in RESOURCES}


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=5), "5s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=200), "3m20s"),
        (timedelta(minutes=9), "9m"),
        (timedelta(minutes=90), "90m"),
        (timedelta(hours=3, minutes=5), "3h5m"),
        (timedelta(hours=30), "30h"),
        (timedelta(hours=50), "2d2h"),
        (timedelta(days=10), "10d"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=4000), "10y"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=-30), "<invalid>"),
    ],
)
def test_ages_as_kubectl_says_them(span: timedelta, text: str):
    assert printing.age((NOW - span).strftime("%Y-%m-%dT%H:%M:%SZ"), NOW) == text


OBJECT = {
    "metadata": {"name": "x", "labels": {"a.b/c": "d"}},
    "status": {"conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Live", "status": "False", "n": 5}], "list": [1, 2, 3]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["x"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type=="Live")].status', ["False"]),
        (".status.conditions[?(@.n>1)].type", ["Live"]),
        (".status.conditions[*].type", ["Ready", "Live"]),
        (".status.conditions[0].type", ["Ready"]),
        (".status.conditions[-1].type", ["Live"]),
        (".status.list[0:2]", [1, 2]),
        (".metadata.labels.a\\.b/c", ["d"]),
        (".metadata.labels['a.b/c']", ["d"]),
        (".status.nothing.here", []),
        (".metadata.name.deeper", []),
    ],
)
def test_paths(path: str, found: list[Any]):
    assert printing.json_path(path)(OBJECT) == found


@given(st.text(alphabet=".[]?()@='\"*0a,:-\\ ", max_size=20))
def test_no_path_crashes(path: str):
    with contextlib.suppress(printing.PathError):
        printing.json_path(path)(OBJECT)


def test_cells_have_the_type_of_their_column():
    handler = compile_crd(widget_crds()[0], "v1")
    widget = {"metadata": {"name": "w", "creationTimestamp": "2026-05-01T11:00:00Z"}, "spec": {"color": "red", "size": "not a number"}}
    made = printing.table(handler, [widget], now=NOW, include="None", list_metadata={"resourceVersion": "5"})
    assert [c["name"] for c in made["columnDefinitions"]] == ["Name", "Color", "Size", "Ready", "Title", "Age"]
    assert made["rows"] == [{"cells": ["w", "red", None, None, None, "60m"], "object": None}]


def test_rows_have_the_requested_content():
    widget = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, "data": {"a": "b"}}
    handler = HANDLERS["ConfigMap"]
    rows = {
        i: printing.table(handler, [widget], now=NOW, include=i, list_metadata={})["rows"][0]["object"]
        for i in ("None", "Metadata", "Object")
    }
    assert rows == {
        "None": None,
        "Metadata": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "w"}},
        "Object": widget,
    }
    with pytest.raises(StatusError, match="must be 'Metadata', 'Object', 'None', or empty"):
        printing.table(handler, [], now=NOW, include="x", list_metadata={})


@pytest.mark.parametrize(
    ("kind", "obj", "cells"),
    [
        ("Secret", {"type": "Opaque", "data": {"a": ""}}, ["n", "Opaque", 1, "<unknown>"]),
        (
            "Node",
            {
                "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "False"}], "nodeInfo": {"kubeletVersion": "v1.34.2"}},
            },
            ["n", "NotReady,SchedulingDisabled", "control-plane", "<unknown>", "v1.34.2"],
        ),
        (
            "Pod",
            {"spec": {"containers": [{}, {}]}, "status": {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 2}]}},
            ["n", "1/2", "Running", "2", "<unknown>"],
        ),
        ("Deployment", {"spec": {"replicas": 3}, "status": {"readyReplicas": 1, "updatedReplicas": 2}}, ["n", "1/3", 2, 0, "<unknown>"]),
    ],
)
def test_rows_of_built_ins_have_the_expected_cells(kind: str, obj: dict[str, Any], cells: list[Any]):
    obj = {"metadata": {"name": "n"}, **obj}
    row = printing.table(HANDLERS[kind], [obj], now=NOW, include="None", list_metadata={})["rows"][0]["cells"]
    assert row[: len(cells)] == cells


@pytest.mark.parametrize("kind", sorted(HANDLERS))
def test_every_built_in_fills_every_column_even_of_an_empty_object(kind: str):
    handler = HANDLERS[kind]
    made = printing.table(handler, [{"metadata": {"name": "n"}}], now=NOW, include="None", list_metadata={})
    assert len(made["rows"][0]["cells"]) == len(made["columnDefinitions"])
