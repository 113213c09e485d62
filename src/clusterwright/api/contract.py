"""Read provider objects of any kind by the version of their contract.

Every read returns one of three results, so that no caller can mistake a wrong type for an absent value:

    Value(x)     the field is there
    ABSENT       it is not
    Malformed    something is there that the contract does not allow

Objects are plain JSON. Writing goes through patches made by the callers; `Path.json` gives the nested form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from clusterwright.api.core.shared import APIEndpoint, FailureDomain, MachineAddress, StatusVersion
from clusterwright.api.meta import Condition, Json

T = TypeVar("T")

ContractVersion = Literal["v1beta1", "v1beta2"]
CONTRACT_VERSIONS: Final[tuple[ContractVersion, ...]] = ("v1beta2", "v1beta1")
"""The contract versions, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """The field has a value."""

    value: T


class Absence(Enum):
    """The field is absent."""

    ABSENT = "absent"


ABSENT: Final = Absence.ABSENT


@dataclass(frozen=True, slots=True)
class Malformed:
    """The field has a value that the contract does not allow."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


Read = Value[T] | Literal[Absence.ABSENT] | Malformed


class MalformedField(ValueError):
    """A field is malformed; `or_none` raises this for callers that treat it as an error of the pass."""


def or_none(read: Read[T]) -> T | None:
    """Return the value, or None if absent; raises MalformedField."""
    if isinstance(read, Value):
        return read.value
    if isinstance(read, Malformed):
        raise MalformedField(str(read))
    return None


def _lookup(json: Mapping[str, Any], steps: tuple[str, ...]) -> Read[Any]:
    value: Any = json
    for index, step in enumerate(steps):
        if not isinstance(value, Mapping):
            return Malformed(".".join(steps[:index]), f"expected an object, found {_type_name(value)}")
        value = value.get(step)
        if value is None:
            return ABSENT
    return Value(value)


def _type_name(value: Any) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Path(Generic[T]):
    """A typed path in an object."""

    steps: tuple[str, ...]
    parse: Callable[[Any], T]
    """Returns the parsed value; raises `Rejected`."""

    def __str__(self) -> str:
        return ".".join(self.steps)

    def read(self, json: Mapping[str, Any]) -> Read[T]:
        """Return the result of reading the path."""
        found = _lookup(json, self.steps)
        if not isinstance(found, Value):
            return found
        try:
            return Value(self.parse(found.value))
        except Rejected as rejected:
            return Malformed(str(self), rejected.problem)

    def json(self, value: Any) -> Json:
        """Return an object that holds only `value`, at this path."""
        for step in reversed(self.steps):
            value = {step: value}
        result: Json = value
        return result


class Rejected(Exception):
    """A value has the wrong type or form."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def _scalar(kind: type[Any], noun: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if type(value) is not kind:
            raise Rejected(f"expected {noun}, found {_type_name(value)}")
        return value

    return parse


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise Rejected(f"expected an integer, found {_type_name(value)}")
    return value


def _struct(kind: Any) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        try:
            return msgspec.convert(_plain(value), kind)
        except msgspec.ValidationError as error:
            raise Rejected(str(error)) from None

    return parse


