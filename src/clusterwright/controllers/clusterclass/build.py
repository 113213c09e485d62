"""Wire the ClusterClass controller: its watches, and the classes that each change reconciles."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.contract import crd_name
from clusterwright.api.core import ClusterClass
from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.api.selectors import InvalidSelector, parsed
from clusterwright.controllers.clusterclass.reconciler import make
from clusterwright.controllers.clusterclass.snapshot import references
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.wiring import Access, ControllerDefinition, providers
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.predicates import changed
from clusterwright.runtime.reconcile import Watch


async def classes_of_extension(config: ExtensionConfig, reader: Reader) -> Sequence[ObjectKey]:
    """Return the classes that discover variables with the extension, in Namespaces that it serves."""
    selector = config.spec.namespace_selector
    if selector is None:
        return ()
    found = []
    for cluster_class in await reader.list(ClusterClass):
        handlers = (p.external.discover_variables_extension for p in cluster_class.spec.patches if p.external is not None)
        if any(h.partition(".")[2] == config.metadata.name for h in handlers):
            try:
                namespace = await reader.get(Namespace, ObjectKey("", cluster_class.metadata.namespace))
                if parsed(selector).matches(namespace.metadata.labels):
                    found.append(cluster_class.key)
            except (ApiError, InvalidSelector):
                continue
    return tuple(found)


async def classes_of_crd(crd: CustomResourceDefinitionMeta, reader: Reader) -> Sequence[ObjectKey]:
    """Return the classes that name a template of the kind: its newest version may have changed."""
    found = []
    for cluster_class in await reader.list(ClusterClass):
        kinds = (GroupVersionKind.of(r.api_version, r.kind) for r in references(cluster_class))
        if any(crd_name(k.group, k.kind) == crd.metadata.name for k in kinds):
            found.append(cluster_class.key)
    return tuple(found)


CONTROLLER = ControllerDefinition(
    name="clusterclass",
    kind=ClusterClass,
    watches=(
        Watch(ExtensionConfig, classes_of_extension, why="the extension may describe other variables now"),
        Watch(CustomResourceDefinitionMeta, classes_of_crd, changed(lambda crd: crd.metadata.labels), why="labels name the newest version"),
    ),
    make=make,
    access=(*providers("patch", "infrastructure", "bootstrap", "controlplane"), Access("namespaces", "get")),
    gate="ClusterTopology",
)
