"""What one pass knows about a MachinePool: read once, frozen, and extended as the pass goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.kubernetes import Node
from clusterwright.controllers.external import WrongType, flag_at, text_at, value_at
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Found, Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSnapshot:
    """The MachinePool as this pass would leave it so far, and everything that decisions about it rest on.

    `nodes` are those of the workload cluster by providerID; None: they are not known. `machines` are those that count for the
    pool; None: they could not be listed.
    """

    now: datetime
    object: MachinePool
    cluster: Cluster
    bootstrap: Lookup = NOT_REFERENCED
    infrastructure: Lookup = NOT_REFERENCED
    nodes: Mapping[str, Node] | None = None
    machines: tuple[Machine, ...] | None = None

    @property
    def deleting(self) -> bool:
        """Whether the pool is being deleted."""
        return self.object.metadata.deletion_timestamp is not None

    @property
    def provisioned(self) -> bool:
        """What the pool says of its infrastructure."""
        flags = self.object.status.initialization
        return flags is not None and bool(flags.infrastructure_provisioned)

    @property
    def data_secret_created(self) -> bool:
        """What the pool says of its bootstrap data."""
        flags = self.object.status.initialization
        return flags is not None and bool(flags.bootstrap_data_secret_created)

    @property
    def replicas(self) -> int:
        """How many machines the infrastructure says it has."""
        return self.object.status.replicas or 0

    @property
    def ready_replicas(self) -> int:
        """How many Nodes were ready when they were last looked for."""
        deprecated = self.object.status.deprecated
        return deprecated.v1beta1.ready_replicas if deprecated and deprecated.v1beta1 else 0


# -------------------------------------------------------------------------------------------------- reading by contract


def data_secret_created(config: Found) -> bool:
    """Whether the bootstrap config says that the data is there. Raises WrongType."""
    path = ("status", "ready") if config.contract == "v1beta1" else ("status", "initialization", "dataSecretCreated")
    return bool(flag_at(config.object, *path))


def infrastructure_provisioned(pool: Found) -> bool:
    """Whether the infrastructure says that it is provisioned. Raises WrongType.

    The flag of the older contract counts in both: pools of the newer one were read by it, too, and set it.
    """
    ready = bool(flag_at(pool.object, "status", "ready"))
    return ready or (pool.contract != "v1beta1" and bool(flag_at(pool.object, "status", "initialization", "provisioned")))


def infrastructure_machine_kind(pool: Found) -> str:
    """The kind of the infrastructure's machines, empty where it keeps them to itself. Raises WrongType."""
    return text_at(pool.object, "status", "infrastructureMachineKind")


def provider_ids(pool: Found) -> tuple[str, ...] | None:
    """The identities of the infrastructure's machines, in its order; None where it does not tell. Raises WrongType."""
    value = value_at(pool.object, "spec", "providerIDList")
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(i, str) for i in value):
        raise WrongType(f"spec.providerIDList of {pool.object.kind} {pool.object.key} must be a list of strings")
    return tuple(value)


def complaint(lookup: Lookup) -> str:
    """What is wrong with the failure that a provider's object reports; empty: nothing."""
    if not isinstance(lookup, Found):
        return ""
    try:
        text_at(lookup.object, "status", "failureReason")
        text_at(lookup.object, "status", "failureMessage")
    except WrongType as error:
        return str(error)
    return ""
