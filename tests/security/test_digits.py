"""Numbers of thousands of digits, and digits that are none of ASCII, come in by texts of all kinds: they are refused where they are read.

Python's int() refuses more than 4300 digits with an error of its own, and str.isdigit() takes what int() does not: ², for one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apiserver.apiserver_testing import CRDS, Api, configmap, make_server
from clusterwright.controllers.intstr import count
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import GarbledHistory, RemediationData
from clusterwright.conversion import values as conversion
from clusterwright.golang import jsonpatch
from clusterwright.inmemory import stages
from clusterwright.kubeadm.durations import parse_seconds
from clusterwright.kubeadm.versions import compare, parse_version
from clusterwright.streams import grpc

LONG = "9" * 5000
NO_NUMBERS = [LONG, "\u00b2", "\u0663", "1_0", " 1", ""]


@pytest.mark.parametrize("number", ["\u00b2", LONG, ""])
def test_the_status_of_a_grpc_call(number: str) -> None:
    with pytest.raises(grpc.GrpcError, match="no gRPC answer"):
        grpc.Channel._result({"grpc-status": number, ":status": "200"}, bytearray())


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_counts_in_annotations_are_parsed(text: str) -> None:
    assert count(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"retryCount": 1e400}',
        '{"retryCount": Infinity}',
        '{"timestamp": "0001-01-01T00:00:00+14:00"}',
        f'{{"retryCount": {LONG}}}',
    ],
)
def test_histories_of_remediation_are_parsed(text: str) -> None:
    with pytest.raises(GarbledHistory):
        RemediationData.parse(text)


@pytest.mark.parametrize("step", NO_NUMBERS)
def test_indices_of_patches_that_extensions_answer(step: str) -> None:
    with pytest.raises(jsonpatch.PatchFailed, match="invalid array index"):
        jsonpatch.apply({"a": [1, 2]}, [{"op": "replace", "path": f"/a/{step}", "value": 1}])


@pytest.mark.parametrize(
    ("read", "refused"),
    [
        (parse_seconds, ValueError),
        (conversion.duration, conversion.Unreadable),
        (lambda text: stages.parse_duration(text, "f"), stages.BadDuration),
    ],
)
@pytest.mark.parametrize("text", [f"{LONG}h", f"1.{'x'}s", "\u0663h", "9999999h"])
def test_durations(read: Callable[[str], Any], refused: type[Exception], text: str) -> None:
    with pytest.raises(refused, match="not a duration"):
        read(text)


@pytest.mark.parametrize("text", [f"1h0.{LONG}s", "1h0.5s"])
def test_fractions_of_durations_may_be_long(text: str) -> None:
    assert parse_seconds(text) == 3600
    assert conversion.duration(text) // 10**9 == 3600
    assert stages.parse_duration(text, "f") // timedelta(hours=1) == 1


@pytest.mark.parametrize("jitter", ["inf", "nan", "-Infinity", "x"])
def test_jitter_is_a_number(jitter: str) -> None:
    with pytest.raises(stages.BadDuration, match="is not a number"):
        stages.delay("1s", jitter, field="f", seed="s")


def test_no_stage_lasts_longer_than_the_calendar() -> None:
    needed = stages.delay("2562047h", "1e300", field="f", seed="s", slowness=1e300)

    assert stages.remaining(datetime(2026, 1, 1, tzinfo=UTC), needed, datetime(2026, 1, 1, tzinfo=UTC)) == needed


@pytest.mark.parametrize("text", [f"v{LONG}.1.1", f"1.1.{LONG}", f"v1.1.1-{LONG}", "v18446744073709551616.0.0"])
def test_versions(text: str) -> None:
    with pytest.raises(ValueError, match="value out of range"):
        parse_version(text)


def test_builds_are_numbers_of_any_length() -> None:
    assert compare(parse_version(f"v1.1.1+{LONG}"), parse_version(f"v1.1.1+{LONG}0"), build=True) == -1
    assert compare(parse_version("v1.1.1+01"), parse_version("v1.1.1+1"), build=True) == 0


def crd(column: dict[str, str]) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": [column]}
    names = {"plural": "shelves", "singular": "shelf", "kind": "Shelf", "listKind": "ShelfList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shelves.example.com"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("path", "type_", "cell"),
    [(".a", "integer", None), (".b[0:5:0]", "string", None), (f".b[{LONG}]", "string", None), (".b[1]", "string", "2")],
)
async def test_columns_of_tables_are_parsed(path: str, type_: str, cell: str | None) -> None:
    api = Api.of(make_server())
    assert (await api.post(CRDS, crd({"name": "c", "type": type_, "jsonPath": path}))).status == 201
    shelves = "/apis/example.com/v1/namespaces/default/shelves"
    shelf = {"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "s"}, "a": LONG, "b": [1, 2]}
    assert (await api.post(shelves, shelf)).status == 201

    table = await api.get(shelves, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"})

    assert table.status == 200
    assert table["rows"][0]["cells"] == ["s", cell]


@pytest.mark.parametrize("number", NO_NUMBERS[:-1])
async def test_parameters_of_requests_are_parsed(number: str) -> None:
    api = Api.of(make_server())
    await api.post("/api/v1/namespaces/default/configmaps", configmap("a"))

    answer = await api.get("/api/v1/namespaces/default/configmaps", limit=number)

    assert answer.status == 400
    assert answer["message"].startswith("strconv.ParseInt: parsing ")
