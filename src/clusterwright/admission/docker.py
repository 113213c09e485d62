"""Defaults of the Docker kinds, which have no model: nothing here acts on them, users bring them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

from clusterwright.admission.sets import below
from clusterwright.api.meta import Json
from clusterwright.api.versions import HUB
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.conversion import convert_for_admission
from clusterwright.apiserver.core import Core
from clusterwright.conversion.kinds import hub_type

GROUP: Final = "infrastructure.cluster.x-k8s.io"
_SPECS: Final[Mapping[str, tuple[str, ...]]] = {"DockerCluster": ("spec",), "DockerClusterTemplate": ("spec", "template", "spec")}


class DockerKinds:
    """A link that fills in the port of DockerClusters; they come out as their type is written."""

    async def mutate(self, attributes: Attributes) -> None:
        """Fill in defaults."""
        resource, obj = attributes.resource, attributes.object
        if resource.group != GROUP or resource.kind not in _SPECS or attributes.subresource or obj is None:
            return
        server: Core = attributes.server
        versions, known = server.registry.versions(resource), resource.version == HUB
        seen = obj if known else (await convert_for_admission(versions, [copy.deepcopy(obj)], f"{GROUP}/{HUB}"))[0]
        if not _fill(seen, _SPECS[resource.kind]):
            return
        written = hub_type(GROUP, resource.kind)
        seen = {**seen, **written.write(written.read(seen))}
        attributes.object = seen if known else (await convert_for_admission(versions, [seen], resource.api_version))[0]

    async def validate(self, attributes: Attributes) -> None:
        """They have no rules yet."""


def _fill(obj: Json, where: tuple[str, ...]) -> bool:
    spec = below(obj, *where)
    endpoint = below(spec, "controlPlaneEndpoint")
    if endpoint.get("port"):
        return False
    endpoint["port"] = 6443
    return True
