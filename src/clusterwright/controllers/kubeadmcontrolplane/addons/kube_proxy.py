"""Keep kube-proxy at the version of the control plane."""

from __future__ import annotations

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wellknown import SKIP_KUBE_PROXY_ANNOTATION
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.addons.images import Image, canonical, containers_of, familiar, tag_for
from clusterwright.controllers.kubeadmcontrolplane.names import KUBE_SYSTEM
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError

DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
KUBE_PROXY = "kube-proxy"


def kube_proxy_image(current: str, version: str, repository: str) -> str:
    """Return the image that kube-proxy should run; raises ValueError."""
    image = Image.parse(current)
    if image.digest:
        raise ValueError(f"unable to parse image name {current!r}: it is pinned by its digest")
    name = familiar(f"{repository.rstrip('/')}/{image.name}") if repository else canonical(current.removesuffix(f":{image.tag}"))
    wanted = f"{name}:{tag_for(version)}"
    Image.parse(wanted)
    return wanted


async def update_kube_proxy(seen: ControlPlaneSnapshot, client: Client) -> None:
    """Set kube-proxy to the version of the control plane; raises PassFailed."""
    if SKIP_KUBE_PROXY_ANNOTATION in seen.object.metadata.annotations:
        return
    try:
        daemon_set = await client.find(DAEMON_SET, ObjectKey(KUBE_SYSTEM, KUBE_PROXY))
        if daemon_set is None:
            return
        containers = containers_of(daemon_set)
        proxy = next((c for c in containers if c.get("name") == KUBE_PROXY), None)
        if proxy is None:
            return
        repository = str((seen.owner.config_spec.get("clusterConfiguration") or {}).get("imageRepository") or "")
        image = kube_proxy_image(str(proxy.get("image", "")), seen.owner.version, repository)
        if image == proxy.get("image"):
            return
        proxy["image"] = image
        body: Json = {
            "metadata": {"resourceVersion": daemon_set.metadata.resource_version},
            "spec": {"template": {"spec": {"containers": containers}}},
        }
        await client.patch(DAEMON_SET, daemon_set.key, body)
    except (ApiError, ValueError) as error:
        raise PassFailed(f"failed to update kube-proxy daemonset: {error}") from error
