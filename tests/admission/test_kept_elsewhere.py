"""Rules that are no rows: CEL rules of the schemas, bodies that cannot be read, what a hook must know and cannot read."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from admission.admission_cases import ALL_GATES, BASES, Json, merge
from clusterwright.admission import chain
from clusterwright.admission.hook import Access, Hook, Request
from clusterwright.admission.registry import HOOKS, KEPT_ELSEWHERE
from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wire import Request as WireRequest
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.status import StatusError
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ConnectionFailed, Invalid
from clusterwright.runtime.rest import RestClient


@pytest.fixture(scope="module")
def server() -> ApiServer:
    made = ApiServer(now=lambda: datetime(2030, 1, 1, tzinfo=UTC), random=random.Random(1), admission=chain(ALL_GATES))
    made.ensure([*crds(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}])
    return made


async def fields(server: ApiServer, obj: Json) -> list[str]:
    try:
        await RestClient(InProcessTransport(server)).create(obj)
    except Invalid as error:
        return [c["field"] for c in error.status["details"]["causes"]]
    return []


ARGS = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
OTHERS = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
TYPE = "spec.diskSetup.partitions[0].diskLayout[0].partitionType"


def checks(kind: str) -> Json:
    conditions = [{"type": kind, "status": "False", "timeoutSeconds": 30}]
    return {"spec": {"checks": {"unhealthyMachineConditions": conditions}}}


def partition(**parts: Any) -> Json:
    return {"spec": {"diskSetup": {"partitions": [{"device": "/dev/a"} | parts]}}}


def layout(kind: str) -> Json:
    return partition(diskLayout=[{"percentage": 10, "partitionType": kind}])


def selectors(key: str, *values: str) -> Json:
    return {"spec": {key: [{"selector": {"matchLabels": {"a": v}}} for v in values]}}


def kubelet(args: list[Json]) -> Json:
    return {"spec": {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": args}}}}


def server_args(args: list[Json]) -> Json:
    return {"spec": {"clusterConfiguration": {"apiServer": {"extraArgs": args}}}}


KUBELET, SERVER = "spec.joinConfiguration.nodeRegistration.kubeletExtraArgs", "spec.clusterConfiguration.apiServer.extraArgs"
CEL = [
    ("CEL-1", "MachineHealthCheck", checks("Ready"), "spec.checks.unhealthyMachineConditions[0].type", checks("Mine")),
    ("CEL-2", "MachineDrainRule", selectors("machines", "b", "b"), "spec.machines", selectors("machines", "b", "c")),
    ("CEL-3", "MachineDrainRule", selectors("pods", "b", "b"), "spec.pods", selectors("pods", "b", "c")),
    ("CEL-4", "KubeadmConfig", server_args(ARGS), SERVER, server_args(OTHERS)),
    ("CEL-5", "KubeadmConfig", kubelet(ARGS), KUBELET, kubelet(OTHERS)),
    ("CEL-6", "KubeadmConfig", partition(), "spec.diskSetup.partitions[0]", partition(layout=False)),
    ("CEL-7", "KubeadmConfig", layout("Other"), TYPE, layout("0FC63DAF-8483-4772-8E79-3D69D8477DE4")),
]


@pytest.mark.parametrize(("id", "kind", "breaks", "field", "keeps"), CEL, ids=[c[0] for c in CEL])
async def test_rules_of_the_schema(server: ApiServer, id: str, kind: str, breaks: Json, field: str, keeps: Json) -> None:
    assert field in await fields(server, merge(BASES[kind], breaks | {"metadata": {"name": f"{id.lower()}-broken"}})), id
    assert await fields(server, merge(BASES[kind], keeps | {"metadata": {"name": f"{id.lower()}-kept"}})) == []


@pytest.mark.parametrize(
    ("id", "value", "code"), [("PA-15", "{]", 400), ("VAL-5", "tru", 400), ("VAR-7", "1.", 400), ("VAR-7", "1.0", 201)]
)
async def test_a_body_with_a_value_that_is_not_json_is_unreadable(server: ApiServer, id: str, value: str, code: int) -> None:
    head = '{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": {"infrastructureRef": {"apiGroup": "g.io", "kind": "K", "name": "n"}}'
    body = f'{head}, "metadata": {{"name": "{id.lower()}"}}, "x": {value}}}'
    request = WireRequest(
        method="POST",
        path="/apis/cluster.x-k8s.io/v1beta2/namespaces/n/clusters",
        query=(),
        headers={"content-type": "application/json"},
        body=body.encode(),
    )

    assert (await InProcessTransport(server).send(request)).status == code


class Broken:
    """A reader that reaches nobody."""

    async def get(self, kind: GroupVersionKind, key: ObjectKey) -> Any:
        raise ConnectionFailed("nobody answers")

    async def list(self, kind: GroupVersionKind, **_: Any) -> Any:
        raise ConnectionFailed("nobody answers")

    find = get


async def no_pause(_: float) -> None:
    """Time that is not waited."""


BROKEN = Access(cast(Reader, Broken()), pause=no_pause)


def hook(kind: str) -> Hook:
    return next(h for h in HOOKS if h.model.__name__ == kind)


def request(kind: str, obj: Json | None, **more: Any) -> Request:
    found = hook(kind)
    values: Any = {"operation": "CREATE", "kind": found.kind, "namespace": "n", "name": "x", "object": obj} | more
    return Request(**values)


async def refusal(asked: Awaitable[None]) -> StatusError:
    with pytest.raises(StatusError) as refused:
        await asked
    return refused.value


async def test_a_body_that_is_not_a_scale_is_not_read() -> None:
    """SC-3; and a Scale is."""
    bad = {"kind": "Scale", "spec": {"replicas": "three"}}

    assert (await refusal(hook("Scale").validate(request("Scale", bad, operation="UPDATE"), ALL_GATES, BROKEN))).code == 400


async def test_a_control_plane_that_cannot_be_read_cannot_be_scaled() -> None:
    """SC-4."""
    asked = request("Scale", deepcopy(BASES["Scale"]), operation="UPDATE")

    error = await refusal(hook("Scale").validate(asked, ALL_GATES, BROKEN))

    assert error.code == 500
    assert "nobody answers" in str(error)


async def test_a_cluster_whose_class_cannot_be_read_is_not_defaulted() -> None:
    """CL-D3: an error, unlike a class that is not there; and CL-15 where it is validated."""
    error = await refusal(hook("Cluster").default(request("Cluster", deepcopy(BASES["Cluster"])), ALL_GATES, BROKEN))
    assert error.code == 500

    error = await refusal(hook("Cluster").validate(request("Cluster", deepcopy(BASES["Cluster"])), ALL_GATES, BROKEN))
    assert [c["field"] for c in error.status["details"]["causes"]] == ["spec.topology.class"]


async def test_a_class_whose_users_are_unknown_is_not_deleted() -> None:
    asked = request("ClusterClass", None, operation="DELETE", old_object=BASES["ClusterClass"])

    assert (await refusal(hook("ClusterClass").validate(asked, ALL_GATES, BROKEN))).code == 500


async def test_an_unreadable_claim_is_reported() -> None:
    """IP-6."""
    error = await refusal(hook("IPAddress").validate(request("IPAddress", deepcopy(BASES["IPAddress"])), ALL_GATES, BROKEN))

    assert error.code == 403
    assert "nobody answers" in str(error)


class Late:
    """A class that appears after some looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    async def find(self, kind: GroupVersionKind, key: ObjectKey) -> Any:
        self.looks -= 1
        if self.looks > 0:
            return None
        condition = {"type": "VariablesReady", "status": "True"}
        found = BASES["ClusterClass"] | {"status": {"conditions": [condition], "variables": [DEFINED]}}
        return type("Found", (), {"json": found})()


