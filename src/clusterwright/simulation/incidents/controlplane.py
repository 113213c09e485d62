"""Incidents of control planes and of the connection to their clusters."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import yaml

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevMachine, DevMachineTemplate
from clusterwright.api.kubernetes import Node, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.yamlwriter import dump_all
from clusterwright.inmemory import faults
from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import KeyPair, Purpose
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import OLD, ONE, THREE, TOPOLOGY
from clusterwright.simulation.plane import NAMESPACE

_KUBECONFIG: Final = ObjectKey(NAMESPACE, "c-kubeconfig")


async def _without_template(scene: Scene) -> None:
    await scene.client.delete(DevMachineTemplate, ObjectKey(NAMESPACE, "c-control-plane"))
    scene.did("Somebody deletes the template of the control plane's machines, then the Cluster.")
    await scene.client.delete(Cluster, ObjectKey(NAMESPACE, "c"))
    await scene.p.until_gone(Cluster, "c", within=900)


async def _rollout_after(scene: Scene) -> None:
    due = scene.world.clock.now() + timedelta(minutes=10)
    await scene.patch(KubeadmControlPlane, "c", {"spec": {"rollout": {"after": f"{due:%Y-%m-%dT%H:%M:%SZ}"}}})
    scene.did("A rollout is ordered for ten minutes from now.")
    (machine,) = await scene.machines()
    for seconds in (5, 25, *[60] * 8):
        await scene.wait(seconds)
        scene.must(not scene.made("machines"), "the rollout began before its time")
    said = await scene.says(Machine, machine.metadata.name, "UpToDate")
    scene.must(said.startswith("True"), f"UpToDate is {said!r} before the time has come")
    await scene.until_machines(1, without=[machine.metadata.name])
    await scene.wait(600)
    made = scene.made("machines")
    scene.must(len(made) == 1, f"{len(made)} Machines were made for one rollout")


async def _vendor_versions(scene: Scene) -> None:
    workload = scene.p.workload("c").client
    for node in await workload.list(Node):
        info = {"status": {"nodeInfo": {"kubeletVersion": f"{OLD}-vendor.{scene.random.randrange(1, 9)}+build"}}}
        await workload.patch(Node, node.key, info, subresource="status")
    scene.did("Kubelets report their version with the suffix of a distribution.")
    await scene.wait(120)
    for machine in await scene.machines():
        said = await scene.says(Machine, machine.metadata.name, "UpToDate")
        scene.must(said.startswith("True"), f"UpToDate of {machine.metadata.name} is {said!r}")
    said = await scene.says(Cluster, "c", "TopologyReconciled")
    scene.must(said.startswith("True"), f"TopologyReconciled is {said!r}")
    workers = {"machineDeployments": [{"class": "default-worker", "name": "w", "replicas": 2}]}
    await scene.patch(Cluster, "c", {"spec": {"topology": {"version": "v1.34.1", "workers": workers}}})
    scene.did("The Cluster is upgraded to v1.34.1, with one worker more.")

    async def begun() -> bool:
        return any(m.spec.version == "v1.34.1" for m in await scene.machines())

    await scene.until(begun, "the upgrade begins")


async def _hanging_tunnel(scene: Scene) -> None:
    names = [m.metadata.name for m in await scene.machines()]
    scene.hang(names[0])
    scene.did(f"Port-forwards to the Pods of {names[0]} open and never answer.")
    marks = {"example.com/team": "blue"}
    await scene.patch(KubeadmControlPlane, "c", {"spec": {"machineTemplate": {"metadata": {"annotations": marks}}}})

    async def marked() -> bool:
        return all(marks.items() <= m.metadata.annotations.items() for m in await scene.machines())

    await scene.until(marked, "an annotation of the control plane reaches all Machines", within=300)
    await scene.client.delete(Machine, ObjectKey(NAMESPACE, names[0]))
    scene.did("Its Machine is deleted.")
    await scene.until_machines(3, without=[names[0]], within=200)


async def _foreign_etcd(scene: Scene) -> None:
    simulated = scene.p.workload("c")
    (machine,) = await scene.machines()
    key = await FixedKeySource(11).new_key("ECDSA-P256")
    now = scene.world.clock.now()
    authority = certificates.new_ca(key, now=now, serial=7)
    scene.pretend_etcd(machine.metadata.name, authority)
    scene.did("Somebody else answers in place of etcd, with a certificate of an authority of its own.")
    await scene.p.annotate(KubeadmControlPlane, "c", {"example.com/poke": "1"})
    await scene.until_says(Machine, machine.metadata.name, "EtcdMemberHealthy", "certificate", within=300)
    scene.must(simulated.is_serving, "the cluster does not answer")


async def _program_in_kubeconfig(scene: Scene) -> None:
    secret = await scene.client.get(Secret, _KUBECONFIG)
    config = yaml.safe_load(secret.data["value"])
    config["users"][0]["user"] = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/steal", "interactiveMode": "Never"}
    }
    await scene.client.patch(Secret, _KUBECONFIG, {"stringData": {"value": dump_all([config])}})
    scene.did("A tenant puts a kubeconfig that runs a program into the Secret of a Cluster.")
    await scene.until_says(Cluster, "c", "RemoteConnectionProbe", "names a program", within=600)


async def _another_authority(scene: Scene) -> None:
    await scene.wait(15)
    (machine,) = await scene.machines()
    name = machine.metadata.name
    key = await FixedKeySource(12).new_key("ECDSA-P256")
    ca = certificates.new_ca(key, now=scene.world.clock.now(), serial=8)
    await scene.client.patch(Secret, ObjectKey(NAMESPACE, certificates.secret_name("c", Purpose.CA)), {"stringData": _as_text(ca)})
    await scene.client.delete(Secret, _KUBECONFIG)
    await scene.p.annotate(DevMachine, name, {faults.FAULT: faults.API_SERVER_STOPS})
    await scene.wait(scene.random.uniform(30, 60))
    await scene.p.annotate(DevMachine, name, {faults.FAULT: None})
    scene.did("The certificate authority of the cluster is replaced: its Secret, the API server, and the kubeconfig.")
    await scene.wait(60)
    await scene.until_says(Cluster, "c", "RemoteConnectionProbe", "True", within=900)
    scene.must(scene.process.starts == 1, "the controllers were started again")


async def _expiring(scene: Scene) -> None:
    now = scene.world.clock.now()
    held = (await scene.client.get(Secret, ObjectKey(NAMESPACE, certificates.secret_name("c", Purpose.CA)))).data
    ca = KeyPair(held["tls.crt"], held["tls.key"])
    key = await FixedKeySource(13).new_key("ECDSA-P256")
    client = certificates.sign(
        ca,
        key,
        common_name="kubernetes-admin",
        organizations=("system:masters",),
        serial=9,
        not_before=now - timedelta(days=300),
        not_after=now + timedelta(days=scene.random.randrange(5, 60)),
        client=True,
    )
    old = certificates.new_kubeconfig("c", f"https://{scene.p.workload('c').endpoint}", ca, client)
    await scene.client.patch(Secret, _KUBECONFIG, {"stringData": {"value": old.decode()}})
    scene.did("The client certificate in the kubeconfig Secret ends in a few weeks.")
    await scene.p.annotate(KubeadmControlPlane, "c", {"example.com/poke": "1"})

    async def is_renewed() -> bool:
        return (await scene.client.get(Secret, _KUBECONFIG)).data["value"] != old

    await scene.until(is_renewed, "the kubeconfig is renewed")
    await scene.until_says(Cluster, "c", "RemoteConnectionProbe", "True")


def _as_text(pair: KeyPair) -> dict[str, str]:
    return {"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()}


CONTROL_PLANE: Final = (
    Incident(
        number=13558,
        title="A control plane cannot be deleted when its template is gone",
        there="The template of the machines had been deleted; every pass over the control plane ended there, its deletion included.",
        here="A deletion needs no template, and ends.",
        adversary="a user who deletes the template first",
        stage=ONE,
        play=_without_template,
    ),
    Incident(
        number=13404,
        title="UpToDate is wrong while a rollout is ordered for later",
        there="Machines were called outdated, or replaced again and again, because of `rolloutAfter`.",
        here="Machines are up to date until the time has come, and are replaced once.",
        adversary="a time in the future",
        stage=ONE,
        play=_rollout_after,
    ),
    Incident(
        number=14086,
        also=("#14219", "#13973", "k0sproject/k0smotron#1555"),
        title="Clusters are upgrading forever because kubelet versions have suffixes",
        there="Versions of kubelets and Machines were compared as strings: where a distribution adds a suffix, Machines were never up to "
        "date and no further upgrade began.",
        here="Versions are compared as releases; suffixes and build metadata of a distribution do not count.",
        adversary="kubelets that report a vendor's suffix",
        stage=TOPOLOGY,
        play=_vendor_versions,
    ),
    Incident(
        number=13939,
        also=("#8948",),
        title="A pass waits forever for a port-forward",
        there="A tunnel to an etcd member was opened and never answered; without a deadline the control plane was not reconciled any more.",
        here="The member counts as unreachable after seconds, and the pass goes on with the others.",
        adversary="a kubelet that accepts a tunnel and says nothing",
        stage=THREE,
        play=_hanging_tunnel,
    ),
    Incident(
        number=13765,
        title="The certificate of etcd is not verified",
        there="Whoever answered in the tunnel was taken for etcd, and was shown the client certificate.",
        here="Only members with a certificate of the cluster's own etcd authority are spoken to.",
        adversary="another program answers in place of etcd",
        stage=ONE,
        play=_foreign_etcd,
    ),
    Incident(
        number=13949,
        title="A kubeconfig in a Secret runs a program in the manager",
        there="A kubeconfig with an exec plugin, put into a Secret, was executed by the controllers with their rights.",
        here="Such a kubeconfig is refused, and the Cluster says which field is the reason.",
        adversary="a tenant who may write the kubeconfig Secret",
        stage=ONE,
        play=_program_in_kubeconfig,
    ),
    Incident(
        number=3113,
        also=("rancher/cluster-api-provider-rke2#520",),
        title="The kubeconfig of a cluster expires",
        there="The client certificate in the kubeconfig Secret was never renewed; a year later the manager and all tools were locked out.",
        here="It is renewed half a year before it ends, and the connection goes on with the new one.",
        adversary="a certificate that ends in a few weeks",
        stage=ONE,
        play=_expiring,
    ),
    Incident(
        project="rancher/cluster-api-provider-rke2",
        number=919,
        title="A rollout is stuck until the manager is restarted",
        there="The certificate authority of a cluster was replaced; the manager kept the client that it had made for the old one.",
        here="A new kubeconfig, or a connection that fails, leads to a new connection without a restart.",
        adversary="the authority of a running cluster is replaced",
        stage=ONE,
        play=_another_authority,
    ),
)
