"""Mistakes of providers' authors: each is named by `explain`, with the field that is missing and whose move it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.offline.detectors.contract_breaches import ROLES, breach, breach_of_definition, without_endpoint
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline.live import key, look
from support.moments import Moment, moment
from support.provider import GROUP, definition

CONTROL_PLANE = ROLES["Cluster", "spec.controlPlaneRef"]
MINE = GroupVersionKind(GROUP, "v1", "ExampleMachine")


@asynccontextmanager
async def led() -> AsyncIterator[Plane]:
    """A cluster that has a control plane, and no workers yet."""
    async with plane(LoopClock(START)) as p:
        await p.apply([*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1)])
        await p.until_available("c")
        await look(p)
        yield p


@pytest.fixture(scope="module")
def settled() -> Iterator[Moment[Plane]]:
    with moment(led) as made:
        yield made


def explained(settled: Moment[Plane], machines: Json, patches: tuple[Json, ...] = (), after: float = 60) -> Verdict:
    """What is said of a cluster whose only worker's infrastructure is of a provider that writes no more than this."""

    async def main(p: Plane) -> Verdict:
        await p.client.create(machines)
        await p.client.create(definition("ExampleMachineTemplate"))
        made = [o for o in samples.workers("c", "md", replicas=1) if o["kind"] != "DevMachineTemplate"]
        deployment = next(o for o in made if o["kind"] == "MachineDeployment")
        reference = {"apiGroup": GROUP, "kind": "ExampleMachineTemplate", "name": "small"}
        deployment["spec"]["template"]["spec"]["infrastructureRef"] = reference
        template = {"metadata": {"name": "small", "namespace": "default"}, "spec": {"template": {"spec": {}}}}
        await p.apply([{"apiVersion": f"{GROUP}/v1", "kind": "ExampleMachineTemplate", **template}, *made])
        await asyncio.sleep(10)
        if patches:
            await write(p, patches)
        await asyncio.sleep(after)
        return (await look(p)).verdict

    return settled.then(main)


async def write(p: Plane, patches: tuple[Json, ...]) -> None:
    (mine,) = await p.client.list(MINE, namespace="default")
    for patch in patches:
        await p.client.patch(MINE, key(mine.key.name), patch, subresource="status" if "status" in patch else "")


READY = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("patches", "field", "said"),
    [
        (
            ({"spec": {"providerID": "x://1"}}, {"status": {"ready": True}}),
            "status.initialization.provisioned",
            "as contract v1beta1 would",
        ),
        (({"status": {"conditions": [READY]}},), "status.initialization.provisioned", "says Ready=True, but does not set"),
        (({"status": {"initialization": {"provisioned": True}}},), "spec.providerID", "provisioned: true without spec.providerID"),
        (({"status": {"initialization": {"provisioned": "yes"}}},), "status.initialization.provisioned", "expected a boolean, found"),
        (
            ({"spec": {"providerID": 7}}, {"status": {"initialization": {"provisioned": True}}}),
            "spec.providerID",
            "expected a string, found",
        ),
    ],
    ids=["old contract", "ready condition only", "no provider ID", "no boolean", "provider ID of the wrong type"],
)
def test_what_the_contract_asks_for_and_an_object_does_not_say_is_named(
    settled: Moment[Plane], patches: tuple[Json, ...], field: str, said: str
) -> None:
    verdict = explained(settled, definition("ExampleMachine"), patches)

    assert verdict.state is State.BROKEN
    assert verdict.object.startswith("ExampleMachine/default/md-")
    assert verdict.field == field
    assert said in verdict.what
    assert "authors" in verdict.who


def test_an_object_that_nobody_reconciles_is_named_whatever_its_group(settled: Moment[Plane]) -> None:
    verdict = explained(settled, definition("ExampleMachine"))

    assert verdict.object.startswith("ExampleMachine/default/md-")
    assert "nothing has reconciled it since it was made" in verdict.what


