"""Defaults of the Docker clusters. The Docker kinds have no full models: users provide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import Default, Review, at
from clusterwright.admission.sets import below
from clusterwright.api.constraints import OPEN
from clusterwright.api.meta import GroupVersionKind, Json, Object
from clusterwright.api.scheme import Resource, gvk_of
from clusterwright.conversion.kinds import hub_type

_API_VERSION: Final = "infrastructure.cluster.x-k8s.io/v1beta2"


class DockerCluster(Object):
    """The fields of a DockerCluster that admission reads."""

    constraints: ClassVar[tuple[object, ...]] = (OPEN,)
    api_version: str = _API_VERSION
    kind: str = "DockerCluster"


class DockerClusterTemplate(Object):
    """The fields of a DockerClusterTemplate that admission reads."""

    constraints: ClassVar[tuple[object, ...]] = (OPEN,)
    api_version: str = _API_VERSION
    kind: str = "DockerClusterTemplate"


@dataclass(frozen=True, kw_only=True)
class DockerHook(Hook):
    """A hook that only defaults."""

    plural: str
    on: frozenset[str] = frozenset()

    @property
    def resource(self) -> Resource:
        """The resource that the hook handles."""
        return Resource(gvk_of(self.model), self.plural)


def _port(*where: str) -> Default:
    """Return the default port of the endpoint. Defaults are written as the type writes them, including the load balancer."""

    def fill(obj: Json, review: Review) -> None:
        if at(obj, *where, "controlPlaneEndpoint", "port"):
            return
        below(obj, *where, "controlPlaneEndpoint")["port"] = 6443
        kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
        written = hub_type(kind.group, kind.kind)
        obj.update(written.write(written.read(obj)))

    return Default("", ".".join((*where, "controlPlaneEndpoint", "port")), fill)


DOCKER_CLUSTER: Final = DockerHook(model=DockerCluster, plural="dockerclusters", defaults=(_port("spec"),))
DOCKER_CLUSTER_TEMPLATE: Final = DockerHook(
    model=DockerClusterTemplate, plural="dockerclustertemplates", defaults=(_port("spec", "template", "spec"),)
)
