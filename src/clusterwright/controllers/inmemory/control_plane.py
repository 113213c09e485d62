"""The control plane of a simulated machine: its etcd member, API server and other static Pods."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from random import Random
from typing import Final

from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.inmemory.scene import Scene
from clusterwright.inmemory import boot, bootstrap, etcd, faults, objects, ports
from clusterwright.inmemory.cluster import SimulatedCluster
from clusterwright.inmemory.distributions import BOOT, CLIENT_AUTHORITIES, HOST, METADATA, Distribution, distribution
from clusterwright.kubeadm.certificates import CertificateError, KeyPair, Purpose, decode_certificates, secret_name
from clusterwright.runtime.client import Client

_BORN_WITH: Final = {
    faults.ETCD_UNNAMED: etcd.UNNAMED,
    faults.ETCD_LEARNER: etcd.LEARNER,
    faults.ETCD_STOPS: etcd.STOPPED,
}
"""Faults that a member shows from its first moment."""


class ControlPlane:
    """Starts the processes of control-plane machines, from the Secrets in the management cluster."""

    def __init__(self, client: Client, random: Random) -> None:
        self._client = client
        self._random = random

    async def user_data(self, scene: Scene) -> bootstrap.BootstrapData | Distribution:
        """Return kubeadm's bootstrap data, parsed, or the distribution whose data are booted as they are; raises BootFailure."""
        name = scene.data_secret_name or ""
        secret = await self._client.find(Secret, ObjectKey(scene.obj.metadata.namespace, name))
        if secret is None or "value" not in secret.data:
            raise bootstrap.BootFailure(f"user data: Secret {name} has no value")
        foreign = distribution(scene.config_kind, secret.data["value"], scene.obj.metadata.annotations.get(BOOT, ""))
        if foreign is not None:
            return foreign
        format = secret.data.get("format", b"").decode("utf-8", "replace")
        return bootstrap.parse(secret.data["value"], format, scene.name, await self._metadata(scene))

    async def _metadata(self, scene: Scene) -> Mapping[str, str]:
        """Return the metadata of the machine; raises BootFailure if they cannot be read."""
        annotations = scene.obj.metadata.annotations
        name = annotations.get(METADATA, "")
        secret = await self._client.find(Secret, ObjectKey(scene.obj.metadata.namespace, name)) if name else None
        own = bootstrap.metadata(secret.data.get("metaData", b"")) if secret is not None else {}
        return {**bootstrap.metadata(annotations.get(HOST, "").encode()), **own}

    async def authority(self, scene: Scene, purpose: Purpose) -> KeyPair | None:
        """Return the certificate authority of a purpose from its Secret; None if there is none."""
        key = ObjectKey(scene.cluster.namespace, secret_name(scene.cluster.name, purpose))
        secret = await self._client.find(Secret, key)
        if secret is None:
            return None
        return KeyPair(secret.data.get("tls.crt", b""), secret.data.get("tls.key", b""))

    async def start_etcd(self, scene: Scene) -> None:
        """Start the etcd member of the machine, unless etcd is external."""
        authority = await self.authority(scene, Purpose.ETCD_CA)
        if authority is None or not authority.key:
            return  # etcd is external
        simulated = scene.simulated
        await simulated.add_etcd_certificate(scene.name, authority)
        if not simulated.has("v1", "Pod", "kube-system", f"etcd-{scene.name}"):
            annotations = etcd.new_member(simulated.members(), self._random, scene.now)
            annotations |= {mark: "" for fault, mark in _BORN_WITH.items() if fault in scene.faults}
            simulated.ensure(objects.static_pod("etcd", scene.name, version=scene.version, now=scene.now, annotations=annotations))
            await simulated.settle()

    async def start_api_server(self, scene: Scene) -> None:
        """Start the API server and the other components of the machine. Raises CertificateError."""
        authority = await self.authority(scene, Purpose.CA)
        if authority is None:
            raise CertificateError(f"Secret {secret_name(scene.cluster.name, Purpose.CA)} does not exist")
        data = await self._known_data(scene)
        if not scene.simulated.has("v1", "Pod", "kube-system", f"kube-apiserver-{scene.name}"):
            port = boot.api_server_port(data) if isinstance(data, bootstrap.BootstrapData) else ports.API_SERVER_PORT
            where = {objects.ADVERTISED: f"{scene.simulated.address_of(scene.name)}:{port}"}
            scene.simulated.ensure(
                objects.static_pod("kube-apiserver", scene.name, version=scene.version, now=scene.now, annotations=where)
            )
        for component in ("kube-scheduler", "kube-controller-manager"):
            scene.simulated.ensure(objects.static_pod(component, scene.name, version=scene.version, now=scene.now, annotations={}))
        if not scene.faults & {faults.NODE_DIES, faults.API_SERVER_STOPS}:
            names = await _certificate_names(scene.simulated)
            clients = await self._client_authorities(scene)
            await scene.simulated.start_api_server(scene.name, authority, names, version=scene.version, clients=clients)
            self._leave_traces(scene, data)

    async def _known_data(self, scene: Scene) -> bootstrap.BootstrapData | Distribution | None:
        try:
            return await self.user_data(scene)
        except bootstrap.BootFailure:  # it has booted, long ago perhaps, with data that are gone
            return None

    @staticmethod
    def _leave_traces(scene: Scene, data: bootstrap.BootstrapData | Distribution | None) -> None:
        """Create what the supervisor of a distribution leaves in its cluster, where providers look for it."""
        serving = scene.simulated.serving
        if not isinstance(data, Distribution) or not data.serving_secret or serving is None:
            return
        pair = {"tls.crt": serving.certificate.certificate, "tls.key": serving.certificate.key}
        encoded = {name: base64.b64encode(value).decode() for name, value in pair.items()}
        metadata = {"name": data.serving_secret, "namespace": "kube-system"}
        scene.simulated.ensure({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": encoded})

    async def _client_authorities(self, scene: Scene) -> bytes:
        """Return the certificates of further authorities of clients, which some distributions have. Raises CertificateError."""
        found = b""
        for suffix in CLIENT_AUTHORITIES:
            secret = await self._client.find(Secret, ObjectKey(scene.cluster.namespace, f"{scene.cluster.name}-{suffix}"))
            if secret is not None and (pem := secret.data.get("tls.crt", b"")):
                decode_certificates(pem)
                found += pem
        return found

    async def keep_running(self, scene: Scene) -> None:
        """Keep a deleted machine running, also after a restart of ours, but start nothing new."""
        if scene.is_control_plane and scene.simulated.has("v1", "Pod", "kube-system", f"kube-apiserver-{scene.name}"):
            await self.start_etcd(scene)
            await self.start_api_server(scene)


async def _certificate_names(simulated: SimulatedCluster) -> tuple[str, ...]:
    """Return further names for the API server's certificate, from what `kubeadm init` left in the cluster; read on demand."""
    if simulated.serving is not None:
        return ()
    found = await simulated.client.find(ConfigMap, ObjectKey("kube-system", "kubeadm-config"))
    return boot.certificate_names(found.data.get("ClusterConfiguration", "")) if found is not None else ()