DEFINED = {
    "name": "v",
    "definitions": [{"from": "inline", "required": False, "schema": {"openAPIV3Schema": {"type": "integer", "default": 3}}}],
}


@pytest.mark.parametrize(("looks", "found"), [(1, True), (10, True), (11, False)])
async def test_a_class_gets_two_seconds_to_appear(looks: int, found: bool) -> None:
    """CL-D3: `kubectl apply` of one file makes a class and its Cluster at once."""
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    obj = deepcopy(BASES["Cluster"])

    await hook("Cluster").default(request("Cluster", obj), ALL_GATES, Access(cast(Reader, Late(looks)), pause=pause))

    assert (obj["spec"]["topology"].get("variables") == [{"name": "v", "value": 3}]) is found
    assert sum(waited) <= 2


class Paused:
    """A class that nobody has reconciled, nor will while it is paused."""

    async def find(self, kind: GroupVersionKind, key: ObjectKey) -> Any:
        metadata = {**BASES["ClusterClass"]["metadata"], "annotations": {"cluster.x-k8s.io/paused": ""}}
        return type("Found", (), {"json": BASES["ClusterClass"] | {"metadata": metadata}})()


async def test_a_class_that_is_paused_is_not_waited_for() -> None:
    """It and its Cluster are on their way to another management cluster."""
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    obj = deepcopy(BASES["Cluster"])

    await hook("Cluster").default(request("Cluster", obj), ALL_GATES, Access(cast(Reader, Paused()), pause=pause))

    assert waited == []


def test_every_rule_that_is_not_a_row_is_tested_here() -> None:
    tried = {c[0] for c in CEL} | {"PA-15", "VAL-5", "VAR-7", "SC-3", "SC-4"}

    assert set(KEPT_ELSEWHERE) == tried
