"""The patcher on a Cluster: both lists of conditions, presence classes, the API server's own validation."""

from random import Random
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.crds import crds
from clusterwright.api.meta import Condition, ObjectKey, V1Beta1Condition
from clusterwright.api.scheme import gvk_of
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import ConditionConflict
from clusterwright.runtime.models import status_type
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.rest import RestClient

from .conftest import NOW, Recording, SteadyClock
from .test_patch import body

CLUSTER = gvk_of(Cluster)
KEY = ObjectKey("default", "c1")


class Subject:
    def __init__(self, server, clock):
        self.transport = Recording(InProcessTransport(server))
        self.client = RestClient(self.transport, clock=clock)
        self.user = RestClient(InProcessTransport(server), clock=clock)
        self.patcher = Patcher(self.client, clock)

    async def read(self):
        self.original: Any = await self.client.read(Cluster, KEY)
        self.transport.sent.clear()
        return self.original.object

    async def write(self, after, **options):
        options = {"owned_conditions": ["Available"], "owned_v1beta1_conditions": ["Ready"], **options}
        return await self.patcher.patch(self.original, after, **options)


@pytest.fixture
async def subject():
    clock = SteadyClock()
    server = ApiServer(now=clock.now, random=Random(1))
    made = Subject(server, clock)
    for crd in crds():
        await made.user.create(crd)
    cluster = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": {"namespace": "default", "name": "c1"}}
    network = {"serviceDomain": "cluster.local", "pods": {"cidrBlocks": ["10.0.0.0/16"]}}
    await made.user.create({**cluster, "spec": {"clusterNetwork": network}})
    return made


def with_both(cluster, available="True", ready="True"):
    status_class = status_type(Cluster)
    status = cluster.status or status_class()
    condition = Condition(type="Available", status=available, reason="R", message="", last_transition_time=NOW)
    old = V1Beta1Condition(
        type="Ready", status=ready, last_transition_time=NOW, **({} if ready == "True" else {"severity": "Info", "reason": "R"})
    )
    deprecated_class = status_type_of(status_class, "deprecated")
    v1beta1_class = status_type_of(deprecated_class, "v1beta1")
    deprecated = status.deprecated or deprecated_class()
    v1beta1 = deprecated.v1beta1 or v1beta1_class()
    others = tuple(c for c in v1beta1.conditions if c.type != "Ready")
    deprecated = replace(deprecated, v1beta1=replace(v1beta1, conditions=(old, *others)))
    return replace(cluster, status=replace(status, conditions=(condition,), deprecated=deprecated))


def status_type_of(cls, field):
    from typing import get_type_hints

    from clusterwright.api.codec import without_metadata

    return without_metadata(get_type_hints(cls, include_extras=True)[field])


async def conditions(subject):
    found = await subject.user.get(CLUSTER, KEY)
    return found.at("status", "conditions"), found.at("status", "deprecated", "v1beta1", "conditions")


async def test_both_lists_and_the_rest_of_the_status_are_one_request(subject):
    cluster = await subject.read()
    after = with_both(cluster)

    await subject.write(replace(after, status=replace(after.status, phase="Provisioning")), observed_generation=True)

    (request,) = subject.transport.writes
    assert set(body(request)["status"]) == {"conditions", "deprecated", "phase", "observedGeneration"}
    new, old = await conditions(subject)
    assert [c["type"] for c in new] == ["Available"]
    assert [(c["type"], c["status"]) for c in old] == [("Ready", "True")]


async def test_concurrent_writes_of_others_in_either_list_survive(subject):
    cluster = await subject.read()
    theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-05-01T00:00:00Z"}
    old = {"type": "OldTheirs", "status": "True", "lastTransitionTime": "2026-05-01T00:00:00Z"}
    patch = {"status": {"conditions": [theirs], "deprecated": {"v1beta1": {"conditions": [old]}}, "phase": "Failed"}}
    await subject.user.patch(CLUSTER, KEY, patch, subresource="status")

    await subject.write(with_both(cluster))

    new, old = await conditions(subject)
    assert {c["type"] for c in new} == {"Available", "Theirs"}
    assert {c["type"] for c in old} == {"Ready", "OldTheirs"}
    assert (await subject.user.get(CLUSTER, KEY)).at("status", "phase") == "Failed"


async def test_a_v1beta1_condition_that_is_not_owned_conflicts(subject):
    cluster = await subject.read()
    theirs = {"type": "Ready", "status": "False", "severity": "Error", "reason": "Theirs", "lastTransitionTime": "2026-05-01T00:00:00Z"}
    await subject.user.patch(CLUSTER, KEY, {"status": {"deprecated": {"v1beta1": {"conditions": [theirs]}}}}, subresource="status")

    with pytest.raises(ConditionConflict):
        await subject.write(with_both(cluster), owned_v1beta1_conditions=[])
    assert (await conditions(subject))[0] is None


async def test_the_transition_time_moves_with_the_status_only(subject):
    await subject.read()
    await subject.write(with_both(subject.original.object))
    first = (await conditions(subject))[0][0]["lastTransitionTime"]
    cluster = await subject.read()

    unchanged = replace(cluster, status=replace(cluster.status, phase="Provisioned"))
    await subject.write(unchanged)

    assert "conditions" not in body(subject.transport.writes[0])["status"]
    assert (await conditions(subject))[0][0]["lastTransitionTime"] == first


async def test_the_spec_patch_has_only_changes_and_nested_fields_stay(subject):
    cluster = await subject.read()
    endpoint_class = status_type_of(status_type_of(Cluster, "spec"), "control_plane_endpoint")

    await subject.write(replace(cluster, spec=replace(cluster.spec, control_plane_endpoint=endpoint_class(host="h", port=6443))))

    (request,) = subject.transport.writes
    assert body(request)["spec"] == {"controlPlaneEndpoint": {"host": "h", "port": 6443}}
    assert "resourceVersion" not in body(request)["metadata"]
    found = await subject.user.get(CLUSTER, KEY)
    assert found.at("spec", "clusterNetwork", "pods", "cidrBlocks") == ["10.0.0.0/16"]
