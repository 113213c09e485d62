"""What `explain` once said wrongly, each on a live plane: rules that its verdict must keep."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.meta import Condition, GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.apiserver.auth.rbac import RbacAuthorizer
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import conditions_of, get
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.controllers.kubeadmcontrolplane.build import ALARMS_EVERY
from clusterwright.inmemory import etcd
from clusterwright.inmemory.faults import FAULT
from clusterwright.offline.bundle import assemble
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.detectors.quorum import Seat, lost_quorum
from clusterwright.offline.explain import Answer
from clusterwright.offline.observation import Observation
from clusterwright.offline.record import record
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane, prepare
from clusterwright.simulation.world import START
from clusterwright.webhooks import embedded
from offline.live import CONTROL_PLANE, CRD, DEV_MACHINE, MACHINE, NAMESPACE, SECRET, key, look, machines, up, whole
from support.moments import Moment
from support.provider import GROUP, V1BETA2, definition

MANAGER = GroupVersionKind("apps", "v1", "Deployment")
RBAC = "rbac.authorization.k8s.io"


def test_a_kind_that_is_not_in_its_groups_preferred_version_is_read_where_it_is_served(settled: Moment[Plane]) -> None:
    async def main(p: Plane) -> Answer:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"kind": "OtherCluster", "listKind": "OtherClusterList", "plural": "otherclusters", "singular": "othercluster"}
        spec: Json = {"group": DEV_MACHINE.group, "scope": "Namespaced", "names": names, "versions": [version]}
        metadata = {"name": f"otherclusters.{DEV_MACHINE.group}"}
        await p.client.create(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}
        )
        await asyncio.sleep(5)
        groups = await p.client.raw_get(f"/apis/{DEV_MACHINE.group}")
        assert b'"preferredVersion":{"groupVersion":"infrastructure.cluster.x-k8s.io/v1","version":"v1"}' in groups.replace(b" ", b"")
        return await look(p)

    answer = settled.then(main)
    assert answer.causes == []
    assert answer.verdict.state is State.FINE


async def alice(p: Plane, *denied: str) -> RestClient:
    """A user who may read everything of Cluster API but some resources of the infrastructure."""
    groups = ["", "cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "apiextensions.k8s.io"]
    infrastructure = {"devclusters", "devmachines", "devmachinetemplates"} - set(denied)
    rules = [
        {"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": [DEV_MACHINE.group], "resources": sorted(infrastructure), "verbs": ["get", "list"]},
    ]
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "alice"}
    subject = {"apiGroup": RBAC, "kind": "User", "name": "alice"}
    await p.client.create({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "alice"}, "rules": rules})
    binding = {"metadata": {"name": "alice"}, "roleRef": role, "subjects": [subject]}
    await p.client.create({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", **binding})
    return RestClient(InProcessTransport(p.server, User("alice", ("system:authenticated",))), clock=p.clock)


def test_what_may_not_be_listed_is_not_called_missing() -> None:
    async def main() -> Answer:
        clock = LoopClock(START)
        server = ApiServer(now=clock.now, random=Random(1), authorizer=RbacAuthorizer(), converters=embedded.converters)
        prepare(server)
        async with plane(clock, server=server) as p:
            await up(p)
            try:
                return await look(p, client=await alice(p, "devmachines"))
            finally:
                server.close()

    answer = run_virtual(main())
    assert answer.causes == []
    assert answer.verdict.state is State.UNSEEN
    assert "could not read DevMachines" in answer.verdict.headline
    assert "forbidden" in answer.verdict.headline


async def alarm(p: Plane, name: str | None) -> None:
    """Raised in etcd itself: no object of the management cluster changes."""
    (machine,) = await machines(p, control_plane=True)
    await p.workload("c").annotate_etcd(machine, {etcd.ALARMS: name})


def test_an_alarm_that_no_watch_reports_is_seen_at_once_by_explain_and_soon_by_the_controller(settled: Moment[Plane]) -> None:
    async def main(p: Plane) -> tuple[Answer, Answer]:
        await asyncio.sleep(30)
        await alarm(p, "NOSPACE")
        during = await look(p)
        await p.until_condition(KubeadmControlPlane, "c", "EtcdClusterHealthy", "False", within=1.5 * ALARMS_EVERY)
        await alarm(p, None)
        await p.until_condition(KubeadmControlPlane, "c", "EtcdClusterHealthy", "True", within=1.5 * ALARMS_EVERY)
        await asyncio.sleep(5)
        return during, await look(p)

    during, after = settled.then(main)
    assert during.verdict.state is State.BROKEN
    assert "NOSPACE" in during.verdict.what
    assert "etcdctl" in during.verdict.command
    assert after.verdict.state is State.FINE, after.verdict.headline


def test_a_kubeconfig_that_is_deleted_is_made_again(settled: Moment[Plane]) -> None:
    async def main(p: Plane) -> Answer:
        await asyncio.sleep(30)
        await p.client.delete(SECRET, key("c-kubeconfig"))
        await p.until(lambda: _is_there(p), "the kubeconfig is back", within=30)
        await asyncio.sleep(30)
        return await look(p)

    assert settled.then(main).verdict.state is State.FINE


async def _is_there(p: Plane) -> bool:
    return await p.client.find(SECRET, key("c-kubeconfig")) is not None


def test_an_object_that_no_running_controller_reconciles_is_named() -> None:
    async def main() -> Answer:
        async with plane(LoopClock(START), features={**EMBEDDED_FEATURES, "MachinePool": False}) as p:
            await up(p)
            await p.apply(samples.machine_pool("c", "pool", replicas=1))
            await asyncio.sleep(34)
            return await look(p)

    verdict = run_virtual(main()).verdict
    assert verdict.state is State.BROKEN
    assert verdict.object == f"MachinePool/{NAMESPACE}/pool"
    assert "nothing has reconciled it since it was made 34 s ago: the feature gate MachinePool is off" in verdict.what
    assert "whoever runs the management cluster" in verdict.who
    assert "--feature-gates MachinePool=true" in verdict.next


@pytest.mark.parametrize(
    ("available", "arguments", "told", "step"),
    [
        (0, [], "Deployment capi-system/capi-controller-manager has 0 of 1 replicas available", "let it run"),
        (
            1,
            ["--feature-gates=ClusterTopology=true,MachinePool=false"],
            "the feature gate MachinePool is off in Deployment",
            "MachinePool=true",
        ),
        (1, ["--feature-gates=MachinePool=true"], "nothing has reconciled it", "install or start it"),
    ],
    ids=["down", "gate off", "somebody else's fault"],
)
def test_controllers_that_cannot_be_asked_are_looked_for_where_they_run(available: int, arguments: list[str], told: str, step: str) -> None:
    async def main() -> Verdict:
        async with plane(LoopClock(START), features={**EMBEDDED_FEATURES, "MachinePool": False}) as p:
            p.server.report = None  # as if another process had the controllers
            await up(p)
            await p.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}})
            for provider, number in (("cluster-api", available), ("infrastructure-docker", 0)):
                name = "capi-controller-manager" if provider == "cluster-api" else "capd-controller-manager"
                labels = {"cluster.x-k8s.io/provider": provider}
                pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "capi:1", "args": arguments}]}}
                spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
                metadata = {"name": name, "namespace": "capi-system", "labels": labels}
                await p.client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
                status = {"status": {"replicas": 1, "readyReplicas": number, "availableReplicas": number}}
                await p.client.patch(MANAGER, ObjectKey("capi-system", name), status, subresource="status")
            await p.apply(samples.machine_pool("c", "pool", replicas=1))
            await asyncio.sleep(34)
            return (await look(p)).verdict

    verdict = run_virtual(main())
    assert verdict.object == f"MachinePool/{NAMESPACE}/pool"
    assert told in verdict.what
    assert "whoever runs the management cluster" in verdict.who
    assert step in verdict.next


def test_the_controllers_that_run_are_asked_for_their_gates_and_what_they_decided() -> None:
    features = {**EMBEDDED_FEATURES, "MachineSetPreflightChecks": False}

    async def main() -> tuple[Answer, Observation]:
        async with plane(LoopClock(START), features=features) as p:
            await up(p)
            return await look(p), assemble(await record(p.client, key("c"), p.clock.now())).observation

    answer, observation = run_virtual(main())
    assert observation.features == features
    assert observation.running is not None
    assert observation.running.controllers["machine"] == "Machine"
    assert {d.key.namespace for d in observation.running.traces} == {NAMESPACE}
    assert [m.text for m in answer.history if m.about == "Available"][-1] == "row available fired"


@pytest.mark.parametrize("is_about_the_gone", [True, False], ids=["of something gone", "old"])
def test_events_of_yesterday_are_no_cause(is_about_the_gone: bool, settled: Moment[Plane]) -> None:
    async def main(p: Plane) -> Answer:
        named = "Machine c-gone1" if is_about_the_gone else "the machine"
        told = p.clock.now() + timedelta(seconds=300 if is_about_the_gone else 0)
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "old", "namespace": NAMESPACE},
            "involvedObject": {
                "apiVersion": CONTROL_PLANE.api_version,
                "kind": "KubeadmControlPlane",
                "namespace": NAMESPACE,
                "name": "c",
            },
            "type": "Warning",
            "reason": "Failed",
            "message": f"error of {named}: cannot be created",
            "lastTimestamp": f"{told:%Y-%m-%dT%H:%M:%SZ}",
        }
        await p.client.create(event)
        await asyncio.sleep(60)
        (machine,) = await machines(p, control_plane=True)
        await p.annotate(DEV_MACHINE, machine, {FAULT: "kubelet-stops"})
        await asyncio.sleep(60)
        return await look(p)

    answer = settled.then(main)
    assert answer.verdict.state is State.BROKEN
    assert "cannot be created" not in str(answer.to_json())


@pytest.mark.parametrize("pause", [0, 90], ids=["at once", "one after the other"])
def test_a_lost_quorum_is_named_with_its_members(pause: int, three: Moment[Plane]) -> None:
    async def main(p: Plane) -> tuple[list[Answer], list[str], Unstructured]:
        names = await machines(p, control_plane=True)
        for name in names[:2]:
            await p.annotate(DEV_MACHINE, name, {FAULT: "etcd-stops"})
            await asyncio.sleep(pause)
        answers = []
        for seconds in (5, 55, 540):
            await asyncio.sleep(seconds)
            answers.append(await look(p))
        return answers, names, await p.client.get(MACHINE, key(names[0]))

    answers, names, machine = three.then(main)
    for answer in answers:
        verdict = answer.verdict
        assert (verdict.state, verdict.object) == (State.BROKEN, "KubeadmControlPlane/default/c")
        lost, _, left = verdict.what.partition("left:")
        assert "lost its quorum" in lost
        assert names[0] in lost
        assert names[1] in lost
        assert names[2] in left
        assert "goes on running" in left
        assert verdict.since
        assert "machines of the control plane" in verdict.who
    member = get(conditions_of(machine), "EtcdMemberHealthy")
    assert member is not None
    assert member.status != "True"


def test_a_member_that_does_not_answer_is_not_called_healthy(three: Moment[Plane]) -> None:
    async def main(p: Plane) -> tuple[Answer, list[str], list[Unstructured]]:
        names = await machines(p, control_plane=True)
        await p.annotate(DEV_MACHINE, names[0], {FAULT: "etcd-stops"})
        await asyncio.sleep(60)
        return await look(p), names, [await p.client.get(MACHINE, key(name)) for name in names]

    answer, names, found = three.then(main)
    assert "quorum" not in answer.verdict.headline
    assert names[0] in answer.verdict.object
    said = [get(conditions_of(m), "EtcdMemberHealthy") for m in found]
    assert [c.status for c in said if c is not None] == ["Unknown", "True", "True"]


def seat(name: str, status: str, behind: Complaint | None = None, message: str = "") -> Seat:
    said = Condition(type="EtcdMemberHealthy", status=status, reason="NotHealthy", message=message, last_transition_time=START)
    machine = {"apiVersion": "v1", "kind": "Machine", "metadata": {"name": name}, "status": {"nodeRef": {"name": name}}}
    return Seat(Unstructured(machine), (said,), behind)


@pytest.mark.parametrize(
    ("down", "behind", "reachable", "is_lost"),
    [
        (2, 0, True, True),
        (1, 0, True, False),
        (1, 0, False, True),
        (0, 0, False, False),
        (0, 1, False, False),
        (0, 2, False, True),
        (0, 2, True, False),
    ],
)
def test_a_quorum_is_lost_with_more_than_half_of_the_members(down: int, behind: int, reachable: bool, is_lost: bool) -> None:
    stopped = Complaint(Tier.ERROR, "is stopped", f"{START:%Y-%m-%dT%H:%M:%SZ}")
    seats = [seat(f"m{n}", "False" if n < down else "Unknown", stopped if n < behind else None) for n in range(3)]

    complaint = lost_quorum(seats, reachable=reachable)

    assert (complaint is not None) == is_lost
    if complaint is not None:
        assert "quorum" in complaint.text
        assert "m0" in complaint.text.partition("left:")[0]
        assert "m2" in complaint.text.partition("left:")[2]
        assert "goes on running" in complaint.text
        assert complaint.since


def test_a_learner_is_no_loss() -> None:
    learner = seat("m1", "False", message="Waiting for learner etcd member to be promoted")
    assert lost_quorum([seat("m0", "True"), learner], reachable=True) is None


def test_a_crd_without_a_contract_label_is_named_with_the_label() -> None:
    async def main() -> Answer:
        async with plane(LoopClock(START)) as p:
            name = "devclusters.infrastructure.cluster.x-k8s.io"
            found = await p.client.get(CRD, ObjectKey("", name))
            labels: Json = {label: None for label in found.metadata.labels if label.startswith("cluster.x-k8s.io/")}
            await p.client.patch(CRD, ObjectKey("", name), {"metadata": {"labels": labels}})
            await p.apply(whole())
            await asyncio.sleep(60)
            return await look(p)

    verdict = run_virtual(main()).verdict
    assert verdict.object == "CustomResourceDefinition/devclusters.infrastructure.cluster.x-k8s.io"
    assert "cluster.x-k8s.io/v1beta" in verdict.what
    assert verdict.command.startswith("kubectl label crd devclusters.infrastructure.cluster.x-k8s.io cluster.x-k8s.io/v1beta")


def test_other_objects_of_the_cluster_are_asked_too(settled: Moment[Plane]) -> None:
    async def main(p: Plane) -> Answer:
        await asyncio.sleep(30)
        (machine,) = await machines(p, control_plane=True)
        await alarm(p, "CORRUPT")
        return await look(p, f"Machine/{NAMESPACE}/{machine}")

    assert "CORRUPT" in settled.then(main).verdict.what


def test_the_infrastructure_of_a_machine_is_not_to_be_created_by_hand(settled: Moment[Plane]) -> None:
    async def main(p: Plane) -> Answer:
        (machine,) = await machines(p, control_plane=False)
        await p.client.patch(MACHINE, key(machine), {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}})
        await p.client.delete(DEV_MACHINE, key(machine))
        await asyncio.sleep(90)
        return await look(p)

    verdict = settled.then(main).verdict
    assert verdict.object.startswith(f"DevMachine/{NAMESPACE}/md-")
    assert "create DevMachine" not in verdict.next
    assert verdict.command.startswith(f"kubectl -n {NAMESPACE} delete machine")


def test_a_provider_whose_process_does_not_run_is_named_with_its_last_output() -> None:
    async def main() -> Verdict:
        async with plane(LoopClock(START)) as p:
            p.server.report = None  # as if another process had the controllers
            await up(p)
            for kind in ("ExampleMachine", "ExampleMachineTemplate"):
                await p.client.create(definition(kind, {**V1BETA2, "cluster.x-k8s.io/provider": "infrastructure-example"}))
            head = {"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider", "providerName": "example"}
            metadata = {
                "name": "infrastructure-example",
                "namespace": NAMESPACE,
                "labels": {"cluster.x-k8s.io/provider": "infrastructure-example"},
            }
            provider = await p.client.create({**head, "type": "InfrastructureProvider", "metadata": metadata})
            message = "the process ended: exit status 1; its last output:\nno credentials for the cloud"
            condition = {"type": "Running", "status": "False", "reason": "Crashed", "message": message}
            status = {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
            await p.client.patch(provider.gvk, provider.key, status, subresource="status")
            template = {"apiVersion": f"{GROUP}/v1", "kind": "ExampleMachineTemplate", "metadata": {"name": "t", "namespace": NAMESPACE}}
            await p.client.create({**template, "spec": {"template": {"spec": {}}}})
            made = samples.workers("c", "more", replicas=1)
            for obj in made:
                if obj["kind"] == "MachineDeployment":
                    reference = {"apiGroup": GROUP, "kind": "ExampleMachineTemplate", "name": "t"}
                    obj["spec"]["template"]["spec"]["infrastructureRef"] = reference
            await p.apply([obj for obj in made if obj["kind"] != "DevMachineTemplate"])
            await asyncio.sleep(60)
            return (await look(p)).verdict

    verdict = run_virtual(main())
    assert verdict.object.startswith(f"ExampleMachine/{NAMESPACE}/more")
    assert f"Provider {NAMESPACE}/infrastructure-example is Crashed: the process ended: exit status 1" in verdict.what
    assert "no credentials for the cloud" in verdict.what
    assert verdict.command == "clusterwright provider logs infrastructure-example --tail 50"
