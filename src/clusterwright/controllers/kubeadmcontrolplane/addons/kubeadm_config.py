"""The ConfigMap kube-system/kubeadm-config, from which joining nodes take the cluster's configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterwright.api import yamlreader
from clusterwright.api.bootstrap import DNS, ClusterConfiguration, Etcd, KubeadmConfigSpec
from clusterwright.api.codec import convert, to_json
from clusterwright.api.copying import replace
from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmcontrolplane.machines.desired import Owner, defaulted_config_spec
from clusterwright.controllers.kubeadmcontrolplane.names import KUBE_SYSTEM
from clusterwright.kubeadm.documents import AdditionalData, api_version_for, cluster_document, marshal, parse_cluster_configuration
from clusterwright.kubeadm.presence import is_defined
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import Conflict

NAME = "kubeadm-config"
KEY = "ClusterConfiguration"
_TRIES = 5

Mutator = Callable[[ClusterConfiguration], ClusterConfiguration]


async def exists(client: Client) -> bool:
    """Return whether kubeadm has written its configuration: the sign of a successful init."""
    return await client.find(ConfigMap, ObjectKey(KUBE_SYSTEM, NAME)) is not None


def wanted_configuration(owner: Owner) -> ClusterConfiguration | None:
    """Return `clusterConfiguration` of the spec with its defaults; None if the spec has none."""
    if not is_defined(convert(owner.config_spec, KubeadmConfigSpec).cluster_configuration):
        return None
    return convert(defaulted_config_spec(owner), KubeadmConfigSpec).cluster_configuration


def mutator(owner: Owner) -> Mutator:
    """Return a function that applies the spec's `clusterConfiguration` to the cluster's; it does nothing without one."""
    wanted = wanted_configuration(owner)

    def mutate(current: ClusterConfiguration) -> ClusterConfiguration:
        if wanted is None:
            return current
        changes: dict[str, Any] = {
            "feature_gates": wanted.feature_gates,
            "api_server": wanted.api_server,
            "controller_manager": wanted.controller_manager,
            "scheduler": wanted.scheduler,
            "certificate_validity_period_days": wanted.certificate_validity_period_days,
            "encryption_algorithm": wanted.encryption_algorithm,
        }
        if wanted.image_repository:
            changes["image_repository"] = wanted.image_repository
        # exactly one kind of etcd: what the spec does not say is kubeadm's default, whatever the document said before
        external = wanted.etcd.external if wanted.etcd is not None and is_defined(wanted.etcd.external) else None
        local = wanted.etcd.local if wanted.etcd is not None and external is None else None
        changes["etcd"] = Etcd(local=local, external=external)
        return replace(current, **changes)

    return mutate


def dns_mutator(repository: str, tag: str) -> Mutator:
    """Return a function that sets where CoreDNS comes from; empty fields are left unchanged."""

    def mutate(current: ClusterConfiguration) -> ClusterConfiguration:
        dns = current.dns or DNS()
        changed = replace(dns, image_repository=repository or dns.image_repository, image_tag=tag or dns.image_tag)
        return replace(current, dns=changed)

    return mutate


async def update(client: Client, version: str, mutate: Mutator) -> None:
    """Apply a change and the version to the ConfigMap; write only if something differs. Raises ApiError or ValueError."""
    parsed = parse_version(version)
    for attempt in range(1, _TRIES + 1):
        found = await client.live.get(ConfigMap, ObjectKey(KUBE_SYSTEM, NAME))
        text = found.data.get(KEY)
        if text is None:
            raise ValueError(f"unable to find {KEY!r} key in kubeadm ConfigMap")
        current, data = parse_cluster_configuration(text)
        changed = mutate(current)
        told = replace(data, kubernetes_version=f"v{parsed}")
        if _same(current, changed) and told == data:
            return
        try:
            body = {"data": {KEY: _render(text, changed, told, version)}, "metadata": {"resourceVersion": found.metadata.resource_version}}
            await client.patch(ConfigMap, found.key, body)
            return
        except Conflict:
            if attempt == _TRIES:
                raise


def _same(a: ClusterConfiguration, b: ClusterConfiguration) -> bool:
    return bool(_without_empty(to_json(a)) == _without_empty(to_json(b)))


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        out = {k: _without_empty(v) for k, v in value.items()}
        return {k: v for k, v in out.items() if v not in ({}, [], None)}
    return value


def _render(old: str, config: ClusterConfiguration, data: AdditionalData, version: str) -> str:
    """Return the document for the new version; unknown fields of kubeadm's document are kept."""
    document = cluster_document(config, data, api_version_for(parse_version(version)))
    before = next((d for d in yamlreader.load_all(old) if isinstance(d, dict) and d.get("kind") == "ClusterConfiguration"), {})
    if before.get("apiVersion") == document["apiVersion"]:
        networking = {**(before.get("networking") or {}), **document["networking"]}
        proxy = before.get("proxy") or document.get("proxy")
        document["networking"] = networking
        if proxy is not None:
            document["proxy"] = proxy
    return marshal(document)
