"""Objects of other providers: found by a reference without version, through the contract labels of their CRD.

A reference names group, kind and name. Labels on its CustomResourceDefinition give the API version to read and the contract of the object:
`cluster.x-k8s.io/v1beta2: v1_v1beta2` means that those versions follow contract v1beta2. The newest contract that we know wins, and of its
versions the highest.

Also here: ownership. It is determined by group, kind and name, because versions and (after a move) uids change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from clusterwright.api.codec import DecodeError
from clusterwright.api.contract import ContractVersion, NoContract, crd_name, resolve_version
from clusterwright.api.meta import GroupVersionKind, Object, ObjectKey, ObjectMeta, OwnerReference, Unstructured
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError


class Reference(Protocol):
    """A reference without version, for example `api.core.ContractVersionedObjectReference`."""

    @property
    def api_group(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


class ContractUnknown(Exception):
    """The kind's CRD cannot be read or names no known contract. This does not mean that the object is missing."""


class AlreadyControlled(Exception):
    """Another controller owns the object."""


class CustomResourceDefinitionMeta(Object):
    """The metadata of a CustomResourceDefinition: its schema is large and never needed here."""

    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class Contract:
    """The version to read a kind in, and the contract of this version."""

    gvk: GroupVersionKind
    contract: ContractVersion


@dataclass(frozen=True, slots=True)
class External:
    """A provider's object as read, with its contract."""

    object: Unstructured
    contract: ContractVersion


async def contract_of(reader: Reader, group: str, kind: str) -> Contract:
    """Return the version and contract of a kind; raises ContractUnknown, also if the CRD does not exist."""
    name = crd_name(group, kind)
    try:
        crd = await reader.get(CustomResourceDefinitionMeta, ObjectKey("", name))
    except (ApiError, DecodeError) as error:
        raise ContractUnknown(f"failed to get object from ref: failed to get CustomResourceDefinition {name}: {error}") from error
    try:
        resolved = resolve_version({"name": name, "labels": crd.metadata.labels})
    except NoContract as error:
        raise ContractUnknown(str(error)) from error
    return Contract(GroupVersionKind(group, resolved.version, kind), resolved.contract)


async def get_external(reader: Reader, reference: Reference, namespace: str) -> External:
    """Return the object that a reference names, in the referrer's namespace.

    Raises NotFound only where the object itself does not exist; ContractUnknown where its kind cannot be resolved.
    """
    contract = await contract_of(reader, reference.api_group, reference.kind)
    return External(await reader.get(contract.gvk, ObjectKey(namespace, reference.name)), contract.contract)


# ------------------------------------------------------------------------------------------ ownership


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion; empty for the core group. Raises ValueError for an invalid one."""
    parts = api_version.split("/")
    if len(parts) > 2 or not all(parts):
        raise ValueError(f"unexpected GroupVersion string: {api_version}")
    return parts[0] if len(parts) == 2 else ""


def refers_to(reference: OwnerReference, group: str, kind: str, name: str) -> bool:
    """Return whether an ownerReference names the object, in any version."""
    return reference.kind == kind and reference.name == name and reference.api_version.rpartition("/")[0] == group


def is_owned_by(metadata: ObjectMeta, group: str, kind: str, name: str) -> bool:
    """Return whether any ownerReference names the object."""
    return any(refers_to(r, group, kind, name) for r in metadata.owner_references)


def with_owner(references: Sequence[OwnerReference], owner: OwnerReference) -> tuple[OwnerReference, ...]:
    """Return the references with `owner` added, or put in the place of an older one to the same object.

    Raises AlreadyControlled if `owner` is to be the controller and there is another one.
    """
    group = owner.api_version.rpartition("/")[0]
    kept, place = list(references), len(references)
    for n, reference in enumerate(references):
        if refers_to(reference, group, owner.kind, owner.name):
            place = min(place, n)
        elif owner.controller and reference.controller:
            raise AlreadyControlled(f"already owned by another {reference.kind} controller {reference.name}")
    kept[place : place + 1] = [owner]
    return tuple(kept)
