"""Find provider objects that break the contract, so that core controllers wait forever.

No condition reports this: the provider considers its work done, and the core controller waits for a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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
    contract_of,
    crd_name,
    resolve_version,
)
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CONTRACT_LABEL_PREFIX, CORE_GROUP
from clusterwright.conditions import InvalidConditions, conditions_of, get
from clusterwright.kubeadm.reached import reported_versions
from clusterwright.offline.complaints import Complaint, Reference, Tier, references, since
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of
from clusterwright.offline.unreconciled import AT_ONCE, ago

_READERS: Final = frozenset({CORE_GROUP, f"controlplane.{CORE_GROUP}"})
"""The groups whose objects read others by the contract. Pools of addresses, for instance, have none."""
_CONTRACT_LABEL: Final = re.compile(rf"^{re.escape(CONTRACT_LABEL_PREFIX)}v\d+((alpha|beta)\d+)?$")


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a provider's object for the object that names it: the field that reports completion, and the fields required then."""

    name: str
    done: Callable[[Contract], Path[bool]]
    delivered: Callable[[Contract], Path[Any]] | None
    """The value that the object must deliver when it is done, and not before; None: no value."""


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
"""The roles by the kind and the path of the reference to the object."""


def breach_of_definition(definition: Unstructured) -> Complaint | None:
    """Return the mistake in a CRD with contract labels: they name an unserved version, or the CRD has an unexpected name."""
    group, kind = str(definition.at("spec", "group")), str(definition.at("spec", "names", "kind"))
    wanted = crd_name(group, kind)
    if definition.metadata.name != wanted:
        text = f"is not named {wanted}: those who refer to a {kind} look for its contract by that name"
        return _of_definition(definition, text, "metadata.name")
    try:
        resolved = resolve_version({"name": wanted, "labels": definition.metadata.labels})
    except NoContract:
        return None  # reported elsewhere
    served = [str(v.get("name")) for v in definition.at("spec", "versions") or () if isinstance(v, Mapping) and v.get("served")]
    if resolved.version in served:
        return None
    label = f"cluster.x-k8s.io/{resolved.contract}"
    text = (
        f"says {label}={definition.metadata.labels[label]}, but {resolved.version} is not served; served: {', '.join(served) or 'nothing'}"
    )
    return _of_definition(definition, text, f"metadata.labels[{label}]")


def breach(role: Role, obj: Unstructured, version: ContractVersion, now: datetime | None, heard: str = "") -> Complaint | None:
    """Return how an object breaks the contract of its role; None: it keeps it, or still may. `heard`: the time of its last Event."""
    contract = CONTRACTS[version]
    done = role.done(contract)
    read = done.read(obj.json)
    if isinstance(read, Malformed):
        return _complaint(obj, f"{read}, which contract {version} does not allow", str(done))
    if isinstance(read, Value) and read.value:
        return _lacking(role, obj, contract) or _misreporting(role, obj, contract)
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
    """Return a complaint if a cluster's infrastructure reports completion but nothing sets the endpoint of the API server.

    Some control planes set the endpoint themselves; a KubeadmControlPlane waits for the infrastructure to set it.
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
    """Return a complaint if an object reports completion but lacks the value that it must deliver."""
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


def _misreporting(role: Role, obj: Unstructured, contract: Contract) -> Complaint | None:
    """Return a complaint if a control plane's versions are invalid or not in order, so that no topology can be upgraded."""
    path = contract.control_plane.status_versions
    if role.name != "ControlPlane":
        return None
    try:
        reported_versions(obj.json, contract.version)
    except ValueError as error:
        text = f"{path}: {error}; contract {contract.version} asks for the versions that run, the oldest first"
        return _complaint(obj, text, str(path))
    return None


def _claim(role: Role, obj: Unstructured, version: ContractVersion) -> str:
    """Return the claim of completion that an object makes outside the contract; empty: none."""
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
    resource = f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}"
    facts = {"kind": obj.kind, "path": path, "namespace": obj.key.namespace, "resource": resource}
    return Complaint(Tier.ERROR, text, begun, path=path, cause="provider.shape", facts=facts)


def _of_definition(definition: Unstructured, text: str, path: str) -> Complaint:
    return Complaint(Tier.ERROR, text, path=path, cause="contract.definition", facts={"name": definition.metadata.name})


def contract_breaches(known: Known) -> Iterator[Found]:
    """Yield CRDs of referenced provider kinds without a contract, and objects that break theirs."""
    for name, obj in known.objects.items():
        is_reader = obj.gvk.group in _READERS and bool(known.complaints.get(name))
        for reference in references(obj.at("spec"), home=obj.key.namespace) if is_reader else ():
            # a clone is not in a better state than its definition
            for kind in dict.fromkeys((reference.kind, reference.kind.removesuffix("Template"))):
                definition = known.definitions.get((reference.group, kind))
                if definition is None:
                    continue
                complaint = without_contract(definition) or breach_of_definition(definition)
                if complaint is not None:
                    crd = name_of(definition.kind, "", definition.metadata.name)
                    explains = {name: f"refers to a {kind} in {reference.path}"}
                    yield Found(object=crd, complaint=complaint, explains=explains, is_all=True, definition=definition)
                else:
                    yield from _of_object(known, obj, reference, definition)


def _of_object(known: Known, obj: Unstructured, reference: Reference, definition: Unstructured) -> Iterator[Found]:
    role, name = ROLES.get((obj.kind, reference.path)), name_of(reference.kind, obj.key.namespace, reference.name)
    target, complaints = known.objects.get(name), known.complaints.get(name, ())
    is_paused = any(c.tier is Tier.PAUSED for c in complaints)
    if role is None or target is None or target.metadata.deletion_timestamp is not None or is_paused:
        return
    try:
        version = contract_of({"name": definition.metadata.name, "labels": definition.metadata.labels}, target.gvk.version)
    except NoContract:
        return
    complaint = breach(role, target, version, known.now, known.heard(name))
    if complaint is None and obj.kind == "Cluster" and reference.path == "spec.infrastructureRef":
        complaint = without_endpoint(target, obj, version)
    if complaint is not None and not any(c.tier is complaint.tier for c in complaints):
        yield Found(object=name, complaint=complaint)


def without_contract(definition: Unstructured) -> Complaint | None:
    """Return a complaint if a provider's CRD has no contract label for any of its versions."""
    if any(_CONTRACT_LABEL.match(label) for label in definition.metadata.labels):
        return None
    versions = "_".join(str(v.get("name")) for v in definition.at("spec", "versions") or () if isinstance(v, Mapping) and v.get("served"))
    label = f"{CONTRACT_LABEL_PREFIX}v1beta2"
    text = f"has no label like {label}={versions}: nobody can tell which contract its versions follow"
    facts = {"name": definition.metadata.name, "label": label, "versions": versions}
    return Complaint(Tier.ERROR, text, path=f"metadata.labels[{label}]", cause="contract.label", facts=facts)
