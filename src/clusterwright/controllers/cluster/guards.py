"""The guards of the Cluster's tables, in the seeds' words."""

from __future__ import annotations

from collections.abc import Callable

from clusterwright.conditions import is_true, v1beta1
from clusterwright.controllers.cluster.providers import Found, Garbled, Lookup
from clusterwright.controllers.cluster.snapshot import ClusterSnapshot
from clusterwright.controllers.kit.lookup import Missing, NotReferenced, Unreadable, subject
from clusterwright.tables import Guard, Subject, guard

Snapshot = ClusterSnapshot


@guard("!DeletionTimestamp.IsZero()")
def deleting(c: Snapshot) -> bool:
    return c.deleting


@guard("spec.topology defined")
def topology(c: Snapshot) -> bool:
    return c.has_topology


@guard("getDescendantsSucceeded")
def descendants_listed(c: Snapshot) -> bool:
    return c.descendants is not None


@guard("status.initialization.infrastructureProvisioned")
def provisioned(c: Snapshot) -> bool:
    return c.provisioned


@guard("status.initialization.controlPlaneInitialized")
def initialized(c: Snapshot) -> bool:
    return c.initialized


@guard("spec.controlPlaneEndpoint valid")
def endpoint_valid(c: Snapshot) -> bool:
    return c.endpoint_valid


# A lookup has exactly one of four outcomes.


def the_infrastructure(c: Snapshot) -> tuple[Subject, ...]:
    """Return the objects that infrastructure guards read."""
    return subject(c.cluster.spec.infrastructure_ref, c.metadata.namespace)


def the_control_plane(c: Snapshot) -> tuple[Subject, ...]:
    """Return the objects that control-plane guards read."""
    return subject(c.cluster.spec.control_plane_ref, c.metadata.namespace)


@guard("spec.infrastructureRef not defined")
def no_infrastructure_ref(c: Snapshot) -> bool:
    return isinstance(c.infrastructure, NotReferenced)


@guard("spec.infrastructureRef defined && infrastructure not found (NotFound)", about=the_infrastructure)
def infrastructure_missing(c: Snapshot) -> bool:
    return isinstance(c.infrastructure, Missing)


@guard("spec.infrastructureRef defined && infrastructure not found && error occurred (not NotFound)", about=the_infrastructure)
def infrastructure_unreadable(c: Snapshot) -> bool:
    return isinstance(c.infrastructure, Unreadable)


@guard("spec.infrastructureRef defined && infrastructure exists", about=the_infrastructure)
def infrastructure_found(c: Snapshot) -> bool:
    return isinstance(c.infrastructure, Found)


@guard("spec.controlPlaneRef not defined")
def no_control_plane_ref(c: Snapshot) -> bool:
    return isinstance(c.control_plane, NotReferenced)


@guard("spec.controlPlaneRef defined && controlPlane not found (NotFound)", about=the_control_plane)
def control_plane_missing(c: Snapshot) -> bool:
    return isinstance(c.control_plane, Missing)


@guard("spec.controlPlaneRef defined && controlPlane not found && error occurred (not NotFound)", about=the_control_plane)
def control_plane_unreadable(c: Snapshot) -> bool:
    return isinstance(c.control_plane, Unreadable)


@guard("spec.controlPlaneRef defined && controlPlane exists", about=the_control_plane)
def control_plane_found(c: Snapshot) -> bool:
    return isinstance(c.control_plane, Found)


INFRASTRUCTURE = (no_infrastructure_ref, infrastructure_missing, infrastructure_unreadable, infrastructure_found)
CONTROL_PLANE = (no_control_plane_ref, control_plane_missing, control_plane_unreadable, control_plane_found)


# What a provider's object says.


def asks(text: str, lookup: Callable[[Snapshot], Lookup], test: Callable[[Found], bool]) -> Guard[Snapshot]:
    """Return a guard about an object that was found; without the object it is false."""
    about = the_infrastructure if lookup is infrastructure else the_control_plane

    def ask(c: Snapshot) -> bool:
        found = lookup(c)
        return isinstance(found, Found) and test(found)

    return Guard(text, ask, about=about)


def infrastructure(c: Snapshot) -> Lookup:
    """Return the objects that infrastructure guards name."""
    return c.infrastructure


def control_plane(c: Snapshot) -> Lookup:
    """Return the objects that control-plane guards name."""
    return c.control_plane


infrastructure_garbled = asks("error reading infrastructure provisioned", infrastructure, lambda o: isinstance(o.ready, Garbled))
infrastructure_ready = asks("infrastructure provisioned == true", infrastructure, lambda o: o.ready is True)
infrastructure_deleting = asks("infrastructure is being deleted", infrastructure, lambda o: o.deleting)
infrastructure_endpoint_garbled = asks("error reading infrastructure endpoint", infrastructure, lambda o: isinstance(o.endpoint, Garbled))
failure_domains_garbled = asks("error reading failureDomains", infrastructure, lambda o: isinstance(o.failure_domains, Garbled))
control_plane_garbled = asks(
    "spec.controlPlaneRef defined && controlPlane exists && error reading status.initialized (not field not found)",
    control_plane,
    lambda o: isinstance(o.ready, Garbled),
)
control_plane_ready = asks(
    "spec.controlPlaneRef defined && controlPlane exists && status.initialized == true", control_plane, lambda o: o.ready is True
)
control_plane_not_ready = asks(
    "spec.controlPlaneRef defined && controlPlane exists && status.initialized == false", control_plane, lambda o: o.ready is False
)
control_plane_deleting = asks("controlPlane is being deleted", control_plane, lambda o: o.deleting)
control_plane_endpoint_garbled = asks("error reading controlPlane endpoint", control_plane, lambda o: isinstance(o.endpoint, Garbled))


@guard("ControlPlaneInitialized condition already True")
def already_initialized(c: Snapshot) -> bool:
    return is_true(c.conditions, "ControlPlaneInitialized")


@guard("v1beta1 ControlPlaneInitialized condition already True")
def already_initialized_v1beta1(c: Snapshot) -> bool:
    return v1beta1.is_true(c.v1beta1_conditions, "ControlPlaneInitialized")