def test_a_label_that_names_a_version_which_is_not_served_is_named(settled: Moment[Plane]) -> None:
    verdict = explained(settled, definition("ExampleMachine", {"cluster.x-k8s.io/v1beta2": "v2"}))

    assert verdict.object == f"CustomResourceDefinition/examplemachines.{GROUP}"
    assert "cluster.x-k8s.io/v1beta2=v2, but v2 is not served; served: v1" in verdict.what


def test_a_definition_that_is_not_found_by_its_name_is_named() -> None:
    complaint = breach_of_definition(Unstructured(definition("ExampleMachine", plural="examples")))

    assert complaint is not None
    assert f"is not named examplemachines.{GROUP}" in complaint.text
    assert breach_of_definition(Unstructured(definition("ExampleMachine"))) is None


def test_a_provider_that_is_at_it_is_not_accused(settled: Moment[Plane]) -> None:
    working = {**READY, "status": "False", "reason": "Creating", "message": "the VM is being created"}

    verdict = explained(settled, definition("ExampleMachine"), ({"status": {"conditions": [working]}},), after=20)

    assert "the VM is being created" in verdict.what
    assert "contract" not in verdict.what


@pytest.mark.parametrize(
    ("infrastructure", "cluster", "is_breach"),
    [
        ({}, {"controlPlaneRef": {"kind": "KubeadmControlPlane"}}, True),
        ({"controlPlaneEndpoint": {"host": "", "port": 0}}, {"controlPlaneRef": {"kind": "KubeadmControlPlane"}}, True),
        ({"controlPlaneEndpoint": {"host": "h", "port": 1}}, {"controlPlaneRef": {"kind": "KubeadmControlPlane"}}, False),
        ({}, {"controlPlaneRef": {"kind": "KubeadmControlPlane"}, "controlPlaneEndpoint": {"host": "h", "port": 1}}, False),
        ({}, {"controlPlaneRef": {"kind": "HostedControlPlane"}}, False),
    ],
)
def test_infrastructure_without_an_endpoint_is_a_breach_where_the_control_plane_waits_for_it(
    infrastructure: Json, cluster: Json, is_breach: bool
) -> None:
    done = Unstructured({"spec": infrastructure, "status": {"initialization": {"provisioned": True}}})

    complaint = without_endpoint(done, Unstructured({"spec": cluster}), "v1beta2")

    assert (complaint is not None) == is_breach
    assert complaint is None or complaint.path == "spec.controlPlaneEndpoint"
    assert without_endpoint(Unstructured({"spec": infrastructure}), Unstructured({"spec": cluster}), "v1beta2") is None


def reporting(*versions: str) -> Unstructured:
    """A control plane of some provider that is initialized and reports these versions."""
    status = {"initialization": {"controlPlaneInitialized": True}, "versions": [{"version": v, "replicas": 1} for v in versions]}
    return Unstructured({"apiVersion": "example.com/v1", "kind": "OtherControlPlane", "metadata": {"name": "c"}, "status": status})


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (["v1.35.0", "v1.34.1"], 'version "v1.35.0" and "v1.34.1" are in the wrong order'),
        (["latest"], ".status.versions[0].version"),
    ],
    ids=["newest first", "no version"],
)
def test_versions_of_a_control_plane_in_the_wrong_order_are_named(versions: list[str], said: str) -> None:
    found = breach(CONTROL_PLANE, reporting(*versions), "v1beta2", None)

    assert found is not None
    assert found.path == "status.versions"
    assert said in found.text
    assert "the oldest first" in found.text


def test_versions_of_a_control_plane_in_order_are_no_breach() -> None:
    assert breach(CONTROL_PLANE, reporting("v1.34.1", "v1.34.1+build.2", "v1.35.0"), "v1beta2", None) is None


def test_a_message_of_several_lines_leaves_no_empty_ones(settled: Moment[Plane]) -> None:
    bad = {**READY, "status": "False", "reason": "Broken", "message": "the first line\n\nthe second line\n"}
    verdict = explained(settled, definition("ExampleMachine"), ({"status": {"conditions": [bad]}},))

    assert verdict.what == "Ready=False: the first line\nthe second line"
    lines = [line.strip() for link in verdict.evidence for line in link.splitlines()]
    assert "* the second line" in lines
    assert not {"", "*"} & set(lines)
