"""Read infrastructure and control-plane objects by contract. Pure, and defensive: any field may have any type."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from clusterwright.api.contract import (
    ABSENT,
    CONTRACTS,
    ENDPOINT,
    FAILURE_MESSAGE,
    FAILURE_REASON,
    Malformed,
    Path,
    Read,
    Value,
    or_none,
)
from clusterwright.api.copying import replace
from clusterwright.api.core import APIEndpoint, FailureDomain, ReplicaCounters
from clusterwright.api.meta import Condition, Unstructured, V1Beta1Condition
from clusterwright.conditions import InvalidConditions, conditions_of, v1beta1
from clusterwright.controllers.kit import lookup
from clusterwright.controllers.kit.lookup import Missing, NotReferenced, Unreadable
from clusterwright.controllers.version_counts import as_reported
from clusterwright.kubeadm.reached import reported_versions

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Garbled:
    """A field, or the list of conditions, that cannot be parsed."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(lookup.Found):
    """A provider's object, read by its contract.

    `ready` is `provisioned` of infrastructure or `initialized` of a control plane; a missing field is false.
    """

    conditions: tuple[Condition, ...] | Garbled
    v1beta1_conditions: tuple[V1Beta1Condition, ...]
    ready: bool | Garbled
    endpoint: APIEndpoint | Garbled | None
    failure_domains: tuple[FailureDomain, ...] | Garbled = ()
    failure_reason: str = ""
    failure_message: str = ""


Role = Literal["infrastructure", "controlPlane"]
Lookup = NotReferenced | Missing | Unreadable | Found
"""The result of reading a referenced object; exactly one variant holds."""


def understand(found: lookup.Lookup, role: Role) -> Lookup:
    """Return the fields of a found object that the tables read.

    An object whose failureReason or failureMessage has a wrong type counts as unreadable, like one that cannot be adopted.
    """
    if not isinstance(found, lookup.Found):
        return found
    obj, paths = found.object, CONTRACTS[found.contract]
    reason, message = FAILURE_REASON.read(obj.json), FAILURE_MESSAGE.read(obj.json)
    for read in (reason, message):
        if isinstance(read, Malformed):
            return Unreadable(f"{obj.kind} {obj.key}: {read}")
    infrastructure = role == "infrastructure"
    ready = (paths.infra_cluster.provisioned if infrastructure else paths.control_plane.initialized).read(obj.json)
    domains = paths.infra_cluster.failure_domains.read(obj.json) if infrastructure else ABSENT
    is_ready, endpoint = _or_garbled(obj, ready, default=False), _or_garbled(obj, ENDPOINT.read(obj.json), default=None)
    known_domains = _or_garbled(obj, domains, default=())
    return Found(
        object=obj,
        contract=found.contract,
        conditions=_conditions(obj),
        v1beta1_conditions=v1beta1.of_foreign(obj),
        ready=is_ready,
        endpoint=endpoint,
        failure_domains=_with_defaults(obj, known_domains),
        failure_reason=_text(reason),
        failure_message=_text(message),
    )


def _or_garbled(obj: Unstructured, read: Read[T], *, default: D) -> T | D | Garbled:
    if isinstance(read, Value):
        return read.value
    return Garbled(f"{obj.kind} {obj.key}: {read}") if isinstance(read, Malformed) else default


def _text(read: Read[str]) -> str:
    return read.value if isinstance(read, Value) else ""


def _conditions(obj: Unstructured) -> tuple[Condition, ...] | Garbled:
    try:
        return conditions_of(obj)
    except InvalidConditions as error:
        return Garbled(str(error))


def _with_defaults(obj: Unstructured, domains: tuple[FailureDomain, ...] | Garbled) -> tuple[FailureDomain, ...] | Garbled:
    """Return failure domains with their defaults: not for control planes. The name must be valid for the Cluster."""
    if isinstance(domains, Garbled):
        return domains
    names = {d.name for d in domains}
    if len(domains) > 100 or len(names) < len(domains) or not all(1 <= len(n) <= 256 for n in names):
        return Garbled(f"{obj.kind} {obj.key}: status.failureDomains: at most 100, each with a name of its own")
    return tuple(replace(d, control_plane=bool(d.control_plane)) for d in domains)


def control_plane_counters(found: Found, before: ReplicaCounters) -> ReplicaCounters:
    """Return the replica counters of a control-plane object; a counter that is missing or not a number keeps its value."""
    paths = CONTRACTS[found.contract].control_plane
    now = replace(
        before,
        desired_replicas=_count(found, paths.spec_replicas, before.desired_replicas),
        replicas=_count(found, paths.status_replicas, before.replicas),
        ready_replicas=_count(found, paths.ready_replicas, before.ready_replicas),
        available_replicas=_count(found, paths.available_replicas, before.available_replicas),
        up_to_date_replicas=_count(found, paths.up_to_date_replicas, before.up_to_date_replicas),
    )
    with suppress(ValueError):
        reported_versions(found.object.json, found.contract)
        versions = or_none(paths.status_versions.read(found.object.json)) or ()
        now = replace(now, versions=as_reported(versions))
    unavailable = _count(found, paths.unavailable_replicas)
    if unavailable is not None and now.desired_replicas is not None:
        now = replace(now, available_replicas=max(now.desired_replicas - unavailable, 0))
    return now


def _count(found: Found, path: Path[int] | None, otherwise: int | None = None) -> int | None:
    """Return the number at a path; the default if the object has no 32-bit number there."""
    read = path.read(found.object.json) if path else ABSENT
    return read.value if isinstance(read, Value) and -(2**31) <= read.value < 2**31 else otherwise
