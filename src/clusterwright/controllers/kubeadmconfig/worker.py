"""Settings for workers only. Pure."""

from __future__ import annotations

from clusterwright.api.bootstrap import JoinConfiguration, NodeRegistrationOptions
from clusterwright.api.copying import replace
from clusterwright.api.kubernetes import Taint
from clusterwright.api.wellknown import UNINITIALIZED_TAINT

UNINITIALIZED = Taint(key=UNINITIALIZED_TAINT, effect="NoSchedule")


def with_uninitialized_taint(config: JoinConfiguration | None) -> JoinConfiguration:
    """Return the settings with the taint that keeps Pods away until the Machine controller has labelled the node."""
    join = config or JoinConfiguration()
    registration = join.node_registration or NodeRegistrationOptions()
    taints = registration.taints or ()
    if any((t.key, t.effect) == (UNINITIALIZED.key, UNINITIALIZED.effect) for t in taints):
        return join
    return replace(join, node_registration=replace(registration, taints=(*taints, UNINITIALIZED)))
