"""Upgrade CoreDNS as the spec asks, without interrupting its service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import SKIP_COREDNS_ANNOTATION
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.addons import kubeadm_config
from clusterwright.controllers.kubeadmcontrolplane.addons.images import Image, canonical, containers_of
from clusterwright.controllers.kubeadmcontrolplane.names import KUBE_SYSTEM
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.kubeadm import corefile
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
COREDNS = "coredns"
COREFILE, COREFILE_BACKUP = "Corefile", "Corefile-backup"
CONFIG_VOLUME = "config-volume"
_DEFAULT_REPOSITORIES = ("k8s.gcr.io", "registry.k8s.io")


@dataclass(frozen=True, slots=True)
class CorednsUpgrade:
    """The changes of a CoreDNS upgrade: the image, and the versions for the Corefile."""

    image: str
    from_version: Version
    to_version: Version
    repository: str
    tag: str


def coredns_upgrade(current: str, configuration: Json) -> CorednsUpgrade | None:
    """Return the upgrade that the spec asks for; None if the image is up to date. Raises ValueError."""
    image = Image.parse(current)
    repository = f"{image.repository}/{image.name}" if image.repository else image.name
    if canonical(repository) != repository:
        raise ValueError(f"couldn't parse image name: {current!r} does not name its registry")
    if not image.tag:
        raise ValueError(f"failed to update coredns deployment: does not have a valid image tag: {current!r}")
    from_version = coredns_version(image.tag)
    dns = configuration.get("dns") or {}
    repository = str(dns.get("imageRepository") or configuration.get("imageRepository") or image.repository)
    # the name coredns/coredns has its first half in what we call the repository
    explicit = bool(dns.get("imageRepository") or configuration.get("imageRepository"))
    repository = repository.rstrip("/")
    tag = str(dns.get("imageTag") or image.tag)
    to_version = coredns_version(tag)
    name = image.name
    if repository in _DEFAULT_REPOSITORIES and to_version.release >= (1, 8, 0):
        name = "coredns/coredns"
    elif (
        explicit
        and image.repository.endswith("/coredns")
        and image.name == COREDNS
        and image.repository.rpartition("/")[0] in _DEFAULT_REPOSITORIES
    ):
        name = COREDNS
    wanted = f"{repository}/{name}:{tag}" if repository else f"{name}:{tag}"
    if wanted == current:
        return None
    corefile.check_upgrade(from_version, to_version)
    return CorednsUpgrade(wanted, from_version, to_version, str(dns.get("imageRepository") or ""), str(dns.get("imageTag") or ""))


def coredns_version(tag: str) -> Version:
    """Return the version that an image tag names; an underscore stands for a plus. Raises ValueError."""
    text = tag.replace("_", "+")
    if not re.match(r"v?\d+\.\d+\.\d+", text):
        raise ValueError(f"failed to parse CoreDNS version from {tag!r}")
    return parse_version(text)


async def update_coredns(seen: ControlPlaneSnapshot, client: Client) -> None:
    """Upgrade CoreDNS and its Corefile without interrupting its service; raises PassFailed."""
    configuration = seen.owner.config_spec.get("clusterConfiguration") or {}
    if SKIP_COREDNS_ANNOTATION in seen.object.metadata.annotations or kubeadm_config.wanted_configuration(seen.owner) is None:
        return
    try:
        config_map = await client.live.find(ConfigMap, ObjectKey(KUBE_SYSTEM, COREDNS))
        if config_map is None:
            return
        if COREFILE not in config_map.data:
            raise ValueError("unable to find the CoreDNS Corefile data")
        deployment = await client.live.find(DEPLOYMENT, ObjectKey(KUBE_SYSTEM, COREDNS))
        if deployment is None:
            return
        container = next((c for c in containers_of(deployment) if c.get("name") == COREDNS), None)
        if container is None:
            raise ValueError("failed to update coredns deployment: deployment spec has no coredns container")
        upgrade = coredns_upgrade(str(container.get("image", "")), configuration)
        if upgrade is not None:
            await _upgrade(seen, client, config_map, deployment, upgrade)
    except (ApiError, ValueError) as error:
        raise PassFailed(f"failed to update CoreDNS deployment: {error}") from error


async def _upgrade(
    seen: ControlPlaneSnapshot, client: Client, config_map: ConfigMap, deployment: Unstructured, upgrade: CorednsUpgrade
) -> None:
    """Serve the old Corefile from its backup key while the new one is written; then switch image and key at once."""
    backup = config_map.data.get(COREFILE_BACKUP)
    current = backup if backup and _reads(deployment, COREFILE_BACKUP) else config_map.data[COREFILE]
    # what kubeadm reads is right also where the Corefile cannot be brought to this version: then CoreDNS alone stays as it is
    await kubeadm_config.update(client, seen.owner.version, kubeadm_config.dns_mutator(upgrade.repository, upgrade.tag))
    migrated = corefile.migrate(current, upgrade.from_version, upgrade.to_version)
    await client.patch(ConfigMap, config_map.key, {"data": {COREFILE: current, COREFILE_BACKUP: current}})
    await client.patch(DEPLOYMENT, deployment.key, _deployment_patch(deployment, COREFILE_BACKUP, None))
    await client.patch(ConfigMap, config_map.key, {"data": {COREFILE: migrated, COREFILE_BACKUP: current}})
    await client.patch(DEPLOYMENT, deployment.key, _deployment_patch(deployment, COREFILE, upgrade.image))


def _volumes(deployment: Unstructured, key: str) -> list[Json]:
    volumes: list[Json] = [dict(v) for v in deployment.at("spec", "template", "spec", "volumes") or ()]
    for volume in volumes:
        source = volume.get("configMap")
        if volume.get("name") == CONFIG_VOLUME and isinstance(source, dict):
            volume["configMap"] = {**source, "items": [{"key": key, "path": COREFILE}]}
    return volumes


def _reads(deployment: Unstructured, key: str) -> bool:
    volumes: list[Any] = deployment.at("spec", "template", "spec", "volumes") or []
    items = [i for v in volumes if v.get("name") == CONFIG_VOLUME for i in (v.get("configMap") or {}).get("items") or ()]
    return any(i.get("key") == key for i in items)


def _deployment_patch(deployment: Unstructured, key: str, image: str | None) -> Json:
    spec: Json = {"volumes": _volumes(deployment, key)}
    if image is not None:
        containers = containers_of(deployment)
        for container in containers:
            if container.get("name") == COREDNS:
                container["image"] = image
        spec["containers"] = containers
    return {"spec": {"template": {"spec": spec}}}