def _plain(value: Any) -> Any:
    """Return the value without null fields, which the API machinery treats as absent; 1.0 becomes an integer."""
    if isinstance(value, Mapping):
        return {name: _plain(field) for name, field in value.items() if field is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _failure_domain_map(value: Any) -> tuple[FailureDomain, ...]:
    """Return the v1beta1 form, name -> {controlPlane, attributes}, as a list sorted by name; controlPlane defaults to false."""
    if not isinstance(value, Mapping):
        raise Rejected(f"expected an object, found {_type_name(value)}")
    domains = []
    for name in sorted(value):
        entry = _struct(FailureDomain)(value[name] if value[name] is not None else {})
        domains.append(FailureDomain(name=name, control_plane=bool(entry.control_plane), attributes=entry.attributes))
    return tuple(domains)


def _failure_domains(value: Any) -> tuple[FailureDomain, ...]:
    domains: tuple[FailureDomain, ...] = _struct(tuple[FailureDomain, ...])(value)
    return tuple(sorted(domains, key=lambda domain: domain.name))


def _bool(path: str) -> Path[bool]:
    return Path(tuple(path.split(".")), _scalar(bool, "a boolean"))


def _string(path: str) -> Path[str]:
    return Path(tuple(path.split(".")), _scalar(str, "a string"))


def _int(path: str) -> Path[int]:
    return Path(tuple(path.split(".")), _integer)


ENDPOINT: Final[Path[APIEndpoint]] = Path(("spec", "controlPlaneEndpoint"), _struct(APIEndpoint))
"""The endpoint of an InfraCluster, or of a ControlPlane that provides it."""
FAILURE_REASON = _string("status.failureReason")
FAILURE_MESSAGE = _string("status.failureMessage")


_PROVIDER_ID = _string("spec.providerID")
_ADDRESSES = Path(("status", "addresses"), _struct(tuple[MachineAddress, ...]))
_INTERRUPTIBLE = _bool("status.interruptible")
_PROVIDER_ID_LIST = Path(("spec", "providerIDList"), _struct(tuple[str, ...]))
_REPLICAS = _int("status.replicas")
_INFRASTRUCTURE_MACHINE_KIND = _string("status.infrastructureMachineKind")
_DATA_SECRET_NAME = _string("status.dataSecretName")
_SPEC_VERSION = _string("spec.version")
_STATUS_VERSION = _string("status.version")
_STATUS_VERSIONS = Path(("status", "versions"), _struct(tuple[StatusVersion, ...]))
_SPEC_REPLICAS = _int("spec.replicas")
_STATUS_REPLICAS = _int("status.replicas")
_READY_REPLICAS = _int("status.readyReplicas")
_SELECTOR = _string("status.selector")
_EXTERNAL_MANAGED = _bool("status.externalManagedControlPlane")


@dataclass(frozen=True, slots=True)
class InfraCluster:
    """The contract fields of a Cluster's infrastructure."""

    provisioned: Path[bool]
    failure_domains: Path[tuple[FailureDomain, ...]]
    endpoint: Path[APIEndpoint] = ENDPOINT


@dataclass(frozen=True, slots=True)
class InfraMachine:
    """The contract fields of a Machine's infrastructure."""

    provisioned: Path[bool]
    failure_domain: Path[str]
    older_failure_domain: Path[str]
    """The field to read if `failure_domain` is absent."""
    provider_id: Path[str] = _PROVIDER_ID
    addresses: Path[tuple[MachineAddress, ...]] = _ADDRESSES
    interruptible: Path[bool] = _INTERRUPTIBLE


@dataclass(frozen=True, slots=True)
class InfraMachinePool:
    """The contract fields of a MachinePool's infrastructure."""

    provisioned: Path[bool]
    provider_id_list: Path[tuple[str, ...]] = _PROVIDER_ID_LIST
    replicas: Path[int] = _REPLICAS
    infrastructure_machine_kind: Path[str] = _INFRASTRUCTURE_MACHINE_KIND


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """The contract fields of a bootstrap config."""

    data_secret_created: Path[bool]
    data_secret_name: Path[str] = _DATA_SECRET_NAME


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The contract fields of a control plane. `None`: the contract version has no such field."""

    initialized: Path[bool]
    up_to_date_replicas: Path[int]
    available_replicas: Path[int] | None
    unavailable_replicas: Path[int] | None
    infrastructure_ref: Path[Json]
    endpoint: Path[APIEndpoint] = ENDPOINT
    spec_version: Path[str] = _SPEC_VERSION
    status_version: Path[str] = _STATUS_VERSION
    status_versions: Path[tuple[StatusVersion, ...]] = _STATUS_VERSIONS
    """The versions, oldest first; they take precedence over `status_version`."""
    spec_replicas: Path[int] = _SPEC_REPLICAS
    status_replicas: Path[int] = _STATUS_REPLICAS
    ready_replicas: Path[int] = _READY_REPLICAS
    selector: Path[str] = _SELECTOR
    external_managed: Path[bool] = _EXTERNAL_MANAGED


def _object(path: str) -> Path[Json]:
    return Path(tuple(path.split(".")), _scalar(dict, "an object"))


@dataclass(frozen=True, slots=True)
class Contract:
    """All field paths of one contract version."""

    version: ContractVersion
    infra_cluster: InfraCluster
    infra_machine: InfraMachine
    infra_machine_pool: InfraMachinePool
    bootstrap_config: BootstrapConfig
    control_plane: ControlPlane


CONDITIONS: Final = (("status", "v1beta2", "conditions"), ("status", "conditions"))
"""The paths of conditions; the first list that exists is read."""

CONTRACTS: Final[Mapping[ContractVersion, Contract]] = {
    "v1beta2": Contract(
        version="v1beta2",
        infra_cluster=InfraCluster(
            provisioned=_bool("status.initialization.provisioned"),
            failure_domains=Path(("status", "failureDomains"), _failure_domains),
        ),
        infra_machine=InfraMachine(
            provisioned=_bool("status.initialization.provisioned"),
            failure_domain=_string("status.failureDomain"),
            older_failure_domain=_string("spec.failureDomain"),
        ),
        infra_machine_pool=InfraMachinePool(provisioned=_bool("status.initialization.provisioned")),
        bootstrap_config=BootstrapConfig(data_secret_created=_bool("status.initialization.dataSecretCreated")),
        control_plane=ControlPlane(
            initialized=_bool("status.initialization.controlPlaneInitialized"),
            up_to_date_replicas=_int("status.upToDateReplicas"),
            available_replicas=_int("status.availableReplicas"),
            unavailable_replicas=None,
            infrastructure_ref=_object("spec.machineTemplate.spec.infrastructureRef"),
        ),
    ),
    "v1beta1": Contract(
        version="v1beta1",
        infra_cluster=InfraCluster(
            provisioned=_bool("status.ready"), failure_domains=Path(("status", "failureDomains"), _failure_domain_map)
        ),
        infra_machine=InfraMachine(
            provisioned=_bool("status.ready"),
            failure_domain=_string("spec.failureDomain"),
            older_failure_domain=_string("spec.failureDomain"),
        ),
        infra_machine_pool=InfraMachinePool(provisioned=_bool("status.ready")),
        bootstrap_config=BootstrapConfig(data_secret_created=_bool("status.ready")),
        control_plane=ControlPlane(
            initialized=_bool("status.initialized"),
            up_to_date_replicas=_int("status.updatedReplicas"),
            available_replicas=None,
            unavailable_replicas=_int("status.unavailableReplicas"),
            infrastructure_ref=_object("spec.machineTemplate.infrastructureRef"),
        ),
    ),
}


def condition(json: Mapping[str, Any], type: str) -> Read[Condition]:
    """Return the condition of that type, from `status.v1beta2.conditions` if that list exists, else from `status.conditions`.

    Only `type` and `status` are required; the deprecated form of a condition is accepted, too.
    """
    for steps in CONDITIONS:
        found = _lookup(json, steps)
        if not isinstance(found, Value):
            continue
        path = ".".join(steps)
        if not isinstance(found.value, list):
            return Malformed(path, f"expected a list, found {_type_name(found.value)}")
        for item in found.value:
            if isinstance(item, Mapping) and item.get("type") == type:
                try:
                    return Value(msgspec.convert({key: value for key, value in item.items() if value not in (None, "")}, Condition))
                except msgspec.ValidationError as error:
                    return Malformed(f"{path}[type={type}]", str(error))
        return ABSENT
    return ABSENT


class NoContract(ValueError):
    """A CRD has no label for a contract that we know."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The API version of a kind to use, and the contract of its objects."""

    version: str
    contract: ContractVersion


def resolve_version(crd_metadata: Mapping[str, Any]) -> Resolved:
    """Return the version of a CRD to use, from its contract labels; raises NoContract.

    Contracts are tried newest first; of the versions that the first non-empty label lists, joined by `_`, the one
    with the highest Kubernetes priority is taken.
    """
    labels = crd_metadata.get("labels")
    labels = labels if isinstance(labels, Mapping) else {}
    for contract in CONTRACT_VERSIONS:
        value = labels.get(f"cluster.x-k8s.io/{contract}")
        versions = [version for version in value.split("_") if version] if isinstance(value, str) else []
        if versions:
            return Resolved(max(versions, key=version_priority), contract)
    name = crd_metadata.get("name", "")
    raise NoContract(f"cannot find any versions matching contract versions {', '.join(CONTRACT_VERSIONS)} for CRD {name}")


def contract_of(crd_metadata: Mapping[str, Any], version: str) -> ContractVersion:
    """Return the contract of an API version of a CRD; raises NoContract."""
    labels = crd_metadata.get("labels")
    labels = labels if isinstance(labels, Mapping) else {}
    for contract in CONTRACT_VERSIONS:
        value = labels.get(f"cluster.x-k8s.io/{contract}")
        if isinstance(value, str) and version in value.split("_"):
            return contract
    raise NoContract(f"cannot find a contract for version {version} of CRD {crd_metadata.get('name', '')}")


_VERSION = re.compile(r"^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$")
_STAGES = {"alpha": 1, "beta": 2, None: 3}


def version_priority(version: str) -> tuple[int, int, int, tuple[int, ...]]:
    """Return a sort key of Kubernetes API versions: GA before beta before alpha, then numbers; other names come last, in reverse order."""
    match = _VERSION.match(version)
    if match is None:
        return (0, 0, 0, (*(-ord(character) for character in version), 1))
    major, stage, minor = match.groups()
    return (_STAGES[stage], int(major), int(minor or 0), ())


def crd_name(group: str, kind: str) -> str:
    """Return the name of a kind's CRD, computed as other controllers do, without a lookup."""
    return f"{pluralize(kind.lower())}.{group}"


_PLURALS: Final = (
    # words that are the same or quite another in the plural; a kind's last word is looked at, so that endings are enough
    *((word, word) for word in ("data", "media", "information", "equipment", "money", "sheep", "fish")),
    ("child", "children"), ("person", "people"), ("human", "humans"), ("man", "men"), ("mouse", "mice"), ("trix", "trices"),
    *((f"{stem}ex", f"{stem}ices") for stem in ("ind", "vert", "vort", "ap", "cod")),
    # then the rules of English, the more special before the more general; a word in a single s counts as a plural
    ("ysis", "yses"), ("us", "uses"), ("ss", "sses"), ("s", "s"),
    ("ay", "ays"), ("ey", "eys"), ("oy", "oys"), ("uy", "uys"), ("y", "ies"),
    ("eaf", "eaves"), ("oaf", "oaves"), ("lf", "lves"), ("arf", "arves"), ("fe", "ves"),
    ("ch", "ches"), ("sh", "shes"), ("x", "xes"), ("iz", "izzes"), ("tz", "tzes"), ("zz", "zzes"),
    ("io", "ios"), ("lo", "los"), ("to", "tos"), ("oo", "oos"), ("ano", "anos"), ("o", "oes"),
    ("", "s"),
)  # fmt: skip
"""Endings and their plurals; the first match counts."""


@lru_cache(maxsize=1024)
def pluralize(singular: str) -> str:
    """Return the English plural of a lower-case kind, as generators of CRDs form it."""
    ending, many = next((e, m) for e, m in _PLURALS if singular.endswith(e))
    return singular.removesuffix(ending) + many
