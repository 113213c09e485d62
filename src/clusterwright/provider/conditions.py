"""The progress of a provider's machine or cluster infrastructure: the snapshot of a pass, its outcome, and its conditions. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterwright.api.core import Cluster, Machine
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.tables import OTHERWISE, Row, Table, false, guard, message, true


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Snapshot[Any]):
    """The snapshot of an InfraMachine or InfraCluster. One that is deleted may have outlived its owners."""

    cluster: Cluster | None = None
    machine: Machine | None = None
    is_cluster_provisioned: bool = False
    has_data: bool = False
    """Whether there are bootstrap data."""

    @property
    def is_provisioned(self) -> bool:
        """Whether the infrastructure was reported as provisioned, which is permanent."""
        latch = self.object.status.initialization
        return latch is not None and bool(latch.provisioned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(View):
    """The object at the end of the pass, with the provider's answer; empty texts: not reported."""

    failure: str = ""
    stopped: str = ""
    gone: str = ""
    pending: str = ""
    """The progress message."""
    facts: Any = None
    """The provider's own facts in its answer; None: there are none."""


@guard("the object is being deleted")
def deleting(v: View) -> bool:
    return v.deleting


@guard("status.initialization.provisioned")
def provisioned(v: View) -> bool:
    return v.is_provisioned


@guard("Cluster status.initialization.infrastructureProvisioned")
def cluster_provisioned(v: View) -> bool:
    return v.is_cluster_provisioned


@guard("the Machine, or its MachinePool, has bootstrap data")
def has_data(v: View) -> bool:
    return v.has_data


@guard("the provider failed")
def failed(v: Answered) -> bool:
    return bool(v.failure)


@guard("the provider reports that it has stopped")
def stopped(v: Answered) -> bool:
    return bool(v.stopped)


@guard("the provider reports that it is gone")
def gone(v: Answered) -> bool:
    return bool(v.gone)


@message("<what the provider says>")
def said(v: Answered) -> str:
    return v.failure or v.gone or v.stopped


@message("<how far the provider says that it is>")
def progress(v: Answered) -> str:
    return v.pending


# fmt: off
READY: Table[Answered] = Table(
    "Ready",
    Row("not-removed",    deleting & failed,    false("DeletionFailed", said)),
    Row("deleting",       deleting,             false("Deleting")),
    Row("failed",         failed,               false("ProvisioningFailed", said)),
    Row("gone",           gone,                 false("Gone", said)),
    Row("stopped",        stopped,              false("Stopped", said)),
    Row("provisioned",    provisioned,          true("Provisioned")),
    Row("infrastructure", ~cluster_provisioned, false("WaitingForClusterInfrastructureReady")),
    Row("data",           ~has_data,            false("WaitingForBootstrapData")),
    Row("provisioning",   OTHERWISE,            false("Provisioning", progress)),
    about="The progress of a provider's machine.",
)

CLUSTER_READY: Table[Answered] = Table(
    "Ready",
    Row("not-removed",    deleting & failed,    false("DeletionFailed", said)),
    Row("deleting",       deleting,             false("Deleting")),
    Row("failed",         failed,               false("ProvisioningFailed", said)),
    Row("stopped",        stopped,              false("Stopped", said)),
    Row("provisioned",    provisioned,          true("Provisioned")),
    Row("provisioning",   OTHERWISE,            false("Provisioning", progress)),
    about="The progress of a provider's cluster infrastructure.",
)
# fmt: on
