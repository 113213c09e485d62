"""The machines of a provider: its steps, and its reported state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from clusterwright.api.codec import to_json
from clusterwright.api.core import Machine, MachineAddress
from clusterwright.api.infrastructure import DevMachine, InfraMachine
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.provider.base import Provider
from clusterwright.provider.bootstrap import BootstrapData, read_bootstrap_data

M = TypeVar("M", bound=InfraMachine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A created machine, with the contract's fields."""

    provider_id: str
    """The provider ID, equal to `spec.providerID` of its Node."""
    addresses: Sequence[MachineAddress] = ()
    failure_domain: str = ""
    stopped: str = ""
    """Why it does not run at the moment; empty: it runs. `Ready` repeats it."""
    facts: Any = None
    """Facts for the provider's own conditions; every answer and ProvisionFailed can have them."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The machine is not ready yet. The message is its progress; `Ready` repeats it."""

    message: str
    facts: Any = None


@dataclass(frozen=True, slots=True)
class Gone:
    """The machine existed and was removed externally. It is never created again: its Machine must be replaced."""

    message: str
    facts: Any = None


class InfraMachines(Provider[M]):
    """A kind of InfraMachine. Derive from it and implement both steps, which run often and may be interrupted."""

    kind: ClassVar[type[InfraMachine]]
    """The kind that is reconciled."""

    @abstractmethod
    async def provision(self, obj: M, machine: Machine) -> Server | Gone | Pending | None:
        """Create the machine, if it does not exist. Return it; Pending or None: it is not ready yet. Raises ProvisionFailed.

        It is also called for a running machine, so that it can report that the machine has stopped or is gone.
        """

    @abstractmethod
    async def remove(self, obj: M, machine: Machine | None) -> bool:
        """Remove everything that was created for it. Return True when all of it is gone. The Machine may be gone already."""

    async def bootstrap_data(self, machine: Machine) -> BootstrapData:
        """Return the bootstrap data of the machine; raises ProvisionFailed."""
        return await read_bootstrap_data(self.client, machine)


def order(obj: InfraMachine, machine: Machine, **backend: Any) -> Json:
    """Return a DevMachine to create, of the same name: the in-memory cloud boots the bootstrap data, and it becomes a Node."""
    references = [to_json(owner_reference(obj, controller=True)), to_json(owner_reference(machine, controller=False))]
    labels = {CLUSTER_NAME_LABEL: machine.spec.cluster_name}
    metadata = {"name": obj.metadata.name, "namespace": obj.metadata.namespace, "labels": labels, "ownerReferences": references}
    made = DevMachine()
    return {"apiVersion": made.api_version, "kind": made.kind, "metadata": metadata, "spec": {"backend": {"inMemory": backend}}}
