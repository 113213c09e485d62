"""Mistakes that authors of providers make: objects that do not keep the contract, so that core controllers wait forever. Pure.

Nobody's condition tells: the provider believes that it is done, and the core controller waits for a field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from clusterwright.api.contract import (
    ABSENT,
    CONTRACTS,
    Contract,
    ContractVersion,
    Malformed,
    NoContract,
    Path,
    Value,
    crd_name,
    resolve_version,
)
from clusterwright.api.meta import Unstructured
from clusterwright.conditions import InvalidConditions, conditions_of, get
from clusterwright.offline.complaints import Complaint, Tier, since
from clusterwright.offline.unreconciled import AT_ONCE, ago

BREACH: Final = "breach"
"""What a complaint about a broken contract is about."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a provider's object is to the object that names it: which field says that it is done, and what must be there then."""

    name: str
    done: Callable[[Contract], Path[bool]]
    delivered: Callable[[Contract], Path[Any]] | None
    """What is of no use without being done, and the other way round; None: nothing more."""


ROLES: Final[Mapping[tuple[str, str], Role]] = {
    ("Cluster", "spec.infrastructureRef"): Role("InfraCluster", lambda c: c.infra_cluster.provisioned, None),
    ("Cluster", "spec.controlPlaneRef"): Role("ControlPlane", lambda c: c.control_plane.initialized, None),
    ("Machine", "spec.infrastructureRef"): Role(
        "InfraMachine", lambda c: c.infra_machine.provisioned, lambda c: c.infra_machine.provider_id
    ),
    ("Machine", "spec.bootstrap.configRef"): Role(
        "BootstrapConfig", lambda c: c.bootstrap_config.data_secret_created, lambda c: c.bootstrap_config.data_secret_name
    ),
    ("MachinePool", "spec.template.spec.infrastructureRef"): Role(
        "InfraMachinePool", lambda c: c.infra_machine_pool.provisioned, lambda c: c.infra_machine_pool.provider_id_list
    ),
    ("MachinePool", "spec.template.spec.bootstrap.configRef"): Role(
        "BootstrapConfig", lambda c: c.bootstrap_config.data_secret_created, lambda c: c.bootstrap_config.data_secret_name
    ),
}
"""By the kind that names the object, and where."""


def breach_of_definition(definition: Unstructured) -> Complaint | None:
    """Return what is wrong with a CRD that has contract labels: they name what is not served, or nobody can find it by its name."""
    group, kind = str(definition.at("spec", "group")), str(definition.at("spec", "names", "kind"))
    wanted = crd_name(group, kind)
    if definition.metadata.name != wanted:
        text = f"is not named {wanted}: those who refer to a {kind} look for its contract by that name"
        return Complaint(Tier.ERROR, text, about=BREACH, path="metadata.name")
    try:
        resolved = resolve_version({"name": wanted, "labels": definition.metadata.labels})
    except NoContract:
        return None  # said elsewhere
    served = [str(v.get("name")) for v in definition.at("spec", "versions") or () if isinstance(v, Mapping) and v.get("served")]
    if resolved.version in served:
        return None
    label = f"cluster.x-k8s.io/{resolved.contract}"
    text = (
        f"says {label}={definition.metadata.labels[label]}, but {resolved.version} is not served; served: {', '.join(served) or 'nothing'}"
    )
    return Complaint(Tier.ERROR, text, about=BREACH, path=f"metadata.labels[{label}]")


def breach(role: Role, obj: Unstructured, version: ContractVersion, now: datetime | None, heard: str = "") -> Complaint | None:
    """Return how an object breaks the contract of its role; None: it keeps it, or may yet. `heard`: when an Event last told of it."""
    contract = CONTRACTS[version]
    done = role.done(contract)
    read = done.read(obj.json)
    if isinstance(read, Malformed):
        return _complaint(obj, f"{read}, which contract {version} does not allow", str(done))
    if isinstance(read, Value) and read.value:
        return _lacking(role, obj, contract)
    claim = _claim(role, obj, version)
    if claim:
        return _complaint(obj, f"{claim}, but does not set {done}, which contract {version} of an {role.name} asks for", str(done))
    made, status = obj.metadata.creation_timestamp, obj.at("status")
    is_old = now is not None and made is not None and now - made >= AT_ONCE
    if is_old and not status and made is not None and now is not None and heard < f"{made:%Y-%m-%dT%H:%M:%SZ}":
        text = f"nothing has reconciled it since it was made {ago(now - made)} ago"
        return Complaint(Tier.UNRECONCILED, text, f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")
    return None


def without_endpoint(infrastructure: Unstructured, cluster: Unstructured, version: ContractVersion) -> Complaint | None:
    """That a cluster's infrastructure says it is done though nobody knows where its API server will be.

    Some control planes bring their own endpoint; a KubeadmControlPlane waits for that of the infrastructure.
    """
    contract = CONTRACTS[version].infra_cluster
    if (
        contract.provisioned.read(infrastructure.json) != Value(True)
        or cluster.at("spec", "controlPlaneRef", "kind") != "KubeadmControlPlane"
    ):
        return None
    endpoints = (contract.endpoint.read(obj.json) for obj in (infrastructure, cluster))
    if any(isinstance(e, Value) and e.value.host and e.value.port for e in endpoints):
        return None
    text = f"says {contract.provisioned}: true without host and port in {contract.endpoint}, which the control plane waits for"
    return _complaint(infrastructure, text, str(contract.endpoint))


def _lacking(role: Role, obj: Unstructured, contract: Contract) -> Complaint | None:
    """That an object says it is done without what it was to deliver."""
    if role.delivered is None:
        return None
    path = role.delivered(contract)
    read = path.read(obj.json)
    if isinstance(read, Malformed):
        return _complaint(obj, f"{read}, which contract {contract.version} does not allow", str(path))
    if read is ABSENT or (isinstance(read, Value) and not read.value):
        text = f"says {role.done(contract)}: true without {path}, which contract {contract.version} of an {role.name} asks for"
        return _complaint(obj, text, str(path))
    return None


def _claim(role: Role, obj: Unstructured, version: ContractVersion) -> str:
    """By which words an object says that it is done, other than those of the contract; empty: it does not."""
    for other in CONTRACTS.values():
        path = role.done(other)
        if other.version != version and path.read(obj.json) == Value(True):
            return f"says {path}: true, as contract {other.version} would have it"
    try:
        ready = get(conditions_of(obj), "Ready")
    except InvalidConditions:
        return ""
    return "says Ready=True" if ready is not None and ready.status == "True" and role.name != "ControlPlane" else ""


def _complaint(obj: Unstructured, text: str, path: str) -> Complaint:
    made = obj.metadata.creation_timestamp
    try:
        ready = get(conditions_of(obj), "Ready")
    except InvalidConditions:
        ready = None
    begun = since(ready) or (f"{made:%Y-%m-%dT%H:%M:%SZ}" if made is not None else "")
    return Complaint(Tier.ERROR, text, begun, BREACH, path=path)
