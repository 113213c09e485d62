"""kube-proxy and CoreDNS: what kubeadm installed once and nobody else upgrades."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import kubeadm_config_map, names
from clusterwright.controllers.kubeadmcontrolplane.scope import CONFIG_MAP, KUBE_SYSTEM, Scope
from clusterwright.kubeadm import corefile
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError

DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
CLUSTER_ROLE_BINDING = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")

KUBE_PROXY = "kube-proxy"
COREDNS = "coredns"
COREFILE, COREFILE_BACKUP = "Corefile", "Corefile-backup"
CONFIG_VOLUME = "config-volume"
_HUB = "docker.io"
_DEFAULT_REPOSITORIES = ("k8s.gcr.io", "registry.k8s.io")
_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PATH}(?:/{_PATH})*)(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?"
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image reference: everything before the last slash, the last part, the tag."""

    repository: str
    name: str
    tag: str = ""
    digest: str = ""

    @staticmethod
    def parse(text: str) -> Image:
        """Read a reference; raises ValueError."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise ValueError(f"couldn't parse image name: {text!r} is no reference")
        repository, _, name = match["name"].rpartition("/")
        return Image(repository, name, match["tag"] or "", match["digest"] or "")

    def __str__(self) -> str:
        head = f"{self.repository}/{self.name}" if self.repository else self.name
        return f"{head}:{self.tag}" if self.tag else head


def canonical(name: str) -> str:
    """A repository with its registry: what names none is on Docker Hub, and official there if it has no path."""
    registry, slash, path = name.partition("/")
    if not slash or (registry != "localhost" and not re.search(r"[.:A-Z]", registry)):
        registry, path = _HUB, name
    if registry in {_HUB, f"index.{_HUB}"}:
        return f"{_HUB}/{path}" if "/" in path else f"{_HUB}/library/{path}"
    return f"{registry}/{path}"


def familiar(name: str) -> str:
    """A repository as people write it: Docker Hub goes without saying."""
    if not name.startswith(f"{_HUB}/"):
        return name
    path = name.removeprefix(f"{_HUB}/")
    short = path.removeprefix("library/")
    return short if "/" not in short else path


def tag_for(version: str) -> str:
    """A version as an image tag: what a tag may not hold becomes an underscore."""
    return re.sub(r"[^-a-zA-Z0-9_.]", "_", version)


def kube_proxy_image(current: str, version: str, repository: str) -> str:
    """The image that kube-proxy should run; raises ValueError."""
    image = Image.parse(current)
    if image.digest:
        raise ValueError(f"unable to parse image name {current!r}: it is pinned by its digest")
    name = familiar(f"{repository.rstrip('/')}/{image.name}") if repository else canonical(current.removesuffix(f":{image.tag}"))
    wanted = f"{name}:{tag_for(version)}"
    Image.parse(wanted)
    return wanted


def _containers(workload: Unstructured) -> list[Json]:
    return [dict(c) for c in workload.at("spec", "template", "spec", "containers") or ()]


async def update_kube_proxy(scope: Scope, client: Client) -> None:
    """Let kube-proxy follow the version; raises PassFailed."""
    if names.SKIP_KUBE_PROXY in scope.annotations:
        return
    try:
        daemon_set = await client.find(DAEMON_SET, ObjectKey(KUBE_SYSTEM, KUBE_PROXY))
        if daemon_set is None:
            return
        containers = _containers(daemon_set)
        proxy = next((c for c in containers if c.get("name") == KUBE_PROXY), None)
        if proxy is None:
            return
        repository = str((scope.owner.config_spec.get("clusterConfiguration") or {}).get("imageRepository") or "")
        image = kube_proxy_image(str(proxy.get("image", "")), scope.owner.version, repository)
        if image == proxy.get("image"):
            return
        proxy["image"] = image
        await client.patch(DAEMON_SET, daemon_set.key, _containers_patch(containers, daemon_set))
    except (ApiError, ValueError) as error:
        raise PassFailed(f"failed to update kube-proxy daemonset: {error}") from error


def _containers_patch(containers: list[Json], workload: Unstructured) -> Json:
    return {
        "metadata": {"resourceVersion": workload.metadata.resource_version},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


# ------------------------------------------------------------------------------------------- CoreDNS


@dataclass(frozen=True, slots=True)
class CorednsUpgrade:
    """What an upgrade of CoreDNS changes: the image, and the versions for the Corefile."""

    image: str
    from_version: Version
    to_version: Version
    repository: str
    tag: str


def coredns_upgrade(current: str, configuration: Json) -> CorednsUpgrade | None:
    """The upgrade that the spec asks for; None if the image is right. Raises ValueError."""
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
    """The version that an image tag names; an underscore stands for a plus. Raises ValueError."""
    text = tag.replace("_", "+")
    if not re.match(r"v?\d+\.\d+\.\d+", text):
        raise ValueError(f"failed to parse CoreDNS version from {tag!r}")
    return parse_version(text)


async def update_coredns(scope: Scope, client: Client) -> None:
    """Upgrade CoreDNS and its Corefile so that it serves at every moment; raises PassFailed."""
    configuration = scope.owner.config_spec.get("clusterConfiguration") or {}
    if names.SKIP_COREDNS in scope.annotations or kubeadm_config_map.wanted_configuration(scope.owner) is None:
        return
    try:
        config_map = await client.live.find(CONFIG_MAP, ObjectKey(KUBE_SYSTEM, COREDNS))
        if config_map is None:
            return
        text = config_map.at("data", COREFILE)
        if not isinstance(text, str):
            raise ValueError("unable to find the CoreDNS Corefile data")
        deployment = await client.live.find(DEPLOYMENT, ObjectKey(KUBE_SYSTEM, COREDNS))
        if deployment is None:
            return
        container = next((c for c in _containers(deployment) if c.get("name") == COREDNS), None)
        if container is None:
            raise ValueError("failed to update coredns deployment: deployment spec has no coredns container")
        upgrade = coredns_upgrade(str(container.get("image", "")), configuration)
        if upgrade is not None:
            await _upgrade(scope, client, config_map, deployment, upgrade)
    except (ApiError, ValueError) as error:
        raise PassFailed(f"failed to update CoreDNS deployment: {error}") from error


async def _upgrade(scope: Scope, client: Client, config_map: Unstructured, deployment: Unstructured, upgrade: CorednsUpgrade) -> None:
    """The old Corefile serves from its backup key while the new one is put in place; then image and key switch at once."""
    current = config_map.at("data", COREFILE_BACKUP) or config_map.at("data", COREFILE)
    if config_map.at("data", COREFILE_BACKUP) is None or not _reads(deployment, COREFILE_BACKUP):
        current = config_map.at("data", COREFILE)
    # what kubeadm reads is right also where the Corefile cannot be brought to this version: then CoreDNS alone stays as it is
    await kubeadm_config_map.update(client, scope.owner.version, kubeadm_config_map.dns_mutator(upgrade.repository, upgrade.tag))
    migrated = corefile.migrate(str(current), upgrade.from_version, upgrade.to_version)
    await client.patch(CONFIG_MAP, config_map.key, {"data": {COREFILE: current, COREFILE_BACKUP: current}})
    await client.patch(DEPLOYMENT, deployment.key, _deployment_patch(deployment, COREFILE_BACKUP, None))
    await client.patch(CONFIG_MAP, config_map.key, {"data": {COREFILE: migrated, COREFILE_BACKUP: current}})
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
        containers = _containers(deployment)
        for container in containers:
            if container.get("name") == COREDNS:
                container["image"] = image
        spec["containers"] = containers
    return {"spec": {"template": {"spec": spec}}}


# --------------------------------------------------------------------------------------- permissions

_BINDINGS: tuple[tuple[str, str, Json], ...] = (
    ("kubeadm:cluster-admins", "cluster-admin", {"kind": "Group", "name": "kubeadm:cluster-admins"}),
    ("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", {"kind": "User", "name": "kube-apiserver-kubelet-client"}),
)


async def ensure_permissions(client: Client) -> None:
    """Create the bindings that newer kubeadm versions count on; existing ones are left as they are. Raises ApiError."""
    for name, role, subject in _BINDINGS:
        if await client.find(CLUSTER_ROLE_BINDING, ObjectKey("", name)) is not None:
            continue
        await client.create(
            {
                "apiVersion": CLUSTER_ROLE_BINDING.api_version,
                "kind": CLUSTER_ROLE_BINDING.kind,
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", **subject}],
            }
        )
