"""Wire the ClusterResourceSetBinding controller."""

from __future__ import annotations

from typing import Any

from clusterwright.api.addons import ClusterResourceSetBinding
from clusterwright.api.core import Cluster
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.controllers.clusterresourcesetbinding.reconciler import make
from clusterwright.controllers.wiring import Access, ControllerDefinition
from clusterwright.runtime.mapping import itself
from clusterwright.runtime.reconcile import Watch


def _not_paused(old: Any | None, new: Any | None) -> bool:
    obj = new if new is not None else old
    return obj is not None and PAUSED_ANNOTATION not in obj.metadata.annotations


CONTROLLER = ControllerDefinition(
    name="clusterresourcesetbinding",
    kind=ClusterResourceSetBinding,
    watches=(Watch(Cluster, itself, _not_paused),),
    make=make,
    access=(Access("clusterresourcesetbindings.addons.cluster.x-k8s.io", "delete"),),
)
