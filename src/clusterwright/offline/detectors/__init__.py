"""Detectors: each reads the known facts and yields causes. The name of a module says what it finds."""

from __future__ import annotations

from typing import Final

from clusterwright.offline.detectors.addresses import addresses
from clusterwright.offline.detectors.boots import boots
from clusterwright.offline.detectors.bootstrap_data import bootstrap_data
from clusterwright.offline.detectors.certificate_authorities import certificate_authorities
from clusterwright.offline.detectors.certificate_expiry import certificate_expiry
from clusterwright.offline.detectors.class_patches import class_patches
from clusterwright.offline.detectors.clusters import clusters
from clusterwright.offline.detectors.contract_breaches import contract_breaches
from clusterwright.offline.detectors.drains import drains
from clusterwright.offline.detectors.extensions import extensions
from clusterwright.offline.detectors.idle_controllers import idle_controllers
from clusterwright.offline.detectors.lost_clusters import lost_clusters
from clusterwright.offline.detectors.machine_pools import machine_pools
from clusterwright.offline.detectors.machines import machines
from clusterwright.offline.detectors.passes import queues
from clusterwright.offline.detectors.preflights import preflights
from clusterwright.offline.detectors.provider_ids import provider_ids
from clusterwright.offline.detectors.quorum import quorum
from clusterwright.offline.detectors.references_gone_wrong import references_gone_wrong
from clusterwright.offline.detectors.refusals import refusals
from clusterwright.offline.detectors.replacements import replacements
from clusterwright.offline.detectors.replica_writers import replica_writers
from clusterwright.offline.detectors.resource_sets import resource_sets
from clusterwright.offline.detectors.workload_objects import workload_objects
from clusterwright.offline.known import Detector

FIRST: Final[tuple[tuple[Detector, ...], ...]] = (
    (contract_breaches,),  # finds also kinds of other groups that nobody reconciles
    (idle_controllers, preflights, quorum, boots, refusals, extensions),
)
"""These give complaints their reasons, one group after the other; the others read the result."""
DETECTORS: Final[tuple[Detector, ...]] = (
    drains,
    bootstrap_data,
    certificate_authorities,
    certificate_expiry,
    provider_ids,
    lost_clusters,
    clusters,
    machine_pools,
    machines,
    replacements,
    workload_objects,
    references_gone_wrong,
    class_patches,
    resource_sets,
    addresses,
    replica_writers,
    queues,
)
