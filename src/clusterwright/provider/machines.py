"""What a provider says of its machines, and how it makes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

from clusterwright.api.codec import to_json
from clusterwright.api.core import Machine, MachineAddress
from clusterwright.api.infrastructure import DevMachine, InfraMachine
from clusterwright.api.meta import Json, Object
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.runtime.client import Client

M = TypeVar("M", bound=InfraMachine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A machine that runs, as the contract wants to hear of it."""

    provider_id: str
    """The same as `spec.providerID` of its Node."""
    addresses: Sequence[MachineAddress] = ()
    failure_domain: str = ""


class ProvisionFailed(PassFailed):
    """The machine cannot be made, for a reason that users should read: it is told in `Ready`, and tried again."""


class InfraMachines(ABC, Generic[M]):
    """A kind of InfraMachine. Derive from it: what machines are made of is yours. Both steps are run often, and may be interrupted."""

    kind: ClassVar[type[InfraMachine]]
    """The kind that is reconciled."""
    finalizer: ClassVar[str]
    """Kept on the object until `remove` has said that all is gone."""
    makes: ClassVar[Sequence[type[Object]]] = ()
    """Kinds of the objects that `provision` makes, if it makes objects: a change of one that ours owns wakes us."""
    look: ClassVar[timedelta] = timedelta(seconds=10)
    """When to look again at a machine that comes or goes; nobody looks where all is watched (`makes`)."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @abstractmethod
    async def provision(self, obj: M, machine: Machine) -> Server | None:
        """Have the machine made, if it is not; the server when it runs, None while it does not.

        The bootstrap data is in the Secret that `machine.spec.bootstrap.data_secret_name` names. Raises ProvisionFailed.
        """

    @abstractmethod
    async def remove(self, obj: M) -> bool:
        """Have everything removed that was made for it; whether all of it is gone."""


def order(obj: InfraMachine, machine: Machine, **backend: Any) -> Json:
    """A DevMachine of the same name, to be created: the in-memory cloud boots the machine's bootstrap data on it, and it becomes a Node."""
    references = [to_json(owner_reference(obj, controller=True)), to_json(owner_reference(machine, controller=False))]
    labels = {CLUSTER_NAME_LABEL: machine.spec.cluster_name}
    metadata = {"name": obj.metadata.name, "namespace": obj.metadata.namespace, "labels": labels, "ownerReferences": references}
    made = DevMachine()
    return {"apiVersion": made.api_version, "kind": made.kind, "metadata": metadata, "spec": {"backend": {"inMemory": backend}}}
